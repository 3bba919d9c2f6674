"""Shows figures and tables and lists them, with the commands of a page, behind the button Export.

Everything is made on demand: the list when it is opened, a file when its button is pressed. The browser makes PNG and
SVG from the current view of a figure, zoom and theme included; HTML, CSV and LaTeX are written here. ECharts draws on a
canvas, which gives only a PNG: its SVG is drawn in the list, not zoomed, and its HTML is a Plotly figure, because
ECharts is not available to files.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_run_context import ThreadState

from fsviz import text
from fsviz.figures import echarts_to_plotly
from fsviz.figures.palette import QUIET
from fsviz.reports import html, tables
from fsviz.settings import Setting
from fsviz.tables import NOTHING, Column, Rows, Table, TableData, frame, headers, to_csv
from fsviz.ui.parts import access, clicks
from fsviz.ui.parts.clicks import Click

_SHOWN = "_shown_here"
MAX_ROWS = 20  # of a table that stands on a page at its full height
GRAPH_PX = 480  # height of a graph as SVG
BUTTONS_PX = 34  # how far down Plotly's buttons reach


@dataclass(frozen=True)
class Item:
    """Something that a page shows or offers.

    kind  "chart" (Plotly), "graph" (ECharts), "table", "recipe" (a command) or "file" (a function that makes HTML)
    """

    kind: str
    title: str
    content: Any
    key: str = ""
    fragment: str | None = None


@dataclass
class _PageItems:
    """The items of a page in their order, and the script run that was registered last."""

    question: str
    items: dict[tuple[str, str], Item] = field(default_factory=dict)
    run: Any = None


def begin(question: str) -> None:
    """Begins a run of a page with nothing shown yet."""
    st.session_state[_SHOWN] = _PageItems(question)


def chart(
    title: str, figure: Any, *, key: str, where: Any = st, sets: Setting | Click | None = None, **more: Any
) -> Any:
    """Draws a Plotly figure and lists it for export; `sets` says what a click sets, `more` as of st.plotly_chart."""
    _register(Item("chart", title, figure, key))
    if sets is not None:
        more = {"selection_mode": "points", "on_select": clicks.callback(key, sets), **more}
        figure.update_layout(meta=clicks.times_cleared(key, sets))  # another figure is drawn anew, with nothing marked
    if more.get("on_select"):
        _stay_visible(figure)
        _leave_room(figure)
    return where.plotly_chart(figure, key=key, **more)


def _stay_visible(figure: Any) -> None:
    """Dims unselected marks less than Plotly does: by default they nearly vanish."""
    for trace in figure.data:
        if trace.type in ("scatter", "bar") and trace.unselected.marker.opacity is None:
            now = trace.marker.opacity
            trace.unselected.marker.opacity = 0.55 * (1.0 if now is None or not isinstance(now, int | float) else now)
            if trace.text is not None:
                trace.unselected.textfont.color = trace.textfont.color or QUIET


def _leave_room(figure: Any) -> None:
    """Makes room above a figure for Plotly's buttons, which appear on hover: no point may be below them."""
    now = figure.layout.margin.t
    if now is not None and now < BUTTONS_PX:
        figure.layout.margin.t = BUTTONS_PX
        if figure.layout.height is not None:
            figure.layout.height += BUTTONS_PX - now


def graph(
    title: str,
    option: Mapping[str, Any],
    *,
    key: str,
    where: Any = st,
    sets: Setting | Click | None = None,
    **more: Any,
) -> Any:
    """Draws an ECharts option and lists it for export; `sets` says what a click sets, `more` as of st.echarts_chart."""
    _register(Item("graph", title, option, key))
    if sets is not None:
        more["on_select"] = clicks.callback(key, sets)
    return where.echarts_chart(option, key=key, **more)


def table(table: Table, rows: Rows, *, where: Any = st, sets: Setting | Click | None = None, **more: Any) -> Any:
    """Draws a table and lists it for export; `sets` says what a row sets, `more` as of st.dataframe."""
    _register(Item("table", table.title, TableData(table, rows)))
    values = frame(table, rows)
    options = {
        "hide_index": True,
        "height": "content" if len(values) <= MAX_ROWS else "auto",
        "placeholder": NOTHING,
        "column_config": column_config(table, values),
    }
    if sets is not None:
        own = more["key"]
        key = clicks.key_now(own, clicks.times_cleared(own, sets))
        more |= {"selection_mode": "single-row", "key": key, "on_select": clicks.callback(key, sets, own)}
    return where.dataframe(values, **{**options, **more})


def column_config(table: Table, values: pd.DataFrame) -> dict[str, Any]:
    """Streamlit's configuration of the columns of a `frame`, by name."""
    titles = headers(table, values)
    config = {}
    for column in table.columns:
        if column.name in values:
            config[column.name] = _streamlit_column(column, titles[column.name], values[column.name])
        for end in column.ends:
            if end in values and end not in config:
                config[end] = st.column_config.NumberColumn(titles[end], format=_format(column, ""))
    return config


