"""Names as they were written. Each outlet has an idea of its own of what is code, so each has one function here.

Names of datasets, classes, contexts, attributes, splits, testbeds, runs and backbones come from users' files: nothing
in them may become a link, a picture, markup or a formula.

Streamlit (every text on a page is Markdown)   `escape_markdown`
Markdown files                                 `markdown`
Plotly (text, hover, legend, ticks, titles)    `escape_plotly`
CSV files                                      `csv`
LaTeX                                          pandas Styler with escape="latex", then `latex`
HTML                                           markupsafe and Jinja2 with autoescape; nothing by hand

Names of classes in nested folders are paths: `short_names` first, for everything that people read.

ECharts needs none of them: it draws on a canvas and escapes names in tooltips itself. A tooltip's `formatter` is HTML.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
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
    """A name cut in the middle if its whole length has no room; the whole name is nearby or on hover."""
    return name if len(name) <= max_length else _cut(name, max_length, max_length // 2)


def short_names(names: Sequence[str], max_length: int = 0) -> list[str]:
    """Names without the folders that they do not need to be distinct: "Granny" for "Fruit/Apple/Granny".

    max_length  longer names are cut in the middle, with more letters where two would be the same; 0 cuts none
    """
    tails = _tails(list(dict.fromkeys(names)))
    if max_length:
        tails = dict(zip(tails, _distinct_cuts(list(tails.values()), max_length), strict=True))
    return [tails[name] for name in names]


def _tails(names: Sequence[str]) -> dict[str, str]:
    """Name -> the shortest ending, in whole folders, that no second name has.

    An ending with fewer than two letters is no name: "F/A-18" and "dog/01" stay whole.
    """
    parts = [[part for part in name.split("/") if part.strip()] for name in names]
    endings = [["/".join(own[-depth:]) for depth in range(1, len(own) + 1)] for own in parts]
    counts = Counter(ending for own in endings for ending in own)
    return {
        name: next((e for e in own[:-1] if counts[e] == 1 and sum(map(str.isalpha, e)) > 1), name)
        for own, name in zip(endings, names, strict=True)
    }


def _distinct_cuts(names: Sequence[str], max_length: int) -> list[str]:
    """Names cut where similar ones do not differ; if two would still be the same, elsewhere or with more letters."""
    begins, ends = _shared_letters(names), _shared_letters([name[::-1] for name in names])
    cuts = [_cut(name, max_length, _head(name, max_length, *at)) for name, *at in zip(names, begins, ends, strict=True)]
    for length in range(max_length, max(map(len, names), default=0) + 1):
        counts = Counter(cuts)
        clashes = [i for i, cut in enumerate(cuts) if counts[cut] > 1]
        if not clashes:
            break
        heads = sorted(range(1, length - 1), key=lambda head: abs(head - length // 2))
        trials = ([_cut(names[i], length, head) for i in clashes] for head in heads)
        free = set(cuts) - {cuts[i] for i in clashes}
        distinct = (trial for trial in trials if len(set(trial)) == len(trial) and not free & set(trial))
        for i, cut in zip(clashes, next(distinct, [shorten(names[i], length + 1) for i in clashes]), strict=True):
            cuts[i] = cut
    return cuts


def _shared_letters(names: Sequence[str]) -> list[int]:
    """Length of the longest beginning that each name shares with another one."""
    shared = [0] * len(names)
    for a, b in pairwise(sorted(range(len(names)), key=names.__getitem__)):
        pairs = enumerate(zip(names[a], names[b], strict=False))
        n = next((at for at, (first, second) in pairs if first != second), min(len(names[a]), len(names[b])))
        shared[a], shared[b] = max(shared[a], n), max(shared[b], n)
    return shared


def _head(name: str, max_length: int, begin: int, end: int) -> int:
    """Letters before the ellipsis, so that a name keeps the part in which it differs.

    begin, end  letters at both ends that it shares with a similar name
    """
    half, rest, front = max_length // 2, len(name) - begin, len(name) - end
    if half >= begin + 3:
        return half
    if rest + 4 <= max_length:
        return min(half, max_length - 1 - rest)
    return max(half, front) if front + 4 <= max_length else half


def _cut(name: str, max_length: int, head: int) -> str:
    """A name with an ellipsis after `head` letters and the letters at its end that still have room."""
    tail = max_length - 1 - head
    return name if len(name) <= max_length else f"{name[:head].rstrip()}…{name[len(name) - tail :].lstrip()}"


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
