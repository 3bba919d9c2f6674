"""The guesses of a class: how many visitors chose each answer, in the memory of the server, without names.

A visitor counts once per question, by the last answer. Sessions are kept as salted digests; a full memory forgets the
questions that were answered longest ago. Somebody who opens many sessions fills at most the share of one address.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock

import streamlit as st

from fsviz.figures import lessons as figures
from fsviz.records import Dataset
from fsviz.sharing import Attempts
from fsviz.ui.parts import access, export, shell

MAX_GUESSES = 20_000  # of all questions, about 3 MB
MAX_PER_ADDRESS = 60  # visitors of one question: a class may share an address
PER_MINUTE, ALL_PER_MINUTE = 120, 1200  # guesses of one address, and of everybody
REFRESH = "3s"  # of the bars that a teacher sees
KEY = "guesses"


@dataclass(frozen=True)
class Topic:
    """A question as visitors see it: its dataset, its text and its answers."""

    dataset: str
    text: str
    options: tuple[str, ...]


@dataclass
class _Guesses:
    by_visitor: dict[bytes, int] = field(default_factory=dict)
    per_address: Counter[bytes] = field(default_factory=Counter)


class Tally:
    """Counts of guesses per question. Every method may be called by many visitors at a time."""

    def __init__(self, max_guesses: int = MAX_GUESSES) -> None:
        self._max_guesses = max_guesses
        self._topics: OrderedDict[Topic, _Guesses] = OrderedDict()
        self._n_guesses = 0
        self._salt = secrets.token_bytes(16)
        self._attempts = Attempts(PER_MINUTE, ALL_PER_MINUTE)
        self._lock = Lock()

    def add(self, topic: Topic, option: int, session: str, address: str, now: float) -> bool:
        """Counts a guess, instead of an earlier one of the session; whether it counts."""
        visitor, origin = self._digest(session), self._digest(address)
        if not 0 <= option < len(topic.options) or self._attempts.take(origin.hex(), now):
            return False
        with self._lock:
            guesses = self._topics.setdefault(topic, _Guesses())
            self._topics.move_to_end(topic)
            if visitor not in guesses.by_visitor:
                if guesses.per_address[origin] >= MAX_PER_ADDRESS:
                    return False
                guesses.per_address[origin] += 1
                self._n_guesses += 1
            guesses.by_visitor[visitor] = option
            while self._n_guesses > self._max_guesses and len(self._topics) > 1:
                self._n_guesses -= len(self._topics.popitem(last=False)[1].by_visitor)
            return True

    def counts(self, topic: Topic) -> list[int]:
        """Number of guesses per answer."""
        with self._lock:
            guesses = self._topics.get(topic)
            counts = Counter(guesses.by_visitor.values()) if guesses else Counter()
        return [counts[option] for option in range(len(topic.options))]

    def reset(self, topic: Topic) -> None:
        """Forgets the guesses of a question."""
        with self._lock:
            guesses = self._topics.pop(topic, None)
            self._n_guesses -= len(guesses.by_visitor) if guesses else 0

    def _digest(self, text: str) -> bytes:
        return hashlib.blake2b(text.encode("utf-8", "replace"), key=self._salt, digest_size=8).digest()


_tally = Tally()


def topic(dataset: Dataset, text: str, options: Sequence[str]) -> Topic:
    return Topic(dataset.name, text, tuple(options))


def add(topic: Topic, option: int) -> None:
    """Counts the guess of this visitor."""
    _tally.add(topic, option, access.session(), access.client(), time.monotonic())


def show(topic: Topic, correct: int | None) -> None:
    """Shows the guesses of the class after this visitor's own, and to a teacher in classroom mode before it.

    correct  the correct answer if this visitor has answered, else None: it is not marked
    Somebody alone has no class: without classroom mode there is nothing to show.
    """
    is_teacher = shell.classroom() and access.can("reset")
    if is_teacher:
        st.fragment(_draw, run_every=REFRESH)(topic, correct, True)
    elif correct is not None and (shell.classroom() or not access.alone()):
        _draw(topic, correct, False)


def _draw(topic: Topic, correct: int | None, is_teacher: bool) -> None:
    counts = _tally.counts(topic)
    n_guesses = sum(counts)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**The class:** {n_guesses:,} {'guess' if n_guesses == 1 else 'guesses'}", width="stretch")
        if is_teacher:
            st.button("Reset", icon="🧹", key=f"{KEY}_reset", on_click=_reset, args=[topic], disabled=not n_guesses)
    if n_guesses:
        export.chart("Guesses of the class", figures.plot_guesses(topic.options, counts, correct), key=KEY)


def _reset(topic: Topic) -> None:
    access.do("reset", _tally.reset, topic)
