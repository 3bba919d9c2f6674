"""The page Classes without a browser, also for datasets whose image counts are unknown."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from fsviz import datasets
from fsviz.datasets.catalog import ENTRIES
from fsviz.figures import taxonomy as figures
from fsviz.tasks import draw
from fsviz.taxonomy import maps
from tests.ui.test_gallery_pages import run, texts


@pytest.mark.parametrize(("dataset", "is_reported"), [("df20", True), ("tiered_imagenet", False)])
def test_unknown_image_counts_are_reported_if_the_distance_needs_them(
    dataset: str, is_reported: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    app = run("classes", dataset=dataset)
    assert ("classes count equally" in texts(app)) is is_reported
    app.selectbox(key="distance").set_value("path_length").run()
    assert not app.exception
    assert "classes count equally" not in texts(app)


@pytest.mark.parametrize(
    ("dataset", "split"),
    [
        ("demo", "test"),
        ("tiered_imagenet", "test"),
        ("tiered_imagenet", "train"),
        ("imagenet1k", "all"),
        ("df20", "test"),
    ],
)
def test_no_picture_opens_with_more_names_than_have_room(
    dataset: str, split: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    app = run("classes", dataset=dataset, split=split)
    series = json.loads(app.get("echarts_chart")[0].proto.spec)["series"][0]
    if series["type"] == "graph":
        assert sum(node["label"]["show"] for node in series["data"]) <= 130
    else:
        levels = series["levels"]
        (root,) = series["data"]
        assert _ends(root) <= 170
        assert all(level["label"]["minAngle"] > 0 for level in levels[2:])  # what is too thin for a name has none


def _ends(node: dict) -> int:
    return sum(map(_ends, node["children"])) if node.get("children") else 1


def test_a_link_looks_into_a_concept_and_leads_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    app = run("classes", dataset="imagenet1k", at="n01503061", classes="pug")
    assert "**bird** · 52 classes" in texts(app)
    series = json.loads(app.get("echarts_chart")[0].proto.spec)["series"][0]
    assert series["type"] == "sunburst" and "center" not in series
    next(b for b in app.button if b.label == "All 1,000 classes").click().run()
    assert not app.exception
    assert "at" not in app.query_params and "**bird**" not in texts(app)
    series = json.loads(app.get("echarts_chart")[0].proto.spec)["series"][0]
    assert series["data"][0]["name"] == "entity" and series["data"][0]["value"] == 1000
    assert app.multiselect(key="classes").value == ["pug"]


def test_an_unknown_concept_in_a_link_is_reported_and_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    app = run("classes", at="n99999999")
    assert not app.exception and any("at=n99999999" in toast.value for toast in app.toast)


def test_a_row_of_the_closest_pairs_becomes_the_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    app = run("classes", classes="wolf")
    table = app.dataframe[-1].value
    assert {"a_picture", "b_picture"} <= set(table.columns)
    assert all(str(source).startswith("data:image/") for source in table["a_picture"])


def test_a_benchmark_has_a_taxonomy_or_its_page_says_why_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    without = [dataset for dataset in map(datasets.load, ENTRIES) if dataset.taxonomy is None]
    assert [dataset.name for dataset in without] == ["aircraft", "dtd", "traffic_sign"]
    for dataset in without:
        (why,) = [note for note in dataset.notes if note.startswith("No taxonomy:")]
        assert why[:40] in texts(run("classes", dataset=dataset.name))


@pytest.mark.parametrize(("dataset", "split"), [("demo", "test"), ("tiered_imagenet", "val")])
def test_the_answer_is_the_closest_pair_and_the_median(
    dataset: str, split: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    app = run("classes", dataset=dataset, split=split)
    distances = draw.class_distances(datasets.load(dataset), split, "jiang_conrath", "shortest_path")
    names = datasets.load(dataset).distinct_names(datasets.load(dataset).split_class_ids(split))
    pairs = distances[np.triu_indices(len(names), 1)]
    (answer,) = [m.value for m in app.markdown if "Closest classes" in m.value]
    assert not app.metric and f"Median distance: {np.median(pairs):.2f}." in answer
    a, b, value = re.search(r"Closest classes: (.+) and (.+) \(distance ([\d.]+)\)", answer).groups()
    assert f"{distances[names.index(a), names.index(b)]:.2f}" == value == f"{pairs.min():.2f}"
    n_ties = int((pairs < pairs.min() + 1e-9).sum()) - 1
    assert f"{len(names)} classes; {n_ties} other pairs are as close." in answer


def test_a_graph_with_images_has_them_at_its_leaves_and_names_its_concepts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    app = run("classes", dataset="demo")
    option = json.loads(app.get("echarts_chart")[0].proto.spec)
    nodes = option["series"][0]["data"]
    leaves = [node for node in nodes if str(node.get("symbol", "")).startswith("image://data:image/")]
    assert len(leaves) == 30 and {node["name"] for node in leaves} <= set(datasets.load("demo").classes["class_name"])
    concepts = [node for node in nodes if node not in leaves]
    assert len(concepts) == 24 and all(node["label"]["show"] for node in concepts)
    assert {"mammals", "vehicles", "birds", "food"} <= {entry["name"] for entry in option["legend"]["data"]}


def test_a_click_on_a_class_of_the_sunburst_selects_it_wherever_it_is_in_the_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    app = run("classes", dataset="tiered_imagenet", split="val")
    (root,) = json.loads(app.get("echarts_chart")[0].proto.spec)["series"][0]["data"]
    tree = maps.concept_tree(maps.spanning_graph(datasets.load("tiered_imagenet"), "val"))
    levels = min(figures.RINGS, tree.levels_that_fit(0, figures.SECTORS))
    assert [tree.names[v] for v in figures.sunburst_order(tree, 0, levels)] == [
        name.removesuffix(" ▸") for name in _names(root)
    ]


def _names(node: dict) -> list[str]:
    return [node["name"], *(name for child in node.get("children", ()) for name in _names(child))]
