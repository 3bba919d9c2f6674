"""Is an image closer to the word for the thing or to the word for its background? One point per image."""

from __future__ import annotations

import json

import numpy as np
import streamlit as st

from fsviz import features
from fsviz.analyses import image_text as study
from fsviz.features import image_text
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
MOST_POINTS = 3000
SHOWN = 48


def show(dataset: Dataset, split: str) -> None:
    models = study.possible_models(dataset)
    if not models:
        st.info(
            f"{escape(dataset.title)} has no features of an image-text model. Where its images are at hand, extract "
            "them, such as with the command below; real CLIP is downloaded where there is internet, or read from "
            "--checkpoint.",
            icon="🧩",
        )
        st.code(f"fsviz extract {dataset.name} --backbone open_clip:ViT-B-32/openai", language="bash")
        _benchmarks(dataset)
        return
    with shell.side():
        model = pick(
            study.MODEL.with_(
                kind="choice", choices={name: title_of(name) for name in models}, default=models[0], advanced=True
            )
        )
    left, right = st.columns(2)
    asked = ((study.CONCEPT_PROMPT.with_(advanced=True), left), (study.CONTEXT_PROMPT.with_(advanced=True), right))
    prompts = {s.name: pick(s, where) for s, where in asked}
    spec = study.check({"dataset": dataset.name, "split": split, "model": model, **prompts})
    found = _measure(dataset, json.dumps(spec, sort_keys=True))
    told = study.summary(found)
    _headline(told)
    _scatter(dataset, found)
    if model == image_text.DEMO:
        st.caption(
            f"{escape(title_of(model))} is a small model that knows the words for the demo's concepts and contexts and "
            "nothing else. It was trained to tell both, so its cosines are far higher than CLIP's."
        )
    one, two = shell.responsive_columns("words", 2, gap="large")
    with one:
        _classes(dataset, found)
    with two:
        _benchmarks(dataset, model, float(told["m_concept"]["mean"]))
    _accuracy(dataset, found)
    shell.command_popover(study.command(spec))


def _headline(told: dict) -> None:
    nearer, concept, context = (told[name] for name in ("nearer_to_context", "m_concept", "m_context"))
    beside = HeadlineNumber.around("context", "context", context["mean"], context["ci95"], "", "images", digits=3)
    numbers = [
        HeadlineNumber.around(
            "nearer",
            "Nearer to their context",
            100 * nearer["mean"],
            100 * nearer["ci95"],
            ci_unit="images",
            digits=0,
            help="Share of images whose features are closer to the text of their context than to that of their "
            f"concept. 95% interval over images{_other_classes(nearer, 100)}.",
        ),
        HeadlineNumber.around(
            "concept",
            "Image and concept",
            concept["mean"],
            concept["ci95"],
            "",
            "images",
            digits=3,
            note=f"context {beside.number_text}",
            help="Mean cosines of images with the texts of their concept and of their context. "
            f"95% intervals over images{_other_classes(told['m_concept'])}.",
        ),
        _zero_shot("Concept by words alone", told["zero_shot_concept"], told["chance"]["concept"]),
        _zero_shot("Context by words alone", told["zero_shot_context"], told["chance"]["context"]),
    ]
    show_numbers(numbers, "words")


def _zero_shot(title: str, right: dict | None, chance: float) -> HeadlineNumber | None:
    if right is None:
        return None
    return HeadlineNumber.around(
        title,
        title,
        100 * right["mean"],
        100 * right["ci95"],
        ci_unit="images",
        note=f"chance {100 * chance:.0f}%",
        help="Zero-shot accuracy: how often the nearest of all texts is that of the image. 95% interval over images"
        + _other_classes(right, 100)
        + ".",
    )


def _other_classes(one: dict, times: float = 1.0) -> str:
    """How far other classes would move a mean, which images of the same classes do not tell."""
    half = one["ci95_classes"]
    return "" if half is None else f"; over classes it is ± {times * half:.2g}"


