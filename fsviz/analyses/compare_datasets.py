"""Is my data harder than other data, and why? The same measures for two or more datasets or splits side by side.

    names -> sides (each a split of a dataset) -> tasks of the same settings -> measures and accuracy -> differences

A measure is compared where it says the same of both sides:
- Distances in meaning count what lies below a concept, so those of two taxonomies, or of two splits of one, are on
  different scales: with C classes alike in size, Jiang-Conrath ends at 2 log C. Here all classes that are compared
  stand in one graph, each counting once; taxonomies that share no root cannot be joined, and are not compared.
- What is measured on features, accuracies included, is compared under one backbone that has features of both sides.
- Attributes, and the classes to train on, are those of a dataset: compared between its own splits only.

Every difference is held against two kinds of noise. Beyond the interval over tasks, it holds for these very classes and
images; beyond the wider one over classes, also for others of the same kind.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypedDict, cast

import numpy as np
import pandas as pd

from fsviz import datasets, evaluation, features, taxonomy
from fsviz.analyses import custom_task, task_measures
from fsviz.datasets.published import PAPERS, benchmark_title, published_results
from fsviz.difficulty.measures import MEASURES, Given
from fsviz.errors import BadInput, FsvizError, UnknownName
from fsviz.evaluation import Estimate
from fsviz.features.backbones import title_of
from fsviz.methods import METHODS
from fsviz.records import Dataset, Progress, Tasks
from fsviz.sampling import SAMPLER, SAMPLERS
from fsviz.settings import N_QUERY, N_SHOT, N_TASKS, N_WAY, SEED, SHAPE, RawSettings, Setting, Settings, Value, to_args
from fsviz.studies import evaluate, support_sets
from fsviz.tasks import draw, fitting
from fsviz.taxonomy import DISTANCE, DISTANCES, Dag

METHOD = custom_task.METHOD.with_(help="The method whose accuracy is compared.", advanced=True)
BACKBONE = draw.BACKBONE.with_(
    help="Whose features are compared: the one that has features of most of the datasets. Numbers of different "
    "backbones are not comparable.",
    advanced=True,
)
BY = DISTANCE.with_(choices={name: d.title for name, d in DISTANCES.items() if d.needs == "taxonomy"}, advanced=True)
# A side may be classes without images.
OF_CLASSES = {name: sampler.title for name, sampler in SAMPLERS.items() if set(sampler.needs) <= {"distances"}}
SAMPLED = SAMPLER.with_(choices=OF_CLASSES, default="uniform")
SETTINGS: dict[str, Setting] = {
    s.name: s for s in (N_WAY, N_SHOT, N_QUERY, N_TASKS.with_(default=100), SAMPLED, SEED, BY, BACKBONE, METHOD)
}
ACCURACY = "accuracy"
MAX_SPLITS = 8
MAX_NAMED = 4  # measures that a sentence names with their numbers
WORDNET = "n00001740"  # entity, the root of every taxonomy that was taken from WordNet
OTHER_DISTANCE = {"jiang_conrath": "path_length"}  # what a verdict in meaning is held against; the others: the default
_OF_ONE_DATASET = {
    "attributes": "the attributes of two datasets are different ones",
    "base": "the classes to train on of two datasets are different ones",
}


class ComparisonSpec(TypedDict, total=False):
    """A checked spec."""

    sides: list[str]
    n_way: int
    n_shot: int
    n_query: int
    n_tasks: int
    sampler: str
    seed: int
    distance: str
    backbone: str
    method: str


@dataclass(frozen=True)
class DatasetSplit:
    """A split of a dataset."""

    name: str
    dataset: Dataset
    split: str

    @property
    def title(self) -> str:
        return self.dataset.title if self.split == "all" else f"{self.dataset.title}, {self.split}"

    @property
    def class_ids(self) -> np.ndarray:
        return self.dataset.split_class_ids(self.split)


@dataclass(frozen=True)
class MeasureEstimate:
    """One measure of the tasks of one side.

    values    (T,) of every task
    here      its mean with the error over tasks: what other tasks of these very classes and images would give
    estimate  with the error over classes, or over tasks where every task holds all classes
    """

    values: np.ndarray
    here: Estimate
    estimate: Estimate
    over: str

    @property
    def quartiles(self) -> tuple[float, float, float]:
        low, middle, high = np.quantile(self.values, [0.25, 0.5, 0.75])
        return float(low), float(middle), float(high)


Verdict = Literal["harder", "easier", "noise", "unknown"]


@dataclass(frozen=True)
class MeasureDifference:
    """How the first side and another one differ in a measure: which is harder by it, and by how much.

    verdict   of the first side; "noise" where the 95% interval of the difference over classes holds 0
    here      the same over tasks: for these very classes and images
    estimate  of the first side's mean less the other's
    effect    the same in standard deviations of tasks, and `effect_ci95`; above 0 the first side is the harder one
    why       it is not known
    """

    measure: str
    first: str
    other: str
    verdict: Verdict
    estimate: Estimate | None = None
    over: str = ""
    why: str = ""
    here: Verdict = "unknown"
    effect: float = float("nan")
    effect_ci95: float = float("nan")


@dataclass(frozen=True)
class DatasetComparison:
    """What came out.

    numbers   measure -> side -> its number, where it is known
    unknown   measure -> side -> why it is not
    own       side -> coarsity (T,) on its own taxonomy, as other pages have it, where there is one
    check     side -> coarsity by another distance, which a verdict in meaning is held against
    """

    spec: ComparisonSpec
    sides: tuple[DatasetSplit, ...]
    backbone: str
    numbers: Mapping[str, Mapping[str, MeasureEstimate]]
    unknown: Mapping[str, Mapping[str, str]]
    own: Mapping[str, np.ndarray]
    check: Mapping[str, MeasureEstimate]

    @property
    def measures(self) -> list[str]:
        """What is known of at least one side, accuracy first."""
        return list(self.numbers)

    @property
    def asked(self) -> list[str]:
        """The same with what is known of none."""
        return [name for name in (ACCURACY, *MEASURES) if name in self.numbers or name in self.unknown]

    def side(self, name: str) -> DatasetSplit:
        return next(side for side in self.sides if side.name == name)


def check(spec: RawSettings) -> ComparisonSpec:
    """The spec with its defaults; unknown names and impossible values are refused."""
    for name in spec:
        if name not in {"sides", "study", *SETTINGS}:
            raise UnknownName("setting of a comparison of datasets", name, ["sides", *SETTINGS])
    names = [side.name for side in dataset_splits(spec.get("sides") or [])]
    if not 2 <= len(names) <= MAX_SPLITS:
        raise BadInput(
            f"A comparison needs 2 to {MAX_SPLITS} different datasets or splits. Got {len(names)}. Name them as "
            "'demo:test tiered_imagenet:test'."
        )
    settings = fitting.with_defaults(SETTINGS, fit(dataset_splits(names), spec))
    given = {name: value for name, value in spec.items() if value is not None}
    values = {name: s.check(given.get(name, s.default)) for name, s in settings.items()}
    return cast(ComparisonSpec, {"sides": names, **values})


def fit(sides: Sequence[DatasetSplit], given: RawSettings) -> fitting.Fit:
    """Ways, shots and queries that every side can give: those given, else the defaults, lowered to the smallest."""
    backbone = common_backbone(sides, str(given.get("backbone") or ""))
    shape = {name: given.get(name) for name in (*SHAPE, SAMPLER.name)}
    classes_only = {name: value for name, value in shape.items() if name not in draw.IMAGE_SETTINGS}
    each = []
    for side in sides:
        has = backbone in features.available(side.dataset)  # without them, tasks of this side are of classes alone
        own, usual = (shape, draw.IMAGE_DEFAULTS) if has else (classes_only, {})
        each.append(fitting.fit(side.dataset, {**own, "split": side.split}, usual, [backbone] if has else []))
    return fitting.smallest(each)


def dataset_splits(names: Sequence[str]) -> list[DatasetSplit]:
    """Sides by name, each once: "demo:train", or "demo" for its split test (all classes where it has none)."""
    found: dict[str, DatasetSplit] = {}
    for text in names:
        name, _, split = text.partition(":")
        dataset = datasets.load(name)
        split = split or draw.default_split(dataset)
        dataset.split_class_ids(split)
        found[f"{name}:{split}"] = DatasetSplit(f"{name}:{split}", dataset, split)
    return list(found.values())


def common_backbone(sides: Sequence[DatasetSplit], asked: str = "") -> str:
    """The backbone with features of most sides, the first one where several have; "" where none has features."""
    counts: dict[str, int] = {}
    for side in sides:
        for name in features.available(side.dataset):
            counts[name] = counts.get(name, 0) + 1
    if asked and asked not in counts:
        raise UnknownName("backbone with features of these datasets", asked, counts)
    return asked or max(counts, key=lambda name: counts[name], default="")


def compare(spec: RawSettings, progress: Progress | None = None, meaning_only: bool = False) -> DatasetComparison:
    """Draws tasks of the same settings from every side and measures them all.

    meaning_only  leaves out what needs features, which takes longer
    """
    spec = check(spec)
    sides = tuple(dataset_splits(spec["sides"]))
    backbone = common_backbone(sides, str(spec["backbone"]))
    blocks, apart = joint_distances(sides, spec["distance"])
    other, _ = joint_distances(sides, _other(spec["distance"]))
    numbers: dict[str, dict[str, MeasureEstimate]] = {}
    unknown: dict[str, dict[str, str]] = {}
    own, verified = {}, {}
    steps = [name for name in (ACCURACY, *MEASURES) if not meaning_only or _in_meaning(name)]
    for place, side in enumerate(sides):
        tasks = draw_tasks(side, spec, backbone, blocks.get(side.name))
        if "coarsity" in tasks.measures:
            own[side.name] = np.asarray(tasks.measures["coarsity"])
        if side.name in other:
            verified[side.name] = number(_by_distance("coarsity", tasks, side, other[side.name]), tasks)
        for done, name in enumerate(steps):
            if progress is not None:
                title = "Accuracy" if name == ACCURACY else MEASURES[name].title
                progress(place * len(steps) + done, len(sides) * len(steps), f"{side.title}: {title}")
            try:
                if not _in_meaning(name):
                    values = _by_features(name, tasks, side, backbone, spec["method"])
                elif side.name in blocks:
                    values = _by_distance(name, tasks, side, blocks[side.name])
                else:
                    raise BadInput(apart[side.name])
                numbers.setdefault(name, {})[side.name] = number(values, tasks)
            except FsvizError as error:
                unknown.setdefault(name, {})[side.name] = str(error)
    ordered = {name: numbers[name] for name in steps if name in numbers}
    return DatasetComparison(spec, sides, backbone, ordered, unknown, own, verified)


def draw_tasks(side: DatasetSplit, spec: ComparisonSpec, backbone: str, distances: np.ndarray | None) -> Tasks:
    """The side's tasks: with images where features of them are compared, else of classes alone.

    Coarsity, which they carry, is that of the side's own taxonomy.
    """
    asked: dict[str, Any] = {name: spec[name] for name in ("n_way", "sampler", "seed", "n_tasks")}
    has = backbone in features.available(side.dataset)
    if has:
        asked |= {name: spec[name] for name in ("n_shot", "n_query")}
    usable = features.load(side.dataset, backbone).image_ids if has else None
    given = distances if "distances" in SAMPLERS[spec["sampler"]].needs else None
    tasks = draw.sample(side.dataset, split=side.split, usable=usable, distances=given, **asked).tasks
    if given is not None:
        tasks = draw.with_coarsity(replace(tasks, measures={}), side.dataset)
    return tasks


def _in_meaning(measure: str) -> bool:
    return measure in MEASURES and MEASURES[measure].needs == ("distances",)


def _by_distance(name: str, tasks: Tasks, side: DatasetSplit, distances: np.ndarray) -> np.ndarray:
    return MEASURES[name](Given(positions=tasks.positions(side.class_ids), distances=distances))


def _by_features(name: str, tasks: Tasks, side: DatasetSplit, backbone: str, method: str) -> np.ndarray:
    known = features.available(side.dataset)
    if backbone not in known:
        others = f" It has those of {', '.join(map(title_of, known))}, which cannot be compared." if known else ""
        raise BadInput(
            f"{side.dataset.title} has no features under {title_of(backbone)}.{others}"
            if backbone
            else "None of them has features."
        )
    if name == ACCURACY:
        return evaluation.task_accuracy(evaluate.predict_tasks(side.dataset, backbone, method, {}, tasks)) * 100
    return task_measures.measure_tasks(tasks, side.dataset, backbone, [name], method)[name].to_numpy()


def number(values: np.ndarray, tasks: Tasks) -> MeasureEstimate:
    """The mean of a measure over tasks with its error; tasks for which it is not defined are left out."""
    values = np.asarray(values, dtype=float)
    there = np.isfinite(values)
    if not there.any():
        raise BadInput("It is not defined for any of these tasks.")
    values, tasks = values[there], tasks.take(there)
    here = evaluation.estimate(values, "tasks")
    wider = evaluation.estimate(values, "classes", values[:, None, None], tasks)
    return (
        MeasureEstimate(values, here, wider, "classes")
        if np.isfinite(wider.error)
        else MeasureEstimate(values, here, here, "tasks")
    )


# One graph of meanings ---------------------------------------------------------------------------------------------


def joint_distances(sides: Sequence[DatasetSplit], distance: str) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Distances between the classes of every side (C, C) in one graph that holds the classes of all, each once; and
    for sides that do not stand in it, why. The first side that has a taxonomy decides which it is."""
    graphs: dict[str, Dag] = {}
    apart: dict[str, str] = {}
    for side in sides:
        if side.dataset.taxonomy is None:
            apart[side.name] = f"{side.dataset.title} has no taxonomy."
            continue
        try:
            graphs[side.name] = taxonomy.split_dag(side.dataset, side.split)
        except FsvizError as error:
            apart[side.name] = str(error)
    if not graphs:
        return {}, apart
    kinds = {name: _kind(graph, name) for name, graph in graphs.items()}
    first = next(iter(kinds))
    inside = [side for side in sides if kinds.get(side.name) == kinds[first]]
    for side in sides:
        if side.name in kinds and side not in inside:
            apart[side.name] = (
                f"Its taxonomy shares no root with that of {next(s.title for s in sides if s.name == first)}, so "
                "distances in the two are not comparable."
            )
    nodes = {side.name: side.dataset.classes.loc[side.class_ids, "node"].astype(str).tolist() for side in inside}
    every = list(dict.fromkeys(node for of_side in nodes.values() for node in of_side))
    edges = pd.concat([cast(pd.DataFrame, side.dataset.taxonomy) for side in inside]).drop_duplicates()
    joint = taxonomy.class_distances(taxonomy.span(edges, every, np.ones(len(every))), distance)
    place = {node: i for i, node in enumerate(every)}
    return {name: joint[np.ix_(at := [place[node] for node in of_side], at)] for name, of_side in nodes.items()}, apart


