"""The penalised clustering: its formula by hand, its slope, what it reaches, and what it finds on the demo."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fsviz import datasets, features
from fsviz.errors import BadInput, NotFinite, UnknownName
from fsviz.splits import assignment
from fsviz.splits.clustering import DIVERGENCES, class_points, cluster, log_probabilities, objective
from fsviz.splits.optimizers import descent, lbfgs


@pytest.fixture(scope="module")
def demo() -> np.ndarray:
    """Mean features of the demo's 107 classes."""
    table = features.load(datasets.load("demo"), "efficientnet_lite0")
    values = np.asarray(table.values, dtype=float)
    return np.stack([values[table.class_ids == c].mean(0) for c in range(107)])


def blobs(n_classes: int = 30, dims: int = 40, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(3, dims))[rng.integers(0, 3, n_classes)] + 0.4 * rng.normal(size=(n_classes, dims))


def test_objective_by_hand() -> None:
    """Two classes at 0 and 1 on a line, centroids there too: p = (a, 1-a) and (1-a, a) with a = 1 / (1 + 1/e)."""
    points, mu = torch.tensor([[0.0], [1.0]]).double(), torch.tensor([[[0.0], [1.0]]]).double()
    a = 1 / (1 + np.exp(-1))
    p = log_probabilities(points, mu).exp().numpy()
    assert np.allclose(p, [[[a, 1 - a], [1 - a, a]]])
    kl = (2 * a - 1) * 1.0  # log a - log (1 - a) = 1
    expected = {"kl": kl, "symmetric_kl": 2 * kl, "euclidean": 1.0, "wasserstein": 2 * a - 1}
    for name, target in expected.items():
        assert DIVERGENCES[name].of(points, mu, log_probabilities(points, mu)).item() == pytest.approx(target, abs=2e-6)
        result = objective(points, mu, torch.tensor([0.5]).double(), 3.0, name).item()
        assert result == pytest.approx(2 * np.log(2) + 3 * (target - 0.5) ** 2, abs=2e-5)  # the mixture is even


def test_the_squared_norm_of_a_centroid_drops_out() -> None:
    points, mu = torch.randn(9, 4).double(), torch.randn(3, 2, 4).double()
    plain = torch.log_softmax(-((points - mu[:, :, None]) ** 2).sum(-1), -1)
    assert torch.allclose(log_probabilities(points, mu), plain)


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_slopes_agree_with_finite_differences(divergence: str) -> None:
    torch.manual_seed(0)
    points, mu = torch.randn(12, 3).double(), torch.randn(5, 2, 3).double().requires_grad_()
    target = torch.linspace(0, 2, 5).double()
    assert torch.autograd.gradcheck(lambda m: objective(points, m, target, 1.5, divergence), mu)


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_slopes_are_numbers_where_both_centroids_meet(divergence: str) -> None:
    mu = torch.zeros(1, 2, 3).double().requires_grad_()
    value = objective(torch.randn(12, 3).double(), mu, torch.zeros(1).double(), 1.0, divergence)
    assert torch.isfinite(torch.autograd.grad(value.sum(), mu)[0]).all()


def test_lbfgs_finds_the_minimum_of_every_problem_on_its_own() -> None:
    """Rosenbrock's valley from five places, next to a bowl scaled by up to a million."""
    start = torch.tensor([[-1.2, 1.0], [2.0, 2.0], [0.0, 0.0], [-3.0, -4.0], [1.0, 1.0]]).double()
    end = lbfgs(lambda x, _: (1 - x[:, 0]) ** 2 + 100 * (x[:, 1] - x[:, 0] ** 2) ** 2, start, tolerance=1e-15)
    assert torch.allclose(end, torch.ones(5, 2).double(), atol=1e-5)
    scale = torch.tensor([1e-3, 1.0, 1e3]).double()
    bowl = lbfgs(lambda x, which: scale[which] * ((x - 3) ** 2).sum(-1), torch.zeros(3, 7).double(), tolerance=1e-15)
    assert torch.allclose(bowl, torch.full((3, 7), 3.0).double(), atol=1e-4)
    alone = lbfgs(lambda x, _: (1 - x[:, 0]) ** 2 + 100 * (x[:, 1] - x[:, 0] ** 2) ** 2, start[:1], tolerance=1e-15)
    assert torch.allclose(alone, end[:1], atol=1e-8)


def test_no_divergence_leaves_two_equal_distributions() -> None:
    result = cluster(class_points(blobs()), [0.0], starts=4)
    p = np.exp(result.log_p[0, 0])
    assert np.abs(p[0] - p[1]).sum() / 2 < 0.04 and result.divergence[0, 0] < 0.01  # (D - 0)^2 is flat around 0


@pytest.mark.parametrize("divergence", ["symmetric_kl", "kl", "euclidean"])
def test_what_is_asked_is_reached_with_all_dimensions(divergence: str) -> None:
    result = cluster(
        class_points(blobs()), [0.04, 0.32, 0.64, 0.96, 2.0], starts=2, seeds=(0, 1), divergence=divergence
    )
    assert np.allclose(result.divergence, result.targets, rtol=0.05)
    floor = 30 * np.log(30)
    assert np.allclose(result.objective, floor, rtol=1e-3)


