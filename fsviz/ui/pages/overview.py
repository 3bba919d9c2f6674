"""The page Overview: a hard and an easy task, the causes of the difference, and the dataset."""

from __future__ import annotations

from functools import partial

import numpy as np
import streamlit as st

from fsviz.analyses import headline as study
from fsviz.datasets import sizes
from fsviz.errors import FsvizError
from fsviz.figures import overview as figures
from fsviz.records import PAD, Dataset, HeadlineNumber, SizeHistogram
from fsviz.records.graphs import Hierarchy
from fsviz.settings import Setting
from fsviz.tables import Column, Table
from fsviz.tasks import task_ids
from fsviz.taxonomy import DAG
from fsviz.taxonomy.hierarchy import class_hierarchy
from fsviz.text import short_names, split_title
from fsviz.ui.parts import access, caching, deferred, export, links, page_links, shell, tally
from fsviz.ui.parts.clicks import Click
from fsviz.ui.parts.headline import show_numbers
from fsviz.ui.parts.hover import answer_boxes
from fsviz.ui.parts.image_wall import Row, Tile, gallery, task_rows
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.run_panel import half_width
from fsviz.ui.parts.shell import escape

N_SAMPLE = 20
N_QUERIES = 4  # shown per class of a task
TILE, LARGE, HEAD = 58, 72, 156
MAX_CAUSES = 3
SKELETON = 400
MAP_HEIGHT, TALL_MAP, MANY = 480, 620, 60  # of the class map; tall for many classes
MAX_LISTED = 12
BOX = Setting("box", "Box", "Selected box of the tree map.", "text", "")
BAR = Setting("size_bar", "Bar", "Selected bar of class sizes: numbers of its split and its bin.", "text", "")
OTHER_IMAGES = {  # built-in dataset -> the other one, with label and help
    "demo": (
        "fruit",
        "Switch to photographs",
        "784 photographs of fruit. They have no contexts and no training classes.",
    ),
    "fruit": ("demo", "Switch to drawings", "The demo: emoji art with contexts and training classes, for every page."),
}
GUESSED = "_guessed"  # task -> selected range

CLASSES = Table("Classes of the task", Column("class", "Class", kind="class"), Column("right", "Queries"))


def show(dataset: Dataset) -> None:
    """Show the two tasks first: while a browser draws the rest, it shows no images."""
    _compare_tasks(dataset)
    export.command("look", dataset.name)
    _below(dataset)


PAGE = Page(
    slug="overview",
    label="Overview",
    icon="🏠",
    group="",
    order=0,
    question="Why is a few-shot task hard?",
    lead="One hard and one easy task of {dataset}, and what separates them.",
    explains=(
        "accuracy",
        "protonet",
        "interval",
        "coarsity",
        "distance:features",
        "untypical",
        "gap",
        "correlation",
        "points",
    ),
    show=show,
)


@st.fragment
@shell.errors_on_page()
def _below(dataset: Dataset) -> None:
    """Show the dataset, once the images above are rendered."""
    if not deferred.is_rendered():
        links.await_keys(BOX.name, BAR.name)
        st.skeleton(height=SKELETON)
        return
    st.subheader(f"About {escape(dataset.title)}", anchor=False)
    st.markdown(escape(dataset.summary))
    _show_counts(dataset)
    _show_classes(dataset)
    left, right = st.columns(2, gap="large")
    with left:
        _show_sizes(dataset)
    with right:
        _list_available_data(dataset)
    credit = [
        f"{label}: {escape(text.rstrip('.'))}."
        for label, text in (("Source", dataset.source), ("Licence", dataset.licence))
        if text
    ]
    st.caption(" ".join(credit))


