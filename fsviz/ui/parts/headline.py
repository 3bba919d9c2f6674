"""Headline numbers of a page: records, drawn by one function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from fsviz.records import HeadlineNumber
from fsviz.ui.parts.shell import escape, responsive_columns


def show_numbers(numbers: Sequence[HeadlineNumber | None], name: str = "headline") -> None:
    """Numbers side by side, two by two in a narrow window; None leaves a gap."""
    for column, number in zip(responsive_columns(name, len(numbers), "pairs"), numbers, strict=True):
        if number is not None:
            show_number(number, column)


def show_number(number: HeadlineNumber, where: Any = st) -> None:
    """One number, with what it is compared with below it, and its help."""
    where.metric(
        escape(number.title),
        escape(number.words) if number.words else number.number_text,
        number.below(escape) or None,
        delta_color="normal" if number.coloured else "off",
        delta_arrow="auto" if number.change else "off",
        help=escape(number.help) or None,
    )
