"""Accuracy cost of distant test classes: the recorded grid or user runs, next to published results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import pandas as pd
import streamlit as st

from fsviz import jobs
from fsviz.analyses import transfer as study
from fsviz.datasets import published
from fsviz.errors import FsvizError
from fsviz.figures import transfer as figures
from fsviz.records import Dataset
from fsviz.settings import Setting
from fsviz.tables import Column, Table
from fsviz.text import code
from fsviz.training import TITLES
from fsviz.ui.parts import drilldown, export, links, shell
from fsviz.ui.parts.caching import cache_data
from fsviz.ui.parts.controls import pick
from fsviz.ui.parts.run_panel import half_width
from fsviz.ui.parts.shell import escape

OWN = "own"  # the source that is no recorded grid
SLOPE, SPLITS = "slope", "splits"  # what rows of tables stand for: a method at all divergences, on all splits
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
    "Grids that come with fsviz were trained once by a script; your runs are those of this workspace.",
    "choice",
    "",
)


def show(dataset: Dataset) -> None:
    grids = {grid.name: grid for grid in _recorded(dataset)}
    own = _own(dataset.name, tuple(run.id for run in jobs.list_runs("training") if run.state == "finished"))
    choices = {name: escape(grid.title) for name, grid in grids.items()} | ({} if own.empty else {OWN: "Your runs"})
    if not choices:
        st.info(
            f"No network has been trained on splits of {escape(dataset.title)} yet. Train some below, on splits of two "
            "divergences at least, and see here how accuracy falls with the divergence.",
            icon="🏋️",
        )
        _published()
        return
    left, right, _ = st.columns([1.4, 1, 0.6])
    source = pick(SOURCE.with_(choices=choices, default=next(iter(choices))), left)
    grid = grids.get(source)
    rows = own if grid is None else grid.rows
    sides = pick(SIDES, right)
    chosen = drilldown.chosen("runs_of", _all_cells(rows))
    _accuracy(rows, sides, chosen)
    _matched(rows, chosen)
    if grid is not None:
        single_tasks(grid.facts.get("correlations") or [])
        _how(grid)
    _published()


def _how(grid: study.TrainingGrid) -> None:
    """The settings of the recorded grid."""
    recipe, rows = grid.facts["recipe"], grid.rows
    side = recipe.get("side", 32)
    others = recipe.get("compared") or []
    maml = {"maml", "anil"} & set(recipe["methods"])
    st.caption(
        f"{len(rows['run'].unique()):,} networks trained on {escape(grid.facts['date'])} in at most "
        f"{grid.facts['seconds'] / 60:.0f} minutes of one core: CNN4 with {recipe['width']:,} filters on {side:,} × "
        f"{side:,} pixels, {recipe['epochs']:,} epochs, R = {', '.join(f'{r:g}' for r in recipe['targets'])} on both "
        f"sides and matched at R = {recipe['matched_at']:g}, {len(recipe['seeds']):,} "
        f"seed{'s' * (len(recipe['seeds']) > 1)}, {recipe['n_tasks']:,} test tasks each"
        + (f", and splits to compare with: {', '.join(study.COMPARED[name] for name in others)}" if others else "")
        + (f", MAML and ANIL of {escape(recipe.get('order', 'second'))} order" if maml else "")
        + ". Small networks, trained briefly: the slopes matter, not the accuracies. "
        + code(f"python scripts/train_grid.py {grid.facts['dataset']} --home FOLDER")
        + " repeats or enlarges it."
    )


def _accuracy(rows: pd.DataFrame, sides: str, chosen: str) -> None:
    points = study.accuracy_points(rows, sides)
    if points.empty:
        st.info("No two finished runs here are a split and its mirror image. Choose one side, or train the other.")
        return
    slopes = {slope.method: slope for slope in study.slopes(rows) if slope.sides == sides}
    st.markdown(f"**Accuracy of trained networks as the test classes move away** · {_finding(rows)}")
    lines = {name: (slope.at_zero, slope.slope) for name, slope in slopes.items()}
    drilldown.chart(
        "Accuracy as test classes move away",
        figures.plot_transfer(points, lines, TITLES),
        key="transfer",
        name="runs_of",
        place=4,
        texts=_all_cells(rows),
        already=chosen,
    )
    st.caption(
        f"{int(points['n_runs'].sum()):,} runs{_seeds(rows)} (figure 2 of the paper). 95% intervals over test classes: "
        "with other classes of the same kind the accuracy would vary so much. Multiclass, ProtoNet and ANIL keep their "
        "features at test time; MAML and Finetune adapt them to every task. Click a point for its runs."
    )
    if chosen and chosen.partition("@")[2] not in (study.MATCHED, SLOPE, SPLITS):
        _runs_behind(rows, chosen)
    _slopes(rows, chosen)
    _easy_and_hard(rows, sides, chosen)


def _finding(rows: pd.DataFrame) -> str:
    """Which family holds up, in a sentence; that it cannot be told where its interval holds 0."""
    lead = study.family_slope(rows)
    if lead is None or lead.ci95 is None:
        return _fall(rows)
    told = f"{lead.slope:+.2f}{half_width(lead.ci95, 2)} points per unit of divergence"
    if abs(lead.slope) <= lead.ci95:
        return f"whether methods that adapt their features hold up better cannot be told: their lead changes by {told}."
    better = "hold up better" if lead.slope > 0 else "fall faster"
    return f"methods that adapt their features {better}: their lead changes by {told}."


def _all_cells(rows: pd.DataFrame) -> list[str]:
    """Keys of the points of the figures: a method at a divergence, a method's matched runs."""
    known = rows.dropna(subset=["asked"])
    cells = known.loc[known["comparison"] == study.DIVERGENCE, ["method", "asked"]].drop_duplicates()
    matched = rows.loc[rows["comparison"] == study.MATCHED, "method"].unique()
    return (
        [f"{m}@{r:g}" for m, r in cells.itertuples(index=False)]
        + [f"{m}@{study.MATCHED}" for m in matched]
        + [f"{m}@{all_of}" for m in rows["method"].unique() for all_of in (SLOPE, SPLITS)]
    )


