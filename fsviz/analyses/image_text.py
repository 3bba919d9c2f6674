"""Image-text similarity: is an image closer to the text of its class or of its context?

    similarities of the images of a split -> means, zero-shot accuracies, shares by class, relation to task accuracy

After MetaCoCo (Zhang et al. 2024, section 3.2); see fsviz.features.text_similarity for models and prompts.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd

from fsviz import datasets, evaluation, features
from fsviz.datasets.catalog import DATA
from fsviz.errors import BadInput
from fsviz.features import text_similarity
from fsviz.features.text_similarity import (
    PLACEHOLDERS,
    ImageTextSimilarity,
    ImageTextSpec,
    templates,
)
from fsviz.numerics import clustered_mean, finite, mean_record
from fsviz.records import Tasks
from fsviz.settings import RawSettings, Setting, to_args
from fsviz.studies import evaluate
from fsviz.tables import Column, Table
from fsviz.tasks import draw, fitting

SETTINGS: dict[str, Setting] = {draw.SPLIT.name: draw.SPLIT, **text_similarity.SETTINGS}


def check(spec: RawSettings) -> ImageTextSpec:
    """The spec with its defaults; refuse prompts without a placeholder."""
    dataset = datasets.load_with_contexts(str(spec.get("dataset", "")))
    values = {name: s.check(spec.get(name, s.default)) for name, s in SETTINGS.items()}
    for name in ("concept_prompt", "context_prompt"):
        for template in templates(values[name]) or [""]:
            if not any(f"{{{place}}}" in template for place in PLACEHOLDERS):
                raise BadInput(
                    f"The {SETTINGS[name].title.lower()} must contain {{concept}} or {{context}}. "
                    f"Got {template!r}. The default is {SETTINGS[name].default!r}."
                )
    values["split"] = values["split"] or draw.default_split(dataset)
    dataset.split_class_ids(values["split"])
    return cast(ImageTextSpec, {"dataset": dataset.name, **values})


def measure(spec: RawSettings) -> ImageTextSimilarity:
    """M_concept and M_context of every image of the split that has a context and features of the model."""
    return text_similarity.measure(check(spec))


def summary(similarity: ImageTextSimilarity) -> dict[str, Any]:
    """Mean similarities, zero-shot accuracies and the share of images closer to their context.

    With 95% intervals over images (ci95) and over classes (ci95_classes).
    """
    is_closer = similarity.context > similarity.concept

    def mean(values: np.ndarray) -> dict[str, float | None]:
        return {**mean_record(values), "ci95_classes": finite(clustered_mean(values, similarity.class_ids)[1])}

    result: dict[str, Any] = {**similarity.spec, "n_images": len(similarity.concept)}
    result["m_concept"], result["m_context"] = mean(similarity.concept), mean(similarity.context)
    result["nearer_to_context"] = mean(is_closer)
    for axis in PLACEHOLDERS:
        correct = similarity.correct[axis]
        result[f"zero_shot_{axis}"] = None if correct is None else mean(correct)
    result["chance"] = {
        "concept": 1 / len(np.unique(similarity.class_ids)),
        "context": 1 / len(np.unique(similarity.contexts)),
    }
    return result


def closer_answer(result: Mapping[str, Any]) -> tuple[str, str]:
    """The share of images closer to their context as a bold sentence, and its setting.

    result  what `summary` returns
    """
    closer = result["nearer_to_context"]
    half = "" if closer["ci95"] is None else f" ± {100 * closer['ci95']:.0f}"
    sentence = (
        f"{100 * closer['mean']:.0f}{half}% of images are closer to the text of their context than to that of their "
        "class."
    )
    wider = "" if closer["ci95_classes"] is None else f", ± {100 * closer['ci95_classes']:.0f} over classes"
    shares = [
        f"{name} {100 * correct['mean']:.0f}% (chance level {100 * result['chance'][axis]:.0f}%)"
        for axis, name in (("concept", "class"), ("context", "context"))
        if (correct := result[f"zero_shot_{axis}"]) is not None
    ]
    zero_shot = f" Zero-shot accuracy: {', '.join(shares)}." if shares else ""
    return sentence, f"{result['n_images']:,} images; 95% CI over images{wider}.{zero_shot}"


CLASSES = Table(
    "Image–text similarity by class",
    Column("class_name", "Class", kind="class"),
    Column("nearer_to_context", "Closer to context", digits=0, kind="share", width=120),
    Column("m_concept", "Similarity to class", digits=3, kind="number"),
    Column("m_context", "Similarity to context", digits=3, kind="number"),
    Column("n_images", "Images", kind="count"),
)


def by_class(similarity: ImageTextSimilarity) -> pd.DataFrame:
    """Per class: class_id, n_images, m_concept, m_context, nearer_to_context (a share)."""
    table = pd.DataFrame(
        {"class_id": similarity.class_ids, "m_concept": similarity.concept, "m_context": similarity.context}
    ).assign(nearer_to_context=similarity.context > similarity.concept)
    sizes = table.groupby("class_id").size().rename("n_images")
    return table.groupby("class_id").mean().join(sizes).reset_index()


@dataclass(frozen=True)
class AccuracyRelation:
    """Mean similarity of the queries of a task to the text of their context (T,), and its accuracy (T,) from 0 to 1.

    line     least-squares line, accuracy in percent, or None
    summary  Pearson's correlation with its 95% interval (None if undefined), and the settings of the tasks
    """

    closeness: np.ndarray
    accuracy: np.ndarray
    line: tuple[list[float], list[float]] | None
    summary: Mapping[str, Any]
    tasks: Tasks


def against_accuracy(similarity: ImageTextSimilarity, backbone: str, n_tasks: int = 300) -> AccuracyRelation:
    """Correlate the accuracy of ProtoNet on uniform 5-shot tasks with the mean M_context of their queries.

    The 95% interval is over classes.
    """
    dataset = datasets.load(similarity.spec["dataset"])
    table = features.load(dataset, backbone)
    usable = np.intersect1d(similarity.image_ids, table.image_ids)
    split = similarity.spec["split"]
    try:
        shape = fitting.fit(dataset, {"split": split, "sampler": "uniform"}, draw.IMAGE_DEFAULTS, [backbone]).values
        recipe: dict[str, Any] = {"split": split, **shape, "n_tasks": n_tasks}
        tasks = draw.sample(dataset, sampler="uniform", usable=usable, **recipe).tasks
    except BadInput:  # too few classes or images for tasks; the rest of the page does not need them
        undefined = {"pearson": None, "low": None, "high": None, "n_tasks": 0}
        return AccuracyRelation(np.zeros(0), np.zeros(0), None, undefined, Tasks(np.zeros((0, 0), int)))
    accuracy = evaluation.task_accuracy(evaluate.predict_tasks(dataset, backbone, "protonet", {}, tasks))
    cosine_of_image = np.full(int(similarity.image_ids.max()) + 1, np.nan)
    cosine_of_image[similarity.image_ids] = similarity.context
    closeness = cosine_of_image[tasks.query].mean((1, 2))
    value = evaluation.correlation(accuracy, closeness, tasks.class_ids)
    correlation = {"pearson": finite(value.value), "low": finite(value.low), "high": finite(value.high)}
    line = None
    if correlation["pearson"] is not None:
        x = np.array([closeness.min(), closeness.max()])
        line = (x.tolist(), np.polyval(np.polyfit(closeness, 100 * accuracy, 1), x).tolist())
    summary = correlation | {"n_tasks": len(tasks), **shape, "backbone": backbone, "over": value.ci_unit}
    return AccuracyRelation(closeness, accuracy, line, summary, tasks)


def benchmarks() -> pd.DataFrame:
    """Table 1 of the paper: benchmark, n_classes, n_images, n_contexts, concept_image_similarity; all published."""
    return pd.read_csv(DATA / "published" / "metacoco_benchmarks.csv")


def command(spec: ImageTextSpec) -> str:
    """Command line of a spec."""
    changed = {name: value for name, value in spec.items() if name in SETTINGS and value != SETTINGS[name].default}
    return shlex.join(["fsviz", "similarity", spec["dataset"], *to_args(changed, SETTINGS)])
