"""The features that ship with a dataset are what this code gives for its images."""

from __future__ import annotations

import numpy as np
import pytest

from fsviz import datasets, features
from fsviz.features.backbones import EMBEDDED, load_backbone
from fsviz.features.extraction import compute, key_of


@pytest.mark.parametrize("dataset_name", ["demo", "fruit"])
@pytest.mark.parametrize("name", EMBEDDED)
def test_a_sample_recomputed_agrees(name: str, dataset_name: str, home) -> None:
    dataset = datasets.load(dataset_name)
    shipped = features.load(dataset, name)
    assert shipped.values.dtype == np.float16
    assert len(shipped.values) == len(dataset.images)
    assert shipped.image_ids.tolist() == list(range(len(dataset.images)))
    assert np.array_equal(shipped.class_ids, dataset.image_class_ids())
    backbone = load_backbone(name, on="cpu")
    assert dict(shipped.key) == key_of(dataset, backbone), "another backbone, preprocessing or set of images made them"
    sample = np.linspace(0, len(dataset.images) - 1, 8).astype(int)
    again = np.concatenate([part.values for part in compute(dataset, sample, backbone)])
    saved = np.asarray(shipped.values[sample], np.float32)
    assert np.abs(again - saved).max() < 0.02 * np.abs(again).max()
    cosine = (again * saved).sum(1) / np.linalg.norm(again, axis=1) / np.linalg.norm(saved, axis=1)
    assert cosine.min() > 0.9995


@pytest.mark.parametrize("dataset_name", ["demo", "fruit"])
def test_a_built_in_dataset_has_features_before_anything_is_written(dataset_name: str, home) -> None:
    assert features.available(datasets.load(dataset_name))[: len(EMBEDDED)] == list(EMBEDDED)
    listed = {row["backbone"]: row for row in features.list_features() if row["dataset"] == dataset_name}
    assert listed["efficientnet_lite0"]["origin"] == "shipped"
    assert listed["efficientnet_lite0"]["dims"] == 1280
    assert not home.exists()
