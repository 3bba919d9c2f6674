"""Is a task that is hard for one backbone and classifier hard for others?"""

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
FULL_MATRIX = "Stress test with finetuned backbones"
MOST = 60  # tasks of every cell
AT_FIRST = {
    "finetuning_tasks": 5,
    "finetuning_steps": 20,
    "finetuning_size": 96,
}  # of full finetuning: a few minutes on a processor


def show(dataset: Dataset, found: SupportSets) -> None:
    known = features.available(dataset)
    st.subheader("Is a task that is hard for one classifier hard for all?", anchor=False)
    quick, full = st.columns([3, 2], gap="large")
    with quick:
        backbones = st.multiselect(
            "Backbones",
            known,
            default=known[:4],
            key=f"stress_{dataset.name}",
            format_func=title_of,
            **controls.BY_TYPING,
            help="Only backbones that have features.",
        )
    offered = {k: v for k, v in stress_test.ADAPTATIONS.items() if k != stress_test.FULL}
    with full:
        adaptations = st.multiselect(
            "Adaptations",
            list(offered),
            default=list(offered),
            key="stress_adaptations",
            format_func=offered.__getitem__,
            **controls.BY_TYPING,
            help="How the classifier learns a task from its support images: means of the classes (ProtoNet), a "
            "linear layer trained on them (Finetune), or one that also looks at the unlabelled queries (TIM).",
        )
    if not backbones or not adaptations:
        st.info("Choose at least one backbone and one adaptation.", icon="👆")
        return
    source = backbones[0]
    if len(backbones) > 1:
        source = st.segmented_control(
            "Hard sets searched with",
            backbones,
            default=backbones[0],
            key=f"stress_source_{len(backbones)}_{dataset.name}",
            required=True,
            format_func=_backbone,
        )
    asked = {"sources": [str(source)], "backbones": backbones, "adaptations": adaptations}
    spec = stress_test.check(
        stress_test.SETTINGS.pick({**found.spec, "n_tasks": min(found.spec["n_tasks"], MOST), **asked})
    )
    test = answer(stress_test.STUDY, spec, "Stress test", _so_far, start="Start the stress test")
    if test is not None:
        if test.spec["search"] != spec["search"]:
            shown, wanted = (study.SEARCH.choices[of["search"]] for of in (test.spec, spec))
            st.caption(f"The preview shows tasks that {shown} finds, which is faster than {wanted}.")
        _matrix(dataset, test, str(source))
    if len(known) == 1:
        st.caption(
            f"Only {_backbone(known[0])} has features of {escape(dataset.title)}. For a second row extract another "
            f"backbone, for example with {code(f'fsviz extract {dataset.name} --backbone conv64f')}."
        )
    with st.expander("Does the query loss tell how hard a task is?"):
        sets = {name: found.loss(name) for name in study.SETS}
        accuracies = {name: found.accuracy(name) for name in study.SETS}
        export.chart(
            "Query loss against accuracy",
            figures.plot_loss_accuracy(sets, accuracies),
            key=SCATTER,
            sets=task_table.TASK,
        )
        st.caption(
            "The search raises the query loss, not the error itself. Each point is a task: click one to see it below."
            + distribution.correlation(found, " Rank correlation of accuracy with low loss (1 is perfect): ")
        )
    if (task := task_table.chosen_task(found)) is not None:
        tasks.one_task(dataset, found, task, task_table.explained(found, dataset))
    if dataset.has_pixels:
        _full_finetuning(dataset, spec)


def _matrix(dataset: Dataset, test: StressTest, source: str) -> None:
    result = cached_call(stress_test.summary, test)
    chosen = _cells("Stress test", result["matrix"], source, f"stress_{source}", "stress_cell")
    others = [e for e in result["agreement"] if e["source"] == source and e["accuracy"] is not None]
    words = " ".join(
        f"Over random and hard tasks, the accuracies of {_backbone(e['backbone'])} follow those of {_backbone(source)} "
        f"with a rank correlation of {_words(e['accuracy'], e['accuracy_ci95'], e['accuracy_over'])}"
        + (
            f"; its accuracy follows {_backbone(source)}'s query loss with "
            + _words(e["loss"], e["loss_ci95"], e["loss_over"])
            if e["loss"] is not None
            else ""
        )
        + "."
        for e in others
    )
    st.caption(
        f"Points lost from random to hard support sets that were searched with {_backbone(source)} and prototypes, and "
        f"both accuracies in percent; {result['n_tasks']:,} tasks, paired 95% intervals over tasks of these images. "
        "A loss in the other rows and columns means that the difficulty is in the images, not only in one classifier. "
        f"{words} Click a cell for its tasks."
    )
    if chosen:
        _behind_cell(dataset, test, source, chosen, "stress_cell", "stress_task")


