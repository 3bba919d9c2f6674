"""Extraction as a run: chunks in any order, stopped and resumed, through the jobs room and by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from fsviz import datasets, features, jobs
from fsviz.datasets.saved import save_dataset
from fsviz.errors import BadInput, Missing, UnknownName
from fsviz.features import store
from fsviz.features.extraction import extract
from fsviz.records import Dataset
from fsviz.studies import RUNNABLE, extraction


@pytest.fixture(autouse=True)
def quiet_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "workspace"))
    monkeypatch.setattr(store, "SHARD", 8)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def pictures(tmp_path: Path) -> Dataset:
    root = tmp_path / "pictures"
    root.mkdir()
    rng = np.random.default_rng(0)
    names = [f"{i}.png" for i in range(20)]
    for name in names:
        Image.fromarray(rng.integers(0, 255, (24, 24, 3), dtype=np.uint8)).save(root / name)
    (root / "9.png").write_text("not a picture")
    classes = pd.DataFrame({"class_name": ["a", "b"], "split": "test", "n_images": 10, "node": ""})
    images = pd.DataFrame({"class_id": [0, 1] * 10, "path": names})
    splits = {"test": np.arange(2)}
    return save_dataset(Dataset("pictures", "Pictures", classes, splits, images=images, origin="folder", root=root))


SPEC = {"study": "extraction", "dataset": "pictures", "backbone": "conv64f", "device": "cpu", "workers": 0}


def test_chunks_in_any_order_give_what_one_process_gives(pictures, tmp_path: Path) -> None:
    assert RUNNABLE["extraction"] == "fsviz.studies.extraction"
    spec = {**extraction.prepare(SPEC, tmp_path), "folder": str(tmp_path)}
    assert extraction.plan(spec) == 3
    chunks = {}
    for index in (2, 0):
        chunks[index] = extraction.run_chunk(spec, index)
    so_far = extraction.summarise(spec, list(chunks.values()))
    assert (so_far["n_images"], so_far["n_total"]) == (12, 20)
    assert features.available(pictures) == []
    chunks[1] = extraction.run_chunk(spec, 1)
    done = extraction.summarise(spec, [chunks[i] for i in range(3)])
    assert (done["n_images"], done["dims"], done["backbone"]) == (19, 1600, "conv64f@random")
    assert [s["image_id"] for s in done["skipped"]] == [9]
    assert done["images_per_second"] > 0
    by_run = np.array(features.load(pictures, "conv64f").values)
    again = extraction.run_chunk(spec, 1)  # finds it stored
    assert again["n_images"][0] == 7
    assert again["skipped"].tolist() == [9]
    at_once = extract(pictures, "conv64f", device="cpu", workers=0, again=True)
    assert np.array_equal(at_once.features.values, by_run)


def test_through_the_jobs_room(pictures, monkeypatch: pytest.MonkeyPatch) -> None:
    from fsviz.jobs import local
    from fsviz.jobs.execute import execute

    monkeypatch.setattr(local, "start", lambda *_, **__: None)  # carried out here, not by a worker
    run_id = jobs.submit(SPEC)
    execute(run_id)
    assert jobs.status(run_id).state == "finished"
    results = jobs.results(run_id)
    assert results["n_images"] == 19
    assert len(features.load(pictures, "conv64f").values) == 19


def test_a_spec_is_checked_before_it_runs(pictures, tmp_path: Path) -> None:
    with pytest.raises(UnknownName):
        extraction.prepare({**SPEC, "dataset": "picture"}, tmp_path)
    with pytest.raises(UnknownName):
        extraction.prepare({**SPEC, "backbone": "resnet-12"}, tmp_path)
    with pytest.raises(Missing):
        extraction.prepare({**SPEC, "dataset": "mini_imagenet"}, tmp_path)
    with pytest.raises(BadInput, match="needs 'dataset'"):
        extraction.prepare({"study": "extraction"}, tmp_path)


def test_a_run_notices_that_the_images_changed(pictures, tmp_path: Path) -> None:
    spec = {**extraction.prepare(SPEC, tmp_path), "folder": str(tmp_path / "run")}
    import dataclasses

    changed = dataclasses.replace(pictures, images=pictures.images.iloc[:12])
    save_dataset(changed, overwrite=True)
    with pytest.raises(BadInput, match="changed since this run was made"):
        extraction.run_chunk(spec, 0)


def test_what_a_page_offers(pictures) -> None:
    rows = {row["backbone"]: row for row in extraction.choices(pictures)}
    assert not rows["efficientnet_lite0"]["extracted"]
    assert rows["resnet12"]["warning"]
    assert rows["efficientnet_lite0"]["warning"] == ""
    assert "CPU" in extraction.device_in_words("cpu")
    assert datasets.load("pictures").has_pixels