def _show_starts(dataset: Dataset) -> None:
    """Show three ways to start: other built-in images or these, own images, a lesson."""
    useful = {page.slug for page in shell.useful_pages()}
    explore = "images" if dataset.has_pixels else "classes"
    pages = [
        (explore, f"Explore {escape(dataset.title)}", "Browse by class, context or attribute."),
        ("add_images", "Add your images", "A folder, a table or a zip; they stay on this computer."),
        ("learn", "Take a lesson", "Two minutes: move one control, answer one question."),
    ]
    switch = OTHER_IMAGES.get(dataset.name)
    pages = [page for page in pages[switch is not None :] if page[0] in useful]
    pages = [page for page in pages if page[0] != "add_images" or access.can("save")]
    cards = iter(st.columns(len(pages) + (switch is not None), gap="small"))
    if switch is not None:
        name, label, note = switch
        with next(cards).container(border=True, height="stretch", key="card_switch", gap=None):
            choose = partial(shell.choose_dataset, name)
            st.button(f"**{label}**", icon="🖼️", type="tertiary", help=note, on_click=choose)
    for column, (slug, label, note) in zip(cards, pages):
        with column.container(border=True, height="stretch", key=f"card_{slug}", gap=None):
            shell.page_link(slug, f"**{label}**", shell.link(dataset), help=note)


# --- one hard task, one easy task ---------------------------------------------------------------------------------


def _compare_tasks(dataset: Dataset) -> None:
    try:
        contrast = caching.look(dataset)
    except FsvizError as error:
        shell.answer("No tasks to compare yet.", escape(shell.with_setting_titles(error)))
        with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
            if dataset.has_pixels and not dataset.has_features:
                shell.link_to_fix(dataset, "features")
            shell.offer_demo(dataset)
        _show_starts(dataset)
        return
    if contrast.accuracy is None:
        _by_coarsity(contrast)
    else:
        if shell.classroom():
            _guess(contrast)
        else:
            links.drop_from_link("guess")
        _by_accuracy(contrast)
    _show_starts(dataset)


def _say(contrast: study.TaskContrast, causes: list[study.CauseContrast] | None) -> None:
    sentence, setting = study.answer(contrast, causes)
    shell.answer(escape(sentence), escape(setting))


def _by_accuracy(contrast: study.TaskContrast) -> None:
    """Show a hard and an easy task with their images, then the causes of the difference."""
    _say(contrast, None)  # causes take a while on a new dataset; the images come first
    clicked = None
    sides = ("Hard", "hardest", contrast.hard), ("Easy", "easiest", contrast.easy)
    for column, (name, extreme, task) in zip(st.columns(2, gap="medium"), sides):
        with column.container(gap=None):
            with st.container(horizontal=True, vertical_alignment="center"):
                help_text = f"Middle of the {escape(extreme)} 10% of {len(contrast.tasks):,} random tasks. Not typical."
                title = f"**{escape(name)} task: {escape(study.accuracy_text(contrast, task))} correct**"
                st.markdown(title, help=help_text, width="stretch")
                _to_passport(contrast, task)
            clicked = _task(contrast, task, f"look_{name.lower()}", True) or clicked
    page_links.to_gallery(contrast.dataset, clicked)
    st.caption(
        f"Support image, then some of the {contrast.tasks.query.shape[2]:,} queries of each class. "
        "✓ correct · ✗ incorrect, with the predicted class.",
        help=escape(study.rule(contrast)),
    )
    _list_causes(contrast)
    if not contrast.backbone:
        with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
            st.markdown("Classified by raw pixels. Extract features for better results.", width="content")
            shell.link_to_fix(contrast.dataset, "features")


def _to_passport(contrast: study.TaskContrast, task: int) -> None:
    if (testbed := caching.look_name(contrast.dataset)) != "":
        page_links.to_passport(contrast.dataset, testbed, task)
    elif contrast.tasks.has_images:
        page_links.to_passport(contrast.dataset, task_ids.images_name(contrast.dataset, contrast.tasks, task), 0)


