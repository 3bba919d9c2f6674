"""The page Image map: all images of a dataset on a map by their features, and the ones that were drawn around."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from fsviz import datasets, features, jobs
from fsviz.analyses import custom_task
from fsviz.datasets import filtering
from fsviz.errors import FsvizError
from fsviz.features import maps
from fsviz.features.backbones import title_of
from fsviz.figures import feature_map as figures
from fsviz.records import PAD, Colouring, Dataset, HeadlineNumber, NeighbourAgreement, TaskId, Tasks
from fsviz.settings import N_TASKS, SEED, Setting
from fsviz.studies import evaluate
from fsviz.studies import feature_map as study
from fsviz.tasks import draw, fitting, task_ids
from fsviz.ui.parts import (
    access,
    caching,
    clicks,
    controls,
    export,
    hover,
    links,
    page_links,
    run_panel,
    selections,
    shell,
)
from fsviz.ui.parts.clicks import Area, Click
from fsviz.ui.parts.headline import show_numbers
from fsviz.ui.parts.image_wall import Row, Tile, gallery, task_rows
from fsviz.ui.parts.links import IMAGE
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape

CHART, SHARED = "feature_map", "map_shared"
MOST_TILES = 90
MOST_BARS = 10
N_BUILT = 5  # classes of a task that is built of what was drawn around
DRAWN = "drawn"
OUTLINE = Setting("around", "Outline", "The corners of the box or lasso whose images are shown.", "text", "")
COLOUR = Setting("colour", "Colour by", "What tells the points apart.", "choice", study.BY_CLASS)
RUN = Setting("run", "Run", "A finished evaluation: how often each image was named rightly as a query.", "choice", "")
TESTBED = Setting("testbed", "A task on the map", "Its support and query images stand out.", "choice", "")
POSITION = Setting("position", "Number of the task", "Its place in the testbed, from 0.", "int", 0)


def _of_map(words: str | bool = False, most: int = 16) -> Any:
    """`cache_data` for functions of a map."""
    return caching.cache_data(words, most, {maps.FeatureMap: lambda found: found.cache_key})


def show(dataset: Dataset) -> None:
    known = shell.known_backbones(dataset)
    with shell.side():
        backbone = controls.pick_backbone(known, help="Whose features lie on the map.")
    export.command("map", dataset.name, "--backbone", backbone)
    found = _map(dataset, backbone)
    with shell.side():
        by, title = _pick_colour(dataset)
        class_ids = _pick_classes(dataset)
        task, named = _pick_task(dataset, found)
    _headline(dataset, found, task)
    _islands(dataset, found, by)
    left, right = shell.responsive_columns("feature_map", [12, 7], gap="large")
    with left:
        selected = _figure(dataset, found, by, title, class_ids, task)
        _trust(found)
        _better(dataset, backbone, found)
    with right:
        _side(dataset, found, selected, task, named)


PAGE = Page(
    slug="image_map",
    label="Image map",
    icon="🗺️",
    group="Data",
    order=1,
    question="Which images look alike to the backbone?",
    lead="Images of {dataset}: nearby points have similar features.",
    needs=("features",),
    takes=("classes", "task", "all"),
    explains=("neighbours", "map", "accuracy"),
    keywords=("t-SNE", "clusters", "features", "map"),
    is_view=True,
    show=show,
)


# The map


def _map(dataset: Dataset, backbone: str) -> maps.FeatureMap:
    """The map that is stored, or a fast one made now."""
    found = _stored_map(dataset, backbone, maps.stamp(dataset, backbone))
    if found is not None:
        return found
    spec = {"dataset": dataset.name, "backbone": backbone, "keep": access.can("save")}
    return caching.compute_with_progress(study.fast_map, spec, "Laying the images out")


@caching.cache_data(most=8)
def _stored_map(dataset: Dataset, backbone: str, stamp: int) -> maps.FeatureMap | None:
    return maps.find(dataset, backbone)


def _headline(dataset: Dataset, found: maps.FeatureMap, task: Tasks | None) -> None:
    same = next((one for one in _agreement(dataset, found) if one.by == study.BY_CLASS), None)
    lost = f" {found.left_out:,} more have features that are not finite numbers and are left out."
    numbers = [
        HeadlineNumber.count(
            "images",
            "Images on the map",
            len(found.image_ids),
            help=f"Those with features under the backbone.{lost if found.left_out else ''}",
        ),
        HeadlineNumber(
            "kept",
            "Neighbours kept",
            100 * found.kept,
            digits=0,
            note=f"chance {study.percent(found.chance)}",
            help=f"Of the {maps.NEIGHBOURS} images nearest to an image in all dimensions, the share that is among its "
            f"{maps.NEIGHBOURS} nearest on the map; mean over {found.measured:,} images.",
        ),
        HeadlineNumber(
            "same_class",
            "Neighbours of the same class",
            100.0 if same is None else 100 * same.share,
            digits=0,
            note="there is one class" if same is None else f"chance {study.percent(same.chance)}",
            help=f"Of the {maps.NEIGHBOURS} images nearest on the map, the share that is of the image's class.",
        ),
    ]
    if task is None:
        n_classes = len(np.unique(dataset.image_class_ids()[found.image_ids]))
        numbers.append(HeadlineNumber.count("classes", "Classes", n_classes))
    else:
        n_support, n_query = int((task.support != PAD).sum()), int((task.query != PAD).sum())
        note = f"{n_support:,} support, {n_query:,} query"
        numbers.append(HeadlineNumber.worded("task", "The task", task.setting, note=note))
    show_numbers(numbers, "feature_map_numbers")


def _islands(dataset: Dataset, found: maps.FeatureMap, by: str) -> None:
    """What lies together on the map, in a sentence, and the way to see it."""
    shared = _agreement(dataset, found)
    told = f"**{escape(study.cluster_headline(shared))}**"
    if not (shared and shared[0].beyond >= study.LITTLE and shared[0].by != by):
        st.markdown(told)
    else:
        words, way = shell.responsive_columns("feature_map_islands", [9, 2], vertical_alignment="center")
        words.markdown(told)
        with way:
            st.button(
                escape(f"Colour by {shared[0].title}"),
                icon="🎨",
                key="colour_by_shared",
                on_click=_colour,
                args=(shared[0].by,),
            )


def _colour(by: str) -> None:
    st.session_state[COLOUR.name] = by


def _figure(
    dataset: Dataset, found: maps.FeatureMap, by: str, title: str, class_ids: list[int], task: Tasks | None
) -> list[int]:
    """Draws the map; returns the images that are chosen on it."""
    chosen, around = _chosen(dataset), _around(dataset, found)
    colouring = _colouring(dataset, found, by, title, class_ids)
    names = dataset.classes["class_name"].astype(str).to_numpy()
    of_image = dataset.image_class_ids()[found.image_ids]
    words = names[of_image].tolist() if len(of_image) <= figures.MAX_TEXTS else None
    roles = None if task is None else study.roles(task, found.image_ids)
    spots = [] if task is None else study.names_beside(dataset, found, task)
    figure = figures.plot_map(
        found.xy,
        found.image_ids,
        colouring,
        words,
        roles,
        spots,
        chosen,
        as_accuracy=by == study.BY_RUN,
        view=f"{dataset.name} {found.backbone} {found.kind}",
        outline=around,
    )
    event = export.chart(
        "Feature map",
        figure,
        key=CHART,
        sets=Click(area=Area(OUTLINE, study.outline_text, clears=True)),
        selection_mode=("points", "box", "lasso"),
        config={"scrollZoom": True, "displaylogo": False},
    )
    if dataset.has_pixels:
        hover.thumbnails(dataset, CHART, _ids(found))
    there = _ids(found)
    if around is not None:
        return study.images_inside(found, around).tolist()
    return [image_id for image_id in clicks.data_in(event) if image_id in there]


def _around(dataset: Dataset, found: maps.FeatureMap) -> np.ndarray | None:
    """The outline that was drawn on this map, kept in the link as around; None for none."""
    asked, state = links.requested_for(OUTLINE.name), st.session_state
    here = " ".join(found.cache_key)
    if asked is not None or state.get("around_of") != here:
        state["around_of"], state[OUTLINE.name] = here, asked or ""
    corners = study.outline_in(state[OUTLINE.name])
    links.keep(OUTLINE.name, state[OUTLINE.name] if corners is not None else None)
    return corners


def _forget_around() -> None:
    st.session_state[OUTLINE.name] = ""


@_of_map()
def _ids(found: maps.FeatureMap) -> frozenset[int]:
    return frozenset(found.image_ids.tolist())


def _trust(found: maps.FeatureMap) -> None:
    st.caption(
        f"A t-SNE of features at unit length. **How far to trust it:** {found.kept:.0%} of an image's "
        f"{maps.NEIGHBOURS} nearest neighbours in all dimensions are still among its {maps.NEIGHBOURS} nearest here "
        f"(a map at random keeps {escape(study.percent(found.chance))}). Nearness tells something, the size of an "
        "island and the distance between two far ones do not, and the axes mean nothing. Draw around images, click "
        "one, or turn the wheel to look closer."
    )


def _better(dataset: Dataset, backbone: str, found: maps.FeatureMap) -> None:
    if found.kind == maps.BETTER:
        return
    spec = {"study": "feature_map", "dataset": dataset.name, "backbone": found.backbone}
    words = (
        "**This is the fast map.** A better one lays out every image with ten times as many steps, in the background; "
        "it replaces this one when it is finished and is kept beside the features."
    )
    run_panel.offer(spec, jobs.find(spec), words, start="Make the better map")


# Colours


def _pick_colour(dataset: Dataset) -> tuple[str, str]:
    """What the points are coloured by, and the run, where it is one ("RUN/ENTRY")."""
    runs = _runs(dataset)
    choices = study.colours(dataset) | ({study.BY_RUN: "Right or wrong in a run"} if runs else {})
    by = str(controls.pick(COLOUR.with_(choices=choices, default=study.default_colour(dataset)), about=dataset.name))
    if by != study.BY_RUN:
        links.drop_from_link(RUN.name)
        return by, ""
    return by, str(controls.pick(RUN.with_(choices=runs, default=next(iter(runs))), about=dataset.name))


def _runs(dataset: Dataset) -> dict[str, str]:
    """Methods of finished evaluations of the dataset, "RUN/ENTRY" -> title, newest first."""
    found = {}
    for run in jobs.list_runs("evaluate"):
        if run.state == "finished" and run.spec.get("dataset") == dataset.name and evaluate.is_complete(run.spec):
            for which, entry in enumerate(evaluate.entries(run.spec)):
                when = run_panel.when(run.created)
                part = evaluate.run_testbeds(run.spec)[entry.testbed]
                seen = "" if len(run.spec["backbones"]) == 1 else f" on {title_of(entry.backbone)}"
                found[f"{run.id}/{which}"] = f"{entry.label}{seen}, {part['testbed_name']}, {when}"
    return dict(list(found.items())[:60])


def _pick_classes(dataset: Dataset) -> list[int]:
    """Classes that stand out when points are coloured by class."""
    names = dataset.distinct_names(np.arange(dataset.n_classes))
    selections.pick_classes(names, study.MAX_NAMES)
    picked = st.multiselect(
        "Classes to highlight",
        names,
        key="classes",
        placeholder="none",
        max_selections=study.MAX_NAMES,
        **controls.BY_TYPING,
        help="They get a colour and a shape each, all other images are grey.",
    )
    position = {name: i for i, name in enumerate(names)}
    return [position[name] for name in picked]


def _colouring(dataset: Dataset, found: maps.FeatureMap, by: str, run: str, class_ids: list[int]) -> Colouring:
    if class_ids:
        return _known_colouring(dataset, found, study.BY_CLASS, tuple(class_ids))
    if by != study.BY_RUN:
        return _known_colouring(dataset, found, by, ())
    run_id, _, which = run.rpartition("/")
    accuracy, times = _accuracy(run_id, int(which), str(jobs.folder(run_id)), len(dataset.image_class_ids()))
    asked = int((times > 0).sum())
    st.caption(
        f"Coloured by how often an image was named rightly as a query in run {escape(run_id)}: {asked:,} images were "
        f"queries, {times[times > 0].mean():.1f} times each on average."
    )
    return Colouring("named rightly", numbers=accuracy[found.image_ids])


@_of_map("Colouring the map", 32)
def _known_colouring(dataset: Dataset, found: maps.FeatureMap, by: str, class_ids: tuple[int, ...]) -> Colouring:
    return study.colouring(dataset, found.image_ids, by, class_ids)


@caching.cache_data("Reading the run", 16)
def _accuracy(run_id: str, which: int, folder: str, n_images: int) -> tuple[np.ndarray, np.ndarray]:
    spec = jobs.spec(run_id)
    chunks = jobs.chunks(run_id, evaluate.chunks_of(spec, which))
    return study.accuracy_of_images(spec, chunks, which, n_images)


# A task


def _pick_task(dataset: Dataset, found: maps.FeatureMap) -> tuple[Tasks | None, TaskId | None]:
    """The task that stands out, of a saved testbed or drawn by settings, and what names it in links; None for none."""
    named = st.query_params.get(task_ids.TASK_NAME.name)
    if named:  # a task by its name, TESTBED:POSITION
        del st.query_params[task_ids.TASK_NAME.name]
        testbed, _, number = named.rpartition(":")
        st.query_params["testbed"], st.query_params["position"] = testbed or named, number or "0"
        st.rerun()
    images = [str(links.value_of(s, s.name, dataset.name)) for s in (custom_task.SUPPORT, custom_task.QUERY)]
    choices = {"": "none", DRAWN: "one drawn by settings", **{name: name for name in evaluate.testbeds(dataset)}}
    choices |= {custom_task.LINKED: "the one in the link"} if all(images) else {}
    source = str(controls.pick(TESTBED.with_(choices=choices), about=dataset.name))
    if source != custom_task.LINKED:
        links.drop_from_link(custom_task.SUPPORT.name, custom_task.QUERY.name)
    if not source:
        links.drop_from_link(POSITION.name, *draw.SETTINGS)
        return None, None
    try:
        if source == custom_task.LINKED:
            links.drop_from_link(POSITION.name, *draw.SETTINGS)
            support, query = map(custom_task.images_in, images)
            return custom_task.of_images(dataset, features.load(dataset, found.backbone), support, query), None
        if source != DRAWN:
            links.drop_from_link(*draw.SETTINGS)
            position = int(controls.pick(POSITION, about=source))
            task = study.task_at(dataset, f"{source}:{position}")
            return task, task_ids.parse_task_id(f"{source}:{position}")
        return _draw(dataset, found)
    except FsvizError as error:
        st.warning(escape(shell.with_setting_titles(error)), icon="⚠️")
        return None, None


def _draw(dataset: Dataset, found: maps.FeatureMap) -> tuple[Tasks, TaskId | None]:
    split = shell.pick_split(dataset)
    n_classes = len(dataset.split_class_ids(split))
    sampler = controls.pick_sampler(dataset, "uniform")
    drawn = {"split": split, "sampler": sampler}
    fits = fitting.fit(dataset, drawn, draw.IMAGE_DEFAULTS, [found.backbone], varied=True)
    settings: dict[str, Any] = controls.pick_sampler_settings(sampler, n_classes, of=(dataset, split), **fits.values)
    settings |= controls.pick_images(sampler, controls.pairs(), **fits.values)
    controls.say_fit(fits, settings)
    settings |= controls.pick_groups(dataset)
    settings |= {"n_tasks": controls.pick(N_TASKS.with_(default=100)), "seed": controls.pick(SEED)}
    position = int(controls.pick(POSITION.with_(high=int(settings["n_tasks"]) - 1), about=DRAWN))
    recipe = draw.recipe_for(dataset, split=split, sampler=sampler, **settings)
    tasks = _drawn(dataset, recipe, found.backbone)
    task = study.single_task(tasks, position)
    return task, task_ids.name_task(dataset, tasks, position, recipe.values, (found.backbone,))


@caching.cache_data("Drawing tasks", 16, hashes={draw.Recipe: repr})
def _drawn(dataset: Dataset, recipe: draw.Recipe, backbone: str) -> Tasks:
    return draw.sample_testbed(dataset, recipe, usable=features.load(dataset, backbone).image_ids).tasks


# What is chosen


def _chosen(dataset: Dataset) -> int | None:
    """The image with the ring, kept in the link as image."""
    asked, state = links.requested_for(IMAGE.name), st.session_state
    if asked is not None or state.get("mapped_dataset") != dataset.name:
        state["mapped_dataset"], state["mapped_image"] = dataset.name, links.image_id(asked, dataset)
    image_id = state["mapped_image"]
    links.keep(IMAGE.name, None if image_id is None else str(image_id))
    return image_id


def _mark(image_id: int) -> None:
    st.session_state["mapped_image"] = image_id


def _side(
    dataset: Dataset, found: maps.FeatureMap, selected: list[int], task: Tasks | None, named: TaskId | None
) -> None:
    """The images drawn around, else the task's, else the one in the link."""
    chosen = st.session_state.get("mapped_image")
    clicked = selected[0] if len(selected) == 1 else None
    if len(selected) > 1:
        _wall(dataset, selected)
    elif task is not None and clicked is None:
        _task(dataset, task)
        page_links.from_task(dataset, task, 0, found.backbone, named=named, on_map=False)
    elif chosen is None and clicked is None:
        st.info("Draw around some points, or click one: their images show here.", icon="✏️")
        _what_is_shared(dataset, found)
    if clicked != st.session_state.get("mapped_click"):
        st.session_state["mapped_click"] = clicked
        if clicked is not None and clicked != chosen:
            _mark(clicked)
            st.rerun()
    if chosen is not None:
        _card(dataset, chosen)


