"""Names that try to be code somewhere (links, pictures, markup, formulas, icons, templates, tables), in every place
that takes a name: title, source, notes, classes, concepts, contexts, attributes and their values, splits, backbones,
testbeds, recipes and runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from fsviz import jobs, workspace
from fsviz.datasets.saved import save_dataset
from fsviz.features import store
from fsviz.records import Dataset, Testbed
from fsviz.sampling import assign_images, sample_uniform
from fsviz.sampling.testbeds import to_parquet

LINK, PICTURE = "[click me](https://evil.example)", "![x](https://evil.example/x.png)"
NAMES = (
    LINK,
    PICTURE,
    "<b>bold</b>",
    "<img src=x onerror=alert(1)>",
    '=HYPERLINK("https://evil.example","x")',
    "$x^2$",
    ":red[x]",
    ":material/home:",
    "a|b",
    "%s{0}%{x}",
    "www.evil.example and me@evil.example -> -- there",
    '<a href="https://evil.example">a</a>',
    "`code` *stars* _lines_ # and & &lt; 1. - + ~~gone~~",
    "\u202egnp.\u2066evil\u200f",
    "long " * 40,
    "<script>fetch('https://evil.example')</script>",
)
N_IMAGES, DIMS = 16, 8


def make_hostile(root: Path, name: str = "hostile") -> Dataset:
    """A dataset with images, taxonomy, contexts, attributes and features of two backbones, all of them ill named."""
    rng = np.random.default_rng(0)
    n_classes = len(NAMES)
    class_ids = np.repeat(np.arange(n_classes), N_IMAGES)
    root.mkdir(parents=True, exist_ok=True)
    for i, class_id in enumerate(class_ids):
        pixels = np.random.default_rng(int(class_id)).integers(0, 255, (4, 4, 3)).astype(np.uint8)
        Image.fromarray(pixels).resize((16, 16), Image.Resampling.NEAREST).save(root / f"{i}.png")
    values, number = NAMES[3], NAMES[1]  # attributes: one of words, one of numbers
    images = pd.DataFrame(
        {
            "class_id": class_ids,
            "path": [f"{i}.png" for i in range(len(class_ids))],
            "context": np.array(NAMES[:3])[rng.integers(0, 3, len(class_ids))],
            values: np.array(NAMES[:4])[rng.integers(0, 4, len(class_ids))],
            number: rng.random(len(class_ids)),
        }
    )
    contexts = images.groupby(["class_id", "context"]).size().rename("n_images").reset_index()
    classes = pd.DataFrame(
        {
            "class_name": NAMES,
            "split": [LINK] * 8 + [PICTURE] * (n_classes - 8),
            "n_images": pd.array([N_IMAGES] * n_classes, dtype="Int64"),
            "node": [f"c{i}" for i in range(n_classes)],
        }
    )
    edges = [(f"c{i}", f"g{i % 4}") for i in range(n_classes)] + [(f"g{g}", "root") for g in range(4)]
    dataset = save_dataset(
        Dataset(
            name=name,
            title=PICTURE,
            summary=LINK,
            source=LINK,
            licence=PICTURE,
            notes=(LINK,),
            classes=classes,
            splits={LINK: np.arange(8), PICTURE: np.arange(8, n_classes), "test": np.arange(n_classes)},
            taxonomy=pd.DataFrame(edges, columns=["child", "parent"]),
            node_names={f"g{g}": NAMES[g] for g in range(4)} | {"root": PICTURE},
            contexts=contexts,
            images=images,
            attributes=(values, number),
            origin="folder",
            root=root,
            has_features=True,
        ),
        overwrite=True,
    )
    latent = rng.normal(size=(n_classes, DIMS))[class_ids] + rng.normal(size=(len(class_ids), DIMS))
    for i, backbone in enumerate((LINK, PICTURE)):
        key = {
            "version": store.VERSION,
            "dataset": name,
            "fingerprint": store.fingerprint(dataset),
            "backbone": backbone,
        }
        features = (latent + i).astype(np.float32)
        store.save(key, backbone, features, np.arange(len(features)), class_ids)
    return dataset


def make_hostile_testbed(dataset: Dataset, n_tasks: int = 24) -> str:
    """A testbed whose name and recipe, in the metadata of its file, are hostile; returns the name of the file."""
    tasks = assign_images(sample_uniform(dataset.splits["test"], 4, n_tasks, 0), dataset.image_class_ids(), 2, 4, 0)
    tasks = tasks.with_measure("coarsity", np.linspace(1, 9, n_tasks))
    recipe = {
        "dataset": dataset.name,
        "split": "test",
        "sampler": LINK,
        "seed": PICTURE,
        "distance": PICTURE,
        "dag": LINK,
    }
    path = workspace.folder("testbeds", create=True) / "brought.parquet"
    path.write_bytes(to_parquet(Testbed(PICTURE, tasks, recipe)))
    return path.stem


def make_hostile_run(dataset: Dataset) -> jobs.Run:
    """A finished evaluation of the hostile testbed with both backbones."""
    spec = {
        "study": "evaluate",
        "dataset": dataset.name,
        "backbones": [LINK, PICTURE],
        "methods": ["protonet", "ridge"],
    }
    return jobs.run_in_foreground({**spec, "testbed": make_hostile_testbed(dataset), "device": "cpu"})
