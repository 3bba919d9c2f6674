"""A split as a file, its name, its recipe in words and its command."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from fsviz import splits
from fsviz.analyses.class_splits.search import SETTINGS, SplitResult
from fsviz.datasets import saved_splits
from fsviz.records import SIDES, ClassSplit, Dataset
from fsviz.settings import RawSettings, Value, to_args
from fsviz.splits import TARGETED_MODES, assignment
from fsviz.text import csv


def save(dataset: Dataset, split: ClassSplit, name: str, recipe: RawSettings, replace: bool = False) -> list[str]:
    """Save a split; returns the names of the new splits of the dataset."""
    saved_splits.save_split(dataset, name, split.parts, recipe, overwrite=replace)
    return [f"{name}_{side}" for side in SIDES]


def recipe(result: SplitResult) -> dict[str, Any]:
    """Settings and outcome of a split, as saved in its file."""
    spec = result.settings
    has_target = spec.get("mode") in TARGETED_MODES
    settings = {name: value for name, value in spec.items() if has_target or name in ("mode", "seed")}
    return {**settings, **({"reached": result.split.reached, "objective": result.objective} if has_target else {})}


def describe_recipe(recipe: RawSettings) -> str:
    """The recipe of a saved split in one line."""
    mode = str(recipe.get("mode", ""))
    origins = {"published": "published", "file": f"from the file {recipe.get('file', '')}"}
    words = [origins.get(mode, splits.MODES.get(mode, "made elsewhere"))]
    if "divergence" in recipe:
        words.append(f"target {recipe['divergence']}")
    if isinstance(recipe.get("reached"), int | float):
        words.append(f"reached {recipe['reached']:.2f}")
    return ", ".join(words + [f"backbone {recipe['backbone']}" for _ in [0] if recipe.get("backbone")])


def safe_stem(file: str) -> str:
    """A name for a split, from the name of its file."""
    stem = re.sub(r"[^A-Za-z0-9_.+=-]+", "-", file.rsplit(".", 1)[0]).strip("-.")[:60]
    return stem if stem[:1].isalnum() else "mine"


def as_json(dataset: Dataset, split: ClassSplit, recipe: RawSettings) -> str:
    """The split as a file that `split --from` reads: class names by side, and its recipe."""
    return json.dumps(saved_splits.split_record(dataset, split.parts, recipe), indent=2)


def as_csv(split: ClassSplit) -> str:
    """One row per class: class_name, split."""
    return csv(pd.DataFrame({"class_name": split.names, "split": assignment.side_names(split.sides)}))


def fitting_name(result: SplitResult) -> str:
    """A name made of the settings of a split: "r0.96", "r0.96-paper-seed3", "random-seed0"."""
    spec = result.settings
    if spec["mode"] not in TARGETED_MODES:
        return f"{spec['mode']}-seed{spec['seed']}"
    options = {n: v for n, v in spec.items() if n not in ("backbone", "divergence", "mode", "seed")}
    defaults = _defaults(len(result.split.names), spec["mode"])
    parts = [f"{name.replace('_', '')}{SETTINGS[name].text(v)}" for name, v in options.items() if v != defaults[name]]
    mode = [] if spec["mode"] == "stable" else [spec["mode"]]
    seed = [f"seed{spec['seed']}"] if spec["seed"] or mode else []
    return "-".join([f"r{SETTINGS['divergence'].text(spec['divergence'])}", *mode, *seed, *parts])[:80]


def command(dataset: Dataset, spec: Mapping[str, Value], more: Sequence[str] = ()) -> str:
    """The command that computes the same split."""
    has_target = spec["mode"] in TARGETED_MODES
    own = [name for name in spec if has_target or name in ("mode", "seed", "backbone")]
    own = [name for name in own if spec["mode"] == "stable" or name not in ("dims", "starts")]
    always = ("divergence", "seed")
    defaults = _defaults(dataset.n_classes, spec["mode"])
    changed = {n: spec[n] for n in own if (n in always and has_target) or spec[n] != defaults[n]}
    return shlex.join(["fsviz", "split", dataset.name, *to_args(changed, SETTINGS), *more])


def _defaults(n_classes: int, mode: str) -> dict[str, Value]:
    """Defaults of the other settings for so many classes and this mode."""
    fitting = {"dims": splits.default_dims(n_classes), "penalty": splits.default_penalty(mode)}
    return {name: setting.default for name, setting in SETTINGS.items()} | fitting
