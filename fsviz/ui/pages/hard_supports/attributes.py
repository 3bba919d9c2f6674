"""Do support and query images look different, and what does a shift of one attribute cost?"""

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

SHARES = (
    "How much of the mix of values differs between the support and the query images of a task (0: the same mix, 1: "
    "nothing in common)."
)
NUMBERS = "The difference of the means of support and query images, in standard deviations."
QUERY_ATTRIBUTE = Setting(
    "query_attribute", "Queries are alike in", "The attribute that all queries of a task agree in.", "choice", ""
)
QUERY_VALUES = Setting(
    "query_values", "All queries have one of", "The values of that attribute that queries may have.", "text", ""
)
GAPS_BY = Setting(
    "gaps_by",
    "Compare support and query",
    "",
    "choice",
    "task",
    choices={"task": "over the whole task", "class": "class by class"},
)
GAP_IN = Setting("gap_in", "Tasks with a gap in", "The attribute whose tasks are listed.", "choice", "")
GAPS = "gaps"
MOST_SHOWN = 48


def show(dataset: Dataset, found: SupportSets) -> None:
    if not support_attributes.attribute_names(dataset):
        st.info(
            f"**{escape(dataset.title)} has no attributes.** Give a CSV with one column per attribute "
            "(path,class,blur,style,...) when you add images; numbers and words both work.",
            icon="🧩",
        )
        shell.link_to_add_images()
        return
    st.subheader("Do support and query images look different?", anchor=False)
    gaps = cached_call(
        support_attributes.gap_table, found, dataset, pick(GAPS_BY, as_buttons=True), words="Comparing attributes"
    )
    gap_in = GAP_IN.with_(choices={"": "none", **{name: name for name in support_attributes.attribute_names(dataset)}})
    export.chart(
        "Gaps between support and query",
        figures.plot_gaps(gaps),
        key=GAPS,
        sets=Click({-1: gap_in}, also={task_table.TASK.name: task_table.TASK.default}),
    )
    shares, numbers = ((gaps["kind"] == kind).any() for kind in ("share", "deviations"))
    st.caption(
        f"Mean over {len(found):,} tasks. {'Left: ' if shares and numbers else ''}{SHARES if shares else ''} "
        f"{'Right: ' if shares and numbers else ''}{NUMBERS if numbers else ''} Where hard lies to the right of "
        "random, the search chose support images that differ from the queries in that attribute, although it never "
        "saw the attributes. Tasks share images, so chance is measured: the attribute's values are dealt out anew "
        "among the images of each class 200 times, and bars show how far 95% of these shuffles stray. Filled: beyond "
        "chance (p below 5%, corrected for the number of attributes and sets by Holm's method); hollow: chance will "
        "do. Click a point to list the tasks with the largest gaps."
    )
    _tasks_of(dataset, found, str(links.value_of(gap_in, GAP_IN.name, dataset.name)))
    st.subheader("What does a shift of one attribute cost?", anchor=False)
    spec = {**found.spec, "n_tasks": int(min(len(found), 200, access.limit("sweep")))}
    table = compute_with_progress(attribute_shifts.shift_table, spec, "Drawing tasks with and without a shift")
    if table["cost"].notna().any():
        shifted = drilldown.chart(
            "What a shift of one attribute costs",
            figures.plot_shift_cost(table),
            key="shift_cost",
            name="shift_in",
            texts=table.loc[table["cost"].notna(), "attribute"].tolist(),
            about=dataset.name,
        )
        fewer = table[(table["n_query"] > 0) & (table["n_query"] < spec["n_query"])]
        asked = ", ".join(f"{escape(r['attribute'])} {r['n_query']:,}" for _, r in fewer.iterrows())
        st.caption(
            f"{int(table['n_tasks'].max()):,} pairs of tasks per attribute, without any search: all queries of a class "
            "share one value (or the lower or upper third of a number); support images are drawn from the same "
            "value or from others. Both tasks of a pair have the same queries. Tasks share images, so the 95% "
            "interval of a difference is over classes with their images: each class counts once, however many tasks "
            f"hold it ({int(table['n_classes'].max())} classes at most). Filled: a real cost (p below 5%, corrected "
            "for the number of attributes by Holm's method); hollow: chance will do."
            + (f" Fewer queries per class where images are few: {asked}." if asked else "")
            + " Click a point to see such tasks."
        )
        if shifted:
            drilldown.heading(
                f"Two tasks with the same queries, without and with a shift of {escape(shifted)}", "shift_in"
            )
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


def _tasks_of(dataset: Dataset, found: SupportSets, attribute: str) -> None:
    """The hard tasks with the largest gaps in the attribute that was clicked, "" for none."""
    if not attribute:
        return
    gap = support_attributes.task_gap(found, dataset, attribute)
    order = np.argsort(-np.nan_to_num(gap, nan=-1.0), kind="stable")[: task_table.PER_PAGE]
    st.markdown(f"**Tasks whose hard supports differ most from their queries in {escape(attribute)}**")
    task = task_table.show_some(dataset, found, order, "gap_table")
    if task is not None:
        tasks.one_task(dataset, found, task, task_table.explained(found, dataset))


