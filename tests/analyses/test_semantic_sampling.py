"""The study end to end: the published numbers of tieredImageNet, recipes, and any distance."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fsviz import datasets
from fsviz.analyses import semantic_sampling as study
from fsviz.errors import Missing
from fsviz.methods import METHODS
from fsviz.records import PAD, Features, Tasks, Testbed
from fsviz.studies import evaluate
from fsviz.tasks import draw
from fsviz.taxonomy import DISTANCES, feature_distances, maps
from tests.sampling.small import small_dataset
from tests.studies.toy_dataset import make_toy


@pytest.fixture(scope="module")
def tiered():
    return datasets.load("tiered_imagenet")


def quartiles(dataset, **setting) -> list[float]:
    summary = study.summarise(draw.sample(dataset, **{"n_tasks": 5000, **setting}), dataset)
    return [summary["quantiles"][q] for q in ("25", "50", "75")]


@pytest.mark.parametrize(("dag", "median"), [("shortest_path", 85.2), ("all_paths", 83.7)])
@pytest.mark.parametrize("seed", [0, 1])
def test_uniform_tasks_have_the_published_median_coarsity(tiered, dag: str, median: float, seed: int) -> None:
    assert quartiles(tiered, sampler="uniform", dag=dag, seed=seed)[1] == pytest.approx(median, abs=0.4)


@pytest.mark.parametrize("seed", [0, 1])
def test_semantic_tasks_have_the_published_quartiles(tiered, seed: int) -> None:
    testbed = draw.sample(tiered, n_tasks=5000, seed=seed)
    summary = study.summarise(testbed, tiered)
    result = [summary["quantiles"][q] for q in ("25", "50", "75")]
    assert result == pytest.approx([39.5, 56.0, 69.4], abs=1.5)
    assert summary["n_tasks"] == 5000
    counts = study.class_counts(testbed, tiered)
    assert counts.sum() == 25_000
    assert counts.min() > 100


@pytest.mark.parametrize("distance", ["path_length", "wu_palmer", "lin"])
def test_any_distance_makes_tasks_finer(tiered, distance: str) -> None:
    kind = DISTANCES[distance]
    uniform = quartiles(tiered, sampler="uniform", distance=distance, n_tasks=1000)
    semantic = quartiles(tiered, sampler="semantic", alpha=kind.alpha, distance=distance, n_tasks=1000)
    assert semantic[1] < 0.85 * uniform[1]


def test_features_give_a_distance_between_class_means() -> None:
    values = np.array([[2.0, 0], [4, 0], [0, 1], [0, 9], [-3, 0], [-1, 0]], dtype=np.float32)
    features = Features("toy", "none", values, np.arange(6), np.array([7, 7, 8, 8, 9, 9]))
    distances = feature_distances(features, np.array([7, 8, 9]))
    root = np.sqrt(2)  # unit-length features: classes point right, up and left
    assert np.allclose(distances, [[0, root, 2], [root, 0, root], [2, root, 0]])
    with pytest.raises(Missing, match=r"Class 5 .* no features"):
        feature_distances(features, np.array([7, 5]))


def test_semantic_tasks_by_features_are_closer_in_features() -> None:
    dataset = small_dataset()
    rng = np.random.default_rng(0)
    of_image = dataset.image_class_ids()
    centres = np.array([[1, 0], [1, 0.1], [0, 1], [0.1, 1], [-1, 0], [-1, 0.1]])
    features = Features("small", "x", centres[of_image] + 0.01 * rng.normal(size=(72, 2)), np.arange(72), of_image)
    distances = feature_distances(features, np.arange(6))
    settings = {"split": "all", "alpha": 20.0, "beta": 1.0, "n_way": 2, "n_tasks": 200}
    testbed = draw.sample(dataset, **settings, distance="features", backbone="x", distances=distances)
    twins = (testbed.tasks.class_ids // 2)[:, 0] == (testbed.tasks.class_ids // 2)[:, 1]
    assert twins.mean() > 0.9
    assert testbed.recipe["backbone"] == "x"


def bed_of(sampler: str, coarsity: list[float]) -> Testbed:
    tasks = Tasks(np.zeros((len(coarsity), 2), dtype=np.int64)).with_measure("coarsity", np.array(coarsity))
    return Testbed(sampler, tasks, {"sampler": sampler})


def test_the_headline_compares_a_testbed_with_uniform_tasks() -> None:
    uniform = bed_of("uniform", [float(value) for value in range(1, 101)])  # the finest 5% are at most 5.95
    semantic = bed_of("semantic", [2.0, 3.0, 4.0, 50.0])
    assert study.headline(semantic, uniform) == (
        "Semantic tasks: median coarsity 3.50 vs 50.5 for uniform; 75% are fine-grained (5% when uniform).",
        "Fine-grained: coarsity in the lowest 5% of uniform tasks.",
    )
    second = bed_of("semantic", [1.0, 20.0])
    assert study.headline(semantic, uniform, second)[1].endswith(" B: median coarsity 10.5, 50% fine-grained.")
    assert study.headline(uniform, uniform) == (
        "Uniform tasks: median coarsity 50.5.",
        "Half of the tasks lie between 25.8 and 75.2; lower is finer.",
    )
    constant = bed_of("uniform", [7.0] * 4)
    assert study.headline(bed_of("semantic", [7.0] * 4), constant)[1] == "All uniform tasks have the same coarsity."


def test_quick_predictions_are_those_of_protonet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    make_toy("quick", noise=2.0)
    toy = datasets.load("quick")
    tasks = draw.sample(toy, sampler="uniform", n_way=3, n_shot=2, n_query=4, n_tasks=5).tasks
    predictions = study.quick_predictions(toy, tasks)
    expected = evaluate.predict_tasks(toy, "alpha_net", "protonet", METHODS["protonet"].checked(), tasks)
    assert predictions is not None and np.array_equal(predictions.predicted, expected.predicted)
    assert study.quick_predictions(toy, draw.sample(toy, sampler="uniform", n_way=3, n_tasks=5).tasks) is None
    assert study.quick_predictions(datasets.load("tiered_imagenet"), tasks) is None


def test_uniform_tasks_need_no_taxonomy_and_semantic_ones_say_so() -> None:
    textures = datasets.load("dtd")
    testbed = draw.sample(textures, sampler="uniform", n_tasks=10, n_shot=1, n_query=2)
    assert "coarsity" not in testbed.tasks.measures
    assert testbed.tasks.has_images
    with pytest.raises(Missing, match="no coarsity"):
        study.summarise(testbed, textures)
    with pytest.raises(Missing, match="has no taxonomy"):
        draw.sample(textures)


def test_the_smallest_class_is_known_where_counts_are(tiered) -> None:
    assert study.smallest_class(datasets.load("df20"), "test") is None
    assert study.smallest_class(small_dataset(), "test") == 12


# The pictures ----------------------------------------------------------------------------------------------------


def test_bins_have_round_edges_and_hold_every_task(tiered) -> None:
    beds = {s: draw.sample(tiered, sampler=s, n_tasks=500) for s in ("uniform", "semantic")}
    bins = study.coarsity_bins(beds)
    assert np.allclose(bins.edges, np.arange(len(bins.edges)) * 2)
    for name, bed in beds.items():
        values = bed.tasks.measures["coarsity"]
        assert bins.counts[name].sum() == 500
        inside = np.flatnonzero(bins.bin_of(values) == 30)
        assert np.all((values[inside] >= 60) & (values[inside] < 62))
        assert bins.medians[name] == np.median(values)
    assert study.share_finer(beds["uniform"], beds["uniform"]) == pytest.approx(0.05, abs=0.005)
    assert study.share_finer(beds["semantic"], beds["uniform"]) > 0.5


def test_examples_lie_around_their_quantile(tiered) -> None:
    bed = draw.sample(tiered, sampler="uniform", n_tasks=500)
    ranks = np.argsort(np.argsort(bed.tasks.measures["coarsity"], kind="stable"), kind="stable")
    assert ranks[study.tasks_near_quantile(bed, 0.0, 5)].tolist() == [0, 1, 2, 3, 4]
    assert ranks[study.tasks_near_quantile(bed, 1.0, 5)].tolist() == [495, 496, 497, 498, 499]
    assert abs(ranks[study.tasks_near_quantile(bed, 0.5, 5)].mean() - 250) < 3


def test_the_map_folds_deep_nodes_but_keeps_every_class_findable(tiered) -> None:
    graph = maps.spanning_graph(tiered, "test")
    whole = maps.class_map(graph)
    assert (whole.n_nodes, whole.n_edges, whole.n_leaves) == (233, 235, 160)
    assert len(whole.names) == 233
    assert np.array_equal(whole.class_position[whole.shown_at], np.arange(160))
    folded = maps.class_map(graph, 3)
    assert folded.depth.max() == 3
    assert folded.folded.any()
    assert folded.n_classes[0] == 160
    deep = int(np.argmax(graph.depth[graph.class_nodes]))
    revealed = maps.class_map(graph, 3, reveal=[deep])
    assert revealed.class_position[revealed.shown_at[deep]] == deep


def test_a_card_and_a_set_by_hand() -> None:
    dataset = small_dataset()  # animals dog cat cow; objects cup car pen; 12 images each
    graph = maps.spanning_graph(dataset, "all")
    distances = draw.class_distances(dataset, "all")
    card = maps.class_card(graph, distances, 0, n=2)
    assert card.path == ("thing", "animal", "dog")
    assert [i for i, _ in card.nearest] == [1, 2]
    assert card.nearest[0][1] == pytest.approx(2 * np.log(3))
    assert {i for i, _ in card.farthest} <= {3, 4, 5}
    result = study.class_set(graph, distances, [0, 1, 2])
    assert result.superordinate == "animal"
    assert result.superordinate_classes == 3
    assert result.coarsity == pytest.approx((2 * np.log(3)) ** 2)
    assert result.share_finer == 0
    mixed = study.class_set(graph, distances, [0, 3])
    assert mixed.superordinate == "thing"
    small = maps.task_map(graph, [3, 4])
    assert small.names[0] == "object"
    assert set(small.names) == {"object", "cup", "car"}


def test_the_tree_of_concepts_holds_every_class_once_and_its_levels_fit() -> None:
    graph = maps.spanning_graph(datasets.load("tiered_imagenet"), "test")
    tree = maps.concept_tree(graph)
    classes = tree.class_position[tree.class_position != PAD]
    assert sorted(classes.tolist()) == list(range(160))
    assert tree.n_classes[0] == 160 and tree.n_nodes[0] == len(tree.ids)
    for v in range(1, len(tree.ids)):
        parent = int(tree.parents[v])
        assert parent < v < parent + tree.n_nodes[parent] and tree.depth[v] == tree.depth[parent] + 1
        assert tree.class_position[v] != PAD or tree.n_classes[v] < 0.8 * tree.n_classes[parent]
    levels = tree.levels_that_fit(0, 40)
    ends = [v for v in tree.part(0, levels) if tree.depth[v] == levels or tree.n_nodes[v] == 1]
    assert 1 < len(ends) <= 40


def test_the_part_below_a_concept() -> None:
    graph = maps.spanning_graph(datasets.load("tiered_imagenet"), "test")
    dogs, positions = maps.classes_below(graph, "n02084071")
    assert dogs.nodes[0] == "n02084071" and dogs.n_classes == len(positions)
    assert {graph.names[graph.class_nodes[p]] for p in positions} == {dogs.names[v] for v in dogs.class_nodes}
    assert maps.levels_that_fit(graph, 10_000) == maps.class_map(graph).deepest


def test_the_answer_about_distances_by_hand() -> None:
    distances = np.array([[0, 1, 4], [1, 0, 2], [4, 2, 0]], dtype=float)
    assert study.distance_answer(distances, ["Fruit/Kiwi", "Fruit/Lime", "Milk"], "Path") == (
        "Closest classes: Kiwi and Lime (distance 1.00). Median distance: 2.00.",
        "Path, 3 classes.",
    )
    distances[0, 2] = distances[2, 0] = 1
    sentence, more = study.distance_answer(distances, ["a/x", "b/x", "y"], "Path")
    assert sentence.startswith("Closest classes: a/x and b/x ") and more == "Path, 3 classes; 1 other pair is as close."
    assert study.distance_answer(np.zeros((1, 1)), ["x"], "Path") == ("x is the only class here.", "")
