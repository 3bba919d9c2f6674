"""A class graph as a file: GraphML for programs that draw graphs, CSV for spreadsheets."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from fsviz import text
from fsviz.records.graphs import ClassGraph

FORMATS = ("graphml", "csv")
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # letters that XML cannot hold


def export(
    graph: ClassGraph,
    kind: str,
    communities: Sequence[int] | np.ndarray | None = None,
    pairs: pd.DataFrame | None = None,
) -> bytes:
    """The bytes of a file of one of the FORMATS, with every pair that has a weight, the heaviest first.

    pairs  the same pairs in another order, with measured errors: columns i, j, value, error, error_ci95 (percent)
    """
    if pairs is None:
        pairs = pd.DataFrame(dict(zip(("i", "j", "value"), graph.edges(), strict=True)))
    return (to_graphml(graph, pairs, communities) if kind == "graphml" else to_csv(graph, pairs)).encode()


def to_csv(graph: ClassGraph, pairs: pd.DataFrame) -> str:
    """Columns a, b (names), a_id, b_id (class ids), the likeness by its name, and the errors if they are measured."""
    i, j = pairs["i"].to_numpy(), pairs["j"].to_numpy()
    names = [np.array(n, dtype=object) for n in (graph.row_names, graph.column_names)]
    table = {"a": names[0][i], "b": names[1][j], "a_id": graph.rows[i], "b_id": graph.columns[j]}
    return text.csv(pd.DataFrame({**table, graph.kind: pairs["value"].to_numpy(), **_errors(pairs)}))


def to_graphml(graph: ClassGraph, pairs: pd.DataFrame, communities: Sequence[int] | np.ndarray | None = None) -> str:
    """Nodes with name, class_id, community (if given) and side (base or novel, where there are two); edges."""
    import networkx as nx

    output = nx.Graph(likeness=graph.title, unit=graph.unit, source=_NO_XML.sub("?", graph.source))
    two = graph.is_bipartite
    for side, ids, names in (("base", graph.rows, graph.row_names), ("novel", graph.columns, graph.column_names)):
        for place, (class_id, name) in enumerate(zip(ids.tolist(), names, strict=True)):
            about = {"name": _NO_XML.sub("?", name), "class_id": class_id}
            about |= {"side": side} if two else {}
            about |= {} if communities is None else {"community": int(communities[place])}
            output.add_node(_node(side if two else "", place), **about)
    numbers = {"weight": pairs["value"], **_errors(pairs)}
    for a, b, *values in zip(pairs["i"].tolist(), pairs["j"].tolist(), *(v.tolist() for v in numbers.values())):
        about = dict(zip(numbers, values, strict=True))
        output.add_edge(_node("base" if two else "", a), _node("novel" if two else "", b), **about)
    return "\n".join(nx.generate_graphml(output))


def _errors(pairs: pd.DataFrame) -> dict[str, pd.Series]:
    """The columns of measured errors that have values."""
    return {name: pairs[name] for name in ("error", "error_ci95") if name in pairs and pairs[name].notna().any()}


def _node(side: str, place: int) -> str:
    return f"{side or 'n'}{place}"
