"""The page Train–test distance: the map of a split, its stability, other splits, its cost, trees, published splits."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from fsviz.analyses import class_splits as study
from fsviz.errors import FsvizError
from fsviz.features.backbones import title_of
from fsviz.figures import class_splits as figures
from fsviz.records import ClassSplit, Dataset
from fsviz.ui.pages.train_test_distance import (
    accuracy_cost,
    class_card,
    published,
    save,
    settings,
    stability,
    superclasses,
    train,
    trees,
)
from fsviz.ui.pages.train_test_distance.settings import CLASS
from fsviz.ui.parts import drilldown, export, hover, shell
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.clicks import Click
from fsviz.ui.parts.controls import pick_section
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape

MAP, COMPARED = "split_map", "compared_split"
SPLIT, SWEEP, STABILITY, COMPARE, COST, TREES, PUBLISHED = SECTIONS = (
    "Map",
    "Target sweep",
    "Stability",
    "Compare splits",
    "Accuracy cost",
    "Class trees",
    "Published splits",
)
WITH_CLASS = (SPLIT, SWEEP, TREES)  # sections that show the selected class


def show(dataset: Dataset) -> None:
    if "features" not in dataset.capabilities:
        published.show_without_features(dataset)
        return
    target, find = shell.side().container(), shell.side().container()  # above the other settings
    is_few = dataset.n_classes < study.MIN_CLASSES
    spec = settings.pick_few(dataset) if is_few else settings.pick_spec(dataset, target)
    try:
        classes = settings.class_features(dataset, str(spec["backbone"]))
    except FsvizError as error:
        st.error(escape(shell.with_setting_titles(error)), icon="⚠️")
        shell.offer_demo(dataset)
        return
    if len(classes) < study.MIN_CLASSES:
        _few(dataset, classes, find)
        return
    if not settings.is_affordable(study.seconds(classes, spec, study.SEEDS.default)):
        return
    result = cached_call(study.find_split, dataset, classes, words="Computing the split", keep=256, **spec)
    at_random = cached_call(study.nearest_at_random, classes, result.split, keep=256)
    sentence, more = study.distance_answer(result, at_random)
    shell.answer(escape(sentence), escape(more))
    section = pick_section("View", SECTIONS, label_visibility="collapsed")
    position = settings.pick_class(result.split.names, find) if section in WITH_CLASS else None
    if section == SPLIT:
        _map(dataset, classes, result, position)
        side = cached_call(study.held_out_side, dataset, classes, result.split, keep=256)
        test_sides = side, settings.held_out_at_random(dataset, classes, result.split)
        sentence, more = study.distance_answer(result, at_random, test_sides, title_of(classes.backbone))
        shell.answer(escape(sentence), escape(more))
        save.show(dataset, result)
    elif section == SWEEP:
        _sweep(dataset, classes, result, position)
    elif section == STABILITY:
        stability.show(dataset, spec, result)
    elif section == COMPARE:
        _comparisons(dataset, classes, result, at_random)
    elif section == COST:
        _cost(dataset, classes, result)
    elif section == TREES:
        trees.show(dataset, classes, result.split, position)
    else:
        published.show(dataset)
    if section not in (SPLIT, COST):
        shell.command_popover(study.command(dataset, result.settings))


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


def _few(dataset: Dataset, classes: study.ClassFeatures, where: Any) -> None:
    """The map and the distances of classes that are too few to split."""
    table = study.nearest_classes(classes)
    sentence, more = study.few_answer(dataset.title, table, study.MIN_CLASSES)
    shell.answer(escape(sentence), escape(more))
    split = study.unsplit(classes)
    position = settings.pick_class(split.names, where)
    left, right = shell.responsive_columns("map", [2.2, 1], gap="medium")
    with left:
        _draw_map(dataset, classes, split, position)
    with right:
        if position is not None:
            class_card.show(dataset, classes, split, position)
        else:
            export.table(study.NEAREST, table, key="nearest_classes", sets=Click(CLASS, table["class"].tolist()))


def _map(dataset: Dataset, classes: study.ClassFeatures, result: study.SplitResult, position: int | None) -> None:
    """The map of the split, next to the selected class or the superclasses."""
    left, right = shell.responsive_columns("map", [2.2, 1], gap="medium")
    with left:
        _draw_map(dataset, classes, result.split, position)
    with right:
        if position is not None:
            class_card.show(dataset, classes, result.split, position)
        else:
            _superclasses(dataset, result)
        _warn(result)


def _draw_map(dataset: Dataset, classes: study.ClassFeatures, split: ClassSplit, position: int | None) -> None:
    faces = study.faces(dataset, split.class_ids) if dataset.has_pixels else split.class_ids
    class_of_face = dict(zip(map(int, faces), split.names, strict=True))
    export.chart(
        "Map of the split",
        figures.plot_split(split, faces.tolist(), position),
        key=MAP,
        sets=Click(CLASS, class_of_face, toggles=(CLASS,)),
    )
    if dataset.has_pixels:
        hover.thumbnails(dataset, MAP, frozenset(map(int, faces)))
    centroids = " Dotted: direction of the centroids." if split.centroids is not None else ""
    without = f" {len(classes.without):,} classes without features are on no side." if classes.without else ""
    st.caption(
        f"{len(split.names):,} class means, first two of {split.points.shape[1]:,} components, "
        f"{escape(title_of(classes.backbone))} features.{centroids}{without} Click a class to show it.",
        help=f"{study.SIDE_RULE} Val and test get one fifth of the classes each.",
    )


def _warn(result: study.SplitResult) -> None:
    """Says if the target is not reached, or if the data do not determine the split."""
    if message := study.describe_split(result):
        st.info(escape(message), icon="🎯")
    if result.is_at_floor:
        advice = "Use fewer dimensions." if result.settings["mode"] == "stable" else "Use mode stable."
        st.warning(
            f"**Split not determined by the data:** with {result.split.points.shape[1]:,} dimensions almost any split "
            f"reaches the target. {advice}",
            icon="🎲",
        )


def _superclasses(dataset: Dataset, result: study.SplitResult) -> None:
    if superclasses.describe(dataset, result.split):
        superclasses.draw(dataset, result.split, "mix", 80, 28)
        st.caption(
            "Classes by superclass. Click a bar for its classes.",
            help="The split uses features only. Superclasses come from the root of the taxonomy down; the largest is "
            "replaced by those below it.",
        )


def _sweep(dataset: Dataset, classes: study.ClassFeatures, result: study.SplitResult, position: int | None) -> None:
    """The split at several targets, each with its test side by itself."""
    if result.split.requested is None:
        st.info("This split has no target divergence. Choose the split method “stable”.")
        return
    spec = {name: value for name, value in result.settings.items() if name != "divergence"}
    words = "Computing splits at other targets"
    results = cached_call(study.over_targets, dataset, classes, words=words, keep=64, **spec)
    splits, words = [each.split for each in results], "Classifying with frozen features"
    sides = cached_call(study.held_out_sides, dataset, classes, splits, words=words, keep=64)
    side_at_random = settings.held_out_at_random(dataset, classes, result.split)
    sentence, more = study.sweep_answer(results, sides, side_at_random, title_of(classes.backbone))
    shell.answer(escape(sentence), escape(more))
    left = right = st.container()
    if position is not None:
        left, right = shell.responsive_columns("sweep", [2.2, 1], gap="medium")
    with left:
        export.chart(
            "Splits by target divergence",
            figures.plot_small_multiples(splits, study.side_notes(results, sides)),
            key="small_multiples",
            sets=Click(CLASS, result.split.names),
        )
        distances = ", ".join(f"{study.centroid_distance(each.split):.1f}" for each in results)
        st.caption(
            f"The same classes at {len(results)} targets (figure 3 of the paper), with frozen accuracy and the mean "
            "distance between test classes. Click a class to show it.",
            help=f"The centroids move apart: {distances} in units of the features, in which a class is about "
            f"{float(np.linalg.norm(result.split.points, axis=1).mean()):.1f} from the middle. They lie far outside "
            "the classes, so the map shows their direction.",
        )
        export.table(study.BY_TARGET, study.target_table(results, sides, side_at_random))
    if position is not None:
        with right:
            class_card.show(dataset, classes, result.split, position)


def _cost(dataset: Dataset, classes: study.ClassFeatures, result: study.SplitResult) -> None:
    """Accuracy of trained networks by divergence, and training on the split."""
    cost = accuracy_cost.pick_rows(dataset, classes)
    if cost is not None:
        accuracy_cost.show_charts(cost)
    train.show(dataset, classes, result)
    if cost is not None:
        accuracy_cost.show_tables(cost)
    accuracy_cost.show_published()


def _comparisons(
    dataset: Dataset, classes: study.ClassFeatures, result: study.SplitResult, at_random: tuple[float, float]
) -> None:
    words = "Comparing with other splits"
    table = cached_call(study.comparison_table, dataset, classes, result, words=words, keep=64)
    sentence, more = study.comparison_answer(table, at_random)
    shell.answer(escape(sentence), escape(more))
    row = drilldown.table(study.COMPARISONS, table, key="comparisons", name=COMPARED, texts=table["split"].tolist())
    st.caption(
        "A target divergence separates the means; a test class can still have a close training class. Select a row to "
        "show its classes.",
        help="Distances of unit-length features in all dimensions. Whole superclasses keep related classes together.",
    )
    if row:
        drilldown.heading(f"Train and test classes: {escape(row)}", COMPARED)
        split = cached_call(study.compared_splits, dataset, classes, result, words=words, keep=64)[row].split
        for side in ("train", "test"):
            st.markdown(f"**{side}**: {len(split.on(side)):,} classes")
            drilldown.classes(dataset, split.on(side).tolist(), f"compared_{side}")
