"""The page One task: one task that a link names, alone or beside another, with everything that is known of it."""

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
from fsviz.features.backbones import title_of
from fsviz.figures import task_profile as figures
from fsviz.records import PAD, Dataset, HeadlineNumber, Predictions, Progress, TaskId
from fsviz.settings import RawSettings, Setting
from fsviz.tasks import task_ids
from fsviz.tasks.task_ids import TASK_NAME, ResolvedTestbed
from fsviz.ui.pages.task.attributes import show_attributes
from fsviz.ui.pages.task.choices import pick_answer, picked_answer
from fsviz.ui.pages.task.classes import show_classes
from fsviz.ui.parts import access, caching, controls, export, links, page_links, selections, shell, task_list
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.headline import show_numbers
from fsviz.ui.parts.image_wall import Row, Tile, task_rows
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape

BY = Setting(
    "through",
    "Go through the tasks by",
    "What comes before and after this task: its place in the testbed, or the next lower and higher value.",
    "choice",
    study.POSITION,
)
WHOLE = Setting(
    "whole",
    "Measure every task",
    f"Holds the task against all tasks of its testbed instead of {study.MAX_MEASURED} of them. Kept afterwards.",
    "flag",
    False,
)
BESIDE = ("This task", "The other")


def show(dataset: Dataset) -> None:
    asked = _asked(dataset)
    shown = [_open(dataset, text) for text in asked if text]
    with shell.side():
        backbone = ""
        if dataset.has_features:
            backbone = controls.pick_backbone(features.required(dataset), help="Whose features are compared.")
    found = [(one, position) for one, position in (pair for pair in shown if pair is not None)]
    if not found or shown[0] is None:
        _offer_first(dataset)
        return
    try:
        passports = [
            _passport(one, position, backbone if one.dataset.name == dataset.name else "") for one, position in found
        ]
    except FsvizError as error:
        st.error(escape(error), icon="⚠️")
        _offer_first(dataset)
        return
    _show(passports)


PAGE = Page(
    slug="task",
    label="One task",
    icon="🪪",
    group="Tasks",
    order=1,
    question="Why is this task hard?",
    lead="Every measure, prediction and image of one task of {dataset}; the link reproduces it.",
    explains=("accuracy", "percentile", "measures", "pair_confusion", "gap", "fastdiffsel"),
    keywords=("explain", "why wrong", "verdict", "profile"),
    show=show,
)


# The task in the link ----------------------------------------------------------------------------------------------


def _asked(dataset: Dataset) -> tuple[str, str]:
    """What the link names, or what was gone to since: the task and the one beside it ("" for none)."""
    state = st.session_state
    arrived = links.requested_for(TASK_NAME.name)
    if arrived is not None:
        state["passport_task"] = arrived
        state["passport_other"] = links.requested_for("other") or ""
    elif (other := links.requested_for("other")) is not None:
        state["passport_other"] = other
    text = state.get("passport_task", "")
    of = _dataset_of(text)
    if of and of != dataset.name and of in shell.known_names():
        if arrived:  # the link names a task of another dataset than the one that was picked before
            shell.choose_dataset(of)
            st.rerun()
        text = state["passport_task"] = state["passport_other"] = ""  # another dataset was picked here
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


def _open(dataset: Dataset, text: str) -> tuple[ResolvedTestbed, int] | None:
    """The testbed of a task that is named, and its position; None after a sentence on why it cannot be shown."""
    try:
        task = task_ids.parse_task_id(text)
        if not access.within_limits(task_ids.n_tasks_of(task.testbed), task_ids.n_images_of(task.testbed)):
            return None
        found = _find(dataset, task.testbed)
        study.task_at(found, task.position)
        return found, task.position
    except FsvizError as error:
        st.error(escape(shell.with_setting_titles(error)), icon="⚠️")
        return None


