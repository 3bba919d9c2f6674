"""The page of hard tasks: accuracies with hard, random and easy supports, the tasks themselves, and the reasons."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from fsviz import datasets, features, jobs
from fsviz.errors import Missing
from fsviz.figures import hard as figures
from fsviz.records import PAD, Dataset
from fsviz.studies import hard_sets as study
from fsviz.studies import stress
from fsviz.studies.hard_sets import HardSets
from fsviz.ui.parts import shell
from fsviz.ui.parts.image_wall import Row, Tile, task_rows

AT_ONCE = 500  # tasks that FastDiffSel searches while the page waits; more run in the background
PREVIEW = 200
MOST_CLASSES = 10  # classes of one task that are drawn before the user asks for all
MOST_REMEMBERED = 32  # answers kept, each a few megabytes at most
MOST_TILES = 40  # support images of one class that are drawn
SECTIONS = ("Tasks", "Attributes", "Closeness in meaning", "Step size", "Stress test")
SET_WORDS = {"hard": "Hard support", "random": "Random support", "easy": "Easy support"}


def show(dataset: Dataset) -> None:
    known = features.available(dataset)
    if not known:
        shell.needs(dataset, "features")
        raise Missing(
            f"{dataset.title} has no features yet. Make some with "
            f"'python -m fsviz extract {dataset.name} --backbone efficientnet_lite0'."
        )
    spec = _settings(dataset, known)
    found = _result(dataset, spec)
    _headline(found)
    _distribution(found)
    section = st.segmented_control(
        "Why, and what else?", SECTIONS, default=SECTIONS[0], key="show", bind="query-params", required=True
    )
    if section == "Attributes":
        _attributes(dataset, found)
    elif section == "Closeness in meaning":
        _coarsity(dataset, found)
    elif section == "Step size":
        _steps(dataset, found)
    elif section == "Stress test":
        _stress(dataset, found, known)
    else:
        _tasks(dataset, found)
    _save(dataset, found)


# --- settings ----------------------------------------------------------------------------------------------------


def _settings(dataset: Dataset, known: list[str]) -> dict[str, Any]:
    split = shell.pick_split(dataset)
    n_classes = len(dataset.split_class_ids(split))
    with st.sidebar:
        backbone = _choice(
            "Backbone", known, "backbone", help="The network whose features are searched and classified."
        )
        shapes = ("fixed", "variable")
        shape = st.segmented_control(
            "Ways and shots",
            shapes,
            default="fixed",
            key="shape",
            bind="query-params",
            required=True,
            help="Variable: the number of classes and of support images differs from task to task and class to class, "
            "as Meta-Dataset draws them (5 to 50 classes, up to 500 support images).",
        )
        spec: dict[str, Any] = {"dataset": dataset.name, "split": split, "backbone": backbone}
        if shape == "variable":
            spec["sampler"] = "variable"
        else:
            left, right = st.columns(2)
            most = max(2, min(20, n_classes))
            spec["n_way"] = _number(left, "Classes (ways)", 2, most, min(5, most), "n_way")
            spec["n_shot"] = _number(right, "Support a class", 1, 50, 5, "n_shot")
            spec["n_query"] = _number(left, "Queries a class", 1, 50, 10, "n_query")
            if dataset.taxonomy is not None:
                classes = right.selectbox(
                    "Classes are drawn",
                    ("uniform", "semantic"),
                    key="sampler",
                    bind="query-params",
                    format_func={"uniform": "at random", "semantic": "close in meaning"}.get,
                )
                spec["sampler"] = classes
        spec["n_tasks"] = st.select_slider(
            "Tasks", (50, 100, 200, 500, 1000, 2000, 5000), value=PREVIEW, key="n_tasks", bind="query-params"
        )
        with st.expander("Search and classifier"):
            spec |= _search_settings()
    return study.checked_spec(spec)


def _search_settings() -> dict[str, Any]:
    titles = study.classifiers()
    spec: dict[str, Any] = {
        "classifier": st.selectbox(
            "Classifier",
            list(titles),
            key="classifier",
            bind="query-params",
            format_func=lambda name: titles.get(name, name),
            help="The method whose accuracy is shown. The search itself always uses prototypes (class means).",
        ),
        "search": st.selectbox(
            "Search",
            study.SEARCHES,
            key="search",
            bind="query-params",
            format_func={"fastdiffsel": "FastDiffSel", "greedy": "greedy"}.get,
            help="FastDiffSel takes one gradient step. Greedy search swaps one support image at a time: slower, a run.",
        ),
        "loss": st.selectbox(
            "Loss",
            list(study.LOSSES),
            key="loss",
            bind="query-params",
            help="The search raises (hard) or lowers (easy) the cross-entropy of the queries. Plain: from their "
            "squared Euclidean distances to the prototypes, the paper's formula. Euclidean: the same after scaling "
            "the distances of every task to a mean of 3, because with large ones a single query decides. Cosine: from "
            "cosines times ten, as in the paper's published code.",
        ),
    }
    if spec["search"] == "greedy":
        spec["n_sweeps"] = _number(st, "Sweeps", 1, 5, 1, "n_sweeps")
    else:
        spec["start"] = st.selectbox(
            "Selection weights start",
            ("ones", "random"),
            key="start",
            bind="query-params",
            format_func={"ones": "equal", "random": "random"}.get,
            help="From equal weights one step of any size picks the same images; from random ones its size matters.",
        )
        if spec["start"] == "random":
            spec["step"] = _step_slider()
        spec["n_steps"] = _number(st, "Gradient steps", 1, 10, 1, "n_steps")
    spec["seed"] = _number(st, "Seed", 0, 9999, 0, "seed")
    return spec


def _step_slider() -> float:
    return st.select_slider(
        "Step size",
        study.STEP_SIZES,
        value=200.0,
        key="step",
        bind="query-params",
        format_func=lambda s: f"{s:g}",
        help="How far one gradient step moves the selection weights. The paper uses 200.",
    )


def _choice(label: str, options: list[str], key: str, help: str = "") -> str:
    if st.session_state.get(key) not in options:
        st.session_state.pop(key, None)
    return st.selectbox(label, options, key=key, bind="query-params", help=help)


def _number(where: Any, label: str, low: int, high: int, value: int, key: str) -> int:
    have = st.session_state.get(key)
    if have is not None and not (isinstance(have, int) and low <= have <= high):
        st.session_state.pop(key)
    return int(where.number_input(label, low, high, value, key=key, bind="query-params"))


# --- results: at once, or from a run -----------------------------------------------------------------------------


def _result(dataset: Dataset, spec: dict[str, Any]) -> HardSets:
    """What the settings ask for; a preview while a long run is not started or not finished."""
    stamp = datasets.stamp(dataset.name)
    if spec["search"] == "fastdiffsel" and spec["n_tasks"] <= AT_ONCE:
        return _found(_key(spec), stamp)
    run = _run_of(spec)
    if run is not None and run.state == "finished":
        return _found_by_run(run.id, stamp)
    preview = {**spec, "search": "fastdiffsel", "n_tasks": min(PREVIEW, spec["n_tasks"])}
    what = "greedy search" if spec["search"] == "greedy" else f"{spec['n_tasks']:,} tasks"
    with st.container(border=True):
        if run is None or not run.active:
            st.markdown(
                f"**{what.capitalize()} run{'s' if spec['search'] == 'greedy' else ''} in the background.** Below is a "
                f"preview: FastDiffSel on {preview['n_tasks']} tasks."
                + (f" An earlier run is {run.state}: {run.message}." if run is not None else "")
            )
            if run is not None and run.resumable and st.button("Go on with it", icon="▶️"):
                jobs.resume(run.id)
                st.rerun()
            if st.button("Start the run", type="primary", icon="▶️"):
                jobs.submit({"study": "hard_sets", **spec})
                st.rerun()
        else:
            _live(run.id)
    return _found(_key(preview), stamp)


def _run_of(spec: Mapping[str, Any]) -> jobs.Run | None:
    """The newest run with exactly these settings."""
    for run in jobs.list_runs("hard_sets"):
        if all(run.spec.get(name) == value for name, value in spec.items() if name != "objective"):
            return run
    return None


@st.fragment(run_every=1.0)
def _live(run_id: str) -> None:
    """Progress of a run and the distribution so far; the page starts over when it ends."""
    run = jobs.status(run_id)
    if not run.active:
        st.rerun()
    st.progress(run.share_done, text=f"{run.message} · {run.n_done} of {run.n_chunks} parts")
    if run.summary:
        st.plotly_chart(
            figures.plot_distribution(run.summary["histogram"], run.summary["accuracy"], run.summary["ci95"], 260),
            key=f"live_{run_id}",
        )
        st.caption(f"The {run.summary['n_tasks']:,} tasks finished so far.")
    if st.button("Cancel", key=f"cancel_{run_id}", icon="⏹️"):
        jobs.cancel(run_id)
        st.rerun()


def _key(spec: Mapping[str, Any]) -> str:
    return json.dumps({k: v for k, v in spec.items() if k != "objective"}, sort_keys=True)


def _found(key: str, stamp: str) -> HardSets:
    return _remembered("found", key, stamp, study.find_hard_sets, "Searching hard and easy support sets")


@st.cache_resource(show_spinner="Reading the run", max_entries=6)
def _found_by_run(run_id: str, stamp: str) -> HardSets:
    run = jobs.status(run_id)
    return study.collect({**run.spec, "folder": str(jobs.folder(run_id))}, jobs.chunks(run_id))


@st.cache_data(show_spinner=False, max_entries=12)
def _summary(key: str, n_tasks: int, stamp: str, _found: HardSets) -> dict[str, Any]:
    return study.summary(_found)


@st.cache_data(show_spinner="Comparing attributes", max_entries=12)
def _differences(key: str, n_tasks: int, stamp: str, _found: HardSets, _dataset: Dataset) -> dict[str, Any]:
    return study.task_differences(_found, _dataset, most=6)


@st.cache_data(show_spinner="Comparing attributes", max_entries=24)
def _gaps(key: str, n_tasks: int, stamp: str, by: str, _found: HardSets, _dataset: Dataset) -> pd.DataFrame:
    return study.gap_table(_found, _dataset, by)


def _shifts(key: str, stamp: str) -> pd.DataFrame:
    return _remembered("shifts", key, stamp, study.shift_table, "Drawing tasks with and without a shift")


def _step_table(key: str, stamp: str) -> pd.DataFrame:
    return _remembered("step", key, stamp, study.step_sweep, "Trying step sizes")


def _steps_table(key: str, stamp: str) -> pd.DataFrame:
    return _remembered("steps", key, stamp, study.steps_sweep, "Trying numbers of steps")


@st.cache_resource(show_spinner=False)
def _memory() -> OrderedDict[tuple[str, str, str], Any]:
    return OrderedDict()


def _remembered(what: str, key: str, stamp: str, compute: Callable[..., Any], words: str) -> Any:
    """The answer to a spec, computed once for all visitors with a bar that says how far it is.

    A cached function of Streamlit replays what it drew, so a bar cannot live in one. Moving the bar also lets
    Streamlit stop the computation as soon as the visitor changes a setting or leaves.
    """
    memory = _memory()
    slot = st.empty()
    if (what, key, stamp) not in memory:
        slot.progress(0.0, f"{words} …")

        def say(done: int, total: int, message: str) -> None:
            slot.progress(min(1.0, done / max(total, 1)), f"{words}: {message}, {done:,} of {total:,}")

        memory[what, key, stamp] = compute(json.loads(key), progress=say)
        while len(memory) > MOST_REMEMBERED:
            memory.popitem(last=False)
        slot.empty()
    return memory[what, key, stamp]


def _identity(found: HardSets) -> tuple[str, int, str]:
    spec = {k: v for k, v in found.spec.items() if k not in ("folder", "study", "version")}
    return _key(spec), len(found), datasets.stamp(str(found.spec["dataset"]))


# --- the answer --------------------------------------------------------------------------------------------------


def _headline(found: HardSets) -> None:
    numbers = _summary(*_identity(found), found)
    accuracy, half = numbers["accuracy"], numbers["ci95"]
    columns = st.columns(4)
    columns[0].metric(
        "Hard supports cost",
        f"{numbers['drop']:.1f} points",
        help="Mean difference in accuracy between random and hard support sets over the same queries.",
    )
    for column, name in zip(columns[1:], study.SETS):
        column.metric(
            f"Accuracy, {name}",
            f"{accuracy[name]:.1f} %",
            delta=None if name == "random" else f"{accuracy[name] - accuracy['random']:+.1f} points",
            delta_arrow="off",
            help=f"Share of queries classified correctly with {name} support images, mean over "
            f"{numbers['n_tasks']:,} tasks" + (f" (± {half[name]:.1f})." if half[name] else "."),
        )


def _distribution(found: HardSets) -> None:
    numbers = _summary(*_identity(found), found)
    st.plotly_chart(
        figures.plot_distribution(numbers["histogram"], numbers["accuracy"], numbers["ci95"]), key="distribution"
    )
    spec = found.spec
    shape = (
        "variable ways and shots"
        if spec["sampler"] == "variable"
        else f"{spec['n_way']} classes, {spec['n_shot']} support and {spec['n_query']} query images a class"
    )
    rho = numbers["spearman_loss_accuracy"]
    st.caption(
        f"{numbers['n_tasks']:,} tasks of split {spec['split']} ({shape}), features of {spec['backbone']}, "
        f"classified by {study.classifiers()[spec['classifier']]}; means with 95% intervals. Only the support "
        "images differ between the three curves: queries are the same. Hard supports are worse than random ones in "
        f"{numbers['harder_than_random']:.0%} of the tasks."
        + (f" Rank correlation of accuracy with low query loss: {rho:.2f}." if rho is not None else "")
    )


# --- tasks -------------------------------------------------------------------------------------------------------


def _tasks(dataset: Dataset, found: HardSets) -> None:
    differences = _differences(*_identity(found), found, dataset)
    table = _task_table(dataset, found, differences)
    shown, order = _filtered(dataset, found, table)
    if not len(shown):
        st.info("No task passes all of these filters. Take one of them away.", icon="🔍")
        return
    chosen = st.dataframe(
        shown,
        key="task_table",
        on_select="rerun",
        selection_mode="single-row",
        height=min(38 + 35 * len(shown), 214),
        hide_index=True,
        column_config={
            "task": st.column_config.NumberColumn("Task", width=50),
            **{
                name: st.column_config.ProgressColumn(
                    f"{name.capitalize()} %", min_value=0, max_value=100, format="%.0f", width=90
                )
                for name in study.SETS
            },
            "classes": st.column_config.TextColumn("Classes", width=260),
            "difference": st.column_config.TextColumn("What differs most with the hard support", width="large"),
        },
    )
    rows = chosen.selection.rows if chosen and chosen.selection.rows else [0]
    task = int(shown["task"].iloc[min(rows[0], len(shown) - 1)])
    st.caption(f"{len(shown):,} of {len(found):,} tasks, {order}. Choose one by the box at its left.")
    _one_task(dataset, found, task, differences)


def _task_table(dataset: Dataset, found: HardSets, differences: Mapping[str, Any]) -> pd.DataFrame:
    names = dataset.classes["class_name"].astype(str).to_numpy()
    class_ids = found.tasks["random"].class_ids
    table = pd.DataFrame({"task": np.arange(len(found))})
    for name in study.SETS:
        table[name] = 100 * found.accuracy(name)
    table["classes"] = [", ".join(names[row[row != PAD]]) for row in class_ids]
    if any(differences["hard"]):
        table["difference"] = [d[0].words if d else "" for d in differences["hard"]]
    return table


def _filtered(dataset: Dataset, found: HardSets, table: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The tasks that pass the filters, and the order they are in, in words."""
    columns = st.columns([3, 2, 2, 2], vertical_alignment="bottom")
    class_ids = found.tasks["random"].class_ids
    names = dataset.classes["class_name"].astype(str)
    in_tasks = sorted(names[np.unique(class_ids[class_ids != PAD])])
    wanted = columns[0].multiselect(
        "With the classes", in_tasks, key=f"with_{dataset.name}_{found.spec['split']}", placeholder="any class"
    )
    low, high = columns[1].slider("Accuracy with hard support", 0, 100, (0, 100), key="between", format="%d %%")
    attributes = study.attribute_names(dataset)
    keep = table["hard"].between(low, high).to_numpy(copy=True)
    for name in wanted:
        keep &= (class_ids == int(names[names == name].index[0])).any(axis=1)
    if attributes:
        by = columns[2].selectbox("With a gap in", ["any attribute", *attributes], key=f"gap_in_{dataset.name}")
        if by != "any attribute":
            gap = study.task_gap(found, dataset, by)
            most = float(np.nanmax(gap)) if np.isfinite(gap).any() else 1.0
            least = columns[3].slider(
                "of at least", 0.0, max(0.1, round(most, 1)), round(most / 2, 1), 0.1, key=f"gap_{by}_{most:.1f}"
            )
            keep &= np.nan_to_num(gap, nan=-1.0) >= least
    orders = {"hard": "hardest first", "drop": "largest drop first", "easy": "most helped by easy supports first"}
    if not attributes or st.session_state.get(f"gap_in_{dataset.name}", "any attribute") == "any attribute":
        order = columns[3].selectbox("Order", list(orders), key="task_order", format_func=orders.get)
    else:
        order = "hard"
    kept = table[keep]
    sorting = {
        "hard": kept["hard"],
        "drop": kept["hard"] - kept["random"],
        "easy": kept["random"] - kept["easy"],
    }[order]
    return kept.loc[sorting.sort_values(kind="stable").index], orders[order]


