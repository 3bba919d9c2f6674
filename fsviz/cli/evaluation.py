from __future__ import annotations

import argparse


def register(commands: argparse._SubParsersAction) -> None:
    """Filled in by its room."""
