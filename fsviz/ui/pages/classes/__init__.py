"""The page Classes: a sunburst or graph of a split's concepts, a class or a selected task in detail, all distances.

Every choice is in the link: the concept at the root of the view (`at`) and the selected classes (`classes`).
"""

from __future__ import annotations

import streamlit as st

from fsviz.analyses import semantic_sampling as study
from fsviz.records import Dataset
from fsviz.settings import to_args
from fsviz.tasks import draw
from fsviz.taxonomy import DISTANCES
from fsviz.ui.pages.classes import details, pairs, views
from fsviz.ui.parts import caching, controls, export, selections, shell
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape


def show(dataset: Dataset) -> None:
    if dataset.taxonomy is None:
        for note in dataset.notes:
            st.markdown(escape(note))
    shell.require(dataset, "taxonomy")
    split = shell.pick_split(dataset)
    names = controls.class_names(dataset, split)
    with shell.side():
        selected = _pick_classes(names)
        layout = views.pick_layout(dataset, split, len(names))
        more = st.container()
    distance, dag, backbone = controls.pick_distance(dataset)
    requested = {"split": split, "distance": distance, "dag": dag, **({"backbone": backbone} if backbone else {})}
    export.command("distances", dataset.name, *to_args(requested, draw.SETTINGS))
    distances = caching.distances(dataset, split, distance, dag, backbone)
    sentence, addition = study.distance_answer(distances, names, DISTANCES[distance].title)
    shell.answer(escape(sentence), escape(addition))
    controls.say_groups(dataset, split, distance, distances)
    graph, tree = caching.graph(dataset, split, dag), caching.concept_tree(dataset, split, dag)
    view = views.View(dataset, split, dag, tree, views.pick_concept(tree, f"{dataset.name} {split} {dag}"), names)
    left, right = shell.responsive_columns("graph", [2, 1], gap="medium")
    with left:
        views.show(view, layout, selected, more)
    with right:
        details.show(dataset, split, graph, distances, names, selected, distance)
    pairs.show(view, distances, distance)


PAGE = Page(
    slug="classes",
    label="Classes",
    icon="🌳",
    group="Data",
    order=2,
    question="Which classes are close in meaning?",
    lead="The taxonomy of {dataset} and the semantic distance between any two classes.",
    paper="Bennequin et al. (2022), figures 2 and 4",
    needs=("taxonomy",),
    takes=("classes",),
    explains=("distances", "coarsity"),
    keywords=("hierarchy", "WordNet", "synonyms", "taxonomy"),
    show=show,
)


def _pick_classes(names: list[str]) -> list[int]:
    """Positions of the classes selected by name, by click or by link."""
    index_of = {name: i for i, name in enumerate(names)}
    selections.pick_classes(names)
    picked = controls.multiselect_classes(
        "Find a class",
        names,
        key=selections.KEY,
        placeholder="Type a class name",
        help="One class shows its neighbours; several form a task.",
    )
    return [index_of[name] for name in picked]
