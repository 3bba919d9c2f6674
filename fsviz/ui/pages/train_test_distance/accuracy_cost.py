"""Accuracy cost of distant test classes: the recorded grid or user runs, next to frozen and published results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pandas as pd
import streamlit as st

from fsviz import jobs
from fsviz.analyses import frozen_reference
from fsviz.analyses import transfer as study
from fsviz.analyses.class_splits import ClassFeatures
from fsviz.datasets import published
from fsviz.errors import FsvizError
from fsviz.features.backbones import title_of
from fsviz.figures import transfer as figures
from fsviz.records import Dataset
from fsviz.settings import Setting
from fsviz.tables import Column, Table
from fsviz.text import code
from fsviz.training import TITLES
from fsviz.ui.pages.train_test_distance import settings
from fsviz.ui.parts import drilldown, export, links, shell
from fsviz.ui.parts.caching import cache_data, cached_call
from fsviz.ui.parts.controls import pick
from fsviz.ui.parts.shell import escape

OWN = "own"  # the source that is no recorded grid
SLOPE, SPLITS = "slope", "splits"  # rows of tables: a method at all divergences, on all splits
HEIGHT = 310
SIDES = Setting(
    "sides",
    "Test on",
    "The published comparison tests on one half, which may be harder by itself. The mean of a split and its mirror "
    "image does not depend on that.",
    "choice",
    "both",
    choices={"both": "Both halves (mean)", study.FIRST: "Test half", study.SECOND: "Swapped half"},
)
SOURCE = Setting(
    "of",
    "Networks",
    "Recorded networks come with fsviz; your runs are those of this workspace.",
    "choice",
    "",
)


@dataclass(frozen=True)
class CostRows:
    """Finished training runs and their reference.

    frozen       the same rows for the frozen backbone, on the same test classes
    held_out     test classes by run
    sides, cell  the picked half of the splits, and the selected point or row ("" for none)
    """

    rows: pd.DataFrame
    frozen: pd.DataFrame
    chance_level: float | None
    grid: study.TrainingGrid | None
    backbone: str
    sides: str
    cell: str

    @property
    def frozen_title(self) -> str:
        return f"Frozen {title_of(self.backbone)}"


def pick_rows(dataset: Dataset, classes: ClassFeatures) -> CostRows | None:
    """The networks picked in the sidebar; None with a message if there are none."""
    grids = {grid.name: grid for grid in _recorded(dataset)}
    runs = tuple(run.id for run in jobs.list_runs("training") if run.state == "finished")
    own = _own(dataset.name, runs)
    choices = {name: grid.title for name, grid in grids.items()} | ({} if own.empty else {OWN: "Your runs"})
    if not choices:
        _untrained(dataset, classes)
        return None
    with shell.side():
        source = pick(SOURCE.with_(choices=choices, default=next(iter(choices))))
        sides = str(pick(SIDES))
    grid = grids.get(source)
    rows = own if grid is None else grid.rows
    backbone = classes.backbone
    words = (dataset.name, backbone)
    frozen, chance_level = _frozen_of_runs(*words, runs) if grid is None else _frozen_of_grid(*words, grid.name)
    sentence, more = frozen_reference.cost_answer(rows, frozen, title_of(backbone))
    shell.answer(escape(sentence), escape(more))
    cell = drilldown.selection("runs_of", _all_cells(rows))
    return CostRows(rows, frozen, chance_level, grid, backbone, sides, cell)


def _untrained(dataset: Dataset, classes: ClassFeatures) -> None:
    """The frozen backbone at every target: what trained networks will be compared with."""
    words = "Classifying with frozen features"
    rows, chance_level = cached_call(
        frozen_reference.by_target, dataset, classes, classes.backbone, words=words, keep=16
    )
    backbone = title_of(classes.backbone)
    sentence, more = frozen_reference.untrained_answer(dataset.title, rows, backbone)
    shell.answer(escape(sentence), escape(more))
    points = study.accuracy_points(rows)
    if points.empty:
        return
    figure = figures.plot_transfer(points[:0], {}, TITLES, HEIGHT, (f"Frozen {backbone}", points), chance_level)
    export.chart("Accuracy vs divergence, frozen features", figure, key="frozen")
    st.caption(
        f"ProtoNet on frozen {escape(backbone)} features, tasks of the test classes at "
        f"{len(points):,} targets, mean of both halves. 95% CI over test classes.",
        help="How hard the test classes are by themselves. Trained networks are added as their runs finish.",
    )


def show_charts(cost: CostRows) -> None:
    """Accuracy by divergence, next to near and far training classes; the runs of a clicked point below."""
    pairs = study.matched_differences(cost.rows)
    left = right = st.container()
    if pairs:
        left, right = shell.responsive_columns("cost", [3, 2], gap="medium")
    with left:
        _accuracy(cost)
    if pairs:
        with right:
            _matched(cost, pairs)
    if cost.cell and not cost.cell.endswith((f"@{SLOPE}", f"@{SPLITS}")):
        _runs_behind(cost.rows, cost.cell)


def _accuracy(cost: CostRows) -> None:
    points = study.accuracy_points(cost.rows, cost.sides)
    if points.empty:
        st.info("No finished pair of a split and its mirror image. Choose one half, or train the other.")
        return
    slopes = {slope.method: slope for slope in study.slopes(cost.rows) if slope.sides == cost.sides}
    lines = {name: (slope.at_zero, slope.slope) for name, slope in slopes.items()}
    reference = study.accuracy_points(cost.frozen, cost.sides) if len(cost.frozen) else cost.frozen
    drilldown.chart(
        "Accuracy vs divergence",
        figures.plot_transfer(
            points,
            lines,
            TITLES,
            HEIGHT,
            (cost.frozen_title, reference) if len(reference) else None,
            cost.chance_level,
        ),
        key="transfer",
        name="runs_of",
        place=4,
        texts=_all_cells(cost.rows),
        already=cost.cell,
    )
    networks = "small CNN4 networks; read the slope, not the level" if cost.grid is not None else "of your runs"
    st.caption(
        f"{cost.rows['run'].nunique():,} {networks}. 95% CI over test classes. Click a point for its runs.",
        help=(_recipe_text(cost.grid) if cost.grid is not None else "")
        + f"{escape(cost.frozen_title)}: ProtoNet without training, on tasks of the same test classes. Multiclass, "
        "ProtoNet and ANIL keep their features at test time; MAML and Finetune adapt them to every task.",
    )


def _matched(cost: CostRows, pairs: Sequence[study.MatchedDifference]) -> None:
    drilldown.chart(
        "Same test classes, near vs far training classes",
        figures.plot_matched(pairs, TITLES, HEIGHT),
        key="matched",
        name="runs_of",
        place=1,
        texts=_all_cells(cost.rows),
        already=cost.cell,
    )
    st.caption(
        "Same test classes, near vs far training classes. Click a point for its runs.",
        help="Half of the training classes, near or far; test classes and their tasks stay the same, so chance level "
        "and frozen features are equal on both ends.",
    )


def show_tables(cost: CostRows) -> None:
    """Slopes, accuracies, near and far classes, task-level correlations, in closed sections."""
    is_table = cost.cell.endswith((f"@{SLOPE}", f"@{SPLITS}"))
    with st.expander("Slopes and accuracies, with published numbers", expanded=is_table):
        _slopes(cost)
        _easy_and_hard(cost)
        _matched_table(cost)
    if cost.grid is not None:
        single_tasks(cost.grid.facts.get("correlations") or [])


def _recipe_text(grid: study.TrainingGrid) -> str:
    """The settings of a recorded grid, in a sentence."""
    recipe, rows = grid.facts["recipe"], grid.rows
    side = recipe.get("side", 32)
    compared = recipe.get("compared") or []
    maml = {"maml", "anil"} & set(recipe["methods"])
    return (
        f"{len(rows['run'].unique()):,} networks trained on {escape(grid.facts['date'])} in at most "
        f"{grid.facts['seconds'] / 60:.0f} minutes of one core: CNN4 with {recipe['width']:,} filters on {side:,} × "
        f"{side:,} pixels, {recipe['epochs']:,} epochs, R = {', '.join(f'{r:g}' for r in recipe['targets'])} on both "
        f"halves and matched at R = {recipe['matched_at']:g}, {len(recipe['seeds']):,} "
        f"seed{'s' * (len(recipe['seeds']) > 1)}, {recipe['n_tasks']:,} test tasks each"
        + (f", and other splits: {', '.join(study.COMPARED[name] for name in compared)}" if compared else "")
        + (f", MAML and ANIL of {escape(recipe.get('order', 'second'))} order" if maml else "")
        + f". Repeat: {code('python scripts/train_grid.py ' + grid.facts['dataset'] + ' --home FOLDER')}. "
    )


def _all_cells(rows: pd.DataFrame) -> list[str]:
    """Keys of the points of the figures: a method at a divergence, a method's matched runs."""
    targeted = rows.dropna(subset=["asked"])
    cells = targeted.loc[targeted["comparison"] == study.DIVERGENCE, ["method", "asked"]].drop_duplicates()
    matched = rows.loc[rows["comparison"] == study.MATCHED, "method"].unique()
    return (
        [f"{m}@{r:g}" for m, r in cells.itertuples(index=False)]
        + [f"{m}@{study.MATCHED}" for m in matched]
        + [f"{m}@{all_of}" for m in rows["method"].unique() for all_of in (SLOPE, SPLITS)]
    )


