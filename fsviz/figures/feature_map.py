"""The map of features: a point per image, told apart by colour and shape, with a task or one image marked on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from fsviz.figures.palette import ACCENT, MEANING, QUIET, SERIES, meaning
from fsviz.records import PAD, Colouring, NeighbourAgreement
from fsviz.text import drawn

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
MOST_WORDS = 20_000  # points whose words are sent along; of more, the picture beside the pointer has to do
LIGHT_TO_DARK = "Cividis"  # the same order to all eyes
WRONG_TO_RIGHT = [[0, MEANING["wrong"]], [0.5, "#D9C9A8"], [1, MEANING["right"]]]


def plot_map(
    xy: np.ndarray,
    image_ids: np.ndarray,
    colouring: Colouring,
    words: Sequence[str] | None = None,
    roles: Colouring | None = None,
    role_names: Sequence[tuple[str, float, float]] = (),
    chosen: int | None = None,
    as_accuracy: bool = False,
    view: str = "",
    height: int = 640,
    outline: np.ndarray | None = None,
) -> go.Figure:
    """Images (n, 2) on a map.

    outline     corners (m, 2) of what was drawn around

    words       what an image is, for the hover box (n,)
    roles       which images are support and query of a task: they stand out, all others step back
    role_names  class names and the places of support images above which they are written
    chosen      image_id with a ring around it
    as_accuracy the numbers are accuracies: from wrong to right
    view        zoom and place are kept as long as this stays the same
    """
    figure = go.Figure()
    told = None
    if words is not None and len(words) <= MOST_WORDS:
        told = np.array([drawn(word) for word in words], dtype=object)
    size = 4 if len(xy) > 20_000 else 5 if len(xy) > 2_000 else 8
    quiet = roles is not None
    if colouring.is_numeric:
        _add_numbers(figure, xy, image_ids, colouring, told, size, quiet, as_accuracy)
    else:
        _add_named(figure, xy, image_ids, colouring, told, size, quiet)
    if roles is not None:
        for code, name in enumerate(roles.names):
            here = np.flatnonzero(roles.codes == code)
            marker: dict[str, Any] = {
                "color": meaning(name),
                "symbol": ROLE_SYMBOLS[name],
                "size": 15 if name == "support" else 10,
            }
            marker["line"] = {"color": "white", "width": 1}
            _add(figure, xy, image_ids, here, told, f"{name} ({len(here):,})", marker, f"{name} of the task")
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


def plot_shared(found: Sequence[NeighbourAgreement]) -> go.Figure:
    """What neighbours on a map share, the most beyond chance on top: a bar each, and a line where chance is."""
    names = [drawn(f"{one.title} (third)" if one.thirds else one.title) for one in found]
    figure = go.Figure()
    figure.add_bar(
        x=[one.share for one in found],
        y=names,
        orientation="h",
        marker={"color": [ACCENT, *[QUIET] * (len(found) - 1)]},
        text=[f"{one.share:.0%}" for one in found],
        textposition="outside",  # inside, a number may lie under the line of chance
        textangle=0,
        cliponaxis=False,
        customdata=[[one.by, one.chance] for one in found],
        hovertemplate="%{x:.0%} of neighbours share it, %{customdata[1]:.1%} by chance; click to colour by it"
        "<extra>%{y}</extra>",
    )
    figure.add_scatter(
        x=[one.chance for one in found],
        y=names,
        mode="markers",
        marker={"symbol": "line-ns", "size": 14, "line": {"width": 2, "color": meaning("wrong")}},
        hoverinfo="skip",
        name="by chance",
    )
    figure.update_xaxes(
        range=[0, 1.15],
        tickvals=[0, 0.5, 1],
        tickformat=".0%",
        title="neighbours that share it<br>(the red line is chance)",
    )
    figure.update_yaxes(autorange="reversed", type="category", ticksuffix=" ")
    figure.update_layout(
        height=80 + 28 * len(found), margin={"l": 0, "r": 8, "t": 8, "b": 0}, showlegend=False, bargap=0.35
    )
    return figure


def _add_named(
    figure: go.Figure,
    xy: np.ndarray,
    image_ids: np.ndarray,
    colouring: Colouring,
    told: np.ndarray | None,
    size: int,
    quiet: bool,
) -> None:
    rest = np.flatnonzero(colouring.codes == PAD)
    alone = not colouring.names
    grey = {"color": QUIET, "size": size, "opacity": 0.25 if quiet else 0.55 if alone else 0.35}
    name = f"{'images' if alone else 'the rest'} ({len(rest):,})"
    _add(figure, xy, image_ids, rest, told, name, grey, listed=not quiet)
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
        about = f"{drawn(colouring.title)}: {drawn(name)}"
        _add(figure, xy, image_ids, here, told, f"{drawn(name)} ({len(here):,})", marker, about, not quiet)
        if colouring.title == "class" and not quiet:
            x, y = np.median(xy[here], axis=0).tolist()
            _write(figure, x, y, name, 13)


def _add_numbers(
    figure: go.Figure,
    xy: np.ndarray,
    image_ids: np.ndarray,
    colouring: Colouring,
    told: np.ndarray | None,
    size: int,
    quiet: bool,
    as_accuracy: bool,
) -> None:
    known = np.isfinite(colouring.numbers)
    rest, here = np.flatnonzero(~known), np.flatnonzero(known)
    none = "never a query" if as_accuracy else f"without {drawn(colouring.title)}"
    grey = {"color": QUIET, "size": size, "opacity": 0.25}
    _add(figure, xy, image_ids, rest, told, f"{none} ({len(rest):,})", grey)
    numbers = colouring.numbers[here]
    marker: dict[str, Any] = {
        "color": numbers.astype(np.float32),
        "colorscale": WRONG_TO_RIGHT if as_accuracy else LIGHT_TO_DARK,
        "size": size + 1,
        "opacity": 0.2 if quiet else 0.9,
        "colorbar": {"title": {"text": drawn(colouring.title), "side": "right"}, "thickness": 12, "len": 0.7},
    }
    if as_accuracy:
        marker |= {"cmin": 0, "cmax": 1}
        marker["colorbar"] |= {"tickformat": ".0%"}
    elif len(numbers):  # a few extremes would leave one colour to all the others
        marker |= {"cmin": float(np.quantile(numbers, 0.02)), "cmax": float(np.quantile(numbers, 0.98))}
    value = "%{marker.color:.0%}" if as_accuracy else "%{marker.color:.3g}"
    about = f"{drawn(colouring.title)} {value}"
    _add(figure, xy, image_ids, here, told, f"{drawn(colouring.title)} ({len(here):,})", marker, about)


def _add(
    figure: go.Figure,
    xy: np.ndarray,
    image_ids: np.ndarray,
    here: np.ndarray,
    told: np.ndarray | None,
    name: str,
    marker: Mapping[str, Any],
    about: str = "",
    listed: bool = True,
) -> None:
    """One trace of images, on the graphics card; chosen ones are told by what they are, not by colour.

    listed  whether the key below the map names it
    """
    if not len(here):
        return
    words = "%{hovertext}" if told is not None else "image %{customdata}"
    opacity = marker.get("opacity", 1)
    figure.add_scattergl(
        x=np.ascontiguousarray(xy[here, 0]),
        y=np.ascontiguousarray(xy[here, 1]),
        mode="markers",
        name=name,
        marker=dict(marker),
        showlegend=listed,
        customdata=image_ids[here].astype(np.int32),
        hovertext=None if told is None else told[here],
        hovertemplate=f"{words}{', ' if about else ''}{about}<extra></extra>",
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": min(opacity, 0.25)}},
    )


def _write(figure: go.Figure, x: float, y: float, name: str, size: int, above: int = 0) -> None:
    figure.add_annotation(
        x=x,
        y=y,
        text=f"<b>{drawn(name)}</b>",
        showarrow=False,
        font={"size": size, "color": "#FFFFFF"},
        bgcolor="rgba(28,36,48,0.72)",
        borderpad=1 if above else 2,
        yshift=above,
    )
