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
IMAGE = Setting("image", "Image", "The image that was chosen on the page, by its number.", "text", "")
_KEPT = "_settings_shown"
_OWN = "_kept_by_pages"
_TURN = "_turn"
_TOGETHER = "_written_together"
_AWAITED = "_read_later"


@dataclass(frozen=True)
class Shown:
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
        told = ", ".join(f"{key}={text[:40]}" for key, text in endless.items())
        notice(f"This link's setting {told} is larger than any number, and was left out. Choose a value on the page.")
        st.rerun()


def going_back() -> bool:
    """Whether the browser's back or forward button asked for this run: then the link decides."""
    return bool(getattr(get_script_run_ctx(), "is_history_navigation", False))


def turn() -> int:
    """How often the clicks that were made before were left behind: when the browser goes back or forward the link
    decides, and what still holds a click must not be asked for it. It is part of the key of what reports clicks."""
    return int(st.session_state.get(_TURN, 0))


def forget_clicks() -> None:
    """Leaves all clicks behind that were made before."""
    st.session_state[_TURN] = turn() + 1


@contextmanager
def one_step() -> Iterator[None]:
    """What is written into the link inside is one step of the browser's history, which its back button takes back as a
    whole. Each write is a step otherwise. What is interrupted writes nothing: the run that follows does. Streamlit
    refuses it on a page where a widget that it binds by itself is in the link."""
    st.session_state[_TOGETHER] = {}
    try:
        yield
        written = st.session_state[_TOGETHER]
    finally:
        st.session_state.pop(_TOGETHER)
    if written:
        kept = {key: st.query_params.get_all(key) for key in st.query_params}
        st.query_params.from_dict({key: text for key, text in {**kept, **written}.items() if text is not None})


def is_bare() -> bool:
    """Whether the link says nothing but the dataset, as those of the navigation do."""
    return all(key in ("dataset", CLASSROOM) or key.startswith("embed") for key in st.query_params)


def say(**texts: str | Sequence[str]) -> None:
    """Puts settings into the link before the page reads it."""
    for key, text in texts.items():
        _write(key, text)


def value_of(setting: Setting, key: str, about: str = "") -> Value:
    """The value of a setting that is about to be drawn under this key: what the user chose, else the link, else the
    default. An impossible value gives way to the default, and the link follows the value.
    """
    before: Shown | None = _kept().get(key)
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
    _kept()[key] = Shown(setting.default, about, end, refused)
    said = setting.text(value)
    if text != said:  # a link that names the default keeps it: each change of the link is a step back in the browser
        _write(key, None if value == setting.default else said)
    return value


def several_of(choices: Mapping[str, str], key: str, default: Sequence[str] = (), about: str = "") -> None:
    """Prepares a widget of several choices (identifier -> title) that is about to be drawn under this key.

    The link holds identifiers with commas between, and nothing where the default is chosen. Titles are read as well;
    one with a comma in it needs a key of its own. When `about` changes, the choice starts over from its default.
    """
    have, texts, refused = st.session_state.get(key), st.query_params.get_all(key), None
    value, before = [name for name in default if name in choices], _kept().get(key)
    if before is not None and have is not None and not going_back():
        value = [name for name in have if name in choices] if before.about == about else value
    elif texts:
        known = {title: name for name, title in choices.items()} | {name: name for name in choices}
        asked = [part for text in texts for part in ([text] if text in known else text.split(",")) if part]
        value = [known[part] for part in asked if part in known]
        refused = texts[-1] if len(value) < len(asked) else None
    if value != have:
        st.session_state[key] = value
    _kept()[key] = Shown("", about, math.inf, refused)
    if texts != [",".join(value)]:
        _write(key, None if value == list(default) else ",".join(value))


