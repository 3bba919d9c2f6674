"""The flags of every command that makes a run: which machines compute it."""

from __future__ import annotations

import argparse
from typing import Any


def add_engine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--engine",
        choices=("local", "ray"),
        default=None,
        help="Machines to compute on: this one (local) or a Ray cluster (default: local).",
    )
    parser.add_argument(
        "--address",
        default="",
        metavar="HOST:PORT",
        help="Address of the Ray cluster; auto: the cluster of this machine.",
    )


def from_flags(args: argparse.Namespace) -> Any:
    """The engine that the flags name; None if they name none."""
    from fsviz.jobs import engines

    return engines.pick(args.engine or "", args.address) if args.engine or args.address else None
