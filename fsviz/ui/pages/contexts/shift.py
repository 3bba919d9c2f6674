"""What a change of context costs: methods on the same queries with support of their contexts, of others, of swapped."""

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

MOST_TILES = 10
MOST_LOST = 36
LOOKED = Setting("looked", "Method", "Whose answers are shown.", "choice", "")
PLACE = Setting("place", "Task, most lost first", "1 is the task that loses most.", "int", 1, 1)
VARIED = {"shots": "n_shot", "ways": "n_way", "backbones": "backbone"}  # views that sweep a setting
QUESTION = study.QUESTION.with_(
    help="What is compared: methods, a dial of contexts, shots, ways or backbones.",
    choices={**study.QUESTION.choices, "shots": "Shots", "ways": "Ways", "backbones": "Backbones"},
    advanced=True,
)
AXES = {"shots": "support images per class (shots)", "ways": "classes per task (ways)", "dial": "shift of contexts"}


def show(dataset: Dataset, split: str) -> None:
    if dataset.images is None:
        st.info(
            f"{escape(dataset.title)} is a table of counts: without images no task can change their context. Add your "
            "own copy (folders concept/context/image) and extract features; published results are below.",
            icon="🧩",
        )
        published(5, 1)
        return
    spec, view = _settings(dataset, split, shell.known_backbones(dataset))
    command = study.command(spec)
    if view in VARIED:
        asked = sweep.sweep(study.STUDY, spec, VARIED[view])
        command = sweep.command(asked)
        result = answer(sweep.STUDY, asked, "Classifying tasks")
        found = None if result is None else _joined(dataset, spec, result)
    else:
        found = answer(study.STUDY, spec, "Classifying tasks")
    if found is not None:
        _compared(dataset, spec, found, view)
    _task(dataset, spec)
    published(spec["n_way"], spec["n_shot"])
    shell.command_popover(command)


def _joined(dataset: Dataset, spec: study.Spec, result: sweep.SweepResult) -> study.Summary:
    """The summaries of all values as one, with the value in every row."""
    rows: Any = [{**row, "value": value} for value, summary in result.results for row in summary["rows"]]
    base: Any = {name: spec[name] for name in ("dataset", "split", "backbone", "n_way", "n_shot", "n_query")}
    left_out = list(study.left_out(dataset, spec).values())
    return cast(study.Summary, {**base, "chance": 100 / spec["n_way"], "rows": rows, "left_out": left_out})


def _settings(dataset: Dataset, split: str, known: list[str]) -> tuple[study.Spec, str]:
    """The spec of the study, and the view: a question of the study or one of VARIED."""
    with shell.side():
        view = pick(QUESTION)
        backbone = pick_backbone(known, help="The network whose features are classified.")
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
    chosen = names or ["protonet"]
    question = "methods" if view in VARIED else view
    asked = {"dataset": dataset.name, "split": split, "backbone": backbone, "question": question, "methods": chosen}
    return study.check({**asked, **tasks}), view