def _kind(graph: Dag, name: str) -> str:
    """Which taxonomy a graph is part of: WordNet, or one that only its dataset has."""
    return "WordNet" if graph.nodes[0] == WORDNET else name.rpartition(":")[0]


def _other(distance: str) -> str:
    return OTHER_DISTANCE.get(distance, str(DISTANCE.default))


# What differs ------------------------------------------------------------------------------------------------------


def differences(found: DatasetComparison, first: str = "") -> list[MeasureDifference]:
    """The first side (or another) held against every other one, measure by measure."""
    first = first or found.sides[0].name
    return [
        difference(found, name, first, side.name) for side in found.sides if side.name != first for name in found.asked
    ]


def difference(found: DatasetComparison, measure: str, first: str, other: str) -> MeasureDifference:
    known = found.numbers.get(measure, {})
    for name in (first, other):
        if name not in known:
            return MeasureDifference(measure, first, other, "unknown", why=found.unknown[measure][name])
    needs = MEASURES[measure].needs if measure in MEASURES else ()
    alone = [why for need, why in _OF_ONE_DATASET.items() if need in needs]
    if alone and found.side(first).dataset.name != found.side(other).dataset.name:
        return MeasureDifference(measure, first, other, "unknown", why=f"{alone[0][0].upper()}{alone[0][1:]}.")
    return _held_against(measure, first, other, known[first], known[other])


