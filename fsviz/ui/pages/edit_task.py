"""The page Edit a task: classes by name, support images by click, answers and causes before and after a swap."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from fsviz import features
from fsviz.analyses import custom_task as study
from fsviz.analyses.custom_task import TaskChange, TaskResult
from fsviz.errors import FsvizError
from fsviz.records import PAD, Dataset, HeadlineNumber, Tasks
from fsviz.sampling import testbeds
from fsviz.settings import N_QUERY, N_SHOT, SEED
from fsviz.tasks import draw, fitting, task_ids
from fsviz.ui.parts import access, caching, controls, export, links, page_links, shell
from fsviz.ui.parts.headline import show_number
from fsviz.ui.parts.image_wall import Row, Tile, gallery, task_rows
from fsviz.ui.parts.links import IMAGE
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape

MOST_CANDIDATES = 60
MOST_TILES = 100  # images of a class on a wall
MIME = {"parquet": "application/vnd.apache.parquet", "csv": "text/csv", "json": "application/json"}


def show(dataset: Dataset) -> None:
    known = shell.known_backbones(dataset)
    with shell.side():
        backbone = controls.pick_backbone(known, help="The network whose features the method sees.")
        method = controls.pick(study.METHOD)
    _live(dataset, backbone, method)


PAGE = Page(
    slug="edit_task",
    label="Edit a task",
    icon="🧪",
    group="Tasks",
    order=2,
    question="What if I swap a support image?",
    lead="Choose classes and support images of {dataset}; see which predictions change.",
    needs=("features",),
    takes=("task_of",),
    explains=("accuracy", "protonet", "measures", "gap"),
    keywords=("swap", "support image", "build"),
    is_view=True,
    show=show,
)


@st.fragment
@shell.errors_on_page()
def _live(dataset: Dataset, backbone: str, method: str) -> None:
    """Everything that follows a click: the classes, the task, its answers and causes."""
    built = _task(dataset, backbone)
    if built is None:
        return
    tasks, swap, chosen = built
    if not access.within_limits(1, tasks.support.size + tasks.query.size):
        return
    now = _answered(dataset, backbone, method, tasks)
    before = _answered(dataset, backbone, method, study.swapped(tasks, swap[1], swap[0])) if swap else None
    _headline(dataset, now, before, swap)
    left, right = shell.responsive_columns("walls", [10, 9], gap="large")
    with left:
        picked = _support(dataset, tasks, now, chosen)
        _candidates(dataset, backbone, method, tasks, picked)
    with right:
        _queries(dataset, now, before)
    st.subheader("What makes this task easy or hard", anchor=False)
    left, right = shell.responsive_columns("causes", [13, 8], gap="large")
    with left:
        _causes(now, before)
    with right:
        _gaps(now, before)
    _keep(dataset, backbone, method, tasks, swap)


# The task in the link ----------------------------------------------------------------------------------------------


def _task(dataset: Dataset, backbone: str) -> tuple[Tasks, tuple[int, int] | None, str] | None:
    """The task that link and widgets ask for, the swap that led to it and the support image that was chosen, as text;
    None after a sentence on why there is none.

    The texts of the link are the truth; widgets and clicks write them, all that one of them changes in one step.
    """
    table = features.load(dataset, backbone)
    fits = study.fit(dataset, backbone, {})
    classes = st.container()
    shots, queries, seed, other = st.columns([3, 3, 3, 4], vertical_alignment="bottom")
    with links.one_step():
        usual = fitting.with_defaults({s.name: s for s in (N_SHOT, N_QUERY)}, fits)
        n_shot = controls.pick(usual["n_shot"].with_(title="Support per class"), shots)
        n_query = controls.pick(usual["n_query"].with_(title="Queries per class"), queries)
        dealt = controls.pick(SEED.with_(help="Another seed deals other images of the same classes."), seed)
        text = str(links.value_of(study.TASK_OF, study.TASK_OF.name, dataset.name))
        about = f"{dataset.name} {n_shot} {n_query} {dealt}"
        rows = [str(links.value_of(s, s.name, about)) for s in (study.SUPPORT, study.QUERY, study.SWAP)]
        chosen = str(links.value_of(IMAGE, IMAGE.name))
    try:
        class_ids = (
            study.classes_in(dataset, text) if text else caching.cached_call(study.suggested, dataset, 0, keep=64)
        )
    except FsvizError as error:
        if not text:
            raise
        st.error(escape(error), icon="⚠️")
        class_ids = caching.cached_call(study.suggested, dataset, 0, keep=64)
        rows = ["", "", ""]
    names = _names(dataset)
    st.session_state["class_picker"] = class_ids
    classes.multiselect(
        "Classes",
        list(range(dataset.n_classes)),
        key="class_picker",
        format_func=lambda class_id: names[class_id],
        on_change=_classes_picked,
        args=(dataset, class_ids, rows[0], rows[1]),
        max_selections=study.MAX_CLASSES,
        **controls.BY_TYPING,
        help="Type a name. Images of classes that stay are kept.",
    )
    controls.say_fit(fits, {"n_shot": n_shot, "n_query": n_query})
    other.button("Other classes", icon="🎲", width="stretch", on_click=_other_classes, args=(dataset, len(class_ids)))
    try:
        support, query = (study.images_in(row) for row in rows[:2])
        tasks = study.build(dataset, table, class_ids, n_shot, n_query, dealt, support, query)
        study.check_size(tasks)
        swap = study.swap_in(rows[2])
        if swap and study.way_of_support(tasks, swap[1]) == PAD:
            swap = None
        return tasks, swap, chosen
    except FsvizError as error:
        st.error(escape(shell.with_setting_titles(error)), icon="⚠️")
        if any(rows):
            st.button("Deal the images anew", on_click=_forget_images, icon="↩️")
        return None


def _classes_picked(dataset: Dataset, before: Sequence[int], support: str, query: str) -> None:
    """Writes the classes that were picked into the link; images of those that stay are kept."""
    picked = [int(c) for c in st.session_state["class_picker"]]
    st.session_state[study.TASK_OF.name] = study.classes_text(dataset, picked)
    kept = [before.index(c) if c in before else PAD for c in picked]
    for name, text in (("support", support), ("query", query)):
        rows = study.images_in(text)
        st.session_state[name] = study.images_text([rows[i] for i in kept]) if rows and PAD not in kept else ""
    st.session_state["swap"] = ""


def _other_classes(dataset: Dataset, n_way: int) -> None:
    turn = st.session_state["_other_classes"] = st.session_state.get("_other_classes", 0) + 1
    _forget_images()
    st.session_state[study.TASK_OF.name] = study.classes_text(dataset, study.suggested(dataset, turn, max(n_way, 2)))


def _forget_images() -> None:
    for name in ("support", "query", "swap", "image"):
        st.session_state[name] = ""


def _set_task(dataset: Dataset, tasks: Tasks, swap: str, picked: int) -> None:
    """Writes a whole task into the link."""
    st.session_state[study.TASK_OF.name] = study.classes_text(dataset, tasks.class_ids[0].tolist())
    st.session_state["support"] = study.images_text(tasks.support[0])
    st.session_state["query"] = study.images_text(tasks.query[0])
    st.session_state["swap"], st.session_state["image"] = swap, str(picked)


# What is shown -----------------------------------------------------------------------------------------------------


def _headline(dataset: Dataset, now: TaskResult, before: TaskResult | None, swap: tuple[int, int] | None) -> None:
    columns = shell.responsive_columns("headline", 4, stack="pairs")
    right, asked = int(now.right.sum()), now.n_queries
    changed = study.change(before, now) if before else None
    numbers = [
        HeadlineNumber(
            "accuracy",
            "Accuracy",
            100 * now.accuracy,
            digits=0,
            change=100 * changed.accuracy if changed else None,
            note="by the swap" if changed else f"{right:,} of {asked:,} queries",
            coloured=bool(changed and changed.accuracy),
            help="Exact for these queries: nothing is averaged over tasks, so there is no interval. Other queries of "
            "the same classes may give another number.",
        )
    ]
    if changed and swap:
        gained, lost = (f"{len(queries):,} of {asked:,}" for queries in (changed.gained, changed.lost))
        numbers += [
            HeadlineNumber.worded("gained", "Turned right", gained, help="Queries that were wrong before."),
            HeadlineNumber.worded("lost", "Turned wrong", lost, help="Queries that were right before."),
        ]
        old = study.swapped(now.tasks, swap[1], swap[0])
        columns[3].button(
            "Undo the swap",
            icon="↩️",
            width="stretch",
            on_click=_set_task,
            args=(dataset, old, "", swap[0]),
        )
    else:
        chance, n_support = 100 / len(now.tasks.class_ids[0]), int((now.tasks.support[0] != PAD).sum())
        images = f"{n_support} + {asked:,}"
        numbers += [
            HeadlineNumber(
                "chance", "Guessing", chance, digits=0, help="One class out of those of the task, at random."
            ),
            HeadlineNumber.worded("images", "Images", images, help="Support images and queries."),
        ]
    for column, number in zip(columns, numbers, strict=False):
        show_number(number, column)
    st.caption(_in_words(dataset, now, changed, swap))


def _in_words(dataset: Dataset, now: TaskResult, changed: TaskChange | None, swap: tuple[int, int] | None) -> str:
    counted = (
        f"{int(now.right.sum()):,} of the task's {now.n_queries:,} queries are named rightly: exact for these "
        f"{now.n_queries:,}, and no mean over tasks."
    )
    if changed is None or swap is None:
        return f"{counted} Click a support image, then the one that is to take its place."
    names = _names(dataset)
    whose = names[int(now.tasks.class_ids[0, study.way_of_support(now.tasks, swap[1])])]
    moved = f", {len(changed.moved):,} are wrong in another way" if len(changed.moved) else ""
    return (
        f"Image {swap[1]:d} took the place of image {swap[0]:d} in the support of **{escape(whose)}**: "
        f"{len(changed.gained):,} queries turned right, {len(changed.lost):,} turned wrong{moved}. {counted}"
    )


def _support(dataset: Dataset, tasks: Tasks, now: TaskResult, chosen: str) -> int:
    """The support images; returns the one that is chosen to be swapped."""
    st.markdown("**Support**: what the method learns the classes from")
    names = _names(dataset)
    picked = _picked(tasks, now, chosen)
    rows = [
        Row(
            names[int(class_id)],
            [Tile(int(i), frame="selected" if i == picked else None) for i in _first(tasks.support[0, way])],
            f"{int(now.right[way].sum())} of {int((tasks.query[0, way] != PAD).sum())} queries right",
            kind="support",
        )
        for way, class_id in enumerate(tasks.class_ids[0])
    ]
    task_rows(dataset, rows, "support_wall", tile_px=64, on_click=_choose)
    _say_first(tasks.support)
    return picked


def _first(image_ids: np.ndarray) -> np.ndarray:
    """The images of a class that a wall shows."""
    return image_ids[image_ids != PAD][:MOST_TILES]


def _say_first(image_ids: np.ndarray) -> None:
    most = int((image_ids != PAD).sum(axis=2).max())
    if most > MOST_TILES:
        st.caption(f"The first {MOST_TILES} of up to {most:,} images per class; all of them count.")


def _choose(image_id: int) -> None:
    st.session_state[IMAGE.name] = str(image_id)


def _picked(tasks: Tasks, now: TaskResult, text: str) -> int:
    """The support image that the link names, else the first one of the class with the most mistakes."""
    if text.isascii() and text.isdecimal() and study.way_of_support(tasks, int(text)) != PAD:
        return int(text)
    worst = int(((tasks.query[0] != PAD) & ~now.right).sum(axis=1).argmax())
    return int(tasks.support[0, worst, 0])


def _candidates(dataset: Dataset, backbone: str, method: str, tasks: Tasks, picked: int) -> None:
    """The images that can take the place of the chosen one, each with what that would do."""
    way = study.way_of_support(tasks, picked)
    name = _names(dataset)[int(tasks.class_ids[0, way])]
    images = study.candidates(dataset, features.load(dataset, backbone), tasks, way)
    st.markdown(f"**Swap image {picked:d}** of {escape(name)} for")
    if not len(images):
        st.caption("All images of this class are in the task already. Lower the images per class to have some left.")
        return
    images = images[:MOST_CANDIDATES]
    effects = _effects(dataset, backbone, method, tasks, picked, images)
    if effects is not None:
        order = np.argsort(-effects, kind="stable")
        images, effects = images[order], effects[order]
    badges = [""] * len(images) if effects is None else [f"{e:+d}" if e else "±0" for e in effects]
    tiles = [Tile(int(i), badge=badge) for i, badge in zip(images, badges, strict=True)]
    gallery(dataset, tiles, "swap_wall", tile_px=58, on_click=partial(_swap, dataset, tasks, picked))
    st.caption(
        (
            "The number on an image: how many more queries (or fewer) would be right with it. Click one to swap."
            if effects is not None
            else "Click one to swap. This method is too slow to try them all beforehand."
        )
        + (f" The first {MOST_CANDIDATES} images of the class." if len(images) == MOST_CANDIDATES else "")
    )


def _swap(dataset: Dataset, tasks: Tasks, old: int, new: int) -> None:
    _set_task(dataset, study.swapped(tasks, old, new), f"{old}.{new}", new)


def _queries(dataset: Dataset, now: TaskResult, before: TaskResult | None) -> None:
    st.markdown("**Queries**: what it then names")
    names = _names(dataset)
    tasks = now.tasks
    said = now.predictions.predicted[0]
    rows = []
    for way, class_id in enumerate(tasks.class_ids[0]):
        tiles = []
        for place in np.flatnonzero(tasks.query[0, way] != PAD)[:MOST_TILES]:
            right = bool(now.right[way, place])
            flipped = before is not None and bool(before.right[way, place]) != right
            tiles.append(
                Tile(
                    int(tasks.query[0, way, place]),
                    caption="" if right else names[int(tasks.class_ids[0, said[way, place]])],
                    frame="right" if right else "wrong",
                    badge="new" if flipped else "",
                )
            )
        note = f"{int(now.right[way].sum())} of {int((tasks.query[0, way] != PAD).sum())} right"
        if before is not None:
            note += f", {int(before.right[way].sum())} before"
        rows.append(Row(names[int(class_id)], tiles, note, kind="query"))
    task_rows(dataset, rows, "query_wall", tile_px=64)
    _say_first(tasks.query)
    st.caption(
        "A green frame with a tick is a right answer; a broken red one with a cross is wrong, and below it stands the "
        "class that was chosen instead." + (" “new”: the swap turned it." if before else "")
    )


def _causes(now: TaskResult, before: TaskResult | None) -> None:
    st.markdown("**What is measured of it**")
    earlier = {cause.name: cause.value for cause in before.causes} if before else {}
    known = [cause for cause in now.causes if np.isfinite(cause.value)]
    rows = []
    for cause in known:
        row = {"measure": cause.title, "now": cause.value, "higher_is": cause.direction}
        if before:
            row |= {"before": earlier[cause.name], "change": _direction(cause, earlier[cause.name])}
        rows.append(row | ({} if before else {"seen": cause.seen}))
    export.table(study.CAUSES, rows, key="causes")
    unknown = [f"{cause.title}: {cause.why_not}" for cause in now.causes if cause.why_not]
    if unknown:
        st.caption("Not known here. " + escape(" ".join(unknown)))


def _direction(cause: study.CauseChange, before: float) -> str:
    """What a swap did to a measure, in words."""
    if not np.isfinite(before):
        return "was not known"
    difference = cause.value - before
    if abs(difference) <= 1e-9 * max(1.0, abs(before)):
        return "the same"
    harder = (difference > 0) == (cause.direction == "harder")
    return f"{'+' if difference > 0 else '−'}{_number(abs(difference))}, {'harder' if harder else 'easier'}"


def _gaps(now: TaskResult, before: TaskResult | None) -> None:
    if not now.gaps:
        st.caption(
            "The images have no attributes (style, blur, context), so how support and queries differ can be seen but "
            "not measured."
        )
        return
    st.markdown("**How the support differs from the queries**, class by class on average")
    rows = []
    for name, gap in now.gaps.items():
        size = float(gap.gap[0])
        row = {"attribute": name.replace("_", " "), "gap": size}
        if before:
            row |= {"before": float(before.gaps[name].gap[0]), "change": size - float(before.gaps[name].gap[0])}
        rows.append(row | {"unit": "standard deviations" if gap.attribute.is_numeric else "share of images"})
    table = pd.DataFrame(rows).sort_values("gap", ascending=False, kind="stable", ignore_index=True)
    export.table(study.GAPS, table, key="gaps")
    st.caption(
        "0 is no difference. A few images differ from others by chance too: hold a gap against that of other support "
        "images."
    )


def _keep(dataset: Dataset, backbone: str, method: str, tasks: Tasks, swap: tuple[int, int] | None) -> None:
    with st.container(horizontal=True, gap="medium"):
        page_links.to_passport(dataset, task_ids.images_name(dataset, tasks, 0), 0)
        page_links.to_map(dataset, tasks, 0, backbone)
    if shell.classroom():
        return
    st.subheader("Keep this task", anchor=False)
    st.caption("The link of this page holds the whole task. As a testbed of one task, every method can be run on it.")
    name_column, *columns = shell.responsive_columns("keep", [4, 3, 2, 2, 2], "pairs", vertical_alignment="bottom")
    name = name_column.text_input("Name", placeholder="by_hand", key="built_name").strip() or "by_hand"
    access.show_denied("save")
    if access.can("save") and columns[0].button("Save as a testbed", icon="💾", width="stretch", key="save_built"):
        bed = study.testbed(dataset, tasks, name)
        saved, said = access.do("save", draw.save, bed, number=name == "by_hand")
        st.success(f"{escape(said)}", icon="✅")
        controls.link_to_evaluate(dataset, saved)
    for column, kind in zip(columns[1:], testbeds.FORMATS, strict=True):
        column.download_button(
            kind.upper() if kind != "parquet" else "Parquet",
            partial(_file, dataset, tasks, name, kind),
            file_name=f"{name}.{kind}",
            mime=MIME[kind],
            key=f"built_{kind}",
            on_click="ignore",
            icon="⬇️",
            width="stretch",
        )
    told = (study.swapped(tasks, swap[1], swap[0]), swap) if swap else (tasks, None)
    shell.command_popover(study.command(dataset, backbone, told[0], method, told[1]))


def _file(dataset: Dataset, tasks: Tasks, name: str, kind: str) -> bytes:
    return testbeds.export(study.testbed(dataset, tasks, name), dataset, kind)


def _number(value: float) -> str:
    if not np.isfinite(value):
        return "–"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3f}"


# Kept --------------------------------------------------------------------------------------------------------------


_TASKS: dict[type, Any] = {Tasks: lambda t: (t.class_ids.tolist(), t.support.tolist(), t.query.tolist())}


@caching.cache_data(most=64)
def _names(dataset: Dataset) -> list[str]:
    return dataset.distinct_names(np.arange(dataset.n_classes))


@caching.cache_data("Naming the queries and measuring the task", 256, _TASKS)
def _answered(dataset: Dataset, backbone: str, method: str, tasks: Tasks) -> TaskResult:
    return study.answer(dataset, backbone, tasks, method)


@caching.cache_data(most=256, hashes=_TASKS)
def _effects(
    dataset: Dataset, backbone: str, method: str, tasks: Tasks, picked: int, images: np.ndarray
) -> np.ndarray | None:
    return study.effects(dataset, backbone, tasks, picked, images, method)
