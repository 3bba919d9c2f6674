"""Detect hard tasks with a threshold: fitted on half of the classes, tested on the other half."""

from __future__ import annotations

import numpy as np
import streamlit as st

from fsviz.difficulty.measures import lower_title, title
from fsviz.figures import prediction as figures
from fsviz.records import PAD, Dataset
from fsviz.settings import Setting
from fsviz.studies import prediction as study
from fsviz.studies.prediction import measured, thresholds
from fsviz.studies.prediction.measured import PredictionTasks
from fsviz.ui.parts import export, links, page_links
from fsviz.ui.parts.answers import answer
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.clicks import Click, Point
from fsviz.ui.parts.controls import pick
from fsviz.ui.parts.hover import answer_cells
from fsviz.ui.parts.image_wall import Row, Tile, task_rows
from fsviz.ui.parts.shell import escape, responsive_columns

MAX_TASKS = 8
THRESHOLD_ON = Setting("threshold_on", "Threshold on", "Measure that predicts whether a task is hard.", "choice", "")
CALLED = Setting(
    "called",
    "Tasks shown",
    "Cell of the table whose tasks are shown.",
    "choice",
    "",
    choices={"": "predicted hard"}
    | {f"{a}_called_{b}": f"{a}, predicted {b}" for a in ("hard", "easy") for b in ("hard", "easy")},
)


def show(dataset: Dataset, spec: study.PredictionSpec) -> study.PredictionSpec:
    """Show the ROC curve and the tasks predicted hard; returns the spec."""
    st.subheader("Can a threshold detect hard tasks?", anchor=False)
    checked = study.check({**spec, "question": "hard"})
    result = answer(study.STUDY, checked, "Measuring tasks of both halves")
    if result is None:
        return checked
    first, second = result.measured[0], result.measured[1]
    columns = st.columns(3)
    titles = {name: title(name) for name, values in first.measures.items() if np.isfinite(values).all()}
    best = measured.best_measure(cached_call(measured.correlations, first))
    default = best[0] if best and best[0] in titles else next(iter(titles))
    name = pick(
        THRESHOLD_ON.with_(choices=titles, default=default),
        columns[0],
        about=str(spec["setting"]),
    )
    # the median if the level of the paper leaves hardly any hard or easy tasks
    level = 80 if 0.05 < np.mean(first.outcome < 0.8) < 0.95 else round(100 * float(np.median(first.outcome)))
    checked |= {"hard_below": pick(study.HARD_BELOW.with_(default=level), columns[1], as_slider=True)}
    checked |= {"recall": pick(study.RECALL, columns[2], as_slider=True)}
    hard_below = checked["hard_below"] / 100
    curve = thresholds.roc(first, name, hard_below, checked["recall"] / 100)
    table = thresholds.confusion_table(second, name, hard_below, curve.value)
    shares = table[:, 0] / np.maximum(table.sum(axis=1), 1)
    left, right = responsive_columns("halves", 2, gap="large")
    with left:
        st.markdown("**Fitted on half of the classes**")
        tested = (float(shares[1]), float(shares[0])) if table.sum(axis=1).all() else None
        export.chart(
            "Hard-task detection: ROC curve",
            figures.plot_roc(curve.fpr, curve.tpr, curve.at, tested),
            key="roc",
            sets=study.RECALL,
        )
    with right:
        st.markdown("**Tested on the other half**")
        export.chart(
            "Hard-task detection on the other half",
            figures.plot_confusion_table(table),
            key="confusion_table",
        )
        answer_cells(dataset, "confusion_table", None, Click(CALLED, _cell_value), 2)
        st.caption(
            f"{len(first):,} tasks of each half; {np.mean(first.outcome < hard_below):.0%} and "
            f"{np.mean(second.outcome < hard_below):.0%} hard. Predicted hard if {escape(lower_title(name))} "
            f"{'≥' if measured.harder_above(name) else '≤'} {curve.value:.3g}. AUC {curve.area:.2f} "
            f"({curve.low:.2f} to {curve.high:.2f}; 0.5 = chance). The halves share no class. "
            "Click a cell to list its tasks.",
            help="95% CI over tasks."
            + (
                " Accuracy is that of a logistic regression with support labels, which the measures do not use."
                if spec["setting"] == "unsupervised"
                else ""
            ),
        )
    _selected_tasks(dataset, second, name, hard_below, curve.value)
    return checked


def _cell_value(cell: Point) -> str:
    """Value of CALLED for a cell; rows from below: easy, hard."""
    row, column = cell.data
    return f"{('easy', 'hard')[row]}_called_{('hard', 'easy')[column]}"


def _selected_tasks(dataset: Dataset, tasks: PredictionTasks, name: str, hard_below: float, threshold: float) -> None:
    """Show tasks of the other half in the selected cell, else all predicted hard; strongest prediction first."""
    cell = str(links.value_of(CALLED, CALLED.name))
    actual, _, predicted = cell.rpartition("_called_")
    selected = thresholds.predicted_hard(tasks, name, threshold) == (predicted != "easy")
    if actual:
        selected &= (tasks.outcome < hard_below) == (actual == "hard")
    description = f"Actually {actual}, predicted {predicted}" if actual else "Predicted hard"
    if not selected.any():
        st.caption(f"{escape(description)}: no task of the other half at this threshold.")
        return
    rank = measured.ease_rank(tasks, name) * (-1 if predicted != "easy" else 1)
    positions = np.flatnonzero(selected)
    positions = positions[np.argsort(rank[positions], kind="stable")][:MAX_TASKS]
    names = dataset.classes["class_name"].astype(str).to_numpy()
    rows = []
    for t in positions:
        is_correct = (tasks.outcome[t] < hard_below) == (predicted != "easy")
        ways = np.flatnonzero(tasks.tasks.class_ids[t] != PAD)
        tiles = [Tile(int(tasks.tasks.support[t, w, 0]), str(names[tasks.tasks.class_ids[t, w]])) for w in ways]
        actually = "hard" if tasks.outcome[t] < hard_below else "easy"
        note = f"predicted {predicted or 'hard'}, actually {actually}: {'correct' if is_correct else 'incorrect'}"
        rows.append(Row(f"{100 * tasks.outcome[t]:.0f}% accuracy", tiles, note))
    st.markdown(f"**{escape(description)}: {int(selected.sum()):,} tasks, strongest prediction first**")
    clicked = task_rows(dataset, rows, "called_hard", tile_px=72)
    page_links.to_gallery(dataset, clicked if dataset.has_pixels else None)
    st.caption("One support image per class.")
