"""The list of runs and each study's table, the version, completion, and words that were nearly right."""

from __future__ import annotations

import argparse
import shutil
import subprocess
from pathlib import Path

import pytest

from fsviz import __version__, jobs, studies
from fsviz.cli import build_parser, formatter_for, main
from fsviz.errors import UnknownName
from tests.cli.calling import fails, run_json
from tests.studies.shifted_dataset import make_shifted

TASKS = ["--n-way", "4", "--n-shot", "3", "--n-query", "6", "--n-tasks", "12"]


@pytest.fixture
def shifted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    return make_shifted()


def test_every_study_prints_the_table_of_its_command(shifted, capsys) -> None:
    settings = {
        "support_sets": ["hard", "shifted", "--backbone", "first", *TASKS],
        "stress_test": ["stress", "shifted", "--backbones", "first", "--adaptations", "protonet", *TASKS],
        "search_comparison": ["searches", "shifted", "--backbone", "first", "--searches", "fastdiffsel", *TASKS],
        "prediction": ["predict", "shifted", "--backbone", "first", *TASKS],
        "evaluate": ["evaluate", "shifted", "--backbone", "first", "--sampler", "uniform", *TASKS],
    }
    printed = {}
    for study, words in settings.items():
        assert main(words) == 0, study
        printed[study] = capsys.readouterr().out.strip()
    listed = {row["study"]: row for row in run_json(capsys, "runs")["runs"]}
    assert set(listed) == set(settings)
    for study, row in listed.items():
        assert main(["runs", "show", row["run"]]) == 0
        visible = capsys.readouterr().out
        assert printed[study] in visible, study
        assert row["backbones"] == ["first"] and row["sampler"] == "uniform"
    evaluated = listed["evaluate"]
    assert evaluated["methods"] == ["protonet"]
    assert set(listed["support_sets"]["accuracy"]) == {"hard", "random", "easy"}
    assert main(["runs"]) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if evaluated["run"] in line)
    assert f"{next(iter(evaluated['accuracy'].values())):.1f}" in line and "protonet" in line and "uniform" in line


def test_a_run_has_a_name_and_a_note(shifted, capsys) -> None:
    run = run_json(capsys, "evaluate", "shifted", "--backbone", "first", "--sampler", "uniform", *TASKS)["run"]
    assert main(["runs", "label", run, "--name", "Base  line", "--note", "first\ntry"]) == 0
    assert capsys.readouterr().out.strip() == f"Run {run}: Base line (first try)"
    assert run_json(capsys, "runs", "label", run, "--note", "")["name"] == "Base line"
    assert (jobs.status(run).name, jobs.status(run).note) == ("Base line", "")
    assert run_json(capsys, "runs")["runs"][0]["name"] == "Base line"
    assert main(["runs", "show", run]) == 0 and capsys.readouterr().out.startswith("Base line\n")
    assert "at most 80 characters. Got 81." in fails(capsys, "runs", "label", run, "--name", 81 * "x")
    assert "takes --name or --note" in fails(capsys, "runs", "label", run)
    assert "takes --name or --note" in fails(capsys, "runs", "show", run, "--name", "other")
    assert jobs.status(run).name == "Base line"
    (jobs.folder(run) / "label.json").write_text("[]")  # a damaged label is no label
    assert jobs.status(run).name == "" and jobs.status(run).state == "finished"


def test_several_runs_at_once(shifted, capsys) -> None:
    first, second = (
        run_json(capsys, "hard", "shifted", "--backbone", "first", *TASKS, "--seed", seed)["run"] for seed in "01"
    )
    assert [row["run"] for row in run_json(capsys, "runs", "show", first, second)["several"]] == [first, second]
    assert "Unknown run 'nothing'" in fails(capsys, "runs", "delete", first, "nothing")
    assert len(jobs.list_runs()) == 2, "a wrong id is named before anything is deleted"
    assert main(["runs", "delete", first, second, first]) == 0
    assert jobs.list_runs() == []


def test_every_runnable_study_is_told() -> None:
    build_parser()
    assert len(studies.names()) > 10 and all(formatter_for(name) for name in studies.names())


def test_the_version(capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0 and capsys.readouterr().out == f"fsviz {__version__}\n"


def test_names_that_hold_what_was_typed_are_meant() -> None:
    models = [*(f"coat_{i}" for i in range(50)), "efficientnet_lite0", "tf_efficientnet_lite1"]
    assert UnknownName("backbone", "lite", models).near == ["efficientnet_lite0", "tf_efficientnet_lite1"]
    assert UnknownName("method", "protonett", ["protonet", "tim"]).near == ["protonet"]
    assert UnknownName("method", "zz", ["buzzzzzer", "tim"]).near == []


def test_a_command_that_is_nearly_right(capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["datasts"])
    captured = capsys.readouterr().err
    assert ended.value.code == 2 and "did you mean datasets" in captured and len(captured.splitlines()) == 1


def test_every_flag_and_word_is_explained() -> None:
    def unexplained(parser: argparse.ArgumentParser, path: str) -> list[str]:
        matches = []
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                matches += [
                    item for name, inner in action.choices.items() for item in unexplained(inner, f"{path} {name}")
                ]
            elif not action.help:
                matches.append(f"{path} {'/'.join(action.option_strings) or action.dest}")
        return matches

    assert unexplained(build_parser(), "fsviz") == []


@pytest.mark.skipif(shutil.which("bash") is None, reason="the script is for bash")
def test_the_shell_completes_commands_flags_choices_and_datasets(
    capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "datasets" / "holiday_photos").mkdir(parents=True)
    script = run_json(capsys, "completion", "bash")["script"]
    assert "bashcompinit" in run_json(capsys, "completion", "zsh")["script"]
    lines = ["fsviz evalu", "fsviz add x --groups fol", "fsviz sample demo --sampler sem", "fsviz runs sho"]
    lines += ["fsviz hard holi", "fsviz show tiered_", "fsviz hard demo --reas"]
    asks = "\n".join(
        f'COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _fsviz; echo "${{COMPREPLY[*]}}"'
        for line in lines
    )
    done = subprocess.run(
        ["bash", "-c", f"{script}\n{asks}"],
        capture_output=True,
        text=True,
        check=True,
        env={"FSVIZ_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        *("evaluate", "folder", "semantic", "show", "holiday_photos", "tiered_imagenet", "--reasons"),
    ]
