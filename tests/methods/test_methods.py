"""Properties that every method keeps, and equality with a plain implementation for one task at a time."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from fsviz.errors import BadInput, UnknownName
from fsviz.methods import METHODS, geometry, get
from tests.methods import one_task_at_a_time as plain

NAMES = list(METHODS)
# settings that reach the other branches of a method; fewer steps where the plain one is slow
SETTINGS: list[tuple[str, dict]] = [
    *((name, {}) for name in NAMES),
    ("protonet", {"distance": "cosine", "scale": 10.0}),
    ("simpleshot", {"centring": "support"}),
    ("simpleshot", {"centring": "none", "normalise": "none", "distance": "cosine"}),
    ("knn", {"k": 3}),
    ("knn", {"k": 100, "distance": "cosine"}),
    ("matching", {"scale": 20.0}),
    ("matching", {"normalise": "support"}),
    ("finetune", {"head": "linear"}),
    ("finetune", {"steps": 0}),
    ("logistic", {"epochs": 10}),
    ("tim", {"steps": 30, "marginal_weight": 0.0, "conditional_weight": 1.0, "cross_entropy_weight": 0.5}),
    ("tim", {"distance": "cosine", "scale": 10.0}),
    ("pt_map", {"normalise": "before", "steps": 3}),
    ("pt_map", {"normalise": "none", "sharpness": 0.5}),
    ("laplacian_shot", {"normalise": "none", "neighbours": 5, "smoothness": 1.5}),
]


@dataclass(frozen=True)
class Batch:
    support: Tensor
    support_mask: Tensor
    query: Tensor
    query_mask: Tensor

    def scores(self, name: str, **parameters) -> Tensor:
        """Scores of a method (T, W, M)."""
        return METHODS[name].load()(self.support, self.support_mask, self.query, self.query_mask, **parameters)

    def predict(self, name: str, **parameters) -> Tensor:
        """Probabilities (T, M, W), zeros for padded queries."""
        probability = geometry.probabilities(self.scores(name, **parameters), self.support_mask.any(2))
        return probability.transpose(1, 2) * self.query_mask.unsqueeze(-1)

    def single(self, task: int) -> tuple[list[Tensor], Tensor]:
        """The images of one task without padding."""
        classes = [self.support[task, w][self.support_mask[task, w]] for w in self.ways(task)]
        return classes, self.query[task][self.query_mask[task]]

    def ways(self, task: int) -> list[int]:
        return torch.nonzero(self.support_mask[task].any(1)).flatten().tolist()


def make_batch(shots: list[list[int]], queries: list[int], dims: int = 24, seed: int = 0, signal: float = 1.0) -> Batch:
    """Tasks with these shots per class (0 = the task lacks that way) and numbers of queries; padding holds NaN."""
    generator = torch.Generator().manual_seed(seed)
    n_way, n_shot = max(map(len, shots)), max(max(row) for row in shots)
    support = torch.full((len(shots), n_way, n_shot, dims), torch.nan)
    query = torch.full((len(shots), max(queries), dims), torch.nan)
    for t, row in enumerate(shots):
        centres = signal * torch.randn(n_way, dims, generator=generator)
        for w, shot in enumerate(row):
            support[t, w, :shot] = (centres[w] + torch.randn(shot, dims, generator=generator)).relu()
        there = [w for w, shot in enumerate(row) if shot]
        for m in range(queries[t]):
            query[t, m] = (centres[there[m % len(there)]] + torch.randn(dims, generator=generator)).relu()
    return Batch(support, ~support.isnan().any(-1), query, ~query.isnan().any(-1))


RAGGED = make_batch([[3, 1, 2, 5], [5, 5, 5, 5], [2, 0, 4, 0], [1, 1, 1, 1], [4, 2, 0, 3]], [12, 20, 7, 9, 1])
EVEN = make_batch([[5] * 5] * 6, [25] * 6, seed=1)


@pytest.mark.parametrize(("name", "parameters"), SETTINGS, ids=lambda v: v if isinstance(v, str) else str(v or ""))
@pytest.mark.parametrize("batch", [EVEN, RAGGED], ids=["even", "ragged"])
def test_equals_a_plain_implementation(name: str, parameters: dict, batch: Batch) -> None:
    if name == "simpleshot" and not parameters:
        parameters = {"centre": torch.linspace(0, 1, 24)}
    answer = batch.predict(name, **parameters)
    for task in range(len(batch.support)):
        classes, query = batch.single(task)
        expected = getattr(plain, name)([images.double() for images in classes], query.double(), **parameters)
        got = answer[task][batch.query_mask[task]][:, batch.ways(task)].double()
        # from zero weights, Adam enlarges what rounding makes of a gradient that is nearly zero
        near = 2e-3 if name == "logistic" else 5e-4
        torch.testing.assert_close(got, expected, rtol=0, atol=near)
        clear = expected.topk(2).values.diff().abs().flatten() > 2 * near
        assert torch.equal(got.argmax(1)[clear], expected.argmax(1)[clear])


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_equals_its_tasks_one_by_one_without_padding(name: str) -> None:
    for batch in (EVEN, RAGGED):
        answer = batch.predict(name)
        for task in range(len(batch.support)):
            ways, there = batch.ways(task), batch.query_mask[task]
            shots = int(batch.support_mask[task].sum(1).max())
            alone = Batch(
                batch.support[task : task + 1, ways, :shots],
                batch.support_mask[task : task + 1, ways, :shots],
                batch.query[task : task + 1, there],
                batch.query_mask[task : task + 1, there],
            ).predict(name)
            torch.testing.assert_close(answer[task][there][:, ways], alone[0], rtol=0, atol=2e-5)


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_probabilities_and_padding_gets_nothing(name: str) -> None:
    scores, absent = RAGGED.scores(name), ~RAGGED.support_mask.any(2)
    assert scores.shape == (*RAGGED.support.shape[:2], RAGGED.query.shape[1])
    assert bool((scores[absent] == -torch.inf).all()) and bool(scores[~absent].isfinite().all())
    answer = RAGGED.predict(name)
    assert bool((answer >= 0).all())
    torch.testing.assert_close(answer.sum(-1), RAGGED.query_mask.float(), rtol=0, atol=1e-5)
    assert bool((answer.transpose(1, 2)[absent] == 0).all())


@pytest.mark.parametrize("name", NAMES)
def test_permuting_tasks_classes_shots_or_queries_permutes_the_answers(name: str) -> None:
    answer = RAGGED.predict(name)
    n_tasks, n_way, n_shot = RAGGED.support_mask.shape
    generator = torch.Generator().manual_seed(4)
    tasks, ways, shots, queries = (
        torch.randperm(n, generator=generator) for n in (n_tasks, n_way, n_shot, RAGGED.query.shape[1])
    )
    by_task = Batch(RAGGED.support[tasks], RAGGED.support_mask[tasks], RAGGED.query[tasks], RAGGED.query_mask[tasks])
    torch.testing.assert_close(by_task.predict(name), answer[tasks], rtol=0, atol=2e-5)
    by_query = replace(RAGGED, query=RAGGED.query[:, queries], query_mask=RAGGED.query_mask[:, queries])
    torch.testing.assert_close(by_query.predict(name), answer[:, queries], rtol=0, atol=2e-5)
    assert all(order.tolist() != sorted(order.tolist()) for order in (tasks, ways, shots, queries))
    if name != "logistic":  # its mini-batches follow the order of the support
        by_way = replace(RAGGED, support=RAGGED.support[:, ways], support_mask=RAGGED.support_mask[:, ways])
        torch.testing.assert_close(by_way.predict(name), answer[:, :, ways], rtol=0, atol=2e-5)
        by_shot = replace(RAGGED, support=RAGGED.support[:, :, shots], support_mask=RAGGED.support_mask[:, :, shots])
        torch.testing.assert_close(by_shot.predict(name), answer, rtol=0, atol=2e-5)


@pytest.mark.parametrize("name", NAMES)
def test_a_second_call_says_the_same_and_inputs_stay(name: str) -> None:
    before = [tensor.clone() for tensor in (EVEN.support, EVEN.query)]
    assert torch.equal(EVEN.predict(name), EVEN.predict(name))
    assert torch.equal(before[0], EVEN.support) and torch.equal(before[1], EVEN.query)


@pytest.mark.parametrize("name", [name for name in NAMES if METHODS[name].kind == "inductive"])
def test_an_inductive_method_judges_each_query_alone(name: str) -> None:
    few = replace(EVEN, query=EVEN.query[:, :3], query_mask=EVEN.query_mask[:, :3])
    torch.testing.assert_close(few.predict(name), EVEN.predict(name)[:, :3], rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in NAMES if METHODS[name].kind == "transductive"])
def test_a_transductive_method_looks_at_the_other_queries(name: str) -> None:
    few = replace(EVEN, query=EVEN.query[:, :3], query_mask=EVEN.query_mask[:, :3])
    assert float((few.predict(name) - EVEN.predict(name)[:, :3]).abs().max()) > 1e-6


@pytest.mark.parametrize("name", NAMES)
def test_noise_gives_chance_and_far_classes_are_all_found(name: str) -> None:
    for signal, low, high in ((0.0, 0.165, 0.235), (8.0, 0.999, 1.0)):
        batch = make_batch([[5] * 5] * 80, [25] * 80, seed=7, signal=signal)
        labels = torch.arange(25) % 5
        accuracy = float((batch.predict(name).argmax(-1) == labels).float().mean())
        assert low <= accuracy <= high, (signal, accuracy)


@pytest.mark.parametrize("name", NAMES)
def test_defaults_of_the_list_are_those_of_the_function(name: str) -> None:
    method = METHODS[name]
    arguments = list(inspect.signature(method.load()).parameters.values())[4:]
    extra = {"centre"} if method.wants_centre else set()
    assert {a.name for a in arguments} == {setting.name for setting in method.own_settings} | extra
    defaults = {a.name: a.default for a in arguments if a.name not in extra}
    assert {**defaults, "unit_length": False} == method.checked()
    for setting in method.settings:
        assert setting.help.endswith(".") and setting.title[0].isupper()
        assert setting.check(setting.default) == setting.default
        assert setting.kind != "float" or isinstance(setting.default, float)
    for preset, values in method.presets.items():
        assert method.checked(preset=preset) == {**method.checked(), **values}


def test_listing_methods_does_not_import_torch() -> None:
    code = "import sys, fsviz.methods, fsviz.evaluation; print({'torch', 'numba', 'scipy'} & set(sys.modules))"
    root = Path(__file__).resolve().parents[2]
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True)
    assert out.stdout.strip() == "set()"


def test_every_file_is_a_method_with_a_place_of_its_own() -> None:
    root = Path(geometry.__file__).parent
    files = {path.stem for path in root.glob("*.py")} - {"__init__", "declaration", "geometry", "descent", "transport"}
    assert files == set(NAMES) and all(METHODS[name].name == name for name in NAMES)
    assert sorted(method.order for method in METHODS.values()) == list(range(len(METHODS)))
    kinds = [METHODS[name].kind for name in NAMES]
    assert kinds == sorted(kinds) and set(kinds) == {"inductive", "transductive"}


def test_wrong_names_and_values_are_explained() -> None:
    with pytest.raises(UnknownName, match="'protonet'"):
        get("protonets")
    with pytest.raises(UnknownName, match="'steps'"):
        get("tim").checked({"step": 3})
    with pytest.raises(BadInput, match=r"steps of TIM must be a whole number from 0 to 1,000. Got -1"):
        get("tim").checked({"steps": -1})
    with pytest.raises(BadInput, match=r"whole number from 0 to 1,000. Got 2.5"):
        get("tim").checked({"steps": 2.5})
    for value in ("fast", True, float("nan"), None):
        with pytest.raises(BadInput, match="lr of TIM must be a number"):
            get("tim").checked({"lr": value})
    with pytest.raises(UnknownName, match=r"distance of ProtoNet 'manhattan'. Available: euclidean, cosine"):
        get("protonet").checked({"distance": "manhattan"})
    assert get("tim").checked({"steps": 7.0})["steps"] == 7
