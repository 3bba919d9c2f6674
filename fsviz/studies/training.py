"""Training as a run: one network, trained one way on the train classes of a split, measured on its test classes.

    dataset -> images made small -> epochs on the train classes, the best kept by validation tasks -> test tasks
                                                              -> the backbone trained:NAME

"split" in a spec is "own", the name of a saved split, or what a split file holds. A chunk reads a part of the images,
trains an epoch, or answers some test tasks. An epoch follows from the one before, whose weights
and moments of Adam lie in the run's folder (training/, the last two epochs); if they are gone, epochs are repeated from
the first weights, which follow from the seed. After Arnold & Sha 2021, section 5.
"""

from __future__ import annotations

import json
import shlex
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from fsviz import datasets, evaluation, features, sampling, training
from fsviz.datasets import saved_splits
from fsviz.errors import BadInput, NotFinite
from fsviz.features import trained
from fsviz.numerics import chunk_seed, finite, mean_and_ci95, threads
from fsviz.records import PAD, SIDES, Dataset, Predictions, Tasks
from fsviz.settings import SHAPE, RawSettings, Schema, Setting, Settings, images_advice, to_args
from fsviz.studies.study import Arrays, Part, Study
from fsviz.studies.thread_limits import half
from fsviz.tasks import fitting
from fsviz.training import FINETUNE, TITLES, TRAINERS, Trainer
from fsviz.workspace import atomic_file

OWN = "own"  # the dataset's own train, val and test classes
METHOD = Setting(
    "method",
    "Trained by",
    "How the network learns from the train classes.",
    "choice",
    "multiclass",
    choices={name: trainer.title for name, trainer in TRAINERS.items()},
)
SETTINGS: dict[str, Setting] = {name: s for trainer in TRAINERS.values() for name, s in trainer.settings.items()}
NAME = Setting("name", "Name", "What the trained backbone is called; chosen from the settings if empty.", "text", "")
DEVICE = Setting("device", "Device", "Where the network is trained: auto, cpu, cuda, mps.", "text", "auto")
TEST_AT_ONCE = 50  # test tasks of a chunk
RATE_TASKS = 20  # validation tasks that the rate of Finetune is chosen on
_KEPT = 2  # epochs whose state is kept: a kill may fall between the state of an epoch and its chunk
_DRAWS = {"val": 1_000_001, "test": 1_000_002}  # their tasks come from streams that no epoch has

TrainingSpec = dict[str, Any]


class TrainingEpoch(TypedDict):
    """A point of the learning curve, accuracies in percent."""

    epoch: int
    loss: float
    train_accuracy: float
    val_accuracy: float
    val_ci95: float | None


class SkippedBatch(TypedDict):
    """An image that could not be read."""

    image_id: int
    reason: str


class TestResult(TypedDict, total=False):
    """What the test tasks say of what was trained, or of Finetune at a rate; intervals over images and classes are
    there once the run is finished."""

    method: str
    label: str
    n_tasks: int
    accuracy: float
    ci95: float | None
    rate: float
    ci95_images: float | None
    ci95_classes: float | None


class TrainingSummary(TypedDict, total=False):
    """What came out of a run so far; the backbone and its file are there once it is finished."""

    dataset: str
    method: str
    split: str
    asked: Any
    reached: Any
    n_classes: dict[str, int]
    settings: dict[str, Any]
    n_images: int
    skipped: list[SkippedBatch]
    curve: list[TrainingEpoch]
    n_epochs: int
    best_epoch: int | None
    val_accuracy: float | None
    rates: dict[str, float]
    chance: float
    results: list[TestResult]
    backbone: str
    checkpoint: str


# --- what is asked for -------------------------------------------------------------------------------------------


def check(spec: RawSettings) -> TrainingSpec:
    """The spec with the settings of its method; its split is resolved when the run is prepared."""
    from fsviz.features.extraction import check_pixels

    trainer = training.get(str(spec.get("method") or METHOD.default))
    own = {s.name: s for s in (METHOD, NAME, DEVICE)}
    schema = Schema({**own, **trainer.settings}, required=("dataset",), of=trainer.title)
    given = {name: value for name, value in spec.items() if name != "split"}
    dataset = datasets.load(schema.check(given)["dataset"])
    check_pixels(dataset)
    return {**schema.check(given, **fit(dataset, spec).values), "split": spec.get("split") or OWN}


