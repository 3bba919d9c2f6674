"""The first page: a hard and an easy task of the chosen dataset and what parts them, then what the dataset is."""

from __future__ import annotations

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
from fsviz.taxonomy.hierarchy import class_hierarchy
from fsviz.text import split_title
from fsviz.ui.parts import caching, deferred, export, links, page_links, shell
from fsviz.ui.parts.clicks import Click
from fsviz.ui.parts.headline import show_number, show_numbers
from fsviz.ui.parts.hover import answer_boxes
from fsviz.ui.parts.image_wall import Row, Tile, gallery, task_rows
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.run_panel import half_width
from fsviz.ui.parts.shell import escape

N_SAMPLE = 20
N_QUERIES = 4  # of each class of a task
TILE, LARGE = 64, 72
MOST_CAUSES = 3
SKELETON = 400
MOST_LISTED = 12
BOX = Setting("box", "Box", "The box of the tree map that was clicked.", "text", "")
BAR = Setting(
    "size_bar", "Bar", "The bar of class sizes that was clicked: numbers of its split and its bin.", "text", ""
)
GUESSED = "_guessed"  # task -> which answer was chosen

CLASSES = Table("Classes of the task", Column("class", "Class"), Column("right", "Queries"))


def show(dataset: Dataset) -> None:
    """Images first: a browser is kept busy by all that follows, and draws no image meanwhile."""
    _answer(dataset)
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
    """Where to go on and what the dataset is, as soon as the images above stand."""
    if not deferred.is_rendered():
        links.await_keys(BOX.name, BAR.name)
        st.skeleton(height=SKELETON)
        return
    _doors(dataset)
    st.subheader(f"The dataset: {escape(dataset.title)}", anchor=False)
    st.markdown(escape(dataset.summary))
    _headline(dataset)
    if dataset.has_pixels:
        _sample(dataset)
    _classes(dataset)
    left, right = st.columns(2, gap="large")
    with left:
        _sizes(dataset)
    with right:
        _offers(dataset)
    credit = [
        f"{what}: {escape(words.rstrip('.'))}."
        for what, words in (("Source", dataset.source), ("Licence", dataset.licence))
        if words
    ]
    st.caption(" ".join(credit))


# --- one hard task, one easy task ---------------------------------------------------------------------------------


def _answer(dataset: Dataset) -> None:
    try:
        contrast = caching.look(dataset)
    except FsvizError as error:
        st.info(f"**No hard and easy task to show yet.** {escape(shell.with_setting_titles(error))}", icon="🧩")
        with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
            shell.link_to_fix(dataset, "features")
            shell.offer_demo(dataset)
        return
    if contrast.accuracy is None:
        _by_meaning(contrast)
        return
    if shell.classroom():
        _guess(contrast)
    else:
        links.drop_from_link("guess")
    _classified(contrast)


def _classified(contrast: study.TaskContrast) -> None:
    assert contrast.accuracy is not None
    mean, half = contrast.mean
    usual = f"{100 * mean:.1f}{half_width(half, 1, 100)}%"
    clicked = None
    columns = shell.responsive_columns("tasks", 2, gap="small")
    for column, name, task in zip(columns, ("hard", "easy"), (contrast.hard, contrast.easy)):
        with column:
            number = HeadlineNumber(
                f"accuracy_{name}",
                f"{'A' if name == 'hard' else 'An'} {name} task",
                100 * contrast.accuracy[task],
                unit="% right",
                digits=0,
                note=f"mean of all tasks: {usual}",
            )
            show_number(number)
            clicked = _task(contrast, task, f"look_{name}", True) or clicked
            _to_passport(contrast, task)
    page_links.to_gallery(contrast.dataset, clicked)
    _causes(contrast)
    if not contrast.backbone:
        with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
            st.markdown("No backbone has seen these images yet; one that has sees more than pixels.", width="content")
            shell.link_to_fix(contrast.dataset, "features")
    chance = f"Guessing would get {contrast.tasks.chance_level:.0%} right."
    st.caption(
        f"{escape(study.rule(contrast))} They are not typical: all {len(contrast.tasks):,} tasks have a mean accuracy "
        f"of **{usual}** (95% interval over tasks of these images). {chance} "
        f"Each row is a class: the image that the classifier learned from, then some of the "
        f"{contrast.tasks.query.shape[2]:,} it had to name; a tick is right, a cross wrong, with what was said instead."
    )


