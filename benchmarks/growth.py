"""Growth of the work of every study: processor seconds at four sizes, and the slope of their logarithms.

A slope of 1 means twice the work for twice the size. Sizes are tasks, ways, classes or images; everything else stays as
it is. What a run costs before its first chunk (loading, drawing) is in the numbers and flattens the slope at small
sizes; the cost of one more is taken between the two largest. There is nothing to compare with, so `ratio` is the
steepest slope. From the costs follows, on paper, what the large benchmarks take. Also writes docs/growth.png.
"""

from __future__ import annotations

import dataclasses
import os
import resource
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "growth.png"
# A GPU on paper: how many times the work of one of these cores it does. No GPU was measured; put your own number here.
GPU_IN_CORES = 50
META_DATASET = (
    *("ilsvrc_2012", "omniglot", "aircraft", "cu_birds", "dtd"),
    *("quickdraw", "fungi", "vgg_flower", "traffic_sign", "mscoco"),
)


class Study(NamedTuple):
    """One line of the figure: what grows, through which sizes, and the work at a size."""

    grows: str
    sizes: tuple[int, ...]
    work: Callable[[int], Any]


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    studies: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FSVIZ_HOME"] = str(Path(folder) / "workspace")
        for name, study in _studies(Path(folder)).items():
            study.work(study.sizes[0])  # loads and compiles
            spent = [_processor_seconds(lambda n=n, study=study: study.work(n)) for n in study.sizes]
            slope = float(np.polyfit(np.log(study.sizes), np.log(spent), 1)[0])
            each = (spent[-1] - spent[-2]) / (study.sizes[-1] - study.sizes[-2])
            studies[name] = {"grows": study.grows, "sizes": study.sizes, "seconds": spent, "slope": slope, "each": each}
            seconds_text = ", ".join(f"{n:,}: {s:.2f} s" for n, s in zip(study.sizes, spent, strict=True))
            progress(f"{name} by {study.grows}: {seconds_text}; slope {slope:.2f}, {1000 * each:.3g} ms for one more")
    draw(studies, PICTURE)
    return {
        "ratio": max(entry["slope"] for entry in studies.values()),
        "studies": studies,
        "on_paper": on_paper(studies),
    }