def _streamlit_column(column: Column, title: str, values: pd.Series) -> Any:
    more: dict[str, Any] = {"help": column.help or None, "width": column.width or None}
    if column.kind == "image":
        return st.column_config.ImageColumn(title, **more)
    if not column.is_number:
        return (st.column_config.CheckboxColumn if values.dtype == bool else st.column_config.TextColumn)(title, **more)
    if values.dtype == object:  # a text among its numbers
        return st.column_config.TextColumn(title, **more)
    if column.kind != "bar":
        return st.column_config.NumberColumn(title, format=_format(column), **more)
    low, high = (0.0, 1.0) if values.isna().all() else (float(values.min()), float(values.max()))
    more |= {"min_value": min(0.0, low), "max_value": column.high or max(high, 1e-9)}
    return st.column_config.ProgressColumn(title, format=_format(column), **more)


def _format(column: Column, sign: str | None = None) -> str:
    """The format of numbers, as sprintf has it; thousands are parted in counts."""
    sign = ("+" if column.kind == "points" else "") if sign is None else sign
    if column.kind in ("count", "p"):
        return "localized" if column.kind == "count" else "%.2g"
    return f"%{sign}.4g" if column.shown_digits is None else f"%{sign}.{column.shown_digits}f"


def recipe(command: str, title: str = "Command line") -> None:
    """Lists a command that gives the same results as the page."""
    _register(Item("recipe", title, command))


def command(*arguments: str) -> None:
    """Lists a command by its words after `fsviz`."""
    recipe(shlex.join(["fsviz", *arguments]))


def file(title: str, make: Callable[[], str], key: str) -> None:
    """Lists an HTML file that is made when its button is pressed."""
    _register(Item("file", title, make, key))


def forget(key: str) -> None:
    """Removes a figure that was replaced."""
    state: _PageItems | None = st.session_state.get(_SHOWN)
    if state is not None:
        state.items = {k: i for k, i in state.items.items() if i.key != key}


def page_items() -> list[Item]:
    """The items that the page shows now."""
    state: _PageItems | None = st.session_state.get(_SHOWN)
    return list(state.items.values()) if state else []


def _register(item: Item) -> None:
    state: _PageItems = st.session_state.setdefault(_SHOWN, _PageItems(""))
    context = get_script_run_ctx()
    fragment = None
    if context is not None:
        again, fragment = context.fragment_ids_this_run or (), ThreadState.get().fragment_id
        if again and state.run is not context.cursors:  # a part of the page is drawn again: forget what it had
            state.items = {k: i for k, i in state.items.items() if i.fragment not in again}
        state.run = context.cursors
    base_name = item.key or (item.content if item.kind == "recipe" else item.title)
    n, name = 1, base_name
    while (item.kind, name) in state.items and not item.key and item.kind == "table":
        n, name = n + 1, f"{base_name} {n + 1}"
    title = item.title if n == 1 else f"{item.title} ({n})"
    state.items[item.kind, name] = Item(item.kind, title, item.content, item.key, fragment)


# The list ----------------------------------------------------------------------------------------------------------


def button(in_class: bool = False) -> None:
    """Shows the button Export; its list is drawn when it is opened."""
    with st.popover("Export", icon="📤", key="share", on_change="rerun"):
        if st.session_state.get("share"):
            _list(in_class)


def _list(in_class: bool) -> None:
    items = page_items()
    figures = [item for item in items if item.kind in ("chart", "graph")]
    for item in figures:
        _figure(item)
    for item in (i for i in items if i.kind == "table"):
        with _row(item.title):
            name = file_name(item.title)
            _download("CSV", partial(csv_of, item), f"{name}.csv", "text/csv", f"{item.title}_csv")
            _download("LaTeX", partial(latex_of, item), f"{name}.tex", "text/x-tex", f"{item.title}_tex")
    for item in (i for i in items if i.kind == "file"):
        with _row(item.title):
            _download("HTML", item.content, f"{file_name(item.title)}.html", "text/html", item.key)
    if len(items) > 1:
        with _row("Whole page"):
            _download("HTML", partial(to_page, items), "fsviz.html", "text/html", "everything_html")
    if figures:
        st.caption(
            "PNG and SVG capture the current view (graphs in SVG are not zoomed). HTML stays interactive offline."
        )
    commands = [i for i in items if i.kind == "recipe"]
    if commands and not in_class:
        st.markdown("**Command line**")
        for item in commands:
            st.code(item.content, language="bash", wrap_lines=True)
    if not items:
        st.caption("Nothing to export yet.")


def _row(title: str) -> Any:
    row = st.container(horizontal=True, vertical_alignment="center", gap="small")
    row.markdown(_plain(title), width="stretch")
    return row


def _figure(item: Item) -> None:
    name = file_name(item.title)
    svg_key = f"svg_{item.key}" if item.kind == "graph" else item.key
    with _row(item.title):
        _component()(
            key=f"share_{item.key}",
            data={"png": _css_class(item.key), "svg": _css_class(svg_key), "name": name},
            width="content",
        )
        _download("HTML", partial(to_html, item), f"{name}.html", "text/html", f"{item.key}_html")
    if item.kind == "graph":
        st.echarts_chart(item.content, renderer="svg", key=svg_key, height=GRAPH_PX)


