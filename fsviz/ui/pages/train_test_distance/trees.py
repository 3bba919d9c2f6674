"""Two trees of the classes facing each other, and the differences between every two trees."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from fsviz.analyses import class_splits as study
from fsviz.features.backbones import title_of
from fsviz.figures import class_splits as figures
from fsviz.records import SIDES, ClassSplit, Dataset
from fsviz.ui.pages.train_test_distance import class_card
from fsviz.ui.pages.train_test_distance.settings import CLASS
from fsviz.ui.parts import export, shell
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.clicks import Click
from fsviz.ui.parts.controls import pick
from fsviz.ui.parts.shell import escape

LEFT = study.TREE.with_(name="left_tree")
RIGHT = study.TREE.with_(name="right_tree", title="Tree on the right")
LEAST, MOST = 3, 250  # classes of a tanglegram that can still be read
BOX = 560  # height in pixels of the box in which a taller figure scrolls


def show(dataset: Dataset, classes: study.ClassFeatures, split: ClassSplit, position: int | None) -> None:
    available = study.known_trees(dataset)
    if len(available) < 2:
        st.info(
            f"{escape(dataset.title)} has one tree ({escape(available[0])}); a comparison needs two. Extract features "
            "with another backbone on the page Add images, or add a taxonomy.",
            icon="🧩",
        )
        return
    titles = {name: "the taxonomy" if name == study.TAXONOMY else title_of(name) for name in available}
    left, right, class_ids = _pick(dataset, split, titles)
    table = cached_call(
        study.hop_table,
        dataset,
        available,
        cached_call(study.all_with_features, dataset, tuple(available)),
        words="Comparing trees",
    )
    row = _row_of(table, left, right)
    sentence, more = study.tree_answer(row, titles[left], titles[right])
    shell.answer(escape(sentence), escape(more))
    middle = side = st.container()
    if position is not None:
        middle, side = shell.responsive_columns("trees", [2.2, 1], gap="medium")
    with middle:
        if LEAST <= len(class_ids) <= MOST:
            _tanglegram(dataset, split, left, right, class_ids)
        else:
            st.info(
                f"Two trees are readable with {LEAST} to {MOST:,} classes; these are {len(class_ids):,}. Choose other "
                "classes.",
                icon="🌳",
            )
    if position is not None:
        with side:
            class_card.show(dataset, classes, split, position)
    with st.expander("All pairs of trees"):
        _table(table, titles)


def _pick(dataset: Dataset, split: ClassSplit, titles: dict[str, str]) -> tuple[str, str, np.ndarray]:
    """Both trees and the classes they have, picked in the sidebar."""
    available = list(titles)
    with shell.side():
        left = pick(LEFT.with_(choices=titles, default=available[0]))
        other_trees = {name: title for name, title in titles.items() if name != left}
        default = study.TAXONOMY if study.TAXONOMY in other_trees else next(iter(other_trees))
        right = pick(RIGHT.with_(choices=other_trees, default=default))
        is_small = len(split.on(str(study.PART.default))) < LEAST <= len(split.names) <= MOST
        part = pick(study.PART.with_(default="all") if is_small else study.PART)
    requested = split.class_ids if part == "all" else split.on(part)
    return left, right, np.intersect1d(requested, cached_call(study.all_with_features, dataset, (left, right)))


def _row_of(table: pd.DataFrame, left: str, right: str) -> dict:
    """The row of two trees, in either order."""
    pairs = zip(table["first"], table["second"], strict=True)
    position = next(i for i, pair in enumerate(pairs) if set(pair) == {left, right})
    return table.iloc[position].to_dict()


def _tanglegram(dataset: Dataset, split: ClassSplit, left: str, right: str, class_ids: np.ndarray) -> None:
    facing = cached_call(study.tanglegram, dataset, left, right, class_ids, words="Turning the branches", keep=64)
    positions = np.searchsorted(split.class_ids, class_ids)
    figure = figures.plot_tanglegram(facing, [SIDES[s] for s in split.sides[positions]])
    export.chart(
        "Trees facing each other",
        figure,
        key="tanglegram",
        where=st.container(height=BOX) if figure.layout.height > BOX else st,
        sets=Click(CLASS, [split.names[i] for i in positions]),
    )
    n = len(class_ids)
    st.caption(
        f"{n:,} classes; {facing.crossings:,} of {n * (n - 1) // 2:,} pairs cross. × marks the "
        f"{int(facing.crossing.sum()):,} classes behind the crossings. Click the dot of a class to show it.",
        help="Branches are turned so that few lines cross; × are the fewest classes without which none would. A tree "
        "of features is Ward's clustering of class means, its branches as long as the distance at which groups join "
        "(square roots). Concepts of the taxonomy are small squares.",
    )


def _table(table: pd.DataFrame, titles: dict[str, str]) -> None:
    export.table(
        study.HOPS,
        table.assign(first=table["first"].map(titles), second=table["second"].map(titles)),
        key="hop_table",
        sets=Click((LEFT, RIGHT), list(zip(table["first"], table["second"], strict=True))),
    )
    st.caption(
        "All classes of the dataset; a hop is an edge. Select a row to show its two trees.",
        help="In the taxonomy along all of its paths. Published for ImageNet-1k (table 3): 2.0 to 2.3 between "
        "backbones, 8.4 to 8.6 from any of them to WordNet. The paper does not say how those were normalised, so "
        "compare within one table only.",
    )
