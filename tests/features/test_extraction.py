"""Real image files through a small real backbone (conv64f with fixed random weights); kills are real kills."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import os
import signal
import struct
import subprocess
import sys
import time
import zlib
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

from fsviz import datasets, features, workspace
from fsviz.errors import BadInput, Cancelled, FsvizError, Missing, WorkspaceError
from fsviz.features import extraction, store
from fsviz.features.backbones import Backbone, load_backbone
from fsviz.features.decoding import Decoder
from fsviz.features.extraction import compute, extract

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def conv() -> Backbone:
    return load_backbone("conv64f", on="cpu")


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(store, "SHARD", 8)
    return 8


def one_by_one(dataset, backbone: Backbone) -> np.ndarray:
    """The plain way: open, preprocess, forward, one image at a time."""
    rows = []
    for image_id in range(len(dataset.images)):
        pixels = backbone.preprocessing.apply(datasets.open_image(dataset, image_id))
        rows.append(backbone.features(pixels[None])[0])
    return np.stack(rows)


@pytest.mark.parametrize("workers", [0, 2])
def test_features_are_those_of_the_plain_loop(make_dataset, conv, small_shards, workers: int) -> None:
    dataset = make_dataset(21)
    done = extract(dataset, conv, batch=3, workers=workers)
    assert (done.n_images, done.dims, done.skipped) == (21, 1600, ())
    assert done.images_per_second > 0
    assert np.allclose(done.features.values, one_by_one(dataset, conv), atol=2e-3, rtol=2e-3)
    assert done.features.image_ids.tolist() == list(range(21))
    assert done.features.class_ids.tolist() == dataset.images["class_id"].tolist()
    assert np.array_equal(features.load(dataset, "conv64f").values, done.features.values)
    assert not list(done.path.parent.glob(".*")), "only the finished features remain"


def test_the_default_backbone_extracts(make_dataset) -> None:
    dataset = make_dataset(3)
    done = features.extract(dataset, "efficientnet_lite0", device="cpu")
    assert done.features.values.shape == (3, 1280)
    assert done.features.backbone == "efficientnet_lite0"
    backbone = load_backbone(on="cpu")
    assert np.allclose(done.features.values, one_by_one(dataset, backbone), atol=5e-3, rtol=2e-3)


def test_random_weights_are_named_in_the_key(make_dataset, conv) -> None:
    done = extract(make_dataset(2), conv)
    assert "random weights" in done.warning
    assert "random weights" in done.features.key["warning"]
    assert done.features.backbone == "conv64f@random"


def test_the_same_features_are_not_made_twice(make_dataset, conv) -> None:
    dataset = make_dataset(4)
    first = extract(dataset, conv)
    before = (first.path / "values.npy").stat().st_mtime_ns
    second = extract(dataset, conv, progress=lambda *_: pytest.fail("nothing was left to do"))
    assert second.images_per_second is None
    assert (second.path / "values.npy").stat().st_mtime_ns == before
    third = extract(dataset, conv, again=True)
    assert third.images_per_second is not None
    assert np.array_equal(third.features.values, first.features.values)


def test_progress_counts_up_with_speed_and_time_left(make_dataset, conv, small_shards) -> None:
    reports = []
    extract(make_dataset(20), conv, batch=4, progress=lambda *event: reports.append(event))
    assert [done for done, _, _ in reports] == [4, 8, 12, 16, 20]
    assert {total for _, total, _ in reports} == {20}
    assert all("images/s" in message and message.endswith("left") for _, _, message in reports)


# Stopping and going on


def test_a_cancelled_extraction_goes_on_where_it_was(make_dataset, conv, small_shards) -> None:
    dataset = make_dataset(24)
    expected = one_by_one(dataset, conv)

    def stop_at_12(done: int, total: int, message: str) -> None:
        if done >= 12:
            raise Cancelled("enough")

    with pytest.raises(Cancelled):
        extract(dataset, conv, batch=4, progress=stop_at_12)
    assert features.available(dataset) == []
    reports = []
    done = extract(dataset, conv, batch=4, progress=lambda *event: reports.append(event[0]))
    assert reports == [12, 16, 20, 24], "the finished shard of 8 is kept"
    assert done.resumed == 8
    assert np.allclose(done.features.values, expected, atol=2e-3, rtol=2e-3)


def test_should_stop_is_asked_between_batches(make_dataset, conv, small_shards) -> None:
    answers = iter([False, False, True])
    with pytest.raises(Cancelled, match="finished parts are kept"):
        extract(make_dataset(24), conv, batch=4, should_stop=lambda: next(answers))


def test_a_killed_extraction_goes_on_and_leaves_no_process(tmp_path: Path) -> None:
    home = tmp_path / "workspace"
    script = tmp_path / "go.py"
    script.write_text(
        "import sys, time\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "if __name__ == '__main__':\n"
        "    import torch; torch.set_num_threads(1)\n"
        "    from fsviz import datasets\n"
        "    from fsviz.features import store\n"
        "    from fsviz.features.extraction import extract\n"
        "    store.SHARD = 16\n"
        "    def tell(done, total, message):\n"
        "        print(done, flush=True); time.sleep(float(sys.argv[2]) if done >= 24 else 0)\n"
        "    result = extract(datasets.load('mine'), 'conv64f', device='cpu', batch=8, workers=1, progress=tell)\n"
        "    print('resumed', result.resumed, result.n_images, flush=True)\n"
    )
    _save_folder_dataset(tmp_path / "images", 64, home)
    environment = {**os.environ, "FSVIZ_HOME": str(home)}
    command = [sys.executable, str(script), str(ROOT)]
    first = subprocess.Popen([*command, "600"], stdout=subprocess.PIPE, text=True, env=environment)
    count = 0
    for line in first.stdout:
        count = int(line)
        if count >= 24:
            break
    children = _children(first.pid)
    assert children, "images are decoded in processes of their own"
    first.send_signal(signal.SIGKILL)
    first.wait()
    first.stdout.close()
    deadline = time.monotonic() + 240
    while any(map(_alive, children)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(_alive, children)), "decoding processes outlived a killed parent"
    assert not list(home.glob("features/mine/conv64f*")), "nothing unfinished looks finished"
    second = subprocess.run([*command, "0"], capture_output=True, text=True, env=environment)
    assert second.returncode == 0, second.stderr
    resumed, n_images = map(int, second.stdout.split("resumed")[1].split())
    assert resumed in (16, 32, 48)
    assert n_images == 64
    assert [p.name[:8] for p in (home / "features" / "mine").iterdir()] == ["conv64f@"]


def test_a_script_without_a_main_guard_still_extracts(tmp_path: Path) -> None:
    home = tmp_path / "workspace"
    _save_folder_dataset(tmp_path / "images", 6, home)
    script = tmp_path / "careless.py"
    script.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "from fsviz import datasets, features\n"
        "done = features.extract(datasets.load('mine'), 'conv64f', device='cpu', workers=1)\n"
        "print('images', done.n_images)\n"
    )
    environment = {**os.environ, "FSVIZ_HOME": str(home), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=environment)
    assert done.stdout == "images 6\n", "the script ran once"
    assert done.stderr == ""


def test_without_processes_images_are_decoded_here(make_dataset, conv, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = make_dataset(6)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "no semaphores here")

    monkeypatch.setattr("fsviz.features.decoding.ProcessPoolExecutor", refuse)
    assert extract(dataset, conv, workers=2).n_images == 6
    monkeypatch.undo()


def test_a_decoding_process_that_dies_is_one_sentence(make_dataset, conv, small_shards, monkeypatch) -> None:
    dataset = make_dataset(24)
    monkeypatch.setattr("fsviz.features.decoding.AHEAD", 2)

    def kill_at_8(done: int, total: int, message: str) -> None:
        if done == 8:
            for child in multiprocessing.active_children():
                child.kill()
                child.join()

    with pytest.raises(WorkspaceError, match=r"was killed.*finished parts are kept"):
        extract(dataset, conv, batch=1, workers=1, progress=kill_at_8)
    assert extract(dataset, conv, batch=4).resumed >= 8


def test_a_process_that_dies_in_the_middle_of_an_answer_is_the_same_sentence(
    make_dataset, conv, small_shards, monkeypatch
) -> None:
    pools = []

    class Pool(ProcessPoolExecutor):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments)
            pools.append(self)

    monkeypatch.setattr("fsviz.features.decoding.ProcessPoolExecutor", Pool)
    monkeypatch.setattr("fsviz.features.decoding.AHEAD", 2)
    monkeypatch.setattr("fsviz.features.decoding.LOOK", 0.2)

    def kill_at_8(done: int, total: int, message: str) -> None:
        if done == 8:
            os.write(pools[0]._result_queue._writer.fileno(), struct.pack("!i", 1000) + b"half an answer")
            for child in multiprocessing.active_children():
                child.kill()

    with pytest.raises(WorkspaceError, match=r"was killed.*finished parts are kept"):
        extract(make_dataset(24), conv, batch=1, workers=1, progress=kill_at_8)


# Bad images


def _huge_png(path: Path, side: int = 20_000) -> None:
    """A valid PNG of side x side grey pixels in a few kilobytes per thousand rows."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    packer = zlib.compressobj(9)
    rows = b"".join(packer.compress(b"\0" * (side // 8 + 1)) for _ in range(side)) + packer.flush()
    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b""))


def test_bad_images_are_skipped_and_listed_with_the_reason(make_dataset, conv, small_shards) -> None:
    dataset = make_dataset(20)
    paths = [dataset.root / p for p in dataset.images["path"]]
    paths[1].write_bytes(b"")
    whole = paths[4].read_bytes()
    paths[4].write_bytes(whole[: len(whole) // 2])
    paths[7].write_text("this is not a picture")
    _huge_png(paths[9])
    assert paths[9].stat().st_size < 200_000
    paths[12].unlink()
    done = extract(dataset, conv, batch=4)
    assert [s["image_id"] for s in done.skipped] == [1, 4, 7, 9, 12]
    assert all(s["reason"].endswith(".") and s["path"] for s in done.skipped)
    assert "0 bytes" in done.skipped[0]["reason"]
    assert done.n_images == len(done.features.values) == 15
    good = [i for i in range(20) if i not in (1, 4, 7, 9, 12)]
    assert done.features.image_ids.tolist() == good
    assert done.features.class_ids.tolist() == [i % 2 for i in good]
    assert done.features.rows_of(np.array([0, 1, 2])).tolist() == [0, -1, 1]
    about = json.loads((done.path / "about.json").read_text())
    assert [s["image_id"] for s in about["skipped"]] == [1, 4, 7, 9, 12]


def test_a_shard_of_bad_images_only_is_no_trouble(make_dataset, conv, small_shards) -> None:
    dataset = make_dataset(20)
    for path in dataset.images["path"][8:16]:
        (dataset.root / path).write_bytes(b"")
    done = extract(dataset, conv, batch=8)
    assert (done.n_images, len(done.skipped)) == (12, 8)


def test_when_no_image_can_be_read_nothing_is_stored(make_dataset, conv, home: Path) -> None:
    dataset = make_dataset(5)
    for path in dataset.images["path"]:
        (dataset.root / path).write_bytes(b"")
    with pytest.raises(BadInput, match="None of the 5 images of Toy can be read"):
        extract(dataset, conv)
    assert [p for p in home.rglob("*") if p.is_file()] == []


def test_missing_images_and_folders_are_one_sentence(make_dataset, conv) -> None:
    dataset = make_dataset(3)
    with pytest.raises(Missing, match="has no images here"):
        extract(dataclasses.replace(dataset, images=None, origin="catalog"), conv)
    with pytest.raises(Missing, match="not found at"):
        extract(dataclasses.replace(dataset, root=dataset.root / "gone"), conv)
    with pytest.raises(Missing, match="has no images"):
        extract(dataclasses.replace(dataset, images=dataset.images.iloc[:0]), conv)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"batch": 0}, "batch must be"), ({"device": "tpu"}, "device must be"), ({"device": "cuda:99"}, "cuda")],
)
def test_bad_settings_are_one_sentence(make_dataset, options: dict, message: str) -> None:
    with pytest.raises(FsvizError, match=message):
        extract(make_dataset(2), "conv64f", **options)


