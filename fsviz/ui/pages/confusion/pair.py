"""The images of two classes side by side, the most confused first, with the communities they fell into."""

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

SHOWN = 24

IMAGES = Table(
    "Images of the pair",
    Column("image", "Image", kind="count"),
    Column("community", "Community", kind="count"),
    Column("share", "Share of the other class", digits=0, kind="share"),
)


def show(dataset: Dataset, spec: RawSettings, a: int, b: int, key: str = "pair") -> None:
    """Two classes by their class_ids; how they are confused where the dataset has features."""
    if a == b:
        return
    names = dataset.distinct_names(np.array([a, b]))
    known = features.available(dataset)
    if not known:
        st.info(
            f"{escape(dataset.title)} has no features and no images here, so the two classes cannot be looked into. "
            "Edges say how close they are in meaning.",
            icon="🧩",
        )
        return
    asked: dict[str, Any] = {
        name: spec[name] for name in study.SETTINGS if name in spec and name not in ("split", "base")
    }
    backbone = asked.get("backbone") or known[0]
    asked |= {"dataset": dataset.name, "backbone": backbone}
    wanted: Any = asked.get("k", study.SETTINGS["k"].default)
    asked["k"] = min(wanted, study.max_k_of(dataset, backbone, a, b))
    found = _pair(dataset, tuple(sorted(asked.items())), a, b)
    run = found.typical
    counts = found.counts(run)
    low, high = float(found.bits.min()), float(found.bits.max())
    st.markdown(
        f"**{escape(names[0])}** and **{escape(names[1])}**: {found.bits.mean():.2f} bits, from {low:.2f} to "
        f"{high:.2f} "
        f"in {len(found.bits):,} runs of Louvain's algorithm on {len(found.labels):,} images, by "
        f"features of {escape(title_of(backbone))}."
    )
    _table(names, counts)
    for column, label in zip(st.columns(2, gap="large"), (0, 1)):
        with column:
            _wall(dataset, names, found, label, run, key)
    st.caption(
        "Most confused images first: on each, the share of the other class in the communities it fell into, mean over "
        f"{len(found.bits):,} runs. Communities are those of run {run + 1:d}, the one nearest to the mean; number 1 is "
        "the largest. Images are grouped by likeness alone, without a look at their class."
    )


def _table(names: list[str], counts: np.ndarray) -> None:
    """How many images of either class are in each community."""
    large = counts[: min(len(counts), 8)]
    share = large.min(axis=1) / large.sum(axis=1)
    export.table(
        Table(
            "Communities of the pair",
            Column("community", "Community"),
            Column("first", names[0], kind="count"),
            Column("second", names[1] if names[1] != names[0] else f"{names[1]} (2)", kind="count"),
            Column("mixed", "Mixed", digits=2, kind="bar", high=1.0, help="1 where both classes are equally many."),
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


def _wall(dataset: Dataset, names: list[str], found: Any, label: int, run: int, key: str) -> None:
    mine = np.flatnonzero(found.labels == label)
    order = mine[np.argsort(-found.other_share[mine], kind="stable")][:SHOWN]
    shown = f", the {len(order):,} most confused" if len(order) < len(mine) else ""
    st.markdown(f"**{escape(names[label])}**, {len(mine):,} images{shown}")
    if dataset.has_pixels:
        tiles = [
            Tile(
                int(found.image_ids[v]),
                caption=f"community {found.communities[run, v] + 1}",
                badge=f"{100 * found.other_share[v]:.0f}% {names[1 - label]}",
            )
            for v in order
        ]
        wall = f"{key}_{label}_{names[0]}_{names[1]}"
        page_links.to_gallery(dataset, gallery(dataset, tiles, key=wall, tile_px=92))
        return
    export.table(
        IMAGES,
        {
            "image": found.image_ids[order],
            "community": found.communities[run, order] + 1,
            "share": found.other_share[order],
        },
        height=240,
    )


@cache_data("Looking into the pair", 64)
def _pair(dataset: Dataset, asked: tuple[tuple[str, Any], ...], a: int, b: int) -> study.PairCommunities:
    return study.pair(dict(asked), a, b)
