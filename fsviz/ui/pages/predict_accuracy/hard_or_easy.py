"""A threshold learned on one half of the classes, tried on the other."""

from __future__ import annotations

import numpy as np
import streamlit as st

from fsviz.difficulty.measures import title
from fsviz.figures import prediction as figures
from fsviz.records import PAD, Dataset
from fsviz.settings import Setting
from fsviz.studies import prediction as study
from fsviz.studies.prediction import measured, thresholds
from fsviz.studies.prediction.measured import Measured
from fsviz.ui.parts import export, links, page_links
from fsviz.ui.parts.answers import answer
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.clicks import Click, Point
from fsviz.ui.parts.controls import pick
from fsviz.ui.parts.hover import answer_cells
from fsviz.ui.parts.image_wall import Row, Tile, task_rows
from fsviz.ui.parts.shell import escape, responsive_columns

SHOWN_TASKS = 8
THRESHOLD_ON = Setting("threshold_on", "Threshold on", "The measure that calls a task hard.", "choice", "")
CALLED = Setting(
    "called",
    "Tasks shown",
    "The cell of the table whose tasks are shown.",
    "choice",
    "",
    choices={"": "called hard"}
    | {f"{a}_called_{b}": f"{a} and called {b}" for a in ("hard", "easy") for b in ("hard", "easy")},
)


def show(dataset: Dataset, spec: study.Spec) -> study.Spec:
    """The ROC curve and what its threshold calls hard; returns what was asked."""
    st.subheader("Would a threshold have told the hard tasks from the easy ones?", anchor=False)
    asked = study.check({**spec, "question": "hard"})
    result = answer(study.STUDY, asked, "Measuring tasks of both halves")
    if result is None:
        return asked
    first, second = result.measured[0], result.measured[1]
    columns = st.columns(3)
    known = {name: title(name) for name, values in first.measures.items() if np.isfinite(values).all()}
    best = measured.best_measure(cached_call(measured.correlations, first))
    default = best[0] if best and best[0] in known else next(iter(known))
    name = pick(
        THRESHOLD_ON.with_(choices=known, default=default),
        columns[0],
        about=str(spec["setting"]),
    )
    # a level that cuts the tasks in two where the paper's would not
    level = 80 if 0.05 < np.mean(first.outcome < 0.8) < 0.95 else round(100 * float(np.median(first.outcome)))
    asked |= {"hard_below": pick(study.HARD_BELOW.with_(default=level), columns[1], as_slider=True)}
    asked |= {"found": pick(study.FOUND, columns[2], as_slider=True)}
    hard_below = asked["hard_below"] / 100
    curve = thresholds.roc(first, name, hard_below, asked["found"] / 100)
    table = thresholds.confusion_table(second, name, hard_below, curve.value)
    shares = table[:, 0] / np.maximum(table.sum(axis=1), 1)
    left, right = responsive_columns("halves", 2, gap="large")
    with left:
        st.markdown("**On the first half of the classes**")
        carried = (float(shares[1]), float(shares[0])) if table.sum(axis=1).all() else None
        export.chart(
            "Hard or easy: ROC curve",
            figures.plot_roc(curve.fpr, curve.tpr, curve.at, carried),
            key="roc",
            sets=study.FOUND,
        )
    with right:
        st.markdown("**The same threshold on the other half**")
        export.chart(
            "Hard or easy on the other half of the classes", figures.plot_confusion_table(table), key="confusion_table"
        )
        answer_cells(dataset, "confusion_table", None, Click(CALLED, _called_of), 2)
        st.caption(
            f"Called hard is a task whose {escape(title(name)).lower()} is "
            f"{'at least' if measured.harder_above(name) else 'at most'} {curve.value:.3g}. Area under the curve "
            f"{curve.area:.2f} ({curve.low:.2f} to {curve.high:.2f}, over tasks of these images; 0.5 is chance); "
            f"{len(first):,} tasks of each half, {np.mean(first.outcome < hard_below):.0%} and "
            f"{np.mean(second.outcome < hard_below):.0%} of them hard. The halves share no class. Click a cell "
            "for its tasks."
            + (
                " The accuracy is that of a logistic regression that sees the labels of the support, which the "
                "measures do not."
                if spec["setting"] == "unsupervised"
                else ""
            )
        )
    _called(dataset, second, name, hard_below, curve.value)
    return asked


def _called_of(cell: Point) -> str:
    """The tasks of a cell: rows are drawn from below, easy tasks, then hard ones."""
    row, column = cell.data
    return f"{('easy', 'hard')[row]}_called_{('hard', 'easy')[column]}"


def _called(dataset: Dataset, found: Measured, name: str, hard_below: float, threshold: float) -> None:
    """Tasks of the other half in the chosen cell, else all called hard; the surest first, one image per class."""
    cell = str(links.value_of(CALLED, CALLED.name))
    truly, _, called = cell.rpartition("_called_")
    wanted = thresholds.called_hard(found, name, threshold) == (called != "easy")
    if truly:
        wanted &= (found.outcome < hard_below) == (truly == "hard")
    of = f"{truly.capitalize()} and called {called}" if truly else "Called hard"
    if not wanted.any():
        st.caption(f"{escape(of)}: no task of the other half at this threshold.")
        return
    sure = measured.ease_rank(found, name) * (-1 if called != "easy" else 1)
    order = np.flatnonzero(wanted)
    order = order[np.argsort(sure[order], kind="stable")][:SHOWN_TASKS]
    names = dataset.classes["class_name"].astype(str).to_numpy()
    rows = []
    for t in order:
        right = (found.outcome[t] < hard_below) == (called != "easy")
        ways = np.flatnonzero(found.tasks.class_ids[t] != PAD)
        tiles = [Tile(int(found.tasks.support[t, w, 0]), str(names[found.tasks.class_ids[t, w]])) for w in ways]
        verdict = f"{'rightly' if right else 'wrongly'}: it is {'hard' if found.outcome[t] < hard_below else 'easy'}"
        rows.append(Row(f"{100 * found.outcome[t]:.0f}% accuracy", tiles, f"called {called or 'hard'} {verdict}"))
    st.markdown(f"**{escape(of)}: {int(wanted.sum()):,} tasks of the other half, the surest first**")
    clicked = task_rows(dataset, rows, "called_hard", tile_px=72)
    page_links.to_gallery(dataset, clicked if dataset.has_pixels else None)
    st.caption("One support image of every class of a task.")