def _to_passport(contrast: study.TaskContrast, task: int) -> None:
    if (testbed := caching.look_name(contrast.dataset)) != "":
        page_links.to_passport(contrast.dataset, testbed, task)
    elif contrast.tasks.has_images:
        page_links.to_passport(contrast.dataset, task_ids.images_name(contrast.dataset, contrast.tasks, task), 0)


def _task(contrast: study.TaskContrast, task: int, key: str, told: bool) -> int | None:
    """A task, class by class; `told`: which queries are right. Returns the image that was clicked."""
    tasks, names = contrast.tasks, contrast.names_of(task)
    assert contrast.predictions is not None
    predicted = contrast.predictions.predicted[task]
    rows = []
    for way, name in enumerate(names):
        support = [Tile(int(i), badge="support") for i in tasks.support[task, way] if i != PAD]
        query = tasks.query[task, way]
        fine = predicted[way] == way
        queries = [
            Tile(
                int(query[q]),
                frame=("right" if fine[q] else "wrong") if told else None,
                badge=names[predicted[way, q]] if told and not fine[q] else "",
            )
            for q in contrast.some_queries(task, way, N_QUERIES)
        ]
        note = f"{int(fine[query != PAD].sum())} of {int((query != PAD).sum())} right" if told else ""
        rows.append(Row(name, [*support, *queries], note))
    if contrast.dataset.has_pixels:
        return task_rows(contrast.dataset, rows, key, tile_px=LARGE if shell.classroom() else TILE)
    told_rows = {"class": names, **({"right": [row.note for row in rows]} if told else {})}
    export.table(CLASSES, told_rows, key=f"{key}_names")
    return None


def _causes(contrast: study.TaskContrast) -> None:
    """The strongest cause in one sentence, the others after it, each with the page that shows it."""
    assert contrast.accuracy is not None
    causes = contrast.explaining()[:MOST_CAUSES]
    gap = 100 * float(contrast.accuracy[contrast.easy] - contrast.accuracy[contrast.hard])
    if not causes:
        st.markdown(
            f"**Why? No known cause explains the {gap:.0f} points between the two.** What was measured of all "
            f"{len(contrast.tasks):,} tasks (closeness of their classes, how typical support images are, how support "
            "and queries differ) does not part these two beyond chance."
        )
        return
    words = [study.describe(contrast, cause) for cause in causes]
    st.markdown(f"**Why is the first one harder? Above all, {escape(words[0])}.**")
    for cause, said in zip(causes, words):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            about = f"About **{contrast.points(cause):.0f}** of {gap:.0f} points"
            st.markdown(
                f"{about}: {escape(said)}." if cause is not causes[0] else f"{about} go with that.", width="content"
            )
            _try_it(contrast, cause)
    st.caption(
        f"Points are what a straight line through all {len(contrast.tasks):,} tasks gives for the difference between "
        "these two. Causes overlap, so they do not add up; only those that chance would not explain are named "
        f"(correlation with the accuracy {causes[0].correlation.value:.2f}, 95% interval "
        f"{causes[0].correlation.low:.2f} to {causes[0].correlation.high:.2f} over "
        f"{escape(causes[0].correlation.ci_unit)} for the first)."
    )


def _try_it(contrast: study.TaskContrast, cause: study.CauseContrast) -> None:
    """The page that shows a cause, with this very task or its setting."""
    has_contexts = cause.attribute == "context" and contrast.dataset.contexts is not None
    if contrast.backbone and cause.kind == "support":
        _this_task(contrast, "Try it: swap support images of this very task")
    elif contrast.backbone and cause.kind not in ("meaning", "looks") and has_contexts:
        _this_task(contrast, "Try it: swap support images of this task for some of other contexts")
    else:
        page, label, selection = _page_of(contrast, cause)
        shell.page_link(page, label, shell.link(contrast.dataset, **selection), icon="👉")


def _page_of(contrast: study.TaskContrast, cause: study.CauseContrast) -> tuple[str, str, dict[str, object]]:
    """The page that shows a cause, the label of its link, and what the link selects."""
    selection: dict[str, object] = {"split": contrast.recipe.split, "classes": contrast.names_of(contrast.hard)}
    if not contrast.backbone:
        return "images", "Try it: look at images of these classes", {**selection, "order": "class"}
    if cause.kind == "meaning":
        return "classes", "Try it: these classes in the tree of meanings", selection
    selection = {"split": contrast.recipe.split, "backbone": contrast.backbone}
    if cause.kind == "looks":
        a, b = contrast.closest_of(contrast.hard)
        label = f"Try it: {escape(a)} and {escape(b)} as the backbone sees them"
        return "confusion", label, {**selection, "classes": [a, b]}
    shape = {name: str(contrast.recipe.settings[name]) for name in ("n_way", "n_shot", "n_query")}
    return (
        "hard_supports",
        "Try it: how support and query differ in hard tasks",
        {**selection, "show": "Attribute shift", **shape},
    )


