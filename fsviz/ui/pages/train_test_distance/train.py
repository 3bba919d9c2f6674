"""Training a network on the split that is shown, as a run in the background: choices, progress, what came out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from fsviz import features, jobs, training
from fsviz.analyses import transfer
from fsviz.analyses.class_splits import ClassFeatures, SplitResult
from fsviz.figures import transfer as figures
from fsviz.records import SIDES, Dataset, HeadlineNumber
from fsviz.settings import Setting, Settings
from fsviz.studies import training as study
from fsviz.studies.extraction import SKIPPED
from fsviz.tasks import fitting
from fsviz.text import code
from fsviz.ui.pages.train_test_distance import accuracy_cost, settings
from fsviz.ui.parts import access, export, run_panel, shell
from fsviz.ui.parts.caching import cache_data
from fsviz.ui.parts.controls import pick, say_fit
from fsviz.ui.parts.headline import show_number
from fsviz.ui.parts.run_panel import duration
from fsviz.ui.parts.shell import escape

TRAINED_ON = Setting(
    "trained_on",
    "On",
    "The classes it learns from. The halves leave the test classes as they are, so that only the distance changes.",
    "choice",
    "first",
    choices={
        "first": "The train side",
        "second": "The other side (mirror image)",
        "nearest": "The nearest half of the train side",
        "farthest": "The farthest half of the train side",
    },
)
# Settings that the page offers, in this order; the rest as declared.
SHOWN = ("epochs", "width", "side", "n_way", "n_shot", "n_query", "n_tasks", "order", "seed")
MATCHED_AT = 2.0  # the divergence of the matched comparison
PREFIX = "train_"  # of their keys in the link: the page has settings of the same name


def show(dataset: Dataset, classes: ClassFeatures, result: SplitResult) -> None:
    st.divider()
    st.markdown("**Train a network on this split**")
    if not dataset.has_pixels:
        st.caption(f"{escape(dataset.title)} has features but no images here, and networks are trained from pixels.")
        return
    spec = _pick_spec(dataset, classes, result)
    run = _run_of(spec)
    _offer_grid(dataset, classes, result, spec)
    if run is not None and run.state == "finished":
        _came_out(dataset, classes, run.id)
        return
    trainer = training.get(spec["method"])
    share = len(spec["split"]["train"]) / dataset.n_classes
    seconds = study.seconds(spec, round(share * (dataset.n_images or 0)))
    run_panel.offer(
        spec,
        run,
        f"**{escape(trainer.title)}** ({escape(trainer.paper)}): {escape(trainer.description)} On one core about "
        f"{duration(seconds)}, in the background; the learning curve appears here.",
        so_far=_curve,
        start="Train",
    )
    if run is not None and not run.active and run.summary:  # it was stopped: what it had learned until then
        _curve(run.summary)
    name = f"{spec['split']['name']}.json"
    with st.container(horizontal=True, vertical_alignment="center"):
        shell.command_popover(study.command(spec, name))
        st.download_button(
            "Split for the command",
            json.dumps(spec["split"], indent=1, ensure_ascii=False),
            file_name=name,
            key="train_split",
            on_click="ignore",
            icon="⬇️",
        )


def _offer_grid(dataset: Dataset, classes: ClassFeatures, result: SplitResult, spec: Settings) -> None:
    """The method at every divergence, on both sides, and matched: what the figure above is made of."""
    if result.split.requested is None or not access.can("run"):
        return
    trainer = training.get(spec["method"])
    settings = {name: spec[name] for name in trainer.settings if name != "seed"}
    n_runs = 2 * len(transfer.TARGETS) + 4
    with st.container(horizontal=True):
        every = f"Train {escape(trainer.title)} at every divergence ({n_runs} runs)"
        asked = st.button(every, icon="🗂️", key="train_grid")
        engine = run_panel.where("grid")
    if asked:
        with st.spinner("Finding the splits and queueing the runs."):
            grid = transfer.grid(
                dataset, classes, [trainer.name], seeds=[spec["seed"]], matched_at=MATCHED_AT, **settings
            )
            known = [run for run in jobs.list_runs("training") if run.active or run.state == "finished"]
            missing = [one for one in grid if not any(_is_of(one, run) for run in known)]
            for one in missing:
                access.do("run", jobs.submit, one, engine)
        targets = ", ".join(f"{target:g}" for target in transfer.TARGETS)
        there = f" {len(grid) - len(missing):,} more were there already." if len(missing) < len(grid) else ""
        st.success(
            f"{len(missing):,} runs are queued: divergences {targets} on both sides, and matched at {MATCHED_AT:g}, of "
            f"mode “stable” with λ = {transfer.PENALTY:g}.{there} They go on without this page; the page Runs can stop "
            "them.",
            icon="✅",
        )


def _is_of(spec: Settings, run: jobs.Run) -> bool:
    """Whether a run asks for this cell of a grid: the same settings, classes and recipe of its split."""
    split = run.spec.get("split")
    same = isinstance(split, Mapping) and split.get("recipe") == spec["split"]["recipe"]
    settings = {name: value for name, value in spec.items() if name != "split"}
    return same and _classes_of(split) == _classes_of(spec["split"]) and jobs.has_same_spec(settings, run.spec)


def _pick_spec(dataset: Dataset, classes: ClassFeatures, result: SplitResult) -> dict[str, Any]:
    with st.container(border=True):
        one, two, *rest = st.columns(4, vertical_alignment="bottom")
        method = pick(study.METHOD, one, key=f"{PREFIX}method")
        choices = dict(TRAINED_ON.choices)
        if result.split.scores is None:
            del choices["second"]
        which = pick(TRAINED_ON.with_(choices=choices), two)
        trainer = training.get(method)
        side = which if which in (transfer.FIRST, transfer.SECOND) else transfer.FIRST
        half = which if which in (transfer.NEAREST, transfer.FARTHEST) else ""
        split = transfer.split_to_train(dataset, classes, result, side, half)
        fits = study.fit(dataset, {"method": method, "split": split})
        slots = iter([*rest, *(slot for _ in range(2) for slot in st.columns(4, vertical_alignment="bottom"))])
        n_held = max(2, min(len(result.split.on(held)) for held in ("val", "test")))
        values: dict[str, Any] = {}
        settings = fitting.with_defaults(trainer.settings, fits)
        for name in (name for name in SHOWN if name in settings):
            setting = settings[name].with_(high=n_held) if name == "n_way" else settings[name]
            values[name] = pick(setting, next(slots), key=f"{PREFIX}{name}")
        say_fit(fits, values)
    return {
        "study": "training",
        "dataset": dataset.name,
        "method": method,
        "split": split,
        **trainer.checked(values),
    }


def _run_of(spec: Settings) -> jobs.Run | None:
    """The newest run of these settings on the same classes."""
    settings = {name: value for name, value in spec.items() if name != "split"}
    for run in jobs.list_runs("training"):
        split = run.spec.get("split")
        same = isinstance(split, Mapping) and _classes_of(split) == _classes_of(spec["split"])
        if same and jobs.has_same_spec(settings, run.spec):
            return run
    return None


def _classes_of(split: Mapping[str, Any]) -> list[set[str]]:
    return [set(split.get(side) or ()) for side in SIDES]


def _curve(summary: study.TrainingSummary) -> None:
    if summary.get("curve"):
        export.chart(
            "Learning curve", figures.plot_learning(summary["curve"], summary["best_epoch"]), key="learning_curve"
        )


def _came_out(dataset: Dataset, classes: ClassFeatures, run_id: str) -> None:
    result: study.TrainingSummary = jobs.results(run_id)
    left, right = shell.responsive_columns("trained", [2.2, 1], gap="medium")
    with left:
        _curve(result)
    with right:
        for row in result["results"]:
            number = HeadlineNumber.around(
                row["label"],
                row["label"],
                row["accuracy"],
                row["ci95_classes"],
                ci_unit="classes",
                note=f"guessing gives {result['chance']:.0f}%",
                help=f"{row['n_tasks']:,} tasks of {result['n_classes']['test']:,} test classes, 95% interval over "
                "classes.",
            )
            show_number(number)
    n = result["n_classes"]
    st.caption(
        f"{result['n_epochs']:,} epochs on {n['train']:,} train classes; kept is epoch {result['best_epoch']:,}, the "
        f"best on validation tasks ({result['val_accuracy']:.1f}%). It counts among your runs above."
    )
    if result["skipped"]:
        export.table(SKIPPED, result["skipped"], height=120)
    accuracy_cost.single_tasks(_correlations(dataset.name, classes.backbone, run_id))
    _use(dataset, result["backbone"])


@cache_data("Comparing tasks with the train classes", 32)
def _correlations(dataset: str, backbone: str, run_id: str) -> pd.DataFrame:
    classes = settings.class_features(shell.load_dataset(dataset), backbone)
    return transfer.divergence_correlations(classes, jobs.spec(run_id), jobs.chunks(run_id))


def _use(dataset: Dataset, backbone: str) -> None:
    """The trained network as a backbone: its features, then every page."""
    if backbone in features.available(dataset):
        shell.page_link("evaluate", "Evaluate methods on its features", shell.link(dataset, backbone=backbone))
        st.caption("Save the split below to draw tasks from its test classes: the network knows the train classes.")
        return
    spec = {"study": "extraction", "dataset": dataset.name, "backbone": backbone}
    runs = [run for run in jobs.list_runs("extraction") if jobs.has_same_spec(spec, run.spec)]
    run_panel.offer(
        spec,
        runs[0] if runs else None,
        "The trained network is a backbone like any other. With its features it can be chosen on every page; from a "
        "terminal: " + code(f"fsviz extract {dataset.name} --backbone {backbone}"),
        start="Extract its features",
    )
