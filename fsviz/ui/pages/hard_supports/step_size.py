"""Section Step size: accuracy by the size and by the number of gradient steps of FastDiffSel."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from fsviz.difficulty.objectives import OBJECTIVES, RANDOM, SUPPORT_SETS
from fsviz.figures import search_comparison as figures
from fsviz.records import Dataset, HeadlineNumber
from fsviz.studies import search_comparison, sweep
from fsviz.studies import support_sets as study
from fsviz.studies.support_sets import SupportSets
from fsviz.ui.pages.hard_supports import task_table
from fsviz.ui.parts import access, drilldown, shell
from fsviz.ui.parts.answers import answer
from fsviz.ui.parts.caching import cached_call, compute_with_progress
from fsviz.ui.parts.headline import show_numbers
from fsviz.ui.parts.shell import escape


def show(dataset: Dataset, sets: SupportSets) -> None:
    changes = {"n_steps": 1, "start": "ones", "search": "fastdiffsel", "step": 200.0}
    spec = {**sets.spec, **changes, "n_tasks": int(min(len(sets), 100, access.limit("sweep")))}
    _step_sizes(dataset, spec)
    _numbers_of_steps(dataset, spec)
    fixed = (study.SEARCH.name, study.N_SWEEPS.name)  # the command has no such flags
    shell.command_popover(study.command({name: spec[name] for name in spec if name not in fixed}, "steps"))


def _table(result: sweep.SweepResult) -> pd.DataFrame:
    """Accuracy of the sets of every objective by step size: columns objective, step, accuracy, ci95."""
    rows = []
    for objective in OBJECTIVES:
        for step, sets in result.results:
            numbers = cached_call(study.summary, sets)
            rows.append((objective, step, numbers["accuracy"][objective], numbers["ci95"][objective]))
    return pd.DataFrame(rows, columns=["objective", "step", "accuracy", "ci95"])


def _step_sizes(dataset: Dataset, spec: dict[str, Any]) -> None:
    st.subheader("Step size", anchor=False)
    selected = st.select_slider(
        "Step size",
        study.STEP_SIZES,
        value=200.0,
        key="look_at_step",
        bind="query-params",
        format_func=lambda s: f"{s:g}",
    )
    swept = sweep.sweep(study.STUDY, {**spec, "start": "random"}, study.STEP.name)
    result = answer(sweep.STUDY, swept, "Computing step sizes", starts=True)
    if result is None:
        return
    table = _table(result)
    spec = {**spec, "n_tasks": len(result.results[0][1])}
    numbers = cached_call(study.summary, task_table.search(spec))
    equal, half_width = numbers["accuracy"], numbers["ci95"]
    at = table[table["step"] == selected].set_index("objective")
    accuracies = []
    for name, kind in SUPPORT_SETS.items():
        is_stepped = name in OBJECTIVES
        mean, interval = at.loc[name, ["accuracy", "ci95"]] if is_stepped else (equal[name], half_width[name])
        title = f"{kind.title} supports at step {selected:g}" if is_stepped else f"{kind.title} supports"
        text = "" if is_stepped else "The same tasks, equal initial weights."
        accuracies.append(HeadlineNumber.around(f"accuracy_{name}", title, mean, interval, help=text))
    show_numbers(accuracies, "at_step")
    reference = {RANDOM.name: equal[RANDOM.name]} | {f"{name}, equal start": equal[name] for name in OBJECTIVES}
    stepped = drilldown.chart(
        "Step size",
        figures.plot_step_sizes(table, reference, selected),
        key="step_sizes",
        name="step_of",
        texts=[figures.selection_of(f"{step:g}", which) for step in study.STEP_SIZES for which in OBJECTIVES],
    )
    st.caption(
        f"{spec['n_tasks']:,} tasks, one step from random initial weights. Small steps leave the random order, large "
        "ones follow the gradient. Dotted: equal initial weights. Click a point to list its tasks.",
        help="Each image of the pool has a selection weight; a gradient step moves it, and the heaviest images become "
        "the support set. From equal weights a step of any size selects the same images. 95% CI over tasks.",
    )
    if stepped:
        size, which = figures.parse_selection(stepped)
        objective = OBJECTIVES[which]
        heading = f"{objective.title} supports after one step of {float(size):g}, {objective.superlative} first"
        drilldown.heading(heading, "step_of")
        task_table.of_search(dataset, {**spec, "start": "random", "step": float(size)}, "step_task", which)


def _numbers_of_steps(dataset: Dataset, spec: dict[str, Any]) -> None:
    st.subheader("Number of steps", anchor=False)
    several = compute_with_progress(search_comparison.by_number_of_steps, spec, "Computing numbers of steps")
    after = drilldown.chart(
        "Number of steps",
        figures.plot_number_of_steps(several),
        key="n_steps_plot",
        name="steps_of",
        texts=[f"{n:g}" for n in several["n_steps"] if n],
    )
    st.caption(
        f"Hard supports of the same {spec['n_tasks']:,} tasks, from equal initial weights. "
        f"{escape(search_comparison.describe_steps(several))} Click a point to list its tasks.",
        help="The steps raise the loss of the weighted prototypes, which are means of all pool images by their weights "
        "(appendix K of the paper). The selected images have a loss of their own. 95% CI over tasks.",
    )
    if after:
        steps = f"{escape(after)} gradient step{'s' * (after != '1')}"
        drilldown.heading(f"Hard supports after {steps}, hardest first", "steps_of")
        task_table.of_search(dataset, {**spec, "n_steps": int(after)}, "steps_task")
