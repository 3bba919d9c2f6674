"""Base classes beside novel ones: which of what a backbone was taught does a new class look like?"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import streamlit as st

from fsviz.figures import confusion as figures
from fsviz.records import Dataset
from fsviz.records.graphs import ClassGraph
from fsviz.settings import Setting
from fsviz.studies import confusion as study
from fsviz.text import split_title
from fsviz.ui.pages.confusion import pair
from fsviz.ui.pages.confusion.graph import find
from fsviz.ui.parts import export, links
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.clicks import Click
from fsviz.ui.parts.controls import pick
from fsviz.ui.parts.shell import escape, responsive_columns

GRAPH = "base_graph"
PAIR = Setting("base_pair", "Pair", "The class_ids of the base class and the novel class looked at.", "text", "")
MOST_NAMED = 8


def show(dataset: Dataset, spec: study.ConfusionRequest) -> tuple[study.ConfusionRequest, ClassGraph] | None:
    """The two columns; returns what was asked and the graph, once there is one."""
    others = [s for s in (*dataset.splits, "all") if s not in (spec["split"], "all") or (s == "all" != spec["split"])]
    others = [s for s in dict.fromkeys(others) if len(np.setdiff1d(dataset.split_class_ids(s), _novel(dataset, spec)))]
    if not others:
        st.info(
            f"{escape(dataset.title)} has no classes outside of {escape(split_title(spec['split']))} to "
            "compare with. Pick "
            "a smaller split in the sidebar; the page Train–test distance makes some where there are none.",
            icon="🧩",
        )
        return None
    left, side = responsive_columns("base", [2.2, 1], gap="medium")
    with side:
        base = pick(
            study.BASE.with_(
                kind="choice", choices={s: s for s in others}, default="train" if "train" in others else others[0]
            )
        )
        asked: study.ConfusionRequest = {**spec, "base": base}
        if spec["likeness"] == "confusion":
            asked["k"] = min(int(spec["k"]), study.max_k(dataset, str(spec["backbone"]), str(spec["split"]), base))
    graph = find(asked)
    if graph is None:
        return None
    n_pairs = len(graph.edges()[2])
    with side:
        usual = max(1, min(n_pairs, round(1.2 * len(graph.columns))))
        shown = study.N_EDGES.with_(name="base_edges", high=n_pairs, default=usual, typical=min(n_pairs, 4 * usual))
        n_edges = pick(shown, as_slider=True, about=f"{graph.kind} {base} {spec['split']}") if n_pairs > 1 else 1
    roles = study.train_test_matches(graph, n_edges)
    with left:
        _draw(graph, n_edges)
    with side:
        _name_roles(graph, roles)
    chosen = str(links.value_of(PAIR, PAIR.name, f"{base} {spec['split']}"))
    clicked = [int(part) for part in chosen.split("-") if part.isascii() and part.isdecimal()]
    if len(clicked) == 2 and clicked[0] in graph.rows and clicked[1] in graph.columns:
        pair.show(dataset, asked, clicked[0], clicked[1], "base_pair")
    return asked, graph


def _novel(dataset: Dataset, spec: study.ConfusionRequest) -> np.ndarray:
    return dataset.split_class_ids(str(spec["split"]))


def _draw(graph: ClassGraph, n_edges: int) -> None:
    chart, nodes, ends = figures.plot_class_graph(
        graph, cached_call(study.layout, graph, words="Laying the graph out"), n_edges
    )
    pairs = [f"{graph.rows[a]}-{graph.columns[b - len(graph.rows)]}" for a, b in ends]
    tallest = max(sum(place < len(graph.rows) for place in nodes), sum(place >= len(graph.rows) for place in nodes))
    export.graph(
        "Base and novel classes",
        chart,
        key=GRAPH,
        height=int(np.clip(figures.LINE * tallest + 90, 320, 1000)),
        sets=Click(PAIR, {"edge": pairs, "node": [""] * len(nodes)}, clears=True),
        alt=f"{len(graph.rows)} base classes and {len(graph.columns)} novel classes, joined where they are alike",
    )
    st.caption(
        f"Left: {len(graph.rows):,} base classes; right: {len(graph.columns):,} novel classes. The {len(ends):,} most "
        f"alike of {len(graph.edges()[2]):,} pairs are joined; classes without an edge are left out. Click an edge for "
        "its images."
    )


def _name_roles(graph: ClassGraph, roles: study.TrainTestMatches) -> None:
    """What base classes give to novel ones, in words (section IV-B4)."""
    base, novel = graph.row_names, graph.column_names
    _listed(
        "Perfect matches",
        "One base class, one novel class, and no other edge: the novel class looks like one thing that is known.",
        [f"{escape(novel[b])} looks like {escape(base[a])}" for a, b in roles.matches],
    )
    _listed(
        "Split base classes",
        "Several novel classes share the features of one base class: they are easily confused with each other.",
        [f"{escape(base[a])}: {_names(novel, to)}" for a, to in roles.split_base.items()],
    )
    _listed(
        "Split novel classes",
        "One novel class is spread over several base classes: its images do not look like one thing.",
        [f"{escape(novel[b])}: {_names(base, to)}" for b, to in roles.split_novel.items()],
    )
    if roles.alone:
        st.caption(f"{len(roles.alone):,} novel classes have no edge: {_names(novel, roles.alone)}.")


def _names(names: tuple[str, ...], places: Iterable[int]) -> str:
    places = list(places)
    more = f" and {len(places) - MOST_NAMED:,} more" if len(places) > MOST_NAMED else ""
    return ", ".join(escape(names[place]) for place in places[:MOST_NAMED]) + more


def _listed(title: str, help: str, lines: list[str]) -> None:
    st.markdown(f"**{title}** ({len(lines):,})", help=help)
    st.markdown("\n".join(f"- {line}" for line in lines[:MOST_NAMED]) or "None among these edges.")
    if len(lines) > MOST_NAMED:
        st.caption(f"and {len(lines) - MOST_NAMED:,} more")
