"""The images behind the mistakes of a method: the pairs of classes it confuses, one image over all its tasks."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd
import streamlit as st

from fsviz.analyses import run_comparison
from fsviz.records import Dataset, Predictions, Tasks
from fsviz.settings import Setting
from fsviz.tables import Column, Table
from fsviz.text import shorten
from fsviz.ui.parts import export, links
from fsviz.ui.parts.image_wall import Row, Tile, gallery, task_rows
from fsviz.ui.parts.shell import escape

PAIR = Setting("pair", "Confused pair", "Numbers of a class and of the one that it was taken for: 12-45.", "text", "")
_SHOWN_PAIRS = 8
_SHOWN_IMAGES = 12

IMAGE_TASKS = Table(
    "Tasks in which the image was a query",
    Column("task", "Task", kind="count"),
    Column("predicted", "Predicted class"),
    Column("is_correct", "Correct"),
    Column("confidence", "Confidence", kind="share"),
    Column("classes", "Classes of the task"),
)


def show_confusions(
    dataset: Dataset, answer: Predictions, tasks: Tasks, who: str, key: str, over: str = "tasks"
) -> None:
    """The pairs of classes that are confused most; choosing one shows the images that went wrong.

    over  what the page's intervals are over: that of one class is known over tasks only
    """
    pairs = run_comparison.pairs_table(answer, tasks, dataset, _SHOWN_PAIRS)
    if pairs.empty:
        st.caption(
            f"{escape(who)} got every query of these {len(tasks):,} tasks right, so there is no mistake to show."
        )
        return
    chosen = _pick_pair(pairs, key)
    row = pairs.iloc[chosen]
    sure = run_comparison.confidence_of(answer)
    wrong = run_comparison.misclassified(answer, tasks, int(row["class_id"]), int(row["taken_for"]), _SHOWN_IMAGES)
    if dataset.has_pixels:
        clicked = task_rows(
            dataset,
            [
                Row(
                    str(row["class_name"]),
                    [
                        Tile(int(w.image_id), frame="wrong", badge=f"{w.confidence:.0f}% sure" if sure.is_told else "")
                        for w in wrong.itertuples(index=False)
                    ],
                    note=f"taken for {row['taken_for_name']}",
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
        st.caption(f"{escape(dataset.title)} has no pixels here, so only the numbers of the images are shown.")
    st.caption(
        f"{escape(who)} took {int(row['confused']):,} of {int(row['asked']):,} query images of "
        f"**{escape(row['class_name'])}** for **{escape(row['taken_for_name'])}** in tasks that hold both. "
        f"{escape(_order_in_words(sure))} Click an image to see every task it went wrong in."
    )
    with st.expander("Accuracy of every class"):
        table = run_comparison.class_table(answer, tasks, dataset)
        rows = table if over == "tasks" else table.drop(columns="ci95")
        export.table(run_comparison.CLASS_ACCURACIES, rows, key=f"{key}_classes", height=260)
        st.caption(
            f"{escape(who)} over {len(tasks):,} tasks, the hardest class first"
            + ("; the interval is over the class's tasks of these images." if over == "tasks" else ".")
        )


def _order_in_words(sure: run_comparison.Confidence) -> str:
    """One sentence about the order of the mistakes: whether confidence ranks them."""
    if not np.isfinite(sure.low):
        return "How sure the answers were is not known: they were made elsewhere."
    if not sure.is_told:
        return (
            f"The most confident mistakes come first, but without percentages: nine of ten answers are {sure.low:.0%} "
            f"to {sure.high:.0%} sure, whatever they are worth."
        )
    if not sure.orders:
        return "They come by confidence, which hardly tells right from wrong answers of this method."
    return f"The most confident mistakes come first; a right answer is the surer one in {sure.auroc:.0%} of pairs."


def _pick_pair(pairs: pd.DataFrame, key: str) -> int:
    """The place of the chosen pair, which is in the link by its classes: another setting puts others in its place.

    The box is a new one for every list, or the browser would go on showing the label that it had.
    """
    labels = {
        f"{row.class_id}-{row.taken_for}": f"{shorten(row.class_name, 30)} → {shorten(row.taken_for_name, 30)} "
        f"({row.rate:.0f}%)"
        for row in pairs.itertuples(index=False)
    }
    asked = str(links.value_of(PAIR, PAIR.name))
    chosen = asked if asked in labels else next(iter(labels))
    widget = f"{key}_pair_{hashlib.blake2b(repr(labels).encode(), digest_size=6).hexdigest()}"
    st.session_state[widget] = chosen
    st.selectbox(
        "Most confused pairs (class → what it was taken for)",
        list(labels),
        format_func=lambda pair: labels.get(pair, pair),
        key=widget,
        on_change=_pair_picked,
        args=(widget,),
        help="The share of the first class's query images that were given the second class's name, in tasks that "
        "hold both.",
    )
    return list(labels).index(chosen)


def _pair_picked(widget: str) -> None:
    st.session_state[PAIR.name] = st.session_state[widget]


def _examples(dataset: Dataset, class_id: int) -> np.ndarray:
    ids = np.flatnonzero(dataset.image_class_ids() == class_id)
    return ids[np.unique(np.linspace(0, len(ids) - 1, min(len(ids), _SHOWN_IMAGES)).astype(int))]


def _one_image(dataset: Dataset, answer: Predictions, tasks: Tasks, image_id: int) -> None:
    """Every task in which an image was a query: what it was taken for, and how surely."""
    t, w, q = np.nonzero(tasks.query == image_id)
    if not len(t):
        st.caption("This image was never a query in these tasks.")
        return
    names = dataset.classes["class_name"].astype(str).to_numpy()
    said = tasks.class_ids[t, answer.predicted[t, w, q]]
    is_correct = said == tasks.class_ids[t, w]
    table = pd.DataFrame(
        {
            "task": t,
            "predicted": names[said],
            "is_correct": is_correct,
            "confidence": answer.confidence[t, w, q],
            "classes": [", ".join(names[c] for c in tasks.class_ids[i] if c >= 0) for i in t],
        }
    )
    right = int(is_correct.sum())
    left, middle = st.columns([1, 3])
    with left:
        gallery(
            dataset,
            [Tile(image_id, str(names[dataset.image_class_ids()[image_id]]))],
            key=f"one_{image_id}",
            tile_px=120,
        )
    with middle:
        st.markdown(
            f"Image {image_id:,} was a query in **{len(t):,}** tasks and was named rightly in **{right}** of them."
        )
        export.table(IMAGE_TASKS, table, height=min(240, 38 + 35 * len(table)))