def _offer_first(dataset: Dataset) -> None:
    """The way on from a link that leads nowhere."""
    with st.container(horizontal=True, gap="medium"):
        st.button(
            "Show a task of this dataset", icon="🪪", on_click=_go, args=(str(cached_call(study.first_task, dataset)),)
        )
        shell.page_link("sample_tasks", "Choose one on the page Sample tasks", shell.link(dataset))


def _go(task: str, other: str | None = None) -> None:
    st.session_state["passport_task"] = task
    if other is not None:
        st.session_state["passport_other"] = other


# What is shown -----------------------------------------------------------------------------------------------------


def _show(passports: Sequence[TaskProfile]) -> None:
    """First what is there at once, then what has to be measured of other tasks, each in its place."""
    head = st.container()
    if len(passports) > 1:
        pick_answer(passports[0])
        walls = list(st.columns(2, gap="large"))
        measured = st.container()
    else:
        wall, measured = shell.responsive_columns("passport", [11, 10], gap="large")
        walls = [wall]
    classes = st.container()
    more = st.container()
    by = _pick_order(passports[0])
    whole = _pick_whole(passports)
    for which, (slot, passport) in enumerate(zip(walls, passports, strict=True)):
        with slot:
            if len(passports) > 1:
                st.markdown(f"**{BESIDE[which]}**: task {passport.position:,} of {escape(passport.found.title)}")
            if len(passports) == 1:
                pick_answer(passport)
            _images(passport, which)
            _leads(passport)
            if not which:
                selections.show(passport.dataset, passport.tasks, 0, passport.task_id, picked=True)
    with classes:
        show_classes(passports)
    with measured:
        slot = st.container()
        show_attributes(passports)
    with slot:
        spreads = [_spread(passport, whole) for passport in passports]
    passports = [study.with_values_among_tasks(p, s) for p, s in zip(passports, spreads, strict=True)]
    with head:
        _headline(passports, spreads, by)
    with slot:
        _standings(passports, spreads)
        _answers(passports)
    with more:
        if any(p.backbone and p.dataset.has_pixels for p in passports):
            st.subheader("The same queries with other support images", anchor=False)
        for which, passport in enumerate(passports):
            _support_sets(passport, which, titled=len(passports) > 1)
        shell.command_popover(study.command(passports[0]))
        export.command("report", "--task", str(passports[0].task_id))


def _pick_order(passport: TaskProfile) -> str:
    titles = {study.POSITION: "Position in the testbed"}
    titles |= {v.measure.name: v.measure.title for v in passport.values if np.isfinite(v.value)}
    titles |= {f"{study.ACCURACY}{one.key}": f"Accuracy of {one.key}" for one in passport.answers}
    return str(controls.pick(BY.with_(choices=titles), shell.side()))


def _pick_whole(passports: Sequence[TaskProfile]) -> bool:
    largest = max((len(p.found.tasks) for p in passports if p.backbone), default=0)
    if largest <= study.MAX_MEASURED:
        links.drop_from_link(WHOLE.name)
        return False
    return bool(controls.pick(WHOLE.with_(title=f"Measure all {largest:,} tasks"), shell.side()))


def _headline(passports: Sequence[TaskProfile], spreads: Sequence[ValuesAmongTasks], by: str) -> None:
    passport, among = passports[0], spreads[0]
    _steps(passport, among, by)
    numbers: list[HeadlineNumber | None] = [*_facts(passport, among), None, None, None, None]
    show_numbers(numbers[:4])
    st.caption(_in_words(passport, among))


