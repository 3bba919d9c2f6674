from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fsviz import datasets, features, jobs
from fsviz.analyses import attribute_shifts, support_attributes
from fsviz.cli import build_parser
from fsviz.difficulty.fastdiffsel import select_supports
from fsviz.difficulty.greedy import greedy_supports
from fsviz.difficulty.search_options import SearchOptions
from fsviz.errors import BadInput, FsvizError, Missing, NotFinite, UnknownName, WorkspaceError
from fsviz.features import store
from fsviz.numerics import holm
from fsviz.records import PAD
from fsviz.sampling.testbeds import list_testbeds, load_testbed
from fsviz.studies import search_comparison, stress_test, support_sets, sweep
from fsviz.studies.study import first_needed
from fsviz.studies.support_sets.published import describe_published, published_accuracies
from tests.studies.noise_dataset import make_noise
from tests.studies.shifted_dataset import make_shifted
from tests.studies.toy_dataset import make_toy

SPEC = {"dataset": "shifted", "n_shot": 5, "backbone": "first", "n_tasks": 60, "n_query": 8}
PAPER = {**SPEC, "search": "fastdiffsel"}


@pytest.fixture
def shifted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    return make_shifted()


def find(spec: dict, progress=None) -> support_sets.SupportSets:
    return jobs.compute({"study": "support_sets", **spec}, progress)


def run_stress(spec: dict) -> stress_test.StressTest:
    return jobs.compute({"study": "stress_test", **spec})


def test_a_checked_spec_has_every_setting_and_checks_to_itself(shifted) -> None:
    spec = support_sets.check({**SPEC, "device": "auto", "split": ""})
    assert set(spec) == {"dataset", "backbone", *support_sets.SETTINGS.settings}
    assert spec["split"] == "test" and spec["device"] != "auto" and support_sets.check(spec) == spec
    with pytest.raises(UnknownName, match="setting of the search for hard supports 'steps'"):
        support_sets.check({**SPEC, "steps": 3})
    with pytest.raises(BadInput, match='needs "backbone"'):
        support_sets.check({"dataset": "shifted"})


def test_a_chunk_is_about_a_second_and_the_usual_page_is_one(shifted) -> None:
    def sizes(**changes) -> list[int]:
        return [part.size for part in support_sets.parts(support_sets.check({**SPEC, "n_query": 10, **changes}))]

    assert support_sets.STUDY.n_chunks(support_sets.check({**SPEC, "n_query": 10, "n_tasks": 200})) == 1
    assert sizes(search="greedy") == [4] and sizes(search="accuracy") == [200]
    assert sizes(search="fastdiffsel", n_steps=100) == [2] and sizes(sampler="variable")[0] < 30


def test_a_preview_has_fewer_tasks_and_a_slow_search_is_shown_by_a_fast_one(shifted) -> None:
    spec = support_sets.check({**SPEC, "n_tasks": 5000})
    assert support_sets.shorten(spec, 90) == {**spec, "n_tasks": 90}
    assert support_sets.shorten(spec, 4000) == {**spec, "n_tasks": 200}
    greedy = support_sets.check({**SPEC, "n_tasks": 60, "search": "greedy"})
    assert support_sets.work(greedy).seconds > 5 * support_sets.work({**greedy, "search": "fastdiffsel"}).seconds
    assert support_sets.shorten(greedy, 30) == {**greedy, "n_tasks": 30}
    assert support_sets.shorten(greedy, 5) == {**greedy, "search": "fastdiffsel"}
    assert support_sets.shorten({**spec, "search": "fastdiffsel"}, 0)["n_tasks"] == 20
    assert support_sets.shorten({**spec, "search": "fastdiffsel", "n_tasks": 15}, 3) is None
    assert support_sets.work(spec).n == 5000


def test_easy_is_above_random_and_hard_far_below(shifted) -> None:
    result = find(SPEC)
    numbers = support_sets.summary(result)
    accuracy = numbers["accuracy"]
    assert accuracy["hard"] < accuracy["random"] - 15
    assert accuracy["random"] < accuracy["easy"]
    assert numbers["drop"] == pytest.approx(accuracy["random"] - accuracy["hard"])
    assert numbers["n_tasks"] == 60
    assert numbers["spearman_loss_accuracy"] > 0.8
    assert all(sum(numbers["histogram"][name]) == 60 for name in support_sets.SETS)


