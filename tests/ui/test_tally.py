"""The guesses of a class: one per visitor, bounded, and counted right when many come at once."""

from __future__ import annotations

from threading import Thread

from fsviz.ui.parts import tally
from fsviz.ui.parts.tally import Tally, Topic

TOPIC = Topic("demo", "Which?", ("a", "b", "c"))


def test_a_visitor_counts_once_by_the_last_guess() -> None:
    counted = Tally()
    for session, option in (("x", 0), ("y", 1), ("x", 2), ("x", 2)):
        assert counted.add(TOPIC, option, session, "", 0.0)
    assert counted.counts(TOPIC) == [0, 1, 1]
    assert counted.counts(Topic("fruit", "Which?", TOPIC.options)) == [0, 0, 0]


def test_an_answer_that_is_none_does_not_count() -> None:
    counted = Tally()
    assert not counted.add(TOPIC, 3, "x", "", 0.0) and not counted.add(TOPIC, -1, "x", "", 0.0)
    assert counted.counts(TOPIC) == [0, 0, 0]


def test_one_address_fills_no_more_than_its_share() -> None:
    counted = Tally()
    accepted = [counted.add(TOPIC, 0, f"session {n}", "10.0.0.7", float(n)) for n in range(500)]
    assert sum(accepted) == tally.MAX_PER_ADDRESS == counted.counts(TOPIC)[0]
    assert counted.add(TOPIC, 1, "session 0", "10.0.0.7", 600.0)  # a second thought still counts
    assert counted.add(TOPIC, 1, "another", "10.0.0.8", 600.0)
    assert counted.counts(TOPIC) == [tally.MAX_PER_ADDRESS - 1, 2, 0]


def test_many_guesses_within_a_minute_wait() -> None:
    counted = Tally()
    topics = [Topic("demo", f"Task {n}", TOPIC.options) for n in range(200)]
    accepted = [counted.add(topic, 0, "x", "10.0.0.7", 1.0) for topic in topics]
    assert sum(accepted) == tally.PER_MINUTE
    assert counted.add(topics[-1], 0, "x", "10.0.0.7", 62.0)


def test_a_full_memory_forgets_the_oldest_question() -> None:
    counted = Tally(max_guesses=10)
    for n in range(30):
        assert counted.add(Topic("demo", f"Task {n}", TOPIC.options), 0, "x", f"{n}", 0.0)
    held = [sum(counted.counts(Topic("demo", f"Task {n}", TOPIC.options))) for n in range(30)]
    assert held == [0] * 20 + [1] * 10


def test_reset_forgets_one_question() -> None:
    counted, second = Tally(max_guesses=2), Topic("demo", "How?", ("a", "b"))
    assert counted.add(TOPIC, 0, "x", "", 0.0) and counted.add(second, 1, "x", "", 0.0)
    counted.reset(TOPIC)
    counted.reset(TOPIC)
    assert counted.counts(TOPIC) == [0, 0, 0] and counted.counts(second) == [0, 1]
    assert counted.add(TOPIC, 0, "x", "", 0.0) and counted.counts(second) == [0, 1]  # there is room again


def test_nothing_that_names_a_visitor_is_kept() -> None:
    counted = Tally()
    counted.add(TOPIC, 0, "session-of-a-pupil", "192.168.1.77", 0.0)
    held = repr([vars(counted), vars(counted._attempts)])
    assert "pupil" not in held and "192.168" not in held


def test_visitors_at_the_same_time_are_all_counted() -> None:
    counted = Tally()

    def guess(first: int) -> None:
        for n in range(first, first + 20):
            counted.add(TOPIC, n % 3, f"session {n}", f"10.0.0.{n}", 0.0)
            counted.counts(TOPIC)

    threads = [Thread(target=guess, args=(20 * n,)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counted.counts(TOPIC) == [80, 80, 80]
