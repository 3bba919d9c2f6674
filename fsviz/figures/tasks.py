"""Figures of testbeds: histograms of a measure side by side, and how evenly classes are used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from fsviz.figures.palette import ACCENT, MEANING, QUIET, SERIES

OTHER = SERIES[7]  # samplers that are neither uniform nor semantic
COMPARED = SERIES[8]  # the second setting, beside the first


@dataclass(frozen=True)
class Panel:
    """One histogram: its title, the share of tasks per bin, and the median."""

    title: str
    shares: np.ndarray
    counts: np.ndarray
    median: float
    colour: str


def colour_of(sampler: str, second: bool = False) -> str:
    return COMPARED if second else MEANING.get(sampler, OTHER)


def plot_histograms(
    edges: np.ndarray, panels: Sequence[Panel], measure: str, axis: str, chosen: tuple[int, int] | None = None
) -> dict[str, Any]:
    """ECharts histograms of a measure side by side on the same axes; the dashed line is the median.

    measure, axis  what it is called, and what it tells
    chosen         (panel, bin)
    """
    centres = (edges[:-1] + edges[1:]) / 2
    digits = 0 if edges[1] >= 1 and float(edges[1]).is_integer() else 1 if edges[1] >= 0.1 else 3
    labels = [f"{a:.{digits}f} to {b:.{digits}f}" for a, b in pairwise(edges.tolist())]
    n = len(panels)
    gap, left, right = 4.0, 5.5, 1.0
    width = (100 - left - right - gap * (n - 1)) / n
    tallest = max(float(panel.shares.max()) for panel in panels) * 1.12
    grids, x_axes, y_axes, series, titles = [], [], [], [], []
    for i, panel in enumerate(panels):
        start = left + i * (width + gap)
        grids.append({"left": f"{start}%", "width": f"{width}%", "top": 64, "bottom": 46})
        x_axes.append(
            {
                "type": "value",
                "gridIndex": i,
                "min": float(edges[0]),
                "max": float(edges[-1]),
                "name": axis if i == 0 else measure,
                "nameLocation": "middle",
                "nameGap": 30,
                "axisLabel": {"showMaxLabel": False},  # it is no round number, and crowds the last one that is
                "splitLine": {"show": False},
            }
        )
        y_axes.append(
            {
                "type": "value",
                "gridIndex": i,
                "min": 0,
                "max": round(tallest, 4),
                "name": "% of tasks" if i == 0 else "",
                "nameGap": 8,
                "axisLabel": {"show": i == 0, "showMaxLabel": False},
            }
        )
        titles.append(
            {
                "text": panel.title,
                "left": f"{start}%",
                "top": 8,
                "textStyle": {"fontSize": 14, "fontWeight": "bold", "color": panel.colour},
                "subtext": f"median {panel.median:.{max(digits, 1)}f}",
                "itemGap": 3,
            }
        )
        bars = []
        for b, share in enumerate(panel.shares):
            bar: dict[str, Any] = {
                "name": labels[b],
                "value": [float(centres[b]), round(float(share), 3), int(panel.counts[b])],
            }
            if chosen == (i, b):
                bar["itemStyle"] = {"color": ACCENT, "borderColor": ACCENT}
            bars.append(bar)
        series.append(
            {
                "type": "bar",
                "name": panel.title,
                "xAxisIndex": i,
                "yAxisIndex": i,
                "data": bars,
                "barWidth": "94%",
                "itemStyle": {"color": panel.colour, "borderRadius": 0},
                "selectedMode": "single",
                "select": {"itemStyle": {"color": ACCENT, "borderColor": ACCENT}},
                "emphasis": {"itemStyle": {"opacity": 0.75}},
                "markLine": {
                    "silent": True,
                    "symbol": "none",
                    "animation": False,
                    "lineStyle": {"type": "dashed", "color": QUIET, "width": 1.5},
                    "label": {"show": False},
                    "data": [{"xAxis": panel.median}],
                },
            }
        )
    return {
        "animation": False,
        "title": titles,
        "grid": grids,
        "xAxis": x_axes,
        "yAxis": y_axes,
        "tooltip": {"trigger": "item", "formatter": f"{{@[2]}} tasks ({{@[1]}}%) have a {measure} of {{b}}"},
        "legend": {"show": False},
        "series": series,
    }


def plot_balance(
    names: Sequence[str],
    shares: Mapping[str, np.ndarray],
    colours: Mapping[str, str],
    even: float,
    by_taxonomy: bool = True,
) -> dict[str, Any]:
    """ECharts lines: the share of tasks that hold each class; a flat line is a balanced testbed."""
    series = [
        {
            "type": "line",
            "name": name,
            "data": [round(float(v), 4) for v in values],
            "showSymbol": True,  # a line alone cannot be clicked
            "symbolSize": 8 if len(names) <= 200 else 4,
            "selectedMode": "single",
            "select": {"itemStyle": {"color": ACCENT, "borderColor": ACCENT, "borderWidth": 4}},
            "lineStyle": {"width": 1.6, "color": colours[name]},
            "itemStyle": {"color": colours[name]},
        }
        for name, values in shares.items()
    ]
    series[0]["markLine"] = {
        "silent": True,
        "symbol": "none",
        "lineStyle": {"type": "dashed", "color": QUIET},
        "label": {"formatter": "even", "position": "end", "color": QUIET},
        "data": [{"yAxis": round(even, 4)}],
    }
    return {
        "animation": False,
        "grid": {"left": 52, "right": 40, "top": 52, "bottom": 34, "outerBoundsMode": "none"},
        "legend": {"top": 4, "left": 0},
        "tooltip": {"trigger": "axis", "valueFormatter": "%.2f %%"},
        "xAxis": {
            "type": "category",
            "data": list(names),
            "name": f"the {len(names):,} classes of the split" + (", relatives side by side" if by_taxonomy else ""),
            "nameLocation": "middle",
            "nameGap": 10,
            "axisLabel": {"show": False},
            "axisTick": {"show": False},
        },
        "yAxis": {"type": "value", "name": "% of tasks", "min": 0},
        "series": series,
    }
