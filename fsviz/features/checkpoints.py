"""Reading weights from a file, safely, and fitting them to a network.

Only tensors are read: safetensors, or torch files with weights_only=True. A torch file that needs more (a pickled
network, code) is refused, because opening it could run whatever its maker put in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fsviz.errors import BadInput

if TYPE_CHECKING:
    from torch import Tensor, nn

_WRAPPERS = ("state_dict", "model_state_dict", "params", "model", "network", "net", "backbone", "encoder", "model_sd")
_PREFIXES = ("module.", "model.", "encoder.", "backbone.", "feature_extractor.", "feature.", "features.", "net.")
_MAX_UNWRAPPED = 4


def load_tensors(path: str | Path) -> dict[str, Tensor]:
    """The named tensors of a weights file (.safetensors, .pt, .pth, .bin, .ckpt, .tar)."""
    path = Path(path).expanduser()
    if not path.is_file():
        raise BadInput(f"Checkpoint not found: {path}. Give the path of a .safetensors, .pt or .pth file.")
    if path.stat().st_size == 0:
        raise BadInput(f"The checkpoint {path} is empty (0 bytes). Download or save it again.")
    if path.suffix == ".safetensors":
        return _read_safetensors(path)
    return _unwrapped(_read_torch(path), path)


def fit(network: nn.Module, tensors: Mapping[str, Tensor], name: str, path: str | Path) -> None:
    """Loads tensors into a network: common prefixes go, a classifier on top is excluded, all else must match.

    Every weight of the network must be in the file with its shape, otherwise the file is of another architecture.
    """
    shapes = {key: tuple(value.shape) for key, value in network.state_dict().items()}
    counters = {key for key in shapes if key.endswith("num_batches_tracked")}  # unused when frozen
    best = max(
        _renamings(tensors),
        key=lambda candidate: sum(tuple(candidate[k].shape) == shape for k, shape in shapes.items() if k in candidate),
    )
    absent = [key for key in shapes if key not in best and key not in counters]
    misshapen = [key for key, shape in shapes.items() if key in best and tuple(best[key].shape) != shape]
    deeper = [key for key in best if key not in shapes and best[key].ndim == 4]  # convolutions the network lacks
    if absent or misshapen or deeper:
        if misshapen:
            key = misshapen[0]
            why = f"{key} has shape {tuple(best[key].shape)} instead of {shapes[key]}"
        elif absent:
            why = f"{len(absent)} of {len(shapes) - len(counters)} weights are not in it, among them {absent[0]}"
        else:
            why = f"it has layers that {name} does not have, among them {deeper[0]}"
        raise BadInput(
            f"Checkpoint {path} does not match {name}: {why}. "
            "Choose the backbone it was trained with, or another checkpoint."
        )
    network.load_state_dict({key: best[key] for key in shapes if key in best}, strict=False)


def digest(tensors: Mapping[str, Tensor]) -> str:
    """sha256 of the weights, by name: the same for .pt and .safetensors files of the same weights."""
    import torch

    hasher = hashlib.sha256()
    for key in sorted(tensors):
        if key.endswith("num_batches_tracked"):
            continue
        value = tensors[key].detach().cpu().contiguous()
        hasher.update(f"{key}:{value.dtype}:{tuple(value.shape)}".encode())
        hasher.update(value.reshape(-1).view(torch.uint8).numpy().data)
    return hasher.hexdigest()


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise BadInput(f"{path} is not a readable safetensors file ({error}). Download or save it again.") from error


def _read_torch(path: Path) -> Any:
    import pickle

    import torch

    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        if _looks_like_torch(path):
            raise BadInput(
                f"Refused: {path} contains pickled Python code, not only weights. If you trust it, load it yourself "
                "and save its state_dict() as safetensors (safetensors.torch.save_file)."
            ) from error
        raise BadInput(
            f"{path} is not a torch checkpoint. Give a .safetensors file, or a .pt or .pth file with a state_dict."
        ) from error
    except Exception as error:  # torch's readers raise whatever broken bytes lead them to
        raise BadInput(f"{path} is broken or is not a torch checkpoint. Download or save it again.") from error


def _looks_like_torch(path: Path) -> bool:
    """A zip archive, or a pickle (protocol 2 and later start with 0x80)."""
    with path.open("rb") as file:
        start = file.read(4)
    return start[:2] == b"PK" or start[:1] == b"\x80"


def _unwrapped(value: Any, path: Path) -> dict[str, Tensor]:
    """The dictionary of tensors inside a training checkpoint ({"state_dict": {...}, "epoch": 3, ...})."""
    import torch

    for _ in range(_MAX_UNWRAPPED):
        if not isinstance(value, Mapping):
            break
        tensors = {str(k): v for k, v in value.items() if isinstance(v, torch.Tensor)}
        if tensors:
            return tensors
        inner = next((value[k] for k in _WRAPPERS if isinstance(value.get(k), Mapping)), None)
        if inner is None:
            break
        value = inner
    raise BadInput(f"{path} holds no named weights. Save the network's state_dict() and give that file.")


def _renamings(tensors: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
    """The tensors as named, and with each run of common prefixes taken off those that carry it."""
    renamed = dict(tensors)
    every = [renamed]
    for _ in range(_MAX_UNWRAPPED):
        following = []
        for prefix in _PREFIXES:
            if any(key.startswith(prefix) for key in every[-1]):
                following.append({k.removeprefix(prefix): v for k, v in every[-1].items() if k.startswith(prefix)})
        if not following:
            break
        every.append(max(following, key=len))
    return every
