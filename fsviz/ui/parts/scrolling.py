"""A column that scrolls by itself goes back to its top when it tells about something else."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import streamlit as st


def to_top(container: str, about: str) -> None:
    """Scrolls the column around the container with this key to its top whenever `about` changes."""
    _component()(key=f"{container}_top", data={"container": container, "about": about})


@cache
def _component() -> Callable[..., Any]:
    return st.components.v2.component("fsviz_to_top", html="<span hidden></span>", js=_JS)


_JS = """
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
