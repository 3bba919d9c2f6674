"""One way for a page to answer: the finished run of a spec, or an answer now, or a preview and the offer of a run."""

from __future__ import annotations

from typing import Any, TypeVar

import streamlit as st

from fsviz import datasets, jobs
from fsviz.settings import RawSettings
from fsviz.studies.study import Study, Work
from fsviz.ui.parts import access, run_panel
from fsviz.ui.parts.caching import cached_call, compute_with_progress

Result = TypeVar("Result")
WAIT = 10.0  # seconds that whoever looks at a page waits for an answer; what takes longer is a run
AUTO_WAIT = 3.0  # the same for a section whose run starts by itself
AUTO_START = 120.0  # seconds of a run that starts by itself


def answer(
    study: Study[Result],
    spec: RawSettings,
    words: str,
    so_far: run_panel.SoFar = None,
    start: str = run_panel.START,
    starts: bool = False,
) -> Result | None:
    """The result of a spec: recorded, or computed now; of a shorter spec if the full one needs a run.

    None if there is no shorter spec either. `words` label the progress bar; `so_far` shows the summary of a run.

    starts  whether a run of up to AUTO_START seconds starts by itself, with a preview after AUTO_WAIT seconds
    """
    full_spec = {"study": study.name, **spec}
    run = jobs.find(full_spec)
    if run is not None and run.state == "finished":
        return recorded(run.id, str(spec["dataset"]))
    work = work_of(study, spec)
    starts = starts and work.seconds <= AUTO_START and access.can("run")
    seconds = min(AUTO_WAIT, patience()) if starts else patience()
    if work.seconds <= seconds:
        return compute_with_progress(jobs.compute, full_spec, words)
    preview = _preview(study, spec, work, seconds)
    if starts and run is None and preview is not None:
        run = jobs.status(access.do("run", jobs.submit, full_spec))
    if preview is not None and not access.can("run") and work_of(study, preview).seconds > patience():
        st.info(
            f"Too large for this shared server: even a preview takes more than {patience():.0f} s. "
            "Lower the number of tasks, classes or images.",
            icon="⏳",
        )
        return None
    message = f"**Full run: {work.n:,} {work.items}, about {run_panel.duration(work.seconds)} in the background.**"
    if preview is not None:
        message += f" This page shows a preview of {work_of(study, preview).n:,}."
    run_panel.offer(full_spec, run, message, so_far, start)
    return None if preview is None else compute_with_progress(jobs.compute, {"study": study.name, **preview}, words)


def patience() -> float:
    """Seconds that one computation may take for this visitor."""
    return min(WAIT, access.limit("seconds"))


def recorded(run_id: str, dataset: str) -> Any:
    """The result of a finished run."""
    return cached_call(_read, run_id, datasets.stamp(dataset), words="Reading the run", keep=6)


def _read(run_id: str, stamp: str) -> Any:
    return jobs.result(run_id)


def work_of(study: Study[Any], spec: RawSettings) -> Work:
    """The amount of work of a spec."""
    return cached_call(_work, study.name, dict(spec), datasets.stamp(str(spec["dataset"])))


def _work(study: str, spec: RawSettings, stamp: str) -> Work:
    from fsviz import studies

    declared = studies.get(study)
    assert declared.work is not None, f"study {study} declares no work"
    return declared.work(declared.check(spec))


def _preview(study: Study[Any], spec: RawSettings, work: Work, seconds: float) -> Any:
    """A spec with as many items as fit into these seconds, None if there is none."""
    if study.shorten is None:
        return None
    fits = int(work.n * seconds / work.seconds)
    return study.shorten(study.check(spec), fits)
