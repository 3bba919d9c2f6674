"""A folder of small real image files as a dataset, and a workspace of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from fsviz.records import Dataset


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "workspace"))
    return tmp_path / "workspace"


@pytest.fixture
def make_dataset(tmp_path: Path, home: Path) -> Callable[..., Dataset]:
    def make(n_images: int = 20, n_classes: int = 2, name: str = "toy") -> Dataset:
        rng = np.random.default_rng(0)
        root = tmp_path / f"images_{name}"
        paths = []
        for i in range(n_images):
            path = root / f"class{i % n_classes}" / f"{i}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            coarse = Image.fromarray(rng.integers(0, 255, (6, 8, 3), dtype=np.uint8))
            coarse.resize((120, 90)).save(path, quality=90)
            paths.append(str(path.relative_to(root)))
        images = pd.DataFrame({"class_id": np.arange(n_images) % n_classes, "path": paths})
        images.index.name = "image_id"
        counts = np.bincount(images["class_id"], minlength=n_classes)
        names = [f"class{i}" for i in range(n_classes)]
        classes = pd.DataFrame({"class_name": names, "split": "test", "n_images": counts, "node": ""})
        splits = {"test": np.arange(n_classes)}
        return Dataset(name, name.title(), classes, splits, images=images, origin="folder", root=root)

    return make
