"""What far test classes cost a network that was trained: the recorded grid or one's own runs, beside published ones."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from fsviz import jobs
from fsviz.datasets import published
from fsviz.figures import transfer as figures
from fsviz.records import Dataset
from fsviz.settings import Setting
from fsviz.studies import transfer as study
from fsviz.text import code
from fsviz.training import TITLES
from fsviz.ui.parts import shell
from fsviz.ui.parts.cached import remember
from fsviz.ui.parts.controls import pick
from fsviz.ui.parts.run_panel import half_width
from fsviz.ui.parts.shell import plain

RECORDED, OWN = "recorded", "own"
SIDES = Setting(
    "sides",
    "Tested on",
    "The published comparison tests on one side, which may be harder by itself; the mean of a split and its mirror "
    "image does not depend on that.",
    "choice",
    "both",
    choices={"both": "Both sides, mean", study.FIRST: "The test side", study.SECOND: "The other side"},
)
SOURCE = Setting(
    "of",
    "Networks",
    "The grid that comes with fsviz was trained once by a script; your runs are those of this workspace.",
    "choice",
    RECORDED,
    choices={RECORDED: "The grid that comes with fsviz", OWN: "Your training runs"},
)


def show(dataset: Dataset) -> None:
    grid = _recorded(dataset)
    own = _own(dataset.name, tuple(run.id for run in jobs.list_runs("training") if run.state == "finished"))
    if grid is None and own.empty:
        st.info(
            f"No network has been trained on splits of {plain(dataset.title)} yet. Train some below, on splits of two "
            "divergences at least, and see here how accuracy falls with the divergence.",
            icon="🏋️",
        )
        _published()
        return
    left, right, _ = st.columns(3)
    source = RECORDED if own.empty else OWN
    if grid is not None and not own.empty:
        source = pick(SOURCE, left)
    rows, facts = grid if grid is not None and source == RECORDED else (own, {})
    sides = pick(SIDES, right if not own.empty and grid is not None else left)
    _accuracy(rows, sides)
    _matched(rows)
    _single_tasks(facts)
    if facts:
        recipe = facts["recipe"]
        side = recipe.get("side", 32)
        st.caption(
            f"{len(rows['run'].unique()):,} networks trained on {plain(facts['date'])} in {facts['seconds'] / 60:.0f} "
            f"minutes of one core: CNN4 with {recipe['width']:,} filters on {side:,} × {side:,} pixels, "
            f"{recipe['epochs']:,} epochs, {len(recipe['seeds']):,} seed{'s' * (len(recipe['seeds']) > 1)}, "
            f"{recipe['n_tasks']:,} test tasks each, MAML and ANIL of {plain(recipe.get('order', 'second'))} "
            "order. Small networks, trained briefly: the slopes matter, not the "
            f"accuracies. {code(f'python scripts/train_grid.py {dataset.name} --home FOLDER')} repeats or enlarges it."
        )
    _published()


def _accuracy(rows: pd.DataFrame, sides: str) -> None:
    points = study.accuracy_points(rows, sides)
    if points.empty:
        st.info("No two finished runs here are a split and its mirror image. Choose one side, or train the other.")
        return
    slopes = {slope.method: slope for slope in study.slopes(rows) if slope.sides == sides}
    st.markdown(f"**Accuracy of trained networks as the test classes move away** · {_finding(rows)}")
    lines = {name: (slope.at_zero, slope.slope) for name, slope in slopes.items()}
    left, right = shell.columns_if_wide("cost", [2.2, 1], gap="medium")
    with left:
        st.plotly_chart(figures.plot_transfer(points, lines, TITLES), key="transfer")
    with right:
        _slopes(rows)
    st.caption(
        f"{int(points['n_runs'].sum()):,} runs. 95% intervals over test classes: with other classes of the same kind "
        "the accuracy would vary so much. Slopes: points of accuracy per unit of divergence, with 95% intervals by "
        "Student's t over divergences. Multiclass, ProtoNet and ANIL keep their features at test time; MAML and "
        "Finetune adapt them to every task."
    )


def _finding(rows: pd.DataFrame) -> str:
    """Which family holds up, in a sentence; that it cannot be told where its interval holds 0."""
    lead = study.family_slope(rows)
    if lead is None or lead.ci95 is None:
        return "more divergences are needed to tell which methods hold up."
    told = f"{lead.slope:+.2f}{half_width(lead.ci95, 2)} points per unit of divergence"
    if abs(lead.slope) <= lead.ci95:
        return f"whether methods that adapt their features hold up better cannot be told: their lead changes by {told}."
    better = "hold up better" if lead.slope > 0 else "fall faster"
    return f"methods that adapt their features {better}: their lead changes by {told}."


def _slopes(rows: pd.DataFrame) -> None:
    """Table 5: slopes by side."""
    names = {study.FIRST: "test side", study.SECOND: "other side", "both": "both"}
    cells: dict[str, dict[str, str]] = {}
    for slope in study.slopes(rows):
        told = f"{slope.slope:.2f}{half_width(slope.ci95, 2)}"
        cells.setdefault(TITLES[slope.method], {})[names[slope.sides]] = told
    if not cells:
        st.caption("A slope needs two divergences.")
        return
    table = pd.DataFrame.from_dict(cells, orient="index").reindex(columns=list(names.values())).fillna("")
    st.dataframe(table.rename_axis("points per unit").reset_index(), hide_index=True, height="content")


def _matched(rows: pd.DataFrame) -> None:
    pairs = study.matched_differences(rows)
    if not pairs:
        return
    st.markdown("**The same test classes, after training on the nearest and on the farthest of the others**")
    left, right = shell.columns_if_wide("matched", [2.2, 1], gap="medium")
    with left:
        st.plotly_chart(figures.plot_matched(pairs, TITLES, 110 + 42 * len(pairs)), key="matched")
    with right:
        table = pd.DataFrame(
            {
                "method": [TITLES[pair.method] for pair in pairs],
                "nearest less farthest": [f"{pair.difference:+.1f}{half_width(pair.ci95)}" for pair in pairs],
                "pairs": [pair.n_pairs for pair in pairs],
            }
        )
        st.dataframe(table, hide_index=True, height="content")
    st.caption(
        "A split and its mirror image have different test classes, and some classes are harder than others wherever "
        "they stand. Here the test classes stay, and only what was trained on changes: half of the other classes, near "
        "or far. Points of accuracy, 95% intervals by Student's t over pairs (sides and seeds)."
    )


def _single_tasks(facts: dict) -> None:
    """Table 2: whether the divergence of a task from the train classes tells its accuracy."""
    rows = pd.DataFrame(facts.get("correlations") or [])
    if rows.empty:
        return
    rows = rows.dropna(subset=["pearson"])
    with st.expander("Does the divergence of a single task tell its accuracy?"):
        clear = (rows["low"] > 0) | (rows["high"] < 0)
        table = (
            rows.assign(clear=clear)
            .groupby(["divergence", "method"], sort=False)
            .agg(mean=("pearson", "mean"), clear=("clear", "sum"), n=("clear", "size"))
            .reset_index()
        )
        told = table.assign(
            cell=[f"{m:+.2f} ({c} of {n})" for m, c, n in table[["mean", "clear", "n"]].itertuples(index=False)],
            divergence=table["divergence"].map(study.divergence_title),
            method=table["method"].map(TITLES),
        )
        wide = told.pivot(index="divergence", columns="method", values="cell")
        wide = wide.reindex(columns=[title for title in TITLES.values() if title in wide.columns])
        st.dataframe(wide.rename_axis("divergence").reset_index(), hide_index=True, height="content")
        st.caption(
            "Pearson's correlation of a test task's divergence from the train classes with its accuracy, mean over "
            "trained networks, and in how many of them its 95% interval over classes leaves 0 out. −1: farther tasks "
            "are always harder. The paper finds weak correlations too (table 2: −0.08 to −0.73, published)."
        )


def _published() -> None:
    with st.expander("What the paper reports"):
        table = published.published_results()
        table = table[(table["paper"] == "arnold2021")]
        slopes = table[table["table"] == "Table 5"]
        st.markdown("**Published: points of accuracy per unit of divergence** (table 5)")
        _pivot(slopes, "{:.2f}")
        st.markdown("**Published: accuracy on easy and hard splits, 5-way 5-shot** (table 4)")
        five = table[(table["table"] == "Table 4") & (table["setting"] == "5-way 5-shot")]
        _pivot(five, "{:.2f}%")
        st.markdown("**Published: accuracy on the hardest splits, 5-way 5-shot** (table 1)")
        _pivot(table[table["table"] == "Table 1"], "{:.2f}%")
        st.caption(
            "Arnold & Sha 2021, as printed, without intervals; other images, larger networks, longer training. Easy is "
            "a divergence of 0.04, hard 0.96; they test on one side of one split each."
        )


def _pivot(rows: pd.DataFrame, words: str) -> None:
    told = rows.assign(
        benchmark=rows["benchmark"].map(published.benchmark_title), cell=[words.format(v) for v in rows["value"]]
    )
    wide = told.pivot(index="benchmark", columns="method", values="cell").fillna("")
    wide = wide.reindex(index=dict.fromkeys(told["benchmark"]), columns=dict.fromkeys(told["method"]))
    st.dataframe(wide.reset_index(), hide_index=True, height="content")


@remember()
def _recorded(dataset: Dataset) -> tuple[pd.DataFrame, dict] | None:
    return study.recorded(dataset.name)


@remember(most=8)
def _own(dataset: str, finished: tuple[str, ...]) -> pd.DataFrame:
    runs = [run for run in jobs.list_runs("training") if run.id in finished and run.spec["dataset"] == dataset]
    return study.table((run.id, run.spec, run.summary) for run in runs)
