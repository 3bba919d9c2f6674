"""A button that copies the link of the page with every setting.

Browsers allow the clipboard on https and on this machine only. On plain http an older way is tried; if that fails too,
the link is shown to be copied by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import streamlit as st


def button() -> None:
    _component()(key="copy_link", width="content")


@cache
def _component() -> Callable[..., Any]:
    return st.components.v2.component("fsviz_copy_link", html=_HTML, css=_CSS, js=_JS)


_HTML = """
<div class="copy">
  <button type="button" title="Copy a link to this view with all settings" aria-label="Copy link">
    <i>🔗</i> <b>Copy link</b></button>
  <span role="status"></span>
  <input type="text" readonly hidden aria-label="Link of this page">
</div>
"""

_CSS = """
.copy { position: relative; display: flex; gap: 8px; align-items: center; justify-content: flex-end;
  font-family: var(--st-font); color: var(--st-text-color); font-size: 0.85rem; }
button { font: inherit; color: inherit; cursor: pointer; padding: 4px 10px; height: 2rem; border-radius: 8px;
  white-space: nowrap;  border: 1px solid var(--st-border-color); background: var(--st-background-color); }
button:hover, button:focus-visible { border-color: var(--st-primary-color); color: var(--st-primary-color); }
span { opacity: 0.75; order: -1; }
span:empty { display: none; }
i, b { font: inherit; }
@media (max-width: 1435px) { b { display: none; } }
input { position: absolute; top: 2.6rem; right: 0; font: inherit; color: inherit; width: 22rem; max-width: 80vw;
  padding: 4px 8px; border-radius: 8px;
  border: 1px solid var(--st-border-color); background: var(--st-secondary-background-color); }
input[hidden] { display: none; }
"""

_JS = """
const copied = async (link, box) => {
  try {
    await navigator.clipboard.writeText(link);
    return true;
  } catch {
    box.hidden = false;
    box.focus();
    box.select();
    return document.execCommand("copy");
  }
};

export default function ({ parentElement }) {
  const box = parentElement.querySelector("input");
  const said = parentElement.querySelector("span");
  parentElement.querySelector("button").onclick = async () => {
    const link = window.location.href;
    box.value = link;
    const done = await copied(link, box);
    box.hidden = done;
    said.textContent = done ? "Copied" : "Copy this link:";
    if (!done) box.select();
    clearTimeout(said.timer);
    if (done) said.timer = setTimeout(() => { said.textContent = ""; }, 4000);
  };
}
"""
