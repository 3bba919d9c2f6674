"""Image-text models through open_clip: one code path for the demo's small model, for CLIP by name, and for files.

`demo_clip` is a small model trained on the demo's captions only. It is a demo model, not CLIP.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from fsviz.errors import BadInput, Missing, UnknownName
from fsviz.features import checkpoints, device, hub, torchvision_guard
from fsviz.features.preprocessing import Preprocessing
from fsviz.shipped import DATA

if TYPE_CHECKING:
    from PIL.Image import Image

DEMO = "demo_clip"
DEMO_FOLDER = DATA / "demo" / "clip"
_REGISTERING = Lock()


@dataclass(frozen=True)
class ImageText:
    """A model that puts images and texts into one space of `dims` dimensions."""

    name: str
    dims: int
    preprocessing: Preprocessing
    checkpoint: str
    device: str
    model: Any
    tokenizer: Any

    def encode_images(self, images: Sequence[Image], batch: int = 32) -> np.ndarray:
        """Unit-length features (n, dims) float32 of RGB images."""
        import torch

        from fsviz.features.backbones import normalised

        rows = []
        for start in range(0, len(images), batch):
            pixels = np.stack([self.preprocessing.apply(image) for image in images[start : start + batch]])
            with torch.inference_mode():
                features = self.model.encode_image(normalised(pixels, self.preprocessing, self.device), normalize=True)
            rows.append(features.float().cpu().numpy())
        return np.concatenate(rows) if rows else np.zeros((0, self.dims), np.float32)

    def encode_texts(self, texts: Sequence[str], batch: int = 128) -> np.ndarray:
        """Unit-length features (n, dims) float32 of texts; what exceeds the model's context length is cut off."""
        import torch

        rows = []
        for start in range(0, len(texts), batch):
            tokens = self.tokenizer(list(texts[start : start + batch])).to(self.device)
            with torch.inference_mode():
                rows.append(self.model.encode_text(tokens, normalize=True).float().cpu().numpy())
        return np.concatenate(rows) if rows else np.zeros((0, self.dims), np.float32)


def names() -> list[str]:
    """The demo's model and every architecture that open_clip knows."""
    return [DEMO, *(name for name in _open_clip().list_models() if name != DEMO)]


def load_image_text(name: str = DEMO, checkpoint: str | Path | None = None, on: str = "auto") -> ImageText:
    """An image-text model by name: demo_clip, ARCH, ARCH/PRETRAINED, with or without "open_clip:" before it.

    With `checkpoint` the weights come from that file; otherwise from open_clip's hub (demo_clip ships its own).
    """
    model, canonical = open_clip_model(name, checkpoint)
    on = device.choose(on)
    model = model.to(on)
    architecture = canonical.removeprefix("open_clip:").split("/")[0]
    with hub.downloading(f"the tokenizer of {canonical}"):
        tokenizer = _open_clip().get_tokenizer(architecture)
    preprocessing = preprocessing_of(model)
    texts = tokenizer(["a"]).to(on)
    import torch

    with torch.inference_mode():
        dims = int(model.encode_text(texts).shape[-1])
    return ImageText(canonical, dims, preprocessing, checkpoints.digest(model.state_dict()), on, model, tokenizer)


def open_clip_model(name: str, checkpoint: str | Path | None = None) -> tuple[Any, str]:
    """The open_clip model on the CPU, in evaluation mode, and its full name."""
    open_clip = _open_clip()
    architecture, _, tag = name.removeprefix("open_clip:").partition("/")
    if architecture == DEMO:
        _register_demo()
        checkpoint = checkpoint or DEMO_FOLDER / "model.safetensors"
        canonical = DEMO
    elif architecture not in open_clip.list_models():
        raise UnknownName("open_clip model", architecture, open_clip.list_models())
    else:
        canonical = f"open_clip:{architecture}"
    if checkpoint is not None:
        with hub.downloading(canonical):
            model = open_clip.create_model(architecture, load_weights=False, pretrained_text=False)
        _fit(model, canonical, Path(checkpoint).expanduser())
    else:
        tags = open_clip.list_pretrained_tags_by_model(architecture)
        if not tags:
            raise Missing(f"open_clip has no weights for {architecture}. Give a file with --checkpoint FILE.")
        if tag and tag not in tags:
            raise UnknownName(f"set of weights for {architecture}", tag, tags)
        tag = tag or ("openai" if "openai" in tags else tags[0])
        canonical = f"{canonical}/{tag}"
        quick = bool(open_clip.get_pretrained_cfg(architecture, tag).get("quick_gelu", False))
        with hub.downloading(canonical):
            model = open_clip.create_model(architecture, pretrained=tag, force_quick_gelu=quick)
    if tag and "/" not in canonical and canonical != DEMO:
        canonical = f"{canonical}/{tag}"
    return model.eval().requires_grad_(False), canonical


def preprocessing_of(model: Any) -> Preprocessing:
    """The model's own preprocessing, as open_clip records it."""
    recorded = model.visual.preprocess_cfg
    size = recorded["size"]
    height, width = (size, size) if isinstance(size, int) else tuple(size)
    squash = recorded.get("resize_mode", "shortest") == "squash"
    return Preprocessing(
        (int(height), int(width)),
        tuple(float(v) for v in recorded["mean"]),
        tuple(float(v) for v in recorded["std"]),
        str(recorded.get("interpolation", "bicubic")),
        0 if squash else int(max(height, width)),
    )


def _fit(model: Any, name: str, path: Path) -> None:
    """Weights of a file into an open_clip model; conversions of older formats are open_clip's own."""
    if path.suffix not in (".npz", ".npy"):
        checkpoints.load_tensors(path)  # refuses what is not plain weights, in our words
    try:
        _open_clip().load_checkpoint(model, str(path), strict=True, weights_only=True)
    except Exception as error:  # whatever the shapes and names of another architecture lead to
        raise BadInput(
            f"Checkpoint {path} does not match {name}: its weights have other names or shapes. "
            "Choose the backbone it was trained with, or another checkpoint."
        ) from error


@lru_cache(maxsize=1)
def _open_clip() -> Any:
    torchvision_guard.install()
    import open_clip

    return open_clip


def _register_demo() -> None:
    """Makes the shipped configuration known to open_clip under the name demo_clip, once per process.

    open_clip reads every file of every registration again at the next one, so threads take turns.
    """
    open_clip = _open_clip()
    with _REGISTERING:
        if DEMO not in open_clip.list_models():
            _add_demo(open_clip)


def _add_demo(open_clip: Any) -> None:
    config = DEMO_FOLDER / "model_config.json"
    if not config.is_file() or not (DEMO_FOLDER / "model.safetensors").is_file():
        raise Missing(f"The demo's image-text model is not in {DEMO_FOLDER}. Restore data/demo from the repository.")
    described = json.loads(config.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        renamed = Path(folder) / f"{DEMO}.json"  # open_clip names a model by its file
        renamed.write_text(json.dumps(described.get("model_cfg", described)), encoding="utf-8")
        open_clip.add_model_config(renamed)
