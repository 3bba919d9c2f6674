"""Two likenesses, or two backbones, pair by pair: do they agree, and which pairs stand out?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from fsviz import datasets, features, jobs
from fsviz.features.backbones import title_of
from fsviz.figures import confusion as figures
from fsviz.records import Dataset
from fsviz.records.graphs import ClassGraph
from fsviz.settings import Setting
from fsviz.studies import confusion as study
from fsviz.studies import evaluate
from fsviz.ui.pages.confusion.graph import find
from fsviz.ui.parts import export, links, run_panel, selections
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.clicks import Click
from fsviz.ui.parts.controls import pick
from fsviz.ui.parts.shell import escape, responsive_columns

CHART = "comparison"
OUTLIERS = 4


def show(dataset: Dataset, spec: study.ConfusionRequest, first: ClassGraph) -> list[str]:
    """The comparison; returns the words that a command needs to make it."""
    left, right = responsive_columns("compare", [2, 1], gap="medium")
    with right:
        second = _second(dataset, spec, first)
    if second is None:
        return []
    compared = cached_call(study.compare, first, second)
    table = compared.table
    high, low = study.outliers(compared, OUTLIERS)
    with left:
        pairs = list(zip(table["a"], table["b"]))
        named = [replace(graph, source=title_of(graph.source)) for graph in (first, second)]
        figure = figures.plot_comparison(
            named[0], named[1], table["first"].to_numpy(), table["second"].to_numpy(), pairs, [*high[:3], *low[:3]]
        )
        sets = Click(selections.CLASSES, [list(pair) for pair in pairs])
        export.chart("Two ways to compare classes", figure, key=CHART, sets=sets)
        st.caption(
            f"Every point is one of {len(table):,} pairs of classes. "
            f"{_said('Pearson', compared.pearson)}, {_said('Spearman', compared.spearman)}; intervals are over "
            f"{escape(compared.pearson.ci_unit)}, because pairs share classes. Click a point to pick its classes."
        )
    with right:
        st.markdown("**Where the two disagree most**")
        for edge in (*high, *low):
            row, said = table.iloc[edge], study.describe_edge(compared, edge)
            st.markdown(
                f"- **{escape(row['a'])}** and **{escape(row['b'])}**: {escape(said[0])} ({row['first']:.2f}), "
                f"{escape(said[1])} ({row['second']:.2f})"
            )
        st.caption(
            "Pairs whose places in the two orders differ by half of all pairs or more"
            + (", the largest differences first." if high or low else ": there is none.")
        )
    return study.describe_versus(first, second)


def _said(name: str, found: Any) -> str:
    if np.isnan(found.value):
        return f"{name}'s correlation cannot be told (all pairs are the same)"
    interval = "" if np.isnan(found.low) else f" ({found.low:.2f} to {found.high:.2f})"
    return f"{name}'s correlation {found.value:.2f}{interval}"


def _second(dataset: Dataset, spec: study.ConfusionRequest, first: ClassGraph) -> ClassGraph | None:
    """The graph that is compared with: another likeness, another backbone, or the mistakes of a run."""
    backbones = features.available(dataset)
    others = [name for name in backbones if name != first.source]
    runs = _evaluations(dataset.name)
    kinds = [kind for kind in study.possible_similarities(dataset) if kind != first.kind or (first.source and others)]
    kinds += ["run"] if runs else []
    if not kinds:
        st.info("There is nothing to compare with: no second likeness, backbone or run.", icon="🧩")
        return None
    choices = {kind: study.SIMILARITIES[kind].title for kind in kinds}
    wanted = [kind for kind in ("jiang_conrath", "confusion", "error") if kind in kinds and kind != first.kind]
    setting = study.SIMILARITY.with_(name="versus", title="Compare with", choices=choices, default=(wanted or kinds)[0])
    told = "\n\n".join(f"**{study.SIMILARITIES[kind].title}**: {study.SIMILARITIES[kind].what}" for kind in kinds)
    kind = pick(setting, help=told)
    if kind == "run":
        links.drop_from_link("versus_backbone")
        line = pick(
            Setting("versus_run", "Run", "Whose mistakes are compared.", "choice", next(iter(runs)), choices=runs)
        )
        return cached_call(
            _seen_in, str(line), str(spec["split"]), datasets.stamp(dataset.name), words="Reading the run", keep=6
        )
    asked: study.ConfusionRequest = {**spec, "likeness": kind}
    if study.SIMILARITIES[kind].needs != "features":
        links.drop_from_link("versus_backbone")
    else:
        known = others if kind == first.kind else [first.source, *others] if first.source else backbones
        backbone = study.BACKBONE.with_(
            name="versus_backbone",
            title="Its backbone",
            kind="choice",
            choices={name: title_of(name) for name in known},
            default=known[0],
            help="The network whose features are compared with.",
        )
        asked["backbone"] = pick(backbone, about=kind)
        if kind == "confusion" and "k" not in asked:
            most = study.max_k(dataset, asked["backbone"], str(spec["split"]))
            asked["k"] = max(1, min(study.SETTINGS["k"].default, most))
    return find(asked)


def _evaluations(dataset: str) -> dict[str, str]:
    """Titles of the finished evaluations of a dataset, by run and entry ("run/entry")."""
    titles = {}
    for run in jobs.list_runs("evaluate"):
        if run.state == "finished" and run.spec.get("dataset") == dataset:
            for which, entry in enumerate(evaluate.entries(jobs.spec(run.id))):
                titles[f"{run.id}/{which}"] = (
                    f"{entry.label} on {title_of(entry.backbone)} · {run_panel.when(run.created)}"
                )
    return titles


def _seen_in(line: str, split: str, stamp: str) -> ClassGraph:
    """The graph of the mistakes of one entry of a run ("run/entry")."""
    run_id, _, which = line.rpartition("/")
    spec = jobs.spec(run_id)
    return study.graph_of_predictions(
        spec, jobs.chunks(run_id, evaluate.chunks_of(spec, int(which))), int(which), split
    )