def _runs_behind(rows: pd.DataFrame, cell: str) -> None:
    """The runs of a point or a row, and a link to their split if they share one."""
    method, _, at = cell.partition("@")
    own = rows[rows["method"] == method]
    if at != SPLITS:
        own = own[own["comparison"] == (study.MATCHED if at == study.MATCHED else study.DIVERGENCE)]
    texts = {study.MATCHED: "near and far classes", SLOPE: "every divergence", SPLITS: "every split"}
    if at not in (study.MATCHED, SLOPE, SPLITS):
        own = own[own["asked"] == float(at)]
    drilldown.heading(f"Runs of {escape(TITLES[method])}, {escape(texts.get(at, f'R = {at}'))}", "runs_of")
    sides = {"first": "test half", "second": "swapped half"}
    export.table(
        study.RUNS,
        own.assign(side=own["side"].map(sides), trained_on=own["trained_on"].replace("", "all training classes")),
    )
    if own["asked"].nunique(dropna=False) > 1:
        return
    target = float(own["asked"].iloc[0])
    st.button(
        f"Show the split at R = {target:g} on the map",
        icon="🗺️",
        key="see_split",
        on_click=_see_split,
        args=(target, _weight(str(own["run"].iloc[0]))),
    )


def _weight(run_id: str) -> float:
    """The weight λ of the split that a run was trained on; recorded runs are of a grid."""
    try:
        return float(jobs.status(run_id).spec["split"]["recipe"].get("penalty", study.PENALTY))
    except FsvizError:
        return study.PENALTY


