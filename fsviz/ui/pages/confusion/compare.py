"""Two similarities, backbones or runs compared pair by pair: do they agree, and which pairs stand out?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import streamlit as st

from fsviz import datasets, features, jobs
from fsviz.features.backbones import title_of
from fsviz.figures import confusion as figures
from fsviz.records import Dataset
from fsviz.records.graphs import ClassGraph
from fsviz.settings import Setting
from fsviz.studies import confusion as study
from fsviz.studies import evaluate
from fsviz.text import short_names
from fsviz.ui.pages.confusion.graph import find
from fsviz.ui.parts import export, run_panel, selections
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.clicks import Click
from fsviz.ui.parts.controls import pick
from fsviz.ui.parts.shell import escape

CHART = "comparison"
MAX_OUTLIERS = 3
VERSUS = Setting(
    "versus",
    "Compare with",
    "Compares the graph pair by pair with another backbone, another similarity or the errors of a run.",
    "choice",
    "",
)


def pick_versus(dataset: Dataset, spec: study.ConfusionRequest) -> str:
    """The picked comparison, "" for none: "KIND", "KIND@BACKBONE" or "run@RUN/ENTRY"."""
    choices = {"": "nothing", **dict(_choices(dataset, spec))}
    return str(pick(VERSUS.with_(choices=choices), disabled=len(choices) == 1, help=_help(len(choices) == 1)))


def _help(is_empty: bool) -> str:
    return "Nothing to compare with. Extract another backbone or evaluate a method." if is_empty else VERSUS.help


def _choices(dataset: Dataset, spec: study.ConfusionRequest) -> Iterator[tuple[str, str]]:
    """Values and titles of all comparisons: other backbones first, then other similarities, then runs."""
    backbones, own, kind = features.available(dataset), spec.get("backbone", ""), spec["likeness"]
    if own:
        yield from ((f"{kind}@{name}", f"{title_of(name)} features") for name in backbones if name != own)
    for second in study.possible_similarities(dataset):
        if second == kind:
            continue
        title = study.SIMILARITIES[second].title
        if study.SIMILARITIES[second].needs != "features":
            yield second, title
            continue
        for name in sorted(backbones, key=lambda name: name != own):
            yield f"{second}@{name}", title if name == own else f"{title}, {title_of(name)}"
    yield from ((f"run@{entry}", f"Errors of {title}") for entry, title in _evaluations(dataset.name).items())


def second_graph(dataset: Dataset, spec: study.ConfusionRequest, versus: str) -> ClassGraph | None:
    """The graph to compare with; None while a run is needed for it."""
    kind, _, name = versus.partition("@")
    if kind == "run":
        stamp = datasets.stamp(dataset.name)
        return cached_call(_graph_of_run, name, str(spec["split"]), stamp, words="Reading the run", keep=6)
    requested: study.ConfusionRequest = {**spec, "likeness": kind}
    if name:
        requested["backbone"] = name
    return find(requested)


def show(compared: study.SimilarityComparison, selected: Sequence[str]) -> None:
    """Every pair of classes as a point, and the pairs on which the two graphs disagree most."""
    table = compared.table
    high, low = study.outliers(compared, MAX_OUTLIERS)
    pairs = list(zip(table["a"], table["b"]))
    titled = [replace(graph, source=title_of(graph.source)) for graph in (compared.first, compared.second)]
    x, y = table["first"].to_numpy(), table["second"].to_numpy()
    figure = figures.plot_comparison(titled[0], titled[1], x, y, pairs, [*high, *low], selected)
    export.chart(
        "Class similarities compared", figure, key=CHART, sets=Click(selections.CLASSES, [list(pair) for pair in pairs])
    )
    st.caption(
        f"{len(table):,} class pairs; {escape(study.describe_correlations(compared))}. Click a point for its images.",
        help=f"95% CI over {escape(compared.pearson.ci_unit)}, because pairs share classes.",
    )
    st.markdown("**Largest disagreements**", help="Pairs whose ranks differ by at least half of all pairs.")
    names = compared.first.row_names
    short = dict(zip(names, short_names(names), strict=True))
    for edge in (*high, *low):
        row, (first, second) = table.iloc[edge], study.describe_edge(compared, edge)
        st.markdown(
            f"- **{escape(short[row['a']])}** and **{escape(short[row['b']])}**: {escape(first)} ({row['first']:.2f}), "
            f"{escape(second)} ({row['second']:.2f})"
        )
    if not (high or low):
        st.caption("No pair: all ranks differ by less than half of all pairs.")


def _evaluations(dataset: str) -> dict[str, str]:
    """Titles of the finished evaluations of a dataset, by run and entry ("run/entry")."""
    titles = {}
    for run in jobs.list_runs("evaluate"):
        if run.state == "finished" and run.spec.get("dataset") == dataset:
            for number, entry in enumerate(evaluate.entries(jobs.spec(run.id))):
                titles[f"{run.id}/{number}"] = (
                    f"{entry.label} on {title_of(entry.backbone)} · {run_panel.when(run.created)}"
                )
    return titles


def _graph_of_run(name: str, split: str, stamp: str) -> ClassGraph:
    """The graph of the errors of one entry of a run ("run/entry")."""
    run_id, _, number = name.rpartition("/")
    spec = jobs.spec(run_id)
    return study.graph_of_predictions(
        spec, jobs.chunks(run_id, evaluate.chunks_of(spec, int(number))), int(number), split
    )
