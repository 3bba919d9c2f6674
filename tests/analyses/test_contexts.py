"""Concepts against contexts: counts, association, orders, and datasets that know little of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fsviz import datasets
from fsviz.analyses import contexts
from fsviz.errors import Missing
from fsviz.records import Dataset


def small(rows: list[tuple[int, str]]) -> Dataset:
    """Three classes, one image per row (class_id, context)."""
    images = pd.DataFrame(rows, columns=["class_id", "context"]).sort_values("class_id", ignore_index=True)
    sizes = images["class_id"].value_counts().reindex(range(3), fill_value=0)
    classes = pd.DataFrame({"class_name": ["dog", "cat", "cow"], "split": "all", "n_images": sizes, "node": ""})
    expected = images[images["context"] != ""].groupby(["class_id", "context"]).size().rename("n_images").reset_index()
    return Dataset("small", "Small", classes, {"all": np.arange(3)}, contexts=expected, images=images.assign(path=""))


def test_counts_by_hand() -> None:
    rows = [(0, "grass")] * 3 + [(0, "snow")] + [(1, "grass")] * 2 + [(1, "")] * 5 + [(2, "snow")] * 4
    table = contexts.context_table(small(rows), "all")
    assert table.contexts == ("grass", "snow")  # equally common, so by name
    assert table.counts.tolist() == [[3, 1], [2, 0], [0, 4]]
    assert table.n_without == 5 and table.n_images == 10
    assert contexts.single_context(table) == ["cat", "cow"]
    assert contexts.common_context(table) == (0.9, 1)
    assert contexts.images_of(small(rows), 0, "snow").tolist() == [3]
    assert len(contexts.images_of(small(rows), None, "grass")) == 5
    # cow is only in snow, half of all images: one bit; dog is 3/4 in grass
    assert contexts.association_strengths(table, 0).tolist() == pytest.approx(
        [0.75 * np.log2(1.5) + 0.25 * np.log2(0.5), 1.0, 1.0]
    )


@pytest.mark.parametrize("name", ["demo", "metacoco"])
def test_every_order_is_one_of_all_rows_and_columns(name: str) -> None:
    dataset = datasets.load(name)
    table = contexts.context_table(dataset, "test")
    for by in contexts.orders(dataset):
        rows, columns = contexts.ordered(dataset, "test", table, by)
        assert sorted(rows) == list(range(len(table.names))) and sorted(columns) == list(range(len(table.contexts)))
    by_size = table.counts.sum(1)[contexts.ordered(dataset, "test", table, "size")[0]]
    assert (np.diff(by_size) <= 0).all()


def test_concepts_of_the_demo_and_of_metacoco_are_tied_to_their_contexts() -> None:
    for name, n_concepts, n_contexts in (("demo", 107, 14), ("metacoco", 23, 69)):
        summary = contexts.summary(datasets.load(name), "all")
        assert (summary["n_concepts"], summary["n_contexts"]) == (n_concepts, n_contexts)
        tied = summary["association"]
        assert 3 * tied["chance"] < tied["low"] < tied["v"] < tied["high"] < 1
        assert sum(cell["n_images"] for cell in summary["cells"]) == summary["n_images"]


def test_shuffled_contexts_are_not_tied() -> None:
    demo = datasets.load("demo")
    assert demo.images is not None
    shuffled = np.random.default_rng(0).permutation(demo.images["context"].to_numpy())
    counts = pd.crosstab(demo.images["class_id"], shuffled)
    table = contexts.context_table(demo, "all")
    result = contexts.association(type(table)(table.class_ids, table.names, tuple(counts.columns), counts.to_numpy()))
    assert result["v"] is not None and result["v"] < 2 * (result["chance"] or 0)


def test_a_table_of_one_context_has_no_association() -> None:
    assert contexts.association(contexts.context_table(small([(0, "grass"), (1, "grass")]), "all"))["v"] is None


def test_without_contexts_the_way_to_them_is_said() -> None:
    with pytest.raises(Missing, match="column 'context'"):
        contexts.context_table(datasets.load("digits"))
    with pytest.raises(Missing, match="No image of split"):
        contexts.context_table(small([(0, ""), (1, "")]), "all")


def test_the_answer_says_whether_class_and_context_are_associated() -> None:
    strong = {"v": 0.34, "low": 0.32, "high": 0.36, "chance": 0.05}
    assert contexts.association_answer(strong) == (
        "Class and context are associated: V = 0.34 (expected by chance below 0.05).",
        "95% CI 0.32 to 0.36 over images. 0 = independent, 1 = context determines the class.",
    )
    assert "not significantly associated" in contexts.association_answer({**strong, "v": 0.04})[0]
    assert "not available" in contexts.association_answer(dict.fromkeys(strong))[0]