def _task(contrast: study.TaskContrast, task: int, key: str, show_correct: bool) -> int | None:
    """Show a task by class, with correct and incorrect queries if requested; returns the clicked image."""
    tasks, names = contrast.tasks, contrast.names_of(task)
    assert contrast.predictions is not None
    predicted = contrast.predictions.predicted[task]
    rows = []
    for way, name in enumerate(names):
        support = [Tile(int(i), badge="support") for i in tasks.support[task, way] if i != PAD]
        query = tasks.query[task, way]
        is_correct = predicted[way] == way
        queries = [
            Tile(
                int(query[q]),
                frame=("right" if is_correct[q] else "wrong") if show_correct else None,
                badge=names[predicted[way, q]] if show_correct and not is_correct[q] else "",
            )
            for q in contrast.some_queries(task, way, N_QUERIES)
        ]
        rows.append(Row(name, [*support, *queries], _mistakes(contrast, task, way) if show_correct else ""))
    if contrast.dataset.has_pixels:
        return task_rows(contrast.dataset, rows, key, tile_px=LARGE if shell.classroom() else TILE, head_px=HEAD)
    columns = {"class": names, **({"right": [row.note for row in rows]} if show_correct else {})}
    export.table(CLASSES, columns, key=f"{key}_names")
    return None


def _mistakes(contrast: study.TaskContrast, task: int, way: int) -> str:
    n_correct, n_queries, instead, n_instead = contrast.mistakes_of(task, way)
    return f"{n_correct} of {n_queries} correct" + (f", {n_instead} as {instead}" if n_instead > 1 else "")


def _list_causes(contrast: study.TaskContrast) -> None:
    """Complete the answer with the main causes, and list them with a link to the page that shows each."""
    causes = contrast.main_causes()
    _say(contrast, causes)
    if not causes:
        return
    listed = st.container(gap=None)
    for cause in causes[:MAX_CAUSES]:
        with listed.container(horizontal=True, vertical_alignment="center", gap="small"):
            share = f"About {contrast.points(cause):.0f} of {escape(study.gap_text(contrast))} points"
            correlation = cause.correlation
            st.markdown(
                f"**{share}:** {escape(study.describe(contrast, cause))}.",
                width="content",
                help=f"Points: a linear fit over {len(contrast.tasks):,} tasks. Causes overlap, so points do not add "
                f"up. Correlation with accuracy: {correlation.value:.2f} (95% CI {correlation.low:.2f} to "
                f"{correlation.high:.2f} over {escape(correlation.ci_unit)}); only significant causes are listed.",
            )
            _cause_link(contrast, cause)


def _cause_link(contrast: study.TaskContrast, cause: study.CauseContrast) -> None:
    """Link to the page that shows a cause, for this task or its settings."""
    has_contexts = cause.attribute == "context" and contrast.dataset.contexts is not None
    if contrast.backbone and cause.kind == "support":
        _edit_link(contrast, "Edit support images")
    elif contrast.backbone and cause.kind not in ("meaning", "looks") and has_contexts:
        _edit_link(contrast, "Edit support images: other contexts")
    else:
        page, label, selection = _page_of(contrast, cause)
        shell.page_link(page, label, shell.link(contrast.dataset, **selection), icon="👉")


def _page_of(contrast: study.TaskContrast, cause: study.CauseContrast) -> tuple[str, str, dict[str, object]]:
    """Page that shows a cause, label of its link, and selection of the link."""
    selection: dict[str, object] = {"split": contrast.recipe.split, "classes": contrast.names_of(contrast.hard)}
    if not contrast.backbone:
        return "images", "Show images of these classes", {**selection, "order": "class"}
    if cause.kind == "meaning":
        return "classes", "Show in taxonomy", selection
    selection = {"split": contrast.recipe.split, "backbone": contrast.backbone}
    if cause.kind == "looks":
        return "confusion", "Compare the closest", {**selection, "classes": [*contrast.closest_of(contrast.hard)]}
    shape = {name: str(contrast.recipe.settings[name]) for name in ("n_way", "n_shot", "n_query")}
    return (
        "hard_supports",
        "Attribute shifts in hard tasks",
        {**selection, "show": "Attribute shift", **shape},
    )


def _edit_link(contrast: study.TaskContrast, label: str) -> None:
    page_links.to_task(contrast.dataset, contrast.tasks, contrast.hard, contrast.backbone, label, study.METHOD)


