"""Clicks, declared where a figure, graph or table is shown: `export.chart(..., sets=SETTING)`.

This is the one place that reads the selections that Streamlit reports. A click writes what the clicked point carries
into a declared setting, and so into the link of the page. A click on something that stands for nothing is ignored.
Other figures that set the same thing lose their mark, and all of them lose it when the browser goes back or forward.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import streamlit as st

from fsviz.errors import FsvizError
from fsviz.settings import Setting, Value
from fsviz.text import escape_plotly
from fsviz.ui.parts import links

_MARKS = "_marks_of_clicks"
_LAST = "_clicked_last"


@dataclass(frozen=True)
class Point:
    """Something that was clicked.

    data  what it carries: the customdata of a point, the number of a row or node, the row and column of a cell
    x, y  where a point of a figure lies
    part  in a graph: "node", "edge", or the number of the series of any other mark
    """

    data: tuple[Any, ...] = ()
    x: Any = None
    y: Any = None
    part: str | int | None = None

    def at(self, place: int | str) -> Any:
        """One of the things it carries by its number, or its "x" or "y"; None if it has none."""
        if isinstance(place, str):
            return getattr(self, place)
        return self.data[place] if -len(self.data) <= place < len(self.data) else None


Targets: TypeAlias = Setting | tuple[Setting, ...] | Mapping[int | str, Setting] | Callable[[Any], None]
Choice: TypeAlias = list[tuple[Setting, Value]]
Values: TypeAlias = Mapping[Any, Any] | Sequence[Any] | Callable[[Point], Any]


@dataclass(frozen=True)
class Area:
    """A box or a lasso that sets the value that a function makes of the x and y of its corners.

    clears  whether a click that draws no area resets the setting
    """

    sets: Setting
    value: Callable[[Sequence[float], Sequence[float]], Value]
    clears: bool = False


@dataclass(frozen=True)
class Click:
    """A click and the settings that it sets.

    sets     one setting, several, those of what a point carries at each place, or a function that is called; none
             where only an area sets something
    values   what is clicked -> value, or one value per setting: a sequence is for rows, nodes and numbered points; a
             mapping for what points carry, and in a graph for parts, each with a sequence. Of several settings, one
             whose value is None stays as it is, unless None is its default
    also     keys of the link that are set besides
    clears   a click that is taken back resets the settings to their defaults
    toggles  the settings that a click on what is chosen already resets
    repeats  a click that is taken back is one more on the same thing: a graph reports a second click like that
    area     what a box or a lasso sets
    """

    sets: Targets = ()
    values: Values | None = None
    also: Mapping[str, Value] = field(default_factory=dict)
    clears: bool = False
    toggles: tuple[Setting, ...] = ()
    repeats: bool = False
    area: Area | None = None


def click_of(sets: Setting | Click) -> Click:
    return sets if isinstance(sets, Click) else Click(sets)


def callback(key: str, sets: Setting | Click, own: str = "") -> Callable[[], None]:
    """The function that Streamlit calls when something with this key is clicked; `own` is the key of its marks."""
    return partial(_take, key, click_of(sets), own or key)


def apply(click: Click, points: Sequence[Point], key: str = "") -> bool:
    """Sets what the clicked points stand for, of several the first that is not set yet; False if they stand for
    nothing."""
    if callable(click.sets):
        values = [value for value in (_value(click.values, point) for point in points) if value is not None]
        if not values:
            return False
        click.sets(values[0])
    else:
        choices = [choice for choice in (_choice(click, point) for point in points) if choice]
        if not choices:
            return False
        choice = next((choice for choice in choices if not _is_set(choice)), choices[0])
        if click.toggles and _is_set(choice):
            choice = [(setting, setting.default) for setting in click.toggles]
        _write(choice)
        clear_marks(*(setting.name for setting, _ in choice), but=key)
    st.session_state.update(click.also)
    return True


def _take(key: str, click: Click, own: str) -> None:
    event: Any = st.session_state.get(key)
    selection: Mapping[str, Any] = event.selection if event else {}
    if click.area is not None:
        shapes = [*selection.get("box", ()), *selection.get("lasso", ())]
        if shapes:
            value = click.area.value(shapes[-1]["x"], shapes[-1]["y"])
            if value is not None:
                st.session_state[click.area.sets.name] = value
                clear_marks(click.area.sets.name, but=own)
            return
        if click.area.clears:
            st.session_state[click.area.sets.name] = click.area.sets.default
    points = points_in(selection)
    if click.repeats:
        last_key, last = st.session_state.get(_LAST, ("", []))
        st.session_state[_LAST] = (key, points)
        points = points or (last if last_key == key else [])
    if not apply(click, points, own) and click.clears and not points:
        _write([(setting, setting.default) for setting in _targets(click.sets)])


# Reading an event ------------------------------------------------------------------------------------------------


def points_in(selection: Mapping[str, Any]) -> list[Point]:
    """Everything that a selection of a figure, a graph or a table holds."""
    points = [Point(_carried(p), p.get("x"), p.get("y")) for p in selection.get("points", ())]
    points += [Point((int(row),)) for row in selection.get("rows", ())]
    for group in selection.get("selected", ()):
        kind = group["data_type"]
        part = kind if kind in ("node", "edge") else group["series_index"]
        points += [Point((index,), part=part) for index in group["data_indices"]]
    return points


def data_in(event: Any) -> list[Any]:
    """The first thing that each selected point carries, or the numbers of the selected rows."""
    return [point.data[0] for point in points_in(event.selection) if point.data]


def _carried(point: Mapping[str, Any]) -> tuple[Any, ...]:
    data = point.get("customdata")
    return tuple(data) if isinstance(data, list | tuple) else () if data is None else (data,)


# From a point to values of settings ------------------------------------------------------------------------------


def _targets(sets: Targets) -> tuple[Setting, ...]:
    if isinstance(sets, Setting):
        return (sets,)
    return tuple(sets.values()) if isinstance(sets, Mapping) else sets if isinstance(sets, tuple) else ()


def _choice(click: Click, point: Point) -> Choice:
    """The settings of a point with their values; none if it stands for nothing."""
    if isinstance(click.sets, Mapping):
        values: tuple[Any, ...] = tuple(point.at(place) for place in click.sets)
    elif not click.sets:
        values = ()
    else:
        value = _value(click.values, point)
        values = (value,) if isinstance(click.sets, Setting) else () if value is None else tuple(value)
    try:
        return [
            (setting, _checked(setting, value))
            for setting, value in zip(_targets(click.sets), values, strict=False)
            if value is not None or setting.default is None
        ]
    except (FsvizError, ValueError):
        return []


def _value(values: Values | None, point: Point) -> Any:
    """The value of a point; None if it stands for nothing."""
    if callable(values):
        return values(point)
    carried = point.at(0)
    if values is None:
        return carried
    items: Any = values
    if point.part is not None and isinstance(items, Mapping):
        items = items.get(point.part, ())
    elif point.part == "edge":
        return None
    if isinstance(items, Mapping):
        return items.get(carried)
    return items[carried] if isinstance(carried, int) and 0 <= carried < len(items) else None


def _checked(setting: Setting, value: Any) -> Value:
    """A value in the type of its setting; figures carry texts escaped, and titles as well as identifiers."""
    if value is None:
        return None
    if setting.kind == "choice" and setting.choices:
        names = {escape_plotly(title): name for name, title in setting.choices.items()}
        names |= {escape_plotly(name): name for name in setting.choices} | {name: name for name in setting.choices}
        text = names.get(str(value), "")
        if not text:
            raise ValueError
        return text
    if setting.kind in ("choice", "text"):
        return str(value)
    if setting.kind == "names":
        return list(value)
    return setting.check(value)


def _is_set(choice: Choice) -> bool:
    return all(st.session_state.get(setting.name) == value for setting, value in choice)


def _write(choice: Choice) -> None:
    for setting, value in choice:
        st.session_state[setting.name] = value


# Marks -----------------------------------------------------------------------------------------------------------


@dataclass
class _Marks:
    """The settings that points and areas of a figure or table set, and how often its marks were cleared."""

    points: frozenset[str]
    area: str
    times: int = 0

    def set_by(self, event: Any) -> frozenset[str]:
        """The settings that what is marked has set."""
        if not event or not points_in(event.selection):
            return frozenset()
        is_area = event.selection.get("box") or event.selection.get("lasso")
        return frozenset({self.area}) if is_area else self.points


def times_cleared(key: str, sets: Setting | Click) -> int:
    """Changes when nothing may be marked any more in the figure or table with this key, which then starts anew."""
    marks: dict[str, _Marks] = st.session_state.setdefault(_MARKS, {})
    click = click_of(sets)
    points, area = frozenset(setting.name for setting in _targets(click.sets)), click.area
    marks[key] = _Marks(points, area.sets.name if area else "", marks[key].times if key in marks else 0)
    return marks[key].times + links.turn()


def key_now(key: str, times: int) -> str:
    """The key of a table, another one once its marks were cleared."""
    return f"{key}_{times}" if times else key


def clear_marks(*names: str, but: str = "") -> None:
    """Clears the marks in everything that has set one of these settings, except in what was clicked just now."""
    marks: dict[str, _Marks] = st.session_state.get(_MARKS, {})
    for key, own in marks.items():
        events = (st.session_state.get(each) for each in {key, key_now(key, own.times + links.turn())})
        if key != but and any(not own.set_by(event).isdisjoint(names) for event in events):
            own.times += 1
