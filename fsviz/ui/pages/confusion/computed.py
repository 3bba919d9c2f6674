"""What the settings ask for: the graph of classes, measured while the page waits or by a run in the background."""

from __future__ import annotations

import hashlib

import numpy as np
import streamlit as st

from fsviz import datasets, jobs
from fsviz.features.backbones import title_of
from fsviz.records import ClassGraph
from fsviz.studies import confusion as study
from fsviz.studies import evaluate
from fsviz.ui.parts import access, run_panel
from fsviz.ui.parts.cached import compute_with_bar, remember
from fsviz.ui.parts.shell import plain

AT_ONCE = 12.0  # seconds that a page waits for pairs; what takes longer is a run
SECONDS_OF_ERRORS = 60.0  # errors on pairs are no run: they may take a little longer


def find(spec: study.Asked) -> ClassGraph | None:
    """The graph of a spec; None while it takes a run that is not finished, which is offered and watched here."""
    confusion = spec.get("likeness", "confusion") == "confusion"
    most = min(AT_ONCE if confusion else SECONDS_OF_ERRORS, access.limit("seconds"))
    wanted = study.seconds(spec)
    if wanted <= most:
        return compute_with_bar(study.class_graph, spec, "Comparing every two classes")
    if not confusion:
        st.info(f"This takes about {run_panel.duration(wanted)}, too long here. Choose a smaller split.", icon="⏳")
        return None
    asked = {name: value for name, value in spec.items() if name != "likeness"}
    run = jobs.find({"study": "confusion", **asked})
    if run is not None and run.state == "finished":
        return _of_run(run.id, datasets.stamp(str(spec["dataset"])))
    words = f"**These pairs of classes take about {run_panel.duration(wanted)}: a run in the background.**"
    run_panel.offer({"study": "confusion", **asked}, run, words, _so_far)
    return None


def _so_far(summary: study.Summary) -> None:
    if summary["most_confused"]:
        a, b, bits = summary["most_confused"][0]
        st.caption(f"Most confused of {summary['pairs']:,} pairs so far: {plain(a)} and {plain(b)}, {bits:.2f} bits.")


@remember("Reading the run", 6)
def _of_run(run_id: str, stamp: str) -> ClassGraph:
    return study.collect(jobs.spec(run_id), jobs.chunks(run_id))


def evaluations(dataset: str) -> dict[str, str]:
    """Finished evaluations of a dataset: "run/entry" -> what it is called."""
    found = {}
    for run in jobs.list_runs("evaluate"):
        if run.state == "finished" and run.spec.get("dataset") == dataset:
            for which, entry in enumerate(evaluate.entries(jobs.spec(run.id))):
                found[f"{run.id}/{which}"] = (
                    f"{entry.label} on {title_of(entry.backbone)} · {run_panel.when(run.created)}"
                )
    return found


@remember("Reading the run", 6)
def seen_in(line: str, split: str, stamp: str) -> ClassGraph:
    """The graph of the mistakes of one entry of a run ("run/entry")."""
    run_id, _, which = line.rpartition("/")
    spec = jobs.spec(run_id)
    return study.seen_in_run(spec, jobs.chunks(run_id, evaluate.chunks_of(spec, int(which))), int(which), split)


def _identity(graph: ClassGraph) -> tuple[str, ...]:
    """Changes when the graph does: what stands for it in every cache key."""
    digest = hashlib.blake2b(np.ascontiguousarray(graph.weights).tobytes(), digest_size=12).hexdigest()
    return graph.kind, graph.source, str(graph.weights.shape), str(hash(graph.column_names)), digest


@remember(hashes={ClassGraph: _identity})
def communities(graph: ClassGraph) -> np.ndarray:
    return study.communities(graph)


@remember("Laying the graph out", hashes={ClassGraph: _identity})
def layout(graph: ClassGraph) -> np.ndarray:
    return study.layout(graph)


@remember(hashes={ClassGraph: _identity})
def compare(first: ClassGraph, second: ClassGraph) -> study.Comparison:
    return study.compare(first, second)
