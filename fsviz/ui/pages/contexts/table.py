"""The heat map of concepts and contexts, and what is behind a cell, a row or a column."""

from __future__ import annotations

from functools import partial

import numpy as np
import streamlit as st

from fsviz.analyses import contexts as study
from fsviz.figures import contexts as figures
from fsviz.records import ContextTable, Dataset
from fsviz.settings import Setting
from fsviz.ui.parts import export, page_links, shell
from fsviz.ui.parts.clicks import Click, Point
from fsviz.ui.parts.controls import pick
from fsviz.ui.parts.image_wall import Tile, gallery
from fsviz.ui.parts.shell import escape

MAP = "context_map"
CONCEPT = Setting("concept", "Concept", "The concept whose images are shown.", "choice", None)
CONTEXT = Setting("context", "Context", "The context whose images are shown.", "choice", None)
FIND = Setting("find", "Find", "Concepts or contexts with it.", "text", "")
SHOWN = 48
LONGEST = 12


def show(dataset: Dataset, split: str, table: ContextTable) -> None:
    with shell.side():
        choices = study.orders(dataset)
        order = pick(study.ORDER.with_(choices=choices))
        cell = pick(study.CELL)
        search = pick(FIND, placeholder="part of a name")
    picked = _picks(table)
    rows, columns = _found(table, *study.ordered(dataset, split, table, order), search)
    bits = study.information(table)
    shown = bits if cell == "information" else None
    export.chart(
        "Concepts and contexts",
        figures.plot_context_table(table, rows, columns, shown, picked),
        key=MAP,
        sets=Click((CONCEPT, CONTEXT), partial(_names_of, table), clears=True, toggles=(CONCEPT, CONTEXT)),
    )
    without = f" {table.n_without:,} more have no context and are in no cell." if table.n_without else ""
    st.caption(
        f"{table.n_images:,} images of {len(table.names):,} concepts in {len(table.contexts):,} contexts, split "
        f"{escape(split)}; an empty cell has none.{without} "
        + (
            "Red: together more often than by chance, blue: less often; a bit is a factor of two, and in cells of few "
            "images it is largely luck. "
            if shown is not None
            else ""
        )
        + "Click a cell for its images, a sum at the edge for its row or column, or choose by name above."
    )
    for note in dataset.notes if dataset.images is None else ():
        st.caption(escape(note))
    _behind(dataset, table, bits, picked)


def _picks(table: ContextTable) -> tuple[int | None, int | None]:
    """The concept and the context that are chosen by name, click or link: their row and column."""
    found: list[int | None] = []
    places = st.columns(2)
    for place, setting, names in ((places[0], CONCEPT, table.names), (places[1], CONTEXT, table.contexts)):
        key = setting.name
        if st.session_state.get(key) not in (None, *names):
            st.session_state[key] = None
        name = place.selectbox(
            setting.title, names, index=None, key=key, bind="query-params", placeholder="any, or click a cell"
        )
        found.append(None if name is None else names.index(name))
    return found[0], found[1]