def _this_task(contrast: study.TaskContrast, label: str) -> None:
    page_links.to_task(contrast.dataset, contrast.tasks, contrast.hard, contrast.backbone, label, study.METHOD)


def _by_meaning(contrast: study.TaskContrast) -> None:
    """Two tasks in names, where nobody can classify images: fine-grained and coarse."""
    dataset, coarsity = contrast.dataset, contrast.tasks.measures["coarsity"]
    columns = shell.responsive_columns("tasks", 2, gap="small")
    for column, title, task in zip(columns, ("A fine-grained task", "A coarse task"), (contrast.hard, contrast.easy)):
        with column:
            top, between = contrast.places_of(task)
            note = f"all below “{top}”" if top != "root" else "with no group in common"
            show_number(HeadlineNumber.worded("coarsity", title, f"coarsity {coarsity[task]:.1f}", note=note))
            names, images = contrast.names_of(task), contrast.tasks.support[task]
            if dataset.has_pixels and images.size:
                rows = [
                    Row(name, [Tile(int(i)) for i in images[way]], " › ".join(between[way]))
                    for way, name in enumerate(names)
                ]
                page_links.to_gallery(dataset, task_rows(dataset, rows, f"look_{task}", tile_px=TILE))
            else:
                for name, path in zip(names, between):
                    way_down = " › ".join(map(escape, path))
                    st.markdown(f"**{escape(name)}**" + (f" :gray[{way_down}]" if path else ""))
            _to_passport(contrast, task)
            shell.page_link(
                "classes",
                "Try it: these classes in the tree of meanings",
                shell.link(dataset, split=contrast.recipe.split, classes=names),
                icon="👉",
            )
    st.markdown(
        "**Which one is harder?** By what its classes mean, the first: the closer they are, the less there is to tell "
        "them apart by. How far apart they are (coarsity) is known here; how a classifier fares is not."
    )
    missing = "features" if dataset.has_pixels else "images"
    st.caption(
        f"{escape(study.rule(contrast))} The median of all is {np.median(coarsity):.1f}. {escape(dataset.title)} has "
        f"no {missing} here: with them, the two would be a hard and an easy task by accuracy. "
        f"{shell.missing_hint(dataset, missing)}"
    )


# --- guess before you see -----------------------------------------------------------------------------------------


@st.fragment
@shell.errors_on_page()
def _guess(contrast: study.TaskContrast) -> None:
    """A random task in images: how many of its queries are named rightly? First the guess, then the answer."""
    assert contrast.accuracy is not None
    with st.container(border=True):
        st.subheader("Guess before you see", anchor=False)
        bands = contrast.bands()
        number = Setting("guess", "Task", "Tasks were drawn at random.", "int", 1, 1, len(contrast.tasks))
        task = int(links.value_of(number, "guess")) - 1
        guessed: dict[tuple[str, int], int] = st.session_state.setdefault(GUESSED, {})
        key = (contrast.dataset.name, task)
        st.markdown(
            f"Random task {task + 1:,}: ProtoNet sees one labelled image per class, then names "
            f"{int((contrast.tasks.query[task] != PAD).sum()):,} others. **How many does it get right?**"
        )
        _task(contrast, task, f"guess_{task}", key in guessed)
        columns = st.columns(4)
        for which, column in enumerate(columns):
            is_truth = key in guessed and which == contrast.band_of(task)
            column.button(
                _band(bands, which) + (" ✓" if is_truth else " ✗" if guessed.get(key) == which else ""),
                key=f"answer_{task}_{which}",
                width="stretch",
                type="primary" if guessed.get(key) == which else "secondary",
                disabled=key in guessed,
                on_click=_guess_is,
                args=[key, which],
            )
        if key not in guessed:
            return
        truth = contrast.band_of(task)
        mean, half = contrast.mean
        fine = guessed[key] == truth
        said = "Right!" if fine else "Too high." if guessed[key] > truth else "Too low."
        st.markdown(
            f"**{said} It got {contrast.accuracy[task]:.0%} right**; all tasks average "
            f"{100 * mean:.1f}{half_width(half, 1, 100)}%. Ticks and crosses above show where."
        )
        mine = [right == contrast.band_of(t) for (name, t), right in guessed.items() if name == contrast.dataset.name]
        left, right = st.columns([1, 3], vertical_alignment="center")
        left.button("Next task", icon="➡️", type="primary", on_click=_next_task, args=[len(contrast.tasks)], key="next")
        right.caption(
            f"{sum(mine):,} of {len(mine):,} guessed rightly so far; by chance it would be about one in four."
        )