def test_broken_weights_are_noticed(make_dataset, conv) -> None:
    broken = dataclasses.replace(conv, forward=lambda images: conv.forward(images) * float("nan"))
    with pytest.raises(BadInput, match="NaN or infinity"):
        extract(make_dataset(2), broken)


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or os.geteuid() != 0, reason="a small disk needs root on Linux"
)
def test_a_really_full_disk_keeps_what_was_finished(
    make_dataset, conv, small_shards, tmp_path: Path, monkeypatch
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("this machine does not let us mount a small disk")
    try:
        monkeypatch.setenv("FSVIZ_HOME", str(disk / "workspace"))
        dataset = make_dataset(40)
        with pytest.raises(WorkspaceError, match=r"The features need 512 KB; .* free in .* Run fsviz clean"):
            extract(dataset, conv, batch=8)
        assert not any(disk.rglob("*.npz"))  # found before the work began
        with monkeypatch.context() as blind, pytest.raises(WorkspaceError, match="No space left on device"):
            blind.setattr(workspace, "require_space", lambda *_: None)  # another program fills the disk meanwhile
            extract(dataset, conv, batch=8)
        remaining = sorted(p.name for p in disk.rglob("*") if p.is_file())
        assert remaining in (["00000.npz", "00001.npz"], ["00000.npz", "00001.npz", "00002.npz"]), (
            "finished shards only"
        )
        assert features.available(dataset) == []
        subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True)
        done = extract(dataset, conv, batch=8)
        assert (done.resumed, done.n_images) == (8 * len(remaining), 40)
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_some_images_can_be_computed_without_storing(make_dataset, conv, home: Path) -> None:
    dataset = make_dataset(9)
    with Decoder(dataset, 0) as decoder:
        parts = list(compute(dataset, [7, 2, 5], conv, decoder, batch=2))
    values = np.concatenate([p.values for p in parts])
    assert [i for p in parts for i in p.image_ids] == [7, 2, 5]
    assert np.allclose(values, one_by_one(dataset, conv)[[7, 2, 5]], atol=1e-4)
    assert not home.exists()


