"""The page Runs: all runs with their state, any set of them compared, published numbers beside, exports."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from plotly.graph_objects import Figure

from fsviz import features, jobs, studies
from fsviz.analyses import run_comparison
from fsviz.datasets.published import benchmark_title, published_benchmarks, published_side_by_side, published_table
from fsviz.difficulty import measures
from fsviz.errors import FsvizError
from fsviz.features.backbones import title_of
from fsviz.figures import runs as figures
from fsviz.methods import METHODS
from fsviz.records import PAD, Dataset
from fsviz.reports import html as report
from fsviz.reports import runs as run_report
from fsviz.reports import tables
from fsviz.sampling import SAMPLERS
from fsviz.settings import RawSettings, Setting
from fsviz.studies import evaluate
from fsviz.tasks import draw
from fsviz.text import csv, drawn
from fsviz.ui.parts import (
    access,
    controls,
    drilldown,
    error_gallery,
    export,
    links,
    page_links,
    recorded,
    run_panel,
    shell,
    task_list,
)
from fsviz.ui.parts.image_wall import Row, Tile, strip_uri, task_rows
from fsviz.ui.parts.shell import plain

FIRST_RUN = ("protonet", "simpleshot", "ridge", "bd_cspn", "finetune")
NONE = "none"
GROUP = Setting(
    "group",
    "Tasks of the figures",
    "Runs of different tasks share the table; figures and paired tests are about one testbed.",
    "choice",
    "",
)
WINDOW = Setting(
    "window",
    "Rolling window (% of the tasks)",
    "How many neighbouring tasks a point of a curve is the mean of. Wider is smoother, and hides more.",
    "int",
    10,
    1,
    50,
)
BAND = Setting(
    "band",
    "Method to look at",
    "Its 95% band is drawn, and the tasks that are listed are ordered by its accuracy. A click on a line chooses too.",
    "choice",
    "",
)
OVER = Setting(
    "over",
    "95% intervals over",
    "Tasks of one testbed share images, so they are not independent. Tasks: what other tasks of these very images "
    "would give; narrow with many tasks, and what papers print. Images: what other images of the same classes would "
    "give. Classes: what other classes would give. Every interval of the comparison, and what is called real, follows.",
    "choice",
    "tasks",
    choices={name: name for name in run_comparison.CI_UNITS},
    advanced=True,
)
NEAR = Setting("near", "Tasks around", "A value of the measure: the tasks nearest to it are listed.", "text", "")
TASK = task_list.TASK.with_(kind="int", default=-1, low=-1)  # -1 is the first of the list
CURVES = "curves"
STRIP_PX = 38
MOST_OFFERED = 6  # datasets with results, beside one that has none
MOST_LISTED = 60  # tasks behind a point


def show(dataset: Dataset) -> None:
    runs = jobs.list_runs()
    run_panel.active_runs("runs")
    chosen = _choose(runs, dataset)
    lines = _lines_of_all(chosen)
    _tell_others(chosen, dataset)
    if lines:
        _compare(lines, chosen)
    elif any(run.study == "evaluate" and run.active and _is_of(run, dataset) for run in runs):
        st.info("No task of any run is finished yet; the first results will be shown here.", icon="⏳")
        _published_meanwhile()
    elif chosen:
        _tell_failed(chosen)
    else:
        _first_run(dataset)
        _offer_others(runs)
        _published_meanwhile()
    if runs and not (lines and shell.classroom()):  # a class looks at what came out
        _all_runs(runs)


# --- nothing yet -------------------------------------------------------------------------------------------------


def _first_run(dataset: Dataset) -> None:
    """No result of this dataset yet: a button that makes one, or what it lacks."""
    known = features.available(dataset)
    left, right = st.columns([3, 2], vertical_alignment="center")
    if known:
        titles = [plain(METHODS[name].title) for name in FIRST_RUN]
        left.info(
            f"**No evaluation of {plain(dataset.title)} has results yet.** A first one takes some seconds: "
            f"{', '.join(titles)} on 500 tasks. The page Evaluate has all choices.",
            icon="👋",
        )
        access.deny("run", where=right)
        if access.may("run") and right.button("Start a first run", type="primary", width="stretch"):
            _start_first(dataset, known[0])
    else:
        left.info(
            f"**No evaluation of {plain(dataset.title)} has results yet**, and it has no features to evaluate. "
            + shell.how_to_add(dataset, "features"),
            icon="👋",
        )
        with right:
            shell.link_to_what_is_missing(dataset, "features")
            shell.offer_demo(dataset)
        return
    right.page_link(
        "pages/4_Evaluate.py",
        label="Choose what to run on the page Evaluate",
        icon="⚖️",
        query_params=shell.link(dataset),
    )


def _offer_others(runs: Sequence[jobs.Run]) -> None:
    """The datasets that have results, a button each."""
    others = list(dict.fromkeys(str(run.spec["dataset"]) for run in runs if _comparable(run)))
    if others:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown("There are results of", width="content")
            for name in others[:MOST_OFFERED]:
                if st.button(plain(shell.dataset_title(name)), key=f"results_of_{name}"):
                    _show_results_of(name, runs)
                    st.rerun()


def _published_meanwhile() -> None:
    """Published numbers to look at until there are own ones."""
    st.subheader("Meanwhile: what the paper found", anchor=False)
    table = published_table("better-tieredImageNet", "5-way 1-shot").rename(columns={"method": "name"})
    lost = table["Q4"] - table["Q1"]
    export.chart(
        "Published accuracy by quarter of the tasks",
        figures.plot_quartiles(table, source="Bennequin et al. 2022, table 1"),
        key="published_quartiles",
    )
    st.caption(
        "Published numbers, not computed here (Bennequin et al. 2022, table 1: tieredImageNet, ResNet12, 5 ways, "
        f"1 shot). Tasks are sorted by {plain(measures.lower_title(run_comparison.QUARTERS))} and cut into quarters: "
        f"from the coarsest quarter to the finest every method loses {lost.min():.0f} to {lost.max():.0f} points. "
        "Your own runs will be shown the same way."
    )


def _start_first(dataset: Dataset, backbone: str) -> None:
    spec: evaluate.Spec = {
        "study": "evaluate",
        "dataset": dataset.name,
        "backbones": [backbone],
        "methods": [{"name": name} for name in FIRST_RUN],
        "sampler": evaluate.feasible_sampler(dataset, backbone, n_tasks=500),
        "seed": 0,
        "device": "auto",
    }
    with st.spinner("Freezing the tasks and starting the run…"):
        access.do("run", jobs.submit, spec)
    st.rerun()


# --- all runs ----------------------------------------------------------------------------------------------------


def _is_of(run: jobs.Run, dataset: Dataset) -> bool:
    return bool(run.spec.get("dataset") == dataset.name)


def _show_results_of(name: str, runs: Sequence[jobs.Run]) -> None:
    """The results of another dataset from the next run on; of one that is gone, its runs are chosen by themselves."""
    if name in shell.known_names():
        shell.choose_dataset(name)
    else:
        found = [run for run in runs if _comparable(run) and run.spec["dataset"] == name]
        st.session_state["compare_next"] = [run.id for run in _newest_group(found)]


def _tell_others(chosen: Sequence[jobs.Run], dataset: Dataset) -> None:
    """Whose results are shown, where some are not of the chosen dataset."""
    names = list(dict.fromkeys(str(run.spec["dataset"]) for run in chosen if not _is_of(run, dataset)))
    if names:
        titles = ", ".join(shell.dataset_title(name) for name in names)
        with st.container(horizontal=True, vertical_alignment="center"):
            some = "Some" if any(_is_of(run, dataset) for run in chosen) else "These"
            st.warning(
                f"{some} are results of **{plain(titles)}**, which were chosen, and not of {plain(dataset.title)}.",
                icon="📂",
            )
            st.button(f"Show those of {plain(dataset.title)}", on_click=_choose_none, key="own_results")


def _choose_none() -> None:
    st.session_state["runs"] = []


def _choose(runs: Sequence[jobs.Run], dataset: Dataset) -> list[jobs.Run]:
    """The evaluations to compare, kept in the link; without a choice the newest ones of one testbed of the dataset."""
    known = {run.id: run for run in sorted(runs, key=lambda run: not _is_of(run, dataset)) if _comparable(run)}
    if not known:
        return []
    asked = st.session_state.pop("compare_next", None)
    if asked is not None:
        links.release("runs")
        links.say(runs=",".join(asked))
    titles = {run.id: _title(run) for run in known.values()}
    links.several_of(titles, "runs", about=dataset.name)
    picked = st.sidebar.multiselect(
        "Runs to compare",
        list(known),
        format_func=lambda run_id: titles.get(run_id, run_id),
        key="runs",
        **controls.BY_TYPING,
        placeholder="the newest of one testbed",
        help="Runs of the same tasks are compared task by task. Those of the chosen dataset come first; others can be "
        "chosen too. The table at the end of the page has all runs.",
    )
    own = [run for run in known.values() if _is_of(run, dataset)]
    return [known[run_id] for run_id in picked if run_id in known] or _newest_group(own)


def _tell_failed(chosen: Sequence[jobs.Run]) -> None:
    """Why methods of a user have no results in these runs."""
    told = [one for run in chosen for one in (run.summary or {}).get("failed") or [] if isinstance(one, dict)]
    if told:
        sentences = dict.fromkeys(access.without_paths(str(one.get("error", ""))) for one in told)
        st.warning(
            "**Some methods have no results:**\n\n" + "\n".join(f"- {plain(sentence)}" for sentence in sentences),
            icon="⚠️",
        )


def _comparable(run: jobs.Run) -> bool:
    return run.study == "evaluate" and run.n_done > 0 and evaluate.is_whole(run.spec)


def _title(run: jobs.Run) -> str:
    """A readable name of a run: when it began, its dataset and its methods."""
    what = ", ".join(dict.fromkeys(entry.title for entry in evaluate.entries(run.spec)))
    moment = time.strftime("%d %b %H:%M", time.localtime(run.created))
    return f"{moment}, {shell.dataset_title(run.spec['dataset'])}: {what} ({run.id[-4:]})"


def _all_runs(runs: Sequence[jobs.Run]) -> None:
    """The table of runs, and what can be done to the ticked ones."""
    st.subheader("All runs", anchor=False)
    table = pd.DataFrame([_row(run) for run in runs])
    idle = [] if any(run.active for run in runs) else ["progress"]  # takes the room of what says something
    table = table.drop(columns=[*idle, *(["note"] if (table["note"] == "").all() else [])])
    event = export.table(
        "All runs",
        table,
        key="runs_table",
        hide_index=True,
        on_select="rerun",
        selection_mode="multi-row",
        height=min(320, 38 + 35 * len(table)),
        placeholder="",
        column_config={
            "progress": st.column_config.ProgressColumn("progress", min_value=0.0, max_value=1.0, format="percent"),
            "best accuracy (%)": st.column_config.NumberColumn(format="%.2f"),
            "note": st.column_config.TextColumn(width="medium"),
            "what": st.column_config.TextColumn(width=190),
        },
    )
    marked = [runs[i] for i in event.selection.rows if i < len(runs)]
    st.caption(
        "Tick rows to compare those runs" + (", or to cancel, resume or delete them." if access.may("run") else ".")
    )
    _actions(marked)


def _newest_group(evaluations: Sequence[jobs.Run]) -> list[jobs.Run]:
    """The newest evaluation that can be read and the others of the same tasks."""
    if not evaluations:
        return []
    finished = [run for run in evaluations if run.state == "finished"] or list(evaluations)
    digest = next((run for run in finished if _is_readable(run)), finished[0]).spec["tasks"]["digest"]
    return [run for run in finished if run.spec["tasks"]["digest"] == digest][:6]


def _is_readable(run: jobs.Run) -> bool:
    try:
        return bool(recorded.lines_of(run))
    except FsvizError:
        return False


def _row(run: jobs.Run) -> dict[str, Any]:
    found = (run.summary or {}).get("results") or []
    accuracies = [r["accuracy"] for r in found if isinstance(r, dict) and r.get("accuracy") is not None]
    if run.study == "evaluate" and evaluate.is_whole(run.spec):
        what = ", ".join(dict.fromkeys(entry.label for entry in evaluate.entries(run.spec)))
        tasks = "; ".join(_tasks_words(testbed) for testbed in evaluate.run_testbeds(run.spec))
    else:
        what, tasks = title_of(str(run.spec.get("backbone", ""))), ""
    return {
        "started": run_panel.when(run.created),
        "dataset": shell.dataset_title(str(run.spec.get("dataset", "?"))),
        "study": studies.title_of(run.study),
        "what": what,
        "state": run_panel.STATES[run.state],
        "note": access.without_paths(run.error or ("" if run.state == "finished" else run.message)),
        "progress": run.share_done,
        "best accuracy (%)": max(accuracies) if accuracies else None,
        "tasks": tasks,
        "time": run_panel.duration(run.seconds),
        "device": str(run.spec.get("device", "")) if jobs.engine_of(run) == jobs.Engine() else str(jobs.engine_of(run)),
        "run": run.id,
    }


def _tasks_words(testbed: evaluate.RunTestbed) -> str:
    shape, sampler = testbed["tasks"], str(testbed["recipe"].get("sampler", ""))
    sampler = SAMPLERS[sampler].title if sampler in SAMPLERS else sampler.replace("_", " ")
    return f"{shape['n_tasks']:,} × {shape['setting']}{f', {sampler}' if sampler else ''}"


def _actions(marked: Sequence[jobs.Run]) -> None:
    """What can be done to the ticked runs, and how many may go at once."""
    compare, cancel, resume, delete, workers = st.columns([1, 1, 1, 1, 1.4], vertical_alignment="bottom")
    comparable = [run.id for run in marked if _comparable(run)]
    stoppable = [run for run in marked if run.active]
    resumable = [run for run in marked if run.resumable]
    removable = [run for run in marked if not run.active]
    if compare.button(f"Compare {len(comparable) or ''}", disabled=not comparable, width="stretch", type="primary"):
        names = {str(run.spec["dataset"]) for run in marked if run.id in comparable}
        if len(names) == 1 and names <= set(shell.known_names()):
            shell.choose_dataset(next(iter(names)))
        st.session_state["compare_next"] = comparable
        st.rerun()
    if not access.may("run"):
        access.deny("run")
        return
    if cancel.button(f"Cancel {len(stoppable) or ''}", disabled=not stoppable, width="stretch"):
        for run in stoppable:
            access.do("run", jobs.cancel, run.id)
        st.rerun()
    if resume.button(f"Resume {len(resumable) or ''}", disabled=not resumable, width="stretch"):
        for run in resumable:
            access.do("run", jobs.resume, run.id)
        st.rerun()
    if delete.button(f"Delete {len(removable) or ''}", disabled=not removable, width="stretch"):
        _confirm_delete([run.id for run in removable])
    now = jobs.n_workers()
    asked = workers.number_input(
        "Runs at the same time",
        1,
        jobs.MAX_WORKERS,
        now,
        help="Each run has its own process; further runs wait in the queue.",
    )
    if asked != now:
        access.do("workers", jobs.set_workers, int(asked))
        st.rerun()


@st.dialog("Delete for good?")
@shell.sentences()
def _confirm_delete(run_ids: list[str]) -> None:
    st.write(f"{len(run_ids)} run{'s' if len(run_ids) > 1 else ''} with all results: {plain(', '.join(run_ids))}.")
    if st.button("Delete", type="primary"):
        for run_id in run_ids:
            access.do("delete", jobs.delete, run_id)
        st.rerun()


# --- the comparison ----------------------------------------------------------------------------------------------


def _lines_of_all(chosen: Sequence[jobs.Run]) -> list[run_comparison.Line]:
    found: list[run_comparison.Line] = []
    for run in chosen:
        try:
            found += recorded.lines_of(run)
        except FsvizError as error:
            st.error(plain(str(error)), icon="⚠️")
    return found


def _compare(lines: list[run_comparison.Line], chosen: Sequence[jobs.Run]) -> None:
    groups, notes = run_comparison.compared(lines)  # the most accurate first, so that colours and rows agree
    every, lines = lines, [line for group in groups.values() for line in group]
    main = _main_group(groups)
    over = _pick_interval(lines)
    table = run_comparison.with_interval(recorded.result_table(lines, over=over), over)
    differences = recorded.differences(main, over=over)
    here = run_comparison.with_interval(recorded.result_table(main, over=over), over)
    more, n_missing = _tell_unfinished(chosen, every, notes)
    notes += more
    _headline(here, differences, over, n_missing)
    shown = _big_figure(lines, main, here, _recipe_of(main[0], chosen), over)
    _tell_failed(chosen)
    published, pairs, caveat = _results(table, main[0], over)
    left, right = shell.columns_if_wide("methods", 2, gap="large")
    with left:
        cell = _ranks(main)
    with right:
        other = _paired(main, differences, len(groups), over)
    if cell:
        _tasks_of_cell(main, cell)
    if other:
        _tasks_apart(main, str(differences["reference"].iloc[0]), other)
    if len(differences) and not shell.classroom():
        _paired_numbers(differences)
    _mistakes(lines, over)
    if not shell.classroom():
        _exports(table, lines, main, differences, published, chosen, over, pairs, shown, caveat, notes)


def _tell_unfinished(
    chosen: Sequence[jobs.Run], lines: Sequence[run_comparison.Line], notes: Sequence[str]
) -> tuple[Sequence[str], int]:
    """What is missing of runs that are not finished, and the way to it; returns sentences beyond the notes, and how
    many methods have no results yet."""
    partial = [run for run in chosen if run.state != "finished"]
    begun = {(line.run_id, line.entry) for line in lines}
    more, n_missing = [], 0
    for run in partial:
        failed = {str(one.get("label")) for one in (run.summary or {}).get("failed") or [] if isinstance(one, dict)}
        labels = [e.label for i, e in enumerate(evaluate.entries(run.spec)) if (run.id, i) not in begun]
        if missing := [label for label in dict.fromkeys(labels) if label not in failed]:
            n_missing += len(missing)
            more.append(f"Run {run.id} is {run.state}; it has no results yet of {', '.join(missing)}.")
    if told := [*notes, *more]:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.warning(plain(" ".join(told)), icon="⏸️")
            stopped = [run for run in partial if run.resumable]
            if stopped and access.may("run") and st.button("Resume", icon="▶️", key="resume_compared"):
                for run in stopped:
                    access.do("run", jobs.resume, run.id)
                st.rerun()
    return more, n_missing


def _main_group(groups: Mapping[str, list[run_comparison.Line]]) -> list[run_comparison.Line]:
    """The lines of the tasks that figures and paired tests are about: the largest group, or one that is picked."""
    if len(groups) == 1:
        return next(iter(groups.values()))
    order = sorted(groups, key=lambda digest: -len(groups[digest]))
    names = {digest: _group_name(groups[digest][0]) for digest in order}
    return groups[controls.pick(GROUP.with_(choices=names, default=order[0]), st.sidebar)]


def _group_name(line: run_comparison.Line) -> str:
    return f"{run_comparison.testbed_title(line)} ({line.testbed[:40]})"


def _pick_interval(lines: list[run_comparison.Line]) -> str:
    """What intervals are over: every one of the comparison. The widest that is known unless chosen, as in reports and
    commands."""
    return controls.pick(OVER.with_(default=recorded.widest(lines)), st.sidebar, as_buttons=True)


def _recipe_of(line: run_comparison.Line, chosen: Sequence[jobs.Run]) -> Mapping[str, Any]:
    for run in chosen:
        if run.id == line.run_id:
            return evaluate.run_testbeds(run.spec)[evaluate.entries(run.spec)[line.entry].testbed]["recipe"]
    return {}


@dataclass(frozen=True)
class _Shown:
    """What the page shows above its tables, as the report shows it too: the figure with its heading and caption, the
    correlations, and these as text with a caption."""

    figure: tuple[str, Figure, str] | None = None
    correlations: pd.DataFrame = field(default_factory=pd.DataFrame)
    told: pd.DataFrame | None = None
    correlated: str = ""


def _headline(here: pd.DataFrame, differences: pd.DataFrame, over: str, n_missing: int) -> None:
    top = here.loc[here["accuracy"].idxmax()]
    best, margin, drop, tasks = shell.columns_if_wide("headline", 4, "pairs")
    run_panel.show_most_accurate(best, top, over, len(here), n_missing)
    if len(differences):
        second = differences.iloc[0]
        margin.metric(
            f"Ahead of {plain(second['name'])}",
            run_panel.points(abs(second["difference"]), second["ci95"], 2),
            f"{plain(second['verdict'])}, over {plain(over)}",
            delta_color="normal" if second["significant"] else "off",
            delta_arrow="off",
            help="Mean of the differences task by task. 'Real' when chance alone would give such a difference less "
            f"than 5 times in 100, after correcting for the number of comparisons. Intervals "
            f"{run_comparison.CI_UNITS[over]}.",
        )
    else:
        margin.metric("Compared with", "nothing yet", help="Evaluate a second method on the same tasks.")
    if not np.isnan(top["Q1"]):
        drop.metric(
            "From fine to coarse",
            run_panel.points(top["fine_to_coarse"], top["fine_to_coarse_ci95"]),
            help="Accuracy of the best method on the quarter of tasks with the highest coarsity (Q4), whose classes "
            f"are farthest apart, minus that with the lowest (Q1). 95% interval {run_comparison.CI_UNITS[over]}.",
        )
    else:
        title = plain(measures.lower_title(run_comparison.QUARTERS))
        drop.metric("Quarters", "none", help=f"Tasks carry no {title}, or all the same.")
    told = f"{plain(top['testbed_title'])}. Testbed {plain(top['testbed'])}."
    tasks.metric("Tasks", f"{int(top['n_tasks']):,}", help=told)


def _big_figure(
    lines: list[run_comparison.Line],
    main: list[run_comparison.Line],
    here: pd.DataFrame,
    recipe: RawSettings,
    over: str,
) -> _Shown:
    """Accuracy against a measure of the tasks, and how closely the two go together."""
    known = run_comparison.measures_of(main)
    if not known:
        st.subheader("Accuracy", anchor=False)
        chosen = drilldown.chart(
            "Accuracy",
            figures.plot_accuracies(
                here["name"],
                here["accuracy"],
                here["ci95"],
                top5=here["top5"] if (here["n_way"] >= tables.TOP5_FROM).any() else None,
            ),
            key="bars",
            name="bar_of",
            of=lambda point: str(drilldown.data(point, 1) or ""),
            known=here["name"].tolist(),
            about=main[0].digest,
        )
        st.caption(
            plain(run_comparison.why_no_curve(main)) + " Mean accuracies, with 95% intervals "
            f"{run_comparison.CI_UNITS[over]}. Click a point for the tasks of its method."
        )
        if chosen:
            drilldown.heading(f"Tasks of {plain(chosen)}, the hardest first", "bar_of")
            line = run_comparison.named(main)[chosen]
            _list_tasks(line, np.argsort(line.accuracy, kind="stable"), chosen, "bar_task")
        return _Shown()
    picked, share = _curve_settings(known)
    title = measures.lower_title(picked)
    heading = f"Accuracy against {measures.lower_title(picked)}"
    st.subheader(plain(heading), anchor=False)
    window = run_comparison.window_of(main, share)
    curves = recorded.curves(main, picked, window, over)
    values = main[0].measures[picked]
    edges = np.quantile(values[np.isfinite(values)], [0, 0.25, 0.5, 0.75, 1])
    points = run_comparison.single_tasks(main[0], picked) if len(main) == 1 else None
    band, at = _looked_at(list(curves), main, picked)
    figure = figures.plot_accuracy_by_measure(
        curves, points, list(pairwise(edges)), measures.lower_title(picked), title, banded=band, at=at
    )
    st.session_state["_curves"] = {drawn(name): name for name in curves}
    export.chart("Accuracy against a measure", figure, key=CURVES, on_select=_curve_clicked, selection_mode="points")
    others = len(lines) - len(main)
    caption = (
        f"Rolling mean over {window:,} of {int(main[0].done.sum()):,} tasks sorted by {title}"
        + f", with the 95% band of {band} over {over}."
        + " Rest on a line for its interval, click it for the tasks around."
        + " Dotted lines cut the tasks into quarters. After figure 5 of Bennequin et al. (2022), which takes 200 of "
        "5,000 tasks."
        + (f" {others} more lines are of other tasks and not drawn here." if others else "")
        + f" {draw.explain(picked, recipe)}"
    )
    st.caption(plain(caption))
    if at is not None:
        _around(main, picked, at, band)
    correlations = recorded.correlations(main, picked, over)
    told, correlated = run_report.correlated(correlations, title)
    st.html(report.plain_table(told, report.CORRELATION_TITLES, {}))
    st.caption(plain(correlated))
    if picked == run_comparison.QUARTERS and recipe.get("distance") != "features":
        ends = correlations[["name", "spearman", "spearman_low", "spearman_high"]].itertuples(index=False)
        found = {name: {"value": value, "ci95": (low, high)} for name, value, low, high in ends}
        if little := evaluate.no_prediction(found, how="“Distance between classes” on the page Tasks"):
            st.info(plain(little), icon="🧭")
            correlated = f"{correlated} {little}"
    return _Shown((heading, figure, caption), correlations, told, correlated)


def _looked_at(names: list[str], main: list[run_comparison.Line], measure: str) -> tuple[str, float | None]:
    """The method whose band is drawn, and the value of the measure around which tasks are listed, None for none."""
    about = f"{main[0].digest} {measure}"
    band = names[0]
    if len(names) > 1:
        band = controls.pick(BAND.with_(choices={name: name for name in names}, default=band), st.sidebar, about=about)
    try:
        at = float(links.value_of(NEAR, NEAR.name, about))
    except ValueError:
        return band, None
    return band, at if np.isfinite(at) else None


def _curve_clicked() -> None:
    points = st.session_state[CURVES].selection.points
    if not points or "x" not in points[0]:
        return
    known: dict[str, str] = st.session_state.get("_curves", {})
    data = points[0].get("customdata")
    name = known.get(str(data[1])) if isinstance(data, list | tuple) and len(data) == 2 else None
    at, task = f"{float(points[0]['x']):.4g}", data if isinstance(data, int) else -1
    same_line = name is None or len(known) == 1 or name == st.session_state.get("band")
    if same_line and (at, task) == (st.session_state.get(NEAR.name), st.session_state.get(TASK.name)):  # clicked again
        return _forget_place()
    if name is not None and len(known) > 1:
        st.session_state["band"] = name
    st.session_state[NEAR.name], st.session_state[TASK.name] = at, task


def _forget_place() -> None:
    st.session_state[NEAR.name] = ""
    st.session_state[TASK.name] = -1


def _around(main: list[run_comparison.Line], measure: str, at: float, band: str) -> None:
    """The tasks around a value of the measure with their images, and one of them in full."""
    named = run_comparison.named(main)
    line = named[band]
    near = run_comparison.around(line, measure, at)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**Tasks around {plain(measures.lower_title(measure))} {at:.4g}**")
        st.button("Close", key="forget_place", on_click=_forget_place)
    dataset = _dataset_of(line, bool(len(near)))
    if dataset is None or line.tasks is None:
        return
    names = dataset.classes["class_name"].astype(str)
    rows = pd.DataFrame({"task": near, measures.title(measure): line.measures[measure][near]})
    if dataset.has_pixels:
        rows["images"] = [strip_uri(dataset, run_report.faces(line.tasks.support[t], 5), STRIP_PX) for t in near]
    for name, other in list(named.items())[:6]:
        rows[name] = 100 * other.accuracy[near]
    rows["classes"] = [", ".join(names.reindex(ids[ids != PAD]).fillna("?")) for ids in line.tasks.class_ids[near]]
    st.session_state["_listed"] = near.tolist()
    tall = STRIP_PX + 8 if dataset.has_pixels else 35
    export.table(
        "Tasks around",
        rows,
        key="around_table",
        on_select=_task_chosen,
        selection_mode="single-row",
        hide_index=True,
        row_height=tall,
        height=40 + tall * min(5, len(rows)),
        column_config={
            "task": st.column_config.NumberColumn("Task", width=60),
            measures.title(measure): st.column_config.NumberColumn(format="%.1f", width=80),
            "images": st.column_config.ImageColumn("Support", width=5 * (STRIP_PX + 4)),
            **{
                name: st.column_config.ProgressColumn(f"{name} (%)", min_value=0, max_value=100, format="%.0f")
                for name in list(named)[:6]
            },
            "classes": st.column_config.TextColumn("Classes", width=320),
        },
    )
    st.caption(f"The {len(near):,} tasks nearest to it, those that {plain(band)} finds hardest first. Choose one.")
    task = int(links.value_of(TASK.with_(high=len(line.tasks) - 1), TASK.name, line.digest))
    _one_task(dataset, line, int(near[0]) if task < 0 else task, band)


def _task_chosen() -> None:
    listed: list[int] = st.session_state.get("_listed", [])
    rows = [row for row in st.session_state["around_table"].selection.rows if row < len(listed)]
    if rows:
        st.session_state[TASK.name] = int(listed[rows[0]])


def _dataset_of(line: run_comparison.Line, any_task: bool = True) -> Dataset | None:
    """The dataset of a line whose single tasks can be shown; None where they cannot, and it says why."""
    if not any_task or line.tasks is None:
        st.caption("The images of single tasks are not known: the run's files are damaged, or none is finished yet.")
        return None
    try:
        return shell.load_dataset(line.dataset)
    except FsvizError as error:
        st.caption(f"The images cannot be shown: {plain(str(error))}")
        return None


def _one_task(dataset: Dataset, line: run_comparison.Line, task: int, who: str) -> None:
    """Support and query images of one task, and what a method said of every query."""
    try:
        answer, tasks = recorded.answer_of(line)
    except FsvizError as error:
        st.caption(f"The images cannot be shown: {plain(str(error))}")
        return
    if task >= len(tasks):
        st.caption(f"Only the first {len(tasks):,} tasks can be looked at one by one.")
        return
    names = dataset.classes["class_name"].astype(str).reindex(tasks.class_ids[task]).fillna("?").tolist()
    accuracy = 100 * float(line.accuracy[task])
    st.markdown(f"**Task {task:,}** · {accuracy:.0f}% of queries right with {plain(who)}")
    rows = []
    for way in np.flatnonzero(tasks.class_ids[task] != PAD)[: run_report.MOST_CLASSES]:
        support, query = tasks.support[task, way], tasks.query[task, way]
        rows.append(Row(names[way], [Tile(int(i)) for i in support[support != PAD][:20]], kind="support"))
        tiles = []
        for image_id, said in zip(query, answer.predicted[task, way]):
            if image_id != PAD:
                wrong = int(said) != way
                tiles.append(Tile(int(image_id), names[said] if wrong else "", "wrong" if wrong else "right"))
        rows.append(Row(names[way], tiles, kind="query"))
    page_links.to_gallery(dataset, task_rows(dataset, rows, "run_task", tile_px=64) if dataset.has_pixels else None)
    named = recorded.task_name(dataset, line, task)
    page_links.from_task(dataset, tasks, task, line.backbone, line.method, named=named)


def _curve_settings(known: list[str]) -> tuple[str, int]:
    """The measure of the tasks to draw against, and the share of the tasks (percent) in a rolling window."""
    picked = known[0]
    if len(known) > 1:
        setting = controls.MEASURE.with_(
            title="Accuracy against", choices={name: measures.title(name) for name in known}, default=picked
        )
        picked = controls.pick(setting, st.sidebar)
    return picked, controls.pick(WINDOW, st.sidebar, as_slider=True)


def _results(
    table: pd.DataFrame, first: run_comparison.Line, over: str
) -> tuple[pd.DataFrame | None, dict[tuple[str, str], pd.DataFrame], str]:
    """The table with intervals and bold bests, the published rows below it, and both kinds of tasks side by side."""
    st.subheader("Results", anchor=False)
    pairs = run_comparison.side_by_side(table)
    for (dataset, setting), pair in pairs.items():
        title = shell.dataset_title(dataset)
        st.markdown(f"**Semantic beside uniform tasks: {plain(title)}, {plain(setting)}**")
        st.html(report.side_by_side_table(pair, _over_tasks(published_side_by_side(setting), over)))
    if pairs:
        st.caption(
            "As tables 1 and 2 of Bennequin et al. (2022): the same methods on tasks of classes that are close in "
            "meaning (semantic) and on tasks of any classes (uniform). Methods above the line judge each query alone, "
            "those below look at all queries of a task. Published rows are of tieredImageNet: where that is another "
            "dataset, compare the pattern, not the numbers."
        )
    with st.expander("Row by row") if pairs else st.container():
        published, note = _published(first)
        st.html(report.results_table(table, _over_tasks(published, over)))
    st.caption(
        f"Accuracy in percent with 95% intervals {run_comparison.CI_UNITS[over]}. **Bold**: best of the column among "
        "rows "
        "of the same tasks. Q1 is the quarter of tasks with the lowest coarsity, whose classes are closest, Q4 that "
        "with the highest; the CSV has their intervals too."
        + (f" {plain(note)}" if note else "")
        + (" Published intervals are over tasks, so left out." if published is not None and over != "tasks" else "")
        + (" An interval that is not known yet is left out." if table["ci95"].isna().any() else "")
    )
    return published, pairs, note


def _over_tasks(published: pd.DataFrame | None, over: str) -> pd.DataFrame | None:
    """Published intervals are over tasks: beside others they are left out."""
    if published is None or over == "tasks":
        return published
    return published.assign(**{name: np.nan for name in published if name.endswith("ci95")})


def _published(first: run_comparison.Line) -> tuple[pd.DataFrame | None, str]:
    own = published_benchmarks(first.dataset)
    every = published_benchmarks()
    options: list[Any] = [NONE, *own, *[pair for pair in every if pair not in own]]
    same = [pair for pair in own if pair[1].startswith(first.setting)]
    near = [pair for pair in every if pair[1].startswith(first.setting) and pair[0] == "better-tieredImageNet"]
    default = [*same, *own, *near, NONE][0]
    labels = {json.dumps(o): "none" if o == NONE else f"{benchmark_title(o[0])}, {o[1]}" for o in options}
    picked = st.columns([3, 2])[0].selectbox(
        "Published numbers beside them",
        list(labels),
        index=list(labels).index(json.dumps(default)),
        format_func=lambda key: labels[key],
        key="published",
        help="Numbers as printed in the papers. They were not computed here.",
    )
    pair = json.loads(picked)
    if pair == NONE:
        return None, ""
    found = published_table(*pair)
    found = found[found["accuracy"].notna()]
    if tuple(pair) in own:
        return found, "Published rows are of the same benchmark, with the backbone the paper names."
    return found, (
        f"Published rows are of another benchmark ({benchmark_title(pair[0])}): compare the pattern, not the numbers."
    )


def _ranks(main: list[run_comparison.Line]) -> str:
    """The ranks; returns the cell that was clicked, "" for none."""
    st.subheader("Who is best on which tasks?", anchor=False)
    ranks = recorded.ranks(main)
    if ranks.empty or len(main) < 2:
        st.caption("Ranks need at least two methods on the same tasks, and a dataset with a taxonomy.")
        return ""
    chosen = drilldown.chart(
        "Ranks by quarter of the tasks",
        figures.plot_ranks(ranks),
        key="ranks",
        name="rank_of",
        of=lambda point: str(drilldown.data(point) or ""),
        known=[f"{name}@Q{b}" for name, b in ranks[["method", "bin"]].itertuples(index=False)],
        about=main[0].digest,
    )
    st.caption(
        "Rank by mean accuracy in each quarter of the tasks, from the finest to the coarsest; 1 is best. Click a cell "
        "for its tasks."
    )
    return chosen


def _paired(main: list[run_comparison.Line], differences: pd.DataFrame, n_groups: int, over: str) -> str:
    """The differences; returns the method that was clicked, "" for none."""
    st.subheader("Is the difference real?", anchor=False)
    if differences.empty:
        st.caption(
            "A paired comparison needs at least two methods on the same tasks. Evaluate another one on this testbed."
        )
        return ""
    chosen = drilldown.chart(
        "Paired differences",
        figures.plot_differences(differences),
        key="differences",
        name="differs",
        of=lambda point: str(drilldown.data(point, 2) or ""),
        known=differences["name"].tolist(),
        about=main[0].digest,
    )
    st.caption(
        f"Differences to {plain(differences['reference'].iloc[0])} over the same "
        f"{int(differences['n_tasks'].max()):,} tasks, task by task, with 95% intervals "
        f"{run_comparison.CI_UNITS[over]}. "
        + ("Filled: real (p below 5%" + (" in a paired t test and in Wilcoxon's test" if over == "tasks" else ""))
        + ", corrected for the number of comparisons by Holm's method); hollow: chance will do, or nothing is known."
        + (" Only runs of the same tasks are compared; the sidebar says which." if n_groups > 1 else "")
        + " Click a point for the tasks on which the two differ most."
    )
    return chosen


def _tasks_of_cell(main: list[run_comparison.Line], cell: str) -> None:
    """The tasks of a quarter, the worst of a method first."""
    name, _, quarter = cell.rpartition("@Q")
    line = run_comparison.named(main)[name]
    drilldown.heading(f"Tasks of quarter {plain(quarter)}, the worst of {plain(name)} first", "rank_of")
    _list_tasks(line, run_comparison.of_quarter(line, int(quarter)), cell, "rank_task")


def _tasks_apart(main: list[run_comparison.Line], reference: str, other: str) -> None:
    """The tasks on which two methods differ most."""
    named = run_comparison.named(main)
    one, two = named[other], named[reference]
    apart = one.accuracy - two.accuracy
    order = np.argsort(-np.abs(np.nan_to_num(apart)), kind="stable")
    drilldown.heading(f"Where {plain(other)} and {plain(reference)} differ most", "differs")
    told = {
        int(t): f"{100 * one.accuracy[t]:.0f}% by {other}, {100 * two.accuracy[t]:.0f}% by {reference}" for t in order
    }
    _list_tasks(one, order, other, "differs_task", told)


def _list_tasks(
    line: run_comparison.Line, order: np.ndarray, about: str, name: str, notes: Mapping[int, str] | None = None
) -> None:
    """Tasks of a line in this order with their images; `name` is where the chosen one is in the link."""
    order = order[np.isfinite(line.accuracy[order])]
    dataset = _dataset_of(line)
    if dataset is None or line.tasks is None:
        return
    told = notes or {int(t): f"{100 * line.accuracy[t]:.0f}% right" for t in order}
    named = partial(recorded.task_name, dataset, line)
    drilldown.tasks(dataset, line.tasks, order[:MOST_LISTED], told, f"{line.digest} {about}", name, named=named)


def _paired_numbers(differences: pd.DataFrame) -> None:
    """The differences as a table, which needs the whole width of the page."""
    with st.expander(f"The differences to {plain(differences['reference'].iloc[0])} in numbers"):
        # The reference is the same in every row, and named above.
        titles = {column: title for column, title in report.DIFFERENCE_TITLES.items() if column != "reference"}
        st.html(report.plain_table(differences, titles, report.DIFFERENCE_FORMATS))


def _exports(
    table: pd.DataFrame,
    lines: list[run_comparison.Line],
    main: list[run_comparison.Line],
    differences: pd.DataFrame,
    published: pd.DataFrame | None,
    chosen: Sequence[jobs.Run],
    over: str,
    pairs: Mapping[tuple[str, str], pd.DataFrame],
    shown: _Shown,
    caveat: str,
    notes: Sequence[str],
) -> None:
    asked = () if over == recorded.widest(lines) else ("--over", over)
    export.command("report", *(run.id for run in chosen), *asked)
    st.subheader("Take it along", anchor=False)
    stem = f"fsviz-{chosen[0].id}" if len(chosen) == 1 else f"fsviz-{len(chosen)}-runs"
    rows = table.drop(columns=["digest"])
    recipes = [_recipe(run) for run in chosen]
    beside = list(pairs.values())

    def as_json() -> str:
        body = {
            "results": tables.to_records(rows),
            "differences": tables.to_records(differences),
            "intervals_over": over,
            "correlations": tables.to_records(shown.correlations),
            "side_by_side": {", ".join(key): tables.to_records(pair) for key, pair in pairs.items()},
            "runs": [_record(run) for run in chosen],
        }
        if published is not None:
            body["published"] = tables.to_records(published)
        return json.dumps(body, indent=2)

    def as_report() -> str:
        return run_report.composed(
            *(lines, main, table, differences, recipes, over, pairs, shown.figure, shown.told, shown.correlated),
            _over_tasks(published, over),
            caveat,
            notes,
        )

    def as_figures() -> str:
        found = run_report.figures_of(table, main, differences, over, shown.figure)
        return json.dumps({title: json.loads(figure.to_json()) for title, figure, _ in found})

    columns = st.columns([1, 1, 1, 1.2, 1, 1.4])  # by their labels, which a narrow page would cut
    for column, (label, data, suffix, mime) in zip(
        columns,
        (
            ("CSV", lambda: csv(rows), "csv", "text/csv"),
            ("JSON", as_json, "json", "application/json"),
            (
                "LaTeX",
                lambda: "\n".join([tables.to_latex(table), *map(tables.pairs_to_latex, beside)]),
                "tex",
                "text/plain",
            ),
            (
                "Markdown",
                lambda: "\n".join([tables.to_markdown(table), *map(tables.pairs_to_markdown, beside)]),
                "md",
                "text/markdown",
            ),
            ("Figures", as_figures, "plotly.json", "application/json"),
            ("HTML report", as_report, "html", "text/html"),
        ),
        strict=True,
    ):
        column.download_button(
            label, data, f"{stem}.{suffix}", mime, key=f"export_{suffix}", width="stretch", on_click="ignore"
        )
    st.caption(
        "The report is one file with its figures and pictures inside; it opens without a network. Figures are Plotly "
        "JSON by their titles, for a notebook or another page."
    )
    with st.popover("How to run the compared runs again", width="content"):
        for recipe in recipes:
            st.markdown(f"**Run {plain(recipe.run)}**")
            st.markdown("\n".join(f"- {plain(title)}: {plain(words)}" for title, words in recipe.words))
            if recipe.command:
                st.code(recipe.command, language="bash", wrap_lines=True)


def _recipe(run: jobs.Run) -> report.Recipe:
    words = [*run_comparison.in_words(run.spec), ("Took", run_panel.duration(run.seconds))]
    return report.Recipe(run.id, words, access.without_paths(run_comparison.command(run.spec)))


def _record(run: jobs.Run) -> dict[str, Any]:
    keep = ("dataset", "backbones", "testbed_name", "recipe", "samplers", "seed", "device", "threads")
    return {
        "run": run.id,
        "state": run.state,
        "seconds": round(run.seconds, 1),
        **{name: run.spec[name] for name in keep if name in run.spec},
        "methods": [{name: one[name] for name in ("name", "parameters")} for one in run.spec["methods"]],
    }


# --- the mistakes ------------------------------------------------------------------------------------------------


def _mistakes(lines: list[run_comparison.Line], over: str) -> None:
    st.subheader("What gets confused", anchor=False)
    named = run_comparison.named(lines)
    who = st.selectbox("Mistakes of", list(named), key="mistakes_of") if len(named) > 1 else next(iter(named))
    line = named[who if who in named else next(iter(named))]
    try:
        dataset = shell.load_dataset(line.dataset)
        done = int(line.done.sum())
        answer, tasks = recorded.answer_of(line)
    except FsvizError as error:
        st.caption(f"The images cannot be shown: {plain(str(error))}")
        return
    if len(tasks) < done:
        st.caption(f"Of the first {len(tasks):,} of {done:,} tasks.")
    error_gallery.show_confusions(
        dataset, answer, tasks, str(who), key=f"mistakes_{line.run_id}_{line.entry}", over=over
    )