def _compared(dataset: Dataset, spec: study.Spec, found: study.Summary, question: str) -> None:
    rows = found["rows"]
    chosen = ""
    last = "1" if question == "dial" else "ood"
    worst = max(rows, key=lambda row: row["loss"][last]["mean"])
    least = min(rows, key=lambda row: row["loss"][last]["mean"])
    numbers = [
        _lost("Loses most by other contexts", worst, last),
        _lost("Loses least", least, last),
        HeadlineNumber.count(
            "tasks", "Tasks", rows[0]["n_tasks"], help="Each answered with every support: same classes, same queries."
        ),
    ]
    show_numbers(numbers, "losses")
    if question in ("methods", "backbones"):
        titled = [{**row, "name": row["title"], "title": _who(row)} for row in rows]
        export.chart(
            "Accuracy by support",
            figures.plot_shifted_methods(titled, study.SUPPORTS, found["chance"]),
            key="shifted",
            sets=LOOKED.with_(choices={name: method.title for name, method in METHODS.items()}),
        )
        st.caption("Click a point to see the answers of its method below.")
    else:
        chosen = drilldown.chart(
            "Accuracy as a setting varies",
            _curves(found, question),
            key=f"curves_{question}",
            name="point",
            place=2,
            texts=_points(found, question),
            about=question,
        )
    ways = "" if question == "ways" else f"{found['n_way']:,}-way "
    shots = "" if question == "shots" else f"{found['n_shot']:,}-shot "
    backbone = "" if question == "backbones" else f", features of {escape(title_of(found['backbone']))}"
    families = "Families are those of the paper; methods that it does not have stand with what they do. "
    swapped = ", or where other classes are asked (swapped)" if question in ("methods", "backbones") else ""
    of = " Other images or other classes would move them further: the losses above say how far."
    st.caption(
        f"{ways}{shots}tasks of {escape(split_title(found['split']))}{backbone}; backbones stay as they are (the paper "
        f"trains them). Support of a class in contexts of its queries (IID), in none of them (OOD){swapped}; the "
        f"queries are the same, so differences hold task by task. 95% intervals over tasks of these images.{of} "
        + (families if question == "methods" else "")
    )
    if found["left_out"]:
        more = f" {len(found['left_out']) - 1:,} more are left out too." if len(found["left_out"]) > 1 else ""
        st.caption(f"Left out: {escape(found['left_out'][0])}{more}")
    if chosen:
        _behind_point(dataset, spec, question, chosen)


def _points(found: study.Summary, question: str) -> list[str]:
    """The texts of the points of the curves: the name of a line, and where the point is on it."""
    return [f"{line}@{point[0]:g}" for line, points in _lines_of(found, question).items() for point in points]


def _behind_point(dataset: Dataset, spec: study.Spec, question: str, chosen: str) -> None:
    """The tasks of a point of a curve, those that are answered worst first."""
    line, _, at = chosen.rpartition("@")
    title, _, support = line.rpartition(", ") if question != "dial" else (line, "", "")
    method = next(name for name, one in METHODS.items() if one.title == title)
    shift = float(at) if question == "dial" else 0.0 if support == "IID" else 1.0
    asked: study.Spec = {**spec, "n_tasks": min(spec["n_tasks"], 100), "question": "dial"}
    if question == "shots":
        asked = {**asked, "n_shot": int(float(at))}
    elif question == "ways":
        asked = {**asked, "n_way": int(float(at))}
    drilldown.heading(f"Tasks behind {escape(line)} at {escape(at)}, the worst answered first", "point")
    tasks, said = _answered(dataset, json.dumps({**asked, "methods": [method]}, sort_keys=True), method, shift)
    right = 100 * study.accuracy(said)
    order = np.argsort(right, kind="stable")
    notes = {int(t): f"{right[t]:.0f}% right with {shift:.0%} of the support in other contexts" for t in order}
    drilldown.tasks(dataset, tasks, order, notes, f"{chosen} {json.dumps(asked, sort_keys=True)}", "point_task", said)


def _who(row: study.Row) -> str:
    """A method, and what it was varied over: shots, ways or a backbone."""
    value: Any = row.get("value", "")
    value = title_of(value) if isinstance(value, str) and value else value
    return f"{row['title']}, {value}" if value != "" else row["title"]


def _curves(found: study.Summary, question: str, at: float | None = None, height: int = 420) -> Figure:
    """Accuracy against what is varied: the dial, shots or ways. `at` is where the dial stands."""
    curves = _lines_of(found, question)
    figure = plot_curves(curves, AXES[question], "accuracy (%)", percent=True, height=height)
    return figure if at is None else figures.mark(figure, at)


def _lines_of(found: study.Summary, question: str) -> dict[str, list[tuple]]:
    """(x, mean, low, high) along every line, by its name."""
    curves: dict[str, list[tuple]] = {}
    rows: Any = found["rows"]
    for row in rows:
        for name, one_of in row["accuracy"].items():
            if name == "spurious":
                continue
            line = row["title"] if question == "dial" else f"{row['title']}, {name.upper()}"
            around = one_of["ci95"] or 0.0
            point = (one_of["mean"], one_of["mean"] - around, one_of["mean"] + around)
            curves.setdefault(line, []).append((float(name) if question == "dial" else row["value"], *point))
    return curves


