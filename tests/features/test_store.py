from __future__ import annotations

import dataclasses
import json
import multiprocessing
import shutil
from pathlib import Path

import numpy as np
import pytest

from fsviz import features
from fsviz.errors import BadInput, Missing, WorkspaceError
from fsviz.features import store
from fsviz.records import Dataset


def key_for(dataset: Dataset, backbone: str = "net", **more: object) -> dict:
    return {
        "version": 1,
        "dataset": dataset.name,
        "fingerprint": store.fingerprint(dataset),
        "backbone": backbone,
        **more,
    }


def save(dataset: Dataset, label: str = "net", offset: float = 0.0, **more: object) -> Path:
    n = len(dataset.images)
    values = np.arange(n * 4, dtype=np.float32).reshape(n, 4) + offset
    return store.save(key_for(dataset, **more), label, values, np.arange(n), dataset.image_class_ids())


def test_what_is_saved_is_loaded_memory_mapped(make_dataset) -> None:
    dataset = make_dataset(6)
    path = save(dataset)
    loaded = features.load(dataset, "net")
    assert isinstance(loaded.values, np.memmap)
    assert np.array_equal(loaded.values, np.arange(24).reshape(6, 4))
    assert loaded.image_ids.tolist() == list(range(6))
    assert loaded.class_ids.tolist() == [0, 1, 0, 1, 0, 1]
    assert loaded.key["fingerprint"] == store.fingerprint(dataset)
    assert features.available(dataset) == ["net"]
    row = next(r for r in features.list_features() if r["dataset"] == "toy")
    assert (row["n_images"], row["dims"], row["origin"], row["path"]) == (6, 4, "workspace", str(path))


def test_large_numbers_stay_in_single_precision(make_dataset) -> None:
    dataset = make_dataset(2)
    values = np.array([[1e6, 1.0], [2.0, 3.0]], np.float32)
    store.save(key_for(dataset), "net", values, np.arange(2), dataset.image_class_ids())
    loaded = features.load(dataset, "net")
    assert loaded.values.dtype == np.float32
    assert np.array_equal(loaded.values, values)


@pytest.mark.parametrize(
    ("scale", "shift", "dtype"),
    [
        *((1, 0, np.float16), (1e-3, 0, np.float16), (1e3, 0, np.float16), (1, 4, np.float16)),
        *((1e-6, 0, np.float32), (1e5, 0, np.float32), (1, 1000, np.float32)),
    ],
)
def test_float16_is_used_where_it_keeps_what_tells_images_apart(
    make_dataset, scale: float, shift: float, dtype: type
) -> None:
    dataset = make_dataset(200)
    plain = np.random.default_rng(0).normal(size=(200, 16))
    values = (plain * scale + shift).astype(np.float32)
    store.save(key_for(dataset), "net", values, np.arange(200), dataset.image_class_ids())
    loaded = features.load(dataset, "net")
    assert loaded.values.dtype == dtype
    note = next(row["precision"] for row in features.list_features() if row["dataset"] == "toy")
    assert note.startswith("kept in float32") == (dtype == np.float32)
    # nearest neighbours stay, whatever was chosen
    stored = np.asarray(loaded.values, np.float64)
    for table in (values.astype(np.float64), stored):
        table -= table.mean(0)
    assert (_nearest(stored) == _nearest(values.astype(np.float64))).mean() > 0.98


def _nearest(values: np.ndarray) -> np.ndarray:
    apart = ((values[:, None] - values) ** 2).sum(-1)
    np.fill_diagonal(apart, np.inf)
    return apart.argmin(1)


def shard_of(values: np.ndarray, image_ids: np.ndarray, skipped: tuple = ()) -> store.Shard:
    return store.Shard(values, image_ids, skipped, np.full((len(values), 2), 0.5, np.float32))


def test_shards_are_looked_at_together(make_dataset) -> None:
    """One of three shards needs float32."""
    dataset = make_dataset(3 * store.SHARD)
    values = np.random.default_rng(0).normal(size=(3 * store.SHARD, 8)).astype(np.float32)
    values[store.SHARD : 2 * store.SHARD] += 1000
    ids = np.arange(len(values))
    shards = [shard_of(values[part], ids[part]) for part in np.split(ids, 3)]
    store.join(key_for(dataset), "net", dataset, lambda: iter(shards), {})
    assert np.array_equal(features.load(dataset, "net").values, values)


