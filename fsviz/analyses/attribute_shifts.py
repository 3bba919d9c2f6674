"""Does an attribute matter? Tasks whose queries share its values, with support images like or unlike them.

Supports are drawn with and without a shift (Basu et al. 2023, appendix D) or searched (section 5.3.2, figure 5 left,
and appendix L). Specs are those of the study `support_sets`; classes are drawn at random, whatever the sampler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from fsviz import datasets, evaluation, features
from fsviz.difficulty import attribute_gaps, shifted_tasks
from fsviz.difficulty.attribute_gaps import Attribute
from fsviz.difficulty.objectives import OBJECTIVES
from fsviz.difficulty.shifted_tasks import CuratedPair
from fsviz.errors import BadInput
from fsviz.numerics import clustered_mean, holm
from fsviz.records import PAD, Dataset, Features, Progress, Tasks, Testbed
from fsviz.settings import RawSettings, name_parts
from fsviz.studies import support_sets
from fsviz.studies.support_sets import SETS, TASK_SETTINGS, SupportSets, SupportSpec, check
from fsviz.tables import Column, Table
from fsviz.tasks import draw

Drawn = TypeVar("Drawn")
ALIKE = "_alike"  # ends the columns of the protocol that shifts all classes of a task alike


def attribute_groups(dataset: Dataset, attribute: str) -> list[str]:
    """Groups that queries can share: the values of an attribute, or its low and high third."""
    read = attribute_gaps.read_attribute(dataset, attribute)
    names = shifted_tasks.attribute_groups(read)[1]
    return [names[0], names[2]] if read.is_numeric else list(names)


def _image_class_ids(spec: SupportSpec, dataset: Dataset, table: Features) -> np.ndarray:
    """The class of every image_id (N,), PAD without features; one image stands for a group that is kept together."""
    image_class_ids = table.image_class_ids(len(dataset.image_class_ids()))
    if table.groups is not None and spec.get("keep_groups", True):
        first = np.unique(table.groups[table.image_ids], return_index=True)[1]
        image_class_ids[np.delete(table.image_ids, first)] = PAD
    return image_class_ids


def _with_enough_images(spec: SupportSpec, sample: Callable[[int], Drawn]) -> tuple[Drawn, int]:
    """Tasks with the spec's number of queries, or the largest smaller number that works, and that number.

    Few images share a value of an attribute with many. Raises the last refusal where even one query is too many.
    """
    requested = int(spec["n_query"])
    for n_query in (requested, *(n for n in (5, 3, 2) if n < requested)):
        try:
            return sample(n_query), n_query
        except BadInput:
            continue
    return sample(1), 1


# --- drawn with and without a shift ------------------------------------------------------------------------------


def curated_tasks(spec: RawSettings, attribute: str, query_group: str | None = None) -> CuratedPair:
    """Pairs of tasks that share classes and queries, without and with a shift of one attribute (appendix D)."""
    spec = check(spec)
    dataset = datasets.load(spec["dataset"])
    return _curated(spec, dataset, features.load(dataset, spec["backbone"]), attribute, query_group)


def _curated(
    spec: SupportSpec, dataset: Dataset, table: Features, attribute: str, query_group: str | None = None
) -> CuratedPair:
    sizes: dict[str, Any] = {name: spec[name] for name in ("n_way", "n_shot", "n_query", "n_tasks", "seed")}
    read = attribute_gaps.read_attribute(dataset, attribute)
    classes = dataset.split_class_ids(spec["split"])
    return shifted_tasks.sample_curated(
        read, _image_class_ids(spec, dataset, table), classes, **sizes, query_group=query_group
    )


def save_curated(spec: RawSettings, attribute: str, pair: CuratedPair, query_group: str | None = None) -> list[str]:
    """Saves a pair's tasks as two testbeds of the workspace; returns their names."""
    spec = check(spec)
    names = []
    for kind, tasks in (("without", pair.without_shift), ("with", pair.with_shift)):
        settings = {k: spec[k] for k in ("n_way", "n_shot", "n_query", "n_tasks", "seed")}
        recipe: dict[str, Any] = {k: spec[k] for k in ("dataset", "split", "backbone")} | settings
        recipe |= {"sampler": "curated", "attribute": attribute, "query_group": query_group, "shift": kind == "with"}
        parts = [spec["dataset"], spec["split"], kind, attribute, "shift", *([query_group] if query_group else [])]
        name = draw.safe_name([*parts, *name_parts(settings, TASK_SETTINGS)], recipe, "-")
        names.append(draw.save(Testbed(name, tasks, recipe), number=True)[0])
    return names