def test_the_answer_says_what_the_numbers_say(shifted) -> None:
    sets = find(SPEC)
    numbers = support_sets.summary(sets)
    sentence, more = support_sets.describe(sets, numbers)
    random, hard = (100 * sets.accuracy(name) for name in ("random", "hard"))
    drop = random - hard
    half_width = 1.96 * drop.std(ddof=1) / np.sqrt(60)
    text, means = sentence.split(": ")
    assert float(text.split()[4]) == pytest.approx(drop.mean(), abs=0.05)
    assert float(text.split()[6]) == pytest.approx(half_width, rel=0.05)
    assert means == f"{hard.mean():.1f}% vs {random.mean():.1f}% with random ones, on the same queries."
    assert more.startswith("60 5-way 5-shot tasks of split test, ") and "chance level: 20.0%. " in more
    assert more.endswith("Accuracy search: harder sets may exist.")
    swapped = {**numbers, "drop": -drop.mean()}
    assert support_sets.describe(sets, swapped)[0].startswith("The search found no hard support sets: ")
    close = {**numbers, "drop": 0.4, "drop_ci95": 0.6}
    assert support_sets.describe(sets, close)[0].startswith(
        "Hard support sets have no significant cost (0.4 ± 0.6 points): "
    )


def test_published_accuracies_are_those_of_the_paper() -> None:
    table = published_accuracies("tiered_imagenet", "tieredImageNet")
    assert table["hard"].tolist() == [24.3, 29.3, 31.4, 33.1, 41.6, 39.8, 44.1, 34.6]
    assert table["random"].tolist() == [42.01, 51.2, 56.7, 62.7, 68.8, 68.3, 67.7, 64.0]
    assert table["label"].tolist()[::4] == ["tieredImageNet, Q1", "Meta-Dataset, DINO ViT-B"]
    birds = published_accuracies("cu_birds", "CU Birds")
    assert birds["hard"].tolist()[:5] == [67.1, 67.9, 70.1, 69.3, 71.1] and birds["random"].isna().sum() == 5
    sentence, more = describe_published(birds, "CU Birds")
    assert sentence.startswith("Published: 67.1 to 71.1% accuracy with hard support sets on CU Birds (")
    assert "No accuracy with random supports" in more
    elsewhere = describe_published(published_accuracies("my_own", "Mine"), "Mine")[0]
    assert (
        elsewhere
        == "Published: hard support sets cost 23.6 to 29.4 points on Meta-Dataset (Basu et al. 2023, Figure 31)."
    )


def test_the_three_sets_share_classes_and_queries_and_nothing_leaks(shifted) -> None:
    result = find(SPEC)
    class_of = shifted.image_class_ids()
    for name in support_sets.SETS:
        tasks = result.tasks[name]
        assert (tasks.query == result.tasks["random"].query).all()
        assert (class_of[tasks.support] == tasks.class_ids[:, :, None]).all()
        for support, query in zip(tasks.support, tasks.query, strict=True):
            assert not set(support.ravel()) & set(query.ravel())


def test_the_search_finds_the_attribute_that_moves_features_and_not_the_other(shifted) -> None:
    result = find(SPEC)
    table = support_attributes.gap_table(result, shifted, by="class").set_index(["attribute", "set"])["gap"]
    assert table["context", "hard"] > table["context", "random"] + 0.1
    assert abs(table["noise", "hard"] - table["noise", "random"]) < 0.25
    gap = support_attributes.task_gap(result, shifted, "context")
    assert gap.shape == (60,)