def _facts(passport: TaskProfile, among: ValuesAmongTasks) -> list[HeadlineNumber]:
    """The headline numbers of a task, at most four."""
    numbers = []
    if passport.answers:
        best = max(passport.answers, key=lambda one: one.accuracy)
        first = passport.answers[0]
        for one in (first, best) if best.accuracy > first.accuracy else (first,):
            mean, half = one.mean
            side = "above" if one.accuracy >= mean else "below"
            apart = abs(100 * (one.accuracy - mean))
            below = f"{apart:.0f} {'point' if round(apart) == 1 else 'points'} {side} the mean of {100 * mean:.0f}%"
            below = below if apart >= 0.5 else f"as the mean of {100 * mean:.0f}%"
            over = (
                f" The mean is that of {np.isfinite(one.others).sum():,} tasks of the testbed, ± {100 * half:.1f} "
                "points (95% over tasks of these images)."
            )
            numbers.append(
                HeadlineNumber(
                    f"accuracy_{one.key}",
                    f"Accuracy of {one.label}",
                    100 * one.accuracy,
                    digits=0,
                    note=below if np.isfinite(mean) else "",
                    help=f"Exact for these queries.{over if np.isfinite(half) else ''}",
                )
            )
    ranks = study.percentiles(passport, among)
    if "coarsity" in ranks:
        numbers.append(
            HeadlineNumber(
                "coarsity",
                "How far apart in meaning (coarsity)",
                ranks["coarsity"].value,
                unit="",
                note=f"harder than {ranks['coarsity'].harder:.0%} of its testbed",
                help=MEASURES["coarsity"].description,
            )
        )
    pairs = next((p for p in cached_call(study.class_pairs, passport, keep=64) if p.name == "confusion"), None)
    if pairs is not None and pairs.values.any():
        a, b = np.unravel_index(int(np.triu(pairs.values).argmax()), pairs.values.shape)
        note = f"{passport.names[a]} and {passport.names[b]}"
        numbers.append(
            HeadlineNumber(
                "most_confused", "Most mixed up", pairs.values[a, b], unit="bits", digits=2, note=note, help=pairs.what
            )
        )
    if not passport.answers:
        n_classes = len(passport.class_ids)
        numbers.append(HeadlineNumber.count("classes", "Classes", n_classes, help="The ways of the task."))
    return numbers[:4]


def _in_words(passport: TaskProfile, among: ValuesAmongTasks) -> str:
    """One line: which task this is, and by which measures it stands out."""
    found = f"Task {passport.position:,} of {escape(passport.found.title)}."
    stands = study.percentiles(passport, among)
    known = sorted(stands.items(), key=lambda pair: -pair[1].harder)
    hard = [f"{escape(MEASURES[n].title)} ({s.harder:.0%})" for n, s in known if s.harder >= 0.75]
    easy = [f"{escape(MEASURES[n].title)} ({s.harder:.0%})" for n, s in known[::-1] if s.harder <= 0.25]
    if known and len(among.positions) > 1:
        found += f" Harder than three quarters of the testbed by {_some(hard)}." if hard else ""
        found += f" Easier than three quarters by {_some(easy)}." if easy else ""
        found += " By every measure it is among the middle half of its testbed." if not hard and not easy else ""
    return found


def _some(titles: Sequence[str], most: int = 4) -> str:
    more = f" and {len(titles) - most} more" if len(titles) > most else ""
    return ", ".join(titles[:most]) + more


def _steps(passport: TaskProfile, among: ValuesAmongTasks, by: str) -> None:
    """Buttons to the tasks before and after this one, and to the ends."""
    ways = study.orders(passport, among)
    own = {study.POSITION: float(passport.position)} | {v.measure.name: v.value for v in passport.values}
    own |= {f"{study.ACCURACY}{one.key}": one.accuracy for one in passport.answers}
    before, after = study.neighbours(passport, *ways.get(by, ways[study.POSITION]), own.get(by, np.nan))
    ends = _ends(*ways.get(by, ways[study.POSITION]))
    name, other = passport.found.name, st.session_state.get("passport_other", "")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        for label, icon, to in (("Previous", "◀️", before), ("Next", "▶️", after)):
            there = str(TaskId(name, to)) if to is not None else ""
            st.button(label, icon=icon, key=f"step_{label}", disabled=to is None, on_click=_go, args=(there,))
        if by != study.POSITION:
            st.caption(f"by {escape(_pretty(passport, by))}")
        if other:
            task = str(passport.task_id)
            st.button("Swap the two", icon="🔁", key="step_swap", on_click=_go, args=(other, task))
            st.button("Show this one alone", icon="✖️", key="step_alone", on_click=_go, args=(task, ""))
        elif ends is not None:
            for label, to in zip(("lowest", "highest"), ends, strict=True):
                words = f"Beside the {label} by {_pretty(passport, by)}" if by != study.POSITION else ""
                if words and to != passport.position:
                    args = (str(passport.task_id), str(TaskId(name, to)))
                    st.button(escape(words), icon="⚖️", key=f"beside_{label}", on_click=_go, args=args)
            if by == study.POSITION and after is not None:
                args = (str(passport.task_id), str(TaskId(name, after)))
                st.button("Beside the next one", icon="⚖️", key="beside_next", on_click=_go, args=args)