def _held_against(
    measure: str, first: str, other: str, one: MeasureEstimate, two: MeasureEstimate
) -> MeasureDifference:
    found = _less(one.estimate, two.estimate)
    over = one.over if one.over == two.over else "tasks or classes"
    sign = 1 if direction(measure) == "harder" else -1
    spread = float(np.sqrt((one.values.var() + two.values.var()) / 2))
    scale = 1 / spread if spread else float("nan")
    return MeasureDifference(
        measure,
        first,
        other,
        _verdict(found, sign),
        found,
        over,
        here=_verdict(_less(one.here, two.here), sign),
        effect=sign * found.mean * scale,
        effect_ci95=found.ci95 * scale,
    )


def _less(a: Estimate, b: Estimate) -> Estimate:
    """The difference of two independent means (Welch)."""
    squares = np.array([a.error**2, b.error**2])
    total = float(squares.sum())
    freedom = np.inf
    if total and np.isfinite([a.freedom, b.freedom]).any():
        freedom = total**2 / float((squares**2 / np.array([a.freedom, b.freedom])).sum())
    return Estimate(a.mean - b.mean, total**0.5, freedom)


def _verdict(found: Estimate, sign: int) -> Verdict:
    if not abs(found.mean) > found.ci95:
        return "noise"
    return "harder" if sign * found.mean > 0 else "easier"