def prepare(spec: TrainingSpec, folder: Path) -> TrainingSpec:
    """The spec with its split by class names, and how much there is to do."""
    from fsviz.features import device, pixels

    trainer = training.get(spec["method"])
    dataset = datasets.load(spec["dataset"])
    parts, split, recipe = split_of(dataset, spec["split"])
    _check(dataset, trainer, spec, parts, split)
    if spec["name"]:
        trained.check_free(spec["name"])
    used = _images_of(dataset, np.concatenate([parts[side] for side in SIDES]))
    return {
        **spec,
        "split": {**saved_splits.split_record(dataset, parts, recipe), "name": split},
        "device": device.choose(spec["device"]),
        "threads": half(),
        "fingerprint": features.fingerprint(dataset),
        "n_images": len(used),
        "n_parts": len(pixels.parts_of(used)),
    }


def fit(dataset: Dataset, spec: RawSettings) -> fitting.Fit:
    """Ways, shots and queries of tasks: those given, else the defaults, lowered to what every side of the split has."""
    trainer = training.get(str(spec.get("method") or METHOD.default))
    parts, _, _ = split_of(dataset, spec.get("split"))
    sides = {side: ids for side in _by_tasks(trainer) if len(ids := parts[side]) >= 2}  # others are refused
    of_sides = replace(dataset, splits=sides)
    shape = {name: spec.get(name) for name in SHAPE}
    usual = {name: trainer.settings[name].default for name in SHAPE}
    return fitting.smallest([fitting.fit(of_sides, {**shape, "split": side}, usual) for side in sides])


def _by_tasks(trainer: Trainer) -> list[str]:
    """The sides of a split that tasks are drawn from."""
    return [side for side in SIDES if side != "train" or trainer.learns_from == "tasks"]


def split_of(dataset: Dataset, given: Any) -> tuple[dict[str, np.ndarray], str, dict[str, Any]]:
    """Train, val and test class_ids of a split, its name and its recipe.

    given  "own" or nothing: the dataset's; a name: a saved split's, or NAME_train, NAME_val, NAME_test of the dataset;
           a dictionary: what a file of a split holds
    """
    if isinstance(given, Mapping):
        content = json.dumps({side: given.get(side) for side in SIDES}).encode()
        name = str(given.get("name") or "given")
        recipe = given.get("recipe")
        parts = saved_splits.read_split(dataset, content, f"The split {name!r}")
        return parts, name, dict(recipe) if isinstance(recipe, Mapping) else {}
    name = str(given or OWN)
    if name in saved_splits.saved_split_names(dataset.name):
        return saved_splits.load_split(dataset, name), name, saved_splits.split_recipe(dataset.name, name)
    sides = {side: side if name == OWN else f"{name}_{side}" for side in SIDES}
    if name != OWN and sides["train"] not in dataset.splits:
        saved_splits.load_split(dataset, name)  # says that there is none, and which there are
    none = np.zeros(0, np.int64)
    return {side: np.asarray(dataset.splits.get(split, none)) for side, split in sides.items()}, name, {"mode": name}


