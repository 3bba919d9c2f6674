"""completion: a script by which bash and zsh complete commands, flags, their choices, and the names of datasets."""

from __future__ import annotations

import argparse
import shlex
from typing import Any

from fsviz.cli import add_command

SHELLS = ("bash", "zsh")
_SCRIPT = """\
{zsh}# fsviz {version}: commands, flags and datasets. Load it with: {load}
_fsviz() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD - 1]}}" first="${{COMP_WORDS[1]}}"
    local words="" open=0
    COMPREPLY=()
    if (( COMP_CWORD == 1 )); then
        COMPREPLY=( $(compgen -W {commands} -- "$word") )
        return
    fi
    case "$first $before" in
{choices}
        *) open=1 ;;
    esac
    if (( open )); then
        case "$first" in
{flags}
        esac
        case "$first" in {positional})
            words="$words "{datasets}
            [ -d "${{FSVIZ_HOME:-.fsviz}}/datasets" ] && words="$words $(command ls "${{FSVIZ_HOME:-.fsviz}}/datasets")"
        esac
    fi
    COMPREPLY=( $(compgen -W "$words" -- "$word") )
    [ ${{#COMPREPLY[@]}} -eq 0 ] && COMPREPLY=( $(compgen -f -- "$word") )
}}
complete -F _fsviz fsviz
"""


def register(commands: argparse._SubParsersAction) -> None:
    parser = add_command(
        commands, "completion", write, lambda result: result["script"], "Print a shell completion script."
    )
    parser.add_argument("shell", choices=SHELLS, help="Your shell.")


def _choices(action: argparse.Action) -> list[str]:
    """The choices of a flag; settings check their own and show them in braces."""
    if action.choices is not None:
        return [str(choice) for choice in action.choices]
    metavar = str(action.metavar or "")
    return metavar[1:-1].split(",") if metavar.startswith("{") else []


def write(args: argparse.Namespace) -> dict[str, Any]:
    import fsviz
    from fsviz import datasets
    from fsviz.cli import build_parser

    parser = build_parser()
    (subparsers,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    flags, choices, of_dataset = [], [], []
    for name, command in subparsers.choices.items():
        options = [o for a in command._actions for o in a.option_strings if o.startswith("--")]
        words = [str(c) for a in command._actions if not a.option_strings for c in a.choices or ()]
        flags.append(f"            {name}) words={shlex.quote(' '.join([*options, *words]))} ;;")
        if any(a.dest == "dataset" and not a.option_strings for a in command._actions):
            of_dataset.append(name)
        for action in command._actions:
            if action.option_strings and (values := _choices(action)):
                at = "|".join(f'"{name} {option}"' for option in action.option_strings)
                choices.append(f"        {at}) words={shlex.quote(' '.join(values))} ;;")
    script = _SCRIPT.format(
        version=fsviz.__version__,
        zsh="autoload -U +X bashcompinit && bashcompinit\n" if args.shell == "zsh" else "",
        load=f'eval "$(fsviz completion {args.shell})"',
        commands=shlex.quote(" ".join(subparsers.choices)),
        choices="\n".join(choices),
        flags="\n".join(flags),
        datasets=shlex.quote(" ".join(datasets.shipped_names())),
        positional="|".join(of_dataset),
    )
    return {"shell": args.shell, "script": script.rstrip()}