def _runs_behind(rows: pd.DataFrame, chosen: str) -> None:
    """The runs that a point or a row is the mean of, and where they are of one split, the way to it."""
    method, _, at = chosen.partition("@")
    own = rows[rows["method"] == method]
    if at != SPLITS:
        own = own[own["comparison"] == (study.MATCHED if at == study.MATCHED else study.DIVERGENCE)]
    words = {study.MATCHED: "matched pairs", SLOPE: "every divergence", SPLITS: "every split"}.get(
        at, f"R = {escape(at)}"
    )
    if at not in (study.MATCHED, SLOPE, SPLITS):
        own = own[own["asked"] == float(at)]
    drilldown.heading(f"Runs of {escape(TITLES[method])}, {escape(words)}", "runs_of")
    sides = {"first": "test side", "second": "other side"}
    export.table(
        study.RUNS,
        own.assign(side=own["side"].map(sides), trained_on=own["trained_on"].replace("", "all training classes")),
    )
    if own["asked"].nunique(dropna=False) > 1:
        return
    asked = float(own["asked"].iloc[0])
    st.button(
        f"See the split at R = {asked:g} on the map above",
        icon="🗺️",
        key="see_split",
        on_click=_see_split,
        args=(asked, _weight(str(own["run"].iloc[0]))),
    )


def _weight(run_id: str) -> float:
    """The weight λ of the split that a run was trained on; recorded runs are of a grid."""
    try:
        return float(jobs.status(run_id).spec["split"]["recipe"].get("penalty", study.PENALTY))
    except FsvizError:
        return study.PENALTY


def _see_split(asked: float, weight: float) -> None:
    """Chooses the split of a run in the sidebar."""
    st.session_state.update({"mode": "stable", "divergence": asked})
    links.drop_from_link("penalty")  # its default follows the mode, so the value is left to the link
    links.say(penalty=f"{weight:g}")


def _fall(rows: pd.DataFrame) -> str:
    """How the most accurate method falls, where there are not two families to compare."""
    known = [slope for slope in study.slopes(rows) if slope.sides == "both" and slope.ci95 is not None]
    if not known:
        return "more divergences, on both sides, are needed to tell how accuracy falls."
    best = max(known, key=lambda slope: slope.at_zero)
    told = f"{best.slope:+.2f}{half_width(best.ci95, 2)} points per unit of divergence"
    sure = "" if abs(best.slope) > (best.ci95 or 0.0) else ", which could be chance"
    return f"{TITLES[best.method]} changes by {told}{sure}."


