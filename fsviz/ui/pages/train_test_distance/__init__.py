"""The page of splits: classes and both centroids on a map, how certain it is, other splits, trees, published ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from fsviz.analyses import class_splits as study
from fsviz.errors import FsvizError
from fsviz.features.backbones import title_of
from fsviz.figures import class_splits as figures
from fsviz.records import SIDES, Dataset, HeadlineNumber
from fsviz.ui.pages.train_test_distance import (
    accuracy_cost,
    published,
    save,
    settings,
    stability,
    superclasses,
    train,
    trees,
)
from fsviz.ui.pages.train_test_distance.settings import CLASS
from fsviz.ui.parts import controls, drilldown, export, hover, shell
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.clicks import Click
from fsviz.ui.parts.headline import show_number
from fsviz.ui.parts.image_wall import Tile, gallery
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape

MAP, BESIDE = "split_map", "split_beside"
SHOWN = 8
SECTIONS = ("Other divergences", "How certain", "Other splits", "What it costs", "Trees", "Published splits")


def show(dataset: Dataset) -> None:
    if "features" not in dataset.capabilities:
        published.show_without_features(dataset)
        return
    spec = settings.pick_spec(dataset)
    try:
        classes = settings.class_features(dataset, str(spec["backbone"]))
    except FsvizError as error:
        st.error(escape(shell.with_setting_titles(error)), icon="⚠️")
        shell.offer_demo(dataset)
        return
    if not settings.is_affordable(study.seconds(classes, spec, study.SEEDS.default)):
        return
    result = cached_call(study.find_split, dataset, classes, words="Looking for the split", keep=256, **spec)
    alike = _headline(result, cached_call(study.nearest_at_random, classes, result.split, keep=256))
    _map_and_side(dataset, classes, result)
    stability.headline(alike, cached_call(study.agreement, dataset, classes, keep=256, **spec))
    section = controls.pick_section("What is behind it?", SECTIONS)
    if section == "Other divergences":
        _small_multiples(dataset, classes, result)
    if section == "How certain":
        stability.show(dataset, spec, result)
    if section == "Other splits":
        _comparisons(dataset, classes, result)
    if section == "What it costs":
        accuracy_cost.show(dataset)
        train.show(dataset, classes, result)
    if section == "Trees":
        trees.show(dataset, result.split)
    if section == "Published splits":
        published.show(dataset)
    save.show(dataset, result)


PAGE = Page(
    slug="train_test_distance",
    label="Train–test distance",
    icon="✂️",
    group="Why hard?",
    order=3,
    question="How far are test classes from training classes?",
    lead="Split the classes of {dataset} at a target distance and measure the cost.",
    paper="Arnold & Sha (2021), sections 4 and 5, figures 1 and 3",
    needs=("features",),
    explains=("clustering", "divergences", "nearest_train", "accuracy", "interval"),
    keywords=("transfer", "ATG", "domain", "split"),
    show=show,
)


def _headline(result: study.SplitResult, at_random: tuple[float, float]) -> Any:
    """Four numbers; returns the slot of the last one, which takes a moment longer.

    at_random  between what 95% of random splits have as distance of a test class to the nearest training class
    """
    split = result.split
    reached = HeadlineNumber.worded(
        "reached", "Divergence reached", "none asked", help="This split is not made from centroids."
    )
    if split.requested is not None and split.reached is not None:
        reached = HeadlineNumber(
            "reached",
            "Divergence reached",
            split.reached,
            unit="",
            digits=2,
            note=f"asked for {split.requested:g}",
            help="Between the two distributions over classes that the centroids give. In few dimensions the asked one "
            "is not always reached.",
        )
    parts = split.parts
    numbers = [
        reached,
        HeadlineNumber.worded(
            "sides",
            "Train, val and test classes",
            " / ".join(f"{len(parts[side]):,}" for side in SIDES),
            help="Val and test take one fifth each, rounded down, in turn: the class that is most of the test side "
            f"goes to test, the next to val. {study.SIDE_RULE}",
        ),
        HeadlineNumber(
            "nearest",
            "Nearest training class",
            result.nearest,
            unit="",
            digits=2,
            note=f"random splits {at_random[0]:.2f} to {at_random[1]:.2f}",
            help="Distance of a test class to the training class that is most like it, mean over test classes; "
            "features of unit length, all dimensions. 95% of random splits with as many classes on every side are in "
            "the range below it: a wanted divergence moves the two sides apart as groups, and a test class can still "
            f"have a training class next to it. Farthest from any training class: {result.farthest}.",
        ),
    ]
    *columns, last = shell.responsive_columns("headline", 4, "pairs")
    for column, number in zip(columns, numbers, strict=True):
        show_number(number, column)
    return last.empty()


def _map_and_side(dataset: Dataset, classes: study.ClassFeatures, result: study.SplitResult) -> None:
    split = result.split
    left, side = shell.responsive_columns("map", [2.2, 1], gap="medium")
    with side:
        picked = _pick_class(split.names)
        _in_words(dataset, result)
        if picked is not None:
            _class_card(dataset, classes, result, picked)
        else:
            _superclasses(dataset, result)
    with left:
        faces = study.faces(dataset, split.class_ids) if dataset.has_pixels else split.class_ids
        figure = figures.plot_split(split, faces.tolist(), picked)
        of_face = dict(zip(map(int, faces), split.names, strict=True))
        export.chart("Map of the split", figure, key=MAP, sets=Click(CLASS, of_face, toggles=(CLASS,)))
        if dataset.has_pixels:
            hover.thumbnails(dataset, MAP, frozenset(map(int, faces)))
        axes = split.points.shape[1]
        st.caption(
            f"{len(split.names):,} classes by the mean feature of their images under "
            f"{escape(title_of(classes.backbone))}, on the first two of {axes:,} axes. "
            + (
                "Dotted lines lead to the centroids; an arrow head at the frame means that one lies beyond it. "
                if split.centroids is not None
                else ""
            )
            + "Rest on a class for a picture, click it for more."
        )
        if classes.without:
            st.caption(f"{len(classes.without):,} classes have no features and are on no side.")


def _pick_class(names: tuple[str, ...]) -> int | None:
    """Place of the class picked by name, by click or by link; one of another dataset is forgotten."""
    if st.session_state.get(CLASS.name) not in names:
        st.session_state.pop(CLASS.name, None)
    name = st.selectbox(
        "Find a class, or click the map",
        sorted(names, key=str.lower),
        index=None,
        key=CLASS.name,
        bind="query-params",
        placeholder="Type a class name",
    )
    return names.index(name) if name in names else None


def _in_words(dataset: Dataset, result: study.SplitResult) -> None:
    """Superclasses on each side of the split, and a note if the requested divergence is not reached."""
    superclasses.say(dataset, result.split)
    said = study.describe_split(result)
    if said:
        st.info(escape(said), icon="🎯")
    if result.is_at_floor:
        fewer = (
            "Fewer dimensions, at the left, let"
            if result.settings["mode"] == "stable"
            else ("Mode “stable” with few dimensions lets")
        )
        st.warning(
            f"The objective is at its floor, {result.floor:.3f} (M log M for M = {len(result.split.names):,} classes): "
            "with so many dimensions nearly any split can have the asked divergence, so the random start chose this "
            f"one. {fewer} the classes choose.",
            icon="🎲",
        )


def _class_card(dataset: Dataset, classes: study.ClassFeatures, result: study.SplitResult, place: int) -> None:
    split = result.split
    with st.container(border=True):
        st.markdown(f"**{escape(split.names[place])}** is a **{SIDES[split.sides[place]]}** class.")
        if split.scores is not None:
            rank = int((split.scores < split.scores[place]).sum())
            st.caption(
                f"log p(train) − log p(test) = {split.scores[place]:.2f}: number {rank + 1:,} of {len(split.names):,} "
                "from the test end."
            )
        if dataset.has_pixels:
            ids = np.flatnonzero(dataset.image_class_ids() == split.class_ids[place])[:SHOWN]
            gallery(dataset, [Tile(int(i)) for i in ids], key=f"class_{int(split.class_ids[place])}", tile_px=64)
        near = study.neighbours(classes, split, place)
        export.table(
            study.NEIGHBOURS,
            near,
            key="class_neighbours",
            sets=Click(CLASS, near["class"].tolist()),
        )
        st.caption("The classes most like it, whatever their side; a row leads to its class.")


def _small_multiples(dataset: Dataset, classes: study.ClassFeatures, result: study.SplitResult) -> None:
    if result.split.requested is None:
        st.info("This split asks for no divergence. Choose the mode “stable” at the left to see what others do.")
        return
    spec = {name: value for name, value in result.settings.items() if name != "divergence"}
    words = "Looking for splits with other divergences"
    many = cached_call(study.over_targets, dataset, classes, words=words, keep=64, **spec)
    export.chart(
        "Splits as more divergence is asked for",
        figures.plot_small_multiples([one.split for one in many]),
        key="small_multiples",
        sets=Click(CLASS, result.split.names),
    )
    st.caption(
        "The same classes as more divergence is asked for, all else as at the left (figure 3 of the paper). The "
        "centroids move apart: "
        + ", ".join(f"{study.centroid_distance(one.split):.1f}" for one in many)
        + " in units of the features, in which a class is about "
        f"{float(np.linalg.norm(result.split.points, axis=1).mean()):.1f} from the middle. They lie far outside the "
        "classes, so that the map shows their direction. Click a class to see its images above."
    )


def _superclasses(dataset: Dataset, result: study.SplitResult) -> None:
    if not study.superclass_shares(dataset, result.split):
        return
    superclasses.draw(dataset, result.split, "mix", 80, 28)
    st.caption(
        "Classes by superclass and side; click a bar for its classes. The split has not seen them: it knows features "
        "alone. Superclasses come from the root of the taxonomy down; the largest is replaced by those below it."
    )


def _comparisons(dataset: Dataset, classes: study.ClassFeatures, result: study.SplitResult) -> None:
    words = "Comparing with other splits"
    table = cached_call(study.comparison_table, dataset, classes, result, words=words, keep=64)
    chosen = drilldown.table(study.COMPARISONS, table, key="comparisons", name=BESIDE, texts=table["split"].tolist())
    st.caption(
        "Features of unit length, all dimensions. A wanted divergence moves the means of the two sides apart, but a "
        "test class can still have a training class beside it: read both columns. Whole superclasses keep relatives "
        "together instead. Choose a row to see its classes."
    )
    if chosen:
        drilldown.heading(f"Train and test classes: {escape(chosen)}", BESIDE)
        split = cached_call(study.compared_splits, dataset, classes, result, words=words, keep=64)[chosen].split
        for side in ("train", "test"):
            st.markdown(f"**{side}**: {len(split.on(side)):,} classes")
            drilldown.classes(dataset, split.on(side).tolist(), f"beside_{side}")