def test_the_reason_is_the_attribute_that_costs_accuracy_and_never_the_noise(shifted) -> None:
    result = find(SPEC)
    explained = support_attributes.explain(result, shifted)
    costs = explained.costs.set_index("attribute")
    assert costs["significant"].to_dict() == {"context": True, "noise": False}
    assert costs.loc["context", "cost"] > costs.loc["context", "ci95"] > 0
    names = {reason.attribute for task in range(60) for reason in explained.reasons(task)}
    assert names == {"context"}
    assert explained.real[:, 0].mean() > 0.3  # and for random supports, chance will do
    explanation = support_attributes.explain(
        replace(result, tasks={**result.tasks, "hard": result.tasks["random"]}), shifted
    )
    assert explanation.real[:, 0].mean() < 0.15
    with_reason, without = (int(np.flatnonzero(explained.real[:, 0] == real)[0]) for real in (True, False))
    text = support_attributes.describe_effects(result, explained, with_reason)
    lost = 100 * (result.accuracy("random") - result.accuracy("hard"))[with_reason]
    assert lost > 20
    assert f"{explained.points[with_reason, 0]:.1f} of the {lost:.0f} points" in text
    assert support_attributes.describe_effects(result, explained, without).startswith("No attribute explains it")
    of_classes = support_attributes.class_differences(result, shifted, explained, with_reason, "hard")
    assert {d.attribute for d in of_classes if d is not None} <= {"context"} and len(of_classes) == 5
    assert support_attributes.points_of(result, explained, "easy").shape == (60, 2)


