"""Accuracy of trained networks vs train-test divergence, by method.

    class features -> splits of several divergences, each with its two sides swapped too -> a training run each
    class features -> the same test classes, trained on the nearest and on the farthest of the others (matched)
    finished runs  -> accuracy by divergence, slope per method, near minus far training classes

After Arnold & Sha 2021, figure 2 and tables 1, 2, 4 and 5. The published comparison trains on one side and tests on the
other, so that it mixes how far the test classes are with how hard they are by themselves. `both sides` averages a split
with its mirror image; `matched` keeps the test classes and changes what was trained on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from fsviz import evaluation
from fsviz.analyses import class_splits as splits_study
from fsviz.analyses.class_splits import ClassFeatures, SplitResult
from fsviz.datasets import published, saved_splits
from fsviz.errors import BadInput, Missing, UnknownName
from fsviz.numerics import finite
from fsviz.records import ClassSplit, Dataset, Tasks
from fsviz.settings import RawSettings
from fsviz.shipped import DATA
from fsviz.splits import PUBLISHED_PENALTY, assignment, clustering, gaussians
from fsviz.studies import training
from fsviz.tables import Column, Table
from fsviz.training import FINETUNE, TITLES, TRAINERS
from fsviz.workspace import read_json

_METHOD = Column("method", "Method")
_RUNS = Column("n_runs", "Runs", kind="count")
BY_DIVERGENCE = Table(
    "Accuracy by divergence",
    _METHOD,
    Column("asked", "Target divergence", digits=2, kind="number"),
    Column("reached", "Reached", digits=2, kind="number"),
    Column("first", "Test half", kind="percent"),
    Column("second", "Swapped half", kind="percent"),
    Column("both", "Both halves", kind="percent"),
    _RUNS,
)
BY_SPLIT = Table(
    "Accuracy by split",
    _METHOD,
    Column("split", "Split"),
    Column("accuracy", "Accuracy", kind="percent", interval="ci95"),
    _RUNS,
)
SLOPES = Table(
    "Points of accuracy per unit of divergence",
    _METHOD,
    Column("sides", "Tested on"),
    Column("slope", "Slope", kind="points", digits=2, interval="ci95"),
    Column("at_zero", "Accuracy at 0", kind="percent"),
    Column("n_points", "Divergences", kind="count"),
    _RUNS,
)
MATCHED_PAIRS = Table(
    "Near vs far training classes",
    _METHOD,
    Column("nearest", "Near", kind="percent"),
    Column("farthest", "Far", kind="percent"),
    Column("difference", "Near minus far", kind="points", interval="ci95"),
    Column("n_pairs", "Pairs", kind="count"),
    Column("n_splits", "Sets of test classes", kind="count"),
)
TASK_CORRELATIONS = Table(
    "Correlation of a task's divergence with its accuracy",
    Column("divergence", "Divergence"),
    _METHOD,
    Column("pearson", "Pearson's r", digits=2, kind="number"),
    Column("n_significant", "Significant", kind="count"),
    _RUNS,
)
RUNS = Table(
    "Runs behind the point",
    Column("asked", "Target R", digits=2, kind="number"),
    Column("reached", "Reached", digits=2, kind="number"),
    Column("side", "Tested on"),
    Column("trained_on", "Trained on"),
    Column("seed", "Seed", kind="count"),
    Column("accuracy", "Accuracy", kind="percent", interval="ci95_classes"),
    Column("run", "Run"),
)
RECORDED = DATA / "training"  # grids that a script of the project computed
TARGETS = (0.0, 0.5, 1.0, 2.0, 4.0)
DIVERGENCE, MATCHED = "divergence", "matched"  # what a run is compared by
FIRST, SECOND = "first", "second"  # the side that is train by the rule of the split, and the other
SIDES_SHOWN = (FIRST, SECOND, "both")
NEAREST, FARTHEST = "nearest", "farthest"
PENALTY = PUBLISHED_PENALTY  # λ of every split of a grid: those that come with fsviz were trained on splits of it
COMPARED = {"random": "random", "superclasses": "whole superclasses", training.OWN: "the dataset's own"}
SHARE = 0.5  # of the remaining classes that `matched` trains on


# --- splits to train on ------------------------------------------------------------------------------------------


def mirrored(result: SplitResult) -> ClassSplit:
    """The same two centroids, the other side called train."""
    split = result.split
    if split.scores is None:
        raise BadInput("Only a split with a target divergence has two sides to swap. Choose mode stable or paper.")
    sides = assignment.assign(-split.scores, int(result.settings["seed"]))
    centroids = None if split.centroids is None else split.centroids[::-1]
    return replace(split, sides=sides, scores=-split.scores, centroids=centroids)


def matched_splits(classes: ClassFeatures, split: ClassSplit, share: float = SHARE) -> dict[str, ClassSplit]:
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
    splits_by_name = {}
    for which, half in ((NEAREST, order[:n]), (FARTHEST, order[-n:])):
        stays = np.flatnonzero(split.sides != assignment.TRAIN)
        keep = np.sort(np.concatenate([half, stays]))
        names = tuple(split.names[i] for i in keep)
        splits_by_name[which] = ClassSplit(
            split.class_ids[keep], names, split.sides[keep], split.points[keep], title=which
        )
    return splits_by_name


def grid(
    dataset: Dataset,
    classes: ClassFeatures,
    methods: Sequence[str],
    targets: Sequence[float] = TARGETS,
    seeds: Sequence[int] = (0,),
    matched_at: float | None = None,
    compared: Sequence[str] = (),
    **settings: Any,
) -> list[dict[str, Any]]:
    """Specs of the runs of a comparison: every method, target, side and seed.

    matched_at  the target at which networks are also trained on the nearest and on the farthest classes
    compared    other splits (names of COMPARED)
    settings    go to the runs whose method has them
    """
    for name in compared:
        if name not in COMPARED:
            raise UnknownName("split to compare with", name, COMPARED)
    unknown = [name for name in settings if name not in training.SETTINGS]
    if unknown:
        raise UnknownName("setting of training", unknown[0], training.SETTINGS)
    own = {m: {n: v for n, v in settings.items() if n in TRAINERS[m].settings} for m in methods}
    changes = [{"divergence": target} for target in dict.fromkeys([*targets, *([matched_at] if matched_at else [])])]
    results = splits_study.splits_over(dataset, classes, changes, penalty=PENALTY)
    result_at = dict(zip([c["divergence"] for c in changes], results, strict=True))
    cells = [
        split_to_train(dataset, classes, result_at[target], side) for target in targets for side in (FIRST, SECOND)
    ]
    if matched_at is not None:
        cells += [
            split_to_train(dataset, classes, result_at[matched_at], side, half)
            for side in (FIRST, SECOND)
            for half in (NEAREST, FARTHEST)
        ]
    for name in compared:
        if name == training.OWN:
            parts, _, recipe = training.split_of(dataset, name)
            cells.append({**saved_splits.split_record(dataset, parts, recipe), "name": name})
        else:
            cells.append(split_to_train(dataset, classes, splits_study.find_split(dataset, classes, mode=name)))
    return [
        {"study": "training", "dataset": dataset.name, "method": m, "split": facts, "seed": seed, **own[m]}
        for seed in seeds
        for facts in cells
        for m in methods
    ]


def split_to_train(
    dataset: Dataset, classes: ClassFeatures, result: SplitResult, side: str = FIRST, trained_on: str = ""
) -> dict[str, Any]:
    """A split for the spec of a training run, with the recipe that comparisons read.

    side        "first": the sides as they are; "second": swapped
    trained_on  "nearest" or "farthest": only that half of the train classes; "": all of them
    """
    split = result.split if side == FIRST else mirrored(result)
    recipe: dict[str, Any] = {**splits_study.recipe(result), "comparison": MATCHED if trained_on else DIVERGENCE}
    recipe["side"] = side
    if trained_on:
        split = matched_splits(classes, split)[trained_on]
        recipe["trained_on"] = trained_on
    has_target = "divergence" in recipe
    first = f"r{recipe['divergence']:g}" if has_target else splits_study.fitting_name(result)
    if not has_target and not trained_on:
        del recipe["comparison"]  # it has no divergence
    name = "-".join([first, *([side] if has_target else []), *([trained_on] if trained_on else [])])
    return {**saved_splits.split_record(dataset, split.parts, recipe), "name": name}


# --- results -----------------------------------------------------------------------------------------------

COLUMNS = (
    "method",
    "comparison",
    "asked",
    "reached",
    "side",
    "trained_on",
    "mode",
    "seed",
    "accuracy",
    "ci95",
    "ci95_classes",
    "n_tasks",
    "val_accuracy",
    "run",
)


def run_table(runs: Iterable[tuple[str, Mapping[str, Any], Mapping[str, Any] | None]]) -> pd.DataFrame:
    """One row per result of a finished training run: (id, spec, summary) -> COLUMNS.

    The comparison of a run is `divergence` if the recipe of its split has a target.
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
            "mode": recipe.get("mode", ""),
            "seed": spec.get("seed", 0),
            "run": run,
        }
        for row in (summary or {}).get("results") or []:
            own = {name: row.get(name) for name in ("method", "accuracy", "ci95", "ci95_classes", "n_tasks")}
            val = (summary or {}).get("val_accuracy") if row["method"] == spec.get("method") else None
            rows.append({**about, **own, "val_accuracy": val})
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    numbers = ["asked", "reached", "accuracy", "ci95", "ci95_classes", "val_accuracy"]
    return table.astype(dict.fromkeys(numbers, float))


