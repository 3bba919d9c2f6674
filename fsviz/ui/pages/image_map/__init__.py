"""The page Image map: all images of a dataset on a map of their features, and the selected ones."""

from __future__ import annotations

import numpy as np
import streamlit as st

from fsviz import jobs
from fsviz.analyses import image_map as readings
from fsviz.features import maps
from fsviz.figures import feature_map as figures
from fsviz.records import Colouring, Dataset
from fsviz.records.image_map import MapLabel, MappedTask
from fsviz.settings import Setting
from fsviz.studies import feature_map as study
from fsviz.ui.pages.image_map import colours, selected, tasks
from fsviz.ui.parts import access, caching, clicks, controls, export, hover, links, run_panel, shell
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.clicks import Area, Click
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape

CHART = "feature_map"
OUTLINE = selected.OUTLINE
LABELS = Setting(
    "labels", "Names on the map", "Writes each name once, where a third or more of its images are.", "flag", True
)


def show(dataset: Dataset) -> None:
    backbones = shell.known_backbones(dataset)
    backbone = controls.pick_backbone(backbones, help="The network whose features are mapped.")
    export.command("map", dataset.name, "--backbone", backbone)
    feature_map = _map(dataset, backbone)
    agreements = cached_call(study.shared, dataset, feature_map, words="Comparing neighbours on the map", keep=16)
    n_classes = len(np.unique(dataset.image_class_ids()[feature_map.image_ids]))
    shell.answer(escape(study.cluster_headline(agreements)), escape(study.quality(feature_map, n_classes)))
    with shell.side():
        by, run = colours.pick(dataset, backbone, study.default_colour(dataset, agreements))
        class_ids = colours.pick_classes(dataset)
        picked = tasks.pick(dataset, feature_map)
        has_labels = bool(controls.pick(LABELS))
    task = None if picked is None else readings.map_task(dataset, feature_map, picked.tasks)
    left, right = shell.responsive_columns("feature_map", [12, 7], gap="large")
    with left:
        image_ids = _figure(dataset, feature_map, by, run, class_ids, task, has_labels)
        _caption(task)
        _offer_full_map(feature_map)
    with right:
        selected.show(dataset, feature_map, image_ids, picked, task, agreements)


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


def _figure(
    dataset: Dataset,
    feature_map: maps.FeatureMap,
    by: str,
    run: str,
    class_ids: list[int],
    task: MappedTask | None,
    has_labels: bool,
) -> list[int]:
    """Draws the map; returns the images that are selected on it."""
    image_id, outline = selected.marked_image(dataset), _outline(feature_map)
    inside = None if outline is None else study.images_inside(feature_map, outline)
    colouring = Colouring("class") if task else colours.colouring(dataset, feature_map, by, run, class_ids)
    names = dataset.classes["class_name"].astype(str).to_numpy()
    of_image = dataset.image_class_ids()[feature_map.image_ids]
    emphasised = inside if inside is not None or image_id is None or task is not None else np.array([image_id])
    figure = figures.plot_map(
        feature_map.xy,
        feature_map.image_ids,
        colouring,
        names[of_image].tolist() if len(of_image) <= figures.MAX_TEXTS else None,
        task,
        _labels(dataset, feature_map, by, class_ids, task) if has_labels else (),
        image_id,
        emphasised,
        as_accuracy=by == study.BY_RUN and not class_ids,
        view=f"{dataset.name} {feature_map.backbone} {feature_map.kind}",
        outline=outline,
    )
    event = export.chart(
        "Image map",
        figure,
        key=CHART,
        sets=Click(area=Area(OUTLINE, study.outline_text, clears=True)),
        selection_mode=("points", "box", "lasso"),
        config={"scrollZoom": True, "displaylogo": False, "displayModeBar": True},
    )
    on_map = _ids(feature_map)
    if dataset.has_pixels:
        hover.thumbnails(dataset, CHART, on_map)
    if inside is not None:
        return inside.tolist()
    return [i for i in clicks.data_in(event) if i in on_map]


def _labels(
    dataset: Dataset, feature_map: maps.FeatureMap, by: str, class_ids: list[int], task: MappedTask | None
) -> list[MapLabel]:
    """Names on the map: of the task's classes, of the highlighted classes, of contexts, or of classes."""
    if task is not None:
        return readings.task_labels(feature_map.xy, task)
    if class_ids:
        return readings.highlight_labels(dataset, feature_map, class_ids)
    if by == study.BY_CONTEXT:
        return cached_call(readings.context_labels, dataset, feature_map)
    return cached_call(readings.class_labels, dataset, feature_map)


def _outline(feature_map: maps.FeatureMap) -> np.ndarray | None:
    """The selected region of this map, in the link as around; None for none."""
    requested, state = links.requested_for(OUTLINE.name), st.session_state
    map_key = " ".join(feature_map.cache_key)
    if requested is not None or state.get("around_of") != map_key:
        state["around_of"], state[OUTLINE.name] = map_key, requested or ""
    corners = study.outline_in(state[OUTLINE.name])
    links.keep(OUTLINE.name, state[OUTLINE.name] if corners is not None else None)
    return corners


@caching.cache_data(False, 16, {maps.FeatureMap: lambda feature_map: feature_map.cache_key})
def _ids(feature_map: maps.FeatureMap) -> frozenset[int]:
    return frozenset(feature_map.image_ids.tolist())


def _caption(task: MappedTask | None) -> None:
    how = "Click an image for its details; the box and the lasso above the map select several."
    if task is not None:
        st.caption(f"★ support · ● query, correct · ✕ query, incorrect. Colour: class. {how}")
        return
    st.caption(
        f"t-SNE: short distances are meaningful; cluster sizes, long distances and axes are not. {how}",
        help="Features are scaled to unit length first. Scroll to zoom, drag to move.",
    )


def _offer_full_map(feature_map: maps.FeatureMap) -> None:
    if feature_map.kind == maps.BETTER:
        return
    spec = {"study": "feature_map", "dataset": feature_map.dataset, "backbone": feature_map.backbone}
    text = (
        "**Fast map.** A full map uses all images and ten times the steps. It runs in the background and replaces this "
        "map."
    )
    run_panel.offer(spec, jobs.find(spec), text, start="Compute full map")
