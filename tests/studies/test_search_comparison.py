"""Searches side by side, step by step and against filtering; queries of chosen values, then searched."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fsviz import jobs
from fsviz.analyses import attribute_shifts
from fsviz.cli import build_parser
from fsviz.difficulty.fastdiffsel import support_loss
from fsviz.errors import BadInput, Missing, UnknownName, WorkspaceError
from fsviz.studies import chunk_data, search_comparison, stress_test, support_sets
from tests.studies.shifted_dataset import make_shifted
from tests.studies.toy_dataset import make_toy

SPEC = {"dataset": "shifted", "backbone": "first", "n_tasks": 12, "n_query": 8}


@pytest.fixture
def shifted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    return make_shifted()


def find(spec: dict) -> support_sets.SupportSets:
    return jobs.compute({"study": "support_sets", **spec})


# --- side by side ------------------------------------------------------------------------------------------------


def test_every_search_has_both_ends_and_what_the_study_of_it_finds(shifted) -> None:
    reports: list[tuple[int, int, str]] = []
    spec = {**SPEC, "n_tasks": 6}
    result = jobs.compute({"study": "search_comparison", **spec}, lambda *now: reports.append(now))
    rows = {(row["search"], row["objective"]): row for row in result["rows"]}
    assert set(rows) == {("random", "random")} | {(s, o) for s in support_sets.SEARCH.choices for o in ("hard", "easy")}
    for search in support_sets.SEARCH.choices:
        alone = support_sets.summary(find({**spec, "search": search}))
        for objective in ("hard", "easy"):
            assert rows[search, objective]["accuracy"] == pytest.approx(alone["accuracy"][objective])
            assert rows[search, objective]["ci95"] == pytest.approx(alone["ci95"][objective])
            assert rows[search, objective]["seconds"] > 0
    assert rows["random", "random"]["accuracy"] == pytest.approx(alone["accuracy"]["random"])
    assert rows["random", "random"]["seconds"] is None
    for objective, sign in (("hard", 1), ("easy", -1)):  # gain: harder, or easier, than FastDiffSel
        for search in ("accuracy", "literal", "greedy"):
            gap = rows["fastdiffsel", objective]["accuracy"] - rows[search, objective]["accuracy"]
            assert rows[search, objective]["gain"] == pytest.approx(sign * gap)
        assert rows["fastdiffsel", objective]["gain"] is None
    assert reports[-1][0] == reports[-1][1] == len(reports) and all(message for *_, message in reports)


def test_the_comparison_runs_as_a_job_with_the_same_accuracies(shifted) -> None:
    spec = {"study": "search_comparison", **SPEC, "searches": ["greedy", "fastdiffsel"]}
    run = jobs.run_in_foreground(spec)
    assert run.n_chunks == 1 + 2 + 2 * 3  # random, FastDiffSel at both ends, greedy five tasks at a time
    here = jobs.compute(spec | {"searches": ["fastdiffsel", "greedy"]})
    assert [row["accuracy"] for row in jobs.results(run.id)["rows"]] == [row["accuracy"] for row in here["rows"]]
    with pytest.raises(UnknownName, match="search"):
        search_comparison.check({**SPEC, "searches": ["quick"]})
    assert jobs.find({**spec, "searches": ["fastdiffsel", "greedy"]}).id == run.id  # in any order
    assert jobs.find({**spec, "searches": []}) is None and jobs.result(run.id) == jobs.results(run.id)


def test_a_spec_has_the_settings_of_a_search_but_which_one(shifted) -> None:
    spec = search_comparison.check({"dataset": "shifted", "backbone": "first"})
    assert search_comparison.check(spec) == spec and set(spec) == {
        "dataset",
        "backbone",
        *search_comparison.SETTINGS.settings,
    }
    assert spec["n_tasks"] == 200 and spec["searches"] == list(support_sets.SEARCH.choices)
    with pytest.raises(UnknownName, match="setting of the comparison of searches 'search'"):
        search_comparison.check({**spec, "search": "greedy"})


def test_a_preview_of_all_searches_leaves_out_greedy_if_it_takes_too_long(shifted) -> None:
    spec = search_comparison.check({**SPEC, "n_tasks": 500})
    assert [part.n_chunks for part in search_comparison.parts(spec)] == [5] * 7 + [100] * 2
    assert search_comparison.shorten(spec, 140) == {**spec, "n_tasks": 140}
    quick = search_comparison.shorten(spec, 2)
    assert "greedy" not in quick["searches"] and len(quick["searches"]) == 3 and 10 <= quick["n_tasks"] < 500
    assert search_comparison.work(quick).seconds / quick["n_tasks"] < search_comparison.work(spec).seconds / 500
    assert search_comparison.shorten({**spec, "n_tasks": 8}, 9) is None


def test_studies_that_write_numbers_alone_know_how_much_and_ask_for_room(small_disk, monkeypatch) -> None:
    small_disk.mount("4m")
    monkeypatch.setenv("FSVIZ_HOME", str(small_disk.path))
    make_shifted()
    specs = (
        {"study": "search_comparison", **SPEC, "searches": ["fastdiffsel"]},
        {"study": "stress_test", "dataset": "shifted", "sources": ["first"], "backbones": ["first"], "n_tasks": 12},
    )
    for spec, module in zip(specs, (search_comparison, stress_test), strict=True):
        run = jobs.run_in_foreground(spec)
        chunks = jobs.folder(run.id) / "chunks"
        written = sum(path.stat().st_size for path in chunks.iterdir())
        assert written <= module.n_bytes({**run.spec, "folder": str(chunks.parent)}) <= 4 * written
        shutil.rmtree(chunks)
        small_disk.fill(leave=4096)
        with pytest.raises(WorkspaceError, match=r"The results of this run need .* Run fsviz clean"):
            jobs.resume_here(run.id)
        small_disk.empty()
        assert jobs.resume_here(run.id).state == "finished"


def rows(greedy: float, gain: float, half: float) -> list[dict]:
    base = {"ci95": 1.0, "n_tasks": 10, "gain": None, "gain_ci95": None, "objective": "hard"}
    return [
        {**base, "search": "random", "objective": "random", "accuracy": 80.0, "seconds": None},
        {**base, "search": "fastdiffsel", "accuracy": greedy + gain, "seconds": 0.002},
        {**base, "search": "greedy", "accuracy": greedy, "gain": gain, "gain_ci95": half, "seconds": 0.1},
    ]


def test_the_comparison_in_words() -> None:
    describe = search_comparison.describe_comparison
    assert describe(rows(50.0, 3.0, 1.0)) == (
        "Points harder than FastDiffSel: greedy +3.0 ± 1.0. Greedy takes 50 times as long."
    )
    assert "greedy +0.5 ± 1.0 (not significant; about 82 tasks would tell)." in describe(rows(50.0, 0.5, 1.0))
    assert "greedy +0.0 ± 1.0 (not significant)." in describe(rows(50.0, 0.0, 1.0))
    assert "greedy -2.0 ± 1.0." in describe(rows(50.0, -2.0, 1.0))
    assert "Greedy: hard sets are no harder than random ones." in describe(rows(81.0, -9.0, 1.0))
    alone = [{**row, "gain": None} for row in rows(50.0, 3.0, 1.0) if row["search"] != "greedy"]
    assert describe(alone) == ""


def test_the_tasks_that_would_tell_two_searches_apart_do_so_in_four_of_five_comparisons() -> None:
    rng = np.random.default_rng(0)
    difference, deviation, n = 1.0, 6.0, 25
    needed = search_comparison.tasks_needed(difference, 1.96 * deviation / np.sqrt(n), n)
    trials = rng.normal(difference, deviation, (4000, needed))
    half = 1.96 * trials.std(axis=1, ddof=1) / np.sqrt(needed)
    assert np.mean(trials.mean(axis=1) > half) == pytest.approx(0.8, abs=0.03)
    assert search_comparison.tasks_needed(1e-9, 1.0, n) is None


# --- step by step ------------------------------------------------------------------------------------------------


def test_losses_step_by_step(shifted) -> None:
    table = search_comparison.by_number_of_steps(SPEC, max_steps=3).set_index("n_steps")
    assert table.index.tolist() == [0, 1, 2, 3]
    assert table["weighted"].iloc[0] < table["weighted"].iloc[1]  # what a step climbs
    assert table.loc[0].drop(["weighted", "weighted_ci95"]).isna().all()
    assert table.loc[1, "change"] == 0
    result = find({**SPEC, "search": "fastdiffsel"})
    features = chunk_data.features_of("shifted", "first")
    assert table.loc[1, "selected"] == pytest.approx(support_loss(features, result.tasks["hard"]).mean())
    assert table.loc[1, "accuracy"] == pytest.approx(100 * result.accuracy("hard").mean())
    assert support_loss(features, result.tasks["hard"]).mean() > support_loss(features, result.tasks["random"]).mean()


def steps(change: list[float], half: float, weighted: list[float]) -> pd.DataFrame:
    n = len(change)
    after = pd.DataFrame({"n_steps": range(1, n + 1), "change": change, "change_ci95": [0.0] + [half] * (n - 1)})
    after = after.assign(accuracy=50 + after["change"], selected=2 - after["change"] / 100)
    return pd.concat([pd.DataFrame({"n_steps": [0]}), after]).assign(weighted=weighted)


def test_what_more_steps_do_is_read_off_the_table() -> None:
    paper = search_comparison.describe_steps(steps([0, 3, 4], 1.0, [1, 2, 1.5, 1.2]))
    assert paper == (
        "One step finds harder sets than more, as in the paper: with two, accuracy changes by +3.0 ± 1.0 points. Loss "
        "of the weighted prototypes: highest after 1 step; of the selected sets: after 1 step; accuracy is lowest "
        "after 1 step."
    )
    second = search_comparison.describe_steps(steps([0, -2, -4], 1.0, [1, 2, 3, 2.5]))
    assert second.startswith("3 steps find harder sets than one (-4.0 ± 1.0 points).")
    assert "highest after 2 steps" in second and "lowest after 3 steps" in second
    # of six tries one is beyond its own interval by luck
    luck = search_comparison.describe_steps(steps([0, 0.2, -1.1, 0.3, -0.1, 0.2, 0.4], 1.0, [1, 2, 2, 2, 2, 2, 2, 2]))
    assert luck.startswith("No number of steps finds significantly harder sets than one.")


# --- filtered ----------------------------------------------------------------------------------------------------


def test_filtering_keeps_the_hardest_and_counts_what_is_as_hard(shifted) -> None:
    sets = search_comparison.filtered_tasks({**SPEC, "n_random": 300})
    by = dict(tuple(sets.tasks.groupby("kind")))
    assert {kind: len(part) for kind, part in by.items()} == {"random": 300, "filtered": 6, "searched": 12}
    assert sorted(by["filtered"]["accuracy"]) == sorted(by["random"]["accuracy"])[:6]
    assert sets.as_hard.at_most == pytest.approx(by["searched"]["accuracy"].mean())
    assert sets.as_hard.n_found == (by["random"]["accuracy"] <= sets.as_hard.at_most).sum()
    assert sets.second == "coarsity" and set(sets.means["kind"]) == set(by)
    assert f"of {300:,}" in search_comparison.describe_rarity(sets)
    variable = search_comparison.filtered_tasks({**SPEC, "n_random": 100, "sampler": "variable"})
    assert variable.second == "n_way" and "classes, searched ones" in search_comparison.describe_rarity(variable)
    with pytest.raises(BadInput, match="n_random"):
        search_comparison.filtered_tasks({**SPEC, "n_random": 3})


def test_filtering_in_words_without_a_task_as_hard() -> None:
    from fsviz.difficulty.rarity import rarity

    tasks = pd.DataFrame({"kind": ["random", "filtered", "searched"], "accuracy": [80.0, 70.0, 30.0], "n_way": 5})
    sets = search_comparison.RarityResult(tasks, pd.DataFrame(), rarity(np.full(100, 80.0), 30.0))
    assert search_comparison.describe_rarity(sets) == (
        "Searched supports give 30.0% accuracy. None of 100 random tasks is as hard (95% CI at most 1 in 28)."
    )


# --- queries of chosen values ------------------------------------------------------------------------------------


def test_restricted_queries_have_the_value_and_supports_come_from_all_images(shifted) -> None:
    spec = {**SPEC, "n_tasks": 60, "attribute": "context", "values": ["sand"]}
    result = attribute_shifts.restricted_sets(spec)
    contexts = shifted.images["context"].to_numpy()
    assert (contexts[result.tasks["random"].query] == "sand").all()
    assert {"attribute": "context", "values": ["sand"]}.items() <= result.spec.items()  # no other tasks pass for these
    shares = attribute_shifts.share_table(result, shifted, "context").set_index(["set", "value"])["share"]
    assert shares["query"].to_dict() == {"sand": 100.0, "snow": 0.0, "water": 0.0}
    for name in support_sets.SETS:
        assert shares[name].sum() == pytest.approx(100)
        by_hand = 100 * (contexts[result.tasks[name].support] == "sand").mean()
        assert shares[name]["sand"] == pytest.approx(by_hand)
        assert not any(np.isin(s, q).any() for s, q in zip(result.tasks[name].support, result.tasks[name].query))
    shared = attribute_shifts.shared_values(result, shifted, "context", ["sand"])
    assert shared["share"] == pytest.approx({name: shares[name]["sand"] for name in support_sets.SETS})
    assert shares["hard"]["sand"] < shares["random"]["sand"] < shares["easy"]["sand"]
    assert "Hard supports avoid these values, easy ones prefer them" in attribute_shifts.describe_shared(shared)
    accuracy = support_sets.summary(result)["accuracy"]
    assert accuracy["hard"] < accuracy["random"] < accuracy["easy"]


def test_what_has_nothing_to_do_with_the_images_is_neither_sought_nor_avoided(shifted) -> None:
    spec = {**SPEC, "n_tasks": 60, "attribute": "noise", "values": ["low noise", "high noise"]}
    result = attribute_shifts.restricted_sets(spec)
    low, high = np.quantile(shifted.images["noise"], [1 / 3, 2 / 3])
    values = shifted.images["noise"].to_numpy()[result.tasks["random"].query]
    assert ((values <= low) | (values >= high)).all()
    text = attribute_shifts.describe_shared(attribute_shifts.shared_values(result, shifted, "noise", spec["values"]))
    assert "No significant difference from random supports" in text


def test_fewer_queries_where_images_are_few_and_a_sentence_where_there_are_none(shifted, tmp_path: Path) -> None:
    spec = {**SPEC, "attribute": "context", "values": ["sand"]}
    assert attribute_shifts.restricted_sets({**spec, "n_query": 30}).spec["n_query"] == 5
    with pytest.raises(BadInput, match=r"need 5 classes with 1 such images and 45 more .* Lower n_query, n_shot"):
        attribute_shifts.restricted_sets({**spec, "n_shot": 45})
    with pytest.raises(UnknownName, match="value of context"):
        attribute_shifts.restricted_sets({**spec, "values": ["moon"]})
    with pytest.raises(BadInput, match="at least one value"):
        attribute_shifts.restricted_sets({**spec, "values": []})
    make_toy()
    with pytest.raises(Missing, match="has no attributes"):
        attribute_shifts.restricted_sets({"dataset": "toy", "backbone": "alpha_net", "attribute": "x", "values": ["y"]})


def test_commands_ask_the_same_of_the_same_tasks(shifted) -> None:
    spec = search_comparison.check({**SPEC, "n_sweeps": 2, "loss": "plain"})
    args = build_parser().parse_args(shlex.split(support_sets.command(spec, "searches"))[1:])
    values = {s.name: getattr(args, s.name) for s in args.settings if getattr(args, s.name) is not None}
    assert values == {"n_sweeps": 2, "loss": "plain"} and args.n_tasks == 12
    spec = support_sets.check({**SPEC, "search": "greedy"})
    own = {"filtered": ["--n-random", "500"], "restricted": ["--attribute", "a b", "--value", "c"], "steps": []}
    for name, more in own.items():
        settings = {k: v for k, v in spec.items() if k != "search"} if name == "steps" else spec
        args = build_parser().parse_args(shlex.split(support_sets.command(settings, name, more))[1:])
        assert args.command == name and args.dataset == "shifted"
    assert build_parser().parse_args(["filtered", "demo", "--n-random", "500"]).n_random == 500
