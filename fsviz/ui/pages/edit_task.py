"""The page Edit a task: classes by name, support images by click, predictions and measures before and after a swap."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from fsviz import features
from fsviz.analyses import custom_task as study
from fsviz.analyses.custom_task import TaskResult
from fsviz.errors import FsvizError
from fsviz.records import PAD, Dataset, Tasks
from fsviz.sampling import testbeds
from fsviz.settings import N_QUERY, N_SHOT, SEED
from fsviz.tasks import draw, fitting, task_ids
from fsviz.text import short_names
from fsviz.ui.parts import access, caching, controls, export, links, page_links, shell
from fsviz.ui.parts.image_wall import Row, Tile, gallery, task_rows
from fsviz.ui.parts.links import IMAGE
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape

MAX_CANDIDATES = 60
MAX_TILES = 100  # images of a class on a wall
MIME = {"parquet": "application/vnd.apache.parquet", "csv": "text/csv", "json": "application/json"}
# The answer stays in sight below the bar while the page scrolls, and is as high before a swap as after it.
STICKY_STYLE = """<style>
[data-testid="stLayoutWrapper"]:has(> .st-key-fsviz_answer) {position: sticky; top: 3.25rem; z-index: 99;
  background: light-dark(#FFFFFF, #12161D); padding: .15rem 0;
  border-bottom: 1px solid color-mix(in srgb, currentColor 14%, transparent)}
.st-key-fsviz_answer {min-height: 4rem; justify-content: center}
/* In a narrow window the columns are one below the other, and the measures come after the queries. */
@media (max-width: 1100px) {
  .st-key-stack_walls > * > [data-testid="stHorizontalBlock"] {flex-direction: column; gap: 1rem}
  .st-key-stack_walls > * > * > [data-testid="stColumn"],
  .st-key-stack_walls > * > * > * > [data-testid="stVerticalBlock"] {display: contents}
  [data-testid="stLayoutWrapper"]:has(> .st-key-edit_measures) {order: 2}
}
</style>"""


def show(dataset: Dataset) -> None:
    backbones = shell.known_backbones(dataset)
    with shell.side():
        backbone = controls.pick_backbone(backbones, help="The network whose features the method uses.")
        settings = st.container()
        method = controls.pick(study.METHOD)
        rare = st.expander("More settings", type="compact")
    st.html(STICKY_STYLE)
    _live(dataset, backbone, method, settings, rare)


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
def _live(dataset: Dataset, backbone: str, method: str, settings: Any, rare: Any) -> None:
    """The part of the page that a click reruns; its settings are shown in `settings` and `rare`."""
    task = _task(dataset, backbone, settings, rare)
    if task is None:
        return
    tasks, swap, picked_text = task
    if not access.within_limits(1, tasks.support.size + tasks.query.size):
        return
    now = _evaluate(dataset, backbone, method, tasks)
    before = _evaluate(dataset, backbone, method, study.swap_image(tasks, swap[1], swap[0])) if swap else None
    _answer(dataset, now, before, swap)
    picked = _picked(tasks, now, picked_text)
    left, right = shell.responsive_columns("walls", [1, 1], gap="large")
    with left:
        _support(dataset, tasks, picked)
    with right:
        _candidates(dataset, backbone, method, tasks, picked)
        _queries(dataset, now, before)
    with left.container(key="edit_measures"):
        _measures(now, before)
        _gaps(now, before)
    _links(dataset, backbone, tasks)
    _save(dataset, backbone, method, tasks, swap)


# The task in the link ----------------------------------------------------------------------------------------------


def _task(
    dataset: Dataset, backbone: str, settings: Any, rare: Any
) -> tuple[Tasks, tuple[int, int] | None, str] | None:
    """The task of the link, the swap that led to it, and the selected support image as text; None after an error.

    The texts of the link decide. A widget or a click writes all texts that it changes in one step.
    """
    table = features.load(dataset, backbone)
    fits = study.fit(dataset, backbone, {})
    classes = settings.container()
    shots, queries = settings.columns(2, gap="xsmall", vertical_alignment="bottom")
    with links.one_step():
        fitted = fitting.with_defaults({s.name: s for s in (N_SHOT, N_QUERY)}, fits)
        n_shot = controls.pick(fitted["n_shot"].with_(title="Support per class"), shots)
        n_query = controls.pick(fitted["n_query"].with_(title="Queries per class"), queries)
        seed = controls.pick(SEED.with_(help="Another seed samples other images of the same classes."), rare)
        text = str(links.value_of(study.TASK_OF, study.TASK_OF.name, dataset.name))
        about = f"{dataset.name} {n_shot} {n_query} {seed}"
        rows = [str(links.value_of(s, s.name, about)) for s in (study.SUPPORT, study.QUERY, study.SWAP)]
        picked = str(links.value_of(IMAGE, IMAGE.name))
    try:
        class_ids = (
            study.classes_in(dataset, text) if text else caching.cached_call(study.suggest_classes, dataset, 0, keep=64)
        )
    except FsvizError as error:
        if not text:
            raise
        st.error(escape(error), icon="⚠️")
        class_ids = caching.cached_call(study.suggest_classes, dataset, 0, keep=64)
        rows = ["", "", ""]
    names = short_names(_names(dataset))
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
        help="Type a name. Classes that stay keep their images.",
    )
    classes.button(
        "Random classes", icon="🎲", width="stretch", on_click=_other_classes, args=(dataset, len(class_ids))
    )
    with settings:
        controls.say_fit(fits, {"n_shot": n_shot, "n_query": n_query})
    try:
        support, query = (study.images_in(row) for row in rows[:2])
        tasks = study.build(dataset, table, class_ids, n_shot, n_query, seed, support, query)
        study.check_size(tasks)
        swap = study.swap_in(rows[2])
        if swap and study.way_of_support(tasks, swap[1]) == PAD:
            swap = None
        return tasks, swap, picked
    except FsvizError as error:
        st.error(escape(shell.with_setting_titles(error)), icon="⚠️")
        if any(rows):
            st.button("Resample images", on_click=_forget_images, icon="↩️")
        return None


def _classes_picked(dataset: Dataset, before: Sequence[int], support: str, query: str) -> None:
    """Write the picked classes into the link; classes that stay keep their images."""
    picked = [int(c) for c in st.session_state["class_picker"]]
    st.session_state[study.TASK_OF.name] = study.classes_text(dataset, picked)
    rows_before = [before.index(c) if c in before else PAD for c in picked]
    for name, text in (("support", support), ("query", query)):
        rows = study.images_in(text)
        st.session_state[name] = (
            study.images_text([rows[i] for i in rows_before]) if rows and PAD not in rows_before else ""
        )
    st.session_state["swap"] = ""


def _other_classes(dataset: Dataset, n_way: int) -> None:
    turn = st.session_state["_other_classes"] = st.session_state.get("_other_classes", 0) + 1
    _forget_images()
    st.session_state[study.TASK_OF.name] = study.classes_text(
        dataset, study.suggest_classes(dataset, turn, max(n_way, 2))
    )


def _forget_images() -> None:
    for name in ("support", "query", "swap", "image"):
        st.session_state[name] = ""


def _set_task(dataset: Dataset, tasks: Tasks, swap: str, picked: int) -> None:
    """Write a whole task into the link."""
    st.session_state[study.TASK_OF.name] = study.classes_text(dataset, tasks.class_ids[0].tolist())
    st.session_state["support"] = study.images_text(tasks.support[0])
    st.session_state["query"] = study.images_text(tasks.query[0])
    st.session_state["swap"], st.session_state["image"] = swap, str(picked)


# The figures -------------------------------------------------------------------------------------------------------


def _answer(dataset: Dataset, now: TaskResult, before: TaskResult | None, swap: tuple[int, int] | None) -> None:
    """The result, with the two images of the swap and a button that undoes it."""
    change = study.compare_results(before, now) if before else None
    sentence, more = map(escape, study.headline(now, change))
    if swap is None:
        shell.answer(sentence, f"{more} Click a support image, then its replacement.")
        return
    old, new = swap
    with shell.answer_box():
        images, text, undo = st.columns([3, 14, 3], vertical_alignment="center", gap="small")
        with images:
            gallery(dataset, [Tile(old, "removed"), Tile(new, "added")], "swap_pair", tile_px=44)
        text.markdown(f"**{sentence}** {more}")
        undo.button(
            "Undo",
            icon="↩️",
            width="stretch",
            key="undo_swap",
            on_click=_set_task,
            args=(dataset, study.swap_image(now.tasks, new, old), "", old),
        )


def _support(dataset: Dataset, tasks: Tasks, picked: int) -> None:
    st.markdown("**Support images**")
    names = _names(dataset)
    rows = [
        Row(
            names[int(class_id)],
            [Tile(int(i), frame="selected" if i == picked else None) for i in _first(tasks.support[0, way])],
            kind="support",
        )
        for way, class_id in enumerate(tasks.class_ids[0])
    ]
    task_rows(dataset, rows, "support_wall", tile_px=52, on_click=_select)
    _show_cut(tasks.support)


def _first(image_ids: np.ndarray) -> np.ndarray:
    """The images of a class that a wall shows."""
    return image_ids[image_ids != PAD][:MAX_TILES]


def _show_cut(image_ids: np.ndarray) -> None:
    n_images = int((image_ids != PAD).sum(axis=2).max())
    if n_images > MAX_TILES:
        st.caption(f"First {MAX_TILES} of up to {n_images:,} images per class; all of them count.")


def _select(image_id: int) -> None:
    st.session_state[IMAGE.name] = str(image_id)


def _picked(tasks: Tasks, now: TaskResult, text: str) -> int:
    """The support image of the link, else the first one of the class with the most errors."""
    if text.isascii() and text.isdecimal() and study.way_of_support(tasks, int(text)) != PAD:
        return int(text)
    worst = int(((tasks.query[0] != PAD) & ~now.correct).sum(axis=1).argmax())
    return int(tasks.support[0, worst, 0])


def _candidates(dataset: Dataset, backbone: str, method: str, tasks: Tasks, picked: int) -> None:
    """The images that can replace the selected one, each with its effect."""
    way = study.way_of_support(tasks, picked)
    name = dataset.short_names(tasks.class_ids[0])[way]
    images = study.candidates(dataset, features.load(dataset, backbone), tasks, way)
    st.markdown(f"**Replace with** an image of {escape(name)}")
    if not len(images):
        st.caption("No spare images of this class. Lower the images per class.")
        return
    images = images[:MAX_CANDIDATES]
    effects = _effects(dataset, backbone, method, tasks, picked, images)
    if effects is not None:
        order = np.argsort(-effects, kind="stable")
        images, effects = images[order], effects[order]
    badges = [""] * len(images) if effects is None else [f"{e:+d}" if e else "±0" for e in effects]
    tiles = [Tile(int(i), badge=badge) for i, badge in zip(images, badges, strict=True)]
    with st.container(height=150, border=False) if len(images) > 14 else st.container():
        gallery(dataset, tiles, "swap_wall", tile_px=58, on_click=partial(_swap, dataset, tasks, picked))
    cut = f" First {MAX_CANDIDATES} images of the class." if len(images) == MAX_CANDIDATES else ""
    st.caption(("Badge: change in correct queries. " if effects is not None else "") + f"Click to swap.{cut}")


def _swap(dataset: Dataset, tasks: Tasks, old: int, new: int) -> None:
    _set_task(dataset, study.swap_image(tasks, old, new), f"{old}.{new}", new)


def _queries(dataset: Dataset, now: TaskResult, before: TaskResult | None) -> None:
    st.markdown("**Query images**")
    names = _names(dataset)
    tasks = now.tasks
    predicted = now.predictions.predicted[0]
    rows = []
    for way, class_id in enumerate(tasks.class_ids[0]):
        tiles = []
        for at in np.flatnonzero(tasks.query[0, way] != PAD)[:MAX_TILES]:
            is_correct = bool(now.correct[way, at])
            is_new = before is not None and bool(before.correct[way, at]) != is_correct
            tiles.append(
                Tile(
                    int(tasks.query[0, way, at]),
                    caption="" if is_correct else names[int(tasks.class_ids[0, predicted[way, at]])],
                    frame="right" if is_correct else "wrong",
                    badge="new" if is_new else "",
                )
            )
        note = f"{int(now.correct[way].sum())} of {int((tasks.query[0, way] != PAD).sum())} correct"
        if before is not None:
            note += f", {int(before.correct[way].sum())} before"
        rows.append(Row(names[int(class_id)], tiles, note, kind="query", reserve=True))
    task_rows(dataset, rows, "query_wall", tile_px=44)
    _show_cut(tasks.query)
    st.caption(
        "✓ correct · ✗ incorrect, with the predicted class." + (" “new”: changed by the swap." if before else "")
    )


def _measures(now: TaskResult, before: TaskResult | None) -> None:
    st.markdown("**Measures**")
    earlier = {item.name: item.value for item in before.measures} if before else {}
    rows = []
    for item in now.measures:
        if not np.isfinite(item.value):
            continue
        row = {"measure": item.title, "now": item.value, "higher_is": item.direction}
        if before:
            row |= {"before": earlier[item.name], "change": _direction(item, earlier[item.name])}
        rows.append(row | ({} if before else {"inputs": item.inputs}))
    export.table(study.MEASURE_CHANGES, rows, key="causes")
    reasons: dict[str, list[str]] = {}
    for item in now.measures:
        if item.why_not:
            reasons.setdefault(item.why_not, []).append(item.title)
    if reasons:
        listed = "\n\n".join(f"{escape(', '.join(titles))}: {escape(reason)}" for reason, titles in reasons.items())
        n_missing = sum(map(len, reasons.values()))
        st.caption(f"{n_missing} measure{'s are' if n_missing > 1 else ' is'} not available here.", help=listed)


def _direction(item: study.TaskMeasure, before: float) -> str:
    """The effect of a swap on a measure, in words."""
    if not np.isfinite(before):
        return "not available before"
    difference = item.value - before
    if abs(difference) <= 1e-9 * max(1.0, abs(before)):
        return "the same"
    harder = (difference > 0) == (item.direction == "harder")
    return f"{'+' if difference > 0 else '−'}{_number(abs(difference))}, {'harder' if harder else 'easier'}"


def _gaps(now: TaskResult, before: TaskResult | None) -> None:
    if not now.gaps:
        st.caption("Attribute shift is not available: the images have no attributes.")
        return
    st.markdown("**Attribute shift, mean over classes**")
    rows = []
    for name, gap in now.gaps.items():
        size = float(gap.gap[0])
        row = {"attribute": name.replace("_", " "), "gap": size}
        if before:
            row |= {"before": float(before.gaps[name].gap[0]), "change": size - float(before.gaps[name].gap[0])}
        rows.append(row | {"unit": "standard deviations" if gap.attribute.is_numeric else "share of images"})
    table = pd.DataFrame(rows).sort_values("gap", ascending=False, kind="stable", ignore_index=True)
    export.table(study.GAPS, table, key="gaps")
    st.caption("0 = same distribution; small samples differ by chance.")


def _links(dataset: Dataset, backbone: str, tasks: Tasks) -> None:
    with st.container(horizontal=True, gap="medium"):
        page_links.to_passport(dataset, task_ids.images_name(dataset, tasks, 0), 0)
        page_links.to_map(dataset, tasks, 0, backbone)


def _save(dataset: Dataset, backbone: str, method: str, tasks: Tasks, swap: tuple[int, int] | None) -> None:
    if shell.classroom():
        return
    st.subheader("Save task", anchor=False)
    st.caption("The link contains the whole task. Save it as a testbed to evaluate every method.")
    name_column, *columns = shell.responsive_columns("keep", [4, 3, 2, 2, 2], "pairs", vertical_alignment="bottom")
    name = name_column.text_input("Name", placeholder="by_hand", key="built_name").strip() or "by_hand"
    access.show_denied("save")
    if access.can("save") and columns[0].button("Save testbed", icon="💾", width="stretch", key="save_built"):
        bed = study.testbed(dataset, tasks, name)
        saved, message = access.do("save", draw.save, bed, number=name == "by_hand")
        st.success(f"{escape(message)}", icon="✅")
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
    original, swap_text = (study.swap_image(tasks, swap[1], swap[0]), swap) if swap else (tasks, None)
    shell.command_popover(study.command(dataset, backbone, original, method, swap_text))


def _file(dataset: Dataset, tasks: Tasks, name: str, kind: str) -> bytes:
    return testbeds.export(study.testbed(dataset, tasks, name), dataset, kind)


def _number(value: float) -> str:
    if not np.isfinite(value):
        return "–"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3f}"


# Cached --------------------------------------------------------------------------------------------------------------


_TASKS: dict[type, Any] = {Tasks: lambda t: (t.class_ids.tolist(), t.support.tolist(), t.query.tolist())}


@caching.cache_data(most=64)
def _names(dataset: Dataset) -> list[str]:
    return dataset.distinct_names(np.arange(dataset.n_classes))


@caching.cache_data("Measuring the task", 256, _TASKS)
def _evaluate(dataset: Dataset, backbone: str, method: str, tasks: Tasks) -> TaskResult:
    return study.evaluate_task(dataset, backbone, tasks, method)


@caching.cache_data(most=256, hashes=_TASKS)
def _effects(
    dataset: Dataset, backbone: str, method: str, tasks: Tasks, picked: int, images: np.ndarray
) -> np.ndarray | None:
    return study.swap_effects(dataset, backbone, tasks, picked, images, method)