@dataclass(frozen=True)
class AccuracySlope:
    """Points of accuracy per unit of divergence, after averaging seeds (and sides): seeds share the split's classes.

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


def slopes(rows: pd.DataFrame, by: str = "reached") -> list[AccuracySlope]:
    """The regression line of accuracy on divergence per method (table 5): of the first side alone, as published, of
    the second, and of both sides' mean. by: the divergence "reached" or "asked"."""
    every_slope = []
    for sides in SIDES_SHOWN:
        points = accuracy_points(rows, sides, by)
        for method, own in points.groupby("method", sort=False):
            if len(own) >= 2 and np.ptp(own["x"]) > 0:
                every_slope.append(_slope(str(method), sides, own["x"], own["accuracy"], int(own["n_runs"].sum())))
    order = {method: i for i, method in enumerate(TITLES)}
    return sorted(every_slope, key=lambda slope: order.get(slope.method, len(order)))


def accuracy_points(rows: pd.DataFrame, sides: str = "both", by: str = "reached") -> pd.DataFrame:
    """Accuracy at every target (figure 2): mean over seeds, then over both sides if `sides` is "both".

    Columns method, asked (the target), x (the divergence `by`), accuracy, ci95 (over classes), val_accuracy, n_runs.
    With "both", a target with one side alone is excluded.

    The two sides test on different classes, so that their intervals shrink in the mean; those of seeds do not.
    """
    if by not in ("reached", "asked"):
        raise BadInput(f"A slope is by the divergence reached or asked (the target). Got {by!r}.")
    rows = rows[rows["comparison"] == DIVERGENCE].dropna(subset=[by, "accuracy"])
    if sides != "both":
        rows = rows[rows["side"] == sides]
    per_side = (
        rows.assign(x=rows[by])
        .groupby(["method", "asked", "side"], as_index=False)
        .agg(
            x=("x", "mean"),
            accuracy=("accuracy", "mean"),
            ci95=("ci95_classes", "mean"),
            val_accuracy=("val_accuracy", "mean"),
            n_runs=("accuracy", "size"),
        )
    )
    if sides == "both":
        per_side = per_side[per_side.groupby(["method", "asked"])["side"].transform("size") == 2]
    points = per_side.groupby(["method", "asked"], as_index=False).agg(
        x=("x", "mean"),
        accuracy=("accuracy", "mean"),
        ci95=("ci95", lambda halves: np.sqrt(np.square(halves).sum(skipna=False)) / len(halves)),
        val_accuracy=("val_accuracy", "mean"),
        n_runs=("n_runs", "sum"),
    )
    order = {method: i for i, method in enumerate(TITLES)}
    return points.sort_values(["method", "x"], key=lambda c: c.map(order) if c.name == "method" else c).reset_index(
        drop=True
    )


