"""Figures of testbeds: histograms of a measure side by side, and how evenly classes are used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from fsviz.figures.palette import ACCENT, MEANING, QUIET, SERIES
from fsviz.text import escape_plotly

DIMMED = 0.4  # opacity of marks that are not selected
OTHER = SERIES[7]  # samplers that are neither uniform nor semantic
COMPARED = SERIES[8]  # the second setting, next to the first
MARGIN = {"l": 0, "r": 10, "t": 50, "b": 0}


@dataclass(frozen=True)
class Panel:
    """One histogram: its title, the share of tasks per bin in percent, their number, and the median."""

    title: str
    shares: np.ndarray
    counts: np.ndarray
    median: float
    colour: str


def colour_of(sampler: str, second: bool = False) -> str:
    """Colour of a testbed: its sampler's, or that of the second setting."""
    return COMPARED if second else MEANING.get(sampler, OTHER)


def plot_histograms(
    edges: np.ndarray,
    panels: Sequence[Panel],
    measure: str,
    axis: str,
    selected_bar: tuple[int, int] | None = None,
    height: int = 310,
) -> go.Figure:
    """Histograms of a measure side by side on the same axes; the dashed line is the median.

    measure, axis  short name of the measure, and the title of its axis
    selected_bar   (panel, bin) of the marked bar
    Bars carry (panel, bin) as customdata.
    """
    figure = make_subplots(1, len(panels), shared_yaxes=True, horizontal_spacing=0.04)
    digits = 0 if edges[1] >= 1 and float(edges[1]).is_integer() else 1 if edges[1] >= 0.1 else 3
    ranges = [f"{low:.{digits}f} to {high:.{digits}f}" for low, high in pairwise(edges.tolist())]
    for i, panel in enumerate(panels):
        cell = {"row": 1, "col": i + 1}
        bins = range(len(panel.shares))
        figure.add_bar(
            x=(edges[:-1] + edges[1:]) / 2,
            y=np.round(panel.shares, 3),
            width=0.94 * np.diff(edges),
            marker={
                "color": [ACCENT if selected_bar == (i, b) else panel.colour for b in bins],
                "opacity": [1 if selected_bar in (None, (i, b)) else DIMMED for b in bins],
            },
            customdata=[[i, b] for b in bins],
            hovertext=[
                f"{escape_plotly(measure)} {ranges[b]}: {int(panel.counts[b]):,} tasks, {panel.shares[b]:.1f}%"
                for b in bins
            ],
            hovertemplate="%{hovertext}<extra></extra>",
            showlegend=False,
            **cell,
        )
        figure.add_vline(x=panel.median, line={"color": QUIET, "dash": "dash", "width": 1.5}, **cell)
        figure.add_annotation(
            x=0,
            y=1,
            xref=f"x{i + 1 if i else ''} domain",
            yref="paper",
            yanchor="bottom",
            xanchor="left",
            align="left",
            showarrow=False,
            text=f'<b style="color:{panel.colour}">{escape_plotly(panel.title)}</b><br>'
            f"median {panel.median:.{max(digits, 1)}f}",
        )
        ends = [float(edges[0]), float(edges[-1])]
        figure.update_xaxes(title=escape_plotly(measure if i else axis), range=ends, **cell)
    tallest = max(float(panel.shares.max()) for panel in panels) * 1.12
    figure.update_yaxes(range=[0, tallest])
    figure.update_yaxes(title="tasks (%)", row=1, col=1)
    figure.update_layout(height=height, margin=MARGIN, bargap=0, hovermode="closest")
    return figure


def plot_balance(
    names: Sequence[str],
    shares: Mapping[str, np.ndarray],
    colours: Mapping[str, str],
    balanced: float,
    by_taxonomy: bool = True,
    selected_point: tuple[int, int] | None = None,
    height: int = 310,
) -> go.Figure:
    """Share of tasks (%) that hold each class, a line per testbed; a flat line is a balanced testbed.

    balanced        the share if all classes are used equally often
    selected_point  (line, class) of the marked point
    Points carry (line, class) as customdata, both as positions.
    """
    figure, positions, size = go.Figure(), range(len(names)), 7 if len(names) <= 200 else 4
    for line, (testbed, values) in enumerate(shares.items()):
        figure.add_scatter(
            x=list(positions),
            y=np.round(values, 4),
            mode="lines+markers",  # a line alone cannot be clicked
            name=escape_plotly(testbed),
            line={"width": 1.6, "color": colours[testbed]},
            marker={
                "size": [12 if selected_point == (line, at) else size for at in positions],
                "color": [ACCENT if selected_point == (line, at) else colours[testbed] for at in positions],
                "opacity": [1 if selected_point in (None, (line, at)) else DIMMED for at in positions],
            },
            customdata=[[line, at] for at in positions],
            hovertext=[escape_plotly(name) for name in names],
            hovertemplate=f"%{{hovertext}}: %{{y:.2f}}% of tasks, {escape_plotly(testbed)}<extra></extra>",
        )
    figure.add_hline(
        y=balanced,
        line={"color": QUIET, "dash": "dash", "width": 1.5},
        annotation={"text": "balanced", "font": {"size": 12}, "x": 1, "xanchor": "left", "yanchor": "middle"},
    )
    order = ", in taxonomy order" if by_taxonomy else ""
    figure.update_xaxes(title=f"{len(names):,} classes of the split{order}", showticklabels=False, showgrid=False)
    figure.update_xaxes(range=[-0.5, len(names) - 0.5])
    figure.update_yaxes(title="tasks (%)", rangemode="tozero")
    legend = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}
    figure.update_layout(
        height=height,
        margin=MARGIN | {"t": 30, "r": 64},
        legend=legend,
        showlegend=len(shares) > 1,
        hovermode="closest",
    )
    return figure