def direction(measure: str) -> str:
    """Whether a task with a higher value is harder or easier."""
    return "easier" if measure == ACCURACY else MEASURES[measure].direction


def title(measure: str, spec: ComparisonSpec) -> str:
    return f"Accuracy of {METHODS[spec['method']].title} (%)" if measure == ACCURACY else MEASURES[measure].title


def format_value(value: float, measure: str) -> str:
    """A value of a measure, as a sentence says it."""
    return f"{value:.1f}%" if measure == ACCURACY else f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"


# In words ----------------------------------------------------------------------------------------------------------


def headline(found: DatasetComparison, other: str, first: str = "") -> str:
    """Is the first side harder than the other one, in what, in what not, and what is not known."""
    first = first or found.sides[0].name
    rows = [d for d in differences(found, first) if d.other == other]
    mine, theirs = found.side(first).title, found.side(other).title
    firm = [d for d in rows if d.verdict in ("harder", "easier")]
    here = [d for d in rows if d.verdict == "noise" and d.here != "noise"]
    noise = [_name(found, d) for d in rows if d.verdict == d.here == "noise"]
    more = []
    if firm:
        sentence = f"{mine} is {_parted(found, firm, f' than {theirs}')}"
    elif here:
        sentence = f"Nothing parts {mine} from {theirs} beyond what other classes of the same kind could overturn"
    elif noise:
        sentence = f"Nothing that is known of both parts {mine} from {theirs} beyond noise"
    else:
        sentence = f"Nothing is known of both {mine} and {theirs} that could be compared"
    if here:
        more.append(
            f"For these very classes it is {_parted(found, here)}"
            + (", which other classes of the same kind could overturn." if firm else ".")
        )
    more += [f"Not beyond noise: {_listed(noise)}."] if noise else []
    reasons: dict[str, list[str]] = {}
    for d in rows:
        if d.verdict == "unknown":
            reasons.setdefault(d.why, []).append(_name(found, d))
    more += [f"Unknown: {_some(names)}. {why.rstrip('.')}." for why, names in reasons.items()]
    return " ".join([f"{sentence}.", *more, *meaning_checked(found, first, other)])


