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
from fsviz.records import Dataset
from fsviz.text import short_names
from fsviz.ui.parts import clicks, drilldown, export, hover, page_links, shell, task_list
from fsviz.ui.parts.caching import cache_data
from fsviz.ui.parts.controls import pick
from fsviz.ui.parts.image_wall import Tile, gallery
from fsviz.ui.parts.shell import escape

SCATTER = "similarity"
MAX_POINTS = 3000
MAX_IMAGES = 20


def show(dataset: Dataset, split: str) -> None:
    models = text_similarity.possible_models(dataset)
    if not models:
        shell.answer(f"{escape(dataset.title)} has no features of an image-text model.")
        st.info("If it has images, extract them. CLIP is downloaded, or read from --checkpoint.", icon="🧩")
        st.code(f"fsviz extract {dataset.name} --backbone open_clip:ViT-B-32/openai", language="bash")
        _benchmarks()
        return
    with shell.side():
        titles = {name: title_of(name) for name in models}
        setting = text_similarity.MODEL.with_(kind="choice", choices=titles, default=models[0], advanced=True)
        model = pick(setting)
        prompts = {
            s.name: pick(s.with_(advanced=True))
            for s in (text_similarity.CONCEPT_PROMPT, text_similarity.CONTEXT_PROMPT)
        }
    spec = study.check({"dataset": dataset.name, "split": split, "model": model, **prompts})
    similarity = _measure(dataset, json.dumps(spec, sort_keys=True))
    sentence, more = study.closer_answer(study.summary(similarity))
    shell.answer(escape(sentence), escape(more))
    _scatter(dataset, similarity, model)
    _accuracy(dataset, similarity)
    with st.expander("By class"):
        _classes(dataset, similarity)
    with st.expander("Published datasets (CLIP)"):
        _benchmarks()
    shell.command_popover(study.command(spec))


def _scatter(dataset: Dataset, similarity: study.ImageTextSimilarity, model: str) -> None:
    """Every image by its two similarities, with the selected images next to it."""
    names = dataset.short_names()
    positions = np.unique(np.linspace(0, len(similarity.concept) - 1, MAX_POINTS).round().astype(int))
    labels = [f"{names[similarity.class_ids[i]]}, {similarity.contexts[i]}" for i in positions]
    left, right = shell.responsive_columns("words", [1, 1], gap="medium")
    with left:
        event = export.chart(
            "Image–text similarity",
            figures.plot_similarity(
                similarity.context[positions], similarity.concept[positions], labels, similarity.image_ids[positions]
            ),
            key=SCATTER,
            on_select="rerun",
            selection_mode=("points", "box", "lasso"),
        )
        own = (
            "A small model trained on the demo only: similarities are far higher than CLIP's."
            if model == image_text.DEMO
            else None
        )
        st.caption(
            f"{len(positions):,} of {len(similarity.concept):,} images, {escape(title_of(model))}. Below the diagonal: "
            "closer to the context text. Drag to select images.",
            help=own,
        )
    if dataset.has_pixels:
        hover.thumbnails(dataset, SCATTER, frozenset(int(similarity.image_ids[i]) for i in positions))
    with right:
        _images(dataset, similarity, [int(image_id) for image_id in clicks.data_in(event)])


def _images(dataset: Dataset, similarity: study.ImageTextSimilarity, selected: list[int]) -> None:
    """The selected images; without a selection those closest to their context text."""
    image_ids, title = selected, f"{len(selected):,} images selected"
    if not selected:
        gap = similarity.context - similarity.concept
        image_ids = similarity.image_ids[np.argsort(-gap, kind="stable")[:MAX_IMAGES]].tolist()
        title = "Closest to their context text"
    st.markdown(f"**{title}**")
    if dataset.has_pixels and dataset.images is not None:
        names = dataset.short_names()
        images = dataset.images.loc[image_ids[:MAX_IMAGES]]
        tiles = [
            Tile(int(i), caption=f"{names[c]}, {context}")
            for i, c, context in zip(images.index, images["class_id"], images["context"])
        ]
        page_links.to_gallery(dataset, gallery(dataset, tiles, key="similar", tile_px=76))
        if len(image_ids) > MAX_IMAGES:
            st.caption(f"The first {MAX_IMAGES:,}.")


def _classes(dataset: Dataset, similarity: study.ImageTextSimilarity) -> None:
    table = study.by_class(similarity).sort_values("nearer_to_context", ascending=False)
    names = dataset.distinct_names(table["class_id"].to_numpy())
    class_name = drilldown.table(
        study.CLASSES,
        table.assign(class_name=names),
        height=460,
        key="concepts_against_words",
        name="concept_row",
        texts=names,
        about=dataset.name,
    )
    if class_name:
        drilldown.heading(escape(short_names(names)[names.index(class_name)]), "concept_row")
        drilldown.classes(dataset, [int(table["class_id"].iloc[names.index(class_name)])], "concept_row_images")


def _benchmarks() -> None:
    """Published numbers of CLIP; those of another model would not be comparable."""
    table = study.benchmarks()
    names, values = table["benchmark"].tolist(), table["concept_image_similarity"].tolist()
    export.chart("Published datasets (CLIP)", figures.plot_benchmarks(names, values), key="benchmarks")
    st.caption(
        f"{len(table):,} published numbers of CLIP (Zhang et al. 2024, table 1); low means much background. Numbers of "
        "different models are not comparable."
    )


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
    point = drilldown.chart(
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
    if point:
        task = int(point)
        drilldown.heading(f"Task {task:,}: {100 * tasks.accuracy[task]:.0f}% correct", "near_task")
        task_list.show_task(dataset, tasks.tasks, task, "near_task_images")


@cache_data("Comparing images with texts", 24)
def _measure(dataset: Dataset, spec: str) -> study.ImageTextSimilarity:
    return study.measure(json.loads(spec))


@cache_data("Classifying tasks", 24)
def _relate_to_accuracy(dataset: Dataset, spec: str, backbone: str) -> study.AccuracyRelation:
    return study.against_accuracy(study.measure(json.loads(spec)), backbone)