def _agreement(dataset: Dataset, found: maps.FeatureMap) -> list[NeighbourAgreement]:
    return caching.cached_call(study.shared, dataset, found, words="Looking at neighbours on the map", keep=16)


def _what_is_shared(dataset: Dataset, found: maps.FeatureMap) -> None:
    shared = _agreement(dataset, found)
    if not shared:
        return
    st.markdown("**What neighbours on the map share**")
    export.chart(
        "What neighbours on the map share",
        figures.plot_shared(shared[:MOST_BARS]),
        key=SHARED,
        config={"displayModeBar": False},
        sets=COLOUR,
    )
    thirds = " Numbers agree when both are in the same third of all images: low, middle or high."
    some = f" {len(shared) - MOST_BARS} more are nearer to chance." if len(shared) > MOST_BARS else ""
    st.caption(
        f"How many of the {maps.NEIGHBOURS} images nearest to an image on the map agree with it, sorted by how far "
        f"that is above chance on the way to 100%.{some}{thirds if any(one.thirds for one in shared) else ''} Click a "
        "bar to colour the map by it."
    )


def _wall(dataset: Dataset, selected: list[int]) -> None:
    names = dataset.classes["class_name"].astype(str).to_numpy()
    of_image = dataset.image_class_ids()
    counts = np.bincount(of_image[selected], minlength=dataset.n_classes)
    top = np.argsort(-counts, kind="stable")[:4]
    most = ", ".join(f"{escape(names[c])} ({counts[c]:,})" for c in top if counts[c])
    st.markdown(f"**{len(selected):,} images chosen, of {int((counts > 0).sum()):,} classes.** Most of them: {most}.")
    few = np.array(selected)[np.unique(np.linspace(0, len(selected) - 1, MOST_TILES).round().astype(int))]
    tiles = [Tile(int(i), str(names[of_image[i]])) for i in few]
    gallery(dataset, tiles, key=f"map_wall_{dataset.name}", tile_px=72, on_click=_mark)
    if len(few) < len(selected):
        st.caption(f"{len(few):,} of them, spread evenly over all.")
    if st.session_state.get(OUTLINE.name, "").count("_") + 1 == study.MAX_CORNERS:
        st.caption(f"The outline is kept with {study.MAX_CORNERS} corners, so that it fits into the link.")
    if st.session_state.get(OUTLINE.name):
        st.button("Forget the outline", key="forget_around", on_click=_forget_around)
    together = [int(c) for c in np.argsort(-counts, kind="stable")[:N_BUILT] if counts[c]]
    page_links.to_classes(dataset, together, "Build a task of the classes that meet here")


