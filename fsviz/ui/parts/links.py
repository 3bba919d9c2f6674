"""Settings in the link of a page: read when the page is opened, written whenever they change.

Declared settings (fsviz.settings) have their link here and not from Streamlit's own binding, which writes the labels
it shows, forgets widgets that are out of sight and falls over numbers such as 1e400. A link holds identifiers, and
under the same key the same thing on every page. A default is not written into it, and stays in a link that came with
it. Streamlit's binding is left where a widget is no setting: a page of a wall, one name out of a list or none, a range
of an attribute.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from fsviz.errors import FsvizError
from fsviz.records import Dataset
from fsviz.settings import Setting, Value

CLASSROOM = "classroom"
IMAGE = Setting("image", "Image", "The selected image, by its number.", "text", "")
_KEPT = "_settings_shown"
_OWN = "_kept_by_pages"
_TURN = "_turn"
_TOGETHER = "_written_together"
_AWAITED = "_read_later"


@dataclass(frozen=True)
class LinkedSetting:
    """A setting as it was last drawn on this page.

    about    what the value belongs to: when that changes, the setting starts over from its default
    end      where its slider ended
    refused  the text of the link that was no possible value
    """

    default: Value
    about: str
    end: float
    refused: str | None


def is_another(page: str) -> bool:
    """Whether a run that begins is of another page than the one before."""
    return st.session_state.get("_page") != page


def load_from_link(page: str) -> None:
    """Begins a run of a page. On another page than before, settings start from the link."""
    if is_another(page):
        st.session_state["_page"] = page
        st.session_state[_KEPT] = {}
    if going_back():
        forget_clicks()
        st.query_params.update({})  # says the link again: what the run before wrote may have reached the browser late
    endless = {key: text for key, text in dict(st.query_params).items() if _is_endless(text)}
    for key in endless:
        del st.query_params[key]
    if endless:  # Streamlit's binding of other widgets has read it already: begin again without it
        listed = ", ".join(f"{key}={text[:40]}" for key, text in endless.items())
        notice(f"Ignored from the link: {listed} is out of range.")
        st.rerun()


def going_back() -> bool:
    """Whether the browser's back or forward button asked for this run: then the link decides."""
    return bool(getattr(get_script_run_ctx(), "is_history_navigation", False))


def turn() -> int:
    """Number of times that clicks were cleared; part of the key of every widget that reports clicks.

    When the browser goes back or forward the link decides, so widgets that still hold a click start anew.
    """
    return int(st.session_state.get(_TURN, 0))


def forget_clicks() -> None:
    """Clears all earlier clicks."""
    st.session_state[_TURN] = turn() + 1


@contextmanager
def one_step() -> Iterator[None]:
    """Makes all writes to the link inside one step of the browser's history.

    Otherwise each write is a step. An interrupted run writes nothing: the next run does. Streamlit refuses this on a
    page where a widget that it binds by itself is in the link.
    """
    st.session_state[_TOGETHER] = {}
    try:
        yield
        written = st.session_state[_TOGETHER]
    finally:
        st.session_state.pop(_TOGETHER)
    if written:
        current = {key: st.query_params.get_all(key) for key in st.query_params}
        st.query_params.from_dict({key: text for key, text in {**current, **written}.items() if text is not None})


def is_bare() -> bool:
    """Whether the link names only the dataset, as links of the navigation do."""
    return all(key in ("dataset", CLASSROOM) or key.startswith("embed") for key in st.query_params)


def say(**texts: str | Sequence[str]) -> None:
    """Puts settings into the link before the page reads it."""
    for key, text in texts.items():
        _write(key, text)


def value_of(setting: Setting, key: str, about: str = "") -> Value:
    """The value of a setting that is about to be drawn under this key: the user's, else the link's, else the default.

    An impossible value is replaced by the default, and the link follows the value.
    """
    before: LinkedSetting | None = _linked_settings().get(key)
    text, have = st.query_params.get(key), st.session_state.get(key)
    refused = None
    if before is None or have is None or going_back():
        value = setting.default
        try:
            value = value if text is None else setting.parse(text)
        except FsvizError:
            refused = text
    elif before.about != about or have == before.default:
        value = setting.default
    else:
        value = _possible(setting, have)
    end = max(
        float(setting.high if setting.typical is None else setting.typical),
        before.end if before and before.about == about else -math.inf,
        value if isinstance(value, int | float) else -math.inf,
    )
    end = min(end, setting.high)
    if before is None or value != have or type(value) is not type(have) or end != before.end:
        st.session_state[key] = value
    _linked_settings()[key] = LinkedSetting(setting.default, about, end, refused)
    current = setting.text(value)
    if text != current:  # a link that names the default keeps it: each change of the link is a step back in the browser
        _write(key, None if value == setting.default else current)
    return value


def several_of(choices: Mapping[str, str], key: str, default: Sequence[str] = (), about: str = "") -> None:
    """Prepares a widget of several choices (identifier -> title) that is about to be drawn under this key.

    The link holds identifiers separated by commas, and nothing for the default. Titles are read as well;
    one with a comma in it needs a key of its own. When `about` changes, the choice starts over from its default.
    """
    have, texts, refused = st.session_state.get(key), st.query_params.get_all(key), None
    value, before = [name for name in default if name in choices], _linked_settings().get(key)
    if before is not None and have is not None and not going_back():
        value = [name for name in have if name in choices] if before.about == about else value
    elif texts:
        names = {title: name for name, title in choices.items()} | {name: name for name in choices}
        requested = [part for text in texts for part in ([text] if text in names else text.split(",")) if part]
        value = [names[part] for part in requested if part in names]
        refused = texts[-1] if len(value) < len(requested) else None
    if value != have:
        st.session_state[key] = value
    _linked_settings()[key] = LinkedSetting("", about, math.inf, refused)
    if texts != [",".join(value)]:
        _write(key, None if value == list(default) else ",".join(value))