def _lost(title: str, row: study.Row, last: str) -> HeadlineNumber:
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
        note=", ".join([_who(row), *wider]),
        help="Accuracy with support of the same contexts less that with other contexts, in percentage points, task by "
        "task. 95% intervals: the first is over tasks of these very images; over images, what other images of these "
        "classes would give (cautious where tasks are few); over classes, what other classes would.",
    )


# --- one task, and what the loss is made of -----------------------------------------------------------------------


@st.fragment
@shell.errors_on_page()
def _task(dataset: Dataset, spec: study.Spec) -> None:
    """Everything that follows the dial: it reruns this part of the page only."""
    st.subheader("The same queries, another support", anchor=False)
    one, two, three = st.columns([1, 2, 1])
    chosen = spec["methods"]
    titles = {each: METHODS[each].title for each in chosen}
    method = pick(LOOKED.with_(choices=titles, default=chosen[0]), one)
    shift = pick(SHIFT.with_(default=1.0), two, as_slider=True)
    few: study.Spec = {**spec, "n_tasks": min(spec["n_tasks"], 100), "question": "dial"}
    asked = json.dumps({**few, "methods": [method]}, sort_keys=True)
    (first, said_first), (second, said_second) = (_answered(dataset, asked, method, at) for at in (0.0, shift))
    found = study.Answers(first, second, said_first, said_second)
    if spec["question"] != "dial" and study.guess_seconds(few) <= answers.patience():  # where it is not above already
        along = compute_with_progress(jobs.compute, {"study": study.STUDY.name, **few}, "Turning the dial")
        export.chart(
            "Accuracy along the dial",
            _curves(along, "dial", shift, height=300),
            key="along_the_dial",
            sets=Click((LOOKED.with_(choices=titles), SHIFT), _at_point),
        )
    mean = [100 * float(study.accuracy(said).mean()) for said in (found.said_first, found.said_second)]
    st.caption(
        f"Over {len(found.first):,} tasks {escape(METHODS[method].title)} falls from {mean[0]:.1f}% to {mean[1]:.1f}% "
        "at this shift: the share of support images that are in other contexts than the queries of their class. "
        "Click a point of a line to turn the dial there."
    )
    worst = np.argsort(-found.loss.sum((1, 2)), kind="stable")
    place = PLACE.with_(high=len(worst))
    at = int(worst[pick(place, three) - 1])
    left, right = st.columns(2, gap="medium")
    with left:
        _half(dataset, "first", few, 0.0, "Same contexts (IID)", (found.first, found.said_first), at)
    with right:
        name = "Other contexts (OOD)" if shift == 1 else f"{shift:.0%} in other contexts"
        _half(dataset, "second", few, shift, name, (found.second, found.said_second), at)
    st.caption("Support above, then the queries: a tick is right, a cross wrong, with what was said instead.")
    _made_of(dataset, found)


def _at_point(point: Point) -> tuple[str, float] | None:
    """The title of the method and the shift that a point along the dial stands for."""
    title, at, shift = str(point.at(2) or "").rpartition("@")
    return (title, float(shift)) if at else None


def _half(
    dataset: Dataset,
    side: str,
    spec: study.Spec,
    shift: float,
    title: str,
    answered: tuple[Tasks, Predictions],
    at: int,
) -> None:
    tasks, said = answered
    st.markdown(f"**{title}**: {100 * study.accuracy(said)[at]:.0f}% right")
    if dataset.has_pixels:
        page_links.to_gallery(dataset, task_rows(dataset, _rows(dataset, tasks, said, at), f"task_{side}", tile_px=64))
    recipe = {**spec, "sampler": "context", "shift": shift}
    named = task_ids.name_task(dataset, tasks, at, recipe, (spec["backbone"],))
    page_links.from_task(dataset, tasks, at, spec["backbone"], named=named)


