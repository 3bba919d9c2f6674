"""The page Compare datasets: splits compared measure by measure, and the suite of hard, random and easy supports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import streamlit as st

from fsviz import datasets, features
from fsviz.analyses import compare_datasets as study
from fsviz.difficulty import measures
from fsviz.errors import FsvizError
from fsviz.features.backbones import title_of
from fsviz.figures import compare_datasets as figures
from fsviz.records import Dataset, HeadlineNumber, Progress
from fsviz.sampling import SAMPLERS
from fsviz.settings import RawSettings, Setting
from fsviz.studies import support_sets
from fsviz.tasks import draw, fitting
from fsviz.ui.parts import access, caching, controls, export, links, shell
from fsviz.ui.parts.answers import answer
from fsviz.ui.parts.headline import show_numbers
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape

AGAINST = "against"
CHART = "differences"
SO_FAR = "differences_so_far"
SECTIONS = ("One measure", "All numbers", "Hard, random and easy supports")
MOST_TASKS = 5000  # per side, that a page waits for


def show(dataset: Dataset) -> None:
    spec = _pick(dataset)
    if spec is None:
        return
    comparison = _found(spec)
    if comparison is None:
        return
    section = controls.pick_section("Why, and what else?", SECTIONS)
    if section == SECTIONS[0]:
        _one_measure(comparison)
    elif section == SECTIONS[1]:
        _all_numbers(comparison)
    else:
        _suite(comparison)
    st.divider()
    shell.command_popover(study.command(spec, suite=section == SECTIONS[2]))


PAGE = Page(
    slug="compare_datasets",
    label="Compare datasets",
    icon="🪞",
    group="Results",
    order=2,
    question="Is this dataset harder than another?",
    lead="The same measures on tasks of {dataset} and of other datasets, with the same settings.",
    explains=("accuracy", "interval", "percentile", "measures", "fastdiffsel"),
    keywords=("harder", "benchmark"),
    show=show,
)


# What is compared --------------------------------------------------------------------------------------------------


def _pick(dataset: Dataset) -> study.ComparisonSpec | None:
    split = shell.pick_split(dataset)
    first = f"{dataset.name}:{split}"
    choices = _choices(dataset, first)
    links.several_of(choices, AGAINST, _default(dataset, split, choices))
    against = st.multiselect(
        "Compared with",
        list(choices),
        format_func=lambda name: escape(choices.get(name, name)),
        key=AGAINST,
        max_selections=study.MAX_SPLITS - 1,
        help="Other splits of this dataset, and other datasets by their split test; once one is chosen, its other "
        "splits are offered too.",
        **controls.BY_TYPING,
    )
    if not against:
        st.info("Choose what to compare with: another split, or another dataset.", icon="🪞")
        return None
    sides = study.dataset_splits([first, *against])
    return _settings(sides)


def _choices(dataset: Dataset, first: str) -> dict[str, str]:
    """Datasets and splits to compare with, by name: splits of this dataset, other datasets by their split test, and the
    other splits of those that are chosen."""
    asked = ",".join(st.query_params.get_all(AGAINST)).split(",")
    chosen = [str(text) for text in (st.session_state.get(AGAINST) or asked)]
    titles = {
        f"{dataset.name}:{s}": study.DatasetSplit(f"{dataset.name}:{s}", dataset, s).title for s in dataset.splits
    }
    for name in datasets.names():
        if name == dataset.name:
            continue
        if not any(text.partition(":")[0] == name for text in chosen):
            titles[name] = shell.dataset_title(name)
            continue
        other = shell.load_dataset(name)
        usual = draw.default_split(other)
        for split in dict.fromkeys([usual, *other.splits]):
            known = split == usual and f"{name}:{split}" not in chosen
            # called as before it was chosen: a list whose options change their names forgets what was chosen
            title = shell.dataset_title(name) if known else study.DatasetSplit(name, other, split).title
            titles[name if known else f"{name}:{split}"] = title
    titles.pop(first, None)
    return titles


def _default(dataset: Dataset, split: str, choices: Mapping[str, str]) -> list[str]:
    """Something to compare with from the start: another split, and a large benchmark where the taxonomies meet."""
    splits = [f"{dataset.name}:{other}" for other in dataset.splits if other != split]
    meets = dataset.taxonomy is not None and study.WORDNET in set(dataset.taxonomy["parent"])
    others = ["tiered_imagenet" if meets or not dataset.has_features else "demo", "demo"]
    wanted = [*splits[:1], *[name for name in others if name != dataset.name][:1]]
    return [name for name in wanted if name in choices]


def _settings(sides: Sequence[study.DatasetSplit]) -> study.ComparisonSpec:
    fits = study.fit(sides, {})
    settings = _fitting_settings(sides, fitting.with_defaults(study.SETTINGS, fits))
    with shell.side():
        places = {"backbone": shell.side("backbone")}
        values = {name: controls.pick(setting, places.get(name, st)) for name, setting in settings.items()}
        controls.say_fit(fits, values)
    values["n_tasks"] = _at_once(values["n_tasks"])
    return study.check({"sides": [side.name for side in sides], **values})


def _fitting_settings(sides: Sequence[study.DatasetSplit], settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """The settings with limits and choices that all datasets can give; no backbone if there are no features."""
    fewest = min(draw.check_n_classes(side.dataset, side.split) for side in sides)
    adjusted = {**settings, "n_way": settings["n_way"].with_(high=fewest)}
    if any(side.dataset.taxonomy is None for side in sides):
        samplers = {name: title for name, title in settings["sampler"].choices.items() if not SAMPLERS[name].needs}
        adjusted["sampler"] = settings["sampler"].with_(choices=samplers)
    backbones = dict.fromkeys(name for side in sides for name in features.available(side.dataset))
    if backbones:
        titles = {name: title_of(name) for name in backbones}
        best = study.common_backbone(sides)
        adjusted["backbone"] = settings["backbone"].with_(kind="choice", choices=titles, default=best)
    else:
        del adjusted["backbone"]
    return adjusted


def _at_once(n_tasks: int) -> int:
    """As many of these tasks as can be waited for here, and a sentence where that is not all of them."""
    most = int(min(MOST_TASKS, access.limit("tasks")))
    if n_tasks > most:
        st.caption(
            f"Of the {n_tasks:,} tasks that are asked for, {most:,} of every side are compared here. "
            "`fsviz compare-datasets` draws as many as you say."
        )
    return min(n_tasks, most)


# What came out -----------------------------------------------------------------------------------------------------


def _found(spec: study.ComparisonSpec) -> study.DatasetComparison | None:
    """The comparison; while features are measured, what is known of meaning stands there already."""
    n_images = len(spec["sides"]) * spec["n_tasks"] * draw.max_images(spec)
    if not access.within_limits(len(spec["sides"]) * spec["n_tasks"], n_images):
        return None
    names = [name.rpartition(":")[0] for name in spec["sides"]]
    asked = {"dataset": names[0], "stamps": [datasets.stamp(name) for name in names], "spec": dict(spec)}
    early = st.empty()
    if not caching.is_computed(_compare, asked):
        with early.container():
            _answer(caching.compute_with_progress(_compare_meaning, asked, "Comparing meanings"), first_look=True)
    comparison = caching.compute_with_progress(_compare, asked, "Measuring tasks")
    export.forget(SO_FAR)
    early.empty()  # the answer stands beside it, not in it: one that is filled again keeps what is not overwritten
    _answer(comparison)
    return comparison


def _compare(request: RawSettings, progress: Progress | None = None) -> study.DatasetComparison:
    return study.compare(request["spec"], progress)


def _compare_meaning(request: RawSettings, progress: Progress | None = None) -> study.DatasetComparison:
    return study.compare(request["spec"], progress, meaning_only=True)


def _answer(comparison: study.DatasetComparison, first_look: bool = False) -> None:
    first, *others = comparison.sides
    numbers: list[HeadlineNumber | None] = []
    for side in others:
        both = [(d.verdict, d.here) for d in study.differences(comparison) if d.other == side.name]
        rows, here = [verdict for verdict, _ in both], [verdict for _, verdict in both]
        known = len(rows) - rows.count("unknown")
        numbers.append(
            HeadlineNumber.worded(
                side.name,
                f"Against {side.title}",
                f"{rows.count('harder'):,} harder, {rows.count('easier'):,} easier" if known else "not comparable",
                note=f"of {known:,} measures; these very classes: {here.count('harder'):,} and {here.count('easier'):,}"
                if known
                else "no measure is known of both",
                help="By how many measures the first one is harder or easier beyond noise, so that other classes of "
                "the same kind would say so too: the 95% interval over classes leaves out 0. Then the same for these "
                "very classes and images, over tasks. One in twenty differences is beyond noise by chance.",
            )
        )
    show_numbers([*numbers, *[None] * (3 - len(numbers))], "preview" if first_look else "headline")
    for side in others:
        st.markdown(escape(study.headline(comparison, side.name)))
    table = study.measure_table(comparison)
    if all(d.verdict == "unknown" for d in study.differences(comparison)):
        return
    if first_look:
        figure = figures.plot_differences(table, first.name)
        export.chart("What parts them, so far", figure, key=SO_FAR)
        return
    picked = _picked_measure(comparison)
    export.chart(
        "What parts them",
        figures.plot_differences(table, first.name, picked),
        key=CHART,
        sets=controls.MEASURE,
    )
    spec = comparison.spec
    st.caption(
        f"{spec['n_tasks']:,} tasks per side of {spec['n_way']:,} classes"
        + (
            f", {spec['n_shot']:,} support and {spec['n_query']:,} query images per class"
            if comparison.backbone
            else ""
        )
        + f", sampler {escape(study.SAMPLED.choices[spec['sampler']])}. 95% intervals over classes: what "
        "tasks of other "
        "classes of the same kind would give. Filled: beyond that. Hollow with a dot: beyond noise for these very "
        "classes and images only. Hollow: within noise. Click a point for its measure. "
        + " ".join(map(escape, study.notes(comparison)))
    )


def _picked_measure(comparison: study.DatasetComparison) -> str:
    """The measure that the link names or that was clicked, else the first that most sides have."""
    titles = {name: study.title(name, comparison.spec) for name in comparison.measures}
    most = max(titles, key=lambda name: len(comparison.numbers[name]), default="")
    setting = controls.MEASURE.with_(choices=titles, default=most)
    return str(links.value_of(setting, setting.name)) if titles else ""


def _one_measure(comparison: study.DatasetComparison) -> None:
    if not comparison.measures:
        st.info("No measure is known of any side.", icon="🧩")
        return
    titles = {name: study.title(name, comparison.spec) for name in comparison.measures}
    most = max(titles, key=lambda name: len(comparison.numbers[name]))
    name = controls.pick(controls.MEASURE.with_(choices=titles, default=most), st.columns([2, 3])[0])
    table = study.measure_table(comparison)
    rows = table[(table["measure"] == name) & np.isfinite(table["mean"])]
    axis = "accuracy of a task (%)" if name == study.ACCURACY else measures.lower_title(name)
    figure = figures.plot_measure(rows, axis, study.direction(name))
    export.chart(f"{titles[name]} of every side", figure, key="one_measure")
    lacking = table[(table["measure"] == name) & ~np.isfinite(table["mean"])]
    st.caption(
        "Bars hold the middle half of the tasks, a stroke is their median, a point the mean with its 95% interval "
        f"over {escape(' or '.join(dict.fromkeys(rows['over'])))}. "
        + (f"{escape(measures.get(name).description)} " if name in measures.MEASURES else "")
        + " ".join(
            f"{escape(row.side_title)}: {escape(_why(comparison, name, row.side))}" for row in lacking.itertuples()
        )
    )
    _what_to_add(comparison)


def _why(comparison: study.DatasetComparison, measure: str, side: str) -> str:
    return comparison.unknown.get(measure, {}).get(side, "not known.")


def _what_to_add(comparison: study.DatasetComparison) -> None:
    """The way to features where a side has images and no features under the backbone."""
    for side in comparison.sides:
        if side.dataset.has_pixels and comparison.backbone not in features.available(side.dataset):
            shell.link_to_add_images(
                f"Extract features of {escape(side.dataset.title)}", shell.link(side.dataset, do="Extract features")
            )


def _all_numbers(comparison: study.DatasetComparison) -> None:
    facts = study.facts(comparison)
    st.markdown("**What they are**")
    export.table(study.FACTS, facts.drop(columns="side"))
    st.markdown("**Every measure of every dataset**")
    numbers = study.number_rows(study.measure_table(comparison))
    export.table(study.NUMBERS, numbers.drop(columns="side"), height=460)
    _what_to_add(comparison)


# The suite ---------------------------------------------------------------------------------------------------------


def _suite(comparison: study.DatasetComparison) -> None:
    specs, without = study.suite_specs(comparison.spec)
    rows = []
    for name, of_side in specs.items():
        summary = _searched(comparison.side(name), of_side)
        if summary is not None:
            rows.append(study.suite_row(comparison.side(name), summary))
    counts = " or ".join(f"{n:,}" for n in dict.fromkeys(row["n_tasks"] for row in rows))
    published = caching.cached_call(study.published_suite)
    export.chart("Hard, random and easy supports", figures.plot_suite(rows, published.to_dict("records")), key="suite")
    spec = comparison.spec
    st.caption(
        (
            f"Computed here (bold): {counts} uniform tasks per side of {spec['n_way']:,} classes and "
            f"{spec['n_shot']:,} support images, features of {escape(title_of(comparison.backbone))}, the same queries "
            "with hard, random and easy supports; 95% intervals over tasks of these images. "
            if rows
            else ""
        )
        + "Hollow, in italics: published by Basu et al. (2023), not computed here; the middle and the range over their "
        "backbones. Their tasks of Meta-Dataset have varying numbers of classes and images, those of ObjectNet, "
        "CURE-OR and ORBIT five of each, on other backbones: heights are not comparable with those above, what hard "
        "supports cost is. "
        + " ".join(f"{escape(comparison.side(name).title)} is left out: {escape(why)}" for name, why in without.items())
    )
    if rows:
        table = pd.DataFrame(rows).assign(cost=lambda t: t["random"] - t["hard"])
        export.table(study.SUITE, table)
    with st.expander("The published numbers"):
        export.table(study.PUBLISHED_SUITE, published)


def _searched(side: study.DatasetSplit, spec: support_sets.SupportSpec) -> support_sets.SupportSummary | None:
    """Accuracies with hard, random and easy supports."""
    try:
        sets = answer(support_sets.STUDY, spec, f"Searching supports of {escape(side.title)}")
    except FsvizError as error:
        st.caption(f"{escape(side.title)}: {escape(error)}")
        return None
    return None if sets is None else caching.cached_call(support_sets.summary, sets)
