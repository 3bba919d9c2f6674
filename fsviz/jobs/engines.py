"""Machines that compute the chunks of a run: this one, or those of a Ray cluster.

The engine is set per run and never part of the spec, so the same spec has the same results on both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.util import find_spec

from fsviz.errors import BadInput, UnknownName
from fsviz.jobs.execute import ChunkRunner

LOCAL, RAY = "local", "ray"
_PORT = 6379  # where a Ray cluster listens unless told otherwise
_HOST = re.compile(r"[A-Za-z0-9_.\-]+(:[0-9]{1,5})?")


@dataclass(frozen=True)
class Engine:
    """name is "local" or "ray"; address is where the cluster listens, HOST:PORT or "auto" (one that this machine is
    part of)."""

    name: str = LOCAL
    address: str = ""

    def __str__(self) -> str:
        return "this machine" if self.name == LOCAL else f"the Ray cluster at {self.address}"


def available() -> list[str]:
    """The engines that can be chosen here."""
    return [LOCAL, RAY] if find_spec("ray") else [LOCAL]


def pick(name: str = "", address: str = "") -> Engine:
    """The engine of these names, checked; one with an address is Ray unless said otherwise."""
    name = name or (RAY if address else LOCAL)
    if name not in (LOCAL, RAY):
        raise UnknownName("engine", name, [LOCAL, RAY], "Choose one of them.")
    if name == LOCAL:
        if address:
            raise BadInput(f"The local engine has no address. Got {address!r}. Leave it out, or choose the engine ray.")
        return Engine()
    if not find_spec("ray"):
        raise BadInput("The engine ray needs Ray, which is not installed. Run: pip install -r requirements-cluster.txt")
    address = address or "auto"
    if not _HOST.fullmatch(address):
        raise BadInput(f"The address of a cluster is 'auto' or HOST:PORT. Got {address!r}.")
    return Engine(RAY, address if address == "auto" or ":" in address else f"{address}:{_PORT}")


def runner(engine: Engine, otherwise: ChunkRunner) -> ChunkRunner:
    """The runner of chunks on this engine; `otherwise` on this machine."""
    if engine.name == LOCAL:
        return otherwise
    from fsviz.jobs import cluster

    return cluster.runner(engine)
