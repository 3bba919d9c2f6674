"""The selected class: its side, its images and its nearest classes."""

from __future__ import annotations

import numpy as np
import streamlit as st

from fsviz.analyses import class_splits as study
from fsviz.records import PAD, SIDES, ClassSplit, Dataset
from fsviz.text import short_names
from fsviz.ui.pages.train_test_distance.settings import CLASS
from fsviz.ui.parts import export
from fsviz.ui.parts.clicks import Click
from fsviz.ui.parts.image_wall import Tile, gallery
from fsviz.ui.parts.shell import escape

MAX_IMAGES = 8


def show(dataset: Dataset, classes: study.ClassFeatures, split: ClassSplit, position: int) -> None:
    with st.container(border=True):
        side = split.sides[position]
        name = escape(short_names(split.names)[position])
        st.markdown(f"**{name}**" if side == PAD else f"**{name}** is a **{SIDES[side]}** class.")
        if split.scores is not None:
            rank = int((split.scores < split.scores[position]).sum())
            st.caption(
                f"log p(train) − log p(test) = {split.scores[position]:.2f}: rank {rank + 1:,} of {len(split.names):,} "
                "from the test end."
            )
        if dataset.has_pixels:
            ids = np.flatnonzero(dataset.image_class_ids() == split.class_ids[position])[:MAX_IMAGES]
            gallery(dataset, [Tile(int(i)) for i in ids], key=f"class_{int(split.class_ids[position])}", tile_px=64)
        near = study.neighbours(classes, split, position)
        table = study.NEIGHBOURS if side != PAD else study.NEIGHBOURS.only("class", "distance")
        export.table(table, near, key="class_neighbours", sets=Click(CLASS, near["class"].tolist()))
        st.caption("Nearest classes. Select a row to show that class.")
