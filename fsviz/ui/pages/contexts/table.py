"""The class–context heat map, and the images of a cell, a row or a column."""

from __future__ import annotations

from functools import partial

import numpy as np
import streamlit as st

from fsviz.analyses import contexts as study
from fsviz.figures import contexts as figures
from fsviz.records import ContextTable, Dataset
from fsviz.settings import Setting
from fsviz.text import short_names
from fsviz.ui.parts import export, page_links, shell
from fsviz.ui.parts.clicks import Click, Point
from fsviz.ui.parts.controls import pick, pick_class
from fsviz.ui.parts.image_wall import Tile, gallery
from fsviz.ui.parts.shell import escape

MAP = "context_map"
CONCEPT = Setting("concept", "Class", "Class whose images are shown.", "choice", "")
CONTEXT = Setting("context", "Context", "Context whose images are shown.", "choice", "")
FIND = Setting("find", "Find", "Part of the name of a class or context.", "text", "")
MAX_IMAGES = 24
MAX_ROWS = 8
WIDE = 30  # contexts from which the table needs the whole width
BOX = 560  # height in pixels of the box in which a taller table scrolls


def show(dataset: Dataset, split: str, table: ContextTable) -> None:
    with shell.side():
        picked = _picks(table)
        choices = study.orders(dataset)
        cell = pick(study.CELL)
        order = pick(study.ORDER.with_(choices=choices))
        search = pick(FIND, placeholder="part of a name")
    rows, columns = _matches(table, *study.ordered(dataset, split, table, order), search)
    bits = study.information(table)
    is_wide = len(columns) > WIDE
    left, right = (st.container(), st.container()) if is_wide else shell.responsive_columns("table", [11, 8])
    with left:
        _heat_map(table, rows, columns, bits if cell == "information" else None, picked)
        _caption(dataset, split, table, cell == "information")
    with right:
        _selection(dataset, table, bits, picked)


def _heat_map(
    table: ContextTable,
    rows: np.ndarray,
    columns: np.ndarray,
    bits: np.ndarray | None,
    picked: tuple[int | None, int | None],
) -> None:
    figure = figures.plot_context_table(table, rows, columns, bits, picked)
    export.chart(
        "Class–context table",
        figure,
        key=MAP,
        where=st.container(height=BOX) if figure.layout.height > BOX else st,
        sets=Click((CONCEPT, CONTEXT), partial(_names_of, table), clears=True, toggles=(CONCEPT, CONTEXT)),
    )


def _caption(dataset: Dataset, split: str, table: ContextTable, is_information: bool) -> None:
    share, median = study.common_context(table)
    n_without = f" {table.n_without:,} more have no context." if table.n_without else ""
    single = study.single_context(table)
    more = f" and {len(single) - 6:,} more" if len(single) > 6 else ""
    listed = ", ".join(map(escape, short_names(single)[:6]))
    names = f" One context only, no shift possible: {listed}{more}." if single else ""
    st.caption(
        f"{table.n_images:,} images of {len(table.names):,} classes in {len(table.contexts):,} contexts, split "
        f"{escape(split)}.{n_without} "
        + ("Red: more often than expected by chance; blue: less often; grey: no images. " if is_information else "")
        + "Click a cell or a total for its images.",
        help=f"{share:.0%} of images are in their class's most common context (median: {median:,} contexts per class)."
        + (" One bit is a factor of two. Cells of few images are noisy." if is_information else "")
        + names,
    )
    for note in dataset.notes if dataset.images is None else ():
        st.caption(escape(note))


def _picks(table: ContextTable) -> tuple[int | None, int | None]:
    """Row and column of the class and context selected by name, click or link."""
    concept = pick_class(CONCEPT, table.names, "Any")
    context = str(pick(CONTEXT.with_(choices={"": "Any", **{name: name for name in table.contexts}})))
    return (
        table.names.index(concept) if concept else None,
        table.contexts.index(context) if context else None,
    )