def _ends(positions: np.ndarray, values: np.ndarray) -> tuple[int, int] | None:
    known = np.isfinite(values)
    if not known.any():
        return None
    positions, values = positions[known], values[known]
    return int(positions[values.argmin()]), int(positions[values.argmax()])


def _pretty(passport: TaskProfile, by: str) -> str:
    return MEASURES[by].lower_title if by in MEASURES else by


def _images(passport: TaskProfile, which: int) -> None:
    """Support and query images, with the answers of one method."""
    dataset = passport.dataset
    if not passport.has_images or not dataset.has_pixels:
        _without_images(passport)
        return
    answer = picked_answer(passport)
    names = passport.names
    ways = range(len(names))
    rows = []
    for way in list(ways)[: task_list.MOST_ROWS]:
        support, query = (side[0, way] for side in (passport.tasks.support, passport.tasks.query))
        rows.append(Row(names[way], [Tile(int(i)) for i in support[support != PAD][:20]], kind="support"))
        tiles, right = [], 0
        for at in np.flatnonzero(query != PAD):
            said = way if answer is None else int(_said(answer).predicted[0, way, at])
            right += said == way
            frame: Any = None if answer is None else "right" if said == way else "wrong"
            tiles.append(Tile(int(query[at]), "" if said == way else names[said], frame))
        rows.append(Row("", tiles[:40], f"{right} of {len(tiles)} right" if answer else "", kind="query"))
    page_links.to_gallery(dataset, task_rows(dataset, rows, f"passport_wall_{which}", tile_px=52))
    if len(names) > task_list.MOST_ROWS:
        st.caption(f"The first {task_list.MOST_ROWS} of its {len(names):,} classes.")
    if answer is not None:
        st.caption(
            "A green frame with a tick is a right answer; a broken red one with a cross is wrong, and below it stands "
            "the class that was named instead."
        )


def _said(answer: MethodResult) -> Predictions:
    assert answer.predictions is not None
    return answer.predictions


def _without_images(passport: TaskProfile) -> None:
    dataset = passport.dataset
    st.markdown("**Its classes**")
    table = pd.DataFrame({"class": passport.names})
    if passport.has_images:
        for side in ("support", "query"):
            images = getattr(passport.tasks, side)[0][: len(passport.names)]
            table[side] = [", ".join(str(int(i)) for i in row if i != PAD) for row in images]
    export.table(study.CLASSES, table if len(table) <= 12 else 420)
    if passport.backbone:
        st.caption(f"{escape(dataset.title)} has no pixels here: images are named by their number.")
    elif dataset.has_pixels:
        st.caption("This task is of classes only: no support or query images were drawn for it.")
    else:
        st.caption(
            f"{escape(dataset.title)} comes without images here, so only names, taxonomy and coarsity are known of its "
            f"tasks. {shell.missing_hint(dataset, 'images')}"
        )


