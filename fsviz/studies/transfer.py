"""Which way of training holds up when the test classes are far? Accuracy of trained networks against divergence.

    class features -> splits of several divergences, each with its two sides swapped too -> a training run each
    class features -> the same test classes, trained on the nearest and on the farthest of the others (matched)
    finished runs  -> accuracy against divergence, slope per method, nearest less farthest

After Arnold & Sha 2021, figure 2 and tables 1, 2, 4 and 5. The published comparison trains on one side and tests on the
other, so that it mixes how far the test classes are with how hard they are by themselves. `both sides` averages a split
with its mirror image; `matched` keeps the test classes and changes what was trained on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fsviz import evaluation
from fsviz.datasets import saved_splits
from fsviz.errors import BadInput, Missing
from fsviz.numerics import finite
from fsviz.records import ClassSplit, Dataset, Tasks
from fsviz.splits import assignment, clustering
from fsviz.studies import splits as splits_study
from fsviz.studies import training
from fsviz.studies.splits import ClassFeatures, Found
from fsviz.training import TITLES
from fsviz.workspace import read_json

RECORDED = Path(__file__).resolve().parents[2] / "data" / "training"  # grids that a script of the project computed
TARGETS = (0.0, 0.5, 1.0, 2.0, 4.0)
DIVERGENCE, MATCHED = "divergence", "matched"  # what a run is compared by
FIRST, SECOND = "first", "second"  # the side that is train by the rule of the split, and the other
NEAREST, FARTHEST = "nearest", "farthest"
SHARE = 0.5  # of the remaining classes that `matched` trains on


# --- splits to train on ------------------------------------------------------------------------------------------


def mirrored(found: Found) -> ClassSplit:
    """The same two centroids, the other side called train."""
    split = found.split
    if split.scores is None:
        raise BadInput(
            "Only a split that was found by a divergence has two sides to swap. Choose mode stable or paper."
        )
    sides = assignment.assign(-split.scores, int(found.settings["seed"]))
    centroids = None if split.centroids is None else split.centroids[::-1]
    return replace(split, sides=sides, scores=-split.scores, centroids=centroids)


def matched(classes: ClassFeatures, split: ClassSplit, share: float = SHARE) -> dict[str, ClassSplit]:
    """The split with only the nearest, and only the farthest, share of its train classes; val and test stay.

    Near is a small distance between the class's point and the mean of the test classes' points.
    """
    if not 0 < share <= 0.5:
        raise BadInput(f"share must be above 0 and at most 0.5, so that the two halves share no class. Got {share}.")
    at = np.searchsorted(classes.class_ids, split.class_ids)
    test, train = split.sides == assignment.TEST, np.flatnonzero(split.sides == assignment.TRAIN)
    points = classes.points
    apart = np.linalg.norm(points[at[train]] - points[at[test]].mean(axis=0), axis=1)
    order = train[np.argsort(apart, kind="stable")]
    n = math.floor(share * len(train))
    if n < 2:
        raise BadInput(f"A matched comparison needs four train classes at least. The split has {len(train)}.")
    found = {}
    for which, kept in ((NEAREST, order[:n]), (FARTHEST, order[-n:])):
        stays = np.flatnonzero(split.sides != assignment.TRAIN)
        keep = np.sort(np.concatenate([kept, stays]))
        names = tuple(split.names[i] for i in keep)
        found[which] = ClassSplit(split.class_ids[keep], names, split.sides[keep], split.points[keep], title=which)
    return found


def grid(
    dataset: Dataset,
    classes: ClassFeatures,
    methods: Sequence[str],
    targets: Sequence[float] = TARGETS,
    seeds: Sequence[int] = (0,),
    matched_at: float | None = None,
    **settings: Any,
) -> list[dict[str, Any]]:
    """The specs of the runs that a comparison needs: every method, divergence, side and seed, and, at the divergence
    `matched_at`, trained on the nearest and on the farthest classes. `settings` go to every run."""
    changes = [{"divergence": target} for target in dict.fromkeys([*targets, *([matched_at] if matched_at else [])])]
    found = dict(zip([c["divergence"] for c in changes], splits_study.over(dataset, classes, changes), strict=True))
    cells: list[tuple[ClassSplit, dict[str, Any]]] = []
    for target in targets:
        for side, split in _sides(found[target]).items():
            cells.append((split, _recipe(found[target], DIVERGENCE, side)))
    if matched_at is not None:
        for side, split in _sides(found[matched_at]).items():
            for which, part in matched(classes, split).items():
                cells.append((part, _recipe(found[matched_at], MATCHED, side) | {"trained_on": which}))
    specs = []
    for seed in seeds:
        for split, recipe in cells:
            parts = [
                f"r{recipe['divergence']:g}",
                recipe["side"],
                *([recipe["trained_on"]] if "trained_on" in recipe else []),
            ]
            facts = {**saved_splits.as_facts(dataset, split.parts, recipe), "name": "-".join(parts)}
            specs += [
                {
                    "study": "training",
                    "dataset": dataset.name,
                    "method": method,
                    "split": facts,
                    "seed": seed,
                    **settings,
                }
                for method in methods
            ]
    return specs


def _sides(found: Found) -> dict[str, ClassSplit]:
    return {FIRST: found.split, SECOND: mirrored(found)}


def _recipe(found: Found, comparison: str, side: str) -> dict[str, Any]:
    return {**splits_study.recipe(found), "comparison": comparison, "side": side}


# --- what came out -----------------------------------------------------------------------------------------------

COLUMNS = (
    "method",
    "comparison",
    "asked",
    "reached",
    "side",
    "trained_on",
    "seed",
    "accuracy",
    "ci95",
    "n_tasks",
    "run",
)


def table(runs: Iterable[tuple[str, Mapping[str, Any], Mapping[str, Any] | None]]) -> pd.DataFrame:
    """One row per finished training run and what was measured in it: (id, spec, summary) -> COLUMNS.

    A run on a split of any origin counts as `divergence` where its recipe says a divergence; others have none.
    """
    rows = []
    for run, spec, summary in runs:
        recipe = spec["split"].get("recipe") or {} if isinstance(spec.get("split"), Mapping) else {}
        about = {
            "comparison": recipe.get("comparison", DIVERGENCE if "divergence" in recipe else ""),
            "asked": recipe.get("divergence"),
            "reached": recipe.get("reached"),
            "side": recipe.get("side", FIRST),
            "trained_on": recipe.get("trained_on", ""),
            "seed": spec.get("seed", 0),
            "run": run,
        }
        for row in (summary or {}).get("results") or []:
            rows.append({**about, **{name: row[name] for name in ("method", "accuracy", "ci95", "n_tasks")}})
    return pd.DataFrame(rows, columns=list(COLUMNS))


@dataclass(frozen=True)
class Slope:
    """Points of accuracy per unit of divergence, after averaging seeds (and sides).

    ci95    half-width by Student's t over n_points divergences; None below three
    at_zero accuracy where the line meets a divergence of 0
    """

    method: str
    sides: str
    slope: float
    ci95: float | None
    at_zero: float
    n_points: int
    n_runs: int


def slopes(rows: pd.DataFrame, by: str = "reached") -> list[Slope]:
    """The regression line of accuracy on divergence per method (table 5): of the first side alone, as published, of
    the second, and of both sides' mean. by: the divergence "reached" or "asked"."""
    if by not in ("reached", "asked"):
        raise BadInput(f"A slope is by the divergence reached or asked. Got {by!r}.")
    rows = rows[rows["comparison"] == DIVERGENCE].dropna(subset=[by, "accuracy"])
    found = []
    for method in [m for m in TITLES if m in set(rows["method"])]:
        own = rows[rows["method"] == method]
        for sides, part in ((FIRST, own[own["side"] == FIRST]), (SECOND, own[own["side"] == SECOND]), ("both", own)):
            points = _points(part, by, both=sides == "both")
            if len(points) >= 2 and np.ptp(points["x"]) > 0:
                found.append(_slope(method, sides, points["x"], points["y"], int(points["n_runs"].sum())))
    return found


