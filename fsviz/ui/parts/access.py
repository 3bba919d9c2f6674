"""Permissions of the visitor of a page, decided in this one place.

Pages ask `may` before they draw a control, `deny` says in its place why it is missing, and `do` asks again before the
work itself. Nothing of this is kept in the session state: it follows from how the server was started, from the
address it listens on, and from the sessions that were unlocked.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any, ParamSpec, TypeVar

import streamlit as st
from streamlit import config
from streamlit.runtime.scriptrunner import get_script_run_ctx

from fsviz import sharing
from fsviz.errors import NotAllowed
from fsviz.text import code

P = ParamSpec("P")
Answer = TypeVar("Answer")

ACTIONS = {
    "paths": "read files of the server by their path",
    "upload": "upload files",
    "download": "have the server download datasets",
    "save": "save datasets, splits and testbeds",
    "run": "start, resume or cancel runs",
    "delete": "delete runs and datasets",
    "workers": "set how many runs go at the same time",
    "reset": "reset the guesses of the class",
}
# Limits of one computation for visitors without full use; no more of them run at a time than there are processors.
LIMITS = {
    "tasks": 200,  # searched or classified while the page waits
    "images": 30_000,  # in these tasks: tasks x classes x (support + query), times the gradient steps of a search
    "seconds": 5.0,  # of all methods together, as estimated before
    "draws": 2e8,  # classes of the split x classes per task x tasks that are drawn without images
    "sweep": 25,  # tasks that a section computes many times over: every step size, attribute or backbone
    "exported": 500_000,  # images in a testbed that is sent as a file
}


@dataclass(frozen=True)
class Access:
    """Permissions of one visitor.

    look     see the pages at all
    actions  names in ACTIONS
    folders  where typed paths may lead; None: anywhere
    """

    look: bool
    actions: frozenset[str] = frozenset()
    folders: tuple[Path, ...] | None = ()


FREE = Access(True, frozenset(ACTIONS), None)
LOOKING, LOCKED = Access(True), Access(False)

_attempts = sharing.Attempts()
_turns = BoundedSemaphore(max(2, os.cpu_count() or 2))
_unlocked: set[tuple[str, str]] = set()  # sessions, each with the password that it gave as the rule keeps it
_uploaders: set[str] = set()  # sessions whose files the server takes: its upload address knows sessions, not pages


def mine() -> Access:
    """The permissions of the visitor of the running page."""
    rule = _rule()
    if not rule.on:
        return FREE if _is_local(st.context.headers) else LOCKED
    if not _is_unlocked(rule) and not _is_admitted(rule):
        return LOOKING if rule.look else LOCKED
    actions = ACTIONS if rule.folders else [action for action in ACTIONS if action != "paths"]
    return Access(True, frozenset(actions), rule.folders)


def can(action: str) -> bool:
    if action not in ACTIONS:
        raise ValueError(f"unknown action {action!r}")
    return action in mine().actions


def do(action: str, function: Callable[P, Answer], *args: P.args, **kwargs: P.kwargs) -> Answer:
    """Calls a function on behalf of a visitor who may do this; refuses it to all others."""
    if not can(action):
        raise NotAllowed(reason(action))
    return function(*args, **kwargs)


def alone() -> bool:
    """Whether whoever looks is the one who started the server for this computer."""
    return mine() is FREE


def session() -> str:
    """The session of the visitor: a tab of a browser."""
    context = get_script_run_ctx()
    return context.session_id if context else ""


def client() -> str:
    """The address that the visitor comes from, or a word for all behind unnamed proxies."""
    return sharing.client_of(st.context.ip_address, st.context.headers, os.environ)


def shows(page: str) -> bool:
    """Whether the visitor sees a page, by its slug: all of them, those named at the start, or all with full use."""
    rule = _rule()
    return not rule.pages or page in rule.pages or (rule.on and can("save"))


def path(text: str) -> str:
    """A path that a visitor typed; refused outside the folders named at the start."""
    folders = do("paths", mine).folders  # refuses who may not give paths at all
    return text if folders is None else str(sharing.path_in_folders(text, folders))


def say_folders() -> None:
    """Shows which folders a visitor of a shared server may use."""
    folders = mine().folders
    if folders:
        st.caption(f"Allowed folders on this server: {', '.join(map(code, folders))}.")


def is_confined() -> bool:
    """Whether files must lie below the given folder: lists in it may name other places."""
    return mine().folders is not None


def limit(quantity: str) -> float:
    """The limit of one computation for this visitor; infinite with full use, which has the limits of the pages."""
    return math.inf if "run" in mine().actions else LIMITS[quantity]


def reason(action: str) -> str:
    """One sentence on an action that is not allowed: which, why, and who can."""
    rule = _rule()
    phrase = ACTIONS[action]
    if can("save"):  # full use, but no folder was named
        return f"This server cannot {phrase}: it was started without --folder PATH. Upload a zip instead."
    if rule.password or rule.login is not None:
        key = "Unlock editing first" if rule.password else "Log in first"
        return f"Read-only server: cannot {phrase}. {key} (end of the sidebar)."
    return f"Read-only server: cannot {phrase}. Its owner can, on the computer that runs it."


def show_denied(*actions: str, where: Any = None) -> None:
    """Shows why controls are missing; nothing if all actions are allowed."""
    missing = [action for action in actions if not can(action)]
    if missing:
        (where or st).caption(f"🔒 {reason(missing[0])}")


def within_limits(n_tasks: int, n_images: float) -> bool:
    """Whether this visitor may compute so many tasks and images at once; shows the reason if not."""
    if n_tasks <= limit("tasks") and n_images <= limit("images"):
        return True
    most = int(min(LIMITS["tasks"], LIMITS["images"] * n_tasks / n_images))
    st.info(
        f"Too large for this shared server: {n_tasks:,} tasks with {n_images:,.0f} images in all, limit "
        f"{LIMITS['tasks']:,} tasks and {LIMITS['images']:,} images. "
        + (f"Lower the number of tasks to {most:,}" if most else "Lower the number of classes")
        + ", or the images per class.",
        icon="⏳",
    )
    return False


@contextmanager
def compute_slot() -> Iterator[None]:
    """Waits for a free processor; visitors with full use do not wait."""
    if limit("tasks") == math.inf:
        yield
        return
    words = st.empty()
    while not _turns.acquire(timeout=0.5):  # drawing lets Streamlit end the wait of visitors who left
        words.info("Waiting for other visitors; continues automatically.", icon="⏳")
    words.empty()
    try:
        yield
    finally:
        _turns.release()


_PATH = re.compile(r"(?<![\w./:])~?/(?:[^\s/'\"<>|]+/)+([^\s/'\"<>|,;)]*)")


def without_paths(text: str) -> str:
    """A text in which every path is cut to its last part, for visitors who may not see paths."""
    return text if not _rule().on or can("paths") else _PATH.sub(r"…/\1", text)


# --- at the door -------------------------------------------------------------------------------------------------


def check_access() -> None:
    """Stops the page for visitors who may not see it, with a message or a password form."""
    here = mine()
    (_uploaders.add if "upload" in here.actions else _uploaders.discard)(session())
    if here.look:
        return
    if _rule().on:
        st.title("This server is locked", anchor=False)
        with st.columns([2, 3])[0]:
            _ask()
    else:
        st.error(sharing.REFUSAL, icon="🔒")
    st.stop()


def render_login() -> None:
    """Shows, in the sidebar of a shared server, what visitors may do and how to unlock editing."""
    rule = _rule()
    if not rule.on:
        return
    if not can("save"):
        st.caption("🔒 Read-only: no uploads, runs or changes.")
        if rule.password or rule.login is not None:
            with st.popover("Unlock editing", width="stretch"):
                _ask()
    elif _is_unlocked(rule):
        st.caption("🔓 Editing unlocked in this tab.")
        key = session(), rule.password
        st.button("Lock again", on_click=_unlocked.discard, args=(key,), width="stretch")
    else:
        st.caption("🔓 Logged in: editing unlocked.")
        st.button("Log out", on_click=st.logout, width="stretch")


def may_be_visited() -> bool:
    """Whether the server shows anybody more than a refusal: by its rule, or because it is for this computer alone."""
    return _rule().on or sharing.is_loopback(config.get_option("server.address"))


def is_owner(headers: Mapping[str, str]) -> bool:
    """Whether a connection is that of whoever started the server, for this computer alone."""
    return not _rule().on and _is_local(headers)


def takes_files_of(session: str) -> bool:
    """Whether the server takes files for a session."""
    return session in _uploaders


def _ask() -> None:
    rule = _rule()
    if rule.password:
        with st.form("unlock", border=False, clear_on_submit=True):
            password = st.text_input(
                "Password", type="password", key="unlock_password", autocomplete="current-password"
            )
            if st.form_submit_button("Unlock", type="primary", width="stretch"):
                _try(password, rule.password)
    if rule.login is not None:
        st.button("Log in", on_click=st.login, width="stretch")
        if st.user.to_dict().get("is_logged_in"):
            st.warning("Logged in, but this account may not edit here.", icon="🔒")


def _try(password: str, expected: str) -> None:
    wait = _attempts.take(client(), time.monotonic())
    if wait:
        st.error(f"Too many wrong passwords. Try again in {math.ceil(wait):,} s.", icon="🔒")
    elif sharing.is_password(password, expected):
        _attempts.forgive(client())
        _unlocked.add((session(), expected))
        st.rerun()
    else:
        st.error("Wrong password.", icon="🔒")


def _rule() -> sharing.Sharing:
    return sharing.from_environment(os.environ)


def _is_unlocked(rule: sharing.Sharing) -> bool:
    return bool(rule.password) and (session(), rule.password) in _unlocked


def _is_local(headers: Mapping[str, str]) -> bool:
    """Whether server and visitor are on the same computer, with nothing between them that others could come through.

    A proxy forwards from outside to an address of this computer, and a foreign name that leads to it lets any web page
    speak to it: both show in what the browser was told to ask for.
    """
    return sharing.is_loopback(config.get_option("server.address")) and (
        not len(headers) or (sharing.is_loopback(headers.get("Host")) and not sharing.is_forwarded(headers))
    )


def _is_admitted(rule: sharing.Sharing) -> bool:
    if rule.login is None:
        return False
    user = st.user.to_dict()
    return bool(user.get("is_logged_in")) and sharing.is_admitted(user, rule.login)
