"""Cost of a context change: the same queries, with support in the same, other and swapped contexts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import streamlit as st

from fsviz.datasets.published import PUBLISHED, published_families, published_table
from fsviz.features.backbones import title_of
from fsviz.figures import contexts as figures
from fsviz.figures.prediction import plot_curves
from fsviz.methods import METHODS
from fsviz.records import Dataset, Predictions, Tasks
from fsviz.sampling.samplers.context import SHIFT
from fsviz.settings import N_QUERY, N_SHOT, N_WAY, SEED, Setting
from fsviz.studies import context_shift as study
from fsviz.studies import sweep
from fsviz.tasks import fitting, task_ids
from fsviz.text import short_names, split_title
from fsviz.ui.parts import controls, drilldown, export, page_links, shell
from fsviz.ui.parts.answers import answer
from fsviz.ui.parts.caching import cache_data, cached_call
from fsviz.ui.parts.controls import pairs, pick, pick_backbone, pick_groups, pick_methods, say_fit
from fsviz.ui.parts.image_wall import Row, Tile, task_rows
from fsviz.ui.parts.shell import escape

MAX_TILES = 10
MAX_LOST = 36
MAX_TASKS = 100  # tasks whose images are shown
LOOKED = Setting("looked", "Method shown", "The answer and the images are of this method.", "choice", "")
PLACE = Setting("place", "Task shown", "1 is the task with the largest loss.", "int", 1, 1)
VARIED = {"shots": "n_shot", "ways": "n_way", "backbones": "backbone"}  # views that vary a setting
QUESTION = study.QUESTION.with_(
    help="Methods, degrees of context shift, shots, ways or backbones.",
    choices={**study.QUESTION.choices, "shots": "Shots", "ways": "Ways", "backbones": "Backbones"},
    advanced=True,
)
AXES = {"shots": "support images per class (shots)", "ways": "classes per task (ways)", "dial": "context shift"}


def show(dataset: Dataset, split: str) -> None:
    if dataset.images is None:
        st.info(
            f"{escape(dataset.title)} is a table of counts without images, so no task can change contexts. Add your "
            "copy (folders concept/context/image) and extract features. Published results are below.",
            icon="🧩",
        )
        published(5, 1, expanded=True)
        return
    backbones = shell.known_backbones(dataset)
    pickers = shell.side().container()  # of the task that is shown, above the settings of the study
    spec, view = _settings(dataset, split, backbones)
    command = study.command(spec)
    if view in VARIED:
        swept = sweep.sweep(study.STUDY, spec, VARIED[view])
        command = sweep.command(swept)
        result = answer(sweep.STUDY, swept, "Classifying tasks")
        summary = None if result is None else _joined(dataset, spec, result)
    else:
        summary = answer(study.STUDY, spec, "Classifying tasks")
    titles = {name: METHODS[name].title for name in spec["methods"]}
    with pickers:
        method = str(pick(LOOKED.with_(choices=titles, default=spec["methods"][0])))
        shift = float(pick(SHIFT.with_(default=1.0), as_slider=True))
    results = _compare(dataset, spec, method, shift)
    task = int(results.tasks_by_loss[pick(PLACE.with_(high=len(results.first)), pickers) - 1])
    left, right = shell.responsive_columns("loss", [1, 1], gap="medium")
    point = ""
    if summary is None:
        shell.answer("The loss is not computed yet.", "Start the full run, or lower the number of tasks.")
    else:
        values = [_value_text(row, view) for row in summary["rows"] if row["method"] == method]
        sentence, more = study.loss_answer(summary, method, values)
        rows = [row for row in summary["rows"] if row["method"] == method]
        matching = next(iter(rows[0]["accuracy"].values()))["mean"] / 100
        controls.show_answer(escape(sentence), escape(more), matching, spec["n_shot"] if len(rows) == 1 else 1)
        with left:
            point = _accuracy(summary, view, method)
    with right:
        if point:
            _point_tasks(dataset, spec, view, point)
        else:
            _pair(dataset, spec, results, shift, task)
    _breakdown(dataset, results)
    _whole_task(dataset, results, task)
    published(spec["n_way"], spec["n_shot"])
    shell.command_popover(command)


def _joined(dataset: Dataset, spec: study.ContextShiftSpec, result: sweep.SweepResult) -> study.ContextShiftSummary:
    """Merge the summaries of all values, with the value in every row."""
    rows: Any = [{**row, "value": value} for value, summary in result.results for row in summary["rows"]]
    base: Any = {name: spec[name] for name in ("dataset", "split", "backbone", "n_way", "n_shot", "n_query")}
    excluded = list(study.left_out(dataset, spec).values())
    return cast(study.ContextShiftSummary, {**base, "chance": 100 / spec["n_way"], "rows": rows, "left_out": excluded})


def _settings(dataset: Dataset, split: str, backbones: list[str]) -> tuple[study.ContextShiftSpec, str]:
    """Spec of the study, and the view: a question of the study or a key of VARIED."""
    with shell.side():
        view = pick(QUESTION)
        backbone = pick_backbone(backbones, help="Network whose features are classified.")
        names = pick_methods(study.METHODS_COMPARED.default)
        places = pairs()
        n_classes = len(dataset.split_class_ids(split))
        fits = cached_call(study.fit, dataset, {"split": split}, keep=24)
        shape = {s.name: s for s in (N_WAY.with_(high=min(N_WAY.high, n_classes)), N_SHOT)}
        tasks = {name: pick(s, next(places)) for name, s in fitting.with_defaults(shape, fits).items()}
        with st.expander("More settings"):
            tasks["n_tasks"] = pick(study.TASKS["n_tasks"].with_(advanced=True))
            tasks["n_query"] = pick(N_QUERY.with_(default=fits.values["n_query"], advanced=True))
            tasks["seed"] = pick(SEED)
            tasks |= pick_groups(dataset)
        say_fit(fits, tasks)
    methods = names or ["protonet"]
    question = "methods" if view in VARIED else view
    sources = {"dataset": dataset.name, "split": split, "backbone": backbone, "question": question, "methods": methods}
    return study.check({**sources, **tasks}), view


def _accuracy(summary: study.ContextShiftSummary, view: str, method: str) -> str:
    """Chart of the accuracy with every support; returns the selected point of a curve, "" for none."""
    point = ""
    is_bars = view in ("methods", "backbones")
    if is_bars:
        titled = [{**row, "name": row["method"], "title": _row_title(row)} for row in summary["rows"]]
        export.chart(
            "Accuracy by support",
            figures.plot_shifted_methods(titled, study.SUPPORTS, summary["chance"], method, 430),
            key="shifted",
            sets=LOOKED.with_(choices={name: each.title for name, each in METHODS.items()}),
        )
    else:
        point = drilldown.chart(
            "Accuracy as a setting varies",
            plot_curves(_lines(summary, view), AXES[view], "accuracy (%)", percent=True, height=400),
            key=f"curves_{view}",
            name="point",
            place=2,
            texts=_point_texts(summary, view),
            about=view,
        )
    click = "select its method" if is_bars else "list its tasks"
    st.caption(
        f"95% CI over tasks of {escape(split_title(summary['split']))}. Click a point to {click}.",
        help="Same: the support shares the queries' contexts. Other: it shares none. Swapped: contexts of another "
        "class's queries. All supports have the same queries, so losses are paired by task. Backbones are frozen; the "
        "paper trains them."
        + "".join(f" Excluded: {escape(reason)}" for reason in summary["left_out"][:1])
        + (f" {len(summary['left_out']) - 1:,} more classes are excluded." if len(summary["left_out"]) > 1 else ""),
    )
    return point


def _point_texts(summary: study.ContextShiftSummary, question: str) -> list[str]:
    """Text of every point of the curves: the name of its line and its position."""
    return [f"{line}@{point[0]:g}" for line, points in _lines(summary, question).items() for point in points]


def _point_tasks(dataset: Dataset, spec: study.ContextShiftSpec, question: str, point: str) -> None:
    """Tasks of a point of a curve, lowest accuracy first."""
    line, _, at = point.rpartition("@")
    title, _, support = line.rpartition(", ") if question != "dial" else (line, "", "")
    method = next(name for name, candidate in METHODS.items() if candidate.title == title)
    shift = float(at) if question == "dial" else 0.0 if support == "IID" else 1.0
    point_spec: study.ContextShiftSpec = {**spec, "n_tasks": min(spec["n_tasks"], 100), "question": "dial"}
    if question == "shots":
        point_spec = {**point_spec, "n_shot": int(float(at))}
    elif question == "ways":
        point_spec = {**point_spec, "n_way": int(float(at))}
    drilldown.heading(f"Tasks of {escape(line)} at {escape(at)}, lowest accuracy first", "point")
    tasks, predictions = _classified(
        dataset, json.dumps({**point_spec, "methods": [method]}, sort_keys=True), method, shift
    )
    percent = 100 * study.accuracy(predictions)
    order = np.argsort(percent, kind="stable")
    notes = {int(t): f"{percent[t]:.0f}% correct with {shift:.0%} of the support in other contexts" for t in order}
    drilldown.tasks(
        dataset, tasks, order, notes, f"{point} {json.dumps(point_spec, sort_keys=True)}", "point_task", predictions
    )


def _row_title(row: study.ContextShiftRow) -> str:
    """Method of a row, with its shots, ways or backbone."""
    value: Any = row.get("value", "")
    value = title_of(value) if isinstance(value, str) and value else value
    return f"{row['title']}, {value}" if value != "" else row["title"]


def _value_text(row: study.ContextShiftRow, view: str) -> str:
    """The shots, ways or backbone of a row, in words."""
    value: Any = row.get("value", "")
    if view == "backbones":
        return title_of(value)
    return f"{value} {view if value != 1 else view.removesuffix('s')}"


def _lines(summary: study.ContextShiftSummary, question: str) -> dict[str, list[tuple]]:
    """Points (x, mean, low, high) of every line, by its name."""
    curves: dict[str, list[tuple]] = {}
    rows: Any = summary["rows"]
    for row in rows:
        for name, mean in row["accuracy"].items():
            if name == "spurious":
                continue
            line = row["title"] if question == "dial" else f"{row['title']}, {name.upper()}"
            half = mean["ci95"] or 0.0
            point = (mean["mean"], mean["mean"] - half, mean["mean"] + half)
            curves.setdefault(line, []).append((float(name) if question == "dial" else row["value"], *point))
    return curves


# --- one task, and where accuracy is lost -------------------------------------------------------------------------


def _compare(dataset: Dataset, spec: study.ContextShiftSpec, method: str, shift: float) -> study.ContextResults:
    """Predictions of a method for the first tasks of a spec, before and after this context shift."""
    spec_json = json.dumps({**_few_tasks(spec), "methods": [method]}, sort_keys=True)
    (first, first_predictions), (second, second_predictions) = (
        _classified(dataset, spec_json, method, at) for at in (0.0, shift)
    )
    return study.ContextResults(first, second, first_predictions, second_predictions)


def _few_tasks(spec: study.ContextShiftSpec) -> study.ContextShiftSpec:
    return {**spec, "n_tasks": min(spec["n_tasks"], MAX_TASKS), "question": "dial"}


def _pair(
    dataset: Dataset, spec: study.ContextShiftSpec, results: study.ContextResults, shift: float, task: int
) -> None:
    """The class of a task that loses most: the same queries, below support in the same and in other contexts."""
    way = int(results.ways_by_loss(task)[0])
    rank = int(np.flatnonzero(results.tasks_by_loss == task)[0])
    st.caption(
        f"The class that loses most in task {rank + 1:,} of {len(results.first):,} by loss. ✓ correct · ✗ incorrect, "
        "with the predicted class.",
        help="Task 1 is the extreme case: Task shown selects others. Context shift: share of support images in other "
        "contexts than the queries of their class.",
    )
    for side, at, tasks, predictions in _sides(results, shift):
        share = (predictions.rank[task, way] == 0).mean()
        st.markdown(f"**{_support_title(at)}**: {share:.0%} of these queries correct")
        if dataset.has_pixels:
            rows = _rows(dataset, tasks, predictions, task, [way])
            page_links.to_gallery(dataset, task_rows(dataset, rows, f"pair_{side}", tile_px=48))
    recipe = {**_few_tasks(spec), "sampler": "context", "shift": shift}
    task_id = task_ids.name_task(dataset, results.second, task, recipe, (spec["backbone"],))
    page_links.from_task(dataset, results.second, task, spec["backbone"], task_id=task_id)


def _sides(results: study.ContextResults, shift: float) -> list[tuple[str, float, Tasks, Predictions]]:
    return [
        ("first", 0.0, results.first, results.first_predictions),
        ("second", shift, results.second, results.second_predictions),
    ]


def _support_title(shift: float) -> str:
    names = {0.0: "Support in the same contexts", 1.0: "Support in other contexts"}
    return names.get(shift, f"{shift:.0%} of the support in other contexts")


def _whole_task(dataset: Dataset, results: study.ContextResults, task: int) -> None:
    """Every class of the task, before and after the shift."""
    if not dataset.has_pixels:
        return
    with st.expander("All classes of the task"):
        n_ways = len(results.first.class_ids[task])
        for side, column, predictions in zip(
            ("first", "second"),
            st.columns(2, gap="medium"),
            (results.first_predictions, results.second_predictions),
            strict=True,
        ):
            tasks = results.first if side == "first" else results.second
            rows = _rows(dataset, tasks, predictions, task, range(min(n_ways, 10)))
            with column:
                title = "Same contexts" if side == "first" else "Other contexts"
                st.markdown(f"**{title}**: {100 * study.accuracy(predictions)[task]:.0f}% correct")
                page_links.to_gallery(dataset, task_rows(dataset, rows, f"task_{side}", tile_px=52))


def _rows(dataset: Dataset, tasks: Tasks, predictions: Predictions, at: int, ways: Sequence[int]) -> list[Row]:
    """Support and query images of some classes of a task."""
    names = dataset.classes["class_name"].astype(str).to_numpy()
    assert dataset.images is not None
    contexts = dataset.images["context"].astype(str).to_numpy()
    class_ids = tasks.class_ids[at]
    rows = []
    for way in ways:
        support = [Tile(int(i), caption=contexts[i]) for i in tasks.support[at, way][:MAX_TILES]]
        rows.append(Row(str(names[class_ids[way]]), support, kind="support"))
    for way in ways:
        tiles = []
        for i, predicted in zip(tasks.query[at, way][:MAX_TILES], predictions.predicted[at, way], strict=False):
            is_correct = int(predicted) == way
            badge = "" if is_correct else str(names[class_ids[predicted]])
            tiles.append(Tile(int(i), caption=contexts[i], frame="right" if is_correct else "wrong", badge=badge))
        rows.append(Row(str(names[class_ids[way]]), tiles, kind="query"))
    return rows


def _breakdown(dataset: Dataset, results: study.ContextResults) -> None:
    st.subheader("Where accuracy is lost", anchor=False)
    lost: dict[str, str] = {}
    for column, by, title in zip(st.columns(2, gap="large"), ("class", "context"), ("class", "context")):
        table = study.losses(dataset, results, by)
        with column:
            st.markdown(f"**By {title}**")
            if len(table):
                figure = figures.plot_losses(table["name"].tolist(), table["loss"].tolist(), table["ci95"].tolist())
                lost[by] = drilldown.chart(
                    f"Where accuracy is lost, by {title}",
                    figure,
                    key=f"losses_{by}",
                    name=f"lost_{by}",
                    texts=table["name"].tolist(),
                )
                n_images = f"{table['n_images'].sum():,} different images"
                st.caption(
                    f"Largest of {len(table):,}; {table['n_queries'].sum():,} predictions for {n_images}, 95% CI over "
                    "images. Click a bar to list its queries."
                )
            else:
                st.caption("Too few queries.")
    names = dataset.distinct_names(np.arange(dataset.n_classes))
    for by, name in lost.items():
        if name:
            label = name if by == "context" else dict(zip(names, short_names(names), strict=True))[name]
            drilldown.heading(f"Queries of {escape(label)}, lost most often first", f"lost_{by}")
            _lost_queries(dataset, results, by, name)
    worst = study.misleading_contexts(dataset, results)
    if dataset.has_pixels and worst:
        st.markdown("**Most misleading contexts**")
        short = dataset.short_names()
        of_image = dataset.image_class_ids()
        clicked = task_rows(
            dataset,
            [
                Row(
                    context.context,
                    [
                        Tile(
                            int(lost.image_id),
                            caption=f"{short[int(of_image[lost.image_id])]} → {short[int(lost.predicted_class)]}",
                            badge=f"{lost.n_misclassified} of {lost.n_queries}",
                        )
                        for lost in context.images.itertuples()
                    ],
                    note=f"{context.loss:.0f} ± {context.ci95:.0f} points lost",
                )
                for context in worst
            ],
            key="treacherous",
        )
        page_links.to_gallery(dataset, clicked)
        st.caption(
            "Correct with matching contexts, incorrect at this shift, with the class predicted most often. "
            "Badge: how many of its tasks."
        )


def _lost_queries(dataset: Dataset, results: study.ContextResults, by: str, name: str) -> None:
    """Show queries of a class or context with the number of tasks in which the shift loses them."""
    table = study.lost_queries(dataset, results, by, name)
    tiles = [
        Tile(int(row.image_id), caption=str(row.caption), badge=f"{row.n_misclassified} of {row.n_queries}")
        for row in table.head(MAX_LOST).itertuples()
    ]
    drilldown.images(dataset, [Row("", tiles)], f"lost_{by}_images")
    st.caption("Correct with matching contexts, incorrect at this shift. Badge: how many of its tasks.")


@cache_data("Classifying the queries", 48)
def _classified(dataset: Dataset, spec: str, method: str, shift: float) -> tuple[Tasks, Predictions]:
    return study.classify(json.loads(spec), method, shift)


def published(n_way: int, n_shot: int, expanded: bool = False) -> None:
    """Show the published numbers of this setting, marked as published."""
    table = published_table("MetaCoCo", f"{n_way}-way {n_shot}-shot")
    with st.expander("Published results (MetaCoCo, Zhang et al. 2024)", expanded=expanded):
        if table.empty:
            st.caption(
                "The paper has 5-way and 10-way tasks with 1 and 5 shots. Choose one of these to see its numbers."
            )
            return
        table = table.assign(family=table["method"].map(published_families())).sort_values(
            ["family", "accuracy"], ascending=[True, False]
        )
        export.table(PUBLISHED, table)
        st.caption(
            f"{len(table):,} published numbers of {n_way:,}-way {n_shot:,}-shot tasks. Backbones trained on MetaCoCo: "
            "compare trends, not values.",
            help="Tables 2, 3, 6 and 7. Methods without a readable name have the name of their venue. The paper prints "
            "no numbers for its IID and OOD accuracies (figure 3).",
        )