def _points(rows: pd.DataFrame, by: str, both: bool) -> pd.DataFrame:
    """Accuracy y at every divergence x, one row per divergence asked for: mean over seeds, then over the two sides
    where `both` are asked for (a divergence with one side alone is left out)."""
    sides = rows.assign(x=rows[by]).groupby(["asked", "side"], as_index=False)
    per_side = sides.agg(x=("x", "mean"), y=("accuracy", "mean"), n_runs=("accuracy", "size"))
    if both:
        per_side = per_side[per_side.groupby("asked")["side"].transform("size") == 2]
    return per_side.groupby("asked", as_index=False).agg(x=("x", "mean"), y=("y", "mean"), n_runs=("n_runs", "sum"))


def _slope(method: str, sides: str, x: pd.Series, y: pd.Series, n_runs: int) -> Slope:
    from scipy import stats

    x_, y_ = x.to_numpy(dtype=float), y.to_numpy(dtype=float)
    line = stats.linregress(x_, y_)
    half = float(stats.t.ppf(0.975, len(x_) - 2) * line.stderr) if len(x_) > 2 else None
    return Slope(method, sides, float(line.slope), half, float(line.intercept), len(x_), n_runs)


@dataclass(frozen=True)
class Difference:
    """Accuracy after training on the nearest less that after training on the farthest classes, in points.

    ci95  half-width by Student's t over n_pairs (sides and seeds); None for one pair
    """

    method: str
    nearest: float
    farthest: float
    difference: float
    ci95: float | None
    n_pairs: int


