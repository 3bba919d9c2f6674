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
def contrast() -> study.TaskContrast:
    return study.contrast(datasets.load("demo"))


def test_the_two_tasks_are_where_the_rule_says(contrast: study.TaskContrast) -> None:
    n = len(contrast.tasks)
    below, above = ((contrast.accuracy < contrast.accuracy[t]).mean() for t in (contrast.hard, contrast.easy))
    assert below <= 0.05 <= (contrast.accuracy <= contrast.accuracy[contrast.hard]).mean()
    assert above <= 0.95 <= (contrast.accuracy <= contrast.accuracy[contrast.easy]).mean()
    assert f"{n:,} random 5-way 1-shot tasks of split test" in study.rule(contrast)
    assert "EfficientNet-Lite0" in study.rule(contrast)


def test_the_accuracies_are_protonets_and_the_mean_is_theirs(contrast: study.TaskContrast) -> None:
    two = np.array([contrast.hard, contrast.easy])
    table = features.load(contrast.dataset, contrast.backbone)
    again = evaluation.task_accuracy(evaluation.evaluate(table, contrast.tasks.take(two), "protonet"))
    assert np.allclose(again, contrast.accuracy[two])
    mean, half = contrast.mean
    assert mean == pytest.approx(contrast.accuracy.mean())
    assert half == pytest.approx(1.96 * contrast.accuracy.std(ddof=1) / np.sqrt(len(contrast.tasks)), rel=0.01)


def test_looking_twice_gives_the_same(contrast: study.TaskContrast) -> None:
    again = study.contrast(datasets.load("demo"))
    assert study.summary(again) == study.summary(contrast)


def test_points_are_those_of_a_straight_line_through_all_tasks(contrast: study.TaskContrast) -> None:
    for cause in contrast.causes:
        if np.isfinite(cause.values).all() and cause.values.std():
            slope, _ = np.polyfit(cause.values, contrast.accuracy, 1)
            assert contrast.points(cause) == pytest.approx(
                100 * slope * (cause.values[contrast.easy] - cause.values[contrast.hard]), abs=1e-6
            )


def test_causes_that_explain_are_known_and_ordered(contrast: study.TaskContrast) -> None:
    causes = contrast.main_causes()
    points = [contrast.points(cause) for cause in causes]
    assert points == sorted(points, reverse=True) and min(points) >= 1
    assert all(cause.is_significant and cause.correlation.high < 0 for cause in causes)
    assert {"support", "looks"} <= {cause.kind for cause in contrast.causes}
    assert all(contrast.dataset.classes["class_name"].isin([name]).any() for name in contrast.closest_of(contrast.hard))


def test_the_answer_states_the_gap_the_main_cause_and_the_baselines(contrast: study.TaskContrast) -> None:
    causes = contrast.main_causes()
    gap = 100 * (contrast.accuracy[contrast.easy] - contrast.accuracy[contrast.hard])
    sentence, setting = study.answer(contrast, causes)
    assert sentence.startswith(f"The hard task is {gap:.0f} points below the easy one: ")
    share = f"about {contrast.points(causes[0]):.0f} of the {gap:.0f} points."
    assert sentence.endswith(f"Main difference: {study.name_cause(contrast, causes[0])}, {share}")
    assert setting.endswith("chance level 20%.") and f"mean {100 * contrast.accuracy.mean():.1f} ±" in setting
    assert "No single cause: none of the" in study.answer(contrast, [])[0]
    assert study.answer(contrast, None)[0] in sentence
    third = replace(
        contrast, accuracy=np.where(np.arange(len(contrast.tasks)) == contrast.hard, 1 / 3, contrast.accuracy)
    )
    assert (
        "33.3% vs " in study.answer(third, None)[0]
        and f"{100 * contrast.accuracy[contrast.easy]:.1f}%" in (study.answer(third, None)[0])
    )


def test_a_cause_is_described_by_its_values_in_both_tasks(contrast: study.TaskContrast) -> None:
    support = next(cause for cause in contrast.causes if cause.kind == "support")
    hard, easy = support.values[contrast.hard], support.values[contrast.easy]
    described = study.describe(contrast, support)
    assert (
        described == f"atypical support images ({hard:.2f}x the usual distance from their class centre vs {easy:.2f}x)"
    )


