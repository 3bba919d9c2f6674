"""Figures of the first page: the classes as a tree map, and the sizes of classes."""

from __future__ import annotations

from math import ceil

import numpy as np
import plotly.graph_objects as go

from fsviz.figures.palette import QUIET, meaning
from fsviz.records import SIDES, SizeHistogram
from fsviz.records.graphs import Hierarchy
from fsviz.text import drawn, of_split

ROOT = "#5B6675"  # dark enough for a white label on both themes
DARK = "#1C2430"  # for labels on quiet grey
PATH = 24  # height of the bar that leads out of a group
SMALLEST = 11  # size of a label that can be read


def plot_hierarchy(hierarchy: Hierarchy, height: int = 480) -> go.Figure:
    """Tree map of the classes; colour is the split, quiet where a branch holds classes of several splits."""
    colours = [QUIET if split == "mixed" else meaning(split) for split in hierarchy.split]
    colours[0] = ROOT
    figure = go.Figure(
        go.Treemap(
            ids=hierarchy.ids,
            labels=[drawn(_short(label)) for label in hierarchy.labels],
            parents=["" if parent is None else parent for parent in hierarchy.parents],
            values=hierarchy.n_classes,
            branchvalues="total",
            maxdepth=-1 if len(hierarchy.ids) < 1200 else 4,  # beyond that the browser takes seconds
            marker={"colors": colours, "line": {"width": 1}},
            customdata=[
                [f"{drawn(label)}</b>" if n == 1 else f"{drawn(label)}</b> holds {n:,} classes", _of_split(split)]
                for label, n, split in zip(hierarchy.labels, hierarchy.n_classes, hierarchy.split)
            ],
            hovertemplate="<b>%{customdata[0]} (%{customdata[1]})<extra></extra>",
            textfont={"size": 13, "color": [DARK if c == QUIET else "#FFFFFF" for c in colours]},
            tiling={"pad": 1},
            pathbar={"thickness": PATH},
        )
    )
    splits = sorted(set(hierarchy.split[1:]) - {"mixed"}, key=_place)
    key = [f'<span style="color:{meaning(split)}">■</span> split {drawn(split)}' for split in splits]
    if "mixed" in hierarchy.split[1:]:
        key.append(f'<span style="color:{QUIET}">■</span> several splits')
    # Below the boxes: above them is the place of the bar that leads out of a group.
    place = {"x": 0, "y": 0, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "top", "yshift": -4}
    if splits != ["all"]:
        figure.add_annotation(text="   ".join(key), showarrow=False, font={"size": 13}, **place)
    figure.update_layout(
        height=height,
        margin={"l": 0, "r": 0, "t": PATH + 4, "b": 28},
        uniformtext={"minsize": SMALLEST, "mode": "hide"},  # what has no room for its name says it on hover
    )
    return figure


def _place(split: str) -> tuple[int, str]:
    """Train before val before test, others after them by name."""
    return SIDES.index(split) if split in SIDES else len(SIDES), split


def _of_split(split: str) -> str:
    return "of several splits" if split == "mixed" else drawn(of_split(split))


def _short(label: str, most: int = 28) -> str:
    return label if len(label) <= most else label[: most - 1] + "…"


def _between(left: float, right: float) -> str:
    """The whole numbers of a bin."""
    low, high = ceil(left), max(ceil(left), ceil(right) - 1)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def plot_class_sizes(histogram: SizeHistogram, height: int = 300) -> go.Figure:
    """Stacked bars: how many classes have how many images. A bar carries the number of its split and of its bin."""
    figure = go.Figure()
    if len(histogram.edges) == 2:  # every class has the same number of images: bars by split say more
        figure.add_bar(
            x=[drawn(split) for split in histogram.bars],
            y=[int(n.sum()) for n in histogram.bars.values()],
            marker_color=[meaning(s) for s in histogram.bars],
            text=[int(n.sum()) for n in histogram.bars.values()],
            customdata=[[f"{i} 0"] for i in range(len(histogram.bars))],
            hovertemplate="split %{x}: %{y} classes<extra></extra>",
        )
        figure.update_xaxes(title=f"split (every class has {histogram.median:,.0f} images)")
        figure.update_layout(showlegend=False)
    else:
        left, right = histogram.edges[:-1], histogram.edges[1:]
        centre = (left * right) ** 0.5 if histogram.logarithmic else (left + right) / 2
        for i, (split, n) in enumerate(histogram.bars.items()):
            figure.add_bar(
                x=centre,
                y=n,
                width=(right - left) * 0.94,
                name=drawn(split),
                marker_color=meaning(split),
                customdata=[[f"{i} {at}", _between(*ends)] for at, ends in enumerate(zip(left, right))],
                hovertemplate=f"%{{y}} of {drawn(of_split(split))} have %{{customdata[1]}} images<extra></extra>",
            )
        figure.update_xaxes(title="images per class", type="log" if histogram.logarithmic else "linear")
        if len(left) < 12 and not histogram.logarithmic and right[0] - left[0] == 1:
            figure.update_xaxes(dtick=1)
        figure.update_layout(showlegend=len(histogram.bars) > 1)
    most = int(np.sum(list(histogram.bars.values()), axis=0).max())
    figure.update_yaxes(title="classes", dtick=1 if most < 6 else None)  # there is no half a class
    figure.update_layout(
        barmode="stack",
        height=height,
        margin={"l": 0, "r": 0, "t": 8, "b": 0},
        legend={"orientation": "h", "y": 1.12, "x": 0},
    )
    return figure