def _one_task(dataset: Dataset, found: HardSets, task: int, differences: Mapping[str, Any]) -> None:
    st.subheader(f"Task {task}: the same queries, three support sets", anchor=False)
    clicked: dict[str, int | None] = {}
    if not dataset.has_pixels:
        st.caption(f"{dataset.title} has no pixels here: images are named by their number.")
    ways = _ways_shown(found, task)
    columns = st.columns(3, gap="medium")
    for column, name in zip(columns, study.SETS):
        with column:
            st.markdown(f"**{SET_WORDS[name]}** · {100 * found.accuracy(name)[task]:.0f} % of queries right")
            rows = _support_rows(dataset, found, task, name, ways)
            clicked[name] = task_rows(dataset, rows, f"support_{name}", tile_px=48)
    if study.attribute_names(dataset):
        st.caption(
            "Below each class: the attribute in which its support differs most from its queries. A few images "
            "differ by chance too, as the random column shows."
        )
    _reasons(differences, task)
    view = st.segmented_control(
        "Queries, as classified with the",
        study.SETS,
        default="hard",
        key="queries_of",
        required=True,
        format_func=lambda name: SET_WORDS[name].lower(),
    )
    clicked["query"] = task_rows(dataset, _query_rows(dataset, found, task, str(view), ways), "queries", tile_px=76)
    st.caption(
        "A broken red frame with a cross is a wrong answer; its label is the class the classifier chose. Click an "
        "image to enlarge it."
    )
    _enlarge(dataset, found, task, clicked)


