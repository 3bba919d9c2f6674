"""Check of a dataset: equal names, copies, small classes and images far from their class, each with its images."""

from __future__ import annotations

import streamlit as st

from fsviz import features
from fsviz.analyses import custom_task, image_check
from fsviz.analyses.image_check import Finding
from fsviz.datasets import filtering
from fsviz.records import Dataset
from fsviz.ui.parts import shell
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.image_wall import Row, Tile, task_rows
from fsviz.ui.parts.shell import escape

MAX_LINKED = 200  # images or classes in a link


def show_check(dataset: Dataset, is_answer: bool = False) -> None:
    """Shows every finding with images and a link to all of them, and how many there are, as the answer of the page."""
    if not is_answer:
        st.subheader(f"Check of {escape(dataset.title)}", anchor=False)
    if not dataset.has_pixels:
        st.info(f"**{escape(dataset.title)} has no images here.** Add your copy of them.", icon="🧩")
        return
    backbone = next(iter(features.available(dataset)), "")
    findings = cached_call(image_check.check, dataset, backbone, words="Checking names, copies and neighbours", keep=8)
    if is_answer:
        shell.answer(
            escape(image_check.headline(findings)), f"{dataset.n_classes:,} classes of {escape(dataset.title)}."
        )
    else:
        st.markdown(f"**{escape(image_check.headline(findings))}**")
    for finding in findings:
        with st.container(border=finding.n > 0, key=f"check_{finding.kind}"):
            _show_finding(dataset, finding)
    if not backbone:
        st.caption("Neighbours are checked once features are extracted.")
    shell.command_popover(f"fsviz check {dataset.name}")


def _show_finding(dataset: Dataset, finding: Finding) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        sign = "⚠️" if finding.n else "✅"
        st.markdown(f"{sign} {escape(finding.sentence)}", help=escape(finding.help), width="stretch")
        if finding.n:
            shell.page_link("images", "Show in Images", _link(dataset, finding))
    if finding.rows:
        rows = [
            Row(row.title, [Tile(i, caption) for i, caption in zip(row.image_ids, _captions(row))], row.note)
            for row in finding.rows
        ]
        task_rows(dataset, rows, key=f"check_{dataset.name}_{finding.kind}", tile_px=72)


def _captions(row: image_check.FindingRow) -> tuple[str, ...]:
    return row.captions or ("",) * len(row.image_ids)


def _link(dataset: Dataset, finding: Finding) -> dict[str, object]:
    """The page Images with all classes or images of a finding."""
    if finding.kind == image_check.STRANGERS:
        return dict(shell.link(dataset, order=filtering.BY_NEIGHBOURS))
    if finding.class_ids:
        names = dataset.classes["class_name"].astype(str)
        return dict(shell.link(dataset, classes=[names.iat[c] for c in finding.class_ids[:MAX_LINKED]], order="class"))
    return dict(shell.link(dataset, only=custom_task.images_text([finding.image_ids[:MAX_LINKED]])))