def read_split(dataset: Dataset, path: Path) -> dict[str, Any]:
    """A file of a split (JSON or CSV, as `split --out` writes them) as a spec takes it."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({error.strerror or error}). Give the path of a file.") from error
    parts = saved_splits.read_split(dataset, content, str(path))
    recipe: dict[str, Any] = {"mode": "file", "file": path.name}
    if content.lstrip()[:1] == b"{":
        found = json.loads(content.decode("utf-8-sig")).get("recipe")
        recipe = found if isinstance(found, dict) and found else recipe
    return {**saved_splits.split_record(dataset, parts, recipe), "name": path.stem}


def _check(dataset: Dataset, trainer: Trainer, settings: Settings, parts: Mapping[str, np.ndarray], split: str) -> None:
    """Refuses, in a sentence, a split that cannot be trained or measured on."""
    n_way = settings["n_way"]
    for side, why in (("train", "to train on"), ("val", "to end training in time"), ("test", "to measure on")):
        if not len(parts[side]):
            raise BadInput(
                f"The split {split!r} of {dataset.title} has no {side} classes {why}. "
                "Make one with 'fsviz split DATASET --save NAME', and give --split NAME."
            )
    by_tasks = _by_tasks(trainer)
    for side in by_tasks:
        if len(parts[side]) < n_way:
            raise BadInput(
                f"n_way must be at most {len(parts[side])}, the number of {side} classes of the split {split!r}. "
                f"Got {n_way}. Lower n_way, or choose another split."
            )
    if len(parts["train"]) < 2:
        raise BadInput(f"Training needs two train classes at least. The split {split!r} has {len(parts['train'])}.")
    _check_sizes(dataset, np.concatenate([parts[side] for side in by_tasks]), dataset.image_class_ids(), settings)


def _check_sizes(dataset: Dataset, class_ids: np.ndarray, of_image: np.ndarray, spec: RawSettings) -> None:
    n_shot, n_query = spec["n_shot"], spec["n_query"]
    sizes = np.bincount(of_image[of_image != PAD], minlength=dataset.n_classes)
    smallest = int(class_ids[sizes[class_ids].argmin()])
    if sizes[smallest] < n_shot + n_query:
        name = dataset.classes["class_name"][smallest]
        raise BadInput(
            f"A class needs n_shot + n_query = {n_shot + n_query} images. Class {name!r} of {dataset.title} has "
            f"{sizes[smallest]}. {images_advice(n_shot, n_query, int(sizes[smallest]))}"
        )


def command(spec: Settings, split: str = "") -> str:
    """The command that trains the same."""
    trainer = training.get(spec["method"])
    said = {n: spec[n] for n, s in trainer.settings.items() if n in spec and spec[n] != s.default}
    name = split or (spec["split"]["name"] if isinstance(spec["split"], Mapping) else str(spec["split"]))
    words_ = ["fsviz", "train", spec["dataset"], "--method", trainer.name]
    return shlex.join([*words_, *(["--split", name] if name != OWN else []), *to_args(said, trainer.settings)])


# --- the run -----------------------------------------------------------------------------------------------------


def entries(spec: Settings) -> list[str]:
    """What is measured on the test tasks: the method itself and, with the backbone of Multiclass, Finetune."""
    return [spec["method"], *([FINETUNE] if spec.get("finetune_steps") else [])]


def parts(spec: TrainingSpec) -> list[Part]:
    """Images in any order, epochs one after another, the rate of Finetune, then the tests of everything measured."""
    epochs = [Part("epoch", 1, 1, "epochs", sequential=True)] * spec["epochs"]
    rate = [Part("rate", 1, 1, "rates", sequential=True)] if _seeks_rate(spec) else []
    first, *others = entries(spec)
    tests = [Part(TITLES[first], spec["n_tasks"], TEST_AT_ONCE, "test tasks", sequential=True)]
    tests += [Part(TITLES[which], spec["n_tasks"], TEST_AT_ONCE, "test tasks") for which in others]
    return [Part("images read", spec["n_parts"], 1, "parts"), *epochs, *rate, *tests]


def _seeks_rate(spec: TrainingSpec) -> bool:
    return FINETUNE in entries(spec) and not spec["finetune_lr"]


def _stage(spec: TrainingSpec, part: int) -> tuple[str, int]:
    """The stage of a part ("read", "epoch", "rate" or "test") and its place there."""
    for stage, n in (("read", 1), ("epoch", spec["epochs"]), ("rate", int(_seeks_rate(spec)))):
        if part < n:
            return stage, part
        part -= n
    return "test", part


def n_bytes(spec: TrainingSpec) -> float:
    """Small images, and the weights with what Adam keeps of them for the last epochs."""
    weights = 4e6 * (spec["width"] / 64) ** 2 * (12.5 if spec["network"] == "resnet12" else 0.5)
    return 3.0 * spec["n_images"] * spec["side"] ** 2 + (_KEPT + 1) * 4 * weights


def seconds(spec: Settings, n_train: int) -> float:
    """About how long a run takes on one core, from what an image cost on one machine: a word for a page, no promise.

    n_train  images of the train classes
    """
    image = 1.1e-3 * (spec["width"] / 32) ** 1.5 * (spec["side"] / 32) ** 2
    image *= 30 if spec["network"] == "resnet12" else 1
    trainer = training.get(spec["method"])
    learning, answering = {"nothing": (1.0, 0.35), "head": (1.8, 1.1), "all": (4.3, 3.4)}[trainer.adapts]
    if spec.get("order") == "second" and trainer.adapts == "all":
        learning *= 2
    task = spec["n_way"] * (spec["n_shot"] + spec["n_query"])
    per_epoch = n_train if trainer.learns_from == "images" else spec["tasks_per_epoch"] * task
    tests = spec["epochs"] * spec["val_tasks"] + spec["n_tasks"]
    finetuned = (spec["n_tasks"] + 4 * RATE_TASKS) * 2.7 * task if spec.get("finetune_steps") else 0
    return image * (spec["epochs"] * per_epoch * learning + tests * task * answering + finetuned)


def run_chunk(spec: TrainingSpec, part: int, start: int, stop: int) -> dict[str, np.ndarray]:
    """Images that were read, or the losses of an epoch and the accuracy of validation tasks, or answers to tasks."""
    stage, place = _stage(spec, part)
    if stage == "read":
        return _read(spec, start)
    with threads(int(spec["threads"])):
        if stage == "epoch":
            return _epoch_chunk(spec, place)
        if stage == "rate":
            return _rate_chunk(spec)
        return _test_chunk(spec, place, start, stop)


def message(spec: TrainingSpec, part: int, start: int, stop: int) -> str:
    """How an epoch went; "" for chunks that are not epochs."""
    stage, place = _stage(spec, part)
    if stage != "epoch":
        return "the learning rate of Finetune" if stage == "rate" else ""
    state = _newest_state(spec, place + 1)
    if state is None:
        return f"epoch {place + 1} of {spec['epochs']}"
    n, best = int(state["epoch"]), float(state["best_val"])
    if n <= place:
        return f"ended after epoch {n}, best on validation tasks {best:.1%}"
    return (
        f"epoch {n} of {spec['epochs']}: loss {float(state['loss']):.3f}, validation tasks {float(state['val']):.1%}, "
        f"best {best:.1%}"
    )


def _read(spec: TrainingSpec, place: int) -> dict[str, np.ndarray]:
    from fsviz.features import pixels

    dataset = _dataset(spec)
    ids = _images_of(dataset, class_ids_of(spec, *SIDES))
    part = pixels.read_part(dataset, spec["side"], pixels.parts_of(ids)[place])
    lost = [pair for pair in part.skipped if pair[0] in set(ids.tolist())]
    return {
        "skipped": np.array([image_id for image_id, _ in lost], np.int64),
        "reasons": np.array([reason for _, reason in lost], np.str_),
    }


def _epoch_chunk(spec: TrainingSpec, place: int) -> dict[str, np.ndarray]:
    before = _state(spec, place)
    state = _advanced(spec, before)
    trained_now = int(state["epoch"]) > int(before["epoch"])
    if trained_now:
        _keep_state(spec, state)
    names = ("loss", "accuracy", "val", "val_ci95")
    told = {name: state[name] if trained_now else np.array(np.nan) for name in names}
    return {**told, "epoch": state["epoch"], "best_epoch": state["best_epoch"], "best_val": state["best_val"]}


def _rate_chunk(spec: TrainingSpec) -> dict[str, np.ndarray]:
    from fsviz.training import finetuning

    return {"rates": np.array(finetuning.RATES), "val": np.array(_rates(spec))}


def _test_chunk(spec: TrainingSpec, entry: int, start: int, stop: int) -> dict[str, np.ndarray]:
    tasks = _tasks(spec, "test").take(slice(start, stop))
    which = entries(spec)[entry]
    rate = _finetune_rate(spec) if which == FINETUNE else 0.0
    return {"entry": np.array(entry), "rate": np.array(rate)} | _answers(spec, which, tasks, rate).arrays()


def _rates(spec: TrainingSpec) -> tuple[float, ...]:
    return _rates_at(spec["folder"], _stamp(spec), json.dumps(spec, sort_keys=True))


@lru_cache(maxsize=1)
def _rates_at(folder: str, stamp: int, key: str) -> tuple[float, ...]:
    """The accuracy of every rate of Finetune on validation tasks; 0 for one that leaves the range of numbers."""
    from fsviz.training import finetuning

    spec = json.loads(key)
    tasks = _tasks(spec, "val").take(slice(0, RATE_TASKS))
    found = []
    for rate in finetuning.RATES:
        try:
            found.append(float(_accuracies(_answers(spec, FINETUNE, tasks, rate)).mean()))
        except NotFinite:
            found.append(0.0)
    return tuple(found)


def _finetune_rate(spec: TrainingSpec) -> float:
    """The rate that was asked for, or the best on validation tasks (the smaller one of equals)."""
    from fsviz.training import finetuning

    if spec["finetune_lr"]:
        return float(spec["finetune_lr"])
    return float(finetuning.RATES[int(np.argmax(_rates(spec)))])


# --- epochs ------------------------------------------------------------------------------------------------------

State = dict[str, np.ndarray]  # of a learner (see training.networks), "best." weights, and numbers of the last epoch


def _state(spec: TrainingSpec, epoch: int) -> State:
    """What there is after so many epochs: from the folder, the missing epochs trained again. Training may have ended
    before."""
    kept = _newest_state(spec, epoch)
    state = kept if kept is not None else _first_state(spec)
    while int(state["epoch"]) < epoch and not _is_over(spec, state):
        state = _advanced(spec, state)
    return state


def _first_state(spec: TrainingSpec) -> State:
    learner = _learner(spec)
    numbers = {"epoch": np.array(0), "best_epoch": np.array(0), "best_val": np.array(-1.0)}
    return {**learner.arrays(), **_best(learner.weights()), **numbers}


def _is_over(spec: TrainingSpec, state: State) -> bool:
    return int(state["epoch"]) - int(state["best_epoch"]) >= spec["patience"] and int(state["epoch"]) > 0


def _advanced(spec: TrainingSpec, state: State) -> State:
    """One epoch further, measured on the validation tasks; the same state where training is over."""
    if _is_over(spec, state):
        return state
    epoch = int(state["epoch"])
    trainer = training.get(spec["method"])
    learner = _learner(spec)
    learner.restore(state)
    module, images = trainer.load(), _images(spec)
    steps = [(module.step(learner, images.seen, batch, spec), len(batch[0])) for batch in _batches(spec, epoch)]
    sizes = np.array([size for _, size in steps], dtype=float)
    losses, rights = np.array([told for told, _ in steps]).T @ (sizes / sizes.sum())
    if not np.isfinite(losses):
        raise BadInput(
            f"Training {trainer.title} left the range of numbers in epoch {epoch + 1} (loss {losses}). Lower --lr"
            + (" or --inner-lr." if trainer.adapts != "nothing" else ".")
        )
    val, half = mean_and_ci95(_accuracies(_predicted(spec, learner, _tasks(spec, "val"))))
    better = float(val) > float(state["best_val"])
    best = _best(learner.weights()) if better else {n: v for n, v in state.items() if n.startswith("best.")}
    numbers = {"epoch": epoch + 1, "loss": losses, "accuracy": rights, "val": float(val), "val_ci95": float(half)}
    numbers |= {
        "best_epoch": epoch + 1 if better else int(state["best_epoch"]),
        "best_val": float(val) if better else float(state["best_val"]),
    }
    return {**learner.arrays(), **best, **{name: np.array(value) for name, value in numbers.items()}}


def _batches(spec: TrainingSpec, epoch: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows and labels of images, or support and query rows of tasks, in the order of this epoch."""
    seed = chunk_seed(spec["seed"], epoch)
    draw = np.random.default_rng(seed)
    images = _images(spec)
    train = class_ids_of(spec, "train")
    if training.get(spec["method"]).learns_from == "images":
        rows = np.flatnonzero(np.isin(images.class_ids, train))
        rows = rows[draw.permutation(len(rows))]
        labels = np.searchsorted(train, images.class_ids[rows])
        for start in range(0, len(rows), spec["batch"]):
            some = slice(start, start + spec["batch"])
            yield rows[some], labels[some]
        return
    tasks = _drawn(spec, train, spec["tasks_per_epoch"], epoch)
    shuffled = draw.permuted(np.tile(np.arange(spec["n_way"]), (len(tasks), 1)), axis=1)[
        ..., None
    ]  # labels mean nothing
    support, query = (np.take_along_axis(ids, shuffled, axis=1) for ids in (tasks.support, tasks.query))
    for start in range(0, len(tasks), spec["tasks_per_step"]):
        some = slice(start, start + spec["tasks_per_step"])
        yield images.rows_of(support[some]), images.rows_of(query[some])