def _studies(folder: Path) -> dict[str, Study]:
    from benchmarks import confusion
    from benchmarks.extraction import _photographs
    from fsviz import datasets, features, jobs
    from fsviz.datasets.saved import save_dataset
    from fsviz.difficulty.class_confusion import class_confusion
    from fsviz.features import maps
    from fsviz.studies.confusion import pairs_of
    from fsviz.tasks.draw import class_distances

    def of(study: str, **fixed: Any) -> Callable[[int], Any]:
        spec = {"study": study, "dataset": "demo", "backbone": "efficientnet_lite0", **fixed}
        return lambda n: jobs.run_in_foreground({**spec, "n_tasks": n})

    def evaluated(method: str, **of_size: str) -> Callable[[int], Any]:
        fixed = {"sampler": "uniform", "split": "all", "n_way": 5, "n_shot": 5, "n_query": 10, "n_tasks": 2000}
        spec = {"study": "evaluate", "dataset": "demo", "backbones": ["efficientnet_lite0"], "methods": [method]}
        spec |= {"device": "cpu", "threads": 1}
        return lambda n: jobs.run_in_foreground({**spec, "sampler": {**fixed, **dict.fromkeys(of_size.values(), n)}})

    table = features.load(datasets.load("demo"), "efficientnet_lite0")
    photographs = _photographs(folder / "images")

    def extracted(n: int) -> Any:
        rows = f"first{n}x{len(jobs.list_runs())}"
        save_dataset(dataclasses.replace(photographs, name=rows, images=photographs.images.iloc[:n]))
        return jobs.run_in_foreground({"study": "extraction", "dataset": rows, "device": "cpu", "workers": 0})

    of_size = dict(zip((97, 160, 351), (("tiered_imagenet", split) for split in ("val", "test", "train")), strict=True))
    of_size[1000] = ("imagenet1k", "all")

    def first(n: int) -> Any:
        parts = {name: getattr(table, name)[:n] for name in ("values", "image_ids", "class_ids")}
        return dataclasses.replace(table, **parts)

    def two_classes(n: int) -> Any:
        rows = np.concatenate([np.arange(n), pair.class_ids.size // 2 + np.arange(n)])
        parts = {name: getattr(pair, name)[rows] for name in ("values", "image_ids", "class_ids")}
        return dataclasses.replace(pair, **parts)

    pair = confusion.two_classes(1.2)
    tasks = (500, 1000, 2000, 4000)
    stressed = {"sources": ["efficientnet_lite0"], "backbones": ["efficientnet_lite0"], "search": "fastdiffsel"}
    return {
        "evaluate, ProtoNet": Study("tasks", (5000, 10_000, 20_000, 40_000), evaluated("protonet", tasks="n_tasks")),
        "evaluate, logistic regression": Study("tasks", tasks, evaluated("logistic", tasks="n_tasks")),
        "evaluate, ProtoNet, by ways": Study("ways", (5, 10, 20, 40), evaluated("protonet", ways="n_way")),
        "hard support sets": Study("tasks", (50, 100, 200, 400), of("support_sets", search="fastdiffsel")),
        "stress test": Study(
            "tasks",
            (50, 100, 200, 400),
            lambda n: jobs.run_in_foreground({"study": "stress_test", "dataset": "demo", **stressed, "n_tasks": n}),
        ),
        "searches side by side": Study(
            "tasks", (10, 20, 40, 80), of("search_comparison", searches=["fastdiffsel", "greedy"])
        ),
        "prediction, semi-supervised": Study("tasks", (100, 200, 400, 800), of("prediction")),
        "contexts": Study(
            "tasks",
            tasks,
            lambda n: jobs.run_in_foreground({"study": "context_shift", "dataset": "demo", "n_tasks": n}),
        ),
        "every measure (causes)": Study("tasks", (100, 200, 400, 800), of("causes", methods=["protonet"])),
        "confusion of all pairs": Study(
            "classes", (13, 27, 53, 107), lambda n: class_confusion(table, pairs_of(np.arange(n), np.arange(n)))
        ),
        "confusion of a pair": Study(
            "images", (75, 150, 300, 600), lambda n: class_confusion(two_classes(n), np.array([[0, 1]]))
        ),
        "distances in meaning": Study(
            "classes", (97, 160, 351, 1000), lambda n: class_distances(datasets.load(of_size[n][0]), of_size[n][1])
        ),
        "feature map": Study("images", (300, 600, 1200, 2400), lambda n: maps.lay_out(first(n), maps.BETTER)),
        "extraction, EfficientNet-Lite0": Study("images", (32, 64, 128, 256), extracted),
        "training, ProtoNet on CNN4": Study(
            "tasks",
            (20, 40, 80, 160),
            lambda n: jobs.run_in_foreground(
                {
                    "study": "training",
                    "dataset": "demo",
                    "method": "protonet",
                    "tasks_per_epoch": n,
                    "epochs": 1,
                    "width": 32,
                    "side": 32,
                    "val_tasks": 10,
                    "n_tasks": 20,
                    "device": "cpu",
                }
            ),
        ),
    }


def on_paper(studies: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Core hours for all images of a benchmark, for all pairs of classes and for 100,000 tasks of each of its datasets;
    and hours for the images on GPUs, each of which does the work of GPU_IN_CORES cores."""
    from fsviz import datasets

    image, task = studies["extraction, EfficientNet-Lite0"]["each"], studies["evaluate, ProtoNet"]["each"]
    pair = studies["confusion of a pair"]
    large = {"tieredImageNet": ["tiered_imagenet"], "ImageNet-1k": ["imagenet1k"], "Meta-Dataset": list(META_DATASET)}
    rows = []
    for name, parts in large.items():
        hours = dict.fromkeys(("images", "pairs", "tasks"), 0.0)
        for dataset in map(datasets.load, parts):
            n_images = dataset.n_images or 0
            per_class = min(n_images / dataset.n_classes, pair["sizes"][-1])
            each = pair["seconds"][-1] * (per_class / pair["sizes"][-1]) ** pair["slope"]
            hours["images"] += n_images * image / 3600
            hours["pairs"] += dataset.n_classes * (dataset.n_classes - 1) / 2 * each / 3600
            hours["tasks"] += 1e5 * task / 3600
        gpus = {f"images_on_{n}_gpus": hours["images"] / (n * GPU_IN_CORES) for n in (1, 8, 64)}
        rows.append({"benchmark": name, "core_hours": hours, **gpus})
    return rows


def draw(studies: dict[str, dict[str, Any]], path: Path) -> None:
    """Seconds against size, both logarithmic, relative to the smallest; drawn by Plotly in a headless Chromium."""
    import plotly.graph_objects as go
    from playwright.sync_api import sync_playwright

    from fsviz.figures.palette import SERIES
    from tests.browser.conftest import CHROMIUM, FLAGS

    figure = go.Figure()
    for i, (name, entry) in enumerate(studies.items()):
        figure.add_scatter(
            x=np.array(entry["sizes"]) / entry["sizes"][0],
            y=np.array(entry["seconds"]) / entry["seconds"][0],
            name=f"{name}: slope {entry['slope']:.2f} by {entry['grows']}",
            line={"color": SERIES[i % len(SERIES)], "dash": "solid" if i < len(SERIES) else "dot"},
            mode="lines+markers",
        )
    figure.add_scatter(
        x=[1, 8],
        y=[1, 8],
        mode="lines",
        name="twice the work for twice the size",
        line={"color": "#999", "dash": "dash"},
    )
    figure.update_layout(template="plotly_white", width=1000, height=520, margin={"t": 20, "r": 20})
    figure.update_xaxes(type="log", title="size, relative to the smallest", dtick=np.log10(2))
    figure.update_yaxes(type="log", title="processor seconds, relative to the smallest", dtick=np.log10(2))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        page = browser.new_page(viewport={"width": 1000, "height": 520})
        page.set_content(figure.to_html(include_plotlyjs=True, config={"displayModeBar": False}))
        page.wait_for_selector(".main-svg")
        page.screenshot(path=str(path))
        browser.close()


def _processor_seconds(work: Callable[[], Any]) -> float:
    """Of this process and of those it has started and ended."""
    before = _spent()
    work()
    return _spent() - before


def _spent() -> float:
    uses = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(use.ru_utime + use.ru_stime for use in uses)
