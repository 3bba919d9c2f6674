"""M_concept and M_context: held against open_clip itself, prompts, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from fsviz import datasets
from fsviz.analyses import image_text as study
from fsviz.errors import BadInput, FsvizError, Missing
from fsviz.features import text_similarity
from fsviz.features.image_text import DEMO_FOLDER, load_image_text

SPEC = {"dataset": "demo", "split": "test"}


@pytest.fixture(scope="module")
def similarity() -> study.ImageTextSimilarity:
    return study.measure(SPEC)


def test_similarities_are_those_of_open_clip(similarity: study.ImageTextSimilarity) -> None:
    demo, model = datasets.load("demo"), load_image_text("demo_clip", on="cpu")
    at = np.array([0, 333, 1200])
    vectors = model.encode_images([datasets.open_image(demo, int(i)) for i in similarity.image_ids[at]])
    for k, i in enumerate(at):
        name, context = demo.classes["class_name"][similarity.class_ids[i]], similarity.contexts[i]
        concept = model.encode_texts([f"a photo of a {name}"])[0]
        both = model.encode_texts([f"a photo of {context}", f"a photo taken in {context}"]).sum(0)
        assert similarity.concept[i] == pytest.approx(float(vectors[k] @ concept), abs=0.01)
        assert similarity.context[i] == pytest.approx(float(vectors[k] @ both / np.linalg.norm(both)), abs=0.01)


def test_swapping_the_prompts_swaps_the_axes(similarity: study.ImageTextSimilarity) -> None:
    spec = similarity.spec
    swapped = study.measure(
        {**SPEC, "concept_prompt": spec["context_prompt"], "context_prompt": spec["concept_prompt"]}
    )
    assert np.allclose(swapped.concept, similarity.context, atol=1e-6)
    assert np.allclose(swapped.context, similarity.concept, atol=1e-6)
    assert swapped.correct["concept"] is None and study.summary(swapped)["zero_shot_concept"] is None


def test_the_summary_follows_from_the_images(similarity: study.ImageTextSimilarity) -> None:
    summary = study.summary(similarity)
    assert summary["n_images"] == 1440
    assert summary["m_context"]["mean"] == pytest.approx(similarity.context.mean(), abs=1e-6)
    assert summary["nearer_to_context"]["mean"] == pytest.approx((similarity.context > similarity.concept).mean())
    assert (
        summary["zero_shot_context"]["mean"]
        > 0.9
        > summary["zero_shot_concept"]["mean"]
        > 20 * summary["chance"]["concept"] / 10
    )
    assert summary["m_concept"]["ci95_classes"] > 1.5 * summary["m_concept"]["ci95"]  # images of a class hang together
    table = study.by_class(similarity)
    assert len(table) == 30 and table["n_images"].sum() == 1440
    assert np.average(table["m_concept"], weights=table["n_images"]) == pytest.approx(
        similarity.concept.mean(), abs=1e-5
    )
    assert len(study.benchmarks()) == 18


def test_task_accuracy_against_closeness_has_its_interval(similarity: study.ImageTextSimilarity) -> None:
    against = study.against_accuracy(similarity, "efficientnet_lite0", n_tasks=100)
    summary = against.summary
    assert -1 <= summary["low"] <= summary["pearson"] <= summary["high"] <= 1 and summary["n_tasks"] == 100
    assert summary["pearson"] == pytest.approx(np.corrcoef(against.closeness, against.accuracy)[0, 1])
    assert against.line is not None and np.sign(np.diff(against.line[1])) == np.sign(summary["pearson"])


@pytest.mark.parametrize("prompt", ["", " | ", "a photo", "a photo of {concept}|nothing"])
def test_a_prompt_without_a_place_for_the_name_is_refused(prompt: str) -> None:
    with pytest.raises(BadInput, match="must contain"):
        study.check({**SPEC, "concept_prompt": prompt})


def test_a_model_without_features_and_a_dataset_without_contexts_are_refused() -> None:
    with pytest.raises(FsvizError, match="extract"):
        study.measure({**SPEC, "model": "open_clip:ViT-B-32/openai"})
    with pytest.raises(Missing, match="contexts"):
        study.check({"dataset": "digits"})


def test_weights_of_a_file_read_the_words_too() -> None:
    with pytest.raises(Missing, match="--checkpoint FILE"):
        text_similarity._model("demo_clip@2d2855f1", "")
    with pytest.raises(BadInput, match="does not hold the weights"):
        text_similarity._model("demo_clip@00000000", str(DEMO_FOLDER / "model.safetensors"))
    assert text_similarity._model("demo_clip@2d2855f1", str(DEMO_FOLDER / "model.safetensors")).dims == 128


def test_the_answer_has_the_share_its_intervals_and_the_chance_levels() -> None:
    mean = {"mean": 0.781, "ci95": 0.021, "ci95_classes": 0.052}
    result = {"nearer_to_context": mean, "n_images": 1440, "zero_shot_concept": {"mean": 0.8}}
    result |= {"zero_shot_context": None, "chance": {"concept": 1 / 30, "context": 1 / 14}}
    assert study.closer_answer(result) == (
        "78 ± 2% of images are closer to the text of their context than to that of their class.",
        "1,440 images; 95% CI over images, ± 5 over classes. Zero-shot accuracy: class 80% (chance level 3%).",
    )
