"""Public API for notebooks and scripts or a script: the same studies as pages and commands.

A dataset is given by its name or as what `load` returned; a testbed by its name, its file, or as what `sample`
returned. Code that is given here, a function as a method say, runs here: whoever calls it wrote it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fsviz import datasets
from fsviz.analyses import run_comparison
from fsviz.errors import BadInput
from fsviz.records import Dataset, Predictions, Tasks, Testbed
from fsviz.records.graphs import ClassGraph
from fsviz.sampling import SAMPLER
from fsviz.studies import evaluate as evaluation_study
from fsviz.studies.support_sets import SupportSets
from fsviz.studies.sweep import SweepResult
from fsviz.tasks import draw, fitting
from fsviz.user import code as user_code

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from fsviz.exports.torch_data import TaskBatches, TorchImages

_SHOWN = [
    "name",
    "n_tasks",
    "accuracy",
    "ci95",
    "ci95_images",
    "ci95_classes",
    *run_comparison.QUARTILES,
    "top5",
    "loss",
]


@dataclass(frozen=True)
class Evaluation:
    """Results of an evaluation. It is also a recorded run, which the page Runs shows.

    run     its id
    lines   one per method and backbone, with the accuracy of every task
    failed  label and reason of methods of your own that gave no answer
    """

    run: str
    lines: tuple[run_comparison.MethodRun, ...]
    failed: tuple[Mapping[str, Any], ...] = ()

    @property
    def table(self) -> pd.DataFrame:
        """Accuracy in percent with 95% intervals over tasks, images and classes, and by quarters of coarsity."""
        return run_comparison.result_table(self.lines)[_SHOWN]

    @property
    def accuracy(self) -> pd.DataFrame:
        """Accuracy of every task from 0 to 1, one column per method, next to the measures of the tasks."""
        columns = {name: line.accuracy for name, line in run_comparison.by_name(self.lines).items()}
        return pd.DataFrame({**self.lines[0].measures, **columns})

    def predictions(self, which: int = 0) -> tuple[Predictions, Tasks]:
        """Predictions of line number `which` for every query, and the tasks."""
        from fsviz import jobs

        spec, entry = jobs.spec(self.run), self.lines[which].entry
        chunks = jobs.chunks(self.run, evaluation_study.chunks_of(spec, entry))
        return evaluation_study.predictions(spec, chunks, entry), evaluation_study.entry_tasks(
            spec, evaluation_study.entries(spec)[entry]
        )

    def _repr_html_(self) -> str:
        notes = [f"No results of {failure['label']}: {failure['error']}" for failure in self.failed]
        return "".join(f"<p>{_escaped(sentence)}</p>" for sentence in notes) + self.table.to_html(
            index=False, float_format="%.2f"
        )


def load(name: str) -> Dataset:
    """A dataset by name: "demo", a benchmark, or one that you added."""
    return datasets.load(name)


def add(name: str, folder: str | Path, **options: Any) -> Dataset:
    """Your images as a dataset: root/class/image, split/class/image or a CSV. Options are those of 'fsviz add'."""
    from fsviz.user import images as user_images

    user_images.add(name, str(folder), **options)
    return datasets.load(name)


def check(dataset: str | Dataset, backbone: str | None = None) -> pd.DataFrame:
    """Equal class names, copies, small classes and images without a neighbour of their class: one row per check.

    backbone  whose features are compared; the first that the dataset has, without any only the other checks
    """
    from fsviz import features
    from fsviz.analyses import image_check

    data = _dataset(dataset)
    findings = image_check.check(data, backbone or next(iter(features.available(data)), ""))
    return pd.DataFrame(
        {"check": f.kind, "n": f.n, "sentence": f.sentence, "class_ids": f.class_ids, "image_ids": f.image_ids}
        for f in findings
    )


def label(dataset: str | Dataset, image_ids: Sequence[int], value: str, name: str = "context") -> Dataset:
    """Gives images a context, or a value of an attribute of this name; returns the dataset with it.

    It is kept in the workspace; 'fsviz label NAME --undo' takes it back.
    """
    from fsviz.datasets import labels

    data = _dataset(dataset)
    labels.add_label(data, image_ids, value, name)
    return datasets.load(data.name)


def extract(dataset: str | Dataset, backbone: Any = "efficientnet_lite0", **options: Any) -> Any:
    """Features of all images, stored; returns them.

    backbone  a name (also of timm or open_clip), "./net.py:build", or a torch module or callable: images -> features
    options   checkpoint, device, batch, workers, again, progress
    """
    from fsviz import features

    user_code.allow()
    if not isinstance(backbone, str):
        backbone = user_code.keep(backbone)
    return features.extract(_dataset(dataset), backbone, **options).features


def sample(dataset: str | Dataset, **settings: Any) -> Testbed:
    """Tasks sampled by a sampler: sampler, split, n_way, n_shot, n_query, n_tasks, seed and what the sampler knows.

    Defaults that a small dataset cannot give are lowered, with a warning, and n_shot is 1 if ProtoNet is above 85% with
    5. What is given is not changed.
    """
    data = _dataset(dataset)
    return draw.sample(data, **_sampled(data, settings))


def evaluate(
    dataset: str | Dataset,
    methods: Any = "protonet",
    tasks: Testbed | str | Path | None = None,
    backbone: str | Sequence[str] | None = None,
    device: str = "auto",
    **settings: Any,
) -> Evaluation:
    """Methods on the same tasks, recorded as a run.

    methods   one or several of: a name ("tim"), a file ("./mine.py"), a function predict(support, support_mask, query,
              query_mask, **parameters), a class such as easyfsl's; or a pair of it and its parameters
    tasks     a testbed; without one, tasks are sampled as `sample` does, by `settings`
    backbone  whose features; all that the dataset has if none is given
    """
    from fsviz import features, jobs
    from fsviz.sampling.testbeds import save_testbed

    user_code.allow()
    data = _dataset(dataset)
    several = methods if isinstance(methods, list) else [methods]
    backbones = [backbone] if isinstance(backbone, str) else list(backbone or features.required(data))
    spec: dict[str, Any] = {
        "study": "evaluate",
        "dataset": data.name,
        "backbones": backbones,
        "methods": [_method(item) for item in several],
        "seed": settings.pop("seed", 0),
        "device": device,
    }
    if tasks is None:
        sampler = {"sampler": draw.default_sampler(data), **settings}
        spec["sampler"] = {**_warn_of_fit(evaluation_study.fit(data, backbones, sampler)), **sampler}
    elif settings:
        raise BadInput(f"A testbed brings its own tasks, so {next(iter(settings))} has no effect. Leave it out.")
    else:
        spec["testbed"] = save_testbed(tasks, number=True).stem if isinstance(tasks, Testbed) else str(tasks)
    return evaluation(jobs.run_in_foreground(spec).id)


def evaluation(run: str) -> Evaluation:
    """An evaluation that was recorded before, by the id of its run."""
    from fsviz import jobs

    record = jobs.status(run)
    if record.study != "evaluate":
        raise BadInput(f"Run {run} is a {record.study} run, not an evaluation. Choose another.")
    summary = jobs.results(run)
    lines = run_comparison.method_runs(
        run, jobs.spec(run), jobs.chunks(run), summary if record.state == "finished" else None
    )
    return Evaluation(run, tuple(lines), tuple(summary.get("failed") or ()))


def compare(*evaluations: Evaluation | str, over: str | None = None, reference: str | None = None) -> pd.DataFrame:
    """Every method against the most accurate one (or `reference`), task by task: evaluations, or ids of runs, of the
    same tasks. Differences in points with 95% intervals and p over "tasks", "images" or "classes": the widest that is
    known unless one is named."""
    matches = [item if isinstance(item, Evaluation) else evaluation(item) for item in evaluations]
    return run_comparison.differences([line for item in matches for line in item.lines], reference, over)


def hard(dataset: str | Dataset, backbone: str | None = None, **settings: Any) -> SupportSets:
    """Support sets that make a classifier fail, with random and easy ones for the same queries.

    settings  those of 'fsviz hard': n_way, n_shot, n_query, n_tasks, split, seed, search, loss, classifier, ...
    """
    from fsviz import jobs
    from fsviz.studies import support_sets

    data = _dataset(dataset)
    backbone = backbone or draw.default_backbone(data)
    _warn_of_fit(support_sets.fit(data, backbone, settings))
    spec = {"study": "support_sets", "dataset": data.name, "backbone": backbone, **settings}
    sets: SupportSets = jobs.compute(spec)
    if failed := support_sets.summary(sets)["failed"]:
        warnings.warn(failed, stacklevel=2)
    return sets


def sweep(study: str, dataset: str | Dataset, vary: str, values: Sequence[Any] = (), **settings: Any) -> SweepResult:
    """The headline numbers of a study at several values of one of its settings; `table` has them in rows.

    study     causes, confusion, context_shift, prediction, search_comparison, stress_test or support_sets
    vary      the setting that changes, such as "n_shot"
    values    its values; by default those that the study declares
    settings  the other settings of the study
    """
    from fsviz import jobs, studies
    from fsviz.studies import sweep as sweep_study

    declared, resolved = studies.get(study), _dataset(dataset)
    spec = {"dataset": resolved.name, **settings}
    if "backbone" in declared.settings.required:
        spec.setdefault("backbone", draw.default_backbone(resolved))
    sweep_spec = sweep_study.sweep(declared, spec, vary, values)
    result: SweepResult = jobs.compute({"study": sweep_study.STUDY.name, **sweep_spec})
    return result


def measure(
    tasks: Testbed, measures: Sequence[str] | None = None, backbone: str | None = None, method: str = "protonet"
) -> pd.DataFrame:
    """One row per task: every measure of difficulty that the dataset allows, or those named.

    method  whose answers a measure of answers is about
    """
    from fsviz.studies.task_measures import measure_tasks

    dataset = datasets.load(tasks.dataset)
    return measure_tasks(tasks.tasks, dataset, backbone or draw.default_backbone(dataset), measures, method)


def plot(item: Any, **options: Any) -> Figure:
    """The figure of an evaluation, of hard support sets, of a class graph, or of a dataset (its map of features)."""
    if isinstance(item, Evaluation):
        return _plot_evaluation(item, **options)
    if isinstance(item, SupportSets):
        from fsviz.figures.support_sets import plot_distribution
        from fsviz.studies.support_sets import summary

        sets_summary = summary(item)
        return plot_distribution(sets_summary["histogram"], sets_summary["accuracy"], sets_summary["ci95"], **options)
    if isinstance(item, ClassGraph):
        from fsviz.figures.confusion import plot_similarity_map
        from fsviz.studies import confusion

        groups = confusion.communities(item)
        return plot_similarity_map(item, confusion.community_order(item, groups), groups, **options)
    if isinstance(item, str | Dataset):
        return _plot_map(_dataset(item), **options)
    raise BadInput(
        f"There are figures of evaluations, hard support sets, class graphs and datasets. Got {type(item).__name__}."
    )


def _plot_evaluation(evaluation: Evaluation, measure: str = run_comparison.QUARTERS, **options: Any) -> Figure:
    from fsviz.difficulty import measures
    from fsviz.figures.runs import plot_accuracies, plot_accuracy_by_measure

    lines = sorted(evaluation.lines, key=lambda line: -np.nanmean(line.accuracy))
    curves = run_comparison.curves(lines, measure)
    if curves:
        axis, title = measures.lower_title(measure), measures.title(measure)
        return plot_accuracy_by_measure(curves, axis=axis, measure=title, **options)
    table = run_comparison.result_table(lines)
    return plot_accuracies(table["name"], table["accuracy"], table["ci95"], **options)


def _plot_map(dataset: Dataset, backbone: str | None = None, by: str = "", **options: Any) -> Figure:
    from fsviz.features import maps
    from fsviz.figures.feature_map import plot_map
    from fsviz.studies import feature_map

    backbone = backbone or draw.default_backbone(dataset)
    image_map = maps.find(dataset, backbone) or feature_map.fast_map({"dataset": dataset.name, "backbone": backbone})
    names = dataset.classes["class_name"].astype(str).to_numpy()[dataset.image_class_ids()[image_map.image_ids]]
    colouring = feature_map.colouring(dataset, image_map.image_ids, by or feature_map.default_colour(dataset))
    return plot_map(image_map.xy, image_map.image_ids, colouring, names.tolist(), **options)


def torch_images(dataset: str | Dataset, transform: Callable[[Any], Any] | None = None) -> TorchImages:
    """A torch Dataset of (image, class_id) by image_id; `transform` takes a PIL image."""
    from fsviz.exports.torch_data import TorchImages

    return TorchImages(_dataset(dataset), transform)


def torch_tasks(source: Testbed | str | Dataset, **settings: Any) -> TaskBatches:
    """A torch BatchSampler over tasks, with easyfsl's episodic_collate_fn.

    source    a testbed, whose tasks come in their order; or a dataset, from which every pass samples new ones by
              `settings` (those of `sample`)
    """
    from fsviz.exports.torch_data import TaskBatches

    if isinstance(source, Testbed):
        if settings:
            raise BadInput(f"A testbed brings its own tasks, so {next(iter(settings))} has no effect. Leave it out.")
        return TaskBatches.of_testbed(source)
    data = _dataset(source)
    return TaskBatches.live(data, _sampled(data, settings))


def _dataset(dataset: str | Dataset) -> Dataset:
    return datasets.load(dataset) if isinstance(dataset, str) else dataset


def _sampled(dataset: Dataset, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of tasks with their defaults; those that the dataset cannot give are lowered, with a warning."""
    usual = {"sampler": SAMPLER.default, **evaluation_study.DEFAULTS}
    fits = _warn_of_fit(fitting.fit(dataset, settings, usual, varied=True), 4)
    return {**evaluation_study.DEFAULTS, **fits, **settings}


def _warn_of_fit(fitted: fitting.Fit, depth: int = 3) -> Mapping[str, int]:
    """The ways, shots and queries that fit; warns if defaults were lowered. The user's line is `depth` calls up."""
    if message := fitted.describe():
        warnings.warn(message, stacklevel=depth)
    return fitted.values


def _method(method: Any) -> dict[str, Any]:
    name, parameters = method if isinstance(method, tuple) else (method, {})
    return {"name": name if isinstance(name, str) else user_code.keep(name), "parameters": dict(parameters)}


def _escaped(text: str) -> str:
    from markupsafe import escape

    return str(escape(text))