def _ways_shown(found: HardSets, task: int) -> list[int]:
    """The classes of a task that are drawn: all, or of many the ones that suffer most from the hard support."""
    tasks = found.tasks["random"]
    used = np.flatnonzero(tasks.class_ids[task] != PAD)
    if len(used) <= MOST_CLASSES or st.toggle(f"Show all {len(used)} classes", key="all_classes"):
        return used.tolist()
    st.caption(f"The {MOST_CLASSES} classes with the most wrong answers under the hard support.")
    wrong = (found.predictions["hard"].rank[task] > 0).sum(axis=1)[used]
    return sorted(used[np.argsort(-wrong, kind="stable")[:MOST_CLASSES]].tolist())


def _support_rows(dataset: Dataset, found: HardSets, task: int, name: str, ways: list[int]) -> list[Row]:
    names = dataset.classes["class_name"].astype(str).to_numpy()
    tasks = found.tasks[name]
    used = np.flatnonzero(tasks.class_ids[task] != PAD)
    differs = dict(zip(used.tolist(), study.class_differences(found, dataset, task, name)))
    rows = []
    for way in ways:
        support = tasks.support[task, way][tasks.support[task, way] != PAD]
        note = differs[way][0].short if differs[way] else ""
        if len(support) > MOST_TILES:
            note = f"first {MOST_TILES} of {len(support)} images. {note}"
        tiles = [Tile(int(i)) for i in support[:MOST_TILES]]
        rows.append(Row(names[tasks.class_ids[task, way]], tiles, note, kind="support"))
    return rows


