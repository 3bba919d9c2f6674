"""Two trees of the classes facing each other, and how far every two trees are apart."""

from __future__ import annotations

import numpy as np
import streamlit as st

from fsviz.analyses import class_splits as study
from fsviz.features.backbones import title_of
from fsviz.figures import class_splits as figures
from fsviz.records import SIDES, ClassSplit, Dataset
from fsviz.ui.pages.train_test_distance.settings import CLASS
from fsviz.ui.parts import export
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.clicks import Click
from fsviz.ui.parts.controls import pick
from fsviz.ui.parts.shell import escape

LEFT = study.TREE.with_(name="left_tree")
RIGHT = study.TREE.with_(name="right_tree", title="Tree on the right")
LEAST, MOST = 3, 250  # classes of a tanglegram that can still be read


def show(dataset: Dataset, split: ClassSplit) -> None:
    known = study.known_trees(dataset)
    if len(known) < 2:
        st.info(
            f"Two trees are compared, and {escape(dataset.title)} has one: that of {escape(known[0])}. "
            "Extract features "
            "with another backbone on the page Add images, or give it a taxonomy.",
            icon="🧩",
        )
        return
    titles = {name: "the taxonomy" if name == study.TAXONOMY else title_of(name) for name in known}
    one, two, three = st.columns(3)
    left = pick(LEFT.with_(choices=titles, default=known[0]), one)
    others = {name: title for name, title in titles.items() if name != left}
    default = study.TAXONOMY if study.TAXONOMY in others else next(iter(others))
    right = pick(RIGHT.with_(choices=others, default=default), two)
    few = len(split.on(str(study.PART.default))) < LEAST <= len(split.names) <= MOST
    part = pick(study.PART.with_(default="all") if few else study.PART, three)
    asked = split.class_ids if part == "all" else split.on(part)
    class_ids = np.intersect1d(asked, cached_call(study.all_with_features, dataset, (left, right)))
    if len(class_ids) < LEAST or len(class_ids) > MOST:
        st.info(
            f"These are {len(class_ids):,} classes; two trees can be read side by side with {LEAST} to {MOST:,} of "
            "them. Choose other classes.",
            icon="🌳",
        )
    else:
        facing = cached_call(study.tanglegram, dataset, left, right, class_ids, words="Turning the branches", keep=64)
        sides = [SIDES[s] for s in split.sides[np.searchsorted(split.class_ids, class_ids)]]
        names = [split.names[i] for i in np.searchsorted(split.class_ids, class_ids)]
        export.chart(
            "Trees facing each other",
            figures.plot_tanglegram(facing, sides),
            key="tanglegram",
            sets=Click(CLASS, names),
        )
        n = len(class_ids)
        st.caption(
            f"{n:,} classes, each joined to itself. Branches are turned so that few lines cross: {facing.crossings:,} "
            f"of {n * (n - 1) // 2:,} pairs still do. Marked with × are the fewest classes "
            f"({int(facing.crossing.sum()):,}) without which none would. A tree of features is Ward's clustering of "
            "class means, its branches as long as the distance at which groups join (square roots); concepts "
            "of the taxonomy are small squares. Click the dot of a class to see its images above."
        )
    _table(dataset, tuple(known), titles)


def _table(dataset: Dataset, known: tuple[str, ...], titles: dict[str, str]) -> None:
    class_ids = cached_call(study.all_with_features, dataset, known)
    table = cached_call(study.hop_table, dataset, list(known), class_ids, words="Comparing trees")
    st.markdown("**How far the trees are apart** (table 3 of the paper)")
    export.table(
        study.HOPS,
        table.assign(first=table["first"].map(titles), second=table["second"].map(titles)),
        key="hop_table",
        sets=Click((LEFT, RIGHT), list(zip(table["first"], table["second"], strict=True))),
    )
    st.caption(
        "All classes of the dataset; a hop is an edge, in the taxonomy along all of its paths. Published for "
        "ImageNet-1k: 2.0 to 2.3 between backbones, 8.4 to 8.6 from any of them to WordNet. How those were normalised "
        "is not said, so compare within one table only. Choose a row to see its two trees above."
    )
