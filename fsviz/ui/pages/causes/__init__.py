"""The page of causes: what explains the accuracy, which tasks are chosen, and what they have in common."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import numpy as np
import streamlit as st

from fsviz import jobs
from fsviz.analyses import run_comparison
from fsviz.difficulty.measures import CAUSE_TITLES, MEASURES, lower_title, title
from fsviz.errors import BadInput, FsvizError
from fsviz.features.backbones import title_of
from fsviz.figures import causes as figures
from fsviz.records import Dataset, HeadlineNumber, TaskId
from fsviz.settings import Setting
from fsviz.studies import causes as study
from fsviz.studies.causes import MeasuredTasks, VarianceExplained
from fsviz.tasks import task_ids
from fsviz.ui.pages.causes import settings
from fsviz.ui.parts import controls, export, links, page_links, shell, task_list
from fsviz.ui.parts.answers import answer
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.clicks import Area, Click
from fsviz.ui.parts.headline import show_numbers
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape
from fsviz.ui.parts.task_list import TASK

MOST_POINTS = 3000
ACCURACY_OF = Setting("accuracy_of", "Accuracy of", "The method whose accuracy is explained.", "choice", "")


def show(dataset: Dataset) -> None:
    spec = settings.pick(dataset, shell.known_backbones(dataset))
    found = _find(spec)
    if found is None:
        return
    method, stage = _pick_method(found), "labelled"
    try:
        known: VarianceExplained | None = _explained(found, method, stage)
    except BadInput as error:
        known = None
        st.info(escape(str(error)), icon="🔍")
    _headline(found, method)
    if known is not None:
        why, stop, rest = study.headline(found, method, known).partition(". ")
        shell.answer(escape(why + stop.strip()), escape(rest))
    left, right = shell.responsive_columns("causes", [11, 10], gap="large")
    with left:
        measure = _correlations(found, method)
    with right:
        if known is not None:
            _shares(found, method)
    which = _choose(found, method, measure, known)
    _chosen(dataset, found, method, known, which)
    _families(found)
    _unknown(found)
    _table(found)
    st.divider()
    shell.command_popover(study.command(spec))


PAGE = Page(
    slug="causes",
    label="Causes",
    icon="🧭",
    group="Why hard?",
    order=0,
    question="What makes these tasks hard?",
    lead="How much of the variation in accuracy on {dataset} each cause explains.",
    needs=("features",),
    explains=("accuracy", "correlation", "explained", "importance", "measures"),
    keywords=("importance", "hubness", "difficulty"),
    show=show,
)


def _find(spec: study.CausesSpec) -> MeasuredTasks | None:
    """The measured tasks of a spec, with the accuracies of its evaluation if it names one."""
    found = answer(study.STUDY, spec, "Measuring tasks")
    if found is None or not spec["run"]:
        return found
    return study.with_predictions(
        found, cached_call(_accuracies, spec["run"], spec["backbone"], words="Reading the run")
    )


def _accuracies(run_id: str, backbone: str) -> dict[str, np.ndarray]:
    """Accuracy of every task by the methods of an evaluation on this backbone."""
    spec = jobs.spec(run_id)
    lines = run_comparison.method_runs(run_id, spec, jobs.chunks(run_id), jobs.status(run_id).summary)
    own = run_comparison.by_name([line for line in lines if line.backbone == backbone])
    return {name: line.accuracy for name, line in own.items()}


def _explained(found: MeasuredTasks, method: str, stage: str) -> VarianceExplained:
    words = "Learning from four fifths of the tasks what the last fifth will bring"
    return cached_call(study.explained, found, method, stage, words=words, keep=64)


def _name(dataset: Dataset, found: MeasuredTasks, task: int) -> TaskId | None:
    """The name of a task in links."""
    spec = found.spec
    run = (spec["run"], 0) if spec["run"] else None
    return task_ids.name_task(dataset, found.tasks, task, found.recipe, [spec["backbone"]], spec["testbed"], run)


def _pick_method(found: MeasuredTasks) -> str:
    titles = {label: label for label in found.accuracy}
    return str(controls.pick(ACCURACY_OF.with_(choices=titles, default=next(iter(titles))), shell.side()))


def _headline(found: MeasuredTasks, method: str) -> None:
    mean, ci95 = study.mean_accuracy(found, method)
    numbers: list[HeadlineNumber | None] = [
        HeadlineNumber.around(
            "accuracy",
            f"Mean accuracy of {method}",
            100 * mean,
            100 * ci95,
            note=f"{len(found):,} tasks",
            help="95% interval over tasks of these images.",
        )
    ]
    luck = study.sampling_noise(found, method)
    for stage, question in (
        ("before", "Foreseen before any label"),
        ("support", "Foreseen with labelled support"),
        ("labelled", "Explained with all labels"),
    ):
        try:
            share = _explained(found, method, stage).total
        except BadInput:
            numbers.append(None)
            continue
        luck = min(luck, 1 - share.value) if share.low > 0 else luck  # what is explained is no luck
        numbers.append(
            HeadlineNumber(
                f"explained_{stage}",
                question,
                max(100 * share.value, 0) if share.low > 0 else None,
                100 * share.low,
                100 * share.high,
                digits=0,
                words="" if share.low > 0 else "nothing sure",
                help="The share of the differences in accuracy between tasks that a regression explains from what is "
                f"known {study.STAGE_TITLES[cast(Any, stage)]}, on tasks that it has not learned from. The 95% "
                f"interval is over {share.ci_unit}; below zero, always expecting the mean would be better.",
            )
        )
    show_numbers(numbers)
    if np.isfinite(luck):
        st.caption(
            f"Up to {luck:.0%} of the differences are luck: which {int(np.median(found.n_queries))} queries a task "
            "happened to get. No measure that has not seen the answers can explain those."
        )


# --- what explains the accuracy ----------------------------------------------------------------------------------


def _correlations(found: MeasuredTasks, method: str) -> str:
    """Every measure against the accuracy of every method; returns the measure that was clicked."""
    rows: list[dict[str, Any]] = []
    for label in [method, *(other for other in found.accuracy if other != method)]:
        for name, row in cached_call(study.correlations, found, label).items():
            sign = 1 if MEASURES[name].direction == "easier" else -1
            low, high = sorted((sign * row.low, sign * row.high))
            told = {"value": sign * row.value, "low": low, "high": high, "shown": f"{row.value:.2f}"}
            rows.append({"name": name, "title": title(name), "method": label, **told})
    own = [row for row in rows if row["method"] == method and np.isfinite(row["value"])]
    if not own:
        st.info("All tasks are alike in every measure, or in their accuracy. Draw other tasks.", icon="🔍")
        return next(iter(found.measures))
    best = max((row for row in own if MEASURES[row["name"]].stage != "answered"), key=lambda row: row["value"])
    titles = {name: title(name) for name in found.measures}
    picker = controls.MEASURE.with_(choices=titles, default=best["name"])
    st.markdown("**Which measures go with the accuracy?**")
    chosen = str(links.value_of(picker, picker.name, method))
    export.chart(
        "Correlation of every measure with the accuracy",
        figures.plot_correlations(rows, chosen),
        key="cause_correlations",
        sets=picker,
    )
    over = cached_call(study.correlations, found, method)[best["name"]].ci_unit
    st.caption(
        f"A point per method, with its 95% interval over {escape(over)}; click one to see its measure below. "
        "Query loss "
        "is made of the same answers as the accuracy: it is shown, and explains nothing."
    )
    return chosen


def _shares(found: MeasuredTasks, method: str) -> None:
    st.markdown("**How much does each cause explain?**")
    stage = controls.pick(study.STAGE)
    known = _explained(found, method, stage)
    groups: dict[Any, list[str]] = study.causes_at(found, stage)
    causes = {cause: groups[cause] for cause in sorted(known.lost, key=lambda c: -known.lost[c].value)}
    rows = [
        {
            "name": cause,
            "title": CAUSE_TITLES[cast(Any, cause)],
            "value": share.value,
            "low": share.low,
            "high": share.high,
            "alone": known.alone[cause].value,
            "sure": share.sure > 0 and known.total.low > 0,
        }
        for cause, share in known.lost.items()
    ]
    export.chart(
        "Share of the differences in accuracy that each cause explains",
        figures.plot_shares(rows, known.total.value),
        key="cause_shares",
        sets=Click(controls.MEASURE, {cause: names[0] for cause, names in causes.items()}),
    )
    st.caption(
        "A bar is what would be lost without the cause, on tasks that the regression has not learned from; in colour "
        f"where it is beyond chance. Causes that say the same share the rest. Intervals are over "
        f"{escape(known.total.ci_unit)}. Their measures, in this order: "
        + "; ".join(escape(", ".join(title(name) for name in names)) for names in causes.values())
        + "."
    )


# --- choosing tasks ----------------------------------------------------------------------------------------------


def _choose(found: MeasuredTasks, method: str, measure: str, known: VarianceExplained | None) -> np.ndarray:
    """Two charts to draw a box in, and the tasks that are chosen."""
    st.markdown("#### Which tasks?")
    about = f"{found.spec['digest']} {method}"
    brush = str(links.value_of(study.BRUSH, "brush", about))
    try:
        which = study.chosen(found, method, brush, known)
    except FsvizError as error:
        st.warning(escape(f"{error} The hardest tenth is chosen instead."), icon="⚠️")
        which = study.chosen(found, method)
    accuracy, shown = 100 * found.accuracy[method], np.arange(len(found))
    few = shown if len(found) <= MOST_POINTS else shown[:: -(-len(found) // MOST_POINTS)]
    left, right = shell.responsive_columns("chosen", [1, 1], gap="large")
    with left:
        export.chart(
            f"{title(measure)} and accuracy of every task",
            figures.plot_tasks(
                found.measures[measure][few], accuracy[few], few, which[few], lower_title(measure), "accuracy (%)"
            ),
            key="cause_tasks",
            sets=Click(TASK, area=Area(study.BRUSH, partial(_ranges, measure, 1.0))),
            selection_mode=("box", "points"),
        )
    if known is not None:
        with right:
            export.chart(
                "Expected and measured accuracy",
                figures.plot_tasks(
                    100 * known.expected[few],
                    accuracy[few],
                    few,
                    which[few],
                    "accuracy that the regression expects, not having seen the task (%)",
                    "accuracy (%)",
                    study.calibration(found, method, known),
                ),
                key="cause_expected",
                sets=Click(TASK, area=Area(study.BRUSH, partial(_ranges, study.EXPECTED, 0.01))),
                selection_mode=("box", "points"),
            )
    with st.container(horizontal=True, vertical_alignment="center"):
        what = "the hardest tenth" if not brush else "those in the box"
        st.markdown(f"**{int(which.sum()):,} of {len(found):,} tasks are chosen:** {what}. Draw a box in a chart to "
                    "choose others.", width="stretch")  # fmt: skip
        if brush:
            st.button("The hardest tenth again", key="unbrush", on_click=_unbrushed)
    return which


def _ranges(x_axis: str, times: float, x: Sequence[float], y: Sequence[float]) -> str:
    """The ranges of a box over a chart of tasks, as the link has them; `times` makes shares of percentages."""
    return study.brush_text({x_axis: (times * x[0], times * x[1]), study.ACCURACY: (y[0] / 100, y[1] / 100)})


def _rank_ranges(order: list[str], x: Sequence[float], y: Sequence[float]) -> str | None:
    """The ranges of a box over the strips of measures, as the link has them; None if it holds no strip."""
    low, high = sorted(y)
    names = [name for i, name in enumerate(order) if low <= i + 0.28 and i - 0.28 <= high]
    ends = tuple(np.clip(np.array(sorted(x)) / 100, 0, 1))
    return study.brush_text({study.RANK + name: cast(Any, ends) for name in names}) if names else None


def _unbrushed() -> None:
    st.session_state["brush"] = ""


def _chosen(
    dataset: Dataset, found: MeasuredTasks, method: str, known: VarianceExplained | None, which: np.ndarray
) -> None:
    """What the chosen tasks have in common, and the tasks themselves."""
    if not which.any():
        st.info("No task lies in this box. Draw a wider one.", icon="🔍")
        return
    left, right = shell.responsive_columns("extremes", [1, 1], gap="large")
    with left:
        st.markdown("**In which measures do they stand out?**")
        means = study.extremes(found, which)
        titles = {name: title(name) for name in found.measures}
        ranks = cached_call(study.ranks, found)
        order = list(means.sort_values("rank")["measure"]) if len(means) else list(ranks)
        export.chart(
            "Where the chosen tasks stand in every measure",
            figures.plot_ranks(ranks, which, means, titles),
            key="cause_ranks",
            sets=Click(area=Area(study.BRUSH, partial(_rank_ranges, order))),
            selection_mode="box",
        )
        st.caption(
            "Every dot is a task, the hardest by the measure at the right. Diamonds are means of the chosen with 95% "
            "intervals over classes, filled where they are off the middle beyond chance. A box over a strip chooses "
            "tasks by it."
        )
        if known is not None:
            st.markdown(escape(study.describe_selection(found, method, known, which)))
    with right:
        _tasks(dataset, found, method, known, which)


def _tasks(
    dataset: Dataset, found: MeasuredTasks, method: str, known: VarianceExplained | None, which: np.ndarray
) -> None:
    st.markdown("**The chosen tasks, the hardest first**")
    accuracy = found.accuracy[method]
    order = np.flatnonzero(which)
    order = order[np.argsort(accuracy[order], kind="stable")]
    notes = {
        int(i): f"{accuracy[i]:.0%} right" + (f", {known.expected[i]:.0%} expected" if known is not None else "")
        for i in order
    }
    about = f"{found.spec['digest']} {method} {order[:3]} {len(order)}"
    task = task_list.pick_task(dataset, found.tasks, order, notes, about)
    named = cached_call(_name, dataset, found, task)
    backbone = str(found.spec["backbone"])
    if not dataset.has_pixels:
        page_links.from_task(dataset, found.tasks, task, backbone, named=named)
        return
    predictions = cached_call(study.predictions, dataset, found, method, task)
    one = found.tasks.take(np.array([task]))
    task_list.show_task(dataset, one, 0, "cause_task", answer=predictions, tile_px=52, named=named)
    if predictions is None:
        st.caption("Frames show right and wrong for methods that are built in, at their defaults.")


# --- measures among themselves -----------------------------------------------------------------------------------


def _families(found: MeasuredTasks) -> None:
    matrix, groups = cached_call(study.families, found)
    if len(matrix) < 2:
        return
    st.markdown("#### Which measures say the same?")
    export.chart(
        "Rank correlations among measures",
        figures.plot_likeness(matrix, {name: title(name) for name in matrix.columns}, groups),
        key="cause_families",
    )
    shared = [" · ".join(title(name) for name in group) for group in groups if len(group) > 1]
    st.caption(
        "Rank correlations over the tasks, every measure turned so that higher is harder. Frames hold families, whose "
        f"measures are alike by {study.ALIKE} on average"
        + (f": {escape('; '.join(shared))}." if shared else "; there is none here.")
    )


def _unknown(found: MeasuredTasks) -> None:
    if found.unknown:
        with st.expander(f"{len(found.unknown)} measures are not known of these tasks"):
            for name, why in found.unknown.items():
                st.markdown(f"**{escape(title(name))}**: {escape(why)}")


def _table(found: MeasuredTasks) -> None:
    with st.expander(
        f"All numbers of the {len(found):,} tasks, seen by {escape(title_of(str(found.spec['backbone'])))}"
    ):
        export.table(study.task_table(found), study.as_table(found).reset_index(), height=320)
