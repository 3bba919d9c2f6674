"""Groups within classes: planted clusters are recovered, in one batch or many, and small classes stay whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fsviz import datasets
from fsviz.analyses import image_groups
from fsviz.errors import FsvizError
from fsviz.features import store
from tests.studies.small_dataset import make_small


def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: list[int]) -> np.ndarray:
    """A dataset whose classes have two surroundings, far apart in features; returns the surrounding of every image."""
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    dataset = make_small("toy", sizes, tmp_path / "toy")
    rng = np.random.default_rng(3)
    class_ids = dataset.image_class_ids()
    surrounding = rng.permutation(np.arange(len(class_ids)) % 3 == 0).astype(int)
    values = 3 * np.eye(8)[class_ids % 6] + 2 * np.eye(8)[6 + surrounding] + 0.1 * rng.normal(size=(len(class_ids), 8))
    key = {"version": store.VERSION, "dataset": "toy", "fingerprint": store.fingerprint(dataset), "backbone": "net"}
    store.save(key, "net", values.astype("f4"), np.arange(len(class_ids)), class_ids)
    return surrounding


@pytest.mark.parametrize(("most", "n_values"), [(400, 20_000_000), (10, 20_000_000), (400, 500)])
def test_planted_surroundings_are_recovered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, n_values: int
) -> None:
    surrounding = planted(tmp_path, monkeypatch, [30, 45, 24])
    monkeypatch.setattr(image_groups, "_MOST", most)
    monkeypatch.setattr(image_groups, "_VALUES", n_values)
    toy = datasets.load("toy")
    groups = image_groups.propose(toy, "net", 2)
    assert [(group.class_id, group.number) for group in groups] == [(c, n) for c in range(3) for n in (1, 2)]
    assert all(len(set(surrounding[group.image_ids])) == 1 for group in groups)
    for class_id in range(3):
        first, second = (group.image_ids for group in groups if group.class_id == class_id)
        assert len(first) >= len(second)
        assert sorted([*first, *second]) == np.flatnonzero(toy.image_class_ids() == class_id).tolist()
    one_class = image_groups.propose(toy, "net", 2, class_ids=[1])
    assert [sorted(g.image_ids) for g in one_class] == [sorted(g.image_ids) for g in groups if g.class_id == 1]


def test_a_class_with_few_images_is_one_group_and_typical_images_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted(tmp_path, monkeypatch, [5, 30])
    toy = datasets.load("toy")
    groups = image_groups.propose(toy, "net", 2)
    assert [len(group.image_ids) for group in groups if group.class_id == 0] == [5]
    stored = store.load(toy, "net")
    for group in groups:
        values = np.asarray(stored.values[group.image_ids], float)
        values /= np.linalg.norm(values, axis=1, keepdims=True)
        far = ((values - values.mean(axis=0)) ** 2).sum(axis=1)
        assert (np.diff(far) > -1e-5).all()
    with pytest.raises(FsvizError):
        image_groups.propose(toy, "net", n_groups=7)


def test_names_become_labels_and_equal_names_one_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    surrounding = planted(tmp_path, monkeypatch, [30, 30])
    toy = datasets.load("toy")
    groups = image_groups.propose(toy, "net", 2)
    names = {i: "crate" if surrounding[group.image_ids[0]] else "shelf" for i, group in enumerate(groups)}
    assert len(image_groups.name_groups(toy, groups, names)) == 2
    after = datasets.load("toy")
    assert ((after.image_contexts() == "crate") == surrounding).all()
    assert image_groups.name_groups(after, image_groups.propose(after, "net", 2), names) == [], "they have the names"
    image_groups.write_groups(after, image_groups.propose(after, "net", 2), tmp_path / "groups.csv")
    table = pd.read_csv(tmp_path / "groups.csv")
    assert table["n_images"].sum() == 60 and set(table["context"]) == {"crate", "shelf"}
