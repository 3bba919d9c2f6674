"""Names as they were written. Each outlet has an idea of its own of what is code, so each has one function here.

Names of datasets, classes, contexts, attributes, splits, testbeds, runs and backbones come from users' files: nothing
in them may become a link, a picture, markup or a formula.

Streamlit (every text on a page is Markdown)   `escape_markdown`
Markdown files                                 `markdown`
Plotly (text, hover, legend, ticks, titles)    `escape_plotly`
CSV files                                      `csv`
LaTeX                                          pandas Styler with escape="latex", then `latex`
HTML                                           markupsafe and Jinja2 with autoescape; nothing by hand

ECharts needs none of them: it draws on a canvas and escapes names in tooltips itself. A tooltip's `formatter` is HTML.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

_MARKDOWN = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]<>#|~$&"})
_START = re.compile(r"^(\d*)(?=[-+=.)])")  # of a list or an underlined heading
# Marks that turn the direction of all text after them, ours as well. Right-to-left letters need none of them.
_DIRECTIONS = str.maketrans(dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A))))
# Where Streamlit looks for web addresses, icons and arrows once more after reading the escapes.
_APART = re.compile(r"(?<=:)(?=\S)|(?<=@)|(?<=www)(?=\.)|(?<=[-<>~])(?=[-=>])", re.IGNORECASE)
_COLON = re.compile(r":(?!\s)")
_NOTHING = ":gray[]"  # no letter in grey: parts what stands on both sides, and nobody sees it
_PLOTLY = _DIRECTIONS | str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "{": "&#123;", "$": "&#36;"})
_LATEX = str.maketrans(
    {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "±": r"$\pm$", "·": r"$\cdot$"}
)
# The start of a formula, also after a sign at which some spreadsheets part cells.
_FORMULA = re.compile(r"^(?=[=+\-@\t\r\n＝＋－＠])|(?<=[;\t])(?=\s*[=+\-@＝＋－＠])")
_KEPT_PLAIN = re.compile(
    r"^'(?=[=+\-@\t\r\n＝＋－＠])|(?<=[;\t])'(?=\s*[=+\-@＝＋－＠])"
)  # as it stands after the apostrophe


def escape_markdown(value: Any) -> str:
    """A value in a text that Streamlit draws (all of them are Markdown): shown as it is, on one line."""
    line = _NOTHING.join(_COLON.sub(r"\\:", markdown(part)) for part in _APART.split(_line(value)))
    return _START.sub(r"\1\\", line)


def code(value: Any) -> str:
    """A command or an identifier among Streamlit's text, as inline code."""
    line = _line(value)
    fence = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    room = " " * ("`" in line)
    return f"{fence}{room}{line}{room}{fence}"


def markdown(value: str) -> str:
    """A value in a line of a Markdown file."""
    return value.translate(_MARKDOWN)


def escape_plotly(value: Any) -> str:
    """A value in a Plotly figure, also in the middle of a hover template. ECharts takes names as they are."""
    return str(value).translate(_PLOTLY)


def split_title(split: str) -> str:
    """A split in a sentence, after "tasks of"; without splits all classes are in "all"."""
    return "all classes" if split == "all" else f"split {split}"


def shorten(name: str, max_length: int = 22) -> str:
    """A name where its whole length has no room; whoever cuts it says the whole nearby or on hover."""
    return name if len(name) <= max_length else name[: max_length - 1] + "…"


def short_name(name: str) -> str:
    """A class name without the path above it: Kiwi for Fruit/Kiwi."""
    return name.rpartition("/")[2] or name


def short_names(names: Sequence[str]) -> list[str]:
    """Names without the folders that they do not need to be distinct: "Granny" for "Fruit/Apple/Granny"."""
    parts = [[part for part in name.split("/") if part.strip()] for name in names]
    endings = Counter("/".join(own[-depth:]) for own in parts for depth in range(1, len(own) + 1))
    return [
        next((text for depth in range(1, len(own)) if endings[text := "/".join(own[-depth:])] == 1), name)
        for own, name in zip(parts, names, strict=True)
    ]


def percent(share: float) -> str:
    """A share in whole per cent; 100% only if it is all of them."""
    return "100%" if share >= 1 else f"{min(round(100 * share), 99)}%"


def latex(value: str) -> str:
    """The characters that pandas leaves in a LaTeX cell that it has escaped."""
    return value.translate(_LATEX)


def csv(table: pd.DataFrame, index_label: str | None = None) -> str:
    """A table as CSV in which no text is a formula: a spreadsheet shows an apostrophe before it. Numbers stay.

    That holds too where a spreadsheet parts cells at semicolons or tabs, as it does in half of Europe.

    index_label  writes the index as a first column of this name
    """
    from pandas.api.types import is_numeric_dtype

    safe = table.apply(lambda column: column if is_numeric_dtype(column) else column.map(_cell))
    safe = safe.rename(index=_cell, columns=_cell)
    return safe.to_csv(index=index_label is not None, index_label=index_label, lineterminator="\n")


def from_csv(cell: str) -> str:
    """A cell of `csv` as it was: without the apostrophes that keep it from being a formula."""
    return _KEPT_PLAIN.sub("", cell)


def _line(value: Any) -> str:
    return " ".join(str(value).translate(_DIRECTIONS).split())


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return _FORMULA.sub("'", value).replace("\r", " ")  # unquoted it would end the row