def names_of(
    options: Sequence[str], key: str, most: int | None = None, default: Sequence[str] = (), about: str = ""
) -> None:
    """Prepares a widget of several names that is about to be drawn under this key; `most` of them can be chosen.

    Names may contain any character, so each has a parameter of its own: key=a&key=b. No names at all, if that is not
    the default, is key= alone. When `about` changes, the choice starts over from its default.
    """
    have, texts, refused = st.session_state.get(key), st.query_params.get_all(key), None
    allowed, before, value = set(options), _linked_settings().get(key), list(default)
    if before is not None and have is not None and not going_back():
        value = [name for name in have if name in allowed][:most] if before.about == about else value
    elif texts:
        requested = list(dict.fromkeys(text for text in texts if text in allowed))[:most]
        refused = next((text for text in texts[::-1] if text and text not in requested), None)
        value = value if refused and not requested else requested
    if value != have or before is None:
        st.session_state[key] = value
    _linked_settings()[key] = LinkedSetting("", about, math.inf, refused)
    if not texts or texts != value:
        _write(key, None if value == list(default) else value or "")


def requested_for(key: str) -> str | None:
    """The text of the link under a key that the page manages itself (`keep`), "" if the link has none.

    Only when the page is opened, when another link to it is followed, and when the browser goes back or forward; None
    otherwise, when the page decides.
    """
    here = st.query_params.get(key, "")
    fresh = key not in _linked_settings() or going_back()
    return here if fresh or here != st.session_state.get(_OWN, {}).get(key, "") else None


def image_id(text: str | None, dataset: Dataset) -> int | None:
    """The image_id that a link names, None if the dataset lacks it."""
    possible = bool(text) and str(text).isascii() and str(text).isdecimal()
    return int(str(text)) if possible and int(str(text)) < len(dataset.image_class_ids()) else None


def keep(key: str, text: str | None) -> None:
    """Writes a value that the page manages itself, such as the selected image, into the link; None removes it.

    An impossible value of the link is then reported as ignored.
    """
    before: LinkedSetting | None = _linked_settings().get(key)
    requested = requested_for(key)
    _linked_settings()[key] = LinkedSetting(
        "", "", math.inf, (requested if requested and requested != text else None) if before is None else None
    )
    st.session_state.setdefault(_OWN, {})[key] = text or ""
    _write(key, text)


def end_of(key: str) -> float:
    """Maximum of the slider of a setting: its usual maximum, or a larger requested value."""
    return _linked_settings()[key].end


def await_keys(*keys: str) -> None:
    """Leaves settings in the link that a part of the page reads which is drawn in a later run."""
    st.session_state[_AWAITED] = set(keys)


def drop_from_link(*keys: str) -> None:
    """Takes settings that are not shown now out of the link."""
    for key in keys:
        if _linked_settings().pop(key, None) is not None:
            _write(key, None)


def ignored(requested: Mapping[str, str]) -> list[str]:
    """The unknown or impossible settings of a link, which are removed from it; none if they were reported before."""
    dropped = []
    awaited = st.session_state.pop(_AWAITED, set())
    for name, text in requested.items():
        if name in ("dataset", CLASSROOM) or name.startswith("embed") or name in awaited:
            continue
        linked: LinkedSetting | None = _linked_settings().get(name)
        if linked is not None:
            fine = linked.refused != text
        else:
            fine = name in st.session_state and _same(st.session_state[name], text)
        if not fine and linked is None and name in st.session_state.get(_OWN, {}):
            _write(name, None)  # the page before wrote it while this one was being opened
        elif not fine:
            dropped.append(f"{name}={str(text)[:40]}")
            if name not in st.session_state:
                _write(name, None)
    if not dropped or st.session_state.get("_ignored") == dropped:
        return []
    st.session_state["_ignored"] = dropped
    return dropped


def notice(text: str) -> None:
    """Shows one sentence below the title on the next run of any page."""
    st.session_state["_notice"] = text


def _linked_settings() -> dict[str, LinkedSetting]:
    return st.session_state.setdefault(_KEPT, {})


def _possible(setting: Setting, value: object) -> Value:
    try:
        return setting.check(value)
    except FsvizError:
        return setting.default


def _write(key: str, text: str | Sequence[str] | None) -> None:
    here = st.query_params.get_all(key) if key in st.query_params else None
    if here == (None if text is None else [text] if isinstance(text, str) else list(text)):
        return
    if _TOGETHER in st.session_state:
        st.session_state[_TOGETHER][key] = text
    elif text is None:
        del st.query_params[key]
    else:
        st.query_params[key] = text


def _is_endless(text: str) -> bool:
    """Whether a text is a number without end: 1e400, but not the word infinity, which may be a name."""
    try:
        return text.lstrip(" +-")[:1].isdigit() and math.isinf(float(text))
    except ValueError:
        return False


def _same(have: Any, text: str) -> bool:
    """Whether a widget's value is that of the link; lists and dates count as equal."""
    if not isinstance(have, str | int | float | bool) or have is None:
        return have is not None
    try:
        return abs(float(have) - float(text)) < 1e-9
    except ValueError:
        return str(have).lower() == text.lower()
