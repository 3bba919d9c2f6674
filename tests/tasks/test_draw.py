"""From settings to a testbed: the same tasks as ever, names from all settings, commands and links that say the same."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fsviz import datasets, features, taxonomy
from fsviz.cli import build_parser
from fsviz.errors import BadInput, FsvizError, Missing, UnknownName
from fsviz.records import PAD, Dataset, TaskId, Tasks
from fsviz.sampling import SAMPLERS, Pool, Sampler
from fsviz.sampling.testbeds import list_testbeds, load_testbed
from fsviz.settings import N_QUERY, N_SHOT, N_WAY
from fsviz.studies import evaluate, support_sets
from fsviz.tasks import draw, snapshot
from tests.sampling.small import small_dataset

LITE = "efficientnet_lite0"


@pytest.fixture(autouse=True)
def _workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "home"))


# The same seed, the same tasks: digests of what these settings have always drawn ---------------------------------


def pinned(tasks: Tasks) -> tuple[str, float | None]:
    """A digest of the tasks, and their mean coarsity."""
    coarsity = tasks.measures.get("coarsity")
    nothing = np.zeros((len(tasks), 0, 0), dtype=np.int64)
    whole = tasks if tasks.has_images else replace(tasks, support=nothing, query=nothing)
    return snapshot.digest(whole), None if coarsity is None else round(float(coarsity.mean()), 6)


@pytest.mark.parametrize(
    ("name", "settings", "digest", "coarsity"),
    [
        ("cifar100", {"n_shot": 1, "n_query": 10, "n_tasks": 50}, "ff9dd46c67d020fab78a6951", 32.517064),
        (
            "mini_imagenet",
            {"split": "all", "sampler": "uniform", "n_way": 7, "n_tasks": 40, "seed": 12, "dag": "all_paths"},
            "ad9c8c4675357d66c536efbb",
            70.065773,
        ),
        (
            "cifar100",
            {"beta": 0.0, "n_way": 4, "n_tasks": 60, "seed": 3, "distance": "wu_palmer"},
            "00b27b5eebc48ecdac55f935",
            0.37963,
        ),
        (
            "demo",
            {"n_shot": 2, "n_query": 3, "n_tasks": 30, "seed": 1, "distance": "features", "backbone": LITE},
            "51952da80540edb31d02efb9",
            0.241368,
        ),
        (
            "dtd",
            {"sampler": "uniform", "n_shot": 1, "n_query": 2, "n_tasks": 20},
            "bfbc4d4bb32db2c25def828c",
            None,
        ),
    ],
)
def test_settings_draw_the_tasks_they_have_always_drawn(name: str, settings: dict, digest: str, coarsity) -> None:
    assert pinned(draw.sample(datasets.load(name), **settings).tasks) == (digest, coarsity)


def test_usable_images_alone_are_drawn_and_always_the_same() -> None:
    usable = np.arange(0, 72, 2)
    settings = {"split": "all", "sampler": "uniform", "n_way": 3, "n_shot": 1, "n_query": 1, "n_tasks": 40}
    tasks = draw.sample(small_dataset(), **settings, usable=usable).tasks
    assert np.isin(tasks.query, usable).all() and np.isin(tasks.support, usable).all()
    assert pinned(tasks) == ("9d1e4058a852a4060fde9c3b", 9.50252)


@pytest.mark.parametrize(
    ("sampler", "digest", "coarsity"),
    [
        ("uniform", "bc3b0d0eb11e42f64b6beb00", 33.355807),
        ("semantic", "c8780061d5c7eadc19378f9e", 25.394991),
        ("variable", "2f26e691780bfe15ede16f53", 34.473557),
    ],
)
def test_other_studies_draw_the_same_way(sampler: str, digest: str, coarsity: float) -> None:
    demo = datasets.load("demo")
    tables = {LITE: features.load(demo, LITE)}
    settings = {"sampler": sampler, "n_shot": 5, "n_query": 10, "n_tasks": 20}
    spec = support_sets.check({"dataset": "demo", "backbone": LITE, "seed": 5, **settings})
    for tasks in (
        support_sets.draw_tasks(spec, demo, tables),
        evaluate.sample_testbed(demo, settings, 5, tables).tasks,
        draw.sample(demo, **settings, seed=5).tasks,
    ):
        assert pinned(tasks) == (digest, coarsity)


# Recipes ---------------------------------------------------------------------------------------------------------

RECIPES = [
    {"sampler": "semantic", "alpha": 0.383, "beta": 100.0, "n_shot": 1, "n_query": 10},
    {"sampler": "uniform", "n_way": 7, "dag": "all_paths", "seed": 12},
    {"sampler": "semantic", "distance": "wu_palmer", "alpha": 1 / 3, "beta": 0.0},
    {"sampler": "variable", "max_way": 8, "max_support": 60},
    {"sampler": "variable", "min_way": 3, "split": "all", "follow_hierarchy": True},
    {"sampler": "semantic", "split": "all", "n_shot": 3, "n_query": 1},
]


@pytest.mark.parametrize("settings", RECIPES)
def test_command_link_and_testbed_say_the_whole_recipe(settings: dict) -> None:
    dataset = datasets.load("cifar100")
    recipe = draw.recipe_for(dataset, n_tasks=20, **settings)
    words = shlex.split(recipe.command("out.csv"))
    assert words[:2] == ["fsviz", "sample"]
    args = build_parser().parse_args(words[1:])
    assert draw.recipe_for(dataset, **{name: getattr(args, name) for name in draw.SETTINGS}) == recipe
    linked = {name: draw.SETTINGS[name].parse(text) for name, text in recipe.link.items() if name != "dataset"}
    assert draw.recipe_for(dataset, **linked) == recipe
    testbed = draw.sample_testbed(dataset, recipe)
    assert draw.recipe_of(testbed, dataset) == recipe
    again = draw.sample_testbed(dataset, draw.recipe_of(testbed, dataset))
    assert again.recipe == testbed.recipe and again.name == testbed.name == recipe.name
    assert np.array_equal(again.tasks.class_ids, testbed.tasks.class_ids)


def test_names_follow_from_all_settings() -> None:
    dataset = datasets.load("demo")
    base = {"n_shot": 1, "n_query": 5}
    changes = [
        {},
        {"split": "train"},
        {"sampler": "uniform"},
        {"sampler": "variable"},
        {"sampler": "variable", "min_way": 3},
        {"sampler": "variable", "max_way": 9},
        {"sampler": "variable", "max_query": 3},
        {"sampler": "variable", "max_support": 90},
        {"sampler": "variable", "follow_hierarchy": True},
        {"alpha": 0.3830001},
        {"beta": 99.0},
        {"n_way": 6},
        {"n_shot": 2},
        {"n_shot": 0},
        {"n_query": 6},
        {"n_tasks": 999},
        {"seed": 1},
        {"dag": "all_paths"},
        {"distance": "lin"},
        {"distance": "features", "backbone": LITE},
        {"distance": "features", "backbone": "demo_clip"},
    ]
    names = [draw.recipe_for(dataset, **(base | change)).name for change in changes]
    assert len(set(names)) == len(changes)
    assert names[0] == "demo_test_semantic_a0.383_b100_5way_1shot_5query_1000tasks_seed0"


def test_a_name_that_must_be_cut_stays_apart_from_others_cut_alike() -> None:
    long = replace(datasets.load("cifar100"), name="x" * 95)
    names = [draw.recipe_for(long, n_tasks=5, seed=seed).name for seed in range(3)]
    assert len(set(names)) == 3 and max(map(len, names)) == 100


def test_alpha_follows_the_distance() -> None:
    dataset = datasets.load("cifar100")
    assert draw.recipe_for(dataset).settings["alpha"] == 0.383
    assert draw.recipe_for(dataset, distance="lin").settings["alpha"] == 5.0
    assert draw.recipe_for(dataset, distance="lin", alpha=0.383).settings["alpha"] == 0.383


def test_a_dataset_without_split_test_is_drawn_from_as_a_whole() -> None:
    whole = replace(small_dataset(), splits={"mine": np.arange(3)})
    assert draw.recipe_for(whole, n_way=2).split == "all"
    assert draw.recipe_for(small_dataset(), n_way=2).split == "test"


# A sampler is one file -------------------------------------------------------------------------------------------


def one_context(pool: Pool, n_tasks: int, seed: int, n_way: int, n_shot: int, n_query: int) -> Tasks:
    """Every task from the images of one context."""
    rng = np.random.default_rng(seed)
    tasks = [[], [], []]
    while len(tasks[0]) < n_tasks:
        inside = (pool.contexts == rng.choice(np.unique(pool.contexts))) & np.isin(pool.image_class_ids, pool.class_ids)
        images = [np.flatnonzero(inside & (pool.image_class_ids == c)) for c in pool.class_ids]
        enough = [i for i, of_class in enumerate(images) if len(of_class) >= n_shot + n_query]
        if len(enough) >= n_way:
            selection = rng.choice(enough, n_way, replace=False)
            hands = np.stack([rng.choice(images[i], n_shot + n_query, replace=False) for i in selection])
            for part, value in zip(
                tasks, (pool.class_ids[selection], hands[:, :n_shot], hands[:, n_shot:]), strict=True
            ):
                part.append(value)
    return Tasks(*map(np.stack, tasks))


def test_a_new_sampler_needs_its_declaration_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    new = Sampler(
        "one_context",
        "One context",
        "All images of a task in one context.",
        one_context,
        (N_WAY, N_SHOT, N_QUERY),
        needs=("images", "contexts"),
        samples_images=True,
    )
    monkeypatch.setitem(SAMPLERS, "one_context", new)
    monkeypatch.setattr(draw, "SAMPLER", draw.SAMPLER.with_(choices={**draw.SAMPLER.choices, "one_context": new.title}))
    monkeypatch.setitem(draw.SETTINGS, "sampler", draw.SAMPLER)
    demo = datasets.load("demo")
    testbed = draw.sample(demo, sampler="one_context", n_way=3, n_shot=1, n_query=1, n_tasks=10)
    contexts = demo.images["context"].astype(str).to_numpy()[testbed.tasks.query]
    assert all(len(set(task.ravel())) == 1 for task in contexts)
    assert "coarsity" in testbed.tasks.measures
    assert testbed.name == "demo_test_one_context_3way_1shot_1query_10tasks_seed0"
    assert "one_context" in draw.possible_samplers(demo)
    digits = datasets.load("digits")
    assert "one_context" not in draw.possible_samplers(digits)
    with pytest.raises(Missing, match=r"'One context' needs contexts, which .* lacks\. Use 'uniform' or 'variable'"):
        draw.sample(digits, sampler="one_context")


def test_what_a_dataset_can_give() -> None:
    for name, lacks in {
        "demo": set(),
        "df20": {"variable"},  # image counts are not public
        "dtd": {"semantic"},  # no taxonomy
    }.items():
        assert {"uniform", "semantic", "variable"} - set(draw.possible_samplers(datasets.load(name))) == lacks
    assert draw.possible_distances(datasets.load("dtd")) == []


def test_variable_tasks_are_testbeds_like_others() -> None:
    dataset = datasets.load("cifar100")
    testbed = draw.sample(dataset, sampler="variable", max_way=8, n_tasks=30)
    ways = (testbed.tasks.class_ids != PAD).sum(axis=1)
    assert (ways.min(), ways.max()) == (5, 8)
    assert np.isfinite(testbed.tasks.measures["coarsity"]).all()
    name, _ = draw.save(testbed)
    assert np.array_equal(load_testbed(name, dataset).tasks.support, testbed.tasks.support)


# Bad settings ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"n_way": 161}, BadInput, r"n_way must be at most 160 .classes in split 'test'.*Got 161"),
        ({"split": "tset"}, UnknownName, "Did you mean 'test'"),
        ({"sampler": "clever"}, UnknownName, "uniform"),
        ({"distance": "manhattan"}, UnknownName, "jiang_conrath"),
        ({"dag": "longest"}, UnknownName, "shortest_path"),
        ({"alpha": -1.0}, BadInput, "alpha must be"),
        ({"ways": 5}, UnknownName, "setting of the sampler"),
        ({"n_shot": 900, "n_query": 500}, BadInput, r"Class '.*' of .* has \d+ images; n_shot \+ n_query needs 1400"),
        ({"n_shot": 1, "n_query": 0}, BadInput, "n_query must be"),
        ({"distance": "features"}, Missing, "has no .* features"),
        ({"sampler": "variable", "min_way": 9, "max_way": 4}, BadInput, "min_way must be"),
        ({"sampler": "variable", "n_tasks": 500_000}, BadInput, "limit 200,000,000"),
    ],
)
def test_bad_settings_are_refused_in_a_sentence(settings: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        draw.sample(datasets.load("tiered_imagenet"), **({"n_tasks": 5} | settings))


def test_unknown_image_counts_allow_classes_only() -> None:
    fungi = datasets.load("df20")
    assert len(draw.sample(fungi, sampler="uniform", n_tasks=10).tasks) == 10
    with pytest.raises(FsvizError, match="n_shot to 0"):
        draw.sample(fungi, sampler="uniform", n_tasks=10, n_shot=1, n_query=1)
    with pytest.raises(Missing, match="needs images"):
        draw.sample(fungi, sampler="variable", n_tasks=10)


# Keeping ---------------------------------------------------------------------------------------------------------


def sample_saved(dataset: Dataset, seed: int = 0, name: str = "mine"):
    return draw.sample(dataset, name=name, sampler="uniform", n_way=2, n_tasks=5, seed=seed)


def test_nothing_is_replaced() -> None:
    dataset = small_dataset()
    assert draw.save(sample_saved(dataset)) == ("mine", "Saved as mine.")
    assert draw.save(sample_saved(dataset)) == ("mine", "Saved as mine.")  # the same again
    with pytest.raises(
        BadInput, match=r"'mine' already exists with other tasks.*Choose another name, or remove .*mine.parquet"
    ):
        draw.save(sample_saved(dataset, seed=1))
    assert draw.save(sample_saved(dataset, 1), number=True) == (
        "mine-2",
        "Saved as mine-2. mine is the name of another testbed.",
    )
    assert draw.save(sample_saved(dataset, 1), number=True)[0] == "mine-2"
    assert draw.save(sample_saved(dataset, 2), number=True)[0] == "mine-3"
    assert sorted(list_testbeds()) == ["mine", "mine-2", "mine-3"]
    saved = load_testbed("mine-2", dataset)
    assert saved.name == "mine-2" and saved.recipe["seed"] == 1
    assert load_testbed("mine", dataset).recipe["seed"] == 0


def test_a_damaged_testbed_is_not_replaced_either(tmp_path: Path) -> None:
    path = tmp_path / "home" / "testbeds" / "mine.parquet"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not a testbed")
    assert draw.save(sample_saved(small_dataset()), number=True)[0] == "mine-2"
    assert path.read_bytes() == b"not a testbed"


def test_a_task_is_named_by_testbed_and_position() -> None:
    task = sample_saved(small_dataset(), name="a:b").task_id(3)
    assert str(task) == "a:b:3" and TaskId.parse("a:b:3") == task
    for wrong in ("mine", "mine:", ":3", "mine:x", "mine:-1", "mine:³"):
        with pytest.raises(BadInput, match="TESTBED:POSITION"):
            TaskId.parse(wrong)


def test_a_recipe_as_published_is_written_as_before_there_was_a_choice() -> None:
    from fsviz import datasets

    demo = datasets.load("demo")
    plain = draw.recipe_for(demo, sampler="semantic", n_tasks=50)
    assert "repeats" not in plain.values and "repeats" not in plain.command() and "repeats" not in plain.name
    saved = draw.recipe_for(demo, sampler="semantic", n_tasks=50, repeats=True)
    assert "--repeats" in saved.command() and saved.link["repeats"] == "true" and "repeats" in saved.name


# Alpha for few classes


def _families(n_families: int, size: int) -> np.ndarray:
    """Distances of classes in families: 1 to relatives, 8 to others."""
    family = np.repeat(np.arange(n_families), size)
    distances = np.where(family[:, None] == family, 1.0, 8.0)
    np.fill_diagonal(distances, 0.0)
    return distances


def test_alpha_is_raised_until_the_median_coarsity_has_fallen() -> None:
    result = draw.fit_alpha(_families(4, 5), 3, 0.05)
    assert result.alpha > 0.05 and result.usual_fall < draw.FALL <= result.fall + 0.05
    smaller = draw.fit_alpha(_families(4, 5), 3, result.alpha)
    assert smaller.alpha == result.alpha, "where the usual one is enough, it stays"
    assert f"α = {result.alpha:g} chosen" in result.describe() and f"{result.fall:.0%} below" in result.details


def test_where_no_alpha_helps_the_usual_one_stays() -> None:
    alike = np.ones((6, 6)) - np.eye(6)
    assert draw.fit_alpha(alike, 3, 0.4).alpha == 0.4
    assert draw.fit_alpha(np.zeros((6, 6)), 3, 0.4).alpha == 0.4


def test_only_small_datasets_of_the_user_get_an_alpha_of_their_own(tmp_path, monkeypatch) -> None:
    from fsviz.datasets.saved import save_dataset

    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path))
    usual = draw.DISTANCES["jiang_conrath"].alpha
    for name in ("demo", "mini_imagenet", "tiered_imagenet"):
        assert draw.fitted_alpha(datasets.load(name)) is None
        assert draw.recipe_for(datasets.load(name), sampler="semantic").settings["alpha"] == usual
    small = replace(small_dataset(name="mine"), splits={})
    mine = save_dataset(replace(small, origin="features"))
    result = draw.fitted_alpha(mine, n_way=3)
    assert result is not None
    recipe = draw.recipe_for(mine, sampler="semantic", n_way=3)
    assert recipe.settings["alpha"] == result.alpha
    assert draw.recipe_for(mine, sampler="semantic", n_way=3, alpha=0.1).settings["alpha"] == 0.1
    assert "alpha" not in draw.recipe_for(mine, sampler="uniform", n_way=3).settings
    assert f"--alpha {result.alpha:g}" in recipe.command()


def test_variable_tasks_that_follow_the_hierarchy_are_of_one_concept() -> None:
    omniglot = datasets.load("omniglot")
    bed = draw.sample(omniglot, sampler="variable", follow_hierarchy=True, n_tasks=30)
    names = omniglot.classes["class_name"].to_numpy()
    for row in bed.tasks.class_ids:
        assert len({name.rsplit("-", 1)[0] for name in names[row[row != PAD]]}) == 1  # one alphabet
    imagenet = datasets.load("ilsvrc_2012")
    settings = {"sampler": "variable", "split": "train", "n_tasks": 100}
    near, any_ = (draw.sample(imagenet, follow_hierarchy=on, **settings).tasks for on in (True, False))
    assert np.median(near.measures["coarsity"]) < np.median(any_.measures["coarsity"]) / 2
    held = taxonomy.class_concepts(imagenet, "train")[0]
    sets = {frozenset(np.flatnonzero(row)) for row in held if 5 <= row.sum() <= 50}
    large = [row for row in held if 50 < row.sum() <= 392]
    for row, positions in zip(near.class_ids, near.positions(imagenet.split_class_ids("train")), strict=True):
        task = frozenset(positions[row != PAD].tolist())
        assert task in sets or (len(task) == 50 and any(concept[list(task)].all() for concept in large))


def test_classes_that_no_concept_gives_are_left_out_by_name() -> None:
    imagenet = datasets.load("imagenet1k")
    recipe = draw.recipe_for(imagenet, sampler="variable", split="all", follow_hierarchy=True, n_tasks=5)
    outside = draw.excluded_classes(imagenet, recipe)
    assert outside and "is in no concept of 5 to 392 classes" in next(iter(outside.values()))
    assert draw.excluded_classes(imagenet, draw.recipe_for(imagenet, sampler="variable", split="all", n_tasks=5)) == {}


def test_a_hierarchy_is_followed_only_where_there_is_one() -> None:
    dtd = datasets.load("dtd")
    assert dtd.taxonomy is None and not draw.supports_setting(dtd, "variable", "follow_hierarchy")
    assert draw.supports_setting(datasets.load("omniglot"), "variable", "follow_hierarchy")
    with pytest.raises(Missing, match=r"follow_hierarchy needs a taxonomy.*--no-follow-hierarchy"):
        draw.sample(dtd, sampler="variable", follow_hierarchy=True, n_tasks=5)
    assert len(draw.sample(dtd, sampler="variable", follow_hierarchy=False, n_tasks=5).tasks) == 5
