"""Headline numbers as pages, reports and commands say them."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from fsviz.records import HeadlineNumber
from fsviz.text import escape_markdown


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (HeadlineNumber.around("a", "Accuracy", 71.25, 0.5), "71.2 ± 0.5%"),
        (HeadlineNumber.around("a", "Accuracy", 71.26, None, digits=0), "71%"),
        (HeadlineNumber.around("a", "Accuracy", 71.26, float("nan")), "71.3%"),
        (HeadlineNumber.around("d", "Ahead", 1.234, 0.4, "points", digits=2, signed=True), "+1.23 ± 0.40 points"),
        (HeadlineNumber("r", "Correlation", 0.5, 0.1, 0.6, unit="", digits=2), "0.50"),
        (HeadlineNumber("o", "Right", 40.0, unit="% right", digits=0), "40% right"),
        (HeadlineNumber.count("n", "Images", 12_345), "12,345"),
        (HeadlineNumber("n", "Images", None, unit="", digits=0), "unknown"),
    ],
)
def test_a_number_has_its_unit_digits_and_half_width(number: HeadlineNumber, expected: str) -> None:
    assert number.number_text == expected


def test_below_a_number_are_its_uneven_interval_its_change_and_its_note() -> None:
    share = HeadlineNumber("s", "Explained", 31.0, 20.4, 42.0, digits=0, note="over classes")
    assert share.below() == "20 to 42%; over classes"
    changed = HeadlineNumber.around("a", "Accuracy", 50.0, 1.0, change=-3.0, digits=0, note="by the swap")
    assert changed.below() == "-3 points by the swap"
    assert (
        HeadlineNumber("m", "Median", 12.0, unit="", change=0.25, digits=2, note="vs a*b").below(escape_markdown)
        == r"+0.25 vs a\*b"
    )
    assert HeadlineNumber.count("n", "Images", 3).below() == ""


def test_a_number_in_words_names_itself() -> None:
    assert HeadlineNumber.around("a", "Accuracy", 71.2, 0.5, note="200 tasks").in_words() == (
        "Accuracy: 71.2 ± 0.5% (200 tasks)"
    )
    words = HeadlineNumber.worded("s", "Explained", "nothing sure", low=-3, high=4, digits=0)
    assert words.in_words() == "Explained: nothing sure (-3 to 4%)"


def _page() -> None:
    from fsviz.records import HeadlineNumber
    from fsviz.ui.parts.headline import show_numbers

    names = HeadlineNumber.worded("w", "Of *a*", "[link](x)", note="_b_", help="**c**")
    show_numbers([HeadlineNumber.around("a", "Accuracy", 71.2, 0.5, change=3.0, coloured=True), None, names])


def test_a_page_draws_numbers_and_escapes_names() -> None:
    app = AppTest.from_function(_page).run()
    assert not app.exception
    number, names = app.metric
    assert (number.value, number.delta) == ("71.2 ± 0.5%", "+3.0 points") and number.color != names.color
    assert names.label == r"Of \*a\*" and names.value == r"\[link\](x)" and names.delta == r"\_b\_"
    assert names.help == r"\*\*c\*\*"