def _cells(title: str, matrix: list[stress_test.Row], source: str, key: str, name: str) -> str:
    """The matrix; the cell that is looked at, "" for none."""
    return drilldown.chart(
        title,
        _figure(matrix, source),
        key=key,
        name=name,
        texts=[f"{row['backbone']} {row['adaptation']}" for row in matrix if row["source"] == source],
        about=source,
    )


def _behind_cell(dataset: Dataset, test: StressTest, source: str, cell: str, name: str, task: str) -> None:
    """The tasks of a cell, those that lose most first, with what its classifier says of their queries."""
    backbone, adaptation = cell.rsplit(" ", 1)
    drilldown.heading(f"Tasks of {_backbone(backbone)}, {stress_test.ADAPTATIONS[adaptation]}, most lost first", name)
    tasks_of_cell, *both = test.cell(source, backbone, adaptation)
    random, hard = (100 * accuracy for accuracy in both)
    words = "Answering the queries of these tasks"
    said = cached_call(stress_test.answers_of, test, source, backbone, adaptation, words=words)
    drilldown.tasks(dataset, tasks_of_cell, *_most_lost(random, hard), f"{test.cache_key} {cell}", task, said)


def _most_lost(random: np.ndarray, hard: np.ndarray) -> tuple[np.ndarray, dict[int, str]]:
    """Tasks in the order of what they lose, the most first, and what is said of each."""
    order = np.argsort(hard - random, kind="stable")
    return order, {int(t): f"{random[t]:.0f}% right with random, {hard[t]:.0f}% with hard supports" for t in order}


def _backbone(name: str) -> str:
    return escape(title_of(name))


def _words(value: float, interval: list[float], over: str) -> str:
    return escape(study.correlation_in_words(value, interval, over))


def _so_far(summary: stress_test.Summary) -> None:
    if summary.get("matrix"):
        source = summary["matrix"][0]["source"]
        export.chart("Stress test so far", _figure(summary["matrix"], source), key="stress_so_far")


def _figure(matrix: list[stress_test.Row], source: str) -> Figure:
    titles = {name: title_of(name) for row in matrix for name in (row["backbone"], row["source"])}
    return figures.plot_stress(matrix, stress_test.ADAPTATIONS, source, titles)


def _full_finetuning(dataset: Dataset, spec: stress_test.Spec) -> None:
    """The slow adaptation, as a background run."""
    rates = ", ".join(f"{rate:g}" for rate in stress_test.LEARNING_RATES)
    with st.expander("Also finetune the whole backbone on every task (slow, runs in the background)"):
        st.markdown(
            "All weights of the backbone are trained on the augmented support images of each task, with a learning "
            f"rate chosen on validation tasks from {rates}. On a processor this takes about a minute per task."
        )
        columns = st.columns(4, vertical_alignment="bottom")
        trainable = [b for b in spec["backbones"] if "@" not in b.removesuffix("@random")]
        if not trainable:
            st.info("None of the chosen backbones can be loaded by its name alone, which full finetuning needs.")
            return
        backbone = columns[0].selectbox("Backbone", trainable, key="full_backbone", format_func=title_of)
        finetuning = {
            name: controls.pick(stress_test.FINETUNING[name].with_(default=default), column)
            for (name, default), column in zip(AT_FIRST.items(), columns[1:], strict=True)
        }
        asked = {"sources": [backbone], "backbones": [backbone], "adaptations": ["protonet", stress_test.FULL]}
        wanted = {"study": stress_test.STUDY.name, **stress_test.check({**spec, **asked, **finetuning})}
        run = jobs.find(wanted)
        if run is None:
            access.show_denied("run")
            if access.can("run") and st.button("Start", icon="▶️", type="primary"):
                access.do("run", jobs.submit, wanted)
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
        if run.resumable and access.can("run") and st.button("Go on", key=f"resume_{run_id}", icon="▶️"):
            access.do("run", jobs.resume, run_id)
            st.rerun(scope="fragment")
    if run.state == "finished":
        _matrix_of_run(dataset, recorded(run.id, dataset.name), source, run_id)
    elif run.summary and run.summary.get("matrix"):
        export.chart(FULL_MATRIX, _figure(run.summary["matrix"], source), key=f"full_{run_id}")
        st.caption(f"{_rates_in_words(run.summary)} The finished part of the tasks counts.")


def _matrix_of_run(dataset: Dataset, test: StressTest, source: str, run_id: str) -> None:
    """The matrix with the finetuned backbone; its cells lead to their tasks."""
    result = cached_call(stress_test.summary, test)
    chosen = _cells(FULL_MATRIX, result["matrix"], source, f"full_{run_id}", "full_cell")
    st.caption(f"{_rates_in_words(result)} Click a cell for its tasks.")
    if chosen:
        _behind_cell(dataset, test, source, chosen, "full_cell", "full_task")


def _rates_in_words(result: stress_test.Summary) -> str:
    rates = result.get("learning_rates", {})
    told = "; ".join(f"{_backbone(name)}: {entry['chosen']:g}" for name, entry in rates.items())
    return f"Learning rate chosen on validation tasks: {told or 'not yet'}."