def _query_rows(dataset: Dataset, found: HardSets, task: int, view: str, ways: list[int]) -> list[Row]:
    names = dataset.classes["class_name"].astype(str).to_numpy()
    class_ids, query = found.tasks["random"].class_ids[task], found.tasks["random"].query[task]
    rows = []
    for label in ways:
        class_id = class_ids[label]
        right = {
            s: int((found.predictions[s].predicted[task, label][query[label] != PAD] == label).sum())
            for s in study.SETS
        }
        tiles = []
        for image_id, predicted in zip(query[label], found.predictions[view].predicted[task, label]):
            if image_id == PAD:
                continue
            wrong = int(predicted) != label
            tiles.append(
                Tile(int(image_id), "", "wrong" if wrong else "right", names[class_ids[predicted]] if wrong else "")
            )
        note = f"right: {right['hard']} hard, {right['random']} random, {right['easy']} easy of {len(tiles)}"
        rows.append(Row(names[class_id], tiles, note, kind="query"))
    return rows


def _reasons(differences: Mapping[str, Any], task: int) -> None:
    """Words and bars on what differs between the hard support and the queries of one task."""
    hard, easy = differences["hard"][task], differences["easy"][task]
    if not hard:
        st.caption(
            "This dataset has no attributes, so the reason must be found by eye. Add columns such as blur, style "
            "or context to the CSV you import (path,class,blur,...) and this place says in words what differs."
        )
        return
    left, right = st.columns([5, 6], gap="large")
    with left:
        st.markdown("**What differs between hard support and query, over all classes**")
        st.markdown("\n".join(f"- {d.words}" for d in hard[:4]))
        if easy:
            st.caption(f"With the easy support the largest difference is: {easy[0].words}.")
    bars = [vars(d) for d in hard if d.value][:4]
    if bars:
        with right:
            st.plotly_chart(figures.plot_differences(bars), key="task_bars")


