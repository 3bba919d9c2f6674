"""The registry of measures: complete declarations, values computed by hand, refusal of missing inputs."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from fsviz.difficulty import measures
from fsviz.difficulty.measures import MEASURES, NEEDS, MeasureInputs
from fsviz.errors import BadInput, Missing, UnknownName
from fsviz.records import PAD, Predictions, Tasks


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
def test_a_declaration_holds_all_that_a_page_shows(measure: measures.Measure) -> None:
    assert measure.needs and set(measure.needs) <= set(NEEDS)
    assert measure.description.endswith(".") and measure.description.count(". ") < 3
    assert measure.tooltip.startswith(measure.description) and f"Higher is {measure.direction}." in measure.tooltip
    assert measure.formula.count("{") == measure.formula.count("}") > 0
    assert all(text and "_" not in text for text in (measure.title, measure.description, measure.paper))
    for symbol in measure.symbols.split("; "):
        name, colon, meaning = symbol.partition(": ")
        assert colon and meaning
        assert name.split("_")[0].split(",")[0] in measure.formula, f"{name} is explained and does not occur"
    assert callable(measure.load())


def test_labels_that_each_measure_uses() -> None:
    used = {name: measure.labels for name, measure in measures.MEASURES.items()}
    assert {name for name, labels in used.items() if labels == "no labels"} == {
        "attribute_gap",
        "davies_bouldin",
        "graph_connectivity",
    }
    of_support = {"support_loss", "support_separation", "prediction_uncertainty", "context_overlap"}
    assert {name for name, labels in used.items() if "support" in labels} == of_support
    assert "all images" in used["class_overlap"] and used["query_loss"] == "query labels"


def test_orders_are_distinct_and_nothing_heavy_is_imported() -> None:
    assert len({measure.order for measure in MEASURES.values()}) == len(MEASURES)
    code = (
        "import sys, fsviz.difficulty.measures; print([m for m in ('torch', 'sklearn', 'scipy') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_missing_inputs_are_named() -> None:
    with pytest.raises(Missing, match="Coarsity needs class distances"):
        MEASURES["coarsity"](MeasureInputs(positions=np.zeros((1, 2), int)))
    with pytest.raises(UnknownName, match="coarsity"):
        measures.get("coarseness")


def test_titles_of_measures_and_of_numbers_from_a_file() -> None:
    assert measures.title("my_own") == measures.lower_title("my_own") == "my own"
    assert measures.lower_title("coarsity") == "coarsity"
    assert measures.get("class_overlap").source == "Bontonou et al. 2020: confusion"


def test_coarsity_by_hand() -> None:
    distances = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]])
    tasks = Tasks(np.array([[7, 5, 9], [9, 5, PAD]]))
    inputs = MeasureInputs(positions=tasks.positions(np.array([5, 7, 9])), distances=distances)
    np.testing.assert_allclose(MEASURES["coarsity"](inputs), [(1 + 4 + 9) / 3, 4])
    with pytest.raises(BadInput, match="class_id 7"):
        tasks.positions(np.array([5, 9]))


def test_query_loss_by_hand() -> None:
    answers = Predictions.blank((2, 2, 1))
    answers.predicted[0] = 0
    answers.likelihood[0, :, 0] = [0.5, 0.25]
    loss = MEASURES["query_loss"](MeasureInputs(predictions=answers))
    assert loss[0] == pytest.approx(1.5 * np.log(2)) and np.isnan(loss[1])


def test_the_stage_of_a_measure_is_that_of_its_last_need() -> None:
    stages = {name: measure.stage for name, measure in MEASURES.items()}
    assert {stages[name] for name in ("coarsity", "closest_pair", "graph_connectivity", "attribute_gap")} == {"before"}
    assert {stages[name] for name in ("support_loss", "prediction_uncertainty", "support_separation")} == {"support"}
    assert {stages[name] for name in ("class_overlap", "context_overlap", "train_distance")} == {"labelled"}
    assert stages["query_loss"] == "answered"


def test_closest_pair_and_feature_distance_by_hand() -> None:
    distances = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]])
    positions = np.array([[0, 1, 2], [1, 2, PAD]])
    inputs = MeasureInputs(positions=positions, distances=distances, feature_distances=2 * distances)
    np.testing.assert_allclose(MEASURES["closest_pair"](inputs), [1, 3])
    np.testing.assert_allclose(MEASURES["feature_distance"](inputs), [4 * (1 + 4 + 9) / 3, 4 * 9])


def test_attributes_contexts_and_text_margins_are_means_of_finite_values() -> None:
    gaps = {"blur": np.array([0.5, np.nan, np.nan]), "size": np.array([0.1, 0.3, np.nan])}
    np.testing.assert_allclose(MEASURES["attribute_gap"](MeasureInputs(attributes=gaps)), [0.3, 0.3, np.nan])
    queries = np.array([[[1.0, 0.0], [1.0, np.nan]], [[np.nan, np.nan], [np.nan, np.nan]]])
    np.testing.assert_allclose(MEASURES["context_overlap"](MeasureInputs(contexts=queries)), [2 / 3, np.nan])
    np.testing.assert_allclose(MEASURES["context_bias"](MeasureInputs(text_margins=-queries)), [-2 / 3, np.nan])
