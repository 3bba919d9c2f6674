"""A study's parts say which items a chunk holds and what it waits for; a result is the same however it is computed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fsviz import jobs, studies
from fsviz.errors import UnknownName
from fsviz.studies.study import Part, first_needed, joined, locate
from tests.jobs import studies_for_tests

PARTS = [Part("search", 7, 3), Part("random", 4, 2, sequential=True), Part("hard", 4, 4), Part("last", 1, 1)]


def test_chunks_cover_every_item_of_every_part_once() -> None:
    n_chunks = sum(part.n_chunks for part in PARTS)
    assert n_chunks == 3 + 2 + 1 + 1
    assert [locate(PARTS, index) for index in range(n_chunks)] == [
        (0, 0, 3),
        (0, 3, 6),
        (0, 6, 7),
        (1, 0, 2),
        (1, 2, 4),
        (2, 0, 4),
        (3, 0, 1),
    ]
    with pytest.raises(IndexError):
        locate(PARTS, n_chunks)


def test_a_sequential_part_and_all_after_it_wait_for_what_comes_before() -> None:
    assert [first_needed(PARTS, index) for index in range(7)] == [0, 0, 0, 3, 3, 3, 3]
    chain = [Part("first", 2, 1), *[Part("epoch", 1, 1, sequential=True)] * 3]
    assert [first_needed(chain, index) for index in range(5)] == [0, 0, 2, 3, 4]
    assert first_needed([Part("alone", 2, 1, sequential=True)], 1) == 0
    with pytest.raises(IndexError):
        first_needed(PARTS, 7)


def test_chunks_in_any_order_join_to_the_items_in_theirs() -> None:
    def chunk(part: int, start: int, values: list[int]) -> dict[str, np.ndarray]:
        return {"part": np.array(part), "start": np.array(start), "values": np.array(values)}

    result = joined([chunk(1, 0, [9]), chunk(0, 3, [13, 14]), chunk(0, 0, [10, 11])])
    assert list(result) == [0, 1]
    assert result[0]["values"].tolist() == [10, 11, 13, 14]
    assert result[0]["positions"].tolist() == [0, 1, 3, 4]  # item 2 is not finished yet
    assert set(result[1]) == {"values", "positions"}


@pytest.fixture
def spec(tmp_path, monkeypatch):
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "home"))
    monkeypatch.setitem(studies.OWN, "numbers", "tests.jobs.studies_for_tests")
    return {"study": "numbers", "n": 4, "seed": 3, "trace": str(tmp_path / "trace")}


def test_a_result_is_the_same_whether_it_is_recorded_or_not(spec) -> None:
    reports = []
    computed = jobs.compute(spec, lambda *now: reports.append(now))
    assert reports == [(1, 4, "number 0"), (2, 4, "number 1"), (3, 4, "number 2"), (4, 4, "number 3")]
    assert jobs.list_runs() == []
    run = jobs.run_in_foreground(spec)
    assert jobs.result(run.id) == computed
    assert jobs.results(run.id)["total"] == sum(computed)


def test_a_run_is_found_by_what_it_computes(spec, monkeypatch) -> None:
    assert jobs.find(spec) is None
    first = jobs.run_in_foreground(spec)
    assert jobs.find(spec).id == first.id
    assert jobs.find({**spec, "seed": 4}) is None
    again = jobs.run_in_foreground(spec)
    assert jobs.find(spec).id == again.id  # the newest
    # What is computed does not depend on an ignored setting, and another version computes something else.
    ignoring = replace(studies_for_tests.STUDY, ignored=("seed",))
    monkeypatch.setattr(studies_for_tests, "STUDY", ignoring)
    assert jobs.find({**spec, "seed": 4}).id == again.id
    monkeypatch.setattr(studies_for_tests, "STUDY", replace(studies_for_tests.STUDY, version=2))
    assert jobs.find(spec) is None


def test_a_study_is_found_by_being_there_under_the_name_of_its_file() -> None:
    names = studies.names()
    assert len(names) > 8 and {"evaluate", "causes", "training"} <= set(names)
    for name in names:
        assert studies.get(name).name == name and studies.title_of(name) == studies.get(name).title
        assert studies.get(name).title and "_" not in studies.get(name).title
    for unknown in ("draw", "evaluat", "../evaluate", None):
        with pytest.raises(UnknownName, match="Unknown study"):
            studies.get(unknown)
    assert studies.title_of("no_longer") == "no longer"
