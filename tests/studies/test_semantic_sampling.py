"""The study end to end: the published numbers of tieredImageNet, recipes, and any distance."""

from __future__ import annotations

import shlex

import numpy as np
import pytest

from fsviz import datasets
from fsviz.cli import build_parser
from fsviz.errors import BadInput, FsvizError, Missing, UnknownName
from fsviz.records import Features
from fsviz.studies import semantic_sampling as study
from fsviz.taxonomy import DISTANCES, feature_distances, maps
from tests.sampling.small import small_dataset


@pytest.fixture(scope="module")
def tiered():
    return datasets.load("tiered_imagenet")


def quartiles(dataset, **setting) -> list[float]:
    summary = study.summarise(study.sample_testbed(dataset, "test", **setting), dataset)
    return [summary["quantiles"][q] for q in ("25", "50", "75")]


@pytest.mark.parametrize(("dag", "median"), [("shortest_path", 85.2), ("all_paths", 83.7)])
@pytest.mark.parametrize("seed", [0, 1])
def test_uniform_tasks_have_the_published_median_coarsity(tiered, dag: str, median: float, seed: int) -> None:
    assert quartiles(tiered, sampler="uniform", dag=dag, seed=seed)[1] == pytest.approx(median, abs=0.4)


@pytest.mark.parametrize("seed", [0, 1])
def test_semantic_tasks_have_the_published_quartiles(tiered, seed: int) -> None:
    testbed = study.sample_testbed(tiered, "test", "semantic", 0.383, 100.0, n_tasks=5000, seed=seed)
    summary = study.summarise(testbed, tiered)
    found = [summary["quantiles"][q] for q in ("25", "50", "75")]
    assert found == pytest.approx([39.5, 56.0, 69.4], abs=1.5)
    assert summary["n_tasks"] == 5000
    counts = study.class_counts(testbed, tiered)
    assert counts.sum() == 25_000
    assert counts.min() > 100


def test_the_recipe_draws_the_same_testbed_again(tiered) -> None:
    first = study.sample_testbed(tiered, "test", "semantic", n_shot=1, n_query=5, n_tasks=50, seed=3)
    keys = ("split", "sampler", "alpha", "beta", "n_way", "n_shot", "n_query", "n_tasks", "seed", "distance", "dag")
    again = study.sample_testbed(tiered, **{key: first.recipe[key] for key in keys})
    assert np.array_equal(first.tasks.class_ids, again.tasks.class_ids)
    assert np.array_equal(first.tasks.query, again.tasks.query)
    assert first.recipe == again.recipe
    assert first.recipe["version"]
    assert first.name == again.name


