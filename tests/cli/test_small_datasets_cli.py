"""Commands on a dataset of small classes: each says which defaults it lowered, and keeps what was given."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator

import pytest

import fsviz
from fsviz.cli import build_parser, main
from fsviz.errors import BadInput
from tests.cli.calling import fails, run_json
from tests.studies.small_dataset import make_small

FEW = ["--n-tasks", "10"]
USUAL = "n_query is 7 instead of 10"
COMMANDS = {
    "evaluate": (["evaluate", "twelve", *FEW], USUAL),
    "hard": (["hard", "twelve", *FEW], "n_shot is 3 instead of 5 and n_query is 6 instead of 10"),
    "stress": (
        ["stress", "twelve", "--adaptations", "protonet", *FEW],
        "n_shot is 3 instead of 5 and n_query is 6 instead of 10",
    ),
    "predict": (["predict", "twelve", *FEW], "n_query is 7 instead of 30"),
    "causes": (["causes", "twelve", "--methods", "protonet", *FEW], USUAL),
    "compare-datasets": (["compare-datasets", "twelve", "large", *FEW], USUAL),
    "sample": (["sample", "twelve", *FEW], USUAL),
    "task": (["task", "twelve"], USUAL),
}


@pytest.fixture(scope="module", autouse=True)
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    home = tmp_path_factory.mktemp("small")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FSVIZ_HOME", str(home / "ws"))
        make_small("twelve", [12] * 8, home / "twelve")
        make_small("large", [30] * 8, home / "large")
        make_small("one", [30], home / "one")
        yield


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_what_it_lowers(command: str, capsys) -> None:
    words, text = COMMANDS[command]
    assert main([*words, "--json"]) == 0
    message = capsys.readouterr().err
    assert "of Twelve has 12 images" in message and text in message
    assert main([*words, "--n-shot", "3", "--n-query", "4", "--json"]) == 0
    assert "instead of" not in capsys.readouterr().err


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in ("task", "hard", "stress")])
def test_what_was_given_is_refused_with_what_fits(command: str, capsys) -> None:
    captured = fails(capsys, *COMMANDS[command][0], "--n-shot", "9", "--n-query", "9")
    assert "n_shot + n_query needs 18" in captured or "n_shot + n_query = 18" in captured
    assert "The largest that fits all classes is n_shot 7 with n_query 5." in captured
    assert main([*COMMANDS[command][0], "--n-shot", "7", "--n-query", "5", "--json"]) == 0


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "compare-datasets"])
def test_one_class_is_refused_by_every_command(command: str, capsys) -> None:
    words = ["one" if word == "twelve" else word for word in COMMANDS[command][0]]
    assert "A task needs at least 2 classes." in fails(capsys, *words)


def test_all_commands_have_one_default_of_shots() -> None:
    (commands,) = (a.choices for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction))
    values = {
        name: action.help
        for name, command in commands.items()
        for action in command._actions
        if action.dest == "n_shot"
    }
    assert len(values) > 8 and all(text.endswith("(default: 5).") for text in values.values()), values


def test_functions_warn_of_what_they_lower_and_refuse_what_was_given() -> None:
    with pytest.warns(UserWarning, match="n_query is 7 instead of 10") as caught:
        assert fsviz.sample("twelve", n_tasks=5).tasks.setting == "5-way 5-shot"
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="n_query is 7 instead of 10") as caught:
        fsviz.evaluate("twelve", n_tasks=5)
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="n_shot is 3 instead of 5") as caught:
        fsviz.hard("twelve", n_tasks=5)
    assert caught[0].filename == __file__
    with pytest.raises(BadInput, match="The largest that fits"):
        fsviz.sample("twelve", n_tasks=5, n_query=12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fsviz.sample("twelve", n_tasks=5, n_shot=2, n_query=4)
        fsviz.sample("large", n_tasks=5)


def test_a_function_warns_of_a_search_that_finds_the_opposite(capsys) -> None:
    with pytest.warns(UserWarning, match="found no easy sets"):
        fsviz.hard("demo", search="fastdiffsel", loss="plain", n_tasks=60)
    assert run_json(capsys, "hard", "demo", "--search", "fastdiffsel", "--loss", "plain", "--n-tasks", "60")["failed"]