ADAPTING = {name for name, trainer in TRAINERS.items() if trainer.adapts == "all"} | {FINETUNE}


def family_slope(rows: pd.DataFrame, by: str = "reached") -> AccuracySlope | None:
    """Change of the lead of adaptive methods (MAML, Finetune) with the divergence; None without both families.

    The slope of the difference of their means, both sides together: what is common to a split cancels.
    """
    points = accuracy_points(rows, "both", by)
    adapts = points["method"].isin(ADAPTING)
    means = [part.groupby("asked")["accuracy"].mean() for part in (points[adapts], points[~adapts])]
    lead = (means[0] - means[1]).dropna()
    x = points.groupby("asked")["x"].mean().reindex(lead.index)
    if len(lead) < 2 or not np.ptp(x) > 0:
        return None
    return _slope("families", "both", x, lead, int(points["n_runs"].sum()))


def slope_beyond(rows: pd.DataFrame, reference: pd.DataFrame, method: str, by: str = "reached") -> AccuracySlope | None:
    """Change of the lead of a method over a reference on the same test classes; None below two divergences.

    Both sides together, as of `family_slope`: how hard the test classes are by themselves cancels.
    """
    points, frozen = accuracy_points(rows, "both", by), accuracy_points(reference, "both", by)
    own = points[points["method"] == method].set_index("asked")
    lead = (own["accuracy"] - frozen.set_index("asked")["accuracy"]).dropna()
    x = own["x"].reindex(lead.index)
    if len(lead) < 2 or not np.ptp(x) > 0:
        return None
    return _slope(method, "both", x, lead, int(own["n_runs"].sum()))


