"""Figures of the image map: a point per image, a task or a selection emphasised, and attributes of neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from fsviz.figures.palette import ACCENT, MEANING, QUIET, SERIES, meaning
from fsviz.records import PAD, Colouring, NeighbourAgreement
from fsviz.records.image_map import MapLabel, MappedTask
from fsviz.text import escape_plotly, short_names, shorten

SYMBOLS = (
    "circle",
    "square",
    "diamond",
    "triangle-up",
    "triangle-down",
    "pentagon",
    "hexagon",
    "star",
    "hexagram",
    "cross",
)
SUPPORT, CORRECT, INCORRECT = "star", "circle", "x"  # symbols of the images of a task
MAX_TEXTS = 20_000  # points whose hover texts are sent along; with more, only the picture is shown
LAST = 2000  # in the legend
MAX_NAME = 22  # letters of a class in the legend
DIMMED = 0.14  # opacity of images that are not selected
TITLES = {CORRECT: "query, correct", INCORRECT: "query, incorrect"}
LEGEND = {"x": 1.0, "xanchor": "left", "y": 1.0, "yanchor": "top", "itemsizing": "constant", "font": {"size": 11}}
LIGHT_TO_DARK = "Cividis"  # colour-blind safe
INCORRECT_TO_CORRECT = [[0, MEANING["incorrect"]], [0.5, "#D9C9A8"], [1, MEANING["correct"]]]


def plot_map(
    xy: np.ndarray,
    image_ids: np.ndarray,
    colouring: Colouring,
    texts: Sequence[str] | None = None,
    task: MappedTask | None = None,
    labels: Sequence[MapLabel] = (),
    marked: int | None = None,
    emphasised: np.ndarray | None = None,
    as_accuracy: bool = False,
    view: str = "",
    height: int = 506,
    outline: np.ndarray | None = None,
) -> go.Figure:
    """Map of n images.

    xy           (n, 2) their positions
    texts        (n,) hover texts of the images
    task         a task whose images are coloured by class; all others are faint
    labels       names to write on the map
    marked       image_id with a ring around it
    emphasised   image_ids that stay as they are; all others are dimmed
    as_accuracy  whether the numbers are accuracies
    view         zoom and position are kept as long as this stays the same
    outline      (m, 2) corners of the selected region
    """
    figure = go.Figure()
    hovertexts = None
    if texts is not None and len(texts) <= MAX_TEXTS:
        hovertexts = np.array([escape_plotly(text) for text in texts], dtype=object)
    points = _Points(figure, xy, image_ids, hovertexts, emphasised)
    size = 4 if len(xy) > 20_000 else 5 if len(xy) > 2_000 else 8
    if task is not None:
        points.add(np.arange(len(xy)), "other images", {"color": QUIET, "size": size, "opacity": 0.18}, listed=False)
        _add_task(points, task)
    elif colouring.is_numeric:
        _add_numbers(points, colouring, size, as_accuracy)
    else:
        _add_named(points, colouring, size)
    for label in labels:
        _write(figure, label)
    at = np.flatnonzero(image_ids == (PAD if marked is None else marked))
    if len(at):
        ring = {"size": 22, "color": "rgba(0,0,0,0)", "line": {"color": ACCENT, "width": 3}}
        figure.add_scatter(
            x=xy[at, 0], y=xy[at, 1], mode="markers", marker=ring, hoverinfo="skip", showlegend=False, name="marked"
        )
    if outline is not None:
        corners = "L".join(f"{x:g},{y:g}" for x, y in outline)
        figure.add_shape(type="path", path=f"M{corners}Z", line={"color": ACCENT, "width": 2, "dash": "dot"})
    margin = 0.03 * np.ptp(xy, axis=0)
    (left, low), (right, high) = (xy.min(axis=0) - margin).tolist(), (xy.max(axis=0) + margin).tolist()
    figure.update_xaxes(visible=False, range=[left, right])
    figure.update_yaxes(visible=False, range=[low, high], scaleanchor="x")
    figure.update_layout(
        height=height,
        margin={"l": 0, "r": 0, "t": 8, "b": 0},
        legend=LEGEND,
        clickmode="event+select",
        dragmode="pan",  # Streamlit reports no clicks on points while a drag selects
        hovermode="closest",
        uirevision=view,
        selectionrevision=view,
    )
    return figure


def plot_shared(attributes: Sequence[NeighbourAgreement]) -> go.Figure:
    """Share of neighbours with the same value of each attribute, with the share expected by chance as a line."""
    names = [escape_plotly(f"{item.title} (third)" if item.thirds else item.title) for item in attributes]
    figure = go.Figure()
    figure.add_bar(
        x=[item.share for item in attributes],
        y=names,
        orientation="h",
        marker={"color": [ACCENT, *[QUIET] * (len(attributes) - 1)]},
        text=[f"{item.share:.0%}" for item in attributes],
        textposition="outside",  # inside, a number may lie under the line of chance
        textangle=0,
        cliponaxis=False,
        customdata=[[item.by, item.chance] for item in attributes],
        hovertemplate="%{y}: %{x:.0%} of neighbours share it, %{customdata[1]:.1%} expected by chance<extra></extra>",
    )
    figure.add_scatter(
        x=[item.chance for item in attributes],
        y=names,
        mode="markers",
        marker={"symbol": "line-ns", "size": 14, "line": {"width": 2, "color": meaning("incorrect")}},
        hoverinfo="skip",
        name="expected by chance",
    )
    figure.update_xaxes(
        range=[0, 1.15],
        tickvals=[0, 0.5, 1],
        tickformat=".0%",
        title="neighbours with the same value<br>(red line: expected by chance)",
    )
    figure.update_yaxes(autorange="reversed", type="category", ticksuffix=" ")
    figure.update_layout(
        height=80 + 28 * len(attributes), margin={"l": 0, "r": 8, "t": 8, "b": 0}, showlegend=False, bargap=0.35
    )
    return figure


@dataclass(frozen=True)
class _Points:
    """The figure of a map, to which traces of its images are added."""

    figure: go.Figure
    xy: np.ndarray
    image_ids: np.ndarray
    hovertexts: np.ndarray | None
    emphasised: np.ndarray | None

    def add(
        self,
        rows: np.ndarray,
        name: str,
        marker: Mapping[str, Any],
        details: str | Sequence[str] = "",
        listed: bool = True,
        **more: Any,
    ) -> None:
        """Adds one WebGL trace of images.

        details  what hovering adds to the text of an image, the same for all or one for each
        listed   whether the legend names it
        """
        if not len(rows):
            return
        item = "%{hovertext}" if self.hovertexts is not None else "image %{customdata}"
        texts = None if self.hovertexts is None else self.hovertexts[rows]
        if not isinstance(details, str):
            item, texts, details = "%{hovertext}", np.array(details, dtype=object), ""
        opacity = marker.get("opacity", 1)
        if self.emphasised is not None:
            more["selectedpoints"] = np.flatnonzero(np.isin(self.image_ids[rows], self.emphasised)).tolist()
        self.figure.add_scattergl(
            x=np.ascontiguousarray(self.xy[rows, 0]),
            y=np.ascontiguousarray(self.xy[rows, 1]),
            mode="markers",
            name=name,
            marker=dict(marker),
            showlegend=listed,
            customdata=self.image_ids[rows].astype(np.int32),
            hovertext=texts,
            hovertemplate=f"{item}{': ' if details else ''}{details}<extra></extra>",
            selected={"marker": {"opacity": 1, "size": marker["size"] + 3}},
            unselected={"marker": {"opacity": min(opacity, DIMMED)}},
            **more,
        )


def _add_task(points: _Points, task: MappedTask) -> None:
    """The images of a task: colour is the class, named once in the legend; the symbol is the role."""
    details = np.array([_task_text(task, i) for i in range(len(task.rows))], dtype=object)
    roles = (
        (SUPPORT, 15, task.is_support),
        (CORRECT, 9, ~task.is_support & task.is_correct),
        (INCORRECT, 9, ~task.is_support & ~task.is_correct),
    )
    names = short_names(task.names, MAX_NAME)
    for symbol, size, has_role in roles:
        for way, name in enumerate(names):
            here = np.flatnonzero(has_role & (task.way == way))
            line = {"color": "white", "width": 0.8}
            marker = {"color": SERIES[way % len(SERIES)], "symbol": symbol, "size": size, "line": line}
            group = {"legendgroup": f"class {way}"}
            points.add(
                task.rows[here],
                escape_plotly(name),
                marker,
                details[here].tolist(),
                symbol == SUPPORT,
                **group,
            )
    of_queries = (
        (("query", CORRECT),)
        if task.n_correct is None
        else ((TITLES[CORRECT], CORRECT), (TITLES[INCORRECT], INCORRECT))
    )
    for title, symbol in (("support", SUPPORT), *of_queries):
        marker = {"color": QUIET, "symbol": symbol, "size": 9}
        points.figure.add_scatter(x=[None], y=[None], mode="markers", name=title, marker=marker, hoverinfo="skip")


def _task_text(task: MappedTask, i: int) -> str:
    """The hover text of an image of a task."""
    name, predicted = escape_plotly(task.names[task.way[i]]), escape_plotly(task.predicted[i])
    if task.is_support[i]:
        return f"{name}: support"
    return f"{name}: query" + (f", predicted as {predicted}" if predicted else "")


def _add_named(points: _Points, colouring: Colouring, size: int) -> None:
    rest = np.flatnonzero(colouring.codes == PAD)
    alone = not colouring.names
    grey = {"color": QUIET, "size": size, "opacity": 0.55 if alone else 0.35}
    points.add(rest, f"{'images' if alone else 'other'} ({len(rest):,})", grey, legendrank=LAST)
    title = escape_plotly(colouring.title)
    of_classes = colouring.title == "class"
    entries = short_names(colouring.names, MAX_NAME) if of_classes else [shorten(name) for name in colouring.names]
    for code, (name, entry) in enumerate(zip(colouring.names, entries, strict=True)):
        here = np.flatnonzero(colouring.codes == code)
        colour = MEANING[name] if colouring.title == "split" and name in MEANING else SERIES[code % len(SERIES)]
        marker = {
            "color": colour,
            "symbol": SYMBOLS[code % len(SYMBOLS)],
            "size": size + (2 if len(rest) else 1),
            "opacity": 0.85,
        }
        details = "" if of_classes and points.hovertexts is not None else f"{title} {escape_plotly(name)}"
        points.add(here, f"{escape_plotly(entry)} ({len(here):,})", marker, details)


def _add_numbers(points: _Points, colouring: Colouring, size: int, as_accuracy: bool) -> None:
    finite = np.isfinite(colouring.numbers)
    rest, here = np.flatnonzero(~finite), np.flatnonzero(finite)
    title = escape_plotly(colouring.title)
    none = "never a query" if as_accuracy else f"no {title}"
    points.add(rest, f"{none} ({len(rest):,})", {"color": QUIET, "size": size, "opacity": 0.25})
    numbers = colouring.numbers[here]
    marker: dict[str, Any] = {
        "color": numbers.astype(np.float32),
        "colorscale": INCORRECT_TO_CORRECT if as_accuracy else LIGHT_TO_DARK,
        "size": size + 1,
        "opacity": 0.9,
        "colorbar": {"title": {"text": title, "side": "right"}, "thickness": 12, "len": 0.7},
    }
    if as_accuracy:
        marker |= {"cmin": 0, "cmax": 1}
        marker["colorbar"] |= {"tickformat": ".0%"}
    elif len(numbers):  # a few extremes would leave one colour to all the others
        marker |= {"cmin": float(np.quantile(numbers, 0.02)), "cmax": float(np.quantile(numbers, 0.98))}
    value = "%{marker.color:.0%}" if as_accuracy else "%{marker.color:.3g}"
    points.add(here, f"{title} ({len(here):,})", marker, f"{title} {value}", listed=bool(len(rest)))


def _write(figure: go.Figure, label: MapLabel) -> None:
    figure.add_annotation(
        x=label.x,
        y=label.y,
        text=escape_plotly(label.name),
        showarrow=False,
        font={"size": 11, "color": "#FFFFFF"},
        bgcolor="rgba(28,36,48,0.62)",
        borderpad=1,
    )
