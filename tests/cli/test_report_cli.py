"""The command report: runs and tasks as files that open without a network."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsviz.cli import main
from fsviz.sampling import testbeds
from fsviz.tasks import draw
from tests.cli.calling import fails, run_json
from tests.reports.test_html import loaded
from tests.studies.toy_dataset import make_toy

TASKS = ("--n-way", "4", "--n-shot", "2", "--n-query", "5", "--n-tasks", "20", "--sampler", "uniform")


@pytest.fixture(autouse=True)
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    return make_toy("toy", noise=2.0)


def written(capsys, tmp_path: Path, *request: str) -> str:
    out = tmp_path / "report.html"
    captured = run_json(capsys, "report", *request, "--out", str(out))
    page = out.read_text(encoding="utf-8")
    assert captured == {"file": str(out), "bytes": out.stat().st_size} and loaded(page) == []
    assert "<b>kind</b>" not in page  # of the names of classes
    return page


def test_the_report_of_a_run_has_its_numbers_and_figures(capsys, tmp_path: Path) -> None:
    run = run_json(capsys, "evaluate", "toy", "--methods", "protonet,ridge", *TASKS, "--n-tasks", "60")
    page = written(capsys, tmp_path, run["run"])
    body = page.split("</head>", 1)[1]
    assert body.count("Plotly.newPlot") == 4 and "Accuracy by coarsity" in body
    for row in run["results"]:
        assert f"{row['accuracy']:.2f} <small>± " in body
    assert "fsviz evaluate toy" in body and run["run"] in body and "Paired differences" in body


def test_a_report_of_twenty_tasks_has_no_figures_that_need_many(capsys, tmp_path: Path) -> None:
    run = run_json(capsys, "evaluate", "toy", "--methods", "protonet,ridge", *TASKS)
    body = written(capsys, tmp_path, run["run"]).split("</head>", 1)[1]
    assert body.count("Plotly.newPlot") == 2  # mean accuracies and paired differences
    assert "Accuracy by coarsity" not in body and "Ranks by quarter" not in body


def test_the_report_of_hard_support_sets(capsys, tmp_path: Path) -> None:
    run = run_json(capsys, "hard", "toy", *TASKS)
    page = written(capsys, tmp_path, run["run"])
    assert page.count("Plotly.newPlot(") >= 1 and f"{run['accuracy']['hard']:.4g}" in page
    assert "fsviz hard toy" in page


def test_the_report_of_a_task_says_what_its_passport_says(toy, capsys, tmp_path: Path) -> None:
    shape = {"sampler": "uniform", "n_way": 3, "n_shot": 2, "n_query": 4, "n_tasks": 12}
    testbeds.save_testbed(draw.sample(toy, name="mine", **shape))
    captured = run_json(capsys, "passport", "mine:5")
    page = written(capsys, tmp_path, "--task", "mine:5")
    for measure in captured["measures"]:
        assert measure["title"] in page
        if measure["value"] is not None:
            assert f">{measure['value']:.4g}<" in page
    assert "group 0 &lt;b&gt;kind&lt;/b&gt;" in page and "fsviz report --task" in page


def test_what_has_no_report_is_refused(capsys, tmp_path: Path) -> None:
    assert "Unknown run 'nothing'" in fails(capsys, "report", "nothing")
    run = run_json(capsys, "hard", "toy", *TASKS)["run"]
    assert "ends in .html" in fails(capsys, "report", run, "--out", str(tmp_path / "report.pdf"))
    both = run_json(capsys, "evaluate", "toy", "--methods", "protonet", *TASKS)["run"]
    assert "evaluate, support_sets" in fails(capsys, "report", run, both)
    with pytest.raises(SystemExit):
        main(["report"])
