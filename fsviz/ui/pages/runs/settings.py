"""The sidebar of a comparison: highlighted method, measure of the curves, unit of intervals, window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fsviz.analyses import run_comparison
from fsviz.difficulty import measures
from fsviz.settings import Setting
from fsviz.ui.parts import controls, recorded, shell

BAND = Setting("band", "Highlight", "Method of the band, the classes and the errors; also by a click.", "choice", "")
OVER = Setting(
    "over",
    "CI over",
    "Tasks: same images. Images: other images of these classes. Classes: other classes. Wider in this order.",
    "choice",
    "tasks",
    choices={name: name for name in run_comparison.CI_UNITS},
    advanced=True,
)
WINDOW = Setting("window", "Rolling window (% of tasks)", "Wider is smoother.", "int", 10, 1, 50, advanced=True)


class Settings(NamedTuple):
    """Settings of the comparison: the highlighted method, the measure of the curves ("" for none), and the rest."""

    method: str
    measure: str
    over: str
    window: int


def pick_settings(runs: Sequence[run_comparison.MethodRun], main: Sequence[run_comparison.MethodRun]) -> Settings:
    """The sidebar of the comparison; intervals are over the widest unit available by default, as in reports."""
    names = list(run_comparison.by_name(main))
    method = names[0]
    place, more = shell.side().container(), shell.side().expander("More settings")
    if len(names) > 1:
        setting = BAND.with_(choices={name: name for name in names}, default=method)
        method = controls.pick(setting, place, about=main[0].digest)
    available = run_comparison.measures_of(main)
    measure = available[0] if available else ""
    if len(available) > 1:
        choices = {name: measures.title(name) for name in available}
        setting = controls.MEASURE.with_(title="Accuracy by", choices=choices, default=measure)
        measure = controls.pick(setting, place)
    over = controls.pick(OVER.with_(default=recorded.widest(runs)), more)
    window = controls.pick(WINDOW, more, as_slider=True) if measure else int(WINDOW.default)
    return Settings(method, measure, over, window)
