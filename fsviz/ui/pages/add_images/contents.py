"""The contents of a folder: counts, sample images and problems."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from fsviz.datasets import image_folders
from fsviz.datasets.duplicates import largest_groups
from fsviz.datasets.preview import CLASSES, ITEMS, Preview
from fsviz.records import Dataset, HeadlineNumber
from fsviz.ui.parts import export
from fsviz.ui.parts.headline import show_numbers
from fsviz.ui.parts.image_wall import Row, Tile, gallery, task_rows
from fsviz.ui.parts.shell import escape

N_SAMPLES, N_GROUPS, N_IN_GROUP = 24, 5, 8


def show_contents(preview: Preview) -> None:
    """Counts, samples and problems."""
    classes = preview.classes
    splits = preview.split_counts
    n_problems = sum(max(1, len(p.items)) for p in preview.problems)
    names = " / ".join(splits) if len(splits) < 4 else f"{len(splits):,}"
    numbers = [
        HeadlineNumber.count("classes", "Classes", len(classes)),
        HeadlineNumber.count("images", "Images", len(preview.images)),
        HeadlineNumber.worded("splits", "Splits", names, help="Sets of classes."),
        HeadlineNumber.count("problems", "Warnings", n_problems, help="You can still save."),
    ]
    show_numbers(numbers)
    dataset = image_folders.preview_dataset("preview", preview)
    st.caption(
        " ".join([f"Read as a {escape(preview.source)} in {escape(str(preview.root))}.", *map(escape, dataset.notes)])
    )
    left, right = st.columns([3, 2], gap="large")
    with left:
        image_ids = _sample_ids(dataset)
        names = dataset.classes["class_name"].to_numpy()[dataset.image_class_ids()[image_ids]]
        gallery(dataset, [Tile(int(i), str(n)) for i, n in zip(image_ids, names)], key="samples", tile_px=84)
        st.caption(f"{len(image_ids)} of {len(preview.images):,} images, from as many classes as possible.")
    with right:
        class_rows = classes if len(splits) > 1 else classes[["class_name", "n_images"]]
        export.table(CLASSES, class_rows, height=min(320, 38 + 35 * len(classes)))
    for problem in preview.problems:
        with st.expander(escape(problem.message), icon="⚠️"):
            if problem.kind in ("copies", "two_classes"):
                _show_groups(dataset, across=problem.kind == "two_classes")
            elif problem.kind == "frames":
                st.button("Group by folder", key="take_folders", on_click=_group_by_folder)
            if problem.items:
                height = min(200, 36 * len(problem.items) + 40)
                export.table(ITEMS, {"item": list(problem.items)}, height=height)
            else:
                st.caption("No details.")


def _show_groups(dataset: Dataset, across: bool) -> None:
    """The largest groups of copies as images, a row each."""
    names = dataset.classes["class_name"].to_numpy()[dataset.image_class_ids()]
    rows = [
        Row(
            f"{len(ids):,} images",
            [Tile(int(i), str(names[i])) for i in ids[:N_IN_GROUP]],
            "" if len(ids) <= N_IN_GROUP else f"the first {N_IN_GROUP}",
        )
        for ids in largest_groups(dataset, N_GROUPS, across)
    ]
    task_rows(dataset, rows, key=f"groups_{across}", tile_px=84)


def _group_by_folder() -> None:
    st.session_state["groups"] = "folder"


def _sample_ids(dataset: Dataset) -> list[int]:
    """Up to N_SAMPLES images, taking turns over the classes; second images of a group come last."""
    groups = dataset.image_groups()
    images = pd.DataFrame({"class_id": dataset.image_class_ids()})
    images["again"] = False if groups is None else pd.Series(groups).duplicated()
    images["turn"] = images.groupby(["again", "class_id"]).cumcount()
    return images.sort_values(["again", "turn"], kind="stable").index[:N_SAMPLES].tolist()
