"""Draws the lower part of a page after the upper part is rendered.

A browser draws the images of a page when nothing else is left to do: first come the scripts of every kind of element
(Plotly alone has several megabytes to fetch and compile) and every element that the page sends. In a fragment,
`is_rendered` delays everything below the images to a second run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import streamlit as st

STANDS = "_stands"


def is_rendered() -> bool:
    """Whether the browser has drawn the page once in this visit; the fragment around reruns when it has."""
    if not st.session_state.get(STANDS):
        _component()(key="page_stands", default={"drawn": False}, on_drawn_change=_remember, height=1)
    return bool(st.session_state.get(STANDS))


def _remember() -> None:
    st.session_state[STANDS] = True


@cache
def _component() -> Callable[..., Any]:
    return st.components.v2.component("fsviz_stands", html="<span hidden></span>", js=_JS)


# An idle moment after a while: scripts of components above are loaded one by one, and their images decoded.
_JS = """
const idle = window.requestIdleCallback ?? ((act) => setTimeout(act, 500));

export default function ({ parentElement, setStateValue }) {
  if (parentElement.asked) return;
  parentElement.asked = true;
  setTimeout(() => idle(() => setStateValue("drawn", true), { timeout: 5000 }), 300);
}
"""
