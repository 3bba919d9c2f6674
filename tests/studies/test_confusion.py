"""The graph of classes: the demo's numbers, any likeness, runs, base classes, comparisons, files."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from fsviz import datasets, jobs
from fsviz.errors import BadInput, FsvizError, Missing, UnknownName
from fsviz.records.graphs import ClassGraph
from fsviz.reports import graphs
from fsviz.studies import confusion as study
from fsviz.studies import evaluate
from tests.studies.toy_dataset import PER_GROUP, make_toy, save_toy_features


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    return make_toy(backbones=("alpha_net", "beta_net"), noise=1.5)


SPEC = {"dataset": "toy", "backbone": "alpha_net"}


def graph_of(weights: list[list[float]], base: bool = False, kind: str = "confusion", source: str = "") -> ClassGraph:
    """A graph by hand: classes a, b, c, ...; with base, rows are other classes (A, B, ...)."""
    matrix = np.array(weights, dtype=float)
    n_rows, n_columns = matrix.shape
    names = tuple("abcdefgh"[:n_columns])
    rows = np.arange(100, 100 + n_rows) if base else np.arange(n_columns)
    row_names = tuple(n.upper() for n in "abcdefgh"[:n_rows]) if base else names
    return ClassGraph(kind, "Confusion", "bits", source, rows, np.arange(n_columns), row_names, names, matrix)


def test_confusion_on_the_demo_foretells_the_errors_of_protonet_on_the_pair() -> None:
    errors = study.pair_errors({"dataset": "demo"}).graph
    result = {
        name: study.compare(study.class_graph({"dataset": "demo", **how}), errors)
        for name, how in {"plain": {}, "sqrt_center": {"preprocess": "sqrt_center"}, "k5": {"k": 5}}.items()
    }
    assert len(result["plain"].table) == 435
    assert result["plain"].pearson.value == pytest.approx(0.90, abs=0.02)
    assert result["plain"].spearman.value == pytest.approx(0.86, abs=0.03)
    assert result["sqrt_center"].pearson.value == pytest.approx(0.80, abs=0.03)
    assert result["sqrt_center"].spearman.value == pytest.approx(0.72, abs=0.05)
    assert result["k5"].pearson.value == pytest.approx(0.78, abs=0.04)  # smaller k does worse
    for compared in result.values():
        assert compared.pearson.low < compared.pearson.value < compared.pearson.high < 1
        assert compared.pearson.ci_unit == "classes"
    graph = result["plain"].first
    communities = study.communities(graph)
    place = {name: i for i, name in enumerate(graph.row_names)}
    assert communities[place["taxi"]] == communities[place["fire engine"]] != communities[place["sheep"]]


def test_confused_classes_are_those_of_one_group(toy) -> None:
    graph = study.class_graph(SPEC)
    i, j, weights = graph.edges()
    assert len(weights) == 16 * 15 // 2 and (np.diff(weights) <= 0).all() and (i < j).all()
    same = i // PER_GROUP == j // PER_GROUP
    assert weights[same].mean() > weights[~same].mean() + 0.2
    assert np.isnan(np.diag(graph.weights)).all() and np.allclose(graph.weights, graph.weights.T, equal_nan=True)
    summary = study.summary(graph, 3)
    assert summary["pairs"] == 120 and summary["mean"] == pytest.approx(weights.mean()) and summary["ci95"] > 0
    assert summary["most_similar"][0] == [graph.row_names[i[0]], graph.column_names[j[0]], weights[0]]
    order = study.community_order(graph, study.communities(graph))
    assert sorted(order) == list(range(16)) and (np.diff(study.communities(graph)[order]) >= 0).all()


def test_every_likeness_gives_a_graph_of_the_same_classes(toy) -> None:
    assert set(study.possible_similarities(toy)) == set(study.SIMILARITIES) - {"run"}
    assert set(study.possible_similarities(datasets.load("tiered_imagenet"))) == {
        "jiang_conrath",
        "path_length",
        "wu_palmer",
        "lin",
    }
    means = None
    for kind in study.possible_similarities(toy):
        graph = study.class_graph({**SPEC, "likeness": kind})
        _, _, weights = graph.edges()
        assert len(weights) == 120 and np.isfinite(weights).all(), kind
        assert (graph.source == "alpha_net") == (study.SIMILARITIES[kind].needs == "features")
        assert study.layout(graph).shape == (16, 2) and np.abs(study.layout(graph)).max() <= 1
        means = graph if kind == "cosine" else means
    from fsviz.features import load

    table = load(toy, "alpha_net")
    values = table.values.astype(float)
    unit = values / np.linalg.norm(values, axis=1, keepdims=True)
    first, second = (unit[table.class_ids == c].mean(axis=0) for c in (0, 5))
    by_hand = first @ second / np.linalg.norm(first) / np.linalg.norm(second)
    assert means.weights[0, 5] == pytest.approx(by_hand, abs=1e-4)


@pytest.mark.parametrize("n", [12, 180, 600])  # many classes take fewer steps
def test_alike_classes_stand_together(n: int) -> None:
    group = np.arange(n) % 3
    same = group[:, None] == group
    weights = np.where(same, 1.0, 0.1)
    np.fill_diagonal(weights, np.nan)
    names = tuple(f"c{i}" for i in range(n))
    graph = ClassGraph("confusion", "Confusion", "bits", "", np.arange(n), np.arange(n), names, names, weights)
    places = study.layout(graph, seed=3)
    assert np.array_equal(places, study.layout(graph, seed=3)) and np.abs(places).max() <= 1
    apart = np.linalg.norm(places[:, None] - places, axis=2)
    assert apart[same & ~np.eye(n, dtype=bool)].mean() < 0.6 * apart[~same].mean()
    assert apart[~np.eye(n, dtype=bool)].min() > 0  # no two in one place


def test_a_run_gives_the_same_graph_in_any_number_of_chunks(toy) -> None:
    spec = {"study": "confusion", **SPEC, "k": 10}
    run = jobs.run_in_foreground(spec)
    whole = jobs.spec(run.id)
    graph = study.class_graph({**SPEC, "k": 10})
    assert np.array_equal(study.collect(whole, jobs.chunks(run.id)).weights, graph.weights, equal_nan=True)
    few = {**whole, "chunk_pairs": 7}
    assert study.STUDY.n_chunks(few) == 18 and study.n_bytes(few) > 120 * 8
    parts = [study.STUDY.chunk(few, index) for index in (3, 0)]
    half = study.collect(few, parts)
    assert np.isnan(half.weights).sum() == 16 + 2 * (120 - 14)
    expected = ~np.isnan(half.weights)
    assert np.array_equal(half.weights[expected], graph.weights[expected])
    assert jobs.results(run.id)["pairs"] == 120 and study.summary(study.collect(few, parts))["pairs"] == 14
    assert "120 of 120" in study.STUDY.describe(few, 17)
    assert "--k 10" in study.command(run.spec)


def test_base_classes_stand_against_novel_ones(toy) -> None:
    from fsviz.datasets.saved import save_dataset

    save_dataset(replace(toy, splits={"train": np.arange(10), "test": np.arange(10, 16)}), overwrite=True)
    graph = study.class_graph({"dataset": "toy", "backbone": "alpha_net", "base": "train"})
    assert graph.is_bipartite and graph.weights.shape == (10, 6) and len(graph.edges()[2]) == 60
    alone = study.class_graph({"dataset": "toy", "backbone": "alpha_net", "split": "all"})
    assert graph.weights[3, 2] == alone.weights[3, 12]  # a pair is the same in any company
    assert study.layout(graph).shape == (16, 2)
    every = study.class_graph({"dataset": "toy", "backbone": "alpha_net", "base": "all"})
    assert np.array_equal(every.rows, np.arange(10)) and np.isfinite(every.weights).all()  # no class of the split
    with pytest.raises(BadInput, match="must not be in split 'all'"):
        study.class_graph({"dataset": "toy", "backbone": "alpha_net", "split": "all", "base": "train"})
    assert np.isfinite(study.mean(graph).ci95)


def test_perfect_matches_and_split_classes_by_hand() -> None:
    graph = graph_of([[0.9, 0, 0, 0, 0], [0, 0.8, 0.7, 0, 0], [0, 0, 0, 0.6, 0], [0, 0, 0, 0.5, 0]], base=True)
    matches = study.train_test_matches(graph, 5)
    assert matches.matches == [(0, 0)]
    assert matches.split_train == {1: [1, 2]} and matches.split_test == {3: [2, 3]}
    assert matches.unmatched == [4]
    fewer = study.train_test_matches(graph, 1)
    assert fewer.matches == [(0, 0)] and fewer.unmatched == [1, 2, 3, 4]
    assert study.train_test_matches(graph, 20).matches == [(0, 0)]  # edges of no weight are none


def test_graphs_are_compared_edge_by_edge_and_outliers_are_named() -> None:
    rng = np.random.default_rng(0)
    weights = np.triu(rng.random((8, 8)), 1)
    weights = weights + weights.T
    np.fill_diagonal(weights, np.nan)
    first = graph_of(weights.tolist())
    same = study.compare(first, replace(first, weights=3 * weights + 1))
    assert same.pearson.value == pytest.approx(1) and same.spearman.value == pytest.approx(1)
    assert study.outliers(same) == ([], [])
    second = weights.copy()
    i, j, _ = first.edges()
    second[i[0], j[0]] = second[j[0], i[0]] = -1.0  # the most confused pair is semantically far
    first.weights[i[-1], j[-1]] = first.weights[j[-1], i[-1]] = 0.0
    second[i[-1], j[-1]] = second[j[-1], i[-1]] = 2.0  # the least confused one is close
    compared = study.compare(first, replace(first, weights=second, kind="jiang_conrath"))
    assert compared.pearson.value < 0.9
    high, low = study.outliers(compared, 1)
    assert {compared.table["a"][high[0]], compared.table["b"][high[0]]} == {"abcdefgh"[i[0]], "abcdefgh"[j[0]]}
    assert study.describe_edge(compared, high[0]) == ("large overlap", "semantically far")
    assert study.describe_edge(compared, low[0]) == ("no overlap", "semantically close")
    both = study.compare(replace(first, source="one"), replace(first, source="two", weights=second))
    assert study.describe_edge(both, high[0])[0] == "large overlap with one"
    with pytest.raises(BadInput, match="same classes"):
        study.compare(first, graph_of([[0.1, 0.2]] * 3, base=True))


def test_the_answer_names_the_most_similar_pair_and_the_mean() -> None:
    nan = float("nan")
    graph = graph_of([[nan, 0.2, 0.9], [0.2, nan, 0.4], [0.9, 0.4, nan]])
    answer, more = study.describe(graph)
    assert answer == "Largest overlap: a and c (0.90 bits of 1)."
    assert more.startswith("Class overlap (Louvain), mean over 3 pairs: 0.50") and more.endswith(" bits.")
    sums = np.arange(64).reshape(8, 8) + np.arange(64).reshape(8, 8).T
    many = graph_of(np.where(np.eye(8, dtype=bool), nan, sums / 200).tolist())
    mean = study.mean(many)
    assert f"mean over 28 pairs: {mean.mean:.2f} ± {mean.ci95:.2f} bits." in study.describe(many)[1]
    tied = graph_of([[nan, 0.9, 0.9], [0.9, nan, 0.4], [0.9, 0.4, nan]])
    assert study.describe(tied)[0] == "Largest overlap: a and b (0.90 bits of 1), tied with 1 other pair."
    apart = graph_of([[nan, 0.0], [0.0, nan]])
    assert study.describe(apart)[0] == "No two classes are similar: Class overlap (Louvain) is 0 for every pair."
    close = replace(graph_of([[nan, 0.93], [0.93, nan]], kind="jiang_conrath"), unit="")
    assert study.describe(close)[0] == "Semantically closest: a and b (0.93 of 1)."
    errors = replace(graph_of([[nan, 12.5], [12.5, nan]], kind="error"), unit="% incorrect")
    assert study.describe(errors)[0] == "Most confused: a and b (12.50% incorrect)."


def errors_of(graph: ClassGraph, errors: list[list[float]]) -> study.PairErrors:
    """Errors by hand, each with an interval of 2 points."""
    measured = replace(graph, kind="error", unit="% incorrect", weights=np.array(errors, dtype=float))
    return study.PairErrors(measured, np.full(measured.weights.shape, 2.0), 5, 10, 100)


def test_the_pair_with_most_errors_is_named_and_not_the_one_with_the_largest_overlap() -> None:
    nan = float("nan")
    graph = graph_of([[nan, 0.2, 0.9], [0.2, nan, 0.4], [0.9, 0.4, nan]])
    errors = errors_of(graph, [[nan, 7.0, 3.0], [7.0, nan, 21.5], [3.0, 21.5, nan]])
    answer, more = study.describe(graph, errors)
    assert answer == "Most confused: b and c (21.5 ± 2.0% errors in 2-way 5-shot tasks)."
    assert more.startswith("Their overlap: 0.40 bits, rank 2 of 3. Class overlap (Louvain), mean over 3 pairs: 0.50")
    by_overlap = study.describe(graph, errors, "similarity")[0]
    assert by_overlap == "Largest overlap: a and c (0.90 bits of 1; 3.0 ± 2.0% errors in 2-way 5-shot tasks)."
    pairs = study.ranked_pairs(graph, errors)
    assert pairs[["i", "j"]].values.tolist() == [[1, 2], [0, 1], [0, 2]]
    assert pairs["error_rank"].tolist() == [1, 2, 3] and pairs["value_rank"].tolist() == [2, 3, 1]
    assert study.ranked_pairs(graph, errors, "similarity")["value"].tolist() == [0.9, 0.4, 0.2]
    assert study.ranked_pairs(graph)["value"].tolist() == [0.9, 0.4, 0.2]  # nothing is measured
    never = study.describe(graph, errors_of(graph, [[0.0] * 3] * 3))[0]
    assert never == "No two classes are confused: ProtoNet makes no error in 2-way 5-shot tasks."
    table = pd.read_csv(io.BytesIO(graphs.export(graph, "csv", None, pairs)))
    assert list(table.columns) == ["a", "b", "a_id", "b_id", "confusion", "error", "error_ci95"]
    assert table["error"].tolist() == [21.5, 7.0, 3.0] and table["confusion"].tolist() == [0.4, 0.2, 0.9]
    read = nx.read_graphml(io.BytesIO(graphs.export(graph, "graphml", None, pairs)))
    assert read.edges["n1", "n2"] == {"weight": 0.4, "error": 21.5, "error_ci95": 2.0}


def test_errors_are_measured_on_tasks_of_the_requested_shots(toy) -> None:
    five_shot, one_shot = (study.pair_errors({**SPEC, "n_shot": n_shot}) for n_shot in (5, 1))
    assert (five_shot.n_shot, five_shot.n_query, five_shot.n_tasks) == (
        5,
        10,
        100,
    ) and one_shot.brief == "2-way 1-shot tasks"
    i, j, errors = five_shot.graph.edges()
    assert one_shot.graph.weights[i, j].mean() > errors.mean() + 3
    same = i // PER_GROUP == j // PER_GROUP
    assert errors[same].mean() > errors[~same].mean() + 5
    assert (five_shot.ci95[i, j] < 5).all() and (five_shot.ci95[i, j] > 0).any()
    assert np.array_equal(
        five_shot.graph.weights, study.class_graph({**SPEC, "likeness": "error"}).weights, equal_nan=True
    )
    few = toy.images.groupby("class_id").head(6).reset_index(drop=True)
    from fsviz.datasets.saved import save_dataset

    save_dataset(replace(toy, name="few", images=few, classes=toy.classes.assign(n_images=6)))
    save_toy_features(datasets.load("few"), "alpha_net")
    lowered = study.pair_errors({"dataset": "few"})
    assert lowered.n_shot + lowered.n_query == 6 and f"{lowered.n_shot}-shot" in lowered.setting


def test_edges_per_image_follow_the_images_of_the_pair(toy) -> None:
    assert study.edges_per_image(SPEC) == (9, 9)  # 48 images
    assert study.edges_per_image({**SPEC, "k": 4}) == (4, 4)
    assert study.edges_per_image({"dataset": "demo"}) == (19, 19)


def test_a_comparison_is_described_by_its_rank_correlation() -> None:
    rng = np.random.default_rng(1)
    weights = rng.random((8, 8))
    weights = weights + weights.T
    np.fill_diagonal(weights, np.nan)
    first = graph_of(weights.tolist(), source="one")
    compared = study.compare(first, replace(first, source="two", weights=-weights))
    assert study.describe_comparison(compared).startswith("one and two: rank correlation -1.00")
    assert study.describe_comparison(compared).endswith("over 28 pairs of classes.")
    flat = study.compare(first, replace(first, source="two", weights=np.where(np.isnan(weights), np.nan, 0.5)))
    assert study.describe_comparison(flat) == "one and two cannot be correlated: all pairs of one are equal."


def test_two_backbones_that_see_the_same_agree(toy) -> None:
    first = study.class_graph(SPEC)
    second = study.class_graph({**SPEC, "backbone": "beta_net"})
    compared = study.compare(first, second)
    assert compared.pearson.value > 0.5 and first.source != second.source


def test_mistakes_of_a_run_make_a_graph(toy) -> None:
    spec = {"study": "evaluate", "dataset": "toy", "backbones": ["alpha_net"], "methods": ["protonet"], "device": "cpu"}
    run = jobs.run_in_foreground(
        {**spec, "sampler": {"n_way": 4, "n_shot": 1, "n_query": 3, "n_tasks": 60, "split": "test"}}
    )
    whole = jobs.spec(run.id)
    graph = study.graph_of_predictions(whole, jobs.chunks(run.id), 0, "test")
    answer = evaluate.predictions(whole, jobs.chunks(run.id), 0)
    tasks = evaluate.entry_tasks(whole, evaluate.entries(whole)[0])
    i, j, weights = graph.edges()
    wrong = met = 0
    for t, classes in enumerate(tasks.class_ids):
        places = {int(c): w for w, c in enumerate(classes)}
        a, b = (places.get(int(graph.rows[k])) for k in (i[0], j[0]))
        if a is not None and b is not None:
            wrong += int((answer.predicted[t, a] == b).sum() + (answer.predicted[t, b] == a).sum())
            met += 6
    assert weights[0] == pytest.approx(100 * wrong / met)
    assert study.compare(study.class_graph(SPEC), graph).pearson.value > 0.2
    assert graph.source.startswith("ProtoNet")


def test_files_hold_every_pair(toy) -> None:
    graph = study.class_graph(SPEC)
    result = study.communities(graph)
    read = nx.read_graphml(io.BytesIO(graphs.export(graph, "graphml", result)))
    assert read.number_of_nodes() == 16 and read.number_of_edges() == 120
    names = nx.get_node_attributes(read, "name")
    assert set(names.values()) == set(graph.row_names)  # with their <b>marks</b>
    assert [read.nodes[f"n{v}"]["community"] for v in range(16)] == result.tolist()
    assert read.edges["n0", "n5"]["weight"] == graph.weights[0, 5]
    table = pd.read_csv(io.BytesIO(graphs.export(graph, "csv")))
    assert list(table.columns) == ["a", "b", "a_id", "b_id", "confusion"] and len(table) == 120
    assert table["confusion"].is_monotonic_decreasing
    two = graph_of([[0.5, 0.1, np.nan]], base=True)
    labelled = replace(two, row_names=("=cmd()\x00",))
    again = nx.read_graphml(io.BytesIO(graphs.export(labelled, "graphml")))
    assert again.number_of_edges() == 2 and again.nodes["base0"]["name"] == "=cmd()?"
    assert graphs.export(labelled, "csv").decode().splitlines()[1].startswith("'=cmd()")


def refused(**spec: object) -> str:
    with pytest.raises(FsvizError) as error:
        study.class_graph(spec)
    return str(error.value)


def test_what_cannot_be_is_one_sentence(toy) -> None:
    from fsviz.datasets.saved import save_dataset

    assert "jiang_conrath" in refused(dataset="tiered_imagenet")
    with pytest.raises(Missing):
        study.class_graph({"dataset": "tiered_imagenet", "likeness": "cosine"})
    assert "negative" in refused(**SPEC, preprocess="sqrt_center")
    save_dataset(replace(toy, splits={"test": np.arange(15), "one": np.array([15])}), overwrite=True)
    assert "needs at least 2 classes" in refused(**SPEC, split="one")
    with pytest.raises(UnknownName):
        study.class_graph({**SPEC, "likeness": "smell"})
    with pytest.raises(UnknownName):
        study.class_graph({**SPEC, "edges": 3})
    with pytest.raises(BadInput, match="k must be"):
        study.class_graph({**SPEC, "k": 0})
