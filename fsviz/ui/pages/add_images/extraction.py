"""Features of a dataset: extract them with a backbone, in the background."""

from __future__ import annotations

import time

import streamlit as st

from fsviz import jobs
from fsviz.datasets import uploads
from fsviz.errors import FsvizError
from fsviz.features.backbones import title_of
from fsviz.records import Dataset
from fsviz.studies import extraction
from fsviz.studies.extraction import SKIPPED
from fsviz.ui.pages.add_images.saving import show_page_links
from fsviz.ui.pages.add_images.sources import show_upload_limit
from fsviz.ui.parts import access, export, run_panel, shell
from fsviz.ui.parts.shell import escape

# Features


def show_extraction(dataset: Dataset) -> None:
    st.subheader(f"Let a backbone look at {escape(dataset.title)}", anchor=False)
    asked, engine = st.session_state.pop("extract_asked", (None, None))
    if asked is not None:  # said before anything that takes time
        with st.status(
            f"Queued: {escape(title_of(asked['backbone']))} on {escape(dataset.title)}. Loading the backbone …"
        ):
            access.do("run", jobs.submit, asked, engine)
        st.rerun()
    if not dataset.has_pixels:
        st.info(
            f"{escape(dataset.title)} has no images here, so features cannot be extracted. Pick another dataset in the "
            "sidebar, or add your own copy of the images.",
            icon="🧩",
        )
        return
    st.caption(
        "A backbone is a trained image network; its features are the list of numbers it makes of every image. "
        "Methods and measures work on them. Attributes such as brightness are read from the pixels on the way."
    )
    rows = extraction.choices(dataset)
    there = [row["backbone"] for row in rows if row["extracted"]]
    if there:
        st.success(f"Features are there under {escape(', '.join(map(title_of, there)))}.", icon="✅")
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    names = [row["backbone"] for row in rows]
    warnings = {row["backbone"]: row["warning"] for row in rows}
    backbone = left.selectbox(
        "Backbone",
        names,
        format_func=title_of,
        key="extract_with",
        accept_new_options=True,
        help="Or type the name of any timm model or open_clip tower; those are downloaded when there is internet.",
    )
    if warnings.get(backbone):
        st.caption(f"⚠️ {escape(title_of(backbone))}: {escape(warnings[backbone])}.")
    run = _latest_run(dataset.name)
    active = run is not None and run.active
    spec: extraction.ExtractionSpec = {"study": "extraction", "dataset": dataset.name, "backbone": backbone}
    if weights := _pick_checkpoint():
        spec["checkpoint"] = weights
    right.button(
        "Extract features",
        key="extract",
        type="primary",
        disabled=active,
        width="stretch",
        on_click=_ask_to_extract,
        args=(spec, run_panel.where("extract")),
    )
    st.caption(f"Runs on {escape(extraction.describe_device())}, in the background: you may close this page.")
    if run is not None:
        if run.active:
            _show_progress(run.id)
        else:
            _show_ended(run)
    show_page_links(dataset)


def _pick_checkpoint() -> str:
    """Weights of one's own for the backbone, "" where none are given."""
    if not access.can("upload"):
        return ""
    with st.expander("Weights of your own (a checkpoint)"):
        st.caption("Tensors only: safetensors, or a torch file of a state dict. The backbone must be of the same kind.")
        file = st.file_uploader("Checkpoint file", [ending[1:] for ending in uploads.WEIGHTS], key="checkpoint_file")
        show_upload_limit("the file")
        path = ""
        if access.can("paths"):
            path = st.text_input("or its path", key="checkpoint_path", placeholder="/home/you/resnet12.pth").strip()
        if file is not None:
            return str(access.do("upload", uploads.keep_weights, file))
        return access.path(path) if path else ""


def _ask_to_extract(spec: extraction.ExtractionSpec, engine: jobs.Engine) -> None:
    st.session_state["extract_asked"] = spec, engine


def _latest_run(name: str) -> jobs.Run | None:
    return next((run for run in jobs.list_runs("extraction") if run.spec.get("dataset") == name), None)


@st.fragment(run_every=1.0)
@shell.errors_on_page()
def _show_progress(run_id: str) -> None:
    try:
        run = jobs.status(run_id)
    except FsvizError:  # it was deleted elsewhere
        st.rerun()
    if not run.active:
        st.rerun()
    summary = run.summary or {}
    total, done = int(run.spec.get("n_images") or 0), int(summary.get("n_images") or 0)
    speed = done / run.seconds if run.seconds else None
    told = f"{escape(title_of(str(run.spec.get('backbone'))))}: {done:,} of {total:,} images"
    if speed:
        told += f", {speed:,.1f} per second, about {_duration((total - done) / speed)} left"
    elif run.state == "queued":
        told += ", waiting for a free worker"
    elif run.started is not None:
        told += f", {_duration(time.time() - run.started)} so far"
    left, right = st.columns([5, 1], vertical_alignment="center")
    left.progress(min(1.0, done / total) if total else run.share_done, told)
    if right.button("Cancel", key="cancel_extraction", width="stretch"):
        access.do("run", jobs.cancel, run_id)
        st.rerun()


def _show_ended(run: jobs.Run) -> None:
    summary = run.summary or {}
    backbone = escape(title_of(str(run.spec.get("backbone"))))
    if run.state == "finished":
        skipped = summary.get("skipped") or []
        st.caption(
            f"Last extraction: {summary.get('n_images', 0):,} images under {backbone}, {summary.get('dims') or 0:,} "
            f"numbers each, in {_duration(run.seconds)}; {len(skipped):,} images could not be read."
            + (f" They are {escape(summary['precision'])}." if summary.get("precision") else "")
        )
        if skipped:
            with st.expander("Images that could not be read", icon="⚠️"):
                export.table(SKIPPED, skipped)
        return
    st.warning(f"The extraction under {backbone} was {escape(run.state)}. {escape(run.error or '')}", icon="⚠️")
    if run.resumable and st.button("Go on where it stopped", key="resume_extraction"):
        access.do("run", jobs.resume, run.id)
        st.rerun()


def _duration(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 90
        else f"{seconds / 60:.0f} min"
        if seconds < 5400
        else f"{seconds / 3600:.1f} h"
    )
