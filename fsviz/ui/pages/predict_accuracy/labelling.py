"""Which images to label next: those the regression is least sure of, or any."""

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

MOST_TILES = 30
COUNTED = Setting(
    "counted",
    "Counted are",
    "The images that stay without a label are the easier ones when the unsure ones are labelled. All images: those "
    "labelled by hand count as right.",
    "choice",
    "rest",
    choices={"rest": "The images that stay unlabelled", "all": "All images, those labelled by hand as right"},
)


def show(dataset: Dataset, spec: study.Spec) -> study.Spec:
    """The curves of both policies; returns what was asked."""
    st.subheader("Which images should be labelled next?", anchor=False)
    asked = study.check({**spec, "question": "labelling"})
    result = answer(study.STUDY, asked, "Labelling and learning again")
    if result is None:
        return asked
    found = cached_call(study.summary, result)
    counted, curves = found["rest"] if pick(COUNTED) == "rest" else found["all"], {}
    for policy in study.POLICIES:
        of = counted[policy]
        curves[policy] = [
            (n, 100 * m, 100 * (m - (h or 0)), 100 * (m + (h or 0)))
            for n, m, h in zip(found["budgets"], of["mean"], of["ci95"], strict=True)
        ]
    chosen = drilldown.chart(
        "What to label next",
        figures.plot_curves(curves, "images labelled by hand", "accuracy (%)", percent=True),
        key="labelling",
        name="labelled",
        place=2,
        texts=[f"{policy}@{n:g}" for policy in study.POLICIES for n in found["budgets"] if n],
    )
    gain, half = counted["gain"], counted["gain_ci95"]
    last = len(found["budgets"]) - 1
    st.caption(
        f"{found['n_tasks']:,} semi-supervised tasks that start from {spec['n_shot']:,} labelled images per class; "
        "then some queries get their label, and the regression learns again. At "
        f"{found['budgets'][last]:,} labels, choosing the least confident ones changes the accuracy by "
        f"{100 * gain[last]:+.1f}{half_width(half[last], 1, 100)} points against random ones, on the same tasks (95% "
        "interval over tasks of these images). The paper finds chance better as long as labels are few, because it "
        "keeps the classes balanced. Click a point to see which images are labelled."
    )
    if chosen:
        _labelled(dataset, result, *chosen.split("@"))
    return asked


def _labelled(dataset: Dataset, result: study.PredictionResult, policy: str, n: str) -> None:
    """The images of the first tasks that a policy has labelled first."""
    tasks, images = cached_call(study.labelled_images, result, policy, int(n))
    drilldown.heading(f"The first {int(n):,} images to be labelled: {escape(policy)}", "labelled")
    names = dataset.classes["class_name"].astype(str).to_numpy()
    of_image = dataset.image_class_ids()
    rows = [
        Row(
            f"Task {t:,}",
            [Tile(int(i), str(names[of_image[i]])) for i in images[t][:MOST_TILES]],
            ", ".join(names[tasks.class_ids[t][tasks.class_ids[t] != PAD]]),
        )
        for t in range(len(tasks))
    ]
    drilldown.images(dataset, rows, "labelled_images")
    if int(n) > MOST_TILES:
        st.caption(f"The first {MOST_TILES} of each task are shown.")