def _enlarge(dataset: Dataset, found: HardSets, task: int, clicked: Mapping[str, int | None]) -> None:
    """Opens the dialog once for every new click on any of the walls."""
    before = st.session_state.get("hard_clicked", {})
    st.session_state["hard_clicked"] = dict(clicked)
    for where, image_id in clicked.items():
        if image_id is not None and before.get(where) != image_id and dataset.has_pixels:
            _dialog(dataset, found, task, image_id, where)
            return


@st.dialog("Image", width="medium")
def _dialog(dataset: Dataset, found: HardSets, task: int, image_id: int, where: str) -> None:
    row = dataset.images.iloc[image_id]
    name = str(dataset.classes["class_name"].iloc[int(row["class_id"])])
    st.markdown(f"**{name}** · image {image_id} · {'query' if where == 'query' else f'{where} support'} of task {task}")
    left, right = st.columns([3, 2])
    left.image(datasets.open_image(dataset, image_id), width="stretch")
    known = study.attribute_names(dataset)
    if known:
        values = [f"{row[a]:.2f}" if isinstance(row[a], float) else str(row[a]) for a in known]
        right.dataframe(pd.DataFrame({"attribute": known, "value": values}), hide_index=True)
    if where == "query":
        labels = np.argwhere(found.tasks["random"].query[task] == image_id)
        if len(labels):
            label, place = labels[0]
            names = dataset.classes["class_name"].astype(str).to_numpy()[found.tasks["random"].class_ids[task]]
            for s in study.SETS:
                said = int(found.predictions[s].predicted[task, label, place])
                sure = float(found.predictions[s].confidence[task, label, place])
                right.markdown(f"{SET_WORDS[s]}: {'✓' if said == label else '✗'} {names[said]} ({sure:.0%} sure)")


# --- attributes --------------------------------------------------------------------------------------------------


