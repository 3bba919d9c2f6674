"""The sidebar of the page: which tasks, which search, which classifier."""

from __future__ import annotations

from typing import Any

import streamlit as st

from fsviz.records import Dataset
from fsviz.studies import support_sets as study
from fsviz.ui.pages.hard_tasks.results import PREVIEW
from fsviz.ui.parts import controls, shell


def pick(dataset: Dataset, known: list[str]) -> dict[str, Any]:
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
            spec["n_way"] = number(left, "Classes (ways)", 2, most, min(5, most), "n_way")
            spec["n_shot"] = number(right, "Support a class", 1, 50, 5, "n_shot")
            spec["n_query"] = number(left, "Queries a class", 1, 50, 10, "n_query")
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
            spec |= controls.pick_groups(dataset)
    return study.checked_spec(spec)


def _search_settings() -> dict[str, Any]:
    titles = study.CLASSIFIER.choices
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
            list(study.SEARCH.choices),
            key="search",
            bind="query-params",
            # the link holds what is shown: names that links have held before
            format_func=lambda name: "FastDiffSel" if name == "fastdiffsel" else name,
            help=study.SEARCH.help,
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
        spec["n_sweeps"] = number(st, "Sweeps", 1, 5, 1, "n_sweeps")
    else:
        spec["start"] = st.selectbox(
            "Selection weights start",
            ("ones", "random"),
            key="start",
            bind="query-params",
            format_func={"ones": "equal", "random": "random"}.get,
            help="From equal weights one step of any size picks the same images; from random ones its size matters.",
        )
        if spec["start"] == "random" or spec["search"] == "literal":
            spec["step"] = _step_slider()
        spec["n_steps"] = number(st, "Gradient steps", 1, 10, 1, "n_steps")
    spec["seed"] = number(st, "Seed", 0, 9999, 0, "seed")
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


def number(where: Any, label: str, low: int, high: int, value: int, key: str) -> int:
    """A number in the link; one that is impossible here gives way to the default."""
    have = st.session_state.get(key)
    if have is not None and not (isinstance(have, int) and low <= have <= high):
        st.session_state.pop(key)
    return int(where.number_input(label, low, high, value, key=key, bind="query-params"))
