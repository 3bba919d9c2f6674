"""The settings of searches for hard support sets, each declared once."""

from __future__ import annotations

from fsviz.difficulty.objectives import OBJECTIVES, SUPPORT_SETS
from fsviz.methods import METHODS
from fsviz.settings import Schema, Setting, Value
from fsviz.studies import evaluate as evaluation_study
from fsviz.tasks import draw

SETS = tuple(SUPPORT_SETS)
LOSSES: dict[str, tuple[str, float | None]] = {  # name -> the search's loss and its scale
    "euclidean": ("euclidean", None),  # squared distances, scaled task by task: features of any size give the same
    "plain": ("euclidean", 1.0),  # squared distances as they are, the formula of Basu et al. 2023
    "cosine": ("cosine", None),  # cosines times ten, as in their published code
}
STEP_SIZES = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
SEARCH = Setting(
    "search",
    "Search",
    "FastDiffSel takes one gradient step. Refined: a few swaps of single images after it, several times as long, and "
    "nearer to what greedy search finds. To the letter: algorithm 1 of the paper as printed, with the sum of the "
    "losses, the projection before the choice, and weights that may fall below zero. Greedy search swaps one support "
    "image at a time: slower, a run.",
    "choice",
    "fastdiffsel",
    choices={
        "fastdiffsel": "FastDiffSel",
        "refined": "FastDiffSel, refined",
        "literal": "FastDiffSel, to the letter",
        "greedy": "Greedy",
    },
    advanced=True,
)
_VERBS = " or ".join(f"{objective.verb} ({objective.name})" for objective in OBJECTIVES.values())
LOSS = Setting(
    "loss",
    "Loss",
    f"The search {_VERBS} the cross-entropy of the queries. Plain: from their squared Euclidean "
    "distances to the prototypes, the paper's formula. Euclidean: the same after scaling the distances of every task "
    "to a mean of 3, because with large ones a single query decides. Cosine: from cosines times ten, as in the paper's "
    "published code.",
    "choice",
    "euclidean",
    choices={name: name.capitalize() for name in LOSSES},
    advanced=True,
)
START = Setting(
    "start",
    "Selection weights start",
    "From equal weights one step of any size picks the same images; from random ones its size matters.",
    "choice",
    "ones",
    choices={"ones": "Equal", "random": "Random"},
    advanced=True,
)
STEP = Setting(
    "step",
    "Step size",
    "How far one gradient step moves the selection weights. The paper uses 200.",
    "float",
    200.0,
    1e-6,
    1e6,
    stops=STEP_SIZES,
)
N_STEPS = Setting(
    "n_steps",
    "Gradient steps",
    "Gradient steps of FastDiffSel.",
    "int",
    1,
    1,
    100,
    advanced=True,
)
N_SWEEPS = Setting("n_sweeps", "Sweeps", "Sweeps of greedy search.", "int", 1, 1, 20)
CLASSIFIER = Setting(
    "classifier",
    "Classifier",
    "The method whose accuracy is shown. The search itself always uses prototypes (class means).",
    "choice",
    "protonet",
    choices={name: method.title for name, method in METHODS.items()},
)
OBJECTIVE = Setting(
    "objective",
    "Sets to keep",
    "Which support sets become a testbed.",
    "choice",
    "hard",
    choices={name: kind.title for name, kind in SUPPORT_SETS.items()},
)
DEVICE = Setting(
    "device", "Device", "Where the search runs: cpu, cuda, cuda:0, ... or auto.", "text", "cpu", advanced=True
)
SKIP_SMALL = Setting(
    "skip_small",
    "Leave out small classes",
    "Draw no class that has fewer images than support and query need together, instead of refusing.",
    "flag",
    False,
)
SEARCH_SETTINGS: dict[str, Setting] = {
    s.name: s for s in (SEARCH, LOSS, START, STEP, N_STEPS, N_SWEEPS, CLASSIFIER, OBJECTIVE, DEVICE, SKIP_SMALL)
}
TASK_DEFAULTS: dict[str, Value] = {"sampler": "uniform", **draw.IMAGE_DEFAULTS, "n_tasks": 200}
TASK_SETTINGS: dict[str, Setting] = evaluation_study.TASK_SETTINGS
SETTINGS = Schema(
    {name: s.with_(default=TASK_DEFAULTS.get(name, s.default)) for name, s in TASK_SETTINGS.items()} | SEARCH_SETTINGS,
    required=("dataset", "backbone"),
    of="the search for hard tasks",
)
