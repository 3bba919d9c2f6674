"""Column and Table: what a table shows, declared once for pages, commands, CSV files, reports and LaTeX.

A declaration names its columns for people, with unit, digits and interval. Rows stay raw: a DataFrame, a list of
mappings or a mapping of columns, with numbers as they were computed. What has no value in any row is not shown.

On a page     `frame`, drawn by `export.table` of the ui room: numbers stay numbers, so they sort
In a command  `to_text`
CSV           `to_csv`
HTML, LaTeX and Markdown: the reports room, from `cells`
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from fsviz import text

if TYPE_CHECKING:
    import pandas as pd

Rows: TypeAlias = "pd.DataFrame | Sequence[Mapping[str, Any]] | Mapping[str, Any]"
Kind = Literal["text", "number", "percent", "share", "points", "bits", "count", "p", "bar", "image", "class"]

UNITS = {"percent": "%", "share": "%", "points": "points", "bits": "bits"}
DIGITS = {"percent": 1, "share": 1, "points": 1, "bits": 2, "count": 0}
NOTHING = "–"
LETTER, PADDING = 6.6, 16  # approximate width of a letter on a page and of the edges of a cell, in pixels


@dataclass(frozen=True)
class Column:
    """One column of a table.

    name      field of a row
    title     header
    unit      after the header in brackets; "" takes the one of the kind
    digits    after the point; None takes those of the kind, or four significant digits
    interval  field with the half width of the 95% interval, or the fields of its two ends
    kind      percent holds 0 to 100, share 0 to 1, points a signed difference, count a whole number, p a probability
              with two significant digits, bar a number that a page draws as a bar, image the address of a picture
              (pages only), class the name of a class or the names of several in a list: whole in CSV files, elsewhere
              without the folders that the names of the table, or of the list, do not need to be distinct
    help      tooltip of the header on a page
    high      where a bar ends; None: at the largest value
    width     in pixels on a page; 0 leaves it to the page
    """

    name: str
    title: str
    unit: str = ""
    digits: int | None = None
    interval: str | tuple[str, str] = ""
    kind: Kind = "text"
    help: str = ""
    high: float | None = None
    width: int = 0

    @property
    def header(self) -> str:
        """Title and unit."""
        unit = self.unit or UNITS.get(self.kind, "")
        return f"{self.title} ({unit})" if unit else self.title

    @property
    def is_number(self) -> bool:
        return self.kind not in ("text", "image", "class")

    @property
    def letters(self) -> int:
        """Letters that fit on a page; 0 if its width is free."""
        return int((self.width - PADDING) / LETTER) if self.width else 0

    @property
    def scale(self) -> float:
        """Factor between a row's value and the number shown."""
        return 100.0 if self.kind == "share" else 1.0

    @property
    def shown_digits(self) -> int | None:
        return DIGITS.get(self.kind) if self.digits is None else self.digits

    @property
    def ends(self) -> tuple[str, ...]:
        """Fields of the interval: none, the half width, or the two ends."""
        return (self.interval,) * bool(self.interval) if isinstance(self.interval, str) else self.interval

    def number(self, value: float, sign: str | None = None) -> str:
        """A number of this column as text; `sign` replaces the sign that points carry."""
        sign = ("+" if self.kind == "points" else "") if sign is None else sign
        value, digits = self.scale * float(value), self.shown_digits
        if self.kind == "p":
            return f"{value:.2g}"
        if digits is not None:
            return f"{value:{sign},.{digits}f}"
        return f"{value:{sign}.4g}" if abs(value) < 1000 else f"{value:{sign},.0f}"

    def half_width(self, value: float) -> str:
        """The half width of an interval as text: two significant digits for numbers without declared digits."""
        if self.shown_digits is None and abs(value) < 100:
            return f"{self.scale * float(value):.2g}"
        return self.number(value, "")

    def cell(self, row: Mapping[str, Any], nothing: str = NOTHING) -> str:
        """The value of a row as text, with its interval where that is known."""
        value: Any = row.get(self.name)
        if is_missing(value):
            return nothing
        if not self.is_number or isinstance(value, str | bool):
            return plain_cell(value)
        ends: list[Any] = [row.get(name) for name in self.ends]
        if not ends or any(is_missing(end) for end in ends):
            return self.number(value)
        if len(ends) == 1:
            return f"{self.number(value)} ± {self.half_width(ends[0])}"
        return f"{self.number(value)} ({self.number(ends[0])} to {self.number(ends[1])})"


@dataclass(frozen=True, init=False)
class Table:
    """A title and columns in their order."""

    title: str
    columns: tuple[Column, ...]

    def __init__(self, title: str, *columns: Column) -> None:
        object.__setattr__(self, "title", title)
        object.__setattr__(self, "columns", columns)

    def with_(self, *columns: Column, before: str = "") -> Table:
        """The same table with more columns, before the named one or at the end."""
        at = [column.name for column in self.columns].index(before) if before else len(self.columns)
        return Table(self.title, *self.columns[:at], *columns, *self.columns[at:])

    def only(self, *names: str) -> Table:
        """The same table with the named columns alone, in this order."""
        by_name = {column.name: column for column in self.columns}
        return Table(self.title, *(by_name[name] for name in names))

    def without(self, *names: str) -> Table:
        """The same table without the named columns."""
        return Table(self.title, *(column for column in self.columns if column.name not in names))

    def titled(self, title: str) -> Table:
        """The same table under another title."""
        return Table(title, *self.columns)


@dataclass(frozen=True)
class TableData:
    """A table with its rows."""

    table: Table
    rows: Rows


