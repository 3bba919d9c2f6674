"""The page Evaluate: choose tasks, backbones and methods; a first look at once, the whole in the background."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any, cast

import numpy as np
import streamlit as st

from fsviz import features, jobs
from fsviz.difficulty import measures
from fsviz.errors import FsvizError
from fsviz.features.backbones import DEFAULT, title_of
from fsviz.figures import runs as figures
from fsviz.methods import METHODS
from fsviz.records import Dataset, Predictions, TaskId, Testbed
from fsviz.sampling import SAMPLERS
from fsviz.sampling.draw import REPEATS
from fsviz.sampling.testbeds import load_testbed
from fsviz.settings import N_TASKS, SEED, Setting, Unchecked
from fsviz.settings import words as flags
from fsviz.studies import comparison, draw, evaluate, extraction, named_tasks
from fsviz.text import drawn
from fsviz.ui.parts import (
    access,
    behind,
    controls,
    leads,
    links,
    mistakes,
    run_panel,
    shell,
    showing,
    task_list,
    without_images,
)
from fsviz.ui.parts.cached import remember
from fsviz.ui.parts.shell import plain
from fsviz.ui.parts.task_list import TASK

LOOK_TASKS = 200
LEAST_TASKS = 20
LOOK_SECONDS = 1.0  # a method whose first look would take longer waits for the run
DEFAULT_METHODS = ("protonet", "simpleshot", "ridge", "bd_cspn")
BESIDE = Setting(
    "beside",
    "In one run",
    "Semantic and uniform tasks beside each other are tables 1 (1 shot) and 2 (5 shots) of Bennequin et al. (2022). "
    "The first look below is at the tasks chosen above.",
    "choice",
    "alone",
    choices={
        "alone": "These tasks only",
        "both": "Semantic and uniform tasks",
        "tables": "Semantic and uniform, 1 and 5 shots",
    },
    advanced=True,
)
TASKS_FROM = Setting(
    "tasks_from",
    "Tasks",
    "Drawn here, or those of a testbed that was saved before.",
    "choice",
    "draw",
    choices={"draw": "Draw here", "saved": "Saved testbed"},
)
WHOSE = Setting("whose", "Answers of", "Also by a click on a point of the figure above.", "choice", "")
BESIDE_SHOTS: dict[str, tuple[int, ...]] = {"both": (), "tables": (1, 5)}  # none: the number chosen


class Asked(evaluate.Spec, total=False):
    """What the sidebar asks for: a spec, further testbeds, and the shots of several samplers in one run."""

    more_testbeds: list[str]
    beside: tuple[int, ...] | None


def show(dataset: Dataset) -> None:
    known = features.available(dataset)
    if not known:
        _no_features(dataset)
        return
    with st.spinner("Loading the methods…"):
        _devices()  # the first visit loads torch
    with st.sidebar:
        spec = _settings(dataset, known)
    run_panel.active_runs("evaluate", "evaluate")
    _just_finished()
    if spec is None:
        st.info("Choose at least one method and one backbone in the sidebar.", icon="👈")
        return
    more, shots = spec.pop("more_testbeds", []), spec.pop("beside", None)
    start = st.container()
    if _first_look(dataset, spec):
        with start:  # filled after the answer: timing takes a moment
            if access.may("run"):
                _start(spec, more, shots)
            access.deny("run")


def _no_features(dataset: Dataset) -> None:
    """Says what is missing, and offers to make it."""
    if not dataset.has_pixels:
        without_images.stop_without(dataset)
        shell.needs(dataset, "features")
        return
    st.info(
        f"**{plain(dataset.title)} has images but no features yet.** Methods work on features: what a "
        "backbone, a frozen network, sees in every image. Extract them once; it runs in the background.",
        icon="🧩",
    )
    run_panel.active_runs("extract", "extraction")
    access.deny("run")
    if access.may("run") and st.button("Extract features with EfficientNet-Lite0", type="primary"):
        spec: extraction.Spec = {
            "study": "extraction",
            "dataset": dataset.name,
            "backbone": DEFAULT,
            "device": "auto",
        }
        access.do("run", jobs.submit, spec)
        st.rerun()
    st.caption("Or in a terminal:")
    st.code(f"python -m fsviz extract {shlex.quote(dataset.name)} --backbone {DEFAULT}", language="bash")


# --- settings ----------------------------------------------------------------------------------------------------


def _settings(dataset: Dataset, known: list[str]) -> Asked | None:
    """The sidebar: what to run. Returns the spec, None when something has to be chosen first."""
    chosen = _methods()
    links.several_of({name: title_of(name) for name in known}, "backbones", known[:1])
    backbones = st.multiselect(
        "Backbones",
        known,
        key="backbones",
        format_func=title_of,
        **controls.BY_TYPING,
        help="Frozen networks whose features of these images are at hand. More of them: page Add images.",
    )
    source = _tasks(dataset, (backbones or known)[0])
    device = _device()
    if not chosen or not backbones:
        return None
    spec: Asked = {
        "study": "evaluate",
        "dataset": dataset.name,
        "backbones": backbones,
        "methods": chosen,
        "device": device,
        **source,
    }
    return spec


@st.fragment
@shell.sentences()
def _start(spec: evaluate.Spec, more: list[str], shots: tuple[int, ...] | None) -> None:
    """One line: what the whole run is, how long it would take, and the button.

    more   further testbeds, a run each
    shots  not None: semantic and uniform tasks in one run, with these numbers of shots (the spec's own where none)
    """
    whole = spec
    if shots is not None:
        whole = cast(evaluate.Spec, {name: value for name, value in spec.items() if name != "sampler"})
        whole["samplers"] = evaluate.both_samplers(spec["sampler"], shots)
    with st.container(border=True):
        text, button, copy = st.columns([4, 1.4, 1.4], vertical_alignment="center")
        line = text.empty()
        with copy:
            engine = run_panel.where("evaluate", "stretch")
        if button.button("Start the run", type="primary", width="stretch", key="start"):
            line.markdown("**▶️ Queued.** Drawing and freezing the tasks, then the run starts by itself…")
            run_id = access.do("run", jobs.submit, whole, engine)
            for name in more:
                access.do("run", jobs.submit, {**spec, "testbed": name}, engine)
            st.session_state["watched_run"] = run_id
            st.toast(f"Run {plain(run_id)} is on its way. You may close the browser.", icon="🚀")
            st.rerun(scope="app")
        showing.recipe(command(whole))
        with copy.popover("Command", width="stretch"):
            st.code(command(whole), language="bash", wrap_lines=True)
        tasks = f"{spec['sampler']['n_tasks']:,} tasks" if spec.get("sampler") else "the whole testbed"
        tasks += f" in each of {len(whole['samplers'])} testbeds" if "samplers" in whole else ""
        tasks += f" and {len(more)} more testbed{'s' if len(more) > 1 else ''} after it" if more else ""
        entries = evaluate.entries(spec)
        what = plain(entries[0].label) if len(entries) == 1 else f"{len(entries)} methods"
        line.markdown(f"**The whole run:** {what} on {tasks}, in the background. Timing a few tasks…")
        told = _estimate(spec, len(whole.get("samplers", [spec])))
        line.markdown(f"**The whole run:** {what} on {tasks}, in the background: {told}.")


def _methods() -> list[evaluate.Chosen]:
    """Method picker and, for each one chosen, the controls its parameters ask for."""
    names = controls.pick_methods(
        DEFAULT_METHODS,
        "Inductive methods judge each query image alone; transductive ones look at all queries of a task at once.",
    )
    chosen: list[evaluate.Chosen] = []
    if names:
        with st.popover("Parameters of the methods", width="stretch"):
            for name in names:
                method = METHODS[name]
                st.markdown(f"**{plain(method.title)}** · {plain(method.kind)} · {plain(method.paper)}")
                st.caption(plain(method.what))
                _presets(method)
                parameters = {s.name: controls.pick(s, key=f"{name}_{s.name}") for s in method.settings}
                st.caption(plain(method.invariance(parameters)))
                chosen.append({"name": name, "parameters": parameters})
        for note in evaluate.scale_notes(chosen):
            st.caption(plain(note))
    others = (method for name, method in METHODS.items() if name not in names)
    links.release(*(f"{method.name}_{setting.name}" for method in others for setting in method.settings))
    return chosen


def _presets(method: Any) -> None:
    """Buttons that fill in whole sets of values: those of the paper, those of a library."""
    if not method.presets:
        st.caption(plain(f"It {method.without_presets}."))
    else:
        with st.container(horizontal=True):
            for preset in method.presets:
                st.button(
                    f"As in {plain(preset)}", key=f"{method.name}_as_{preset}", on_click=_fill, args=(method, preset)
                )


def _fill(method: Any, preset: str) -> None:
    for name, value in method.checked(preset=preset).items():
        st.session_state[f"{method.name}_{name}"] = value


def _tasks(dataset: Dataset, backbone: str) -> Asked:
    """Where tasks come from: drawn here, or a saved testbed."""
    saved = evaluate.testbeds(dataset)
    if not saved:
        links.release(TASKS_FROM.name, "testbeds")
        return _sampler(dataset, backbone)
    if controls.pick(TASKS_FROM) == "draw":
        links.release("testbeds")
        return _sampler(dataset, backbone)
    titles = evaluate.testbed_titles(saved)
    links.several_of(dict.fromkeys(saved, ""), "testbeds", saved[:1])
    names = st.multiselect(
        "Testbeds",
        saved,
        key="testbeds",
        format_func=titles.__getitem__,
        **controls.BY_TYPING,
        help="Saved on the page Tasks, or by 'python -m fsviz sample'. Each one becomes a run of its own; the first "
        "look is at the first.",
    )
    for name in names:
        if titles[name] != name:
            st.caption(f"{plain(titles[name])}: {plain(name)}")
    return {"testbed": (names or saved)[0], "more_testbeds": names[1:], "seed": 0}


def _sampler(dataset: Dataset, backbone: str) -> Asked:
    start = evaluate.feasible_sampler(dataset, backbone)
    split = shell.pick_split(dataset, where=st, default=start["split"])
    sampler = controls.pick_sampler(dataset, start["sampler"])
    boxes, slider = st.container(), st.container()
    rest = any(setting.name != "n_way" for setting in SAMPLERS[sampler].settings)
    more = st.popover("More of the sampler", width="stretch") if rest else st
    with boxes:
        places = controls.pairs()
        settings: dict[str, Any] = {"sampler": sampler, "split": split}
        fits = evaluate.fit(dataset, [backbone], settings)
        settings |= controls.pick_sampler_settings(
            sampler,
            len(dataset.split_class_ids(split)),
            where=lambda name: next(places) if name == "n_way" else more,
            of=(dataset, split),
            **fits.values,
        )
        settings |= controls.pick_images(sampler, places, **fits.values)
        seed = controls.pick(SEED, next(places))
        controls.say_fit(fits, settings)
    beside = str(BESIDE.default)
    if SAMPLERS[sampler].deals or "semantic" not in draw.possible_samplers(dataset):
        links.release(BESIDE.name)
    else:
        beside = controls.pick(BESIDE, slider)
    settings["n_tasks"] = controls.pick(N_TASKS.but(title="Tasks in the run"), slider)
    settings |= controls.pick_groups(dataset, more)
    return {"sampler": cast(draw.TaskSpec, settings), "seed": seed, "beside": BESIDE_SHOTS.get(beside)}


def _device() -> str:
    found = _devices()
    names = {d["device"]: d["name"] for d in found}
    device = st.selectbox(
        "Device",
        list(names),
        format_func=lambda device: names[device],
        key="device",
        help="CUDA devices are listed by name when torch sees them.",
    )
    if len(found) == 1:
        st.caption("No CUDA device is visible to torch here, so this runs on the CPU.")
    return device


def _estimate(spec: evaluate.Spec, times: int = 1) -> str:
    """How long so many testbeds would take in words, from a trial of a few tasks with each method."""
    rows = _timed(shell.load_dataset(spec["dataset"]), spec)
    total = times * sum(row["seconds"] for row in rows)
    slowest = max(rows, key=lambda row: row["seconds"])
    text = f"about **{run_panel.duration(total)}** on {plain(_device_name(spec['device']))}, from a quick trial"
    if len(rows) > 1 and slowest["seconds"] > 5:
        text += f" (the slowest, {plain(slowest['label'])}, {run_panel.duration(slowest['seconds'])})"
    return text


def _device_name(device: str) -> str:
    return next((d["name"] for d in _devices() if d["device"] == device), device)


def command(spec: evaluate.Spec) -> str:
    """The command line that runs the same."""
    words = ["python", "-m", "fsviz", "evaluate", spec["dataset"]]
    words += ["--backbone", ",".join(spec["backbones"])]
    words += ["--methods", ",".join(m["name"] for m in spec["methods"])]
    for method in spec["methods"]:
        defaults = {setting.name: setting.default for setting in METHODS[method["name"]].settings}
        for name, value in method["parameters"].items():
            if value != defaults[name]:
                words += ["--set", f"{method['name']}.{name}={value}"]
    if spec.get("testbed"):
        words += ["--testbed", spec["testbed"]]
    else:
        several = spec.get("samplers") or [spec["sampler"]]
        recipe = draw.recipe_for(
            shell.load_dataset(spec["dataset"]), **cast(dict[str, Any], several[0]), seed=spec["seed"]
        )
        beside = ("sampler", "n_shot") if len(several) > 1 else ()  # what --side-by-side says
        words += flags({name: value for name, value in recipe.said.items() if name not in beside}, draw.KNOWN)
        shots = dict.fromkeys(str(sampler["n_shot"]) for sampler in several if beside)
        words += ["--side-by-side", ",".join(shots)] if beside else []
    return shlex.join([*words, "--device", spec["device"]])


# --- the answer --------------------------------------------------------------------------------------------------


def _just_finished() -> None:
    """The run started here, once it has ended."""
    run_id = st.session_state.get("watched_run")
    if not run_id:
        return
    try:
        run = jobs.status(run_id)
    except FsvizError:
        st.session_state.pop("watched_run")
        return
    if run.active:
        return
    if run.state == "finished" and run.summary:
        best = max(run.summary["results"], key=lambda r: r["accuracy"])
        text = (
            f"Run {plain(run.id)} is finished: {plain(best['label'])} is the most accurate, "
            f"**{run_panel.accuracy(best)}** over {best['n_tasks']:,} tasks of these images."
        )
        st.success(text, icon="✅")
    else:
        ended = "has failed" if run.state == "failed" else f"was {run.state}"
        told = " What is finished is kept." if run.n_done else " None of its tasks was finished."
        told += " It can be resumed on the page Runs." if run.resumable else ""
        st.warning(f"Run {plain(run.id)} {plain(ended)}. {plain(run.error)}{plain(told)}", icon="⏸️")
    left, right = st.columns([3, 1])
    left.page_link(
        "pages/5_Runs.py",
        label="See the whole comparison on the page Runs" if run.n_done else "Go to the page Runs",
        icon="📈",
        query_params={"dataset": str(run.spec.get("dataset", ""))},
    )
    if right.button("Hide", key="hide_finished"):
        st.session_state.pop("watched_run")
        st.rerun()


def _first_look(dataset: Dataset, spec: evaluate.Spec) -> bool:
    """A real, small evaluation of the chosen methods: headline, figure, mistakes. False when it is impossible."""
    part = _task_part(spec)
    if spec.get("sampler"):
        n_tasks = _look_tasks(spec["sampler"])
        if not access.fits(n_tasks, n_tasks * draw.most_images(spec["sampler"])):
            return False
    try:
        testbed = _testbed(dataset, part)
    except FsvizError as error:
        st.error(plain(shell.in_titles(error)), icon="⚠️")
        _offer_feasible(dataset, spec)
        return False
    tasks = testbed.tasks
    if not access.fits(len(tasks), tasks.support.size + tasks.query.size):
        return False
    lines: dict[str, comparison.Line] = {}
    answers, waiting, spent = {}, [], 0.0
    for which, entry in enumerate(evaluate.entries(spec)):
        guess = evaluate.guess_seconds(dataset, entry.backbone, entry.method, entry.parameters, testbed.tasks)
        spent += guess
        if (guess > LOOK_SECONDS and len(lines)) or spent > access.limit("seconds"):
            waiting.append(entry.label)
            continue
        with st.spinner(f"{plain(entry.label)} on {len(testbed.tasks)} tasks…"):
            answer = _look(dataset, part, entry.backbone, entry.method, dict(entry.parameters))
        line = comparison.line_of(entry, answer, testbed, which=which)
        lines[line.key], answers[line.key] = line, answer
    if not lines:
        st.info("This takes longer than visitors of this shared server may ask for. Choose a faster method.", icon="⏳")
        return False
    named = comparison.named(list(lines.values()))
    table = comparison.result_table(list(lines.values()))
    top = table.loc[table["accuracy"].idxmax()]
    _headline(dataset, table, top, testbed, spec["sampler"]["n_tasks"] if spec.get("sampler") else 0)
    figure = st.container()  # filled when it is known whose answers are looked at: they have the band
    if waiting:
        st.caption(
            f"Not in this first look because they are slower: {', '.join(map(plain, waiting))}. The run has them."
        )
    st.subheader("What gets confused", anchor=False)
    whose = _pick_whose(named, str(top["name"]))
    with figure:
        _figure(named, table, testbed, whose)
    answer = answers[named[whose].key]
    mistakes.show_confusions(dataset, answer, testbed.tasks, whose, key="look")
    _single_tasks(dataset, spec, answer, testbed, whose)
    return True


def _places(named: Mapping[str, comparison.Line]) -> dict[str, str]:
    """What stands in the link for each line: its method and backbone."""
    return {f"{line.method}@{line.backbone}": name for name, line in named.items()}


def _pick_whose(named: Mapping[str, comparison.Line], best: str) -> str:
    """The line whose mistakes and tasks are shown: the best one, or the one chosen here or in the figure."""
    names = _places(named)
    default = next(key for key, name in names.items() if name == best)
    return names[controls.pick(WHOSE.but(choices=names, default=default))]


def _point_clicked(places: Mapping[str, str]) -> None:
    """A point of the figure of accuracies chooses whose mistakes and tasks are shown."""
    points = st.session_state["look_bars"].selection.points
    if points and points[0].get("y") in places:
        st.session_state[WHOSE.name] = places[points[0]["y"]]


def _curve_clicked(places: Mapping[str, str], values: np.ndarray) -> None:
    """A single task of the figure is the one that is shown below; a point of a line chooses whose answers are shown,
    and the task whose measure is nearest."""
    points = st.session_state["look_curves"].selection.points
    if not points or "x" not in points[0]:
        return
    if isinstance(task := leads.data_of("look_curves"), int):
        st.session_state[TASK.name] = str(task)
        return
    if (name := str(behind.data(points[0], 1))) in places:
        st.session_state[WHOSE.name] = places[name]
    st.session_state[TASK.name] = str(int(np.nanargmin(np.abs(values - float(points[0]["x"])))))


def _named(dataset: Dataset, spec: evaluate.Spec, testbed: Testbed, task: int) -> TaskId | None:
    """What names a task of the look in links: of a saved testbed that is looked at in part, its place in the whole."""
    with suppress(FsvizError):
        if spec.get("testbed"):
            whole = load_testbed(str(spec["testbed"]), dataset)
            at = int(evaluate.spread_evenly(len(whole.tasks), LOOK_TASKS)[task])
            return named_tasks.name_task(dataset, whole.tasks, at, whole.recipe, saved=str(spec["testbed"]))
        return named_tasks.name_task(dataset, testbed.tasks, task, testbed.recipe, spec["backbones"])
    return None


def _single_tasks(dataset: Dataset, spec: evaluate.Spec, answer: Predictions, testbed: Testbed, whose: str) -> None:
    """Every task of the look, the hardest first; the chosen one with its images and answers."""
    st.subheader("Task by task, the hardest first", anchor=False)
    tasks = testbed.tasks
    accuracy = answer.task_mean(answer.rank == 0)
    coarsity = tasks.measures.get("coarsity")
    notes = {
        i: f"{accuracy[i]:.0%} right" + ("" if coarsity is None else f", coarsity\N{NO-BREAK SPACE}{coarsity[i]:.1f}")
        for i in range(len(tasks))
    }
    order = np.argsort(accuracy, kind="stable")
    left, right = shell.columns_if_wide("single", [5, 6], gap="large")
    with left:
        task = task_list.pick_task(dataset, tasks, order, notes, testbed.name, "look_tasks")
    with right:
        st.markdown(f"**Task {task:,}**: {plain(whose)} names {accuracy[task]:.0%} of its queries rightly")
        task_list.show_task(
            dataset, tasks, task, "look_task", answer=answer, named=_named(dataset, spec, testbed, task)
        )


def _more_tasks(dataset: Dataset, testbed: Testbed, n_tasks: int) -> str:
    """What a run of so many tasks has that this look has not: narrower intervals, and perhaps other tasks."""
    told = "A run of more tasks has narrower intervals."
    if testbed.recipe.get("sampler") not in SAMPLERS or n_tasks <= len(testbed.tasks):
        return told
    median = _median_coarsity(dataset, draw.recipe_of(testbed, dataset), n_tasks)
    here = float(np.median(testbed.tasks.measures.get("coarsity", np.nan)))
    if median is None or not np.isfinite(here) or abs(median - here) < 0.02 * here:
        return told
    return (
        f"{told} Its tasks are not quite these: repeated class sets are dropped, and of {n_tasks:,} tasks the median "
        f"coarsity is {median:.1f}, here {here:.1f}. Keep repeats (More of the sampler) to have the same "
        "difficulty at any number."
    )


def _headline(dataset: Dataset, table: Any, top: Any, testbed: Testbed, n_tasks: int) -> None:
    tasks = testbed.tasks
    st.caption(
        f"First look: {len(tasks):,} tasks, {plain(tasks.setting)}, {'up to ' if (tasks.query < 0).any() else ''}"
        f"{tasks.query.shape[2]:,} queries per class. {plain(_more_tasks(dataset, testbed, n_tasks))}"
    )
    best, second, fine, coarse = shell.columns_if_wide("headline", 4, "pairs")
    run_panel.show_most_accurate(best, top)
    chance = 100 * tasks.chance
    if len(table) > 1:
        runner = table[table["name"] != top["name"]].sort_values("accuracy").iloc[-1]
        gap = top["accuracy"] - runner["accuracy"]
        second.metric(
            f"Next: {plain(runner['name'])}",
            run_panel.accuracy(runner),
            f"{runner['accuracy'] - top['accuracy']:+.1f} points" if gap >= 0.05 else "less than 0.1 points behind",
            delta_color="off",
            delta_arrow="auto" if gap >= 0.05 else "off",
        )
    else:
        second.metric("Guessing", f"{chance:.1f}%", help="One class out of the ways of a task, at random.")
    if not np.isnan(top["Q1"]):
        fine.metric(
            "Finest quarter (Q1)",
            run_panel.accuracy(top, "Q1"),
            help="The best method on the quarter of tasks with the lowest coarsity: its classes are closest.",
        )
        coarse.metric(
            "Coarsest quarter (Q4)",
            run_panel.accuracy(top, "Q4"),
            f"{run_panel.points(*comparison.fine_to_coarse(top))} from Q1",
            help="The best method on the quarter of tasks with the highest coarsity: its classes are farthest apart.",
        )
    else:
        fine.metric("Guessing", f"{chance:.1f}%", help="One class out of the ways of a task, at random.")
        coarse.metric("Tasks", f"{len(tasks):,}")


def _figure(named: Mapping[str, comparison.Line], table: Any, testbed: Testbed, whose: str) -> None:
    lines = list(named.values())
    n_tasks = len(testbed.tasks)
    window = min(max(20, n_tasks // 5), n_tasks)
    curves = comparison.curves(lines, window=window)
    if curves:
        known = measures.get(comparison.QUARTERS)
        coarsity = testbed.tasks.measures[known.name]
        points = comparison.single_tasks(named[whose])
        figure = figures.plot_accuracy_by_measure(
            curves, points, axis=known.axis, measure=known.title.lower(), height=380, banded=whose
        )
        showing.chart(
            "Accuracy against a measure",
            figure,
            key="look_curves",
            on_select=partial(_curve_clicked, {drawn(name): key for key, name in _places(named).items()}, coarsity),
            selection_mode="points",
        )
        st.caption(
            f"Rolling mean of accuracy over {window:,} of {n_tasks:,} tasks, sorted by {plain(known.axis)}"
            + f", with the 95% band of {plain(whose)} over tasks of these images; point at another line for its own. "
            + f"Behind them, single tasks of {plain(whose)}: click one, or a line, to see the task there below. "
            + plain(draw.explain(known.name, testbed.recipe))
        )
    places = {drawn(name): key for key, name in _places(named).items()}
    showing.chart(
        "Accuracy of the methods",
        figures.plot_accuracies(table["name"], table["accuracy"], table["ci95"], 100 * testbed.tasks.chance),
        key="look_bars",
        on_select=lambda: _point_clicked(places),
        selection_mode="points",
    )
    st.caption(
        f"Mean accuracy over the same {len(testbed.tasks):,} tasks; bars are 95% intervals over tasks of these images. "
        "What other images would give is a wider one: the page Runs has both. A click on a point shows that method's "
        "mistakes and tasks below."
    )


def _offer_feasible(dataset: Dataset, spec: evaluate.Spec) -> None:
    """A button that sets what does fit."""
    asked: dict[str, Any] = {name: spec.get("sampler", {}).get(name) for name in ("n_way", "n_shot", "n_query")}
    if None in asked.values():
        return
    fits: Mapping[str, Any] = evaluate.feasible_sampler(
        dataset, spec["backbones"][0], spec["sampler"]["split"], **asked
    )
    changes = {name: fits[name] for name, value in asked.items() if fits[name] != value}
    if changes:
        words = plain(shell.in_titles(", ".join(f"{name} {value}" for name, value in changes.items())))
        st.button(f"Use what fits: {words}", on_click=st.session_state.update, args=(changes,), type="primary")


# --- cached ------------------------------------------------------------------------------------------------------


def _task_part(spec: evaluate.Spec) -> dict[str, Any]:
    """The part of a spec that decides the tasks of a first look; their number in the run does not."""
    part: dict[str, Any] = {name: spec[name] for name in ("testbed", "sampler", "seed", "backbones") if name in spec}
    if "sampler" in part:
        part["sampler"] = {**part["sampler"], "n_tasks": _look_tasks(part["sampler"])}
    return part


def _look_tasks(sampler: draw.TaskSpec) -> int:
    """Tasks of a first look: fewer, but at least LEAST_TASKS, where all would hold more images than visitors may ask
    for."""
    return int(max(LEAST_TASKS, min(LOOK_TASKS, access.limit("images") / draw.most_images(sampler))))


@remember()
def _testbed(dataset: Dataset, part: dict[str, Any]) -> Testbed:
    return evaluate.look_testbed(dataset, cast(evaluate.Spec, part), LOOK_TASKS)


@remember(most=64)
def _median_coarsity(dataset: Dataset, recipe: draw.Recipe, n_tasks: int) -> float | None:
    """Median coarsity of as many tasks of a recipe, where dropped repeats change it; None elsewhere."""
    drops = any(s.name == REPEATS.name for s in SAMPLERS[recipe.sampler].settings)
    if not drops or recipe.settings.get(REPEATS.name):
        return None
    drawn = draw.draw(dataset, draw.recipe_for(dataset, **{**recipe.values, "n_tasks": n_tasks, "n_shot": 0}))
    return float(np.median(drawn.tasks.measures["coarsity"])) if "coarsity" in drawn.tasks.measures else None


@remember(most=256)
def _look(dataset: Dataset, part: dict[str, Any], backbone: str, method: str, parameters: Unchecked) -> Predictions:
    return evaluate.look(dataset, backbone, method, parameters, _testbed(dataset, part).tasks)


@remember(most=128)
def _timed(dataset: Dataset, spec: evaluate.Spec) -> list[evaluate.Timing]:
    return evaluate.estimate(spec, seconds=0.2)


@remember(most=1)
def _devices() -> list[dict[str, str]]:
    return evaluate.devices()