def shift_table(
    spec: RawSettings, attributes: Sequence[str] | None = None, progress: Progress | None = None
) -> pd.DataFrame:
    """Accuracy cost of a shift of each attribute: percent without and with it, on the same queries.

    Two protocols: each class of a task is shifted on its own, so that its support resembles the queries of others; and
    all classes of a task are shifted alike (columns that end in _alike).
    Where too few images share a value, fewer queries per class are drawn than requested for.
    The interval of the cost is over classes with their images: tasks share images, so a thousand tasks of twenty
    classes are twenty observations, each the mean over one class's queries. A column that has nothing to do with the
    images splits each class's images by luck, and this is how far such luck carries.
    Columns attribute, and for each protocol without_shift, with_shift, cost (percent points), ci95 and p (of the paired
    cost), n_tasks, n_classes, n_query, problem (a sentence where the images cannot give such tasks at all; numbers are
    then missing), p_holm (corrected for the number of attributes) and significant (p_holm below 5%). in_random is the
    share of the first protocol's shift that random tasks have.
    """
    spec = check(spec)
    dataset = datasets.load(spec["dataset"])
    table = features.load(dataset, spec["backbone"])
    rows: list[dict[str, Any]] = []
    names = attributes if attributes is not None else attribute_gaps.require_attributes(dataset)
    random = support_sets.draw_tasks(spec, dataset, {spec["backbone"]: table})
    for done, name in enumerate(names):
        if progress is not None:
            progress(done, len(names), name)
        read = attribute_gaps.read_attribute(dataset, name)
        row: dict[str, Any] = {"attribute": name, "in_random": np.nan}
        for suffix in ("", ALIKE):
            cost, pair = _cost_of_shift(spec, dataset, table, read, alike=bool(suffix))
            row |= {f"{column}{suffix}": value for column, value in cost.items()}
            if pair is not None and not suffix:
                usual, here = (
                    np.nanmean(attribute_gaps.measure_gap(read, tasks, by="class").gap)
                    for tasks in (random, pair.with_shift)
                )
                row["in_random"] = float(usual / here) if here > 0 else np.nan
        rows.append(row)
    costs = pd.DataFrame(rows)
    for suffix in ("", ALIKE):
        costs[f"p_holm{suffix}"] = holm(costs[f"p{suffix}"].to_numpy(dtype=float))
        costs[f"significant{suffix}"] = costs[f"p_holm{suffix}"] < 0.05
    return costs


def _cost_of_shift(
    spec: SupportSpec, dataset: Dataset, table: Features, read: Attribute, alike: bool
) -> tuple[dict[str, Any], CuratedPair | None]:
    """The cost of a shift by one protocol, and its pairs of tasks; None if the images cannot give such tasks."""
    sizes: dict[str, Any] = {name: spec[name] for name in ("n_way", "n_shot", "n_tasks", "seed")}
    images = _image_class_ids(spec, dataset, table), dataset.split_class_ids(spec["split"])
    cost: dict[str, Any] = dict.fromkeys(("without_shift", "with_shift", "cost", "ci95", "p"), np.nan)

    def sample(n_query: int) -> CuratedPair:
        return shifted_tasks.sample_curated(read, *images, n_query=n_query, alike=alike, **sizes)

    try:
        pair, n_query = _with_enough_images(spec, sample)
    except BadInput as error:
        return {**cost, "n_tasks": 0, "n_classes": 0, "n_query": 0, "problem": str(error)}, None
    same, shifted = (
        100 * evaluation.correct_queries(support_sets.classify(spec, table, tasks, dataset))
        for tasks in (pair.without_shift, pair.with_shift)
    )
    class_ids = np.broadcast_to(pair.with_shift.class_ids[:, :, None], same.shape)
    cost |= dict(zip(("cost", "ci95", "p"), clustered_mean(same - shifted, class_ids), strict=True))
    cost |= {"without_shift": same.mean(), "with_shift": shifted.mean(), "n_tasks": len(same)}
    return {**cost, "n_classes": len(np.unique(class_ids)), "n_query": n_query, "problem": ""}, pair


def describe_shifts(table: pd.DataFrame) -> str:
    """Both protocols and random tasks compared, for the attribute with the largest significant cost, as a sentence."""
    significant = table[table["significant"] & (table["cost"] > 0)]
    if not len(significant):
        return "No shift has a significant cost."
    row = significant.loc[significant["cost"].idxmax()]
    name = str(row["attribute"])
    alike = (
        f"{row[f'cost{ALIKE}']:.1f} ± {row[f'ci95{ALIKE}']:.1f} if all shift alike"
        if not row[f"problem{ALIKE}"]
        else "too few images to shift all alike"
    )
    return (
        f"{name[:1].upper()}{name[1:]} costs {row['cost']:.1f} ± {row['ci95']:.1f} points if each class shifts against "
        f"the others, {alike}; random tasks have {row['in_random']:.0%} of this shift."
    )


# --- queries of some values, then searched -----------------------------------------------------------------------


def query_values(dataset: Dataset, attribute: str) -> dict[str, int]:
    """The values that queries can be restricted to (thirds of a number), and how many images have each."""
    groups, names = shifted_tasks.attribute_groups(attribute_gaps.read_attribute(dataset, attribute))
    counts = np.bincount(groups[groups >= 0], minlength=len(names))
    return dict(zip(names, counts.tolist(), strict=True))