def is_missing(value: Any) -> bool:
    """Whether a cell holds nothing: None, a number that is not finite, an empty text or list."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, str | list | tuple):
        return not value
    return isinstance(value, float) and not math.isfinite(value)


def plain_cell(value: Any) -> str:
    """A value without a declared format as text on one line."""
    if isinstance(value, bool) or type(value).__name__ == "bool":  # of NumPy, too
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(str(each) for each in value)
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"
    return " ".join(str(value).split())


def data(rows: Rows) -> pd.DataFrame:
    """The rows as a DataFrame that holds their values as they are."""
    import pandas as pd

    if isinstance(rows, pd.DataFrame):
        return rows
    return pd.DataFrame(rows) if isinstance(rows, Mapping) else pd.DataFrame(list(rows), dtype=object)


def columns_with_values(table: Table, rows: pd.DataFrame) -> list[Column]:
    """The columns in which some row has a value; all of them for no rows."""
    return [column for column in table.columns if not len(rows) or has_values(rows, column.name)]


def has_values(rows: pd.DataFrame, name: str) -> bool:
    """Whether some row has a value under this name."""
    return name in rows and not all(map(is_missing, rows[name].tolist()))


def with_short_names(table: Table, rows: pd.DataFrame, cut: bool = False) -> pd.DataFrame:
    """The rows with short names in the columns of classes, which `cut` makes fit the width of their column."""
    columns = [column for column in table.columns if column.kind == "class" and column.name in rows]
    whole = [value for column in columns for value in rows[column.name].tolist() if isinstance(value, str)]
    names: dict[str, list[Any]] = {}
    for column in columns:
        short = dict(zip(whole, text.short_names(whole, column.letters if cut else 0), strict=True))
        names[column.name] = [
            text.short_names(value) if isinstance(value, list | tuple) else short.get(value, value)
            for value in rows[column.name].tolist()
        ]
    return rows.assign(**names)


def frame(table: Table, rows: Rows, whole_names: bool = False) -> pd.DataFrame:
    """The columns that have values, by name: numbers in the unit of the header, each followed by its interval."""
    import pandas as pd

    source = data(rows) if whole_names else with_short_names(table, data(rows), cut=True)
    values: dict[str, Any] = {}
    for column in columns_with_values(table, source):
        for name in (column.name, *(end for end in column.ends if has_values(source, end))):
            values[name] = _values(column, source[name]) if name in source else []
    return pd.DataFrame(values).reset_index(drop=True)


def _values(column: Column, values: pd.Series) -> pd.Series:
    """Numbers or texts of a column: numbers in its unit, lists as text."""
    import pandas as pd

    if values.dtype == object:
        values = values.map(lambda value: plain_cell(value) if isinstance(value, list | tuple) else value)
    if column.is_number:
        with suppress(ValueError, TypeError):  # a text among numbers stays
            values = pd.to_numeric(values)
    return (values * column.scale).round(12) if column.scale != 1 else values


def headers(table: Table, names: Iterable[str]) -> dict[str, str]:
    """Name -> header for the columns and intervals of a `frame`, each header once."""
    by_name = {column.name: column.header for column in table.columns}
    several = sum(len(column.ends) == 1 for column in table.columns) > 1
    for column in table.columns:
        if len(column.ends) == 1:
            by_name.setdefault(column.ends[0], f"± {column.title.lower()}" if several else "± 95%")
        for end, word in zip(column.ends if len(column.ends) == 2 else (), ("from", "to"), strict=False):
            by_name.setdefault(end, f"{column.title} {word}")
    listed = list(names)
    return dict(zip(listed, _distinct([by_name[name] for name in listed]), strict=True))


def _distinct(titles: Sequence[str]) -> list[str]:
    """Titles with a number after those that came before: names of users' methods and classes may repeat."""
    counts: dict[str, int] = {}
    distinct = []
    for title in titles:
        counts[title] = counts.get(title, 0) + 1
        distinct.append(title if counts[title] == 1 else f"{title} ({counts[title]})")
    return distinct


def exported(table: Table, rows: Rows) -> pd.DataFrame:
    """Numbers and texts under the headers of a page, without pictures: what a CSV file holds."""
    framed = frame(table, rows, whole_names=True)
    pictures = [column.name for column in table.columns if column.kind == "image" and column.name in framed]
    framed = framed.drop(columns=pictures)
    return framed.set_axis(list(headers(table, framed).values()), axis=1)


def to_csv(table: Table, rows: Rows) -> str:
    """The rows as CSV."""
    return text.csv(exported(table, rows))


def cells(
    table: Table, rows: Rows, nothing: str = NOTHING, like: Rows | None = None
) -> tuple[pd.DataFrame, list[bool]]:
    """Every cell as text under its header, and which columns are numbers; without pictures.

    like  other rows that say which columns have values
    """
    import pandas as pd

    source = with_short_names(table, data(rows))
    columns = [c for c in columns_with_values(table, source if like is None else data(like)) if c.kind != "image"]
    listed = source.to_dict("records")
    titles = _distinct([column.header for column in columns])
    body = {title: [column.cell(row, nothing) for row in listed] for title, column in zip(titles, columns, strict=True)}
    return pd.DataFrame(body, columns=titles, dtype=object), [column.is_number for column in columns]


def to_text(table: Table, rows: Rows) -> str:
    """The rows as aligned text for a terminal, numbers to the right."""
    body, numbers = cells(table, rows, nothing="-")
    if body.empty:
        return "(none)"
    lines = [[_printable(cell) for cell in line] for line in (list(body), *body.to_numpy().tolist())]
    widths = [max(len(line[i]) for line in lines) for i in range(len(numbers))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numbers, strict=True)
        ).rstrip()
        for line in lines
    )


def _printable(cell: str) -> str:
    """A cell without line ends and control characters, which a name may hold."""
    return "".join(character if character.isprintable() else "?" for character in cell)
