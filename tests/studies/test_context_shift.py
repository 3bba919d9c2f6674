"""IID against OOD on the demo: what is lost, by whom, and that a run gives what is computed at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fsviz import datasets, features, jobs
from fsviz.errors import BadInput, Missing, UnknownName
from fsviz.records import Tasks
from fsviz.studies import context_shift as study
from fsviz.studies import sweep

SMALL = {"study": "context_shift", "dataset": "demo", "backbone": "efficientnet_lite0", "methods": ["protonet"]}
SMALL |= {"n_tasks": 120}


@pytest.mark.parametrize(("n_shot", "margin"), [(1, 5), (5, 8)])
def test_on_the_demo_other_contexts_cost_clearly_and_swapped_ones_most(n_shot: int, margin: float) -> None:
    row = jobs.compute({**SMALL, "n_shot": n_shot})["rows"][0]
    mean = {name: item["mean"] for name, item in row["accuracy"].items()}
    assert mean["iid"] > mean["ood"] + margin and mean["ood"] > mean["spurious"] + 1
    assert row["loss"]["ood"]["mean"] == pytest.approx(mean["iid"] - mean["ood"])
    assert row["loss"]["ood"]["mean"] - row["loss"]["ood"]["ci95"] > 0


def test_accuracy_falls_along_the_dial() -> None:
    accuracy = jobs.compute({**SMALL, "question": "dial"})["rows"][0]["accuracy"]
    means = [row["mean"] for row in accuracy.values()]
    assert len(means) == 5 and all(np.diff(means) < 0)


def test_more_ways_are_harder_and_more_shots_easier() -> None:
    for vary, sign in (("n_way", -1), ("n_shot", 1)):
        spec = sweep.sweep(study.STUDY, {**SMALL, "n_tasks": 40}, vary)
        rows = [summary["rows"][0] for _, summary in jobs.compute({"study": "sweep", **spec}).results]
        for kind in ("iid", "ood"):
            assert sign * (rows[-1]["accuracy"][kind]["mean"] - rows[0]["accuracy"][kind]["mean"]) > 5


def test_a_run_gives_what_is_computed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path))
    spec = {**SMALL, "methods": ["protonet", "matching"], "n_tasks": 70}
    run = jobs.run_in_foreground(spec)
    assert run.state == "finished" and run.n_chunks == 2
    ran, here = jobs.results(run.id), jobs.compute(spec)
    for row, two in zip(ran["rows"], here["rows"], strict=True):
        assert (row["method"], row["n_tasks"]) == (two["method"], two["n_tasks"])
        assert row["accuracy"]["ood"]["mean"] == pytest.approx(two["accuracy"]["ood"]["mean"])
        assert row["loss"]["spurious"]["ci95"] == pytest.approx(two["loss"]["spurious"]["ci95"])


def test_backbones_can_be_swept() -> None:
    spec = sweep.sweep(study.STUDY, {**SMALL, "n_tasks": 5}, "backbone")
    assert spec["values"] == list(features.available(datasets.load("demo")))
    numbers = jobs.compute({"study": "sweep", **spec}).table
    assert set(numbers["name"]) >= {"protonet_iid", "protonet_ood", "loss_protonet_ood"}


def test_the_loss_is_told_by_class_context_and_image() -> None:
    demo = datasets.load("demo")
    result = study.compare_supports(study.check(SMALL), "protonet", 1.0)
    assert np.array_equal(result.first.query, result.second.query)
    total = 100 * result.loss.mean()
    for by in ("class", "context"):
        table = study.losses(demo, result, by)
        assert (np.diff(table["loss"]) <= 0).all() and (table["ci95"] > 0).all()
        assert np.average(table["loss"], weights=table["n_queries"]) == pytest.approx(total, abs=0.5)
    worst = study.misleading_contexts(demo, result)
    assert [item.loss for item in worst] == study.losses(demo, result, "context")["loss"][:5].tolist()
    assert demo.images is not None
    for item in worst:
        lost = item.images
        assert (lost["n_misclassified"] <= lost["n_queries"]).all() and (np.diff(lost["n_misclassified"]) <= 0).all()
        assert (demo.image_class_ids()[lost["image_id"]] != lost["predicted_class"]).all()
        assert set(demo.images["context"][lost["image_id"]]) == {item.context}


def test_the_answer_names_the_loss_or_says_that_it_is_not_significant() -> None:
    def row(loss: float, half: float | None = 2.0) -> dict:
        mean = {"mean": loss, "ci95": half, "ci95_classes": 5.04}
        means = {"iid": {"mean": 89.5}, "ood": {"mean": 89.5 - loss}}
        return {"method": "protonet", "title": "ProtoNet", "n_tasks": 100, "accuracy": means, "loss": {"ood": mean}}

    setting = {"backbone": "net", "n_way": 5, "n_shot": 1, "chance": 20.0}
    assert study.loss_answer({**setting, "rows": [row(15.5)]}, "protonet") == (
        "ProtoNet loses 15.5 ± 2.0 points when the support shows other contexts.",
        "89.5% → 74.0% correct on 100 5-way 1-shot tasks, net features; chance level 20%, 95% CI over tasks "
        "(± 5.0 over classes).",
    )
    for loss, half in ((1.5, 2.0), (-1.5, 2.0), (15.5, None)):
        sentence, _ = study.loss_answer({**setting, "rows": [row(loss, half)]}, "protonet")
        assert "no significant loss" in sentence and f"{loss} " in sentence
    assert study.loss_answer({**setting, "rows": [row(-3.0)]}, "protonet")[0].startswith("ProtoNet gains 3.0 ± 2.0")
    swept = {**setting, "rows": [row(20.0), row(9.0), row(12.0)]}
    sentence, _ = study.loss_answer(swept, "protonet", ["1 shot", "10 shots", "5 shots"])
    assert "most with 1 shot (20.0 ± 2.0 points) and least with 10 shots (9.0 ± 2.0 points)" in sentence


def test_tasks_and_classes_are_ordered_by_what_the_shift_loses() -> None:
    ranks = np.array([[[0, 0], [0, 1]], [[0, 0], [0, 0]]]), np.array([[[0, 1], [0, 0]], [[0, 0], [1, 1]]])
    first, second = (type("Ranked", (), {"rank": rank})() for rank in ranks)
    results = study.ContextResults(None, None, first, second)
    assert results.loss.sum((1, 2)).tolist() == [0, 2] and results.tasks_by_loss.tolist() == [1, 0]
    assert results.ways_by_loss(0).tolist() == [0, 1] and results.ways_by_loss(1).tolist() == [1, 0]


def test_intervals_over_images_and_classes_are_wider_than_over_tasks() -> None:
    """Tasks share images, so more tasks of them do not make the loss ever surer."""
    few, many = (jobs.compute({**SMALL, "n_tasks": n})["rows"][0]["loss"]["ood"] for n in (100, 1600))
    assert many["ci95"] < few["ci95"] / 3
    for row in (few, many):
        assert row["ci95"] < row["ci95_images"] and row["ci95"] < row["ci95_classes"]
    assert many["ci95_classes"] > 3 * many["ci95"] and many["mean"] - many["ci95_classes"] > 0


def test_impossible_questions_are_refused() -> None:
    with pytest.raises(UnknownName, match="protonett"):
        study.check({**SMALL, "methods": ["protonett"]})
    with pytest.raises(BadInput, match="At least one method"):
        study.check({**SMALL, "methods": []})
    with pytest.raises(Missing, match="no images with contexts"):
        study.check({"dataset": "metacoco"})
    with pytest.raises(BadInput, match="in some contexts and 40 in others"):
        jobs.compute({**SMALL, "n_shot": 40})


def test_a_page_opens_with_what_the_classes_can_give() -> None:
    demo = datasets.load("demo")
    usual = study.fit(demo, {"split": "test"})
    assert usual.values == {"n_way": 5, "n_shot": 5, "n_query": 10} and not usual.describe()
    assert demo.images is not None
    few = demo.images.groupby(["class_id", "context"]).head(2)  # at most two images of a class in a context
    images = few[(few["class_id"] < 80) | (few["context"] == "sky")].reset_index(drop=True)  # the others in one only
    small = study.fit(replace(demo, images=images), {"split": "test"})
    assert small.lowered == {"n_way": 5, "n_shot": 5, "n_query": 10}
    assert small.values["n_way"] == 3
    text = small.describe()
    assert text.startswith("Only 3 classes of split 'test'") and "n_way is 3 instead of 5" in text
    fit = study.fit(replace(demo, images=images), {"split": "test", "n_way": 2, "n_shot": 1, "n_query": 4})
    assert fit.values == {"n_way": 2, "n_shot": 1, "n_query": 4} and not fit.lowered


def test_intervals_over_images_of_a_loss_hold_the_truth_and_those_over_tasks_do_not_claim_to() -> None:
    """A world of known classes and contexts: images are drawn from it again and again, tasks from every set of them."""
    n_classes, n_contexts, n_each, dims, n_way, n_shot, n_query = 8, 4, 12, 8, 5, 3, 4
    random = np.random.default_rng(1)
    classes, contexts = random.normal(size=(n_classes, dims)), 1.2 * random.normal(size=(n_contexts, dims))

    def look(n_tasks: int) -> tuple[np.ndarray, Tasks]:
        noise = 1.1 * random.normal(size=(n_classes, n_contexts, n_each, dims))
        images = (classes[:, None, None] + contexts[None, :, None] + noise).reshape(-1, dims)
        class_ids = np.argsort(random.random((n_tasks, n_classes)), axis=1)[:, :n_way]
        query_context = random.integers(n_contexts, size=class_ids.shape)
        second = (query_context + random.integers(1, n_contexts, size=class_ids.shape)) % n_contexts
        orders = np.argsort(random.random((2, n_tasks, n_way, n_each)), axis=3)
        same, far = (
            ((class_ids * n_contexts + at) * n_each)[..., None] + o for at, o in zip((query_context, second), orders)
        )
        query, supports = same[..., :n_query], (same[..., n_query : n_query + n_shot], far[..., :n_shot])
        right = []
        for support in supports:
            gap = images[query][:, :, :, None] - images[support].mean(2)[:, None, None]
            right.append(100.0 * ((gap**2).sum(-1).argmin(-1) == np.arange(n_way)[:, None]))
        both = study._with_both_supports(*(Tasks(class_ids, support, query) for support in supports))
        return right[0] - right[1], both

    truth = np.mean([look(60)[0].mean() for _ in range(300)])
    result = [study._mean(*look(300)) for _ in range(60)]
    held = {over: np.mean([abs(row["mean"] - truth) < row[over] for row in result]) for over in ("ci95", "ci95_images")}
    assert held["ci95_images"] > 0.93 and held["ci95"] < 0.9
