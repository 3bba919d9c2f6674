"""Datasets side by side: what is comparable is compared, what is noise is called so, what is unknown is said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fsviz import jobs
from fsviz.analyses import compare_datasets as study
from fsviz.analyses.compare_datasets import DatasetSplit, MeasureEstimate, significance
from fsviz.difficulty.measures import MEASURES
from fsviz.errors import BadInput, UnknownName
from fsviz.evaluation import Estimate
from fsviz.records import Dataset
from fsviz.studies import support_sets
from tests.studies.toy_dataset import make_toy

ROOT = study.WORDNET


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def of_nodes(name: str, nodes: list[str], edges: list[tuple[str, str]], root: str = ROOT) -> DatasetSplit:
    """A class table whose classes are these nodes of a taxonomy below `root`."""
    table = pd.DataFrame([(c, root if p == "root" else p) for c, p in edges], columns=["child", "parent"])
    classes = pd.DataFrame({"class_name": nodes, "split": "test", "n_images": 7, "node": nodes})
    classes["n_images"] = classes["n_images"].astype("Int64")
    ids = np.arange(len(nodes))
    return DatasetSplit(f"{name}:test", Dataset(name, name.title(), classes, {"test": ids}, taxonomy=table), "test")


EDGES = [("a1", "g"), ("a2", "g"), ("b1", "h"), ("b2", "h"), ("g", "root"), ("h", "root")]


def test_distances_are_in_one_graph_of_all_classes_each_counting_once() -> None:
    fine, coarse = of_nodes("fine", ["a1", "a2"], EDGES), of_nodes("coarse", ["a1", "b1", "b2"], EDGES)
    blocks, apart = study.joint_distances([fine, coarse], "jiang_conrath")
    assert not apart
    near, far = 2 * np.log(2), 2 * np.log(4)  # two of the four classes are below g and below h, all below the root
    np.testing.assert_allclose(blocks["fine:test"], [[0, near], [near, 0]])
    np.testing.assert_allclose(blocks["coarse:test"], [[0, far, far], [far, 0, near], [far, near, 0]])
    # In the graph of `fine` alone its classes would seem as far apart as two classes can be.
    alone, _ = study.joint_distances([fine], "jiang_conrath")
    np.testing.assert_allclose(alone["fine:test"], blocks["fine:test"])
    steps, _ = study.joint_distances([fine, coarse], "path_length")
    assert steps["fine:test"][0, 1] == 2 and steps["coarse:test"][0, 1] == 4


def test_taxonomies_without_a_common_root_are_not_joined_even_where_names_are_alike() -> None:
    first, two = of_nodes("one", ["a1", "a2"], EDGES, "life"), of_nodes("two", ["a1", "b1"], EDGES, "life")
    blocks, apart = study.joint_distances([first, two], "jiang_conrath")
    assert list(blocks) == ["one:test"] and "shares no root with that of One, test" in apart["two:test"]
    again = DatasetSplit(
        "one:again", first.dataset, "test"
    )  # splits of one dataset share its taxonomy, whatever its root
    assert list(study.joint_distances([first, again], "jiang_conrath")[0]) == ["one:test", "one:again"]
    without = DatasetSplit("c:all", Dataset("c", "C", first.dataset.classes, {}), "all")
    assert study.joint_distances([without, first], "lin")[1] == {"c:all": "C has no taxonomy."}


def number(mean: float, error: float, wider: float = 0.0, n: int = 50) -> MeasureEstimate:
    values = mean + np.tile([-1.0, 1.0], n)
    return MeasureEstimate(values, Estimate(mean, error, np.inf), Estimate(mean, max(wider, error), np.inf), "classes")


@pytest.mark.parametrize(
    ("first", "two", "verdict", "here"),
    [
        (number(5, 0.1), number(4, 0.1), "harder", "harder"),
        (number(4, 0.1), number(5, 0.1), "easier", "easier"),
        (number(5, 0.1, 2), number(4, 0.1, 2), "noise", "harder"),  # these classes, but others could turn it
        (number(4.1, 0.1), number(4, 0.1), "noise", "noise"),
        (number(4, 0.0), number(4, 0.0), "noise", "noise"),
    ],
)
def test_a_difference_is_held_against_its_noise(
    first: MeasureEstimate, two: MeasureEstimate, verdict: str, here: str
) -> None:
    result = significance._difference_of("query_loss", "a", "b", first, two)
    assert (result.verdict, result.here) == (verdict, here)
    assert result.estimate is not None and result.estimate.mean == pytest.approx(
        first.estimate.mean - two.estimate.mean
    )
    assert result.effect == pytest.approx(result.estimate.mean)  # tasks have a standard deviation of one
    turned = significance._difference_of("coarsity", "a", "b", first, two)  # of which less is harder
    assert turned.verdict == {"harder": "easier", "easier": "harder"}.get(verdict, verdict)
    assert turned.effect == pytest.approx(-result.effect)


def test_the_error_of_a_difference_is_that_of_both() -> None:
    result = significance._ordered(Estimate(3.0, 0.3, 10), Estimate(1.0, 0.4, 20))
    assert result.mean == 2 and result.error == pytest.approx(0.5)
    assert result.freedom == pytest.approx(0.25**2 / (0.09**2 / 10 + 0.16**2 / 20))


def test_harder_images_are_told_with_their_numbers_and_the_rest_is_noise_or_unknown(home: Path) -> None:
    make_toy("clear", noise=0.5)
    make_toy("blurred", noise=3.0)
    comparison = study.compare({"sides": ["blurred", "clear"], "n_tasks": 60, "n_shot": 2})
    by = {d.measure: d for d in study.differences(comparison)}
    assert {d.second for d in by.values()} == {"clear:test"}
    for measure in ("accuracy", "query_loss", "davies_bouldin"):
        assert by[measure].verdict == "harder", measure
    assert by["coarsity"].verdict == "unknown" and "shares no root" in by["coarsity"].why
    first, two = (comparison.numbers["accuracy"][side].estimate.mean for side in ("blurred:test", "clear:test"))
    sentence, more = study.verdict(comparison, "clear:test")
    assert sentence == f"Blurred, test is harder than Clear, test: ProtoNet accuracy {first:.1f}% vs {two:.1f}%."
    harder = sum(d.verdict == "harder" for d in by.values())
    assert (
        first < two
        and more.startswith(f"Significantly harder on {harder}")
        and more.endswith(f" of {sum(d.verdict != 'unknown' for d in by.values())} measures.")
    )
    words = study.headline(comparison, "clear:test")
    assert words.startswith(f"{sentence} {more} Significant: harder by ProtoNet accuracy ({first:.1f}% vs {two:.1f}%)")
    assert "Not available: coarsity" in words
    table = study.measure_table(comparison).set_index(["measure", "side"])
    row = table.loc[("accuracy", "blurred:test")]
    assert row["q1"] <= row["median"] <= row["q3"] and row["n_tasks"] == 60 and row["mean"] == pytest.approx(first)
    assert study.headline(comparison, "blurred:test", "clear:test").startswith(
        "Clear, test is easier than Blurred, test"
    )


def test_the_same_data_differ_in_nothing_beyond_noise(home: Path) -> None:
    make_toy("one", noise=1.0, seed=1)
    make_toy("two", noise=1.0, seed=1)
    comparison = study.compare({"sides": ["one", "two"], "n_tasks": 40, "n_shot": 2})
    expected = [d for d in study.differences(comparison) if d.verdict != "unknown"]
    assert len(expected) > 5 and {d.verdict for d in expected} == {d.here for d in expected} == {"noise"}
    words = study.headline(comparison, "two:test")
    assert words.startswith("No significant difference between One, test and Two, test.")
    value = comparison.numbers["accuracy"]["one:test"].estimate.mean
    assert study.verdict(comparison, "two:test")[1] == f"ProtoNet accuracy {value:.1f}% vs {value:.1f}%."


def compared(**numbers: tuple[MeasureEstimate, MeasureEstimate]) -> study.DatasetComparison:
    """A comparison of two splits with these estimates of both."""
    dataset = of_nodes("a", ["a1", "a2"], EDGES).dataset
    sides = tuple(DatasetSplit(f"a:{split}", dataset, split) for split in ("x", "y"))
    estimates = {name: dict(zip(("a:x", "a:y"), pair, strict=True)) for name, pair in numbers.items()}
    reasons = {} if numbers else {"accuracy": {"a:x": "No dataset has features.", "a:y": "No dataset has features."}}
    return study.DatasetComparison({"method": "protonet"}, sides, "", estimates, reasons, {}, {})


MISSING = "Accuracy is not available."
LOW, HIGH, WIDE = number(40, 0.1), number(60, 0.1), number(42, 0.1, 9)


@pytest.mark.parametrize(
    ("numbers", "sentence", "more"),
    [
        ({}, "A, x and A, y cannot be compared: No dataset has features.", ""),
        (
            {"accuracy": (LOW, HIGH), "query_loss": (LOW, HIGH)},
            "A, x is harder than A, y: ProtoNet accuracy 40.0% vs 60.0%.",
            "Significantly harder on 1, easier on 1 of 2 measures.",
        ),
        (
            {"accuracy": (LOW, LOW), "query_loss": (LOW, HIGH)},
            "No significant difference in accuracy between A, x and A, y.",
            "ProtoNet accuracy 40.0% vs 40.0%. Significantly easier on 1 of 2 measures.",
        ),
        (
            {"accuracy": (LOW, WIDE)},
            "No significant difference between A, x and A, y.",
            "ProtoNet accuracy 40.0% vs 42.0%. On these classes only: harder on 1 of 1 measures.",
        ),
        ({"query_loss": (LOW, LOW)}, "No significant difference between A, x and A, y.", MISSING),
        (
            {"query_loss": (HIGH, LOW)},
            "A, x is harder than A, y: query loss 60.0 vs 40.0.",
            f"{MISSING} Significantly harder on 1 of 1 measures.",
        ),
        (
            {"query_loss": (HIGH, LOW), "coarsity": (HIGH, LOW)},
            "A, x is neither harder nor easier than A, y.",
            f"{MISSING} Significantly harder on 1, easier on 1 of 2 measures.",
        ),
    ],
)
def test_accuracy_decides_the_verdict_else_the_measures_do(numbers: dict, sentence: str, more: str) -> None:
    assert study.verdict(compared(**numbers), "a:y") == (sentence, more)


def test_example_images_are_of_different_classes_of_the_split(home: Path) -> None:
    demo = study.dataset_splits(["demo:test"])[0]
    image_ids = study.example_images(demo, 5)
    class_ids = demo.dataset.image_class_ids()[image_ids]
    assert len(set(class_ids)) == 5 and set(class_ids) <= set(demo.class_ids)
    assert len(study.example_images(demo, 10_000)) == len(demo.class_ids)
    assert study.example_images(study.dataset_splits(["mini_imagenet"])[0], 5) == []


def test_features_of_different_backbones_are_not_compared(home: Path) -> None:
    make_toy("one", backbones=("alpha_net",))
    make_toy("two", backbones=("beta_net",))
    comparison = study.compare({"sides": ["one", "two"], "n_tasks": 20})
    (accuracy,) = (d for d in study.differences(comparison) if d.measure == "accuracy")
    assert comparison.backbone == "alpha_net" and accuracy.verdict == "unknown"
    assert "has no alpha_net features. Its beta_net features are not comparable." in accuracy.why
    with pytest.raises(UnknownName, match="alpha_net"):
        study.compare({"sides": ["one", "two"], "backbone": "gamma_net"})


def test_what_belongs_to_one_dataset_is_compared_between_its_splits_only(home: Path) -> None:
    number_of = {"a:x": number(1, 0.1), "a:y": number(2, 0.1), "b:x": number(3, 0.1)}
    sides = tuple(DatasetSplit(name, of_nodes(name[0], ["a1", "a2"], EDGES).dataset, name[2]) for name in number_of)
    values = study.DatasetComparison({}, sides, "", {"attribute_gap": number_of}, {}, {}, {})
    verdicts = {d.second: d for d in study.differences(values)}
    assert verdicts["a:y"].verdict == "easier" and MEASURES["attribute_gap"].direction == "harder"
    assert verdicts["b:x"].verdict == "unknown" and "not comparable" in verdicts["b:x"].why


def test_benchmarks_without_images_are_compared_by_meaning_and_size() -> None:
    comparison = study.compare({"sides": ["mini_imagenet", "tiered_imagenet:val", "df20"], "n_tasks": 200})
    assert set(comparison.numbers) == {name for name, m in MEASURES.items() if m.needs == ("distances",)}
    assert set(comparison.numbers["coarsity"]) == {"mini_imagenet:test", "tiered_imagenet:val"}
    facts = study.facts(comparison).set_index("side")
    assert facts["n_classes"].tolist() == [20, 97, 1604] and facts.loc["mini_imagenet:test", "images_median"] == 600
    assert pd.isna(facts.loc["df20:test", "n_images"])  # not public
    assert (
        facts.loc["mini_imagenet:test", "own_coarsity"]
        < comparison.numbers["coarsity"]["mini_imagenet:test"].quartiles[0]
    )
    assert any("is not comparable" in note for note in study.notes(comparison))


def test_more_is_asked_of_sides_than_one_name(home: Path) -> None:
    with pytest.raises(BadInput, match="needs 2 to 8 different datasets or splits"):
        study.check({"sides": ["demo", "demo:test"]})
    with pytest.raises(UnknownName, match="split"):
        study.check({"sides": ["demo", "demo:nowhere"]})
    with pytest.raises(UnknownName):
        study.check({"sides": ["demo", "nothing"]})
    with pytest.raises(BadInput, match="n_way must be at most 3"):
        study.compare({"sides": ["metacoco:val", "demo"], "n_way": 5})
    spec = study.check({"sides": ["demo", "demo:train"], "n_way": 7})
    assert study.command(spec) == "fsviz compare-datasets demo:test demo:train --n-way 7 --n-shot 5 --n-query 10"


def test_the_suite_is_that_of_support_sets_beside_published_numbers(home: Path) -> None:
    make_toy("toy", n_images=24)
    make_toy("other", backbones=("beta_net",))
    spec = study.check({"sides": ["toy", "other"], "n_tasks": 20, "n_shot": 2, "n_query": 4})
    specs, without = study.suite_specs(spec)
    assert list(specs) == ["toy:test"] and "no alpha_net features" in without["other:test"]
    result = jobs.compute({"study": "support_sets", **specs["toy:test"]})
    row = study.suite_row(study.dataset_splits(["toy"])[0], support_sets.summary(result))
    assert row["hard"] < row["random"] <= row["easy"] and row["n_tasks"] == 20 and not row["published"]


def test_published_numbers_are_as_printed() -> None:
    table = study.published_suite().set_index("title")
    objectnet = table.loc["ObjectNet"]
    assert (objectnet["hard_low"], objectnet["hard_high"], objectnet["n_backbones"]) == (13.2, 43.6, 13)
    assert objectnet["hard"] == 19.3 and np.isnan(objectnet["random"])
    meta = table.loc["Meta-Dataset"]  # figure 31: 68.3, 68.8, 64.0, 67.7 and 39.8, 41.6, 34.6, 44.1
    assert meta["random"] == pytest.approx(68.0) and meta["hard"] == pytest.approx(40.7)
    assert table.loc["VGG Flowers", "hard"] == 83.6 and table["published"].all() and len(table) == 14
