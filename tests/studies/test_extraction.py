"""Extraction as a run: chunks in any order, stopped and resumed, through the jobs room and by hand."""

from __future__ import annotations

from dataclasses import replace
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
from fsviz.studies import extraction


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


def test_a_chunk_follows_from_spec_and_index_alone_and_writes_nothing(pictures, tmp_path: Path) -> None:
    study = extraction.STUDY
    spec = {**study.prepare(study.check(SPEC), tmp_path), "folder": str(tmp_path)}
    assert study.n_chunks(spec) == 3
    before = sorted(Path(tmp_path).rglob("*"))
    chunks = {index: study.chunk(spec, index) for index in (2, 0, 1)}
    assert sorted(Path(tmp_path).rglob("*")) == before
    for index, chunk in chunks.items():
        again = study.chunk(spec, index)
        assert all(np.array_equal(again[name], chunk[name]) for name in chunk)
    so_far = study.summarise(study.collect(spec, [chunks[0], chunks[2]]))
    assert (so_far["n_images"], so_far["n_total"]) == (12, 20)
    assert features.available(pictures) == []
    result = study.collect(spec, [chunks[i] for i in range(3)])
    done = {**study.summarise(result), **study.finish(spec, result)}
    assert (done["n_images"], done["dims"], done["backbone"]) == (19, 1600, "conv64f@random")
    assert [s["image_id"] for s in done["skipped"]] == [9]
    by_run = features.load(pictures, "conv64f")
    values, image_ids = np.array(by_run.values), by_run.image_ids
    at_once = extract(pictures, "conv64f", device="cpu", workers=0, again=True)
    assert np.array_equal(at_once.features.values, values) and np.array_equal(at_once.features.image_ids, image_ids)


def test_through_the_jobs_room(pictures, monkeypatch: pytest.MonkeyPatch) -> None:
    run = jobs.run_in_foreground(SPEC)
    assert run.state == "finished" and run.n_done == 3
    assert jobs.results(run.id)["n_images"] == 19
    assert len(features.load(pictures, "conv64f").values) == 19
    assert not (jobs.folder(run.id) / "chunks").exists()  # the features are not kept twice
    assert jobs.resume(run.id).state == "finished"
    with pytest.raises(BadInput, match=r"there already.*extract pictures --backbone conv64f --again"):
        jobs.submit(SPEC)


def test_a_stopped_extraction_goes_on_and_stores_what_an_unstopped_one_does(pictures, monkeypatch) -> None:
    computed = []

    def failing(spec, part, start, stop):
        computed.append(start // store.SHARD)
        if computed == [0, 1]:
            raise KeyboardInterrupt
        return extraction.run_chunk(spec, part, start, stop)

    monkeypatch.setattr(extraction, "STUDY", replace(extraction.STUDY, run_chunk=failing))
    with pytest.raises(KeyboardInterrupt):
        jobs.run_in_foreground(SPEC)
    (run,) = jobs.list_runs()
    assert (run.state, run.n_done) == ("interrupted", 1) and features.available(pictures) == []
    assert jobs.resume_here(run.id).state == "finished" and computed == [0, 1, 1, 2]
    values = np.array(features.load(pictures, "conv64f").values)
    assert np.array_equal(extract(pictures, "conv64f", device="cpu", workers=0, again=True).features.values, values)


def test_damaged_features_are_made_again_by_a_run(pictures) -> None:
    jobs.run_in_foreground(SPEC)
    values = features.load(pictures, "conv64f").values
    content = np.array(values)
    Path(values.filename).write_bytes(b"")
    assert jobs.run_in_foreground(SPEC).state == "finished"
    assert np.array_equal(features.load(pictures, "conv64f").values, content)


def test_a_spec_is_checked_before_it_runs(pictures, tmp_path: Path) -> None:
    with pytest.raises(UnknownName):
        jobs.submit({**SPEC, "dataset": "picture"})
    with pytest.raises(UnknownName):
        jobs.submit({**SPEC, "backbone": "resnet-12"})
    with pytest.raises(Missing):
        jobs.submit({**SPEC, "dataset": "mini_imagenet"})
    with pytest.raises(BadInput, match='An extraction needs "dataset"'):
        jobs.submit({"study": "extraction"})
    with pytest.raises(UnknownName, match="chekpoint"):
        jobs.submit({**SPEC, "chekpoint": "weights.pt"})
    assert jobs.list_runs() == []


def test_a_run_notices_that_the_images_changed(pictures, tmp_path: Path) -> None:
    study = extraction.STUDY
    spec = {**study.prepare(study.check(SPEC), tmp_path), "folder": str(tmp_path / "run")}
    changed = replace(pictures, images=pictures.images.iloc[:12])
    save_dataset(changed, overwrite=True)
    with pytest.raises(BadInput, match="changed since this run was made"):
        study.chunk(spec, 0)


def test_what_a_page_offers(pictures) -> None:
    rows = {row["backbone"]: row for row in extraction.choices(pictures)}
    assert not rows["efficientnet_lite0"]["extracted"]
    assert rows["resnet12"]["warning"]
    assert rows["efficientnet_lite0"]["warning"] == ""
    assert "CPU" in extraction.describe_device("cpu")
    assert datasets.load("pictures").has_pixels
