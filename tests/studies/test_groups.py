"""Groups of images, from the dataset to tasks, support sets and neighbours: never on both sides, unless asked for."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fsviz import datasets, features, jobs
from fsviz.analyses import attribute_shifts
from fsviz.cli import main
from fsviz.datasets.saved import save_dataset
from fsviz.errors import BadInput
from fsviz.features.neighbours import nearest_images
from fsviz.records import PAD, Dataset
from fsviz.sampling import testbeds
from fsviz.studies import evaluate, support_sets
from fsviz.tasks import draw
from tests.sampling.test_groups import shares_a_group
from tests.studies.toy_dataset import make_toy, save_toy_features

N_COPIES = 6


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """Sixteen classes of five pictures, six copies each."""
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "home"))
    toy = make_toy(n_images=30)
    images = toy.images.assign(group=np.arange(len(toy.images)) // N_COPIES, kind=np.arange(len(toy.images)) % 3)
    images.loc[images["class_id"] == 15, "group"] = PAD
    dataset = save_dataset(replace(toy, images=images, attributes=("kind",)), overwrite=True)

    def same(values: np.ndarray) -> None:
        values[:] = values[np.arange(len(values)) // N_COPIES * N_COPIES]

    save_toy_features(dataset, "alpha_net", noise=2.0, spoil=same)
    return dataset


@pytest.mark.parametrize("sampler", ["uniform", "semantic", "variable"])
def test_every_sampler_keeps_groups_on_one_side(copied: Dataset, sampler: str) -> None:
    settings = {"sampler": sampler, "n_shot": 4, "n_query": 5, "n_tasks": 40, "seed": 3}
    bed = draw.sample(copied, **settings)
    groups = copied.image_groups()
    assert not shares_a_group(bed.tasks, groups)
    assert bed.recipe["keep_groups"] is True
    assert np.array_equal(draw.sample_testbed(copied, draw.recipe_of(bed, copied)).tasks.query, bed.tasks.query)
    loose = draw.sample(copied, **settings, keep_groups=False)
    assert shares_a_group(loose.tasks, groups)
    assert loose.recipe["keep_groups"] is False
    assert "no-keep-groups" in loose.name and "keep-groups" not in bed.name
    assert "--no-keep-groups" in draw.recipe_of(loose, copied).command()


def test_variable_tasks_take_one_image_of_a_group_and_any_of_them(copied: Dataset) -> None:
    tasks = draw.sample(copied, sampler="variable", n_tasks=60, max_way=16).tasks
    groups = copied.image_groups()
    for support, query in zip(tasks.support, tasks.query, strict=True):
        sampled = np.concatenate([support[support != PAD], query[query != PAD]])
        assert len(np.unique(groups[sampled])) == len(sampled)
        assert (copied.image_class_ids()[support[support != PAD]] >= 0).all()
    used = np.unique(tasks.support[tasks.support != PAD])
    assert len(used) > 200, "not the first of each group alone"


def test_without_groups_nothing_changes(copied: Dataset) -> None:
    plain = make_toy("plain", n_images=30)
    for sampler in ("uniform", "semantic", "variable"):
        settings = {"sampler": sampler, "n_shot": 2, "n_query": 3, "n_tasks": 20}
        bed = draw.sample(plain, **settings)
        assert "keep_groups" not in bed.recipe
        same = draw.sample(plain, **settings, keep_groups=False)
        assert testbeds.export(bed, plain, "parquet") == testbeds.export(same, plain, "parquet")
    assert "keep_groups" not in draw.sample(copied, sampler="uniform", n_tasks=5).recipe, "classes only"


@pytest.mark.parametrize(
    ("sampler", "digest"),
    [("uniform", "ab4a3158d8b7"), ("semantic", "c3213bb5e01c"), ("variable", "bee70be3fd54")],
)
def test_the_images_of_the_demos_tasks_are_those_drawn_before_there_were_groups(sampler: str, digest: str) -> None:
    tasks = draw.sample(datasets.load("demo"), sampler=sampler, n_shot=3, n_query=4, n_tasks=300, seed=5).tasks
    assert hashlib.md5(tasks.support.tobytes() + tasks.query.tobytes()).hexdigest().startswith(digest)


def test_a_class_that_is_one_group_is_named(copied: Dataset) -> None:
    images = copied.images.copy()
    images.loc[images["class_id"] == 2, "group"] = 0
    item = replace(copied, images=images)
    name = item.classes["class_name"][2]
    with pytest.raises(BadInput, match=r"all one group.*--no-keep-groups") as caught:
        draw.sample(item, sampler="uniform", n_way=16, n_shot=1, n_query=1, n_tasks=5)
    assert repr(name) in str(caught.value)
    draw.sample(item, sampler="uniform", n_way=16, n_shot=1, n_query=1, n_tasks=5, keep_groups=False)
    with pytest.raises(BadInput, match="5 groups"):
        draw.sample(copied, sampler="uniform", n_way=16, n_shot=13, n_query=13, n_tasks=5)


def test_the_settings_a_page_starts_with_can_be_drawn(copied: Dataset) -> None:
    """Five groups of six: nine shots take two of them, and 18 images are left."""
    assert {"n_shot": 5, "n_query": 10}.items() <= evaluate.feasible_sampler(copied, "alpha_net").items()
    tight = evaluate.feasible_sampler(copied, "alpha_net", n_query=20, n_shot=9)
    assert {"n_shot": 9, "n_query": 18}.items() <= tight.items()
    assert evaluate.feasible_sampler(copied, "alpha_net", n_query=99)["n_query"] == 24
    assert not shares_a_group(draw.sample(copied, **{**tight, "n_tasks": 20}).tasks, copied.image_groups())


@pytest.mark.parametrize("search", ["accuracy", "fastdiffsel", "greedy"])
def test_hard_and_easy_sets_are_searched_among_other_groups(copied: Dataset, search: str) -> None:
    spec = {"dataset": copied.name, "backbone": "alpha_net", "n_way": 4, "n_shot": 3, "n_query": 4, "n_tasks": 12}
    spec |= {"study": "support_sets", "search": search}
    result = jobs.compute(spec)
    groups = copied.image_groups()
    assert not any(shares_a_group(result.tasks[name], groups) for name in support_sets.SETS)
    assert result.accuracy("easy").mean() >= result.accuracy("random").mean() > result.accuracy("hard").mean()
    assert "--keep-groups" in support_sets.command(result.spec)
    loose = jobs.compute({**spec, "keep_groups": False})
    assert shares_a_group(loose.tasks["easy"], groups)


def test_curated_tasks_take_one_image_of_a_group(copied: Dataset) -> None:
    spec = {"dataset": copied.name, "backbone": "alpha_net", "n_way": 2, "n_shot": 1, "n_query": 1, "n_tasks": 10}
    groups = copied.image_groups()
    images = copied.images.copy()
    images["kind"] = (np.arange(len(images)) // N_COPIES) % 2  # so that groups have one value each
    save_dataset(replace(copied, images=images), overwrite=True)
    pair = attribute_shifts.curated_tasks(spec, "kind")
    assert not shares_a_group(pair.without_shift, groups) and not shares_a_group(pair.with_shift, groups)


def test_neighbours_are_other_pictures(copied: Dataset) -> None:
    stored = features.load(copied, "alpha_net")
    groups = copied.image_groups()
    near, cosines = nearest_images(stored, np.array([0, 37]), k=12)
    assert near.shape == (2, 12) and np.isfinite(cosines).all()
    assert not (groups[near] == groups[[0, 37]][:, None]).any()
    all_of_them, cosines = nearest_images(replace(stored, groups=None), np.array([0]), k=N_COPIES - 1)
    assert sorted(all_of_them[0].tolist()) == [1, 2, 3, 4, 5] and np.allclose(cosines, 1)


def test_the_option_from_a_terminal(copied: Dataset, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    request = ["sample", copied.name, "--sampler", "uniform", "--n-shot", "4", "--n-query", "5", "--n-tasks", "20"]
    for flag, shares in (([], False), (["--keep-groups"], False), (["--no-keep-groups"], True)):
        out = tmp_path / f"{len(flag)}{shares}.parquet"
        assert main([*request, *flag, "--out", str(out), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["recipe"]["keep_groups"] is not shares
        bed = testbeds.load_testbed(str(out), datasets.load(copied.name))
        assert shares_a_group(bed.tasks, copied.image_groups()) is shares