def _see_split(target: float, weight: float) -> None:
    """Opens the map with the split of a run."""
    st.session_state.update({"mode": "stable", "divergence": target, "show": "Map"})
    links.drop_from_link("runs_of", "penalty")  # its default follows the mode, so the value is left to the link
    links.say(penalty=f"{weight:g}")


def _slopes(cost: CostRows) -> None:
    """Slopes by half, next to the published ones (table 5) and to the frozen backbone."""
    names = {"both": "both halves", study.FIRST: "test half", study.SECOND: "swapped half"}
    slopes: dict[str, dict[str, Any]] = {}
    for slope in study.slopes(pd.concat([cost.rows, cost.frozen]) if len(cost.frozen) else cost.rows):
        title = TITLES.get(slope.method, cost.frozen_title)
        slopes.setdefault(title, {}).update({slope.sides: slope.slope, f"{slope.sides}_ci95": slope.ci95})
    if not slopes:
        st.caption("A slope needs two divergences.")
        return
    st.markdown("**Points of accuracy per unit of divergence**")
    columns = [Column(name, title, kind="points", digits=2, interval=f"{name}_ci95") for name, title in names.items()]
    published_column = Column("", "", kind="points", digits=2)
    table = pd.DataFrame.from_dict(slopes, orient="index")
    _show_with_published(table, columns, study.printed("Table 5"), published_column, SLOPE, cost.cell)
    st.caption(
        f"95% CI by Student's t over divergences{_seeds(cost.rows, ', of the means of ')}. Select a row for its runs.",
        help="The paper (table 5) gives no intervals and tests on one half: compare its numbers with “test half”. Its "
        "images, networks and training differ.",
    )
    if cost.cell.endswith(f"@{SLOPE}"):
        _runs_behind(cost.rows, cost.cell)


