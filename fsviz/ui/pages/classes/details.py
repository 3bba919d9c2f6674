"""The panel next to the view of the page Classes: a class with its neighbours, or the selected task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import streamlit as st

from fsviz.analyses import semantic_sampling as study
from fsviz.figures import taxonomy as figures
from fsviz.records import Dataset, HeadlineNumber
from fsviz.tables import Column, Table
from fsviz.taxonomy import DISTANCES, Dag, maps
from fsviz.taxonomy.everyday import familiar_class
from fsviz.text import short_names
from fsviz.ui.pages.classes import pictures
from fsviz.ui.pages.classes.views import select
from fsviz.ui.parts import export, page_links, selections, shell
from fsviz.ui.parts.clicks import Click
from fsviz.ui.parts.headline import show_numbers
from fsviz.ui.parts.hover import answer_cells
from fsviz.ui.parts.image_wall import Row, Tile, gallery, task_rows
from fsviz.ui.parts.shell import escape

N_BUILT = 5  # classes of a task that is created from a class and its nearest
N_CARD, N_ROW = 4, 5  # images on the card of a class, and in its row of the task


def show(
    dataset: Dataset,
    split: str,
    graph: Dag,
    distances: np.ndarray,
    names: list[str],
    selected: list[int],
    distance: str,
) -> None:
    """Shows the selected classes, else an example."""
    if not selected:
        st.caption("Example class. Select another to compare.")
        _card(dataset, split, graph, distances, names, familiar_class(names))
        return
    if len(selected) >= 2:
        result = study.class_set(graph, distances, selected)
        with st.container(border=True):
            st.markdown(f"**Selected task: {len(selected)} classes**")
            numbers = [
                HeadlineNumber(
                    "coarsity",
                    "Coarsity",
                    result.coarsity,
                    unit="",
                    digits=1 if result.coarsity >= 10 else 2,
                    help=f"Mean squared {DISTANCES[distance].title} distance over its class pairs. Low: fine-grained.",
                ),
                HeadlineNumber(
                    "share_finer",
                    "Finer random tasks",
                    100 * result.share_finer,
                    digits=0,
                    help=f"Share of 2,000 random {len(selected)}-way tasks with lower coarsity.",
                ),
            ]
            show_numbers(numbers, "task_numbers")
            st.markdown(
                f"Closest shared concept: **{escape(result.superordinate)}** "
                f"({result.superordinate_classes:,} of {len(names):,} classes)"
            )
            page_links.to_classes(dataset, dataset.split_class_ids(split)[selected].tolist(), "Create task")
            with st.container(horizontal=True):
                st.button("Clear", key="forget", icon="✖️", on_click=select, args=((),))
                shell.page_link("sample_tasks", "Sample tasks", shell.link(dataset, split=split))
        if dataset.has_pixels and len(selected) <= 8:
            _task_pictures(dataset, split, names, selected)
        if 2 < len(selected) <= 12:
            positions = np.array(selected)
            export.chart(
                "Distances between the selected classes",
                figures.plot_task_distances(
                    distances[np.ix_(positions, positions)],
                    [names[p] for p in selected],
                    DISTANCES[distance].title,
                    float(distances.max()),
                ),
                key="task_distances",
            )
            images = pictures.images_of(dataset, split) if dataset.has_pixels else None
            answer_cells(
                dataset,
                "task_distances",
                None if images is None else [int(images[p][0]) if len(images[p]) else -1 for p in selected],
                Click(selections.CLASSES, lambda cell: list(dict.fromkeys(names[selected[at]] for at in cell.data))),
                len(selected),
            )
    _card(dataset, split, graph, distances, names, selected[-1])


def _task_pictures(dataset: Dataset, split: str, names: list[str], selected: Sequence[int]) -> None:
    images = pictures.images_of(dataset, split)
    rows = [Row(names[p], [Tile(int(i)) for i in images[p][:N_ROW]]) for p in selected]
    _open_image(dataset, task_rows(dataset, rows, key="task_pictures", tile_px=44))


def _open_image(dataset: Dataset, clicked: int | None) -> None:
    """Links to an image that was clicked."""
    if clicked is not None:
        shell.page_link("images", f"Image {clicked:,} and its neighbours", shell.link(dataset, image=str(clicked)))


def _card(dataset: Dataset, split: str, graph: Dag, distances: np.ndarray, names: list[str], position: int) -> None:
    card, class_id = maps.class_card(graph, distances, position), int(dataset.split_class_ids(split)[position])
    with st.container(border=True):
        st.markdown(f"**{escape(short_names(names)[position])}**", help=escape(names[position]))
        if dataset.n_images is not None:
            st.caption(f"{card.n_images:,.0f} images")
        if dataset.has_pixels:
            tiles = [Tile(int(i)) for i in pictures.images_of(dataset, split)[position][:N_CARD]]
            _open_image(dataset, gallery(dataset, tiles, key="card_pictures", tile_px=58))
        st.caption(" › ".join(escape(step) for step in (*card.path[:-1], short_names(names)[position])))
        shell.page_link(
            "images",
            "Show all images" if dataset.has_pixels else "Open in Images",
            shell.link(dataset, **{selections.KEY: str(dataset.classes["class_name"].iat[class_id])}),
        )
        for title, rows in (("Nearest", card.nearest), ("Farthest", card.farthest)):
            images = pictures.first_images(dataset, split, [i for i, _ in rows]) if dataset.has_pixels else ""
            table = _neighbour_table(title, float(distances.max()))
            key = f"rows_{title}_{position}"
            export.table(
                table,
                {"picture": images, "class": [names[i] for i, _ in rows], "distance": [value for _, value in rows]},
                key=key,
                sets=Click(_add, [[names[position], names[i]] for i, _ in rows]),
            )
        st.caption("Click a row to compare the two classes.")
        near = [position, *(i for i, _ in card.nearest[: N_BUILT - 1])]
        label = "Create a task with its nearest classes"
        page_links.to_classes(dataset, dataset.split_class_ids(split)[near].tolist(), label)


def _neighbour_table(title: str, high: float) -> Table:
    """The nearest or the farthest classes of a class."""
    return Table(
        f"{title} classes",
        Column("picture", "Image", kind="image", width=44),
        Column("class", title, kind="class", width=110),
        Column("distance", "Distance", digits=2, kind="bar", high=max(high, 1e-9), width=85),
    )


def _add(names: Iterable[str]) -> None:
    select([*st.session_state.get(selections.KEY, []), *names])
