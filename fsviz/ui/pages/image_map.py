"""The page Image map: all images of a dataset on a map of their features, and the selected ones."""

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
MAX_TILES = 90
MAX_BARS = 10
N_BUILT = 5  # classes of a task that is created from the selected images
SAMPLED = "drawn"
OUTLINE = Setting("around", "Outline", "Corners of the box or lasso whose images are shown.", "text", "")
COLOUR = Setting("colour", "Colour by", "", "choice", study.BY_CLASS)
RUN = Setting(
    "run", "Run", "A finished evaluation; the colour is how often each image is classified correctly.", "choice", ""
)
TESTBED = Setting("testbed", "Show a task", "Highlights its support and query images.", "choice", "")
POSITION = Setting("position", "Task number", "Position in the testbed, from 0.", "int", 0)


def _of_map(words: str | bool = False, max_entries: int = 16) -> Any:
    """`cache_data` for functions of a map."""
    return caching.cache_data(words, max_entries, {maps.FeatureMap: lambda feature_map: feature_map.cache_key})


def show(dataset: Dataset) -> None:
    backbones = shell.known_backbones(dataset)
    with shell.side():
        backbone = controls.pick_backbone(backbones, help="The network whose features are mapped.")
    export.command("map", dataset.name, "--backbone", backbone)
    feature_map = _map(dataset, backbone)
    with shell.side():
        by, title = _pick_colour(dataset)
        class_ids = _pick_classes(dataset)
        task, task_id = _pick_task(dataset, feature_map)
    _headline(dataset, feature_map, task)
    _clusters(dataset, feature_map, by)
    left, right = shell.responsive_columns("feature_map", [12, 7], gap="large")
    with left:
        selected = _figure(dataset, feature_map, by, title, class_ids, task)
        _caption()
        _offer_full_map(dataset, backbone, feature_map)
    with right:
        _side(dataset, feature_map, selected, task, task_id)


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
    """The stored map, or else a fast one computed now."""
    feature_map = _stored_map(dataset, backbone, maps.stamp(dataset, backbone))
    if feature_map is not None:
        return feature_map
    spec = {"dataset": dataset.name, "backbone": backbone, "keep": access.can("save")}
    return caching.compute_with_progress(study.fast_map, spec, "Computing the map")


@caching.cache_data(most=8)
def _stored_map(dataset: Dataset, backbone: str, stamp: int) -> maps.FeatureMap | None:
    return maps.find(dataset, backbone)


def _headline(dataset: Dataset, feature_map: maps.FeatureMap, task: Tasks | None) -> None:
    same = next((item for item in _agreement(dataset, feature_map) if item.by == study.BY_CLASS), None)
    excluded = f" {feature_map.left_out:,} more are excluded: their features are not finite numbers."
    numbers = [
        HeadlineNumber.count(
            "images",
            "Images on the map",
            len(feature_map.image_ids),
            help=f"Images with features of this backbone.{excluded if feature_map.left_out else ''}",
        ),
        HeadlineNumber(
            "kept",
            "Neighbours preserved",
            100 * feature_map.kept,
            digits=0,
            note=f"{study.percent(feature_map.chance)} expected by chance",
            help=f"Share of each image's {maps.NEIGHBOURS} nearest neighbours (full features) that are still among its "
            f"{maps.NEIGHBOURS} nearest on the map. Mean over {feature_map.measured:,} images.",
        ),
        HeadlineNumber(
            "same_class",
            "Same-class neighbours",
            100.0 if same is None else 100 * same.share,
            digits=0,
            note="only one class" if same is None else f"{study.percent(same.chance)} expected by chance",
            help=f"Share of the {maps.NEIGHBOURS} nearest images on the map that have the same class.",
        ),
    ]
    if task is None:
        n_classes = len(np.unique(dataset.image_class_ids()[feature_map.image_ids]))
        numbers.append(HeadlineNumber.count("classes", "Classes", n_classes))
    else:
        n_support, n_query = int((task.support != PAD).sum()), int((task.query != PAD).sum())
        note = f"{n_support:,} support, {n_query:,} query"
        numbers.append(HeadlineNumber.worded("task", "Task", task.setting, note=note))
    show_numbers(numbers, "feature_map_numbers")