def test_mistakes_are_counted_per_class_and_add_up(contrast: study.TaskContrast) -> None:
    for task in (contrast.hard, contrast.easy):
        names = contrast.names_of(task)
        n_correct = 0
        for way in range(contrast.tasks.n_way):
            correct, n_queries, instead, n_instead = contrast.mistakes_of(task, way)
            predicted = [names[p] for p in contrast.predictions.predicted[task, way]]
            assert (correct, n_queries) == (predicted.count(names[way]), 10)
            wrong = [name for name in predicted if name != names[way]]
            assert n_instead == max((wrong.count(name) for name in wrong), default=0) == predicted.count(instead)
            n_correct += correct
        assert n_correct == round(50 * contrast.accuracy[task])


def test_what_chance_gives_is_no_cause(contrast: study.TaskContrast) -> None:
    noise = np.random.default_rng(3)
    measured = {("gap", f"noise {i}", True): noise.random(len(contrast.tasks)) for i in range(12)}
    assert not any(cause.is_significant for cause in study._causes(measured, contrast.accuracy, contrast.tasks))
    aside = replace(contrast)
    vars(aside)["causes"] = study._causes(measured, contrast.accuracy, contrast.tasks)
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


def test_four_answers_with_about_as_many_tasks_each(contrast: study.TaskContrast) -> None:
    bands = [contrast.band_of(task) for task in range(len(contrast.tasks))]
    assert np.bincount(bands, minlength=4).min() > len(bands) / 8
    ends = contrast.bands()
    for task, band in enumerate(bands):
        assert ends[band] <= contrast.accuracy[task] <= ends[band + 1]
    flat = replace(contrast, accuracy=np.array([1.0] * 9 + [0.5]))
    assert (np.diff(flat.bands()) > 0).all() and flat.band_of(0) == 3 and flat.band_of(9) == 0
    with pytest.raises(Missing, match="nothing to guess"):
        replace(contrast, accuracy=np.ones(10)).bands()


def test_without_features_the_finest_and_the_coarsest() -> None:
    contrast = study.contrast(datasets.load("cifar100"))
    coarsity = contrast.tasks.measures["coarsity"]
    assert contrast.accuracy is None
    assert (contrast.hard, contrast.easy) == (coarsity.argmin(), coarsity.argmax())
    top, between = contrast.concepts_of(contrast.hard)
    assert top and len(between) == len(contrast.names_of(contrast.hard)) == 5
    assert "finest and the coarsest" in study.rule(contrast)


def test_without_features_and_taxonomy_bare_pixels_are_compared() -> None:
    contrast = study.contrast(datasets.load("digits"))
    assert not contrast.backbone and "on raw pixels" in study.rule(contrast)
    table = pixel_features.of_images(
        contrast.dataset, np.unique(np.concatenate([contrast.tasks.support, contrast.tasks.query], axis=2))
    )
    two = contrast.tasks.take(np.array([contrast.hard, contrast.easy]))
    again = evaluation.task_accuracy(evaluation.evaluate(table, two, "protonet"))
    assert np.allclose(again, contrast.accuracy[[contrast.hard, contrast.easy]]) and again[0] < again[1]
    assert any("in pixel space" in study.describe(contrast, cause) for cause in contrast.main_causes())


def test_pixels_are_colours_on_a_grid() -> None:
    demo = datasets.load("demo")
    table = pixel_features.of_images(demo, np.array([5, 3]))
    assert table.image_ids.tolist() == [5, 3] and table.values.shape == (2, 3 * pixel_features.SIDE**2)
    whole = np.asarray(datasets.open_image(demo, 3).convert("RGB"), float) / 255
    assert np.allclose(table.values[1].reshape(-1, 3).mean(axis=0), whole.mean(axis=(0, 1)), atol=0.02)


def test_without_features_taxonomy_and_pixels_it_says_what_is_missing() -> None:
    with pytest.raises(Missing, match="neither features nor a taxonomy"):
        study.contrast(datasets.load("dtd"))


def test_queries_that_are_shown_are_as_mixed_as_all(contrast: study.TaskContrast) -> None:
    for task in (contrast.hard, contrast.easy):
        for way in range(contrast.tasks.n_way):
            right = contrast.predictions.predicted[task, way] == way
            places = contrast.some_queries(task, way, 4)
            assert len(set(places)) == 4 and right[places].any() == right.any() and right[places].all() == right.all()
            assert abs(right[places].mean() - right.mean()) <= 0.2
            assert (contrast.some_queries(task, way, 99) == np.arange(len(right))).all()
