"""Finished evaluations of a dataset, and how often each of its images is classified correctly in one of them."""

from __future__ import annotations

import numpy as np

from fsviz import jobs
from fsviz.features.backbones import title_of
from fsviz.records import Dataset
from fsviz.settings import Setting
from fsviz.studies import evaluate
from fsviz.studies import feature_map as study
from fsviz.ui.parts import caching, run_panel

RUN = Setting("run", "Run", "A finished evaluation of this dataset.", "choice", "")
MAX_RUNS = 60


def methods(dataset: Dataset) -> dict[str, str]:
    """Methods of finished evaluations of the dataset, "RUN/ENTRY" -> title, newest first."""
    titles = {}
    for run in jobs.list_runs("evaluate"):
        if run.state == "finished" and run.spec.get("dataset") == dataset.name and evaluate.is_complete(run.spec):
            for number, entry in enumerate(evaluate.entries(run.spec)):
                testbed = evaluate.run_testbeds(run.spec)[entry.testbed]["testbed_name"]
                backbone = "" if len(run.spec["backbones"]) == 1 else f" on {title_of(entry.backbone)}"
                titles[f"{run.id}/{number}"] = f"{entry.label}{backbone}, {testbed}, {run_panel.when(run.created)}"
    return dict(list(titles.items())[:MAX_RUNS])


def accuracy(dataset: Dataset, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Accuracy (N,) of "RUN/ENTRY" on every image, NaN if it never was a query; and the number of queries (N,)."""
    run_id, _, number = name.rpartition("/")
    return _accuracy(run_id, int(number), str(jobs.folder(run_id)), len(dataset.image_class_ids()))


@caching.cache_data("Reading the run", 16)
def _accuracy(run_id: str, number: int, folder: str, n_images: int) -> tuple[np.ndarray, np.ndarray]:
    spec = jobs.spec(run_id)
    chunks = jobs.chunks(run_id, evaluate.chunks_of(spec, number))
    return study.accuracy_of_images(spec, chunks, number, n_images)
