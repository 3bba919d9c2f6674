"""The demo's model and any other open_clip model load by the same path; tokenizers come with the package."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from fsviz import datasets
from fsviz.errors import BadInput, Missing, UnknownName
from fsviz.features import image_text
from fsviz.features.backbones import load_backbone
from fsviz.features.image_text import DEMO, DEMO_FOLDER, load_image_text


@pytest.fixture(scope="module")
def demo_clip() -> image_text.ImageText:
    return load_image_text(DEMO, on="cpu")


def test_the_demo_model_puts_images_and_texts_into_one_space(demo_clip) -> None:
    dataset = datasets.load("demo")
    images = [datasets.open_image(dataset, i) for i in range(5)]
    vectors = demo_clip.encode_images(images, batch=2)
    read = demo_clip.encode_texts(["a photo of a dog", "a photo of snow", "x" * 500], batch=2)
    assert vectors.shape == (5, demo_clip.dims)
    assert read.shape == (3, demo_clip.dims)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert np.allclose(np.linalg.norm(read, axis=1), 1, atol=1e-5)
    assert np.allclose(vectors, demo_clip.encode_images(images), atol=1e-5)
    assert np.allclose(read[:1], demo_clip.encode_texts(["a photo of a dog"]), atol=1e-5)
    assert demo_clip.encode_texts([]).shape == (0, demo_clip.dims)
    assert demo_clip.encode_images([]).shape == (0, demo_clip.dims)


def test_the_demo_model_knows_the_demo(demo_clip) -> None:
    """Zero-shot far above chance on demo images: concepts by their names."""
    dataset = datasets.load("demo")
    ids = np.random.default_rng(0).choice(len(dataset.images), 120, replace=False)
    vectors = demo_clip.encode_images([datasets.open_image(dataset, int(i)) for i in ids])
    names = dataset.classes["class_name"].tolist()
    read = demo_clip.encode_texts([f"a photo of a {name}" for name in names])
    right = (vectors @ read.T).argmax(1) == dataset.image_class_ids()[ids]
    assert right.mean() > 20 / len(names), "twenty times chance"


def test_the_image_tower_as_a_backbone_gives_the_same_features(demo_clip) -> None:
    dataset = datasets.load("demo")
    backbone = load_backbone(DEMO, on="cpu")
    assert (backbone.name, backbone.label, backbone.dims) == (DEMO, DEMO, demo_clip.dims)
    images = [datasets.open_image(dataset, i) for i in (3, 40)]
    values = backbone.features(np.stack([backbone.preprocessing.apply(image) for image in images]))
    unit = values / np.linalg.norm(values, axis=1, keepdims=True)
    assert np.allclose(unit, demo_clip.encode_images(images), atol=1e-5)


def test_any_architecture_loads_from_a_file_by_the_same_path(tmp_path: Path, demo_clip) -> None:
    weights = load_file(DEMO_FOLDER / "model.safetensors")
    torch.save({"epoch": 1, "state_dict": {f"module.{k}": v for k, v in weights.items()}}, tmp_path / "again.pt")
    again = load_image_text(f"open_clip:{DEMO}", tmp_path / "again.pt", on="cpu")
    assert again.checkpoint == demo_clip.checkpoint
    assert np.array_equal(again.encode_texts(["dog"]), demo_clip.encode_texts(["dog"]))


def test_threads_that_load_the_demo_model_first_all_get_it(demo_clip, monkeypatch: pytest.MonkeyPatch) -> None:
    from open_clip import factory

    shipped = factory._MODEL_CONFIG_PATHS[:1]
    monkeypatch.setattr(factory, "_MODEL_CONFIG_PATHS", list(shipped))
    monkeypatch.setattr(factory, "_MODEL_CONFIGS", {k: v for k, v in factory._MODEL_CONFIGS.items() if k != DEMO})
    together = Barrier(8)

    def load() -> str:
        together.wait()
        return load_image_text(DEMO, on="cpu").checkpoint

    with ThreadPoolExecutor(8) as pool:
        loads = [pool.submit(load) for _ in range(8)]
    assert [done.exception() for done in loads] == [None] * 8
    assert {done.result() for done in loads} == {demo_clip.checkpoint}
    assert len(factory._MODEL_CONFIG_PATHS) == len(shipped) + 1  # registered once


def test_preprocessing_is_open_clips_own(demo_clip) -> None:
    """Our Pillow and numpy path against open_clip's torchvision transform, on a picture that needs cropping."""
    from PIL import Image

    from fsviz.features.backbones import normalised

    open_clip = image_text._open_clip()
    recorded = open_clip.transform.PreprocessCfg(**demo_clip.model.visual.preprocess_cfg)
    transform = open_clip.transform.image_transform_v2(recorded, is_train=False)
    rng = np.random.default_rng(0)
    picture = Image.fromarray(rng.integers(0, 256, (12, 18, 3), dtype=np.uint8)).resize((180, 120))
    ours = normalised(demo_clip.preprocessing.apply(picture)[None], demo_clip.preprocessing, "cpu")[0]
    assert (ours - transform(picture)).abs().mean() < 0.02


def test_a_model_of_another_shape_is_one_sentence(tmp_path: Path) -> None:
    weights = load_file(DEMO_FOLDER / "model.safetensors")
    with pytest.raises(BadInput, match="does not match open_clip:RN50"):
        load_image_text("RN50", DEMO_FOLDER / "model.safetensors", on="cpu")
    key = "visual.conv1.weight"
    save_file({**weights, key: weights[key][:-1].clone()}, tmp_path / "cut.safetensors")
    with pytest.raises(BadInput, match="does not match demo_clip"):
        load_image_text(DEMO, tmp_path / "cut.safetensors", on="cpu")


def test_unknown_names_and_missing_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownName, match="ViT-B-32"):
        load_image_text("ViT-B-3", on="cpu")
    with pytest.raises(BadInput, match="Checkpoint not found"):
        load_image_text("RN50", tmp_path / "nowhere.pt", on="cpu")
    assert image_text.names()[0] == DEMO
    monkeypatch.setattr(image_text, "DEMO_FOLDER", tmp_path)
    monkeypatch.setattr(image_text._open_clip(), "list_models", lambda: ["ViT-B-32"])
    with pytest.raises(Missing, match="Restore data/demo"):
        load_image_text(DEMO, on="cpu")
