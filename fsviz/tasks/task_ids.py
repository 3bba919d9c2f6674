"""Task names: the same task on another day, on another machine, from any page.

    testbed (its recipe, its file, the run that froze it, or the images themselves) + position  ->  text  ->  the task

A task is named TESTBED:POSITION. TESTBED is one of

    drawn~DATASET~split-test~sampler-semantic~...~CHECK   the recipe itself: any machine samples the same tasks from it
    saved~DATASET~NAME~CHECK                              a testbed of the workspace that no sampler samples again
    run~DATASET~ID~PART~CHECK                             what a run froze, where neither of the two has it
    hand~DATASET~SUPPORT~QUERY~CHECK                      one task made by hand: its images

CHECK is a digest of the images of the dataset and of the tasks. Where it differs, the tasks are others than those that
were named, and that is said instead of showing them.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

import numpy as np

from fsviz import datasets, features
from fsviz.errors import BadInput, FsvizError, Missing, UnknownName
from fsviz.features.store import fingerprint
from fsviz.records import PAD, Dataset, TaskId, Tasks, Testbed
from fsviz.sampling import SAMPLERS, testbed_tables, testbeds
from fsviz.settings import RawSettings, Setting, Value
from fsviz.tasks import draw, snapshot

TASK_NAME = Setting("task_name", "Task", "Task as TESTBED:POSITION, as in links; positions count from 0.", "text", "")
KINDS = {"drawn": 2, "saved": 3, "run": 4, "hand": 4}  # how many parts a name has at least, without its check
MAX_REDRAWN = 100_000  # tasks; a recipe of more is not sampled again only to give a name
_CHECK = 12  # letters of the check: half for the images of the dataset, half for the tasks
_FROM = "from"  # names the backbones whose images were sampled from, if they are not all
_names: OrderedDict[tuple[str, ...], str] = OrderedDict()


@dataclass(frozen=True)
class ResolvedTestbed:
    """A testbed that a name stands for.

    name   what names it in links
    title  the same for people
    """

    name: str
    title: str
    dataset: Dataset
    testbed: Testbed

    @property
    def cache_key(self) -> str:
        """Key that changes whenever the testbed does: its name stands for its content."""
        return self.name

    @property
    def tasks(self) -> Tasks:
        return self.testbed.tasks


# From tasks to names -----------------------------------------------------------------------------------------------


def name_task(
    dataset: Dataset,
    tasks: Tasks,
    at: int,
    recipe: RawSettings | None = None,
    backbones: Sequence[str] = (),
    saved: str = "",
    run: tuple[str, int] | None = None,
) -> TaskId | None:
    """The name of one of these tasks: its testbed's where that has one, else that of its own images, if it has some.

    recipe     the settings they were sampled with; others may be included
    backbones  whose images they were sampled from
    saved      the testbed of the workspace they are
    run        the run they are of, and which of its testbeds
    """
    name = name_testbed(dataset, tasks, recipe, backbones, saved, run)
    if name:
        return TaskId(name, at)
    return TaskId(images_name(dataset, tasks, at), 0) if tasks.has_images else None


def name_testbed(
    dataset: Dataset,
    tasks: Tasks,
    recipe: RawSettings | None = None,
    backbones: Sequence[str] = (),
    saved: str = "",
    run: tuple[str, int] | None = None,
) -> str:
    """The name of these tasks (see `name_task`), "" if they have none: a name is given only where it leads back."""
    check = check_of(dataset, tasks)
    key = (
        datasets.stamp(dataset.name),
        check,
        repr(sorted((recipe or {}).items(), key=str)),
        saved,
        repr(run),
        repr(list(backbones)),
    )
    if key not in _names:
        name = _drawn_again(dataset, recipe or {}, backbones, check)
        if not name and saved and _holds(saved, dataset, check):
            name = _joined("saved", dataset.name, saved, check)
        if not name and run is not None:
            name = _joined("run", dataset.name, run[0], str(run[1]), check)
        _names[key] = name
        while len(_names) > 200:
            _names.popitem(last=False)
    return _names[key]


def _drawn_again(dataset: Dataset, settings: RawSettings, backbones: Sequence[str], check: str) -> str:
    """The name of the recipe with these settings where it samples tasks with this check, else ""."""
    if settings.get("sampler") not in SAMPLERS:
        return ""
    requested = {name: value for name, value in settings.items() if name in draw.SETTINGS}
    try:
        recipe = draw.recipe_for(dataset, **requested)
        if recipe.n_tasks > MAX_REDRAWN:
            return ""
        for names in ((), tuple(dict.fromkeys(backbones))):
            if check_of(dataset, draw.sample_testbed(dataset, recipe, usable=_usable(dataset, names)).tasks) == check:
                parts = [f"{name}-{draw.SETTINGS[name].text(value)}" for name, value in recipe.arguments.items()]
                return _joined("drawn", dataset.name, *parts, *(f"{_FROM}-{name}" for name in names), check)
    except FsvizError:  # classes left out, halves of a split: settings that say less than what was done
        pass
    return ""


def _usable(dataset: Dataset, backbones: Sequence[str]) -> np.ndarray | None:
    """Images that all these backbones have features of; None for all there are."""
    usable: np.ndarray | None = None
    for name in backbones:
        image_ids = features.load(dataset, name).image_ids
        usable = image_ids if usable is None else np.intersect1d(usable, image_ids)
    return usable


def _holds(name: str, dataset: Dataset, check: str) -> bool:
    try:
        return check_of(dataset, testbeds.load_testbed(name, dataset).tasks) == check
    except FsvizError:
        return False


def images_name(dataset: Dataset, tasks: Tasks, at: int) -> str:
    """The name of one task as a testbed of its own: its images."""
    is_way = tasks.class_ids[at] != PAD
    task = Tasks(tasks.class_ids[at][is_way][None], tasks.support[at][is_way][None], tasks.query[at][is_way][None])
    return _joined(
        "hand", dataset.name, *(_rows_text(side[0]) for side in (task.support, task.query)), check_of(dataset, task)
    )


def check_of(dataset: Dataset, tasks: Tasks) -> str:
    """The digest at the end of a name: of the dataset's images, then of exactly these tasks and their class names."""
    used = np.unique(tasks.class_ids[tasks.class_ids != PAD])
    names = "\n".join(dataset.classes["class_name"].astype(str).iloc[used])
    parts = (fingerprint(dataset), snapshot.digest(tasks) + names)
    return "".join(hashlib.blake2b(part.encode(), digest_size=8).hexdigest()[: _CHECK // 2] for part in parts)


def _joined(kind: str, *parts: str) -> str:
    return "~".join([kind, *(quote(part, safe="").replace("~", "%7E").replace("%", "!") for part in parts)])


def _rows_text(rows: np.ndarray) -> str:
    """Rows of image_ids without a comma, which links would write as three letters."""
    return "_".join(".".join(str(int(i)) for i in row if i != PAD) for row in rows)


# From names to tasks -----------------------------------------------------------------------------------------------


def parse_task_id(text: str) -> TaskId:
    """The name of a task as text, refused in one sentence if it is none.

    NAME:POSITION is read too, for a testbed of the workspace.
    """
    try:
        task = TaskId.parse(text.strip())
        if "~" not in task.testbed and task.testbed in testbeds.list_testbeds():
            dataset = datasets.load(str(testbeds.read_recipe(task.testbed).get("dataset")))
            bed = testbeds.load_testbed(task.testbed, dataset)
            return TaskId(name_testbed(dataset, bed.tasks, bed.recipe, saved=task.testbed), task.position)
        _parts(task.testbed)
    except BadInput:
        raise BadInput(
            f"A task is named TESTBED:POSITION, as a link to its passport has it. Got {text[:60]!r}. Copy the whole "
            "link again, or choose a task on the page Sample tasks."
        ) from None
    return task


def dataset_of(name: str) -> str:
    """The dataset that the name of a testbed, or of a task, is about."""
    return _parts(name.partition(":")[0])[1]


def n_tasks_of(name: str) -> int:
    """Number of tasks to sample to find a testbed by its name; 1 if none is sampled."""
    parts = _parts(name)
    return int(_settings(parts).get("n_tasks", 1)) if parts[0] == "drawn" else 1


def n_images_of(name: str) -> int:
    """Upper bound of the number of images in these tasks."""
    parts = _parts(name)
    settings = {"sampler": str(draw.SAMPLER.default), **_settings(parts)} if parts[0] == "drawn" else {}
    return n_tasks_of(name) * draw.max_images(settings) if settings else 1


def find(name: str, dataset: Dataset | None = None, run_folder: Callable[[str], Path] | None = None) -> ResolvedTestbed:
    """The testbed of this name, refused with a sentence if it is not the one that was named.

    dataset     the one it is of, where it is loaded already
    run_folder  where the run with an id lies
    """
    parts = _parts(name)
    if dataset is None or dataset.name != parts[1]:
        try:
            dataset = datasets.load(parts[1])
        except UnknownName as error:
            raise Missing(
                f"This task is of the dataset {parts[1]!r}, which is not here. Add the same images under that name "
                f"with 'fsviz add {parts[1]} PATH', then open the link again."
            ) from error
    if parts[0] == "drawn":
        testbed = _draw(parts, dataset)
    elif parts[0] == "saved":
        testbed = _load(parts[2], dataset)
    elif parts[0] == "run":
        testbed = _frozen(parts, run_folder)
    else:
        testbed = _of_images(parts, dataset)
    _compare(parts, dataset, testbed)
    return ResolvedTestbed(name, _title(parts, testbed), dataset, testbed)


def _draw(parts: list[str], dataset: Dataset) -> Testbed:
    settings = _settings(parts)
    backbones = [value for part, _, value in (p.partition("-") for p in parts[2:-1]) if part == _FROM]
    recipe = draw.recipe_for(dataset, **settings)
    return draw.sample_testbed(dataset, recipe, usable=_usable(dataset, backbones))


def _load(name: str, dataset: Dataset) -> Testbed:
    if name not in testbeds.list_testbeds():
        raise Missing(
            f"The testbed {name!r} of {dataset.title} is not in this workspace. Copy the file testbeds/{name}.parquet "
            "from the workspace where it was saved into the folder testbeds of this one, then open the link again."
        )
    return testbeds.load_testbed(name, dataset)


def _frozen(parts: list[str], run_folder: Callable[[str], Path] | None) -> Testbed:
    _, dataset, run_id, part, _ = parts
    try:
        if run_folder is None:
            raise Missing("runs are not read here")
        file = snapshot.testbed_file(int(part))
        tasks = snapshot.tasks(run_folder(run_id), file)
    except (FsvizError, ValueError) as error:
        raise Missing(
            f"This task belongs to the run {run_id!r} of {dataset!r}, and that run is not in this workspace. Open "
            "the link where the run was made, or copy its folder into runs of this workspace."
        ) from error
    return Testbed(f"run {run_id}", tasks, {"dataset": dataset})


def _of_images(parts: list[str], dataset: Dataset) -> Testbed:
    try:
        sides = [[[int(i) for i in row.split(".") if i] for row in part.split("_")] for part in parts[2:4]]
        if len(sides[0]) != len(sides[1]) or not all(row for side in sides for row in side):
            raise ValueError
    except ValueError:
        raise BadInput(
            "The images in this link cannot be read: part of it is missing. Copy the whole link again."
        ) from None
    class_of_image = dataset.image_class_ids()
    unknown = [i for side in sides for row in side for i in row if i >= len(class_of_image)]
    if unknown:
        raise BadInput(
            f"The link's task does not exist here (image {unknown[0]:,}; {dataset.title} has "
            f"{len(class_of_image):,} images). Open it with the same images, or create a task from these."
        )
    padded = []
    for side in sides:
        rows = np.full((1, len(side), max(map(len, side))), PAD, dtype=np.int64)
        for way, row in enumerate(side):
            rows[0, way, : len(row)] = row
        padded.append(rows)
    tasks = Tasks(class_of_image[padded[0][:, :, 0]], padded[0], padded[1])
    testbed_tables.check_tasks(tasks, dataset)
    return Testbed("by hand", draw.with_coarsity(tasks, dataset), {"dataset": dataset.name, "sampler": "by hand"})


def _compare(parts: list[str], dataset: Dataset, testbed: Testbed) -> None:
    """Refuses tasks that are not those that were named."""
    check, actual = parts[-1], check_of(dataset, testbed.tasks)
    if check == actual:
        return
    if check[: _CHECK // 2] != actual[: _CHECK // 2]:
        raise BadInput(
            f"The link's task does not exist here (other images or classes of {dataset.title}). Open it with the same "
            "images, or sample a new task."
        )
    reasons = {"drawn": "this version of fsviz samples other tasks", "saved": "the testbed has other tasks"}
    raise BadInput(
        f"The link's task does not exist here ({reasons.get(parts[0], 'the tasks differ')}). Open it with the same "
        "data and fsviz version, or sample a new task."
    )


def _title(parts: list[str], testbed: Testbed) -> str:
    if parts[0] == "drawn":
        return draw.title_of(testbed.name, testbed.recipe)
    return {"saved": parts[2], "run": f"tasks of run {parts[2]}"}.get(parts[0], "a task made by hand")


def _parts(name: str) -> list[str]:
    """Kind, dataset, what the kind needs, and the check."""
    parts = [unquote(part.replace("!", "%")) for part in name.split("~")]
    fine = parts[0] in KINDS and len(parts) > KINDS[parts[0]] and re.fullmatch(rf"[0-9a-f]{{{_CHECK}}}", parts[-1])
    if not fine or (parts[0] != "drawn" and len(parts) != KINDS[parts[0]] + 1):
        raise BadInput(
            f"This is no name of a testbed: {name[:60]!r}. A part of the link seems to be missing. Copy the whole link "
            "again, or choose a task on the page Sample tasks."
        )
    return parts


def _settings(parts: list[str]) -> dict[str, Value]:
    """The settings that the name of a recipe holds, checked one by one."""
    settings: dict[str, Value] = {}
    for part in parts[2:-1]:
        name, _, value = part.partition("-")
        if name == _FROM:
            continue
        if name not in draw.SETTINGS:
            raise UnknownName("setting of the sampler", name, draw.SETTINGS)
        settings[name] = draw.SETTINGS[name].parse(value)
    return settings
