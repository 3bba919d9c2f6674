"""The page Sample tasks: histograms of coarsity, class balance, a list of tasks, testbeds to save and import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import comb
from typing import Any

import numpy as np
import streamlit as st

from fsviz.analyses import semantic_sampling as study
from fsviz.difficulty import measures
from fsviz.features.backbones import title_of
from fsviz.figures import tasks as figures
from fsviz.methods import METHODS
from fsviz.records import PAD, Dataset, Predictions, Testbed
from fsviz.sampling import SAMPLERS
from fsviz.settings import N_QUERY, N_TASKS, SEED, Setting, Value
from fsviz.tasks import draw, fitting
from fsviz.tasks.draw import SHOTS, Recipe
from fsviz.taxonomy import DISTANCE, DISTANCES
from fsviz.text import short_names
from fsviz.ui.pages.sample_tasks.save import show_import, show_save
from fsviz.ui.pages.sample_tasks.selected_task import show_distances, show_selected_task
from fsviz.ui.pages.sample_tasks.testbeds import (
    Classes,
    coarsity_text,
    draw_images,
    draw_testbed,
    quick_predictions,
    repeat_counts,
)
from fsviz.ui.parts import access, caching, controls, export, links, shell, task_list
from fsviz.ui.parts.clicks import Click, Point
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape

HISTOGRAM = "coarsity_histogram"
COARSITY, BALANCE = "Coarsity", "Class balance"  # the figures
MAX_LISTED = 60  # tasks around a percentile
MAX_WORK = 1.7e9  # classes x ways x tasks: about five seconds on one core
MAX_WITH_IMAGES = 2000  # tasks of a sampler that samples images itself
COMPARE = Setting("compare", "Compare with", "A second setting, on the same axes.", "flag", False)
QUANTILE = Setting(
    "quantile",
    "Coarsity percentile",
    "0 = finest task, 100 = coarsest.",
    "int",
    5,
    0,
    100,
)
BAR = Setting("bar", "Bar", "The bar whose tasks are listed: its testbed and a coarsity in it.", "text", "")
WITH = Setting("with", "With", "The class whose tasks are listed, and their testbed.", "text", "")
BROWSE = Setting("browse", "Testbed", "The testbed whose tasks are listed.", "choice", "chosen")


def show(dataset: Dataset) -> None:
    split = shell.pick_split(dataset)
    if draw.check_n_classes(dataset, split) < 3:
        st.info(
            f"Split {escape(repr(split))} of {escape(dataset.title)} has only 2 classes, so all tasks have the same "
            "classes. Choose another split, or add images of other classes.",
            icon="🧩",
        )
        return
    _warm_up()
    with shell.side():
        settings = st.container()
        rare = st.expander("More settings", type="compact")
    classes = Classes(dataset, split)
    if draw.possible_distances(dataset):
        classes = Classes(dataset, split, *controls.pick_distance(dataset, rare))
        controls.say_groups(dataset, split, classes.distance, classes.distances)  # computed here, with its own bar
    else:
        shell.answer(
            f"Coarsity is not available: {escape(dataset.title)} has no taxonomy and no features.",
            "Add a taxonomy or extract features on the page Add images.",
        )
    _live(classes, settings, rare)
    access.show_denied("upload")
    if access.can("upload") and not shell.classroom():
        show_import(dataset, split)


PAGE = Page(
    slug="sample_tasks",
    label="Sample tasks",
    icon="🎚️",
    group="Tasks",
    order=0,
    question="How fine-grained are these tasks?",
    lead="Sample tasks from {dataset} and see how far apart their classes are (coarsity).",
    paper="Bennequin et al. (2022), figures 1 and 3",
    explains=("coarsity", "samplers", "distances"),
    keywords=("coarsity", "episodes", "sampler", "testbed"),
    show=show,
)


@st.fragment
@shell.errors_on_page()
def _live(classes: Classes, settings: Any, rare: Any) -> None:
    """The part of the page that the sliders rerun; they are shown in `settings` and `rare`."""
    with settings:
        places = Places(st.container(), st.container(), st.container(), rare)
    recipes = _recipes(classes, places)
    with places.images:
        images = _images(classes, recipes, rare)
    if any(_is_too_much(classes, recipe) for recipe in recipes.values()):
        return
    beds = {name: draw_testbed(classes, recipe) for name, recipe in recipes.items()}
    titles = {name: _title(classes, recipe, name == "second") for name, recipe in recipes.items()}
    full = {name: _with_images(classes, recipe, images) for name, recipe in recipes.items()}
    if classes.distance:
        uniform = beds["uniform"]
        sentence, more = map(escape, study.headline(beds.get("chosen", uniform), uniform, beds.get("second")))
        shell.answer(sentence, more)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        figure = BALANCE
        if classes.distance:
            figure = controls.pick_section("Figure", (COARSITY, BALANCE), label_visibility="collapsed", width="stretch")
        if not shell.classroom():
            show_save(classes, beds, titles, full)
    bar = _selected_bar(beds, study.coarsity_bins(beds)) if classes.distance else None
    if figure == COARSITY:
        _histograms(classes, beds, titles, bar)
    else:
        _balance(classes, beds, titles)
    _excluded(classes, recipes)
    left, right = shell.responsive_columns("browser", [5, 6], gap="large")
    with left:
        listed = _browser(classes, beds, titles, full, bar)
    if listed is not None:
        with right:
            show_selected_task(classes, listed.bed, listed.task, listed.note, listed.predictions)
        show_distances(classes, listed.bed, listed.task)


@dataclass(frozen=True)
class Places:
    """Containers of the sidebar, in their order."""

    sampler: Any
    images: Any
    tasks: Any
    rare: Any


@dataclass(frozen=True)
class ListedTask:
    """The selected task of the list: its testbed and position, its line in the list, and its predictions."""

    bed: Testbed
    task: int
    note: str
    predictions: Predictions | None


def _recipes(classes: Classes, places: Places) -> dict[str, Recipe]:
    """The recipes of the controls by name: "uniform" to compare with, "chosen", and "second" if it is compared.

    If the chosen sampler is the uniform one, only "uniform" is there.
    """
    distance = classes.distance or str(DISTANCE.default)
    source = (classes.dataset, classes.split)

    def own_settings(sampler: str, where: Any, **more: Any) -> dict[str, Value]:
        return controls.pick_sampler_settings(
            sampler,
            classes.n,
            distance,
            where=lambda name: places.rare if draw.SAMPLER_SETTINGS[name].advanced else where,
            sliders=True,
            **{**_fit(*source, sampler).values, **more},
        )

    with places.sampler:
        sampler = controls.pick_sampler(classes.dataset, "semantic", distance)
    settings = own_settings(sampler, places.sampler, of=source)
    n_tasks = controls.pick(
        N_TASKS.with_(default=1000 if SAMPLERS[sampler].samples_images else 5000, title="Tasks"), places.tasks
    )
    shared = {"n_tasks": n_tasks, "seed": controls.pick(SEED, places.rare)}
    recipe = classes.recipe(sampler=sampler, **settings, **shared)
    recipes = {"chosen": recipe}
    if sampler == "uniform":
        recipes = {"uniform": recipe}
    elif classes.distance:
        n_way = settings.get("n_way", min(5, classes.n))
        recipes = {"uniform": classes.recipe(sampler="uniform", n_way=n_way, **shared), **recipes}
    if classes.distance and controls.pick(COMPARE, places.tasks):
        second: dict[str, Any] = {"suffix": "_2", "more": " (B)"}
        with places.tasks:
            sampler = controls.pick_sampler(classes.dataset, "semantic", distance, **second)
        alpha = DISTANCES[distance].alpha_most / 2
        settings = own_settings(sampler, places.tasks, alpha=alpha, **second)
        recipes["second"] = classes.recipe(sampler=sampler, **settings, **shared)
    return recipes


@caching.cache_data(most=24)
def _fit(dataset: Dataset, split: str, sampler: str) -> fitting.Fit:
    requested = {"split": split, "sampler": sampler}
    return fitting.fit(dataset, requested, draw.IMAGE_DEFAULTS, varied=True)


def _title(classes: Classes, recipe: Recipe, second: bool) -> str:
    """The title of a testbed in figures: its sampler and settings."""
    templates = {"alpha": "α {:g}", "beta": "β {:g}", "n_way": "{}-way", "max_way": "up to {} ways"}
    templates["follow_hierarchy"] = "one concept each"
    values = {**recipe.settings, "max_way": min(recipe.settings.get("max_way", 0), classes.n)}
    parts = [templates[name].format(values[name]) for name in recipe.settings if name in templates]
    return ", ".join([f"{'B: ' if second else ''}{SAMPLERS[recipe.sampler].title}", *parts])


def _is_too_much(classes: Classes, recipe: Recipe) -> bool:
    """Whether sampling takes too long for a page; then the command is shown instead."""
    ways = recipe.settings.get("n_way", recipe.settings.get("max_way", 1))
    max_work = min(MAX_WORK, access.limit("draws"))
    n_with_images = recipe.n_tasks if SAMPLERS[recipe.sampler].samples_images else 0
    if classes.n * ways * recipe.n_tasks <= max_work and n_with_images <= min(
        MAX_WITH_IMAGES, 5 * access.limit("tasks")
    ):
        return False
    shell.answer(
        f"{recipe.n_tasks:,} tasks of {classes.n:,} classes are too many for a live preview.",
        "Lower the number of tasks or of classes per task, or run this command.",
    )
    st.code(recipe.command(), language="bash", wrap_lines=True)
    return True


def _colour(name: str, bed: Testbed) -> str:
    return figures.colour_of(str(bed.recipe["sampler"]), second=name == "second")


def _histograms(
    classes: Classes, beds: dict[str, Testbed], titles: dict[str, str], bar: tuple[str, int] | None
) -> None:
    """Shows the histograms; `bar` is the testbed and bin of the selected bar."""
    bins = study.coarsity_bins(beds)
    panels = [
        figures.Panel(
            titles[name],
            100 * bins.counts[name] / len(bed.tasks),
            bins.counts[name],
            bins.medians[name],
            _colour(name, bed),
        )
        for name, bed in beds.items()
    ]
    middles = (bins.edges[:-1] + bins.edges[1:]) / 2
    texts = [[f"{name}:{middle:g}" for middle in middles] for name in beds]
    marked = None if bar is None else (list(beds).index(bar[0]), bar[1])
    figure = figures.plot_histograms(
        bins.edges, panels, measures.lower_title("coarsity"), measures.lower_title("coarsity"), marked
    )
    export.chart("Coarsity of the tasks", figure, key=HISTOGRAM, sets=Click(BAR, partial(_entry, texts)))
    bed = beds.get("chosen", beds["uniform"])
    ways = bed.recipe.get("n_way")
    repeats = ""
    if bed.recipe["n_distinct"] == 1 and len(bed.tasks) > 1:
        repeats = " All tasks use the same classes. Lower classes per task."
    elif bed.recipe["n_distinct"] < len(bed.tasks):
        possible = comb(classes.n, ways) if ways else 1e6
        repeats = (
            f" {bed.recipe['n_distinct']:,} distinct class sets"
            f"{f' of {possible:,} possible' if possible < 1e6 else ''}; other tasks repeat them with other images."
        )
    dropped = None if bed.recipe["n_distinct"] == 1 else repeat_counts(classes.dataset, bed, classes.distances)
    duplicates = ""
    if dropped is not None and dropped.n_repeated and np.isfinite(dropped.coarsity):
        duplicates = (
            f" Duplicates removed: median coarsity {dropped.distinct:.1f} ({dropped.coarsity:.1f} with duplicates)."
        )
    st.caption(
        f"{len(bed.tasks):,} tasks per sampler; dashed: median.{duplicates}{repeats} Click a bar to list its tasks.",
        help=None if dropped is None else escape(dropped.describe()),
    )


def _entry(texts: Sequence[Sequence[str]], point: Point) -> str | None:
    """The text of a mark that carries the number of its panel or line and its position there."""
    return texts[point.data[0]][point.data[1]] if len(point.data) == 2 else None


def _selected_bar(beds: dict[str, Testbed], bins: study.CoarsityBins) -> tuple[str, int] | None:
    """The testbed and bin of the bar in the link; None if it has no bar of these testbeds."""
    name, _, text = str(links.value_of(BAR, BAR.name)).partition(":")
    try:
        value = float(text)
    except ValueError:
        return None
    if name not in beds or not 0 <= value <= bins.edges[-1]:
        return None
    return name, int(bins.bin_of(np.array([value]))[0])


def _clear_bar() -> None:
    st.session_state[BAR.name] = st.session_state[WITH.name] = ""


def _balance(classes: Classes, beds: dict[str, Testbed], titles: dict[str, str]) -> None:
    has_taxonomy = classes.dataset.taxonomy is not None
    names = classes.names
    order = caching.class_order(classes.dataset, classes.split, classes.dag) if has_taxonomy else np.arange(len(names))
    counts = {name: study.class_counts(bed, classes.dataset)[order] for name, bed in beds.items()}
    last = list(beds)[-1]
    bed_name, _, class_name = str(links.value_of(WITH, WITH.name)).partition(":")
    ordered = [names[i] for i in order]
    marked = None
    if bed_name in beds and class_name in ordered:
        marked = (list(beds).index(bed_name), ordered.index(class_name))
    export.chart(
        "Share of tasks with each class",
        figures.plot_balance(
            ordered,
            {titles[name]: 100 * count / len(beds[name].tasks) for name, count in counts.items()},
            {titles[name]: _colour(name, bed) for name, bed in beds.items()},
            100 * float(counts[last].mean()) / len(beds[last].tasks),
            has_taxonomy,
            marked,
        ),
        key="class_balance",
        sets=Click(
            WITH, partial(_entry, [[f"{bed}:{name}" for name in ordered] for bed in beds]), also={BAR.name: BAR.default}
        ),
    )
    has_beta = any("beta" in bed.recipe for bed in beds.values())
    of_last = counts[last]
    st.caption(
        f"{of_last.min():,} to {of_last.max():,} tasks per class, {of_last.mean():,.0f} if balanced. Flat: all classes "
        "are sampled equally often. Click a point to list its tasks.",
        help="A higher class balance β flattens the line; dropping repeated tasks undoes a little of that."
        if has_beta
        else None,
    )


def _excluded(classes: Classes, recipes: dict[str, Recipe]) -> None:
    """Names a class that no such task can have, and says how many more there are."""
    why = list(
        {
            c: w for recipe in recipes.values() for c, w in draw.excluded_classes(classes.dataset, recipe).items()
        }.values()
    )
    if why:
        st.caption(f"Excluded: {escape(why[0])}" + (f" {len(why) - 1:,} more classes are excluded." if why[1:] else ""))


def _browser(
    classes: Classes,
    beds: dict[str, Testbed],
    titles: dict[str, str],
    full: dict[str, Recipe],
    bar: tuple[str, int] | None,
) -> ListedTask | None:
    """Lists the tasks of the selected bar, or around a percentile; returns the selected task."""
    left, right = st.columns([3, 2], gap="medium", vertical_alignment="bottom")
    coarsity: np.ndarray | None
    bed_name, _, class_name = str(links.value_of(WITH, WITH.name)).partition(":")
    if bar is None and bed_name in beds and class_name in classes.names:
        name = bed_name
        coarsity = beds[name].tasks.measures.get("coarsity")
        class_id = classes.dataset.split_class_ids(classes.split)[classes.names.index(class_name)]
        short = short_names(classes.names)[classes.names.index(class_name)]
        listed = np.flatnonzero((beds[name].tasks.class_ids == class_id).any(axis=1))
        if coarsity is not None:
            listed = listed[np.argsort(coarsity[listed], kind="stable")]
        left.markdown(f"**{escape(titles[name])}**: {len(listed):,} tasks with {escape(short)}, finest first")
        right.button("Show by percentile", on_click=_clear_bar, icon="↩️")
    elif bar is not None:
        name = bar[0]
        coarsity = beds[name].tasks.measures["coarsity"]
        bins = study.coarsity_bins(beds)
        listed = np.flatnonzero(bins.bin_of(coarsity) == bar[1])
        listed = listed[np.argsort(coarsity[listed], kind="stable")]
        left.markdown(
            f"**{escape(titles[name])}**: {len(listed):,} tasks with a coarsity of "
            f"{coarsity_text(bins.edges[bar[1]])} to {coarsity_text(bins.edges[bar[1] + 1])}, finest first"
        )
        right.button("Show by percentile", on_click=_clear_bar, icon="↩️")
    else:
        choices = {n: titles[n].split(",")[0] for n in beds}
        start = "chosen" if "chosen" in beds else next(iter(beds))
        name = str(controls.pick(BROWSE.with_(choices=choices, default=start, title="Tasks of"), left))
        coarsity = beds[name].tasks.measures.get("coarsity")
        listed = np.arange(min(len(beds[name].tasks), MAX_LISTED))
        if coarsity is not None:
            listed = study.tasks_near_quantile(
                beds[name], controls.pick(QUANTILE, right, as_slider=True) / 100, MAX_LISTED
            )
    if not len(listed):
        st.info("No task is in this bar with these settings. Click another bar.", icon="🧩")
        return None
    bed = draw_images(classes, full[name]) or beds[name]
    predictions = quick_predictions(classes.dataset, bed, tuple(listed.tolist()), classes.backbone)
    notes = study.task_notes(listed, coarsity, predictions)
    examples = None if bed.tasks.has_images else partial(_example_images, classes, bed)
    about = f"{beds[name].name} {bar} {class_name} {st.session_state.get('quantile') if bar is None else ''}"
    task = task_list.pick_task(classes.dataset, bed.tasks, listed, notes, about, examples=examples)
    if predictions is not None:
        backbone = title_of(classes.backbone or draw.default_backbone(classes.dataset))
        st.caption(f"Accuracy: {METHODS[study.QUICK_METHOD].title}, {escape(backbone)} features.")
        predictions = predictions.take(np.flatnonzero(listed == task))
    return ListedTask(bed, task, notes[task], predictions)


def _example_images(classes: Classes, bed: Testbed, task: int) -> np.ndarray:
    ids = bed.tasks.class_ids[task]
    return study.example_images(classes.dataset, ids[ids != PAD], 1)[:, 0]


def _images(classes: Classes, recipes: dict[str, Recipe], rare: Any) -> dict[str, Value]:
    """Images per class to sample, by name of the setting, at most as many as the smallest class has; {} for none.

    A sampler that samples images itself has its own settings; they also hold for the testbeds compared with it.
    """
    recipe = recipes.get("chosen", next(iter(recipes.values())))
    images = {name: value for name, value in recipe.settings.items() if name in draw.IMAGE_SETTINGS}
    fits = _fit(classes.dataset, classes.split, recipe.sampler)
    if SAMPLERS[recipe.sampler].samples_images:
        controls.release_images(recipe.sampler)
    else:
        smallest = study.smallest_class(classes.dataset, classes.split) or 1
        max_shots = min(SHOTS.high, smallest - 1)
        unknown = " The sizes of its classes are not available, so only classes are sampled."
        help = SHOTS.help + ("" if smallest > 1 else unknown) + (fits.shots and f" {fits.shots}")
        setting = SHOTS.with_(
            title="Support images per class", high=max_shots, default=min(fits.values["n_shot"], max_shots), help=help
        )
        n_shot = controls.pick(setting, disabled=max_shots == 0)
        max_queries = min(N_QUERY.high, max(smallest - n_shot, 1))
        setting = N_QUERY.with_(
            title="Query images per class", high=max_queries, default=min(fits.values["n_query"], max_queries)
        )
        n_query = controls.pick(setting, disabled=n_shot == 0)
        images = {"n_shot": n_shot, "n_query": n_query} if n_shot else {}
    if images or SAMPLERS[recipe.sampler].samples_images:
        images |= controls.pick_groups(classes.dataset, rare)
    controls.say_fit(fits, {**recipe.settings, **images})
    return images


def _with_images(classes: Classes, recipe: Recipe, images: dict[str, Value]) -> Recipe:
    """The recipe with these numbers of images per class."""
    return draw.recipe_for(classes.dataset, **{**recipe.values, **images})


@caching.cache_data("Loading the samplers")
def _warm_up() -> bool:
    study.warm_up()
    return True