def _clusters(dataset: Dataset, feature_map: maps.FeatureMap, by: str) -> None:
    """Shows a sentence about the clusters of the map, and a button to colour the map by it."""
    shared = _agreement(dataset, feature_map)
    sentence = f"**{escape(study.cluster_headline(shared))}**"
    if not (shared and shared[0].beyond >= study.LITTLE and shared[0].by != by):
        st.markdown(sentence)
    else:
        left, right = shell.responsive_columns("feature_map_islands", [9, 2], vertical_alignment="center")
        left.markdown(sentence)
        with right:
            st.button(
                escape(f"Colour by {shared[0].title}"),
                icon="🎨",
                key="colour_by_shared",
                on_click=_colour_by,
                args=(shared[0].by,),
            )


def _colour_by(by: str) -> None:
    st.session_state[COLOUR.name] = by


def _figure(
    dataset: Dataset, feature_map: maps.FeatureMap, by: str, title: str, class_ids: list[int], task: Tasks | None
) -> list[int]:
    """Draws the map; returns the images that are selected on it."""
    chosen, outline = _chosen(dataset), _outline(dataset, feature_map)
    colouring = _colouring(dataset, feature_map, by, title, class_ids)
    names = dataset.classes["class_name"].astype(str).to_numpy()
    of_image = dataset.image_class_ids()[feature_map.image_ids]
    class_names = names[of_image].tolist() if len(of_image) <= figures.MAX_TEXTS else None
    roles = None if task is None else study.roles(task, feature_map.image_ids)
    spots = [] if task is None else study.role_names(dataset, feature_map, task)
    figure = figures.plot_map(
        feature_map.xy,
        feature_map.image_ids,
        colouring,
        class_names,
        roles,
        spots,
        chosen,
        as_accuracy=by == study.BY_RUN,
        view=f"{dataset.name} {feature_map.backbone} {feature_map.kind}",
        outline=outline,
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
        hover.thumbnails(dataset, CHART, _ids(feature_map))
    on_map = _ids(feature_map)
    if outline is not None:
        return study.images_inside(feature_map, outline).tolist()
    return [image_id for image_id in clicks.data_in(event) if image_id in on_map]


def _outline(dataset: Dataset, feature_map: maps.FeatureMap) -> np.ndarray | None:
    """The selected region of this map, kept in the link as around; None for none."""
    requested, state = links.requested_for(OUTLINE.name), st.session_state
    map_key = " ".join(feature_map.cache_key)
    if requested is not None or state.get("around_of") != map_key:
        state["around_of"], state[OUTLINE.name] = map_key, requested or ""
    corners = study.outline_in(state[OUTLINE.name])
    links.keep(OUTLINE.name, state[OUTLINE.name] if corners is not None else None)
    return corners


def _clear_outline() -> None:
    st.session_state[OUTLINE.name] = ""


@_of_map()
def _ids(feature_map: maps.FeatureMap) -> frozenset[int]:
    return frozenset(feature_map.image_ids.tolist())


def _caption() -> None:
    st.caption(
        "t-SNE: short distances are meaningful; cluster sizes, long distances and axes are not. Drag to select images, "
        "scroll to zoom, click an image for its details.",
        help="Features are scaled to unit length first.",
    )


def _offer_full_map(dataset: Dataset, backbone: str, feature_map: maps.FeatureMap) -> None:
    if feature_map.kind == maps.BETTER:
        return
    spec = {"study": "feature_map", "dataset": dataset.name, "backbone": feature_map.backbone}
    text = (
        "**Fast map.** A full map uses all images and ten times the steps. It runs in the background and replaces this "
        "map."
    )
    run_panel.offer(spec, jobs.find(spec), text, start="Compute full map")


# Colours


def _pick_colour(dataset: Dataset) -> tuple[str, str]:
    """The attribute that colours the points, and the run if it is one ("RUN/ENTRY")."""
    runs = _runs(dataset)
    choices = study.colours(dataset) | ({study.BY_RUN: "Accuracy in a run"} if runs else {})
    by = str(controls.pick(COLOUR.with_(choices=choices, default=study.default_colour(dataset)), about=dataset.name))
    if by != study.BY_RUN:
        links.drop_from_link(RUN.name)
        return by, ""
    return by, str(controls.pick(RUN.with_(choices=runs, default=next(iter(runs))), about=dataset.name))


def _runs(dataset: Dataset) -> dict[str, str]:
    """Methods of finished evaluations of the dataset, "RUN/ENTRY" -> title, newest first."""
    methods = {}
    for run in jobs.list_runs("evaluate"):
        if run.state == "finished" and run.spec.get("dataset") == dataset.name and evaluate.is_complete(run.spec):
            for which, entry in enumerate(evaluate.entries(run.spec)):
                when = run_panel.when(run.created)
                part = evaluate.run_testbeds(run.spec)[entry.testbed]
                seen = "" if len(run.spec["backbones"]) == 1 else f" on {title_of(entry.backbone)}"
                methods[f"{run.id}/{which}"] = f"{entry.label}{seen}, {part['testbed_name']}, {when}"
    return dict(list(methods.items())[:60])


def _pick_classes(dataset: Dataset) -> list[int]:
    """Classes to highlight if points are coloured by class."""
    names = dataset.distinct_names(np.arange(dataset.n_classes))
    selections.pick_classes(names, study.MAX_NAMES)
    picked = st.multiselect(
        "Highlight classes",
        names,
        key="classes",
        placeholder="none",
        max_selections=study.MAX_NAMES,
        **controls.BY_TYPING,
        help=f"Up to {study.MAX_NAMES} classes in colour, the rest in grey.",
    )
    position = {name: i for i, name in enumerate(names)}
    return [position[name] for name in picked]


def _colouring(dataset: Dataset, feature_map: maps.FeatureMap, by: str, run: str, class_ids: list[int]) -> Colouring:
    if class_ids:
        return _cached_colouring(dataset, feature_map, study.BY_CLASS, tuple(class_ids))
    if by != study.BY_RUN:
        return _cached_colouring(dataset, feature_map, by, ())
    run_id, _, which = run.rpartition("/")
    accuracy, times = _accuracy(run_id, int(which), str(jobs.folder(run_id)), len(dataset.image_class_ids()))
    n_queries = int((times > 0).sum())
    st.caption(
        f"Colour: how often each image is classified correctly in run {escape(run_id)}. {n_queries:,} images were "
        f"queries, {times[times > 0].mean():.1f} times each on average."
    )
    return Colouring("correct", numbers=accuracy[feature_map.image_ids])


@_of_map("Colouring the map", 32)
def _cached_colouring(dataset: Dataset, feature_map: maps.FeatureMap, by: str, class_ids: tuple[int, ...]) -> Colouring:
    return study.colouring(dataset, feature_map.image_ids, by, class_ids)


@caching.cache_data("Reading the run", 16)
def _accuracy(run_id: str, which: int, folder: str, n_images: int) -> tuple[np.ndarray, np.ndarray]:
    spec = jobs.spec(run_id)
    chunks = jobs.chunks(run_id, evaluate.chunks_of(spec, which))
    return study.accuracy_of_images(spec, chunks, which, n_images)


# A task


def _pick_task(dataset: Dataset, feature_map: maps.FeatureMap) -> tuple[Tasks | None, TaskId | None]:
    """The highlighted task, of a testbed or sampled by settings, and its id in links; None for none."""
    task_name = st.query_params.get(task_ids.TASK_NAME.name)
    if task_name:  # TESTBED:POSITION
        del st.query_params[task_ids.TASK_NAME.name]
        testbed, _, number = task_name.rpartition(":")
        st.query_params["testbed"], st.query_params["position"] = testbed or task_name, number or "0"
        st.rerun()
    images = [str(links.value_of(s, s.name, dataset.name)) for s in (custom_task.SUPPORT, custom_task.QUERY)]
    choices = {"": "none", SAMPLED: "sampled here", **{name: name for name in evaluate.testbeds(dataset)}}
    choices |= {custom_task.LINKED: "from the link"} if all(images) else {}
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
            return custom_task.of_images(dataset, features.load(dataset, feature_map.backbone), support, query), None
        if source != SAMPLED:
            links.drop_from_link(*draw.SETTINGS)
            position = int(controls.pick(POSITION, about=source))
            task = study.task_at(dataset, f"{source}:{position}")
            return task, task_ids.parse_task_id(f"{source}:{position}")
        return _draw(dataset, feature_map)
    except FsvizError as error:
        st.warning(escape(shell.with_setting_titles(error)), icon="⚠️")
        return None, None


def _draw(dataset: Dataset, feature_map: maps.FeatureMap) -> tuple[Tasks, TaskId | None]:
    split = shell.pick_split(dataset)
    n_classes = len(dataset.split_class_ids(split))
    sampler = controls.pick_sampler(dataset, "uniform")
    requested = {"split": split, "sampler": sampler}
    fits = fitting.fit(dataset, requested, draw.IMAGE_DEFAULTS, [feature_map.backbone], varied=True)
    settings: dict[str, Any] = controls.pick_sampler_settings(sampler, n_classes, of=(dataset, split), **fits.values)
    settings |= controls.pick_images(sampler, controls.pairs(), **fits.values)
    controls.say_fit(fits, settings)
    settings |= controls.pick_groups(dataset)
    settings |= {"n_tasks": controls.pick(N_TASKS.with_(default=100)), "seed": controls.pick(SEED)}
    position = int(controls.pick(POSITION.with_(high=int(settings["n_tasks"]) - 1), about=SAMPLED))
    recipe = draw.recipe_for(dataset, split=split, sampler=sampler, **settings)
    tasks = _sample(dataset, recipe, feature_map.backbone)
    task = study.single_task(tasks, position)
    return task, task_ids.name_task(dataset, tasks, position, recipe.values, (feature_map.backbone,))


@caching.cache_data("Sampling tasks", 16, hashes={draw.Recipe: repr})
def _sample(dataset: Dataset, recipe: draw.Recipe, backbone: str) -> Tasks:
    return draw.sample_testbed(dataset, recipe, usable=features.load(dataset, backbone).image_ids).tasks


# The selection


def _chosen(dataset: Dataset) -> int | None:
    """The image with the ring, kept in the link as image."""
    requested, state = links.requested_for(IMAGE.name), st.session_state
    if requested is not None or state.get("mapped_dataset") != dataset.name:
        state["mapped_dataset"], state["mapped_image"] = dataset.name, links.image_id(requested, dataset)
    image_id = state["mapped_image"]
    links.keep(IMAGE.name, None if image_id is None else str(image_id))
    return image_id


def _mark(image_id: int) -> None:
    st.session_state["mapped_image"] = image_id


def _side(
    dataset: Dataset, feature_map: maps.FeatureMap, selected: list[int], task: Tasks | None, task_id: TaskId | None
) -> None:
    """Shows the selected images, else the task's images, else the image of the link."""
    chosen = st.session_state.get("mapped_image")
    clicked = selected[0] if len(selected) == 1 else None
    if len(selected) > 1:
        _wall(dataset, selected)
    elif task is not None and clicked is None:
        _task(dataset, task)
        page_links.from_task(dataset, task, 0, feature_map.backbone, named=task_id, on_map=False)
    elif chosen is None and clicked is None:
        st.info("Select points to see their images.", icon="✏️")
        _shared_attributes(dataset, feature_map)
    if clicked != st.session_state.get("mapped_click"):
        st.session_state["mapped_click"] = clicked
        if clicked is not None and clicked != chosen:
            _mark(clicked)
            st.rerun()
    if chosen is not None:
        _card(dataset, chosen)


def _agreement(dataset: Dataset, feature_map: maps.FeatureMap) -> list[NeighbourAgreement]:
    return caching.cached_call(study.shared, dataset, feature_map, words="Comparing neighbours on the map", keep=16)


def _shared_attributes(dataset: Dataset, feature_map: maps.FeatureMap) -> None:
    shared = _agreement(dataset, feature_map)
    if not shared:
        return
    st.markdown("**What neighbours share**")
    export.chart(
        "What neighbours share",
        figures.plot_shared(shared[:MAX_BARS]),
        key=SHARED,
        config={"displayModeBar": False},
        sets=COLOUR,
    )
    hidden = f" {len(shared) - MAX_BARS} more are closer to chance." if len(shared) > MAX_BARS else ""
    thirds = " (Numbers: in the same third.)" if any(agreement.thirds for agreement in shared) else ""
    st.caption(
        f"Share of the {maps.NEIGHBOURS} nearest images with the same value; line: expected by chance.{thirds}{hidden} "
        "Click a bar to colour the map.",
        help="Sorted by how far the share is above chance, as a part of what is possible.",
    )


def _wall(dataset: Dataset, selected: list[int]) -> None:
    names = dataset.classes["class_name"].astype(str).to_numpy()
    of_image = dataset.image_class_ids()
    counts = np.bincount(of_image[selected], minlength=dataset.n_classes)
    top = np.argsort(-counts, kind="stable")[:4]
    frequent = ", ".join(f"{escape(names[c])} ({counts[c]:,})" for c in top if counts[c])
    n_classes = int((counts > 0).sum())
    st.markdown(f"**{len(selected):,} images of {n_classes:,} classes selected.** Most frequent: {frequent}")
    few = np.array(selected)[np.unique(np.linspace(0, len(selected) - 1, MAX_TILES).round().astype(int))]
    tiles = [Tile(int(i), str(names[of_image[i]])) for i in few]
    gallery(dataset, tiles, key=f"map_wall_{dataset.name}", tile_px=72, on_click=_mark)
    if len(few) < len(selected):
        st.caption(f"{len(few):,} of them are shown.")
    if st.session_state.get(OUTLINE.name):
        st.button("Clear selection", key="forget_around", on_click=_clear_outline)
    together = [int(c) for c in np.argsort(-counts, kind="stable")[:N_BUILT] if counts[c]]
    page_links.to_classes(dataset, together, "Create a task from these classes")


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
    """Shows an image with its attributes and a link to its details."""
    name = str(dataset.classes["class_name"].iat[int(dataset.image_class_ids()[image_id])])
    st.markdown(f"**{escape(name)}** · image {image_id:,}")
    left, right = st.columns([2, 3])
    if dataset.has_pixels:
        try:
            image = datasets.open_image(dataset, image_id)
            image.thumbnail((320, 320))
            left.image(image, width=150)
        except FsvizError as error:
            left.caption(escape(access.without_paths(str(error))))
    if dataset.images is not None:
        row = filtering.image_row(dataset, image_id)
        attributes = {k: v for k, v in row.items() if k not in ("class", "image", "file") and v is not None}
        values = [f"{escape(k.replace('_', ' '))} {escape(_readable(v))}" for k, v in attributes.items()]
        right.caption(" · ".join(values))
    with right:
        if dataset.has_pixels:
            shell.page_link("images", "Open in Images", shell.link(dataset, image=str(image_id)))
        class_name = dataset.distinct_names(np.arange(dataset.n_classes))[int(dataset.image_class_ids()[image_id])]
        if class_name not in st.session_state.get("classes", []):
            st.button("Highlight class", icon="🖍️", key="highlight_class", on_click=_highlight, args=(class_name,))


def _highlight(name: str) -> None:
    st.session_state["classes"] = [*st.session_state.get("classes", []), name][-study.MAX_NAMES :]


def _readable(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
