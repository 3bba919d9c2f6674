"""Attribute gap: how far support and queries are apart in what can be seen of them (after Basu et al. 2023)."""

from __future__ import annotations

import numpy as np

from fsviz.difficulty.measures.declaration import Given, Measure
from fsviz.numerics import nanmean_rows

MEASURE = Measure(
    "attribute_gap",
    "Attribute gap",
    words="how far the support is from the queries in brightness, blur, size and the like",
    what="For every attribute of the images: how far the support as a whole is from the queries as a whole, in "
    "standard deviations of a number, or as the share of images that would have to change their value. The mean over "
    "attributes is high where a classifier learns from images of another kind than those it is asked about.",
    formula=r"\frac{1}{A} \sum_{a=1}^{A} g_a",
    symbols="A: attributes; g_a: the gap in one of them, 0 where support and queries are alike",
    direction="harder",
    needs=("attributes",),
    paper="after Basu et al. 2023",
    place=60,
    cause="shift",
)


def measure(given: Given) -> np.ndarray:
    return nanmean_rows(np.stack(list(given.attributes.values()), axis=1))
