"""Published numbers as printed, ready to compare with a run."""

from __future__ import annotations

import pytest

from fsviz.datasets.published import (
    PAPERS,
    benchmark_title,
    published_benchmarks,
    published_families,
    published_results,
    published_table,
)
from fsviz.methods import METHODS


def test_every_number_has_a_paper_and_accuracies_are_percentages() -> None:
    table = published_results()
    assert len(table) == 614
    assert set(table["paper"]) == set(PAPERS)
    accuracies = table[table["metric"].isin(["top1", "top5"])]["value"]
    assert accuracies.between(0, 100).all() and accuracies.max() > 50
    assert set(table["fsviz_method"]) - {""} <= set(METHODS)


def test_the_semantic_table_as_printed() -> None:
    table = published_table("better-tieredImageNet", "5-way 1-shot").set_index("fsviz_method")
    row = table.loc["bd_cspn"]
    assert (row["accuracy"], row["ci95"]) == (59.99, 0.45)
    assert [row[q] for q in ("Q1", "Q2", "Q3", "Q4")] == [46.69, 57.5, 63.8, 71.95]
    assert row["source"] == "Bennequin et al. 2022, Table 1"
    assert len(table) == 6 and table["top5"].isna().all()


def test_quartiles_average_to_the_whole() -> None:
    """Quartiles are equal parts of the same tasks: their mean is the printed accuracy, but for one misprint of 0.2."""
    for setting in ("5-way 1-shot", "5-way 5-shot"):
        table = published_table("better-tieredImageNet", setting)
        mean = table[["Q1", "Q2", "Q3", "Q4"]].mean(axis=1)
        assert (mean - table["accuracy"]).abs().max() < 0.21


def test_top5_is_beside_top1() -> None:
    table = published_table("DF20", "100-way 1-shot")
    assert (table["top5"] > table["accuracy"]).all() and len(table) == 6


@pytest.mark.parametrize("dataset", ["tiered_imagenet", "df20", "metacoco", "mini_imagenet"])
def test_benchmarks_of_a_dataset(dataset: str) -> None:
    pairs = published_benchmarks(dataset)
    assert pairs and all(len(published_table(*pair)) for pair in pairs)
    assert published_benchmarks("demo") == []
    assert set(pairs) <= set(published_benchmarks())


def test_titles_of_benchmarks_are_for_people() -> None:
    titles = {benchmark_title(benchmark) for benchmark, _ in published_benchmarks()}
    assert "miniImageNet Hard" in titles and not any("_" in title for title in titles)


def test_metacoco_as_printed_and_grouped() -> None:
    item, five, ten = (
        published_table("MetaCoCo", setting) for setting in ("5-way 1-shot", "5-way 5-shot", "10-way 5-shot")
    )
    assert {source.rsplit(", ", 1)[1] for source in item["source"]} == {"Table 2", "Table 3", "Table 6"}
    assert set(ten["source"]) == {"Zhang et al. 2024, Table 7"}
    families = published_families()
    assert set(item["method"]) | set(five["method"]) | set(ten["method"]) == set(families)
    unnamed = five[five["method"].str.startswith("name illegible")]
    assert (
        len(unnamed) == 17 and dict(zip(unnamed["method"], unnamed["accuracy"]))["name illegible (ICML 2017)"] == 54.21
    )
    assert [families[m] for m in ("Baseline++", "CAN", "R2D2", "MTL+IFSL")] == [
        "Fine-tuning", "Metric", "Meta", "Spurious correlation",
    ]  # fmt: skip
    row = ten[(ten["method"] == "CAN") & (ten["backbone"] == "ResNet18")].iloc[0]
    assert (row["accuracy"], row["ci95"]) == (43.47, 0.23)