def _best(weights: Mapping[str, np.ndarray]) -> State:
    return {f"best.{name}": value for name, value in weights.items()}


def _learner(spec: TrainingSpec) -> Any:
    module = training.get(spec["method"]).load()
    return module.build(spec, len(spec["split"]["train"]), spec["device"])


def _best_learner(spec: TrainingSpec) -> Any:
    """The network of the best epoch, with running statistics of the train images where it has none of its own."""
    return _best_learner_at(spec["folder"], _stamp(spec), json.dumps(spec, sort_keys=True))


@lru_cache(maxsize=1)
def _best_learner_at(folder: str, stamp: int, key: str) -> Any:
    from fsviz.training import networks

    spec = json.loads(key)
    state = _state(spec, spec["epochs"])
    learner = _learner(spec)
    learner.load({name.removeprefix("best."): v for name, v in state.items() if name.startswith("best.")})
    if training.get(spec["method"]).adapts != "nothing":
        images = _images(spec)
        rows = np.flatnonzero(np.isin(images.class_ids, class_ids_of(spec, "train")))
        networks.remember(learner, images.seen, rows)
    return learner


def _state_file(spec: TrainingSpec, epoch: int) -> Path:
    return Path(spec["folder"]) / "training" / f"{epoch:06d}.npz"