def restricted_sets(spec: RawSettings, progress: Progress | None = None) -> SupportSets:
    """Hard, random and easy supports, out of all images, of tasks whose queries have chosen values of an attribute.

    The spec has "attribute" and "values" (a list) in addition to the settings of the study `support_sets`. The spec of
    the result has them too, and fewer queries per class if too few images have these values.
    """
    own: SupportSpec = {"attribute": str(spec["attribute"]), "values": list(spec["values"])}
    spec = check({name: value for name, value in spec.items() if name not in own})
    dataset = datasets.load(spec["dataset"])
    attribute_gaps.require_attributes(dataset)
    table = features.load(dataset, spec["backbone"])
    read = attribute_gaps.read_attribute(dataset, own["attribute"])
    image_class_ids = _image_class_ids(spec, dataset, table)
    classes = dataset.split_class_ids(spec["split"])

    def sample(n_query: int) -> Tasks:
        shape = (spec["n_way"], spec["n_shot"], n_query, spec["n_tasks"], spec["seed"])
        return shifted_tasks.sample_restricted(read, image_class_ids, classes, *shape, own["values"])

    tasks, n_query = _with_enough_images(spec, sample)
    return support_sets.search_and_classify({**spec, "n_query": n_query, **own}, tasks, table, spec["seed"], progress)


SHARES = Table(
    "Values of the attribute",
    Column("value", "Value"),
    *(Column(name, name.capitalize(), kind="percent", interval=f"{name}_ci95") for name in ("query", *SETS)),
)


def share_rows(shares: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of `share_table`, one per value."""
    by_value: dict[str, dict[str, Any]] = {}
    for share in shares:
        row = by_value.setdefault(share["value"], {"value": share["value"]})
        row |= {share["set"]: share["share"], f"{share['set']}_ci95": share.get("ci95")}
    return list(by_value.values())


def share_table(sets: SupportSets, dataset: Dataset, attribute: str) -> pd.DataFrame:
    """The values of an attribute among support and query images: columns set, value, share and ci95 (percent).

    set is one of SETS or "query". Numbers are in thirds; images without an entry count as none. Every
    class counts once in the interval, however many tasks hold it, because its tasks share images.
    """
    groups, names = shifted_tasks.attribute_groups(attribute_gaps.read_attribute(dataset, attribute))
    sides = {name: sets.tasks[name].support for name in SETS} | {"query": sets.tasks["random"].query}
    class_ids = sets.tasks["random"].class_ids
    rows = []
    for name, image_ids in sides.items():
        for code, value in enumerate(names):
            share, half, _ = clustered_mean(100 * (groups[image_ids] == code).mean(axis=2), class_ids)
            rows.append((name, value, share, half))
    return pd.DataFrame(rows, columns=["set", "value", "share", "ci95"])


def images_with(sets: SupportSets, dataset: Dataset, attribute: str, name: str, value: str) -> np.ndarray:
    """The support images of a set, one of SETS, that have a value, those chosen most often first."""
    groups, names = shifted_tasks.attribute_groups(attribute_gaps.read_attribute(dataset, attribute))
    support = sets.tasks[name].support
    image_ids, times = np.unique(support[support != PAD], return_counts=True)
    has = groups[image_ids] == names.index(value)
    return image_ids[has][np.argsort(-times[has], kind="stable")]


def shared_values(sets: SupportSets, dataset: Dataset, attribute: str, values: Sequence[str]) -> dict[str, Any]:
    """Share of support images (percent) with one of the queries' values, per set, and what the search adds to chance.

    share and ci95 per set; hard and easy: their difference to random supports, task by task, with its ci95 over
    classes, of which there are n_classes
    """
    groups, names = shifted_tasks.attribute_groups(attribute_gaps.read_attribute(dataset, attribute))
    codes = [names.index(value) for value in values]
    has = {name: 100 * np.isin(groups[sets.tasks[name].support], codes).mean(axis=2) for name in SETS}
    class_ids = sets.tasks["random"].class_ids
    return {
        "share": {name: clustered_mean(has[name], class_ids)[0] for name in SETS},
        "ci95": {name: clustered_mean(has[name], class_ids)[1] for name in SETS},
        **{name: clustered_mean(has[name] - has["random"], class_ids)[:2] for name in OBJECTIVES},
        "n_classes": len(np.unique(class_ids)),
    }


def describe_shared(shared: Mapping[str, Any]) -> str:
    """The share of support images with the queries' values, compared with random supports, as sentences."""
    share = shared["share"]
    shares = (
        f"Support images with the same values: {share['hard']:.0f}% (hard), {share['random']:.0f}% (random), "
        f"{share['easy']:.0f}% (easy)."
    )
    avoid = shared["hard"][0] + shared["hard"][1] < 0
    seek = shared["easy"][0] - shared["easy"][1] > 0
    if avoid and seek:
        return f"{shares} Hard supports avoid these values, easy ones prefer them, as in the paper."
    if avoid or seek:
        return f"{shares} {'Hard supports avoid' if avoid else 'Easy supports prefer'} these values."
    return f"{shares} No significant difference from random supports over these {shared['n_classes']} classes."
