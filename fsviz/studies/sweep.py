"""Study sweep: the headline numbers of another study at several values of one of its settings.

    spec of a study, setting, values -> one spec per value -> their parts one after another -> a result per value

All other settings, the seed included, stay the same. A study can be swept if it declares headline numbers.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, overload

import numpy as np
import pandas as pd

from fsviz import studies
from fsviz.errors import BadInput, UnknownName
from fsviz.records import HeadlineNumber
from fsviz.settings import SHAPE, RawSettings, Schema, Setting, Value, to_args
from fsviz.studies.study import Arrays, Part, Study, Work

VARY = Setting("vary", "Vary", "The setting that varies from point to point.", "text", "")
VALUES = Setting("values", "Values", "Values of that setting (default: those the study declares).", "names", [])
SETTINGS = Schema({s.name: s for s in (VARY, VALUES)}, required=("dataset",), of="a sweep")
_KEYS = ("study", "dataset", "spec", "spec_version", VARY.name, VALUES.name)
_KINDS = ("int", "float", "choice", "text")  # kinds of settings that have a value per point


class SweepSpec(TypedDict, total=False):
    """A checked spec; `spec` is that of the swept study with its name. A prepared one has one spec per value."""

    study: str
    version: int
    folder: str
    dataset: str
    spec: dict[str, Any]
    spec_version: int
    vary: str
    values: list[Value]
    prepared: list[dict[str, Any]]


class Point(TypedDict):
    """One headline number at one value."""

    value: Value
    name: str
    title: str
    number: float | None
    low: float | None
    high: float | None
    unit: str
    ci_unit: str


class SweepSummary(TypedDict):
    """The curve of every headline number, and the summary of the study at every value."""

    dataset: str
    swept: str
    vary: str
    title: str
    values: list[Value]
    points: list[Point]
    results: list[dict[str, Any]]


@dataclass(frozen=True)
class SweepResult:
    """The results of a study by the value of one of its settings; values without a finished chunk are missing.

    setting  the declaration of what varies
    results  (value, result of the study) in the order of the values
    """

    spec: SweepSpec
    setting: Setting
    results: Sequence[tuple[Value, Any]]

    @property
    def cache_key(self) -> tuple[object, ...]:
        """Changes when the spec or a result does."""
        return json.dumps(self.spec, sort_keys=True), [getattr(result, "cache_key", None) for _, result in self.results]

    @property
    def study(self) -> Study[Any]:
        return studies.of(self.spec["spec"])

    @property
    def numbers(self) -> list[tuple[Value, HeadlineNumber]]:
        """The headline numbers at every value."""
        headline = self.study.headline
        assert headline is not None
        return [(value, number) for value, result in self.results for number in headline(result)]

    @property
    def table(self) -> pd.DataFrame:
        """One row per value and headline number: value, name, title, number, low, high, unit, ci_unit."""
        return pd.DataFrame(self.points, columns=list(Point.__annotations__))

    @property
    def points(self) -> list[Point]:
        return [
            {
                "value": value,
                "name": number.name,
                "title": number.title,
                "number": number.value,
                "low": number.low,
                "high": number.high,
                "unit": number.unit,
                "ci_unit": number.ci_unit,
            }
            for value, number in self.numbers
        ]

    def at(self, value: str) -> Any:
        """The result at a value that is given as text, as in links and commands."""
        by_text = {self.setting.text(number): result for number, result in self.results}
        if value not in by_text:
            raise UnknownName("value", value, by_text)
        return by_text[value]


def sweep(study: Study[Any], spec: RawSettings, setting: str, values: Sequence[Value] = ()) -> SweepSpec:
    """The spec of a sweep of a study; without values, those that the study declares for the setting."""
    inner = {**spec, "study": study.name}
    return check({"dataset": spec.get("dataset"), "spec": inner, VARY.name: setting, VALUES.name: list(values)})


def swept_studies() -> dict[str, Study[Any]]:
    """The studies that can be swept, by name."""
    all_studies = {name: studies.get(name) for name in studies.names()}
    return {name: study for name, study in all_studies.items() if study.headline is not None}


def swept_settings(study: Study[Any]) -> dict[str, Setting]:
    """The settings of a study that can be swept, by name."""
    return {name: setting for name, setting in study.settings.settings.items() if setting.kind in _KINDS}


# --- the spec ----------------------------------------------------------------------------------------------------


def check(spec: RawSettings) -> SweepSpec:
    """The spec with that of the study checked, and every value too."""
    for name in spec:
        if name not in _KEYS:
            raise UnknownName("setting of a sweep", name, sorted(_KEYS))
    raw = spec.get("spec")
    if not isinstance(raw, Mapping):
        raise BadInput('A sweep needs "spec": the settings of the swept study, with its name as "study".')
    study = studies.of(raw)
    if study.headline is None:
        raise UnknownName("study that can be swept", study.name, swept_studies())
    settings = swept_settings(study)
    name = str(spec.get(VARY.name) or "")
    if name not in settings:
        raise UnknownName(f"setting of {study.settings.of}", name, settings, "Choose a number or a choice.")
    base = {**study.check({k: v for k, v in raw.items() if k != "study"}), "study": study.name}
    values = spec.get(VALUES.name) or _declared_values(study, base, settings[name])
    parsed = [
        settings[name].parse(value) if isinstance(value, str) else settings[name].check(value) for value in values
    ]
    for value in parsed:
        study.check({**_without_name(base), name: value})
    return {
        "dataset": base["dataset"],
        "spec": base,
        "spec_version": study.version,
        "vary": name,
        "values": list(dict.fromkeys(parsed)),
    }


def _declared_values(study: Study[Any], base: RawSettings, setting: Setting) -> Sequence[Value]:
    """The values that the study declares for a setting and that fit the dataset."""
    values = study.sweeps(_without_name(base)).get(setting.name)
    if values is None:
        raise BadInput(f"{setting.name} has no default values. Set {VALUES.flag} {_example(setting)}.")
    if not values:
        raise BadInput(
            f"No default value of {setting.name} fits this dataset. Lower the other numbers of images and classes, or "
            f"set {VALUES.flag}."
        )
    return [setting.check(value) for value in values]


def _example(setting: Setting) -> str:
    if setting.kind == "choice":
        return ",".join(list(setting.choices)[:3])
    return "1,2,5" if setting.kind in ("int", "float") else "NAME,NAME"


def _without_name(spec: RawSettings) -> dict[str, Any]:
    return {name: value for name, value in spec.items() if name != "study"}


def _specs(spec: SweepSpec) -> list[Any]:
    """The checked spec of the study at every value."""
    study = studies.of(spec["spec"])
    return [study.check({**_without_name(spec["spec"]), spec["vary"]: value}) for value in spec["values"]]


def command(spec: SweepSpec) -> str:
    """The command that computes the same sweep."""
    study = studies.of(spec["spec"])
    settings, base = study.settings.settings, spec["spec"]
    declared = study.sweeps(_without_name(base)).get(spec["vary"], ())
    values = [] if spec["values"] == [settings[spec["vary"]].check(value) for value in declared] else spec["values"]
    changed = {n: base[n] for n in settings if n != spec["vary"] and (n in SHAPE or base[n] != settings[n].default)}
    words = ["fsviz", "sweep", study.name, spec["dataset"], VARY.flag, spec["vary"]]
    words += [VALUES.flag, ",".join(settings[spec["vary"]].text(value) for value in values)] if values else []
    words += ["--backbone", base["backbone"]] if "backbone" in study.settings.required else []
    return shlex.join([*words, *to_args(changed, settings)])


# --- the run -----------------------------------------------------------------------------------------------------


def prepare(spec: SweepSpec, folder: Path) -> SweepSpec:
    """Prepares the study at every value, each in its own folder."""
    study = studies.of(spec["spec"])
    prepared = []
    for which, at_value in enumerate(_specs(spec)):
        own = folder / _folder(which)
        own.mkdir(parents=True)
        prepared.append({**study.prepare(at_value, own), "study": study.name, "version": study.version})
    return {**spec, "prepared": prepared}


def _folder(which: int) -> str:
    return f"inputs/value{which}"


def _prepared(spec: SweepSpec) -> list[dict[str, Any]]:
    """The prepared specs of all values, with their folders."""
    root = Path(spec["folder"])
    return [{**at_value, "folder": str(root / _folder(which))} for which, at_value in enumerate(spec["prepared"])]


def _parts(spec: SweepSpec) -> list[tuple[int, dict[str, Any], list[Part]]]:
    """Per value: the number of its first part, its prepared spec and its parts."""
    study, first, rows = studies.of(spec["spec"]), 0, []
    for at_value in _prepared(spec):
        own = list(study.parts(at_value))
        rows.append((first, at_value, own))
        first += len(own)
    return rows


def parts(spec: SweepSpec) -> list[Part]:
    """The parts of the study at the first value, then at the second, and so on."""
    setting = studies.of(spec["spec"]).settings.settings[spec["vary"]]
    return [
        Part(
            f"{setting.title} {setting.text(value)}{', ' if part.label else ''}{part.label}",
            part.n,
            part.size,
            part.items,
            part.sequential,
        )
        for value, (_, _, own) in zip(spec["values"], _parts(spec), strict=True)
        for part in own
    ]


def run_chunk(spec: SweepSpec, part: int, start: int, stop: int) -> Arrays:
    """A chunk of the study at one value."""
    first, at_value, _ = next(row for row in reversed(_parts(spec)) if row[0] <= part)
    return studies.of(spec["spec"]).run_chunk(at_value, part - first, start, stop)


class _ChunksOfValue(Sequence[Arrays]):
    """The chunks of one value, with the part numbers of the study; each is read on access."""

    def __init__(self, chunks: Sequence[Arrays], indices: Sequence[int], first: int) -> None:
        self.chunks, self.indices, self.first = chunks, indices, first

    def __len__(self) -> int:
        return len(self.indices)

    @overload
    def __getitem__(self, position: int) -> Arrays: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[Arrays]: ...
    def __getitem__(self, position: int | slice) -> Arrays | Sequence[Arrays]:
        if isinstance(position, slice):
            return _ChunksOfValue(self.chunks, self.indices[position], self.first)
        chunk = self.chunks[self.indices[position]]
        return {**{name: chunk[name] for name in chunk}, "part": np.array(int(chunk["part"]) - self.first)}

    def __iter__(self) -> Iterator[Arrays]:
        return (self[position] for position in range(len(self)))


def collect(spec: SweepSpec, chunks: Sequence[Arrays]) -> SweepResult:
    """The result of the study at every value that has a finished chunk."""
    study, part_of = studies.of(spec["spec"]), [int(chunk["part"]) for chunk in chunks]
    results = []
    for value, (first, at_value, own) in zip(spec["values"], _parts(spec), strict=True):
        indices = [index for index, part in enumerate(part_of) if first <= part < first + len(own)]
        if indices:
            results.append((value, study.collect(at_value, _ChunksOfValue(chunks, indices, first))))
    clean: Any = {name: spec[name] for name in _KEYS if name in spec and name != "study"}  # type: ignore[literal-required]
    return SweepResult(clean, study.settings.settings[spec["vary"]], results)


def summary(result: SweepResult) -> SweepSummary:
    """The curves as flat rows, and the study's own summary at every value."""
    return {
        "dataset": result.spec["dataset"],
        "swept": result.study.name,
        "vary": result.setting.name,
        "title": result.setting.title,
        "values": [value for value, _ in result.results],
        "points": result.points,
        "results": [dict(result.study.summarise(at_value)) for _, at_value in result.results],
    }


