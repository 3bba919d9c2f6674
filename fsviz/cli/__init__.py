"""The same studies from a terminal: python -m fsviz COMMAND.

One module per group of commands; each has `register(commands)`, which adds its commands with `add_command`.
A command's function takes the parsed arguments and returns one dictionary: with --json it is printed as one JSON
object on standard output; without, the command's `show` turns it into lines for a person. Progress goes to
standard error (`progress`).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple, NoReturn

import fsviz
from fsviz.errors import FsvizError, near_names
from fsviz.workspace import plain_json

GROUPS = (
    *("app", "datasets", "user_images", "features", "tasks", "task_profile", "evaluation"),
    *("support_sets", "confusion", "search_comparison", "prediction", "contexts", "similarity", "splits", "training"),
    *("causes", "compare_datasets", "sweep", "report"),
    *("exports", "runs", "workspace", "completion"),
)


class RunFormatter(NamedTuple):
    """Result and printed lines of a finished run of a study, as its command gives them."""

    result: Callable[[Any], dict[str, Any]]
    show: Callable[[dict[str, Any]], str]


RUN_FORMATTERS: dict[str, RunFormatter] = {}  # by study, filled as commands are added


def formatter_for(study: str) -> RunFormatter | None:
    """The formatter for runs of a study; None if no command makes such runs."""
    return RUN_FORMATTERS.get(study)


def summary_of(run: Any) -> dict[str, Any]:
    """A run by its summary, and how it stands."""
    return {**(run.summary or {}), "run": run.id, "seconds": run.seconds, "state": run.state}


def add_command(
    commands: argparse._SubParsersAction,
    name: str,
    run: Callable[[argparse.Namespace], dict[str, Any]],
    show: Callable[[dict[str, Any]], str],
    help: str,
    study: str = "",
    result_of: Callable[[Any], dict[str, Any]] = summary_of,
) -> argparse.ArgumentParser:
    """Adds one command with --json; returns its parser so that arguments can be added.

    study, result_of  the study whose runs it makes, and what it gives for a finished one: `runs show` tells them alike
    """
    if study:
        RUN_FORMATTERS[study] = RunFormatter(result_of, show)
    parser = commands.add_parser(name, help=help, description=help)
    parser.add_argument("--json", action="store_true", help="Print one JSON object.")
    parser.set_defaults(do=run, show=show)
    return parser


def progress(message: str, end: str = "\n") -> None:
    """One line of progress on standard error."""
    print(message, end=end, file=sys.stderr, flush=True)


def report_progress(done: int, total: int, message: str) -> None:
    """Prints the progress of a run, one line per report."""
    progress(f"{message} ({done:,} of {total:,})")


def names(text: str | None) -> list[str]:
    """The names of an option that takes several, with commas between."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


class Parser(argparse.ArgumentParser):
    """A parser that refuses wrong arguments in one sentence, without the whole usage before it."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"fsviz: {message.rstrip('.?')}. See '{self.prog} --help'.\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """A word that is none of the choices is refused with those that it may be meant for."""
        if action.choices is not None and value not in action.choices:
            choices = [str(choice) for choice in action.choices]
            near = near_names(str(value), choices)
            hint = f"did you mean {' or '.join(near)}" if near else f"choose from {', '.join(choices)}"
            raise argparse.ArgumentError(action, f"there is no {value!r} ({hint})")


@cache  # whoever gives many commands in one process builds it once
def build_parser() -> argparse.ArgumentParser:
    parser = Parser(prog=_called(), description="Explain why few-shot tasks are hard.")
    version = f"fsviz {fsviz.__version__}"
    parser.add_argument("--version", action="version", version=version, help="Print the version.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for group in GROUPS:
        importlib.import_module(f"fsviz.cli.{group}").register(commands)
    return parser


def _called() -> str:
    """The words to type: the installed command, or the package run by Python."""
    return "fsviz" if os.path.basename(sys.argv[0]) in ("fsviz", "fsviz.exe") else "python -m fsviz"


def welcome_text(parser: argparse.ArgumentParser) -> str:
    """A first page for whoever gives no command."""
    listed = parser.format_help().partition("COMMAND\n")[2].partition("\n\n")[0]
    first = {
        "app": "Start the dashboard on the demo.",
        "add NAME FOLDER": "Add your own images; then run: extract NAME",
        "evaluate demo --methods protonet,./mine.py": "Compare methods, also your own, on the same tasks.",
        "COMMAND --help": "Describe one command.",
    }
    lines = [f"  {parser.prog} {words:42}  {description}" for words, description in first.items()]
    return "\n".join([f"{parser.description}\n", *lines, "\nCommands:", listed])


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; 0 when it went well, 2 when the input must be fixed, 130 when interrupted."""
    try:
        parser = build_parser()
        if not (sys.argv[1:] if argv is None else argv):
            return _print(welcome_text(parser))
        args = parser.parse_args(argv)
        result = args.do(args)
        return _print(json.dumps(plain_json(result), default=str, allow_nan=False) if args.json else args.show(result))
    except FsvizError as error:
        print(f"fsviz: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("fsviz: stopped.", file=sys.stderr)
        return 130


def _print(text: str) -> int:
    """The result on standard output. Whoever reads it may have heard enough (head), or its disk may be full."""
    try:
        print(text, flush=True)
        return 0
    except OSError as error:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  (Python would try once more at the end, and complain)
        if isinstance(error, BrokenPipeError):
            return 0
        print(f"fsviz: the result could not be written ({error.strerror or error}).", file=sys.stderr)
        return 2