def _easy_and_hard(cost: CostRows) -> None:
    """Accuracy of every method on every split, next to published easy and hard ones (tables 1 and 4)."""
    table = study.by_split(cost.rows, cost.sides)
    if len(cost.frozen):
        table = pd.concat([table, study.by_split(cost.frozen, cost.sides)])
    splits = list(dict.fromkeys(table["split"]))
    titles = {**TITLES, frozen_reference.FROZEN: cost.frozen_title}
    accuracies: dict[str, dict[str, Any]] = {
        title: {} for name, title in titles.items() if name in set(table["method"])
    }
    for row in table.itertuples():
        accuracies[titles[row.method]] |= {row.split: row.accuracy, f"{row.split}_ci95": row.ci95}
    if cost.chance_level is not None:
        accuracies["Chance level"] = dict.fromkeys(splits, cost.chance_level)
    st.markdown("**Accuracy (%) by split**")
    columns = [Column(split, split, kind="percent", interval=f"{split}_ci95") for split in splits]
    wide = pd.DataFrame.from_dict(accuracies, orient="index")
    _show_with_published(wide, columns, study.printed_easy_and_hard(), Column("", ""), SPLITS, cost.cell)
    st.caption(
        "R: target divergence; 95% CI over test classes. Published: 5-way 5-shot, R = 0.04 → 0.96 (tables 1 and 4). "
        "Select a row for its runs."
    )
    if cost.cell.endswith(f"@{SPLITS}"):
        _runs_behind(cost.rows, cost.cell)


def _matched_table(cost: CostRows) -> None:
    pairs = study.matched_differences(cost.rows)
    if not pairs:
        return
    st.markdown("**Same test classes, near vs far training classes**")
    drilldown.table(
        study.MATCHED_PAIRS.only("method", "difference", "n_pairs"),
        [{**vars(pair), "method": TITLES[pair.method]} for pair in pairs],
        key="matched_table",
        name="runs_of",
        texts=[f"{pair.method}@{study.MATCHED}" for pair in pairs],
        already=cost.cell,
    )
    st.caption(
        f"Points of accuracy, 95% CI by Student's t over {max(pair.n_splits for pair in pairs):,} sets of test "
        f"classes{_seeds(cost.rows, ', of the means of ')}."
    )


def _show_with_published(
    rows: pd.DataFrame,
    columns: Sequence[Column],
    printed: pd.DataFrame,
    published_column: Column,
    kind: str = "",
    cell: str = "",
) -> None:
    """A table with the published values of the same rows (columns row, benchmark, value).

    rows              indexed by their titles
    published_column  how the published values are shown
    kind              SLOPE or SPLITS: what a row selects together with its method; "" for nothing
    """
    wide = printed.pivot(index="row", columns="benchmark", values="value").reindex(index=rows.index)
    benchmarks = list(dict.fromkeys(printed["benchmark"]))
    more = [replace(published_column, name=f"published: {name}", title=f"published: {name}") for name in benchmarks]
    values = rows.join(wide[benchmarks].add_prefix("published: ")).rename_axis("row").reset_index()
    first = Column("row", "Method" if kind else "Divergence")
    table = Table("Compared with published numbers", first, *columns, *more)
    if not kind:
        export.table(table, values)
        return
    methods = {title: name for name, title in TITLES.items()}
    drilldown.table(
        table,
        values,
        key=f"compared_{kind}",
        name="runs_of",
        texts=[f"{methods[title]}@{kind}" if title in methods else "" for title in rows.index],
        already=cell,
    )


def _seeds(rows: pd.DataFrame, before: str = " of ") -> str:
    """The number of seeds of every split, in words; "" for one."""
    n = rows["seed"].nunique()
    return f"{before}{n:,} seeds" if n > 1 else ""


