"""Tells the package's builder what it depends on: the lines of the requirements files, and nothing a second time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

ROOT = Path(__file__).resolve().parent
EXTRAS = {"dev": "requirements-dev.txt", "cluster": "requirements-cluster.txt"}


class Requirements(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        metadata["dependencies"] = lines_of("requirements.txt")
        metadata["optional-dependencies"] = {extra: lines_of(name) for extra, name in EXTRAS.items()}


def lines_of(name: str) -> list[str]:
    """The requirements in a file; comments and lines for pip alone (-r other.txt) are left out."""
    lines = (line.strip() for line in (ROOT / name).read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith(("#", "-"))]
