"""Gradient steps on a task: numbers worked out by hand, and compared with plain loops with torch.autograd."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.func import functional_call, vmap
from torch.nn import functional as F

from fsviz.training import anil, declaration, finetuning, maml, networks, prototypes
from fsviz.training.inner_loop import adapt, task_scores

SETTINGS = maml.TRAINER.checked({"width": 4, "side": 16, "n_way": 3, "n_shot": 2, "n_query": 2, "inner_steps": 2})
SUPPORT, QUERY = np.arange(12).reshape(2, 3, 2), np.arange(12, 24).reshape(2, 3, 2)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def images() -> networks.Images:
    values = np.random.default_rng(0).integers(0, 256, (24, 16, 16, 3), dtype=np.uint8)
    return networks.Images(values, (0.5,) * 3, (0.25,) * 3)


def residual_loss(x: float, y: float):
    """Half the squared error of the line a x + b at one point: two parameters, a Hessian of [[x x, x], [x, 1]]."""
    return lambda w: 0.5 * (w["a"] * x + w["b"] - y) ** 2


@pytest.mark.parametrize(
    ("steps", "first_order", "there", "meta"),
    [
        # support (2, 1), query (1, 0), rate 0.1, from a = 1 and b = 0. The residual is 1, its slope (2, 1).
        (1, True, (0.8, -0.1), (0.7, 0.7)),  # the query's residual, times (1, 1)
        (1, False, (0.8, -0.1), (0.28, 0.49)),  # that times 1 - 0.1 [[4, 2], [2, 1]] = [[0.6, -0.2], [-0.2, 0.9]]
        (2, True, (0.7, -0.15), (0.55, 0.55)),
        (2, False, (0.7, -0.15), (0.055, 0.3025)),  # times the same matrix squared, [[0.4, -0.3], [-0.3, 0.85]]
    ],
)
def test_inner_steps_and_meta_gradients_of_two_parameters_by_hand(steps, first_order, there, meta) -> None:
    first = {"a": torch.tensor(1.0, requires_grad=True), "b": torch.tensor(0.0, requires_grad=True)}
    after = adapt(residual_loss(2.0, 1.0), first, steps, 0.1, first_order)
    assert (after["a"].item(), after["b"].item()) == pytest.approx(there)
    residual_loss(1.0, 0.0)(after).backward()
    assert (first["a"].grad.item(), first["b"].grad.item()) == pytest.approx(meta)


def test_many_tasks_at_once_are_tasks_one_by_one() -> None:
    points = torch.tensor([[2.0, 1.0], [0.5, -1.0], [-1.0, 3.0]])
    first = {"a": torch.tensor(1.0), "b": torch.tensor(0.0)}

    def line(point):
        return adapt(lambda w: 0.5 * (w["a"] * point[0] + w["b"] - point[1]) ** 2, first, 3, 0.1)["a"]

    assert torch.allclose(vmap(line)(points), torch.stack([line(point) for point in points]))


def by_loop(module, learner, images, settings) -> torch.Tensor:
    """Loss of the queries after adapting, task by task with torch.autograd; batch norm by the batch."""
    weights = dict(learner.model.named_parameters())
    labels = torch.arange(3).repeat_interleave(2)
    losses = []
    for support, query in zip(SUPPORT, QUERY):
        fast = dict(weights)
        names = [name for name in fast if name.startswith(module.ONLY)]
        for _ in range(settings["inner_steps"]):
            message = functional_call(learner.model, fast, (images(support.reshape(-1)),))
            slope = torch.autograd.grad(
                F.cross_entropy(message, labels), [fast[n] for n in names], create_graph=settings["order"] == "second"
            )
            fast |= {n: fast[n] - settings["inner_lr"] * g for n, g in zip(names, slope)}
        losses.append(F.cross_entropy(functional_call(learner.model, fast, (images(query.reshape(-1)),)), labels))
    return torch.stack(losses).mean()


@pytest.mark.parametrize("order", ["first", "second"])
def test_maml_is_the_plain_loop(images, order: str) -> None:
    settings = {**SETTINGS, "order": order, "statistics": "together"}
    ours, theirs = (maml.build(settings, 3) for _ in range(2))
    ours.model.double(), theirs.model.double()

    def exact(rows: np.ndarray) -> torch.Tensor:
        return images(rows).double()

    loss, _ = maml.step(ours, exact, (SUPPORT, QUERY), settings)
    expected = by_loop(maml, theirs, exact, settings)
    networks.update(theirs, expected)
    assert loss == pytest.approx(expected.item(), rel=1e-9)
    for (name, item), second in zip(ours.model.named_parameters(), theirs.model.parameters()):
        assert torch.allclose(item.grad, second.grad, rtol=1e-7, atol=1e-10), name


def test_the_two_orders_differ(images) -> None:
    slopes = []
    for order in ("first", "second"):
        learner = maml.build(SETTINGS, 3)
        maml.step(learner, images, (SUPPORT, QUERY), {**SETTINGS, "order": order})
        slopes.append(learner.model.head.weight.grad)
    assert not torch.allclose(*slopes, rtol=1e-3)


def test_anil_adapts_the_head_alone(images) -> None:
    settings = {**SETTINGS, "statistics": "support"}
    learner = anil.build(settings, 3)
    weights = dict(learner.model.named_parameters())
    support, query = images(SUPPORT[0].reshape(-1)), images(QUERY[0].reshape(-1))
    with networks.normalised_by_first(learner.model, len(support)):
        features = learner.model.backbone(torch.cat([support, query])).detach()
    labels = torch.arange(3).repeat_interleave(2)
    head, bias = weights["head.weight"].detach().clone(), weights["head.bias"].detach().clone()
    for _ in range(settings["inner_steps"]):  # the slope of the cross-entropy of a linear layer, by hand
        wrong = (torch.softmax(features[:6] @ head.T + bias, 1) - F.one_hot(labels, 3)) / 6
        head, bias = head - settings["inner_lr"] * wrong.T @ features[:6], bias - settings["inner_lr"] * wrong.sum(0)
    scores = task_scores(learner.model, weights, support, query, anil.ONLY, settings)
    assert torch.allclose(scores, features[6:] @ head.T + bias, atol=1e-5)
    changed = task_scores(learner.model, weights, support, query, maml.ONLY, settings)
    assert not torch.allclose(scores, changed, atol=1e-3)  # MAML moves the features too
    scores.sum().backward()
    assert weights["backbone.layer1.0.weight"].grad.abs().sum() > 0  # training still reaches the features


@pytest.mark.parametrize("module", [maml, anil])
@pytest.mark.parametrize(("statistics", "alone"), [("support", True), ("together", False)])
def test_a_query_is_answered_alone_where_the_support_normalises(images, module, statistics: str, alone: bool) -> None:
    settings = {**SETTINGS, "statistics": statistics}
    learner = module.build(settings, 3)
    whole = module.scores(learner, images, SUPPORT, QUERY, settings)
    second = QUERY.copy()
    second[:, 1:] = 0  # the first class's queries stay
    changed = module.scores(learner, images, SUPPORT, second, settings)
    assert torch.allclose(whole[:, :, :2], changed[:, :, :2], atol=1e-4) is alone


def test_scores_change_nothing_and_are_the_same_twice(images) -> None:
    for module in (maml, anil):
        learner = module.build(SETTINGS, 3)
        before = learner.weights()
        first = module.scores(learner, images, SUPPORT, QUERY, SETTINGS)
        assert torch.equal(first, module.scores(learner, images, SUPPORT, QUERY, SETTINGS))
        assert first.shape == (2, 3, 6)
        assert all(np.array_equal(value, before[name]) for name, value in learner.weights().items())


def test_running_statistics_are_those_of_the_images(images) -> None:
    learner = maml.build(SETTINGS, 3)
    networks.remember(learner, images, np.arange(24))
    norm = learner.model.backbone.layer1[1]
    activations = learner.model.backbone.layer1[0](images(np.arange(24)))
    assert torch.allclose(norm.running_mean, activations.mean((0, 2, 3)), atol=1e-5)
    assert torch.allclose(norm.running_var, activations.var((0, 2, 3)), rtol=1e-3)
    item = learner.model.eval()(images(np.array([3])))
    assert torch.allclose(item, learner.model(images(np.arange(6)))[3:4], atol=1e-5)


def test_finetune_without_steps_is_the_nearest_prototype_and_with_steps_it_is_not(images) -> None:
    learner = networks.build(SETTINGS, 7)
    learner.model(images(np.arange(24)))  # running statistics of some images
    before = learner.weights()
    plain = prototypes.scores(learner, images, SUPPORT, QUERY)
    assert torch.allclose(finetuning.scores(learner, images, SUPPORT, QUERY, 0), plain, rtol=1e-3, atol=1e-2)
    assert not torch.allclose(finetuning.scores(learner, images, SUPPORT, QUERY, 3, 0.1), plain, rtol=1e-3, atol=1e-2)
    assert all(np.array_equal(value, before[name]) for name, value in learner.weights().items())


def test_finetune_lowers_the_loss_of_the_support(images) -> None:
    learner = networks.build(SETTINGS, 7)
    labels = torch.arange(3).repeat_interleave(2).repeat(2)

    def loss(steps: int) -> float:
        scores = finetuning.scores(learner, images, SUPPORT, SUPPORT, steps, 1e-3)
        return F.cross_entropy(scores.transpose(1, 2).flatten(0, 1), labels).item()

    assert loss(5) < loss(0)


def test_prototypes_are_means_and_the_nearest_decides() -> None:
    support = torch.tensor([[[[0.0], [2.0]], [[10.0], [14.0]]]])  # means 1 and 12
    assert prototypes.nearest(support, torch.tensor([[[2.0], [9.0]]])).tolist() == [[[-1.0, -100.0], [-64.0, -9.0]]]


def test_a_learner_comes_back_to_the_last_bit(images) -> None:
    first, second = (maml.build(SETTINGS, 3) for _ in range(2))
    for _ in range(2):
        maml.step(first, images, (SUPPORT, QUERY), SETTINGS)
    second.restore(first.arrays())
    for learner in (first, second):
        maml.step(learner, images, (SUPPORT, QUERY), SETTINGS)
    assert all(np.array_equal(value, second.arrays()[name]) for name, value in first.arrays().items())
    assert any(name.startswith("exp_avg_sq.") for name in first.arrays())


def test_networks_have_the_width_and_side_that_are_asked_for(images) -> None:
    for network, width, dims in (("cnn4", 8, 8), ("resnet12", 8, 80)):
        learner = networks.build({**SETTINGS, "network": network, "width": width}, 5)
        assert learner.model.head.in_features == dims
        assert learner.model(images(np.arange(4))).shape == (4, 5)
    by_seed = [networks.build({**SETTINGS, "seed": seed}, 5).weights()["head.weight"] for seed in (0, 0, 1)]
    assert np.array_equal(by_seed[0], by_seed[1]) and not np.array_equal(by_seed[0], by_seed[2])
    assert set(declaration.NETWORK.choices) == {"cnn4", "resnet12"}
