"""Tables of splits and trees."""

from __future__ import annotations

from fsviz.records import SIDES
from fsviz.tables import Column, Table

SIZES = tuple(Column(side, side, kind="count") for side in SIDES)
_INSIDE = Column(
    "inside",
    "Inside test",
    digits=2,
    kind="number",
    help="Mean distance between two test classes.",
)
_FROZEN = Column(
    "frozen",
    "Frozen accuracy",
    kind="percent",
    interval=("frozen_low", "frozen_high"),
    help="ProtoNet on frozen features, 1-shot tasks of the test side: trained on neither side. 95% CI over tasks; "
    "range of 20 random splits.",
)
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
    _INSIDE,
    _FROZEN,
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
BY_TARGET = Table(
    "Test side by target divergence",
    Column("split", "Split"),
    Column("reached", "Reached", digits=2, kind="number"),
    Column("nearest", "Nearest class", digits=2, kind="number", help="Mean distance to the nearest training class."),
    _INSIDE,
    _FROZEN,
    Column("sides", "Sides", help="Swapped: most classes of one side are on the other side at the target before."),
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