def _keep_state(spec: TrainingSpec, state: State) -> None:
    epoch = int(state["epoch"])
    with atomic_file(_state_file(spec, epoch)) as temporary:
        np.savez(temporary, allow_pickle=False, **state)
    for path in _state_file(spec, epoch).parent.glob("*.npz"):
        if path.stem.isdigit() and int(path.stem) <= epoch - _KEPT:
            path.unlink(missing_ok=True)


def _newest_state(spec: TrainingSpec, epoch: int) -> State | None:
    """The last state in the run's folder that is no later than this epoch; None where none can be read."""
    for path in sorted(_state_file(spec, 0).parent.glob("*.npz"), reverse=True):
        if path.stem.isdigit() and int(path.stem) <= epoch:
            try:
                with np.load(path, allow_pickle=False) as kept:
                    return {name: kept[name] for name in kept.files}
            except (OSError, ValueError, EOFError, zipfile.BadZipFile):
                continue
    return None


# --- images and tasks --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Read:
    """The images of a run: `seen` as networks take them, by row; image_ids (n,), ascending, and their classes."""

    seen: Any
    image_ids: np.ndarray
    class_ids: np.ndarray

    def rows_of(self, image_ids: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.image_ids, image_ids)


def _images(spec: TrainingSpec) -> _Read:
    return _images_at(
        spec["dataset"], spec["side"], spec["device"], tuple(class_ids_of(spec, *SIDES).tolist()), _stamp(spec)
    )