def single_tasks(correlations: pd.DataFrame | Sequence[Mapping[str, Any]]) -> None:
    """Correlation of a task's divergence from the training classes with its accuracy (table 2)."""
    means = study.mean_correlations(correlations)
    if means.empty:  # all test tasks have the same classes
        return
    with st.expander("Task-level divergence vs accuracy"):
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
            "Pearson's correlation, mean over networks (in brackets: significant over classes). −1: farther tasks are "
            "always harder. Published numbers are of networks trained on ImageNet, on tasks of other datasets.",
            help="The paper describes two ways: distributions over the classes around both means, as in the objective, "
            "whose Wasserstein-2 takes variances along every axis; and Gaussians with the mean and the full covariance "
            "of the train classes and of the task's (plus 0.001). It does not say which one table 2 has, so the "
            "published numbers are next to the first.",
        )


def show_published() -> None:
    with st.expander("Published results"):
        table = published.published_results()
        table = table[(table["paper"] == "arnold2021")]
        slopes = table[table["table"] == "Table 5"]
        st.markdown("**Points of accuracy per unit of divergence** (table 5)")
        _pivot(slopes, "points")
        st.markdown("**Accuracy on easy and hard splits, 5-way 5-shot** (table 4)")
        five = table[(table["table"] == "Table 4") & (table["setting"] == "5-way 5-shot")]
        _pivot(five, "percent")
        st.markdown("**Accuracy on the hardest splits, 5-way 5-shot** (table 1)")
        _pivot(table[table["table"] == "Table 1"], "percent")
        st.caption(
            "From Arnold & Sha 2021, as printed, without intervals; not computed here. Easy: divergence 0.04, hard: "
            "0.96, tested on one half of one split each."
        )


def _pivot(rows: pd.DataFrame, kind: Literal["points", "percent"]) -> None:
    titled = rows.assign(benchmark=rows["benchmark"].map(published.benchmark_title))
    methods = list(dict.fromkeys(titled["method"]))
    wide = titled.pivot(index="benchmark", columns="method", values="value")
    wide = wide.reindex(index=list(dict.fromkeys(titled["benchmark"]))).reset_index()
    columns = (Column(method, method, kind=kind, digits=2) for method in methods)
    export.table(Table("Published numbers", Column("benchmark", "Benchmark"), *columns), wide)


@cache_data()
def _recorded(dataset: Dataset) -> list[study.TrainingGrid]:
    return study.training_grid(dataset.name)


@cache_data(most=8)
def _own(dataset: str, finished: tuple[str, ...]) -> pd.DataFrame:
    runs = [run for run in jobs.list_runs("training") if run.id in finished and run.spec["dataset"] == dataset]
    return study.run_table((run.id, run.spec, run.summary) for run in runs)


@cache_data("Classifying with frozen features", 8)
def _frozen_of_grid(dataset: str, backbone: str, name: str) -> tuple[pd.DataFrame, float | None]:
    loaded = shell.load_dataset(dataset)
    grid = next(grid for grid in _recorded(loaded) if grid.name == name)
    classes = settings.class_features(loaded, str(grid.facts["recipe"]["backbone"]))
    held_out = frozen_reference.held_out_of_grid(loaded, classes, grid)
    rows = frozen_reference.frozen_rows(loaded, backbone, grid.rows, held_out)
    return rows, frozen_reference.usual_chance_level(list(held_out.values()))


@cache_data("Classifying with frozen features", 8)
def _frozen_of_runs(dataset: str, backbone: str, finished: tuple[str, ...]) -> tuple[pd.DataFrame, float | None]:
    loaded = shell.load_dataset(dataset)
    specs = {run: jobs.spec(run) for run in finished if jobs.spec(run)["dataset"] == dataset}
    held_out = frozen_reference.held_out_of_runs(loaded, specs)
    rows = frozen_reference.frozen_rows(loaded, backbone, _own(dataset, finished), held_out)
    return rows, frozen_reference.usual_chance_level(list(held_out.values()))


def frozen_of_run(dataset: Dataset, backbone: str, run_id: str) -> pd.DataFrame:
    """The rows of the frozen backbone on the test classes of one run."""
    return _frozen_of_runs(dataset.name, backbone, (run_id,))[0]