def _band(bands: np.ndarray, which: int) -> str:
    if which == 0:
        return f"Below {bands[1]:.0%}"
    if which == 3:
        return f"{bands[3]:.0%} or more"
    return f"{bands[which]:.0%} to below {bands[which + 1]:.0%}"


def _guess_is(key: tuple[str, int], which: int) -> None:
    st.session_state[GUESSED][key] = which


def _next_task(n_tasks: int) -> None:
    st.session_state["guess"] = int(st.session_state.get("guess", 1)) % n_tasks + 1


# --- the dataset --------------------------------------------------------------------------------------------------


def _headline(dataset: Dataset) -> None:
    main = {name: ids for name, ids in dataset.splits.items() if name in ("train", "val", "test", "all")}
    shown = main or dict(list(dataset.splits.items())[:3])
    numbers: list[HeadlineNumber | None] = [
        HeadlineNumber.count("classes", "Classes", dataset.n_classes),
        HeadlineNumber("images", "Images", dataset.n_images, unit="", digits=0),
    ]
    if list(shown) != ["all"]:
        numbers.append(
            HeadlineNumber.worded(
                "splits",
                " / ".join(shown) if len(shown) > 1 else f"Classes in split {next(iter(shown))}",
                " / ".join(f"{len(ids):,}" for ids in shown.values()),
                help="Classes in each split. Few-shot methods train on some classes and are tested on others.",
            )
        )
    if dataset.contexts is not None:
        n_contexts = dataset.contexts["context"].nunique()
        numbers.append(
            HeadlineNumber.count("contexts", "Contexts", n_contexts, help="Backgrounds images were taken in.")
        )
    elif dataset.taxonomy is not None:
        n_groups = len(set(dataset.taxonomy["parent"]))
        text = "Inner nodes of the tree of meanings above the classes."
        numbers.append(HeadlineNumber.count("groups", "Groups", n_groups, help=text))
    else:
        numbers.append(None)
    show_numbers(numbers)
    for note in dataset.notes:
        st.caption(escape(note))


def _sample(dataset: Dataset) -> None:
    ids = sizes.sample_image_ids(dataset, N_SAMPLE)
    names = dataset.classes["class_name"].to_numpy()[dataset.image_class_ids()[ids]]
    tiles = [Tile(int(i), str(name)) for i, name in zip(ids, names)]
    page_links.to_gallery(dataset, gallery(dataset, tiles, key="overview_sample", tile_px=92))


def _classes(dataset: Dataset) -> None:
    st.subheader(
        "The classes and how they are related" if dataset.taxonomy is not None else "The classes", anchor=False
    )
    hierarchy = caching.cached_call(class_hierarchy, dataset)
    export.chart(
        "Classes and how they are related",
        figures.plot_hierarchy(hierarchy),
        key="hierarchy",
        config={"displayModeBar": False},
    )
    splits = set(hierarchy.split[1:]) - {"mixed"}
    if dataset.taxonomy is not None:
        st.caption(
            "Each box is a group of classes in the taxonomy, as large as its number of classes; a name that has no "
            "room shows when you point at its box. Click to go in, or to reach a class; the bar that is then above "
            "leads out again."
            + (
                " Grey groups hold classes of several splits, so a class of one split may have close relatives in "
                "another there."
                if "mixed" in hierarchy.split[1:]
                else ""
            )
        )
    elif len(splits) > 1:
        st.caption("No taxonomy is known for these classes; they are grouped by split.")
    else:
        st.caption("No taxonomy is known for these classes, and they are all in one split.")
    answer_boxes(dataset, "hierarchy", Click(BOX, hierarchy.ids), len(hierarchy.ids))
    _box(dataset, hierarchy)


