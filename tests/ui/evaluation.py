"""Helpers for tests of the pages Evaluate and Runs: a page of a toy dataset, its texts, and runs of that dataset."""

from __future__ import annotations

import re
import sys

import pytest
from streamlit.testing.v1 import AppTest

from fsviz import jobs
from fsviz.errors import Cancelled
from fsviz.jobs import store
from tests.ui.pages import open_link

SMALL = {"n_way": 4, "n_shot": 2, "n_query": 5, "n_tasks": 40}


def open_page(name: str, dataset: str = "toy_pages", **query: str) -> AppTest:
    return open_link(name, dataset, fine=False, **query)


def record(**more) -> jobs.Run:
    sampler = {"sampler": "semantic", "n_way": 4, "n_shot": 2, "n_query": 5, "n_tasks": 60}
    spec = {"study": "evaluate", "dataset": "toy_pages", "backbones": ["alpha_net"], "methods": ["protonet", "ridge"]}
    whole = {**spec, "sampler": sampler, "device": "cpu", **more}
    return jobs.run_in_foreground({name: value for name, value in whole.items() if value is not None})


def cancelled_run(after: int, **more) -> jobs.Run:
    """A run that was cancelled after this many small chunks."""

    def stop(done: int, total: int, message: str) -> None:
        if done == after:
            store.ask_to_stop(jobs.folder(jobs.list_runs()[0].id))

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Cancelled):
        for name in ("_WRITE_EVERY", "_SUMMARISE_EVERY"):
            patch.setattr(sys.modules["fsviz.jobs.execute"], name, 0.0)
        spec = {"study": "evaluate", "dataset": "toy_pages", "backbones": ["alpha_net"], "device": "cpu", "chunk": 10}
        spec |= {"methods": ["protonet", "ridge"], "sampler": {"sampler": "semantic", **SMALL}, **more}
        jobs.run_in_foreground(spec, stop)
    return jobs.list_runs()[0]


def answer_of(app: AppTest) -> str:
    """The answer of a page, as it is read."""
    (text,) = (element.value for element in app.markdown if element.value.startswith("**") and ".** " in element.value)
    return text.replace("\\", "")


def accuracy_in(answer: str) -> str:
    """The first accuracy of an answer, with its interval."""
    return re.search(r"\d+\.\d(?: ± \d+\.\d)?%", answer)[0]


def texts(app: AppTest) -> str:
    kinds = (app.markdown, app.caption, app.error, app.warning, app.info, app.success, app.get("html"))
    return "\n".join(str(getattr(e, "value", "") or getattr(e.proto, "body", "")) for kind in kinds for e in kind)
