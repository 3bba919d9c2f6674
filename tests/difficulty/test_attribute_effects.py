"""Reasons for hard supports: gaps larger than those of random supports, times the cost of a gap; never a coin flip."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fsviz.difficulty import attribute_effects
from fsviz.difficulty.attribute_gaps import Attribute, measure_gap
from fsviz.numerics import holm
from fsviz.records import PAD, Features, Tasks

N_CLASSES, PER_CLASS = 10, 30
CLASS_IDS = np.repeat(np.arange(N_CLASSES), PER_CLASS)


def table(groups: np.ndarray | None = None) -> Features:
    n = len(CLASS_IDS)
    return Features("d", "b", np.zeros((n, 2), np.float32), np.arange(n), CLASS_IDS, groups=groups)


def some_tasks(n_tasks: int, n_shot: int = 3, n_query: int = 6, seed: int = 0) -> Tasks:
    rng = np.random.default_rng(seed)
    class_ids = np.argsort(rng.random((n_tasks, N_CLASSES)), axis=1)[:, :4]
    dealt = class_ids[:, :, None] * PER_CLASS + np.argsort(rng.random((n_tasks, 4, PER_CLASS)), axis=2)
    return Tasks(class_ids, dealt[:, :, :n_shot], dealt[:, :, n_shot : n_shot + n_query])


def numeric(name: str, numbers: np.ndarray) -> Attribute:
    return Attribute(name, numbers=numbers.astype(float), deviation=float(np.nanstd(numbers)))


def flips(n: int, seed: int) -> list[Attribute]:
    rng = np.random.default_rng(seed)
    return [Attribute(f"flip {i}", ("heads", "tails"), codes=rng.integers(0, 2, len(CLASS_IDS))) for i in range(n)]


def test_random_supports_hold_no_query_and_as_many_shots_as_the_task() -> None:
    tasks = some_tasks(20)
    tasks.support[0, 1, 2] = PAD  # a class with two shots
    sampled = attribute_effects.random_supports(table(), tasks, 7, 0)
    assert sampled.shape == (20, 7, 4, 3)
    assert (sampled[0, :, 1, 2] == PAD).all() and (sampled[0, :, 1, :2] != PAD).all()
    assert (CLASS_IDS[sampled[1:]] == tasks.class_ids[1:, None, :, None]).all()
    for t in range(20):
        assert not np.isin(sampled[t], tasks.query[t]).any()
        assert all(len(set(ids.tolist())) == len(ids) for ids in sampled[t, :, 0])
    np.testing.assert_array_equal(sampled, attribute_effects.random_supports(table(), tasks, 7, 0))
    assert (sampled != attribute_effects.random_supports(table(), tasks, 7, 1)).any()


def test_random_supports_share_no_group_with_a_query() -> None:
    groups = np.arange(len(CLASS_IDS)) // 2  # every image has a copy
    tasks = some_tasks(10)
    sampled = attribute_effects.random_supports(table(groups), tasks, 5, 0)
    for t in range(10):
        saved = sampled[t][sampled[t] != PAD]
        assert len(saved) and not np.isin(groups[saved], groups[tasks.query[t]]).any()


def test_the_cost_of_a_gap_is_found_by_least_squares_inside_tasks() -> None:
    """Accuracy falls by 30 points for a gap of one, whatever the task's own level: that is what comes out."""
    rng = np.random.default_rng(0)
    attribute = Attribute("night", ("day", "night"), codes=rng.integers(0, 2, len(CLASS_IDS)))
    tasks = some_tasks(40)
    supports = attribute_effects.random_supports(table(), tasks, 6, 0)
    gap = measure_gap(attribute, attribute_effects.one_by_one(tasks, supports), by="class").gap.reshape(40, 6)
    accuracy = rng.random((40, 1)) - 0.3 * gap
    costs = attribute_effects.cost_table(
        [attribute, numeric("noise", rng.random(300))], tasks, supports, accuracy, CLASS_IDS
    )
    assert costs["cost"][0] == pytest.approx(30)
    assert costs["significant"].tolist() == [True, False]
    assert costs["spread"][0] == pytest.approx(np.sqrt(((gap - gap.mean(1, keepdims=True)) ** 2).mean()))


