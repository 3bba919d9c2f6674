"""Image–text similarity: is an image closer to the text of its class or of its context?"""

from __future__ import annotations

import json

import numpy as np
import streamlit as st

from fsviz import features
from fsviz.analyses import image_text as study
from fsviz.features import image_text, text_similarity
from fsviz.features.backbones import title_of
from fsviz.figures import contexts as figures
from fsviz.figures.prediction import plot_scatter
from fsviz.records import Dataset, HeadlineNumber
from fsviz.ui.parts import clicks, drilldown, export, hover, page_links, shell, task_list
from fsviz.ui.parts.caching import cache_data
from fsviz.ui.parts.controls import pick
from fsviz.ui.parts.headline import show_numbers
from fsviz.ui.parts.image_wall import Tile, gallery
from fsviz.ui.parts.shell import escape

SCATTER = "similarity"
MAX_POINTS = 3000
MAX_IMAGES = 48


def show(dataset: Dataset, split: str) -> None:
    models = text_similarity.possible_models(dataset)
    if not models:
        st.info(
            f"{escape(dataset.title)} has no features of an image-text model. If it has images, extract them with the "
            "command below. CLIP is downloaded, or read from --checkpoint.",
            icon="🧩",
        )
        st.code(f"fsviz extract {dataset.name} --backbone open_clip:ViT-B-32/openai", language="bash")
        _benchmarks(dataset)
        return
    with shell.side():
        model = pick(
            text_similarity.MODEL.with_(
                kind="choice", choices={name: title_of(name) for name in models}, default=models[0], advanced=True
            )
        )
    left, right = st.columns(2)
    prompt_settings = (
        (text_similarity.CONCEPT_PROMPT.with_(advanced=True), left),
        (text_similarity.CONTEXT_PROMPT.with_(advanced=True), right),
    )
    prompts = {s.name: pick(s, where) for s, where in prompt_settings}
    spec = study.check({"dataset": dataset.name, "split": split, "model": model, **prompts})
    similarity = _measure(dataset, json.dumps(spec, sort_keys=True))
    summary = study.summary(similarity)
    _headline(summary)
    _scatter(dataset, similarity)
    if model == image_text.DEMO:
        st.caption(
            f"{escape(title_of(model))} is a small model trained on the demo's classes and contexts only, so its "
            "similarities are far higher than CLIP's."
        )
    first_column, second_column = shell.responsive_columns("words", 2, gap="large")
    with first_column:
        _classes(dataset, similarity)
    with second_column:
        _benchmarks(dataset, model, float(summary["m_concept"]["mean"]))
    _accuracy(dataset, similarity)
    shell.command_popover(study.command(spec))


def _headline(summary: dict) -> None:
    closer, concept, context = (summary[name] for name in ("nearer_to_context", "m_concept", "m_context"))
    context_number = HeadlineNumber.around(
        "context", "context", context["mean"], context["ci95"], "", "images", digits=3
    )
    numbers = [
        HeadlineNumber.around(
            "nearer",
            "Closer to context text",
            100 * closer["mean"],
            100 * closer["ci95"],
            ci_unit="images",
            digits=0,
            help="Share of images whose features are closer to the text of their context than to that of their "
            f"class. 95% CI over images{_other_classes(closer, 100)}.",
        ),
        HeadlineNumber.around(
            "concept",
            "Similarity to class text",
            concept["mean"],
            concept["ci95"],
            "",
            "images",
            digits=3,
            note=f"context {context_number.number_text}",
            help="Mean cosine similarity of images to the text of their class, and to that of their context. "
            f"95% CI over images{_other_classes(summary['m_concept'])}.",
        ),
        _zero_shot("Zero-shot class accuracy", summary["zero_shot_concept"], summary["chance"]["concept"]),
        _zero_shot("Zero-shot context accuracy", summary["zero_shot_context"], summary["chance"]["context"]),
    ]
    show_numbers(numbers, "words")


def _zero_shot(title: str, correct: dict | None, chance: float) -> HeadlineNumber | None:
    if correct is None:
        return None
    return HeadlineNumber.around(
        title,
        title,
        100 * correct["mean"],
        100 * correct["ci95"],
        ci_unit="images",
        note=f"chance level {100 * chance:.0f}%",
        help="Share of images whose own text is the closest of all texts. 95% CI over images"
        + _other_classes(correct, 100)
        + ".",
    )


def _other_classes(mean: dict, factor: float = 1.0) -> str:
    """Half-width of the interval over classes, as the end of a sentence."""
    half = mean["ci95_classes"]
    return "" if half is None else f"; over classes ± {factor * half:.2g}"


