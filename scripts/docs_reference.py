"""Writes the reference pages of the documentation from the declarations: commands, API, settings, methods, measures.

MkDocs runs it as a hook (mkdocs.yml), so these pages are never committed. To read them without the site:

    python scripts/docs_reference.py docs/reference
"""

from __future__ import annotations

import argparse
import html
import inspect
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = "reference"
_NO_MATHML = {r"\Big\lVert": r"\|", r"\Big\rVert": r"\|", r"\arg": r"\operatorname{arg}"}  # the converter lacks these


def pages_page() -> str:
    """Every page of the app, from its record."""
    from fsviz.ui.parts.page import PAGES

    lines = ["# Pages", "", "The search in the bar finds a page by its question or by a keyword."]
    for page in PAGES.values():
        facts = {
            "Address": f"`/{'' if page.slug == 'overview' else page.slug}`",
            "Group": text(page.group),
            "Paper": text(page.paper),
            "Needs": text(", ".join(page.needs)),
            "Keywords": text(", ".join(page.keywords)),
        }
        lines += ["", f"## {text(page.label)}", "", f"**{text(page.question)}**", ""]
        lines += [text(page.lead.format(dataset="the dataset")), "", *facts_list(facts)]
    return "\n".join(lines)


def commands_page() -> str:
    """Every command, from the parser."""
    from fsviz.cli import build_parser

    lines = [
        "# Commands",
        "",
        "Every command takes `--json`. Progress goes to standard error. `fsviz COMMAND --help` prints the same.",
    ]
    parser = build_parser()
    for name, command in subparsers(parser).items():
        lines += ["", *command_section(f"fsviz {name}", command, parser.prog)]
    return "\n".join(lines)


def command_section(name: str, command: argparse.ArgumentParser, prog: str) -> list[str]:
    """The help, usage and arguments of a command, then those of its subcommands."""
    usage = command.format_usage().replace(prog, "fsviz").removeprefix("usage: ")
    lines = [f"## {name}", "", text(command.description or ""), "", "```text", " ".join(usage.split()), "```", ""]
    nested = subparsers(command)
    formatter = command._get_formatter()
    rows = []
    for action in command._actions:
        if isinstance(action, argparse._HelpAction | argparse._SubParsersAction):
            continue
        words = ", ".join(f"`{word}`" for word in action.option_strings) or f"`{action.metavar or action.dest}`"
        help = formatter._expand_help(action) if action.help else ""
        rows.append((words, text(values_of(action)), text(help)))
    lines += table(("argument", "values", "meaning"), rows)
    for word, subcommand in nested.items():
        lines += ["", *command_section(f"{name} {word}", subcommand, prog)]
    return lines


def subparsers(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    """The subcommands of a parser by name."""
    actions = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return {name: sub for action in actions for name, sub in action.choices.items()}


def values_of(action: argparse.Action) -> str:
    """The values that an argument takes."""
    if action.choices is not None:
        return ", ".join(str(choice) for choice in action.choices)
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    return "" if action.nargs == 0 or not action.option_strings else metavar


def python_page() -> str:
    """The public functions and the records that they return, from signatures and docstrings."""
    import fsviz
    from fsviz import records
    from fsviz.studies.support_sets import SupportSets
    from fsviz.studies.sweep import SweepResult

    lines = ["# Python API", "", "`import fsviz` is light: a function imports what it needs when it is called.", ""]
    members = [(f"fsviz.{name}", getattr(fsviz, name)) for name in sorted(fsviz.VERBS, key=str.lower)]
    types = [records.Dataset, records.Tasks, records.Testbed, records.Predictions, SupportSets, SweepResult]
    members += [(cls.__name__, cls) for cls in types]
    for name, member in members:
        lines += ["", *member_section(name, member)]
    return "\n".join(lines)


def member_section(name: str, member: Any) -> list[str]:
    """The signature and docstring of a function or class, then the public methods of a class."""
    lines = [f"## {name}", ""]
    if not inspect.isclass(member):
        signature = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(member)))
        lines += ["```python", f"{name}{signature}", "```", ""]
    lines += docstring(inspect.getdoc(member) or "")
    if inspect.isclass(member):
        for attribute, value in vars(member).items():
            doc = inspect.getdoc(value) if callable(value) or isinstance(value, property) else ""
            if doc and not attribute.startswith("_"):
                lines += ["", f"- `{attribute}`: {text(' '.join(doc.split()))}"]
    return lines