def test_a_reason_is_the_gap_beyond_random_supports_times_its_cost() -> None:
    night = Attribute("night", ("day", "night"), codes=(np.arange(300) % PER_CLASS < 10).astype(int))
    tasks = some_tasks(30)
    hard = tasks.support.copy()
    for w in range(4):  # task 0: three night images per class that are no queries
        pool = np.setdiff1d(tasks.class_ids[0, w] * PER_CLASS + np.arange(10), tasks.query[0, w])
        hard[0, w] = pool[:3]
    query = tasks.query.copy()
    for w in range(4):  # and its queries by day
        query[0, w] = tasks.class_ids[0, w] * PER_CLASS + np.arange(20, 26)
    tasks = Tasks(tasks.class_ids, hard, query)
    costs = pd.DataFrame({"attribute": ["night"], "cost": [20.0], "ci95": [4.0], "significant": [True], "n_tasks": 30})
    result = attribute_effects.explain([night], tasks, costs, table(), 0)
    assert result.gap[0, 0] == 1.0 and result.beyond[0, 0] == 1.0 and result.largest_effect()[0] == 0
    (reason,) = result.reasons(0)
    assert reason.points == pytest.approx(20 * (1 - result.by_chance[0, 0]))
    assert reason.ci95 == pytest.approx(4 * (1 - result.by_chance[0, 0]))
    assert reason.words.startswith("night: distribution difference 1.00 (")
    # random supports are like random supports: a reason about as often as 5% of them stray
    assert result.real[1:].mean() <= 0.25
    for changed in ({"significant": [False]}, {"cost": [-20.0]}):  # a cost that may be chance, or that is none
        assert not attribute_effects.explain([night], tasks, costs.assign(**changed), table(), 0).real.any()


def test_coin_flips_and_random_numbers_are_reasons_at_most_at_the_nominal_rate() -> None:
    """Over 300 columns that have nothing to do with the images: 60 datasets of five, and accuracies that hang on the
    images, so that a column of luck has something to be mistaken for."""
    rng = np.random.default_rng(1)
    tasks = some_tasks(60)
    supports = attribute_effects.random_supports(table(), tasks, 8, 0)
    quality = rng.normal(size=len(CLASS_IDS))  # some images make better supports than others
    accuracy = 0.6 + 0.1 * quality[supports].mean(axis=(2, 3)) + 0.02 * rng.normal(size=(60, 8))
    columns = flips(150, 2) + [numeric(f"number {i}", rng.random(len(CLASS_IDS))) for i in range(150)]
    costs = attribute_effects.cost_table(columns, tasks, supports, accuracy, CLASS_IDS)
    few = (costs["p"] < 0.05).mean()
    assert 0.01 <= few <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)  # neither blind nor credulous
    families = np.arange(300) % 60
    wrong = [bool((holm(costs["p"].to_numpy()[families == f]) < 0.05).any()) for f in range(60)]
    assert np.mean(wrong) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 60)
    # a family without a real cost has no reason in any task, however the hardest supports were chosen
    hardest = Tasks(tasks.class_ids, supports[np.arange(60), accuracy.argmin(axis=1)], tasks.query)
    for f in np.flatnonzero(~np.array(wrong))[:5]:
        mine = [columns[i] for i in np.flatnonzero(families == f)]
        of_family = costs[families == f].assign(significant=False)
        assert not attribute_effects.explain(mine, hardest, of_family, table(), 0).real.any()


def test_an_attribute_that_does_not_vary_or_names_every_image_explains_nothing() -> None:
    rng = np.random.default_rng(0)
    tasks = some_tasks(20)
    supports = attribute_effects.random_supports(table(), tasks, 8, 0)
    constant = Attribute("same", ("yes",), codes=np.zeros(300, int))
    names = Attribute("file", tuple(f"{i}.jpg" for i in range(300)), codes=np.arange(300))
    unknown = Attribute("unknown", numbers=np.where(np.arange(300) < 3, np.arange(300.0), np.nan))
    costs = attribute_effects.cost_table([constant, names, unknown], tasks, supports, rng.random((20, 8)), CLASS_IDS)
    assert costs["cost"].isna().all() and not costs["significant"].any()
    result = attribute_effects.explain([constant, names, unknown], tasks, costs, table(), 0)
    assert not result.real.any() and result.of_task(0) == [] and (result.largest_effect() == PAD).all()


def test_supports_that_are_all_as_good_cost_nothing() -> None:
    tasks = some_tasks(10)
    supports = attribute_effects.random_supports(table(), tasks, 4, 0)
    costs = attribute_effects.cost_table(flips(2, 0), tasks, supports, np.full((10, 4), 0.5), CLASS_IDS)
    assert not costs["significant"].any() and costs["cost"].isna().all()
