"""`cached_call` keeps one answer per function and arguments, and computes it again when they change."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from fsviz.ui.parts.caching import cached_call

calls: list[tuple] = []


@pytest.fixture(autouse=True)
def counted() -> None:
    calls.clear()


@dataclass(frozen=True)
class Large:
    """An object that Streamlit cannot hash, with the key that replaces it."""

    name: str
    content: object

    @property
    def cache_key(self) -> str:
        return self.name


def first(*args: object, **kwargs: object) -> str:
    calls.append(("first", *args))
    return "first"


def second(*args: object) -> str:
    calls.append(("second", *args))
    return "second"


def test_functions_with_equal_arguments_do_not_share_an_answer() -> None:
    assert [cached_call(f, "both", 1) for f in (first, second, first, second)] == ["first", "second"] * 2
    assert len(calls) == 2


def test_an_answer_is_computed_again_when_an_argument_changes() -> None:
    for spec in ({"n_way": 5}, {"n_way": 5}, {"n_way": 6}):
        cached_call(first, spec)
    for more in (1, 2, 2):
        cached_call(first, "more", k=more)
    assert len(calls) == 2 + 2


def test_a_cache_key_stands_for_what_is_too_large_to_hash() -> None:
    for name, content in (("a", object()), ("a", object()), ("b", object())):
        cached_call(first, Large(name, content))
    assert len(calls) == 2


def test_only_so_many_answers_are_kept() -> None:
    for n in (0, 1, 2, 0):
        cached_call(second, "kept", n, keep=2)
    assert len(calls) == 4  # 0 had made room
