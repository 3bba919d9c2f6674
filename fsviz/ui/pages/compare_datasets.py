"""The page Compare datasets: datasets or splits compared measure by measure, and accuracy by support set."""

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
from fsviz.records import Dataset, Progress
from fsviz.records.class_splits import is_training_side
from fsviz.sampling import SAMPLERS
from fsviz.settings import RawSettings, Setting
from fsviz.studies import support_sets
from fsviz.tasks import draw, fitting
from fsviz.ui.parts import access, caching, controls, export, links, page_links, shell
from fsviz.ui.parts.answers import answer
from fsviz.ui.parts.image_wall import Row, Tile, task_rows
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape

AGAINST = "against"
CHART = "differences"
PREVIEW = "differences_so_far"
SECTIONS = ("All values", "Support sets")
MOST_TASKS = 5000  # per dataset, that a page waits for
FIRST_SETTINGS = ("n_way", "n_shot", "n_tasks")  # the others are in More settings
N_IMAGES = 6  # of each dataset
AGAINST_HELP = (
    "Other splits of this dataset, and other datasets by their test split. Choose a dataset to list its other splits."
)
COUNT_HELP = (
    "95% CI over classes: holds for other classes of the same kind. About one in twenty differences is outside its "
    "interval by chance."
)


def show(dataset: Dataset) -> None:
    spec = _pick(dataset)
    if spec is None:
        return
    comparison = _compute(spec)
    if comparison is None:
        return
    section = controls.pick_section("More", SECTIONS)
    if section == SECTIONS[0]:
        _all_values(comparison)
    else:
        _suite(comparison)
    st.divider()
    shell.command_popover(study.command(spec, suite=section == SECTIONS[1]))


PAGE = Page(
    slug="compare_datasets",
    label="Compare datasets",
    icon="🪞",
    group="Results",
    order=2,
    question="Is this dataset harder than another?",
    lead="The same measures on tasks of {dataset} and of another dataset or split, with the same settings.",
    explains=("accuracy", "interval", "percentile", "measures", "fastdiffsel"),
    keywords=("harder", "benchmark"),
    show=show,
)


# Datasets and settings ---------------------------------------------------------------------------------------------


def _pick(dataset: Dataset) -> study.ComparisonSpec | None:
    split = shell.pick_split(dataset)
    first = f"{dataset.name}:{split}"
    choices = _choices(dataset, first)
    links.several_of(choices, AGAINST, _default(dataset, split, choices))
    against = (
        shell.side()
        .container()
        .multiselect(
            "Compare with",
            list(choices),
            format_func=lambda name: choices.get(name, name),
            key=AGAINST,
            max_selections=study.MAX_SPLITS - 1,
            placeholder="Choose a dataset or split",
            help=AGAINST_HELP,
            **controls.BY_TYPING,
        )
    )
    if not against:
        shell.answer("Choose a dataset or split to compare with.")
        return None
    return _settings(study.dataset_splits([first, *against]))


def _choices(dataset: Dataset, first: str) -> dict[str, str]:
    """Titles of what to compare with, by name: splits of this dataset, other datasets by their test split, and all
    splits of the selected ones."""
    linked = ",".join(st.query_params.get_all(AGAINST)).split(",")
    selected = [str(text) for text in (st.session_state.get(AGAINST) or linked)]
    titles = {
        f"{dataset.name}:{s}": study.DatasetSplit(f"{dataset.name}:{s}", dataset, s).title for s in dataset.splits
    }
    for name in datasets.names():
        if name == dataset.name:
            continue
        if not any(text.partition(":")[0] == name for text in selected):
            titles[name] = shell.dataset_title(name)
            continue
        opponent = shell.load_dataset(name)
        usual = draw.default_split(opponent)
        for split in dict.fromkeys([usual, *opponent.splits]):
            is_usual = split == usual and f"{name}:{split}" not in selected
            # The same name as before it was selected: a list whose options change their names forgets the selection.
            title = shell.dataset_title(name) if is_usual else study.DatasetSplit(name, opponent, split).title
            titles[name if is_usual else f"{name}:{split}"] = title
    titles.pop(first, None)
    return titles


def _default(dataset: Dataset, split: str, choices: Mapping[str, str]) -> list[str]:
    """A split of other held-out classes of this dataset, else a dataset with features or with the same taxonomy."""
    class_ids = dataset.split_class_ids(split)
    splits = [
        f"{dataset.name}:{name}"
        for name, ids in dataset.splits.items()
        if len(ids) > 1 and not is_training_side(name) and not np.isin(ids, class_ids).any()
    ]
    is_wordnet = dataset.taxonomy is not None and study.WORDNET in set(dataset.taxonomy["parent"])
    fallback = ["demo"] if dataset.has_features or not is_wordnet else ["tiered_imagenet"]
    return [name for name in (*splits, *fallback, "demo", "tiered_imagenet") if name in choices][:1]


