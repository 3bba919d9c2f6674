"""Names of tasks lead back to the very same tasks, on another machine too, or say why not; a passport's numbers are the
engine's."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fsviz import datasets, evaluation, features, jobs
from fsviz.analyses import custom_task
from fsviz.analyses import task_profile as study
from fsviz.datasets.saved import save_dataset
from fsviz.difficulty import attribute_gaps
from fsviz.difficulty.measures import MEASURES
from fsviz.errors import BadInput, FsvizError, Missing, UnknownName
from fsviz.records import PAD, Dataset, TaskId, Tasks
from fsviz.sampling import testbeds
from fsviz.studies import evaluate, task_measures
from fsviz.tasks import draw, task_ids
from fsviz.tasks.task_ids import ResolvedTestbed
from tests.studies.toy_dataset import make_toy, save_toy_features

UNSEEDED = {"sampler": "semantic", "n_way": 4, "n_shot": 3, "n_query": 5, "n_tasks": 30}
SHAPE = {**UNSEEDED, "seed": 7}


@pytest.fixture(autouse=True)
def _workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))


@pytest.fixture
def toy() -> Dataset:
    make_toy("named", noise=2.0)
    return datasets.load("named")


def same(a: Tasks, b: Tasks) -> bool:
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ("class_ids", "support", "query"))


# Names -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        SHAPE,
        {**SHAPE, "sampler": "uniform", "repeats": True},
        {**SHAPE, "distance": "wu_palmer", "alpha": 12.5, "dag": "all_paths"},
        {**SHAPE, "distance": "features", "backbone": "alpha_net"},
        {"sampler": "variable", "n_tasks": 12, "max_way": 6, "max_support": 40, "max_query": 4},
        {"sampler": "uniform", "n_way": 3, "n_tasks": 9},  # of classes only
    ],
)
def test_a_recipe_is_its_own_name(toy: Dataset, settings: dict) -> None:
    bed = draw.sample(toy, **settings)
    name = task_ids.name_testbed(toy, bed.tasks, bed.recipe)
    assert name.startswith("drawn~named~") and set(name) <= set(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~!"
    )
    result = task_ids.find(name)
    assert same(result.tasks, bed.tasks) and result.dataset.name == "named"
    assert task_ids.n_tasks_of(name) == len(bed.tasks) and task_ids.dataset_of(f"{name}:3") == "named"


def test_odd_names_of_splits_and_backbones_come_back(toy: Dataset) -> None:
    odd = "a~b-c:d %é+&?#"
    save_toy_features(toy, "alpha_net")
    second = save_dataset(replace(datasets.load("named"), splits={odd: np.arange(9)}), overwrite=True)
    bed = draw.sample(second, **SHAPE, split=odd)
    name = task_ids.name_testbed(second, bed.tasks, bed.recipe)
    assert same(task_ids.find(name).tasks, bed.tasks) and task_ids.parse_task_id(f"{name}:4") == TaskId(name, 4)


def test_tasks_of_images_with_features_say_whose(toy: Dataset) -> None:
    table = features.load(toy, "alpha_net")
    saved = np.setdiff1d(table.image_ids, np.arange(0, 384, 5))
    few = replace(table, image_ids=saved, class_ids=table.class_ids[saved], values=table.values[saved])
    features.store.save(dict(table.key), "some_net", few.values, few.image_ids, few.class_ids)
    toy = datasets.load("named")
    bed = evaluate.sample_testbed(toy, UNSEEDED, 7, {"some_net": features.load(toy, "some_net")})
    assert task_ids.name_testbed(toy, bed.tasks, bed.recipe) == ""  # all images give other tasks
    name = task_ids.name_testbed(toy, bed.tasks, bed.recipe, ("some_net",))
    assert "~from-some_net~" in name and same(task_ids.find(name).tasks, bed.tasks)


def test_the_same_link_gives_the_same_task_in_another_workspace(
    toy: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {}
    for dataset in (toy, datasets.load("demo")):
        bed = draw.sample(dataset, **SHAPE)
        names[str(task_ids.name_task(dataset, bed.tasks, 11, bed.recipe))] = bed.tasks.take([11])
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "elsewhere"))
    make_toy("named", noise=2.0)
    for text, item in names.items():
        task = task_ids.parse_task_id(text)
        assert same(task_ids.find(task.testbed).tasks.take([task.position]), item)


def test_a_task_made_by_hand_is_named_by_its_images(toy: Dataset) -> None:
    tasks = custom_task.build(toy, features.load(toy, "alpha_net"), [3, 1, 9], 2, 3)
    uneven = replace(tasks, support=np.where(tasks.support == tasks.support[0, 1, 1], PAD, tasks.support))
    for output in (tasks, uneven):
        result = task_ids.find(task_ids.images_name(toy, output, 0))
        assert same(result.tasks, output) and result.title == "a task made by hand"
    assert np.isfinite(result.tasks.measures["coarsity"][0])


def test_saved_testbeds_that_no_sampler_draws_are_named_by_their_content(toy: Dataset) -> None:
    bed = draw.sample(toy, **SHAPE)
    shuffled = bed.tasks.take(np.arange(len(bed.tasks))[::-1])
    saved = replace(bed, name="mine.1", tasks=shuffled, recipe={**bed.recipe, "sampler": "imported"})
    testbeds.save_testbed(saved)
    task = task_ids.name_task(toy, shuffled, 2, saved.recipe, saved="mine.1")
    assert str(task).startswith("saved~named~mine.1~") and str(task).endswith(":2")
    assert same(task_ids.find(task.testbed).tasks, shuffled)
    assert task_ids.parse_task_id("mine.1:2") == task  # as a person writes it
    testbeds.delete_testbed("mine.1")
    with pytest.raises(Missing, match=r"testbed 'mine.1' of Named is not in this workspace. Copy the file"):
        task_ids.find(task.testbed)
    testbeds.save_testbed(replace(bed, name="mine.1", recipe=saved.recipe))
    with pytest.raises(BadInput, match="the testbed has other tasks"):
        task_ids.find(task.testbed)


def test_a_run_names_its_tasks_by_their_recipe_where_that_draws_them(toy: Dataset) -> None:
    bed = draw.sample(toy, **SHAPE)
    testbeds.save_testbed(
        replace(bed, name="odd", tasks=bed.tasks.take(np.arange(29, -1, -1)), recipe={"dataset": "named"})
    )
    spec = {"study": "evaluate", "dataset": "named", "backbones": ["alpha_net"], "methods": ["protonet"]}
    for source, kind in (({"sampler": UNSEEDED, "seed": 7}, "drawn"), ({"testbed": "odd"}, "saved")):
        run = jobs.run_in_foreground({**spec, **source})
        settled = jobs.spec(run.id)
        tasks, part = evaluate.entry_tasks(settled, evaluate.entries(settled)[0]), evaluate.run_testbeds(settled)[0]
        name = partial(
            task_ids.name_testbed, toy, tasks, part["recipe"], ["alpha_net"], part["testbed_name"], (run.id, 0)
        )()
        assert name.partition("~")[0] == kind and same(task_ids.find(name, run_folder=jobs.folder).tasks, tasks)
    testbeds.delete_testbed("odd")
    name = task_ids.name_testbed(toy, tasks, part["recipe"], [], "odd ", (run.id, 0))
    assert name.startswith(f"run~named~{run.id}~0~")
    assert same(task_ids.find(name, run_folder=jobs.folder).tasks, tasks)
    jobs.delete(run.id)
    with pytest.raises(Missing, match=f"run '{run.id}' of 'named', and that run is not in this workspace"):
        task_ids.find(name, run_folder=jobs.folder)


def test_other_images_under_the_same_numbers_are_refused(toy: Dataset) -> None:
    bed = draw.sample(toy, **SHAPE)
    sampled, hand = task_ids.name_testbed(toy, bed.tasks, bed.recipe), task_ids.images_name(toy, bed.tasks, 0)
    assert toy.images is not None
    paths = [f"{i}.png" for i in range(len(toy.images))]
    save_dataset(replace(toy, images=toy.images.assign(path=paths)), overwrite=True)
    for name in (sampled, hand):
        with pytest.raises(BadInput, match="other images or classes of"):
            task_ids.find(name)
    names = [f"{name}!" for name in toy.classes["class_name"]]
    save_dataset(replace(toy, classes=toy.classes.assign(class_name=names)), overwrite=True)
    with pytest.raises(BadInput, match="samples other tasks"):
        task_ids.find(sampled)


def test_a_name_that_another_version_drew_otherwise_is_refused(toy: Dataset) -> None:
    bed = draw.sample(toy, **SHAPE)
    name = task_ids.name_testbed(toy, bed.tasks, bed.recipe)
    with pytest.raises(BadInput, match="this version of fsviz samples other tasks"):
        task_ids.find(name.replace("seed-7", "seed-8"))


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("", BadInput, "TESTBED:POSITION"),
        ("mine", BadInput, "TESTBED:POSITION"),
        ("nowhere:3", BadInput, "Copy the whole link"),
        ("drawn~demo~split-test~seed-0:3", BadInput, "Copy the whole link"),
        ("hand~demo~1.2~0123456789ab:0", BadInput, "Copy the whole link"),
        ("drawn~demo~x-1~0123456789ab:0", UnknownName, "setting of the sampler"),
        ("drawn~demo~n_way-many~0123456789ab:0", BadInput, "n_way must be a whole number"),
        ("drawn~nothing_here~n_way-2~0123456789ab:0", Missing, "is of the dataset 'nothing_here', which is not here"),
        ("hand~demo~1.x_2~3_4~0123456789ab:0", BadInput, "Copy the whole link"),
        ("hand~demo~1_2~3_999999~0123456789ab:0", BadInput, "image 999,999; "),
        ("run~demo~nothing~0~0123456789ab:0", Missing, "not in this workspace"),
        ("saved~demo~nothing~0123456789ab:0", Missing, "testbed 'nothing' of EmojiCoCo"),
    ],
)
def test_what_names_no_task_is_one_sentence(text: str, error: type[FsvizError], words: str) -> None:
    with pytest.raises(error, match=words):
        task_ids.find(task_ids.parse_task_id(text).testbed, run_folder=jobs.folder)


# Passports ---------------------------------------------------------------------------------------------------------


def found_in(toy: Dataset, **request: object) -> ResolvedTestbed:
    bed = draw.sample(toy, **{**SHAPE, **request})
    return task_ids.find(task_ids.name_testbed(toy, bed.tasks, bed.recipe), toy)


def test_a_passport_has_the_numbers_of_the_engine(toy: Dataset) -> None:
    result = found_in(toy)
    profile = study.open_task(result, 11)
    item = result.tasks.take([11])
    expected = task_measures.measure_tasks(result.tasks, toy, "alpha_net").iloc[11]
    existing = {v.measure.name: v.value for v in profile.values if np.isfinite(v.value)}
    assert set(existing) == set(expected.dropna().index)
    assert existing == pytest.approx(expected[list(existing)].to_dict(), rel=1e-4)
    assert [v.measure.name for v in profile.values] == list(MEASURES)
    assert all(bool(v.why_not) != np.isfinite(v.value) for v in profile.values)
    assert {a.method for a in profile.results} >= {"protonet", "simpleshot"}
    table = features.load(toy, "alpha_net")
    for answer in profile.results:
        predictions = evaluate.predict_tasks(toy, "alpha_net", answer.method, {}, item)
        assert answer.accuracy == evaluation.task_accuracy(predictions)[0]
        counts = study.predicted_pairs(answer, 4)
        assert counts.sum(axis=1).tolist() == [5] * 4 and np.trace(counts) == round(20 * answer.accuracy)
    pairs = {p.name: p.values for p in study.class_pairs(profile)}
    whole = draw.class_distances(toy, "test")
    ids = item.class_ids[0]
    assert np.array_equal(pairs["jiang_conrath"], whole[np.ix_(ids, ids)])
    upper = pairs["jiang_conrath"][np.triu_indices(4, 1)]
    assert existing["coarsity"] == pytest.approx(np.mean(upper**2))
    assert np.triu(pairs["confusion"]).sum() == pytest.approx(existing["class_overlap"])
    assert pairs["features"].shape == (4, 4) and table.backbone == profile.backbone


def test_percentiles_are_counted_among_the_other_tasks() -> None:
    rest = np.array([1.0, 2.0, 2.0, 3.0, np.nan])
    harder = study.percentile(2.0, rest, "harder")
    assert (harder.lower, harder.harder, harder.n) == (0.5, 0.5, 4)  # one below, two the same
    assert study.percentile(3.5, rest, "harder").harder == 1 and study.percentile(3.5, rest, "easier").harder == 0
    assert study.percentile(2.5, rest, "easier").harder == 0.25
    assert np.isnan(study.percentile(2.0, np.zeros(0), "harder").lower)
    assert np.isnan(study.percentile(np.nan, rest, "harder").lower)


def test_standings_and_means_are_those_of_the_whole_testbed(toy: Dataset) -> None:
    result = found_in(toy)
    reports: list[tuple[int, int]] = []
    profile = study.open_task(result, 4)
    among = study.values_among_tasks(
        result, "alpha_net", methods=["protonet"], progress=lambda done, total, words: reports.append((done, total))
    )
    assert among.is_complete and reports[0][0] == 0 and all(done <= total for done, total in reports)
    table = task_measures.measure_tasks(result.tasks, toy, "alpha_net")
    for name, percentile in study.percentiles(profile, among).items():
        rest = np.delete(table[name].to_numpy(), 4)
        rest = rest[np.isfinite(rest)]
        value = profile.value(name)
        lower = np.mean(rest < value - 1e-6 * abs(value)), np.mean(rest <= value + 1e-6 * abs(value))
        assert lower[0] <= percentile.lower <= lower[1] and percentile.n == len(rest)
        up = MEASURES[name].direction == "harder"
        assert percentile.harder == (percentile.lower if up else 1 - percentile.lower)
    profile = study.with_values_among_tasks(profile, among)
    accuracy = evaluation.task_accuracy(evaluate.predict_tasks(toy, "alpha_net", "protonet", {}, result.tasks))
    first = profile.results[0]
    assert first.mean == pytest.approx((accuracy.mean(), 1.96 * accuracy.std(ddof=1) / 30**0.5), rel=1e-3)
    rest = np.delete(accuracy, 4)
    expected = np.mean(rest > accuracy[4]) + np.mean(rest == accuracy[4]) / 2
    assert study.accuracy_percentile(profile, first).harder == pytest.approx(expected)


def test_the_headline_gives_accuracy_mean_and_percentiles(toy: Dataset) -> None:
    testbed = found_in(toy)
    profile = study.open_task(testbed, 4)
    result = replace(profile.results[0], accuracy=0.6, positions=np.arange(30), testbed_accuracy=np.full(30, 0.75))
    columns = {"coarsity": np.full(30, 1e9), "class_overlap": np.full(30, -1e9), "query_loss": np.full(30, -1e9)}
    columns["coarsity"][:3] = -1e9  # higher is easier; of the other two, higher is harder
    for name, values in columns.items():
        values[4] = profile.value(name)
    among = study.ValuesAmongTasks(np.arange(30), 30, pd.DataFrame(columns))
    sentence, more = study.headline(profile, among, result)
    start = f"{result.label} ({profile.tasks.setting}, alpha_net): 60% of the 20 queries correct"
    assert sentence == f"{start}, 15 points below the mean of 30 tasks (75%)."
    # 3 of 29 have a lower coarsity, so it is harder than 26; the query loss restates accuracy
    assert more == "Harder than 100% of the other tasks by class overlap (Louvain) and 90% by coarsity."
    assert study.headline(profile, None, result)[1] == ""
    equal = replace(result, testbed_accuracy=np.full(30, 0.6))
    assert "equal to the mean of 30 tasks (60%)" in study.headline(profile, among, equal)[0]
    alone = replace(result, positions=np.arange(1), testbed_accuracy=np.array([0.6]))
    assert study.headline(profile, None, alone)[0] == f"{start}."
    columns["coarsity"] = -columns["coarsity"]  # now finer than all but 3
    columns["coarsity"][4] = profile.value("coarsity")
    some = study.ValuesAmongTasks(np.arange(30), 300, pd.DataFrame(columns).drop(columns="class_overlap"))
    assert study.headline(profile, some, result)[1] == "Harder than only 10% of 29 other tasks by coarsity."


def test_two_tasks_differ_most_by_the_measures_with_the_largest_gap(toy: Dataset) -> None:
    testbed = found_in(toy)
    profiles = [study.open_task(testbed, at) for at in (4, 9)]
    among = study.values_among_tasks(testbed, "alpha_net")
    of_tasks = [study.percentiles(profile, among) for profile in profiles]
    gaps = {n: abs(of_tasks[0][n].harder - of_tasks[1][n].harder) for n in of_tasks[0] if n != "query_loss"}
    first = max(gaps, key=lambda name: np.nan_to_num(gaps[name]))
    results = [profile.results[0] for profile in profiles]
    sentence, more = study.compare_headline(profiles, [among, among], results)
    accuracies = [f"{100 * result.accuracy:.0f}%" for result in results]
    start = f"ProtoNet ({profiles[0].tasks.setting})"
    assert sentence == f"{start}: {accuracies[0]} of the queries correct, {accuracies[1]} in the other task."
    assert (
        more.startswith(f"They differ most by {MEASURES[first].lower_title} (harder than ") and "query loss" not in more
    )
    assert f"{of_tasks[0][first].harder:.0%} vs {of_tasks[1][first].harder:.0%}" in more


def test_a_large_testbed_is_measured_in_part(toy: Dataset) -> None:
    among = study.values_among_tasks(found_in(toy, n_tasks=50), "alpha_net", max_tasks=10)
    assert len(among.positions) == len(among.table) == 10 and not among.is_complete
    assert among.positions[[0, -1]].tolist() == [0, 49]


def test_coarsity_is_held_against_coarsity_by_the_same_distance(toy: Dataset) -> None:
    result = found_in(toy, distance="wu_palmer")
    profile, among = study.open_task(result, 2), study.values_among_tasks(result, "alpha_net")
    assert profile.value("coarsity") == result.tasks.measures["coarsity"][2]
    assert np.array_equal(among.table["coarsity"], result.tasks.measures["coarsity"])
    assert study.class_pairs(profile)[0].name == "wu_palmer"


def test_tasks_are_gone_through_by_any_value(toy: Dataset) -> None:
    result = found_in(toy)
    profile, among = study.open_task(result, 4), study.values_among_tasks(result, "alpha_net", methods=["protonet"])
    profile = study.with_values_among_tasks(profile, among)
    ways = study.orders(profile, among)
    assert {"position", "coarsity", "query_loss", "accuracy of ProtoNet · alpha_net"} <= set(ways)
    assert study.neighbours(profile, *ways["position"], 4.0) == (3, 5)
    at, positions = study.open_task(result, 0), [0]
    values = result.tasks.measures["coarsity"]
    while (after := study.neighbours(at, *ways["coarsity"], values[at.position])[1]) is not None:
        at = replace(at, position=after)
        positions.append(after)
    order = np.lexsort((np.arange(30), values))
    assert positions == order[order.tolist().index(0) :].tolist()  # equal ones in the order of the testbed
    before = study.neighbours(replace(at, position=int(order[0])), *ways["coarsity"], values[order[0]])[0]
    assert before is None


def test_runs_of_the_testbed_answer_with_all_their_methods(toy: Dataset) -> None:
    actual = found_in(toy)
    spec = {"study": "evaluate", "dataset": "named", "backbones": ["alpha_net"], "methods": ["pt_map", "logistic"]}
    run = jobs.run_in_foreground({**spec, "sampler": UNSEEDED, "seed": 7, "chunk": 8})
    target = study.digest(actual)
    assert study.is_of_testbed(run.spec, target) and not study.is_of_testbed(run.spec, "other")
    assert not study.is_of_testbed({"dataset": "named"}, target)
    answers = study.results_of_run(run.id, jobs.spec(run.id), partial(jobs.chunks, run.id), target, 17)
    assert [a.method for a in answers] == ["pt_map", "logistic"]
    for answer, result in zip(answers, run.summary["results"], strict=True):
        predictions = evaluate.predict_tasks(toy, "alpha_net", answer.method, {}, actual.tasks.take([17]))
        assert answer.accuracy == evaluation.task_accuracy(predictions)[0] and answer.source == run.id
        assert answer.predictions is not None
        assert np.array_equal(answer.predictions.predicted, predictions.predicted)
        assert 100 * answer.mean[0] == pytest.approx(result["accuracy"])
    profile = study.open_task(actual, 17, recorded=study.newest_of_each([*answers, *answers]))
    assert [a.method for a in profile.results] == ["pt_map", "logistic"]


def test_hard_and_easy_support_sets_keep_the_queries(toy: Dataset) -> None:
    profile = study.open_task(found_in(toy), 3)
    sets = study.support_sets_of(profile)
    for name in ("hard", "easy"):
        assert np.array_equal(sets.tasks[name].query, profile.tasks.query)
        assert np.array_equal(sets.tasks[name].class_ids, profile.tasks.class_ids)
    assert np.array_equal(sets.tasks["random"].support, profile.tasks.support)
    assert sets.accuracy("random")[0] == profile.results[0].accuracy
    assert sets.loss("hard")[0] > sets.loss("random")[0] > sets.loss("easy")[0]


def test_contexts_and_gaps_of_the_demo_by_hand() -> None:
    demo = datasets.load("demo")
    result = found_in(demo, n_tasks=5)
    profile = study.TaskProfile(result, 1, "efficientnet_lite0", result.tasks.take([1]))
    view = study.contexts(profile)
    assert view is not None
    of_image = demo.image_contexts()
    way = 2
    support, query = of_image[profile.tasks.support[0, way]], of_image[profile.tasks.query[0, way]]
    assert view["shared"][way] == sum(context in support for context in query) and view["n"][way] == 5
    for side, images in (("support", profile.tasks.support), ("query", profile.tasks.query)):
        for way in range(profile.tasks.n_way):
            counts = pd.Series(of_image[images[0, way]]).value_counts()
            values = {context if n == 1 else f"{context} {n}" for context, n in counts.items()}
            assert set(view[side][way].split(", ")) == values
    assert view["support"][0] == "grass 2, rock"
    gaps = {gap.name: gap for gap in study.gaps(profile)}
    every = attribute_gaps.measure_gaps(demo, result.tasks, by="class")
    for name, gap in gaps.items():
        rest = np.delete(every[name].gap, 1)
        assert gap.gap == every[name].gap[1]
        lower = np.mean(rest < gap.gap) + np.mean(rest == gap.gap) / 2
        assert gap.percentile.harder == pytest.approx(lower)


def test_benchmarks_without_images_have_a_passport_of_their_classes() -> None:
    cifar = datasets.load("cifar100")
    task = study.first_task(cifar)
    result = task_ids.find(task.testbed)
    profile, among = study.open_task(result, 3), study.values_among_tasks(result)
    assert not profile.has_images and not profile.results and not study.gaps(profile)
    assert set(study.percentiles(profile, among)) == {"coarsity"}
    text = study.profile_dict(profile, among)
    assert text["support"] is None and text["methods"] == [] and list(text["pairs"]) == ["jiang_conrath"]
    with pytest.raises(Missing):
        study.support_sets_of(profile)
    with pytest.raises(BadInput, match=r"must be 0 to 199: this testbed has 200 tasks. Got 200"):
        study.open_task(result, 200)
