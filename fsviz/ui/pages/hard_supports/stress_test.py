"""Section Other classifiers: do tasks that are hard for one backbone and classifier transfer to others?"""

from __future__ import annotations

import numpy as np
import streamlit as st
from plotly.graph_objects import Figure

from fsviz import features, jobs
from fsviz.features.backbones import title_of
from fsviz.figures import support_sets as figures
from fsviz.records import Dataset
from fsviz.studies import stress_test
from fsviz.studies import support_sets as study
from fsviz.studies.stress_test import StressTest
from fsviz.studies.support_sets import SupportSets
from fsviz.text import code
from fsviz.ui.pages.hard_supports import distribution, task_table, tasks
from fsviz.ui.parts import access, controls, drilldown, export, run_panel
from fsviz.ui.parts.answers import answer, recorded
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.shell import errors_on_page, escape

SCATTER = "loss_accuracy"
FULL_MATRIX = "Points lost with full fine-tuning"
MAX_TASKS = 60  # of every cell
QUICK_FINETUNING = {"finetuning_tasks": 5, "finetuning_steps": 20, "finetuning_size": 96}  # minutes on a CPU


def show(dataset: Dataset, sets: SupportSets) -> None:
    available = features.available(dataset)
    st.subheader("Do hard tasks transfer to other classifiers?", anchor=False)
    left, right = st.columns([3, 2], gap="large")
    with left:
        backbones = st.multiselect(
            "Backbones",
            available,
            default=available[:4],
            key=f"stress_{dataset.name}",
            format_func=title_of,
            **controls.BY_TYPING,
            help="Only backbones that have features.",
        )
    choices = {k: v for k, v in stress_test.ADAPTATIONS.items() if k != stress_test.FULL}
    with right:
        adaptations = st.multiselect(
            "Classifiers",
            list(choices),
            default=list(choices),
            key="stress_adaptations",
            format_func=choices.__getitem__,
            **controls.BY_TYPING,
            help="ProtoNet: class means. Finetune: a linear layer trained on the support. TIM: also uses "
            "unlabelled queries.",
        )
    if not backbones or not adaptations:
        st.info("Choose at least one backbone and one classifier.", icon="👆")
        return
    source = backbones[0]
    if len(backbones) > 1:
        source = st.segmented_control(
            "Searched with",
            backbones,
            default=backbones[0],
            key=f"stress_source_{len(backbones)}_{dataset.name}",
            required=True,
            format_func=_backbone,
        )
    cells = {"sources": [str(source)], "backbones": backbones, "adaptations": adaptations}
    spec = stress_test.check(
        stress_test.SETTINGS.pick({**sets.spec, "n_tasks": min(sets.spec["n_tasks"], MAX_TASKS), **cells})
    )
    test = answer(
        stress_test.STUDY, spec, "Classifying hard and random tasks", _so_far, "Run the stress test", starts=True
    )
    if test is not None:
        if test.spec["search"] != spec["search"]:
            quick, requested = (escape(study.search_title(of["search"])) for of in (test.spec, spec))
            st.caption(f"The preview uses {quick}, which is faster than {requested}.")
        _matrix(dataset, test, str(source))
    if len(available) == 1:
        st.caption(
            f"Only {_backbone(available[0])} has features of {escape(dataset.title)}. Add another backbone, for "
            f"example with {code(f'fsviz extract {dataset.name} --backbone conv64f')}."
        )
    with st.expander("Query loss vs accuracy"):
        losses = {name: sets.loss(name) for name in study.SETS}
        accuracies = {name: sets.accuracy(name) for name in study.SETS}
        export.chart(
            "Query loss vs accuracy",
            figures.plot_loss_accuracy(losses, accuracies),
            key=SCATTER,
            sets=task_table.TASK,
        )
        st.caption(
            "The search raises the query loss, not the error itself."
            + distribution.correlation(sets, " Rank correlation of accuracy with low loss: ")
            + " Click a point to show its task."
        )
    if (task := task_table.selected_task(sets)) is not None:
        tasks.one_task(dataset, sets, task, task_table.explained(sets, dataset))
    if dataset.has_pixels:
        _full_finetuning(dataset, spec)


def _matrix(dataset: Dataset, test: StressTest, source: str) -> None:
    result = cached_call(stress_test.summary, test)
    selected = _cells(
        "Points lost by backbone and classifier", result["matrix"], source, f"stress_{source}", "stress_cell"
    )
    agreement = [e for e in result["agreement"] if e["source"] == source and e["accuracy"] is not None]
    text = " ".join(
        f"{_backbone(e['backbone'])}: accuracy {_correlation(e['accuracy'], e['accuracy_ci95'], e['accuracy_over'])}"
        + (
            f", low query loss {_correlation(e['loss'], e['loss_ci95'], e['loss_over'])}"
            if e["loss"] is not None
            else ""
        )
        + "."
        for e in agreement
    )
    st.caption(
        f"Points lost, random → hard, over {result['n_tasks']:,} tasks searched with {_backbone(source)} and ProtoNet. "
        "Losses in other rows and columns: the images are hard, not just one classifier. Click a cell to list its "
        "tasks.",
        help="95% CI over tasks, paired by task."
        + (
            f" Rank correlation of other backbones with {_backbone(source)} over random and hard tasks. {text}"
            if text
            else ""
        ),
    )
    if selected:
        _tasks_of_cell(dataset, test, source, selected, "stress_cell", "stress_task")


def _cells(title: str, matrix: list[stress_test.StressRow], source: str, key: str, name: str) -> str:
    """Draws the matrix; returns the clicked cell, "" for none."""
    return drilldown.chart(
        title,
        _figure(matrix, source),
        key=key,
        name=name,
        texts=[f"{row['backbone']} {row['adaptation']}" for row in matrix if row["source"] == source],
        about=source,
    )


