"""The device that a backbone runs on."""

from __future__ import annotations

import os

from fsviz.errors import BadInput

DEVICES = ("auto", "cuda", "mps", "cpu")


def choose(device: str = "auto") -> str:
    """The device to use: with "auto" cuda, else mps, else cpu; one that is not there is refused."""
    import torch

    present = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if device == "auto":
        return next(name for name, is_present in present.items() if is_present)
    kind = device.split(":")[0]
    if kind not in present:
        raise BadInput(f"device must be one of {', '.join(DEVICES)}. Got {device!r}.")
    if not present[kind]:
        raise BadInput(f"Device {kind!r} not found on this machine. Use cpu or auto.")
    if kind == "cuda" and ":" in device:
        index = device.split(":", 1)[1]
        if not index.isdigit() or int(index) >= torch.cuda.device_count():
            raise BadInput(
                f"Device {device!r} not found ({torch.cuda.device_count()} CUDA devices, from cuda:0). Use cpu or auto."
            )
    return device


def describe(device: str = "auto") -> str:
    """The device in words, for a person: "NVIDIA ... (cuda)" or "CPU, 1 of 2 cores for the backbone"."""
    import torch

    device = choose(device)
    if device.startswith("cuda"):
        return f"{torch.cuda.get_device_name(torch.device(device))} ({device})"
    if device == "mps":
        return "Apple GPU (mps)"
    return f"CPU, {torch.get_num_threads()} of {cores()} cores for the backbone"


def cores() -> int:
    """Cores this process may use; on a cluster those of the machine that asked, so that all compute the same."""
    if setting := os.environ.get("FSVIZ_CORES", ""):
        return max(1, int(setting))
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1
