"""The scroll position of a page, and the steps of the browser's history.

A column that scrolls by itself goes back to its top when it shows something else. The browser's back and forward
lead to where a page was left, in as many steps as there were clicks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import streamlit as st


def to_top(container: str, about: str) -> None:
    """Scrolls the column around the container with this key to its top whenever `about` changes."""
    _to_top()(key=f"{container}_top", data={"container": container, "about": about})


def remember() -> None:
    """Keeps where each address of this tab is scrolled to, for back and forward; one click is one step."""
    _remember()(key="fsviz_scrolled", height=1)


@cache
def _to_top() -> Callable[..., Any]:
    return st.components.v2.component("fsviz_to_top", html="<span hidden></span>", js=_TO_TOP)


@cache
def _remember() -> Callable[..., Any]:
    return st.components.v2.component("fsviz_scrolled", html="<span hidden></span>", js=_REMEMBER)


_TO_TOP = """
const before = new Map();

export default function ({ data }) {
  const known = before.get(data.container);
  before.set(data.container, data.about);
  if (known === undefined || known === data.about) return;
  const column = document.querySelector(`.st-key-${data.container}`)?.closest('[data-testid="stColumn"]');
  if (!column) return;
  column.scrollTop = 0;
  if (column.getBoundingClientRect().top < 0) column.scrollIntoView();
}
"""

# A page is drawn piece by piece, and is as short as its first piece at first: it is scrolled again and again until it
# is long enough, or until somebody else scrolls.
_REMEMBER = """
const PATIENCE = 15000;  // milliseconds

const install = () => {
  const kept = new Map();
  let wanted = null;  // where to scroll to
  let left = null;  // the address that a link was followed from: its page is taken down before the address changes
  const main = () => document.querySelector('[data-testid="stMain"]');
  const here = () => location.pathname + location.search;
  const save = () => { if (wanted === null && left !== here() && main()) kept.set(here(), main().scrollTop); };
  const give = () => { wanted = null; };
  const restore = (until) => {
    if (wanted === null) return;
    const page = main();
    if (page && page.scrollHeight - page.clientHeight >= wanted) page.scrollTop = wanted;
    if (Date.now() < until) setTimeout(() => restore(until), 120); else wanted = null;
  };
  const scrolled = (event) => { if (event.target === main()) save(); };
  document.addEventListener("scroll", scrolled, { capture: true, passive: true });
  const clicked = (event) => {
    left = null;
    save();
    if (event.target.closest?.("a[href]")) left = here();
  };
  document.addEventListener("click", clicked, { capture: true });
  for (const event of ["wheel", "touchstart", "keydown", "pointerdown"]) {
    document.addEventListener(event, give, { capture: true, passive: true });
  }
  window.addEventListener("popstate", () => {
    wanted = kept.get(here()) ?? 0;
    restore(Date.now() + PATIENCE);
  });
};

// A menu leads to a bare address, into which the page then writes its dataset. As a step of its own, Back would lead to
// the bare address, where the page writes the dataset again: nobody would get past it. What a page writes before it is
// touched belongs to the step that led there.
const joinSteps = () => {
  const push = history.pushState.bind(history);
  let untouched = true;
  let path = location.pathname;
  const touched = () => { untouched = false; };
  for (const event of ["pointerdown", "keydown"]) {
    document.addEventListener(event, touched, { capture: true, passive: true });
  }
  window.addEventListener("popstate", () => {
    if (location.pathname !== path) untouched = true;
    path = location.pathname;
  });
  history.pushState = (state, unused, address) => {
    path = new URL(address ?? location.href, location.href).pathname;
    if (path !== location.pathname) untouched = true;
    else if (untouched) return history.replaceState(state, unused, address);
    return push(state, unused, address);
  };
};

export default function () {
  if (window.fsvizScrolled) return;
  window.fsvizScrolled = true;
  joinSteps();
  install();
}
"""