def _restrict(dataset: Dataset, spec: dict[str, Any], attributes: list[str]) -> None:
    """Queries of chosen values of one attribute, then searched; the costliest attribute comes first."""
    st.subheader("Which supports does the search choose for queries of one kind?", anchor=False)
    left, right = st.columns([1, 3])
    with left:
        attribute = pick(QUERY_ATTRIBUTE.with_(choices={a: a for a in attributes}, default=attributes[0]))
    counts = attribute_shifts.query_values(dataset, attribute)
    usual = max(counts, key=lambda value: counts[value])
    links.names_of(list(counts), QUERY_VALUES.name, default=[usual], about=f"{dataset.name} {attribute}")
    values = right.multiselect(
        QUERY_VALUES.title,
        list(counts),
        key=QUERY_VALUES.name,
        placeholder="at least one value",
        **controls.BY_TYPING,
    )
    if not values:
        st.info("Choose at least one value that all queries have.", icon="👆")
        return
    search = "fastdiffsel" if spec["search"] == "greedy" else spec["search"]
    asked = {**spec, "search": search, "attribute": attribute, "values": values}
    try:
        restricted = compute_with_progress(
            attribute_shifts.restricted_sets, asked, "Searching supports for these queries"
        )
    except BadInput as error:
        st.info(escape(shell.with_setting_titles(error)), icon="🧩")
        return
    numbers = cached_call(study.summary, restricted)
    show_numbers(
        [
            HeadlineNumber.around(
                f"accuracy_{name}", f"Accuracy, {name} supports", numbers["accuracy"][name], numbers["ci95"][name]
            )
            for name in study.SETS
        ],
        "restricted",
    )
    if numbers["failed"]:
        st.warning(escape(numbers["failed"]), icon="🧭")
    shares = attribute_shifts.share_table(restricted, dataset, attribute)
    shown = drilldown.chart(
        "Attribute values of chosen supports",
        search_figures.plot_shares(shares, values),
        key="shares",
        name="share_of",
        texts=[f"{name}: {value}" for name in study.SETS for value in shares["value"].unique()],
        about=f"{dataset.name} {attribute}",
    )
    n_query = restricted.spec["n_query"]
    told = attribute_shifts.describe_shared(attribute_shifts.shared_values(restricted, dataset, attribute, values))
    st.caption(
        f"{len(restricted):,} tasks of {spec['n_way']:,} classes drawn at random, {n_query:,} queries per class"
        + (" (more images with these values there are not)" if n_query < spec["n_query"] else "")
        + f", all of them {escape(_all_of(attribute, values))}. Supports are chosen out of all other images "
        f"by {study.SEARCH.choices[search]}, which does not know the attribute. {escape(told)} 95% intervals: of "
        "accuracies over tasks of these images, of shares over classes with their images. After figure 5 (left) and "
        "appendix L of the paper. Click a point to see the images."
    )
    if shown:
        name, _, value = shown.partition(": ")
        chosen = attribute_shifts.images_with(restricted, dataset, attribute, name, value)
        drilldown.heading(
            f"{len(chosen):,} images of {escape(name)} supports with {escape(attribute)} {escape(value)}", "share_of"
        )
        tiles = [Tile(int(i)) for i in chosen[:MOST_SHOWN]]
        drilldown.images(
            dataset, [Row("", tiles, "those chosen most often first" if len(tiles) else "none")], "share_images"
        )
    own = ["--attribute", attribute, *(word for value in values for word in ("--value", value))]
    shell.command_popover(study.command({**spec, "search": search}, "restricted", own))


def _curate(dataset: Dataset, spec: dict[str, Any], table: pd.DataFrame, possible: list[str]) -> None:
    """Tasks with and without one chosen shift, to look at and to keep."""
    with st.expander("Make tasks with one chosen shift"):
        columns = st.columns([2, 2, 3], vertical_alignment="bottom")
        attribute = columns[0].selectbox("Attribute", possible, key="curated_attribute")
        groups = attribute_shifts.attribute_groups(dataset, attribute)
        group = columns[1].selectbox("Queries have", ["any one value", *groups], key=f"curated_group_{attribute}")
        wanted = {**spec, "n_query": int(table.loc[attribute, "n_query"])}
        pair = attribute_shifts.curated_tasks(wanted, attribute, None if group == "any one value" else group)
        _pair(dataset, pair, "curated")
        st.caption(f"The first three classes of the first of {len(pair.with_shift):,} pairs of tasks.")
        if access.can("save") and columns[2].button("Save both as testbeds", icon="💾", key="save_curated"):
            value = None if group == "any one value" else group
            saved = access.do("save", attribute_shifts.save_curated, wanted, attribute, pair, value)
            st.toast(f"Saved as {escape(' and '.join(saved))}", icon="💾")


def _pair(dataset: Dataset, pair: attribute_shifts.CuratedPair, key: str) -> None:
    """The first pair of tasks side by side: three classes with support that is like the queries, and that differs."""
    names = dataset.classes["class_name"].astype(str).to_numpy()
    for column, half, title in zip(
        st.columns(2, gap="large"),
        (pair.without_shift, pair.with_shift),
        ("Support is like the query", "Support differs from the query"),
    ):
        with column:
            st.markdown(f"**{title}**")
            rows = []
            for way, class_id in enumerate(half.class_ids[0]):
                name, value = names[class_id], pair.group_names[pair.groups[0, way]]
                rows.append(Row(name, [Tile(int(i)) for i in half.support[0, way]], kind="support"))
                rows.append(Row(name, [Tile(int(i)) for i in half.query[0, way]], value, kind="query"))
            page_links.to_gallery(dataset, task_rows(dataset, rows[:6], f"{key}_{title[:12]}", tile_px=44))


def _all_of(attribute: str, values: Sequence[str]) -> str:
    """What all queries are: "context night", or "low blur", whose thirds are called by their attribute already."""
    told = " or ".join(values)
    return told if all(value.endswith(f" {attribute}") for value in values) else f"{attribute} {told}"