def test_centroids_move_apart_as_more_is_asked(demo: np.ndarray) -> None:
    result = cluster(class_points(demo)[:, :8], [0.04, 0.32, 0.96, 2.0, 6.0], starts=16)
    assert (np.diff(result.distance[0]) > 0).all() and (np.diff(result.divergence[0]) > 0).all()


def test_the_trial_on_the_demo_is_found_again(demo: np.ndarray) -> None:
    """Stable: ten seeds, one split. With all dimensions every start reaches M log M, and seeds agree by chance."""
    stable = cluster(class_points(demo)[:, :8], [0.96], seeds=range(10))
    sides = np.stack([assignment.assign(scores, seed) for seed, scores in enumerate(stable.scores[:, 0])])
    assert assignment.agreement(sides) == 1.0  # test and val classes as well
    assert np.abs(stable.scores - stable.scores[0]).max() < 1e-4
    assert stable.divergence[:, 0] == pytest.approx(0.728, abs=0.002)
    rest = cluster(class_points(demo)[:, :8], [2.0, 6.0])
    assert rest.divergence[0] == pytest.approx([1.488, 4.640], abs=0.002)
    paper = cluster(class_points(demo), [0.96], seeds=range(8), starts=1)
    assert paper.objective == pytest.approx(107 * np.log(107), abs=1e-3)
    assert paper.divergence == pytest.approx(0.96, abs=1e-3)
    sides = np.stack([assignment.assign(scores, seed) for seed, scores in enumerate(paper.scores[:, 0])])
    assert abs(assignment.agreement(sides) - assignment.expected_agreement(107)) < 0.1


def test_the_train_side_is_the_wider_one_and_seeds_give_the_same_numbers() -> None:
    points = class_points(blobs())[:, :4]
    result = cluster(points, [0.3, 2.0], seeds=(0, 1), starts=8)
    entropy = -(np.exp(result.log_p) * result.log_p).sum(-1)
    assert (entropy[..., 0] >= entropy[..., 1]).all()
    again = cluster(points, [2.0], seeds=(1,), starts=8)
    assert np.allclose(again.log_p[0, 0], result.log_p[1, 1], atol=1e-6)  # whatever else is in the batch


def test_the_authors_descent_is_torchs_sgd_with_momentum_and_goes_where_lbfgs_goes() -> None:
    points, target = torch.as_tensor(class_points(blobs())), torch.tensor([0.32]).double()
    start = torch.as_tensor(np.random.default_rng(0).normal(size=(1, 2 * points.shape[1])))

    def of(numbers: torch.Tensor, which: torch.Tensor | None = None) -> torch.Tensor:
        return objective(points, numbers.view(1, 2, -1), target, 1.0, "symmetric_kl")

    theirs = start.clone().requires_grad_()
    optimiser = torch.optim.SGD([theirs], lr=0.1, momentum=0.9)
    for _ in range(60):
        optimiser.zero_grad()
        of(theirs).sum().backward()
        optimiser.step()
    assert torch.allclose(descent(of, start, steps=60), theirs.detach())
    assert of(descent(of, start, steps=800)).item() == pytest.approx(of(lbfgs(of, start)).item(), rel=0.01)


def test_class_points_are_centred_turned_and_of_unit_length_before() -> None:
    means = blobs()
    points = class_points(means)
    unit = means / np.linalg.norm(means, axis=1, keepdims=True)
    assert points.shape == (30, 29) and np.allclose(points.mean(0), 0)
    apart = np.linalg.norm(unit[:, None] - unit[None], axis=-1)
    assert np.allclose(np.linalg.norm(points[:, None] - points[None], axis=-1), apart)
    assert np.allclose(class_points(1e6 * means), points) and np.all(np.diff(points.std(0)) <= 1e-12)
    wide = blobs(n_classes=60, dims=7)  # more classes than dimensions
    assert class_points(wide).shape == (60, 7)
    unit = wide / np.linalg.norm(wide, axis=1, keepdims=True)
    centred = unit - unit.mean(0)
    assert np.allclose(class_points(wide) @ class_points(wide).T, centred @ centred.T)


@pytest.mark.parametrize(
    ("means", "kind", "message"),
    [
        (blobs(9), BadInput, "at least 10 classes.*Got 9"),
        (np.ones((12, 5)), BadInput, "All 12 classes have the same mean feature"),
        (np.full((12, 5), np.nan), NotFinite, "not finite"),
    ],
)
def test_class_features_that_cannot_be_split_are_one_sentence(means: np.ndarray, kind: type, message: str) -> None:
    with pytest.raises(kind, match=message):
        class_points(means)


def test_unknown_names_are_answered() -> None:
    points = class_points(blobs())[:, :2]
    with pytest.raises(UnknownName, match="divergence 'symmetric'"):
        cluster(points, [1.0], divergence="symmetric")
    with pytest.raises(UnknownName, match="solver 'adam'"):
        cluster(points, [1.0], solver="adam")
    with pytest.raises(NotFinite, match="SGD left the range"):
        cluster(points, [50.0], starts=1, penalty=1000.0, solver="sgd")
