"""Sampler flags: the same in every command, each with the defaults that its --help states."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping

from fsviz.cli import progress
from fsviz.sampling import SAMPLERS
from fsviz.settings import Setting, Value, from_args
from fsviz.tasks import draw
from fsviz.tasks.fitting import Fit


def add_dataset(parser: argparse.ArgumentParser, help: str = "Name of a dataset (see: datasets).") -> None:
    """The dataset of a command, as its first word or as a flag."""
    either = parser.add_mutually_exclusive_group(required=True)
    # without a default neither spelling overwrites the other
    either.add_argument("dataset", nargs="?", metavar="DATASET", default=argparse.SUPPRESS, help=help)
    either.add_argument("--dataset", metavar="DATASET", default=argparse.SUPPRESS, help="The same as a flag.")


def add_flags(
    parser: argparse.ArgumentParser, settings: Mapping[str, Setting] = draw.SETTINGS, **defaults: Value
) -> None:
    """Adds the flags of these settings; a flag that belongs to some samplers only says so."""
    for name, setting in settings.items():
        of = [s.name for s in SAMPLERS.values() if name in (own.name for own in s.all_settings)]
        note = f" For samplers: {', '.join(of)}" if of and len(of) < len(SAMPLERS) else ""
        default = defaults.get(name, setting.default)
        setting.with_(default=default, help=f"{setting.help}{note}").add_flag(parser)


def requested(args: argparse.Namespace, settings: Mapping[str, Setting] = draw.SETTINGS) -> dict[str, Value]:
    """The settings of tasks on the command line, by name."""
    return from_args(args, settings.values())


def say_fit(fitted: Fit) -> dict[str, int]:
    """The ways, shots and queries that fit; prints which defaults were lowered, and the reason for fewer shots."""
    for message in filter(
        None, (fitted.shots and f"n_shot is {fitted.values['n_shot']} by default. {fitted.shots}", fitted.describe())
    ):
        progress(message)
    return dict(fitted.values)


def name_unused(values: Iterable[str], recipe: draw.Recipe) -> None:
    """Says which of the given settings have no effect with the recipe's sampler, and which alpha was chosen."""
    values = list(values)
    if "alpha" in recipe.settings and "alpha" not in values:
        from fsviz import datasets

        fitted = draw.fitted_alpha(
            datasets.load(recipe.dataset),
            recipe.split,
            recipe.distance,
            recipe.dag,
            recipe.backbone,
            recipe.settings["n_way"],
        )
        if fitted is not None and fitted.alpha != fitted.usual_alpha:
            progress(fitted.describe())
    unused = [
        name
        for name in values
        if name in {**draw.SAMPLER_SETTINGS, **draw.IMAGE_SETTINGS} and name not in recipe.values
    ]
    if unused:
        flags = ", ".join(draw.SETTINGS[name].flag for name in unused)
        progress(f"{flags} {'has' if len(unused) == 1 else 'have'} no effect with the sampler {recipe.sampler}.")


def add_backbone(parser: argparse.ArgumentParser, help: str = "Backbone to use (default: first available).") -> None:
    parser.add_argument("--backbone", help=help)


def backbone(args: argparse.Namespace) -> str:
    """The backbone that was requested, or the first with features of the dataset."""
    from fsviz import datasets

    return args.backbone or draw.default_backbone(datasets.load(args.dataset))
