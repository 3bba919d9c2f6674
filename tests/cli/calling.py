"""Calls of the command line: a success is one JSON object, a failure is one sentence."""

from __future__ import annotations

import json

from fsviz.cli import main


def run_json(capsys, *arguments: str) -> dict:
    """The one JSON object that a command prints on standard output."""
    assert main([*arguments, "--json"]) == 0
    out = capsys.readouterr().out
    assert len(out.strip().splitlines()) == 1
    return json.loads(out)


def fails(capsys, *arguments: str) -> str:
    """The sentence of a command that must be called otherwise; nothing is on standard output."""
    assert main(list(arguments)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines()[-1].startswith("fsviz: ")
    return captured.err.splitlines()[-1]
