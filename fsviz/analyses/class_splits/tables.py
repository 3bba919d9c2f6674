"""Tables of splits and trees."""

from __future__ import annotations

from fsviz.records import SIDES
from fsviz.tables import Column, Table

SIZES = tuple(Column(side, side, kind="count") for side in SIDES)
COMPARISONS = Table(
    "Splits compared",
    Column("split", "Split"),
    *SIZES,
    Column(
        "nearest",
        "Nearest class",
        digits=3,
        kind="number",
        help="Mean over test classes of the distance to the most similar training class.",
    ),
    Column(
        "gap",
        "Class means",
        digits=3,
        kind="number",
        help="Distance between the mean of all training and of all held-out classes.",
    ),
)
AGREEMENT = Table(
    "Agreement across seeds",
    Column("dims", "Dimensions", kind="count"),
    Column("agreement", "Same side", digits=0, kind="share"),
    Column("chance", "Expected by chance", digits=0, kind="share"),
    Column("on_test", "Test classes shared", digits=0, kind="share"),
    Column("chance_on_test", "Shared, expected by chance", digits=0, kind="share"),
    Column("reached", "Divergence reached", digits=4, kind="number"),
    Column("above_floor", "Objective above M log M", digits=4, kind="number"),
)
REACHED = Table(
    "Target and divergence reached",
    Column("asked", "Target", digits=2, kind="number"),
    Column("reached", "Reached", digits=2, kind="number"),
)
HOPS = Table(
    "Differences between trees",
    Column("first", "First tree"),
    Column("second", "Second tree"),
    Column(
        "hops",
        "Difference in hops",
        digits=3,
        kind="number",
        help="Mean over pairs of classes: edges between them in one tree less the other.",
    ),
    Column(
        "normalised",
        "Normalised",
        digits=3,
        kind="number",
        help="The same after the hops of each tree are divided by their mean, so that deep and flat trees compare.",
    ),
    Column(
        "chance",
        "Normalised, expected by chance",
        digits=3,
        kind="number",
        help="With the classes of one tree shuffled (20 times).",
    ),
)
NEIGHBOURS = Table(
    "Nearest classes",
    Column("class", "Class", kind="class"),
    Column("side", "Side"),
    Column("distance", "Distance", digits=3, kind="number"),
)
NEAREST = Table(
    "Distances between classes",
    Column("class", "Class", kind="class"),
    Column("nearest", "Nearest class", kind="class"),
    Column("distance", "Distance", digits=3, kind="number"),
)
OVERVIEW = Table("Published splits", Column("dataset", "Dataset"), *SIZES, Column("divergences", "Divergences"))
