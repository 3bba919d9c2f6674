"""Notes on filled and hollow marks; each names the test that decides."""

from __future__ import annotations

HOLM = "Filled: significant (p < 0.05, Holm-corrected). Hollow: not significant."
BONFERRONI = "Filled: significant (p < 0.05, Bonferroni-corrected). Hollow: not significant."


def with_note(title: str, note: str) -> str:
    """Axis title with a note in smaller letters below it, one or more lines."""
    lines = note.replace("<", "&lt;").replace("\n", "<br>")
    return f"{title}<br><span style='font-size:12px'>{lines}</span>"
