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
    asked = int(spec["n_query"])
    for n_query in (asked, *(n for n in (5, 3, 2) if n < asked)):
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
    sizes = {name: spec[name] for name in ("n_way", "n_shot", "n_query", "n_tasks", "seed")}
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

    Where too few images share a value, fewer queries per class are drawn than asked for.
    The interval of the cost is over classes with their images: tasks share images, so a thousand tasks of twenty
    classes are twenty observations, each the mean over one class's queries. A column that has nothing to do with the
    images splits each class's images by luck, and this is how far such luck carries.
    Columns attribute, without_shift, with_shift, cost (percent points), ci95 and p (of the paired cost), n_tasks,
    n_classes, n_query, problem (a sentence where the images cannot give such tasks at all; numbers are then missing),
    p_holm (corrected for the number of attributes) and significant (p_holm below 5%).
    """
    spec = check(spec)
    dataset = datasets.load(spec["dataset"])
    table = features.load(dataset, spec["backbone"])
    rows = []
    names = attributes if attributes is not None else attribute_gaps.require_attributes(dataset)
    for done, name in enumerate(names):
        if progress is not None:
            progress(done, len(names), name)

        def sample(n_query: int, name: str = name) -> CuratedPair:
            return _curated({**spec, "n_query": n_query}, dataset, table, name)

        try:
            pair, n_query = _with_enough_images(spec, sample)
        except BadInput as error:
            rows.append((name, *[np.nan] * 5, 0, 0, 0, str(error)))
            continue
        same, shifted = (
            100 * evaluation.correct_queries(support_sets.classify(spec, table, tasks, dataset))
            for tasks in (pair.without_shift, pair.with_shift)
        )
        class_ids = np.broadcast_to(pair.with_shift.class_ids[:, :, None], same.shape)
        cost = clustered_mean(same - shifted, class_ids)
        n_classes = len(np.unique(class_ids))
        rows.append((name, same.mean(), shifted.mean(), *cost, len(same), n_classes, n_query, ""))
    columns = ["attribute", "without_shift", "with_shift", "cost", "ci95", "p", "n_tasks", "n_classes", "n_query"]
    costs = pd.DataFrame(rows, columns=[*columns, "problem"])
    costs["p_holm"] = holm(costs["p"].to_numpy(dtype=float))
    return costs.assign(significant=costs["p_holm"] < 0.05)


# --- queries of some values, then searched -----------------------------------------------------------------------


def query_values(dataset: Dataset, attribute: str) -> dict[str, int]:
    """The values that queries can be restricted to (thirds of a number), and how many images have each."""
    groups, names = shifted_tasks.attribute_groups(attribute_gaps.read_attribute(dataset, attribute))
    counts = np.bincount(groups[groups >= 0], minlength=len(names))
    return dict(zip(names, counts.tolist(), strict=True))


def restricted_sets(spec: RawSettings, progress: Progress | None = None) -> SupportSets:
    """Hard, random and easy supports, out of all images, of tasks whose queries have chosen values of an attribute.

    The spec has "attribute" and "values" (a list) beside the settings of the study `support_sets`. That of what is
    found has them too, and fewer queries per class where too few images have these values.
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
    """Which values of an attribute support and query images have: columns set, value, share and ci95 (percent).

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