def _settings(sides: Sequence[study.DatasetSplit]) -> study.ComparisonSpec:
    fits = study.fit(sides, {})
    settings = _fitting_settings(sides, fitting.with_defaults(study.SETTINGS, fits))
    with shell.side():
        first = st.container()
        rare = st.expander("More settings", type="compact") if not shell.classroom() else st.container()
        places = {"backbone": shell.side("backbone"), **dict.fromkeys(FIRST_SETTINGS, first)}
        values = {name: controls.pick(setting, places.get(name, rare)) for name, setting in settings.items()}
        controls.say_fit(fits, values)
        values["n_tasks"] = _limited(values["n_tasks"])
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


def _limited(n_tasks: int) -> int:
    """As many tasks as this page computes at once, with a caption if that is fewer."""
    most = int(min(MOST_TASKS, access.limit("tasks")))
    if n_tasks > most:
        st.caption(f"Limited to {most:,} tasks per dataset here. `fsviz compare-datasets` has no limit.")
    return min(n_tasks, most)


# Answer and figures ------------------------------------------------------------------------------------------------


def _compute(spec: study.ComparisonSpec) -> study.DatasetComparison | None:
    """The comparison, drawn; semantic measures are shown first if features take longer."""
    n_images = len(spec["sides"]) * spec["n_tasks"] * draw.max_images(spec)
    if not access.within_limits(len(spec["sides"]) * spec["n_tasks"], n_images):
        return None
    names = [name.rpartition(":")[0] for name in spec["sides"]]
    request = {"dataset": names[0], "stamps": [datasets.stamp(name) for name in names], "spec": dict(spec)}
    preview = st.empty()
    if not caching.is_computed(_compare, request):
        with preview.container():
            _show_preview(caching.compute_with_progress(_compare_semantics, request, "Measuring semantic distances"))
    comparison = caching.compute_with_progress(_compare, request, "Measuring tasks")
    export.forget(PREVIEW)
    preview.empty()  # the figures are drawn after it, not in it: a container drawn again keeps what is not overwritten
    _show_answer(comparison)
    _show_figures(comparison)
    return comparison


def _compare(request: RawSettings, progress: Progress | None = None) -> study.DatasetComparison:
    return study.compare(request["spec"], progress)


def _compare_semantics(request: RawSettings, progress: Progress | None = None) -> study.DatasetComparison:
    return study.compare(request["spec"], progress, semantic_only=True)


def _show_answer(comparison: study.DatasetComparison) -> None:
    """The verdict on the first opponent, and those on the others in plain weight."""
    verdicts = [study.verdict(comparison, side.name) for side in comparison.sides[1:]]
    sentence, detail = verdicts[0]
    later = [first for first, _ in verdicts[1:]]
    more = escape(" ".join(filter(None, (detail, *later, study.describe_setting(comparison)))))
    accuracies = [number.estimate.mean / 100 for number in comparison.numbers.get(study.ACCURACY, {}).values()]
    controls.show_answer(escape(sentence), more, min(accuracies, default=0.0), comparison.spec["n_shot"])


def _show_preview(comparison: study.DatasetComparison) -> None:
    shell.answer("Semantic measures so far.", "Accuracy and the other measures follow.")
    table = study.measure_table(comparison)
    if np.isfinite(table["effect"]).any():
        figure = figures.plot_differences(table, comparison.sides[0].name)
        export.chart("Differences so far", figure, key=PREVIEW)


def _show_figures(comparison: study.DatasetComparison) -> None:
    """Differences in all measures; next to them the selected measure, and images of every dataset."""
    table = study.measure_table(comparison)
    if not np.isfinite(table["effect"]).any():
        _what_to_add(comparison)
        _images(comparison)
        return
    left, right = shell.responsive_columns("differences", [3, 2], gap="medium")
    with right:
        measure = _pick_measure(comparison)
    with left:
        figure = figures.plot_differences(table, comparison.sides[0].name, measure)
        export.chart("Differences", figure, key=CHART, sets=controls.MEASURE)
        spec = comparison.spec
        images = f", {spec['n_shot']:,}-shot, {spec['n_query']:,} queries per class" if comparison.backbone else ""
        st.caption(
            f"{spec['n_tasks']:,} {spec['n_way']:,}-way tasks per dataset{images}. Click a point to show its measure.",
            help=" ".join(map(escape, [*study.notes(comparison), COUNT_HELP])),
        )
    with right:
        _one_measure(comparison, table, measure)
        _images(comparison)


def _pick_measure(comparison: study.DatasetComparison) -> str:
    """The measure of the link or of the last click; by default the first one that most datasets have."""
    titles = {name: study.title(name, comparison.spec) for name in comparison.measures}
    most = max(titles, key=lambda name: len(comparison.numbers[name]))
    return str(controls.pick(controls.MEASURE.with_(choices=titles, default=most), label_visibility="collapsed"))


