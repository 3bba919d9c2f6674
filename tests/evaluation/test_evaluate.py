"""Tasks + features + method -> predictions: what is gathered, recorded, refused, and how much memory it takes."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from fsviz.errors import BadInput, FsvizError, Missing, NotFinite, UnknownName
from fsviz.evaluation import (
    check_class_sizes,
    chunk_size,
    evaluate,
    features_mean,
    predictions_from,
    task_accuracy,
    task_top_k,
)
from fsviz.evaluation.prediction import MEMORY
from fsviz.methods import METHODS
from fsviz.records import PAD, Features, Predictions, Tasks

ROOT = Path(__file__).resolve().parents[2]


def make_features(
    n_classes: int = 8, n_images: int = 12, dims: int = 16, signal: float = 1.5, seed: int = 0
) -> Features:
    """Classes around random centres, rows shuffled, image_ids with gaps."""
    rng = np.random.default_rng(seed)
    image_ids = np.arange(n_classes * n_images) * 3 + 1
    class_ids = np.repeat(np.arange(n_classes), n_images)
    centres = signal * rng.normal(size=(n_classes, dims))
    values = np.maximum(centres[class_ids] + rng.normal(size=(len(class_ids), dims)), 0).astype(np.float32)
    order = rng.permutation(len(class_ids))
    return Features("toy", "random", values[order], image_ids[order], class_ids[order])


def make_tasks(
    features: Features, n_tasks: int, n_way: int = 5, n_shot: int = 3, n_query: int = 4, seed: int = 0
) -> Tasks:
    rng = np.random.default_rng(seed)
    by_class = {c: np.sort(features.image_ids[features.class_ids == c]) for c in np.unique(features.class_ids)}
    ways = np.stack([rng.permutation(len(by_class))[:n_way] for _ in range(n_tasks)])
    images = np.stack([[rng.permutation(by_class[c])[: n_shot + n_query] for c in row] for row in ways])
    return Tasks(ways, images[..., :n_shot], images[..., n_shot:])


def assert_same(first: Predictions, second: Predictions, atol: float = 0.0) -> None:
    assert np.array_equal(first.predicted, second.predicted) and np.array_equal(first.rank, second.rank)
    np.testing.assert_allclose(first.confidence, second.confidence, rtol=0, atol=atol)
    np.testing.assert_allclose(first.likelihood, second.likelihood, rtol=0, atol=atol)


def test_by_hand() -> None:
    # one dimension; class 0 at 0, class 1 at 4, class 2 at 10
    values = np.array([[0], [4], [10], [1], [9], [3]], dtype=np.float32)
    features = Features("hand", "x", values, np.arange(6), np.array([0, 1, 2, 0, 1, 2]))
    tasks = Tasks(np.array([[0, 1, 2]]), np.array([[[0], [1], [2]]]), np.array([[[3], [4], [5]]]))
    answer = evaluate(features, tasks, "protonet", {"scale": 0.1})
    assert answer.predicted.ravel().tolist() == [0, 2, 1]
    assert answer.rank.ravel().tolist() == [0, 1, 2]
    distances = np.array([[1, 9, 81], [81, 25, 1], [9, 1, 49]])
    expected = np.exp(-0.1 * distances) / np.exp(-0.1 * distances).sum(1, keepdims=True)
    np.testing.assert_allclose(answer.confidence.ravel(), expected.max(1), rtol=1e-5)
    np.testing.assert_allclose(answer.likelihood.ravel(), np.diag(expected), rtol=1e-4)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_runs_learns_and_repeats_itself(name: str) -> None:
    features = make_features()
    tasks = make_tasks(features, 20)
    first, second = evaluate(features, tasks, name), evaluate(features, tasks, name)
    assert_same(first, second)
    assert task_accuracy(first).mean() > 0.6
    assert np.array_equal(first.rank == 0, first.predicted == np.arange(5)[:, None])
    assert (first.likelihood <= first.confidence).all() and (first.confidence <= 1.0001).all()


@pytest.mark.parametrize("name", METHODS)
def test_chunks_do_not_matter(name: str) -> None:
    features = make_features(seed=2)
    tasks = make_tasks(features, 7, seed=2)
    whole = evaluate(features, tasks, name, chunk=7)
    for chunk in (1, 3, 1000):
        assert_same(evaluate(features, tasks, name, chunk=chunk), whole, atol=1e-4)
    order = np.array([4, 0, 6, 2, 1, 5, 3])
    moved = evaluate(features, tasks.take(order), name, chunk=2)
    assert np.array_equal(moved.predicted, whole.predicted[order])


@pytest.mark.parametrize("name", ["protonet", "tim", "pt_map", "logistic"])
def test_ragged_tasks_equal_their_unpadded_singles(name: str) -> None:
    features = make_features(seed=3)
    tasks = make_tasks(features, 6, n_way=4, n_shot=4, n_query=5, seed=3)
    class_ids, support, query = tasks.class_ids.copy(), tasks.support.copy(), tasks.query.copy()
    support[0, 1, 2:] = support[2, 0, 1:] = PAD
    query[0, 2, 1:] = query[3, 1, 4:] = query[4, 0] = PAD
    class_ids[5, 3], support[5, 3], query[5, 3] = PAD, PAD, PAD
    answer = evaluate(features, Tasks(class_ids, support, query), name)
    assert (answer.predicted[query == PAD] == PAD).all() and np.isnan(answer.likelihood[query == PAD]).all()
    for t in range(6):
        n_way, n_shot = (class_ids[t] >= 0).sum(), (support[t] >= 0).sum(1).max()
        alone = Tasks(class_ids[t : t + 1, :n_way], support[t : t + 1, :n_way, :n_shot], query[t : t + 1, :n_way])
        single = evaluate(features, alone, name)
        there = alone.query[0] >= 0
        assert np.array_equal(answer.predicted[t, :n_way][there], single.predicted[0][there])
        np.testing.assert_allclose(answer.likelihood[t, :n_way][there], single.likelihood[0][there], atol=1e-4)


def test_half_precision_and_memory_maps_are_read_as_they_are(tmp_path: Path) -> None:
    features = make_features()
    tasks = make_tasks(features, 9)
    half = features.values.astype(np.float16)
    np.save(tmp_path / "half.npy", half)
    mapped = replace(features, values=np.load(tmp_path / "half.npy", mmap_mode="r"))
    expected = evaluate(replace(features, values=half.astype(np.float32)), tasks, "bd_cspn")
    assert_same(evaluate(mapped, tasks, "bd_cspn"), expected)


def test_progress_counts_tasks_and_may_stop_the_work() -> None:
    features = make_features()
    tasks = make_tasks(features, 10)
    calls: list[tuple[int, int, str]] = []
    evaluate(features, tasks, "protonet", chunk=4, progress=lambda *step: calls.append(step))
    assert [step[:2] for step in calls] == [(4, 10), (8, 10), (10, 10)]
    assert calls[0][2] == "ProtoNet: 4 of 10 tasks"

    def stop(done: int, total: int, message: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(features, tasks, "protonet", chunk=4, progress=stop)


def test_simpleshot_centres_on_the_dataset_or_on_what_is_given() -> None:
    features = make_features()
    tasks = make_tasks(features, 30)
    np.testing.assert_allclose(features_mean(features), features.values.mean(0), rtol=1e-5)
    by_default = evaluate(features, tasks, "simpleshot")
    assert_same(by_default, evaluate(features, tasks, "simpleshot", centre=features.values.mean(0)), atol=1e-5)
    assert not np.allclose(
        by_default.confidence, evaluate(features, tasks, "simpleshot", centre=np.ones(16)).confidence
    )


@pytest.mark.parametrize("name", METHODS)
def test_length_one_first_is_the_same_as_features_of_length_one(name: str) -> None:
    features = make_features()
    tasks = make_tasks(features, 10)
    units = replace(features, values=features.values / np.linalg.norm(features.values, axis=1, keepdims=True))
    first = evaluate(features, tasks, name, {"unit_length": True})
    assert_same(first, evaluate(units, tasks, name), atol=2e-3)
    assert_same(first, evaluate(units, tasks, name, {"unit_length": True}), atol=2e-3)


def no_cause(task: int) -> str:
    return f"Cause {task}."


def test_of_equal_scores_the_lower_label_comes_first_whichever_is_true() -> None:
    # one query per class; the scores of three labels for each of them
    scores = torch.tensor([[[1.0, 1.0, 0.0], [1.0, 1.0, 2.0], [0.0, 1.0, 2.0]]])
    everything = torch.ones(1, 3, dtype=torch.bool), np.ones((1, 3, 1), dtype=bool)
    answer = predictions_from(scores, *everything, "By hand", no_cause)
    assert answer.predicted.ravel().tolist() == [0, 0, 1]
    assert answer.rank.ravel().tolist() == [0, 1, 1]
    np.testing.assert_allclose(answer.confidence[0, 1, 0], 1 / 3)


@pytest.mark.parametrize("name", METHODS)
def test_features_that_tell_nothing_apart_give_chance(name: str) -> None:
    features = Features("ties", "x", np.ones((40, 4), np.float32), np.arange(40), np.repeat(np.arange(10), 4))
    images = np.arange(40).reshape(1, 10, 4)
    answer = evaluate(features, Tasks(np.arange(10)[None], images[..., :1], images[..., 1:]), name)
    assert task_accuracy(answer)[0] == pytest.approx(0.1)
    # among ten equal labels five are the first five, not all ten
    assert task_top_k(answer, 5)[0] == pytest.approx(0.5)
    assert ((answer.rank == 0) == (answer.predicted == np.arange(10)[:, None])).all()


def test_order_is_that_of_scores_where_probabilities_are_equal() -> None:
    near = torch.tensor([[[1e-12], [2e-12], [-1e6]]]).expand(1, 3, 3)
    answer = predictions_from(near, torch.ones(1, 3, dtype=torch.bool), np.ones((1, 3, 1), bool), "By hand", no_cause)
    assert answer.likelihood[0, 0, 0] == answer.likelihood[0, 1, 0]
    assert answer.rank.ravel().tolist() == [1, 0, 2]


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_a_score_that_is_not_finite_is_no_answer(bad: float) -> None:
    scores = torch.zeros(3, 2, 4)
    scores[1, 1, 3] = bad
    ways, queries = torch.ones(3, 2, dtype=torch.bool), np.ones((3, 2, 2), dtype=bool)
    with pytest.raises(NotFinite, match=r"By hand returned NaN or infinity on task 41\. Cause 1\."):
        predictions_from(scores, ways, queries, "By hand", no_cause, first=40)
    queries[1, 1, 1] = False  # a padded query may hold anything
    assert predictions_from(scores, ways, queries, "By hand", no_cause).predicted[1, 1, 1] == PAD


def test_what_overflows_in_one_image_is_computed_in_double_precision() -> None:
    """A query of 1e25 among ordinary images: its squared length is beyond float32, its nearest class is not."""
    features = make_features()
    tasks = make_tasks(features, 6)
    values = features.values.copy()
    row = int(features.rows_of(tasks.query[2, 1, :1])[0])
    values[row] *= np.float32(1e25)
    for name in ("protonet", "matching"):
        got = evaluate(replace(features, values=values), tasks, name)
        ordinary = evaluate(features, tasks, name)
        rest = tasks.query != features.image_ids[row]
        assert np.array_equal(got.predicted[rest], ordinary.predicted[rest])
        if name == "matching":  # which sees the angle alone
            assert np.array_equal(got.predicted, ordinary.predicted)


def test_what_cannot_be_evaluated_is_explained() -> None:
    features = make_features()
    tasks = make_tasks(features, 5)
    with pytest.raises(UnknownName, match="Did you mean 'ridge'"):
        evaluate(features, tasks, "rigde")
    with pytest.raises(BadInput, match="steps of TIM"):
        evaluate(features, tasks, "tim", {"steps": -3})
    with pytest.raises(BadInput, match="classes only"):
        evaluate(features, Tasks(tasks.class_ids), "protonet")
    with pytest.raises(BadInput, match="no tasks"):
        evaluate(features, tasks.take(slice(0, 0)), "protonet")
    with pytest.raises(BadInput, match="Unknown device 'gpu'"):
        evaluate(features, tasks, "protonet", device="gpu")
    item = tasks.take(slice(3, 4))
    gone = features.image_ids != item.query[0, 2, 1]
    fewer = Features("toy", "random", features.values[gone], features.image_ids[gone], features.class_ids[gone])
    message = rf"Image {item.query[0, 2, 1]} \(class {item.class_ids[0, 2]}\), in the query of task 0, has no features"
    with pytest.raises(Missing, match=message):
        evaluate(fewer, item, "knn")
    with pytest.raises(Missing, match="Image 99999"):
        evaluate(features, replace(tasks, support=np.full_like(tasks.support, 99999)), "protonet")
    with pytest.raises(BadInput, match="another dataset"):
        evaluate(features, replace(tasks, class_ids=(tasks.class_ids + 1) % 8), "protonet")
    with pytest.raises(BadInput, match="no support image"):
        evaluate(features, replace(tasks, support=np.full_like(tasks.support, PAD)), "protonet")
    with pytest.raises(BadInput, match="Task 0 has no query"):
        evaluate(features, replace(tasks, query=np.full_like(tasks.query, PAD)), "protonet")


@pytest.mark.parametrize("n_tasks", [1, 30], ids=["few draws", "many draws"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_features_that_are_not_finite_are_named(bad: float, n_tasks: int) -> None:
    features = make_features()
    tasks = make_tasks(features, n_tasks)
    values = features.values.copy()
    row = int(features.rows_of(tasks.query[0, 1])[2])
    values[row, 5] = bad
    with pytest.raises(BadInput, match=rf"NaN or infinity \(first: image {features.image_ids[row]} "):
        evaluate(replace(features, values=values), tasks, "knn")


def test_small_classes_are_named_with_what_would_fit() -> None:
    features = make_features(n_classes=3, n_images=12)
    check_class_sizes(features, np.arange(3), 5, 7)
    keep = np.ones(36, dtype=bool)
    keep[np.flatnonzero(features.class_ids == 1)[:4]] = False
    fewer = Features("toy", "x", features.values[keep], features.image_ids[keep], features.class_ids[keep])
    with pytest.raises(
        BadInput, match=r"Class 'owl' has 8 images .* n_shot \+ n_query = 12. .*n_shot 3 with n_query 5"
    ):
        check_class_sizes(fewer, np.arange(3), 5, 7, {0: "cat", 1: "owl", 2: "dog"})
    with pytest.raises(BadInput, match=r"Class 7 has 0 images .*Remove the class from the split"):
        check_class_sizes(features, np.array([0, 7]), 1, 1)


def test_every_error_of_this_room_is_one_a_page_catches() -> None:
    features = make_features()
    with pytest.raises(FsvizError):
        evaluate(features, make_tasks(features, 2), "protonet", device="cuda:99")


def test_chunks_follow_the_size_of_a_task() -> None:
    assert chunk_size(5, 5, 10, 640) == 64
    large = chunk_size(100, 5, 10, 512)
    assert 1 <= large < 64
    assert chunk_size(100, 5, 10, 512, pairwise=True) < large
    assert chunk_size(500, 50, 50, 4096, pairwise=True) == 1
    assert large * 4 * 1500 * 512 * 5 <= MEMORY


MEASURE = """
import ctypes, gc
import numpy as np
from fsviz.evaluation import evaluate
from fsviz.methods import METHODS
from fsviz.records import Features, Tasks

