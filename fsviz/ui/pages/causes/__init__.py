"""The page Causes: the share of the variation in accuracy per cause, and what the hardest tasks have in common."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
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
from fsviz.records import Dataset, TaskId
from fsviz.settings import Setting
from fsviz.studies import causes as study
from fsviz.studies.causes import MeasuredTasks, VarianceExplained
from fsviz.tasks import task_ids
from fsviz.ui.pages.causes import settings
from fsviz.ui.parts import controls, export, hover, links, page_links, shell, task_list
from fsviz.ui.parts.answers import answer, patience, work_of
from fsviz.ui.parts.caching import cached_call, is_computed
from fsviz.ui.parts.clicks import Area, Click
from fsviz.ui.parts.headline import show_number
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape
from fsviz.ui.parts.task_list import TASK

MAX_POINTS = 3000
PREVIEW = 100  # tasks
HEIGHT, TALL = 350, 480
CAUSES, MEASURES_VIEW = "Causes", "Measures"
VIEW = Setting("figure", "Figure", "", "choice", CAUSES, choices={name: name for name in (CAUSES, MEASURES_VIEW)})
ACCURACY_OF = Setting("accuracy_of", "Accuracy of", "Method whose accuracy is explained.", "choice", "")


def show(dataset: Dataset) -> None:
    """Show the main cause with its figure first, then the selected tasks, then the details."""
    backbones, first = shell.known_backbones(dataset), shell.side().container()
    spec = settings.pick(dataset, backbones)
    is_preview = _starts_with_preview(spec)
    measured = _measure(cast(Any, study.STUDY.shorten)(spec, PREVIEW) if is_preview else spec)
    if measured is None:
        return
    with first:
        method = _pick_method(measured)
        stage = str(controls.pick(study.STAGE))
    variance = _answer(measured, method, stage)
    if is_preview:
        shell.answer("Measuring all tasks.", f"Below is a preview of the first {len(measured):,}.")
    selected = _select(measured, method, variance)
    _show_causes_and_tasks(dataset, measured, method, stage, variance, selected)
    if variance is not None:
        _show_prediction(dataset, measured, method, variance, selected)
    _show_redundancy(measured)
    _list_unavailable(measured)
    _show_table(measured)
    shell.command_popover(study.command(spec))
    if is_preview:
        _measure(spec)
        st.rerun()


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


def _starts_with_preview(spec: study.CausesSpec) -> bool:
    """Whether to show the first tasks while all of them are measured, which takes seconds the first time."""
    full_spec = {"study": study.STUDY.name, **spec}
    if spec["run"] or is_computed(jobs.compute, full_spec) or jobs.find(full_spec) is not None:
        return False
    work = work_of(study.STUDY, spec)
    return work.n > 1.5 * PREVIEW and work.seconds <= patience()


def _measure(spec: study.CausesSpec) -> MeasuredTasks | None:
    """Measure the tasks of a spec, with the accuracies of its evaluation if it names one."""
    measured = answer(study.STUDY, spec, "Measuring tasks")
    if measured is None or not spec["run"]:
        return measured
    accuracy = cached_call(_accuracies, spec["run"], spec["backbone"], words="Reading the run")
    return study.with_predictions(measured, accuracy)


def _accuracies(run_id: str, backbone: str) -> dict[str, np.ndarray]:
    """Accuracy of every task by the methods of an evaluation on this backbone."""
    spec = jobs.spec(run_id)
    lines = run_comparison.method_runs(run_id, spec, jobs.chunks(run_id), jobs.status(run_id).summary)
    by_name = run_comparison.by_name([line for line in lines if line.backbone == backbone])
    return {name: line.accuracy for name, line in by_name.items()}


def _answer(measured: MeasuredTasks, method: str, stage: str) -> VarianceExplained | None:
    """Answer the question of the page; None if there are too few tasks for a regression."""
    try:
        variance = _explained(measured, method, stage)
    except BadInput as error:
        shell.answer("Causes cannot be compared here.", escape(str(error)))
        return None
    sentence, more = study.headline(measured, method, variance)
    more = f"{more} {study.describe_accuracy(measured, method)}"
    is_sampled = not (measured.spec["testbed"] or measured.spec["run"])
    n_shot = measured.spec.get("n_shot", 1) if is_sampled else 1
    controls.show_answer(escape(sentence), escape(more), float(np.nanmean(measured.accuracy[method])), n_shot)
    return variance


def _explained(measured: MeasuredTasks, method: str, stage: str) -> VarianceExplained:
    return cached_call(study.explained, measured, method, stage, words="Fitting the regression", keep=64)


def _pick_method(measured: MeasuredTasks) -> str:
    titles = {label: label for label in measured.accuracy}
    return str(controls.pick(ACCURACY_OF.with_(choices=titles, default=next(iter(titles)))))


# --- the main figure, and the tasks next to it --------------------------------------------------------------------


def _show_causes_and_tasks(
    dataset: Dataset,
    measured: MeasuredTasks,
    method: str,
    stage: str,
    variance: VarianceExplained | None,
    selected: np.ndarray,
) -> None:
    """Show causes or measures next to the tasks by one measure, then the selected tasks."""
    strongest = cached_call(study.strongest_measure, measured, method)
    if not strongest:
        st.info("No variation between these tasks. Sample other tasks.", icon="🔍")
    titles = {name: title(name) for name in measured.measures}
    picker = controls.MEASURE.with_(choices=titles, default=strongest or next(iter(titles)))
    measure = str(links.value_of(picker, picker.name, method))
    order = np.flatnonzero(selected)
    order = order[np.argsort(measured.accuracy[method][order], kind="stable")]
    about = f"{measured.spec['digest']} {method} {order[:3]} {len(order)}"
    current = str(links.value_of(TASK, TASK.name, about))
    is_task = current.isascii() and current.isdecimal() and int(current) < len(measured)
    task = int(current) if is_task else int(order[0]) if len(order) else -1
    if is_task and task not in order:  # clicked outside the selection: first in the list
        order = np.append(task, order)
    left, right = shell.responsive_columns("causes", [1, 1], gap="medium")
    with left:
        view = MEASURES_VIEW
        if variance is not None:
            view = controls.pick(VIEW, as_buttons=True, label_visibility="collapsed")
        if view == CAUSES and variance is not None:
            _show_shares(measured, stage, variance, measure)
        else:
            _show_correlations(measured, method, measure, picker)
    with right:
        tooltip = f"{MEASURES[measure].tooltip} Draw a box to select tasks; click a dot to show its images."
        st.markdown(f"**{escape(title(measure))} of every task**", help=escape(tooltip))
        export.chart(
            f"{title(measure)} and accuracy of every task",
            figures.plot_tasks(
                *_sample(measured, measured.measures[measure], method, selected),
                lower_title(measure),
                classes=_class_names(dataset, measured),
                current=task,
                height=HEIGHT if view == CAUSES else TALL,
            ),
            key="cause_tasks",
            sets=Click(area=Area(study.BRUSH, partial(_ranges, measure, 1.0))),
            selection_mode="box",
        )
        hover.answer_points(dataset, "cause_tasks", TASK, len(measured))
        if dataset.has_pixels:
            hover.strips(dataset, "cause_tasks", measured.tasks.support[:, :, 0])
    _show_selection(dataset, measured, method, variance, selected, order, about)


def _show_shares(measured: MeasuredTasks, stage: str, variance: VarianceExplained, measure: str) -> None:
    """Show the share of every cause; a click plots its first measure."""
    groups: dict[Any, list[str]] = study.causes_at(measured, stage)
    rows = [
        {
            "name": cause,
            "title": CAUSE_TITLES[cast(Any, cause)],
            "value": share.value,
            "low": share.low,
            "high": share.high,
            "alone": variance.alone[cause].value,
            "is_significant": share.sure > 0 and variance.total.low > 0,
            "measures": ", ".join(title(name) for name in groups[cause]),
        }
        for cause, share in variance.lost.items()
    ]
    selected = MEASURES[measure].cause
    export.chart(
        "Share of variation explained",
        figures.plot_shares(rows, variance.total.value, selected, HEIGHT),
        key="cause_shares",
        sets=Click(controls.MEASURE, {cause: groups[cause][0] for cause in variance.lost}),
    )
    st.caption(
        "Bar: loss in held-out R² without the cause. Diamond: R² with this cause only. Blue: significant. "
        "Click a bar to plot its measure.",
        help=f"Held-out R²: variation in accuracy explained on tasks not used for fitting. 95% CI over "
        f"{escape(variance.total.ci_unit)}. Causes that explain the same variation share the rest.",
    )


def _show_correlations(measured: MeasuredTasks, method: str, measure: str, picker: Setting) -> None:
    """Show the correlation of every measure with the accuracy of every method; a click plots the measure."""
    rows: list[dict[str, Any]] = []
    for label in [method, *(label for label in measured.accuracy if label != method)]:
        for name, row in cached_call(study.correlations, measured, label).items():
            sign = 1 if MEASURES[name].direction == "easier" else -1
            low, high = sorted((sign * row.low, sign * row.high))
            ends = {"value": sign * row.value, "low": low, "high": high, "text": f"{row.value:.2f}"}
            rows.append({"name": name, "title": title(name), "method": label, **ends})
    export.chart(
        "Correlation of measures with accuracy",
        figures.plot_correlations(rows, measure, TALL),
        key="cause_correlations",
        sets=picker,
    )
    ci_unit = next(iter(cached_call(study.correlations, measured, method).values())).ci_unit
    st.caption(
        "One point per method, 95% CI. Click a point to plot its measure.",
        help=f"The CI is over {escape(ci_unit)}. Query loss is computed from the predictions, so it is shown for "
        "reference only.",
    )


def _sample(
    measured: MeasuredTasks, x: np.ndarray, method: str, selected: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Values, accuracies (%), numbers and selection of the tasks in a figure, of many only some."""
    step = -(-len(measured) // MAX_POINTS)
    tasks = np.arange(0, len(measured), step)
    return x[tasks], 100 * measured.accuracy[method][tasks], tasks, selected[tasks]


def _class_names(dataset: Dataset, measured: MeasuredTasks) -> list[str]:
    """Names of the classes of the tasks in a figure."""
    step = -(-len(measured) // MAX_POINTS)
    return [", ".join(names) for names in cached_call(study.class_names, dataset, measured)[::step]]


# --- selecting tasks ----------------------------------------------------------------------------------------------


def _select(measured: MeasuredTasks, method: str, variance: VarianceExplained | None) -> np.ndarray:
    """Mask of the tasks that the boxes of the link select, else of the hardest 10%."""
    brush = str(links.value_of(study.BRUSH, study.BRUSH.name, f"{measured.spec['digest']} {method}"))
    try:
        return study.select_tasks(measured, method, brush, variance)
    except FsvizError as error:
        st.warning(escape(f"{error} The hardest 10% are selected instead."), icon="⚠️")
        _reset_selection()
        return study.select_tasks(measured, method)


def _ranges(x_axis: str, scale: float, x: Sequence[float], y: Sequence[float]) -> str:
    """The ranges of a box over a chart of tasks, as in the link; `scale` turns percentages into shares."""
    return study.brush_text({x_axis: (scale * x[0], scale * x[1]), study.ACCURACY: (y[0] / 100, y[1] / 100)})


def _rank_ranges(order: list[str], x: Sequence[float], y: Sequence[float]) -> str | None:
    """The ranges of a box over the strips of measures, as in the link; None if it holds no strip."""
    low, high = sorted(y)
    names = [name for i, name in enumerate(order) if low <= i + 0.28 and i - 0.28 <= high]
    ends = tuple(np.clip(np.array(sorted(x)) / 100, 0, 1))
    return study.brush_text({study.RANK + name: cast(Any, ends) for name in names}) if names else None


def _reset_selection() -> None:
    st.session_state[study.BRUSH.name] = study.BRUSH.default


def _show_selection(
    dataset: Dataset,
    measured: MeasuredTasks,
    method: str,
    variance: VarianceExplained | None,
    selected: np.ndarray,
    order: np.ndarray,
    about: str,
) -> None:
    """List the selected tasks, hardest first, with the images of one of them, and how they differ from the others."""
    brush = st.session_state.get(study.BRUSH.name)
    with st.container(horizontal=True, vertical_alignment="center"):
        description = "in the box" if brush else "hardest 10%"
        count = f"**{int(selected.sum()):,} of {len(measured):,} tasks selected: {description}.**"
        st.markdown(f"{count} Drag a box in a chart to change the selection.", width="stretch")
        if brush:
            st.button("Reset to hardest 10%", key="unbrush", on_click=_reset_selection)
    if not selected.any():
        st.info("No tasks in this box.", icon="🔍")
    if not len(order):
        return
    left, right = shell.responsive_columns("extremes", [1, 1], gap="large")
    with left:
        st.markdown("**Selected tasks, hardest first**")
        task = _list_tasks(dataset, measured, method, variance, order, about)
        if dataset.has_pixels and selected.any():
            _show_ranks(measured, method, variance, selected)
    with right:
        if not dataset.has_pixels and selected.any():
            _show_ranks(measured, method, variance, selected)
        _show_task(dataset, measured, method, task)


def _list_tasks(
    dataset: Dataset,
    measured: MeasuredTasks,
    method: str,
    variance: VarianceExplained | None,
    order: np.ndarray,
    about: str,
) -> int:
    """List tasks in this order; returns the picked one."""
    accuracy = measured.accuracy[method]
    notes = {
        int(i): f"{accuracy[i]:.0%} correct" + (f", {variance.expected[i]:.0%} predicted" if variance else "")
        for i in order
    }
    return task_list.pick_task(dataset, measured.tasks, order, notes, about)


def _show_ranks(measured: MeasuredTasks, method: str, variance: VarianceExplained | None, selected: np.ndarray) -> None:
    """Show in which measures the selected tasks differ from the others."""
    st.markdown("**Where the selection differs**")
    means = study.extremes(measured, selected)
    titles = {name: title(name) for name in measured.measures}
    ranks = cached_call(study.ranks, measured)
    order = list(means.sort_values("rank")["measure"]) if len(means) else list(ranks)
    export.chart(
        "Where the selection differs",
        figures.plot_ranks(ranks, selected, means, titles),
        key="cause_ranks",
        sets=Click(area=Area(study.BRUSH, partial(_rank_ranges, order))),
        selection_mode="box",
    )
    st.caption(
        "Dots: tasks, harder to the right. Diamonds: mean of the selection, filled if significant.",
        help="95% CI over classes, Bonferroni-corrected over the measures for significance. A box over a strip selects "
        "tasks by this measure.",
    )
    if variance is not None:
        st.markdown(escape(study.describe_selection(measured, method, variance, selected)))


def _show_task(dataset: Dataset, measured: MeasuredTasks, method: str, task: int) -> None:
    """Show the images of a task, or links to it if the dataset has none."""
    st.markdown(f"**Task {task:,}: {measured.accuracy[method][task]:.0%} correct**")
    task_id = cached_call(_task_id, dataset, measured, task)
    if not dataset.has_pixels:
        page_links.from_task(dataset, measured.tasks, task, str(measured.spec["backbone"]), task_id=task_id)
        return
    predictions = cached_call(study.predictions, dataset, measured, method, task)
    tasks = measured.tasks.take(np.array([task]))
    task_list.show_task(dataset, tasks, 0, "cause_task", answer=predictions, tile_px=52, task_id=task_id)


def _task_id(dataset: Dataset, measured: MeasuredTasks, task: int) -> TaskId | None:
    """The name of a task in links."""
    spec = measured.spec
    run = (spec["run"], 0) if spec["run"] else None
    testbed, backbones = spec["testbed"], [spec["backbone"]]
    return task_ids.name_task(dataset, measured.tasks, task, measured.recipe, backbones, testbed, run)


# --- details ------------------------------------------------------------------------------------------------------


def _show_prediction(
    dataset: Dataset, measured: MeasuredTasks, method: str, variance: VarianceExplained, selected: np.ndarray
) -> None:
    """Show predicted and measured accuracy, and how much is explained at each stage."""
    st.subheader("How well do measures predict accuracy?", anchor=False)
    left, right = shell.responsive_columns("predicted", [2, 1], gap="large")
    with left:
        export.chart(
            "Predicted and measured accuracy",
            figures.plot_tasks(
                *_sample(measured, 100 * variance.expected, method, selected),
                "predicted accuracy (%, held-out)",
                study.calibration(measured, method, variance),
            ),
            key="cause_expected",
            sets=Click(area=Area(study.BRUSH, partial(_ranges, study.EXPECTED, 0.01))),
            selection_mode="box",
        )
        hover.answer_points(dataset, "cause_expected", TASK, len(measured))
    with right:
        by_stage = {}
        for stage in study.STAGE.choices:
            with suppress(BadInput):  # a stage without measures
                by_stage[stage] = _explained(measured, method, stage)
        for number in study.explained_numbers(by_stage):
            show_number(number)
        noise = study.unexplainable(measured, method, by_stage)
        if np.isfinite(noise):
            st.caption(f"Up to {noise:.0%} of the variation is query sampling noise, which no measure can explain.")


def _show_redundancy(measured: MeasuredTasks) -> None:
    matrix, groups = cached_call(study.families, measured)
    if len(matrix) < 2:
        return
    with st.expander("Redundant measures"):
        export.chart(
            "Rank correlation of measures",
            figures.plot_redundancy(matrix, {name: title(name) for name in matrix.columns}, groups),
            key="cause_families",
        )
        st.caption(
            "Rank correlation, sign flipped so that higher is harder. "
            + (
                f"Frames: groups above {study.ALIKE} on average."
                if any(len(group) > 1 for group in groups)
                else f"No group of measures is above {study.ALIKE} on average."
            )
        )


def _list_unavailable(measured: MeasuredTasks) -> None:
    if measured.unknown:
        n = len(measured.unknown)
        with st.expander(f"{n} {'measure' if n == 1 else 'measures'} not available"):
            for name, reason in measured.unknown.items():
                st.markdown(f"**{escape(title(name))}**: {escape(reason)}")


def _show_table(measured: MeasuredTasks) -> None:
    with st.expander(f"All values ({len(measured):,} tasks, {escape(title_of(str(measured.spec['backbone'])))})"):
        export.table(study.task_table(measured), study.as_table(measured).reset_index(), height=320)
