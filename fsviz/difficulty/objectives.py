"""OBJECTIVES: in which direction a search moves the query loss, and the words, colour and symbol of what it finds.

Adding an objective is one entry of OBJECTIVES: searches, studies, figures, pages and commands follow.
"""

from __future__ import annotations

from dataclasses import dataclass

from fsviz.errors import UnknownName


@dataclass(frozen=True)
class Objective:
    """A kind of support set, and how a search finds it.

    sign         1 raises the query loss, -1 lowers it, 0 leaves the support as it was sampled
    comparative  the support sets compared with random ones: "harder"
    superlative  the first of the tasks when these sets are sorted by accuracy: "hardest"
    verb         what the search does with the query loss: "raises"
    colour       the name of its colour in fsviz.figures.palette
    symbol       the Plotly symbol of its points
    """

    name: str
    title: str
    sign: int
    comparative: str
    superlative: str
    verb: str
    colour: str
    symbol: str


OBJECTIVES: dict[str, Objective] = {
    objective.name: objective
    for objective in (
        Objective("hard", "Hard", 1, "harder", "hardest", "raises", "hard", "triangle-down"),
        Objective("easy", "Easy", -1, "easier", "easiest", "lowers", "easy", "triangle-up"),
    )
}
RANDOM = Objective("random", "Random", 0, "as hard", "first", "leaves", "random", "circle")
SUPPORT_SETS: dict[str, Objective] = {  # from the hardest to the easiest
    objective.name: objective for objective in sorted((*OBJECTIVES.values(), RANDOM), key=lambda o: -o.sign)
}


def get(name: str) -> Objective:
    """The objective of that name."""
    if name not in OBJECTIVES:
        raise UnknownName("objective", name, OBJECTIVES)
    return OBJECTIVES[name]
