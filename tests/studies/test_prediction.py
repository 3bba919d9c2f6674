"""Predicting the accuracy: correlations, what is varied, hard or easy, the sources of variance, what to label next."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from fsviz import datasets, evaluation, features, jobs
from fsviz.errors import BadInput, UnknownName
from fsviz.records import PAD, Tasks
from fsviz.studies import prediction, sweep
from fsviz.studies.prediction import (
    PredictionTasks,
    answers,
    eigenvalues,
    labelling,
    measured,
    spread,
    tasks,
    thresholds,
)
from tests.studies.toy_dataset import make_toy, save_toy_features

SMALL = {"dataset": "toy", "backbone": "alpha_net", "n_way": 3, "n_shot": 3, "n_query": 6, "n_tasks": 40}


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    return make_toy(noise=2.0)


def result_of(spec: dict) -> prediction.PredictionResult:
    return jobs.compute({"study": "prediction", **spec})


def measure(spec: dict) -> PredictionTasks:
    return result_of(spec).measured[0]


def answer_to(spec: dict) -> prediction.PredictionSummary:
    return prediction.summary(result_of(spec))


def curve_of(spec: dict, vary: str, values: Sequence[float] = ()) -> dict[float, prediction.PredictionSummary]:
    """The summaries of a sweep by value."""
    curve = sweep.sweep(prediction.STUDY, spec, vary, values)
    result = jobs.compute({"study": "sweep", **curve})
    return {value: prediction.summary(each) for value, each in result.results}


def finite(value: object) -> bool:
    """No NaN or infinite number anywhere: what JSON can say."""
    json.dumps(value, allow_nan=False, default=lambda v: v.tolist())
    return True


@pytest.mark.parametrize("setting", ["supervised", "semi", "unsupervised"])
def test_harder_tasks_are_told_from_easier_ones(toy, setting: str) -> None:
    """Classes of one group are close, of two groups far: what a measure says must follow the outcome."""
    actual = measure({**SMALL, "setting": setting, "n_tasks": 120})
    result = measured.correlations(actual)
    expected = {
        "supervised": {
            "coarsity",
            "class_overlap",
            "support_loss",
            "support_separation",
            "davies_bouldin",
            "graph_connectivity",
        },
        "semi": {
            "coarsity",
            "support_loss",
            "support_separation",
            "davies_bouldin",
            "graph_connectivity",
            "prediction_uncertainty",
        },
        "unsupervised": {"coarsity", "davies_bouldin", "graph_connectivity"},
    }[setting]
    assert expected <= set(result)
    best = {"supervised": "support_loss", "semi": "prediction_uncertainty", "unsupervised": "davies_bouldin"}[setting]
    assert -1 <= result[best]["low"] < result[best]["pearson"] < result[best]["high"] < 0
    assert result["coarsity"]["pearson"] > 0.3
    assert result["class_overlap"]["pearson"] < -0.3
    assert finite(result)


def test_the_mean_confidence_predicts_better_than_a_constant() -> None:
    as_published = {"setting": "semi", "n_way": 5, "n_shot": 5, "n_query": 30}
    demo = {"dataset": "demo", "backbone": "efficientnet_lite0", "n_tasks": 150}
    error = measured.prediction_error(measure({**demo, **as_published}))
    assert 0 < error["error"] < error["constant"]


def prediction_tasks(expected: list[float], outcome: list[float], **measures: list[float]) -> measured.PredictionTasks:
    """Tasks with these numbers, each of its own two classes."""
    n = len(outcome)
    spec = {"dataset": "toy", "backbone": "alpha_net", "setting": "semi", "n_tasks": n}
    values = {name: np.array(numbers) for name, numbers in measures.items()}
    own_classes = Tasks(np.arange(2 * n).reshape(n, 2))
    return measured.PredictionTasks(spec, own_classes, np.array(outcome), np.array(expected), values)


def test_the_answer_is_the_error_of_the_predicted_accuracy_compared_with_the_mean() -> None:
    outcome = [0.5, 0.9, 0.6, 0.8]  # the mean is off by 0.2, 0.2, 0.1, 0.1
    sentence, more = answers.answer(prediction_tasks([0.52, 0.88, 0.62, 0.82], outcome))
    assert sentence == "Predicted accuracy is off by 2.0 ± 0.0 points (always predicting the mean: 15.0)."
    assert more == "4 2-way tasks, alpha_net features; mean accuracy of logistic regression: 70.0 ± 17.9%."
    sentence, _ = answers.answer(prediction_tasks([0.7, 0.7, 0.7, 0.7], outcome))
    assert sentence.endswith("not significantly better than always predicting the mean (15.0).")
    sentence, _ = answers.answer(prediction_tasks([0.9, 0.5, 0.9, 0.5], outcome))  # off by 0.4, 0.4, 0.3, 0.3
    assert sentence == "Predicted accuracy is off by 35.0 ± 5.7 points (always predicting the mean: 15.0)."


def test_without_predictions_the_answer_is_the_best_measure_that_needs_no_classes() -> None:
    rng = np.random.default_rng(0)
    outcome = rng.uniform(0.5, 1, 60)
    numbers = {"coarsity": outcome, "support_loss": 1 - outcome + rng.normal(0, 0.05, 60)}
    tasks = prediction_tasks([np.nan] * 60, list(outcome), **{name: list(v) for name, v in numbers.items()})
    tasks.spec["setting"] = "supervised"
    row = measured.correlations(tasks)["support_loss"]
    sentence, more = answers.answer(tasks)
    interval = f"r = {row['pearson']:.2f} (95% CI {row['low']:.2f} to {row['high']:.2f})"
    assert sentence == f"Support training loss predicts accuracy best: {interval}." and row["high"] < 0
    assert f"explains {100 * row['pearson'] ** 2:.0f}% of the variance" in more
    noise = prediction_tasks([np.nan] * 60, list(outcome), support_loss=list(rng.permutation(outcome)))
    noise.spec["setting"] = "supervised"
    assert answers.answer(noise)[0].startswith("No measure predicts accuracy reliably: support training loss is best")
    few = prediction_tasks([0.5] * 3, [0.4, 0.5, 0.6], support_loss=[1.0, 2.0, 3.0])
    assert answers.answer(few)[0] == "The correlation of measures with accuracy needs at least 4 tasks."


def test_one_shot_is_named_where_a_measure_is_not_defined(toy) -> None:
    answer = answer_to({**SMALL, "setting": "supervised", "n_shot": 1, "n_tasks": 10})
    assert answer["correlations"]["davies_bouldin"]["pearson"] is None
    assert answer["correlations"]["davies_bouldin"]["why"] == "undefined for 1-shot tasks"
    assert finite(answer)


def test_constant_features_give_no_correlation_and_no_nan(toy) -> None:
    def flatten(values: np.ndarray) -> None:
        values[:] = 1.0

    save_toy_features(toy, "flat_net", spoil=flatten)
    for setting in ("supervised", "semi", "unsupervised"):
        answer = answer_to({**SMALL, "backbone": "flat_net", "setting": setting, "n_tasks": 6})
        assert all(c["pearson"] is None and c["why"] for c in answer["correlations"].values())
        assert finite(answer)


@pytest.mark.parametrize(
    ("vary", "changes", "values"),
    [
        ("n_shot", {"setting": "supervised"}, [1, 2, 3, 5, 7, 10, 15]),
        ("n_way", {}, [2, 3, 5, 7, 10, 15]),
        ("n_query", {"setting": "unsupervised"}, [1, 2, 5, 10, 15, 20]),
        ("neighbours", {}, [2, 5, 10, 15, 20]),
    ],
)
def test_what_is_varied_fits_the_dataset(toy, vary: str, changes: dict, values: list) -> None:
    answers = curve_of({**SMALL, **changes, "n_tasks": 5}, vary)
    assert list(answers) == values
    assert all(0 < answer["outcome"] < 1 and answer["n_tasks"] == 5 for answer in answers.values())
    assert finite(answers)


@pytest.mark.parametrize("question", ["correlations", "eigenvalues", "spread", "hard", "labelling"])
def test_every_question_has_headline_numbers(toy, question: str) -> None:
    numbers = prediction.headline(result_of({**SMALL, "question": question, "n_tasks": 25}))
    assert numbers and len({number.name for number in numbers}) == len(numbers)
    expected = [number for number in numbers if number.value is not None and number.low is not None]
    assert expected and all(number.low <= number.value <= number.high for number in expected)


@pytest.mark.parametrize("setting", ["supervised", "unsupervised"])
def test_intervals_of_correlations_are_over_classes(toy, setting: str) -> None:
    """Tasks share classes: a measure that hangs on the classes alone is known from 16 of them, not from 200 tasks."""
    result = measure({**SMALL, "setting": setting, "n_tasks": 200})
    text = measured.correlations(result)
    for name, values in result.measures.items():
        expected = evaluation.correlation(result.outcome, values, result.tasks.class_ids)
        over_tasks = evaluation.correlation(result.outcome, values)
        row = text[name]
        assert (row["low"], row["high"], row["over"]) == (expected.low, expected.high, "classes")
        assert row["high"] - row["low"] > over_tasks.high - over_tasks.low
    assert measured.describe_intervals(text.values()) == "95% CI over classes"


def test_where_every_task_holds_every_class_intervals_are_over_tasks(toy, monkeypatch: pytest.MonkeyPatch) -> None:
    ways = curve_of({**SMALL, "n_query": 3, "n_tasks": 12}, "n_way", (3, 16)).values()
    some, every = (list(answer["correlations"].values()) for answer in ways)
    text = measured.describe_intervals
    assert text(some) == "95% CI over classes"
    assert text(every) == "95% CI over tasks (every task has every class)"
    both = "95% CI over classes, or over tasks if every task has every class"
    assert text(some + every) == both
    few = [list(answer_to({**SMALL, "n_tasks": n})["correlations"].values()) for n in (1, 3)]
    assert [text(rows) for rows in few] == ["no correlation is defined", "too few tasks for a 95% CI"]


def test_unlabelled_images_are_as_many_as_asked_or_the_reason_is_said(toy, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {**SMALL, "share": 0.2, "n_tasks": 2}
    monkeypatch.setitem(tasks.GRIDS, "share", (0.2, 0.5))
    enough = answer_to(settings)
    assert prediction.describe_unlabelled(enough) == "18 unlabelled images per task."
    monkeypatch.setitem(tasks.GRIDS, "share", (0.2, 0.9))
    fewer = answer_to({**settings, "n_query": 15})
    assert prediction.describe_unlabelled(fewer) == (
        "23 unlabelled images per task instead of 45 (3 ways x 15 queries): the smallest class has too few images "
        "for the largest share."
    )


def test_an_unbalanced_class_has_its_share_of_the_unlabelled(toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tasks.GRIDS, "share", (0.2, 1 / 3, 0.8))
    table = features.load(toy, "alpha_net")
    for share in tasks.GRIDS["share"]:
        spec = tasks.fitted(prediction.check({**SMALL, "share": share}), toy, table)
        (cell,) = tasks.cells(spec)
        query = tasks.draw_cell(spec, cell, toy, table).query
        counts = (query != PAD).sum(axis=2)
        assert (counts == counts[0]).all() and (counts[:, 1] == counts[:, 2]).all()
        assert counts[0, 0] / counts[0].sum() == pytest.approx(share, abs=0.06)
    assert list(curve_of({**SMALL, "n_tasks": 6}, "share")) == [0.2, 1 / 3, 0.8]


def test_of_two_classes_the_other_may_be_the_larger(toy) -> None:
    answers = curve_of({**SMALL, "n_way": 2, "n_query": 20, "n_tasks": 2}, "share")
    assert list(answers) == list(prediction.GRIDS["share"])


def test_classes_of_few_images_have_their_confusion_by_fewer_edges(toy) -> None:
    make_toy("few", n_images=12)  # 24 images of a pair allow 11 edges each, not 20
    result = measure({**SMALL, "dataset": "few", "n_tasks": 6})
    assert np.isfinite(result.measures["class_overlap"]).all()


def test_the_best_eigenvalue_is_at_least_as_good_as_the_nth(toy) -> None:
    answers = curve_of({**SMALL, "question": "eigenvalues", "setting": "unsupervised"}, "n_way", (2, 4))
    for cell in answers.values():
        assert cell["best"] >= 2
        assert cell["best_pearson"] <= cell["nth_pearson"] + 1e-9
        assert cell["nth_pearson"] == pytest.approx(cell["correlations"]["graph_connectivity"]["pearson"], abs=1e-6)


def test_an_eigenvalue_that_rises_with_the_outcome_is_not_the_best() -> None:
    outcome = np.arange(8.0)
    falls = np.array([7.0, 6, 4, 5, 3, 2, 1, 0])
    best = eigenvalues.best_eigenvalue(np.stack([np.zeros(8), outcome, falls], 1), outcome, 3)
    assert best["best"] == 3 and best["best_pearson"] == best["nth_pearson"] < 0


# --- hard or easy ------------------------------------------------------------------------------------------------


def with_measure(toy, values: list[float], outcome: list[float]) -> PredictionTasks:
    result = measure({**SMALL, "setting": "supervised", "n_tasks": len(values)})
    changed = {**result.measures, "support_loss": np.array(values), "support_separation": -np.array(values)}
    return PredictionTasks(result.spec, result.tasks, np.array(outcome), result.expected, changed)


def test_roc_and_confusion_by_hand(toy) -> None:
    result = with_measure(toy, [0.1, 0.2, 0.3, 0.4], [0.9, 0.7, 0.95, 0.6])  # hard: the second and the fourth
    for name, sign in (("support_loss", 1), ("support_separation", -1)):
        curve = thresholds.roc(result, name, 0.8, sensitivity=1.0)
        assert curve.area == pytest.approx(3 / 4)
        assert curve.low < curve.area < curve.high <= 1
        assert curve.value == pytest.approx(sign * 0.2) and curve.at == (0.5, 1.0)
        assert thresholds.confusion_table(result, name, 0.8, curve.value).tolist() == [[2, 0], [1, 1]]
        half = thresholds.roc(result, name, 0.8, sensitivity=0.5)
        assert half.value == pytest.approx(sign * 0.4) and half.at == (0.0, 0.5)
    with pytest.raises(BadInput, match=r"none are hard\. Raise the accuracy"):
        thresholds.roc(result, "support_loss", 0.1, 0.8)
    with pytest.raises(BadInput, match=r"all are hard\. Lower the accuracy"):
        thresholds.roc(result, "support_loss", 0.99, 0.8)


def test_the_halves_share_no_class_and_a_threshold_carries_over(toy) -> None:
    first, second = result_of({**SMALL, "question": "hard", "n_tasks": 120}).measured.values()
    assert not np.isin(first.tasks.class_ids, second.tasks.class_ids).any()
    level = float(np.median(first.outcome))
    curve = thresholds.roc(first, "prediction_uncertainty", level, 0.8)
    assert curve.area > 0.7
    (hit, _), (false, true) = thresholds.confusion_table(second, "prediction_uncertainty", level, curve.value)
    assert hit / 120 > 0 and false + true > 0
    settings = {"question": "hard", "n_tasks": 120, "hard_below": round(100 * level), "recall": 80}
    text = answer_to({**SMALL, **settings})["thresholds"]["prediction_uncertainty"]
    assert text["low"] <= text["area"] <= text["high"] and text["first"]["hard"] >= 0.8
    assert np.sum(text["table"]) == 120 and 0 <= text["second"]["hard"] <= 1
    impossible = answer_to({**SMALL, **settings, "n_tasks": 10, "hard_below": 1})["thresholds"]
    assert all("Raise the accuracy" in row["why"] and row["area"] is None for row in impossible.values())
    without = measure({**SMALL, "question": "hard", "setting": "unsupervised", "n_tasks": 10})
    assert set(without.measures) == {"coarsity", "class_overlap", "davies_bouldin", "graph_connectivity"}
    assert np.isfinite(without.expected).all()  # the outcome is the accuracy of a regression, not the Rand index
    with pytest.raises(BadInput, match=r"needs at least 18 classes\. It has 16"):
        answer_to({**SMALL, "question": "hard", "n_way": 9})


# --- the sources of variance -----------------------------------------------------------------------------------------


def test_spread_over_tasks_of_the_same_classes_is_below_that_over_others(toy) -> None:
    answer = answer_to({**SMALL, "question": "spread", "setting": "supervised", "n_tasks": 400, "n_shot": 5})
    random, classes, shots = (row["std"] for row in answer["spread"])
    (_, error, _) = (row["ci95"] for row in answer["spread"])
    sets = [(row["n_sets"], row["n_tasks"]) for row in answer["spread"]]
    assert sets == [(1, 400), (80, 400), (20, 400)]
    assert [row["cause"] for row in answer["spread"]] == list(prediction.CAUSES)
    assert min(random, shots) > classes + error > classes > 0
    shares = [part["share"] for part in answer["parts"]["parts"]]
    assert sum(shares) == pytest.approx(1)
    assert shares[0] > max(shares[1:])
    assert all(p["low"] <= p["share"] <= p["high"] for p in answer["parts"]["parts"])
    assert shares[0] == pytest.approx(1 - classes**2 / random**2), "the sentence says what the table says"
    assert answer["parts"]["total_std"] == pytest.approx(random) and answer["parts"]["n_sets"] == 80
    assert answer["why"] == ""


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"n_tasks": 99}, r"Variance components need at least 20 sets of classes \(100 tasks\)\. Got 19\. .*"),
        ({"n_tasks": 100, "n_query": 1}, r"Variance components need at least 2 queries per class\. Got 1\."),
        ({"n_tasks": 100}, ""),
    ],
)
def test_too_few_sets_of_classes_or_queries_are_said_instead_of_parts(toy, changes: dict, why: str) -> None:
    answer = answer_to({**SMALL, "question": "spread", **changes})
    assert ("parts" in answer) == (not why) and re.fullmatch(why, answer["why"])
    assert finite(answer)


def test_what_is_fixed_is_fixed(toy) -> None:
    table = features.load(toy, "alpha_net")
    spec = tasks.fitted(prediction.check({**SMALL, "question": "spread", "n_tasks": 16}), toy, table)
    _, classes, shots = tasks.cells(spec)
    sampled = tasks.draw_cell(spec, classes, toy, table)
    sets = sampled.class_ids.reshape(3, 5, -1)
    assert (sets == sets[:, :1]).all() and len(np.unique(sets[:, 0], axis=0)) == 3
    assert len(np.unique(sampled.support.reshape(15, -1), axis=0)) == 15
    sampled = tasks.draw_cell(spec, shots, toy, table)
    for four in range(4):
        part = slice(4 * four, 4 * four + 4)
        saved: dict[int, tuple] = {}
        for class_ids, support in zip(sampled.class_ids[part], sampled.support[part], strict=True):
            for class_id, images in zip(class_ids, support, strict=True):
                assert saved.setdefault(int(class_id), tuple(images)) == tuple(images)
    of_image = toy.image_class_ids()
    assert (of_image[sampled.support] == sampled.class_ids[:, :, None]).all()
    assert not any(np.isin(s, q).any() for s, q in zip(sampled.support, sampled.query, strict=True))


def test_parts_of_the_variance_by_hand() -> None:
    random = np.random.default_rng(0)
    a, b, c = (s * random.standard_normal(n) for s, n in ((3, (900, 1)), (2, (900, 5)), (1, (900, 5))))
    accuracies = sum(s * random.standard_normal(4500) for s in (3, 2, 1))
    result = spread.variance_parts(accuracies, a + b + c, np.ones((900, 5)))
    assert [p["variance"] for p in result["parts"]] == pytest.approx([9, 4, 1], rel=0.12)
    assert result["total_std"] == pytest.approx(14**0.5, rel=0.06)
    for part, share in zip(result["parts"], (9 / 14, 4 / 14, 1 / 14), strict=True):
        assert part["low"] < share < part["high"] < part["low"] + 0.15


def test_intervals_of_the_parts_hold_the_truth_as_often_as_they_say() -> None:
    """As few sets of classes as possible, whose variances differ, again and again."""
    random = np.random.default_rng(0)
    held = np.zeros(3)
    n = spread.MIN_SETS

    def accuracies(n_sets: int, each: int) -> np.ndarray:
        support = np.sqrt(3 * random.gamma(2, 1 / 2, (n_sets, 1))) * random.standard_normal((n_sets, each))
        return 3 * random.standard_normal((n_sets, 1)) + support + random.standard_normal((n_sets, each))

    for _ in range(200):
        luck = random.gamma(20, 1 / 20, (n, 5))
        result = spread.variance_parts(accuracies(5 * n, 1).ravel(), accuracies(n, 5), luck)
        held += [p["low"] <= share <= p["high"] for p, share in zip(result["parts"], (9 / 13, 3 / 13, 1 / 13))]
    assert (held / 200 > 0.9).all(), held


def test_what_other_queries_add_is_the_variance_over_other_queries(toy) -> None:
    """The same support, asked 6 of the 21 images that it leaves per class, again and again."""
    table = features.load(toy, "alpha_net")
    images = np.stack([np.flatnonzero(toy.image_class_ids() == c) for c in (0, 1, 2)])
    order = np.random.default_rng(0).random((500, 3, 21)).argsort(2)[:, :, :6]
    queries = np.take_along_axis(images[None, :, 3:], order, 2)
    tasks = Tasks(np.tile([0, 1, 2], (500, 1)), np.tile(images[None, :, :3], (500, 1, 1)), queries)
    result = spread.accuracies({"setting": "supervised", "neighbours": 15}, tasks, table)
    assert 0 < result["luck"].mean() == pytest.approx(result["accuracy"].var(ddof=1), rel=0.15)


def test_tasks_of_the_spread_see_as_many_queries_as_asked(toy) -> None:
    table = features.load(toy, "alpha_net")
    spec = tasks.fitted(prediction.check({**SMALL, "question": "spread", "n_query": 4}), toy, table)
    sampled = [tasks.draw_cell(spec, cell, toy, table) for cell in tasks.cells(spec)]
    assert [cell.query.shape[2] for cell in sampled] == [4, 4, 4]
    first = sampled[2].class_ids[0, 0]
    settings = {
        tuple(np.sort(q[c == first][0])) for q, c in zip(sampled[2].query[:6], sampled[2].class_ids[:6]) if first in c
    }
    assert (sampled[2].class_ids[:6] == first).any(1).sum() == len(
        settings
    )  # the support is fixed, the queries are not


# --- what to label next ------------------------------------------------------------------------------------------


def test_labels_help_and_the_given_ones_count(toy) -> None:
    spec = {**SMALL, "question": "labelling", "n_shot": 1, "n_query": 20, "n_tasks": 30}
    answer = answer_to(spec)
    assert answer["budgets"] == [0, 1, 2, 5, 10, 20, 30]
    for policy in labelling.POLICIES:
        mean = np.asarray(answer["all"][policy]["mean"])
        assert mean[-1] > mean[0] + 0.05
    start = [answer["rest"][policy]["mean"][0] for policy in labelling.POLICIES]
    assert start[0] == start[1] == answer["all"]["random"]["mean"][0]
    assert answer["setting"] == "semi" and finite(answer)


# --- as a run, and what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize("question", ["correlations", "eigenvalues", "spread", "hard", "labelling"])
def test_a_run_finds_what_is_found_at_once(toy, question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prediction, "_CHUNK_IMAGES", 300)
    spec = {"study": "prediction", **SMALL, "setting": "supervised", "question": question, "n_tasks": 25}
    run = jobs.run_in_foreground(spec)
    assert run.state == "finished" and run.n_chunks > 2
    computed, again = jobs.compute(spec), jobs.result(run.id)
    assert jobs.results(run.id) == prediction.summary(computed) == prediction.summary(again)
    assert again.cache_key == computed.cache_key, "pages keep what they made of either"
    for which, rows in computed.rows.items():
        np.testing.assert_array_equal(again.tasks[which].query, computed.tasks[which].query)
        for name, values in rows.items():
            np.testing.assert_array_equal(again.rows[which][name], values)


def test_every_setting_is_checked_and_nothing_else_is_in_a_checked_spec(toy) -> None:
    spec = prediction.check({"dataset": "toy", "backbone": "alpha_net"})
    assert set(spec) == {"dataset", "backbone", *prediction.TASK_SETTINGS, *prediction.OWN_SETTINGS}
    assert (spec["split"], spec["sampler"], spec["n_tasks"]) == ("test", "uniform", 200)
    assert spec["n_shot"] + spec["n_query"] <= 24 and prediction.check(spec) == spec
    assert prediction.check({**SMALL, "setting": "supervised", "question": "labelling"})["setting"] == "semi"


def test_every_cell_is_a_part_named_by_its_value(toy, tmp_path: Path) -> None:
    def labels(**changes: object) -> list[tuple[str, int]]:
        settled = prediction.prepare(prediction.check({**SMALL, **changes}), tmp_path)
        return [(part.label, part.n) for part in prediction.parts(settled)]

    assert labels() == [("correlations", 40)]
    assert labels(question="hard") == [("detect hard tasks (first half)", 40), ("detect hard tasks (second half)", 40)]
    causes = [f"sources of variance ({cause})" for cause in prediction.CAUSES]
    assert labels(question="spread") == list(zip(causes, (40, 40, 36), strict=True))


def test_a_preview_has_fewer_tasks_and_takes_less_time(toy) -> None:
    spec = prediction.check({**SMALL, "question": "hard", "n_tasks": 400})
    few = prediction.shorten(spec, 50)
    assert few == {**spec, "n_tasks": 50}
    whole, part = prediction.work(spec), prediction.work(few)
    assert (whole.n, part.n, whole.items) == (400, 50, "tasks per half")
    assert part.seconds == pytest.approx(whole.seconds / 8)
    assert prediction.shorten(spec, 1)["n_tasks"] == 10 and prediction.shorten({**spec, "n_tasks": 10}, 5) is None


def test_a_run_is_found_whatever_counts_as_hard(toy) -> None:
    spec = {"study": "prediction", **SMALL, "question": "hard", "n_tasks": 10}
    run = jobs.run_in_foreground({**spec, "hard_below": 70})
    for same in (spec, {**spec, "hard_below": 90, "recall": 50}):
        assert jobs.find(same).id == run.id
    for second in ({"neighbours": 5}, {"seed": 5}, {"question": "spread"}):
        assert jobs.find({**spec, **second}) is None


def test_tasks_of_a_point_are_those_that_were_measured(toy) -> None:
    curve = sweep.sweep(prediction.STUDY, {**SMALL, "n_tasks": 70}, "n_shot", (1, 4))
    result = jobs.compute({"study": "sweep", **curve}).at("4")
    actual, outcome = prediction.tasks_of_cell(result, "")
    assert actual.support.shape == (prediction.MAX_TASKS_OF_CELL, 3, 4)
    np.testing.assert_array_equal(outcome, result.measured[0].outcome[: prediction.MAX_TASKS_OF_CELL])
    with pytest.raises(UnknownName, match="point '5'"):
        prediction.tasks_of_cell(result, "5")
    result = result_of({**SMALL, "question": "spread", "n_tasks": 10})
    actual, outcome = prediction.tasks_of_cell(result, "fixed shots")
    assert len(actual) == len(outcome) == 9


def test_predictions_of_one_task_agree_with_its_outcome(toy) -> None:
    table = features.load(toy, "alpha_net")
    for setting in ("supervised", "semi", "unsupervised"):
        result = measure({**SMALL, "setting": setting, "n_tasks": 6})
        predictions = measured.predict(result.spec, result.tasks, table)
        right = (predictions["predicted"] == np.arange(3)[:, None]).mean((1, 2))
        if setting == "unsupervised":
            assert (right >= 1 / 3).all()
        else:
            np.testing.assert_allclose(right, result.outcome)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"setting": "blind"}, "setting 'blind'"),
        ({"n_neighbours": 3}, "setting of the prediction study 'n_neighbours'"),
        ({"setting": "supervised", "share": 0.5}, "Choose setting semi or unsupervised"),
        ({"question": "hard", "share": 0.5}, "needs the question correlations or eigenvalues"),
        ({"share": 0.5, "n_way": 12, "n_shot": 10}, "Imbalance needs more unlabelled images"),
        ({"setting": "unsupervised", "question": "spread"}, "Choose setting supervised or semi"),
        ({"n_query": 60}, "images with features"),
        ({"n_way": 40}, "n_way must be at most 16"),
        ({"split": "lonely"}, "A task needs at least 2 classes. Split 'lonely' of Toy has 1"),
        ({"sampler": "variable", "question": "spread"}, "needs the same ways and shots"),
        ({"sampler": "ood", "question": "spread"}, "samples its own images"),
    ],
)
def test_what_cannot_be_is_one_sentence(toy, monkeypatch: pytest.MonkeyPatch, changes: dict, words: str) -> None:
    if changes.get("split") == "lonely":
        from dataclasses import replace

        lonely = replace(toy, splits={**toy.splits, "lonely": np.array([3])})
        monkeypatch.setattr(datasets, "load", lambda name: lonely)
    with pytest.raises((BadInput, UnknownName), match=words):
        answer_to({**SMALL, **changes})


def test_a_sweep_of_which_no_value_fits_says_what_to_do(toy) -> None:
    with pytest.raises(BadInput, match="No default value of n_query fits this dataset"):
        sweep.sweep(prediction.STUDY, {**SMALL, "n_shot": 24}, "n_query")


def test_the_command_asks_the_same(toy) -> None:
    from fsviz.cli import build_parser

    spec = prediction.check({**SMALL, "setting": "unsupervised", "question": "hard", "seed": 3})
    parsed = build_parser().parse_args(prediction.command(spec).split()[1:])
    assert (parsed.dataset, parsed.setting, parsed.question, parsed.n_way, parsed.seed) == (
        "toy",
        "unsupervised",
        "hard",
        3,
        3,
    )