def _one_measure(comparison: study.DatasetComparison, table: pd.DataFrame, name: str) -> None:
    rows = table[(table["measure"] == name) & np.isfinite(table["mean"])]
    axis = "accuracy (%)" if name == study.ACCURACY else measures.lower_title(name)
    title = study.title(name, comparison.spec)
    figure = figures.plot_measure(rows, axis, study.direction(name))
    export.chart(f"{title} of every dataset", figure, key="one_measure")
    lacking = table[(table["measure"] == name) & ~np.isfinite(table["mean"])]
    reasons = [f"{row.side_title}: {row.why or comparison.unknown[name][row.side]}" for row in lacking.itertuples()]
    over = " or ".join(dict.fromkeys(rows["over"]))
    description = measures.get(name).description if name in measures.MEASURES else ""
    st.caption(
        f"Bar: interquartile range. Line: median. Dot: mean, 95% CI over {escape(over)}.",
        help=" ".join(map(escape, [description, *reasons])).strip() or None,
    )


def _images(comparison: study.DatasetComparison) -> None:
    """Images of every dataset, and a link to the one that was clicked."""
    if not any(side.dataset.has_pixels for side in comparison.sides):
        return
    for side in comparison.sides:
        image_ids = study.example_images(side, N_IMAGES)
        if not image_ids:
            st.caption(f"{escape(side.title)} has no images here.")
            continue
        names = side.dataset.classes["class_name"].to_numpy()[side.dataset.image_class_ids()[image_ids]]
        tiles = [Tile(i, str(name)) for i, name in zip(image_ids, names, strict=True)]
        clicked = task_rows(side.dataset, [Row(side.title, tiles)], key=f"images_{side.name}", tile_px=52)
        page_links.to_gallery(side.dataset, clicked)


def _what_to_add(comparison: study.DatasetComparison) -> None:
    """Links to extract the features that a dataset with images lacks."""
    for side in comparison.sides:
        if side.dataset.has_pixels and comparison.backbone not in features.available(side.dataset):
            shell.link_to_add_images(
                f"Extract features of {escape(side.dataset.title)}", shell.link(side.dataset, do="Extract features")
            )


def _all_values(comparison: study.DatasetComparison) -> None:
    for side in comparison.sides[1:]:
        with st.expander(f"In words: vs {escape(side.title)}"):
            st.markdown("\n".join(f"- {escape(sentence)}" for sentence in study.details(comparison, side.name)))
    export.table(study.FACTS, study.facts(comparison).drop(columns="side"))
    numbers = study.number_rows(study.measure_table(comparison))
    export.table(study.NUMBERS, numbers.drop(columns="side"), height=460)
    _what_to_add(comparison)


# The suite ---------------------------------------------------------------------------------------------------------


def _suite(comparison: study.DatasetComparison) -> None:
    specs, without = study.suite_specs(comparison.spec)
    rows = []
    for name, side_spec in specs.items():
        summary = _summary(comparison.side(name), side_spec)
        if summary is not None:
            rows.append(study.suite_row(comparison.side(name), summary))
    counts = " or ".join(f"{n:,}" for n in dict.fromkeys(row["n_tasks"] for row in rows))
    published = caching.cached_call(study.published_suite)
    export.chart("Support sets", figures.plot_suite(rows, published.to_dict("records")), key="suite")
    spec = comparison.spec
    computed = (
        f"{counts} {spec['n_way']:,}-way {spec['n_shot']:,}-shot tasks per dataset, the same queries with hard, random "
        f"and easy supports by FastDiffSel, {escape(title_of(comparison.backbone))}, 95% CI over tasks. "
    )
    st.caption(
        (computed if rows else "")
        + "Italic: published (Basu et al. 2023), also by FastDiffSel, other backbones: compare costs, not levels.",
        help="Published values are the median and the range over backbones. Tasks of Meta-Dataset have varying numbers "
        "of classes and images, those of ObjectNet, CURE-OR and ORBIT five of each.",
    )
    for name, why in without.items():
        st.caption(f"{escape(comparison.side(name).title)} is excluded: {escape(why)}")
    if rows:
        table = pd.DataFrame(rows).assign(cost=lambda t: t["random"] - t["hard"])
        export.table(study.SUITE, table)
    with st.expander("Published results"):
        export.table(study.PUBLISHED_SUITE, published)


def _summary(side: study.DatasetSplit, spec: support_sets.SupportSpec) -> support_sets.SupportSummary | None:
    """Accuracies with hard, random and easy supports."""
    try:
        sets = answer(support_sets.STUDY, spec, f"Searching supports of {escape(side.title)}")
    except FsvizError as error:
        st.caption(f"{escape(side.title)}: {escape(error)}")
        return None
    return None if sets is None else caching.cached_call(support_sets.summary, sets)