@lru_cache(maxsize=1)
def _images_at(name: str, side: int, device: str, class_ids: tuple[int, ...], stamp: int) -> _Read:
    """Read once for all chunks of a run."""
    from fsviz.features import pixels
    from fsviz.training.networks import Images

    dataset = datasets.load(name)
    small = pixels.load(dataset, side, _images_of(dataset, np.array(class_ids)))
    want = pixels.preprocessing(side)
    of = dataset.image_class_ids()[small.image_ids]
    return _Read(Images(small.values, want.mean, want.std, device), small.image_ids, of)


def _tasks(spec: TrainingSpec, side: str) -> Tasks:
    """The validation or test tasks of a run."""
    return _tasks_at(spec["folder"], side, _stamp(spec), json.dumps(spec, sort_keys=True))


@lru_cache(maxsize=2)
def _tasks_at(folder: str, side: str, stamp: int, key: str) -> Tasks:
    spec = json.loads(key)
    n_tasks = spec["n_tasks"] if side == "test" else spec["val_tasks"]
    return _drawn(spec, class_ids_of(spec, side), n_tasks, _DRAWS[side])


def _drawn(spec: TrainingSpec, class_ids: np.ndarray, n_tasks: int, stream: int) -> Tasks:
    """Tasks of these classes from the images that could be read."""
    dataset, images = _dataset(spec), _images(spec)
    of_image = np.full(len(dataset.image_class_ids()), PAD, dtype=np.int64)
    of_image[images.image_ids] = images.class_ids
    _check_sizes(dataset, class_ids, of_image, spec)
    seed = int(chunk_seed(spec["seed"], stream).generate_state(1)[0]) >> 1
    tasks = sampling.sample_uniform(class_ids, spec["n_way"], n_tasks, seed)
    names = dataset.classes["class_name"].tolist()
    groups = dataset.image_groups()
    return sampling.assign_images(tasks, of_image, spec["n_shot"], spec["n_query"], seed, groups, names)


def _answers(spec: TrainingSpec, which: str, tasks: Tasks, rate: float = 0.0) -> Predictions:
    """What the best network says of the queries, by the method itself or by Finetune."""
    from fsviz.training import finetuning

    learner = _best_learner(spec)
    if which != FINETUNE:
        return _predicted(spec, learner, tasks)
    images = _images(spec)
    support, query = (images.rows_of(ids) for ids in (tasks.support, tasks.query))
    said = finetuning.scores(learner, images.seen, support, query, spec["finetune_steps"], rate)
    return _of_scores(said, tasks, which)


def _predicted(spec: TrainingSpec, learner: Any, tasks: Tasks) -> Predictions:
    images = _images(spec)
    rows = [images.rows_of(ids) for ids in (tasks.support, tasks.query)]
    module = training.get(spec["method"]).load()
    return _of_scores(module.scores(learner, images.seen, *rows, spec), tasks, spec["method"])


