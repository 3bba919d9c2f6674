"""The page Sample tasks: histograms of coarsity, class balance, a list of tasks, testbeds to save and import."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import comb
from typing import Any

import numpy as np
import streamlit as st

from fsviz.analyses import semantic_sampling as study
from fsviz.difficulty import measures
from fsviz.figures import tasks as figures
from fsviz.records import PAD, Dataset, HeadlineNumber, Testbed
from fsviz.sampling import SAMPLERS
from fsviz.settings import N_QUERY, N_TASKS, SEED, Setting, Value
from fsviz.tasks import draw, fitting
from fsviz.tasks.draw import SHOTS, Recipe
from fsviz.taxonomy import DISTANCE, DISTANCES
from fsviz.ui.pages.sample_tasks.chosen_task import show_chosen_task
from fsviz.ui.pages.sample_tasks.save import show_import, show_save
from fsviz.ui.pages.sample_tasks.testbeds import (
    Classes,
    coarsity_digits,
    coarsity_text,
    draw_images,
    draw_testbed,
    repeat_counts,
)
from fsviz.ui.parts import access, caching, controls, export, links, shell, task_list
from fsviz.ui.parts.clicks import Click, Point
from fsviz.ui.parts.headline import show_numbers
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape

HISTOGRAM = "coarsity_histogram"
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
    settings = shell.side().container()  # above the distance between classes, which is chosen less often
    classes = Classes(dataset, split)
    if draw.possible_distances(dataset):
        classes = Classes(dataset, split, *controls.pick_distance(dataset))
        _ = classes.distances  # computed here, with its own progress message
    else:
        st.info(
            f"**{escape(dataset.title)} has no taxonomy** and no features, so coarsity is not available. Add a "
            "taxonomy or extract features on the page Add images.",
            icon="🧩",
        )
    _live(classes, settings)
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
def _live(classes: Classes, settings: Any) -> None:
    """The part of the page that the sliders rerun; they are shown in `settings`."""
    headline, charts = st.container(), st.container()
    with settings:
        recipes = _recipes(classes)
        images = _images(classes, recipes)
    if any(_is_too_much(classes, recipe) for recipe in recipes.values()):
        return
    beds = {name: draw_testbed(classes, recipe) for name, recipe in recipes.items()}
    titles = {name: _title(classes, recipe, name == "second") for name, recipe in recipes.items()}
    full = {name: _with_images(classes, recipe, images) for name, recipe in recipes.items()}
    if classes.distance:
        with headline:
            _headline(classes.dataset, beds)
    with charts:
        bar = _histograms(classes, beds, titles) if classes.distance else None
        listed = _browser(classes, beds, titles, full, bar)
    if listed is not None:
        show_chosen_task(classes, *listed)
    _balance(classes, beds, titles)
    _excluded(classes, recipes)
    if not shell.classroom():
        show_save(classes, beds, titles, full)


def _recipes(classes: Classes) -> dict[str, Recipe]:
    """The recipes of the controls by name: "uniform" to compare with, "chosen", and "second" if it is compared.

    If the chosen sampler is the uniform one, only "uniform" is there.
    """
    distance = classes.distance or str(DISTANCE.default)
    sampler = controls.pick_sampler(classes.dataset, "semantic", distance)
    source = (classes.dataset, classes.split)
    fits = _fit(*source, sampler)
    own_settings = controls.pick_sampler_settings(sampler, classes.n, distance, sliders=True, of=source, **fits.values)
    n_tasks = controls.pick(N_TASKS.with_(default=1000 if SAMPLERS[sampler].samples_images else 5000))
    shared = {"n_tasks": n_tasks, "seed": controls.pick(SEED)}
    chosen = classes.recipe(sampler=sampler, **own_settings, **shared)
    recipes = {"chosen": chosen}
    if sampler == "uniform":
        recipes = {"uniform": chosen}
    elif classes.distance:
        n_way = own_settings.get("n_way", min(5, classes.n))
        recipes = {"uniform": classes.recipe(sampler="uniform", n_way=n_way, **shared), **recipes}
    if classes.distance and controls.pick(COMPARE):
        second: dict[str, Any] = {"suffix": "_2", "more": " (B)"}
        sampler = controls.pick_sampler(classes.dataset, "semantic", distance, **second)
        alpha = DISTANCES[distance].alpha_most / 2
        shape = _fit(*source, sampler).values
        own_settings = controls.pick_sampler_settings(
            sampler, classes.n, distance, sliders=True, alpha=alpha, **second, **shape
        )
        recipes["second"] = classes.recipe(sampler=sampler, **own_settings, **shared)
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
    shown = [templates[name].format(values[name]) for name in recipe.settings if name in templates]
    return ", ".join([f"{'B: ' if second else ''}{SAMPLERS[recipe.sampler].title}", *shown])


def _is_too_much(classes: Classes, recipe: Recipe) -> bool:
    """Whether sampling takes too long for a page; then the command is shown instead."""
    ways = recipe.settings.get("n_way", recipe.settings.get("max_way", 1))
    max_work = min(MAX_WORK, access.limit("draws"))
    n_with_images = recipe.n_tasks if SAMPLERS[recipe.sampler].samples_images else 0
    if classes.n * ways * recipe.n_tasks <= max_work and n_with_images <= min(
        MAX_WITH_IMAGES, 5 * access.limit("tasks")
    ):
        return False
    st.info(
        f"{recipe.n_tasks:,} tasks of {classes.n:,} classes are too many for a live preview. Lower the number of tasks "
        "or of classes per task, or run:",
        icon="⏳",
    )
    st.code(recipe.command(), language="bash", wrap_lines=True)
    return True


def _headline(dataset: Dataset, beds: dict[str, Testbed]) -> None:
    uniform, bed = beds["uniform"], beds.get("chosen", beds["uniform"])
    title = SAMPLERS[str(bed.recipe["sampler"])].title
    medians = [float(np.median(b.tasks.measures["coarsity"])) for b in (uniform, bed)]
    counts = study.class_counts(bed, dataset)
    numbers = [
        HeadlineNumber(
            "uniform",
            "Median coarsity, uniform",
            medians[0],
            unit="",
            digits=coarsity_digits(medians[0]),
            help="Half of the uniform tasks have a lower coarsity.",
        )
    ]
    if bed is not uniform:
        digits = coarsity_digits(medians[1])
        is_same = coarsity_text(medians[0]) == coarsity_text(medians[1])
        is_constant = np.ptp(uniform.tasks.measures["coarsity"]) < 1e-9
        numbers += [
            HeadlineNumber(
                "median",
                f"Median coarsity, {title.lower()}",
                medians[1],
                unit="",
                digits=digits,
                change=None if is_same else medians[1] - medians[0],
                note="same as uniform" if is_same else "vs uniform",
                help="Half of the tasks with these settings have a lower coarsity.",
            ),
            HeadlineNumber(
                "fine",
                "Fine-grained tasks",
                100 * study.share_finer(bed, uniform),
                digits=0,
                words="–" if is_constant else "",
                note="all uniform tasks have the same coarsity"
                if is_constant
                else f"{study.share_finer(uniform, uniform):.0%} when uniform",
                help="Share of these tasks whose coarsity is in the lowest 5% of uniform tasks.",
            ),
        ]
    numbers.append(
        HeadlineNumber.worded(
            "per_class",
            "Tasks per class",
            f"{counts.min():,} to {counts.max():,}",
            note=f"{counts.mean():,.0f} if balanced",
            help="From the least to the most frequent class.",
        )
    )
    show_numbers(numbers)


def _colour(name: str, bed: Testbed) -> str:
    return figures.colour_of(str(bed.recipe["sampler"]), second=name == "second")


def _histograms(classes: Classes, beds: dict[str, Testbed], titles: dict[str, str]) -> tuple[str, int] | None:
    """Shows the histograms; returns the testbed and bin of the selected bar."""
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
    bar = _chosen_bar(beds, bins)
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
            f" Duplicates removed: median coarsity {dropped.kept:.1f} ({dropped.coarsity:.1f} with duplicates)."
        )
    st.caption(
        f"{len(bed.tasks):,} tasks per sampler; dashed: median.{duplicates}{repeats} Click a bar to list its tasks.",
        help=None if dropped is None else escape(dropped.describe()),
    )
    return bar


def _entry(texts: Sequence[Sequence[str]], point: Point) -> str | None:
    """The text of a mark that carries the number of its panel or line and its position there."""
    return texts[point.data[0]][point.data[1]] if len(point.data) == 2 else None


def _chosen_bar(beds: dict[str, Testbed], bins: study.CoarsityBins) -> tuple[str, int] | None:
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
    st.markdown("**Class balance**")
    export.chart(
        "Share of tasks with each class",
        figures.plot_balance(
            [names[i] for i in order],
            {titles[name]: 100 * count / len(beds[name].tasks) for name, count in counts.items()},
            {titles[name]: _colour(name, bed) for name, bed in beds.items()},
            100 * float(counts[last].mean()) / len(beds[last].tasks),
            has_taxonomy,
        ),
        key="class_balance",
        sets=Click(
            WITH, partial(_entry, [[f"{bed}:{names[i]}" for i in order] for bed in beds]), also={BAR.name: BAR.default}
        ),
    )
    has_beta = any("beta" in bed.recipe for bed in beds.values())
    st.caption(
        "Flat: all classes are sampled equally often. Click a point to list its tasks.",
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
) -> tuple[Testbed, int] | None:
    """Lists the tasks of the selected bar, or around a percentile; returns a testbed and the position of a task."""
    left, right = st.columns([3, 2], gap="medium", vertical_alignment="bottom")
    coarsity: np.ndarray | None
    bed_name, _, class_name = str(links.value_of(WITH, WITH.name)).partition(":")
    if bar is None and bed_name in beds and class_name in classes.names:
        name = bed_name
        coarsity = beds[name].tasks.measures.get("coarsity")
        class_id = classes.dataset.split_class_ids(classes.split)[classes.names.index(class_name)]
        listed = np.flatnonzero((beds[name].tasks.class_ids == class_id).any(axis=1))
        if coarsity is not None:
            listed = listed[np.argsort(coarsity[listed], kind="stable")]
        left.markdown(f"**{escape(titles[name])}**: {len(listed):,} tasks with {escape(class_name)}, finest first")
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
    notes = {int(i): "" if coarsity is None else f"coarsity {coarsity_text(float(coarsity[i]))}" for i in listed}
    examples = None if bed.tasks.has_images else partial(_example_images, classes, bed)
    about = f"{beds[name].name} {bar} {class_name} {st.session_state.get('quantile') if bar is None else ''}"
    return bed, task_list.pick_task(classes.dataset, bed.tasks, listed, notes, about, examples=examples)


def _example_images(classes: Classes, bed: Testbed, task: int) -> np.ndarray:
    ids = bed.tasks.class_ids[task]
    return study.example_images(classes.dataset, ids[ids != PAD], 1)[:, 0]


def _images(classes: Classes, recipes: dict[str, Recipe]) -> dict[str, Value]:
    """Images per class to sample, by name of the setting, at most as many as the smallest class has; {} for none.

    A sampler that samples images itself has its own settings; they also hold for the testbeds compared with it.
    """
    chosen = recipes.get("chosen", next(iter(recipes.values())))
    images = {name: value for name, value in chosen.settings.items() if name in draw.IMAGE_SETTINGS}
    fits = _fit(classes.dataset, classes.split, chosen.sampler)
    if SAMPLERS[chosen.sampler].samples_images:
        controls.release_images(chosen.sampler)
    else:
        smallest = study.smallest_class(classes.dataset, classes.split) or 1
        max_shots = min(SHOTS.high, smallest - 1)
        unknown = " The sizes of its classes are not available, so only classes are sampled."
        help = SHOTS.help + ("" if smallest > 1 else unknown)
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
    if images or SAMPLERS[chosen.sampler].samples_images:
        images |= controls.pick_groups(classes.dataset)
    controls.say_fit(fits, {**chosen.settings, **images})
    return images


def _with_images(classes: Classes, recipe: Recipe, images: dict[str, Value]) -> Recipe:
    """The recipe with these numbers of images per class."""
    return draw.recipe_for(classes.dataset, **{**recipe.values, **images})


@caching.cache_data("Loading the samplers")
def _warm_up() -> bool:
    study.warm_up()
    return True
