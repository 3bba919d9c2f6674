"""Colours of figures: readable on both backgrounds, and the same as those of the theme."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from fsviz.figures import palette

THEME = tomllib.loads((Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text())["theme"]
COLOURS = sorted({palette.ACCENT, palette.QUIET, palette.INK, *palette.MEANING.values(), *palette.SERIES})


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    """Contrast ratio as WCAG 2 defines it, from 1 to 21."""
    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_by_known_values() -> None:
    assert contrast("#FFFFFF", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("colour", COLOURS)
def test_every_colour_can_be_seen_on_both_backgrounds(colour: str, theme: str) -> None:
    assert contrast(colour, THEME[theme]["backgroundColor"]) >= 3


def test_streamlit_charts_use_the_same_series() -> None:
    assert tuple(THEME["chartCategoricalColors"]) == palette.SERIES
    assert len(set(palette.SERIES)) == 10
