"""Every figure with hostile names: Plotly gets them as text, ECharts as they are, and none is left out."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from fsviz import figures
from fsviz.analyses.transfer import MatchedDifference
from fsviz.figures import (
    causes,
    class_splits,
    compare_datasets,
    confusion,
    contexts,
    echarts_to_plotly,
    feature_map,
    lessons,
    overview,
    prediction,
    runs,
    search_comparison,
    support_sets,
    task_profile,
    tasks,
    taxonomy,
    transfer,
)
from fsviz.records import PAD, ClassSplit, Colouring, ContextTable, NeighbourAgreement, SizeHistogram
from fsviz.records.graphs import ClassGraph, ClassMap, ClassTree, ConceptTree, Hierarchy, Tanglegram
from fsviz.records.image_map import MapLabel, MappedTask
from fsviz.text import escape_plotly

EVIL = '<i>x</i><a href="https://evil.example">y</a>%{x}$z$'
N = (EVIL, f"other {EVIL}")
SQUARE = np.array([[0.0, 1.0], [1.0, 0.0]])
SETS = ("hard", "random", "easy")
CURVE = pd.DataFrame({"measure": [1.0, 2.0], "accuracy": [50.0, 60.0], "ci95": [1.0, 1.0]})
POINTS = pd.DataFrame(
    {"asked": [0.0, 1.0], "method": ["x", "x"], "x": [0.0, 1.0], "accuracy": [50.0, 49.0], "ci95": 1.0, "n_runs": 1}
)
MAP = ClassMap(
    names=("root", *N),
    xy=np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]),
    depth=np.array([0, 1, 1]),
    parents=np.array([0, 0]),
    children=np.array([1, 2]),
    class_position=np.array([PAD, 0, 1]),
    folded=np.zeros(3, dtype=bool),
    n_images=np.array([2, 1, 1]),
    n_classes=np.array([2, 1, 1]),
    shown_at=np.array([1, 2]),
    n_nodes=3,
    n_edges=2,
    n_leaves=2,
    deepest=1,
)

CONCEPTS = ConceptTree(
    ids=("r", "a", "b"),
    names=("root", *N),
    parents=np.array([-1, 0, 0]),
    depth=np.array([0, 1, 1]),
    n_classes=np.array([2, 1, 1]),
    n_nodes=np.array([3, 1, 1]),
    class_position=np.array([PAD, 0, 1]),
)


def _gaps() -> pd.DataFrame:
    rows = [(name, kind, s, 0.5, 0.1) for name, kind in zip(N, ("share", "deviations")) for s in SETS]
    table = pd.DataFrame(rows, columns=["attribute", "kind", "set", "gap", "ci95"])
    return table.assign(chance=0.1, significant=True)


def _quarters() -> pd.DataFrame:
    return pd.DataFrame(
        [{"method": n, "bin": b, "accuracy": 50.0, "rank": i + 1} for i, n in enumerate(N) for b in (1, 2)]
    )


STRESS = {
    "source": N[0],
    "adaptation": "protonet",
    "n_tasks": 9,
    "drop_ci95": 2.0,
    "random": 8.0,
    "hard": 4.0,
    "drop": 4.0,
}
GRAPH = ClassGraph("confusion", "Confusion", "bits", N[0], np.arange(2), np.arange(2), N, N, SQUARE)
SPLIT = ClassSplit(np.arange(2), N, np.array([0, 2]), SQUARE, 3 * SQUARE, 1.0, 0.9, title=EVIL)
TREE = ClassTree(np.array([2, 2, PAD]), np.array([0.0, 0.0, 1.0]), np.arange(2), (*N, EVIL), EVIL)
FACING = Tanglegram(
    (TREE, TREE), (np.arange(2), np.arange(2)), (np.arange(3), np.arange(3)), np.array([True, False]), 0
)
BAR = {"pearson": 0.5, "low": 0.4, "high": 0.6, "why": "", "is_best": True, "needs_classes": True, "is_expected": True}
# Every function that draws names, with hostile ones.
DRAWN: dict[Callable[..., Any], tuple[Any, ...]] = {
    support_sets.plot_gaps: (_gaps(),),
    support_sets.plot_reasons: ([{"attribute": n, "points": 4.0, "ci95": 1.0, "real": True, "easy": 0.0} for n in N],),
    support_sets.plot_shift_cost: (
        pd.DataFrame({"attribute": N}).assign(
            **{
                f"{name}{suffix}": value
                for suffix in ("", "_alike")
                for name, value in (
                    ("without_shift", 80.0),
                    ("with_shift", 70.0),
                    ("cost", 10.0),
                    ("ci95", 1.0),
                    ("n_classes", 9),
                    ("significant", False),
                )
            }
        ),
    ),
    support_sets.plot_published: (pd.DataFrame({"label": N, "random": 60.0, "hard": 40.0}),),
    support_sets.plot_stress: ([STRESS | {"backbone": n} for n in N], {"protonet": "prototypes"}, N[0]),
    search_comparison.plot_shares: (
        pd.DataFrame([(s, n, 50.0, 1.0) for s in SETS for n in N], columns=["set", "value", "share", "ci95"]),
        N[:1],
    ),
    overview.plot_hierarchy: (Hierarchy(("r", "a"), N, (None, "r"), np.array([1, 1]), N, (-1, 0)),),
    overview.plot_class_sizes: (
        SizeHistogram(np.array([1.0, 2.0, 3.0]), dict.fromkeys(N, np.array([1, 2])), 2.0, False),
    ),
    task_profile.plot_percentiles: (
        [{"title": n, "direction": "harder", "harder": [60.0], "value": [1.0]} for n in N],
        N[:1],
    ),
    task_profile.plot_accuracies: (
        [{"label": n, "accuracy": [60.0], "mean": 50.0, "ci95": 1.0, "n": 9} for n in N],
        N[:1],
    ),
    task_profile.plot_confusion_matrix: (np.array([[3, 1], [0, 4]]), N),
    runs.plot_accuracies: (N, [50.0, 60.0], [1.0, 1.0]),
    runs.plot_accuracy_by_measure: (dict.fromkeys(N, CURVE),),
    runs.plot_quartiles: (pd.DataFrame([{"name": n, "Q1": 1.0, "Q2": 2.0, "Q3": 3.0, "Q4": 4.0} for n in N]),),
    runs.plot_ranks: (_quarters(),),
    runs.plot_differences: (
        pd.DataFrame(
            {"name": N[:1], "reference": N[1:], "difference": 1.0, "ci95": 1.0, "p_holm": 0.5, "significant": True}
        ),
    ),
    contexts.plot_shifted_methods: (
        [
            {"name": "x", "title": n, "family": "", "accuracy": {s: {"mean": 50.0, "ci95": None} for s in SETS}}
            for n in N
        ],
        dict.fromkeys(SETS, "support"),
        20.0,
    ),
    contexts.plot_similarity: (np.array([0.1, 0.2]), np.array([0.2, 0.1]), N, np.arange(2)),
    contexts.plot_benchmarks: (N, [0.2, 0.3]),
    contexts.plot_losses: (N, [3.0, 1.0], [1.0, 1.0]),
    contexts.plot_context_table: (
        ContextTable(np.arange(2), N, N, np.array([[3, 0], [1, 2]])),
        np.arange(2),
        np.arange(2),
    ),
    taxonomy.plot_distance_map: (SQUARE, N, "distance"),
    taxonomy.plot_task_distances: (SQUARE, N, "distance", 1.0),
    taxonomy.plot_class_map: (MAP,),
    taxonomy.plot_concept_sunburst: (CONCEPTS, 0, 1),
    taxonomy.plot_task_tree: (MAP,),
    confusion.plot_class_graph: (GRAPH, SQUARE, 1),
    confusion.plot_similarity_map: (GRAPH, np.arange(2), np.arange(2)),
    confusion.plot_comparison: (GRAPH, GRAPH, np.ones(1), np.ones(1), [N], [0]),
    prediction.plot_correlations: ([BAR | {"name": "x", "title": n} for n in N], "accuracy"),
    prediction.plot_curves: ({n: [(1.0, 0.5, 0.4, 0.6), (2.0, 0.5, 0.4, 0.6)] for n in N}, "shots", "correlation"),
    class_splits.plot_split: (SPLIT, [0, 1], 0),
    class_splits.plot_small_multiples: ([SPLIT, SPLIT],),
    class_splits.plot_superclasses: (pd.DataFrame(1, index=list(N), columns=["train", "val", "test"]),),
    class_splits.plot_tanglegram: (FACING, ["train", "test"]),
    transfer.plot_transfer: (POINTS, {"x": (50.0, -1.0)}, {"x": EVIL}),
    transfer.plot_matched: ([MatchedDifference("x", 60.0, 50.0, 10.0, 1.0, 2, 2)], {"x": EVIL}),
    feature_map.plot_shared: ([NeighbourAgreement("class", EVIL, 0.5, 0.1)],),
    feature_map.plot_map: (
        SQUARE,
        np.arange(2),
        Colouring("class", np.arange(2), N),
        N,
        MappedTask(
            tuple(N), np.arange(2), np.arange(2), np.array([True, False]), np.array([True, False]), ("", EVIL), 0, 1
        ),
        [MapLabel(EVIL, 0.0, 0.0)],
    ),
    causes.plot_tasks: (np.ones(2), np.ones(2), np.arange(2), np.array([True, False]), "x", None, N),
    causes.plot_correlations: (
        [{"name": "x", "title": "x", "method": n, "value": 0.1, "low": 0.0, "high": 0.2, "text": "0.1"} for n in N],
        "x",
    ),
    lessons.plot_positions: (N, [50.0, 60.0], [1.0, 1.0], [True, True], 0, "x"),
    lessons.plot_clouds: (SQUARE, np.arange(2), N),
    lessons.plot_guesses: (N, [2, 1], 0),
    compare_datasets.plot_differences: (
        pd.DataFrame(
            {"measure": "m", "title": "m", "side": ["a", "b"], "side_title": N, "first_is": ["", "harder"]}
            | {
                "here": ["", "harder"],
                "effect": [np.nan, 1.0],
                "effect_ci95": 0.1,
                "difference": 1.0,
                "difference_ci95": 0.1,
            }
            | {"mean": 1.0, "why": ""}
        ),
        "a",
    ),
    compare_datasets.plot_measure: (
        pd.DataFrame({"side_title": N, "q1": 1.0, "median": 2.0, "q3": 3.0, "mean": 2.0, "ci95": 0.1, "n_tasks": 5}),
        "x",
        "harder",
    ),
    compare_datasets.plot_suite: (
        [
            {
                "title": EVIL,
                "published": False,
                "n_tasks": 9,
                **{f"{s}{end}": 50.0 for s in SETS for end in ("", "_ci95")},
            }
        ],
        [],
    ),
    tasks.plot_histograms: (
        np.array([0.0, 1.0, 2.0]),
        [tasks.Panel(EVIL, np.array([25.0, 75.0]), np.array([1, 3]), 1.5, "#000000")],
        "coarsity",
        EVIL,
    ),
    tasks.plot_balance: (N, {"uniform": np.ones(2)}, {"uniform": "#000000"}, 1.0),
}
# Every function that draws nothing but words of its own.
NAMELESS = {
    causes.plot_shares,
    causes.plot_ranks,
    causes.plot_redundancy,
    lessons.plot_cause,
    prediction.plot_scatter,
    prediction.plot_roc,
    prediction.plot_confusion_table,
    prediction.plot_spread,
    prediction.plot_components,
    support_sets.plot_distribution,
    search_comparison.plot_searches,
    search_comparison.plot_step_sizes,
    search_comparison.plot_number_of_steps,
    search_comparison.plot_filtered,
    support_sets.plot_by_coarsity,
    support_sets.plot_loss_accuracy,
    class_splits.plot_agreement,
    transfer.plot_learning,
}


def test_no_figure_is_left_out() -> None:
    values = set()
    for path in Path(figures.__file__).parent.glob("[a-z]*.py"):
        module = import_module(f"fsviz.figures.{path.stem}")
        values |= {f for name, f in inspect.getmembers(module, inspect.isfunction) if name.startswith("plot_")}
    assert values == DRAWN.keys() | NAMELESS


def strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [s for inner in (*value.keys(), *value.values()) for s in strings(inner)]
    if isinstance(value, list | tuple | np.ndarray):
        return [s for inner in value for s in strings(inner)]
    return []


@pytest.mark.parametrize("plot", DRAWN, ids=lambda f: f"{f.__module__.rpartition('.')[2]}.{f.__name__}")
def test_names_are_drawn_as_text(plot: Callable[..., Any]) -> None:
    figure = plot(*DRAWN[plot])
    if isinstance(figure, go.Figure):
        text = "\n".join(strings(figure.to_plotly_json()))
        assert "<i>" not in text and "<a " not in text and "%{x}$z" not in text
        assert escape_plotly(EVIL)[:12] in text  # long names are cut in places
    else:
        assert EVIL in strings(figure)


MILK = "Packages/Milk/Arla-Ecological-Medium-Fat-Milk"
PATHS = (f"{MILK}-1", f"{MILK}-2")  # the same after the folders and wherever both are cut at the same place
PATH_GRAPH = replace(GRAPH, row_names=PATHS, column_names=PATHS)
PATH_MAP, PATH_TREE = replace(MAP, names=("root", *PATHS)), replace(CONCEPTS, names=("root", *PATHS))
# Every function that labels classes, with paths.
LABELLED: dict[Callable[..., Any], tuple[Any, ...]] = {
    overview.plot_hierarchy: (
        Hierarchy(("r", "a", "b"), ("all", *PATHS), (None, "r", "r"), (2, 1, 1), ("all",) * 3, (PAD, 0, 1)),
    ),
    task_profile.plot_confusion_matrix: (np.array([[3, 1], [0, 4]]), PATHS),
    contexts.plot_losses: (PATHS, [3.0, 1.0], [1.0, 1.0]),
    contexts.plot_context_table: (
        ContextTable(np.arange(2), PATHS, ("night", "snow"), np.array([[3, 0], [1, 2]])),
        np.arange(2),
        np.arange(2),
    ),
    taxonomy.plot_distance_map: (SQUARE, PATHS, "distance"),
    taxonomy.plot_task_distances: (SQUARE, PATHS, "distance", 1.0),
    taxonomy.plot_class_map: (PATH_MAP,),
    taxonomy.plot_concept_sunburst: (PATH_TREE, 0, 1),
    taxonomy.plot_task_tree: (PATH_MAP,),
    confusion.plot_class_graph: (PATH_GRAPH, SQUARE, 1),
    confusion.plot_similarity_map: (PATH_GRAPH, np.arange(2), np.arange(2)),
    class_splits.plot_tanglegram: (
        replace(FACING, trees=(replace(TREE, names=(*PATHS, "")),) * 2),
        ["train", "test"],
    ),
    feature_map.plot_map: (SQUARE, np.arange(2), Colouring("class", np.arange(2), PATHS), PATHS),
    lessons.plot_clouds: (SQUARE, np.arange(2), PATHS),
}


def labels_of(figure: Any) -> list[str]:
    """Texts of a figure without its hover: ticks, marks, entries of the legend."""
    if isinstance(figure, go.Figure):
        ticks = [text for axis in (figure.layout.xaxis, figure.layout.yaxis) for text in axis.ticktext or ()]
        boxes = [str(text) for trace in figure.data if trace.type in ("treemap", "sunburst") for text in trace.labels]
        traces = [trace.to_plotly_json() for trace in figure.data]
        points = [text for trace in traces if "text" in trace.get("mode", "") for text in strings(trace["text"])]
        return [*ticks, *boxes, *points, *(trace.name or "" for trace in figure.data)]
    (series,) = figure["series"]
    nodes = list(series["data"])
    nodes += [child for node in nodes for child in node.get("children", ())]
    return [node.get("label", {}).get("formatter", node["name"]) for node in nodes]


@pytest.mark.parametrize("plot", LABELLED, ids=lambda f: f"{f.__module__.rpartition('.')[2]}.{f.__name__}")
def test_labels_have_no_folders_and_no_two_are_the_same(plot: Callable[..., Any]) -> None:
    figure = plot(*LABELLED[plot])
    figure = figure[0] if isinstance(figure, tuple) else figure
    whole = strings(figure.to_plotly_json()) if isinstance(figure, go.Figure) else strings(figure)
    assert any(MILK in text for text in whole)  # on hover
    labels = [label for label in labels_of(figure) if "Milk" in label.replace("<br>", "")]
    assert labels and not any("Packages" in label for label in labels)
    assert {label.replace("<br>", "").split(" (")[0].rstrip("</b> ×")[-1] for label in labels} == {"1", "2"}
    exported = labels_of(figure if isinstance(figure, go.Figure) else echarts_to_plotly.to_plotly(figure))
    assert not any("Packages" in label for label in exported)
