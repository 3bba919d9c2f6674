"""The embedded demo: its tables agree, its taxonomy is whole, its pictures are the same wherever they are drawn."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fsviz import datasets
from fsviz.datasets import demo
from fsviz.errors import BadInput, UnknownName
from fsviz.records import Dataset

ROOT = Path(__file__).resolve().parents[2]
ENTITY = "n00001740"

# Mean colours (red, green, blue) of the four quarters of some images at 64 pixels.
QUARTERS = {
    0: [214, 192, 170, 231, 207, 180, 202, 180, 143, 212, 187, 148],
    777: [174, 201, 157, 168, 204, 142, 113, 169, 91, 113, 176, 88],
    1500: [144, 196, 199, 138, 204, 188, 161, 179, 51, 119, 172, 62],
    2600: [168, 156, 135, 162, 158, 165, 88, 73, 84, 154, 132, 112],
    3900: [193, 205, 215, 170, 192, 212, 157, 150, 144, 162, 148, 138],
    5100: [90, 110, 106, 73, 120, 137, 57, 86, 95, 76, 104, 100],
}


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return datasets.load("demo")


@pytest.fixture(scope="module")
def recipes() -> pd.DataFrame:
    return pd.read_parquet(demo.FOLDER / "images.parquet")


def ancestors(dataset: Dataset) -> dict[str, set[str]]:
    parents = defaultdict(set)
    for child, parent in dataset.taxonomy.itertuples(index=False):
        parents[child].add(parent)
    values: dict[str, set[str]] = {}

    def climb(node: str) -> set[str]:
        if node not in values:
            values[node] = parents[node].union(*(climb(p) for p in parents[node]))
        return values[node]

    return {node: climb(node) for node in dataset.classes["node"]}


def test_the_record_keeps_its_contract(dataset: Dataset) -> None:
    assert dataset.name == "demo" and dataset.origin == "demo"
    assert set(dataset.capabilities) >= {"taxonomy", "contexts", "attributes", "images"}
    assert "not photographs" in dataset.summary
    assert 95 <= dataset.n_classes <= 115
    assert dataset.images.index.tolist() == list(range(len(dataset.images)))
    assert dataset.images.index.name == "image_id" and dataset.classes.index.name == "class_id"
    assert {"class_id", "path", "context", *dataset.attributes} == set(dataset.images.columns)
    assert {"style", "scale", "rotation", "x", "y", "blur", "brightness", "occlusion", "clutter"} <= set(
        dataset.attributes
    )
    assert not dataset.images.isna().any(axis=None)
    assert dataset.classes["n_images"].between(40, 60).all()
    assert dataset.n_images == len(dataset.images)


def test_splits_hold_every_class_once(dataset: Dataset) -> None:
    together = np.concatenate([dataset.split_class_ids(s) for s in ("train", "val", "test")])
    assert sorted(together) == list(range(dataset.n_classes))
    assert len(dataset.split_class_ids("test")) == 30
    for split, ids in dataset.splits.items():
        assert (dataset.classes.loc[ids, "split"] == split).all()


def test_every_concept_reaches_the_root_of_the_taxonomy(dataset: Dataset) -> None:
    above = ancestors(dataset)
    for name, node in dataset.classes[["class_name", "node"]].itertuples(index=False):
        assert ENTITY in above[node], name
    nodes = set(dataset.taxonomy["child"]) | set(dataset.taxonomy["parent"])
    assert nodes == set(dataset.node_names)
    assert set(dataset.taxonomy["parent"]) - set(dataset.taxonomy["child"]) == {ENTITY}
    assert not dataset.taxonomy.duplicated().any()
    assert dataset.classes["node"].is_unique and dataset.classes["class_name"].is_unique


def test_the_senses_are_the_meant_ones(dataset: Dataset) -> None:
    """Words with a second sense far away: each concept lies under the node a reader expects."""
    above = ancestors(dataset)
    node = dataset.classes.set_index("class_name")["node"]
    names = dataset.node_names
    expected = {
        "dog": "canine", "mouse": "rodent", "crab": "crustacean", "key": "artifact", "dolphin": "whale",
        "turkey": "bird", "duck": "bird", "lemon": "edible fruit", "pear": "edible fruit", "bee": "insect",
        "hammer": "tool", "drum": "musical instrument", "rocket": "vehicle", "bed": "furniture", "rose": "plant",
        "mushroom": "fungus", "bread": "food", "taxi": "car", "turtle": "reptile", "frog": "amphibian",
    }  # fmt: skip
    for concept, ancestor in expected.items():
        assert ancestor in {names[a] for a in above[node[concept]]}, concept


def test_no_class_of_a_split_contains_another(dataset: Dataset) -> None:
    above = ancestors(dataset)
    for ids in dataset.splits.values():
        nodes = dataset.classes.loc[ids, "node"]
        assert not any(above[node] & set(nodes) for node in nodes)


def test_the_test_split_has_close_relatives(dataset: Dataset) -> None:
    """Fine-grained tasks need several classes below one node that is far from the root."""
    above = ancestors(dataset)
    nodes = dataset.classes.loc[dataset.split_class_ids("test"), "node"]
    below = defaultdict(int)
    for node in nodes:
        for ancestor in above[node]:
            below[dataset.node_names[ancestor]] += 1
    assert below["carnivore"] >= 4 and below["bird"] >= 4 and below["motor vehicle"] >= 3
    assert below["edible fruit"] >= 3 and below["even-toed ungulate"] >= 3


def test_the_node_names_come_from_wordnet_3_0(dataset: Dataset) -> None:
    expected = pd.read_csv(ROOT / "data" / "taxonomies" / "wordnet_imagenet_names.csv").set_index("node")["name"]
    shared = [node for node in dataset.node_names if node in expected.index]
    assert len(shared) > 100
    assert all(dataset.node_names[node] == expected[node] for node in shared)


def test_table_and_pack_agree(dataset: Dataset, recipes: pd.DataFrame) -> None:
    sprites = demo.sprite_table()
    names = dataset.classes["class_name"]
    used = sprites.loc[recipes["sprite"]].reset_index(drop=True)
    assert (used["class_name"] == recipes["class_id"].map(names)).all()
    for column in ("style", "family", "pose"):
        assert (used[column] == recipes[column]).all()
    cluttered = recipes[recipes["second"] >= 0]
    second = sprites.loc[cluttered["second"], "class_name"].to_numpy()
    assert (second != cluttered["class_id"].map(names).to_numpy()).all()
    assert ((recipes["clutter"] > 0) == (recipes["second"] >= 0)).all()
    pictures = set(demo.background_table()[["context", "part", "variant"]].itertuples(index=False, name=None))
    assert {(c, "scene", v) for c, v in recipes[["context", "scene"]].itertuples(index=False)} <= pictures
    covered = recipes[recipes["front"] >= 0]
    assert {(c, "front", v) for c, v in covered[["context", "front"]].itertuples(index=False)} <= pictures
    assert (recipes["window"] + recipes[["window_x", "window_y"]].max(axis=1) <= 320).all()
    assert not recipes.duplicated().any()


def test_every_concept_has_styles_of_several_families() -> None:
    sprites = demo.sprite_table()
    families = sprites.groupby("style")["family"].nunique()
    assert len(families) == 7 and (families == 1).all()
    assert sprites["family"].nunique() == 5
    assert sprites.groupby("class_name")["family"].nunique().min() >= 3
    assert sprites.groupby("class_name")["style"].nunique().min() >= 4
    assert (sprites.groupby("class_name")["style"].nunique() >= 5).mean() > 0.9
    family = sprites.drop_duplicates("style").set_index("style")["family"]
    assert family["fluent-emoji"] == family["fluent-emoji-flat"]
    assert family["noto"] == family["noto-v1"]


def test_every_family_is_seen_in_every_split(dataset: Dataset) -> None:
    split = dataset.images["class_id"].map(dataset.classes["split"])
    assert dataset.images.groupby(split)["family"].nunique().eq(5).all()


def test_contexts_are_uneven_and_every_concept_has_several(dataset: Dataset) -> None:
    table = dataset.contexts.pivot(index="class_id", columns="context", values="n_images").fillna(0)
    assert table.shape == (dataset.n_classes, 14)
    assert (table.to_numpy().sum(axis=1) == dataset.classes["n_images"].to_numpy()).all()
    assert ((table >= 5).sum(axis=1) >= 3).all()
    assert (table.max(axis=1) / table.sum(axis=1)).min() > 0.3
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.to_numpy().sum()
    chi_square = ((table.to_numpy() - expected) ** 2 / expected).sum()
    degrees = (table.shape[0] - 1) * (table.shape[1] - 1)
    assert chi_square > 4 * degrees
    name = dataset.classes["class_name"]
    assert table.loc[name == "fish"].idxmax(axis=1).item() == "underwater"
    assert table.loc[name == "camel"].idxmax(axis=1).item() == "desert"


def test_the_recorded_occlusion_is_what_is_covered(recipes: pd.DataFrame) -> None:
    covered = recipes[recipes["front"] >= 0].iloc[:12].to_dict("records")
    free = recipes[(recipes["front"] < 0) & (recipes["second"] < 0)]
    assert (free["occlusion"] == 0).all()
    for row in covered:
        assert demo.hidden_share(row) == pytest.approx(row["occlusion"], abs=0.01)
        higher = {**row, "cover": row["cover"] + 0.3}
        assert demo.hidden_share(higher) > demo.hidden_share(row)


def test_the_same_row_gives_the_same_picture() -> None:
    ids = np.arange(0, 5000, 413)
    first = demo.compose(ids, 96)
    assert first.shape == (len(ids), 96, 96, 3) and first.dtype == np.uint8
    assert np.array_equal(first, demo.compose(ids, 96))
    assert np.array_equal(first[::-1], demo.compose(ids[::-1], 96))
    code = (
        "import hashlib, numpy as np; from fsviz.datasets import demo;"
        "print(hashlib.sha256(demo.compose(np.arange(0, 5000, 413)[::-1], 96).tobytes()).hexdigest())"
    )
    second = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert second.stdout.strip() == hashlib.sha256(first[::-1].tobytes()).hexdigest()


def test_pictures_are_the_ones_that_were_shipped() -> None:
    pictures = demo.compose(list(QUARTERS), 64).astype(float)
    result = pictures.reshape(len(QUARTERS), 2, 32, 2, 32, 3).mean(axis=(2, 4)).reshape(len(QUARTERS), -1)
    assert np.abs(result - np.array(list(QUARTERS.values()))).max() < 1.5


def test_sizes_show_the_same_picture() -> None:
    ids = [40, 2000, 4321]
    small = demo.compose(ids, 56).astype(float)
    large = demo.compose(ids, 224).reshape(3, 56, 4, 56, 4, 3).mean(axis=(2, 4))
    assert np.abs(small - large).mean() < 8


def test_attributes_do_what_they_say(recipes: pd.DataFrame) -> None:
    plain = recipes[(recipes["front"] < 0) & (recipes["second"] < 0) & (recipes["context"] == "wood")].iloc[0]
    row = {**plain.to_dict(), "blur": 0.0, "brightness": 1.0, "rotation": 0.0, "x": 0.5, "y": 0.5, "scale": 0.5}

    def compose(**change: object) -> np.ndarray:
        return demo.compose_rows([{**row, **change}], 96)[0].astype(float)

    base = compose()
    assert compose(brightness=0.7).mean() == pytest.approx(0.7 * base.mean(), rel=0.02)
    roughness = [np.abs(np.diff(compose(blur=b), axis=0)).mean() for b in (0.0, 0.5, 1.0)]
    assert roughness[0] > roughness[1] > roughness[2]
    empty = compose(scale=0.02)
    changed = (np.abs(base - empty).sum(axis=2) > 30).mean()
    assert (np.abs(compose(scale=0.8) - empty).sum(axis=2) > 30).mean() > 1.5 * changed
    columns = np.abs(compose(x=0.3) - empty).sum(axis=(0, 2))
    assert np.average(np.arange(96), weights=columns) < 40
    assert not np.array_equal(compose(rotation=30.0), base)


def test_opening_goes_through_the_datasets_room(dataset: Dataset) -> None:
    image = datasets.open_image(dataset, 123)
    assert image.mode == "RGB" and image.size == (demo.NATIVE, demo.NATIVE)
    assert np.array_equal(np.asarray(image), demo.compose([123], demo.NATIVE)[0])


def test_impossible_requests_are_refused(dataset: Dataset) -> None:
    with pytest.raises(UnknownName, match=f"0 to {len(dataset.images) - 1}"):
        demo.compose([len(dataset.images)])
    with pytest.raises(UnknownName):
        demo.compose([-1])
    with pytest.raises(BadInput, match="8 to"):
        demo.compose([0], size=100_000)


def test_licences_are_beside_the_pictures() -> None:
    attribution = (demo.FOLDER / "ATTRIBUTION.md").read_text(encoding="utf-8")
    for style in demo.sprite_table()["style"].unique():
        text = demo.FOLDER / "licences" / f"{style}.txt"
        assert text.is_file() and len(text.read_text(encoding="utf-8")) > 150
        assert f"licences/{style}.txt" in attribution
    assert "Apache License" in (demo.FOLDER / "licences" / "Apache-2.0.txt").read_text(encoding="utf-8")
    assert "Princeton" in (demo.FOLDER / "licences" / "WordNet.txt").read_text(encoding="utf-8")


def test_the_whole_demo_stays_small() -> None:
    files = [path for path in demo.FOLDER.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 30e6


def test_the_image_text_model_is_as_good_as_its_card_says(dataset: Dataset) -> None:
    """Zero-shot concept and context of images in a style it never saw, through the features room."""
    from fsviz.features import image_text

    metrics = json.loads((demo.FOLDER / "clip" / "metrics.json").read_text(encoding="utf-8"))
    recorded = metrics["held_out_style"]
    assert recorded["concept_top1"] > 20 * metrics["chance_concept_top1"]
    assert (demo.FOLDER / "clip" / "model.safetensors").stat().st_size < 10e6

    model = image_text.load_image_text("demo_clip", on="cpu")
    table = dataset.images[dataset.images["family"] == metrics["held_out_family"]].iloc[::6]
    images = model.encode_images([demo.open_demo_image(dataset, int(i)) for i in table.index])
    names = dataset.classes["class_name"]
    texts = model.encode_texts([f"a photo of {'an' if n[0] in 'aeiou' else 'a'} {n}" for n in names])
    right = ((images @ texts.T).argmax(1) == table["class_id"]).mean()
    spread = np.sqrt(recorded["concept_top1"] * (1 - recorded["concept_top1"]) / len(table))
    assert right == pytest.approx(recorded["concept_top1"], abs=4 * spread)
