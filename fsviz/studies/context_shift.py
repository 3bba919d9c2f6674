"""What does it cost when the context changes? Methods on tasks that share contexts, and on the same tasks without.

    settings -> matched tasks (same classes, same queries; samplers iid, ood, context, spurious) -> accuracy of every
    method on each -> means with intervals, and differences task by task

Figures 3 (methods), 4 (backbones) and 5 (ways, shots) of MetaCoCo (Zhang et al. 2024), and a dial between their ends.
The paper trains its backbones on MetaCoCo; here they are frozen, and what is compared is the support.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, cast

import numpy as np
import pandas as pd

from fsviz import datasets, evaluation, features
from fsviz.analyses import contexts
from fsviz.errors import BadInput
from fsviz.methods import METHOD_NAMES, METHODS
from fsviz.numerics import clustered_mean
from fsviz.records import PAD, Dataset, HeadlineNumber, Predictions, Tasks, Testbed
from fsviz.settings import N_QUERY, N_SHOT, N_TASKS, N_WAY, SEED, RawSettings, Schema, Setting, Settings, Value, to_args
from fsviz.studies import evaluate
from fsviz.studies.study import Arrays, Part, Study, Work, joined
from fsviz.tasks import draw, fitting, snapshot

QUESTION = Setting(
    "question",
    "What is compared",
    "What is compared: methods with support of the same, of other and of swapped contexts, or along a dial.",
    "choice",
    "methods",
    choices={
        "methods": "Methods",
        "dial": "The dial",
    },
)
METHODS_COMPARED = METHOD_NAMES.with_(default=["protonet", "ridge", "finetune"])
TASKS: dict[str, Setting] = {
    s.name: s for s in (draw.SPLIT, N_WAY, N_SHOT, N_QUERY, N_TASKS.with_(default=100), SEED, draw.KEEP_GROUPS)
}
OWN: dict[str, Setting] = {s.name: s for s in (QUESTION, draw.BACKBONE, METHODS_COMPARED)}
SETTINGS = Schema({**OWN, **TASKS}, required=("dataset",), of="the study of contexts")
SUPPORTS = {"iid": "same contexts (IID)", "ood": "other contexts (OOD)", "spurious": "swapped contexts"}
DIAL = (0.0, 0.25, 0.5, 0.75, 1.0)
GRIDS = {"n_shot": (1, 2, 3, 5, 10), "n_way": (2, 3, 5, 10, 15, 20)}  # values of a sweep, as far as they fit
_CHUNK = 100  # tasks
_FEWEST = 10  # tasks of a preview


class Spec(draw.TaskSpec, total=False):
    """A checked spec; a run adds its version and folder."""

    study: str
    version: int
    folder: str
    question: str
    methods: list[str]


class Mean(TypedDict):
    """A mean in percent with its 95% intervals, None where there is none."""

    mean: float
    ci95: float | None
    ci95_images: float | None
    ci95_classes: float | None


class Row(TypedDict, total=False):
    """What the summary says of one method: by support, its accuracy and what it loses."""

    method: str
    title: str
    family: str
    n_tasks: int
    accuracy: dict[str, Mean]
    loss: dict[str, Mean]


class Summary(TypedDict, total=False):
    """What came out: settings of the tasks, and a row per method."""

    dataset: str
    split: str
    backbone: str
    question: str
    n_way: int
    n_shot: int
    n_query: int
    chance: float
    rows: list[Row]
    left_out: list[str]


def check(spec: RawSettings) -> Spec:
    """The spec with every setting; shape, split and backbone fit the dataset if they are not named."""
    given = SETTINGS.requested(spec)
    dataset = contexts.load_with_images(given)
    backbone = draw.default_backbone(dataset)
    values = SETTINGS.check(given, split=draw.default_split(dataset), backbone=backbone, **fit(dataset, given).values)
    if not values["methods"]:
        raise BadInput("At least one method is needed. Name some with --methods protonet,ridge.")
    dataset.split_class_ids(values["split"])
    return cast(Spec, {**values, "dataset": dataset.name})


def supports(spec: Spec) -> dict[str, dict[str, Any]]:
    """The supports that are compared on the same queries, by name: the settings of their sampler. The first is what
    differences are from."""
    if spec["question"] == "dial":
        return {f"{shift:g}": {"sampler": "context", "shift": shift} for shift in DIAL}
    return {name: {"sampler": name} for name in SUPPORTS}


def sweeps(spec: Spec) -> dict[str, Sequence[Value]]:
    """The numbers of shots and ways of which this dataset can give tasks, and its backbones."""
    dataset = datasets.load(spec["dataset"])
    n_classes = len(dataset.split_class_ids(spec["split"]))
    values: dict[str, Sequence[Value]] = {draw.BACKBONE.name: list(features.available(dataset))}
    for name, grid in GRIDS.items():
        asked = [cast(Spec, {**spec, name: value}) for value in grid]
        values[name] = [of[name] for of in asked if n_classes - len(left_out(dataset, of)) >= of["n_way"]]  # type: ignore[literal-required]
    return values


def left_out(dataset: Dataset, spec: Settings) -> dict[int, str]:
    """Classes of the split that no such task can hold, with a sentence for each."""
    return draw.excluded_classes(dataset, _recipe(dataset, {**spec, "n_way": 2}, "iid"))  # ways play no part


def fit(dataset: Dataset, given: RawSettings) -> fitting.Fit:
    """Ways, shots and queries of the tasks: those given, else the defaults, lowered to what enough classes have."""
    usual = {name: s.default for name, s in TASKS.items()}
    shape = {name: given.get(name) for name in TASKS}
    return fitting.fit(dataset, {**shape, "sampler": "iid"}, usual)


def _recipe(dataset: Dataset, spec: Settings, sampler: str, **more: Any) -> draw.Recipe:
    return draw.recipe_for(dataset, **{name: spec[name] for name in TASKS}, sampler=sampler, **more)


def draw_tasks(spec: Spec) -> dict[str, Testbed]:
    """The tasks of a spec with every support."""
    dataset = datasets.load(spec["dataset"])
    table = features.load(dataset, spec["backbone"])
    return {
        name: draw.sample_testbed(dataset, _recipe(dataset, spec, **sampler), name=name, usable=table.image_ids)
        for name, sampler in supports(spec).items()
    }


# --- at once, or as a run ----------------------------------------------------------------------------------------


def work(spec: Spec) -> Work:
    return Work(spec["n_tasks"], "tasks", guess_seconds(spec))


def shorten(spec: Spec, n: int) -> Spec | None:
    return {**spec, "n_tasks": max(n, _FEWEST)} if spec["n_tasks"] > _FEWEST else None


def guess_seconds(spec: Spec) -> float:
    """About how long the answer to a spec takes on one ordinary core."""
    dataset = datasets.load(spec["dataset"])
    blank = np.zeros((spec["n_tasks"], spec["n_way"], 1), dtype=np.int64)
    tasks = Tasks(blank[:, :, 0], blank.repeat(spec["n_shot"], 2), blank.repeat(spec["n_query"], 2))
    once = sum(evaluate.guess_seconds(dataset, spec["backbone"], name, {}, tasks) for name in spec["methods"])
    return once * len(supports(spec))


def _right(spec: Spec, method: str, tasks: Mapping[str, Tasks]) -> dict[str, np.ndarray]:
    """Which queries (T, W, Q) a method names rightly with every support, by its name."""
    dataset = datasets.load(spec["dataset"])
    return {
        name: evaluate.predict_tasks(dataset, spec["backbone"], method, {}, of).rank == 0 for name, of in tasks.items()
    }


def accuracy(said: Predictions) -> np.ndarray:
    return evaluation.task_accuracy(said)


def prepare(spec: Spec, folder: Path) -> Spec:
    """Freezes the tasks with every support into `folder`."""
    for name, bed in draw_tasks(spec).items():
        snapshot.freeze(folder, bed, name)
    return spec


def parts(spec: Spec) -> list[Part]:
    """One part per method."""
    return [Part(METHODS[name].title, spec["n_tasks"], _CHUNK) for name in spec["methods"]]


def run_chunk(spec: Spec, part: int, start: int, stop: int) -> dict[str, np.ndarray]:
    """Which queries (t, W, Q) of a range of tasks a method classifies correctly, by support."""
    tasks = {name: snapshot.tasks(spec["folder"], name, start, stop) for name in supports(spec)}
    return _right(spec, spec["methods"][part], tasks)


def collect(spec: Spec, chunks: Sequence[Arrays]) -> Summary:
    """One row per method: accuracy with every support, and what it loses against the first one, in percent."""
    names, rows = list(supports(spec)), []
    for part, arrays in joined(chunks).items():
        method = METHODS[spec["methods"][part]]
        at = arrays["positions"]
        tasks = {name: snapshot.tasks(spec["folder"], name).take(at) for name in names}
        right = {name: 100.0 * arrays[name] for name in names}
        row: Row = {
            "method": method.name,
            "title": method.title,
            "family": method.family,
            "n_tasks": len(at),
            "accuracy": {name: _mean(right[name], tasks[name]) for name in names},
            "loss": {
                name: _mean(right[names[0]] - right[name], _both(tasks[names[0]], tasks[name])) for name in names[1:]
            },
        }
        rows.append(row)
    base = {name: spec[name] for name in ("dataset", "split", "backbone", "question", "n_way", "n_shot", "n_query")}
    dataset = datasets.load(spec["dataset"])
    return cast(
        Summary,
        base | {"chance": 100 / spec["n_way"], "rows": rows, "left_out": list(left_out(dataset, spec).values())},
    )


def headline(summary: Summary) -> list[HeadlineNumber]:
    """The accuracy of every method with every support, and what it loses."""
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


def _both(first: Tasks, second: Tasks) -> Tasks:
    """Matched tasks with the images of both supports, each once: what a difference of the two can owe to an image.

    Of an image that only one of the two supports holds, the whole difference counts as its effect: intervals over
    images are cautious (in simulations with known truth they hold it in more than 95%).
    """
    new = np.where(second.support == first.support, PAD, second.support)
    return Tasks(first.class_ids, np.concatenate([first.support, new], axis=2), first.query)


def _mean(values: np.ndarray, tasks: Tasks) -> Mean:
    """Mean of what is known of every query (T, W, Q), with its 95% intervals over tasks, images and classes."""
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
    """The command that asks the same."""
    known = SETTINGS.settings
    said = {name: spec[name] for name in known if spec[name] != known[name].default}
    said = {"question": spec["question"], **said}
    return shlex.join(["fsviz", "contexts", spec["dataset"], *to_args(said, known)])


# --- what the loss is made of ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answers:
    """What one method says of the same queries with two supports.

    first, second  the tasks with same and with shifted support, and what is said of them
    """

    first: Tasks
    second: Tasks
    said_first: Predictions
    said_second: Predictions

    @property
    def loss(self) -> np.ndarray:
        """Of every query (T, W, Q): 1 where the shift makes a right answer wrong, -1 for the reverse, else 0."""
        return (self.said_first.rank == 0).astype(int) - (self.said_second.rank == 0).astype(int)


def answers(spec: Spec, method: str, shift: float) -> Answers:
    """One method on the tasks of a spec with shared contexts, and with this share of the support in others."""
    (first, said_first), (second, said_second) = (answered(spec, method, at) for at in (0.0, shift))
    return Answers(first, second, said_first, said_second)


def answered(spec: Spec, method: str, shift: float) -> tuple[Tasks, Predictions]:
    """The tasks of a spec with this share of the support in other contexts, and what one method says of them."""
    dataset = datasets.load(spec["dataset"])
    usable = features.load(dataset, spec["backbone"]).image_ids
    tasks = draw.sample_testbed(dataset, _recipe(dataset, spec, "context", shift=shift), usable=usable).tasks
    return tasks, evaluate.predict_tasks(dataset, spec["backbone"], method, {}, tasks)


def losses(dataset: Dataset, found: Answers, by: str) -> pd.DataFrame:
    """Loss in points by class ("class") or by context of the query ("context"): name, loss, ci95, n_queries, and how
    many images were asked. Largest first; 95% intervals over images; rows of a single image are left out."""
    query = found.first.query
    kind, names = _kinds(dataset, found, by)
    rows = []
    for which in np.unique(kind):
        here = kind == which
        mean, half, _ = clustered_mean(100.0 * found.loss[here], query[here])
        n_images = len(np.unique(query[here]))
        if np.isfinite(half):
            rows.append((names[int(which)], mean, half, int(here.sum()), n_images))
    table = pd.DataFrame(rows, columns=["name", "loss", "ci95", "n_queries", "n_images"])
    return table.sort_values("loss", ascending=False, ignore_index=True, kind="stable")


def _kinds(dataset: Dataset, found: Answers, by: str) -> tuple[np.ndarray, dict[int, str]]:
    """The class or the context of every query (T, W, Q) as a number, and the names of these."""
    query = found.first.query
    if by == "class":
        kind = np.broadcast_to(found.first.class_ids[:, :, None], query.shape)
        return kind, dict(enumerate(dataset.distinct_names(np.arange(dataset.n_classes))))
    codes, known = pd.factorize(dataset.image_contexts())
    return codes[query], dict(enumerate(known))


def lost_queries(dataset: Dataset, found: Answers, by: str, name: str) -> pd.DataFrame:
    """Queries of a class or of a context, the most often lost first: image_id, n_asked, n_lost, and told: its context
    where they are of a class, its class where they are of a context."""
    kind, names = _kinds(dataset, found, by)
    here = np.isin(kind, [number for number, known in names.items() if known == name])
    table = pd.DataFrame({"image_id": found.first.query[here], "lost": found.loss[here] == 1})
    counts = table.groupby("image_id")["lost"].agg(n_asked="size", n_lost="sum").reset_index()
    other = (
        dataset.image_contexts()
        if by == "class"
        else dataset.classes["class_name"].to_numpy()[dataset.image_class_ids()]
    )
    counts["told"] = [str(other[i]) for i in counts["image_id"]]
    return counts.sort_values(["n_lost", "n_asked"], ascending=[False, True], ignore_index=True, kind="stable")


def treacherous(dataset: Dataset, found: Answers, n_contexts: int = 5, n_images: int = 9) -> list[Treacherous]:
    """The contexts of queries that lose most, each with the images that are lost most often."""
    assert dataset.images is not None
    lost = found.loss == 1
    said = np.take_along_axis(found.first.class_ids, found.said_second.predicted.reshape(len(lost), -1), 1)
    table = pd.DataFrame(
        {"image_id": found.first.query.ravel(), "lost": lost.ravel(), "said": said.reshape(lost.shape).ravel()}
    )
    counts = table.groupby("image_id")["lost"].agg(n_asked="size", n_lost="sum").reset_index()
    counts = counts[counts["n_lost"] > 0].sort_values(["n_lost", "n_asked"], ascending=[False, True], kind="stable")
    instead = table[table["lost"]].groupby("image_id")["said"].agg(lambda said: said.mode().iloc[0])
    counts = counts.assign(taken_for=counts["image_id"].map(instead))
    context = dataset.images["context"].fillna("").astype(str).to_numpy()[counts["image_id"]]
    worst = losses(dataset, found, "context").head(n_contexts)
    each = [(row, counts[context == row.name].head(n_images)) for row in worst.itertuples(index=False)]
    return [
        Treacherous(row.name, row.loss, row.ci95, images.reset_index(drop=True))
        for row, images in each
        if row.loss > 0 and len(images)
    ]


@dataclass(frozen=True)
class Treacherous:
    """A context without which its images are lost: points lost, 95% interval over images; and the images that are named
    rightly with support of their contexts and wrongly without, the most often lost first: image_id, n_asked, n_lost,
    taken_for (the class_id most often said instead)."""

    context: str
    loss: float
    ci95: float
    images: pd.DataFrame


STUDY = Study(
    name="context_shift",
    title="context shift",
    question="What does it cost when the context changes?",
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
