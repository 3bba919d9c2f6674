"""Labelling policies compared: the least confident images, or random ones."""

from __future__ import annotations

import streamlit as st

from fsviz.figures import prediction as figures
from fsviz.records import PAD, Dataset
from fsviz.settings import Setting
from fsviz.studies import prediction as study
from fsviz.ui.parts import drilldown
from fsviz.ui.parts.answers import answer
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.controls import pick
from fsviz.ui.parts.image_wall import Row, Tile
from fsviz.ui.parts.run_panel import half_width
from fsviz.ui.parts.shell import escape

MAX_TILES = 30
COUNTED = Setting(
    "counted",
    "Accuracy on",
    "Labelling the least confident images leaves the easier ones unlabelled. All images: labelled ones count as "
    "correct.",
    "choice",
    "rest",
    choices={"rest": "unlabelled images", "all": "all images, labelled ones as correct"},
)


def show(dataset: Dataset, spec: study.PredictionSpec) -> study.PredictionSpec:
    """Show the curves of both policies; returns the spec."""
    st.subheader("What to label next", anchor=False)
    checked = study.check({**spec, "question": "labelling"})
    result = answer(study.STUDY, checked, "Labelling and training again")
    if result is None:
        return checked
    summary = cached_call(study.summary, result)
    accuracies, curves = summary["rest"] if pick(COUNTED) == "rest" else summary["all"], {}
    for policy in study.POLICIES:
        curve = accuracies[policy]
        curves[policy] = [
            (n, 100 * m, 100 * (m - (h or 0)), 100 * (m + (h or 0)))
            for n, m, h in zip(summary["budgets"], curve["mean"], curve["ci95"], strict=True)
        ]
    point = drilldown.chart(
        "What to label next",
        figures.plot_curves(curves, "labelled images", "accuracy (%)", percent=True),
        key="labelling",
        name="labelled",
        place=2,
        texts=[f"{policy}@{n:g}" for policy in study.POLICIES for n in summary["budgets"] if n],
    )
    gain, half = accuracies["gain"], accuracies["gain_ci95"]
    last = len(summary["budgets"]) - 1
    st.caption(
        f"{summary['n_tasks']:,} semi-supervised tasks with {spec['n_shot']:,} labelled images per class. At "
        f"{summary['budgets'][last]:,} more labels: least confident vs random "
        f"{100 * gain[last]:+.1f}{half_width(half[last], 1, 100)} points. Click a point to list the labelled images.",
        help="Paired by task, 95% CI over tasks. In the paper random is better with few labels, because it keeps the "
        "classes balanced.",
    )
    if point:
        _labelled(dataset, result, *point.split("@"))
    return checked


def _labelled(dataset: Dataset, result: study.PredictionResult, policy: str, n: str) -> None:
    """Show the images that a policy labels first, in the first tasks."""
    tasks, images = cached_call(study.labelled_images, result, policy, int(n))
    drilldown.heading(f"First {int(n):,} images to label: {escape(policy)}", "labelled")
    names = dataset.classes["class_name"].astype(str).to_numpy()
    class_of_image = dataset.image_class_ids()
    rows = [
        Row(
            f"Task {t:,}",
            [Tile(int(i), str(names[class_of_image[i]])) for i in images[t][:MAX_TILES]],
            ", ".join(dataset.short_names(tasks.class_ids[t][tasks.class_ids[t] != PAD])),
        )
        for t in range(len(tasks))
    ]
    drilldown.images(dataset, rows, "labelled_images")
    if int(n) > MAX_TILES:
        st.caption(f"Showing the first {MAX_TILES} of each task.")