def _by_coarsity(contrast: study.TaskContrast) -> None:
    """Show a fine-grained and a coarse task, without a classifier."""
    dataset, coarsity = contrast.dataset, contrast.tasks.measures["coarsity"]
    _say(contrast, None)
    sides = ("Fine-grained task", contrast.hard), ("Coarse task", contrast.easy)
    for column, (title, task) in zip(st.columns(2, gap="medium"), sides):
        with column:
            top, between = contrast.concepts_of(task)
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(f"**{escape(title)}: coarsity {coarsity[task]:.1f}**", width="stretch")
                _to_passport(contrast, task)
            st.caption(f"all in “{escape(top)}”" if top != "root" else "no shared concept")
            names, images = contrast.names_of(task), contrast.tasks.support[task]
            if dataset.has_pixels and images.size:
                rows = [
                    Row(name, [Tile(int(i)) for i in images[way]], " › ".join(between[way]))
                    for way, name in enumerate(names)
                ]
                page_links.to_gallery(dataset, task_rows(dataset, rows, f"look_{task}", tile_px=TILE))
            else:
                short = dict(zip(names, short_names(names), strict=True))
                for name, path in zip(names, between):
                    way_down = " › ".join(map(escape, path))
                    st.markdown(f"**{escape(short[name])}**" + (f" :gray[{way_down}]" if path else ""))
            selection = shell.link(dataset, split=contrast.recipe.split, classes=names)
            shell.page_link("classes", "Show in taxonomy", selection, icon="👉")
    missing = "features" if dataset.has_pixels else "images"
    st.caption(
        f"{escape(dataset.title)} has no {missing} here, so accuracy is not measured. "
        f"{shell.missing_hint(dataset, missing)}",
        help=escape(study.rule(contrast)),
    )


# --- guess the accuracy -------------------------------------------------------------------------------------------


@st.fragment
@shell.errors_on_page()
def _guess(contrast: study.TaskContrast) -> None:
    """Guessing game: the accuracy of a random task, first the guess, then the answer."""
    assert contrast.accuracy is not None
    with st.container(border=True):
        st.subheader("Guess the accuracy", anchor=False)
        bands = contrast.bands()
        number = Setting("guess", "Task", "Random task to guess.", "int", 1, 1, len(contrast.tasks))
        task = int(links.value_of(number, "guess")) - 1
        guessed: dict[tuple[str, int], int] = st.session_state.setdefault(GUESSED, {})
        key = (contrast.dataset.name, task)
        st.markdown(
            f"Random task {task + 1:,}: ProtoNet has one labelled image per class and classifies "
            f"{int((contrast.tasks.query[task] != PAD).sum()):,} queries. **What is its accuracy?**"
        )
        _task(contrast, task, f"guess_{task}", key in guessed)
        answers = [_band(bands, band) for band in range(4)]
        topic = tally.topic(contrast.dataset, f"Accuracy of random task {task + 1}", answers)
        columns = st.columns(4)
        for band, column in enumerate(columns):
            is_truth = key in guessed and band == contrast.band_of(task)
            column.button(
                answers[band] + (" ✓" if is_truth else " ✗" if guessed.get(key) == band else ""),
                key=f"answer_{task}_{band}",
                width="stretch",
                type="primary" if guessed.get(key) == band else "secondary",
                disabled=key in guessed,
                on_click=_set_guess,
                args=[key, band, topic],
            )
        if key not in guessed:
            tally.show(topic, None)
            return
        truth = contrast.band_of(task)
        mean, half = contrast.mean
        is_right = guessed[key] == truth
        verdict = "Correct" if is_right else "Too high" if guessed[key] > truth else "Too low"
        st.markdown(
            f"**{verdict}: {contrast.accuracy[task]:.0%}.** The mean is {100 * mean:.1f}{half_width(half, 1, 100)}%."
        )
        tally.show(topic, truth)
        guesses = [
            column == contrast.band_of(t) for (name, t), column in guessed.items() if name == contrast.dataset.name
        ]
        left, column = st.columns([1, 3], vertical_alignment="center")
        left.button("Next task", icon="➡️", type="primary", on_click=_next_task, args=[len(contrast.tasks)], key="next")
        column.caption(f"{sum(guesses):,} of {len(guesses):,} guesses correct (chance level 25%).")


def _band(bands: np.ndarray, which: int) -> str:
    if which == 0:
        return f"Below {bands[1]:.0%}"
    if which == 3:
        return f"{bands[3]:.0%} or more"
    return f"{bands[which]:.0%} to below {bands[which + 1]:.0%}"