def memory(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field)) / 1024

rng = np.random.default_rng(0)
table = rng.random((1604 * 15, 512), dtype=np.float32)
features = Features("large", "noise", table, np.arange(len(table)), np.repeat(np.arange(1604), 15))
ways = np.stack([rng.permutation(1604)[:100] for _ in range(60)])
images = ways[..., None] * 15 + np.arange(15)
tasks = Tasks(ways, images[..., :5], images[..., 5:])
import fsviz.methods.descent, fsviz.methods.transport  # with torch and numba
for method, n_tasks, parameters in (("protonet", 60, {}), ("tim", 20, {"steps": 2}), ("pt_map", 6, {"steps": 1})):
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)  # what the one before has freed is not there for the next one
    with open("/proc/self/clear_refs", "w") as peak:
        peak.write("5")  # the peak starts over
    before = memory("VmRSS")
    evaluate(features, tasks.take(np.arange(n_tasks)), method, parameters)
    print(method, memory("VmHWM"), memory("VmHWM") - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's own account of memory")
def test_a_hundred_ways_of_1604_classes_fit_in_memory() -> None:
    """100-way 5-shot 10-query, 512 dimensions: 4 GB are allowed; gathering all tasks at once would take 3 MB each."""
    out = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, cwd=ROOT, check=True)
    lines = [line.split() for line in out.stdout.splitlines()]
    assert len(lines) == 3
    for method, peak, extra in lines:
        assert float(peak) < 4096, method
        # the chunk's own bound, the result, and what the allocator keeps
        assert float(extra) < 1.25 * MEMORY / 2**20, method
