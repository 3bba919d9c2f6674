"""Cost of a context change: the same queries, with support in the same, other and swapped contexts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import streamlit as st
from plotly.graph_objects import Figure

from fsviz import jobs
from fsviz.datasets.published import PUBLISHED, published_families, published_table
from fsviz.features.backbones import title_of
from fsviz.figures import contexts as figures
from fsviz.figures.prediction import plot_curves
from fsviz.methods import METHODS
from fsviz.records import Dataset, HeadlineNumber, Predictions, Tasks
from fsviz.sampling.samplers.context import SHIFT
from fsviz.settings import N_QUERY, N_SHOT, N_WAY, SEED, Setting
from fsviz.studies import context_shift as study
from fsviz.studies import sweep
from fsviz.tasks import task_ids
from fsviz.text import split_title
from fsviz.ui.parts import answers, drilldown, export, page_links, shell
from fsviz.ui.parts.answers import answer
from fsviz.ui.parts.caching import cache_data, cached_call, compute_with_progress
from fsviz.ui.parts.clicks import Click, Point
from fsviz.ui.parts.controls import pairs, pick, pick_backbone, pick_groups, pick_methods, say_fit
from fsviz.ui.parts.headline import show_numbers
from fsviz.ui.parts.image_wall import Row, Tile, task_rows
from fsviz.ui.parts.shell import escape

MAX_TILES = 10
MAX_LOST = 36
LOOKED = Setting("looked", "Method", "Method whose predictions are shown.", "choice", "")
PLACE = Setting("place", "Task (largest loss first)", "1 is the task with the largest loss.", "int", 1, 1)
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
        published(5, 1)
        return
    spec, view = _settings(dataset, split, shell.known_backbones(dataset))
    command = study.command(spec)
    if view in VARIED:
        swept = sweep.sweep(study.STUDY, spec, VARIED[view])
        command = sweep.command(swept)
        result = answer(sweep.STUDY, swept, "Classifying tasks")
        summary = None if result is None else _joined(dataset, spec, result)
    else:
        summary = answer(study.STUDY, spec, "Classifying tasks")
    if summary is not None:
        _comparison(dataset, spec, summary, view)
    _task(dataset, spec)
    published(spec["n_way"], spec["n_shot"])
    shell.command_popover(command)


def _joined(dataset: Dataset, spec: study.ContextShiftSpec, result: sweep.SweepResult) -> study.ContextShiftSummary:
    """Merge the summaries of all values, with the value in every row."""
    rows: Any = [{**row, "value": value} for value, summary in result.results for row in summary["rows"]]
    base: Any = {name: spec[name] for name in ("dataset", "split", "backbone", "n_way", "n_shot", "n_query")}
    left_out = list(study.left_out(dataset, spec).values())
    return cast(study.ContextShiftSummary, {**base, "chance": 100 / spec["n_way"], "rows": rows, "left_out": left_out})


def _settings(dataset: Dataset, split: str, backbones: list[str]) -> tuple[study.ContextShiftSpec, str]:
    """Spec of the study, and the view: a question of the study or a key of VARIED."""
    with shell.side():
        view = pick(QUESTION)
        backbone = pick_backbone(backbones, help="Network whose features are classified.")
        names = pick_methods(study.METHODS_COMPARED.default)
        places = pairs()
        n_classes = len(dataset.split_class_ids(split))
        fits = cached_call(study.fit, dataset, {"split": split}, keep=24)
        images = (N_WAY.with_(high=min(N_WAY.high, n_classes)), N_SHOT, N_QUERY)
        shape = [s.with_(default=fits.values[s.name]) for s in images]
        shape[-1] = shape[-1].with_(advanced=True)
        tasks = {s.name: pick(s, next(places)) for s in (*shape, SEED)}
        tasks["n_tasks"] = pick(study.TASKS["n_tasks"].with_(advanced=True))
        tasks |= pick_groups(dataset)
        say_fit(fits, tasks)
    methods = names or ["protonet"]
    question = "methods" if view in VARIED else view
    sources = {"dataset": dataset.name, "split": split, "backbone": backbone, "question": question, "methods": methods}
    return study.check({**sources, **tasks}), view


def _comparison(
    dataset: Dataset, spec: study.ContextShiftSpec, summary: study.ContextShiftSummary, question: str
) -> None:
    rows = summary["rows"]
    chosen = ""
    last = "1" if question == "dial" else "ood"
    largest = max(rows, key=lambda row: row["loss"][last]["mean"])
    smallest = min(rows, key=lambda row: row["loss"][last]["mean"])
    numbers = [
        _loss_number("Largest loss", largest, last),
        _loss_number("Smallest loss", smallest, last),
        HeadlineNumber.count(
            "tasks",
            "Tasks",
            rows[0]["n_tasks"],
            help="Each is classified with every support: same classes, same queries.",
        ),
    ]
    show_numbers(numbers, "losses")
    if question in ("methods", "backbones"):
        titled = [{**row, "name": row["title"], "title": _row_title(row)} for row in rows]
        export.chart(
            "Accuracy by support",
            figures.plot_shifted_methods(titled, study.SUPPORTS, summary["chance"]),
            key="shifted",
            sets=LOOKED.with_(choices={name: method.title for name, method in METHODS.items()}),
        )
    else:
        chosen = drilldown.chart(
            "Accuracy as a setting varies",
            _curves(summary, question),
            key=f"curves_{question}",
            name="point",
            place=2,
            texts=_points(summary, question),
            about=question,
        )
    ways = "" if question == "ways" else f"{summary['n_way']:,}-way "
    shots = "" if question == "shots" else f"{summary['n_shot']:,}-shot "
    backbone = "" if question == "backbones" else f", {escape(title_of(summary['backbone']))} features"
    swapped = " Swapped: contexts of another class's queries." if question in ("methods", "backbones") else ""
    click = "select its method" if question in ("methods", "backbones") else "list its tasks"
    st.caption(
        f"{ways}{shots}tasks of {escape(split_title(summary['split']))}{backbone}. Same (IID): the support shares the "
        f"queries' contexts. Other (OOD): it shares none.{swapped} 95% CI over tasks. Click a point to {click}.",
        help="All supports have the same queries, so losses are paired by task. Backbones are frozen; the paper trains "
        "them. Families follow the paper; methods that it does not test are placed with similar ones.",
    )
    if summary["left_out"]:
        more = f" {len(summary['left_out']) - 1:,} more classes are excluded." if len(summary["left_out"]) > 1 else ""
        st.caption(f"Excluded: {escape(summary['left_out'][0])}{more}")
    if chosen:
        _point_tasks(dataset, spec, question, chosen)


def _points(summary: study.ContextShiftSummary, question: str) -> list[str]:
    """Text of every point of the curves: the name of its line and its position."""
    return [f"{line}@{point[0]:g}" for line, points in _lines(summary, question).items() for point in points]


def _point_tasks(dataset: Dataset, spec: study.ContextShiftSpec, question: str, chosen: str) -> None:
    """Tasks of a point of a curve, lowest accuracy first."""
    line, _, at = chosen.rpartition("@")
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
        dataset, tasks, order, notes, f"{chosen} {json.dumps(point_spec, sort_keys=True)}", "point_task", predictions
    )


def _row_title(row: study.ContextShiftRow) -> str:
    """Method of a row, with its shots, ways or backbone."""
    value: Any = row.get("value", "")
    value = title_of(value) if isinstance(value, str) and value else value
    return f"{row['title']}, {value}" if value != "" else row["title"]


def _curves(summary: study.ContextShiftSummary, question: str, at: float | None = None, height: int = 420) -> Figure:
    """Accuracy against the context shift, shots or ways. `at` marks a context shift."""
    curves = _lines(summary, question)
    figure = plot_curves(curves, AXES[question], "accuracy (%)", percent=True, height=height)
    return figure if at is None else figures.mark(figure, at)


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


def _loss_number(title: str, row: study.ContextShiftRow, last: str) -> HeadlineNumber:
    lost: Mapping[str, Any] = row["loss"][last]
    wider = [
        f"± {lost[name]:.1f} over {over}"
        for name, over in (("ci95_images", "images"), ("ci95_classes", "classes"))
        if lost.get(name) is not None
    ]
    return HeadlineNumber.around(
        title,
        title,
        lost["mean"],
        lost["ci95"],
        "points",
        note=", ".join([_row_title(row), *wider]),
        help="Accuracy with the same contexts minus accuracy with other contexts, paired by task. 95% CI over tasks, "
        "then the wider ones over images and over classes.",
    )


# --- one task, and where accuracy is lost -------------------------------------------------------------------------


@st.fragment
@shell.errors_on_page()
def _task(dataset: Dataset, spec: study.ContextShiftSpec) -> None:
    """One task at a chosen context shift. Only this part of the page reruns."""
    st.subheader("Same queries, other contexts", anchor=False)
    first_column, second_column, third_column = st.columns([1, 2, 1])
    chosen = spec["methods"]
    titles = {each: METHODS[each].title for each in chosen}
    method = pick(LOOKED.with_(choices=titles, default=chosen[0]), first_column)
    shift = pick(SHIFT.with_(default=1.0), second_column, as_slider=True)
    few: study.ContextShiftSpec = {**spec, "n_tasks": min(spec["n_tasks"], 100), "question": "dial"}
    spec_json = json.dumps({**few, "methods": [method]}, sort_keys=True)
    (first, first_predictions), (second, second_predictions) = (
        _classified(dataset, spec_json, method, at) for at in (0.0, shift)
    )
    results = study.ContextResults(first, second, first_predictions, second_predictions)
    if spec["question"] != "dial" and study.guess_seconds(few) <= answers.patience():  # not shown above yet
        along = compute_with_progress(jobs.compute, {"study": study.STUDY.name, **few}, "Computing")
        export.chart(
            "Accuracy by context shift",
            _curves(along, "dial", shift, height=300),
            key="along_the_dial",
            sets=Click((LOOKED.with_(choices=titles), SHIFT), _at_point),
        )
    mean = [
        100 * float(study.accuracy(predictions).mean())
        for predictions in (results.first_predictions, results.second_predictions)
    ]
    st.caption(
        f"{escape(METHODS[method].title)}: {mean[0]:.1f}% → {mean[1]:.1f}% at {shift:.0%} shift "
        f"({len(results.first):,} tasks). ✓ correct · ✗ incorrect, with the predicted class. "
        "Click a point to select its shift.",
        help="Context shift: share of support images in other contexts than the queries of their class.",
    )
    worst = np.argsort(-results.loss.sum((1, 2)), kind="stable")
    place = PLACE.with_(high=len(worst))
    at = int(worst[pick(place, third_column) - 1])
    left, right = st.columns(2, gap="medium")
    with left:
        _side(dataset, "first", few, 0.0, "Same contexts (IID)", (results.first, results.first_predictions), at)
    with right:
        name = "Other contexts (OOD)" if shift == 1 else f"{shift:.0%} in other contexts"
        _side(dataset, "second", few, shift, name, (results.second, results.second_predictions), at)
    _breakdown(dataset, results)


def _at_point(point: Point) -> tuple[str, float] | None:
    """Method title and context shift of a point."""
    title, at, shift = str(point.at(2) or "").rpartition("@")
    return (title, float(shift)) if at else None


def _side(
    dataset: Dataset,
    side: str,
    spec: study.ContextShiftSpec,
    shift: float,
    title: str,
    classified: tuple[Tasks, Predictions],
    at: int,
) -> None:
    tasks, predictions = classified
    st.markdown(f"**{title}**: {100 * study.accuracy(predictions)[at]:.0f}% correct")
    if dataset.has_pixels:
        page_links.to_gallery(
            dataset, task_rows(dataset, _rows(dataset, tasks, predictions, at), f"task_{side}", tile_px=64)
        )
    recipe = {**spec, "sampler": "context", "shift": shift}
    named = task_ids.name_task(dataset, tasks, at, recipe, (spec["backbone"],))
    page_links.from_task(dataset, tasks, at, spec["backbone"], named=named)


def _rows(dataset: Dataset, tasks: Tasks, predictions: Predictions, at: int) -> list[Row]:
    names = dataset.classes["class_name"].astype(str).to_numpy()
    assert dataset.images is not None
    contexts = dataset.images["context"].astype(str).to_numpy()
    class_ids = tasks.class_ids[at]
    rows = []
    for way, class_id in enumerate(class_ids[:10]):
        support = [Tile(int(i), caption=contexts[i]) for i in tasks.support[at, way][:MAX_TILES]]
        rows.append(Row(str(names[class_id]), support, kind="support"))
    for way, class_id in enumerate(class_ids[:10]):
        tiles = []
        for i, predicted in zip(tasks.query[at, way][:MAX_TILES], predictions.predicted[at, way], strict=False):
            is_correct = int(predicted) == way
            badge = "" if is_correct else str(names[class_ids[predicted]])
            tiles.append(Tile(int(i), caption=contexts[i], frame="right" if is_correct else "wrong", badge=badge))
        rows.append(Row(str(names[class_id]), tiles, kind="query"))
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
                st.caption(
                    f"Largest of {len(table):,}; {table['n_queries'].sum():,} queries, 95% CI over images. "
                    "Click a bar to list its queries."
                )
            else:
                st.caption("Too few queries.")
    for by, name in lost.items():
        if name:
            drilldown.heading(f"Queries of {escape(name)}, lost most often first", f"lost_{by}")
            _lost_queries(dataset, results, by, name)
    worst = study.misleading_contexts(dataset, results)
    if dataset.has_pixels and worst:
        st.markdown("**Most misleading contexts**")
        names = dataset.classes["class_name"].astype(str)
        of_image = dataset.image_class_ids()
        clicked = task_rows(
            dataset,
            [
                Row(
                    context.context,
                    [
                        Tile(
                            int(lost.image_id),
                            caption=f"{names[int(of_image[lost.image_id])]} → {names[int(lost.predicted_class)]}",
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


def published(n_way: int, n_shot: int) -> None:
    """Show the published numbers of this setting, marked as published."""
    table = published_table("MetaCoCo", f"{n_way}-way {n_shot}-shot")
    with st.expander("Published results (MetaCoCo, Zhang et al. 2024)"):
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
