"""How far, and how often, must the selection weights move?"""

from __future__ import annotations

import streamlit as st

from fsviz.difficulty.objectives import OBJECTIVES, RANDOM, SUPPORT_SETS
from fsviz.figures import search_comparison as figures
from fsviz.records import Dataset
from fsviz.studies import search_comparison
from fsviz.studies import support_sets as study
from fsviz.studies.support_sets import SupportSets
from fsviz.ui.pages.hard_supports import task_table
from fsviz.ui.parts import access, drilldown, shell
from fsviz.ui.parts.caching import cached_call, compute_with_progress
from fsviz.ui.parts.run_panel import half_width
from fsviz.ui.parts.shell import escape


def show(dataset: Dataset, found: SupportSets) -> None:
    st.subheader("How far must the selection weights move?", anchor=False)
    changes = {"n_steps": 1, "start": "ones", "search": "fastdiffsel", "step": 200.0}
    spec = {**found.spec, **changes, "n_tasks": int(min(len(found), 100, access.limit("sweep")))}
    chosen = st.select_slider(
        "Step size",
        study.STEP_SIZES,
        value=200.0,
        key="look_at_step",
        bind="query-params",
        format_func=lambda s: f"{s:g}",
    )
    table = compute_with_progress(search_comparison.by_step_size, spec, "Trying step sizes")
    numbers = cached_call(study.summary, task_table.search(spec))
    equal, half = numbers["accuracy"], numbers["ci95"]
    at = table[table["step"] == chosen].set_index("objective")
    columns = st.columns(len(SUPPORT_SETS))
    for column, (name, kind) in zip(columns, SUPPORT_SETS.items(), strict=True):
        if name in OBJECTIVES:
            reached, around = at.loc[name, "accuracy"], at.loc[name, "ci95"]
            column.metric(f"{kind.title} supports at step {chosen:g}", f"{reached:.1f}{half_width(around)}%")
        else:
            text = f"{equal[name]:.1f}{half_width(half[name])}%"
            column.metric(f"{kind.title} supports", text, help="Of the same tasks.")
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
    shell.command_popover(study.command({**spec, "search": "fastdiffsel"}, "steps"))
