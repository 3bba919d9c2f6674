"""Trains a network on the current split, as a run in the background: settings, progress, results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from fsviz import features, jobs, training
from fsviz.analyses import transfer
from fsviz.analyses.class_splits import ClassFeatures, SplitResult
from fsviz.analyses.frozen_reference import compared_accuracy
from fsviz.features.backbones import title_of
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
    "Trained on",
    "The classes it learns from. Near and far halves keep the test classes, so that only the distance changes.",
    "choice",
    "first",
    choices={
        "first": "Train side",
        "second": "Mirror image",
        "nearest": "Nearest half of the train side",
        "farthest": "Farthest half of the train side",
    },
)
# Settings offered on the page, in this order; the rest as declared.
OFFERED = ("epochs", "width", "side", "n_way", "n_shot", "n_query", "n_tasks", "order", "seed")
MATCHED_AT = 2.0  # the divergence of the matched comparison
PREFIX = "train_"  # of their keys in the link: the page has settings of the same name


def show(dataset: Dataset, classes: ClassFeatures, result: SplitResult) -> None:
    st.markdown("**Train a network**")
    if not dataset.has_pixels:
        st.caption(f"{escape(dataset.title)} has no images here; networks are trained from pixels.")
        return
    spec = _pick_spec(dataset, classes, result)
    run = _run_of(spec)
    if run is not None and run.state == "finished":
        _results(dataset, classes, run.id)
        _offer_grid(dataset, classes, result, spec)
        return
    trainer = training.get(spec["method"])
    share = len(spec["split"]["train"]) / dataset.n_classes
    seconds = study.seconds(spec, round(share * (dataset.n_images or 0)))
    run_panel.offer(
        spec,
        run,
        f"**{escape(trainer.title)}** ({escape(trainer.paper)}) on {len(spec['split']['train']):,} classes, about "
        f"{duration(seconds)} on one core in the background.",
        so_far=_curve,
        start="Train",
    )
    if run is not None and not run.active and run.summary:  # stopped: the curve so far
        _curve(run.summary)
    name = f"{spec['split']['name']}.json"
    with st.container(horizontal=True, vertical_alignment="center"):
        _offer_grid(dataset, classes, result, spec)
        shell.command_popover(study.command(spec, name))
        st.download_button(
            "Split file",
            json.dumps(spec["split"], indent=1, ensure_ascii=False),
            file_name=name,
            key="train_split",
            on_click="ignore",
            icon="⬇️",
        )


def _offer_grid(dataset: Dataset, classes: ClassFeatures, result: SplitResult, spec: Settings) -> None:
    """A button that trains the method at every target, on both halves, and on near and far classes."""
    if result.split.requested is None or not access.can("run"):
        return
    trainer = training.get(spec["method"])
    settings = {name: spec[name] for name in trainer.settings if name != "seed"}
    n_runs = 2 * len(transfer.TARGETS) + 4
    with st.container(horizontal=True):
        every = f"Train {escape(trainer.title)} at every target ({n_runs} runs)"
        is_clicked = st.button(every, icon="🗂️", key="train_grid")
        engine = run_panel.where("grid")
    if is_clicked:
        with st.spinner("Computing the splits and queueing the runs"):
            grid = transfer.grid(
                dataset, classes, [trainer.name], seeds=[spec["seed"]], matched_at=MATCHED_AT, **settings
            )
            runs = [run for run in jobs.list_runs("training") if run.active or run.state == "finished"]
            missing = [cell for cell in grid if not any(_is_of(cell, run) for run in runs)]
            for cell in missing:
                access.do("run", jobs.submit, cell, engine)
        targets = ", ".join(f"{target:g}" for target in transfer.TARGETS)
        existing = f" {len(grid) - len(missing):,} more exist already." if len(missing) < len(grid) else ""
        st.success(
            f"{len(missing):,} runs are queued: targets {targets} on both halves, near and far classes at "
            f"{MATCHED_AT:g}, method “stable”, λ = {transfer.PENALTY:g}.{existing} They continue without this page; "
            "cancel them on the page Runs.",
            icon="✅",
        )


def _is_of(spec: Settings, run: jobs.Run) -> bool:
    """Whether a run is this cell of a grid: the same settings, classes and recipe of its split."""
    split = run.spec.get("split")
    same = isinstance(split, Mapping) and split.get("recipe") == spec["split"]["recipe"]
    settings = {name: value for name, value in spec.items() if name != "split"}
    return same and _classes_of(split) == _classes_of(spec["split"]) and jobs.has_same_spec(settings, run.spec)


def _pick_spec(dataset: Dataset, classes: ClassFeatures, result: SplitResult) -> dict[str, Any]:
    """The spec of a training run, picked in the sidebar."""
    with shell.side():
        method = pick(study.METHOD, key=f"{PREFIX}method")
        choices = dict(TRAINED_ON.choices)
        if result.split.scores is None:
            del choices["second"]
        which = pick(TRAINED_ON.with_(choices=choices))
        trainer = training.get(method)
        side = which if which in (transfer.FIRST, transfer.SECOND) else transfer.FIRST
        half = which if which in (transfer.NEAREST, transfer.FARTHEST) else ""
        split = transfer.split_to_train(dataset, classes, result, side, half)
        fits = study.fit(dataset, {"method": method, "split": split})
        n_held_out = max(2, min(len(result.split.on(each)) for each in ("val", "test")))
        values: dict[str, Any] = {}
        settings = fitting.with_defaults(trainer.settings, fits)
        with st.expander("Training settings"):
            for name in (name for name in OFFERED if name in settings):
                setting = settings[name].with_(high=n_held_out) if name == "n_way" else settings[name]
                values[name] = pick(setting, key=f"{PREFIX}{name}")
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


def _results(dataset: Dataset, classes: ClassFeatures, run_id: str) -> None:
    """Learning curve, and accuracy on test tasks next to chance level and the frozen backbone."""
    result: study.TrainingSummary = jobs.results(run_id)
    frozen = accuracy_cost.frozen_of_run(dataset, classes.backbone, run_id)
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
                change=row["accuracy"] - float(frozen["accuracy"].iloc[0]) if len(frozen) else None,
                note=compared_accuracy(frozen, result["chance"], title_of(classes.backbone)),
                help=f"{row['n_tasks']:,} tasks of {result['n_classes']['test']:,} test classes, 95% CI over classes. "
                "Frozen: ProtoNet without training, on tasks of the same test classes.",
            )
            show_number(number)
    n = result["n_classes"]
    st.caption(
        f"{result['n_epochs']:,} epochs on {n['train']:,} train classes; saved: epoch {result['best_epoch']:,}, the "
        f"best on validation tasks ({result['val_accuracy']:.1f}%). It is one of your runs above."
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
    """Offers the trained network as a backbone."""
    if backbone in features.available(dataset):
        shell.page_link("evaluate", "Evaluate methods on its features", shell.link(dataset, backbone=backbone))
        st.caption("Save the split to sample tasks of its test classes only.")
        return
    spec = {"study": "extraction", "dataset": dataset.name, "backbone": backbone}
    runs = [run for run in jobs.list_runs("extraction") if jobs.has_same_spec(spec, run.spec)]
    run_panel.offer(
        spec,
        runs[0] if runs else None,
        "Use it as a backbone on every page. Command line: "
        + code(f"fsviz extract {dataset.name} --backbone {backbone}"),
        start="Extract features",
    )
