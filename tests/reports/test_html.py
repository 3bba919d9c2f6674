"""Tables and reports as HTML: whole, self-contained, and every name escaped."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd

from fsviz.analyses import run_comparison
from fsviz.datasets.published import published_side_by_side, published_table
from fsviz.figures import runs as figures
from fsviz.reports import html as report
from tests.analyses.test_run_comparison import EIGHT, line, two_samplers

NASTY = '</script><script>alert(1)</script> & "q" <img src=x onerror=alert(2)>'


class _Loading(HTMLParser):
    """Gathers what a browser would ask a network for: sources, style sheets and imports, but no links to click."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = tag
        for name, value in attrs:
            if (name in ("src", "srcset", "data", "poster", "background") or (tag == "link" and name == "href")) and (
                not str(value).startswith("data:")
            ):
                self.addresses.append(f"{tag} {name}={value}")
            if name == "style":
                self.handle_style(str(value))

    def handle_data(self, data: str) -> None:
        if self.inside == "style":
            self.handle_style(data)

    def handle_style(self, rules: str) -> None:
        self.addresses += re.findall(r"@import[^;]*|url\((?!['\"]?data:)[^)]*\)", rules)


def loaded(page: str) -> list[str]:
    """Addresses that a page would load from elsewhere."""
    reader = _Loading()
    reader.feed(page)
    return reader.addresses


def test_what_a_page_loads_is_found() -> None:
    page = "<link href='http://a/b'><script src='//c/d'></script><style>@import 'e'; b {background: url(f)}</style>"
    assert len(loaded(page)) == 4
    assert loaded("<a href='https://x'>x</a><img src='data:image/png;base64,y'><script>'<img src=z>'</script>") == []


def lines():
    return [
        line(NASTY, [0, 0.2, 0.4, 0.6, 0.8, 1, 1, 1], coarsity=EIGHT, testbed=NASTY),
        line("Plain", [0.5, 0.4, 0.5, 0.4, 0.5, 0.6, 0.5, 0.6], coarsity=EIGHT, testbed=NASTY),
    ]


def test_the_table_marks_the_best_and_the_published() -> None:
    published = published_table("better-tieredImageNet", "5-way 1-shot")
    html = report.results_table(run_comparison.result_table(lines()), published)
    assert "<b>62.50 <small>± " in html and html.count('class="published"') == len(published)
    assert "Published numbers, not computed here (Bennequin et al. 2022, Table 1)" in html
    assert "<script" not in html and "<img" not in html and "&lt;/script&gt;" in html
    rows = re.findall(r"<tr.*?</tr>", html)
    cells = {row.count("<td") for row in rows if "divider" not in row and "<td" in row}
    assert len(cells) == 1  # every row has the same number of cells


def test_semantic_and_uniform_tasks_stand_beside_each_other_and_above_the_published_ones() -> None:
    (pairs,) = run_comparison.side_by_side(run_comparison.result_table(two_samplers())).values()
    pairs["method"] = [NASTY, "TIM"]
    published = published_side_by_side("5-way 1-shot")
    html = report.side_by_side_table(pairs, published)
    assert '<th colspan="5" class="group">Semantic tasks (%)</th>' in html
    assert html.count('class="published"') == len(published) == 6 and html.count('class="rule"') == 1
    assert "53.10 <small>± 0.40</small>" in html and "65.24 <small>± 0.35</small>" in html  # ProtoNet in table 1
    assert "<script" not in html and "<img" not in html
    assert len({row.count("<td") for row in re.findall(r"<tr.*?</tr>", html) if "divider" not in row}) == 2
    assert published_side_by_side("9-way 1-shot").empty


def page(**contents: Any) -> str:
    """A report with this in it."""
    return report.run_report(report.RunReport(**{"title": "x", "figures": [], "recipes": [], **contents}))


def test_the_report_needs_nothing_else_and_runs_no_name_as_code() -> None:
    both = lines()
    table, differences = run_comparison.result_table(both), run_comparison.differences(both)
    differences["verdict"] = np.where(differences["significant"], "significant", "not significant")
    visible = [("Curves", figures.plot_accuracy_by_measure(run_comparison.curves(both)), "caption")]
    recipe = report.RunRecipe(NASTY, [("Dataset", NASTY)], NASTY)
    html = report.run_report(
        report.RunReport(
            title=NASTY, results=table, figures=visible, recipes=[recipe], differences=differences, date_line="today"
        )
    )
    own = html.split("</head>", 1)[1]  # plotly.js itself is in the head
    assert "alert(1)</script>" not in own and "<img src=x" not in own
    assert len(re.findall(r"<script", own)) == len(re.findall(r"</script>", own)) == 1
    assert loaded(html) == []
    assert len(html) > 1_000_000  # the drawing library is inside
    assert own.count("<table") == 3 and "not significant" in own


def test_the_report_says_what_p_is_and_how_closely_accuracy_follows_the_measure() -> None:
    both = lines()
    table, differences = run_comparison.result_table(both), run_comparison.differences(both, over="tasks")
    differences["verdict"] = "significant"
    text = pd.DataFrame({"name": [NASTY], "pearson": ["0.50 (0.30 to 0.70)"], "spearman": ["0.40"]})
    for over, words in (("tasks", "Wilcoxon"), ("images", "that of a t test over images,")):
        html = page(
            results=table,
            differences=differences,
            tested=run_comparison.describe_p(over),
            correlations=text,
            correlated="See.",
        ).split("</head>", 1)[1]
        assert words in html and ("Wilcoxon" in html) == (over == "tasks")
        assert "0.50 (0.30 to 0.70)" in html and "See." in html and "<img src=x" not in html


def test_the_report_says_which_benchmark_published_rows_are_of_and_how_to_run_it_again() -> None:
    table, published = run_comparison.result_table(lines()), published_table("better-tieredImageNet", "5-way 1-shot")
    recipe = report.RunRecipe("r1", [("Methods", NASTY), ("Tasks", "40 of 5-way 1-shot")], "fsviz evaluate x")
    with_rows = page(results=table, recipes=[recipe], published=published, caveat="Of another benchmark.")
    own = with_rows.split("</head>", 1)[1]
    assert "Of another benchmark." in own and "<pre>fsviz evaluate x</pre>" in own
    assert "<th>Tasks</th><td>40 of 5-way 1-shot</td>" in own and "{&#39;" not in own and "alert(1)</script>" not in own
    assert "Of another benchmark." not in page(results=table, recipes=[recipe], caveat="Of another benchmark.")
    assert "no longer here" in page(results=table, recipes=[report.RunRecipe("r1", [])])


def test_pictures_of_a_report_are_inside_it_and_nothing_is_asked_of_a_network() -> None:
    visible = report.ReportTask(
        NASTY, NASTY, [("support", "data:image/png;base64,AAAA"), ("bad", "https://example.org/a.png")]
    )
    html = page(results=run_comparison.result_table(lines()), tasks=[visible])
    own = html.split("</head>", 1)[1]
    assert own.count("<img") == 1 and 'src="data:image/png;base64,AAAA"' in own and "example.org" not in own
    assert not re.search(
        r"""(?:src|href)=["'](?!data:)|@import|url\((?!["']?data:)""",
        re.sub(r"<script>.*?</script>", "", html, flags=re.S),
    )
