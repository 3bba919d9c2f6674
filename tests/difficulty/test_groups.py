"""Support sets are searched among images that share no group with a query: no copy of it, no frame of its video."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from fsviz.difficulty.accuracy_search import search_by_accuracy
from fsviz.difficulty.class_layout import ClassLayout, pool_mask
from fsviz.difficulty.fastdiffsel import select_supports, trace_steps
from fsviz.difficulty.greedy import greedy_supports
from fsviz.difficulty.search_options import SearchOptions
from fsviz.errors import BadInput
from fsviz.records import Features, Tasks
from fsviz.sampling import assign_images, sample_uniform
from tests.difficulty.clusters import accuracy, clustered_features, random_tasks
from tests.sampling.test_groups import shares_a_group

N_COPIES = 10


def copied_features(seed: int = 0) -> Features:
    """Ten copies of each picture, hardly different; image_ids count through them."""
    pictures = clustered_features(n_classes=6, n_images=16, n_dims=16, spread=2.0, seed=seed)
    values = np.repeat(pictures.values, N_COPIES, axis=0)
    values = values + 1e-3 * np.random.default_rng(seed).normal(size=values.shape)
    ids = np.arange(len(values))
    return Features("copies", "none", values, ids, np.repeat(pictures.class_ids, N_COPIES), groups=ids // N_COPIES)


def draw(features: Features, n_tasks: int = 40, n_shot: int = 5, n_query: int = 5, keep: bool = True) -> Tasks:
    classes = sample_uniform(np.arange(6), 3, n_tasks, seed=0)
    return assign_images(classes, features.class_ids, n_shot, n_query, 0, features.groups if keep else None)


def stepped(features: Features, tasks: Tasks, objective: str) -> Tasks:
    return trace_steps(features, tasks, objective, SearchOptions(n_steps=2, start="random", step=2.0))[0][-1]


def by_accuracy(features: Features, tasks: Tasks, objective: str) -> Tasks:
    return search_by_accuracy(features, select_supports(features, tasks, objective), objective)


SEARCHES: dict[str, Callable[[Features, Tasks, str], Tasks]] = {
    "one step": select_supports,
    "random start": partial(select_supports, options=SearchOptions(start="random", step=5.0)),
    "literal": partial(select_supports, options=SearchOptions(start="random", literal=True)),
    "two steps": stepped,
    "accuracy": by_accuracy,
    "accuracy from random": search_by_accuracy,
    "greedy": greedy_supports,
}


@pytest.mark.parametrize("objective", ["hard", "easy"])
@pytest.mark.parametrize("search", SEARCHES)
def test_no_support_image_is_a_copy_of_a_query_or_of_another(search: str, objective: str) -> None:
    features = copied_features()
    tasks = draw(features)
    sets = SEARCHES[search](features, tasks, objective=objective)
    assert not shares_a_group(sets, features.groups)
    assert (features.class_ids[sets.support] == tasks.class_ids[:, :, None]).all()
    if search == "accuracy from random":
        return  # it keeps what it cannot better
    for selection in features.groups[sets.support].reshape(-1, sets.support.shape[2]):
        assert len(set(selection.tolist())) == len(selection), "five copies would be one picture"


@pytest.mark.parametrize("search", ["one step", "accuracy", "greedy"])
def test_ten_copies_of_each_picture_do_not_make_easy_sets_worse_than_random(search: str) -> None:
    features = copied_features()
    tasks = draw(features, 60)
    random, easy, hard = (
        accuracy(features, tasks),
        *(accuracy(features, SEARCHES[search](features, tasks, objective=o)) for o in ("easy", "hard")),
    )
    assert hard < random < easy
    loose = replace(features, groups=None)  # what happens without: five copies of one picture for a support set
    without = draw(features, 60, keep=False)
    result = select_supports(loose, without, "easy")
    assert shares_a_group(without, features.groups)
    assert np.mean([len(set(g)) for g in (result.support // N_COPIES).reshape(-1, 5).tolist()]) < 2
    assert accuracy(loose, result) < accuracy(loose, without)


def test_images_without_company_are_searched_as_before() -> None:
    features = clustered_features()
    alone = replace(features, groups=np.arange(1000)[::-1])
    tasks = random_tasks(features, 20, 3, 4, 5)
    for search in ("one step", "random start", "accuracy", "greedy"):
        for objective in ("hard", "easy"):
            plain, grouped = (SEARCHES[search](table, tasks, objective=objective) for table in (features, alone))
            assert np.array_equal(plain.support, grouped.support), search


def test_the_pool_leaves_out_the_groups_of_all_queries_of_the_task() -> None:
    """Image 3 of class 0 is a copy of a query of class 1."""
    values = np.random.default_rng(0).normal(size=(8, 4))
    groups = np.array([0, 1, 1, 2, 3, 2, 4, 5])
    features = Features("torn", "none", values, np.arange(8), np.repeat([0, 1], 4), groups=groups)
    tasks = Tasks(np.array([[0, 1]]), np.array([[[0], [6]]]), np.array([[[1], [5]]]))
    layout = ClassLayout(features, np.arange(2))
    first, second = (pool_mask(layout, tasks, c, (np.array([0]), np.array([c]))) for c in (0, 1))
    assert first.tolist() == [[True, False, False, False]]
    assert second.tolist() == [[True, False, True, True]]
    query, mask, _ = layout.queries(tasks)
    means = layout.pool_means(tasks, query, mask)[0].numpy()
    assert np.allclose(means, [values[0], values[[4, 6, 7]].mean(axis=0)])
    assert select_supports(features, tasks, "hard").support[0, 0].tolist() == [0]
    two = Tasks(tasks.class_ids, np.array([[[0, 2], [6, 7]]]), tasks.query)
    with pytest.raises(BadInput, match="Class 0 has 4 images with features, 3 of them queries or of a group with a"):
        select_supports(features, two, "hard")
