"""What the settings ask for: searched while the page waits, or taken from a run in the background."""

from __future__ import annotations

import json
from types import NoneType
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from fsviz import datasets, jobs
from fsviz.figures import support_sets as figures
from fsviz.records import Dataset, Progress
from fsviz.settings import Unchecked
from fsviz.studies import draw
from fsviz.studies import support_sets as study
from fsviz.studies.support_sets import Difference, Explained, SupportSets
from fsviz.ui.parts import access, run_panel, showing
from fsviz.ui.parts.cached import compute_with_bar, remember
from fsviz.ui.parts.shell import plain

AT_ONCE = 500  # tasks that FastDiffSel searches while the page waits; more run in the background
REFINED = 40_000  # images of tasks that are refined while the page waits
PREVIEW = 200


def find(spec: study.Spec) -> SupportSets | None:
    """What the settings ask for; a preview while a long run is not started or not finished.

    None where a visitor of a shared server asks for more than may be computed for them.
    """
    at_once = min(AT_ONCE, access.limit("tasks"))
    if spec["search"] == "refined":
        at_once = min(at_once, REFINED // draw.most_images(spec))
    if not access.fits(int(min(spec["n_tasks"], at_once)), _n_images(spec, at_once)):
        return None
    if spec["search"] != "greedy" and spec["n_tasks"] <= at_once:
        return search(spec)
    run = jobs.newest(spec, *study.NAMES, aside=("objective",), defaults=study.OLDER)
    if run is not None and run.state == "finished":
        return _of_run(run.id, datasets.stamp(spec["dataset"]))
    preview = {**spec, "search": "fastdiffsel", "n_tasks": min(PREVIEW, spec["n_tasks"])}
    what = "Greedy search runs" if spec["search"] == "greedy" else f"{spec['n_tasks']:,} tasks run"
    words = f"**{what} in the background.** Below is a preview: FastDiffSel on {preview['n_tasks']:,} tasks."
    run_panel.offer({"study": "support_sets", **spec}, run, words, _so_far)
    return search(preview)


def _n_images(spec: study.Spec, most: float) -> float:
    """Images in the tasks that are searched at once, for every gradient step."""
    return min(spec["n_tasks"], most) * draw.most_images(spec) * spec["n_steps"]


def _so_far(summary: study.Summary) -> None:
    """The distribution over the tasks that are finished."""
    figure = figures.plot_distribution(summary["histogram"], summary["accuracy"], summary["ci95"], 260, leads=False)
    showing.chart("Accuracy so far", figure, key="so_far")
    st.caption(f"The {summary['n_tasks']:,} tasks finished so far.")


def about(found: SupportSets) -> str:
    """What a chosen task or bar belongs to: with other settings it starts over."""
    return json.dumps(_identity(found))


def _identity(found: SupportSets) -> tuple[str, int, str]:
    """Changes when the answer does: what stands for it in every cache key."""
    spec = {k: v for k, v in found.spec.items() if k not in ("folder", "study", "version", "objective")}
    return json.dumps(spec, sort_keys=True), len(found), datasets.stamp(found.spec["dataset"])


def search(spec: Unchecked) -> SupportSets:
    """Hard, random and easy support sets, searched while the page waits."""
    return compute_with_bar(study.find_support_sets, spec, "Searching hard and easy support sets")


@remember("Reading the run", 6)
def _of_run(run_id: str, stamp: str) -> SupportSets:
    return study.collect(jobs.spec(run_id), jobs.chunks(run_id))


@remember(hashes={SupportSets: _identity})
def summary(found: SupportSets) -> study.Summary:
    return study.summary(found)


@remember(hashes={SupportSets: _identity})
def understated(found: SupportSets, dataset: Dataset) -> str:
    return study.understated(found.spec, found.tasks["random"], dataset)


def correlation(found: SupportSets, before: str) -> str:
    """These words and the rank correlation of accuracy with low query loss; nothing where there is none."""
    numbers = summary(found)
    value, interval, over = (
        numbers["spearman_loss_accuracy"],
        numbers["spearman_ci95"],
        numbers["spearman_over"],
    )
    if value is None or interval is None or over is None:
        return ""
    return f"{before}{plain(study.correlation_in_words(value, interval, over))}."


def explained(found: SupportSets, dataset: Dataset) -> Explained | None:
    """What explains that hard supports are hard, measured once with a bar; None where there are no attributes."""
    if not study.attribute_names(dataset):
        return None

    def explain(spec: Unchecked, progress: Progress) -> Explained | None:
        return study.explain(found, dataset, progress)

    asked = {**plain_spec(found), "n_tasks": len(found)}
    return compute_with_bar(explain, asked, "Measuring what gaps between support and query cost")


def _by_costs(explained: Explained) -> str:
    return explained.costs.to_json()


@remember(most=64, hashes={SupportSets: _identity, Explained: _by_costs, NoneType: str})
def class_differences(
    found: SupportSets, dataset: Dataset, explained: Explained | None, task: int, which: str
) -> list[Difference | None]:
    return study.class_differences(found, dataset, explained, task, which)


@remember(most=12, hashes={SupportSets: _identity, Explained: _by_costs})
def easy_points(found: SupportSets, explained: Explained) -> np.ndarray:
    return study.points_of(found, explained, "easy")


@remember("Comparing attributes", 24, hashes={SupportSets: _identity})
def gaps(found: SupportSets, dataset: Dataset, by: str) -> pd.DataFrame:
    return study.gap_table(found, dataset, by)


def plain_spec(found: SupportSets, **changes: Any) -> dict[str, Any]:
    """The settings of an answer, some changed, without what a run adds to them."""
    spec = {k: v for k, v in found.spec.items() if k in study.DEFAULTS or k in ("dataset", "backbone")}
    return {**spec, **changes}