def meaning_checked(found: DatasetComparison, first: str, other: str) -> list[str]:
    """Whether another distance says the same of coarsity: a sentence, where it does not."""
    if not {first, other} <= set(found.check) or not {first, other} <= set(found.numbers.get("coarsity", {})):
        return []
    by = difference(found, "coarsity", first, other)
    again = _held_against("coarsity", first, other, found.check[first], found.check[other])
    if by.verdict == again.verdict:
        return []
    says = {"harder": "harder", "easier": "easier", "noise": "no different beyond noise"}
    kind = DISTANCES[_other(found.spec["distance"])].title
    return [f"In meaning that depends on the distance: by {kind} the first is {says[again.verdict]}."]


def _parted(found: DatasetComparison, rows: Sequence[MeasureDifference], than: str = "") -> str:
    """In what the first side is harder, and in what easier: accuracy first, then what is clearest."""
    rows = sorted(rows, key=lambda d: (d.measure != ACCURACY, -abs(d.effect)))
    parts: list[str] = []
    for verdict in dict.fromkeys(d.here for d in rows):
        mine = [d for d in rows if d.here == verdict]
        told = _with_numbers(found, mine[:MAX_NAMED])
        more = f" and {len(mine) - MAX_NAMED} more" if len(mine) > MAX_NAMED else ""
        parts += [f"{verdict}{'' if parts else than} {_listed(told)}{more}"] if told else []
    return ", and ".join(parts)