def _set_guess(key: tuple[str, int], which: int, topic: tally.Topic) -> None:
    st.session_state[GUESSED][key] = which
    tally.add(topic, which)


def _next_task(n_tasks: int) -> None:
    st.session_state["guess"] = int(st.session_state.get("guess", 1)) % n_tasks + 1


# --- the dataset --------------------------------------------------------------------------------------------------


def _show_counts(dataset: Dataset) -> None:
    main = {name: ids for name, ids in dataset.splits.items() if name in ("train", "val", "test", "all")}
    splits = main or dict(list(dataset.splits.items())[:3])
    numbers: list[HeadlineNumber | None] = [
        HeadlineNumber.count("classes", "Classes", dataset.n_classes),
        HeadlineNumber("images", "Images", dataset.n_images, unit="", digits=0),
    ]
    if list(splits) != ["all"]:
        numbers.append(
            HeadlineNumber.worded(
                "splits",
                " / ".join(splits) if len(splits) > 1 else f"Classes in split {next(iter(splits))}",
                " / ".join(f"{len(ids):,}" for ids in splits.values()),
                help="Classes in each split. Few-shot methods train on some classes and are tested on others.",
            )
        )
    if dataset.contexts is not None:
        n_contexts = dataset.contexts["context"].nunique()
        numbers.append(HeadlineNumber.count("contexts", "Contexts", n_contexts, help="Backgrounds of the images."))
    elif dataset.taxonomy is not None:
        numbers.append(_count_concepts(dataset))
    else:
        numbers.append(None)
    show_numbers(numbers)
    for note in dataset.notes:
        st.caption(escape(note))


def _count_concepts(dataset: Dataset) -> HeadlineNumber | None:
    """The number of concepts; None if the taxonomy does not hold every class."""
    try:
        n = caching.n_concepts(dataset, "all", str(DAG.default))
    except FsvizError:
        return None
    text = "Taxonomy nodes above the classes, single-child chains collapsed, as on the page Classes."
    return HeadlineNumber.count("concepts", "Concepts", n, help=text)


def _show_classes(dataset: Dataset) -> None:
    """Show the tree map, and images of the selected box next to it."""
    st.subheader("Classes", anchor=False)
    hierarchy = caching.cached_call(class_hierarchy, dataset)
    left, right = shell.responsive_columns("class_map", [2, 1] if dataset.has_pixels else [1, 0.01], gap="medium")
    with left:
        export.chart(
            "Classes",
            figures.plot_hierarchy(hierarchy, TALL_MAP if dataset.n_classes > MANY else MAP_HEIGHT),
            key="hierarchy",
            config={"displayModeBar": False},
        )
        st.caption(_map_caption(dataset, hierarchy))
        answer_boxes(dataset, "hierarchy", Click(BOX, hierarchy.ids), len(hierarchy.ids))
    with right if dataset.has_pixels else left:
        _show_box(dataset, hierarchy)


def _map_caption(dataset: Dataset, hierarchy: Hierarchy) -> str:
    click = "Click a box to show its images." if dataset.has_pixels else "Click a box to zoom in."
    if dataset.taxonomy is not None:
        mixed = "Grey: classes from several splits. " if "mixed" in hierarchy.split[1:] else ""
        return f"Box size: number of classes. {mixed}{click}"
    if len(set(hierarchy.split[1:]) - {"mixed"}) > 1:
        return f"No taxonomy: classes are grouped by split. {click}"
    return f"No taxonomy, and all classes are in one split. {click}"


