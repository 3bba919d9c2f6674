"""Figures of the feature map: a point per image, with a task or one image marked, and attributes of neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from fsviz.figures.palette import ACCENT, MEANING, QUIET, SERIES, meaning
from fsviz.records import PAD, Colouring, NeighbourAgreement
from fsviz.text import escape_plotly

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
ROLE_SYMBOLS = {"support": "star", "query": "diamond"}
MAX_TEXTS = 20_000  # points whose hover texts are sent along; with more, only the picture is shown
LIGHT_TO_DARK = "Cividis"  # colour-blind safe
INCORRECT_TO_CORRECT = [[0, MEANING["incorrect"]], [0.5, "#D9C9A8"], [1, MEANING["correct"]]]


def plot_map(
    xy: np.ndarray,
    image_ids: np.ndarray,
    colouring: Colouring,
    texts: Sequence[str] | None = None,
    roles: Colouring | None = None,
    role_names: Sequence[tuple[str, float, float]] = (),
    chosen: int | None = None,
    as_accuracy: bool = False,
    view: str = "",
    height: int = 640,
    outline: np.ndarray | None = None,
) -> go.Figure:
    """Images (n, 2) on a map.

    texts        (n,) hover texts of the images
    roles        support and query images of a task: they are highlighted, all others faint
    role_names   class names and positions of the support images above which they are written
    chosen       image_id with a ring around it
    as_accuracy  whether the numbers are accuracies
    view         zoom and position are kept as long as this stays the same
    outline      (m, 2) corners of the selected region
    """
    figure = go.Figure()
    hovertexts = None
    if texts is not None and len(texts) <= MAX_TEXTS:
        hovertexts = np.array([escape_plotly(text) for text in texts], dtype=object)
    size = 4 if len(xy) > 20_000 else 5 if len(xy) > 2_000 else 8
    quiet = roles is not None
    if colouring.is_numeric:
        _add_numbers(figure, xy, image_ids, colouring, hovertexts, size, quiet, as_accuracy)
    else:
        _add_named(figure, xy, image_ids, colouring, hovertexts, size, quiet)
    if roles is not None:
        for code, name in enumerate(roles.names):
            here = np.flatnonzero(roles.codes == code)
            marker: dict[str, Any] = {
                "color": meaning(name),
                "symbol": ROLE_SYMBOLS[name],
                "size": 15 if name == "support" else 10,
            }
            marker["line"] = {"color": "white", "width": 1}
            _add(figure, xy, image_ids, here, hovertexts, f"{name} ({len(here):,})", marker, f"{name} of the task")
    for name, x, y in role_names:
        _write(figure, x, y, name, 11, above=15)
    at = np.flatnonzero(image_ids == (PAD if chosen is None else chosen))
    if len(at):
        ring = {"size": 22, "color": "rgba(0,0,0,0)", "line": {"color": ACCENT, "width": 3}}
        figure.add_scatter(
            x=xy[at, 0], y=xy[at, 1], mode="markers", marker=ring, hoverinfo="skip", showlegend=False, name="chosen"
        )
    if outline is not None:
        corners = "L".join(f"{x:g},{y:g}" for x, y in outline)
        figure.add_shape(type="path", path=f"M{corners}Z", line={"color": ACCENT, "width": 2, "dash": "dot"})
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False, scaleanchor="x")
    figure.update_layout(
        height=height,
        margin={"l": 0, "r": 0, "t": 8, "b": 0},
        legend={"orientation": "h", "y": 0.0, "yanchor": "top", "x": 0, "itemsizing": "constant"},
        clickmode="event+select",
        dragmode="lasso",
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


def _add_named(
    figure: go.Figure,
    xy: np.ndarray,
    image_ids: np.ndarray,
    colouring: Colouring,
    hovertexts: np.ndarray | None,
    size: int,
    quiet: bool,
) -> None:
    rest = np.flatnonzero(colouring.codes == PAD)
    alone = not colouring.names
    grey = {"color": QUIET, "size": size, "opacity": 0.25 if quiet else 0.55 if alone else 0.35}
    name = f"{'images' if alone else 'other'} ({len(rest):,})"
    _add(figure, xy, image_ids, rest, hovertexts, name, grey, listed=not quiet)
    for code, name in enumerate(colouring.names):
        here = np.flatnonzero(colouring.codes == code)
        if not len(here):
            continue
        colour = (
            QUIET
            if quiet
            else MEANING[name]
            if colouring.title == "split" and name in MEANING
            else SERIES[code % len(SERIES)]
        )
        marker = {
            "color": QUIET if quiet else colour,
            "symbol": SYMBOLS[code % len(SYMBOLS)],
            "size": size + (2 if len(rest) else 1),
            "opacity": 0.25 if quiet else 0.85,
        }
        about = f"{escape_plotly(colouring.title)}: {escape_plotly(name)}"
        _add(
            figure, xy, image_ids, here, hovertexts, f"{escape_plotly(name)} ({len(here):,})", marker, about, not quiet
        )
        if colouring.title == "class" and not quiet:
            x, y = np.median(xy[here], axis=0).tolist()
            _write(figure, x, y, name, 13)


def _add_numbers(
    figure: go.Figure,
    xy: np.ndarray,
    image_ids: np.ndarray,
    colouring: Colouring,
    hovertexts: np.ndarray | None,
    size: int,
    quiet: bool,
    as_accuracy: bool,
) -> None:
    finite = np.isfinite(colouring.numbers)
    rest, here = np.flatnonzero(~finite), np.flatnonzero(finite)
    none = "never a query" if as_accuracy else f"no {escape_plotly(colouring.title)}"
    grey = {"color": QUIET, "size": size, "opacity": 0.25}
    _add(figure, xy, image_ids, rest, hovertexts, f"{none} ({len(rest):,})", grey)
    numbers = colouring.numbers[here]
    marker: dict[str, Any] = {
        "color": numbers.astype(np.float32),
        "colorscale": INCORRECT_TO_CORRECT if as_accuracy else LIGHT_TO_DARK,
        "size": size + 1,
        "opacity": 0.2 if quiet else 0.9,
        "colorbar": {"title": {"text": escape_plotly(colouring.title), "side": "right"}, "thickness": 12, "len": 0.7},
    }
    if as_accuracy:
        marker |= {"cmin": 0, "cmax": 1}
        marker["colorbar"] |= {"tickformat": ".0%"}
    elif len(numbers):  # a few extremes would leave one colour to all the others
        marker |= {"cmin": float(np.quantile(numbers, 0.02)), "cmax": float(np.quantile(numbers, 0.98))}
    value = "%{marker.color:.0%}" if as_accuracy else "%{marker.color:.3g}"
    about = f"{escape_plotly(colouring.title)} {value}"
    _add(figure, xy, image_ids, here, hovertexts, f"{escape_plotly(colouring.title)} ({len(here):,})", marker, about)


def _add(
    figure: go.Figure,
    xy: np.ndarray,
    image_ids: np.ndarray,
    here: np.ndarray,
    hovertexts: np.ndarray | None,
    name: str,
    marker: Mapping[str, Any],
    about: str = "",
    listed: bool = True,
) -> None:
    """One WebGL trace of images.

    listed  whether the legend names it
    """
    if not len(here):
        return
    item = "%{hovertext}" if hovertexts is not None else "image %{customdata}"
    opacity = marker.get("opacity", 1)
    figure.add_scattergl(
        x=np.ascontiguousarray(xy[here, 0]),
        y=np.ascontiguousarray(xy[here, 1]),
        mode="markers",
        name=name,
        marker=dict(marker),
        showlegend=listed,
        customdata=image_ids[here].astype(np.int32),
        hovertext=None if hovertexts is None else hovertexts[here],
        hovertemplate=f"{item}{': ' if about else ''}{about}<extra></extra>",
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": min(opacity, 0.25)}},
    )


def _write(figure: go.Figure, x: float, y: float, name: str, size: int, above: int = 0) -> None:
    figure.add_annotation(
        x=x,
        y=y,
        text=f"<b>{escape_plotly(name)}</b>",
        showarrow=False,
        font={"size": size, "color": "#FFFFFF"},
        bgcolor="rgba(28,36,48,0.72)",
        borderpad=1 if above else 2,
        yshift=above,
    )