def names_of(
    options: Sequence[str], key: str, most: int | None = None, default: Sequence[str] = (), about: str = ""
) -> None:
    """Prepares a widget of several names that is about to be drawn under this key; `most` of them can be chosen.

    Names may have anything in them, so each stands in the link by itself: key=a&key=b. Where others than the default
    can be none at all, that is key= alone. When `about` changes, the choice starts over from its default.
    """
    have, texts, refused = st.session_state.get(key), st.query_params.get_all(key), None
    known, before, value = set(options), _kept().get(key), list(default)
    if before is not None and have is not None and not going_back():
        value = [name for name in have if name in known][:most] if before.about == about else value
    elif texts:
        found = list(dict.fromkeys(text for text in texts if text in known))[:most]
        refused = next((text for text in texts[::-1] if text and text not in found), None)
        value = value if refused and not found else found
    if value != have or before is None:
        st.session_state[key] = value
    _kept()[key] = Shown("", about, math.inf, refused)
    if not texts or texts != value:
        _write(key, None if value == list(default) else value or "")


def asked_for(key: str) -> str | None:
    """What the link says under a key that the page looks after itself (`keep`): when the page is opened, when another
    link to it is followed, and when the browser goes back or forward. None in between, when the page knows best, and
    where the link says nothing then: ""."""
    here = st.query_params.get(key, "")
    fresh = key not in _kept() or going_back()
    return here if fresh or here != st.session_state.get(_OWN, {}).get(key, "") else None


def image_id(asked: str | None, dataset: Dataset) -> int | None:
    """The image that a link asks for, where the dataset has it."""
    possible = bool(asked) and str(asked).isascii() and str(asked).isdecimal()
    return int(str(asked)) if possible and int(str(asked)) < len(dataset.image_class_ids()) else None


def keep(key: str, text: str | None) -> None:
    """Puts what a page looks after itself, such as the image that is told about, into the link; None takes it out.

    What the link asked for before that is told as ignored where it was not possible.
    """
    before: Shown | None = _kept().get(key)
    asked = asked_for(key)
    _kept()[key] = Shown("", "", math.inf, (asked if asked and asked != text else None) if before is None else None)
    st.session_state.setdefault(_OWN, {})[key] = text or ""
    _write(key, text)


def end_of(key: str) -> float:
    """Where the slider of a setting ends: at its usual end, or at a value beyond that was asked for."""
    return _kept()[key].end


def await_keys(*keys: str) -> None:
    """Leaves settings in the link that a part of the page reads which is drawn in a later run."""
    st.session_state[_AWAITED] = set(keys)


def drop_from_link(*keys: str) -> None:
    """Takes settings that are not shown now out of the link."""
    for key in keys:
        if _kept().pop(key, None) is not None:
            _write(key, None)


def ignored(asked: Mapping[str, str]) -> list[str]:
    """The settings of a link that are unknown here or were impossible, which it loses; none where they were told."""
    found = []
    awaited = st.session_state.pop(_AWAITED, set())
    for name, text in asked.items():
        if name in ("dataset", CLASSROOM) or name.startswith("embed") or name in awaited:
            continue
        shown: Shown | None = _kept().get(name)
        if shown is not None:
            fine = shown.refused != text
        else:
            fine = name in st.session_state and _same(st.session_state[name], text)
        if not fine and shown is None and name in st.session_state.get(_OWN, {}):
            _write(name, None)  # the page before wrote it while this one was being opened
        elif not fine:
            found.append(f"{name}={str(text)[:40]}")
            if name not in st.session_state:
                _write(name, None)
    if not found or st.session_state.get("_ignored") == found:
        return []
    st.session_state["_ignored"] = found
    return found


def notice(text: str) -> None:
    """Says one sentence below the title on the next run, whatever page it is."""
    st.session_state["_notice"] = text


def _kept() -> dict[str, Shown]:
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


def _same(have: Any, asked: str) -> bool:
    """Does a widget's value say what the link asked for? Lists and dates are taken on trust."""
    if not isinstance(have, str | int | float | bool) or have is None:
        return have is not None
    try:
        return abs(float(have) - float(asked)) < 1e-9
    except ValueError:
        return str(have).lower() == asked.lower()