def _slope(method: str, sides: str, x: pd.Series, y: pd.Series, n_runs: int) -> AccuracySlope:
    from scipy import stats

    x_, y_ = x.to_numpy(dtype=float), y.to_numpy(dtype=float)
    line = stats.linregress(x_, y_)
    half = float(stats.t.ppf(0.975, len(x_) - 2) * line.stderr) if len(x_) > 2 else None
    return AccuracySlope(method, sides, float(line.slope), half, float(line.intercept), len(x_), n_runs)


@dataclass(frozen=True)
class MatchedDifference:
    """Accuracy after training on the nearest minus that after training on the farthest classes, in points.

    Seeds are averaged first: runs of one split share their classes, so they are not independent.
    ci95  half-width by Student's t over n_splits sets of test classes; None for one
    """

    method: str
    nearest: float
    farthest: float
    difference: float
    ci95: float | None
    n_pairs: int
    n_splits: int


def matched_differences(rows: pd.DataFrame) -> list[MatchedDifference]:
    """Per method, over pairs of runs with the same test classes and seed."""
    from scipy import stats

    rows = rows[rows["comparison"] == MATCHED]
    every_difference = []
    for method in [m for m in TITLES if m in set(rows["method"])]:
        own = rows[rows["method"] == method]
        pairs = own.pivot_table(index=["asked", "side", "seed"], columns="trained_on", values="accuracy")
        if not {NEAREST, FARTHEST} <= set(pairs.columns):
            continue
        pairs = pairs.dropna(subset=[NEAREST, FARTHEST])
        splits = pairs.groupby(level=["asked", "side"]).mean()
        apart = (splits[NEAREST] - splits[FARTHEST]).to_numpy()
        n = len(apart)
        if n:
            half = stats.t.ppf(0.975, n - 1) * apart.std(ddof=1) / np.sqrt(n) if n > 1 else None
            means = (float(splits[NEAREST].mean()), float(splits[FARTHEST].mean()))
            every_difference.append(MatchedDifference(method, *means, float(apart.mean()), finite(half), len(pairs), n))
    return every_difference


def by_divergence(rows: pd.DataFrame) -> pd.DataFrame:
    """Accuracy at every target (figure 2, tables 1 and 4): method, asked, reached, first, second, both
    (mean of the two sides, NaN where one is missing), n_runs."""
    rows = rows[rows["comparison"] == DIVERGENCE]
    if rows.empty:
        raise Missing("No finished training run has a split with a target divergence. Train one: fsviz train")
    wide = rows.pivot_table(index=["method", "asked"], columns="side", values="accuracy")
    wide = wide.reindex(columns=[FIRST, SECOND])
    wide["both"] = wide.mean(axis=1, skipna=False)
    grouped = rows.groupby(["method", "asked"])
    wide["reached"], wide["n_runs"] = grouped["reached"].mean(), grouped.size()
    order = {method: i for i, method in enumerate(TITLES)}
    wide = wide.reset_index().rename_axis(columns=None)
    wide = wide.sort_values(["method", "asked"], key=lambda c: c.map(order) if c.name == "method" else c)
    return wide[["method", "asked", "reached", FIRST, SECOND, "both", "n_runs"]].reset_index(drop=True)