def _matches(table: ContextTable, rows: np.ndarray, columns: np.ndarray, search: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns whose name contains the text; all rows or columns if only the others match."""
    query = search.strip().lower()
    if not query:
        return rows, columns
    in_rows = [i for i in rows if query in table.names[i].lower()]
    in_columns = [k for k in columns if query in table.contexts[k].lower()]
    if not in_rows and not in_columns:
        st.info("No class or context has this in its name. All are shown.", icon="🔍")
        return rows, columns
    return np.array(in_rows or rows), np.array(in_columns or columns)


def _names_of(table: ContextTable, cell: Point) -> tuple[str, str] | None:
    """Class and context of a cell; "" for the missing part of a total."""
    if len(cell.data) != 2:
        return None
    row, column = cell.data
    return table.names[row] if row >= 0 else "", table.contexts[column] if column >= 0 else ""


def _selection(dataset: Dataset, table: ContextTable, bits: np.ndarray, picked: tuple[int | None, int | None]) -> None:
    row, column = picked
    if row is None and column is None:
        row, column = (int(at) for at in np.unravel_index(np.nanargmax(_strength(table, bits)), bits.shape))
        st.markdown("**Strongest association** (select another cell)")
    if row is not None and column is not None:
        _cell(dataset, table, bits, row, column)
    elif row is not None:
        _profile(dataset, table, bits, row, True)
    elif column is not None:
        _profile(dataset, table, bits, column, False)


def _strength(table: ContextTable, bits: np.ndarray) -> np.ndarray:
    """Contribution of every cell to the mean information: images x bits."""
    return np.where(table.counts > 0, table.counts * np.nan_to_num(bits), -1.0)


def _cell(dataset: Dataset, table: ContextTable, bits: np.ndarray, row: int, column: int) -> None:
    name, context, n = short_names(table.names)[row], table.contexts[column], int(table.counts[row, column])
    st.subheader(f"{escape(name)} · {escape(context)}", anchor=False)
    n_of_class, n_of_context = int(table.counts[row].sum()), int(table.counts[:, column].sum())
    if not n:
        st.info(
            f"No image of {escape(name)} in {escape(context)} ({n_of_class:,} elsewhere). "
            f"{n_of_context:,} images show other classes in {escape(context)}.",
            icon="❓",
        )
        return
    times = 2 ** abs(float(bits[row, column]))
    st.markdown(
        f"{n:,} images: {n / n_of_class:.0%} of this class, {n / n_of_context:.0%} of this context, {times:.1f}x as "
        f"{'often' if bits[row, column] >= 0 else 'rarely'} as expected by chance ({bits[row, column]:+.2f} bits)."
    )
    _wall(dataset, int(table.class_ids[row]), context, f"cell_{row}_{column}")


def _profile(dataset: Dataset, table: ContextTable, bits: np.ndarray, at: int, is_row: bool) -> None:
    """Show a class over its contexts, or a context over its classes."""
    counts, cell_bits = (table.counts[at], bits[at]) if is_row else (table.counts[:, at], bits[:, at])
    names = table.contexts if is_row else table.names
    title = short_names(table.names)[at] if is_row else table.contexts[at]
    strength = float(np.nan_to_num(study.association_strengths(table, 0 if is_row else 1)[at]))
    st.subheader(escape(title), anchor=False)
    positions = np.flatnonzero(counts)
    st.markdown(
        f"{int(counts.sum()):,} images in {len(positions):,} {'contexts' if is_row else 'classes'}, association "
        f"{strength:.2f} bits."
    )
    order = positions[np.argsort(-counts[positions], kind="stable")]
    key, setting = ("contexts_of", CONTEXT) if is_row else ("concepts_of", CONCEPT)
    export.table(
        study.CELLS,
        {
            "context" if is_row else "concept": [names[k] for k in order],
            "n_images": counts[order],
            "bits": cell_bits[order],
        },
        key=key,
        sets=Click(setting, [names[k] for k in order]),
        height=36 * min(len(order), MAX_ROWS) + 38,
    )
    class_id, context = (int(table.class_ids[at]), None) if is_row else (None, title)
    _wall(dataset, class_id, context, f"profile_{is_row}_{at}")


def _wall(dataset: Dataset, class_id: int | None, context: str | None, key: str) -> None:
    image_ids = study.images_of(dataset, class_id, context)
    if not dataset.has_pixels or not len(image_ids):
        st.caption("No images: this dataset is a table of counts.")
        return
    images = dataset.images
    assert images is not None
    spread = image_ids[np.unique(np.linspace(0, len(image_ids) - 1, MAX_IMAGES).round().astype(int))]
    names = dataset.classes["class_name"]
    captions = images["context"] if class_id is not None else images["class_id"].map(names)
    tiles = [
        Tile(int(i), caption="" if class_id is not None and context is not None else str(captions[i])) for i in spread
    ]
    page_links.to_gallery(dataset, gallery(dataset, tiles, key=key, tile_px=72))
    if len(image_ids) > len(spread):
        st.caption(f"{len(spread):,} of {len(image_ids):,} images.")
