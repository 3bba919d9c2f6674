"""The page Runs: all runs with their state, any set of them compared, published numbers beside, exports."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from fsviz import features, jobs
from fsviz.datasets.published import published_benchmarks, published_table
from fsviz.errors import FsvizError
from fsviz.figures import runs as figures
from fsviz.records import Dataset, Predictions, Tasks
from fsviz.reports import html as report
from fsviz.reports import tables
from fsviz.studies import comparison, evaluate, frozen
from fsviz.text import csv
from fsviz.ui.parts import access, mistakes, run_panel, shell
from fsviz.ui.parts.cached import remember
from fsviz.ui.parts.shell import plain

FIRST_RUN = ("protonet", "simpleshot", "ridge", "bd_cspn", "finetune")
NONE = "none"
MISTAKES_OF = 20_000  # tasks whose queries are looked at one by one


def show(dataset: Dataset) -> None:
    runs = jobs.list_runs()
    run_panel.active_runs("runs")
    if not any(run.study == "evaluate" for run in runs):
        _first_run(dataset)
        if runs:
            _all_runs(runs)
        return
    chosen = _choose(runs)
    lines = _lines_of_all(chosen)
    if lines:
        _compare(lines, chosen)
    elif not chosen:
        st.info("No task of any run is finished yet; the first results will be shown here.", icon="⏳")
    _all_runs(runs)


# --- nothing yet -------------------------------------------------------------------------------------------------


def _first_run(dataset: Dataset) -> None:
    """No evaluation yet: a button that makes one, and published numbers to look at meanwhile."""
    known = features.available(dataset)
    left, right = st.columns([3, 2], vertical_alignment="center")
    if known:
        titles = [plain(evaluate.methods()[name].title) for name in FIRST_RUN]
        left.info(
            f"**No evaluation has been recorded yet.** A first one takes some seconds: {', '.join(titles)} on 500 "
            f"tasks of {plain(dataset.title)}. The page Evaluate has all choices.",
            icon="👋",
        )
        access.deny("run", where=right)
        if access.may("run") and right.button("Start a first run", type="primary", width="stretch"):
            _start_first(dataset, known[0])
    else:
        left.info(
            f"**No evaluation has been recorded yet**, and {plain(dataset.title)} has no features to "
            "evaluate. Pick the demo in the sidebar, or extract features on the page Evaluate.",
            icon="👋",
        )
    right.page_link(
        "pages/4_Evaluate.py",
        label="Choose what to run on the page Evaluate",
        icon="⚖️",
        query_params=shell.link(dataset),
    )
    st.subheader("Meanwhile: what the paper found", anchor=False)
    table = published_table("better-tieredImageNet", "5-way 1-shot").rename(columns={"method": "name"})
    lost = table["Q4"] - table["Q1"]
    st.plotly_chart(figures.plot_quartiles(table), key="published_quartiles")
    st.caption(
        "Published numbers, not computed here (Bennequin et al. 2022, table 1: tieredImageNet, ResNet12, 5 ways, "
        "1 shot). Tasks are sorted by how far apart in meaning their classes are (coarsity) and cut into quarters: "
        f"from the coarsest quarter to the finest every method loses {lost.min():.0f} to {lost.max():.0f} points. "
        "Your own runs will be shown the same way."
    )


def _start_first(dataset: Dataset, backbone: str) -> None:
    spec = {
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


def _choose(runs: Sequence[jobs.Run]) -> list[jobs.Run]:
    """The evaluations to compare, kept in the link; without a choice the newest ones of one testbed."""
    known = {run.id: run for run in runs if _comparable(run)}
    if not known:
        return []
    asked = st.session_state.pop("compare_next", None)
    if asked is None and not set(st.session_state.get("runs") or []) <= set(known):
        asked = st.session_state["runs"]  # one of them was deleted
    if asked is not None:
        st.session_state["runs"] = [run_id for run_id in asked if run_id in known]
    picked = st.sidebar.multiselect(
        "Runs to compare",
        list(known),
        format_func=lambda run_id: _short_name(known[run_id]) if run_id in known else run_id,
        key="runs",
        bind="query-params",
        wrap=True,
        placeholder="the newest of one testbed",
        help="Runs of the same tasks are compared task by task. The table at the end of the page has all runs.",
    )
    return [known[run_id] for run_id in picked if run_id in known] or _newest_group(list(known.values()))


def _comparable(run: jobs.Run) -> bool:
    return run.study == "evaluate" and run.n_done > 0 and evaluate.is_whole(run.spec)


def _short_name(run: jobs.Run) -> str:
    """A readable name that stays the same, because the link to a comparison holds it."""
    what = ", ".join(dict.fromkeys(entry.title for entry in evaluate.entries(run.spec)))
    moment = time.strftime("%d %b %H:%M", time.localtime(run.created))
    return f"{moment}, {run.spec['dataset']}: {what} ({run.id[-4:]})"


def _all_runs(runs: Sequence[jobs.Run]) -> None:
    """The table of runs, and what can be done to the ticked ones."""
    st.subheader("All runs", anchor=False)
    table = pd.DataFrame([_row(run) for run in runs])
    event = st.dataframe(
        table,
        key="runs_table",
        hide_index=True,
        on_select="rerun",
        selection_mode="multi-row",
        height=min(320, 38 + 35 * len(table)),
        column_config={
            "progress": st.column_config.ProgressColumn("progress", min_value=0.0, max_value=1.0, format="percent"),
            "best accuracy (%)": st.column_config.NumberColumn(format="%.2f"),
        },
    )
    marked = [runs[i] for i in event.selection.rows if i < len(runs)]
    st.caption("Tick rows to compare those runs, or to cancel, resume or delete them.")
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
        return bool(_lines(run.id, run.n_done, str(jobs.folder(run.id))))
    except FsvizError:
        return False


def _row(run: jobs.Run) -> dict[str, Any]:
    found = (run.summary or {}).get("results") or []
    accuracies = [r["accuracy"] for r in found if isinstance(r, dict) and r.get("accuracy") is not None]
    if run.study == "evaluate" and evaluate.is_whole(run.spec):
        what = ", ".join(dict.fromkeys(entry.label for entry in evaluate.entries(run.spec)))
        shape = run.spec["tasks"]
        setting = shape.get("setting") or f"{shape['n_way']}-way {shape['n_shot']}-shot"
        tasks = f"{shape['n_tasks']:,} × {setting}"
    else:
        what, tasks = str(run.spec.get("backbone", "")), ""
    return {
        "run": run.id,
        "state": run_panel.STATES[run.state],
        "progress": run.share_done,
        "started": run_panel.when(run.created),
        "study": run.study,
        "dataset": str(run.spec.get("dataset", "?")),
        "what": what,
        "tasks": tasks,
        "best accuracy (%)": max(accuracies) if accuracies else None,
        "time": run_panel.duration(run.seconds),
        "device": str(run.spec.get("device", "")),
        "note": access.without_paths(run.error or ("" if run.state == "finished" else run.message)),
    }


def _actions(marked: Sequence[jobs.Run]) -> None:
    """What can be done to the ticked runs, and how many may go at once."""
    compare, cancel, resume, delete, workers = st.columns([1, 1, 1, 1, 1.4], vertical_alignment="bottom")
    comparable = [run.id for run in marked if _comparable(run)]
    stoppable = [run for run in marked if run.active]
    resumable = [run for run in marked if run.resumable]
    removable = [run for run in marked if not run.active]
    if compare.button(f"Compare {len(comparable) or ''}", disabled=not comparable, width="stretch", type="primary"):
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
        "Runs at the same time", 1, 64, now, help="Each run has its own process; further runs wait in the queue."
    )
    if asked != now:
        access.do("workers", jobs.set_workers, int(asked))
        st.rerun()


@st.dialog("Delete for good?")
def _confirm_delete(run_ids: list[str]) -> None:
    st.write(f"{len(run_ids)} run{'s' if len(run_ids) > 1 else ''} with all results: {plain(', '.join(run_ids))}.")
    if st.button("Delete", type="primary"):
        for run_id in run_ids:
            access.do("delete", jobs.delete, run_id)
        st.rerun()


# --- the comparison ----------------------------------------------------------------------------------------------


def _lines_of_all(chosen: Sequence[jobs.Run]) -> list[comparison.Line]:
    found: list[comparison.Line] = []
    for run in chosen:
        try:
            found += _lines(run.id, run.n_done, str(jobs.folder(run.id)))
        except FsvizError as error:
            st.error(plain(str(error)), icon="⚠️")
    return found


def _compare(lines: list[comparison.Line], chosen: Sequence[jobs.Run]) -> None:
    groups = comparison.groups(lines)
    for group in groups.values():  # the most accurate first, so that colours and rows agree
        group.sort(key=lambda line: -np.nanmean(line.accuracy))
    lines = [line for group in groups.values() for line in group]
    main = max(groups.values(), key=len)
    table = _table(lines)
    differences = _differences(main)
    _headline(table, main, differences)
    recipe = next((run.spec.get("recipe", {}) for run in chosen if run.id == main[0].run_id), {})
    _big_figure(lines, main, evaluate.coarsity_words(recipe))
    published = _results(table, lines[0])
    left, right = st.columns(2, gap="large")
    with left:
        _ranks(main)
    with right:
        _paired(main, differences, len(groups))
    _mistakes(lines)
    _exports(table, lines, main, differences, published, chosen)


def _headline(table: pd.DataFrame, main: list[comparison.Line], differences: pd.DataFrame) -> None:
    here = table[table["digest"] == main[0].digest]
    top = here.loc[here["accuracy"].idxmax()]
    best, margin, drop, tasks = st.columns(4)
    run_panel.show_most_accurate(best, top)
    if len(differences):
        second = differences.iloc[0]
        margin.metric(
            f"Ahead of {plain(second['name'])}",
            f"{abs(second['difference']):.2f} points",
            "real" if second["significant"] else "may be chance",
            delta_color="normal" if second["significant"] else "off",
            delta_arrow="off",
            help="Mean of the differences task by task. 'Real' when a paired t test and Wilcoxon's test both stay "
            "below 5% after correcting for the number of comparisons.",
        )
    else:
        margin.metric("Compared with", "nothing yet", help="Evaluate a second method on the same tasks.")
    if not np.isnan(top["Q1"]):
        drop.metric(
            "Coarse to fine",
            f"{top['Q1'] - top['Q4']:+.1f} points",
            help="Accuracy of the best method on the quarter of tasks whose classes are closest in meaning (Q1), minus "
            "the quarter whose classes are farthest apart (Q4).",
        )
    else:
        drop.metric("Quarters by coarsity", "unknown", help="The dataset has no taxonomy.")
    tasks.metric("Tasks", f"{int(top['n_tasks']):,}", help=f"Testbed {plain(top['testbed'])}.")


def _big_figure(lines: list[comparison.Line], main: list[comparison.Line], distance: str) -> None:
    st.subheader("Accuracy against how far apart in meaning the classes are", anchor=False)
    shortest = min(int((~np.isnan(line.accuracy)).sum()) for line in lines)
    window = st.session_state.get("window") or max(20, min(500, shortest // 5))
    curves = _curves(main, int(window))
    if not curves:
        here = _table(main)
        st.plotly_chart(figures.plot_accuracies(here["name"], here["accuracy"], here["ci95"]), key="bars")
        st.caption(
            "The dataset of these runs has no taxonomy, so there is no coarsity to draw against: mean accuracies."
        )
        return
    measure = main[0].measures["coarsity"]
    edges = np.quantile(measure[np.isfinite(measure)], [0, 0.25, 0.5, 0.75, 1])
    points = comparison.single_tasks(main[0]) if len(main) == 1 else None
    st.plotly_chart(figures.plot_accuracy_by_measure(curves, points, list(pairwise(edges))), key="curves")
    others = len(lines) - len(main)
    st.caption(
        f"Rolling mean over {int(window):,} of {len(measure):,} tasks sorted by coarsity, the mean squared "
        + plain(distance)
        + (", with its 95% band" if len(curves) <= 4 else "")
        + ". Dotted lines cut the tasks into quarters. After figure 5 of Bennequin et al. (2022)."
        + (f" {others} more lines are of other tasks and not drawn here." if others else "")
    )


def _results(table: pd.DataFrame, first: comparison.Line) -> pd.DataFrame | None:
    """The table with intervals and bold bests, and the published rows below it."""
    st.subheader("Results", anchor=False)
    published, note = _published(first)
    st.html(report.results_table(table, published))
    st.caption(
        "Accuracy in percent with 95% intervals over tasks. **Bold**: best of the column among rows of the same tasks. "
        "Q1 is the quarter of tasks whose classes are closest in meaning, Q4 the farthest apart." + note
    )
    return published


def _published(first: comparison.Line) -> tuple[pd.DataFrame | None, str]:
    own = published_benchmarks(first.dataset)
    every = published_benchmarks()
    options = [NONE, *own, *[pair for pair in every if pair not in own]]
    same = [pair for pair in own if pair[1].startswith(first.setting)]
    near = [pair for pair in every if pair[1].startswith(first.setting) and pair[0] == "better-tieredImageNet"]
    default = (same or own or near or [NONE])[0]
    labels = {json.dumps(o): "none" if o == NONE else f"{o[0]}, {o[1]}" for o in options}
    picked = st.columns([2, 3])[0].selectbox(
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
        return found, " Published rows are of the same benchmark, with the backbone the paper names."
    return found, (
        f" Published rows are of **another** benchmark ({plain(pair[0])}): compare the pattern, not the numbers."
    )


def _ranks(main: list[comparison.Line]) -> None:
    st.subheader("Who is best on which tasks?", anchor=False)
    ranks = _ranks_of(main)
    if ranks.empty or len(main) < 2:
        st.caption("Ranks need at least two methods on the same tasks, and a dataset with a taxonomy.")
        return
    st.plotly_chart(figures.plot_ranks(ranks), key="ranks")
    st.caption("Rank by mean accuracy in each quarter of the tasks, from the finest to the coarsest; 1 is best.")


def _paired(main: list[comparison.Line], differences: pd.DataFrame, n_groups: int) -> None:
    st.subheader("Is the difference real?", anchor=False)
    if differences.empty:
        st.caption(
            "A paired comparison needs at least two methods on the same tasks. Evaluate another one on this testbed."
        )
        return
    st.plotly_chart(figures.plot_differences(differences), key="differences")
    st.caption(
        f"Differences to {plain(differences['reference'].iloc[0])} over the same "
        f"{int(differences['n_tasks'].max()):,} tasks, task by task, with 95% intervals. Filled: real (p below 5% in a "
        "paired t test and in Wilcoxon's test, corrected for the number of comparisons); hollow: chance will do."
        + (" Only the largest group of runs with the same tasks is compared." if n_groups > 1 else "")
    )
    with st.expander("Numbers"):
        st.html(report.plain_table(differences, report.DIFFERENCE_TITLES, report.DIFFERENCE_FORMATS))


def _exports(
    table: pd.DataFrame,
    lines: list[comparison.Line],
    main: list[comparison.Line],
    differences: pd.DataFrame,
    published: pd.DataFrame | None,
    chosen: Sequence[jobs.Run],
) -> None:
    st.subheader("Take it along", anchor=False)
    stem = f"fsviz-{chosen[0].id}" if len(chosen) == 1 else f"fsviz-{len(chosen)}-runs"
    rows = table.drop(columns=["digest"])
    recipes = [_recipe(run) for run in chosen]

    def as_json() -> str:
        body = {
            "results": tables.to_records(rows),
            "differences": tables.to_records(differences),
            "runs": recipes,
        }
        if published is not None:
            body["published"] = tables.to_records(published)
        return json.dumps(body, indent=2)

    def as_report() -> str:
        return _report(table, lines, main, differences, published, recipes)

    columns = st.columns(5)
    for column, (label, data, suffix, mime) in zip(
        columns,
        (
            ("CSV", lambda: csv(rows), "csv", "text/csv"),
            ("JSON", as_json, "json", "application/json"),
            ("LaTeX", lambda: tables.to_latex(table), "tex", "text/plain"),
            ("Markdown", lambda: tables.to_markdown(table), "md", "text/markdown"),
            ("HTML report", as_report, "html", "text/html"),
        ),
        strict=True,
    ):
        column.download_button(
            label, data, f"{stem}.{suffix}", mime, key=f"export_{suffix}", width="stretch", on_click="ignore"
        )
    st.caption("The report is one file with its figures inside; it opens without a network.")
    with st.expander("Recipes of the compared runs"):
        st.json(recipes, expanded=2)


def _report(table, lines, main, differences, published, recipes) -> str:
    found = []
    curves = comparison.curves(main)
    if curves:
        caption = "Rolling mean of accuracy over tasks sorted by coarsity, with 95% intervals."
        found.append(("Accuracy against coarsity", figures.plot_accuracy_by_measure(curves), caption))
    here = _table(main)
    found.append(
        (
            "Mean accuracies",
            figures.plot_accuracies(here["name"], here["accuracy"], here["ci95"]),
            f"Over the same {len(main[0].accuracy):,} tasks, with 95% intervals.",
        )
    )
    ranks = _ranks_of(main)
    if len(ranks) and len(main) > 1:
        found.append(("Ranks by quarter of coarsity", figures.plot_ranks(ranks), "1 is best."))
    if len(differences):
        found.append(
            ("Paired differences", figures.plot_differences(differences), "Filled: real; hollow: may be chance.")
        )
    datasets = ", ".join(dict.fromkeys(line.dataset for line in lines))
    made = f"Made by fsviz on {time.strftime('%d %B %Y, %H:%M')}."
    return report.report(f"Few-shot evaluation on {datasets}", table, found, recipes, differences, published, made)


def _recipe(run: jobs.Run) -> dict[str, Any]:
    keep = ("dataset", "backbones", "methods", "testbed_name", "recipe", "seed", "device", "threads")
    return {
        "run": run.id,
        "state": run.state,
        "seconds": round(run.seconds, 1),
        **{name: run.spec[name] for name in keep if name in run.spec},
    }


# --- the mistakes ------------------------------------------------------------------------------------------------


def _mistakes(lines: list[comparison.Line]) -> None:
    st.subheader("What gets confused", anchor=False)
    named = comparison.named(lines)
    who = st.selectbox("Mistakes of", list(named), key="mistakes_of") if len(named) > 1 else next(iter(named))
    line = named[who if who in named else next(iter(named))]
    try:
        dataset = shell.load_dataset(line.dataset)
        done = int((~np.isnan(line.accuracy)).sum())
        answer, tasks = _answer(line.run_id, line.entry, done, str(jobs.folder(line.run_id)))
    except FsvizError as error:
        st.caption(f"The images cannot be shown: {plain(str(error))}")
        return
    if len(tasks) < done:
        st.caption(f"Of the first {len(tasks):,} of {done:,} tasks.")
    mistakes.show_confusions(dataset, answer, tasks, str(who), key=f"mistakes_{line.run_id}_{line.entry}")


# --- cached ------------------------------------------------------------------------------------------------------


def _identity(line: comparison.Line) -> tuple[str, int]:
    """Changes when more of its tasks are done."""
    return line.key, int(np.isfinite(line.accuracy).sum())


_of_lines = remember(most=64, hashes={comparison.Line: _identity})
_table, _ranks_of = _of_lines(comparison.table), _of_lines(comparison.ranks)


@_of_lines
def _curves(main: list[comparison.Line], window: int) -> dict[str, pd.DataFrame]:
    return comparison.curves(main, window=window)


@_of_lines
def _differences(main: list[comparison.Line]) -> pd.DataFrame:
    found = comparison.differences(main)
    found["verdict"] = np.where(found["significant"], "real", "may be chance")
    return found


@remember("Reading the run…", 64)
def _lines(run_id: str, n_done: int, folder: str) -> list[comparison.Line]:
    run = jobs.status(run_id)
    return comparison.lines_of(run_id, {**run.spec, "folder": folder}, jobs.chunks(run_id))


@remember(most=16)
def _answer(run_id: str, which: int, n_done: int, folder: str) -> tuple[Predictions, Tasks]:
    run = jobs.status(run_id)
    spec = {**run.spec, "folder": folder}
    answer = evaluate.predictions(spec, jobs.chunks(run_id, evaluate.chunks_of(spec, which, MISTAKES_OF)), which)
    return answer, frozen.tasks(folder, stop=len(answer))