@pytest.mark.parametrize(
    "setting",
    [
        {"sampler": "semantic", "alpha": 0.383, "beta": 100.0, "n_shot": 1, "n_query": 10},
        {"sampler": "uniform", "n_way": 7, "dag": "all_paths", "seed": 12},
        {"sampler": "semantic", "distance": "wu_palmer", "alpha": 1 / 3, "beta": 0.0},
    ],
)
def test_the_command_names_every_setting(tiered, setting: dict) -> None:
    testbed = study.sample_testbed(tiered, "test", n_tasks=20, **setting)
    words = shlex.split(study.command(testbed.recipe, "out.csv"))
    assert words[:3] == ["python", "-m", "fsviz"]
    args = build_parser().parse_args(words[3:])
    for key in ("split", "sampler", "n_way", "n_tasks", "seed", "distance", "dag"):
        assert getattr(args, key) == testbed.recipe[key]
    assert args.n_shot == testbed.recipe.get("n_shot", 0)
    if setting["sampler"] == "semantic":
        assert (args.alpha, args.beta) == (testbed.recipe["alpha"], testbed.recipe["beta"])


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
    testbed = study.sample_testbed(
        dataset, "all", "semantic", 20.0, 1.0, 2, n_tasks=200, distance="features", backbone="x", distances=distances
    )
    twins = (testbed.tasks.class_ids // 2)[:, 0] == (testbed.tasks.class_ids // 2)[:, 1]
    assert twins.mean() > 0.9
    assert testbed.recipe["backbone"] == "x"


def test_uniform_tasks_need_no_taxonomy_and_semantic_ones_say_so() -> None:
    textures = datasets.load("dtd")
    testbed = study.sample_testbed(textures, "test", "uniform", n_way=5, n_tasks=10, n_shot=1, n_query=2)
    assert "coarsity" not in testbed.tasks.measures
    assert testbed.tasks.has_images
    with pytest.raises(Missing, match="no coarsity"):
        study.summarise(testbed, textures)
    with pytest.raises(Missing, match="has no taxonomy"):
        study.sample_testbed(textures, "test", "semantic")
    assert study.possible_distances(textures) == []


@pytest.mark.parametrize(
    ("setting", "error", "message"),
    [
        ({"n_way": 161}, BadInput, "n_way must be at most 160, the number of classes in split 'test'.*Got 161"),
        ({"split": "tset"}, UnknownName, "Did you mean 'test'"),
        ({"sampler": "clever"}, UnknownName, "uniform"),
        ({"distance": "manhattan"}, UnknownName, "jiang_conrath"),
        ({"dag": "longest"}, UnknownName, "shortest_path"),
        ({"alpha": -1.0}, BadInput, "alpha must be"),
        ({"n_shot": 1200, "n_query": 200}, BadInput, "needs n_shot \\+ n_query = 1400 images. Class '.*' .* has"),
        ({"n_shot": 1, "n_query": 0}, BadInput, "n_query must be"),
        ({"distance": "features"}, Missing, "no features"),
    ],
)
def test_bad_settings_are_refused_in_a_sentence(tiered, setting: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        study.sample_testbed(tiered, **({"split": "test", "n_tasks": 5} | setting))


def test_unknown_image_counts_allow_classes_only() -> None:
    fungi = datasets.load("df20")
    assert study.smallest_class(fungi, "test") is None
    assert len(study.sample_testbed(fungi, "test", "uniform", n_tasks=10).tasks) == 10
    with pytest.raises(FsvizError, match="n_shot 0"):
        study.sample_testbed(fungi, "test", "uniform", n_tasks=10, n_shot=1, n_query=1)


def test_only_usable_images_are_drawn() -> None:
    dataset = small_dataset()
    usable = np.arange(0, 72, 2)
    testbed = study.sample_testbed(dataset, "all", "uniform", n_way=3, n_shot=1, n_query=1, n_tasks=40, usable=usable)
    assert np.isin(testbed.tasks.query, usable).all()
    assert np.isin(testbed.tasks.support, usable).all()


# The pictures ----------------------------------------------------------------------------------------------------


def test_bins_have_round_edges_and_hold_every_task(tiered) -> None:
    beds = {s: study.sample_testbed(tiered, "test", s, n_tasks=500) for s in ("uniform", "semantic")}
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
    bed = study.sample_testbed(tiered, "test", "uniform", n_tasks=500)
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
    distances = study.class_distances(dataset, "all")
    card = maps.class_card(graph, distances, 0, n=2)
    assert card.path == ("thing", "animal", "dog")
    assert [i for i, _ in card.nearest] == [1, 2]
    assert card.nearest[0][1] == pytest.approx(2 * np.log(3))
    assert {i for i, _ in card.farthest} <= {3, 4, 5}
    found = study.class_set(graph, distances, [0, 1, 2])
    assert found.superordinate == "animal"
    assert found.superordinate_classes == 3
    assert found.coarsity == pytest.approx((2 * np.log(3)) ** 2)
    assert found.share_finer == 0
    mixed = study.class_set(graph, distances, [0, 3])
    assert mixed.superordinate == "thing"
    small = maps.task_map(graph, [3, 4])
    assert small.names[0] == "object"
    assert set(small.names) == {"object", "cup", "car"}
    assert next(iter(maps.concepts(graph))) == "thing · 6 classes"