def _attributes(dataset: Dataset, found: HardSets) -> None:
    if not study.attribute_names(dataset):
        st.info(
            f"**{dataset.title} has no attributes.** Give a CSV with one column per attribute "
            "(path,class,blur,style,...) when you add images; numbers and words both work.",
            icon="🧩",
        )
        st.page_link("pages/7_Add_images.py", label="Add images", icon="➕")
        return
    st.subheader("Do support and query images look different?", anchor=False)
    by = st.segmented_control(
        "Compare support and query",
        ("task", "class"),
        default="task",
        key="gaps_by",
        bind="query-params",
        required=True,
        format_func={"task": "over the whole task", "class": "class by class"}.get,
    )
    st.plotly_chart(figures.plot_gaps(_gaps(*_identity(found), str(by), found, dataset)), key="gaps")
    st.caption(
        f"Mean over {len(found):,} tasks with 95% intervals. Left: how much of the mix of values differs between "
        "the support and the query images of a task (0: the same mix, 1: nothing in common). Right: difference of "
        "their means, in standard deviations. Where hard lies to the right of random, the search chose support "
        "images that differ from the queries in that attribute, although it never saw the attributes. Few support "
        "images differ by chance too: random is what chance gives."
    )
    st.subheader("What does a shift of one attribute cost?", anchor=False)
    spec = _plain_spec(found, n_tasks=min(len(found), 200))
    table = _shifts(_key(spec), datasets.stamp(dataset.name))
    if table["cost"].notna().any():
        st.plotly_chart(figures.plot_shift_cost(table), key="shift_cost")
        fewer = table[(table["n_query"] > 0) & (table["n_query"] < spec["n_query"])]
        asked = ", ".join(f"{r['attribute']} {r['n_query']}" for _, r in fewer.iterrows())
        st.caption(
            f"{int(table['n_tasks'].max())} pairs of tasks an attribute, without any search: all queries of a class "
            "share one value (or the lower or upper third of a number); support images are drawn from the same "
            "value or from others. Both tasks of a pair have the same queries. Points are paired differences with "
            "95% intervals." + (f" Fewer queries a class where images are few: {asked}." if asked else "")
        )
    problems = table[table["problem"] != ""]
    for _, row in problems.iterrows():
        st.caption(f"⬜ {row['attribute']}: {row['problem']}")
    possible = table.loc[table["problem"] == "", "attribute"].tolist()
    if possible:
        _curate(dataset, spec, table.set_index("attribute"), possible)


def _curate(dataset: Dataset, spec: dict[str, Any], table: pd.DataFrame, possible: list[str]) -> None:
    """Tasks with and without one chosen shift, to look at and to keep."""
    with st.expander("Make tasks with one chosen shift"):
        columns = st.columns([2, 2, 3], vertical_alignment="bottom")
        attribute = columns[0].selectbox("Attribute", possible, key="curated_attribute")
        groups = study.attribute_groups(dataset, attribute)
        group = columns[1].selectbox("Queries have", ["any one value", *groups], key=f"curated_group_{attribute}")
        wanted = {**spec, "n_query": int(table.loc[attribute, "n_query"])}
        pair = study.curated_tasks(wanted, attribute, None if group == "any one value" else group)
        names = dataset.classes["class_name"].astype(str).to_numpy()
        for column, tasks, title in zip(
            st.columns(2, gap="large"),
            (pair.without_shift, pair.with_shift),
            ("Support is like the query", "Support differs from the query"),
        ):
            with column:
                st.markdown(f"**{title}**")
                rows = []
                for way, class_id in enumerate(tasks.class_ids[0]):
                    name, value = names[class_id], pair.group_names[pair.groups[0, way]]
                    rows.append(Row(name, [Tile(int(i)) for i in tasks.support[0, way]], kind="support"))
                    rows.append(Row(name, [Tile(int(i)) for i in tasks.query[0, way]], value, kind="query"))
                task_rows(dataset, rows[:6], f"curated_{title[:12]}", tile_px=44)
        st.caption(f"The first three classes of the first of {len(pair.with_shift):,} pairs of tasks.")
        if columns[2].button("Save both as testbeds", icon="💾", key="save_curated"):
            saved = study.save_curated(wanted, attribute, pair)
            st.toast(f"Saved as {' and '.join(saved)}", icon="💾")


def _plain_spec(found: HardSets, **changes: Any) -> dict[str, Any]:
    spec = {k: v for k, v in found.spec.items() if k in study.DEFAULTS or k in ("dataset", "backbone")}
    return {**spec, **changes}


# --- coarsity ----------------------------------------------------------------------------------------------------


def _coarsity(dataset: Dataset, found: HardSets) -> None:
    st.subheader("Are close classes and bad supports two problems or one?", anchor=False)
    table = study.coarsity_table(found)
    if table is None:
        st.info(
            f"**{dataset.title} has no taxonomy for these tasks**, so it is not known how close in meaning their "
            "classes are. Map its classes to WordNet when you add images.",
            icon="🧩",
        )
        return
    st.plotly_chart(figures.plot_by_coarsity(table), key="by_coarsity")
    st.caption(
        f"{len(found):,} tasks in four groups by coarsity, the mean squared distance in meaning between the classes "
        "of a task; means with 95% intervals. Classes that mean nearly the same are harder to tell apart. Where "
        "hard supports cost about as much at every distance, the two problems add up. Draw classes 'close in "
        "meaning' in the sidebar for more tasks on the left."
    )


# --- step size ---------------------------------------------------------------------------------------------------