def matched_differences(rows: pd.DataFrame) -> list[Difference]:
    """Per method, over pairs of runs with the same test classes and seed."""
    from scipy import stats

    rows = rows[rows["comparison"] == MATCHED]
    found = []
    for method in [m for m in TITLES if m in set(rows["method"])]:
        own = rows[rows["method"] == method]
        pairs = own.pivot_table(index=["asked", "side", "seed"], columns="trained_on", values="accuracy")
        if not {NEAREST, FARTHEST} <= set(pairs.columns):
            continue
        pairs = pairs.dropna(subset=[NEAREST, FARTHEST])
        apart = (pairs[NEAREST] - pairs[FARTHEST]).to_numpy()
        n = len(apart)
        if n:
            half = stats.t.ppf(0.975, n - 1) * apart.std(ddof=1) / np.sqrt(n) if n > 1 else None
            means = (float(pairs[NEAREST].mean()), float(pairs[FARTHEST].mean()))
            found.append(Difference(method, *means, float(apart.mean()), finite(half), n))
    return found


def by_divergence(rows: pd.DataFrame) -> pd.DataFrame:
    """Accuracy at every divergence asked for (figure 2, tables 1 and 4): method, asked, reached, first, second, both
    (mean of the two sides, NaN where one is missing), n_runs."""
    rows = rows[rows["comparison"] == DIVERGENCE]
    if rows.empty:
        raise Missing("No finished training run is on a split of a known divergence. Train on some: see 'train'.")
    wide = rows.pivot_table(index=["method", "asked"], columns="side", values="accuracy")
    wide = wide.reindex(columns=[FIRST, SECOND])
    wide["both"] = wide.mean(axis=1, skipna=False)
    grouped = rows.groupby(["method", "asked"])
    wide["reached"], wide["n_runs"] = grouped["reached"].mean(), grouped.size()
    order = {method: i for i, method in enumerate(TITLES)}
    wide = wide.reset_index().rename_axis(columns=None)
    wide = wide.sort_values(["method", "asked"], key=lambda c: c.map(order) if c.name == "method" else c)
    return wide[["method", "asked", "reached", FIRST, SECOND, "both", "n_runs"]].reset_index(drop=True)


# --- divergence of single tasks ----------------------------------------------------------------------------------


def task_divergences(classes: ClassFeatures, train: np.ndarray, tasks: Tasks) -> dict[str, np.ndarray]:
    """How far every task (T,) is from the train classes, by every divergence.

    As for table 2 of the paper: one distribution is around the mean of the train classes' features, the other around
    that of the task's classes, both over these classes, at unit length.
    """
    import torch

    base = classes.points[_rows_of(classes, train)]
    found: dict[str, list[float]] = {name: [] for name in clustering.DIVERGENCES}
    for class_ids in tasks.class_ids:
        own = classes.points[_rows_of(classes, class_ids)]
        points = torch.from_numpy(np.concatenate([base, own]))
        mu = torch.from_numpy(np.stack([base.mean(axis=0), own.mean(axis=0)])[None])
        log_p = torch.log_softmax(-(points - mu.transpose(0, 1)).square().sum(-1), dim=-1)[None]
        for name, divergence in clustering.DIVERGENCES.items():
            found[name].append(float(divergence.of(points, mu, log_p)))
    return {name: np.array(values) for name, values in found.items()}


def divergence_correlations(
    classes: ClassFeatures, spec: Mapping[str, Any], chunks: Iterable[Mapping[str, np.ndarray]]
) -> pd.DataFrame:
    """Pearson's correlation of a task's divergence with its accuracy in a finished run (table 2): columns method,
    divergence, pearson, low, high; 95% intervals over classes where tasks have different ones."""
    settled = dict(spec)
    tasks = training.test_tasks(settled)
    train = training.class_ids_of(settled, "train")
    measured = task_divergences(classes, train, tasks)
    rows = []
    for method, accuracy in training.test_accuracy(settled, chunks).items():
        for name, values in measured.items():
            found = evaluation.correlation(accuracy, values, tasks.class_ids)
            told = {"pearson": finite(found.value), "low": finite(found.low), "high": finite(found.high)}
            rows.append({"method": method, "divergence": name, **told})
    return pd.DataFrame(rows)


def _rows_of(classes: ClassFeatures, class_ids: np.ndarray) -> np.ndarray:
    missing = np.setdiff1d(class_ids, classes.class_ids)
    if len(missing):
        raise Missing(f"{len(missing):,} of these classes have no features under {classes.backbone}. Extract them.")
    return np.searchsorted(classes.class_ids, class_ids)


# --- what the project computed -----------------------------------------------------------------------------------


def recorded(dataset: str) -> tuple[pd.DataFrame, dict[str, Any]] | None:
    """The grid that the project computed for a dataset, with its recipe and date; None where there is none."""
    path = RECORDED / f"{dataset}.json"
    if not path.is_file():
        return None
    facts = read_json(path)
    return pd.DataFrame(facts["rows"], columns=list(COLUMNS)), {k: v for k, v in facts.items() if k != "rows"}
