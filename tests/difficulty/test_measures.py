"""The registry of measures: every measure tells what it is, computes what it says, and refuses what it lacks."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from fsviz.difficulty import measures
from fsviz.difficulty.measures import MEASURES, NEEDS, Given
from fsviz.errors import BadInput, Missing, UnknownName
from fsviz.records import PAD, Predictions, Tasks


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
def test_a_measure_says_all_a_page_shows_of_it(measure: measures.Measure) -> None:
    assert measure.needs and set(measure.needs) <= set(NEEDS)
    assert measure.what.count(". ") >= 1 and measure.what.endswith(".")
    assert measure.formula.count("{") == measure.formula.count("}") > 0
    assert all(text and "_" not in text for text in (measure.title, measure.words, measure.what, measure.paper))
    for symbol in measure.symbols.split("; "):
        name, colon, meaning = symbol.partition(": ")
        assert colon and meaning
        assert name.split("_")[0].split(",")[0] in measure.formula, f"{name} is explained and does not occur"
    assert callable(measure.load())


def test_the_labels_a_measure_uses_are_said() -> None:
    used = {name: measure.labels for name, measure in measures.MEASURES.items()}
    assert {name for name, labels in used.items() if labels == "none"} == {
        "attribute_gap",
        "davies_bouldin",
        "graph_connectivity",
    }
    of_support = {"support_loss", "support_separation", "prediction_uncertainty", "context_overlap"}
    assert {name for name, labels in used.items() if "support" in labels} == of_support
    assert "all their images" in used["class_overlap"] and "queries" in used["query_loss"]


def test_places_are_distinct_and_nothing_heavy_is_imported() -> None:
    assert len({measure.place for measure in MEASURES.values()}) == len(MEASURES)
    code = (
        "import sys, fsviz.difficulty.measures; print([m for m in ('torch', 'sklearn', 'scipy') if m in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


def test_what_is_lacking_is_said() -> None:
    with pytest.raises(Missing, match="Coarsity needs how far apart the classes are"):
        MEASURES["coarsity"](Given(positions=np.zeros((1, 2), int)))
    with pytest.raises(UnknownName, match="coarsity"):
        measures.get("coarseness")


def test_numbers_that_came_in_a_file_are_called_by_their_name() -> None:
    assert measures.title("my_own") == measures.axis("my_own") == "my own"
    assert measures.axis("coarsity") == "how far apart in meaning the classes of a task are (coarsity)"


def test_coarsity_by_hand() -> None:
    distances = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]])
    tasks = Tasks(np.array([[7, 5, 9], [9, 5, PAD]]))
    given = Given(positions=tasks.positions(np.array([5, 7, 9])), distances=distances)
    np.testing.assert_allclose(MEASURES["coarsity"](given), [(1 + 4 + 9) / 3, 4])
    with pytest.raises(BadInput, match="class_id 7"):
        tasks.positions(np.array([5, 9]))


def test_query_loss_by_hand() -> None:
    answers = Predictions.blank((2, 2, 1))
    answers.predicted[0] = 0
    answers.likelihood[0, :, 0] = [0.5, 0.25]
    loss = MEASURES["query_loss"](Given(predictions=answers))
    assert loss[0] == pytest.approx(1.5 * np.log(2)) and np.isnan(loss[1])


def test_a_measure_is_known_when_the_last_thing_it_needs_is() -> None:
    stages = {name: measure.stage for name, measure in MEASURES.items()}
    assert {stages[name] for name in ("coarsity", "closest_pair", "graph_connectivity", "attribute_gap")} == {"before"}
    assert {stages[name] for name in ("support_loss", "prediction_uncertainty", "support_separation")} == {"support"}
    assert {stages[name] for name in ("class_overlap", "context_overlap", "train_distance")} == {"labelled"}
    assert stages["query_loss"] == "answered"


def test_the_smallest_distance_and_that_of_features_by_hand() -> None:
    distances = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]])
    positions = np.array([[0, 1, 2], [1, 2, PAD]])
    given = Given(positions=positions, distances=distances, looks=2 * distances)
    np.testing.assert_allclose(MEASURES["closest_pair"](given), [1, 3])
    np.testing.assert_allclose(MEASURES["feature_distance"](given), [4 * (1 + 4 + 9) / 3, 4 * 9])


def test_gaps_contexts_and_words_are_means_of_what_is_known() -> None:
    gaps = {"blur": np.array([0.5, np.nan, np.nan]), "size": np.array([0.1, 0.3, np.nan])}
    np.testing.assert_allclose(MEASURES["attribute_gap"](Given(attributes=gaps)), [0.3, 0.3, np.nan])
    queries = np.array([[[1.0, 0.0], [1.0, np.nan]], [[np.nan, np.nan], [np.nan, np.nan]]])
    np.testing.assert_allclose(MEASURES["context_overlap"](Given(contexts=queries)), [2 / 3, np.nan])
    np.testing.assert_allclose(MEASURES["context_bias"](Given(words=-queries)), [-2 / 3, np.nan])