def docstring(doc: str) -> list[str]:
    """A docstring as Markdown: paragraphs, and lists of names with their meaning."""
    lines: list[str] = []
    for block in doc.split("\n\n"):
        if re.match(r" *[\w, *]+  +\S", block):
            items = re.sub(r"\n {3,}(?=\S)(?! *[\w, *]+  +\S)", " ", block).splitlines()
            parts = [re.split(r"  +", item.strip(), maxsplit=1) for item in items]
            lines += [f"- `{part[0]}`: {text(part[1])}" if len(part) > 1 else f"  {text(part[0])}" for part in parts]
        else:
            lines.append(text(" ".join(block.split())))
        lines.append("")
    return lines


def settings_page() -> str:
    """The settings of every study: commands, pages, links and `fsviz.sweep` take the same names."""
    from fsviz import studies

    lines = ["# Settings", "", "A setting has one name in commands, links, specs and Python. Each study has its own."]
    for name in studies.names():
        study = studies.get(name)
        lines += ["", f"## {name}", "", text(study.question or study.title), ""]
        lines += settings_table(study.settings.settings.values())
    return "\n".join(lines)


def methods_page() -> str:
    """Few-shot methods and trainers, with their settings."""
    from fsviz.methods import METHODS
    from fsviz.training import TRAINERS

    lines = [
        "# Methods",
        "",
        "Inductive methods classify each query alone; transductive ones use all queries of a task.",
    ]
    for method in METHODS.values():
        facts = {"Name": f"`{method.name}`", "Paper": text(method.paper), "Kind": method.kind, "Family": method.family}
        lines += ["", f"## {text(method.title)}", "", text(method.description), "", *facts_list(facts), ""]
        lines += settings_table(method.settings)
    lines += ["", "# Training"]
    for trainer in TRAINERS.values():
        lines += ["", f"## {text(trainer.title)} (trained)", "", text(trainer.description), ""]
        lines += facts_list({"Name": f"`{trainer.name}`", "Paper": text(trainer.paper)})
    return "\n".join(lines)


def measures_page() -> str:
    """Measures of difficulty and the other numbers of pages, with formula, symbols and paper."""
    from fsviz.difficulty.measures import CAUSE_TITLES, MEASURES, NEEDS
    from fsviz.ui.parts.about import QUANTITIES

    lines = ["# Measures", "", "One number per task. The direction says whether a higher value is harder or easier."]
    for measure in MEASURES.values():
        facts = {
            "Name": f"`{measure.name}`",
            "Name in the paper": text(measure.paper_name),
            "Higher is": measure.direction,
            "Needs": text("; ".join(NEEDS[need] for need in measure.needs)),
            "Cause": text(CAUSE_TITLES[measure.cause]) if measure.cause else "",
            "Paper": text(measure.paper),
        }
        lines += ["", f"## {text(measure.title)}", "", text(measure.description), ""]
        lines += [*formula(measure.formula, measure.symbols), *facts_list(facts)]
    lines += ["", "# Other numbers on the pages"]
    for quantity in QUANTITIES.values():
        lines += [
            "",
            f"## {text(quantity.title)}",
            "",
            text(quantity.description),
            "",
            *formula(quantity.formula, quantity.symbols),
        ]
        lines += facts_list({"Paper": text(quantity.paper)})
    return "\n".join(lines)


