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
    st.subheader(f"Extract features of {escape(dataset.title)}", anchor=False)
    request, engine = st.session_state.pop("extract_request", (None, None))
    if request is not None:  # shown before anything that takes time
        with st.status(
            f"Queued: {escape(title_of(request['backbone']))} on {escape(dataset.title)}. Loading the backbone …"
        ):
            access.do("run", jobs.submit, request, engine)
        st.rerun()
    if not dataset.has_pixels:
        st.info(
            f"**{escape(dataset.title)} has no images here.** Add your copy of them, or choose another dataset.",
            icon="🧩",
        )
        return
    st.caption(
        "A backbone turns each image into a feature vector.",
        help="Methods and measures work on features. Attributes such as brightness are measured at the same time.",
    )
    rows = extraction.choices(dataset)
    available = [row["backbone"] for row in rows if row["extracted"]]
    if available:
        st.success(f"Available: {escape(', '.join(map(title_of, available)))}.", icon="✅")
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    names = [row["backbone"] for row in rows]
    warnings = {row["backbone"]: row["warning"] for row in rows}
    backbone = left.selectbox(
        "Backbone",
        names,
        format_func=title_of,
        key="extract_with",
        accept_new_options=True,
        help="Or type the name of a timm model or an open_clip tower; it is downloaded.",
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
    st.caption(f"Runs in the background on {escape(extraction.describe_device())}. You can close this page.")
    if run is not None:
        if run.active:
            _show_progress(run.id)
        else:
            _show_ended(run)
    show_page_links(dataset)


def _pick_checkpoint() -> str:
    """Custom weights of the backbone; "" for none."""
    if not access.can("upload"):
        return ""
    with st.expander("Custom weights"):
        st.caption("safetensors, or a torch state dict of the same architecture.")
        file = st.file_uploader("Checkpoint file", [ending[1:] for ending in uploads.WEIGHTS], key="checkpoint_file")
        show_upload_limit("the file")
        path = ""
        if access.can("paths"):
            path = st.text_input("or path", key="checkpoint_path", placeholder="/home/you/resnet12.pth").strip()
        if file is not None:
            return str(access.do("upload", uploads.keep_weights, file))
        return access.path(path) if path else ""


def _ask_to_extract(spec: extraction.ExtractionSpec, engine: jobs.Engine) -> None:
    st.session_state["extract_request"] = spec, engine


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
    total = int(run.spec.get("n_images") or 0)
    done = max(int(summary.get("n_images") or 0), round(total * run.share_done))  # a summary is written more rarely
    seconds = run.seconds or (time.time() - run.started if run.started is not None else 0.0)
    words = f"{escape(title_of(str(run.spec.get('backbone'))))}: {done:,} of {total:,} images"
    if run.state == "queued":
        words += ", waiting for a free worker"
    elif done and seconds:
        words += f", {done / seconds:,.1f} per second, about {_duration((total - done) * seconds / done)} left"
    elif run.started is not None:
        words += f", loading the backbone, {_duration(time.time() - run.started)} so far"
    left, right = st.columns([5, 1], vertical_alignment="center")
    left.progress(min(1.0, done / total) if total else run.share_done, words)
    if right.button("Cancel", key="cancel_extraction", width="stretch"):
        access.do("run", jobs.cancel, run_id)
        st.rerun()


def _show_ended(run: jobs.Run) -> None:
    summary = run.summary or {}
    backbone = escape(title_of(str(run.spec.get("backbone"))))
    if run.state == "finished":
        skipped = summary.get("skipped") or []
        st.caption(
            f"Last extraction: {summary.get('n_images', 0):,} images, {backbone}, {summary.get('dims') or 0:,} "
            f"dimensions, in {_duration(run.seconds)}; {len(skipped):,} images unreadable."
            + (f" Stored as {escape(summary['precision'])}." if summary.get("precision") else "")
        )
        if skipped:
            with st.expander("Unreadable images", icon="⚠️"):
                export.table(SKIPPED, skipped)
        return
    st.warning(f"The extraction with {backbone} was {escape(run.state)}. {escape(run.error or '')}", icon="⚠️")
    if run.resumable and st.button("Resume", key="resume_extraction"):
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
