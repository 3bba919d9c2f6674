"""What the pages Evaluate and Runs share: runs under way, and the images behind the mistakes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from fsviz import jobs
from fsviz.errors import FsvizError
from fsviz.records import Dataset, Predictions, Tasks
from fsviz.studies import comparison
from fsviz.ui import shell
from fsviz.ui.gallery import Row, Tile, gallery, task_rows

STATES = {
    "queued": "⏳ waiting",
    "running": "▶️ running",
    "finished": "✅ finished",
    "cancelled": "⏹️ cancelled",
    "failed": "⚠️ failed",
    "interrupted": "⏸️ interrupted",
}
_SHOWN_PAIRS = 8
_SHOWN_IMAGES = 12


def show_most_accurate(where: Any, top: Any) -> None:
    """The headline number of the best row of a table: its accuracy, its interval and its name."""
    where.metric(
        "Most accurate",
        f"{top['accuracy']:.1f} ± {top['ci95']:.1f} %",
        str(top["name"]),
        delta_color="off",
        delta_arrow="off",
        help="Mean accuracy over the tasks with its 95% interval.",
    )


def duration(seconds: float) -> str:
    """Seconds as a person says them."""
    if seconds < 1:
        return "a second or less"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


# --- runs under way ----------------------------------------------------------------------------------------------


def active_runs(key: str, study: str | None = None) -> None:
    """Progress of every run under way, told again each second.

    Runs that others start, or that end, change the whole page: also an idle page looks every few seconds.
    """
    known = _states(jobs.list_runs(study))
    busy = any(state in ("queued", "running") for _, state in known)
    st.fragment(_poll, run_every=1.0 if busy else 4.0)(key, study, known)


def _poll(key: str, study: str | None, known: tuple[tuple[str, str], ...]) -> None:
    try:
        runs = jobs.list_runs(study)
    except FsvizError as error:
        st.error(shell.plain(str(error)), icon="⚠️")
        return
    if _states(runs) != known:
        st.rerun(scope="app")
    for run in runs:
        if run.active:
            show_progress(run, key)


def _states(runs: Sequence[jobs.Run]) -> tuple[tuple[str, str], ...]:
    return tuple((run.id, run.state) for run in runs)


def show_progress(run: jobs.Run, key: str) -> None:
    """One run under way: how far, how long still, accuracy so far with its interval, and a way to stop it."""
    with st.container(border=True, key=f"{key}_{run.id}"):
        left, right = st.columns([5, 1], vertical_alignment="center")
        title = f"{run.study} on {run.spec.get('dataset', '?')}"
        left.markdown(f"**{STATES[run.state]}** · {shell.plain(title)} · run `{run.id}`")
        if right.button("Cancel", key=f"{key}_cancel_{run.id}", width="stretch"):
            with st.spinner("Stopping the run. What is finished is kept."):
                jobs.cancel(run.id)
            st.rerun(scope="app")
        text = run.message or "starting"
        if run.state == "queued":
            text = f"waits for a free worker ({jobs.n_workers()} at a time)"
        elif run.n_done:
            left_over = run.seconds / run.n_done * (run.n_chunks - run.n_done)
            text += f" · about {duration(left_over)} left"
        st.progress(min(1.0, run.share_done), text=shell.plain(text))
        results = (run.summary or {}).get("results") or []
        if results and "accuracy" in results[0]:
            cells = " &nbsp;·&nbsp; ".join(
                f"{shell.plain(r['label'])} **{r['accuracy']:.1f}**{_half(r)} % ({r['n_tasks']:,} tasks)"
                for r in results
            )
            st.caption(f"Accuracy so far: {cells}")


def _half(result: Mapping[str, Any]) -> str:
    return f" ± {result['ci95']:.1f}" if result.get("ci95") is not None else ""


def when(moment: float) -> str:
    """A time in words: today by the clock, older by the date."""
    local = time.localtime(moment)
    same_day = time.strftime("%Y%m%d", local) == time.strftime("%Y%m%d")
    return time.strftime("%H:%M:%S" if same_day else "%d %b %Y, %H:%M", local)


# --- why: the images behind the mistakes -------------------------------------------------------------------------


def show_confusions(dataset: Dataset, answer: Predictions, tasks: Tasks, who: str, key: str) -> None:
    """The pairs of classes that are confused most; choosing one shows the images that went wrong."""
    pairs = comparison.pairs_table(answer, tasks, dataset, _SHOWN_PAIRS)
    if pairs.empty:
        st.caption(f"{who} got every query of these {len(tasks):,} tasks right, so there is no mistake to show.")
        return
    labels = [f"{row.class_name} → {row.taken_for_name} ({row.rate:.0f} %)" for row in pairs.itertuples(index=False)]
    chosen = st.selectbox(
        "Most confused pairs (class → what it was taken for)",
        range(len(labels)),
        format_func=lambda i: labels[i],
        key=f"{key}_pair",
        help="The share of the first class's query images that were given the second class's name, in tasks that "
        "hold both.",
    )
    row = pairs.iloc[min(chosen or 0, len(pairs) - 1)]
    wrong = comparison.misclassified(answer, tasks, int(row["class_id"]), int(row["taken_for"]), _SHOWN_IMAGES)
    if dataset.has_pixels:
        clicked = task_rows(
            dataset,
            [
                Row(
                    str(row["class_name"]),
                    [
                        Tile(int(w.image_id), frame="wrong", badge=f"{w.confidence:.0f} % sure")
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
            key=f"{key}_wall_{chosen}",
            tile_px=92,
        )
        if clicked is not None:
            _one_image(dataset, answer, tasks, clicked)
    else:
        st.dataframe(wrong, hide_index=True)
        st.caption(f"{dataset.title} has no pixels here, so only the numbers of the images are shown.")
    st.caption(
        f"{who} took {int(row['confused']):,} of {int(row['asked']):,} query images of "
        f"**{shell.plain(row['class_name'])}** for **{shell.plain(row['taken_for_name'])}** in tasks that hold both. "
        "The most confident mistakes come first; click an image to see every task it went wrong in."
    )
    with st.expander("Accuracy of every class"):
        number = st.column_config.NumberColumn(format="%.1f")
        st.dataframe(
            comparison.class_table(answer, tasks, dataset),
            hide_index=True,
            key=f"{key}_classes",
            height=260,
            column_config={"accuracy (%)": number, "± 95%": number},
        )
        st.caption(f"{who} over {len(tasks):,} tasks, the hardest class first; the interval is over the class's tasks.")


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
    table = pd.DataFrame(
        {
            "task": t,
            "taken for": names[said],
            "right": said == tasks.class_ids[t, w],
            "confidence (%)": (100 * answer.confidence[t, w, q]).round(1),
            "the task's classes": [", ".join(names[c] for c in tasks.class_ids[i] if c >= 0) for i in t],
        }
    )
    right = int(table["right"].sum())
    left, middle = st.columns([1, 4])
    with left:
        gallery(
            dataset,
            [Tile(image_id, str(names[dataset.image_class_ids()[image_id]]))],
            key=f"one_{image_id}",
            tile_px=150,
        )
    with middle:
        st.markdown(f"Image {image_id} was a query in **{len(t)}** tasks and was named rightly in **{right}** of them.")
        st.dataframe(table, hide_index=True, height=min(240, 38 + 35 * len(table)))
