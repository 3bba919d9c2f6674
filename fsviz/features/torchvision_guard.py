"""Lets torchvision, and so timm and open_clip, be imported with a CPU build of torch.

The torchvision wheel on PyPI is a CUDA build. With a torch without CUDA its compiled operators do not load, and then
the import stops at "operator torchvision::nms does not exist". Nothing here needs those operators, only the import:
declaring the two names is enough. Call `install()` before the first import of torchvision, timm or open_clip.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from threading import Lock
from typing import Any

_SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_DECLARING = Lock()
_library: Any = None  # the declarations vanish with this object, so it lives as long as the process


def install() -> bool:
    """Declares torchvision's missing operators; True when that was needed.

    Does nothing where torch has CUDA, where torchvision is absent, or where its own operators load (macOS, CPU wheel).
    """
    global _library
    import torch

    with _DECLARING:  # a second declaration is an error, so threads take turns
        if _library is not None:
            return True
        if torch.version.cuda is not None or _operators_load():
            return False
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(name + _SCHEMA)
        _library = library
        return True


def _operators_load() -> bool:
    """True when torchvision's compiled operators are there or can be loaded, or when there is no torchvision."""
    import torch

    if hasattr(torch.ops.torchvision, "nms"):
        return True
    spec = importlib.util.find_spec("torchvision")  # finds the folder without importing it
    if spec is None:
        return True
    for folder in spec.submodule_search_locations or ():
        for compiled in sorted([*Path(folder).glob("_C*.so"), *Path(folder).glob("_C*.pyd")]):
            try:
                torch.ops.load_library(str(compiled))
            except (ImportError, OSError):
                continue
            return hasattr(torch.ops.torchvision, "nms")
    return False
