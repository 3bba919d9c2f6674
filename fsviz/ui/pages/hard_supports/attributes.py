"""Section Attribute shift: do support and queries differ in an attribute, and what does one shift cost?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from fsviz.analyses import attribute_shifts, support_attributes
from fsviz.errors import BadInput
from fsviz.figures import search_comparison as search_figures
from fsviz.figures import support_sets as figures
from fsviz.records import Dataset, HeadlineNumber
from fsviz.settings import Setting
from fsviz.studies import support_sets as study
from fsviz.studies.support_sets import SupportSets
from fsviz.ui.pages.hard_supports import task_table, tasks
from fsviz.ui.parts import access, controls, drilldown, export, links, page_links, shell
from fsviz.ui.parts.caching import cached_call, compute_with_progress
from fsviz.ui.parts.clicks import Click
from fsviz.ui.parts.controls import pick
from fsviz.ui.parts.headline import show_numbers
from fsviz.ui.parts.image_wall import Row, Tile, task_rows
from fsviz.ui.parts.shell import escape

QUERY_ATTRIBUTE = Setting("query_attribute", "Attribute", "The attribute that restricts the queries.", "choice", "")
QUERY_VALUES = Setting("query_values", "Values", "The values that queries may have.", "text", "")
GAPS_BY = Setting(
    "gaps_by",
    "Compare support and query",
    "",
    "choice",
    "task",
    choices={"task": "all classes together", "class": "class by class"},
)
GAP_IN = Setting("gap_in", "Tasks with a shift in", "The attribute whose tasks are listed.", "choice", "")
GAPS = "gaps"
MAX_IMAGES = 48


def show(dataset: Dataset, sets: SupportSets) -> None:
    if not support_attributes.attribute_names(dataset):
        st.info(
            f"**{escape(dataset.title)} has no attributes.** Add images with a CSV that has one column per attribute "
            "(path,class,blur,style,...), numbers or words.",
            icon="🧩",
        )
        shell.link_to_add_images()
        return
    st.subheader("Attribute shift between support and queries", anchor=False)
    gaps = cached_call(
        support_attributes.gap_table, sets, dataset, pick(GAPS_BY, as_buttons=True), words="Comparing attributes"
    )
    gap_in = GAP_IN.with_(choices={"": "none", **{name: name for name in support_attributes.attribute_names(dataset)}})
    export.chart(
        "Attribute shift between support and queries",
        figures.plot_gaps(gaps),
        key=GAPS,
        sets=Click({-1: gap_in}, also={task_table.TASK.name: task_table.TASK.default}),
    )
    scales = [
        text
        for kind, text in (("share", "distribution difference from 0 to 1"), ("deviations", "shift in SD"))
        if (gaps["kind"] == kind).any()
    ]
    st.caption(
        f"Mean over {len(sets):,} tasks{'; ' if scales else ''}{' and '.join(scales)}. Hard to the right of random: "
        "the search picked shifted images without seeing attributes. Click a point to list the tasks with the largest "
        "shift.",
        help="Bars hold 95% of 200 shuffles of the attribute's values among the images of each class. "
        "Significance: p < 0.05, Holm-corrected over attributes and sets.",
    )
    _tasks_of(dataset, sets, str(links.value_of(gap_in, GAP_IN.name, dataset.name)))
    st.subheader("Cost of one attribute shift", anchor=False)
    spec = {**sets.spec, "n_tasks": int(min(len(sets), 200, access.limit("sweep")))}
    table = compute_with_progress(attribute_shifts.shift_table, spec, "Sampling tasks with and without a shift")
    if table["cost"].notna().any():
        shifted = drilldown.chart(
            "Cost of one attribute shift",
            figures.plot_shift_cost(table),
            key="shift_cost",
            name="shift_in",
            texts=table.loc[table["cost"].notna(), "attribute"].tolist(),
            about=dataset.name,
        )
        fewer = table[(table["n_query"] > 0) & (table["n_query"] < spec["n_query"])]
        n_fewer = ", ".join(f"{escape(r['attribute'])} {r['n_query']:,}" for _, r in fewer.iterrows())
        st.caption(
            f"{int(table['n_tasks'].max()):,} pairs of tasks per mark with the same queries, no search. "
            f"{escape(attribute_shifts.describe_shifts(table))} Click a point to see two tasks.",
            help="All queries of a class share one value, or the lower or upper third of a number; support images have "
            "the same value, or another. Against the others: each class has its own value, so that its support "
            "resembles queries of other classes. Alike: all classes move from one value to one other. 95% CI over "
            "classes, each counted once." + (f" Fewer queries per class: {n_fewer}." if n_fewer else ""),
        )
        if shifted:
            drilldown.heading(f"Same queries without and with a shift of {escape(shifted)}", "shift_in")
            few = {**spec, "n_query": int(table.set_index("attribute").loc[shifted, "n_query"])}
            pair = attribute_shifts.curated_tasks(few, shifted)
            _pair(dataset, pair, "shifted")
            page_links.from_task(dataset, pair.with_shift, 0, str(spec["backbone"]))
    problems = table[table["problem"] != ""]
    if len(problems):
        with st.expander(f"Too few images for a shift of {escape(', '.join(problems['attribute']))}"):
            for problem in problems["problem"]:
                st.caption(escape(shell.with_setting_titles(problem)))
    _restrict(dataset, spec, table.sort_values("cost", ascending=False)["attribute"].tolist())
    possible = table.loc[table["problem"] == "", "attribute"].tolist()
    if possible:
        _curate(dataset, spec, table.set_index("attribute"), possible)


def _tasks_of(dataset: Dataset, sets: SupportSets, attribute: str) -> None:
    """The hard tasks with the largest shift in the clicked attribute, "" for none."""
    if not attribute:
        return
    gap = support_attributes.task_gap(sets, dataset, attribute)
    order = np.argsort(-np.nan_to_num(gap, nan=-1.0), kind="stable")[: task_table.PER_PAGE]
    st.markdown(f"**Tasks with the largest shift in {escape(attribute)} (hard supports)**")
    task = task_table.show_some(dataset, sets, order, "gap_table")
    if task is not None:
        tasks.one_task(dataset, sets, task, task_table.explained(sets, dataset))


def _restrict(dataset: Dataset, spec: dict[str, Any], attributes: list[str]) -> None:
    """Searched supports for queries with chosen values of one attribute; the costliest attribute comes first."""
    st.subheader("Supports for restricted queries", anchor=False)
    left, right = st.columns([1, 3])
    with left:
        attribute = pick(QUERY_ATTRIBUTE.with_(choices={a: a for a in attributes}, default=attributes[0]))
    counts = attribute_shifts.query_values(dataset, attribute)
    most_common = max(counts, key=lambda value: counts[value])
    links.names_of(list(counts), QUERY_VALUES.name, default=[most_common], about=f"{dataset.name} {attribute}")
    values = right.multiselect(
        QUERY_VALUES.title,
        list(counts),
        key=QUERY_VALUES.name,
        placeholder="at least one value",
        **controls.BY_TYPING,
    )
    if not values:
        st.info("Choose at least one value for the queries.", icon="👆")
        return
    search = "fastdiffsel" if spec["search"] == "greedy" else spec["search"]
    requested = {**spec, "search": search, "attribute": attribute, "values": values}
    try:
        restricted = compute_with_progress(
            attribute_shifts.restricted_sets, requested, "Searching support sets for these queries"
        )
    except BadInput as error:
        st.info(escape(shell.with_setting_titles(error)), icon="🧩")
        return
    numbers = cached_call(study.summary, restricted)
    show_numbers(
        [
            HeadlineNumber.around(
                f"accuracy_{name}",
                f"Restricted queries, {name} supports",
                numbers["accuracy"][name],
                numbers["ci95"][name],
            )
            for name in study.SETS
        ],
        "restricted",
    )
    if numbers["failed"]:
        st.warning(escape(numbers["failed"]), icon="🧭")
    shares = attribute_shifts.share_table(restricted, dataset, attribute)
    selected = drilldown.chart(
        "Attribute values of the supports",
        search_figures.plot_shares(shares, values),
        key="shares",
        name="share_of",
        texts=[f"{name}: {value}" for name in study.SETS for value in shares["value"].unique()],
        about=f"{dataset.name} {attribute}",
    )
    n_query = restricted.spec["n_query"]
    shares_text = attribute_shifts.describe_shared(
        attribute_shifts.shared_values(restricted, dataset, attribute, values)
    )
    st.caption(
        f"{len(restricted):,} tasks of {spec['n_way']:,} random classes, {n_query:,} queries per class"
        + (" (no more images have these values)" if n_query < spec["n_query"] else "")
        + f", all {escape(_describe_queries(attribute, values))}. {study.SEARCH.choices[search]} chooses among all "
        f"other images without seeing the attribute. {escape(shares_text)} Click a point to see the images.",
        help="95% CI: accuracies over tasks, shares over classes. After figure 5 (left) and appendix L of the paper.",
    )
    if selected:
        name, _, value = selected.partition(": ")
        image_ids = attribute_shifts.images_with(restricted, dataset, attribute, name, value)
        drilldown.heading(
            f"{len(image_ids):,} images of {escape(name)} supports with {escape(attribute)} {escape(value)}", "share_of"
        )
        tiles = [Tile(int(i)) for i in image_ids[:MAX_IMAGES]]
        drilldown.images(dataset, [Row("", tiles, "most often chosen first" if len(tiles) else "none")], "share_images")
    own = ["--attribute", attribute, *(word for value in values for word in ("--value", value))]
    shell.command_popover(study.command({**spec, "search": search}, "restricted", own))


def _curate(dataset: Dataset, spec: dict[str, Any], table: pd.DataFrame, possible: list[str]) -> None:
    """Tasks with and without one chosen shift, to look at and to save."""
    with st.expander("Create shifted tasks"):
        columns = st.columns([2, 2, 3], vertical_alignment="bottom")
        attribute = columns[0].selectbox("Attribute", possible, key="curated_attribute")
        groups = attribute_shifts.attribute_groups(dataset, attribute)
        group = columns[1].selectbox("Queries have", ["any value", *groups], key=f"curated_group_{attribute}")
        requested = {**spec, "n_query": int(table.loc[attribute, "n_query"])}
        pair = attribute_shifts.curated_tasks(requested, attribute, None if group == "any value" else group)
        _pair(dataset, pair, "curated")
        st.caption(f"Three classes of the first of {len(pair.with_shift):,} pairs of tasks.")
        if access.can("save") and columns[2].button("Save as two testbeds", icon="💾", key="save_curated"):
            value = None if group == "any value" else group
            saved = access.do("save", attribute_shifts.save_curated, requested, attribute, pair, value)
            st.toast(f"Saved as {escape(' and '.join(saved))}", icon="💾")


def _pair(dataset: Dataset, pair: attribute_shifts.CuratedPair, key: str) -> None:
    """Three classes of the first pair of tasks, with the same and with another value in the support."""
    names = dataset.classes["class_name"].astype(str).to_numpy()
    variants = {"the same value": pair.without_shift, "another value": pair.with_shift}
    for column, (title, variant) in zip(st.columns(2, gap="large"), variants.items(), strict=True):
        with column:
            st.markdown(f"**Support with {escape(title)}**")
            rows = []
            for way, class_id in enumerate(variant.class_ids[0]):
                name, value = names[class_id], pair.group_names[pair.groups[0, way]]
                rows.append(Row(name, [Tile(int(i)) for i in variant.support[0, way]], kind="support"))
                rows.append(Row(name, [Tile(int(i)) for i in variant.query[0, way]], value, kind="query"))
            page_links.to_gallery(dataset, task_rows(dataset, rows[:6], f"{key}_{title}", tile_px=44))


def _describe_queries(attribute: str, values: Sequence[str]) -> str:
    """The common trait of all queries: "context night", or "low blur", whose thirds name their attribute already."""
    text = " or ".join(values)
    return text if all(value.endswith(f" {attribute}") for value in values) else f"{attribute} {text}"
