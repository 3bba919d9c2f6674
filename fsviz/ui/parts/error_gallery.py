"""Images of the errors of a method: pairs of classes it confuses, and one image over all its tasks."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd
import streamlit as st

from fsviz.analyses import run_comparison
from fsviz.records import Dataset, Predictions, Tasks
from fsviz.settings import Setting
from fsviz.tables import Column, Table
from fsviz.text import short_names
from fsviz.ui.parts import export, links
from fsviz.ui.parts.image_wall import Row, Tile, gallery, strip_uri, task_rows
from fsviz.ui.parts.shell import escape

PAIR = Setting("pair", "Confused pair", "Class ids, true and predicted: 12-45.", "text", "")
_SHOWN_PAIRS = 8
_SHOWN_IMAGES = 12
_STRIP, _STRIP_PX, _MAX_STRIPS = 5, 38, 60  # thumbnails of a class, their size, and classes that have some

IMAGE_TASKS = Table(
    "Tasks in which the image was a query",
    Column("task", "Task", kind="count"),
    Column("predicted", "Predicted class", kind="class"),
    Column("is_correct", "Correct"),
    Column("confidence", "Confidence", kind="share"),
    Column("classes", "Classes of the task", kind="class"),
)


def show_confusions(dataset: Dataset, answer: Predictions, tasks: Tasks, who: str, key: str) -> None:
    """Shows the most confused pairs of classes, and the misclassified images of the selected pair."""
    pairs = run_comparison.pairs_table(answer, tasks, dataset, _SHOWN_PAIRS)
    if pairs.empty:
        st.caption(f"No errors: {escape(who)} classifies every query of these {len(tasks):,} tasks correctly.")
        return
    position = _pick_pair(pairs, key)
    row = pairs.iloc[position]
    name, predicted = (_short(pairs)[row[column]] for column in ("class_name", "taken_for_name"))
    sure = run_comparison.confidence_of(answer)
    wrong = run_comparison.misclassified(answer, tasks, int(row["class_id"]), int(row["taken_for"]), _SHOWN_IMAGES)
    if dataset.has_pixels:
        clicked = task_rows(
            dataset,
            [
                Row(
                    str(row["class_name"]),
                    [
                        Tile(int(w.image_id), frame="wrong", badge=f"{w.confidence:.0f}%" if sure.is_told else "")
                        for w in wrong.itertuples(index=False)
                    ],
                    note=f"predicted as {predicted}",
                    kind="query",
                ),
                Row(
                    str(row["taken_for_name"]),
                    [Tile(int(i)) for i in _examples(dataset, int(row["taken_for"]))],
                    note="for comparison",
                ),
            ],
            key=f"{key}_wall_{row['class_id']}_{row['taken_for']}",
            tile_px=92,
        )
        if clicked is not None:
            _one_image(dataset, answer, tasks, clicked)
    else:
        export.table(run_comparison.MISCLASSIFIED, wrong)
        st.caption(f"{escape(dataset.title)} has no images here: only their numbers are listed.")
    st.caption(
        f"{escape(who)} predicts **{escape(name)}** as **{escape(predicted)}** in "
        f"{int(row['confused']):,} of {int(row['queries']):,} predictions ({_rate(row)}), on {_images(row)}, over "
        f"{_tasks(row)} with both classes. Click an image to see its tasks.",
        help=escape(_describe_order(sure)),
    )


def show_classes(dataset: Dataset, answer: Predictions, tasks: Tasks, who: str, key: str, over: str = "tasks") -> None:
    """Shows the accuracy of every class with thumbnails, hardest class first.

    over  the unit of the page's intervals: that of one class is available over tasks only
    """
    table = run_comparison.class_table(answer, tasks, dataset)
    strips: dict[int, str] = {}
    if dataset.has_pixels:
        for class_id in table["class_id"][:_MAX_STRIPS].tolist():
            strips[class_id] = strip_uri(dataset, _examples(dataset, class_id)[:_STRIP].tolist(), _STRIP_PX)
        table["images"] = table["class_id"].map(strips).fillna("")
    rows = table if over == "tasks" else table.drop(columns="ci95")
    tall = _STRIP_PX + 8 if dataset.has_pixels else 35
    height = min(460, 40 + tall * len(rows))
    export.table(run_comparison.CLASS_ACCURACIES, rows, key=f"{key}_classes", height=height, row_height=tall)
    st.caption(
        f"{escape(who)}, {len(tasks):,} tasks, hardest class first."
        + (" 95% CI over the tasks of each class." if over == "tasks" else "")
        + (f" Images of the {_MAX_STRIPS} hardest classes." if strips and len(table) > _MAX_STRIPS else "")
    )


def _short(pairs: pd.DataFrame) -> dict[str, str]:
    """Short names of the classes of these pairs."""
    names = [*pairs["class_name"], *pairs["taken_for_name"]]
    return dict(zip(names, short_names(names), strict=True))


def _describe_order(sure: run_comparison.Confidence) -> str:
    """One sentence about the order of the errors: whether confidence ranks them."""
    if not np.isfinite(sure.low):
        return "Confidence is not available: these predictions were imported."
    if not sure.is_told:
        return (
            f"Most confident errors first, without percentages: nine of ten predictions have a confidence of "
            f"{sure.low:.0%} to {sure.high:.0%}, correct or not."
        )
    if not sure.orders:
        return "Most confident errors first; confidence hardly separates correct from incorrect predictions."
    return f"Most confident errors first. AUROC of confidence: {sure.auroc:.2f} (correct vs incorrect predictions)."


def _rate(row: pd.Series) -> str:
    """The share of predictions as the other class, with its interval if there is one."""
    return f"{row['rate']:.0f} ± {row['ci95']:.0f}%" if np.isfinite(row["ci95"]) else f"{row['rate']:.0f}%"


def _images(row: pd.Series) -> str:
    """The different images that were predicted wrongly: an image is a query of several tasks."""
    return f"{int(row['confused_images']):,} of {int(row['query_images']):,} different images"


def _tasks(row: pd.Series) -> str:
    return f"{int(row['tasks']):,} task{'' if row['tasks'] == 1 else 's'}"


def _pick_pair(pairs: pd.DataFrame, key: str) -> int:
    """Position of the selected pair, which the link names by its classes.

    Every list has a box of its own, or the browser would keep the label of the last one.
    """
    short = _short(pairs)
    labels = {
        f"{row['class_id']}-{row['taken_for']}": f"{short[row['class_name']]} → {short[row['taken_for_name']]} "
        f"({_rate(row)})"
        for _, row in pairs.iterrows()
    }
    requested = str(links.value_of(PAIR, PAIR.name))
    pair_id = requested if requested in labels else next(iter(labels))
    widget = f"{key}_pair_{hashlib.blake2b(repr(labels).encode(), digest_size=6).hexdigest()}"
    st.session_state[widget] = pair_id
    st.selectbox(
        "Most confused pairs (true → predicted)",
        list(labels),
        format_func=lambda pair: labels.get(pair, pair),
        key=widget,
        on_change=_pair_picked,
        args=(widget,),
        help="Share of the first class's queries predicted as the second class, in tasks with both classes, ± 95% CI "
        "over tasks. Order: lower end of the interval; pairs in fewer than three tasks come last, without interval.",
    )
    return list(labels).index(pair_id)


def _pair_picked(widget: str) -> None:
    st.session_state[PAIR.name] = st.session_state[widget]


def _examples(dataset: Dataset, class_id: int) -> np.ndarray:
    ids = np.flatnonzero(dataset.image_class_ids() == class_id)
    return ids[np.unique(np.linspace(0, len(ids) - 1, min(len(ids), _SHOWN_IMAGES)).astype(int))]


def _one_image(dataset: Dataset, answer: Predictions, tasks: Tasks, image_id: int) -> None:
    """Shows every task in which an image was a query, with its predicted class and confidence."""
    t, w, q = np.nonzero(tasks.query == image_id)
    if not len(t):
        st.caption("This image is not a query in these tasks.")
        return
    names = dataset.classes["class_name"].astype(str).to_numpy()
    predicted = tasks.class_ids[t, answer.predicted[t, w, q]]
    is_correct = predicted == tasks.class_ids[t, w]
    table = pd.DataFrame(
        {
            "task": t,
            "predicted": names[predicted],
            "is_correct": is_correct,
            "confidence": answer.confidence[t, w, q],
            "classes": [[names[c] for c in tasks.class_ids[i] if c >= 0] for i in t],
        }
    )
    n_correct = int(is_correct.sum())
    image_column, tasks_column = st.columns([1, 3])
    with image_column:
        gallery(
            dataset,
            [Tile(image_id, str(names[dataset.image_class_ids()[image_id]]))],
            key=f"one_{image_id}",
            tile_px=120,
        )
    with tasks_column:
        st.markdown(f"Image {image_id:,}: correct in **{n_correct}** of **{len(t):,}** tasks.")
        export.table(IMAGE_TASKS, table, height=min(240, 38 + 35 * len(table)))