def _rows(dataset: Dataset, tasks: Tasks, said: Predictions, at: int) -> list[Row]:
    names = dataset.classes["class_name"].astype(str).to_numpy()
    assert dataset.images is not None
    contexts = dataset.images["context"].astype(str).to_numpy()
    class_ids = tasks.class_ids[at]
    rows = []
    for way, class_id in enumerate(class_ids[:10]):
        support = [Tile(int(i), caption=contexts[i]) for i in tasks.support[at, way][:MOST_TILES]]
        rows.append(Row(str(names[class_id]), support, kind="support"))
    for way, class_id in enumerate(class_ids[:10]):
        tiles = []
        for i, predicted in zip(tasks.query[at, way][:MOST_TILES], said.predicted[at, way], strict=False):
            fine = int(predicted) == way
            badge = "" if fine else str(names[class_ids[predicted]])
            tiles.append(Tile(int(i), caption=contexts[i], frame="right" if fine else "wrong", badge=badge))
        rows.append(Row(str(names[class_id]), tiles, kind="query"))
    return rows


def _made_of(dataset: Dataset, found: study.Answers) -> None:
    st.subheader("What the loss is made of", anchor=False)
    lost: dict[str, str] = {}
    for column, by, title in zip(st.columns(2, gap="large"), ("class", "context"), ("concept", "context of the query")):
        table = study.losses(dataset, found, by)
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
                    f"The first of {len(table):,}; {table['n_queries'].sum():,} queries, 95% intervals over images. "
                    "Click a bar for its queries."
                )
            else:
                st.caption("Too few images were asked to tell.")
    for by, name in lost.items():
        if name:
            drilldown.heading(f"Queries of {escape(name)}: lost most often first", f"lost_{by}")
            _lost_queries(dataset, found, by, name)
    worst = study.treacherous(dataset, found)
    if dataset.has_pixels and worst:
        st.markdown("**The most treacherous contexts:** images that are known in their context and lost without it")
        names = dataset.classes["class_name"].astype(str)
        of_image = dataset.image_class_ids()
        clicked = task_rows(
            dataset,
            [
                Row(
                    one.context,
                    [
                        Tile(
                            int(lost.image_id),
                            caption=f"{names[int(of_image[lost.image_id])]} → {names[int(lost.taken_for)]}",
                            badge=f"{lost.n_lost} of {lost.n_asked}",
                        )
                        for lost in one.images.itertuples()
                    ],
                    note=f"{one.loss:.0f} ± {one.ci95:.0f} points lost",
                )
                for one in worst
            ],
            key="treacherous",
        )
        page_links.to_gallery(dataset, clicked)
        st.caption(
            "Queries that are named rightly with support of their contexts and wrongly at this shift: in how many of "
            "the tasks that ask them, and what they are taken for most often then."
        )


def _lost_queries(dataset: Dataset, found: study.Answers, by: str, name: str) -> None:
    """Queries of a concept or a context: in how many of their tasks they are known first and lost then."""
    table = study.lost_queries(dataset, found, by, name)
    tiles = [
        Tile(int(row.image_id), caption=str(row.told), badge=f"{row.n_lost} of {row.n_asked}")
        for row in table.head(MOST_LOST).itertuples()
    ]
    drilldown.images(dataset, [Row("", tiles)], f"lost_{by}_images")
    st.caption("Below an image: in how many of the tasks that ask it, it is named rightly first and wrongly then.")


@cache_data("Answering the queries", 48)
def _answered(dataset: Dataset, spec: str, method: str, shift: float) -> tuple[Tasks, Predictions]:
    return study.answered(json.loads(spec), method, shift)


def published(n_way: int, n_shot: int) -> None:
    """What the paper printed for this setting; always marked as published."""
    table = published_table("MetaCoCo", f"{n_way}-way {n_shot}-shot")
    with st.expander("Published on MetaCoCo (Zhang et al. 2024)"):
        if table.empty:
            st.caption("The paper has 5-way and 10-way tasks of 1 and 5 shots: choose one of these to see its numbers.")
            return
        table = table.assign(family=table["method"].map(published_families())).sort_values(
            ["family", "accuracy"], ascending=[True, False]
        )
        export.table(PUBLISHED, table)
        st.caption(
            f"{len(table):,} published numbers of {n_way:,}-way {n_shot:,}-shot tasks (tables 2, 3, 6 and 7; methods "
            "whose name the text at hand does not show are called by where they appeared), with backbones that were "
            "trained on MetaCoCo itself: not to be compared with those above in height, only in what changes. The "
            "paper's IID and OOD accuracies (figure 3) are printed without numbers."
        )