def samplers_page() -> str:
    """Samplers of tasks and distances between classes."""
    from fsviz.sampling import SAMPLERS
    from fsviz.taxonomy import DISTANCES

    lines = ["# Samplers"]
    for sampler in SAMPLERS.values():
        lines += ["", f"## {text(sampler.title)}", "", text(sampler.description), ""]
        lines += [*formula(sampler.formula, sampler.symbols)]
        lines += facts_list({"Name": f"`{sampler.name}`", "Paper": text(sampler.paper)})
        lines += ["", *settings_table(sampler.settings)]
    lines += ["", "# Distances between classes"]
    for name, distance in DISTANCES.items():
        lines += ["", f"## {text(distance.title)}", "", text(distance.description), ""]
        lines += [*formula(distance.formula, distance.symbols)]
        lines += facts_list({"Name": f"`{name}`", "Paper": text(distance.paper), "Needs": distance.needs})
    return "\n".join(lines)


PAGES: dict[str, Callable[[], str]] = {
    f"{FOLDER}/pages.md": pages_page,
    f"{FOLDER}/commands.md": commands_page,
    f"{FOLDER}/python.md": python_page,
    f"{FOLDER}/settings.md": settings_page,
    f"{FOLDER}/methods.md": methods_page,
    f"{FOLDER}/measures.md": measures_page,
    f"{FOLDER}/samplers.md": samplers_page,
}


def settings_table(settings: Iterable[Any]) -> list[str]:
    """Settings with their defaults, limits and meaning."""

    def rows() -> Iterator[tuple[str, str, str, str]]:
        for setting in settings:
            default = ",".join(setting.default) if isinstance(setting.default, list) else str(setting.default)
            yield f"`{setting.name}`", text(default), text(limits(setting)), text(setting.help)

    return table(("setting", "default", "values", "meaning"), rows())


def limits(setting: Any) -> str:
    """The values that a setting takes."""
    if setting.choices:
        return ", ".join(setting.choices)
    if setting.kind not in ("int", "float"):
        return {"flag": "true or false"}.get(setting.kind, setting.kind)
    return f"from {setting.low:g}" if math.isinf(setting.high) else f"{setting.low:g} to {setting.high:g}"


def formula(latex: str, symbols: str) -> list[str]:
    """A formula as MathML, which browsers draw without a script, and its symbols."""
    from fsviz.ui.parts.about import as_written

    if not latex:
        return []
    lines = [f"<div>{mathml(latex, 'block')}</div>", ""]
    if symbols:
        parts = as_written(symbols).split("$")  # words and symbols in turn
        words = "".join(mathml(part, "inline") if i % 2 else text(part, True) for i, part in enumerate(parts))
        lines += [f"where {words}.", ""]
    return lines


def mathml(latex: str, display: str) -> str:
    from latex2mathml.converter import convert

    for word, plain in _NO_MATHML.items():
        latex = re.sub(re.escape(word) + r"(?![a-zA-Z])", plain.replace("\\", "\\\\"), latex)
    return convert(latex, display=display)


def facts_list(facts: Mapping[str, str]) -> list[str]:
    return [f"- {label}: {value}" for label, value in facts.items() if value]


def table(titles: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    lines = [" | ".join(row) for row in rows]
    return (
        [f"| {' | '.join(titles)} |", f"|{' --- |' * len(titles)}", *(f"| {line} |" for line in lines)] if lines else []
    )


def text(words: str, part: bool = False) -> str:
    """Plain words as Markdown; part: of a line, so that the spaces around it count."""
    words = re.sub(r"\s+", " ", words) if part else " ".join(words.split())
    return re.sub(r"([\\`*_\[\]|~])", r"\\\1", html.escape(words, quote=False))


def on_files(files: Any, *, config: Any) -> Any:
    """Adds the generated pages (a hook of MkDocs)."""
    from mkdocs.structure.files import File

    sys.path.insert(0, str(ROOT))  # MkDocs restores the path after loading a hook
    for path, page in PAGES.items():
        if (old := files.get_file_from_path(path)) is not None:
            files.remove(old)
        files.append(File.generated(config, path, content=page() + "\n"))
    return files


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    sys.path.insert(0, str(ROOT))
    folder.mkdir(parents=True, exist_ok=True)
    for path, page in PAGES.items():
        (folder / Path(path).name).write_text(page() + "\n", encoding="utf-8")
        print(folder / Path(path).name)


if __name__ == "__main__":
    main()