def by_split(rows: pd.DataFrame, sides: str = "both") -> pd.DataFrame:
    """Accuracy of methods on every split (tables 1 and 4), also on random and other splits.

    Columns method, split (in words), asked (the target or NaN), reached, accuracy, ci95 (over classes), n_runs.
    """
    points = accuracy_points(rows, sides).rename(columns={"x": "reached"})
    tables_by_split = [points.assign(split=[f"R = {target:g}" for target in points["asked"]])]
    untargeted = rows[(rows["comparison"] == "") & rows["mode"].isin(COMPARED)].dropna(subset=["accuracy"])
    if len(untargeted):
        means = untargeted.groupby(["mode", "method"], as_index=False).agg(
            accuracy=("accuracy", "mean"), ci95=("ci95_classes", "mean"), n_runs=("accuracy", "size")
        )
        tables_by_split.append(means.assign(split=means["mode"].map(COMPARED)))
    columns = ["method", "split", "asked", "reached", "accuracy", "ci95", "n_runs"]
    return pd.concat(tables_by_split, ignore_index=True).reindex(columns=columns)


# --- divergence of single tasks ----------------------------------------------------------------------------------


def task_divergences(classes: ClassFeatures, train: np.ndarray, tasks: Tasks) -> dict[str, np.ndarray]:
    """Divergence of every task (T,) from the train classes, by every measure.

    As for table 2 of the paper, at unit length, in the two ways it describes. Section 5.2: one
    distribution over the classes is around the mean of the train classes' features, the other around that of the
    task's, as in the objective. Section A.2: Gaussians with the mean and the covariance of either group.
    """
    import torch

    base = classes.points[classes.rows_of(train)]
    around = gaussians.Gaussian.around(base)
    divergences: dict[str, list[float]] = {name: [] for name in (*clustering.DIVERGENCES, *gaussians.TITLES)}
    for class_ids in tasks.class_ids:
        own = classes.points[classes.rows_of(class_ids)]
        points = torch.from_numpy(np.concatenate([base, own]))
        mu = torch.from_numpy(np.stack([base.mean(axis=0), own.mean(axis=0)])[None])
        log_p = torch.log_softmax(-(points - mu.transpose(0, 1)).square().sum(-1), dim=-1)[None]
        for name, divergence in clustering.DIVERGENCES.items():
            divergences[name].append(float(divergence.of(points, mu, log_p)))
        for name, value in gaussians.divergences(around, gaussians.Gaussian.around(own)).items():
            divergences[name].append(value)
    return {name: np.array(values) for name, values in divergences.items()}