def _standings(passports: Sequence[TaskProfile], spreads: Sequence[ValuesAmongTasks]) -> None:
    """Every measure beside the other tasks, and what is not known."""
    stands = [study.percentiles(p, s) for p, s in zip(passports, spreads, strict=True)]
    shown = [name for name in MEASURES if any(name in of for of in stands)]
    st.markdown("**Every measure beside the other tasks**")
    if not shown or all(len(s.positions) < 2 for s in spreads):
        st.caption("It is the only task of its testbed: its numbers can be held against no others.")
        _values_alone(passports)
        return
    rows = []
    for name in shown:
        here = [of.get(name) for of in stands]
        rows.append(
            {
                "title": MEASURES[name].title,
                "direction": MEASURES[name].direction,
                "harder": [100 * s.harder if s else np.nan for s in here],
                "value": [s.value if s else np.nan for s in here],
            }
        )
    figure = figures.plot_percentiles(rows, BESIDE[: len(passports)])
    export.chart("Every measure beside the other tasks", figure, key="standings")
    st.caption(escape(_held_against(passports, spreads)))
    _values_alone(passports, stands)


def _held_against(passports: Sequence[TaskProfile], spreads: Sequence[ValuesAmongTasks]) -> str:
    among = spreads[0]
    of = f"all {among.n_tasks:,} tasks" if among.is_whole else f"{len(among.positions):,} of {among.n_tasks:,} tasks"
    told = f"Held against {of} of its testbed" if len(passports) == 1 else f"Each held against its testbed ({of})"
    seen = f", by features of {title_of(passports[0].backbone)}" if passports[0].backbone else ""
    return f"{told}{seen}. To the right is harder, whichever way a measure runs. Of equal values, half count as easier."


def _values_alone(passports: Sequence[TaskProfile], stands: Sequence[Mapping[str, study.Percentile]] = ()) -> None:
    rows = []
    for name, measure in MEASURES.items():
        values = [p.value(name) for p in passports]
        if not np.isfinite(values).any():
            continue
        row: dict[str, Any] = {"title": measure.title, "higher_is": measure.direction, "uses": measure.labels}
        for which, value in enumerate(values):
            stand = stands[which].get(name) if stands else None
            row |= {f"value_{which}": value, f"percentile_{which}": 100 * stand.lower if stand else None}
        rows.append(row)
    with st.expander("The numbers, and what they are"):
        table = study.value_table(BESIDE[: len(passports)])
        export.table(table, rows, key="measure_table")
        for known in passports[0].values:
            if not known.why_not:
                st.markdown(f"**{escape(known.measure.title)}** {escape(known.measure.description)}")
        reasons: dict[str, list[str]] = {}
        for unknown in passports[0].values:
            if unknown.why_not:
                reasons.setdefault(unknown.why_not, []).append(unknown.measure.title)
        for why_not, titles in reasons.items():
            st.caption(f"Not known here: {escape(', '.join(titles))}. {escape(why_not)}")


def _answers(passports: Sequence[TaskProfile]) -> None:
    """The accuracy of every method beside the testbed's mean."""
    if not passports[0].answers:
        return
    st.markdown("**What methods get right of it**")
    others = [{one.key: one for one in p.answers} for p in passports]
    several = len({one.backbone for one in passports[0].answers}) > 1
    rows = []
    for one in passports[0].answers:
        mean, half = one.mean
        rows.append(
            {
                "label": one.key if several else one.label,
                "accuracy": [100 * of[one.key].accuracy if one.key in of else np.nan for of in others],
                "mean": 100 * mean,
                "ci95": 100 * half,
                "n": int(np.isfinite(one.others).sum()),
            }
        )
    figure = figures.plot_accuracies(rows, BESIDE[: len(passports)])
    export.chart("What methods get right of it", figure, key="method_answers")
    runs = list(dict.fromkeys(one.source for one in passports[0].answers if one.source))
    n = max(int(np.isfinite(one.others).sum()) for one in passports[0].answers)
    told = f"Its own accuracy is exact for its queries. The mean is over {n:,} tasks of the testbed, with 95% intervals"
    told += " over tasks of these images. "
    if runs:
        told += f"From {'run' if len(runs) == 1 else 'runs'} {', '.join(runs)}."
    else:
        told += "Computed here with fast methods; with a run of this testbed, every method of the run is listed."
    st.caption(escape(told))


