"""Features of any scale and origin: predictions are those of double precision, and stay where a method says so.

The oracle is the plain implementation of every method in float64, on the very float32 numbers that evaluate is given
(a large shift rounds them, which is no fault of the method).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from fsviz import datasets, features
from fsviz.evaluation import evaluate, features_mean
from fsviz.methods import METHODS
from fsviz.numerics import needs_double
from fsviz.records import Features, Tasks
from tests.methods import one_task_at_a_time as plain
from tests.methods.test_methods import SETTINGS

N_WAY, N_SHOT, N_QUERY, N_TASKS, DIMS = 5, 3, 8, 3, 32
CHANGES = {
    "as they are": (1.0, 0.0),
    "a millionth": (1e-6, 0.0),
    "a million times": (1e6, 0.0),
    "1e20 times": (1e20, 0.0),
    "moved by 3 deviations": (1.0, 3.0),
    "moved by 10,000 deviations": (1.0, 1e4),
    "small and moved": (1e-6, 1e4),
}
# from zero weights, Adam enlarges what rounding makes of a gradient that is nearly zero
OTHERS = [setting for setting in SETTINGS if setting[1] and setting[0] != "logistic"]
STEPPING = [setting for setting in SETTINGS if setting[1] != {"steps": 0}]  # whose units do not matter


def make_features() -> Features:
    """Ten overlapping classes with the non-negative features of a ReLU; multiples of 1/64 below 16."""
    rng = np.random.default_rng(0)
    class_ids = np.repeat(np.arange(10), 20)
    values = np.maximum(0.45 * rng.normal(size=(10, DIMS))[class_ids] + rng.normal(size=(200, DIMS)), 0)
    return Features("toy", "relu", (np.round(values * 64) / 64).astype(np.float32), np.arange(200), class_ids)


def make_tasks(n_tasks: int = N_TASKS, classes: np.ndarray | None = None) -> Tasks:
    rng = np.random.default_rng(0)
    ways = np.stack([rng.permutation(np.arange(10) if classes is None else classes)[:N_WAY] for _ in range(n_tasks)])
    images = np.stack([[rng.permutation(20)[: N_SHOT + N_QUERY] + 20 * c for c in row] for row in ways])
    return Tasks(ways, images[..., :N_SHOT], images[..., N_SHOT:])


def changed(table: Features, scale: float, deviations: float) -> Features:
    values = table.values * np.float32(scale)
    return replace(table, values=values + np.float32(deviations * values.std(dtype=np.float64)))


def oracle(table: Features, tasks: Tasks, name: str, parameters: dict) -> np.ndarray:
    """Labels (T, W, Q) that the plain implementation predicts, in float64."""
    values = torch.from_numpy(table.values.astype(np.float64))
    if name == "simpleshot" and parameters.get("centring", "dataset") == "dataset":
        parameters = {**parameters, "centre": values.mean(0)}
    answers = []
    for support, query in zip(tasks.support, tasks.query):
        message = getattr(plain, name)([values[row] for row in support], values[query.ravel()], **parameters)
        answers.append(message.argmax(1).view(query.shape).numpy())
    return np.stack(answers)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", METHODS)
def test_predictions_are_those_of_double_precision(name: str, change: str) -> None:
    table, tasks = changed(make_features(), *CHANGES[change]), make_tasks()
    got = evaluate(table, tasks, name)
    expected = oracle(table, tasks, name, {})
    assert np.array_equal(got.predicted, expected)
    assert np.array_equal(got.rank == 0, expected == np.arange(N_WAY)[:, None])
    if change == "as they are":
        assert 0.3 < (got.rank == 0).mean() < 0.98  # neither chance nor trivial


@pytest.mark.parametrize(("scale", "deviations"), [(1e-6, 0.0), (1.0, 1e4)])
@pytest.mark.parametrize(("name", "parameters"), OTHERS, ids=str)
def test_other_settings_are_those_of_double_precision_too(
    name: str, parameters: dict, scale: float, deviations: float
) -> None:
    table, tasks = changed(make_features(), scale, deviations), make_tasks()
    assert np.array_equal(evaluate(table, tasks, name, parameters).predicted, oracle(table, tasks, name, parameters))


@pytest.mark.parametrize(("name", "parameters"), STEPPING, ids=lambda v: v if isinstance(v, str) else str(v or ""))
def test_predictions_stay_where_a_method_says_so_and_only_there(name: str, parameters: dict) -> None:
    table, tasks = make_features(), make_tasks(60)
    before = evaluate(table, tasks, name, parameters).predicted
    free = METHODS[name].invariant_to(parameters)
    # powers of two lose no digit of such features
    for change, rest in (
        ("scale", [table.values * np.float32(2.0**k) for k in (-20, 20)]),
        ("shift", [table.values + np.float32(2.0**k) for k in (4, 10)]),
    ):
        after = [evaluate(replace(table, values=values), tasks, name, parameters).predicted for values in rest]
        assert all(np.array_equal(before, message) for message in after) == (change in free), change


def test_words_follow_the_declaration() -> None:
    def words(name: str, **parameters: str) -> str:
        return METHODS[name].invariance(parameters)

    assert words("protonet") == "Invariant to feature scale and shift."
    assert words("protonet", distance="cosine") == "Invariant to feature scale."
    assert words("transductive_finetuning").startswith("Invariant to feature shift, not scale:")
    for name in ("finetune", "tim", "transductive_finetuning"):
        assert "learning rate is in units of the features" in words(name)
    for method in METHODS.values():  # where the scale matters, the reason is given
        assert (method.scale_free == {}) == (method.units == "")


@pytest.fixture(scope="module")
def demo() -> tuple[Features, Tasks]:
    dataset = datasets.load("demo")
    table = features.load(dataset, "efficientnet_lite0")
    rng = np.random.default_rng(0)
    test = dataset.split_class_ids("test")
    by_class = {c: table.image_ids[table.class_ids == c] for c in test}
    ways = np.stack([rng.permutation(test)[:5] for _ in range(100)])
    images = np.stack([[rng.permutation(by_class[c])[:15] for c in row] for row in ways])
    return table, Tasks(ways, images[..., :5], images[..., 5:])


@pytest.mark.parametrize(("scale", "shift"), [(1, 0), (1e-5, 0), (1e20, 0), (1, 1000)])
def test_the_demo_keeps_its_accuracy(demo: tuple[Features, Tasks], scale: float, shift: float) -> None:
    table, tasks = demo
    table = replace(table, values=np.asarray(table.values, np.float32) * np.float32(scale) + np.float32(shift))
    values = table.values.astype(np.float64)
    support, query = values[table.rows_of(tasks.support)], values[table.rows_of(tasks.query)]
    # (T, W true, Q, W said): one difference after the other, nothing expanded
    to_means = np.stack([((query - p[:, None, None]) ** 2).sum(-1) for p in support.mean(2).swapaxes(0, 1)], -1)
    assert np.array_equal(evaluate(table, tasks, "protonet").predicted, to_means.argmin(-1))
    few = tasks.take(slice(0, 20))
    images = support[:20].reshape(20, 25, -1)
    to_images = np.stack([((query[:20] - images[:, None, None, i]) ** 2).sum(-1) for i in range(25)], -1)
    assert np.array_equal(evaluate(table, few, "knn").predicted, to_images.argmin(-1) // 5)
    assert 0.8 < (to_means.argmin(-1) == np.arange(5)[:, None]).mean() < 0.9


@pytest.mark.parametrize("name", ["protonet", "matching", "bd_cspn"])
def test_tasks_of_one_chunk_need_not_be_alike(name: str) -> None:
    """Classes 0 to 4 as they are, 5 to 9 moved far away: tasks among these alone are computed in double precision."""
    table = make_features()
    table = replace(table, values=table.values + np.float32(4096) * (table.class_ids[:, None] >= 5))
    near, far = make_tasks(15, classes=np.arange(5)), make_tasks(15, classes=np.arange(5, 10))
    parts = ("class_ids", "support", "query")
    mixed = Tasks(*(np.concatenate([getattr(near, part), getattr(far, part)]) for part in parts))
    mixed = mixed.take(np.arange(30).reshape(2, 15).T.ravel())  # one of each in turn
    together = evaluate(table, mixed, name, chunk=8)
    assert np.array_equal(together.predicted, oracle(table, mixed, name, {}))
    for mine, alone in ((slice(0, None, 2), near), (slice(1, None, 2), far)):
        # the company of other tasks may change the order of sums in a product of matrices, and nothing more
        expected = evaluate(table, alone, name, chunk=4)
        assert np.array_equal(together.predicted[mine], expected.predicted)
        np.testing.assert_allclose(together.likelihood[mine], expected.likelihood, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("n_way", [2, 5])
@pytest.mark.parametrize("name", ["protonet", "simpleshot", "knn", "bd_cspn"])
def test_images_of_one_class_may_be_far_apart(name: str, n_way: int) -> None:
    """Half of all images, whichever their class, are moved far away, as by another camera: one image per class of a
    task, or its mean, does not tell that others are close to each other and far from the origin."""
    table, tasks = make_features(), make_tasks(20)
    table = replace(table, values=table.values + np.float32(4096) * (np.arange(200) % 2)[:, None])
    tasks = Tasks(tasks.class_ids[:, :n_way], tasks.support[:, :n_way], tasks.query[:, :n_way])
    name = "transductive_finetuning"
    assert np.array_equal(evaluate(table, tasks, name).predicted, oracle(table, tasks, name, {}))


def test_what_needs_double_precision_by_hand() -> None:
    # two images at right angles, at 60 degrees, and at 11 degrees (squared distance 0.037 of the squared length)
    pairs = [[[1, 0], [0, 1]], [[1, 0], [0.5, 0.75**0.5]], [[1, 0], [np.cos(0.19), np.sin(0.19)]]]
    images = np.array(pairs, dtype=np.float32)
    assert needs_double(images).tolist() == [False, False, True]
    assert needs_double(images * np.float32(1e6)).tolist() == [False, False, True]
    assert needs_double(images * np.float32(1e-9)).tolist() == [True, True, True]
    assert needs_double(images * np.float32(1e30)).tolist() == [True, True, True]
    absent = np.concatenate([images, np.full((3, 1, 2), np.nan, np.float32)], axis=1)
    assert needs_double(absent).tolist() == [False, False, True]
    assert needs_double(np.ones((1, 2, 4), np.float32)).tolist() == [True]
    # a few images per class: near ones of two classes count wherever they stand, of one class nowhere
    far, near = [[[[1, 0], [0, 9]], [[-1, 0], [1, 9]]]], [[[[1, 0], [1, 0]], [[-1, 0], [0, 1]]]]
    assert [needs_double(np.array(few, dtype=np.float32)).tolist() for few in (far, near)] == [[True], [False]]


def test_the_centre_of_moved_features_is_exact() -> None:
    table = changed(make_features(), 1.0, 1e4)
    np.testing.assert_allclose(features_mean(table), table.values.astype(np.float64).mean(0), rtol=1e-14)


def test_prototypes_that_start_on_their_only_support_image_lose_no_digits() -> None:
    """The first steps are so short that |w|^2 + |x|^2 - 2 w x has no digits for the distance from weights to image."""
    rng = np.random.default_rng(0)
    class_ids = np.repeat(np.arange(20), 40)
    values = 0.3 * np.maximum(0.45 * rng.normal(size=(20, 64))[class_ids] + rng.normal(size=(800, 64)), 0)
    table = Features("toy", "relu", values.astype(np.float32), np.arange(800), class_ids)
    ways = np.stack([rng.permutation(20)[:5] for _ in range(300)])
    images = np.stack([[rng.permutation(40)[:11] + 40 * c for c in row] for row in ways])
    tasks = Tasks(ways, images[..., :1], images[..., 1:])
    name = "transductive_finetuning"
    assert np.array_equal(evaluate(table, tasks, name).predicted, oracle(table, tasks, name, {}))