def _task(dataset: Dataset, task: Tasks) -> None:
    names = dataset.classes["class_name"].astype(str).to_numpy()
    rows = []
    for kind, of in (("support", task.support[0]), ("query", task.query[0])):
        for way, class_id in enumerate(task.class_ids[0]):
            ids = of[way][of[way] != PAD] if class_id != PAD else []
            if len(ids):
                title = f"{'Support' if kind == 'support' else 'Query'} images" if not way else ""
                tiles = [Tile(int(i)) for i in ids[:12]]
                rows.append(Row(str(names[class_id]), tiles, kind=kind, section=title))  # type: ignore[arg-type]
    task_rows(dataset, rows[:24], key=f"map_task_{dataset.name}", tile_px=44, on_click=_mark)


def _card(dataset: Dataset, image_id: int) -> None:
    """One image: what it is, and the way to all about it."""
    name = str(dataset.classes["class_name"].iat[int(dataset.image_class_ids()[image_id])])
    st.markdown(f"**{escape(name)}** · image {image_id:,}")
    picture, about = st.columns([2, 3])
    if dataset.has_pixels:
        try:
            image = datasets.open_image(dataset, image_id)
            image.thumbnail((320, 320))
            picture.image(image, width=150)
        except FsvizError as error:
            picture.caption(escape(access.without_paths(str(error))))
    if dataset.images is not None:
        row = filtering.image_row(dataset, image_id)
        told = {k: v for k, v in row.items() if k not in ("class", "image", "file") and v is not None}
        values = [f"{escape(k.replace('_', ' '))} {escape(_readable(v))}" for k, v in told.items()]
        about.caption(" · ".join(values))
    with about:
        if dataset.has_pixels:
            shell.page_link("images", "Open in Images", shell.link(dataset, image=str(image_id)))
        own = dataset.distinct_names(np.arange(dataset.n_classes))[int(dataset.image_class_ids()[image_id])]
        if own not in st.session_state.get("classes", []):
            st.button("Highlight its class", icon="🖍️", key="highlight_class", on_click=_highlight, args=(own,))


def _highlight(name: str) -> None:
    st.session_state["classes"] = [*st.session_state.get("classes", []), name][-study.MAX_NAMES :]


def _readable(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