def _with_numbers(found: DatasetComparison, rows: Sequence[MeasureDifference]) -> list[str]:
    """Measures with the means of both sides; those of meaning together."""
    said: dict[str, list[str]] = {}
    for d in rows:
        one, two = (
            format_value(found.numbers[d.measure][name].estimate.mean, d.measure) for name in (d.first, d.other)
        )
        against, name = f"{one} against {two}", _name(found, d)
        if _in_meaning(d.measure):
            said.setdefault("in meaning", []).append(f"mean {name} {against}")
        else:
            by = f"for {METHODS[found.spec['method']].title}" if d.measure == ACCURACY else f"by {name}"
            said[by] = [against]
    return [f"{by} ({'; '.join(numbers)})" for by, numbers in said.items()]


def _name(found: DatasetComparison, d: MeasureDifference) -> str:
    if d.measure == ACCURACY:
        return "accuracy"
    name = MEASURES[d.measure].title
    return name if name[:2].isupper() or "-" in name.split()[0] else name[0].lower() + name[1:]


def _some(names: Sequence[str]) -> str:
    return _listed(names) if len(names) <= 3 else f"{names[0]} and {len(names) - 1} more"


def _listed(parts: Sequence[str]) -> str:
    return " and ".join(parts) if len(parts) < 3 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def notes(found: DatasetComparison) -> list[str]:
    """What to know before numbers of two sides are held against each other."""
    said = []
    joined = list(found.numbers.get("coarsity", {}))
    if len(joined) > 1:
        n = {name: len(found.side(name).class_ids) for name in joined}
        total = len({node for name in joined for node in _nodes(found.side(name))})
        said.append(
            f"Distances in meaning are in one graph of all {total:,} classes, each counting once. On its own taxonomy "
            "a side has another coarsity, which other pages show: its scale follows the number of classes "
            f"({', '.join(f'{found.side(name).title}: {many:,}' for name, many in n.items())}), so those are not "
            "comparable."
        )
    shared = _shared(found.sides)
    if shared:
        said.append(f"{shared} Differences are then smaller than between sets without common classes.")
    if found.backbone:
        said.append(
            f"Everything else is under {title_of(found.backbone)}: numbers of different backbones, or of different "
            "numbers of classes per task, are not comparable."
        )
    return said


