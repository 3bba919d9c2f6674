"""The only exceptions a page or the command line catches.

Each message states the problem, the rule, the value it got and the next step, in one or two sentences.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class FsvizError(Exception):
    """Something the user can fix; the message says how."""


class UnknownName(FsvizError):
    """A name (dataset, split, backbone, method, ...) that does not exist."""

    def __init__(self, kind: str, name: object, available: Iterable[str], hint: str = "") -> None:
        available = [str(k) for k in available]
        near = near_names(str(name), available)
        listing = ", ".join(available[:20]) + (f" and {len(available) - 20:,} more" if len(available) > 20 else "")
        if near:
            advice = f"Did you mean {' or '.join(repr(n) for n in near)}?"
        elif available:
            advice = f"Available: {listing}."
        else:
            advice = "There are none yet."
        super().__init__(f"Unknown {kind} {str(name)!r}. {advice}{' ' + hint if hint else ''}")
        self.kind, self.name, self.near = kind, str(name), near


def near_names(name: str, available: list[str], n: int = 3) -> list[str]:
    """Similar names: misspellings first, then names that contain the text (lite in efficientnet_lite0)."""
    text = name.lower()
    typos = get_close_matches(name, available, n, cutoff=0.8)
    holding = [k for k in available if len(text) > 2 and text in k.lower()]
    return list(dict.fromkeys([*typos, *holding, *get_close_matches(name, available, n, cutoff=0.5)]))[:n]


class BadInput(FsvizError):
    """A value, a file or a folder that cannot be used as it is."""


class NotFinite(FsvizError):
    """A computation whose result is not finite."""


class Missing(FsvizError):
    """Something that must exist first (features, images, a taxonomy); the message gives the command."""


class WorkspaceError(FsvizError):
    """The workspace folder cannot be read or written."""


class NotAllowed(FsvizError):
    """An action that visitors of a shared server may not take."""


class Cancelled(FsvizError):
    """The user stopped a long piece of work."""


class BrokenCode(FsvizError):
    """User code that cannot be loaded, fails or returns a wrong shape; the message names it."""
