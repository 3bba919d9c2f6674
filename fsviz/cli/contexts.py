"""contexts: which concept is seen in which context, and how much one gives the other away."""

from __future__ import annotations

import argparse
from typing import Any

from fsviz.cli import add_command, drawing, table
from fsviz.studies import draw


def register(commands: argparse._SubParsersAction) -> None:
    parser = add_command(
        commands, "contexts", run_contexts, show_contexts, "count concepts against contexts, and how they are tied"
    )
    drawing.add_dataset(parser)
    draw.SPLIT.add_flag(parser)


def run_contexts(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import datasets
    from fsviz.studies import contexts as study

    return study.summary(datasets.load(args.dataset), args.split or "")


def show_contexts(result: dict[str, Any]) -> str:
    found = result["association"]
    lines = [
        f"{result['n_images']:,} images of {result['n_concepts']:,} concepts in {result['n_contexts']:,} contexts "
        f"(split {result['split']}); {result['n_without_context']:,} more have no context.",
        "Cramer's V cannot be told: it needs two concepts and two contexts."
        if found["v"] is None
        else f"Cramer's V {found['v']:.3f} ({found['low']:.3f} to {found['high']:.3f} over images), by chance below "
        f"{found['chance']:.3f}.",
        f"{result['usual_context_share']:.0%} of the images are in the usual context of their concept.",
        *(f"{name}: seen in one context only." for name in result["single_context"]),
        "",
        "Most tied, of cells with 5 images or more:",
        table([c for c in result["cells"] if c["n_images"] >= 5][:15], ["concept", "context", "n_images", "bits"]),
    ]
    return "\n".join([*lines, *result["notes"]])
