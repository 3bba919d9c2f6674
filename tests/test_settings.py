"""A declaration checks a value, reads it from text, and writes text that reads back as the same value."""

from __future__ import annotations

import argparse

import numpy as np
import pytest

from fsviz.errors import BadInput, FsvizError, UnknownName
from fsviz.settings import N_QUERY, N_SHOT, N_TASKS, N_WAY, SEED, Schema, Setting, add_flags, from_args

ALPHA = Setting("alpha", "Closeness", "Weight of closeness, 100 % of it.", "float", 0.383, 0, 10_000)
LOSS = Setting("loss", "Loss", "The loss.", "choice", "plain", choices={"plain": "As it is", "cosine": "Cosines"})
FLAG = Setting("whole", "Whole", "All of it.", "flag", False)
METHODS = Setting(
    "methods",
    "Methods",
    "Several of them.",
    "names",
    ["protonet"],
    choices={"protonet": "ProtoNet", "ridge": "Ridge regression", "tim": "TIM"},
)
NOTE = Setting("note", "Note", "Any text.", "text", "")


@pytest.mark.parametrize(
    ("setting", "value", "text"),
    [
        (N_WAY, 5, "5"),
        (SEED, 2**31 - 1, "2147483647"),
        (ALPHA, 0.383, "0.383"),
        (ALPHA, 100.0, "100"),
        (ALPHA, 1 / 3, "0.3333333333333333"),
        (ALPHA, 1e-7, "1e-07"),
        (LOSS, "cosine", "cosine"),
        (FLAG, True, "true"),
        (FLAG, False, "false"),
        (NOTE, "a b", "a b"),
        (METHODS, ["ridge", "protonet"], "ridge,protonet"),
    ],
)
def test_text_reads_back_as_the_same_value(setting: Setting, value, text: str) -> None:
    assert setting.text(value) == text
    assert setting.parse(text) == value
    assert type(setting.parse(text)) is type(value)
    parser = argparse.ArgumentParser()
    add_flags(parser, [setting])
    assert from_args(parser.parse_args(setting.to_args(value)), [setting]) == {setting.name: value}
    assert from_args(parser.parse_args([]), [setting]) == {}


def test_what_people_and_numpy_write_is_understood() -> None:
    assert N_WAY.parse(" 7.0 ") == 7
    assert LOSS.parse("as it is") == "plain"  # the title, as links of before have it
    assert ALPHA.check(np.float32(0.5)) == 0.5
    assert isinstance(N_WAY.check(np.int64(4)), int)
    assert isinstance(ALPHA.check(2), float)


@pytest.mark.parametrize("text", ["abc", "", "1e400", "-1e400", "nan", "2.5", "1", "1001", "9" * 5000, "None", "٣٫٥"])
def test_text_that_is_no_such_number_is_refused_with_the_rule(text: str) -> None:
    with pytest.raises(BadInput, match=r"^n_way must be a whole number from 2 to 1,000\. Got .{1,40}\.$"):
        N_WAY.parse(text)


@pytest.mark.parametrize("value", [None, True, "5", 10**400, float("nan"), float("inf"), [5], 10_001, -0.1])
def test_values_of_other_kinds_are_refused(value) -> None:
    with pytest.raises(BadInput, match=r"alpha of TIM must be a number from 0 to 10,000\. Got"):
        ALPHA.check(value, of="TIM")


def test_choices_flags_and_text_name_what_is_possible() -> None:
    with pytest.raises(UnknownName, match=r"Unknown loss 'plaint'\. Did you mean 'plain'"):
        LOSS.parse("plaint")
    with pytest.raises(BadInput, match="true or false"):
        FLAG.parse("perhaps")
    with pytest.raises(FsvizError, match="text"):
        NOTE.check(3)


def test_a_narrower_setting_keeps_its_name() -> None:
    few = N_TASKS.with_(default=200, high=500)
    assert (few.name, few.default) == ("n_tasks", 200)
    with pytest.raises(BadInput, match="n_tasks must be a whole number from 1 to 500"):
        few.check(501)


def test_the_help_of_a_flag_says_the_default() -> None:
    parser = argparse.ArgumentParser()
    add_flags(parser, [ALPHA, LOSS, FLAG, NOTE])
    text = " ".join(parser.format_help().split())
    assert "Weight of closeness, 100 % of it (default: 0.383)." in text
    assert "{plain,cosine}" in text and "(default: plain)" in text


