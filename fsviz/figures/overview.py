"""Figures of the Overview: the classes as a tree map, and the sizes of classes."""

from __future__ import annotations

from math import ceil
from textwrap import wrap

import numpy as np
import plotly.graph_objects as go

from fsviz.figures.palette import QUIET, meaning
from fsviz.records import PAD, SIDES, SizeHistogram
from fsviz.records.graphs import Hierarchy
from fsviz.text import escape_plotly, short_names, shorten, split_title

ROOT = "#5B6675"  # dark enough for a white label on both themes
DARK = "#1C2430"  # for labels on quiet grey
PATH = 24  # height of the bar that leads out of a group
MANY = 120  # classes: more have names of one size, those without room none
LINE = 9  # letters of a line of a class name
SMALLEST = 11  # size of a label that can be read


def plot_hierarchy(hierarchy: Hierarchy, height: int = 480) -> go.Figure:
    """Tree map of the classes; colour: split, grey if a branch has classes of several splits."""
    colours = [QUIET if split == "mixed" else meaning(split) for split in hierarchy.split]
    colours[0] = ROOT
    classes = [i for i, class_id in enumerate(hierarchy.class_ids) if class_id != PAD]
    labels = {i: shorten(label, 28) for i, label in enumerate(hierarchy.labels)}
    labels |= dict(zip(classes, short_names([hierarchy.labels[i] for i in classes], 3 * LINE), strict=True))
    leaves = set(hierarchy.ids) - set(hierarchy.parents)
    texts = [
        wrap(labels[i], LINE, break_long_words=False) if key in leaves else [labels[i]]
        for i, key in enumerate(hierarchy.ids)
    ]
    figure = go.Figure(
        go.Treemap(
            ids=hierarchy.ids,
            labels=["<br>".join(map(escape_plotly, lines)) for lines in texts],
            parents=["" if parent is None else parent for parent in hierarchy.parents],
            values=hierarchy.n_classes,
            branchvalues="total",
            maxdepth=-1 if len(hierarchy.ids) < 1200 else 4,  # beyond that the browser takes seconds
            marker={"colors": colours, "line": {"width": 1}},
            customdata=[
                [escape_plotly(label), f"{n:,} {'class' if n == 1 else 'classes'}", _split_label(split)]
                for label, n, split in zip(hierarchy.labels, hierarchy.n_classes, hierarchy.split)
            ],
            hovertemplate="<b>%{customdata[0]}</b>: %{customdata[1]}, %{customdata[2]}<extra></extra>",
            textfont={"size": 13, "color": [DARK if c == QUIET else "#FFFFFF" for c in colours]},
            tiling={"pad": 1},
            pathbar={"thickness": PATH},
        )
    )
    splits = sorted(set(hierarchy.split[1:]) - {"mixed"}, key=_split_order)
    key = [f'<span style="color:{meaning(split)}">■</span> split {escape_plotly(split)}' for split in splits]
    if "mixed" in hierarchy.split[1:]:
        key.append(f'<span style="color:{QUIET}">■</span> several splits')
    # Below the boxes, because the bar that leads out of a group is above them.
    position = {"x": 0, "y": 0, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "top", "yshift": -4}
    if splits != ["all"]:
        figure.add_annotation(text="   ".join(key), showarrow=False, font={"size": 13}, **position)
    figure.update_layout(
        height=height,
        margin={"l": 0, "r": 0, "t": PATH + 4, "b": 28},
        uniformtext={"minsize": SMALLEST, "mode": "hide"} if len(classes) > MANY else None,  # then the hover has names
    )
    return figure


def _split_order(split: str) -> tuple[int, str]:
    """Sort key: train, val, test, then others by name."""
    return SIDES.index(split) if split in SIDES else len(SIDES), split


def _split_label(split: str) -> str:
    return "several splits" if split == "mixed" else escape_plotly(split_title(split))


def _bin_label(left: float, right: float) -> str:
    """Integers of a bin, such as "3 to 5"."""
    low, high = ceil(left), max(ceil(left), ceil(right) - 1)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def plot_class_sizes(histogram: SizeHistogram, height: int = 300) -> go.Figure:
    """Stacked bars: number of classes by number of images. Bars carry "split bin" as customdata, both as positions."""
    figure = go.Figure()
    if len(histogram.edges) == 2:  # every class has the same number of images
        figure.add_bar(
            x=[escape_plotly(split) for split in histogram.bars],
            y=[int(n.sum()) for n in histogram.bars.values()],
            marker_color=[meaning(s) for s in histogram.bars],
            text=[int(n.sum()) for n in histogram.bars.values()],
            customdata=[[f"{i} 0"] for i in range(len(histogram.bars))],
            hovertemplate="split %{x}: %{y} classes<extra></extra>",
        )
        figure.update_xaxes(title=f"split ({histogram.median:,.0f} images per class)")
        figure.update_layout(showlegend=False)
    else:
        left, right = histogram.edges[:-1], histogram.edges[1:]
        centre = (left * right) ** 0.5 if histogram.logarithmic else (left + right) / 2
        for i, (split, n) in enumerate(histogram.bars.items()):
            figure.add_bar(
                x=centre,
                y=n,
                width=(right - left) * 0.94,
                name=escape_plotly(split),
                marker_color=meaning(split),
                customdata=[[f"{i} {at}", _bin_label(*ends)] for at, ends in enumerate(zip(left, right))],
                hovertemplate=f"%{{customdata[1]}} images: %{{y}} classes, {escape_plotly(split_title(split))}"
                "<extra></extra>",
            )
        figure.update_xaxes(title="images per class", type="log" if histogram.logarithmic else "linear")
        if len(left) < 12 and not histogram.logarithmic and right[0] - left[0] == 1:
            figure.update_xaxes(dtick=1)
        figure.update_layout(showlegend=len(histogram.bars) > 1)
    tallest = int(np.sum(list(histogram.bars.values()), axis=0).max())
    figure.update_yaxes(title="classes", dtick=1 if tallest < 6 else None)
    figure.update_layout(
        barmode="stack",
        height=height,
        margin={"l": 0, "r": 0, "t": 8, "b": 0},
        legend={"orientation": "h", "y": 1.12, "x": 0},
    )
    return figure