def test_missing_features_say_the_command(make_dataset) -> None:
    dataset = make_dataset(4)
    with pytest.raises(Missing, match="fsviz extract toy --backbone resnet12"):
        features.load(dataset, "resnet12")
    save(dataset)
    with pytest.raises(Missing, match=r"Available: net \(--backbone on the command line\)\. Extract"):
        features.load(dataset, "resnet12")
    bare = dataclasses.replace(dataset, images=None, origin="catalog", name="other")
    with pytest.raises(Missing, match="no images to extract them from"):
        features.load(bare, "net")


def test_features_of_changed_images_are_not_used(make_dataset) -> None:
    dataset = make_dataset(4)
    save(dataset)
    images = dataset.images.assign(path=["other.jpg", *dataset.images["path"][1:]])
    changed = dataclasses.replace(dataset, images=images)
    assert features.available(changed) == []
    with pytest.raises(Missing, match="older than its images"):
        features.load(changed, "net")
    with pytest.raises(Missing, match=r"older than its images.*--backbone net --again"):
        features.required(changed)
    assert features.required(dataset) == ["net"]
    with pytest.raises(Missing, match="no images to extract them from"):
        features.required(dataclasses.replace(dataset, images=None, origin="catalog", name="other"))


def test_the_fingerprint_follows_images_and_nothing_else(make_dataset) -> None:
    dataset = make_dataset(4)
    print_ = store.fingerprint(dataset)
    assert store.fingerprint(dataclasses.replace(dataset, title="New", splits={})) == print_
    with_attribute = dataclasses.replace(dataset, images=dataset.images.assign(blur=1.5))
    assert store.fingerprint(with_attribute) == print_
    reclassed = dataclasses.replace(dataset, images=dataset.images.assign(class_id=0))
    assert store.fingerprint(reclassed) != print_
    shorter = dataclasses.replace(dataset, images=dataset.images.iloc[:3])
    assert store.fingerprint(shorter) != print_
    sampled = dataclasses.replace(dataset, origin="demo")
    drawn_blurred = dataclasses.replace(with_attribute, origin="demo")
    assert store.fingerprint(sampled) != store.fingerprint(drawn_blurred)


def test_a_plain_name_finds_a_checkpoint_and_a_full_label_the_exact_one(make_dataset) -> None:
    dataset = make_dataset(2)
    save(dataset, "resnet12@aaaaaaaa", 0, checkpoint="a")
    save(dataset, "resnet12@bbbbbbbb", 10, checkpoint="b")
    save(dataset, "open_clip:ViT-B-32/openai", 20, checkpoint="c")
    assert features.load(dataset, "resnet12@aaaaaaaa").values[0, 0] == 0
    assert features.load(dataset, "resnet12").values[0, 0] == 10  # the newest
    assert features.load(dataset, "ViT-B-32").values[0, 0] == 20
    assert features.load(dataset, "open_clip:ViT-B-32/openai").values[0, 0] == 20
    with pytest.raises(Missing):
        features.load(dataset, "resnet1")
    save(dataset, "resnet12", 30)
    assert features.load(dataset, "resnet12").values[0, 0] == 30  # its own name comes first


def test_a_damaged_store_says_so_and_does_not_hide_the_rest(make_dataset) -> None:
    dataset = make_dataset(4)
    path, second = save(dataset), save(dataset, "net2")
    (path / "values.npy").write_bytes(b"\x93NUMPY cut")
    with pytest.raises(WorkspaceError, match=r"Extract them again with 'fsviz extract .* --backbone net --again'"):
        features.load(dataset, "net")
    assert [row["damaged"] for row in features.list_features() if row["dataset"] == dataset.name] == [True, False]
    (path / "about.json").write_text("{ not json")
    assert features.available(dataset) == ["net2"]
    (second / "rows.parquet").unlink()
    with pytest.raises(WorkspaceError, match="are damaged"):
        features.load(dataset, "net2")


