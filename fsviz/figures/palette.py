"""Colours with one meaning on every page: colour-blind safe, after Paul Tol's schemes.

Each has a contrast of at least 3:1 to the light and to the dark background. Colour is never the only sign: figures
also name the thing in text or by shape.
"""

from __future__ import annotations

from fsviz import methods
from fsviz.difficulty.objectives import SUPPORT_SETS

ACCENT = "#3D6FE0"  # what is selected
QUIET = "#8A94A0"  # the rest
INK = "#5A6675"  # intervals on bars

MEANING: dict[str, str] = {
    "uniform": "#4477AA",
    "random": "#4477AA",
    "semantic": "#E66F2B",
    "hard": "#CC3311",
    "easy": "#009988",
    "train": "#7768AE",
    "val": "#B98A20",
    "test": "#B8478A",
    "all": "#7A8794",
    "support": "#2E8B57",
    "query": "#2899C9",
    "correct": "#009988",
    "incorrect": "#CC3311",
    "published": "#7A8794",
    "root": "#2E8B57",
    "leaf": "#CC3311",
}

# Ten distinguishable colours for things without a fixed meaning (methods, backbones, classes).
SERIES: tuple[str, ...] = (
    "#3D6FE0",
    "#E66F2B",
    "#009988",
    "#B8478A",
    "#B98A20",
    "#2899C9",
    "#CC3311",
    "#7768AE",
    "#5E8C31",
    "#7A8794",
)

# Titles of the methods in the order of their colours: a method looks the same in every figure, whatever its rank.
METHODS: tuple[str, ...] = tuple(m.title for m in sorted(methods.METHODS.values(), key=lambda m: m.order))


# The symbols of support sets, from the hardest to the easiest.
SET_SYMBOLS: dict[str, str] = {name: kind.symbol for name, kind in SUPPORT_SETS.items()}


def meaning(name: str) -> str:
    """Colour of a named thing; grey for anything without a fixed meaning."""
    name = SUPPORT_SETS[name].colour if name in SUPPORT_SETS else name
    base = name.rsplit("_", 1)[-1] if name not in MEANING else name
    return MEANING.get(base, QUIET)
