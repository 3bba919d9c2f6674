"""The command worksheet: lessons to print, with the answers of the dataset on pages of their own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fsviz import datasets
from fsviz.analyses.lessons import LESSONS
from tests.cli.calling import fails, run_json
from tests.reports.test_html import loaded
from tests.studies.toy_dataset import make_toy


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))


def written(capsys, tmp_path: Path, *request: str) -> str:
    out = tmp_path / "sheet.html"
    result = run_json(capsys, "worksheet", *request, "--out", str(out))
    page = out.read_text(encoding="utf-8")
    assert result == {"file": str(out), "bytes": out.stat().st_size} and loaded(page) == []
    return page.split("</head>", 1)[1]


def test_the_answer_is_on_the_last_page_alone(capsys, tmp_path: Path) -> None:
    body = written(capsys, tmp_path, "fruit", "--lesson", "4")
    question = LESSONS[4].ask(LESSONS[4].measure(datasets.load("fruit")))
    sheet, answers = body.split('<section class="answers"')
    assert question.text in sheet and all(option in sheet for option in question.options)
    assert question.takeaway in answers and question.takeaway not in sheet
    assert f"<b>{'ABC'[question.correct]}: {question.options[question.correct]}.</b>" in answers
    assert sheet.count("data:image/jpeg") == 10  # photographs: a strip per class of two supports
    first_trace = re.compile(r'Plotly.newPlot\(\s*"[^"]*",\s*(\[.*?\]),\s*\{', re.DOTALL)
    traces = [first_trace.search(part) for part in (sheet, answers)]
    visible = [json.loads(trace[1])[0]["x"] for trace in traces if trace]
    assert [len(positions) for positions in visible] == [1, 5]  # the sheet shows where the control begins


def test_lessons_without_data_are_named_with_the_reason(capsys, tmp_path: Path) -> None:
    body = written(capsys, tmp_path, "fruit")
    sheet, answers = body.split('<section class="answers"')
    for number in (2, 5):
        assert f"{number}. {LESSONS[number].title} It needs" in answers
    assert sheet.count('<section class="sheet">') == answers.count('<div class="answer">') >= 2


def test_a_name_is_no_markup(capsys, tmp_path: Path) -> None:
    make_toy("toy", noise=2.0)
    body = written(capsys, tmp_path, "toy")
    assert "<b>kind</b>" not in body


def test_what_cannot_be_printed_is_refused(capsys) -> None:
    assert "has no worksheet" in fails(capsys, "worksheet", "dtd")
    assert "needs contexts" in fails(capsys, "worksheet", "fruit", "--lesson", "2")
    assert "Unknown lesson '9'" in fails(capsys, "worksheet", "fruit", "--lesson", "9")
    assert "numbers, with commas" in fails(capsys, "worksheet", "fruit", "--lesson", "one")
    assert ".html" in fails(capsys, "worksheet", "fruit", "--out", "sheet.pdf")