def _scatter(dataset: Dataset, similarity: study.ImageTextSimilarity) -> None:
    names = dataset.classes["class_name"].astype(str).to_numpy()
    positions = np.unique(np.linspace(0, len(similarity.concept) - 1, MAX_POINTS).round().astype(int))
    labels = [f"{names[similarity.class_ids[i]]}, {similarity.contexts[i]}" for i in positions]
    event = export.chart(
        "Image–text similarity",
        figures.plot_similarity(
            similarity.context[positions], similarity.concept[positions], labels, similarity.image_ids[positions]
        ),
        key=SCATTER,
        on_select="rerun",
        selection_mode=("points", "box", "lasso"),
    )
    st.caption(
        f"{len(positions):,} of {len(similarity.concept):,} images. Below the diagonal: closer to the context text. "
        "Drag to select images."
    )
    if dataset.has_pixels:
        hover.thumbnails(dataset, SCATTER, frozenset(int(similarity.image_ids[i]) for i in positions))
    chosen = [int(image_id) for image_id in clicks.data_in(event)]
    if chosen:
        title = f"{len(chosen):,} images selected"
    else:
        gap = similarity.context - similarity.concept
        chosen = similarity.image_ids[np.argsort(-gap, kind="stable")[:MAX_IMAGES]].tolist()
        title = "Closest to their context text"
    st.markdown(f"**{title}**")
    if dataset.has_pixels and dataset.images is not None:
        images = dataset.images.loc[chosen[:MAX_IMAGES]]
        tiles = [
            Tile(int(i), caption=f"{names[c]}, {context}")
            for i, c, context in zip(images.index, images["class_id"], images["context"])
        ]
        page_links.to_gallery(dataset, gallery(dataset, tiles, key="similar", tile_px=84))
        if len(chosen) > MAX_IMAGES:
            st.caption(f"The first {MAX_IMAGES:,} are shown.")


def _classes(dataset: Dataset, similarity: study.ImageTextSimilarity) -> None:
    st.markdown("**By class**")
    table = study.by_class(similarity).sort_values("nearer_to_context", ascending=False)
    names = dataset.distinct_names(table["class_id"].to_numpy())
    chosen = drilldown.table(
        study.CLASSES,
        table.assign(class_name=names),
        height=460,
        key="concepts_against_words",
        name="concept_row",
        texts=names,
        about=dataset.name,
    )
    if chosen:
        drilldown.heading(escape(chosen), "concept_row")
        drilldown.classes(dataset, [int(table["class_id"].iloc[names.index(chosen)])], "concept_row_images")


def _benchmarks(dataset: Dataset, model: str = "", value: float = 0.0) -> None:
    """Show the published numbers, and that of this dataset if there is a model."""
    st.markdown("**Published datasets (CLIP)**")
    table = study.benchmarks()
    here = (dataset.title, title_of(model), value) if model else None
    names, values = table["benchmark"].tolist(), table["concept_image_similarity"].tolist()
    export.chart("Published datasets (CLIP)", figures.plot_benchmarks(names, values, here), key="benchmarks")
    own = (
        f" Blue: this dataset, {escape(title_of(model))}. Numbers of different models are not comparable."
        if model
        else " Mean similarity to the class text: low means much background."
    )
    st.caption(f"Grey: {len(table):,} published numbers of CLIP (Zhang et al. 2024, table 1).{own}")


def _accuracy(dataset: Dataset, similarity: study.ImageTextSimilarity) -> None:
    backbones = features.available(dataset)
    tasks = _relate_to_accuracy(dataset, json.dumps(dict(similarity.spec), sort_keys=True), backbones[0])
    summary = tasks.summary
    if summary["pearson"] is None or summary["low"] is None:
        return
    st.subheader("Context similarity vs accuracy", anchor=False)
    figure = plot_scatter(
        tasks.closeness,
        100 * tasks.accuracy,
        tasks.line,
        "mean similarity of the queries to the text of their context",
        "accuracy (%)",
        height=340,
    )
    chosen = drilldown.chart(
        "Context similarity vs accuracy",
        figure,
        key="closeness",
        name="near_task",
        texts=[str(t) for t in range(len(tasks.accuracy))],
        about=str(similarity.spec),
    )
    st.caption(
        f"{summary['n_tasks']:,} uniform {summary['n_way']:,}-way {summary['n_shot']:,}-shot tasks, ProtoNet on "
        f"{escape(title_of(backbones[0]))}. Correlation {summary['pearson']:.2f} "
        f"({summary['low']:.2f} to {summary['high']:.2f}, 95% CI over "
        f"{escape(summary['over'])}). Click a point to see its task."
    )
    if chosen:
        task = int(chosen)
        drilldown.heading(f"Task {task:,}: {100 * tasks.accuracy[task]:.0f}% correct", "near_task")
        task_list.show_task(dataset, tasks.tasks, task, "near_task_images")


@cache_data("Comparing images with texts", 24)
def _measure(dataset: Dataset, spec: str) -> study.ImageTextSimilarity:
    return study.measure(json.loads(spec))


@cache_data("Classifying tasks", 24)
def _relate_to_accuracy(dataset: Dataset, spec: str, backbone: str) -> study.AccuracyRelation:
    return study.against_accuracy(study.measure(json.loads(spec)), backbone)