def _steps(dataset: Dataset, found: HardSets) -> None:
    st.subheader("How far must the selection weights move?", anchor=False)
    stamp = datasets.stamp(dataset.name)
    spec = _plain_spec(found, n_tasks=min(len(found), 100), n_steps=1, start="ones", search="fastdiffsel", step=200.0)
    chosen = st.select_slider(
        "Step size",
        study.STEP_SIZES,
        value=200.0,
        key="look_at_step",
        bind="query-params",
        format_func=lambda s: f"{s:g}",
    )
    table = _step_table(_key(spec), stamp)
    plain = _summary(*_identity(_found(_key(spec), stamp)), _found(_key(spec), stamp))["accuracy"]
    at = {
        o: float(table[(table["objective"] == o) & (table["step"] == chosen)]["accuracy"].iloc[0])
        for o in ("hard", "easy")
    }
    columns = st.columns(3)
    columns[0].metric(f"Hard supports at step {chosen:g}", f"{at['hard']:.1f} %")
    columns[1].metric("Random supports", f"{plain['random']:.1f} %", help="Of the same tasks.")
    columns[2].metric(f"Easy supports at step {chosen:g}", f"{at['easy']:.1f} %")
    reference = {
        "random": plain["random"],
        "hard, equal start": plain["hard"],
        "easy, equal start": plain["easy"],
    }
    left, right = st.columns([5, 3], gap="large")
    with left:
        st.plotly_chart(figures.plot_step_sizes(table, reference, chosen), key="step_sizes")
        st.caption(
            f"{spec['n_tasks']} tasks. Every pool image has a selection weight that starts random; one gradient "
            "step moves it, and the heaviest images become the support set. A tiny step keeps the random order, so "
            "accuracy is that of random supports; a large one follows the gradient alone. Dotted: from equal "
            "weights, where any step picks the same images and no step size is needed (the default here)."
        )
    with right:
        st.plotly_chart(figures.plot_steps(_steps_table(_key(spec), stamp)), key="n_steps_plot")
        st.caption(
            f"Hard supports of the same {spec['n_tasks']} tasks after one step and more, from equal weights. The paper "
            "takes one and finds tasks less hard after more: once projected, the weights are sparse."
        )


# --- stress test -------------------------------------------------------------------------------------------------


def _stress(dataset: Dataset, found: HardSets, known: list[str]) -> None:
    st.subheader("Is a task that is hard for one classifier hard for all?", anchor=False)
    quick, full = st.columns([3, 2], gap="large")
    with quick:
        backbones = st.multiselect(
            "Backbones",
            known,
            default=known[:4],
            key=f"stress_{dataset.name}",
            wrap=True,
            help="Only backbones that have features.",
        )
    offered = {k: v for k, v in stress.ADAPTATIONS.items() if k != stress.FULL}
    with full:
        adaptations = st.multiselect(
            "Adaptations",
            list(offered),
            default=list(offered),
            key="stress_adaptations",
            format_func=offered.get,
            wrap=True,
            help="How the classifier learns a task from its support images: means of the classes (prototypes), a "
            "linear layer trained on them (finetuned head), or one that also looks at the unlabelled queries (TIM).",
        )
    if not backbones or not adaptations:
        st.info("Choose at least one backbone and one adaptation.", icon="👆")
        return
    base = {k: v for k, v in _plain_spec(found).items() if k not in ("backbone", "classifier", "objective")}
    source = backbones[0]
    if len(backbones) > 1:
        source = st.segmented_control(
            "Hard sets searched with",
            backbones,
            default=backbones[0],
            key=f"stress_source_{len(backbones)}_{dataset.name}",
            required=True,
        )
    spec = {
        **base,
        "study": "stress",
        "n_tasks": min(base["n_tasks"], 60),
        "sources": [str(source)],
        "backbones": backbones,
        "adaptations": adaptations,
    }
    result = _stress_at_once(json.dumps(spec, sort_keys=True), datasets.stamp(dataset.name))
    _matrix(result, str(source), spec["n_tasks"])
    if len(known) == 1:
        st.caption(
            f"Only {known[0]} has features of {dataset.title}. For a second row extract another backbone, for example "
            f"with `python -m fsviz extract {dataset.name} --backbone conv64f`."
        )
    with st.expander("Does the query loss tell how hard a task is?"):
        sets = {name: found.loss(name) for name in study.SETS}
        accuracies = {name: found.accuracy(name) for name in study.SETS}
        st.plotly_chart(figures.plot_loss_accuracy(sets, accuracies), key="loss_accuracy")
        rho = _summary(*_identity(found), found)["spearman_loss_accuracy"]
        st.caption(
            "The search raises the query loss, not the error itself. Each point is a task."
            + (f" Rank correlation of accuracy with low loss: {rho:.2f} (1 is perfect)." if rho is not None else "")
        )
    if dataset.has_pixels:
        _full_finetuning(dataset, spec)


def _matrix(result: Mapping[str, Any], source: str, n_tasks: int) -> None:
    st.plotly_chart(figures.plot_stress(result["matrix"], stress.ADAPTATIONS, source), key=f"stress_{source}")
    others = [e for e in result["agreement"] if e["source"] == source and e["accuracy"] is not None]
    words = " ".join(
        f"Over random and hard tasks, the accuracies of {e['backbone']} follow those of {source} with a rank "
        f"correlation of {e['accuracy']:.2f}"
        + (f" (its accuracy against {source}'s query loss: {e['loss']:.2f})." if e["loss"] is not None else ".")
        for e in others
    )
    st.caption(
        f"Points lost from random to hard support sets that were searched with {source} and prototypes, and both "
        f"accuracies in percent; {n_tasks} tasks, paired 95% intervals. A loss in the other rows and columns means "
        f"that the difficulty is in the images, not only in one classifier. {words}"
    )