def _nodes(side: DatasetSplit) -> list[str]:
    return side.dataset.classes.loc[side.class_ids, "node"].astype(str).tolist()


def _shared(sides: Sequence[DatasetSplit]) -> str:
    """A sentence where two splits of one dataset have classes in common."""
    for i, one in enumerate(sides):
        for two in sides[i + 1 :]:
            n = len(np.intersect1d(one.class_ids, two.class_ids)) if one.dataset.name == two.dataset.name else 0
            if n:
                return f"{one.title} and {two.title} have {n:,} classes in common."
    return ""


# As tables ---------------------------------------------------------------------------------------------------------


def facts(found: DatasetComparison) -> pd.DataFrame:
    """What every side is: classes, images per class, what it offers, coarsity on its own taxonomy."""
    rows = []
    for side in found.sides:
        counts = side.dataset.classes.loc[side.class_ids, "n_images"].dropna().to_numpy(dtype=float)
        low, middle, high = np.quantile(counts, [0.25, 0.5, 0.75]) if len(counts) else (np.nan,) * 3
        own = found.own.get(side.name)
        rows.append(
            {
                "side": side.name,
                "title": side.title,
                "n_classes": len(side.class_ids),
                "n_images": int(counts.sum()) if len(counts) else pd.NA,
                "own_coarsity": float(np.median(own)) if own is not None else float("nan"),
                "images_low": float(low),
                "images_median": float(middle),
                "images_high": float(high),
                "has": ", ".join(side.dataset.capabilities),
            }
        )
    return pd.DataFrame(rows).astype({"n_images": "Int64"})


def measure_table(found: DatasetComparison, first: str = "") -> pd.DataFrame:
    """A row per measure and side: its mean with the 95% interval, quartiles, and the verdict of the first side against
    it: first_is "harder", "easier", "noise" or "unknown", here the same for these very classes; effect is that in
    standard deviations of tasks, above 0 where the first side is harder."""
    first = first or found.sides[0].name
    verdicts = {(d.measure, d.other): d for d in differences(found, first)}
    rows = []
    for measure in found.asked:
        for side in found.sides:
            d = verdicts.get((measure, side.name))
            one = found.numbers.get(measure, {}).get(side.name)
            row: dict[str, Any] = {
                "measure": measure,
                "title": title(measure, found.spec),
                "higher_is": direction(measure),
                "side": side.name,
                "side_title": side.title,
                "n_tasks": len(one.values) if one else 0,
                "mean": one.estimate.mean if one else np.nan,
                "ci95": one.estimate.ci95 if one else np.nan,
                "over": one.over if one else "",
                **dict(zip(("q1", "median", "q3"), one.quartiles if one else (np.nan,) * 3, strict=True)),
                "first_is": d.verdict if d else "",
                "here": d.here if d else "",
                "difference": d.estimate.mean if d and d.estimate else np.nan,
                "difference_ci95": d.estimate.ci95 if d and d.estimate else np.nan,
                "effect": d.effect if d else np.nan,
                "effect_ci95": d.effect_ci95 if d else np.nan,
                "why": d.why if d else found.unknown.get(measure, {}).get(side.name, ""),
            }
            rows.append(row)
    return pd.DataFrame(rows)


