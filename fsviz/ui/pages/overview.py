"""The first page: what the chosen dataset is, and where to go from here."""

from __future__ import annotations

import streamlit as st

from fsviz.datasets import sizes
from fsviz.figures import overview as figures
from fsviz.records import Dataset, Hierarchy, SizeHistogram
from fsviz.taxonomy.hierarchy import class_hierarchy
from fsviz.ui.parts import cached, shell
from fsviz.ui.parts.image_wall import Tile, gallery
from fsviz.ui.parts.shell import plain

N_SAMPLE = 20


def show(dataset: Dataset) -> None:
    st.markdown(plain(dataset.summary))
    _headline(dataset)
    if dataset.has_pixels:
        _sample(dataset)
    _classes(dataset)
    _doors(dataset)
    left, right = st.columns(2, gap="large")
    with left:
        _sizes(dataset)
    with right:
        _offers(dataset)
    credit = [
        f"{what}: {plain(words.rstrip('.'))}."
        for what, words in (("Source", dataset.source), ("Licence", dataset.licence))
        if words
    ]
    st.caption(" ".join(credit))


def _headline(dataset: Dataset) -> None:
    classes, images, splits, context = st.columns(4)
    classes.metric("Classes", f"{dataset.n_classes:,}")
    images.metric("Images", "unknown" if dataset.n_images is None else f"{dataset.n_images:,}")
    main = {name: ids for name, ids in dataset.splits.items() if name in ("train", "val", "test", "all")}
    shown = main or dict(list(dataset.splits.items())[:3])
    splits.metric(
        plain(" / ".join(shown) if len(shown) > 1 else f"Classes in split {next(iter(shown))}"),
        " / ".join(f"{len(ids):,}" for ids in shown.values()),
        help="Classes in each split. Few-shot methods train on some classes and are tested on others.",
    )
    if dataset.contexts is not None:
        context.metric(
            "Contexts", f"{dataset.contexts['context'].nunique():,}", help="Backgrounds images were taken in."
        )
    elif dataset.taxonomy is not None:
        nodes = len(set(dataset.taxonomy["parent"]))
        context.metric("Groups", f"{nodes:,}", help="Inner nodes of the tree of meanings above the classes.")
    for note in dataset.notes:
        st.caption(plain(note))


def _sample(dataset: Dataset) -> None:
    ids = sizes.sample_image_ids(dataset, N_SAMPLE)
    names = dataset.classes["class_name"].to_numpy()[dataset.image_class_ids()[ids]]
    tiles = [Tile(int(i), str(name)) for i, name in zip(ids, names)]
    clicked = gallery(dataset, tiles, key="overview_sample", tile_px=92)
    if clicked is not None:
        st.session_state.pop("seen_dataset", None)  # the link names the image, not the last click there
        name = names[list(ids).index(clicked)]
        st.page_link(
            "pages/1_Gallery.py",
            label=f"All about this {plain(name)}, its nearest neighbours and its class, in the Gallery",
            icon="🖼️",
            query_params=shell.link(dataset, image=str(clicked)),
        )


def _classes(dataset: Dataset) -> None:
    st.subheader(
        "The classes and how they are related" if dataset.taxonomy is not None else "The classes", anchor=False
    )
    hierarchy = _hierarchy(dataset)
    st.plotly_chart(figures.plot_hierarchy(hierarchy), key="hierarchy")
    if dataset.taxonomy is not None:
        st.caption(
            "Each box is a group of classes in the taxonomy, as large as its number of classes; click to go in, click "
            "the bar above to come out."
            + (
                " Grey groups hold classes of several splits, so a class of one split may have close relatives in "
                "another there."
                if "mixed" in hierarchy.split[1:]
                else ""
            )
        )
    else:
        st.caption("No taxonomy is known for these classes; they are grouped by split.")


def _sizes(dataset: Dataset) -> None:
    st.subheader("Images per class", anchor=False)
    histogram = _class_sizes(dataset)
    if histogram is None:
        st.caption("The number of images of each class is not known; classes count the same.")
        return
    st.plotly_chart(figures.plot_class_sizes(histogram), key="sizes")
    many = f"{histogram.median:,.0f} images"
    half = f"{many} each" if len(histogram.edges) == 2 else f"half of them with at least {many}"
    st.caption(f"{dataset.n_classes:,} classes, {half}.")


def _offers(dataset: Dataset) -> None:
    st.subheader("What it offers", anchor=False)
    for offer, (what, _) in shell.OFFERS.items():
        name, _, rest = what.partition(":")
        if offer in dataset.offers:
            st.markdown(f"✅ **{name.removeprefix('a ').capitalize()}**:{rest}.")
        else:
            how = shell.how_to_add(dataset, offer)
            st.markdown(f"⬜ **{name.removeprefix('a ').capitalize()}**:{rest}. :gray[Missing. {how}]")


def _doors(dataset: Dataset) -> None:
    st.subheader("Ask a question", anchor=False)
    doors = shell.pages()[1:]
    for start in range(0, len(doors), 4):
        for column, door in zip(shell.columns_if_wide(f"doors_{start}", 4, "pairs"), doors[start : start + 4]):
            with column.container(border=True, height="stretch"):
                st.page_link(door.file, label=f"**{door.question}**", icon=door.icon, query_params=shell.link(dataset))
                st.caption(door.answer)
                missing = [w for w in door.wants if w not in dataset.offers]
                if missing:
                    st.caption(f"⬜ {plain(dataset.title)} has no {' or '.join(missing)} yet.")


@cached.remember()
def _hierarchy(dataset: Dataset) -> Hierarchy:
    return class_hierarchy(dataset)


@cached.remember()
def _class_sizes(dataset: Dataset) -> SizeHistogram | None:
    return sizes.class_sizes(dataset)