def _support_sets(passport: TaskProfile, which: int, titled: bool) -> None:
    """The same queries with the hardest and the easiest support images."""
    dataset = passport.dataset
    if not passport.backbone or not dataset.has_pixels:
        return
    if titled:
        st.markdown(f"**{BESIDE[which]}**")
    try:
        found = cached_call(study.support_sets_of, passport, words="Searching hard and easy support images", keep=64)
    except FsvizError as error:
        st.caption(escape(error))
        return
    columns = shell.responsive_columns(f"sets_{which}", len(SUPPORT_SETS), gap="medium")
    for column, (name, kind) in zip(columns, SUPPORT_SETS.items(), strict=True):
        with column:
            title = kind.title if name in OBJECTIVES else "Its own"
            st.markdown(f"**{title}** · {found.accuracy(name)[0]:.0%} of queries right")
            rows = [
                Row(class_name, [Tile(int(i)) for i in images if i != PAD], kind="support")
                for class_name, images in zip(passport.names[:12], found.tasks[name].support[0], strict=False)
            ]
            page_links.to_gallery(dataset, task_rows(dataset, rows, f"set_{name}_{which}", tile_px=44))
    st.caption(
        "Support images that FastDiffSel (Basu et al. 2023) finds for the very same queries, to raise or lower their "
        "loss; the answers are ProtoNet's."
    )


def _leads(passport: TaskProfile) -> None:
    if passport.backbone and len(passport.class_ids) <= custom_task.MAX_CLASSES:
        with st.container(horizontal=True, gap="medium"):
            page_links.to_task(passport.dataset, passport.tasks, 0, passport.backbone, "Swap its support images")
            page_links.to_map(passport.dataset, passport.tasks, 0, passport.backbone)


# Kept --------------------------------------------------------------------------------------------------------------

_BY_NAME: dict[type, Any] = {ResolvedTestbed: lambda found: found.cache_key}


@caching.cache_data("Looking for the task", 32)
def _find(dataset: Dataset, name: str) -> ResolvedTestbed:
    return task_ids.find(name, dataset, jobs.folder)


def _passport(found: ResolvedTestbed, position: int, backbone: str) -> TaskProfile:
    wanted = cached_call(study.digest, found, keep=64)
    runs = [
        (run.id, run.n_done)
        for run in jobs.list_runs("evaluate")
        if run.n_done and run.spec.get("dataset") == found.dataset.name and study.is_of_testbed(run.spec, wanted)
    ]
    return _opened(found, position, backbone, tuple(runs), caching.identity(found.dataset))


@caching.cache_data("Naming the queries and measuring the task", 128, _BY_NAME)
def _opened(
    found: ResolvedTestbed, position: int, backbone: str, runs: tuple, identity: tuple[str, str]
) -> TaskProfile:
    of_runs: list[MethodResult] = []
    for run_id, _ in runs:
        try:
            of_runs += study.results_of_run(
                run_id, jobs.spec(run_id), partial(jobs.chunks, run_id), study.digest(found), position
            )
        except FsvizError:  # a damaged run: the others tell
            continue
    return study.open_task(found, position, backbone, study.newest_of_each(of_runs))


def _spread(passport: TaskProfile, whole: bool) -> ValuesAmongTasks:
    here = [one.method for one in passport.answers if not one.source]
    n_tasks = len(passport.found.tasks)
    most = (
        n_tasks if whole and access.within_limits(n_tasks, passport.tasks.query.size * n_tasks) else study.MAX_MEASURED
    )
    spec = {
        "dataset": passport.dataset.name,
        "testbed": passport.found.name,
        "backbone": passport.backbone,
        "methods": here,
        "most": most,
    }
    return caching.compute_with_progress(_measured, spec, "Measuring the other tasks")


def _measured(spec: RawSettings, progress: Progress) -> ValuesAmongTasks:
    found = _find(shell.load_dataset(spec["dataset"]), spec["testbed"])
    return study.values_among_tasks(found, spec["backbone"], spec["most"], spec["methods"], progress)
