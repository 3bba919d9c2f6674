"""A small study whose chunks can be made slow, deaf or wrong, to try the engine on."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np

from fsviz.errors import BadInput
from fsviz.numerics import chunk_seed
from fsviz.settings import Schema
from fsviz.studies.study import Part, Study


def prepare(spec: dict, folder: Path) -> dict:
    if spec.get("n", 1) > 10_000:
        raise BadInput("n must be at most 10,000. Got more. Lower it.")
    (folder / "inputs").mkdir()
    (folder / "inputs" / "offset.txt").write_text(str(spec.get("offset", 0)))
    return spec


def parts(spec: dict) -> list[Part]:
    n = int(spec["n"])
    together = min(n, spec.get("follow_from", n))
    one_by_one = [Part("", 1, 1, "numbers", sequential=True)] * (n - together)
    return [*([Part("", together, 1, "numbers")] if together else []), *one_by_one]


def n_bytes(spec: dict) -> float:
    return 0.0 if spec.get("unforeseen") else 8000.0 * spec["n"]


def run_chunk(spec: dict, part: int, start: int, stop: int) -> dict[str, np.ndarray]:
    index = _index(spec, part, start)
    with open(spec["trace"], "a") as trace:  # one line per computed chunk, to see what was redone
        trace.write(f"{index} {os.getpid()}\n")
    if index == spec.get("break_at") and not Path(spec["trace"] + ".fixed").exists():
        raise BadInput("Chunk cannot be computed: fix it.")
    crashes = index == spec.get("crash_at") or index >= spec.get("crash_from", 10**9)
    if crashes and not Path(spec["trace"] + ".fixed").exists():
        raise ZeroDivisionError("by hand")
    if index == spec.get("stumble_at") and traced(spec).count(index) == 1:
        raise ZeroDivisionError("the first time")
    if index == spec.get("die_at") and traced(spec).count(index) == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if index >= spec.get("sleep_from", 0):
        wake = time.monotonic() + spec.get("sleep", 0)
        while time.monotonic() < wake and not Path(spec["trace"] + ".hurry").exists():
            time.sleep(0.02)
    if spec.get("deaf") and index == spec["deaf"]:
        end = time.monotonic() + 60
        while time.monotonic() < end:  # swallows everything that can be swallowed
            try:
                time.sleep(60)
            except BaseException:
                continue
    offset = int((Path(spec["folder"]) / "inputs" / "offset.txt").read_text())
    random = np.random.default_rng(chunk_seed(spec.get("seed", 0), index))
    return {"values": random.standard_normal(1000) + offset}


def _index(spec: dict, part: int, start: int) -> int:
    return start + sum(before.n for before in parts(spec)[:part])


def message(spec: dict, part: int, start: int, stop: int) -> str:
    return f"number {_index(spec, part, start)}"


def collect(spec: dict, chunks) -> list[float]:
    return [float(chunk["values"].sum()) for chunk in chunks]


def summarise(sums: list[float]) -> dict:
    return {"n": len(sums), "total": sum(sums), "array": np.arange(2), "none": float("nan")}


STUDY = Study(
    name="numbers",
    title="numbers",
    settings=Schema({}),
    check=dict,
    prepare=prepare,
    parts=parts,
    run_chunk=run_chunk,
    collect=collect,
    summarise=summarise,
    message=message,
    n_bytes=n_bytes,
)


def hurry(spec: dict) -> None:
    """No chunk of this spec sleeps from now on."""
    Path(spec["trace"] + ".hurry").touch()


def traced(spec: dict) -> list[int]:
    """Indices of the chunks that were started, in order."""
    path = Path(spec["trace"])
    return [int(line.split()[0]) for line in path.read_text().splitlines()] if path.exists() else []