def comparison_dict(found: DatasetComparison) -> dict[str, Any]:
    """The result as plain numbers and words."""
    return {
        "spec": dict(found.spec),
        "backbone": found.backbone,
        "sides": _records(facts(found)),
        "measures": _records(measure_table(found)),
        "in_words": [headline(found, side.name) for side in found.sides[1:]],
        "notes": notes(found),
    }


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as dictionaries, None where nothing is known."""
    return [{name: None if pd.isna(v) else v for name, v in row.items()} for row in table.to_dict("records")]


def command(spec: Settings, suite: bool = False) -> str:
    said = {name: spec[name] for name, s in SETTINGS.items() if name in spec and spec[name] != s.default}
    more = ["--suite"] if suite else []
    return shlex.join(["fsviz", "compare-datasets", *spec["sides"], *to_args(said, SETTINGS), *more])


# The suite: hard, random and easy support sets over several datasets -----------------------------------------------


def suite_specs(spec: ComparisonSpec) -> tuple[dict[str, support_sets.Spec], dict[str, str]]:
    """What to search for hard and easy supports in, side by side: side -> spec of the study `support_sets`; and for
    sides that cannot be, why."""
    sides = dataset_splits(spec["sides"])
    backbone = common_backbone(sides, str(spec["backbone"]))
    found, without = {}, {}
    for side in sides:
        known = features.available(side.dataset)
        if not backbone or backbone not in known:
            without[side.name] = (
                f"{side.dataset.title} has no features under {title_of(backbone)}."
                if backbone
                else "It has no features."
            )
            continue
        asked: dict[str, Value] = {name: spec[name] for name in ("n_way", "n_shot", "n_query", "n_tasks", "seed")}
        try:
            found[side.name] = support_sets.check(
                {
                    **asked,
                    "dataset": side.dataset.name,
                    "backbone": backbone,
                    "split": side.split,
                    "classifier": spec["method"],
                }
            )
        except FsvizError as error:
            without[side.name] = str(error)
    return found, without


def suite_row(side: DatasetSplit, summary: support_sets.Summary) -> dict[str, Any]:
    """A row of the suite from the summary of a search for support sets."""
    return {
        "title": side.title,
        "published": False,
        **{name: summary["accuracy"][name] for name in support_sets.SETS},
        **{f"{name}_ci95": summary["ci95"][name] for name in support_sets.SETS},
        "n_tasks": summary["n_tasks"],
    }


def published_suite() -> pd.DataFrame:
    """Accuracies that Basu et al. 2023 print with hard support sets, and with random ones where they do.

    A row per benchmark and method: title, method, setting, source, n_backbones, and for hard and random the median
    over backbones with the lowest and the highest (hard, hard_low, hard_high, random, ...; NaN where not printed).
    """
    table = published_results()
    table = table[(table["paper"] == "basu2023") & (table["metric"] == "top1") & (table["quartile"] == "")]
    table = table[table["method"].isin(["ProtoNet", "ProtoNet meta-trained", "FastDiffSel proto loss"])]
    rows = []
    pairs = {"MD": ("random", "Meta-Dataset"), "Hard-MD": ("hard", "Meta-Dataset")}
    named = table["benchmark"].map(lambda name: pairs.get(name, ("hard", _benchmark(name))))
    table = table.assign(kind=named.str[0], title=named.str[1])
    for (name, method, source), part in table.groupby(["title", "method", "table"], sort=False):
        row: dict[str, Any] = {"title": name, "published": True, "method": method, "setting": part["setting"].iloc[0]}
        row |= {"source": f"{PAPERS['basu2023']}, {source}", "n_backbones": part["backbone"].nunique()}
        for kind in ("hard", "random"):
            values = part.loc[part["kind"] == kind, "value"]
            row[kind] = float(values.median()) if len(values) else float("nan")
            row[f"{kind}_low"] = float(values.min()) if len(values) else float("nan")
            row[f"{kind}_high"] = float(values.max()) if len(values) else float("nan")
        rows.append(row)
    return pd.DataFrame(rows)


def _benchmark(name: str) -> str:
    return benchmark_title(name.removeprefix("Hard-MD++ ").removeprefix("Hard-MD "))
