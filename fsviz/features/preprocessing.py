"""Preprocessing of images for a backbone. Plain Pillow and NumPy: decoding processes never import torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from PIL import Image

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
_RESAMPLE = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}


@dataclass(frozen=True)
class Preprocessing:
    """Resize, cut out the centre, and (inside the backbone) subtract the mean and divide by the deviation.

    size           height and width that the backbone takes
    mean, std      per channel, for pixels in 0..1
    interpolation  nearest, bilinear, bicubic or lanczos
    resize         shorter side after resizing, before the centre is cut out; 0: both sides are stretched to `size`
    """

    size: tuple[int, int]
    mean: tuple[float, ...] = IMAGENET_MEAN
    std: tuple[float, ...] = IMAGENET_STD
    interpolation: str = "bicubic"
    resize: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, as they stand in a key."""
        plain = asdict(self)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in plain.items()}

    def apply(self, image: Image.Image) -> np.ndarray:
        """The pixels the backbone sees, (height, width, 3) uint8; mean and deviation come later, for a whole batch."""
        height, width = self.size
        method = _RESAMPLE.get(self.interpolation, Image.Resampling.BICUBIC)
        if image.mode != "RGB":
            image = image.convert("RGB")
        if not self.resize:
            return np.asarray(image.resize((width, height), method))
        # Only the part that stays is resampled: the picture of resize-then-crop, without the pixels that are cut off.
        scale = self.resize / min(image.width, image.height)
        kept_width, kept_height = min(width / scale, image.width), min(height / scale, image.height)
        left, top = (image.width - kept_width) / 2, (image.height - kept_height) / 2
        box = (left, top, left + kept_width, top + kept_height)
        return np.asarray(image.resize((width, height), method, box=box))
