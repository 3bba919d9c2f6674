"""clean: what the workspace no longer needs."""

from __future__ import annotations

import argparse
from typing import Any

from fsviz import workspace
from fsviz.cli import add_command
from fsviz.tables import Column, Table, to_text

LEFTOVERS = Table("Leftovers", Column("what", "Leftover"), Column("size", "Size"), Column("path", "Path"))


def register(commands: argparse._SubParsersAction) -> None:
    parser = add_command(
        commands, "clean", run_clean, show_clean, "List leftover files of the workspace; with --yes, delete them."
    )
    parser.add_argument("--yes", action="store_true", help="Delete them.")


def run_clean(args: argparse.Namespace) -> dict[str, Any]:
    leftovers = workspace.clean() if args.yes else workspace.leftovers()
    return {
        "workspace": str(workspace.home()),
        "leftovers": [
            {"path": str(item.path), "what": item.description, "n_bytes": item.n_bytes} for item in leftovers
        ],
        "n_bytes": sum(item.n_bytes for item in leftovers),
        "freed": bool(args.yes),
    }


def show_clean(result: dict[str, Any]) -> str:
    if not result["leftovers"]:
        return f"Nothing to clean in {result['workspace']}. 'fsviz runs delete ID' deletes a run."
    rows = [{**item, "size": workspace.format_bytes(item["n_bytes"])} for item in result["leftovers"]]
    size = workspace.format_bytes(result["n_bytes"])
    last = f"Freed {size}." if result["freed"] else f"'fsviz clean --yes' frees {size}. Runs and data stay."
    return "\n".join([to_text(LEFTOVERS, rows), last])
