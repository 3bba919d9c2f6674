"""How far, and how often, must the selection weights move?"""

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


def show(dataset: Dataset, found: SupportSets) -> None:
    changes = {"n_steps": 1, "start": "ones", "search": "fastdiffsel", "step": 200.0}
    spec = {**found.spec, **changes, "n_tasks": int(min(len(found), 100, access.limit("sweep")))}
    _step_sizes(dataset, spec)
    _numbers_of_steps(dataset, spec)
    shell.command_popover(study.command({**spec, "search": "fastdiffsel"}, "steps"))


def _table(result: sweep.SweepResult) -> pd.DataFrame:
    """Accuracy of the sets of every objective by step size: columns objective, step, accuracy, ci95."""
    rows = []
    for objective in OBJECTIVES:
        for step, sets in result.results:
            numbers = cached_call(study.summary, sets)
            rows.append((objective, step, numbers["accuracy"][objective], numbers["ci95"][objective]))
    return pd.DataFrame(rows, columns=["objective", "step", "accuracy", "ci95"])


def _step_sizes(dataset: Dataset, spec: dict[str, Any]) -> None:
    st.subheader("How far must the selection weights move?", anchor=False)
    chosen = st.select_slider(
        "Step size",
        study.STEP_SIZES,
        value=200.0,
        key="look_at_step",
        bind="query-params",
        format_func=lambda s: f"{s:g}",
    )
    asked = sweep.sweep(study.STUDY, {**spec, "start": "random"}, study.STEP.name)
    result = answer(sweep.STUDY, asked, "Trying step sizes")
    if result is None:
        return
    table = _table(result)
    spec = {**spec, "n_tasks": len(result.results[0][1])}
    numbers = cached_call(study.summary, task_table.search(spec))
    equal, half = numbers["accuracy"], numbers["ci95"]
    at = table[table["step"] == chosen].set_index("objective")
    accuracies = []
    for name, kind in SUPPORT_SETS.items():
        is_stepped = name in OBJECTIVES
        mean, around = at.loc[name, ["accuracy", "ci95"]] if is_stepped else (equal[name], half[name])
        title = f"{kind.title} supports at step {chosen:g}" if is_stepped else f"{kind.title} supports"
        text = "" if is_stepped else "Of the same tasks."
        accuracies.append(HeadlineNumber.around(f"accuracy_{name}", title, mean, around, help=text))
    show_numbers(accuracies, "at_step")
    reference = {RANDOM.name: equal[RANDOM.name]} | {f"{name}, equal start": equal[name] for name in OBJECTIVES}
    stepped = drilldown.chart(
        "Step size",
        figures.plot_step_sizes(table, reference, chosen),
        key="step_sizes",
        name="step_of",
        texts=[figures.selection_of(f"{step:g}", which) for step in study.STEP_SIZES for which in OBJECTIVES],
    )
    st.caption(
        f"{spec['n_tasks']:,} tasks. Every pool image has a selection weight that starts random; one gradient "
        "step moves it, and the heaviest images become the support set. A tiny step keeps the random order, so "
        "accuracy is that of random supports; a large one follows the gradient alone. Dotted: from equal "
        "weights, where any step picks the same images and no step size is needed (the default here). Means with 95% "
        "intervals over tasks of these images. Click a point for its tasks."
    )
    if stepped:
        size, which = figures.parse_selection(stepped)
        objective = OBJECTIVES[which]
        heading = f"{objective.title} supports after one step of {float(size):g}, the {objective.superlative} first"
        drilldown.heading(heading, "step_of")
        task_table.of_search(dataset, {**spec, "start": "random", "step": float(size)}, "step_task", which)


def _numbers_of_steps(dataset: Dataset, spec: dict[str, Any]) -> None:
    st.subheader("And how often?", anchor=False)
    several = compute_with_progress(search_comparison.by_number_of_steps, spec, "Trying numbers of steps")
    after = drilldown.chart(
        "Number of steps",
        figures.plot_number_of_steps(several),
        key="n_steps_plot",
        name="steps_of",
        texts=[f"{n:g}" for n in several["n_steps"] if n],
    )
    st.caption(
        f"Hard supports of the same {spec['n_tasks']:,} tasks after one step and more, from equal weights; means "
        "with 95% intervals over tasks of these images. The steps climb the loss of the weighted prototypes: means "
        "of all pool images, by their weights (appendix K of the paper). The images that are then selected have a loss "
        f"of their own. {escape(search_comparison.steps_in_words(several))} The paper finds the hardest tasks after "
        "one step, and gives as the reason that the weights are sparse once projected. Click a point for its tasks."
    )
    if after:
        told = f"{escape(after)} gradient step{'s' * (after != '1')}"
        drilldown.heading(f"Hard supports after {told}, the hardest first", "steps_of")
        task_table.of_search(dataset, {**spec, "n_steps": int(after)}, "steps_task")