def _download(label: str, make: Callable[[], str], name: str, mime: str, key: str) -> None:
    st.download_button(label, make, name, mime, key=f"share_{key}", on_click="ignore")


def _plain(value: str) -> str:
    return text.escape_markdown(access.without_paths(value))


def _css_class(key: str) -> str:
    """The class by which Streamlit marks the element of this key."""
    return "st-key-" + re.sub(r"[^a-zA-Z0-9_-]", "-", key.strip())


def file_name(title: str) -> str:
    """A title as the name of a file, without its ending."""
    return re.sub(r"[^\w-]+", "-", title.lower()).strip("-")[:80] or "fsviz"


# Files -------------------------------------------------------------------------------------------------------------


def figure_of(item: Item) -> Any:
    """Plotly figure of a chart or a graph; a table as it is."""
    return echarts_to_plotly.to_plotly(item.content) if item.kind == "graph" else item.content


def to_html(item: Item) -> str:
    return str(html.page(item.title, [html.ReportSection(item.title, figure_of(item))]))


def csv_of(item: Item) -> str:
    return to_csv(item.content.table, item.content.rows)


def latex_of(item: Item) -> str:
    return tables.table_to_latex(item.content.table, item.content.rows)


def to_page(items: list[Item]) -> str:
    """Figures, tables and commands of a page as one file."""
    state: _PageItems | None = st.session_state.get(_SHOWN)
    sections = [html.ReportSection(i.title, figure_of(i)) for i in items if i.kind not in ("recipe", "file")]
    commands = [i.content for i in items if i.kind == "recipe"]
    return str(html.page(state.question if state else "fsviz", sections, commands))


@cache
def _component() -> Callable[..., Any]:
    return st.components.v2.component("fsviz_share", html=_HTML, css=_CSS, js=_JS)


_HTML = """
<div class="take"><button type="button" data-format="png">PNG</button>
<button type="button" data-format="svg">SVG</button><span role="status"></span></div>
"""

_CSS = """
.take { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; font-family: var(--st-font);
  color: var(--st-text-color); font-size: 0.875rem; }
button { font: inherit; color: inherit; cursor: pointer; padding: 0.25rem 0.75rem; min-height: 2.5rem;
  border-radius: var(--st-button-radius, 8px); border: 1px solid var(--st-border-color); background: none; }
button:hover, button:focus-visible { border-color: var(--st-primary-color); color: var(--st-primary-color); }
span { font-size: 0.85rem; max-width: 14rem; }
span:empty { display: none; }
"""

# Plotly is inside Streamlit's own scripts: its button that saves a picture is the only way to it from outside.
_JS = """
const save = (address, name) => {
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
};

// Plotly clicks on a link of its own, which a list that closes by a click outside would take for one.
const quietly = (event) => { if (event.target.download) event.stopPropagation(); };
let waiting;

const picture = (place, name, format) => {
  const figure = place?.querySelector(".js-plotly-plot");
  if (figure) {
    const take = figure._fullLayout?._modeBar?.buttons?.flat().find((button) => button.name === "toImage");
    if (!take || !figure.clientWidth) return false;
    const before = figure._context.toImageButtonOptions;
    const { clientWidth: width, clientHeight: height } = figure;
    figure._context.toImageButtonOptions = { format, filename: name, width, height, scale: format === "png" ? 2 : 1 };
    window.addEventListener("click", quietly, true);
    clearTimeout(waiting);
    waiting = setTimeout(() => window.removeEventListener("click", quietly, true), 20000);
    take.click(figure);
    figure._context.toImageButtonOptions = before;
    return true;
  }
  const colour = getComputedStyle(document.querySelector(".stApp")).backgroundColor;  // charts leave the page's out
  const drawing = place?.querySelector("[_echarts_instance_] svg");
  if (drawing) {
    const copy = drawing.cloneNode(true);
    copy.style.background = colour;
    const file = new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
    const address = URL.createObjectURL(file);
    save(address, name + ".svg");
    setTimeout(() => URL.revokeObjectURL(address), 20000);
    return true;
  }
  const canvas = place?.querySelector("canvas");
  if (!canvas?.clientWidth || format !== "png") return false;
  const page = document.createElement("canvas");
  page.width = canvas.width;
  page.height = canvas.height;
  const brush = page.getContext("2d");
  brush.fillStyle = colour;
  brush.fillRect(0, 0, page.width, page.height);
  for (const layer of place.querySelectorAll("canvas")) brush.drawImage(layer, 0, 0, page.width, page.height);
  save(page.toDataURL("image/png"), name + ".png");
  return true;
};

export default function ({ data, parentElement }) {
  const said = parentElement.querySelector("span");
  for (const button of parentElement.querySelectorAll("button")) {
    button.onclick = () => {
      const { format } = button.dataset;
      const done = picture(document.querySelector("." + data[format]), data.name, format);
      said.textContent = done ? "" : "It is out of sight: open its section of the page first.";
    };
  }
}
"""