# --- amount of work ---------------------------------------------------------------------------------------------


def work(spec: SweepSpec) -> Work:
    """The work of all values; items are those of one value."""
    study = studies.of(spec["spec"])
    if study.work is None:
        return Work(len(spec["values"]), "values", float("inf"))
    works = [study.work(at_value) for at_value in _specs(spec)]
    return Work(works[0].n, f"{works[0].items} per point", sum(point.seconds for point in works))


def shorten(spec: SweepSpec, n: int) -> SweepSpec | None:
    """The same values with a shorter spec of the study."""
    study = studies.of(spec["spec"])
    shorter = study.shorten(study.check(_without_name(spec["spec"])), n) if study.shorten else None
    return None if shorter is None else {**spec, "spec": {**shorter, "study": study.name}}


def n_bytes(spec: SweepSpec) -> float:
    study = studies.of(spec["spec"])
    return sum(study.n_bytes(at_value) for at_value in _prepared(spec))


def requires_local(spec: RawSettings) -> str:
    return studies.of(spec["spec"]).requires_local(spec["spec"])


STUDY = Study(
    name="sweep",
    title="sweep",
    question="How do the numbers of a study change with one of its settings?",
    settings=SETTINGS,
    check=check,
    prepare=prepare,
    parts=parts,
    run_chunk=run_chunk,
    collect=collect,
    summarise=summary,
    work=work,
    shorten=shorten,
    n_bytes=n_bytes,
    requires_local=requires_local,
)
