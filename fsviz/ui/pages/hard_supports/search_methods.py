"""Section Search methods: do slower searches find harder sets, and how rare are random tasks this hard?"""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from fsviz.difficulty import measures
from fsviz.difficulty.objectives import OBJECTIVES
from fsviz.figures import search_comparison as figures
from fsviz.records import Dataset
from fsviz.settings import N_WAY
from fsviz.studies import evaluate, search_comparison
from fsviz.studies import support_sets as study
from fsviz.studies.support_sets import SupportSets
from fsviz.tasks import draw
from fsviz.ui.pages.hard_supports import task_table
from fsviz.ui.parts import access, drilldown, shell
from fsviz.ui.parts.answers import answer
from fsviz.ui.parts.caching import compute_with_progress
from fsviz.ui.parts.controls import pick
from fsviz.ui.parts.shell import escape

N_GREEDY_TASKS = 10  # tasks of greedy search that are listed
SECONDS = 2.0  # for classifying random tasks by default


def show(dataset: Dataset, sets: SupportSets) -> None:
    _comparison(dataset, sets)
    _rarity(dataset, sets)


# --- all searches ------------------------------------------------------------------------------------------------


def _comparison(dataset: Dataset, sets: SupportSets) -> None:
    st.subheader("Search methods compared", anchor=False)
    spec = search_comparison.check(search_comparison.SETTINGS.pick({**sets.spec, "n_tasks": len(sets)}))
    result = answer(search_comparison.STUDY, spec, "Running every search", start="Run on all tasks", starts=True)
    if result is not None:
        _show_comparison(dataset, sets, result, spec)
    shell.command_popover(study.command(spec, "searches"))


def _preview_note(result: search_comparison.SearchSummary, spec: search_comparison.SearchSpec) -> str:
    """A sentence on what only a run shows; "" if the result is complete."""
    missing = set(spec["searches"]) - {row["search"] for row in result["rows"]}
    if result["n_tasks"] == spec["n_tasks"] and not missing:
        return ""
    return f" Preview: a run uses all {spec['n_tasks']:,} tasks{' and greedy search' if missing else ''}."


def _show_comparison(
    dataset: Dataset, sets: SupportSets, result: search_comparison.SearchSummary, spec: search_comparison.SearchSpec
) -> None:
    selected = drilldown.chart(
        "Searches compared",
        figures.plot_searches(result["rows"], study.SEARCH.choices),
        key="compared",
        name="search_of",
        texts=[
            figures.selection_of(row["search"], row["objective"]) for row in result["rows"] if row["search"] != "random"
        ],
    )
    st.caption(
        f"{result['n_tasks']:,} tasks, the same for all searches. "
        f"{escape(search_comparison.describe_comparison(result['rows']))}{_preview_note(result, spec)} "
        "Click a point to list its tasks.",
        help="95% CI over tasks; differences from FastDiffSel are paired by task. Time on this machine is the mean of "
        f"both objectives, in batches of up to {min(result['n_tasks'], search_comparison.MAX_AT_ONCE):,} tasks "
        "(greedy: one by one). "
        "The paper (figures 2 and 6): FastDiffSel is about as hard as greedy, at least 20 times as fast.",
    )
    if selected:
        search, which = figures.parse_selection(selected)
        objective = OBJECTIVES[which]
        n_tasks = min(len(sets), N_GREEDY_TASKS if search == "greedy" else study.PREVIEW)
        by = escape(study.search_title(search))
        drilldown.heading(f"{objective.title} supports by {by}, {objective.superlative} first", "search_of")
        task_table.of_search(dataset, {**sets.spec, "search": search, "n_tasks": n_tasks}, "search_task", which)


# --- random tasks as hard --------------------------------------------------------------------------------------------


def _rarity(dataset: Dataset, sets: SupportSets) -> None:
    st.subheader("How rare are tasks this hard?", anchor=False)
    spec: dict[str, Any] = {**sets.spec, "n_tasks": min(len(sets), study.PREVIEW)}
    if spec["search"] == "greedy":
        spec["search"] = "fastdiffsel"
    setting, images = search_comparison.N_RANDOM, draw.max_images(spec)
    max_tasks = min(access.limit("tasks"), access.limit("images") // images, setting.stops[-1])
    if max_tasks < setting.low:
        access.within_limits(int(setting.low), setting.low * images)  # says why not
        return
    seconds = evaluate.guess_seconds(dataset, spec["backbone"], spec["classifier"], {}, sets.tasks["random"])
    quick = [n for n in setting.stops if n <= min(max_tasks, setting.default, SECONDS * len(sets) / seconds)]
    n_random = int(max(quick, default=min(max_tasks, setting.stops[0])))
    if max_tasks > setting.stops[0]:
        n_random = pick(setting.with_(high=max_tasks, default=n_random), st.columns([2, 3])[0])
    result = compute_with_progress(
        search_comparison.filtered_tasks, {**spec, "n_random": n_random}, "Classifying random tasks"
    )
    means, second = result.means, result.second
    axis = N_WAY.title if second == N_WAY.name else measures.title(second)
    cells = [f"random@{value:g}" for value in result.curve["accuracy"]]
    selected = drilldown.chart(
        "Random tasks as hard as searched ones",
        figures.plot_filtered(result.curve, means, result.as_hard.at_most, second, axis.lower()),
        key="filtered",
        name="filtered_of",
        texts=[*cells, *result.sets],
        about=f"{task_table.about(sets)} {n_random}",
    )
    n_kept, n_searched = (int(means.set_index("kind").loc[kind, "n_tasks"]) for kind in ("filtered", "searched"))
    st.caption(
        f"{n_random:,} random tasks, the {n_kept:,} hardest of them (2%), and {n_searched:,} with hard supports by "
        f"{escape(study.search_title(spec['search']))}. {escape(search_comparison.describe_rarity(result))} Click a "
        "point to list its tasks.",
        help="95% CI over tasks. Keeping one random task in 50 follows appendix Q of the paper.",
    )
    if selected:
        kind, _, limit = selected.partition("@")
        accuracy = result.accuracy(kind)
        order = np.argsort(accuracy, kind="stable")
        order = order[accuracy[order] <= float(limit) + 1e-6] if limit else order
        which = f"{escape(figures.KINDS[kind])}{f', accuracy up to {float(limit):.0f}%' if limit else ''}"
        drilldown.heading(f"{len(order):,} tasks: {which}", "filtered_of")
        notes = {int(t): f"{accuracy[t]:.0f}% correct" for t in order}
        drilldown.tasks(
            dataset, result.sets[kind], order, notes, f"{task_table.about(sets)} {selected}", "filtered_task"
        )
    own = search_comparison.N_RANDOM.to_args(n_random)
    shell.command_popover(study.command(spec, "filtered", own))
