"""Networks that were trained here: trained/NAME.safetensors in the workspace, with a description next to it.

A network NAME is the backbone trained:NAME, wherever a backbone is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fsviz import workspace
from fsviz.errors import BadInput, FsvizError, UnknownName
from fsviz.features import pixels
from fsviz.features.preprocessing import Preprocessing

if TYPE_CHECKING:
    import numpy as np
    from torch import nn

PREFIX = "trained:"
VERSION = 1


def names() -> list[str]:
    """The networks of the workspace, without prefix."""
    try:
        return [path.stem for path in workspace.entries("trained", "*.json")]
    except FsvizError:  # the catalog reports a workspace that cannot be read
        return []


def about(name: str) -> dict[str, Any]:
    """Description of a trained network: network, width, side, and its training."""
    available = names()
    if name not in available:
        raise UnknownName("trained network", name, available, "'fsviz train DATASET' makes one.")
    facts = workspace.read_json(_path(name, ".json"))
    if not isinstance(facts, dict) or not {"network", "width", "side"} <= set(facts):
        raise BadInput(f"{_path(name, '.json')} does not name its network. Train it again.")
    return facts


def save(name: str, weights: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> Path:
    """Keeps the weights of a backbone; one of the same name is replaced."""
    from safetensors.numpy import save as as_bytes

    workspace.check_name(name, "name of a trained network")
    workspace.folder("trained", create=True)
    with workspace.atomic_file(_path(name, ".safetensors")) as temporary:
        temporary.write_bytes(as_bytes(dict(weights)))
    workspace.write_json(_path(name, ".json"), {"version": VERSION, "name": name, **facts})
    return _path(name, ".safetensors")


def remove(name: str) -> None:
    workspace.remove([_path(name, suffix) for suffix in (".json", ".safetensors")])


def load(name: str) -> tuple[nn.Module, Preprocessing]:
    """The network with its weights, and how it wants images."""
    from fsviz.features import checkpoints
    from fsviz.features.fewshot_backbones import SIZED, sized

    facts = about(name)
    if facts["network"] not in SIZED:
        raise UnknownName("network", facts["network"], SIZED)
    network = sized(facts["network"], int(facts["width"]))
    path = _path(name, ".safetensors")
    checkpoints.fit(network, checkpoints.load_tensors(path), f"{PREFIX}{name}", path)
    return network, pixels.preprocessing(int(facts["side"]))


def _path(name: str, suffix: str) -> Path:
    return workspace.folder("trained") / f"{workspace.check_name(name, 'name of a trained network')}{suffix}"


def check_free(name: str) -> None:
    """Refuses a name that a network has already."""
    if workspace.check_name(name, "name of a trained network") in names():
        raise BadInput(f"There is a trained network {name!r} already. Choose another name.")


def free_name(name: str, run: str) -> str:
    """The name, numbered where another run's network has it; a run that ends twice finds its own again."""
    available = names()
    numbered = (name if i == 1 else f"{name}-{i}" for i in range(1, len(available) + 2))
    return next(n for n in numbered if n not in available or about(n).get("run") == run)
