"""Is an image closer to the word for the thing or to the word for its background?

    images, names of concepts and contexts -> an image-text model -> cosines M_concept and M_context per image

After MetaCoCo (Zhang et al. 2024, section 3.2), which published no prompts: ours are a template that can be edited, or
several with | between, whose text features are averaged. Any open_clip model will do; numbers of different models are
not comparable.
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
    "Prompt of the concept",
    "The text that an image is compared with, {concept} standing for its class and {context} for its context; several "
    "with | between are averaged.",
    "text",
    "a photo of a {concept}",
)
CONTEXT_PROMPT = CONCEPT_PROMPT.with_(
    name="context_prompt", title="Prompt of the context", default="a photo of {context}|a photo taken in {context}"
)
MODEL = Setting(
    "model",
    "Image-text model",
    "demo_clip, or any open_clip model (ViT-B-32/openai) whose features of these images were extracted.",
    "text",
    image_text.DEMO,
)
CHECKPOINT = Setting(
    "checkpoint", "Weights of the model", "The file of weights that the features were extracted with.", "text", ""
)
SETTINGS: dict[str, Setting] = {s.name: s for s in (draw.SPLIT, MODEL, CHECKPOINT, CONCEPT_PROMPT, CONTEXT_PROMPT)}
_PLACES = ("concept", "context")


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
    right                           (n,) by prompt ("concept", "context"): is its own text the nearest of all values?
                                    None where the prompt names both words or the wrong one
    """

    spec: ImageTextSpec
    image_ids: np.ndarray
    class_ids: np.ndarray
    contexts: np.ndarray
    concept: np.ndarray
    context: np.ndarray
    right: Mapping[str, np.ndarray | None]


def check(spec: RawSettings) -> ImageTextSpec:
    """The spec with its defaults; prompts without a place for a word are refused."""
    dataset = load_with_images(spec)
    values = {name: s.check(spec.get(name, s.default)) for name, s in SETTINGS.items()}
    for name in ("concept_prompt", "context_prompt"):
        for template in templates(values[name]) or [""]:
            if not any(f"{{{place}}}" in template for place in _PLACES):
                raise BadInput(
                    f"The {SETTINGS[name].title.lower()} must hold {{concept}} or {{context}}, where the name goes. "
                    f"Got {template!r}. The default is {SETTINGS[name].default!r}."
                )
    values["split"] = values["split"] or draw.default_split(dataset)
    dataset.split_class_ids(values["split"])
    return cast(ImageTextSpec, {"dataset": dataset.name, **values})


def templates(prompt: str) -> list[str]:
    """The templates of a prompt: what stands between its bars."""
    return [part.strip() for part in prompt.split("|") if part.strip()]


def measure(spec: RawSettings) -> ImageTextSimilarity:
    """M_concept and M_context of every image of the split that has a context and features of the model."""
    settled = check(spec)
    dataset = datasets.load(settled["dataset"])
    table = features.load(dataset, settled["model"])  # says how to extract them where they are not at hand
    model = _model(table.backbone, settled["checkpoint"])
    if table.values.shape[1] != model.dims:
        raise BadInput(
            f"Features of {settled['model']} of these images have {table.values.shape[1]} dimensions, its texts "
            f"{model.dims}: they are not of the same model. {table.remake.capitalize()}."
        )
    of_image = dataset.image_contexts()[table.image_ids]
    keep = np.isin(table.class_ids, dataset.split_class_ids(settled["split"])) & (of_image != "")
    if not keep.any():
        raise Missing(f"No image of split {settled['split']!r} has a context and features of {settled['model']}.")
    values = np.asarray(table.values[keep], dtype=np.float32)
    values /= np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-12)
    class_ids, contexts = table.class_ids[keep], of_image[keep]
    names = dataset.classes["class_name"].astype(str).to_numpy()[class_ids]
    found, right = {}, {}
    for axis, prompt in (("concept", settled["concept_prompt"]), ("context", settled["context_prompt"])):
        found[axis], right[axis] = _against(model, values, prompt, axis, {"concept": names, "context": contexts})
    return ImageTextSimilarity(
        settled, table.image_ids[keep], class_ids, contexts, found["concept"], found["context"], right
    )


def _against(
    model: image_text.ImageText, values: np.ndarray, prompt: str, axis: str, words_of: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray | None]:
    """Cosine (n,) of every image with the text of its own words; and whether that text is the nearest of all, where
    the prompt holds the word of this axis alone."""
    used = [place for place in _PLACES if f"{{{place}}}" in prompt]
    pairs = pd.MultiIndex.from_arrays([words_of[place] for place in used])
    which, known = pd.factorize(pairs)
    texts = text_features(model, prompt, [dict(zip(used, pair, strict=True)) for pair in known])
    cosines = values @ texts.T
    right = cosines.argmax(1) == which if used == [axis] else None
    return cosines[np.arange(len(values)), which], right


def text_features(model: image_text.ImageText, prompt: str, words_of: list[dict[str, str]]) -> np.ndarray:
    """Unit-length features (n, dims) of a prompt with these words: the mean over its templates, made unit length."""
    total = np.zeros((len(words_of), model.dims), dtype=np.float32)
    for template in templates(prompt):
        filled = []
        for one in words_of:
            text = template
            for place, word in one.items():
                text = text.replace(f"{{{place}}}", word)
            filled.append(text)
        total += model.encode_texts(filled)
    return total / np.maximum(np.linalg.norm(total, axis=1, keepdims=True), 1e-12)


