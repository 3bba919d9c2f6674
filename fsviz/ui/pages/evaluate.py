"""The page Evaluate: choose tasks, backbones and methods; a first look at once, the whole in the background, which
takes the place of the first look when it is finished."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import numpy as np
import streamlit as st

from fsviz import features, jobs
from fsviz.analyses import run_comparison
from fsviz.difficulty import measures
from fsviz.errors import FsvizError
from fsviz.features.backbones import DEFAULT, title_of
from fsviz.figures import runs as figures
from fsviz.methods import METHODS
from fsviz.records import Dataset, Predictions, TaskId, Testbed
from fsviz.reports.tables import TOP5_FROM
from fsviz.sampling import SAMPLERS
from fsviz.sampling.draw import REPEATS
from fsviz.sampling.testbeds import load_testbed
from fsviz.settings import N_TASKS, SEED, RawSettings, Setting
from fsviz.settings import words as flags
from fsviz.studies import evaluate, extraction
from fsviz.tasks import draw, task_ids
from fsviz.text import drawn
from fsviz.ui.parts import (
    access,
    controls,
    drilldown,
    error_gallery,
    export,
    links,
    no_images,
    page_links,
    recorded,
    run_panel,
    shell,
    task_list,
)
from fsviz.ui.parts.caching import remember
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
    if spec is None:
        _just_finished("")
        st.info("Choose at least one method and one backbone in the sidebar.", icon="👈")
        return
    more, shots = spec.pop("more_testbeds", []), spec.pop("beside", None)
    finished, stopped = _earlier(dataset, spec)
    shown = _of_run(dataset, spec, finished) if finished is not None else None
    _just_finished(shown.run if shown else "")
    start = st.container()
    shown = shown or _first_look(dataset, spec)
    if shown is None:
        return
    _show(dataset, spec, shown)
    with start:  # filled after the answer: timing takes a moment
        wanted = [cast(evaluate.Spec, {**spec, "testbed": name}) for name in more]
        samplers = evaluate.both_samplers(spec["sampler"], shots) if shots is not None else []
        wanted += [cast(evaluate.Spec, {**spec, "sampler": sampler}) for sampler in samplers]
        if shown.run and finished is not None and all(_earlier(dataset, one)[0] for one in wanted):
            _done(finished, spec)
        elif access.may("run"):
            _start(spec, more, shots, stopped.id if stopped is not None else "")
        access.deny("run")


def _no_features(dataset: Dataset) -> None:
    """Says what is missing, and offers to make it."""
    if not dataset.has_pixels:
        no_images.stop_without(dataset)
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
def _start(spec: evaluate.Spec, more: list[str], shots: tuple[int, ...] | None, stopped: str) -> None:
    """One line: what the whole run is, how long it would take, and the button.

    stopped  a run of these settings that can be resumed, "" for none
    more   further testbeds, a run each
    shots  not None: semantic and uniform tasks in one run, with these numbers of shots (the spec's own where none)
    """
    whole = spec
    if shots is not None:
        whole = cast(evaluate.Spec, {name: value for name, value in spec.items() if name != "sampler"})
        whole["samplers"] = evaluate.both_samplers(spec["sampler"], shots)
    with st.container(border=True):
        if stopped and stopped not in st.session_state.get(run_panel.WATCHED, ()):  # those have their own place
            words, resume = st.columns([5.4, 1.4], vertical_alignment="center")
            words.markdown(plain(run_panel.stopped_in_words(jobs.status(stopped))))
            if resume.button("Resume", icon="▶️", width="stretch", key="resume"):
                access.do("run", jobs.resume, stopped)
                run_panel.watch(stopped)
                st.rerun(scope="app")
        text, button, copy = st.columns([4, 1.4, 1.4], vertical_alignment="center")
        line = text.empty()
        with copy:
            engine = run_panel.where("evaluate", "stretch")
        if button.button("Start the run", type="primary", width="stretch", key="start"):
            line.markdown("**▶️ Queued.** Drawing and freezing the tasks, then the run starts by itself…")
            run_id = access.do("run", jobs.submit, whole, engine)
            for name in more:
                access.do("run", jobs.submit, {**spec, "testbed": name}, engine)
            run_panel.watch(run_id)
            st.toast(f"Run {plain(run_id)} is on its way. You may close the browser.", icon="🚀")
            st.rerun(scope="app")
        export.recipe(command(whole))
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


def _done(run: jobs.Run, spec: evaluate.Spec) -> None:
    """One line in the place of the start: a run of these settings is finished, and the page shows it."""
    export.recipe(command(spec))
    with st.container(border=True):
        text, link, copy = st.columns([4, 1.8, 1.4], vertical_alignment="center")
        when = run_panel.when(run.ended or run.created)
        text.markdown(f"**✅ Finished {plain(when)}:** this page shows the whole run {plain(run.id)}.")
        with link:
            _link_to_runs(run)
        with copy.popover("Command", width="stretch"):
            st.code(command(spec), language="bash", wrap_lines=True)


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
                st.caption(plain(method.description))
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
    settings["n_tasks"] = controls.pick(N_TASKS.with_(title="Tasks in the run"), slider)
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


@dataclass(frozen=True)
class _Shown:
    """What the page shows: a finished run of these settings, or a first look at a few of its tasks.

    testbed  the tasks whose images are at hand: of a run, the first ones
    waiting  chosen methods that are not in it
    run      its id, "" for a first look
    """

    lines: list[run_comparison.Line]
    testbed: Testbed
    answer: Callable[[run_comparison.Line], Predictions]
    task_name: Callable[[run_comparison.Line, int], TaskId | None]
    waiting: list[str] = field(default_factory=list)
    run: str = ""


def _just_finished(shown: str) -> None:
    """Says that a run which was started here has ended, unless it is what the page shows."""
    for run_id in sorted(st.session_state.get(run_panel.WATCHED, ())):
        try:
            run = jobs.status(run_id)
        except FsvizError:
            run_panel.forget(run_id)
            continue
        if run.study != "evaluate" or run.state != "finished" or run.id == shown:
            continue
        left, middle, right = st.columns([4, 1.4, 1], vertical_alignment="center")
        left.success(f"Run {plain(run.id)} is finished. It is of other settings than those chosen now.", icon="✅")
        with middle:
            _link_to_runs(run)
        if right.button("Hide", key=f"hide_{run.id}", width="stretch"):
            run_panel.forget(run.id)
            st.rerun()


def _link_to_runs(run: jobs.Run) -> None:
    asked = {"dataset": str(run.spec.get("dataset", "")), "runs": run.id}
    st.page_link("pages/5_Runs.py", label="See the whole comparison", icon="📈", query_params=asked)


def _earlier(dataset: Dataset, spec: evaluate.Spec) -> tuple[jobs.Run | None, jobs.Run | None]:
    """The newest finished run of these settings; without one, the newest that was stopped."""
    runs = [run for run in jobs.list_runs("evaluate") if run.state == "finished" or (run.resumable and run.n_done)]
    for run in sorted(runs, key=lambda run: run.state != "finished"):
        try:
            if evaluate.same_entries(spec, run.spec, dataset):
                return (run, None) if run.state == "finished" else (None, run)
        except FsvizError:  # the first look says what is wrong with the settings
            return None, None
    return None, None


def _of_run(dataset: Dataset, spec: evaluate.Spec, run: jobs.Run) -> _Shown | None:
    """What a finished run of these settings says; None where its files are damaged."""
    which = evaluate.same_entries(spec, run.spec, dataset)
    try:
        known = {line.entry: line for line in recorded.lines_of(run)}
        lines = [known[i] for i in which]
        _, tasks = recorded.answer_of(lines[0])
    except (FsvizError, KeyError):
        return None
    part = evaluate.run_testbeds(run.spec)[evaluate.entries(run.spec)[which[0]].testbed]
    first = slice(0, recorded.MISTAKES_OF)
    return _Shown(
        lines,
        Testbed(part["testbed_name"], tasks.take(first), part["recipe"]),
        lambda line: recorded.answer_of(line)[0].take(first),
        lambda line, task: recorded.task_name(dataset, line, task),
        run=run.id,
    )


def _first_look(dataset: Dataset, spec: evaluate.Spec) -> _Shown | None:
    """A real, small evaluation of the chosen methods. None, with a sentence, when it is impossible."""
    part = _task_part(spec)
    if spec.get("sampler"):
        n_tasks = _look_tasks(spec["sampler"])
        if not access.fits(n_tasks, n_tasks * draw.most_images(spec["sampler"])):
            return None
    try:
        testbed = _testbed(dataset, part)
    except FsvizError as error:
        st.error(plain(shell.in_titles(error)), icon="⚠️")
        _offer_feasible(dataset, spec)
        return None
    tasks = testbed.tasks
    if not access.fits(len(tasks), tasks.support.size + tasks.query.size):
        return None
    lines: list[run_comparison.Line] = []
    answers, waiting, spent = {}, [], 0.0
    for which, entry in enumerate(evaluate.entries(spec)):
        guess = evaluate.guess_seconds(dataset, entry.backbone, entry.method, entry.parameters, testbed.tasks)
        spent += guess
        if (guess > LOOK_SECONDS and len(lines)) or spent > access.limit("seconds"):
            waiting.append(entry.label)
            continue
        with st.spinner(f"{plain(entry.label)} on {len(testbed.tasks)} tasks…"):
            answer = _look(dataset, part, entry.backbone, entry.method, dict(entry.parameters))
        lines.append(run_comparison.line_of(entry, answer, testbed, which=which))
        answers[lines[-1].key] = answer
    if not lines:
        st.info("This takes longer than visitors of this shared server may ask for. Choose a faster method.", icon="⏳")
        return None
    return _Shown(
        lines,
        testbed,
        lambda line: answers[line.key],
        lambda line, task: _named(dataset, spec, testbed, task),
        list(dict.fromkeys(waiting)),
    )


def _show(dataset: Dataset, spec: evaluate.Spec, shown: _Shown) -> None:
    """Headline, figures, mistakes and single tasks of a finished run or of a first look."""
    named = run_comparison.named(shown.lines)
    over = recorded.widest(shown.lines)
    table = run_comparison.with_interval(recorded.result_table(shown.lines, over=over), over)
    top = table.loc[table["accuracy"].idxmax()]
    _headline(dataset, shown, table, top, over, spec["sampler"]["n_tasks"] if spec.get("sampler") else 0)
    figure = st.container()  # filled when it is known whose answers are looked at: they have the band
    st.subheader("What gets confused", anchor=False)
    whose = _pick_whose(named, str(top["name"]))
    with figure:
        _figure(shown, table, whose, over)
    answer = shown.answer(named[whose])
    error_gallery.show_confusions(dataset, answer, shown.testbed.tasks, whose, key="look", over=over)
    _single_tasks(dataset, shown, answer, whose)


def _places(named: Mapping[str, run_comparison.Line]) -> dict[str, str]:
    """What stands in the link for each line: its method and backbone."""
    return {f"{line.method}@{line.backbone}": name for name, line in named.items()}


def _pick_whose(named: Mapping[str, run_comparison.Line], best: str) -> str:
    """The line whose mistakes and tasks are shown: the best one, or the one chosen here or in the figure."""
    names = _places(named)
    default = next(key for key, name in names.items() if name == best)
    return names[controls.pick(WHOSE.with_(choices=names, default=default))]


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
    if isinstance(task := page_links.data_of("look_curves"), int):
        st.session_state[TASK.name] = str(task)
        return
    if (name := str(drilldown.data(points[0], 1))) in places:
        st.session_state[WHOSE.name] = places[name]
    st.session_state[TASK.name] = str(int(np.nanargmin(np.abs(values - float(points[0]["x"])))))


def _named(dataset: Dataset, spec: evaluate.Spec, testbed: Testbed, task: int) -> TaskId | None:
    """What names a task of the look in links: of a saved testbed that is looked at in part, its place in the whole."""
    with suppress(FsvizError):
        if spec.get("testbed"):
            whole = load_testbed(str(spec["testbed"]), dataset)
            at = int(evaluate.spread_evenly(len(whole.tasks), LOOK_TASKS)[task])
            return task_ids.name_task(dataset, whole.tasks, at, whole.recipe, saved=str(spec["testbed"]))
        return task_ids.name_task(dataset, testbed.tasks, task, testbed.recipe, spec["backbones"])
    return None


def _single_tasks(dataset: Dataset, shown: _Shown, answer: Predictions, whose: str) -> None:
    """Every task whose images are at hand, the hardest first; the chosen one with its images and answers."""
    st.subheader("Task by task, the hardest first", anchor=False)
    testbed, line = shown.testbed, run_comparison.named(shown.lines)[whose]
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
        task_list.show_task(dataset, tasks, task, "look_task", answer=answer, named=shown.task_name(line, task))


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


def _headline(dataset: Dataset, shown: _Shown, table: Any, top: Any, over: str, n_tasks: int) -> None:
    tasks, n = shown.testbed.tasks, len(shown.lines)
    shape = (
        f"{int(top['n_tasks']):,} tasks, {plain(tasks.setting)}, {'up to ' if (tasks.query < 0).any() else ''}"
        f"{tasks.query.shape[2]:,} queries per class."
    )
    if shown.run:
        st.caption(f"Finished run {plain(shown.run)}: {shape}")
    else:
        st.caption(f"First look: {shape} {plain(_more_tasks(dataset, shown.testbed, n_tasks))}")
    if shown.waiting:
        st.info(
            f"**{', '.join(map(plain, shown.waiting))}** {'is' if len(shown.waiting) == 1 else 'are'} slower and not "
            "in this first look, so it does not say which of the chosen methods is best. The run has them all.",
            icon="⏳",
        )
    best, second, fine, coarse = shell.columns_if_wide("headline", 4, "pairs")
    run_panel.show_most_accurate(best, top, over, n, len(shown.waiting))
    chance = 100 * tasks.chance
    if n > 1:
        nearest = recorded.differences(shown.lines, over=over).iloc[0]
        runner = table[table["name"] == nearest["name"]].iloc[0]
        second.metric(
            f"Next: {plain(runner['name'])}",
            run_panel.accuracy(runner),
            f"{run_panel.points(nearest['difference'], nearest['ci95'])}, {plain(nearest['verdict'])}",
            delta_color="off",
            delta_arrow="off",
            help="Its difference to the best, task by task, with its 95% interval "
            f"{run_comparison.CI_UNITS[over]}. 'Real': chance alone would give such a difference less than 5 times in "
            "100.",
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
            f"{run_panel.points(top['fine_to_coarse'], top['fine_to_coarse_ci95'])} from Q1",
            help="The best method on the quarter of tasks with the highest coarsity: its classes are farthest apart.",
        )
    else:
        fine.metric("Guessing", f"{chance:.1f}%", help="One class out of the ways of a task, at random.")
        coarse.metric("Tasks", f"{int(top['n_tasks']):,}")


def _figure(shown: _Shown, table: Any, whose: str, over: str) -> None:
    named = run_comparison.named(shown.lines)
    testbed, n_tasks = shown.testbed, int(named[whose].done.sum())
    window = min(max(20, n_tasks // 5), n_tasks)
    curves = recorded.curves(shown.lines, window=window, over=over)
    if curves:
        known = measures.get(run_comparison.QUARTERS)
        coarsity = testbed.tasks.measures[known.name]
        points = run_comparison.single_tasks(named[whose])
        at_hand = points[2] < len(testbed.tasks)
        points = (points[0][at_hand], points[1][at_hand], points[2][at_hand])
        figure = figures.plot_accuracy_by_measure(
            curves, points, axis=known.lower_title, measure=known.lower_title, height=380, banded=whose
        )
        export.chart(
            "Accuracy against a measure",
            figure,
            key="look_curves",
            on_select=partial(_curve_clicked, {drawn(name): key for key, name in _places(named).items()}, coarsity),
            selection_mode="points",
        )
        st.caption(
            f"Rolling mean of accuracy over {window:,} of {n_tasks:,} tasks, sorted by {plain(known.lower_title)}"
            + f", with the 95% band of {plain(whose)} over {plain(over)}; point at another line for its own. "
            + f"Behind them, single tasks of {plain(whose)}: click one, or a line, to see the task there below. "
            + plain(draw.explain(known.name, testbed.recipe))
        )
    places = {drawn(name): key for key, name in _places(named).items()}
    top5 = table["top5"] if (table["n_way"] >= TOP5_FROM).any() else None
    chance = 100 * testbed.tasks.chance
    export.chart(
        "Accuracy of the methods",
        figures.plot_accuracies(table["name"], table["accuracy"], table["ci95"], chance, top5, not shown.waiting),
        key="look_bars",
        on_select=lambda: _point_clicked(places),
        selection_mode="points",
    )
    why = plain(run_comparison.why_no_curve(shown.lines))
    st.caption(
        f"{f'{why} ' if why else ''}Mean accuracy over the same {n_tasks:,} tasks; bars are 95% intervals "
        f"{run_comparison.CI_UNITS[over]}. The page Runs has the others. A click on a point shows that method's "
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
def _look(dataset: Dataset, part: dict[str, Any], backbone: str, method: str, parameters: RawSettings) -> Predictions:
    return evaluate.look(dataset, backbone, method, parameters, _testbed(dataset, part).tasks)


@remember(most=128)
def _timed(dataset: Dataset, spec: evaluate.Spec) -> list[evaluate.Timing]:
    return evaluate.estimate(spec, seconds=0.2)


@remember(most=1)
def _devices() -> list[dict[str, str]]:
    return evaluate.devices()
