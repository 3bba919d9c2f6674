"""Lessons: the correct answer follows from the numbers, on numbers made by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from fsviz import cli, datasets, evaluation, features
from fsviz.analyses import transfer
from fsviz.analyses.lessons import (
    LESSONS,
    combined,
    confusion,
    context,
    missing_by_reason,
    possible_lessons,
    semantics,
    support,
    training_classes,
    typical,
)
from fsviz.analyses.lessons.lesson import ControlPosition, Difference
from fsviz.records import Features, Predictions, Tasks
from tests.cli.calling import run_json

N = 40  # tasks
EVEN = np.tile([-10.0, 10.0], N // 2)  # percent, around a mean: standard deviation 10.13, half-width 3.14


def stop(name: str, percent: np.ndarray | float, **facts: float) -> ControlPosition:
    """A position whose tasks have these accuracies (in percent, multiples of 5: 20 queries each)."""
    right = np.broadcast_to(np.asarray(percent, dtype=float), (N,)) / 5
    rank = (np.arange(20)[None, :] >= right[:, None]).astype(np.int16)[:, None, :]
    tasks = Tasks(np.zeros((N, 1), int), np.zeros((N, 1, 1), int), np.zeros((N, 1, 20), int))
    shares = np.ones(rank.shape, np.float32)
    return ControlPosition(name, name, tasks, Predictions(rank, rank, shares, shares), facts)


def test_a_position_has_a_mean_and_an_interval() -> None:
    result = stop("a", 60 + EVEN)
    assert result.accuracy[:2].tolist() == [50, 70]
    assert result.mean == pytest.approx((60, 1.96 * np.sqrt(N / (N - 1)) * 10 / np.sqrt(N)), rel=1e-3)
    assert result.summary == "60.0 ± 3.1%"


@pytest.mark.parametrize(
    ("points", "half_width", "expected"),
    [
        (7.5, 2.0, "It drops by 5 to 10 points"),
        (15.0, 4.4, "It drops by 10 to 20 points"),
        (25.0, 1.0, "It drops by more than 20 points"),
        (1.0, 3.0, "It changes by less than 5 points"),  # the interval holds 0, and nothing large
        (-8.0, 2.0, "It rises by more than 5 points"),
        (10.0, 2.0, "It drops by 5 to 15 points"),  # other ends, which do not cut the interval
        (12.0, 15.0, None),
        (15.0, 11.0, None),
    ],
)
def test_an_answer_in_points_holds_the_whole_interval_or_none_does(
    points: float, half_width: float, expected: str | None
) -> None:
    options, result = semantics.bands(Difference(points, half_width))
    assert len(set(options)) == 5 and (None if result < 0 else options[result]) == expected


def test_semantics_costs_what_was_measured_or_nothing() -> None:
    far, near, same = (
        stop("0", 65 + EVEN, coarsity=30),
        stop("1", 50 + EVEN, coarsity=10),
        stop("2", 65 + EVEN, coarsity=9),
    )
    question = semantics.ask([far, near])
    assert question.is_clear and question.options[question.correct] == "It drops by 10 to 20 points"
    assert "65.0% → 50.0%, a drop of 15.0 ± 4.4 points" in question.takeaway
    question = semantics.ask([far, near, same])
    assert question.is_clear and question.options[question.correct] == "It changes by less than 5 points"
    assert "semantics does not predict difficulty" in question.takeaway
    assert not semantics.ask([far, stop("1", 53 + 6 * EVEN)]).is_clear  # 12 ± 19 points


@pytest.mark.parametrize(
    ("second", "swapped", "right"),
    [(70, 70, 0), (60, 60, 1), (60, 40, 2), (60, 65, 1), (70, 50, 2), (80, 70, 0)],
)
def test_contexts_hurt_as_measured(second: float, swapped: float, right: int) -> None:
    stops = [stop("same", 70 + EVEN), stop("other", second + EVEN), stop("swapped", swapped + EVEN)]
    question = context.ask(stops)
    assert question.correct == right and question.is_clear
    assert f"cost {70 - second:.1f} ± 0.0 points" in question.takeaway  # paired by task


@pytest.mark.parametrize(("hard", "easy", "right"), [(20, 70, 0), (50, 90, 1), (40, 80, 2)])
def test_the_loss_or_the_gain_is_larger_or_neither(hard: float, easy: float, right: int) -> None:
    values = {"hard": hard, "unlucky": 55, "typical": 60, "lucky": 65, "easy": easy}
    question = support.ask([stop(name, value + EVEN) for name, value in values.items()])
    assert question.correct == right and question.is_clear and "makes 10.0 ± 0.0 points" in question.takeaway


def test_an_interval_that_holds_two_answers_is_not_asked_about() -> None:
    uneven = {"hard": 40 + 3 * EVEN, "unlucky": 55, "typical": 60, "lucky": 65, "easy": 76}  # 4 ± 9 points
    assert not support.ask([stop(name, value) for name, value in uneven.items()]).is_clear
    unsure = [stop("same", 70 + EVEN), stop("other", 64 - EVEN), stop("swapped", 64 - EVEN)]  # 6 ± 6 points
    assert not context.ask(unsure).is_clear


def test_the_hardest_partner_and_those_not_significantly_different() -> None:
    a_point_below = 55 + EVEN - 5 * (np.arange(N) < N // 5)
    values = {"lemon": (90, 0.0), "van": (55 + EVEN, 0.8), "engine": (a_point_below, 0.9), "fox": (80, 0.1)}
    stops = tuple(stop(name, percent, confusion=bits) for name, (percent, bits) in values.items())
    question = confusion.ask(confusion.ClassPairs("ambulance", 0, (1, 2, 3, 4), stops, (), (), ()))
    assert question.options == tuple(values) and question.options[question.correct] == "engine"
    assert "Not significantly different: van." in question.takeaway and "cannot be separated" in question.takeaway
    assert question.tied == (1,)


@pytest.mark.parametrize(
    ("slope", "ci95", "best"), [(-5.0, 2.0, 0), (5.0, 2.0, 1), (-0.2, 0.5, 2), (-1.0, 5.0, None), (-1.0, None, None)]
)
def test_a_slope_counts_only_if_significant(slope: float, ci95: float | None, best: int | None) -> None:
    points = pd.DataFrame({"x": [0.1, 3.0], "accuracy": [60.0, 50.0], "ci95": [4.0, 4.0]})
    line = transfer.AccuracySlope("multiclass", "both", slope, ci95, 60.0, 2, 4)
    result = tuple(SimpleNamespace(nearest=near) for near in (0.5, 0.6))
    question = training_classes.ask(training_classes.TransferLesson(result, points, line, 4, "2026-11-17", 60.0))
    assert (question.correct if question.is_clear else None) == best
    assert ("not significant" in question.takeaway) == (best not in (0, 1))


def together(**measures: np.ndarray) -> combined.CombinedLesson:
    accuracy = 5 * np.random.default_rng(0).integers(4, 20, N)
    item = stop("random", accuracy)
    table = pd.DataFrame({name: make(accuracy) for name, make in measures.items()})
    result = {name: evaluation.correlation(item.accuracy, table[name].to_numpy()) for name in table}
    order = np.argsort(accuracy, kind="stable")
    return combined.CombinedLesson(item, table, result, int(order[0]), int(order[-1]))


def test_the_planted_cause_is_the_answer_and_noise_is_not() -> None:
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(3, N))
    result = together(
        coarsity=lambda accuracy: accuracy + 30 * noise[0],  # easier
        support_loss=lambda accuracy: -accuracy + noise[1],  # harder
        support_separation=lambda accuracy: noise[2],
    )
    question = combined.ask(result)
    assert question.is_clear and question.options[question.correct] == "Support training loss"
    assert result.percentile("support_loss", result.hard) > 90 > 10 > result.percentile("support_loss", result.easy)
    gap = result.position.accuracy[result.easy] - result.position.accuracy[result.hard]
    assert result.points("support_loss") == pytest.approx(gap, rel=0.1)
    assert not combined.ask(together(coarsity=lambda _: noise[2], support_loss=lambda _: noise[1])).is_clear


def test_a_cause_that_points_the_wrong_way_is_no_cause() -> None:
    assert not combined.ask(together(coarsity=lambda accuracy: -accuracy)).is_clear  # a coarse task should be easier


def test_the_task_that_is_shown_is_typical() -> None:
    odd = np.full(N, 30.0)
    odd[7] = 90
    first, second = stop("a", odd), stop("b", np.where(np.arange(N) == 7, 60, 90))
    assert typical([first, second], 0, paired=False) != 7
    assert typical([first, second], 1, paired=True) != 7


def test_random_supports_are_of_the_class_and_never_ask_what_they_show() -> None:
    image_ids = np.arange(60)
    table = Features("toy", "b", np.zeros((60, 2)), image_ids, image_ids // 20)
    query = np.stack([np.arange(20 * c, 20 * c + 10) for c in range(3)])[None].repeat(4, axis=0)
    tasks = Tasks(np.tile([0, 1, 2], (4, 1)), query[:, :, :2] + 10, query)
    result = support.random_supports(table, tasks)
    assert result.shape == (support.N_SUPPORTS, 4, 3, 2)
    assert (result // 20 == np.arange(3)[:, None]).all() and (result % 20 >= 10).all()
    assert (result[..., 0] != result[..., 1]).all() and len(np.unique(result)) == 30


def test_the_plane_of_two_directions_keeps_distances() -> None:
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(30, 2)) @ np.array([[1.0, 0, 0, 0], [0, 1, 0, 0]]) * 0.1 + [0, 0, 1, 0]
    flat /= np.linalg.norm(flat, axis=1, keepdims=True)
    table = Features("toy", "b", flat, np.arange(30), np.zeros(30, int))
    xy = confusion._plane(table, np.arange(30))
    apart = np.linalg.norm(flat[:, None] - flat[None], axis=2)
    assert np.allclose(np.linalg.norm(xy[:, None] - xy[None], axis=2), apart, atol=0.01)


def test_the_command_of_a_lesson_measures_what_it_shows(
    capsys: pytest.CaptureFixture[str], tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path))
    dataset = datasets.load("demo")
    visible = semantics.measure(dataset)[-1]
    command = LESSONS[1].command(dataset, visible.name).split()[1:]
    (result,) = run_json(capsys, *command)["results"]
    assert result["accuracy"] == pytest.approx(visible.mean[0])
    parser = cli.build_parser()
    for place, at in ((2, "half"), (2, "swapped"), (3, "5"), (4, "hard"), (5, "0"), (6, "coarsity")):
        words = LESSONS[place].command(dataset, at).split()
        assert words[0] == "fsviz" and parser.parse_args(words[1:]).dataset == "demo"


def test_photographs_give_the_lessons_that_they_have_the_data_for() -> None:
    fruit = datasets.load("fruit")
    assert [lesson.order for lesson in possible_lessons(fruit)] == [1, 3, 4, 6]
    reasons = {reason: [lesson.order for lesson in group] for reason, group in missing_by_reason(fruit).items()}
    assert reasons == {"needs contexts": [2], "needs recorded networks": [5]}
    assert [lesson.order for lesson in possible_lessons(datasets.load("demo"))] == list(LESSONS)
    assert possible_lessons(datasets.load("dtd")) == []


@pytest.mark.parametrize("number", [1, 3, 4, 6])
def test_the_numbers_of_a_lesson_are_those_of_the_photographs(number: int) -> None:
    """By other ways than the lesson's: the engine's evaluation of the same tasks, image by image."""
    fruit, lesson = datasets.load("fruit"), LESSONS[number]
    values = lesson.measure(fruit)
    question = lesson.ask(values)
    assert len(set(question.options)) == len(question.options) > question.correct
    position = values.position if number == 6 else values.positions[0] if number == 3 else values[-1]
    table = features.load(fruit, "efficientnet_lite0")
    vectors = np.asarray(table.values, float)
    tasks, at = position.tasks, table.rows_of
    support_rows, query_rows = at(tasks.support), at(tasks.query)
    mean, wrong = [], 0
    for s, q in zip(support_rows, query_rows, strict=True):
        prototypes = vectors[s].mean(axis=1)
        apart = np.linalg.norm(vectors[q][:, :, None] - prototypes, axis=3)
        mean.append(100 * (apart.argmin(axis=2) == np.arange(len(s))[:, None]).mean())
        wrong += int((fruit.image_class_ids()[table.image_ids[q]] != tasks.class_ids[len(mean) - 1][:, None]).sum())
    assert wrong == 0 and position.accuracy == pytest.approx(np.array(mean), abs=2.1)  # a tie or two
    assert np.mean(mean) == pytest.approx(position.mean[0], abs=0.2)