@lru_cache(maxsize=2)
def _model(name: str, checkpoint: str) -> image_text.ImageText:
    """The model by the name that its features have: after @ is said which weights of a file they were made with."""
    plain, _, weights = name.partition("@")
    if weights and not checkpoint:
        raise Missing(
            f"Features of {name} were made with a file of weights, which also reads the words. Give it: '"
            f"fsviz similarity DATASET --model {name} --checkpoint FILE'."
        )
    model = image_text.load_image_text(plain, checkpoint or None)
    if weights and not checkpoints.digest(model.model.visual.state_dict()).startswith(weights):
        raise BadInput(f"The weights in {checkpoint} are not those that the features of {name} were made with.")
    return model


def summary(similarity: ImageTextSimilarity) -> dict[str, Any]:
    """Means over images, zero-shot accuracies and the share nearer to their context, with 95% intervals over images
    (ci95) and over classes, whose images hang together (ci95_classes)."""
    nearer = similarity.context > similarity.concept

    def told(values: np.ndarray) -> dict[str, float | None]:
        return {**mean_record(values), "ci95_classes": finite(clustered_mean(values, similarity.class_ids)[1])}

    result: dict[str, Any] = {**similarity.spec, "n_images": len(similarity.concept)}
    result["m_concept"], result["m_context"] = told(similarity.concept), told(similarity.context)
    result["nearer_to_context"] = told(nearer)
    for axis in _PLACES:
        right = similarity.right[axis]
        result[f"zero_shot_{axis}"] = None if right is None else told(right)
    result["chance"] = {
        "concept": 1 / len(np.unique(similarity.class_ids)),
        "context": 1 / len(np.unique(similarity.contexts)),
    }
    return result


CLASSES = Table(
    "Classes and words",
    Column("class_name", "Class"),
    Column("nearer_to_context", "Nearer to context", digits=0, kind="share", width=120),
    Column("m_concept", "Image and class", digits=3, kind="number"),
    Column("m_context", "Image and context", digits=3, kind="number"),
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
    """Tasks by how near their queries are to the words for their contexts (T,), and their accuracy (T,) from 0 to 1.

    line     the straight line of least squares, accuracy in percent, or None
    summary  Pearson's correlation with its 95% interval (None where it cannot be known), and of what
    """

    closeness: np.ndarray
    accuracy: np.ndarray
    line: tuple[list[float], list[float]] | None
    summary: Mapping[str, Any]
    tasks: Tasks


def against_accuracy(similarity: ImageTextSimilarity, backbone: str, n_tasks: int = 300) -> AccuracyRelation:
    """Do tasks whose queries are near to their contexts come out worse? Uniform 5-shot tasks, ProtoNet: the correlation
    of the accuracy with the mean M_context of the queries, with its 95% interval over classes."""
    dataset = datasets.load(similarity.spec["dataset"])
    table = features.load(dataset, backbone)
    usable = np.intersect1d(similarity.image_ids, table.image_ids)
    split = similarity.spec["split"]
    try:
        shape = fitting.fit(dataset, {"split": split, "sampler": "uniform"}, draw.IMAGE_DEFAULTS, [backbone]).values
        asked: dict[str, Any] = {"split": split, **shape, "n_tasks": n_tasks}
        tasks = draw.sample(dataset, sampler="uniform", usable=usable, **asked).tasks
    except BadInput:  # too few classes, or images that no task can hold: the rest of the page does not need it
        nothing = {"pearson": None, "low": None, "high": None, "n_tasks": 0}
        return AccuracyRelation(np.zeros(0), np.zeros(0), None, nothing, Tasks(np.zeros((0, 0), int)))
    accuracy = evaluation.task_accuracy(evaluate.predict_tasks(dataset, backbone, "protonet", {}, tasks))
    of_image = np.full(int(similarity.image_ids.max()) + 1, np.nan)
    of_image[similarity.image_ids] = similarity.context
    closeness = of_image[tasks.query].mean((1, 2))
    value = evaluation.correlation(accuracy, closeness, tasks.class_ids)
    known = {"pearson": finite(value.value), "low": finite(value.low), "high": finite(value.high)}
    line = None
    if known["pearson"] is not None:
        x = np.array([closeness.min(), closeness.max()])
        line = (x.tolist(), np.polyval(np.polyfit(closeness, 100 * accuracy, 1), x).tolist())
    told = known | {"n_tasks": len(tasks), **shape, "backbone": backbone, "over": value.ci_unit}
    return AccuracyRelation(closeness, accuracy, line, told, tasks)


def benchmarks() -> pd.DataFrame:
    """Table 1 of the paper: benchmark, n_classes, n_images, n_contexts, concept_image_similarity; all published."""
    return pd.read_csv(DATA / "published" / "metacoco_benchmarks.csv")


def possible_models(dataset: Dataset) -> list[str]:
    """Image-text models whose features of this dataset are at hand."""
    return [name for name in features.available(dataset) if name == image_text.DEMO or name.startswith("open_clip:")]


def command(spec: ImageTextSpec) -> str:
    said = {name: value for name, value in spec.items() if name in SETTINGS and value != SETTINGS[name].default}
    return shlex.join(["fsviz", "similarity", spec["dataset"], *to_args(said, SETTINGS)])