def _box(dataset: Dataset, hierarchy: Hierarchy) -> None:
    """Where the box leads that was clicked, which is in the link: a class to its images, a group to its part of the
    tree of meanings."""
    node = str(links.value_of(BOX, BOX.name, dataset.name))
    if node not in hierarchy.ids[1:]:
        return
    at = hierarchy.ids.index(node)
    inner = node in hierarchy.parents
    told = f"{hierarchy.n_classes[at]:,} classes" if inner else f"one of {split_title(hierarchy.split[at])}"
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.markdown(f"**{escape(hierarchy.labels[at])}**: {escape(told)}", width="content")
        if not inner:
            link = shell.link(dataset, classes=hierarchy.labels[at])
            shell.page_link("images", "Look at it on the page Images", link)
        if dataset.taxonomy is not None:
            asked = {"at": node} if inner else {"classes": hierarchy.labels[at]}
            label = "Its part of the tree of meanings" if inner else "Its place among meanings"
            link = shell.link(dataset, split="all", **asked)
            shell.page_link("classes", label, link)


def _sizes(dataset: Dataset) -> None:
    histogram = caching.cached_call(sizes.class_sizes, dataset)
    by_split = histogram is not None and len(histogram.edges) == 2 and len(histogram.bars) > 1
    st.subheader("Classes per split" if by_split else "Images per class", anchor=False)
    if histogram is None:
        st.caption("The number of images of each class is not known; classes count the same.")
        return
    if len(histogram.edges) > 2 or len(histogram.bars) > 1:  # one bar would say no more than the sentence
        figure = figures.plot_class_sizes(histogram)
        export.chart("Images per class", figure, key="sizes", sets=Click(BAR, clears=True))
    least, most = int(dataset.classes["n_images"].min()), int(dataset.classes["n_images"].max())
    many = f"{least:,} to {most:,} images" if least < most else f"{most:,} images each"
    half = f", half of them with at least {histogram.median:,.0f}" if least < histogram.median < most else ""
    st.caption(f"{dataset.n_classes:,} classes with {many}{half}.")
    _bar(dataset, histogram)


def _bar(dataset: Dataset, histogram: SizeHistogram) -> None:
    """The classes of the bar that was clicked, which is in the link."""
    parts = str(links.value_of(BAR, BAR.name, dataset.name)).split(" ")
    splits = list(histogram.bars)
    numbers = [int(part) for part in parts if part.isascii() and part.isdecimal()]
    if len(numbers) != 2 or len(parts) != 2 or numbers[0] >= len(splits):
        return
    class_ids = sizes.classes_of_bar(dataset, histogram, splits[numbers[0]], numbers[1])
    if not len(class_ids):
        return
    names = dataset.classes["class_name"].astype(str).iloc[class_ids].tolist()
    more = f" and {len(names) - MOST_LISTED:,} more" if len(names) > MOST_LISTED else ""
    st.markdown(f"**{len(names):,} classes:** {', '.join(map(escape, names[:MOST_LISTED]))}{more}.")
    shell.page_link(
        "images",
        "Look at them on the page Images" if not more else f"Look at the first {MOST_LISTED} on the page Images",
        shell.link(dataset, classes=names[:MOST_LISTED]),
    )


def _offers(dataset: Dataset) -> None:
    st.subheader("What it offers", anchor=False)
    for offer, (what, _) in shell.OFFERS.items():
        name, _, rest = what.partition(":")
        if offer in dataset.capabilities:
            st.markdown(f"✅ **{name.removeprefix('a ').capitalize()}**:{rest}.")
        else:
            how = shell.missing_hint(dataset, offer)
            st.markdown(f"⬜ **{name.removeprefix('a ').capitalize()}**:{rest}. :gray[Missing. {how}]")


def _doors(dataset: Dataset) -> None:
    st.subheader("Ask a question", anchor=False)
    doors = shell.useful_pages()[1:]
    for start in range(0, len(doors), 4):
        for column, door in zip(shell.responsive_columns(f"doors_{start}", 4, "pairs"), doors[start : start + 4]):
            with column.container(border=True, height="stretch", key=f"card_{door.slug}"):
                shell.page_link(door.slug, f"**{door.question}**", shell.link(dataset))
                st.caption(shell.lead(door, dataset))
                missing = [need for need in door.needs if need not in dataset.capabilities]
                if missing:
                    st.caption(f"⬜ {escape(dataset.title)} has no {' or '.join(missing)} yet.")
