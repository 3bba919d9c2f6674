"""The page One task: the profile of the task in the link, alone or compared with another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from fsviz import features, jobs
from fsviz.analyses import custom_task
from fsviz.analyses import task_profile as study
from fsviz.analyses.task_profile import MethodResult, TaskProfile, ValuesAmongTasks
from fsviz.difficulty.measures import MEASURES
from fsviz.difficulty.objectives import OBJECTIVES, SUPPORT_SETS
from fsviz.errors import FsvizError
from fsviz.figures import task_profile as figures
from fsviz.records import PAD, Dataset, Predictions, Progress, TaskId
from fsviz.settings import RawSettings, Setting
from fsviz.tasks import task_ids
from fsviz.tasks.task_ids import TASK_NAME, ResolvedTestbed
from fsviz.ui.pages.task.attributes import show_attributes
from fsviz.ui.pages.task.choices import pick_method, pick_pairs, picked_result
from fsviz.ui.pages.task.classes import show_classes
from fsviz.ui.parts import access, caching, controls, export, links, page_links, selections, shell, task_list
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.image_wall import Row, Tile, task_rows
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape

BY = Setting(
    "through",
    "Order tasks by",
    "The order of Previous and Next: position in the testbed, or the value of a measure.",
    "choice",
    study.POSITION,
)
MEASURE_ALL = Setting(
    "whole",
    "Compare with all tasks",
    f"Instead of {study.MAX_MEASURED} tasks of the testbed. Slower; saved afterwards.",
    "flag",
    False,
)
TASK_TITLES = ("This task", "Other task")
GO_TO = "go_to"
WALL_PX = 505  # height of the images of a task, which scroll inside; it cuts the last row, so that this shows


def show(dataset: Dataset) -> None:
    tasks = [_resolve(dataset, text) for text in _requested(dataset) if text]
    with shell.side():
        backbone = ""
        if dataset.has_features:
            backbone = controls.pick_backbone(features.required(dataset), help="The network whose features are used.")
    if not tasks or tasks[0] is None:
        _offer_first(dataset)
        return
    try:
        profiles = [
            _load_profile(testbed, position, backbone if testbed.dataset.name == dataset.name else "")
            for testbed, position in filter(None, tasks)
        ]
    except FsvizError as error:
        st.error(escape(error), icon="⚠️")
        _offer_first(dataset)
        return
    _show(profiles)


PAGE = Page(
    slug="task",
    label="One task",
    icon="🪪",
    group="Tasks",
    order=1,
    question="Why is this task hard?",
    lead="Every measure, prediction and image of one task of {dataset}; the link reproduces it.",
    explains=("accuracy", "percentile", "measures", "pair_confusion", "gap", "hard_support"),
    keywords=("explain", "why wrong", "verdict", "profile"),
    show=show,
)


# The task in the link ----------------------------------------------------------------------------------------------


def _requested(dataset: Dataset) -> tuple[str, str]:
    """The task in the link, or the one chosen since, and the task compared with it ("" for none)."""
    state = st.session_state
    arrived = links.requested_for(TASK_NAME.name)
    if arrived is not None:
        state["passport_task"] = arrived
        state["passport_other"] = links.requested_for("other") or ""
    elif (requested_other := links.requested_for("other")) is not None:
        state["passport_other"] = requested_other
    text = state.get("passport_task", "")
    owner = _dataset_of(text)
    if owner and owner != dataset.name and owner in shell.known_names():
        if arrived:  # the link has a task of another dataset than the selected one
            shell.choose_dataset(owner)
            st.rerun()
        text = state["passport_task"] = state["passport_other"] = ""  # another dataset was selected here
    if not text:
        text = state["passport_task"] = str(selections.task_of(dataset) or cached_call(study.first_task, dataset))
    links.keep(TASK_NAME.name, text)
    links.keep("other", state.get("passport_other") or None)
    return text, state.get("passport_other", "")


def _dataset_of(text: str) -> str:
    try:
        return task_ids.dataset_of(text) if text else ""
    except FsvizError:
        return ""


def _resolve(dataset: Dataset, text: str) -> tuple[ResolvedTestbed, int] | None:
    """The testbed and position of a task; None after a message if it cannot be shown."""
    try:
        task = task_ids.parse_task_id(text)
        if not access.within_limits(task_ids.n_tasks_of(task.testbed), task_ids.n_images_of(task.testbed)):
            return None
        testbed = _find(dataset, task.testbed)
        study.task_at(testbed, task.position)
        return testbed, task.position
    except FsvizError as error:
        st.error(escape(shell.with_setting_titles(error)), icon="⚠️")
        return None


def _offer_first(dataset: Dataset) -> None:
    """Offers other tasks if the task of the link cannot be shown."""
    with st.container(horizontal=True, gap="medium"):
        st.button("Open an example task", icon="🪪", on_click=_go, args=(str(cached_call(study.first_task, dataset)),))
        shell.page_link("sample_tasks", "Sample tasks", shell.link(dataset))


def _go(task: str, compared: str | None = None) -> None:
    st.session_state["passport_task"] = task
    if compared is not None:
        st.session_state["passport_other"] = compared


# The page ----------------------------------------------------------------------------------------------------------


def _show(profiles: Sequence[TaskProfile]) -> None:
    """Shows first what is fast, then what needs other tasks to be measured, each in its container."""
    with shell.side():
        steps = st.container()
        by = _pick_order(profiles[0])
        pick_method(profiles[0])
        choice_of_pairs = st.container()
        measure_all = _pick_measure_all(profiles)
    _answer(profiles)
    if len(profiles) > 1:
        walls = list(st.columns(2, gap="large"))
        measured = st.container()
    else:
        wall, measured = shell.responsive_columns("passport", [11, 10], gap="large")
        walls = [wall]
    accuracies, attributes = shell.responsive_columns("surroundings", [11, 10], gap="large")
    classes = st.container()
    more = st.container()
    for which, (slot, profile) in enumerate(zip(walls, profiles, strict=True)):
        with slot:
            of = f"ask {profile.position:,} of {escape(profile.testbed.title)}"
            st.caption(f"**{TASK_TITLES[which]}**: t{of}" if len(profiles) > 1 else f"T{of}")
            _images(profile, which)
            _page_links(profile)
            if not which:
                selections.show(profile.dataset, profile.tasks, 0, profile.task_id, picked=True)
    with choice_of_pairs:
        pairs = pick_pairs(profiles)
    with classes:
        show_classes(profiles, pairs)
    with attributes:
        show_attributes(profiles)
    with measured:
        spreads = [_values_among(profile, measure_all) for profile in profiles]
    profiles = [study.with_values_among_tasks(p, s) for p, s in zip(profiles, spreads, strict=True)]
    _answer(profiles, spreads)
    with steps:
        _steps(profiles[0], spreads[0], by)
    with measured:
        _percentiles(profiles, spreads)
    with accuracies:
        _accuracies(profiles)
    with more:
        if any(p.backbone and p.dataset.has_pixels for p in profiles):
            st.subheader("Same queries, other support sets", anchor=False)
        for which, profile in enumerate(profiles):
            _support_sets(profile, which, titled=len(profiles) > 1)
        shell.command_popover(study.command(profiles[0]))
        export.command("report", "--task", str(profiles[0].task_id))


def _answer(profiles: Sequence[TaskProfile], spreads: Sequence[ValuesAmongTasks] | None = None) -> None:
    """The answer, first without the other tasks: measuring them takes a while."""
    results = [picked_result(profile) for profile in profiles]
    if len(profiles) > 1:
        sentence, more = study.compare_headline(profiles, spreads, results)
    else:
        sentence, more = study.headline(profiles[0], spreads[0] if spreads else None, results[0])
    shell.answer(
        escape(sentence), escape(more) if spreads else "Measuring other tasks of the testbed to compare it with…"
    )


def _pick_order(profile: TaskProfile) -> str:
    titles = {study.POSITION: "Position in the testbed"}
    titles |= {v.measure.name: v.measure.title for v in profile.values if np.isfinite(v.value)}
    titles |= {f"{study.ACCURACY}{result.key}": f"Accuracy of {result.key}" for result in profile.results}
    return str(controls.pick(BY.with_(choices=titles)))


def _pick_measure_all(profiles: Sequence[TaskProfile]) -> bool:
    largest = max((len(p.testbed.tasks) for p in profiles if p.backbone), default=0)
    if largest <= study.MAX_MEASURED:
        links.drop_from_link(MEASURE_ALL.name)
        return False
    with st.expander("More settings", type="compact"):
        return bool(controls.pick(MEASURE_ALL.with_(title=f"Compare with all {largest:,} tasks")))


def _steps(profile: TaskProfile, among: ValuesAmongTasks, by: str) -> None:
    """Controls that go to another task, and that compare two tasks."""
    orders = study.orders(profile, among)
    positions, values = orders.get(by, orders[study.POSITION])
    own = {study.POSITION: float(profile.position)} | {v.measure.name: v.value for v in profile.values}
    own |= {f"{study.ACCURACY}{result.key}": result.accuracy for result in profile.results}
    previous, following = study.neighbours(profile, positions, values, own.get(by, np.nan))
    columns = st.columns(2, gap="xsmall")
    for column, label, icon, position in zip(columns, ("Previous", "Next"), ("◀️", "▶️"), (previous, following)):
        task = "" if position is None else str(TaskId(profile.testbed.name, position))
        disabled = position is None
        column.button(
            escape(label),
            icon=icon,
            key=f"step_{label}",
            disabled=disabled,
            on_click=_go,
            args=(task,),
            width="stretch",
        )
    n_tasks = len(profile.testbed.tasks)
    if n_tasks > 1:
        st.session_state[GO_TO] = profile.position
        st.number_input(
            "Go to task",
            0,
            n_tasks - 1,
            key=GO_TO,
            on_change=_go_to,
            args=(profile.testbed.name,),
            help=f"Position in the testbed: 0 to {n_tasks - 1:,}.",
        )
    for label, icon, key, args in _comparisons(profile, by, following, _ends(positions, values)):
        st.button(escape(label), icon=icon, key=key, on_click=_go, args=args, width="stretch")


def _go_to(testbed: str) -> None:
    _go(str(TaskId(testbed, int(st.session_state[GO_TO]))))


def _comparisons(
    profile: TaskProfile, by: str, following: int | None, ends: tuple[int, int] | None
) -> list[tuple[str, str, str, tuple[str, str]]]:
    """Label, icon, key and the two tasks of every button that starts, changes or ends a comparison."""
    task, compared = str(profile.task_id), st.session_state.get("passport_other", "")
    if compared:
        return [("Swap", "🔁", "step_swap", (compared, task)), ("Stop comparing", "✖️", "step_alone", (task, ""))]
    name = profile.testbed.name
    if by == study.POSITION:
        pair = (task, str(TaskId(name, following or 0)))
        return [] if following is None else [("Compare with next", "⚖️", "beside_next", pair)]
    return [
        (f"Compare with {end} {_lower_title(by)}", "⚖️", f"beside_{end}", (task, str(TaskId(name, position))))
        for end, position in zip(("lowest", "highest"), ends or (), strict=False)
        if position != profile.position
    ]


def _ends(positions: np.ndarray, values: np.ndarray) -> tuple[int, int] | None:
    available = np.isfinite(values)
    if not available.any():
        return None
    positions, values = positions[available], values[available]
    return int(positions[values.argmin()]), int(positions[values.argmax()])


def _lower_title(by: str) -> str:
    return MEASURES[by].lower_title if by in MEASURES else by


def _images(profile: TaskProfile, which: int) -> None:
    """Support and query images, with the predictions of a method."""
    dataset = profile.dataset
    if not profile.has_images or not dataset.has_pixels:
        _class_table(profile)
        return
    result = picked_result(profile)
    names = profile.names
    rows = []
    for way in range(len(names))[: task_list.MOST_ROWS]:
        support, query = (side[0, way] for side in (profile.tasks.support, profile.tasks.query))
        rows.append(Row(names[way], [Tile(int(i)) for i in support[support != PAD][:20]], kind="support"))
        tiles, n_correct = [], 0
        for at in np.flatnonzero(query != PAD):
            predicted = way if result is None else int(_predictions(result).predicted[0, way, at])
            n_correct += predicted == way
            frame: Any = None if result is None else "right" if predicted == way else "wrong"
            tiles.append(Tile(int(query[at]), "" if predicted == way else names[predicted], frame))
        note = f"{n_correct} of {len(tiles)} correct" if result else ""
        rows.append(Row("", tiles[:40], note, kind="query", reserve=result is not None))
    with st.container(height=WALL_PX, border=False) if len(names) > 2 else st.container():
        clicked = task_rows(dataset, rows, f"passport_wall_{which}", tile_px=48)
    page_links.to_gallery(dataset, clicked)
    legend = "" if result is None else "✓ correct · ✗ incorrect, with the predicted class."
    first = f" First {task_list.MOST_ROWS} of {len(names):,} classes." if len(names) > task_list.MOST_ROWS else ""
    scroll = f" Scroll for all {len(names):,} classes." if len(names) > 2 and not first else ""
    if legend or first:
        st.caption(f"{legend}{first}{scroll}")


def _predictions(result: MethodResult) -> Predictions:
    assert result.predictions is not None
    return result.predictions


def _class_table(profile: TaskProfile) -> None:
    dataset = profile.dataset
    st.markdown("**Classes**")
    table = pd.DataFrame({"class": profile.names})
    if profile.has_images:
        for side in ("support", "query"):
            images = getattr(profile.tasks, side)[0][: len(profile.names)]
            table[side] = [", ".join(str(int(i)) for i in row if i != PAD) for row in images]
    export.table(study.CLASSES, table if len(table) <= 12 else 420)
    if profile.backbone:
        st.caption(f"{escape(dataset.title)} has no images here: the table lists image ids.")
    elif dataset.has_pixels:
        st.caption("Classes only: this task has no images.")
    else:
        st.caption(
            f"{escape(dataset.title)} has no images here: only class names, taxonomy and coarsity are available. "
            f"{shell.missing_hint(dataset, 'images')}"
        )


def _percentiles(profiles: Sequence[TaskProfile], spreads: Sequence[ValuesAmongTasks]) -> None:
    """Shows the percentile of every measure, and the measures that are not available."""
    percentiles = [study.percentiles(p, s) for p, s in zip(profiles, spreads, strict=True)]
    available = [name for name in MEASURES if any(name in of for of in percentiles)]
    if not available or all(len(s.positions) < 2 for s in spreads):
        st.caption("Only task in this testbed: no percentiles.")
        _value_table(profiles)
        return
    caption, rows = st.container(), []
    for name in available:
        of_tasks = [of.get(name) for of in percentiles]
        rows.append(
            {
                "title": MEASURES[name].title,
                "direction": MEASURES[name].direction,
                "harder": [100 * s.harder if s else np.nan for s in of_tasks],
                "value": [s.value if s else np.nan for s in of_tasks],
            }
        )
    figure = figures.plot_percentiles(rows, TASK_TITLES[: len(profiles)])
    export.chart("Percentiles of the measures", figure, key="standings")
    caption.caption(
        escape(_percentile_caption(profiles, spreads)),
        help="Equal values count half as easier. A position among tasks is not a proven cause.",
    )
    _value_table(profiles, percentiles)


def _percentile_caption(profiles: Sequence[TaskProfile], spreads: Sequence[ValuesAmongTasks]) -> str:
    among = spreads[0]
    tasks = f"all {among.n_tasks:,}" if among.is_complete else f"{len(among.positions):,} of {among.n_tasks:,}"
    testbed = "" if len(profiles) == 1 else " of its testbed"
    return f"Percentile among {tasks} tasks{testbed}, harder to the right."


def _value_table(profiles: Sequence[TaskProfile], percentiles: Sequence[Mapping[str, study.Percentile]] = ()) -> None:
    rows = []
    for name, measure in MEASURES.items():
        values = [p.value(name) for p in profiles]
        if not np.isfinite(values).any():
            continue
        row: dict[str, Any] = {"title": measure.title, "higher_is": measure.direction, "uses": measure.labels}
        for which, value in enumerate(values):
            percentile = percentiles[which].get(name) if percentiles else None
            row |= {f"value_{which}": value, f"percentile_{which}": 100 * percentile.lower if percentile else None}
        rows.append(row)
    with st.expander("Values and definitions"):
        table = study.value_table(TASK_TITLES[: len(profiles)])
        export.table(table, rows, key="measure_table")
        for item in profiles[0].values:
            if not item.why_not:
                st.markdown(f"**{escape(item.measure.title)}** {escape(item.measure.description)}")
        reasons: dict[str, list[str]] = {}
        for item in profiles[0].values:
            if item.why_not:
                reasons.setdefault(item.why_not, []).append(item.measure.title)
        for reason, titles in reasons.items():
            st.caption(f"Not available: {escape(', '.join(titles))}. {escape(reason)}")


def _accuracies(profiles: Sequence[TaskProfile]) -> None:
    """Shows the accuracy of every method with the testbed mean."""
    results = profiles[0].results
    if not results:
        return
    st.markdown("**Accuracy by method**")
    by_method = [{result.key: result for result in profile.results} for profile in profiles]
    has_several = len({result.backbone for result in results}) > 1
    rows = []
    for result in results:
        mean, half_width = result.mean
        rows.append(
            {
                "label": result.key if has_several else result.label,
                "accuracy": [100 * of[result.key].accuracy if result.key in of else np.nan for of in by_method],
                "mean": 100 * mean,
                "ci95": 100 * half_width,
                "n": int(np.isfinite(result.testbed_accuracy).sum()),
            }
        )
    figure = figures.plot_accuracies(rows, TASK_TITLES[: len(profiles)])
    export.chart("Accuracy by method", figure, key="method_answers")
    runs = list(dict.fromkeys(result.source for result in results if result.source))
    source = "Fast methods only. Evaluate this testbed to add others."
    if runs:
        source = f"From {'run' if len(runs) == 1 else 'runs'} {', '.join(runs)}."
    n_tasks = max(int(np.isfinite(result.testbed_accuracy).sum()) for result in results)
    st.caption(
        escape(f"Dot: this task. Bar: mean over {n_tasks:,} tasks, 95% CI. {source}"),
        help="The accuracy of this task is exact for its queries. The CI is over tasks of these images.",
    )


def _support_sets(profile: TaskProfile, which: int, titled: bool) -> None:
    """Shows hard and easy support sets for the same queries."""
    dataset = profile.dataset
    if not profile.backbone or not dataset.has_pixels:
        return
    if titled:
        st.markdown(f"**{TASK_TITLES[which]}**")
    try:
        sets = cached_call(study.support_sets_of, profile, words="Searching for hard and easy support sets", keep=64)
    except FsvizError as error:
        st.caption(escape(error))
        return
    columns = shell.responsive_columns(f"sets_{which}", len(SUPPORT_SETS), gap="medium")
    for column, (name, kind) in zip(columns, SUPPORT_SETS.items(), strict=True):
        with column:
            title = kind.title if name in OBJECTIVES else "This support"
            st.markdown(f"**{title}** · {sets.accuracy(name)[0]:.0%} correct")
            rows = [
                Row(class_name, [Tile(int(i)) for i in images if i != PAD], kind="support")
                for class_name, images in zip(profile.names[:12], sets.tasks[name].support[0], strict=False)
            ]
            page_links.to_gallery(dataset, task_rows(dataset, rows, f"set_{name}_{which}", tile_px=44))
    st.caption("Hard and easy support sets of a search by ProtoNet accuracy; harder and easier ones may exist.")


def _page_links(profile: TaskProfile) -> None:
    if profile.backbone and len(profile.class_ids) <= custom_task.MAX_CLASSES:
        with st.container(horizontal=True, gap="medium"):
            page_links.to_task(profile.dataset, profile.tasks, 0, profile.backbone, "Edit support images")
            page_links.to_map(profile.dataset, profile.tasks, 0, profile.backbone)


# Cached ------------------------------------------------------------------------------------------------------------

_BY_NAME: dict[type, Any] = {ResolvedTestbed: lambda testbed: testbed.cache_key}


@caching.cache_data("Loading the task", 32)
def _find(dataset: Dataset, name: str) -> ResolvedTestbed:
    return task_ids.find(name, dataset, jobs.folder)


def _load_profile(testbed: ResolvedTestbed, position: int, backbone: str) -> TaskProfile:
    digest = cached_call(study.digest, testbed, keep=64)
    runs = [
        (run.id, run.n_done)
        for run in jobs.list_runs("evaluate")
        if run.n_done and run.spec.get("dataset") == testbed.dataset.name and study.is_of_testbed(run.spec, digest)
    ]
    return _cached_profile(testbed, position, backbone, tuple(runs), caching.identity(testbed.dataset))


@caching.cache_data("Measuring the task", 128, _BY_NAME)
def _cached_profile(
    testbed: ResolvedTestbed, position: int, backbone: str, runs: tuple, identity: tuple[str, str]
) -> TaskProfile:
    recorded: list[MethodResult] = []
    for run_id, _ in runs:
        try:
            recorded += study.results_of_run(
                run_id, jobs.spec(run_id), partial(jobs.chunks, run_id), study.digest(testbed), position
            )
        except FsvizError:  # a damaged run is skipped
            continue
    return study.open_task(testbed, position, backbone, study.newest_of_each(recorded))


def _values_among(profile: TaskProfile, measure_all: bool) -> ValuesAmongTasks:
    computed = [result.method for result in profile.results if not result.source]
    n_tasks = len(profile.testbed.tasks)
    max_tasks = (
        n_tasks
        if measure_all and access.within_limits(n_tasks, profile.tasks.query.size * n_tasks)
        else study.MAX_MEASURED
    )
    spec = {
        "dataset": profile.dataset.name,
        "testbed": profile.testbed.name,
        "backbone": profile.backbone,
        "methods": computed,
        "max_tasks": max_tasks,
    }
    return caching.compute_with_progress(_measure, spec, "Measuring the other tasks")


def _measure(spec: RawSettings, progress: Progress) -> ValuesAmongTasks:
    testbed = _find(shell.load_dataset(spec["dataset"]), spec["testbed"])
    return study.values_among_tasks(testbed, spec["backbone"], spec["max_tasks"], spec["methods"], progress)