def test_workers_follow_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extraction, "cores", lambda: 8)
    assert extraction.default_workers(10, "cpu") == 0
    assert extraction.default_workers(10_000, "cpu") == 2
    assert extraction.default_workers(10_000, "cuda") == 7
    monkeypatch.setattr(extraction, "cores", lambda: 2)
    assert extraction.default_workers(10_000, "cpu") == 1


def _save_folder_dataset(root: Path, n: int, home: Path) -> None:
    import pandas as pd
    from PIL import Image

    from fsviz.datasets.saved import save_dataset
    from fsviz.records import Dataset

    root.mkdir()
    rng = np.random.default_rng(0)
    names = [f"{i}.png" for i in range(n)]
    for name in names:
        Image.fromarray(rng.integers(0, 255, (32, 32, 3), dtype=np.uint8)).save(root / name)
    classes = pd.DataFrame({"class_name": ["one"], "split": ["test"], "n_images": [n], "node": [""]})
    images = pd.DataFrame({"class_id": [0] * n, "path": names})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FSVIZ_HOME", str(home))
        save_dataset(
            Dataset("mine", "Mine", classes, {"test": np.array([0])}, images=images, origin="folder", root=root)
        )


def _children(pid: int) -> list[int]:
    results = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True)
    return [int(p) for p in results.stdout.split()]


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] != "Z"
