"""Image-text similarity: is an image closer to the text of its class or of its context?

    images, names of classes and contexts -> an image-text model -> cosines M_concept and M_context per image

After MetaCoCo (Zhang et al. 2024, section 3.2), which published no prompts. Our prompts are editable templates; the
text features of several templates, separated by |, are averaged. Any open_clip model works. Numbers of different models
are not comparable.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypedDict, cast

import numpy as np
import pandas as pd

from fsviz import datasets, evaluation, features
from fsviz.analyses.contexts import load_with_images
from fsviz.datasets.catalog import DATA
from fsviz.errors import BadInput, Missing
from fsviz.features import checkpoints, image_text
from fsviz.numerics import clustered_mean, finite, mean_record
from fsviz.records import Dataset, Tasks
from fsviz.settings import RawSettings, Setting, to_args
from fsviz.studies import evaluate
from fsviz.tables import Column, Table
from fsviz.tasks import draw, fitting

CONCEPT_PROMPT = Setting(
    "concept_prompt",
    "Class prompt",
    "Text that an image is compared with. {concept} is its class, {context} its context. Several texts, separated by "
    "|, are averaged.",
    "text",
    "a photo of a {concept}",
)
CONTEXT_PROMPT = CONCEPT_PROMPT.with_(
    name="context_prompt", title="Context prompt", default="a photo of {context}|a photo taken in {context}"
)
MODEL = Setting(
    "model",
    "Image-text model",
    "demo_clip, or an open_clip model (ViT-B-32/openai) with features of these images.",
    "text",
    image_text.DEMO,
)
CHECKPOINT = Setting(
    "checkpoint", "Model weights", "File of weights that the features were extracted with.", "text", ""
)
SETTINGS: dict[str, Setting] = {s.name: s for s in (draw.SPLIT, MODEL, CHECKPOINT, CONCEPT_PROMPT, CONTEXT_PROMPT)}
_PLACEHOLDERS = ("concept", "context")


class ImageTextSpec(TypedDict):
    """A checked spec."""

    dataset: str
    split: str
    model: str
    checkpoint: str
    concept_prompt: str
    context_prompt: str


@dataclass(frozen=True)
class ImageTextSimilarity:
    """Similarities by an image-text model, for the images of a split that have a context.

    image_ids, class_ids, contexts  (n,)
    concept, context                (n,) cosines of an image with its two texts: M_concept and M_context
    correct                         (n,) by prompt ("concept", "context"): is its own text the closest of all?
                                    None if the prompt names both class and context, or the wrong one
    """

    spec: ImageTextSpec
    image_ids: np.ndarray
    class_ids: np.ndarray
    contexts: np.ndarray
    concept: np.ndarray
    context: np.ndarray
    correct: Mapping[str, np.ndarray | None]


def check(spec: RawSettings) -> ImageTextSpec:
    """The spec with its defaults; refuse prompts without a placeholder."""
    dataset = load_with_images(spec)
    values = {name: s.check(spec.get(name, s.default)) for name, s in SETTINGS.items()}
    for name in ("concept_prompt", "context_prompt"):
        for template in templates(values[name]) or [""]:
            if not any(f"{{{place}}}" in template for place in _PLACEHOLDERS):
                raise BadInput(
                    f"The {SETTINGS[name].title.lower()} must contain {{concept}} or {{context}}. "
                    f"Got {template!r}. The default is {SETTINGS[name].default!r}."
                )
    values["split"] = values["split"] or draw.default_split(dataset)
    dataset.split_class_ids(values["split"])
    return cast(ImageTextSpec, {"dataset": dataset.name, **values})


def templates(prompt: str) -> list[str]:
    """The templates of a prompt, separated by bars."""
    return [part.strip() for part in prompt.split("|") if part.strip()]


def measure(spec: RawSettings) -> ImageTextSimilarity:
    """M_concept and M_context of every image of the split that has a context and features of the model."""
    checked = check(spec)
    dataset = datasets.load(checked["dataset"])
    table = features.load(dataset, checked["model"])  # its error says how to extract them
    model = _model(table.backbone, checked["checkpoint"])
    if table.values.shape[1] != model.dims:
        raise BadInput(
            f"{checked['model']} image features have {table.values.shape[1]} dimensions, its text features "
            f"{model.dims}: they are of different models. {table.remake.capitalize()}."
        )
    image_contexts = dataset.image_contexts()[table.image_ids]
    keep = np.isin(table.class_ids, dataset.split_class_ids(checked["split"])) & (image_contexts != "")
    if not keep.any():
        raise Missing(f"No image of split {checked['split']!r} has a context and features of {checked['model']}.")
    values = np.asarray(table.values[keep], dtype=np.float32)
    values /= np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-12)
    class_ids, contexts = table.class_ids[keep], image_contexts[keep]
    names = dataset.classes["class_name"].astype(str).to_numpy()[class_ids]
    cosines, correct = {}, {}
    for axis, prompt in (("concept", checked["concept_prompt"]), ("context", checked["context_prompt"])):
        cosines[axis], correct[axis] = _compare(model, values, prompt, axis, {"concept": names, "context": contexts})
    return ImageTextSimilarity(
        checked, table.image_ids[keep], class_ids, contexts, cosines["concept"], cosines["context"], correct
    )


def _compare(
    model: image_text.ImageText, values: np.ndarray, prompt: str, axis: str, names: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray | None]:
    """Cosine (n,) of every image with its own text, and whether that text is the closest of all.

    The second is None unless the prompt names this axis alone.
    """
    used = [place for place in _PLACEHOLDERS if f"{{{place}}}" in prompt]
    pairs = pd.MultiIndex.from_arrays([names[place] for place in used])
    label_of_image, labels = pd.factorize(pairs)
    texts = text_features(model, prompt, [dict(zip(used, pair, strict=True)) for pair in labels])
    cosines = values @ texts.T
    correct = cosines.argmax(1) == label_of_image if used == [axis] else None
    return cosines[np.arange(len(values)), label_of_image], correct


def text_features(model: image_text.ImageText, prompt: str, names_of_texts: list[dict[str, str]]) -> np.ndarray:
    """Unit-length features (n, dims) of a prompt with these names: the mean over its templates, scaled to length 1."""
    total = np.zeros((len(names_of_texts), model.dims), dtype=np.float32)
    for template in templates(prompt):
        texts = []
        for names in names_of_texts:
            text = template
            for place, name in names.items():
                text = text.replace(f"{{{place}}}", name)
            texts.append(text)
        total += model.encode_texts(texts)
    return total / np.maximum(np.linalg.norm(total, axis=1, keepdims=True), 1e-12)


@lru_cache(maxsize=2)
def _model(name: str, checkpoint: str) -> image_text.ImageText:
    """Load the model by the name of its features; after @ is the digest of a file of weights."""
    plain, _, weights = name.partition("@")
    if weights and not checkpoint:
        raise Missing(
            f"Features of {name} were extracted with a file of weights, which the texts need too: "
            f"fsviz similarity DATASET --model {name} --checkpoint FILE"
        )
    model = image_text.load_image_text(plain, checkpoint or None)
    if weights and not checkpoints.digest(model.model.visual.state_dict()).startswith(weights):
        raise BadInput(f"{checkpoint} does not hold the weights that the features of {name} were extracted with.")
    return model


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
    for axis in _PLACEHOLDERS:
        correct = similarity.correct[axis]
        result[f"zero_shot_{axis}"] = None if correct is None else mean(correct)
    result["chance"] = {
        "concept": 1 / len(np.unique(similarity.class_ids)),
        "context": 1 / len(np.unique(similarity.contexts)),
    }
    return result


CLASSES = Table(
    "Image–text similarity by class",
    Column("class_name", "Class"),
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


def possible_models(dataset: Dataset) -> list[str]:
    """Image-text models with features of this dataset."""
    return [name for name in features.available(dataset) if name == image_text.DEMO or name.startswith("open_clip:")]


def command(spec: ImageTextSpec) -> str:
    """Command line of a spec."""
    changed = {name: value for name, value in spec.items() if name in SETTINGS and value != SETTINGS[name].default}
    return shlex.join(["fsviz", "similarity", spec["dataset"], *to_args(changed, SETTINGS)])