def _found(table: ContextTable, rows: np.ndarray, columns: np.ndarray, search: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns with the searched text: those that match, with everything that they have images with."""
    wanted = search.strip().lower()
    if not wanted:
        return rows, columns
    in_rows = [i for i in rows if wanted in table.names[i].lower()]
    in_columns = [k for k in columns if wanted in table.contexts[k].lower()]
    if not in_rows and not in_columns:
        st.info("No concept and no context has this in its name. All are shown.", icon="🔍")
        return rows, columns
    return np.array(in_rows or rows), np.array(in_columns or columns)


def _names_of(table: ContextTable, cell: Point) -> tuple[str | None, str | None] | None:
    """The concept and the context of a cell; one of them is None for a sum at the edge."""
    if len(cell.data) != 2:
        return None
    row, column = cell.data
    return table.names[row] if row >= 0 else None, table.contexts[column] if column >= 0 else None


def _behind(dataset: Dataset, table: ContextTable, bits: np.ndarray, picked: tuple[int | None, int | None]) -> None:
    row, column = picked
    if row is None and column is None:
        row, column = (int(at) for at in np.unravel_index(np.nanargmax(_strength(table, bits)), bits.shape))
        st.markdown("**The cell most tied to its row and column**, until another is chosen:")
    if row is not None and column is not None:
        _cell(dataset, table, bits, row, column)
    elif row is not None:
        _profile(dataset, table, bits, row, True)
    elif column is not None:
        _profile(dataset, table, bits, column, False)


def _strength(table: ContextTable, bits: np.ndarray) -> np.ndarray:
    """What a cell adds to the mean information: many images that chance would not bring together."""
    return np.where(table.counts > 0, table.counts * np.nan_to_num(bits), -1.0)


def _cell(dataset: Dataset, table: ContextTable, bits: np.ndarray, row: int, column: int) -> None:
    name, context, n = table.names[row], table.contexts[column], int(table.counts[row, column])
    st.subheader(f"{escape(name)} · {escape(context)}", anchor=False)
    elsewhere, others = int(table.counts[row].sum()), int(table.counts[:, column].sum())
    if not n:
        st.info(
            f"No image shows {escape(name)} in {escape(context)}. {elsewhere:,} show it elsewhere, and {others:,} show "
            f"other concepts in {escape(context)}: would a classifier that learned from these know "
            f"{escape(name)} there? "
            "A picture of it would tell; an out-of-distribution task asks the like with images that exist.",
            icon="❓",
        )
        return
    times = 2 ** abs(float(bits[row, column]))
    st.markdown(
        f"{n:,} images: {n / elsewhere:.0%} of this concept, {n / others:.0%} of this context, {times:.1f} times as "
        f"{'often' if bits[row, column] >= 0 else 'rarely'} as by chance ({bits[row, column]:+.2f} bits)."
    )
    _wall(dataset, int(table.class_ids[row]), context, f"cell_{row}_{column}")


def _profile(dataset: Dataset, table: ContextTable, bits: np.ndarray, at: int, is_row: bool) -> None:
    """One concept over its contexts, or one context over its concepts."""
    counts, told = (table.counts[at], bits[at]) if is_row else (table.counts[:, at], bits[:, at])
    names = table.contexts if is_row else table.names
    title = table.names[at] if is_row else table.contexts[at]
    tie = float(np.nan_to_num(study.ties(table, 0 if is_row else 1)[at]))
    st.subheader(escape(title), anchor=False)
    here = np.flatnonzero(counts)
    st.markdown(
        f"{int(counts.sum()):,} images in {len(here):,} {'contexts' if is_row else 'concepts'}, {tie:.2f} bits from "
        "what chance would give."
    )
    left, right = st.columns([1, 2], gap="large")
    order = here[np.argsort(-counts[here], kind="stable")]
    with left:
        key, other = ("contexts_of", CONTEXT) if is_row else ("concepts_of", CONCEPT)
        export.table(
            study.CELLS,
            {
                "context" if is_row else "concept": [names[k] for k in order],
                "n_images": counts[order],
                "bits": told[order],
            },
            key=key,
            sets=Click(other, [names[k] for k in order]),
            height=36 * min(len(order), LONGEST) + 38,
        )
    with right:
        class_id, context = (int(table.class_ids[at]), None) if is_row else (None, title)
        _wall(dataset, class_id, context, f"profile_{is_row}_{at}")


def _wall(dataset: Dataset, class_id: int | None, context: str | None, key: str) -> None:
    found = study.images_of(dataset, class_id, context)
    if not dataset.has_pixels or not len(found):
        st.caption("Its images are not at hand here: this is a table of counts.")
        return
    images = dataset.images
    assert images is not None
    shown = found[np.unique(np.linspace(0, len(found) - 1, SHOWN).round().astype(int))]  # spread over all of them
    names = dataset.classes["class_name"]
    said = images["context"] if class_id is not None else images["class_id"].map(names)
    tiles = [Tile(int(i), caption="" if class_id is not None and context is not None else str(said[i])) for i in shown]
    page_links.to_gallery(dataset, gallery(dataset, tiles, key=key, tile_px=92))
    if len(found) > len(shown):
        st.caption(f"{len(shown):,} of {len(found):,} images.")