def _slopes(rows: pd.DataFrame, chosen: str) -> None:
    """Table 5: slopes by side, the published ones beside."""
    names = {"both": "both sides", study.FIRST: "test side", study.SECOND: "other side"}
    own: dict[str, dict[str, Any]] = {}
    for slope in study.slopes(rows):
        own.setdefault(TITLES[slope.method], {}).update({slope.sides: slope.slope, f"{slope.sides}_ci95": slope.ci95})
    if not own:
        st.caption("A slope needs two divergences.")
        return
    st.markdown("**Points of accuracy per unit of divergence**, ours and published (table 5)")
    columns = [Column(name, title, kind="points", digits=2, interval=f"{name}_ci95") for name, title in names.items()]
    published_column = Column("", "", kind="points", digits=2)
    slopes = pd.DataFrame.from_dict(own, orient="index")
    _show_with_published(slopes, columns, study.printed("Table 5"), published_column, SLOPE, chosen)
    st.caption(
        f"95% intervals by Student's t over divergences{_seeds(rows, ', of the means of ')}; the paper gives none, and "
        "tests on one side: compare its numbers with “test side”. Other images, larger networks, longer training. "
        "Choose a row for its runs."
    )
    if chosen.endswith(f"@{SLOPE}"):
        _runs_behind(rows, chosen)


def _easy_and_hard(rows: pd.DataFrame, sides: str, chosen: str) -> None:
    """Tables 1 and 4: every method on every split, published easy and hard ones beside."""
    table = study.by_split(rows, sides)
    titles = [title for name, title in TITLES.items() if name in set(table["method"])]
    splits = list(dict.fromkeys(table["split"]))
    own: dict[str, dict[str, Any]] = {title: {} for title in titles}
    for row in table.itertuples():
        own[TITLES[row.method]] |= {row.split: row.accuracy, f"{row.split}_ci95": row.ci95}
    st.markdown("**Accuracy (%) on easy and on hard splits**, ours and published (tables 1 and 4)")
    columns = [Column(split, split, kind="percent", interval=f"{split}_ci95") for split in splits]
    accuracies = pd.DataFrame.from_dict(own, orient="index")
    easy_and_hard = study.printed_easy_and_hard()
    _show_with_published(accuracies, columns, easy_and_hard, Column("", ""), SPLITS, chosen)
    st.caption(
        "R is the divergence that was asked for; 95% intervals over test classes. Published: 5-way 5-shot, from "
        "R = 0.04 to R = 0.96. Choose a row for its runs."
        + ("" if table["asked"].isna().any() else " Train on other splits below, and they stand here as well.")
    )
    if chosen.endswith(f"@{SPLITS}"):
        _runs_behind(rows, chosen)


def _show_with_published(
    own: pd.DataFrame,
    columns: Sequence[Column],
    printed: pd.DataFrame,
    published_column: Column,
    leads: str = "",
    chosen: str = "",
) -> None:
    """A table, and columns of what was published for the same rows (columns row, benchmark, value).

    own               indexed by the titles of its rows
    published_column  how the published values are shown
    leads             the runs that a row leads to, with its method; "" for none
    """
    wide = printed.pivot(index="row", columns="benchmark", values="value").reindex(index=own.index)
    benchmarks = list(dict.fromkeys(printed["benchmark"]))
    shown = [replace(published_column, name=f"published: {name}", title=f"published: {name}") for name in benchmarks]
    rows = own.join(wide[benchmarks].add_prefix("published: ")).rename_axis("row").reset_index()
    first = Column("row", "Method" if leads else "Divergence")
    table = Table("Compared with published numbers", first, *columns, *shown)
    if not leads:
        export.table(table, rows)
        return
    methods = {title: name for name, title in TITLES.items()}
    drilldown.table(
        table,
        rows,
        key=f"beside_{leads}",
        name="runs_of",
        texts=[f"{methods[title]}@{leads}" for title in own.index],
        already=chosen,
    )


def _matched(rows: pd.DataFrame, chosen: str) -> None:
    pairs = study.matched_differences(rows)
    if not pairs:
        return
    st.markdown("**The same test classes, after training on the nearest and on the farthest of the others**")
    left, right = shell.responsive_columns("matched", [2.2, 1], gap="medium")
    with left:
        drilldown.chart(
            "Nearest less farthest",
            figures.plot_matched(pairs, TITLES, 110 + 42 * len(pairs)),
            key="matched",
            name="runs_of",
            place=1,
            texts=_all_cells(rows),
            already=chosen,
        )
    with right:
        drilldown.table(
            study.MATCHED_PAIRS.only("method", "difference", "n_pairs"),
            [{**vars(pair), "method": TITLES[pair.method]} for pair in pairs],
            key="matched_table",
            name="runs_of",
            texts=[f"{pair.method}@{study.MATCHED}" for pair in pairs],
            already=chosen,
        )
    st.caption(
        "A split and its mirror image have different test classes, and some classes are harder than others wherever "
        "they stand. Here the test classes stay, and only what was trained on changes: half of the other classes, near "
        f"or far. Points of accuracy, 95% intervals by Student's t over the {max(pair.n_splits for pair in pairs):,} "
        f"sets of test classes{_seeds(rows, ', of the means of ')}. Click a point for its runs."
    )
    if chosen.endswith(study.MATCHED):
        _runs_behind(rows, chosen)


