"""The Tasks page: sliders, histograms of coarsity, balance of classes, a browser of tasks, testbeds."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
import streamlit as st

from fsviz.errors import FsvizError
from fsviz.figures import tasks as figures
from fsviz.figures import taxonomy as taxonomy_figures
from fsviz.records import PAD, Dataset, Testbed
from fsviz.sampling import testbeds
from fsviz.studies import draw
from fsviz.studies import semantic_sampling as study
from fsviz.taxonomy import DISTANCES, Dag, Distance, maps
from fsviz.ui.parts import access, cached, controls, shell
from fsviz.ui.parts.image_wall import Row, Tile, task_rows
from fsviz.ui.parts.shell import plain

HISTOGRAM = "coarsity_histogram"
N_TASKS = [100, 500, 1000, 2000, 5000, 10_000, 20_000]
N_EXAMPLES = 5
MOST_WORK = 1.7e9  # classes x ways x tasks: about five seconds on one core
MOST_ROWS = 12  # classes of a task shown with images
MIME = {"parquet": "application/vnd.apache.parquet", "csv": "text/csv", "json": "application/json"}


def show(dataset: Dataset) -> None:
    split = shell.pick_split(dataset)
    if len(dataset.split_class_ids(split)) < 3:
        st.info(
            f"Split {plain(repr(split))} has too few classes to draw different tasks from. Pick another split.",
            icon="🧩",
        )
        return
    _warm_up()
    if draw.possible_distances(dataset):
        distance, dag, backbone = controls.pick_distance(dataset)
        cached.distances(dataset, split, distance, dag, backbone)  # with its own message while it works
        _live(dataset, split, distance, dag, backbone)
    else:
        _uniform_only(dataset, split)
    access.deny("upload")
    if access.may("upload"):
        _bring_testbed(dataset, split)


@st.fragment
def _live(dataset: Dataset, split: str, distance: str, dag: str, backbone: str | None) -> None:
    """Everything that follows the sliders: they rerun this part of the page only."""
    try:
        _show_live(dataset, split, distance, dag, backbone)
    except FsvizError as error:
        st.error(plain(str(error)), icon="⚠️")


@st.fragment
def _uniform_only(dataset: Dataset, split: str) -> None:
    """Without a taxonomy and features nothing is known of closeness; tasks can still be drawn uniformly and kept."""
    st.info(
        f"**{plain(dataset.title)} has no taxonomy** and no features, so how far apart its classes are is not known "
        "and tasks can only be drawn uniformly. Give your own copy a taxonomy or extract features on the page Add "
        "images.",
        icon="🧩",
    )
    try:
        side, charts = st.columns([1, 4], gap="medium")
        with side:
            n_way = _way_slider(len(dataset.split_class_ids(split)), "")
            setting = {"split": split, "sampler": "uniform", "n_way": n_way, **_shared_controls()}
        bed = get_testbed(dataset, **setting)
        with charts:
            _balance(dataset, split, "shortest_path", {"uniform": bed}, {"uniform": "Uniform sampling"})
            names = controls.class_names(dataset, split)
            place = dict(zip(dataset.split_class_ids(split).tolist(), names, strict=True))
            st.markdown("**The first task of the testbed**")
            _class_rows(dataset, bed.tasks.class_ids[0], [place[int(c)] for c in bed.tasks.class_ids[0]])
        _save(dataset, split, {"uniform": bed}, {"uniform": "Uniform sampling"}, {"uniform": setting})
    except FsvizError as error:
        st.error(plain(str(error)), icon="⚠️")


def _class_rows(dataset: Dataset, class_ids: np.ndarray, names: list[str], notes: list[str] | None = None) -> None:
    """A few images of each class of a task, or its names where there are none."""
    if not dataset.has_pixels:
        st.markdown(", ".join(plain(name) for name in names))
        return
    images = study.example_images(dataset, class_ids[:MOST_ROWS], 5)
    rows = [
        Row(names[i], tuple(Tile(int(image)) for image in images[i] if image != PAD), notes[i] if notes else "")
        for i in range(len(images))
    ]
    task_rows(dataset, rows, key="task_images", tile_px=72)
    if len(class_ids) > MOST_ROWS:
        st.caption(f"The first {MOST_ROWS} of {len(class_ids)} classes.")


def _show_live(dataset: Dataset, split: str, distance: str, dag: str, backbone: str | None) -> None:
    common = {"split": split, "distance": distance, "dag": dag, "backbone": backbone}
    headline = st.container()
    side, charts = st.columns([1, 4], gap="medium")
    with side:
        shared, first, second = _controls(dataset, split, distance)
    settings: dict[str, dict[str, Any]] = {
        "uniform": common | shared | {"sampler": "uniform", "n_way": first["n_way"]},
        "semantic": common | shared | first | {"sampler": "semantic"},
    }
    if second:
        settings["second"] = common | shared | second | {"sampler": "semantic"}
    for setting in settings.values():
        if _is_too_much(dataset, setting):
            return
    beds = {name: get_testbed(dataset, **setting) for name, setting in settings.items()}
    titles = {
        "uniform": "Uniform sampling",
        "semantic": f"Semantic sampling, α {first['alpha']:g}, β {first['beta']:g}",
    }
    if second:
        titles["second"] = f"Compared: α {second['alpha']:g}, β {second['beta']:g}, {second['n_way']:d}-way"
    with headline:
        _headline(dataset, beds)
    with charts:
        _histograms(beds, titles, len(dataset.split_class_ids(split)))
        _balance(dataset, split, dag, beds, titles)
    _browser(dataset, split, distance, dag, backbone, beds, titles)
    _save(dataset, split, beds, titles, settings)


def _is_too_much(dataset: Dataset, setting: dict[str, Any]) -> bool:
    """Draws that would take longer than a page should are left to a terminal."""
    n_classes = len(dataset.split_class_ids(setting["split"]))
    if n_classes * setting["n_way"] * setting["n_tasks"] <= min(MOST_WORK, access.limit("draws")):
        return False
    st.info(
        f"{setting['n_tasks']:,} tasks of {setting['n_way']:,} out of {n_classes:,} classes take too long to follow a "
        "slider. Lower the number of tasks or of classes a task, or draw them in a terminal:",
        icon="⏳",
    )
    st.code(draw.recipe_for(dataset, **setting).command(), language="bash", wrap_lines=True)
    return True


def _controls(dataset: Dataset, split: str, distance: str) -> tuple[dict, dict, dict | None]:
    kind = DISTANCES[distance]
    n_classes = len(dataset.split_class_ids(split))
    suffix = "" if distance == "jiang_conrath" else f"_{distance}"
    first = _sliders(kind, n_classes, suffix)
    shared = _shared_controls()
    second = None
    if st.toggle("Compare", key="compare", bind="query-params"):
        second = _sliders(kind, n_classes, f"{suffix}_2", " (second)", alpha=kind.alpha_most / 2)
    return shared, first, second


def _shared_controls() -> dict[str, int]:
    return {
        "n_tasks": st.select_slider("Number of tasks", N_TASKS, 5000, key="n_tasks", bind="query-params"),
        "seed": int(
            st.number_input(
                "Seed", 0, 2**31 - 1, 0, key="seed", bind="query-params", help="The same seed draws the same tasks."
            )
        ),
    }


def _way_slider(n_classes: int, suffix: str, word: str = "") -> int:
    most = min(100, n_classes)
    _forget_outside(f"n_way{suffix}", 2, most)
    return st.slider(
        f"Classes a task (n-way){word}",
        2,
        most,
        5 if n_classes >= 8 else max(2, n_classes // 2),  # with few classes, leave room for different tasks
        key=f"n_way{suffix}",
        bind="query-params",
    )


def _sliders(kind: Distance, n_classes: int, suffix: str, word: str = "", alpha: float | None = None) -> dict:
    _forget_outside(f"alpha{suffix}", 0.0, kind.alpha_most)
    return {
        "alpha": st.slider(
            f"Closeness α{word}",
            0.0,
            kind.alpha_most,
            kind.alpha if alpha is None else alpha,
            step=0.001 if kind.alpha_most <= 2 else 0.1,
            format="%.3f" if kind.alpha_most <= 2 else "%.1f",
            key=f"alpha{suffix}",
            bind="query-params",
            help="Two classes at distance D are drawn together with a weight of exp(-α D). At 0 meaning plays no role.",
        ),
        "beta": st.slider(
            f"Balance β{word}",
            0.0,
            200.0,
            100.0,
            step=1.0,
            format="%.0f",
            key=f"beta{suffix}",
            bind="query-params",
            help="A class is weighted by exp(-β occ / max occ): occ is one more than the number of tasks drawn so far "
            "that hold it, max occ the largest occ of all classes. At 0 classes with many close relatives are drawn "
            "more often.",
        ),
        "n_way": _way_slider(n_classes, suffix, word),
    }


def _forget_outside(key: str, least: float, most: float) -> None:
    """Drops a setting kept from another dataset or distance that is impossible here."""
    value = st.session_state.get(key)
    if value is not None and not least <= value <= most:
        st.session_state.pop(key)


def _headline(dataset: Dataset, beds: dict[str, Testbed]) -> None:
    uniform, semantic = beds["uniform"], beds["semantic"]
    medians = {name: float(np.median(bed.tasks.measures["coarsity"])) for name, bed in beds.items()}
    counts = study.class_counts(semantic, dataset)
    columns = st.columns(4)
    columns[0].metric(
        "Uniform median",
        _number(medians["uniform"]),
        help="Median coarsity of uniform sampling. Half of the uniformly drawn tasks have a smaller coarsity.",
    )
    columns[1].metric(
        "Semantic median",
        _number(medians["semantic"]),
        help="Median coarsity of semantic sampling with these sliders.",
        delta=f"{medians['semantic'] - medians['uniform']:+.3g} vs uniform",
        delta_color="off",
    )
    columns[2].metric(
        "Fine-grained",
        f"{study.share_finer(semantic, uniform):.0%}",
        help="Share of the semantic tasks that are as fine as the finest 5% of the uniform ones.",
        delta="5% when uniform",
        delta_color="off",
        delta_arrow="off",
    )
    columns[3].metric(
        "Tasks a class",
        f"{counts.min():,} to {counts.max():,}",
        help="From the rarest to the commonest class, in the semantic testbed as it will be saved.",
        delta=f"{len(semantic.tasks) * semantic.tasks.n_way / len(counts):,.0f} when even",
        delta_color="off",
        delta_arrow="off",
    )


def _histograms(beds: dict[str, Testbed], titles: dict[str, str], n_classes: int) -> None:
    bins = study.coarsity_bins(beds)
    panels = [
        figures.Panel(
            titles[name],
            100 * bins.counts[name] / len(beds[name].tasks),
            bins.counts[name],
            bins.medians[name],
            figures.colour_of("semantic" if name == "second" else name, second=name == "second"),
        )
        for name in beds
    ]
    st.session_state["_bins"] = bins
    st.echarts_chart(
        figures.plot_coarsity(bins.edges, panels, _chosen_bar()),
        key=HISTOGRAM,
        height=330,
        on_select=_bar_clicked,
        alt="Histograms of the coarsity of tasks: " + "; ".join(f"{p.title}, median {p.median:.1f}" for p in panels),
    )
    bed = beds["semantic"]
    ways = bed.tasks.n_way
    possible = comb(n_classes, ways)
    repeats = (
        f" Only {bed.recipe['n_distinct']:,} different sets of {ways:,} classes came up"
        f"{f' ({possible:,} exist)' if possible < 1e6 else ''}; the other tasks repeat them with other images."
        if bed.recipe["n_distinct"] < len(bed.tasks)
        else ""
    )
    st.caption(
        f"{len(bed.tasks):,} tasks each, on the same axes; dashed: the median. Twice as many are drawn and repeated "
        f"class sets dropped.{repeats} Click a bar to see such tasks below."
    )


def _bar_clicked() -> None:
    selected = st.session_state[HISTOGRAM].selection.selected
    picked = [(group["series_index"], i) for group in selected for i in group["data_indices"]]
    before = st.session_state.get("_bar")
    new = [p for p in picked if p != before] or picked
    st.session_state["_bar"] = new[-1] if new else None


def _chosen_bar() -> tuple[int, int] | None:
    return st.session_state.get("_bar")


def _forget_bar() -> None:
    st.session_state["_bar"] = None


def _balance(dataset: Dataset, split: str, dag: str, beds: dict[str, Testbed], titles: dict[str, str]) -> None:
    order = cached.class_order(dataset, split, dag) if dataset.taxonomy is not None else None
    names = controls.class_names(dataset, split)
    order = np.arange(len(names)) if order is None else order
    shares = {
        titles[name]: 100 * study.class_counts(bed, dataset)[order] / len(bed.tasks) for name, bed in beds.items()
    }
    colours = {
        titles[name]: figures.colour_of("semantic" if name == "second" else name, second=name == "second")
        for name in beds
    }
    st.markdown("**Is every class used equally often?**")
    st.echarts_chart(
        figures.plot_balance(
            [names[i] for i in order],
            shares,
            colours,
            100 * beds[list(beds)[-1]].tasks.n_way / len(names),
            dataset.taxonomy is not None,
        ),
        key="class_balance",
        height=230,
        alt="Share of tasks that hold each class",
    )
    more = (
        " Raising β flattens it; dropping repeated tasks undoes a little of that, and this shows the testbed as kept."
    )
    st.caption(
        "A flat line means that every class is in as many tasks as the others." + (more if "semantic" in beds else "")
    )


def _browser(
    dataset: Dataset,
    split: str,
    distance: str,
    dag: str,
    backbone: str | None,
    beds: dict[str, Testbed],
    titles: dict[str, str],
) -> None:
    st.subheader("What do such tasks look like?", anchor=False)
    bar = _chosen_bar()
    if bar is not None and bar[0] >= len(beds):
        bar = None
    left, middle, right = st.columns([10, 8, 13], gap="medium", vertical_alignment="bottom")
    if bar is not None:
        name = list(beds)[bar[0]]
        bed = beds[name]
        bins: study.CoarsityBins = st.session_state["_bins"]
        edges = bins.edges
        inside = np.flatnonzero(bins.bin_of(bed.tasks.measures["coarsity"]) == bar[1])
        left.markdown(
            f"**{titles[name]}**: {len(inside):,} tasks with a coarsity of {_number(edges[bar[1]])} to "
            f"{_number(edges[bar[1] + 1])}"
        )
        middle.button("Back to quantiles", on_click=_forget_bar, icon="↩️")
        examples = inside[:N_EXAMPLES]
        if not len(examples):
            st.info("No task lies in this bin with the present setting. Click another bar.", icon="🧩")
            return
    else:
        if st.session_state.get("browse") not in beds:
            st.session_state.pop("browse", None)
        with left:
            name = st.segmented_control(
                "Testbed",
                list(beds),
                default="semantic",
                required=True,
                wrap=True,
                format_func=lambda n: {"uniform": "uniform", "semantic": "semantic", "second": "second setting"}[n],
                key="browse",
            )
        bed = beds[name if name in beds else "semantic"]
        quantile = middle.slider(
            "Quantile of coarsity",
            0,
            100,
            5,
            format="%d%%",
            key="quantile",
            bind="query-params",
            help="0% is the finest task of the testbed, 50% the median, 100% the coarsest.",
        )
        examples = study.tasks_near_quantile(bed, quantile / 100, N_EXAMPLES)
    coarsity = bed.tasks.measures["coarsity"]
    with right:
        if st.session_state.get("example", 0) not in range(len(examples)):
            st.session_state["example"] = 0
        which = st.segmented_control(
            "Tasks there, by coarsity",
            range(len(examples)),
            default=0,
            required=True,
            wrap=True,
            format_func=lambda i: f"{i + 1:d} · {_number(coarsity[examples[i]])}" if i < len(examples) else "",
            key="example",
        )
    task = examples[which if which is not None and which < len(examples) else 0]
    _task(dataset, split, distance, dag, backbone, bed, int(task))


def _task(dataset: Dataset, split: str, distance: str, dag: str, backbone: str | None, bed: Testbed, task: int) -> None:
    class_ids = bed.tasks.class_ids[task]
    order = dataset.split_class_ids(split)
    positions = np.searchsorted(order, class_ids)
    names = controls.class_names(dataset, split)
    shown = [names[p] for p in positions]
    distances = cached.distances(dataset, split, distance, dag, backbone)
    graph = cached.graph(dataset, split, dag) if dataset.taxonomy is not None else None
    inside = distances[np.ix_(positions, positions)]
    left, right = st.columns([3, 2], gap="medium")
    with left:
        if dataset.has_pixels:
            _class_rows(dataset, class_ids, shown, [_mean_note(inside, i) for i in range(len(shown))])
        else:
            others = inside.sum(axis=1) / max(len(class_ids) - 1, 1)
            st.dataframe(
                {
                    "class": shown,
                    "its place in the taxonomy": [
                        " › ".join(maps.class_card(graph, distances, int(p)).path[-4:-1]) if graph else ""
                        for p in positions
                    ],
                    "mean distance to the others": [round(float(v), 2) for v in others],
                },
                hide_index=True,
                height="content" if len(class_ids) <= 12 else 420,
                column_config={
                    "class": st.column_config.TextColumn(width=190),
                    "its place in the taxonomy": st.column_config.TextColumn(width=230),
                    "mean distance to the others": st.column_config.ProgressColumn(
                        format="%.2f", min_value=0.0, max_value=float(distances.max())
                    ),
                },
            )
            st.caption(f"{plain(dataset.title)} comes without images here; its classes are named instead.")
        if not dataset.has_pixels:
            _task_tree(graph, positions)
    with right:
        st.plotly_chart(
            taxonomy_figures.plot_task_distances(inside, shown, DISTANCES[distance].title, float(distances.max()), 380),
            key="task_distances",
        )
        values = inside[np.triu_indices(len(class_ids), 1)]
        name = DISTANCES[distance].title
        st.caption(
            f"Coarsity {_number(bed.tasks.measures['coarsity'][task])} is "
            + (
                f"the square of the distance between its two classes, {values[0]:.2f} ({name})."
                if len(values) == 1
                else f"the mean of the squares of the {len(values):,} distances between its classes ({name}); they run "
                f"from {values.min():.2f} to {values.max():.2f}."
            )
        )
        if dataset.has_pixels:
            _task_tree(graph, positions)


def _task_tree(graph: Dag | None, positions: np.ndarray) -> None:
    if graph is None or len(positions) > 25:
        return
    st.markdown("**Their place in the taxonomy**, from the smallest concept above all of them:")
    st.echarts_chart(
        taxonomy_figures.plot_task_tree(maps.task_map(graph, positions)),
        key="task_tree",
        height=60 + 34 * len(positions),
        alt="Tree of concepts above the classes of the task",
    )


def _mean_note(inside: np.ndarray, row: int) -> str:
    mean = inside[row].sum() / max(len(inside) - 1, 1)
    return f"{mean:.{1 if inside.max() >= 2 else 2}f} from the others on average"


def _save(
    dataset: Dataset,
    split: str,
    beds: dict[str, Testbed],
    titles: dict[str, str],
    settings: dict[str, dict[str, Any]],
) -> None:
    st.subheader("Keep these tasks as a testbed", anchor=False)
    st.caption("A testbed is a saved, ordered list of tasks with the recipe that drew it: every method sees the same.")
    smallest = study.smallest_class(dataset, split)
    if st.session_state.get("keep") not in beds:
        st.session_state.pop("keep", None)
    which_column, shot_column, query_column, name_column = st.columns([3, 2, 2, 4], vertical_alignment="bottom")
    which = which_column.selectbox(
        "Tasks", list(beds), index=min(1, len(beds) - 1), format_func=lambda n: titles[n].split(",")[0], key="keep"
    )
    most = 0 if smallest is None else max(smallest - 1, 0)
    _forget_outside("n_shot", 0, most)
    n_shot = shot_column.number_input(
        "Support images a class",
        0,
        max(most, 0),
        min(1, most),
        key="n_shot",
        disabled=most == 0,
        help="n-shot. 0 keeps the classes only."
        + (
            " The image counts of this dataset are not known, so only classes can be drawn." if smallest is None else ""
        ),
    )
    room = max((smallest or 1) - int(n_shot), 1)
    _forget_outside("n_query", 1, room)
    n_query = query_column.number_input(
        "Query images a class", 1, room, min(10, room), key="n_query", disabled=n_shot == 0
    )
    setting = settings[which] | {"n_shot": int(n_shot), "n_query": int(n_query) if n_shot else None}
    setting |= controls.pick_groups(dataset)
    recipe = draw.recipe_for(dataset, **setting)
    suggested = recipe.name
    name = name_column.text_input("Name", placeholder=suggested, key="testbed_name").strip() or suggested
    buttons = st.columns(4)
    access.deny("save")
    words = {"type": "primary", "icon": "💾", "width": "stretch", "key": "save_testbed"}
    if access.may("save") and buttons[0].button("Save testbed", **words):
        try:
            bed = _drawn(dataset, setting, name)
            path = access.do("save", testbeds.save_testbed, bed, number=name == suggested)
            st.success(f"Saved **{plain(name)}** ({len(beds[which].tasks):,} tasks) to {plain(path)}.", icon="✅")
        except FsvizError as error:
            st.error(plain(str(error)), icon="⚠️")
    n_images = len(beds[which].tasks) * beds[which].tasks.n_way * (int(n_shot) + int(n_query))
    if n_images > access.limit("exported"):
        st.caption(f"🔒 {n_images:,} images are too many for a file that visitors of this shared server may ask for.")
    for column, kind in zip(buttons[1:] if n_images <= access.limit("exported") else (), ("parquet", "csv", "json")):
        column.download_button(
            kind.upper() if kind != "parquet" else "Parquet",
            lambda kind=kind: testbeds.export(_drawn(dataset, setting, name), dataset, kind),
            file_name=f"{name}.{kind}",
            mime=MIME[kind],
            key=f"download_{kind}",
            on_click="ignore",
            icon="⬇️",
            width="stretch",
            disabled=kind == "json" and n_shot == 0,
            help={
                "parquet": "The native format: one row a task, the recipe inside.",
                "csv": "One row an image: task, variance (the coarsity), labels, image_id, support.",
                "json": "Paths of the support and query images of each task; needs images.",
            }[kind],
        )
    st.markdown("The same tasks from a terminal:")
    st.code(recipe.command(f"{name}.parquet"), language="bash", wrap_lines=True)


def _drawn(dataset: Dataset, setting: dict[str, Any], name: str) -> Testbed:
    """The testbed with its images, to be saved or sent."""
    return draw.sample(dataset, **setting, name=name, distances=_known_distances(dataset, setting))


def _known_distances(dataset: Dataset, setting: dict[str, Any]) -> np.ndarray | None:
    if not draw.possible_distances(dataset):
        return None
    return cached.distances(dataset, setting["split"], setting["distance"], setting["dag"], setting["backbone"])


def _bring_testbed(dataset: Dataset, split: str) -> None:
    with st.expander("Bring a testbed of your own (CSV, JSON or Parquet)"):
        st.caption(
            "CSV with the columns task, variance, labels, image_id, support; JSON with Support and Query image paths; "
            "or a Parquet file saved here. Labels count through the classes of split "
            f"{plain(repr(split))}. Every row is checked."
        )
        uneven = st.checkbox("Allow tasks of different shapes (ways, shots)", key="uneven")
        file = st.file_uploader("Testbed file", ["csv", "json", "parquet"], key="testbed_file")
        if file is None:
            return
        bed = access.do("upload", testbeds.parse_testbed, file.getvalue(), file.name, dataset, split, uneven)
        images = "classes only" if not bed.tasks.has_images else "with images"
        st.success(
            f"{len(bed.tasks):,} tasks of {bed.tasks.n_way:,} classes, {images}: every row is in order.", icon="✅"
        )
        name = st.text_input("Keep it as", bed.name, key="bring_name")
        if st.button("Save in the workspace", key="save_brought", icon="💾"):
            path = access.do("save", testbeds.save_testbed, Testbed(name.strip(), bed.tasks, bed.recipe))
            st.success(f"Saved to {plain(path)}.", icon="✅")


def _number(value: float) -> str:
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


# Cached wrappers -------------------------------------------------------------------------------------------------


def get_testbed(dataset: Dataset, **setting: Any) -> Testbed:
    return _testbed(dataset, tuple(sorted(setting.items())))


@cached.remember("Drawing tasks", 24)
def _testbed(dataset: Dataset, setting: tuple[tuple[str, Any], ...]) -> Testbed:
    chosen = dict(setting)
    return draw.sample(dataset, **chosen, distances=_known_distances(dataset, chosen))


@cached.remember("Loading the samplers")
def _warm_up() -> bool:
    study.warm_up()
    return True
