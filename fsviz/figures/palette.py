"""One colour, one meaning, on every page. Colour-blind safe (after Paul Tol's schemes), readable on light and dark.

Never colour alone: every figure that uses these also names the thing in text or by shape.
"""

from __future__ import annotations

from fsviz import methods

ACCENT = "#3D6FE0"  # what is selected
QUIET = "#9AA3AE"  # the rest
INK = "#56616F"  # intervals on bars: seen on white, on the dark page and on the bar itself

MEANING: dict[str, str] = {
    "uniform": "#4477AA",
    "random": "#4477AA",
    "semantic": "#EE7733",
    "hard": "#CC3311",
    "easy": "#009988",
    "train": "#7768AE",
    "val": "#C99A2E",
    "test": "#B8478A",
    "all": "#7A8794",
    "support": "#2E8B57",
    "query": "#33A7D8",
    "right": "#009988",
    "wrong": "#CC3311",
    "published": "#7A8794",
    "root": "#2E8B57",
    "leaf": "#CC3311",
}

# For things without a meaning of their own (methods, backbones, classes): ten that can be told apart.
SERIES: tuple[str, ...] = (
    "#3D6FE0",
    "#EE7733",
    "#009988",
    "#B8478A",
    "#C99A2E",
    "#33A7D8",
    "#CC3311",
    "#7768AE",
    "#5E8C31",
    "#7A8794",
)

# Titles of the methods, each at the place of its colour: a method looks the same in every figure, whatever its rank.
METHODS: tuple[str, ...] = tuple(m.title for m in sorted(methods.METHODS.values(), key=lambda m: m.order))


def meaning(name: str) -> str:
    """The colour of a named thing; quiet grey for anything without a fixed meaning."""
    base = name.rsplit("_", 1)[-1] if name not in MEANING else name
    return MEANING.get(base, QUIET)