def test_shards_come_back_and_a_cut_one_counts_as_missing(make_dataset) -> None:
    dataset = make_dataset(3)
    key = key_for(dataset)
    shard = shard_of(np.ones((2, 4), np.float32), np.array([0, 2]), ((1, "It is 'broken', ünïcode."),))
    store.save_shard(key, "net", 0, shard)
    back = store.load_shard(key, "net", 0)
    assert np.array_equal(back.values, shard.values) and np.array_equal(back.attributes, shard.attributes)
    assert back.skipped == shard.skipped
    assert store.shards_done(key, "net") == {0}
    assert features.available(dataset) == []  # unfinished work is not features
    assert store.load_shard(key, "net", 1) is None
    path = next((store.folder_of(key, "net").parent).glob(".partial-*/00000.npz"))
    path.write_bytes(path.read_bytes()[:100])
    assert store.load_shard(key, "net", 0) is None


def test_a_full_disk_leaves_nothing_half_written(make_dataset, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = make_dataset(4)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez", full)
        with pytest.raises(WorkspaceError, match="No space left on device"):
            store.save_shard(key_for(dataset), "net", 0, shard_of(np.ones((4, 4)), np.arange(4)))
    with monkeypatch.context() as patch:
        patch.setattr(np.lib.format, "write_array_header_1_0", full)
        with pytest.raises(WorkspaceError, match="Free some space"):
            save(dataset)
    assert [p for p in home.rglob("*") if p.is_file()] == []
    assert features.available(dataset) == []


def _hold(key: dict, home: str, ready, release) -> None:
    import os

    os.environ["FSVIZ_HOME"] = home
    with store.locked(key, "net"):
        ready.set()
        release.wait(20)


def test_two_processes_do_not_extract_the_same(make_dataset, home: Path) -> None:
    pytest.importorskip("fcntl")
    dataset = make_dataset(2)
    key = key_for(dataset)
    context = multiprocessing.get_context("spawn")
    ready, release = context.Event(), context.Event()
    second = context.Process(target=_hold, args=(key, str(home), ready, release))
    second.start()
    try:
        assert ready.wait(20)
        with pytest.raises(BadInput, match="Another process"), store.locked(key, "net"):
            pass
    finally:
        release.set()
        second.join(20)
    with store.locked(key, "net"):
        pass
    assert not list(home.rglob(".lock*"))


def test_shipped_features_come_first_and_only_for_the_images_they_were_made_of(
    make_dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = dataclasses.replace(make_dataset(4), origin="demo")
    shipped = tmp_path / "shipped" / "demo" / "features"
    shipped.mkdir(parents=True)
    monkeypatch.setattr(store, "SHIPPED", tmp_path / "shipped")
    np.save(shipped / "net.npy", np.full((4, 2), 5, np.float16))
    (shipped / "net.json").write_text(json.dumps({"key": key_for(dataset), "n_images": 4, "dims": 2}))
    save(dataset)
    assert features.load(dataset, "net").values[0, 0] == 5
    assert features.available(dataset) == ["net"]
    assert any(r["origin"] == "shipped" for r in features.list_features())
    redrawn = dataclasses.replace(dataset, images=dataset.images.assign(scale=2.0))
    assert features.available(redrawn) == []
    shutil.rmtree(shipped)
    assert features.load(dataset, "net").values[0, 0] == 0


def test_other_files_of_the_same_names_are_another_dataset(tmp_path, monkeypatch) -> None:
    """Replacing a dataset by another folder whose files are named alike must not bring the old features back."""
    from PIL import Image

    from fsviz.datasets.image_folders import inspect, register
    from fsviz.datasets.saved import has_features, remove_dataset

    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "home"))
    prints = []
    for side in (8, 32):
        root = tmp_path / f"images{side}"
        for name in ("ant", "bee"):
            (root / name).mkdir(parents=True)
            for i in range(3):
                Image.effect_noise((side, side), 40 + i).save(root / name / f"{i}.png")
        dataset = register("pets", inspect(root), overwrite=True)
        prints.append(store.fingerprint(dataset))
    assert prints[0] != prints[1]

    (tmp_path / "home" / "features" / "pets" / "made").mkdir(parents=True)
    assert has_features("pets")
    remove_dataset("pets")
    assert not has_features("pets")