def _seeds(rows: pd.DataFrame, before: str = " of ") -> str:
    """How many seeds every split was trained with, in words; nothing for one."""
    n = rows["seed"].nunique()
    return f"{before}{n:,} seeds" if n > 1 else ""


def single_tasks(correlations: pd.DataFrame | Sequence[Mapping[str, Any]]) -> None:
    """Table 2: whether the divergence of a task from the train classes tells its accuracy, in one network or many."""
    means = study.mean_correlations(correlations)
    if means.empty:  # where all test tasks have the same classes, they are equally far
        return
    with st.expander("Does the divergence of a single task tell its accuracy?"):
        cells = means.assign(
            cell=[f"{row.pearson:+.2f} ({row.n_significant} of {row.n_runs})" for row in means.itertuples(index=False)],
            divergence=means["divergence"].map(study.divergence_title),
            method=means["method"].map(TITLES),
        )
        wide = cells.pivot(index="divergence", columns="method", values="cell")
        wide = wide.reindex(index=list(dict.fromkeys(cells["divergence"])))
        columns = [Column(title, title) for title in TITLES.values() if title in wide.columns]
        published_column = Column("", "", digits=2, kind="number")
        _show_with_published(wide, columns, study.printed("Table 2"), published_column)
        st.caption(
            "Pearson's correlation of a test task's divergence from the train classes with its accuracy, mean over "
            "trained networks, and in how many of them its 95% interval over classes leaves 0 out. −1: farther tasks "
            "are always harder. The paper tells two ways: distributions over the classes around both means, as in the "
            "objective, whose Wasserstein-2 takes variances along every axis; and Gaussians with the mean and the full "
            "covariance of the train classes and of the task's (plus 0.001). Which one its table 2 has is not certain, "
            "so the published numbers stand beside the first. They are of networks trained on ImageNet, on tasks of "
            "other datasets."
        )


def _published() -> None:
    with st.expander("What the paper reports"):
        table = published.published_results()
        table = table[(table["paper"] == "arnold2021")]
        slopes = table[table["table"] == "Table 5"]
        st.markdown("**Published: points of accuracy per unit of divergence** (table 5)")
        _pivot(slopes, "points")
        st.markdown("**Published: accuracy on easy and hard splits, 5-way 5-shot** (table 4)")
        five = table[(table["table"] == "Table 4") & (table["setting"] == "5-way 5-shot")]
        _pivot(five, "percent")
        st.markdown("**Published: accuracy on the hardest splits, 5-way 5-shot** (table 1)")
        _pivot(table[table["table"] == "Table 1"], "percent")
        st.caption(
            "Arnold & Sha 2021, as printed, without intervals; other images, larger networks, longer training. Easy is "
            "a divergence of 0.04, hard 0.96; they test on one side of one split each."
        )


def _pivot(rows: pd.DataFrame, kind: Literal["points", "percent"]) -> None:
    named = rows.assign(benchmark=rows["benchmark"].map(published.benchmark_title))
    methods = list(dict.fromkeys(named["method"]))
    wide = named.pivot(index="benchmark", columns="method", values="value")
    wide = wide.reindex(index=list(dict.fromkeys(named["benchmark"]))).reset_index()
    columns = (Column(method, method, kind=kind, digits=2) for method in methods)
    export.table(Table("Published numbers", Column("benchmark", "Benchmark"), *columns), wide)


@cache_data()
def _recorded(dataset: Dataset) -> list[study.TrainingGrid]:
    return study.training_grid(dataset.name)


@cache_data(most=8)
def _own(dataset: str, finished: tuple[str, ...]) -> pd.DataFrame:
    runs = [run for run in jobs.list_runs("training") if run.id in finished and run.spec["dataset"] == dataset]
    return study.run_table((run.id, run.spec, run.summary) for run in runs)
