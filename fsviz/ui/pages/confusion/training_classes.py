"""Section Training classes: which training classes does a test class resemble?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import streamlit as st

from fsviz.figures import confusion as figures
from fsviz.records import Dataset
from fsviz.records.class_splits import training_side
from fsviz.records.graphs import ClassGraph
from fsviz.settings import Setting
from fsviz.studies import confusion as study
from fsviz.text import short_names, split_title
from fsviz.ui.pages.confusion import pair
from fsviz.ui.pages.confusion.graph import find
from fsviz.ui.parts import export, links
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.clicks import Click
from fsviz.ui.parts.controls import pick
from fsviz.ui.parts.shell import escape, responsive_columns

GRAPH = "base_graph"
PAIR = Setting("base_pair", "Pair", "The class_ids of the selected training class and test class.", "text", "")
MAX_NAMES = 8


def show(dataset: Dataset, spec: study.ConfusionRequest) -> tuple[study.ConfusionRequest, ClassGraph] | None:
    """The two columns of classes; returns the spec and its graph, or None without a graph."""
    splits = _other_splits(dataset, str(spec["split"]))
    if not splits:
        st.info(
            f"{escape(dataset.title)} has no classes outside {escape(split_title(spec['split']))}. Choose a smaller "
            "split, or create one on the page Train–test distance.",
            icon="🧩",
        )
        return None
    graph_column, side = responsive_columns("base", [2.2, 1], gap="medium")
    with side:
        default = training_side(dataset, str(spec["split"])) or splits[0]
        base = pick(study.BASE.with_(kind="choice", choices={s: s for s in splits}, default=default))
        requested: study.ConfusionRequest = {**spec, "base": base}
    graph = find(requested)
    if graph is None:
        return None
    n_pairs = len(graph.edges()[2])
    with side:
        usual = max(1, min(n_pairs, round(1.2 * len(graph.columns))))
        setting = study.N_EDGES.with_(name="base_edges", high=n_pairs, default=usual, typical=min(n_pairs, 4 * usual))
        n_edges = pick(setting, as_slider=True, about=f"{graph.kind} {base} {spec['split']}") if n_pairs > 1 else 1
    with graph_column:
        _draw(graph, n_edges)
    with side:
        _list_matches(graph, study.train_test_matches(graph, n_edges))
    text = str(links.value_of(PAIR, PAIR.name, f"{base} {spec['split']}"))
    clicked = [int(part) for part in text.split("-") if part.isascii() and part.isdecimal()]
    if len(clicked) == 2 and clicked[0] in graph.rows and clicked[1] in graph.columns:
        pair.show(dataset, requested, clicked[0], clicked[1], "base_pair")
    return requested, graph


def _other_splits(dataset: Dataset, split: str) -> list[str]:
    """The splits with classes outside a split."""
    test = dataset.split_class_ids(split)
    splits = dict.fromkeys(s for s in (*dataset.splits, "all") if s not in (split, "all") or (s == "all" != split))
    return [s for s in splits if len(np.setdiff1d(dataset.split_class_ids(s), test))]


def _draw(graph: ClassGraph, n_edges: int) -> None:
    chart, nodes, ends = figures.plot_class_graph(
        graph, cached_call(study.layout, graph, words="Computing the layout"), n_edges
    )
    n_rows = len(graph.rows)
    pairs = [f"{graph.rows[a]}-{graph.columns[b - n_rows]}" for a, b in ends]
    tallest = max(sum(position < n_rows for position in nodes), sum(position >= n_rows for position in nodes))
    export.graph(
        "Training and test classes",
        chart,
        key=GRAPH,
        height=int(np.clip(figures.LINE * tallest + 90, 320, 1000)),
        sets=Click(PAIR, {"edge": pairs, "node": [""] * len(nodes)}, clears=True),
        alt=f"{n_rows} training classes and {len(graph.columns)} test classes, with edges between similar classes",
    )
    st.caption(
        f"Left: {n_rows:,} training classes; right: {len(graph.columns):,} test classes. Edges: the {len(ends):,} most "
        f"similar of {len(graph.edges()[2]):,} pairs. Click an edge to show its images.",
        help="Classes without an edge are hidden.",
    )


def _list_matches(graph: ClassGraph, matches: study.TrainTestMatches) -> None:
    """The matches of training and test classes by kind (section IV-B4)."""
    train, test = short_names(graph.row_names), short_names(graph.column_names)
    _list(
        "One-to-one",
        "A training class and a test class with no other edge.",
        [f"{escape(test[b])}: {escape(train[a])}" for a, b in matches.matches],
    )
    _list(
        "One training class, several test classes",
        "The test classes resemble the same training class.",
        [f"{escape(train[a])}: {_names(test, to)}" for a, to in matches.split_train.items()],
    )
    _list(
        "One test class, several training classes",
        "The images of the test class resemble several training classes.",
        [f"{escape(test[b])}: {_names(train, to)}" for b, to in matches.split_test.items()],
    )
    if matches.unmatched:
        st.caption(f"{len(matches.unmatched):,} test classes have no edge: {_names(test, matches.unmatched)}.")


def _names(names: Sequence[str], positions: Iterable[int]) -> str:
    positions = list(positions)
    more = f" and {len(positions) - MAX_NAMES:,} more" if len(positions) > MAX_NAMES else ""
    return ", ".join(escape(names[position]) for position in positions[:MAX_NAMES]) + more


def _list(title: str, help: str, lines: list[str]) -> None:
    st.markdown(f"**{title}** ({len(lines):,})", help=help)
    st.markdown("\n".join(f"- {line}" for line in lines[:MAX_NAMES]) or "None among these edges.")
    if len(lines) > MAX_NAMES:
        st.caption(f"and {len(lines) - MAX_NAMES:,} more")
