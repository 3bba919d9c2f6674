"""Does a slower search find harder sets, and would drawing many random tasks do without any search?"""

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

FEW = 10  # tasks of greedy search that are shown one by one
SECONDS = 5.0  # that random tasks may take to classify before fewer are drawn at first


def show(dataset: Dataset, found: SupportSets) -> None:
    _side_by_side(dataset, found)
    _filtered(dataset, found)


# --- all searches ------------------------------------------------------------------------------------------------


def _side_by_side(dataset: Dataset, found: SupportSets) -> None:
    st.subheader("Does a slower search find harder sets?", anchor=False)
    spec = search_comparison.check(search_comparison.SETTINGS.pick({**found.spec, "n_tasks": len(found)}))
    result = answer(search_comparison.STUDY, spec, "Searching with every search", start="Compare on all tasks")
    if result is not None:
        _compared(dataset, found, result, spec)
    shell.command_popover(study.command(spec, "searches"))


def _first_look(result: search_comparison.Summary, spec: search_comparison.Spec) -> str:
    """Says that a run takes more than what is shown; "" if this is everything."""
    left_out = set(spec["searches"]) - {row["search"] for row in result["rows"]}
    if result["n_tasks"] == spec["n_tasks"] and not left_out:
        return ""
    slow = ", and greedy search, which would take too long here" if left_out else ""
    return f" This is a first look: a run takes all tasks{slow}."


def _compared(
    dataset: Dataset, found: SupportSets, result: search_comparison.Summary, spec: search_comparison.Spec
) -> None:
    chosen = drilldown.chart(
        "Searches compared",
        figures.plot_searches(result["rows"], study.SEARCH.choices),
        key="compared",
        name="search_of",
        texts=[
            figures.selection_of(row["search"], row["objective"]) for row in result["rows"] if row["search"] != "random"
        ],
    )
    st.caption(
        f"{result['n_tasks']:,} tasks, the same for all searches, with the loss and the start of the sidebar; means "
        "with 95% intervals over tasks of these images, differences to greedy search task by task. Times are by the "
        "clock of this machine, a mean of both ends; all but greedy search take up to "
        f"{min(result['n_tasks'], search_comparison.MOST):,} tasks at once, and the more, the less time per task. "
        f"{escape(search_comparison.compared_in_words(result['rows']))}{_first_look(result, spec)} The paper "
        "(figures 2 and 6) finds sets about as hard as greedy's, at least 20 times as fast. "
        "Click a point for the tasks of its search."
    )
    if chosen:
        search, which = figures.parse_selection(chosen)
        objective = OBJECTIVES[which]
        n_tasks = min(len(found), FEW if search == "greedy" else study.PREVIEW)
        by = escape(study.SEARCH.choices[search])
        drilldown.heading(f"{objective.title} supports by {by}, the {objective.superlative} first", "search_of")
        task_table.of_search(dataset, {**found.spec, "search": search, "n_tasks": n_tasks}, "search_task", which)


# --- no search at all --------------------------------------------------------------------------------------------


def _filtered(dataset: Dataset, found: SupportSets) -> None:
    st.subheader("How many random tasks must be drawn to find one as hard?", anchor=False)
    spec: dict[str, Any] = {**found.spec, "n_tasks": min(len(found), study.PREVIEW)}
    if spec["search"] == "greedy":
        spec["search"] = "fastdiffsel"
    setting, images = search_comparison.N_RANDOM, draw.max_images(spec)
    most = min(access.limit("tasks"), access.limit("images") // images, setting.stops[-1])
    if most < setting.low:
        access.within_limits(int(setting.low), setting.low * images)  # says why not
        return
    seconds = evaluate.guess_seconds(dataset, spec["backbone"], spec["classifier"], {}, found.tasks["random"])
    quick = [n for n in setting.stops if n <= min(most, setting.default, SECONDS * len(found) / seconds)]
    n_random = int(max(quick, default=min(most, setting.stops[0])))
    if most > setting.stops[0]:
        n_random = pick(setting.with_(high=most, default=n_random), st.columns([2, 3])[0])
    filtered = compute_with_progress(
        search_comparison.filtered_tasks, {**spec, "n_random": n_random}, "Filtering random tasks"
    )
    means, second = filtered.means, filtered.second
    axis = N_WAY.title if second == N_WAY.name else measures.title(second)
    cells = [f"random@{value:g}" for value in filtered.curve["accuracy"]]
    chosen = drilldown.chart(
        "Filtering instead of searching",
        figures.plot_filtered(filtered.curve, means, filtered.as_hard.at_most, second, axis.lower()),
        key="filtered",
        name="filtered_of",
        texts=[*cells, *filtered.sets],
        about=f"{task_table.about(found)} {n_random}",
    )
    kept, searched = (int(means.set_index("kind").loc[kind, "n_tasks"]) for kind in ("filtered", "searched"))
    st.caption(
        f"{n_random:,} random tasks, the {kept:,} hardest of them (one in fifty, as in appendix Q of the paper), and "
        f"{searched:,} of them with the hard supports of {study.SEARCH.choices[spec['search']]}; 95% intervals over "
        f"tasks of these images. {escape(search_comparison.filtered_in_words(filtered))} Click a point for its tasks."
    )
    if chosen:
        kind, _, limit = chosen.partition("@")
        accuracy = filtered.accuracy(kind)
        order = np.argsort(accuracy, kind="stable")
        order = order[accuracy[order] <= float(limit) + 1e-6] if limit else order
        told = f"{escape(figures.KINDS[kind])}{f' with an accuracy of {float(limit):.0f}% or less' if limit else ''}"
        drilldown.heading(f"{len(order):,} tasks: {told}", "filtered_of")
        notes = {int(t): f"{accuracy[t]:.0f}% right" for t in order}
        drilldown.tasks(
            dataset, filtered.sets[kind], order, notes, f"{task_table.about(found)} {chosen}", "filtered_task"
        )
    own = search_comparison.N_RANDOM.to_args(n_random)
    shell.command_popover(study.command(spec, "filtered", own))