def test_a_warning_about_few_images_means_the_usual_task() -> None:
    from fsviz.datasets import preview

    assert (N_SHOT.default, N_QUERY.default) == (preview.SHOTS, preview.QUERIES)


def test_a_text_that_starts_with_a_dash_survives_the_command_line() -> None:
    split = Setting("split", "Split", "Which classes.", "text", "")
    parser = argparse.ArgumentParser()
    add_flags(parser, [split])
    for value in ("-x", "--all", "plain", "-1"):
        assert from_args(parser.parse_args(split.to_args(value)), [split]) == {"split": value}


def test_a_list_where_a_choice_is_asked_is_refused_in_a_sentence() -> None:
    with pytest.raises(UnknownName, match="plain"):
        LOSS.check(["plain"])


def test_names_are_a_list_without_repeats_and_titles_are_understood() -> None:
    assert METHODS.parse(" Ridge regression, tim ,,tim") == ["ridge", "tim"]
    assert METHODS.check(("tim", "tim")) == ["tim"]
    assert METHODS.parse("") == []
    with pytest.raises(UnknownName, match="methods"):
        METHODS.parse("ridge,rigde")
    for value in ("ridge", [1], None):
        with pytest.raises(BadInput, match="must be a list of names"):
            METHODS.check(value)


SCHEMA = Schema({s.name: s for s in (N_WAY, LOSS, METHODS)}, required=("dataset",), of="the study of tests")


def test_a_schema_fills_in_defaults_and_takes_none_as_not_given() -> None:
    full = {"dataset": "demo", "n_way": 5, "loss": "plain", "methods": ["protonet"]}
    assert SCHEMA.check({"dataset": "demo"}) == full
    assert SCHEMA.check({"study": "tests", "dataset": "demo", "n_way": None, "loss": "cosine"}) == {
        **full,
        "loss": "cosine",
    }
    fitted = SCHEMA.check({"dataset": "demo", "loss": "cosine"}, n_way=3, loss="plain")
    assert fitted == {**full, "n_way": 3, "loss": "cosine"}  # what was asked for comes before what would fit
    assert SCHEMA.pick({**full, "recipe": {}, "version": 1}) == full


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"dataset": "demo", "n_wayy": 5}, "n_wayy"),
        ({"n_way": 5}, 'The study of tests needs "dataset", a name. Got None.'),
        ({"dataset": 3}, 'The study of tests needs "dataset", a name. Got 3.'),
        ({"dataset": "demo", "n_way": 1}, "n_way must be a whole number from 2 to 1,000. Got 1."),
    ],
)
def test_a_schema_refuses_what_is_unknown_missing_or_impossible(spec, text: str) -> None:
    with pytest.raises(FsvizError) as refused:
        SCHEMA.check(spec)
    assert text in str(refused.value)


def test_none_and_empty_text_are_not_given_and_an_empty_list_is() -> None:
    spec = {"study": "tests", "dataset": "demo", "n_way": None, "loss": "", "methods": []}
    assert SCHEMA.requested(spec) == {"dataset": "demo", "methods": []}
    assert SCHEMA.check(spec, loss="cosine") == {"dataset": "demo", "n_way": 5, "loss": "cosine", "methods": []}
    assert SCHEMA.requested({"dataset": "demo", "n_way": 7.0}) == {"dataset": "demo", "n_way": 7}
    with pytest.raises(BadInput, match="n_way must be"):
        SCHEMA.requested({"dataset": "demo", "n_way": 1})


def test_nested_values_pass_through_a_schema_unchecked() -> None:
    schema = Schema({"n_way": N_WAY}, required=("dataset",), of="tests", nested=("methods",))
    spec = {"dataset": "demo", "methods": [{"name": "tim"}]}
    assert schema.requested(spec) == spec and schema.check(spec) == {**spec, "n_way": 5}
    assert schema.pick({**spec, "n_way": 3, "version": 2}) == {**spec, "n_way": 3}
    assert schema.check({"dataset": "demo", "methods": None}) == {"dataset": "demo", "n_way": 5}
    with pytest.raises(UnknownName, match="sampler"):
        schema.requested({**spec, "sampler": "iid"})
