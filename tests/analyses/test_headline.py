"""A hard and an easy task, their accuracies, and the causes of the difference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fsviz import datasets, evaluation, features
from fsviz.analyses import headline as study
from fsviz.errors import Missing
from fsviz.features import pixel_features
from fsviz.records import Tasks


@pytest.fixture(scope="module")
def found() -> study.TaskContrast:
    return study.contrast(datasets.load("demo"))


def test_the_two_tasks_are_where_the_rule_says(found: study.TaskContrast) -> None:
    n = len(found.tasks)
    below, above = ((found.accuracy < found.accuracy[t]).mean() for t in (found.hard, found.easy))
    assert below <= 0.05 <= (found.accuracy <= found.accuracy[found.hard]).mean()
    assert above <= 0.95 <= (found.accuracy <= found.accuracy[found.easy]).mean()
    assert f"{n:,} random 5-way 1-shot tasks of split test" in study.rule(found)
    assert "EfficientNet-Lite0" in study.rule(found)


def test_the_accuracies_are_protonets_and_the_mean_is_theirs(found: study.TaskContrast) -> None:
    two = np.array([found.hard, found.easy])
    table = features.load(found.dataset, found.backbone)
    again = evaluation.task_accuracy(evaluation.evaluate(table, found.tasks.take(two), "protonet"))
    assert np.allclose(again, found.accuracy[two])
    mean, half = found.mean
    assert mean == pytest.approx(found.accuracy.mean())
    assert half == pytest.approx(1.96 * found.accuracy.std(ddof=1) / np.sqrt(len(found.tasks)), rel=0.01)


def test_looking_twice_gives_the_same(found: study.TaskContrast) -> None:
    again = study.contrast(datasets.load("demo"))
    assert study.summary(again) == study.summary(found)


def test_points_are_those_of_a_straight_line_through_all_tasks(found: study.TaskContrast) -> None:
    for cause in found.causes:
        if np.isfinite(cause.values).all() and cause.values.std():
            slope, _ = np.polyfit(cause.values, found.accuracy, 1)
            assert found.points(cause) == pytest.approx(
                100 * slope * (cause.values[found.easy] - cause.values[found.hard]), abs=1e-6
            )


def test_causes_that_explain_are_known_and_ordered(found: study.TaskContrast) -> None:
    causes = found.main_causes()
    points = [found.points(cause) for cause in causes]
    assert points == sorted(points, reverse=True) and min(points) >= 1
    assert all(cause.is_significant and cause.correlation.high < 0 for cause in causes)
    assert {"support", "looks"} <= {cause.kind for cause in found.causes}
    assert all(found.dataset.classes["class_name"].isin([name]).any() for name in found.closest_of(found.hard))


def test_the_answer_states_the_gap_the_main_cause_and_the_baselines(found: study.TaskContrast) -> None:
    causes = found.main_causes()
    gap = 100 * (found.accuracy[found.easy] - found.accuracy[found.hard])
    sentence, setting = study.answer(found, causes)
    assert sentence.startswith(f"The hard task is {gap:.0f} points below the easy one: ")
    share = f"about {found.points(causes[0]):.0f} of the {gap:.0f} points."
    assert sentence.endswith(f"Main difference: {study.name_cause(found, causes[0])}, {share}")
    assert setting.endswith("chance level 20%.") and f"mean {100 * found.accuracy.mean():.1f} ±" in setting
    assert "No single cause: none of the" in study.answer(found, [])[0]
    assert study.answer(found, None)[0] in sentence
    third = replace(found, accuracy=np.where(np.arange(len(found.tasks)) == found.hard, 1 / 3, found.accuracy))
    assert (
        "33.3% vs " in study.answer(third, None)[0]
        and f"{100 * found.accuracy[found.easy]:.1f}%" in (study.answer(third, None)[0])
    )


def test_a_cause_is_described_by_its_values_in_both_tasks(found: study.TaskContrast) -> None:
    support = next(cause for cause in found.causes if cause.kind == "support")
    hard, easy = support.values[found.hard], support.values[found.easy]
    described = study.describe(found, support)
    assert (
        described == f"atypical support images ({hard:.2f}x the usual distance from their class centre vs {easy:.2f}x)"
    )


def test_mistakes_are_counted_per_class_and_add_up(found: study.TaskContrast) -> None:
    for task in (found.hard, found.easy):
        names = found.names_of(task)
        n_correct = 0
        for way in range(found.tasks.n_way):
            correct, n_queries, instead, n_instead = found.mistakes_of(task, way)
            predicted = [names[p] for p in found.predictions.predicted[task, way]]
            assert (correct, n_queries) == (predicted.count(names[way]), 10)
            wrong = [name for name in predicted if name != names[way]]
            assert n_instead == max((wrong.count(name) for name in wrong), default=0) == predicted.count(instead)
            n_correct += correct
        assert n_correct == round(50 * found.accuracy[task])


def test_what_chance_gives_is_no_cause(found: study.TaskContrast) -> None:
    noise = np.random.default_rng(3)
    measured = {("gap", f"noise {i}", True): noise.random(len(found.tasks)) for i in range(12)}
    assert not any(cause.is_significant for cause in study._causes(measured, found.accuracy, found.tasks))
    aside = replace(found)
    vars(aside)["causes"] = study._causes(measured, found.accuracy, found.tasks)
    assert aside.main_causes() == []


def test_support_at_the_middle_of_its_class_is_typical() -> None:
    values = np.array([[0.0, 0], [2, 0], [1, 1], [1, -1], [1, 0], [10, 0], [14, 0], [12, 0]], np.float32)
    table = features.load(datasets.load("demo"), "demo_clip")
    table = replace(
        table, values=values, image_ids=np.arange(8), class_ids=np.array([0, 0, 0, 0, 0, 1, 1, 1]), groups=None
    )
    tasks = Tasks(np.array([[0, 1], [0, 1]]), np.array([[[4], [7]], [[0], [5]]]), np.array([[[1], [6]], [[1], [6]]]))
    usual = np.sqrt([4 / 5, 8 / 3])  # root mean square distance from the middles (1, 0) and (12, 0)
    assert np.allclose(study._atypical(table, tasks), [0, (1 / usual[0] + 2 / usual[1]) / 2])


def test_four_answers_with_about_as_many_tasks_each(found: study.TaskContrast) -> None:
    bands = [found.band_of(task) for task in range(len(found.tasks))]
    assert np.bincount(bands, minlength=4).min() > len(bands) / 8
    ends = found.bands()
    for task, band in enumerate(bands):
        assert ends[band] <= found.accuracy[task] <= ends[band + 1]
    flat = replace(found, accuracy=np.array([1.0] * 9 + [0.5]))
    assert (np.diff(flat.bands()) > 0).all() and flat.band_of(0) == 3 and flat.band_of(9) == 0
    with pytest.raises(Missing, match="nothing to guess"):
        replace(found, accuracy=np.ones(10)).bands()


def test_without_features_the_finest_and_the_coarsest() -> None:
    found = study.contrast(datasets.load("cifar100"))
    coarsity = found.tasks.measures["coarsity"]
    assert found.accuracy is None
    assert (found.hard, found.easy) == (coarsity.argmin(), coarsity.argmax())
    top, between = found.concepts_of(found.hard)
    assert top and len(between) == len(found.names_of(found.hard)) == 5
    assert "finest and the coarsest" in study.rule(found)


def test_without_features_and_taxonomy_bare_pixels_are_compared() -> None:
    found = study.contrast(datasets.load("digits"))
    assert not found.backbone and "on raw pixels" in study.rule(found)
    table = pixel_features.of_images(
        found.dataset, np.unique(np.concatenate([found.tasks.support, found.tasks.query], axis=2))
    )
    two = found.tasks.take(np.array([found.hard, found.easy]))
    again = evaluation.task_accuracy(evaluation.evaluate(table, two, "protonet"))
    assert np.allclose(again, found.accuracy[[found.hard, found.easy]]) and again[0] < again[1]
    assert any("in pixel space" in study.describe(found, cause) for cause in found.main_causes())


def test_pixels_are_colours_on_a_grid() -> None:
    demo = datasets.load("demo")
    table = pixel_features.of_images(demo, np.array([5, 3]))
    assert table.image_ids.tolist() == [5, 3] and table.values.shape == (2, 3 * pixel_features.SIDE**2)
    whole = np.asarray(datasets.open_image(demo, 3).convert("RGB"), float) / 255
    assert np.allclose(table.values[1].reshape(-1, 3).mean(axis=0), whole.mean(axis=(0, 1)), atol=0.02)


def test_without_features_taxonomy_and_pixels_it_says_what_is_missing() -> None:
    with pytest.raises(Missing, match="neither features nor a taxonomy"):
        study.contrast(datasets.load("dtd"))


def test_queries_that_are_shown_are_as_mixed_as_all(found: study.TaskContrast) -> None:
    for task in (found.hard, found.easy):
        for way in range(found.tasks.n_way):
            right = found.predictions.predicted[task, way] == way
            places = found.some_queries(task, way, 4)
            assert len(set(places)) == 4 and right[places].any() == right.any() and right[places].all() == right.all()
            assert abs(right[places].mean() - right.mean()) <= 0.2
            assert (found.some_queries(task, way, 99) == np.arange(len(right))).all()
