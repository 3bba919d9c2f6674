"""The images of two classes, those in the most mixed communities first."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from fsviz import features
from fsviz.features.backbones import title_of
from fsviz.records import Dataset
from fsviz.settings import RawSettings
from fsviz.studies import confusion as study
from fsviz.tables import Column, Table
from fsviz.ui.parts import export, page_links
from fsviz.ui.parts.caching import cache_data
from fsviz.ui.parts.image_wall import Tile, gallery
from fsviz.ui.parts.shell import escape

MAX_IMAGES = 24
PREVIEW_IMAGES = 4  # of each class next to the graph
MAX_COMMUNITIES = 8

IMAGES = Table(
    "Images of the pair",
    Column("image", "Image", kind="count"),
    Column("community", "Community", kind="count"),
    Column("share", "Share of the other class", digits=0, kind="share"),
)


def show_preview(dataset: Dataset, spec: RawSettings, a: int, b: int) -> None:
    """A few images of each of two classes (class_ids), most mixed communities first, for the first screen."""
    if a == b or not dataset.has_pixels:
        return
    names = dataset.short_names(np.array([a, b]))
    communities = _communities_of(dataset, spec, a, b)
    for label, class_id in enumerate((a, b)):
        if communities is None:
            image_ids = np.flatnonzero(dataset.image_class_ids() == class_id)
        else:
            image_ids = communities.image_ids[_most_mixed(communities, label)]
        tiles = [Tile(int(i)) for i in image_ids[:PREVIEW_IMAGES]]
        st.markdown(escape(names[label]))
        page_links.to_gallery(dataset, gallery(dataset, tiles, key=f"preview_{label}_{a}_{b}", tile_px=72))


def show(dataset: Dataset, spec: RawSettings, a: int, b: int, key: str = "pair") -> None:
    """Images and communities of two classes (class_ids); a note if the dataset has no features."""
    if a == b:
        return
    names = dataset.short_names(np.array([a, b]))
    communities = _communities_of(dataset, spec, a, b)
    if communities is None:
        st.info(f"{escape(dataset.title)} has no features, so no images of this pair are compared.", icon="🧩")
        return
    run = communities.typical
    bits = communities.bits
    backbone = str(_spec_of_pair(dataset, spec)["backbone"])
    st.markdown(
        f"**{escape(names[0])}** and **{escape(names[1])}**: overlap {bits.mean():.2f} bits ({bits.min():.2f} to "
        f"{bits.max():.2f} over {len(bits):,} Louvain runs), {len(communities.labels):,} images, "
        f"{escape(title_of(backbone))} features."
    )
    _table(names, communities.counts(run))
    for column, label in zip(st.columns(2, gap="large"), (0, 1)):
        with column:
            _wall(dataset, names, communities, label, run, key)
    st.caption(
        "Badge: share of the other class in the image's communities.",
        help=f"Mean over {len(bits):,} Louvain runs. Communities are those of run {run + 1:d}, the closest to the "
        "mean; number 1 is the largest. Louvain's algorithm does not see the labels.",
    )


def _spec_of_pair(dataset: Dataset, spec: RawSettings) -> dict[str, Any]:
    """The settings of class overlap in a spec, with a backbone of the dataset."""
    own = {name: spec[name] for name in study.SETTINGS if name in spec and name not in ("split", "base")}
    return own | {"dataset": dataset.name, "backbone": own.get("backbone") or features.available(dataset)[0]}


def _communities_of(dataset: Dataset, spec: RawSettings, a: int, b: int) -> study.PairCommunities | None:
    """The communities of two classes; None without features."""
    if not features.available(dataset):
        return None
    own = _spec_of_pair(dataset, spec)
    return _pair(dataset, tuple(sorted(own.items())), a, b)


def _most_mixed(communities: study.PairCommunities, label: int) -> np.ndarray:
    """The images of one class, by the share of the other class in their communities."""
    images = np.flatnonzero(communities.labels == label)
    return images[np.argsort(-communities.other_share[images], kind="stable")]


def _table(names: list[str], counts: np.ndarray) -> None:
    """The number of images of each class in each community."""
    large = counts[: min(len(counts), MAX_COMMUNITIES)]
    share = large.min(axis=1) / large.sum(axis=1)
    export.table(
        Table(
            "Communities of the pair",
            Column("community", "Community"),
            Column("first", names[0], kind="count"),
            Column("second", names[1] if names[1] != names[0] else f"{names[1]} (2)", kind="count"),
            Column("mixed", "Mixed", digits=2, kind="bar", high=1.0, help="1 if both classes are equally many."),
        ),
        {
            "community": [f"{n + 1}" for n in range(len(large))],
            "first": large[:, 0],
            "second": large[:, 1],
            "mixed": 2 * share,
        },
    )
    if len(counts) > len(large):
        n = len(counts) - len(large)
        st.caption(f"{n:,} smaller {'community is' if n == 1 else 'communities are'} not listed.")


def _wall(
    dataset: Dataset, names: list[str], communities: study.PairCommunities, label: int, run: int, key: str
) -> None:
    images = _most_mixed(communities, label)
    order = images[:MAX_IMAGES]
    first = f", the {len(order):,} in the most mixed communities" if len(order) < len(images) else ""
    st.markdown(f"**{escape(names[label])}**, {len(images):,} images{first}")
    if dataset.has_pixels:
        tiles = [
            Tile(
                int(communities.image_ids[v]),
                caption=f"community {communities.communities[run, v] + 1}",
                badge=f"{100 * communities.other_share[v]:.0f}%",
            )
            for v in order
        ]
        wall = f"{key}_{label}_{names[0]}_{names[1]}"
        page_links.to_gallery(dataset, gallery(dataset, tiles, key=wall, tile_px=92))
        return
    export.table(
        IMAGES,
        {
            "image": communities.image_ids[order],
            "community": communities.communities[run, order] + 1,
            "share": communities.other_share[order],
        },
        height=240,
    )


@cache_data("Computing communities of the pair", 64)
def _pair(dataset: Dataset, spec: tuple[tuple[str, Any], ...], a: int, b: int) -> study.PairCommunities:
    return study.pair(dict(spec), a, b)
