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
    "Accuracy search: swaps images while that changes the number of correct queries. FastDiffSel: one gradient step on "
    "the query loss, the paper's search. As printed: the paper's algorithm 1. Greedy: its baseline, slowest.",
    "choice",
    "accuracy",
    choices={
        "accuracy": "Accuracy search",
        "fastdiffsel": "FastDiffSel (paper)",
        "literal": "FastDiffSel, as printed",
        "greedy": "Greedy",
    },
    advanced=True,
)


def search_title(name: str) -> str:
    """The title of a search inside a sentence: "accuracy search"."""
    title = SEARCH.choices[name]
    return title if title.startswith("FastDiffSel") else title.lower()


_VERBS = " or ".join(f"{objective.verb} ({objective.name})" for objective in OBJECTIVES.values())
LOSS = Setting(
    "loss",
    "Loss",
    f"A search {_VERBS} the cross-entropy of the queries; the accuracy search only at equal accuracy. Plain: squared "
    "Euclidean distances to the prototypes, as in the paper. Euclidean: scaled to a mean of 3 per task. Cosine: "
    "cosines times ten, as in the paper's code.",
    "choice",
    "euclidean",
    choices={name: name.capitalize() for name in LOSSES},
    advanced=True,
)
START = Setting(
    "start",
    "Initial weights",
    "Equal: any step size gives the same set. Random: the step size matters.",
    "choice",
    "ones",
    choices={"ones": "Equal", "random": "Random"},
    advanced=True,
)
STEP = Setting(
    "step",
    "Step size",
    "How far a gradient step moves the selection weights. Paper: 200.",
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
N_SWEEPS = Setting("n_sweeps", "Sweeps", "Sweeps of greedy search over all support images.", "int", 1, 1, 20)
CLASSIFIER = Setting(
    "classifier",
    "Classifier",
    "The method whose accuracy is shown. The search always uses prototypes (class means).",
    "choice",
    "protonet",
    choices={name: method.title for name, method in METHODS.items()},
)
OBJECTIVE = Setting(
    "objective",
    "Support set to save",
    "The support sets that become a testbed.",
    "choice",
    "hard",
    choices={name: kind.title for name, kind in SUPPORT_SETS.items()},
)
DEVICE = Setting("device", "Device", "Where the search runs: auto, cpu, cuda or mps.", "text", "cpu", advanced=True)
SKIP_SMALL = Setting(
    "skip_small",
    "Skip small classes",
    "Skip classes without enough images.",
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
    of="the search for hard supports",
)