@st.cache_data(show_spinner="Classifying hard and random tasks with every backbone and adaptation", max_entries=8)
def _stress_at_once(key: str, stamp: str) -> dict[str, Any]:
    return stress.run_at_once(json.loads(key))


def _full_finetuning(dataset: Dataset, spec: Mapping[str, Any]) -> None:
    """The slow adaptation, as a background run."""
    with st.expander("Also finetune the whole backbone on every task (slow, runs in the background)"):
        st.markdown(
            "All weights of the backbone are trained on the augmented support images of each task, with a learning "
            "rate chosen on validation tasks from 0.0001, 0.001 and 0.01. On a processor this takes about a minute "
            "a task."
        )
        columns = st.columns(4, vertical_alignment="bottom")
        trainable = [b for b in spec["backbones"] if "@" not in b.removesuffix("@random")]
        if not trainable:
            st.info("None of the chosen backbones can be loaded by its name alone, which full finetuning needs.")
            return
        backbone = columns[0].selectbox("Backbone", trainable, key="full_backbone")
        n_tasks = _number(columns[1], "Tasks", 1, 100, 5, "full_tasks")
        n_steps = _number(columns[2], "Steps a task", 1, 200, 20, "full_steps")
        size = columns[3].selectbox("Pixels a side", (64, 96, 128, 224), index=1, key="full_size")
        wanted = stress.checked_spec(
            {
                **{k: v for k, v in spec.items() if k != "study"},
                "sources": [backbone],
                "backbones": [backbone],
                "adaptations": ["protonet", stress.FULL],
                "finetuning": {"n_tasks": n_tasks, "n_steps": n_steps, "size": size},
            }
        )
        run = next((r for r in jobs.list_runs("stress") if all(r.spec.get(k) == v for k, v in wanted.items())), None)
        if run is None:
            if st.button("Start", icon="▶️", type="primary"):
                jobs.submit(wanted)
                st.rerun()
        else:
            _live_stress(run.id, backbone)


@st.fragment(run_every=2.0)
def _live_stress(run_id: str, source: str) -> None:
    run = jobs.status(run_id)
    if run.active:
        st.progress(run.share_done, text=f"{run.message} · {run.n_done} of {run.n_chunks} parts")
        if st.button("Cancel", key=f"cancel_{run_id}", icon="⏹️"):
            jobs.cancel(run_id)
            st.rerun(scope="fragment")
    elif run.state != "finished":
        st.warning(f"The run is {run.state}: {shell.plain(run.error or run.message)}.", icon="⚠️")
        if run.resumable and st.button("Go on", key=f"resume_{run_id}", icon="▶️"):
            jobs.resume(run_id)
            st.rerun(scope="fragment")
    if run.summary and run.summary.get("matrix"):
        _matrix_of_run(run.summary, source, run_id)


def _matrix_of_run(result: Mapping[str, Any], source: str, run_id: str) -> None:
    st.plotly_chart(figures.plot_stress(result["matrix"], stress.ADAPTATIONS, source), key=f"full_{run_id}")
    rates = result.get("learning_rates", {})
    chosen = "; ".join(f"{name}: {entry['chosen']:g}" for name, entry in rates.items())
    st.caption(
        f"Learning rate chosen on validation tasks: {chosen or 'not yet'}. The finished part of the tasks counts."
    )


# --- keep --------------------------------------------------------------------------------------------------------


def _save(dataset: Dataset, found: HardSets) -> None:
    st.divider()
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("**Keep these tasks**")
        which = st.segmented_control("Set", study.SETS, default="hard", key="keep_set", required=True)
        testbed = study.to_testbed(found, str(which))
        with st.container(horizontal=True):
            if st.button("Save testbed", icon="💾", type="primary", help="Into the workspace, for the page Evaluate."):
                st.toast(f"Saved as {study.save_sets(found, str(which))}", icon="💾")
            for kind in ("parquet", "csv", "json"):
                st.download_button(
                    "Parquet" if kind == "parquet" else kind.upper(),
                    data=lambda kind=kind: study.export_sets(found, str(which), kind),
                    file_name=f"{testbed.name}.{kind}",
                    key=f"download_{kind}",
                    on_click="ignore",
                    icon="⬇️",
                )
    with right:
        st.markdown("**The same from a terminal**")
        st.code(_command(found.spec), language="bash", wrap_lines=True)


def _command(spec: Mapping[str, Any]) -> str:
    """The command that finds the same tasks."""
    flags = {"search": "method", "n_steps": "steps", "n_sweeps": "sweeps"}
    always = {"n_tasks"} if spec["sampler"] == "variable" else {"n_way", "n_shot", "n_query", "n_tasks"}
    words = [f"python -m fsviz hard {spec['dataset']} --backbone {spec['backbone']}"]
    for name, default in study.DEFAULTS.items():
        if name in ("objective", "device") or (spec[name] == default and name not in always):
            continue
        value = f"{spec[name]:g}" if isinstance(spec[name], float) else spec[name]
        words.append(f"--{flags.get(name, name).replace('_', '-')} {value}")
    return " ".join(words)