def _scatter(dataset: Dataset, found: study.ImageTextSimilarity) -> None:
    names = dataset.classes["class_name"].astype(str).to_numpy()
    few = np.unique(np.linspace(0, len(found.concept) - 1, MOST_POINTS).round().astype(int))
    told = [f"{names[found.class_ids[i]]}, {found.contexts[i]}" for i in few]
    event = export.chart(
        "Images against words",
        figures.plot_similarity(found.context[few], found.concept[few], told, found.image_ids[few]),
        key=SCATTER,
        on_select="rerun",
        selection_mode=("points", "box", "lasso"),
    )
    st.caption(
        f"{len(few):,} of {len(found.concept):,} images. Below the diagonal an image is closer to the words for its "
        "background than to those for the thing. Draw a lasso or a box to see the images in it."
    )
    if dataset.has_pixels:
        hover.thumbnails(dataset, SCATTER, frozenset(int(found.image_ids[i]) for i in few))
    chosen = [int(image_id) for image_id in clicks.data_in(event)]
    if chosen:
        title = f"{len(chosen):,} images chosen"
    else:
        gap = found.context - found.concept
        chosen = found.image_ids[np.argsort(-gap, kind="stable")[:SHOWN]].tolist()
        title = "The images most on the side of their context"
    st.markdown(f"**{title}**")
    if dataset.has_pixels and dataset.images is not None:
        kinds = dataset.images.loc[chosen[:SHOWN]]
        tiles = [
            Tile(int(i), caption=f"{names[c]}, {k}")
            for i, c, k in zip(kinds.index, kinds["class_id"], kinds["context"])
        ]
        page_links.to_gallery(dataset, gallery(dataset, tiles, key="similar", tile_px=84))
        if len(chosen) > SHOWN:
            st.caption(f"The first {SHOWN:,} are shown.")


def _classes(dataset: Dataset, found: study.ImageTextSimilarity) -> None:
    st.markdown("**Concept by concept**")
    table = study.by_class(found).sort_values("nearer_to_context", ascending=False)
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
    """The published numbers, and where there is a model, what it says of this dataset among them."""
    st.markdown("**Beside the benchmarks of the paper**" if model else "**The benchmarks of the paper**")
    table = study.benchmarks()
    here = (dataset.title, title_of(model), value) if model else None
    names, values = table["benchmark"].tolist(), table["concept_image_similarity"].tolist()
    export.chart("Beside the benchmarks of the paper", figures.plot_benchmarks(names, values, here), key="benchmarks")
    own = (
        f" Blue: this dataset by {escape(title_of(model))}. Numbers of different models are not comparable: read "
        "lengths only among the same model."
        if model
        else " How near images are on average to the words for their concept: the lower, the more there is beside it."
    )
    st.caption(f"Grey: {len(table):,} published numbers by CLIP (Zhang et al. 2024, table 1).{own}")


def _accuracy(dataset: Dataset, found: study.ImageTextSimilarity) -> None:
    known = features.available(dataset)
    tasks = _against(dataset, json.dumps(dict(found.spec), sort_keys=True), known[0])
    told = tasks.summary
    if told["pearson"] is None or told["low"] is None:
        return
    st.subheader("Do tasks near to their contexts come out worse?", anchor=False)
    figure = plot_scatter(
        tasks.closeness,
        100 * tasks.accuracy,
        tasks.line,
        "mean cosine of the queries with the text of their context",
        "accuracy (%)",
        height=340,
    )
    chosen = drilldown.chart(
        "Accuracy against closeness to the context",
        figure,
        key="closeness",
        name="near_task",
        texts=[str(t) for t in range(len(tasks.accuracy))],
        about=str(found.spec),
    )
    st.caption(
        f"{told['n_tasks']:,} uniform {told['n_way']:,}-way {told['n_shot']:,}-shot tasks, ProtoNet on "
        f"{escape(title_of(known[0]))}. The accuracy and the mean closeness of queries to the words for their contexts "
        f"correlate by {told['pearson']:.2f} ({told['low']:.2f} to {told['high']:.2f}, 95% interval over "
        f"{escape(told['over'])}). Every point is a task: click one to see it."
    )
    if chosen:
        task = int(chosen)
        drilldown.heading(f"Task {task:,}: {100 * tasks.accuracy[task]:.0f}% right", "near_task")
        task_list.show_task(dataset, tasks.tasks, task, "near_task_images")


@cache_data("Comparing images with words", 24)
def _measure(dataset: Dataset, spec: str) -> study.ImageTextSimilarity:
    return study.measure(json.loads(spec))


@cache_data("Classifying tasks", 24)
def _against(dataset: Dataset, spec: str, backbone: str) -> study.AccuracyRelation:
    return study.against_accuracy(study.measure(json.loads(spec)), backbone)