def _of_scores(scores: Any, tasks: Tasks, which: str) -> Predictions:
    import torch

    ways = torch.ones(tasks.class_ids.shape, dtype=torch.bool)
    there = np.ones(tasks.query.shape, dtype=bool)
    cause = "Lower the learning rate."
    return evaluation.predictions_from(scores.cpu().contiguous(), ways, there, TITLES[which], lambda task: cause)


def _accuracies(said: Predictions) -> np.ndarray:
    return evaluation.task_accuracy(said)


def class_ids_of(spec: TrainingSpec, *sides: str) -> np.ndarray:
    """class_ids of these sides, ascending."""
    wanted = tuple(name for side in sides for name in spec["split"][side])
    return _ids_at(spec["dataset"], wanted, _stamp(spec))


@lru_cache(maxsize=16)
def _ids_at(dataset: str, names: tuple[str, ...], stamp: int) -> np.ndarray:
    known = datasets.load(dataset)
    at = {name: i for i, name in enumerate(known.distinct_names(np.arange(known.n_classes)))}
    return np.sort(np.array([at[name] for name in names], dtype=np.int64))


def _dataset(spec: TrainingSpec) -> Dataset:
    """The dataset that the run was made for; training on other images halfway would be neither."""
    dataset = _dataset_at(spec["dataset"], str(spec.get("folder")))
    if spec["fingerprint"] != features.fingerprint(dataset):
        raise BadInput(f"The images of {dataset.title} changed since this run was made. Start a new one.")
    return dataset


@lru_cache(maxsize=1)
def _dataset_at(name: str, folder: str) -> Dataset:
    return datasets.load(name)


def _images_of(dataset: Dataset, class_ids: np.ndarray) -> np.ndarray:
    return np.flatnonzero(np.isin(dataset.image_class_ids(), class_ids))


def _stamp(spec: TrainingSpec) -> int:
    """Of what is remembered between chunks: other images make it another number."""
    return hash(spec["fingerprint"])


# --- what came out -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TrainingResult:
    """Finished chunks of a training run."""

    spec: TrainingSpec
    chunks: Sequence[Arrays]


def partial(spec: TrainingSpec, chunks: Sequence[Arrays]) -> TrainingSummary:
    """The learning curve so far, and the accuracy on the test tasks that were answered."""
    return _summary(spec, list(chunks))


def summarise(result: TrainingResult) -> TrainingSummary:
    """The learning curve, and the accuracy on the test tasks with all intervals."""
    return _summary(result.spec, list(result.chunks), whole=True)


def finish(spec: TrainingSpec, result: TrainingResult) -> TrainingSummary:
    """Saves the network of the best epoch as a backbone; returns its name and file."""
    learner = _best_learner(spec)
    weights = {n.removeprefix("backbone."): v for n, v in learner.weights().items() if n.startswith("backbone.")}
    run = Path(spec["folder"]).name
    name = trained.free_name(spec["name"] or fitting_name(spec), run)
    accuracy = 100 * float(test_accuracy(spec, result.chunks)[spec["method"]].mean())
    facts = {name: spec[name] for name in ("network", "width", "side", "dataset", "method")}
    facts |= {"run": run, "split": spec["split"]["name"], "recipe": spec["split"]["recipe"]}
    facts |= {"train": spec["split"]["train"], "accuracy": accuracy}
    path = trained.save(name, {n: v for n, v in weights.items() if not n.endswith("num_batches_tracked")}, facts)
    n_epochs = sum(1 for chunk in result.chunks if "best_val" in chunk and np.isfinite(chunk["loss"]))
    for left in _state_file(spec, 0).parent.glob("*.npz"):
        if not left.stem.isdigit() or int(left.stem) < n_epochs:
            left.unlink(missing_ok=True)
    return {"backbone": f"{trained.PREFIX}{name}", "checkpoint": str(path)}


def test_accuracy(spec: TrainingSpec, chunks: Iterable[Arrays]) -> dict[str, np.ndarray]:
    """The accuracy of every test task of a finished run (T,), by what was measured; `test_tasks` are the tasks."""
    parts: dict[int, list[tuple[int, np.ndarray]]] = {}
    for chunk in chunks:
        if "entry" in chunk:
            said = Predictions.from_arrays(chunk)
            parts.setdefault(int(chunk["entry"]), []).append((int(chunk["start"]), _accuracies(said)))
    ordered = {entry: sorted(found, key=lambda part: part[0]) for entry, found in sorted(parts.items())}
    names = entries(spec)
    return {names[entry]: np.concatenate([values for _, values in found]) for entry, found in ordered.items()}