def _show_box(dataset: Dataset, hierarchy: Hierarchy) -> None:
    """Show images of the selected box with links to them and to its place in the taxonomy; else of all classes."""
    node = str(links.value_of(BOX, BOX.name, dataset.name))
    class_ids = hierarchy.classes_below(node) if node in hierarchy.ids[1:] else []
    if not class_ids:
        if dataset.has_pixels:
            st.markdown("**Images of different classes**")
            _show_images(dataset, [], "")
        return
    at = hierarchy.ids.index(node)
    is_group = node in hierarchy.parents
    n_classes = hierarchy.n_classes[at]
    text = f"{n_classes:,} classes" if n_classes > 1 else split_title(hierarchy.split[at])
    label = hierarchy.labels[at] if is_group else dataset.short_names()[class_ids[0]]
    st.markdown(f"**{escape(label)}**: {escape(text)}")
    if dataset.has_pixels:
        _show_images(dataset, class_ids, node)
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        if not is_group:
            shell.page_link("images", "Show images", shell.link(dataset, classes=hierarchy.labels[at]))
        if dataset.taxonomy is not None:
            selection = {"at": node} if is_group else {"classes": hierarchy.labels[at]}
            shell.page_link("classes", "Show in taxonomy", shell.link(dataset, split="all", **selection))


def _show_images(dataset: Dataset, class_ids: list[int], node: str) -> None:
    """Show images spread over the classes, or over all."""
    ids = sizes.sample_image_ids(dataset, N_SAMPLE, classes=class_ids)
    names = dataset.classes["class_name"].to_numpy()[dataset.image_class_ids()[ids]]
    captioned = len(class_ids) != 1
    tiles = [Tile(int(i), str(name) if captioned else "") for i, name in zip(ids, names)]
    page_links.to_gallery(dataset, gallery(dataset, tiles, key=f"overview_sample_{node}", tile_px=72))


def _show_sizes(dataset: Dataset) -> None:
    histogram = caching.cached_call(sizes.class_sizes, dataset)
    by_split = histogram is not None and len(histogram.edges) == 2 and len(histogram.bars) > 1
    st.subheader("Classes per split" if by_split else "Images per class", anchor=False)
    if histogram is None:
        st.caption("Number of images per class: not available; classes count the same.")
        return
    if len(histogram.edges) > 2 or len(histogram.bars) > 1:  # one bar adds nothing to the sentence
        figure = figures.plot_class_sizes(histogram)
        export.chart("Images per class", figure, key="sizes", sets=Click(BAR, clears=True))
    smallest, largest = int(dataset.classes["n_images"].min()), int(dataset.classes["n_images"].max())
    range_text = f"{smallest:,} to {largest:,} images" if smallest < largest else f"{largest:,} images each"
    median_text = (
        f", half of them with at least {histogram.median:,.0f}" if smallest < histogram.median < largest else ""
    )
    st.caption(f"{dataset.n_classes:,} classes with {range_text}{median_text}.")
    _list_bar(dataset, histogram)


def _list_bar(dataset: Dataset, histogram: SizeHistogram) -> None:
    """List the classes of the selected bar."""
    parts = str(links.value_of(BAR, BAR.name, dataset.name)).split(" ")
    splits = list(histogram.bars)
    numbers = [int(part) for part in parts if part.isascii() and part.isdecimal()]
    if len(numbers) != 2 or len(parts) != 2 or numbers[0] >= len(splits):
        return
    class_ids = sizes.classes_of_bar(dataset, histogram, splits[numbers[0]], numbers[1])
    if not len(class_ids):
        return
    names = dataset.classes["class_name"].astype(str).iloc[class_ids].tolist()
    more = f" and {len(names) - MAX_LISTED:,} more" if len(names) > MAX_LISTED else ""
    st.markdown(f"**{len(names):,} classes:** {', '.join(map(escape, short_names(names)[:MAX_LISTED]))}{more}.")
    shell.page_link(
        "images",
        "Show images" if not more else f"Show images of the first {MAX_LISTED}",
        shell.link(dataset, classes=names[:MAX_LISTED]),
    )


def _list_available_data(dataset: Dataset) -> None:
    st.subheader("Available data", anchor=False)
    for capability, (capability_text, _) in shell.OFFERS.items():
        name, _, rest = capability_text.partition(":")
        if capability in dataset.capabilities:
            st.markdown(f"✅ **{name.removeprefix('a ').capitalize()}**:{rest}.")
        else:
            hint = shell.missing_hint(dataset, capability)
            st.markdown(f"⬜ **{name.removeprefix('a ').capitalize()}**:{rest}. :gray[Missing. {hint}]")
