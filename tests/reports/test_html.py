"""Tables and reports as HTML: whole, self-contained, and every name escaped."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from fsviz.datasets.published import published_side_by_side, published_table
from fsviz.figures import runs as figures
from fsviz.reports import html as report
from fsviz.studies import comparison
from tests.studies.test_comparison import EIGHT, line, two_samplers

NASTY = '</script><script>alert(1)</script> & "q" <img src=x onerror=alert(2)>'


def lines():
    return [
        line(NASTY, [0, 0.2, 0.4, 0.6, 0.8, 1, 1, 1], coarsity=EIGHT, testbed=NASTY),
        line("Plain", [0.5, 0.4, 0.5, 0.4, 0.5, 0.6, 0.5, 0.6], coarsity=EIGHT, testbed=NASTY),
    ]


def test_the_table_marks_the_best_and_the_published() -> None:
    published = published_table("better-tieredImageNet", "5-way 1-shot")
    html = report.results_table(comparison.table(lines()), published)
    assert "<b>62.50 <small>± " in html and html.count('class="published"') == len(published)
    assert "Published numbers, not computed here (Bennequin et al. 2022, Table 1)" in html
    assert "<script" not in html and "<img" not in html and "&lt;/script&gt;" in html
    rows = re.findall(r"<tr.*?</tr>", html)
    cells = {row.count("<td") for row in rows if "divider" not in row and "<td" in row}
    assert len(cells) == 1  # every row has the same number of cells


def test_semantic_and_uniform_tasks_stand_beside_each_other_and_above_the_published_ones() -> None:
    (pairs,) = comparison.side_by_side(comparison.table(two_samplers())).values()
    pairs["method"] = [NASTY, "TIM"]
    published = published_side_by_side("5-way 1-shot")
    html = report.side_by_side_table(pairs, published)
    assert '<th colspan="5" class="group">Semantic tasks (%)</th>' in html
    assert html.count('class="published"') == len(published) == 6 and html.count('class="rule"') == 1
    assert "53.10 <small>± 0.40</small>" in html and "65.24 <small>± 0.35</small>" in html  # ProtoNet in table 1
    assert "<script" not in html and "<img" not in html
    assert len({row.count("<td") for row in re.findall(r"<tr.*?</tr>", html) if "divider" not in row}) == 2
    assert published_side_by_side("9-way 1-shot").empty


def test_the_report_needs_nothing_else_and_runs_no_name_as_code() -> None:
    both = lines()
    table, differences = comparison.table(both), comparison.differences(both)
    differences["verdict"] = np.where(differences["significant"], "real", "may be chance")
    shown = [("Curves", figures.plot_accuracy_by_measure(comparison.curves(both)), "caption")]
    recipe = {"dataset": NASTY, "seed": 0, "methods": [{"name": "tim", "parameters": {"lr": 0.001}}]}
    html = report.report(NASTY, table, shown, [recipe], differences, None, "today")
    own = html.split("</head>", 1)[1]  # plotly.js itself is in the head
    assert "alert(1)</script>" not in own and "<img src=x" not in own
    assert len(re.findall(r"<script", own)) == len(re.findall(r"</script>", own)) == 1
    assert not re.search(r"""(src|href)=["']https?:""", own)
    assert len(html) > 1_000_000  # the drawing library is inside
    assert own.count("<table") == 3 and "may be chance" in own
    assert "<th>methods</th><td>tim (lr: 0.001)</td>" in own


def test_the_report_says_what_p_is_and_how_closely_accuracy_follows_the_measure() -> None:
    both = lines()
    table, differences = comparison.table(both), comparison.differences(both, over="tasks")
    differences["verdict"] = "real"
    told = pd.DataFrame({"name": [NASTY], "pearson": ["0.50 (0.30 to 0.70)"], "spearman": ["0.40"]})
    for over, words in (("tasks", "Wilcoxon"), ("images", "that of a t test over images,")):
        html = report.report(
            "x", table, [], [], differences, tested=comparison.p_in_words(over), correlations=told, correlated="See."
        ).split("</head>", 1)[1]
        assert words in html and ("Wilcoxon" in html) == (over == "tasks")
        assert "0.50 (0.30 to 0.70)" in html and "See." in html and "<img src=x" not in html


def test_a_recipe_is_told_in_words() -> None:
    assert report.recipe_words(
        [{"name": "protonet", "parameters": {}}, {"name": "tim", "parameters": {"steps": 5}}]
    ) == ("protonet; tim (steps: 5)")
    assert report.recipe_words({"n_way": 5, "dag": "all_paths", "alpha": 100.0, "unit_length": False}) == (
        "classes per task: 5, paths of the taxonomy: all_paths, alpha: 100, unit length: no"
    )
    assert report.recipe_words(["a", "b"]) == "a; b" and report.recipe_title("testbed_name") == "testbed"
