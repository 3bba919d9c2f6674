"""Samplers of contexts: what support and query share, that tasks are matched, and what cannot be asked."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from fsviz import datasets
from fsviz.errors import BadInput
from fsviz.sampling import SAMPLERS, Pool, context_tasks
from fsviz.tasks import draw

KINDS = ("iid", "ood", "context", "spurious")
SIZES = {"a": 9, "b": 6, "c": 3, "d": 1}  # images of every class in each context


def small(n_classes: int = 6, seed: int = 0, **changes: np.ndarray) -> Pool:
    contexts = np.tile(np.repeat(list(SIZES), list(SIZES.values())), n_classes)
    class_ids = np.repeat(np.arange(n_classes), sum(SIZES.values()))
    order = np.random.default_rng(seed).permutation(len(contexts))
    inputs = {"image_class_ids": class_ids[order], "contexts": contexts[order], **changes}
    return Pool(np.arange(n_classes), **inputs, class_names=[f"class {c}" for c in range(n_classes)])


def draw_all(pool: Pool, **request: int) -> dict:
    settings = {"n_way": 3, "n_shot": 2, "n_query": 4, **request}
    more = {"context": {"shift": 0.5}}
    return {name: SAMPLERS[name].sample(pool, 60, 7, **settings, **more.get(name, {})) for name in KINDS}


def shares(tasks, contexts: np.ndarray) -> np.ndarray:
    """Mask (T, W, S) of the support images in a context of the queries of their class."""
    support, query = contexts[tasks.support], contexts[tasks.query]
    return (support[:, :, :, None] == query[:, :, None, :]).any(3)


@pytest.mark.parametrize("shape", [{}, {"n_shot": 1, "n_query": 1}, {"n_shot": 3, "n_query": 8, "n_way": 6}])
def test_iid_shares_all_contexts_and_ood_and_spurious_none(shape: dict[str, int]) -> None:
    pool = small()
    sampled = draw_all(pool, **shape)
    assert shares(sampled["iid"], pool.contexts).all()
    assert not shares(sampled["ood"], pool.contexts).any()
    assert not shares(sampled["spurious"], pool.contexts).any()
    for tasks in sampled.values():
        assert (pool.image_class_ids[tasks.support] == tasks.class_ids[:, :, None]).all()
        assert (pool.image_class_ids[tasks.query] == tasks.class_ids[:, :, None]).all()
        images = np.concatenate([tasks.support, tasks.query], axis=2)
        assert (np.diff(np.sort(images, axis=2)) > 0).all(), "no image comes twice"


def test_tasks_of_one_seed_are_matched_and_reproducible() -> None:
    pool = small()
    sampled, again = draw_all(pool), draw_all(pool)
    for name in KINDS:
        assert np.array_equal(sampled[name].class_ids, sampled["iid"].class_ids)
        assert np.array_equal(sampled[name].query, sampled["iid"].query)
        assert np.array_equal(sampled[name].support, again[name].support)


def test_the_dial_goes_from_iid_to_ood_and_never_back() -> None:
    pool = small()
    settings = {"n_way": 3, "n_shot": 4, "n_query": 4}
    dial = [SAMPLERS["context"].sample(pool, 80, 1, shift=shift, **settings).support for shift in (0.0, 0.3, 0.6, 1.0)]
    ends = [SAMPLERS[name].sample(pool, 80, 1, **settings).support for name in ("iid", "ood")]
    assert np.array_equal(dial[0], ends[0]) and np.array_equal(dial[-1], ends[1])
    moved = [images == ends[1] for images in dial]
    assert [m.mean() for m in moved] == pytest.approx([0, 0.3, 0.6, 1], abs=0.06)
    assert all((later | ~earlier).all() for earlier, later in itertools.pairwise(moved))


def test_spurious_support_is_where_other_classes_are_asked() -> None:
    pool = small()
    sampled = draw_all(pool)

    def misled(tasks) -> float:
        support, query = pool.contexts[tasks.support], pool.contexts[tasks.query]
        return float((support[:, :, :, None, None] == query[:, None, None]).any((3, 4)).mean())

    assert misled(sampled["spurious"]) > misled(sampled["ood"]) + 0.1


def test_contexts_of_queries_are_few_and_vary() -> None:
    pool = small()
    sampled = context_tasks.sample_matched(pool, 200, 0, 3, 2, 4)
    kinds = {"".join(sorted(set(row))) for row in pool.contexts[sampled.query].reshape(-1, 4)}
    assert kinds == {"a", "b"}  # 6 images are enough, and what is not needed is not taken; c and d have 4 together


def test_a_class_of_one_context_is_named_and_the_others_go_on() -> None:
    pool = small()
    contexts = pool.contexts.copy()
    contexts[pool.image_class_ids == 2] = "a"
    contexts[(pool.image_class_ids == 4) & (contexts != "a")] = ""  # images without a context are not drawn
    pool = small(contexts=contexts)
    why = context_tasks.excluded_classes(pool, 2, 4)
    assert list(why) == [2, 4] and "'class 2' needs two contexts" in why[2] and "9 images with a context" in why[4]
    tasks = SAMPLERS["ood"].sample(pool, 50, 0, n_way=3, n_shot=2, n_query=4)
    assert set(np.unique(tasks.class_ids)) == {0, 1, 3, 5}
    with pytest.raises(BadInput, match=r"4 of 6 qualify. Class 'class 2' needs two contexts"):
        SAMPLERS["iid"].sample(pool, 50, 0, n_way=5, n_shot=2, n_query=4)
    with pytest.raises(BadInput, match=r"0 of 6 qualify. Class 'class 0' needs 9 \+ 9 in some contexts"):
        SAMPLERS["iid"].sample(small(), 5, 0, n_way=3, n_shot=9, n_query=9)


def test_groups_stay_on_one_side() -> None:
    pool = small()
    pool = small(groups=np.arange(len(pool.contexts)) // 3)
    for tasks in draw_all(pool).values():
        for support, query in zip(tasks.support, tasks.query, strict=True):
            assert not set(pool.groups[support.ravel()]) & set(pool.groups[query.ravel()])
    with pytest.raises(BadInput, match="groups"):
        draw_all(small(groups=np.zeros(len(pool.contexts), dtype=int)))


def test_many_contexts_are_tried_at_random() -> None:
    rng = np.random.default_rng(0)
    pool = Pool(
        np.arange(5), image_class_ids=np.repeat(np.arange(5), 200), contexts=rng.choice(list("abcdefghijklmnopq"), 1000)
    )
    sampled = draw_all(pool)
    assert shares(sampled["iid"], pool.contexts).all() and not shares(sampled["ood"], pool.contexts).any()


def test_on_the_demo_they_are_ordinary_testbeds() -> None:
    demo = datasets.load("demo")
    assert set(KINDS) <= set(draw.possible_samplers(demo))
    bed = draw.sample(demo, sampler="context", shift=0.25, n_shot=1, n_tasks=30)
    assert bed.recipe["shift"] == 0.25 and "shift0.25" in bed.name and "coarsity" in bed.tasks.measures
    assert np.array_equal(draw.sample_testbed(demo, draw.recipe_of(bed, demo)).tasks.support, bed.tasks.support)
    every = draw.recipe_for(demo, sampler="ood", split="test", n_shot=5, n_query=10)
    assert (
        draw.excluded_classes(demo, every) == {}
        and len(draw.excluded_classes(demo, replace(every, settings={**every.settings, "n_shot": 40}))) == 30
    )
    assert draw.excluded_classes(demo, draw.recipe_for(demo, sampler="uniform")) == {}
    assert not set(KINDS) & set(draw.possible_samplers(datasets.load("metacoco")))  # counts, no images
