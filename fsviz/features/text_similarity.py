"""Similarity of images to texts that name their class and their context, under an image-text model.

    images, names of classes and contexts -> an image-text model -> cosines M_concept and M_context per image

After MetaCoCo (Zhang et al. 2024, section 3.2), which published no prompts. Our prompts are editable templates; the
text features of several templates, separated by |, are averaged. Any open_clip model works. Numbers of different models
are not comparable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypedDict, cast

import numpy as np
import pandas as pd

from fsviz import datasets, features
from fsviz.errors import BadInput, Missing
from fsviz.features import checkpoints, image_text
from fsviz.records import Dataset
from fsviz.settings import Setting

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
SETTINGS: dict[str, Setting] = {s.name: s for s in (MODEL, CHECKPOINT, CONCEPT_PROMPT, CONTEXT_PROMPT)}
PLACEHOLDERS = ("concept", "context")


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


def defaults(dataset: str, model: str, split: str) -> ImageTextSpec:
    """The spec of a model with the default prompts."""
    values = {name: setting.default for name, setting in SETTINGS.items()}
    return cast(ImageTextSpec, {**values, "dataset": dataset, "model": model, "split": split})


def templates(prompt: str) -> list[str]:
    """The templates of a prompt, separated by bars."""
    return [part.strip() for part in prompt.split("|") if part.strip()]


def measure(spec: ImageTextSpec) -> ImageTextSimilarity:
    """M_concept and M_context of every image of the split that has a context and features of the model."""
    dataset = datasets.load_with_contexts(spec["dataset"])
    table = features.load(dataset, spec["model"])  # its error says how to extract them
    model = _model(table.backbone, spec["checkpoint"])
    if table.values.shape[1] != model.dims:
        raise BadInput(
            f"{spec['model']} image features have {table.values.shape[1]} dimensions, its text features "
            f"{model.dims}: they are of different models. {table.remake.capitalize()}."
        )
    image_contexts = dataset.image_contexts()[table.image_ids]
    keep = np.isin(table.class_ids, dataset.split_class_ids(spec["split"])) & (image_contexts != "")
    if not keep.any():
        raise Missing(f"No image of split {spec['split']!r} has a context and features of {spec['model']}.")
    values = np.asarray(table.values[keep], dtype=np.float32)
    values /= np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-12)
    class_ids, contexts = table.class_ids[keep], image_contexts[keep]
    names = dataset.classes["class_name"].astype(str).to_numpy()[class_ids]
    cosines, correct = {}, {}
    for axis, prompt in (("concept", spec["concept_prompt"]), ("context", spec["context_prompt"])):
        cosines[axis], correct[axis] = _compare(model, values, prompt, axis, {"concept": names, "context": contexts})
    return ImageTextSimilarity(
        spec, table.image_ids[keep], class_ids, contexts, cosines["concept"], cosines["context"], correct
    )


def _compare(
    model: image_text.ImageText, values: np.ndarray, prompt: str, axis: str, names: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray | None]:
    """Cosine (n,) of every image with its own text, and whether that text is the closest of all.

    The second is None unless the prompt names this axis alone.
    """
    used = [place for place in PLACEHOLDERS if f"{{{place}}}" in prompt]
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


def possible_models(dataset: Dataset) -> list[str]:
    """Image-text models with features of this dataset."""
    return [name for name in features.available(dataset) if name == image_text.DEMO or name.startswith("open_clip:")]