def divergence_correlations(
    classes: ClassFeatures, spec: RawSettings, chunks: Iterable[Mapping[str, np.ndarray]]
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
            correlation = evaluation.correlation(accuracy, values, tasks.class_ids)
            interval = {
                "pearson": finite(correlation.value),
                "low": finite(correlation.low),
                "high": finite(correlation.high),
            }
            rows.append({"method": method, "divergence": name, **interval})
    return pd.DataFrame(rows)


def mean_correlations(correlations: pd.DataFrame | Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The rows of TASK_CORRELATIONS: means over trained networks, and in how many the interval excludes 0."""
    columns = ["divergence", "method", "pearson", "low", "high"]
    rows = pd.DataFrame(correlations, columns=columns).astype(dict.fromkeys(columns[2:], float))
    rows = rows.dropna(subset=["pearson"])
    rows = rows.assign(significant=(rows["low"] > 0) | (rows["high"] < 0))
    grouped = rows.groupby(["divergence", "method"], sort=False)
    return grouped.agg(
        pearson=("pearson", "mean"), n_significant=("significant", "sum"), n_runs=("significant", "size")
    ).reset_index()


def divergence_title(name: str) -> str:
    """The readable name of a divergence."""
    titles = {key: divergence.title for key, divergence in clustering.DIVERGENCES.items()} | gaussians.TITLES
    return titles.get(name, name)


# --- recorded grids -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class TrainingGrid:
    """A recorded grid of training runs.

    facts  its recipe, date, seconds, and `correlations` (the result of `divergence_correlations`, per run)
    """

    name: str
    rows: pd.DataFrame
    facts: Mapping[str, Any]

    @property
    def title(self) -> str:
        recipe = self.facts["recipe"]
        methods = recipe["methods"]
        who = TITLES[methods[0]] if len(methods) == 1 else f"{len(set(self.rows['method']))} methods"
        return f"{who}, {recipe['width']} filters, {recipe['epochs']} epochs"


def training_grid(dataset: str) -> list[TrainingGrid]:
    """Recorded grids of a dataset: DATASET.json first, then DATASET-NAME.json."""
    frames = []
    for path in [RECORDED / f"{dataset}.json", *sorted(RECORDED.glob(f"{dataset}-*.json"))]:
        if path.is_file():
            facts = read_json(path)
            rows = pd.DataFrame(facts["rows"], columns=list(COLUMNS))
            frames.append(TrainingGrid(path.stem, rows, {k: v for k, v in facts.items() if k != "rows"}))
    return frames


def joined(before: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Two recorded grids of one recipe and other seeds as one: rows, correlations, seeds, dates and seconds of both."""
    then, now = ({"dataset": facts["dataset"], **facts["recipe"]} for facts in (before, more))
    apart = [key for key in {**then, **now} if key != "seeds" and (then.get(key) or []) != (now.get(key) or [])]
    if apart:
        differences = "; ".join(f"{key} {then.get(key)!r} and {now.get(key)!r}" for key in apart)
        raise BadInput(f"Joined grids may differ in seeds only. These differ in: {differences}. Record it apart.")
    seeds = [list(facts["recipe"]["seeds"]) for facts in (before, more)]
    twice = sorted(set(seeds[0]) & set(seeds[1]))
    if twice:
        raise BadInput(f"Seed {twice[0]} is recorded already: {seeds[0]} and {seeds[1]}. Join grids of other seeds.")
    return {
        **before,
        "recipe": {**before["recipe"], "seeds": [*seeds[0], *seeds[1]]},
        "date": ", ".join(dict.fromkeys([*str(before["date"]).split(", "), *str(more["date"]).split(", ")])),
        "seconds": before["seconds"] + more["seconds"],
        "rows": [*before["rows"], *more["rows"]],
        "correlations": [*(before.get("correlations") or []), *(more.get("correlations") or [])],
    }


# --- published numbers --------------------------------------------------------------------------------------


def printed(table: str) -> pd.DataFrame:
    """A table of Arnold & Sha 2021: row (a method, or the title of a divergence), benchmark by its title, value."""
    rows = _paper(table)
    spelled = {"KL": clustering.DIVERGENCES["kl"].title}
    return pd.DataFrame(
        {
            "row": [spelled.get(method, method) for method in rows["method"]],
            "benchmark": [published.benchmark_title(b) for b in rows["benchmark"]],
            "value": rows["value"].to_numpy(),
        }
    )


def printed_easy_and_hard() -> pd.DataFrame:
    """Published results on easy and hard splits (tables 4 and 1, 5-way 5-shot), columns as of `printed`.

    Values are texts: "65.2 → 55.7", or "– → 71.0" if only the hard one is published. Datasets without an easy one are
    excluded.
    """
    fourth, first = _paper("Table 4"), _paper("Table 1")
    fourth = fourth[fourth["setting"] == "5-way 5-shot"]
    cells: dict[tuple[str, str], dict[str, float]] = {}
    for part in (fourth, first):
        for method, benchmark, value in part[["method", "benchmark", "value"]].itertuples(index=False):
            name, _, which = str(benchmark).rpartition(" ")
            if which.lower() in ("easy", "hard"):
                cells.setdefault((method, name), {})[which.lower()] = value
    both = {name for (_, name), cell in cells.items() if "easy" in cell}
    rows = [
        {
            "row": method,
            "benchmark": published.benchmark_title(name),
            "value": f"{cell['easy']:.1f} → {cell['hard']:.1f}" if "easy" in cell else f"– → {cell['hard']:.1f}",
        }
        for (method, name), cell in cells.items()
        if name in both
    ]
    return pd.DataFrame(rows)


def _paper(table: str) -> pd.DataFrame:
    every = published.published_results()
    return every[(every["paper"] == "arnold2021") & (every["table"] == table)]
