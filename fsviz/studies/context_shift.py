"""Cost of a context change: methods on the same queries, with support in the same and in other contexts.

    settings -> matched tasks (same classes, same queries; samplers iid, ood, context, spurious) -> accuracy of every
    method on each -> means with intervals, and differences task by task

Figures 3 (methods), 4 (backbones) and 5 (ways, shots) of MetaCoCo (Zhang et al. 2024), and steps between their ends.
The paper trains its backbones on MetaCoCo. Here they are frozen, and only the support changes.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict, cast

import numpy as np
import pandas as pd

from fsviz import datasets, evaluation, features
from fsviz.errors import BadInput
from fsviz.features.backbones import title_of
from fsviz.methods import METHOD_NAMES, METHODS
from fsviz.numerics import clustered_mean
from fsviz.records import PAD, Dataset, HeadlineNumber, Predictions, Tasks, Testbed
from fsviz.settings import (
    N_QUERY,
    N_SHOT,
    N_TASKS,
    N_WAY,
    SEED,
    SHAPE,
    RawSettings,
    Schema,
    Setting,
    Settings,
    Value,
    to_args,
)
from fsviz.studies import evaluate
from fsviz.studies.study import Arrays, Part, Study, Work, joined
from fsviz.tasks import draw, fitting, snapshot

QUESTION = Setting(
    "question",
    "Compare",
    "Methods: support in the same, other and swapped contexts. Context shift: steps from the same to other contexts.",
    "choice",
    "methods",
    choices={
        "methods": "Methods",
        "dial": "Context shift",
    },
)
METHODS_COMPARED = METHOD_NAMES.with_(default=["protonet", "ridge", "finetune"])
TASKS: dict[str, Setting] = {
    s.name: s for s in (draw.SPLIT, N_WAY, N_SHOT, N_QUERY, N_TASKS.with_(default=100), SEED, draw.KEEP_GROUPS)
}
OWN: dict[str, Setting] = {s.name: s for s in (QUESTION, draw.BACKBONE, METHODS_COMPARED)}
SETTINGS = Schema({**OWN, **TASKS}, required=("dataset",), of="the study of contexts")
SUPPORTS = {"iid": "same contexts", "ood": "other contexts", "spurious": "swapped contexts"}
DIAL = (0.0, 0.25, 0.5, 0.75, 1.0)
GRIDS = {"n_shot": (1, 2, 3, 5, 10), "n_way": (2, 3, 5, 10, 15, 20)}  # values of a sweep, as far as they fit
_CHUNK = 100  # tasks
_FEWEST = 10  # tasks of a preview


class ContextShiftSpec(draw.TaskSpec, total=False):
    """A checked spec; a run adds its version and folder."""

    study: str
    version: int
    folder: str
    question: str
    methods: list[str]


class Mean(TypedDict):
    """A mean in percent with its 95% intervals, None if undefined."""

    mean: float
    ci95: float | None
    ci95_images: float | None
    ci95_classes: float | None


class ContextShiftRow(TypedDict, total=False):
    """Accuracy of a method and its loss, by support."""

    method: str
    title: str
    family: str
    n_tasks: int
    accuracy: dict[str, Mean]
    loss: dict[str, Mean]


class ContextShiftSummary(TypedDict, total=False):
    """Settings of the tasks, and a row per method."""

    dataset: str
    split: str
    backbone: str
    question: str
    n_way: int
    n_shot: int
    n_query: int
    chance: float
    rows: list[ContextShiftRow]
    left_out: list[str]


def check(spec: RawSettings) -> ContextShiftSpec:
    """The spec with every setting; shape, split and backbone fit the dataset if not requested."""
    requested = SETTINGS.requested(spec)
    dataset = datasets.load_with_contexts(requested["dataset"])
    backbone = draw.default_backbone(dataset)
    values = SETTINGS.check(
        requested, split=draw.default_split(dataset), backbone=backbone, **fit(dataset, requested).values
    )
    if not values["methods"]:
        raise BadInput("At least one method is needed, for example --methods protonet,ridge.")
    dataset.split_class_ids(values["split"])
    return cast(ContextShiftSpec, {**values, "dataset": dataset.name})


def supports(spec: ContextShiftSpec) -> dict[str, dict[str, Any]]:
    """Sampler settings of every support, by name. Losses are relative to the first."""
    if spec["question"] == "dial":
        return {f"{shift:g}": {"sampler": "context", "shift": shift} for shift in DIAL}
    return {name: {"sampler": name} for name in SUPPORTS}


def sweeps(spec: ContextShiftSpec) -> dict[str, Sequence[Value]]:
    """Shots and ways that fit the dataset, and its backbones."""
    dataset = datasets.load(spec["dataset"])
    n_classes = len(dataset.split_class_ids(spec["split"]))
    values: dict[str, Sequence[Value]] = {draw.BACKBONE.name: list(features.available(dataset))}
    for name, grid in GRIDS.items():
        specs = [cast(ContextShiftSpec, {**spec, name: value}) for value in grid]
        values[name] = [of[name] for of in specs if n_classes - len(left_out(dataset, of)) >= of["n_way"]]  # type: ignore[literal-required]
    return values


def left_out(dataset: Dataset, spec: Settings) -> dict[int, str]:
    """Classes of the split that no such task can hold, with the reason for each."""
    return draw.excluded_classes(dataset, _recipe(dataset, {**spec, "n_way": 2}, "iid"))  # ways do not matter here


def fit(dataset: Dataset, requested: RawSettings) -> fitting.Fit:
    """Ways, shots and queries as requested; defaults are lowered to what enough classes have."""
    defaults = {name: s.default for name, s in TASKS.items()}
    shape = {name: requested.get(name) for name in TASKS}
    return fitting.fit(dataset, {**shape, "sampler": "iid"}, defaults)


def _recipe(dataset: Dataset, spec: Settings, sampler: str, **more: Any) -> draw.Recipe:
    return draw.recipe_for(dataset, **{name: spec[name] for name in TASKS}, sampler=sampler, **more)


def draw_tasks(spec: ContextShiftSpec) -> dict[str, Testbed]:
    """The tasks of a spec with every support."""
    dataset = datasets.load(spec["dataset"])
    table = features.load(dataset, spec["backbone"])
    return {
        name: draw.sample_testbed(dataset, _recipe(dataset, spec, **sampler), name=name, usable=table.image_ids)
        for name, sampler in supports(spec).items()
    }


# --- work and chunks ---------------------------------------------------------------------------------------------


def work(spec: ContextShiftSpec) -> Work:
    return Work(spec["n_tasks"], "tasks", guess_seconds(spec))


def shorten(spec: ContextShiftSpec, n: int) -> ContextShiftSpec | None:
    return {**spec, "n_tasks": max(n, _FEWEST)} if spec["n_tasks"] > _FEWEST else None


def guess_seconds(spec: ContextShiftSpec) -> float:
    """Estimated time of a spec on one ordinary core."""
    dataset = datasets.load(spec["dataset"])
    blank = np.zeros((spec["n_tasks"], spec["n_way"], 1), dtype=np.int64)
    tasks = Tasks(blank[:, :, 0], blank.repeat(spec["n_shot"], 2), blank.repeat(spec["n_query"], 2))
    once = sum(evaluate.guess_seconds(dataset, spec["backbone"], name, {}, tasks) for name in spec["methods"])
    return once * len(supports(spec))


def _correct(spec: ContextShiftSpec, method: str, tasks: Mapping[str, Tasks]) -> dict[str, np.ndarray]:
    """Whether a method classifies each query (T, W, Q) correctly, by support."""
    dataset = datasets.load(spec["dataset"])
    return {
        name: evaluate.predict_tasks(dataset, spec["backbone"], method, {}, shifted).rank == 0
        for name, shifted in tasks.items()
    }


def accuracy(predictions: Predictions) -> np.ndarray:
    return evaluation.task_accuracy(predictions)


def prepare(spec: ContextShiftSpec, folder: Path) -> ContextShiftSpec:
    """Save the tasks with every support in `folder`."""
    for name, bed in draw_tasks(spec).items():
        snapshot.freeze(folder, bed, name)
    return spec


def parts(spec: ContextShiftSpec) -> list[Part]:
    """One part per method."""
    return [Part(METHODS[name].title, spec["n_tasks"], _CHUNK) for name in spec["methods"]]


def run_chunk(spec: ContextShiftSpec, part: int, start: int, stop: int) -> dict[str, np.ndarray]:
    """Whether a method classifies each query (t, W, Q) of a range of tasks correctly, by support."""
    tasks = {name: snapshot.tasks(spec["folder"], name, start, stop) for name in supports(spec)}
    return _correct(spec, spec["methods"][part], tasks)


def collect(spec: ContextShiftSpec, chunks: Sequence[Arrays]) -> ContextShiftSummary:
    """One row per method: accuracy with every support, and loss relative to the first, in percent."""
    names, rows = list(supports(spec)), []
    for part, arrays in joined(chunks).items():
        method = METHODS[spec["methods"][part]]
        at = arrays["positions"]
        tasks = {name: snapshot.tasks(spec["folder"], name).take(at) for name in names}
        correct = {name: 100.0 * arrays[name] for name in names}
        row: ContextShiftRow = {
            "method": method.name,
            "title": method.title,
            "family": method.family,
            "n_tasks": len(at),
            "accuracy": {name: _mean(correct[name], tasks[name]) for name in names},
            "loss": {
                name: _mean(correct[names[0]] - correct[name], _with_both_supports(tasks[names[0]], tasks[name]))
                for name in names[1:]
            },
        }
        rows.append(row)
    base = {name: spec[name] for name in ("dataset", "split", "backbone", "question", "n_way", "n_shot", "n_query")}
    dataset = datasets.load(spec["dataset"])
    return cast(
        ContextShiftSummary,
        base | {"chance": 100 / spec["n_way"], "rows": rows, "left_out": list(left_out(dataset, spec).values())},
    )


def headline(summary: ContextShiftSummary) -> list[HeadlineNumber]:
    """Accuracy and loss of every method with every support."""
    numbers = []
    for row in summary["rows"]:
        for name, mean in row["accuracy"].items():
            title = f"{row['title']}, {SUPPORTS.get(name, name)}"
            number = HeadlineNumber.around(f"{row['method']}_{name}", title, mean["mean"], mean["ci95"])
            numbers.append(number)
        for name, mean in row["loss"].items():
            title = f"{row['title']}, loss by {SUPPORTS.get(name, name)}"
            loss = HeadlineNumber.around(f"loss_{row['method']}_{name}", title, mean["mean"], mean["ci95"], "points")
            numbers.append(loss)
    return numbers


def loss_answer(summary: ContextShiftSummary, method: str, values: Sequence[str] = ()) -> tuple[str, str]:
    """The loss of a method with other contexts as a bold sentence, and its setting.

    values  what differs between the rows of the method, in words ("1 shot"), if there are several
    """
    rows = [row for row in summary["rows"] if row["method"] == method]
    support = "ood" if "ood" in rows[0]["loss"] else list(rows[0]["loss"])[-1]
    shape = f"{summary['n_way']:,}-way {summary['n_shot']:,}-shot "
    if len(rows) > 1:
        order = sorted(range(len(rows)), key=lambda i: rows[i]["loss"][support]["mean"])
        least, most = (f"{values[i]} ({_points(rows[i]['loss'][support])})" for i in (order[0], order[-1]))
        return (
            f"{rows[0]['title']} loses most with {most} and least with {least} when the support shows other contexts.",
            f"{rows[0]['n_tasks']:,} tasks each, 95% CI over tasks.",
        )
    row, loss, backbone = rows[0], rows[0]["loss"][support], title_of(summary["backbone"])
    before, after = (row["accuracy"][name]["mean"] for name in (next(iter(row["accuracy"])), support))
    if loss["ci95"] is None or abs(loss["mean"]) <= loss["ci95"]:
        sentence = f"{row['title']} shows no significant loss when the support shows other contexts: {_points(loss)}."
    else:
        verb = "loses" if loss["mean"] > 0 else "gains"
        sentence = f"{row['title']} {verb} {_points(loss, signed=False)} when the support shows other contexts."
    wider = "" if loss["ci95_classes"] is None else f" (± {loss['ci95_classes']:.1f} over classes)"
    return sentence, (
        f"{before:.1f}% → {after:.1f}% correct on {row['n_tasks']:,} {shape}tasks, {backbone} features; chance level "
        f"{summary['chance']:.0f}%, 95% CI over tasks{wider}."
    )


def _points(loss: Mean, signed: bool = True) -> str:
    half = "" if loss["ci95"] is None else f" ± {loss['ci95']:.1f}"
    return f"{loss['mean'] if signed else abs(loss['mean']):.1f}{half} points"


def _with_both_supports(first: Tasks, second: Tasks) -> Tasks:
    """Matched tasks with the images of both supports, each once.

    If only one support holds an image, the total difference counts as its effect. Intervals over images are therefore
    conservative: in simulations they cover the true value in more than 95% of cases.
    """
    new = np.where(second.support == first.support, PAD, second.support)
    return replace(first, support=np.concatenate([first.support, new], axis=2))


def _mean(values: np.ndarray, tasks: Tasks) -> Mean:
    """Mean over queries (T, W, Q), with 95% intervals over tasks, images and classes."""
    of_task = values.mean((1, 2))
    halves = {
        name: evaluation.estimate(of_task, over, values, tasks).ci95
        for name, over in (("ci95", "tasks"), ("ci95_images", "images"), ("ci95_classes", "classes"))
    }
    return cast(
        Mean,
        {"mean": float(of_task.mean())} | {n: float(h) if np.isfinite(h) else None for n, h in halves.items()},
    )


def command(spec: Settings) -> str:
    """Command line of a spec."""
    settings = SETTINGS.settings
    changed = {name: spec[name] for name in settings if name in SHAPE or spec[name] != settings[name].default}
    changed = {"question": spec["question"], **changed}
    return shlex.join(["fsviz", "contexts", spec["dataset"], *to_args(changed, settings)])


# --- where accuracy is lost --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ContextResults:
    """Predictions of a method for the same queries with two supports.

    first, second  the tasks with matching and with shifted support, and their predictions
    """

    first: Tasks
    second: Tasks
    first_predictions: Predictions
    second_predictions: Predictions

    @property
    def loss(self) -> np.ndarray:
        """Loss per query (T, W, Q): 1 if correct only before the shift, -1 if only after it, else 0."""
        return (self.first_predictions.rank == 0).astype(int) - (self.second_predictions.rank == 0).astype(int)

    @property
    def tasks_by_loss(self) -> np.ndarray:
        """Positions of the tasks, largest loss first."""
        return np.argsort(-self.loss.sum((1, 2)), kind="stable")

    def ways_by_loss(self, task: int) -> np.ndarray:
        """Positions of the classes of a task, largest loss first."""
        return np.argsort(-self.loss[task].sum(1), kind="stable")


def compare_supports(spec: ContextShiftSpec, method: str, shift: float) -> ContextResults:
    """Classify the tasks of a spec with matching support, and with this share of it in other contexts."""
    (first, first_predictions), (second, second_predictions) = (classify(spec, method, at) for at in (0.0, shift))
    return ContextResults(first, second, first_predictions, second_predictions)


def classify(spec: ContextShiftSpec, method: str, shift: float) -> tuple[Tasks, Predictions]:
    """Tasks with this share of the support in other contexts, and predictions of a method."""
    dataset = datasets.load(spec["dataset"])
    usable = features.load(dataset, spec["backbone"]).image_ids
    tasks = draw.sample_testbed(dataset, _recipe(dataset, spec, "context", shift=shift), usable=usable).tasks
    return tasks, evaluate.predict_tasks(dataset, spec["backbone"], method, {}, tasks)


def losses(dataset: Dataset, results: ContextResults, by: str) -> pd.DataFrame:
    """Loss in points by "class" or by "context" of the query, largest first.

    Columns name, loss, ci95 (over images), n_queries and n_images. Rows of a single image are excluded.
    """
    query = results.first.query
    kind, names = _kinds(dataset, results, by)
    rows = []
    for number in np.unique(kind):
        is_kind = kind == number
        mean, half, _ = clustered_mean(100.0 * results.loss[is_kind], query[is_kind])
        n_images = len(np.unique(query[is_kind]))
        if np.isfinite(half):
            rows.append((names[int(number)], mean, half, int(is_kind.sum()), n_images))
    table = pd.DataFrame(rows, columns=["name", "loss", "ci95", "n_queries", "n_images"])
    return table.sort_values("loss", ascending=False, ignore_index=True, kind="stable")


def _kinds(dataset: Dataset, results: ContextResults, by: str) -> tuple[np.ndarray, dict[int, str]]:
    """Class or context of every query (T, W, Q) as a number, and the name of every number."""
    query = results.first.query
    if by == "class":
        kind = np.broadcast_to(results.first.class_ids[:, :, None], query.shape)
        return kind, dict(enumerate(dataset.distinct_names(np.arange(dataset.n_classes))))
    codes, context_names = pd.factorize(dataset.image_contexts())
    return codes[query], dict(enumerate(context_names))


def lost_queries(dataset: Dataset, results: ContextResults, by: str, name: str) -> pd.DataFrame:
    """Queries of a class or of a context, the most often lost first.

    Columns image_id, n_queries, n_misclassified and caption: the context in a class, the class in a context.
    """
    kind, names = _kinds(dataset, results, by)
    is_kind = np.isin(kind, [number for number, label in names.items() if label == name])
    table = pd.DataFrame({"image_id": results.first.query[is_kind], "lost": results.loss[is_kind] == 1})
    counts = table.groupby("image_id")["lost"].agg(n_queries="size", n_misclassified="sum").reset_index()
    captions = (
        dataset.image_contexts()
        if by == "class"
        else dataset.classes["class_name"].to_numpy()[dataset.image_class_ids()]
    )
    counts["caption"] = [str(captions[i]) for i in counts["image_id"]]
    return counts.sort_values(
        ["n_misclassified", "n_queries"], ascending=[False, True], ignore_index=True, kind="stable"
    )


def misleading_contexts(
    dataset: Dataset, results: ContextResults, n_contexts: int = 5, n_images: int = 9
) -> list[MisleadingContext]:
    """Query contexts with the largest loss, each with the images lost most often."""
    assert dataset.images is not None
    lost = results.loss == 1
    predicted = np.take_along_axis(
        results.first.class_ids, results.second_predictions.predicted.reshape(len(lost), -1), 1
    )
    table = pd.DataFrame(
        {
            "image_id": results.first.query.ravel(),
            "lost": lost.ravel(),
            "predicted": predicted.reshape(lost.shape).ravel(),
        }
    )
    counts = table.groupby("image_id")["lost"].agg(n_queries="size", n_misclassified="sum").reset_index()
    counts = counts[counts["n_misclassified"] > 0].sort_values(
        ["n_misclassified", "n_queries"], ascending=[False, True], kind="stable"
    )
    instead = table[table["lost"]].groupby("image_id")["predicted"].agg(lambda predicted: predicted.mode().iloc[0])
    counts = counts.assign(predicted_class=counts["image_id"].map(instead))
    context = dataset.images["context"].fillna("").astype(str).to_numpy()[counts["image_id"]]
    worst = losses(dataset, results, "context").head(n_contexts)
    each = [(row, counts[context == row.name].head(n_images)) for row in worst.itertuples(index=False)]
    return [
        MisleadingContext(row.name, row.loss, row.ci95, images.reset_index(drop=True))
        for row, images in each
        if row.loss > 0 and len(images)
    ]


@dataclass(frozen=True)
class MisleadingContext:
    """A context whose images are misclassified if the support shows others.

    loss, ci95  in points, with the half-width of the 95% interval over images
    images      correct with matching support and incorrect without, the most often lost first: image_id, n_queries,
                n_misclassified, predicted_class (the class_id predicted most often without)
    """

    context: str
    loss: float
    ci95: float
    images: pd.DataFrame


STUDY = Study(
    name="context_shift",
    title="context shift",
    question="What does a context change cost?",
    settings=SETTINGS,
    check=check,
    prepare=prepare,
    parts=parts,
    run_chunk=run_chunk,
    collect=collect,
    headline=headline,
    sweeps=sweeps,
    work=work,
    shorten=shorten,
    version=2,
)