def test_coin_flips_of_real_images_never_become_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty columns of luck over real features: the hardest supports, and no reason for any of them."""
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    noise = make_noise(20)
    result = find({"dataset": "noise", "backbone": "real", "n_tasks": 60, "n_query": 5})
    explained = support_attributes.explain(result, noise)
    assert not explained.real.any() and (result.accuracy("hard") < result.accuracy("random")).any()
    assert 0 <= (explained.costs["p"] < 0.05).sum() <= 4  # one of twenty, three deviations up


def test_a_curated_shift_costs_accuracy_where_the_attribute_matters(shifted) -> None:
    table = attribute_shifts.shift_table({**SPEC, "n_shot": 3, "n_tasks": 80}).set_index("attribute")
    assert table.loc["context", "cost"] > 10
    assert table.loc["context", "cost"] - table.loc["context", "ci95"] > 0
    assert abs(table.loc["noise", "cost"]) < 5
    assert table["significant"].to_dict() == {"context": True, "noise": False}
    assert (table["problem"] == "").all()
    assert table["significant_alike"].to_dict() == {"context": True, "noise": False}
    assert table.loc["context", "cost_alike"] - table.loc["context", "ci95_alike"] > 0
    assert (table[["n_classes", "n_classes_alike"]] >= 5).all(axis=None)
    assert 0.2 < table.loc["context", "in_random"] < 0.9
    text = attribute_shifts.describe_shifts(table.reset_index())
    assert text.startswith(f"Context costs {table.loc['context', 'cost']:.1f} ± ")
    assert f"others, {table.loc['context', 'cost_alike']:.1f} ± " in text and "if all shift alike; random" in text
    assert attribute_shifts.describe_shifts(table.reset_index().assign(significant=False)).startswith("No shift")
    impossible = attribute_shifts.shift_table({**SPEC, "n_shot": 30}).set_index("attribute")
    assert "needs 5 classes" in impossible.loc["context", "problem"]
    assert np.isnan(impossible.loc["context", "cost"])


def test_shifts_of_coin_flips_cost_nothing_in_95_of_100_columns(tmp_path: Path, monkeypatch) -> None:
    """Intervals over tasks that share 400 images exclude zero for half of such columns."""
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    make_noise(120)
    table = attribute_shifts.shift_table({"dataset": "noise", "backbone": "real", "n_tasks": 60})
    assert (table["problem"] == "").all() and table["n_classes"].between(15, 20).all()
    inside = (table["cost"].abs() <= table["ci95"]).mean()
    assert 0.89 <= inside < 1  # 95 of 100, three deviations either way
    assert (table["p"] < 0.05).mean() == pytest.approx(1 - inside)
    assert table["significant"].sum() <= 1
    families = [holm(ten) for ten in table["p"].to_numpy().reshape(12, 10)]
    assert sum((family < 0.05).any() for family in families) <= 3  # ten columns may mislead in one time of twenty


def test_curated_pairs_are_saved_as_testbeds(shifted) -> None:
    assert attribute_shifts.attribute_groups(shifted, "noise") == ["low noise", "high noise"]
    pair = attribute_shifts.curated_tasks({**SPEC, "n_shot": 2}, "context", "sand")
    contexts = shifted.images["context"].to_numpy()
    assert (contexts[pair.with_shift.query] == "sand").all()
    assert (contexts[pair.with_shift.support] != "sand").all()
    saved = attribute_shifts.save_curated({**SPEC, "n_shot": 2}, "context", pair)
    assert sorted(saved) == sorted(list_testbeds())
    assert [load_testbed(name, shifted).recipe["shift"] for name in saved] == [False, True]


def test_steps_from_random_weights(shifted) -> None:
    spec = sweep.sweep(support_sets.STUDY, {**PAPER, "start": "random"}, "step", (0.01, 200.0, 5000.0))
    numbers = jobs.compute({"study": "sweep", **spec}).table
    table = numbers[numbers["name"] == "accuracy_hard"]
    random = support_sets.summary(find(PAPER))["accuracy"]
    assert abs(table["number"].iloc[0] - random["random"]) < 8
    assert table["number"].is_monotonic_decreasing
    assert abs(table["number"].iloc[2] - random["hard"]) < 8
    several = search_comparison.by_number_of_steps(SPEC, max_steps=2)
    assert several["n_steps"].tolist() == [0, 1, 2]
    assert several["accuracy"].iloc[1] == pytest.approx(random["hard"])


def test_a_finished_run_that_lost_a_chunk_computes_it_again(shifted) -> None:
    run = jobs.run_in_foreground(
        {"study": "support_sets", **SPEC, "n_tasks": 70, "search": "greedy", "n_way": 3, "n_shot": 1}
    )
    chunk = jobs.folder(run.id) / "chunks" / "000001.npz"
    content = chunk.read_bytes()
    chunk.write_bytes(content[:500])
    with pytest.raises(WorkspaceError, match=f"runs resume {run.id}' computes it again"):
        jobs.result(run.id)
    again = jobs.resume_here(run.id)
    assert again.summary == run.summary and chunk.read_bytes() == content


def test_coarsity_quartiles_and_close_classes(shifted) -> None:
    testbed = find({**SPEC, "sampler": "semantic", "alpha": 1.0})
    table = support_sets.coarsity_table(testbed)
    assert sorted(table["set"].unique()) == sorted(support_sets.SETS)
    assert table.groupby("set")["n_tasks"].sum().eq(60).all()
    uniform = find(SPEC).tasks["random"].measures["coarsity"]
    assert testbed.tasks["random"].measures["coarsity"].mean() < uniform.mean()


def test_variable_tasks(shifted) -> None:
    testbed = find({**SPEC, "sampler": "variable", "n_tasks": 30})
    ways = (testbed.tasks["hard"].class_ids != PAD).sum(axis=1)
    assert ways.min() >= 5
    assert len(set(ways)) > 2
    assert ((testbed.tasks["hard"].support == PAD) == (testbed.tasks["random"].support == PAD)).all()
    assert testbed.accuracy("hard").mean() < testbed.accuracy("random").mean()


def test_greedy_search_is_as_hard(shifted) -> None:
    spec = {**SPEC, "n_tasks": 12}
    greedy = support_sets.summary(find({**spec, "search": "greedy"}))["accuracy"]
    fast = support_sets.summary(find(spec))["accuracy"]
    assert greedy["hard"] < fast["random"] - 15
    assert greedy["easy"] > fast["random"]


def test_a_run_gives_what_the_study_gives_and_saves_its_testbed(shifted) -> None:
    run = jobs.run_in_foreground({"study": "support_sets", **SPEC})
    result = jobs.results(run.id)
    here = support_sets.summary(find(SPEC))
    assert result["accuracy"] == pytest.approx(here["accuracy"])
    assert list_testbeds() == [result["testbed"]]
    testbed = load_testbed(result["testbed"], shifted)
    collected = jobs.result(run.id)
    assert (testbed.tasks.support == collected.tasks["hard"].support).all()
    assert testbed.recipe["sampler"] == "hard_sets"
    assert testbed.recipe["backbone"] == "first"
    assert json.dumps(result)
    assert collected.cache_key == find(SPEC).cache_key  # neither a folder nor an id is part of a result
    assert jobs.find({"study": "support_sets", **SPEC, "objective": "easy"}).id == run.id
    assert jobs.find({"study": "support_sets", **SPEC, "seed": 1}) is None


def test_other_settings_have_other_names_and_nothing_is_replaced(shifted) -> None:
    changes = ({}, {"loss": "plain"}, {"search": "greedy"}, {"search": "fastdiffsel"})
    changes += tuple({"search": "fastdiffsel", **more} for more in ({"start": "random"}, {"n_steps": 2}))
    changes += ({"search": "fastdiffsel", "start": "random", "step": 5.0},)
    changes += ({"n_query": 4}, {"sampler": "semantic"}, {"sampler": "variable"}, {"seed": 1})
    values = {}
    for change in changes:
        sets = find({**SPEC, "n_tasks": 4, **change})
        values[support_sets.save_sets(sets)[0]] = sets
        assert support_sets.save_sets(sets)[0] in values  # the same again is the same testbed
    assert len(values) == len(changes) == len(list_testbeds())
    for name, sets in values.items():
        assert (load_testbed(name, shifted).tasks.support == sets.tasks["hard"].support).all()
    names = {support_sets.to_testbed(sets, "random").name for sets in values.values()}
    assert len(names) == 5  # random sets know nothing of the search


def test_the_command_finds_the_same_sets(shifted) -> None:
    for change in ({}, {"search": "greedy", "n_sweeps": 2}, {"sampler": "semantic", "alpha": 1 / 3, "loss": "plain"}):
        spec = support_sets.check({**SPEC, "seed": 3, **change})
        args = build_parser().parse_args(shlex.split(support_sets.command(spec))[1:])
        values = {
            name: getattr(args, name) for name in support_sets.SETTINGS.settings if getattr(args, name) is not None
        }
        assert support_sets.check({"dataset": args.dataset, "backbone": args.backbone, **values}) == spec


def test_sets_are_saved_and_exported_like_any_testbed(shifted, tmp_path: Path) -> None:
    result = find(SPEC)
    for which in support_sets.SETS:
        assert support_sets.save_sets(result, which)[0] in list_testbeds()
    path = tmp_path / "easy.csv"
    path.write_bytes(support_sets.export_sets(result, "easy", "csv"))
    back = load_testbed(path, shifted)
    assert (np.sort(back.tasks.support) == np.sort(result.tasks["easy"].support)).all()
    with pytest.raises(UnknownName, match="objective"):
        support_sets.to_testbed(result, "medium")


def test_difficulty_carries_over_to_another_backbone_and_other_methods(shifted) -> None:
    spec = {"dataset": "shifted", "sources": ["first"], "backbones": ["first", "second"], "n_tasks": 40, "n_query": 8}
    test = run_stress(spec)
    result = stress_test.summary(test)
    assert len(result["matrix"]) == 2 * 3
    for row in result["matrix"]:
        assert row["drop"] - row["drop_ci95"] > 5, row
        assert row["drop"] == pytest.approx(row["random"] - row["hard"])
    agreement = result["agreement"]
    assert [(e["source"], e["backbone"]) for e in agreement] == [("first", "second")]
    assert agreement[0]["accuracy"] > 0.6
    assert agreement[0]["loss"] > 0.6
    assert all(e["loss_accuracy"] > 0.6 for e in result["spearman"])
    recorded = jobs.results(jobs.run_in_foreground({"study": "stress_test", **spec}).id)
    assert recorded == result


@pytest.mark.parametrize("search", ["fastdiffsel", "greedy"])
def test_the_stress_test_searches_inside_its_run_the_same_sets_as_all_at_once(shifted, search, monkeypatch) -> None:
    monkeypatch.setitem(support_sets._CHUNK_IMAGES, "greedy", 4 * 3 * (2 + 4))
    spec = {"study": "stress_test", "dataset": "shifted", "sources": ["first", "second"], "backbones": ["second"]}
    spec |= {"n_tasks": 6, "n_way": 3, "n_shot": 2, "n_query": 4, "search": search, "adaptations": ["protonet"]}
    run = jobs.run_in_foreground(spec)
    settled = jobs.spec(run.id)
    n_searches = 2 * (2 if search == "greedy" else 1)  # greedy four tasks at a time
    assert run.n_chunks == n_searches + 3  # and random tasks, those of both sources
    assert stress_test.STUDY.describe(settled, 0).startswith("searching tasks hard for first: ")
    waiting = [first_needed(stress_test.parts(settled), index) for index in range(run.n_chunks)]
    assert waiting == [0] * n_searches + [n_searches] * 3  # the cells wait for the searches
    random = stress_test.hard_tasks(settled, "random")
    for source in spec["sources"]:
        base = {**stress_test._base(settled), "backbone": source}
        whole = support_sets.search(base, random, features.load(shifted, source), "hard", 0)
        assert (stress_test.hard_tasks(settled, source).support == whole.support).all()
        assert (stress_test.hard_tasks(settled, source, 3, 5).support == whole.support[3:5]).all()
    before = jobs.results(run.id)["matrix"]
    for row in before:
        where = row["source"], row["backbone"], row["adaptation"]
        tasks, *both = jobs.result(run.id).cell(*where)
        assert [100 * of.mean() for of in both] == pytest.approx([row["random"], row["hard"]])
        assert (tasks.support == stress_test.hard_tasks(settled, row["source"]).support).all()
    for path in (jobs.folder(run.id) / "inputs").glob("source*.npy"):
        path.unlink()  # lost, or never written because another machine searched: found again
    for path in (jobs.folder(run.id) / "chunks").iterdir():
        path.unlink()
    assert jobs.results(jobs.resume_here(run.id).id)["matrix"] == before
    half = stress_test.collect(settled, [stress_test.STUDY.chunk(settled, 0)])
    assert stress_test.summary(half)["matrix"] == [] and set(half.tasks) == {
        "random",
        "first",
    }  # nothing is classified while sets are searched


def test_a_stress_test_is_of_all_backbones_unless_some_are_named(shifted) -> None:
    spec = stress_test.check({"dataset": "shifted", "n_shot": 5})
    assert stress_test.check(spec) == spec and set(spec) == {"dataset", *stress_test.SETTINGS.settings}
    assert spec["backbones"] == ["first", "second"] and spec["sources"] == ["first"]
    assert stress_test.FULL not in spec["adaptations"]
    assert stress_test.check({"dataset": "shifted", "backbones": ["second"]})["sources"] == ["second"]
    with pytest.raises(UnknownName, match="setting of the stress test 'classifier'"):
        stress_test.check({**spec, "classifier": "tim"})
    greedy = {**spec, "search": "greedy"}
    quick = stress_test.shorten(greedy, 5)
    assert quick == {**spec, "search": "fastdiffsel", "n_tasks": quick["n_tasks"]}
    assert stress_test.shorten(greedy, 50) == {**greedy, "n_tasks": 50}
    assert (
        stress_test.shorten(spec, 50) == {**spec, "n_tasks": 50}
        and stress_test.shorten({**spec, "search": "fastdiffsel", "n_tasks": 9}, 3) is None
    )


def test_full_finetuning_is_a_cell_of_the_stress_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    make_shifted("pictures", backbones=("conv64f@random",), root=tmp_path / "images")
    spec = {
        "study": "stress_test",
        "dataset": "pictures",
        "sources": ["conv64f@random"],
        "backbones": ["conv64f@random"],
        "adaptations": ["protonet", "full_finetuning"],
        "n_tasks": 6,
        "n_way": 3,
        "n_shot": 2,
        "n_query": 4,
        "finetuning_tasks": 2,
        "finetuning_validation": 1,
        "finetuning_steps": 3,
        "finetuning_size": 24,
    }
    run = jobs.run_in_foreground(spec)
    result = jobs.results(run.id)
    rows = {row["adaptation"]: row for row in result["matrix"]}
    where = "conv64f@random", "conv64f@random", "full_finetuning"
    behind_it, _, hard = jobs.result(run.id).cell(*where)
    assert len(behind_it) == 2 and 100 * hard.mean() == pytest.approx(rows["full_finetuning"]["hard"])
    assert rows["full_finetuning"]["n_tasks"] == 2
    assert rows["full_finetuning"]["random"] > 40  # three classes of coloured squares; guessing gives 33
    selection = result["learning_rates"]["conv64f@random"]
    assert set(selection["accuracy"]) == {"0.0001", "0.001", "0.01"}
    assert selection["chosen"] in (1e-4, 1e-3, 1e-2)
    usual = {**stress_test.check(spec), "finetuning_steps": 50, "finetuning_size": 128}
    assert stress_test.work(usual).seconds > 100  # too long for a page to wait for
    assert "full_finetuning" not in stress_test.shorten(stress_test.check(spec), 0)["adaptations"]
    tasks = support_sets.draw_tasks(
        stress_test._base(stress_test.check(spec)),
        datasets.load("pictures"),
        {"conv64f@random": features.load(datasets.load("pictures"), "conv64f@random")},
    )
    with pytest.raises(NotFinite, match=r"Full fine-tuning .* task 7\. .*diverged at learning rate 1e\+30"):
        stress_test.finetuned(stress_test.check(spec), "conv64f@random", tasks, 1e30, 0, first=7)


def test_bad_input_is_named(shifted) -> None:
    for change, words in (
        ({"n_shot": 0}, "n_shot must be a whole number"),
        ({"sampler": "nice"}, "Unknown sampler"),
        ({"n_shot": 40}, "images with features"),
        ({"n_way": 50}, "n_way"),
        ({"step": -1.0}, "step must be a number from"),
        ({"shots": 3}, "Unknown setting of the search for hard supports 'shots'"),
        ({"backbone": "third"}, "has no third features"),
        ({"classifier": "svm"}, "Unknown classifier"),
    ):
        with pytest.raises(FsvizError, match=words):
            find({**SPEC, **change})
    with pytest.raises(BadInput, match="sources must be a list of names"):
        stress_test.check({"dataset": "shifted", "sources": "first"})
    with pytest.raises(UnknownName, match="adaptation"):
        stress_test.check({"dataset": "shifted", "sources": ["first"], "backbones": ["first"], "adaptations": ["svm"]})
    with pytest.raises(Missing, match="needs images"):
        full = {"dataset": "shifted", "sources": ["first"], "backbones": ["first"], "adaptations": ["full_finetuning"]}
        jobs.run_in_foreground({"study": "stress_test", **full})


def test_a_dataset_without_attributes_is_still_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    toy = make_toy()
    result = find({"dataset": "toy", "backbone": "alpha_net", "n_tasks": 10})
    assert support_attributes.explain(result, toy) is None
    assert support_attributes.class_differences(result, toy, None, 0, "hard") == [None] * 5
    with pytest.raises(Missing, match="has no attributes"):
        support_attributes.gap_table(result, toy)


@pytest.fixture(scope="module")
def demo():
    dataset = datasets.load("demo")
    if "efficientnet_lite0" not in features.available(dataset):
        pytest.fail("the demo's features are not in data/demo: make them with scripts/demo")
    return dataset


def test_demo_order_of_accuracies(demo) -> None:
    result = find({"dataset": "demo", "backbone": "efficientnet_lite0"})
    accuracy = support_sets.summary(result)["accuracy"]
    assert accuracy["hard"] < accuracy["random"] - 15
    assert accuracy["random"] < accuracy["easy"]


def test_demo_attributes_that_move_its_features_are_found_with_their_intervals(demo) -> None:
    spec = {"dataset": "demo", "backbone": "efficientnet_lite0", "n_tasks": 100}
    table = attribute_shifts.shift_table(spec, ["context", "scale", "blur", "occlusion", "x"]).set_index("attribute")
    assert table["significant"].to_dict() == {
        "context": True,
        "scale": True,
        "blur": True,
        "occlusion": True,
        "x": False,
    }
    gaps = support_attributes.gap_table(find(spec), demo).set_index(["attribute", "set"])
    for name in ("context", "scale", "blur", "occlusion"):
        assert gaps.loc[(name, "hard"), "significant"], name
        assert abs(gaps.loc[(name, "random"), "gap"] - gaps.loc[(name, "random"), "chance"]) < 0.05


def test_demo_hard_sets_stay_hard_for_other_methods_and_backbones(demo) -> None:
    expected = features.available(demo)[:2]
    result = stress_test.summary(
        run_stress({"dataset": "demo", "sources": expected[:1], "backbones": expected, "n_tasks": 50})
    )
    for row in result["matrix"]:
        assert row["drop"] - row["drop_ci95"] > 3, row


def test_random_starts_are_the_same_in_a_run_and_in_one_process(shifted) -> None:
    spec = {**PAPER, "start": "random", "step": 1.0}
    run = jobs.run_in_foreground({"study": "support_sets", **spec})
    collected = jobs.result(run.id)
    here = find(spec)
    for name in support_sets.SETS:
        assert (here.tasks[name].support == collected.tasks[name].support).all()


def test_supports_are_searched_among_images_that_every_backbone_has(shifted) -> None:
    whole = features.load(shifted, "second")
    saved = np.random.default_rng(0).random(len(whole.image_ids)) < 0.8  # some images could not be read
    values, ids, class_ids = (np.asarray(a)[saved] for a in (whole.values, whole.image_ids, whole.class_ids))
    store.remove(whole.key, "second")
    store.save(dict(whole.key), "second", values, ids, class_ids)
    assert len(features.load(shifted, "second").image_ids) == saved.sum()
    spec = {"dataset": "shifted", "sources": ["first"], "backbones": ["first", "second"], "n_tasks": 20, "n_query": 5}
    result = stress_test.summary(run_stress({**spec, "adaptations": ["protonet"]}))
    assert [row["n_tasks"] for row in result["matrix"]] == [20, 20]


def test_the_papers_plain_distance_is_an_option_of_both_searches(shifted) -> None:
    spec = support_sets.check({**SPEC, "n_tasks": 10, "loss": "plain"})
    tasks, table = support_sets.sample_tasks(spec)
    for search, direct in (("fastdiffsel", select_supports), ("greedy", greedy_supports)):
        sets = support_sets.search({**spec, "search": search}, tasks, table, "hard", 0).support
        assert (sets == direct(table, tasks, "hard", SearchOptions(scale=1.0)).support).all()
        scaled = support_sets.search({**spec, "search": search, "loss": "euclidean"}, tasks, table, "hard", 0).support
        assert (np.sort(sets) != np.sort(scaled)).any()


def test_everything_that_takes_seconds_says_how_far_it_is(shifted) -> None:
    spec = {**SPEC, "n_tasks": 10}
    calls = {
        "find": lambda spec, progress: find({**spec, "search": "greedy"}, progress),
        "shift": lambda spec, progress: attribute_shifts.shift_table(spec, ["noise", "context"], progress),
        "steps": lambda spec, progress: search_comparison.by_number_of_steps(spec, 2, progress),
    }
    for name, call in calls.items():
        reports: list[tuple[int, int, str]] = []
        call(spec, progress=lambda *now, reports=reports: reports.append(now))
        assert len(reports) >= 2, name
        assert all(0 <= done <= total and message for done, total, message in reports), name


def test_the_accuracy_search_goes_beyond_the_others_and_the_letter_of_the_paper_does_not(demo) -> None:
    spec = {"dataset": "demo", "backbone": "efficientnet_lite0", "n_tasks": 60}
    accuracy = {
        search: support_sets.summary(find({**spec, "search": search}))["accuracy"]
        for search in ("accuracy", "fastdiffsel", "literal")
    }
    assert support_sets.SEARCH.default == "accuracy"
    assert accuracy["accuracy"]["hard"] < accuracy["fastdiffsel"]["hard"] - 5
    assert accuracy["accuracy"]["easy"] > accuracy["fastdiffsel"]["easy"] + 5
    # projected before the choice, most weights are zero and the choice among them is no choice
    assert accuracy["literal"]["hard"] > accuracy["fastdiffsel"]["hard"] + 10
    assert len({a["random"] for a in accuracy.values()}) == 1


def test_easy_sets_of_photographs_are_easier_than_random_ones(tmp_path: Path, monkeypatch) -> None:
    """FastDiffSel, which moves the query loss, hardly changes the accuracy of its easy sets here."""
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    sets = find({"dataset": "fruit", "backbone": "efficientnet_lite0", "n_tasks": 60})
    numbers = support_sets.summary(sets)["accuracy"]
    fast = support_sets.summary(find({**sets.spec, "search": "fastdiffsel"}))["accuracy"]
    assert numbers["hard"] < fast["hard"] - 5 and fast["random"] == numbers["random"]
    assert numbers["easy"] > numbers["random"] + 5 and numbers["easy"] > fast["easy"] + 3
    for name, sign in (("hard", -1), ("easy", 1)):
        assert (sign * (sets.accuracy(name) - sets.accuracy("random")) >= 0).mean() > 0.95


def test_plain_easy_sets_are_harder_than_random_ones_unless_accuracy_is_searched(demo) -> None:
    spec = {
        "dataset": "demo",
        "backbone": "efficientnet_lite0",
        "n_tasks": 60,
        "loss": "plain",
        "search": "fastdiffsel",
    }
    step = support_sets.summary(find(spec))["accuracy"]
    by_accuracy = support_sets.summary(find({**spec, "search": "accuracy"}))["accuracy"]
    assert step["easy"] < step["random"] < by_accuracy["easy"]
