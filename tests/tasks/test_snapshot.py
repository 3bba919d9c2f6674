"""The tasks a run froze: ordinary testbeds, read in parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fsviz.errors import Missing
from fsviz.records import Tasks, Testbed
from fsviz.sampling import testbeds
from fsviz.tasks import snapshot


def tasks_of(n_tasks: int, seed: int = 0) -> Tasks:
    random = np.random.default_rng(seed)
    ids = (random.integers(-1, 9000, (n_tasks, 3, size)) for size in (1, 2, 4))
    class_ids, support, query = ids
    return Tasks(class_ids[:, :, 0], support, query, {"coarsity": random.random(n_tasks)})


@pytest.mark.parametrize("span", [(0, None), (0, 5), (4000, 4200), (4096, 8192), (8190, 9001), (9000, 99_999)])
def test_a_part_is_the_same_as_a_part_of_all(tmp_path: Path, span) -> None:
    every = tasks_of(9001)
    snapshot.freeze(tmp_path, Testbed("bed", every, {"dataset": "small"}))
    part, expected = snapshot.tasks(tmp_path, start=span[0], stop=span[1]), every.take(slice(*span))
    for name in ("class_ids", "support", "query"):
        assert np.array_equal(getattr(part, name), getattr(expected, name))
    assert np.array_equal(part.measures["coarsity"], expected.measures["coarsity"])
    assert np.array_equal(snapshot.measures(tmp_path)["coarsity"], every.measures["coarsity"])
    assert testbeds.read_testbed(tmp_path / "inputs" / "tasks.parquet").name == "bed"


@pytest.mark.parametrize("size", [0, 10, 300, None], ids=["empty", "start", "cut", "gone"])
def test_damaged_tasks_are_one_sentence(tmp_path: Path, size: int | None) -> None:
    snapshot.freeze(tmp_path, Testbed("bed", tasks_of(50), {"dataset": "small"}))
    path = tmp_path / "inputs" / "tasks.parquet"
    path.write_bytes(path.read_bytes()[:size]) if size is not None else path.unlink()
    for read in (snapshot.tasks, snapshot.measures):
        with pytest.raises(Missing, match=r"cannot be read.*Start a new run"):
            read(tmp_path)