def _tasks_of_cell(dataset: Dataset, test: StressTest, source: str, cell: str, name: str, task: str) -> None:
    """The tasks of a cell, largest loss first, with the predictions of its classifier."""
    backbone, adaptation = cell.rsplit(" ", 1)
    drilldown.heading(
        f"Tasks of {_backbone(backbone)}, {stress_test.ADAPTATIONS[adaptation]}, largest loss first", name
    )
    tasks_of_cell, *both = test.cell(source, backbone, adaptation)
    random, hard = (100 * accuracy for accuracy in both)
    words = "Classifying the queries of these tasks"
    predictions = cached_call(stress_test.predictions_of, test, source, backbone, adaptation, words=words)
    drilldown.tasks(dataset, tasks_of_cell, *_by_loss(random, hard), f"{test.cache_key} {cell}", task, predictions)


def _by_loss(random: np.ndarray, hard: np.ndarray) -> tuple[np.ndarray, dict[int, str]]:
    """Tasks in the order of their loss in accuracy, the largest first, and a note on each."""
    order = np.argsort(hard - random, kind="stable")
    return order, {int(t): f"{random[t]:.0f}% correct with random, {hard[t]:.0f}% with hard supports" for t in order}


def _backbone(name: str) -> str:
    return escape(title_of(name))


def _correlation(value: float, interval: list[float], over: str) -> str:
    return escape(study.describe_correlation(value, interval, over))


def _so_far(summary: stress_test.StressSummary) -> None:
    if summary.get("matrix"):
        source = summary["matrix"][0]["source"]
        export.chart("Points lost so far", _figure(summary["matrix"], source), key="stress_so_far")


def _figure(matrix: list[stress_test.StressRow], source: str) -> Figure:
    titles = {name: title_of(name) for row in matrix for name in (row["backbone"], row["source"])}
    return figures.plot_stress(matrix, stress_test.ADAPTATIONS, source, titles)


def _full_finetuning(dataset: Dataset, spec: stress_test.StressSpec) -> None:
    """The slow adaptation, as a background run."""
    rates = ", ".join(f"{rate:g}" for rate in stress_test.LEARNING_RATES)
    with st.expander("Full fine-tuning (slow)"):
        st.markdown(
            "Trains all weights of the backbone on the augmented support images of each task, with a learning rate "
            f"chosen on validation tasks from {rates}. About a minute per task on a CPU."
        )
        columns = st.columns(4, vertical_alignment="bottom")
        trainable = [b for b in spec["backbones"] if "@" not in b.removesuffix("@random")]
        if not trainable:
            st.info("Full fine-tuning needs a backbone that can be loaded by its name. Choose another backbone.")
            return
        backbone = columns[0].selectbox("Backbone", trainable, key="full_backbone", format_func=title_of)
        finetuning = {
            name: controls.pick(stress_test.FINETUNING[name].with_(default=default), column)
            for (name, default), column in zip(QUICK_FINETUNING.items(), columns[1:], strict=True)
        }
        cells = {"sources": [backbone], "backbones": [backbone], "adaptations": ["protonet", stress_test.FULL]}
        full_spec = {"study": stress_test.STUDY.name, **stress_test.check({**spec, **cells, **finetuning})}
        run = jobs.find(full_spec)
        if run is None:
            access.show_denied("run")
            if access.can("run") and st.button("Run", icon="▶️", type="primary"):
                access.do("run", jobs.submit, full_spec)
                st.rerun()
        else:
            _live_stress(dataset, run.id, backbone)


@st.fragment(run_every=2.0)
@errors_on_page()
def _live_stress(dataset: Dataset, run_id: str, source: str) -> None:
    run = jobs.status(run_id)
    if run.active:
        run_panel.show_parts_done(run)
        if access.can("run") and st.button("Cancel", key=f"cancel_{run_id}", icon="⏹️"):
            access.do("run", jobs.cancel, run_id)
            st.rerun(scope="fragment")
    elif run.state != "finished":
        st.warning(f"The run is {escape(run.state)}: {escape(run.error or run.message)}.", icon="⚠️")
        if run.resumable and access.can("run") and st.button("Resume", key=f"resume_{run_id}", icon="▶️"):
            access.do("run", jobs.resume, run_id)
            st.rerun(scope="fragment")
    if run.state == "finished":
        _matrix_of_run(dataset, recorded(run.id, dataset.name), source, run_id)
    elif run.summary and run.summary.get("matrix"):
        export.chart(FULL_MATRIX, _figure(run.summary["matrix"], source), key=f"full_{run_id}")
        st.caption(f"Finished tasks only. {_describe_rates(run.summary)}")


def _matrix_of_run(dataset: Dataset, test: StressTest, source: str, run_id: str) -> None:
    """The matrix with the fine-tuned backbone; a click on a cell lists its tasks."""
    result = cached_call(stress_test.summary, test)
    selected = _cells(FULL_MATRIX, result["matrix"], source, f"full_{run_id}", "full_cell")
    st.caption(f"{_describe_rates(result)} Click a cell to list its tasks.")
    if selected:
        _tasks_of_cell(dataset, test, source, selected, "full_cell", "full_task")


def _describe_rates(result: stress_test.StressSummary) -> str:
    rates = result.get("learning_rates", {})
    text = "; ".join(f"{_backbone(name)}: {entry['chosen']:g}" for name, entry in rates.items())
    return f"Learning rate chosen on validation tasks: {text or 'not yet'}."