def test_tasks(spec: TrainingSpec) -> Tasks:
    """The test tasks of a run, as they were drawn for it."""
    _dataset(spec)
    return _tasks(spec, "test")


def fitting_name(spec: TrainingSpec) -> str:
    """A name for the trained network: demo-maml-hard-seed0."""
    parts = (spec["dataset"], spec["method"], spec["split"]["name"], f"seed{spec['seed']}")
    return "-".join("".join(c if c.isalnum() or c in "._+=" else "-" for c in part).strip("-.") for part in parts)[:90]


def _summary(spec: TrainingSpec, chunks: list[Arrays], whole: bool = False) -> TrainingSummary:
    curve: list[TrainingEpoch] = []
    skipped: list[SkippedBatch] = []
    rates: dict[str, float] = {}
    answers: dict[int, list[tuple[int, Arrays]]] = {}
    best: TrainingSummary = {"best_epoch": None, "val_accuracy": None}
    for chunk in chunks:
        if "reasons" in chunk:
            lost = zip(chunk["skipped"].tolist(), chunk["reasons"].tolist(), strict=True)
            skipped += [{"image_id": image_id, "reason": reason} for image_id, reason in lost]
        elif "best_val" in chunk:
            best = {"best_epoch": int(chunk["best_epoch"]), "val_accuracy": 100 * float(chunk["best_val"])}
            if np.isfinite(chunk["loss"]):
                curve.append(
                    {
                        "epoch": int(chunk["epoch"]),
                        "loss": float(chunk["loss"]),
                        "train_accuracy": 100 * float(chunk["accuracy"]),
                        "val_accuracy": 100 * float(chunk["val"]),
                        "val_ci95": finite(100 * chunk["val_ci95"]),
                    }
                )
        elif "rates" in chunk:
            rates = {f"{rate:g}": 100 * float(v) for rate, v in zip(chunk["rates"], chunk["val"], strict=True)}
        else:
            answers.setdefault(int(chunk["entry"]), []).append((int(chunk["start"]), chunk))
    split = spec["split"]
    return {
        "dataset": spec["dataset"],
        "method": spec["method"],
        "split": split["name"],
        "asked": split["recipe"].get("divergence"),
        "reached": split["recipe"].get("reached"),
        "n_classes": {side: len(split[side]) for side in SIDES},
        "settings": {name: spec[name] for name in training.get(spec["method"]).settings},
        "n_images": spec["n_images"] - len(skipped),
        "skipped": skipped,
        "curve": curve,
        "n_epochs": len(curve),
        **best,
        "rates": rates,
        "chance": 100 / spec["n_way"],
        "results": [_result(spec, entry, answers[entry], whole) for entry in sorted(answers)],
    }


def _result(spec: TrainingSpec, entry: int, parts: list[tuple[int, Arrays]], whole: bool) -> TestResult:
    """Accuracy in percent with its 95% interval over test tasks; of all tasks also over images and over classes."""
    chunks = [chunk for _, chunk in sorted(parts, key=lambda pair: pair[0])]
    said = Predictions.join([Predictions.from_arrays(chunk) for chunk in chunks])
    accuracy = _accuracies(said)
    mean, half = mean_and_ci95(accuracy)
    which = entries(spec)[entry]
    row: TestResult = {"method": which, "label": TITLES[which], "n_tasks": len(said)}
    row |= {"accuracy": 100 * float(mean), "ci95": finite(100 * half)}
    if which == FINETUNE:
        row["rate"] = float(chunks[0]["rate"])
    if whole:
        tasks = _tasks(spec, "test")
        right = evaluation.query_right(said)
        row["ci95_images"], row["ci95_classes"] = (
            finite(100 * evaluation.estimate(accuracy, over, right, tasks).ci95) for over in ("images", "classes")
        )
    return row


STUDY = Study(
    name="training",
    title="training",
    settings=Schema({s.name: s for s in (METHOD, NAME, DEVICE)} | SETTINGS, required=("dataset", "split")),
    check=check,
    prepare=prepare,
    parts=parts,
    run_chunk=run_chunk,
    collect=TrainingResult,
    summarise=summarise,
    partial=partial,
    finish=finish,
    message=message,
    n_bytes=n_bytes,
    reads_images=True,
)
