"""Figures of runs show the numbers they were given, name every line, and treat names as text."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fsviz.figures import runs as figures
from fsviz.figures.palette import ACCENT, QUIET, meaning


def curve(level: float, n: int = 50) -> pd.DataFrame:
    return pd.DataFrame({"measure": np.linspace(10, 80, n), "accuracy": np.full(n, level), "ci95": np.full(n, 1.0)})


def test_the_best_method_is_on_top_and_marked() -> None:
    figure = figures.plot_accuracies(["A", "B", "C"], [50.0, 70.0, 60.0], [1, np.nan, 2], chance_level=20)
    dots = figure.data[0]
    assert list(dots.y) == ["A", "C", "B"] and list(dots.x) == [50, 60, 70]
    assert list(dots.marker.color) == [QUIET, QUIET, ACCENT]
    assert list(dots.error_x.array) == [1, 2, 0]
    assert figure.layout.xaxis.title.text.startswith("accuracy (%")


def test_every_curve_is_named_at_its_end_without_overlap() -> None:
    curves = {f"method {i}": curve(60 + 0.01 * i) for i in range(6)}
    figure = figures.plot_accuracy_by_measure(
        curves, quartiles=[(10, 20), (20, 40), (40, 60), (60, 80)], axis="coarsity"
    )
    labels = {a.text: a.y for a in figure.layout.annotations}
    assert set(curves) <= set(labels) and {"Q1", "Q2", "Q3", "Q4"} <= set(labels)
    heights = sorted(labels[name] for name in curves)
    assert np.diff(heights).min() > 0.2
    assert figure.layout.xaxis.range[1] < 90 and "coarsity" in figure.layout.xaxis.title.text


def test_bands_are_drawn_for_few_lines_only() -> None:
    few = figures.plot_accuracy_by_measure({"A": curve(50), "B": curve(60)})
    many = figures.plot_accuracy_by_measure({str(i): curve(50 + i) for i in range(3)})
    assert sum(trace.fill == "toself" for trace in few.data) == 2
    assert sum(trace.fill == "toself" for trace in many.data) == 0
    twelve = figures.plot_accuracy_by_measure({str(i): curve(50 + i) for i in range(12)})
    styles = [(trace.line.color, trace.line.dash) for trace in twelve.data]
    assert len(set(styles)) == 12


def test_a_method_keeps_its_colour_whatever_its_rank_and_company() -> None:
    from fsviz import methods

    def looks(names: list[str]) -> dict[str, tuple[str, str]]:
        figure = figures.plot_accuracy_by_measure({name: curve(50 + i) for i, name in enumerate(names)})
        return {t.name: (t.line.color, t.line.dash) for t in figure.data if t.name}

    titles = [method.title for method in methods.METHODS.values()]
    everyone = looks(titles)
    assert len(set(everyone.values())) == len(titles), "a method has no look of its own"
    backwards = looks(titles[::-1])
    assert all(backwards[title] == everyone[title] for title in titles)
    two = looks(["TIM · first", "something else", "TIM · second", "ProtoNet"])
    assert two["TIM · first"] == everyone["TIM"] and two["ProtoNet"] == everyone["ProtoNet"]
    assert len(set(two.values())) == 4
    published = pd.DataFrame({"name": ["Transductive Finetuning"], "Q1": 1.0, "Q2": 2.0, "Q3": 3.0, "Q4": 4.0})
    line = figures.plot_quartiles(published).data[0].line
    assert (line.color, line.dash) == everyone["Transductive finetuning"]


def test_names_at_the_ends_of_lines_keep_apart_on_an_axis_stretched_by_bands() -> None:
    narrow = curve(50).assign(ci95=0.0)
    wide = {"A": narrow.assign(ci95=20.0), "B": narrow.assign(accuracy=narrow["accuracy"] + 0.1)}
    labels = {a.text: a.y for a in figures.plot_accuracy_by_measure(wide).layout.annotations}
    assert labels["B"] - labels["A"] > 0.05 * 40


def test_names_at_the_ends_of_lines_keep_apart_and_clear_of_single_tasks() -> None:
    points = (np.array([10.0, 95.0]), np.array([20.0, 100.0]), np.array([0, 1]))
    curves = {"A": curve(50).assign(ci95=0.0), "B": curve(50.1).assign(ci95=0.0)}
    labels = {a.text: a for a in figures.plot_accuracy_by_measure(curves, points).layout.annotations}
    assert labels["B"].y - labels["A"].y > 0.05 * 80
    assert all((label.x, label.xref, label.xanchor) == (1, "paper", "left") for label in labels.values())


def test_names_are_text_not_markup() -> None:
    figure = figures.plot_accuracy_by_measure({"<b>x</b><script>": curve(50)})
    assert any("&lt;script&gt;" in a.text for a in figure.layout.annotations)
    assert "<script>" not in figure.data[-1].hovertemplate


def test_differences_are_filled_only_if_significant() -> None:
    table = pd.DataFrame(
        {
            "name": ["B", "C"],
            "reference": ["A", "A"],
            "difference": [-0.2, -5.0],
            "ci95": [1.0, 1.0],
            "p_holm": [0.7, 0.001],
            "significant": [False, True],
        }
    )
    figure = figures.plot_differences(table)
    dots = figure.data[0]
    assert list(dots.y) == ["C", "B"] and list(dots.marker.symbol) == ["circle", "circle-open"]
    assert list(dots.marker.color) == [meaning("incorrect"), QUIET]


def test_a_method_stands_above_its_backbone_so_that_narrow_figures_have_room() -> None:
    row = {"name": "TIM · a_b", "reference": "TIM · c", "difference": 1.0, "ci95": 1.0, "p_holm": 0.7}
    figure = figures.plot_differences(pd.DataFrame([row | {"significant": False}]))
    assert list(figure.data[0].y) == ["TIM<br>a_b"]
    assert figure.layout.xaxis.title.text.startswith("difference in accuracy (points)<br>vs TIM · c")
    assert figure.data[0].customdata[0][2] == "TIM · a_b"  # the hover reads as a sentence


def test_ranks_put_the_best_on_top() -> None:
    table = pd.DataFrame(
        {
            "method": ["A", "A", "B", "B"],
            "bin": [1, 2, 1, 2],
            "accuracy": [50, 60, 70, 80],
            "ci95": 1,
            "rank": [2, 2, 1, 1],
        }
    )
    heat = figures.plot_ranks(table).data[0]
    assert list(heat.y) == ["A", "B"] and heat.z.tolist() == [[2, 2], [1, 1]]  # plotly draws upwards: B is on top


def test_quartiles_are_drawn_in_their_order() -> None:
    table = pd.DataFrame([{"name": "A", "Q1": 40, "Q2": 50, "Q3": 60, "Q4": 70, "Q1_ci95": 1.0}])
    assert list(figures.plot_quartiles(table).data[0].y) == [40, 50, 60, 70]


def test_single_tasks_behind_the_curves_say_which_they_are() -> None:
    points = (np.array([10.0, 80.0]), np.array([40.0, 90.0]), np.array([7, 3]))
    first = figures.plot_accuracy_by_measure({"A": curve(50)}, points).data[0]
    assert list(first.customdata) == [7, 3] and list(first.x) == [10, 80]
    assert all(isinstance(task, int) for task in first.customdata)
