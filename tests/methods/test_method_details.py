"""Hand-computed cases, the parts that methods share, and easyfsl as an oracle where the algorithms coincide."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fsviz import datasets, features
from fsviz.errors import BadInput
from fsviz.methods import METHODS, descent, geometry, logistic, transport
from tests.methods.test_methods import EVEN, RAGGED, Batch, make_batch


def whole(support: list, query: list) -> Batch:
    """One task without padding from nested lists."""
    s, q = torch.tensor([support], dtype=torch.float32), torch.tensor([query], dtype=torch.float32)
    return Batch(s, torch.ones(s.shape[:3], dtype=torch.bool), q, torch.ones(q.shape[:2], dtype=torch.bool))


def test_protonet_by_hand() -> None:
    batch = whole([[[0.0, 0.0], [0.0, 2.0]], [[3.0, 1.0], [3.0, 1.0]]], [[1.0, 1.0]])
    # prototypes (0, 1) and (3, 1): squared distances 1 and 4
    expected = torch.tensor([1 / (1 + math.exp(-3)), 1 / (1 + math.exp(3))])
    torch.testing.assert_close(batch.predict("protonet")[0, 0], expected)


def test_the_order_of_very_unlikely_classes_survives() -> None:
    # squared distances 0, 100, 400, ...: as plain float32 softmax all but two would be exactly 0
    batch = whole([[[10.0 * w]] for w in range(12)], [[0.0]])
    answer = batch.predict("protonet")[0, 0]
    assert bool((answer.diff() < 0).all()) and float(answer[-1]) > 0
    assert float(answer.sum()) == pytest.approx(1)


def test_knn_votes_and_ties_by_hand() -> None:
    batch = whole([[[1.0], [9.0]], [[2.0], [8.0]]], [[0.0], [10.0]])
    first, two = batch.predict("knn")[0], batch.predict("knn", k=2)[0]
    assert first.argmax(1).tolist() == [0, 0]
    # k = 2: one vote each; the class with the nearer image wins the tie, by a hundredth of a vote
    assert two.argmax(1).tolist() == [0, 0]
    torch.testing.assert_close(two[0], torch.tensor([1.01, 1.005]) / 2.015)


def test_ridge_by_hand() -> None:
    # orthogonal unit supports and penalty 1: each weight vector is half its support image
    batch = whole([[[2.0, 0.0]], [[0.0, 3.0]]], [[1.0, 0.0]])
    torch.testing.assert_close(batch.predict("ridge", scale=2.0)[0, 0], torch.tensor([1.0, 0.0]).softmax(0))


def test_matching_counts_shots() -> None:
    # all cosines are 1, so the attention of a class is its share of the support images
    support = torch.ones(1, 2, 3, 4)
    mask = torch.tensor([[[True, True, True], [True, False, False]]])
    answer = Batch(support, mask, torch.ones(1, 1, 4), torch.ones(1, 1, dtype=torch.bool)).predict("matching")
    torch.testing.assert_close(answer[0, 0], torch.tensor([0.75, 0.25]))


def test_simpleshot_takes_the_centre_off() -> None:
    # seen from (10, 10) the query points the way of class 1, seen from the origin that of class 0
    batch = whole([[[12.0, 10.0]], [[10.0, 11.0]]], [[10.0, 10.5]])
    far = batch.predict("simpleshot", centre=torch.tensor([10.0, 10.0]))
    torch.testing.assert_close(far[0, 0], torch.tensor([-2.0, 0.0]).softmax(0))
    assert float((batch.predict("simpleshot", centring="none") - far).abs().max()) > 0.1


def test_bd_cspn_weights_by_hand() -> None:
    # one shot each; the mean shift is zero; the query joins class 0 at cosine c
    batch = whole([[[1.0, 0.0]], [[-1.0, 0.0]]], [[0.6, 0.8], [-0.6, -0.8]])
    from fsviz.methods.bd_cspn import rectified_prototypes

    got = rectified_prototypes(batch.support, batch.support_mask, batch.query, batch.query_mask)[0]
    own, lent = math.exp(1.0), math.exp(0.6)
    first = torch.tensor([(own + 0.6 * lent) / (own + lent), 0.8 * lent / (own + lent)])
    torch.testing.assert_close(got, torch.stack([first, -first]))


def test_transport_serves_rows_and_columns() -> None:
    cost = torch.rand(4, 5, 30, generator=torch.Generator().manual_seed(0)) * 8
    ways, there = torch.ones(4, 5, dtype=torch.bool), torch.ones(4, 30, dtype=torch.bool)
    ways[1, 2] = False
    there[2, 20:] = False
    plan, appeal = transport.transport(cost, ways, there)
    torch.testing.assert_close(plan.sum(1), there.float(), rtol=0, atol=1e-4)
    share = there.sum(1, keepdim=True) / ways.sum(1, keepdim=True)
    torch.testing.assert_close(plan.sum(2), share * ways, rtol=0, atol=1e-4)
    by_softmax = geometry.softmax(appeal.unsqueeze(-1) - cost, ways) * there.unsqueeze(1)
    torch.testing.assert_close(by_softmax, plan, rtol=0, atol=1e-4)


def test_transport_for_other_devices_gives_the_same_plan() -> None:
    generator = torch.Generator().manual_seed(1)
    cost = torch.rand(6, 4, 21, generator=generator) * 20
    ways = torch.rand(6, 4, generator=generator) > 0.3
    ways[:, 0] = True
    there = torch.rand(6, 21, generator=generator) > 0.2
    loops, batched = transport.transport(cost, ways, there), transport.transport_batched(cost, ways, there)
    torch.testing.assert_close(loops[0], batched[0], rtol=0, atol=1e-4)
    torch.testing.assert_close(loops[1][ways], batched[1][ways], rtol=1e-3, atol=1e-3)


def test_transport_to_a_way_out_of_reach_stays_finite() -> None:
    cost = torch.zeros(1, 2, 4)
    cost[0, 1] = 5000.0
    everything = torch.ones(1, 2, dtype=torch.bool), torch.ones(1, 4, dtype=torch.bool)
    for solve in (transport.transport, transport.transport_batched):
        assert all(bool(part.isfinite().all()) for part in solve(cost, *everything))


@pytest.mark.parametrize("decay", [0.0, 0.01])
def test_adam_equals_torchs(decay: float) -> None:
    generator = torch.Generator().manual_seed(2)
    start, target = torch.randn(3, 2, 7, generator=generator), torch.randn(3, 2, 7, generator=generator)

    def gradient(weights: Tensor) -> Tensor:
        return 2 * (weights - target)

    weights = start.clone().requires_grad_()
    optimiser = torch.optim.Adam([weights], lr=0.05, weight_decay=decay)
    for _ in range(40):
        optimiser.zero_grad()
        ((weights - target) ** 2).sum().backward()
        optimiser.step()
    torch.testing.assert_close(descent.adam(start, gradient, 40, 0.05, decay), weights.detach(), rtol=1e-5, atol=1e-5)
    # float64 takes the path of other devices
    exact = descent.adam(start.double(), lambda w: 2 * (w - target.double()), 40, 0.05, decay)
    torch.testing.assert_close(exact.float(), weights.detach(), rtol=1e-5, atol=1e-5)


def test_each_task_stops_after_its_own_number_of_steps() -> None:
    start = torch.ones(3, 1, 2)
    stops = torch.tensor([0, 2, 5])
    got = descent.adam(start, lambda w: w.clone(), 5, 0.1, stops=stops)
    for task, stop in enumerate(stops.tolist()):
        expected = descent.adam(start[task : task + 1], lambda w: w.clone(), stop, 0.1)
        torch.testing.assert_close(got[task : task + 1], expected)


def losses_and_accuracy(weights: Tensor, batch: Batch) -> tuple[float, float]:
    """Mean loss on the support and accuracy on the queries of linear layers (T, W, D + 1), their biases last."""
    n_tasks, n_way, n_shot, _ = batch.support.shape
    support, query = (descent.with_bias(geometry.unit(x)) for x in (batch.support.flatten(1, 2), batch.query))
    labels = torch.arange(n_way).repeat_interleave(n_shot).expand(n_tasks, -1)
    loss = torch.nn.functional.cross_entropy(torch.bmm(weights, support.transpose(1, 2)), labels)
    right = torch.bmm(weights, query.transpose(1, 2)).argmax(1) == torch.arange(query.shape[1]) % n_way
    return float(loss), float(right.float().mean())


def published_loop(batch: Batch) -> Tensor:
    """The same layers as the published script trains them: task by task, from random weights, randomly shuffled."""
    _, n_way, n_shot, dims = batch.support.shape
    labels = torch.arange(n_way).repeat_interleave(n_shot)
    layers = []
    for images in geometry.unit(batch.support.flatten(1, 2)):
        layer = torch.nn.Linear(dims, n_way)
        optimiser = torch.optim.Adam(layer.parameters(), lr=0.01, weight_decay=5e-6)
        for _ in range(50):
            for part in torch.randperm(len(images)).split(5):
                optimiser.zero_grad()
                torch.nn.functional.cross_entropy(layer(images[part]), labels[part]).backward()
                optimiser.step()
        layers.append(torch.cat([layer.weight, layer.bias[:, None]], 1).detach())
    return torch.stack(layers)


def demo_batch(n_way: int, n_shot: int, n_tasks: int, n_query: int = 10) -> Batch:
    """Tasks of the demo's classes, with the features that it ships."""
    table = features.load(datasets.load("demo"), "efficientnet_lite0")
    rows_of = [np.flatnonzero(table.class_ids == c) for c in np.unique(table.class_ids)]
    rng = np.random.default_rng(0)
    ways = [rng.choice(len(rows_of), n_way, replace=False) for _ in range(n_tasks)]
    rows = np.array([[rng.permutation(rows_of[c])[: n_shot + n_query] for c in task] for task in ways])
    images = torch.from_numpy(np.asarray(table.values[rows], dtype=np.float32))
    support, query = images[:, :, :n_shot], images[:, :, n_shot:].transpose(1, 2).flatten(1, 2)
    return Batch(support, ~support.isnan().any(-1), query, ~query.isnan().any(-1))


def test_logistic_regression_learns_like_a_loop_over_tasks_whatever_the_ways_and_shots() -> None:
    torch.manual_seed(0)
    losses = {}
    for n_way, n_shot, n_tasks in ((2, 5, 30), (5, 5, 10), (20, 5, 2), (5, 20, 2), (3, 4, 8)):
        batch = demo_batch(n_way, n_shot, n_tasks)
        ours = losses_and_accuracy(logistic.train(geometry.unit(batch.support), batch.support_mask), batch)
        theirs = losses_and_accuracy(published_loop(batch), batch)
        assert ours[0] == pytest.approx(theirs[0], rel=0.15), (n_way, n_shot)
        assert ours[1] == pytest.approx(theirs[1], abs=0.02), (n_way, n_shot)
        assert 0.5 < ours[1] < 0.99
        losses[n_way, n_shot] = ours[0]
    assert losses[2, 5] < losses[20, 5] < losses[5, 5]  # as the published script has it
    assert losses[5, 20] < losses[5, 5] / 2


@pytest.mark.parametrize(
    ("n_way", "n_shot", "steps"),
    [(5, 1, 50), (2, 5, 100), (5, 5, 250), (20, 5, 1000), (5, 20, 1000), (20, 20, 4000), (3, 4, 150)],
)
def test_logistic_regression_takes_a_step_per_five_images_and_epoch(
    n_way: int, n_shot: int, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    subset = []
    adam = descent.adam

    def counted(start: Tensor, gradient: descent.Gradient, *rest: Any) -> Tensor:
        return adam(start, lambda weights: subset.append(1) or gradient(weights), *rest)

    monkeypatch.setattr(descent, "adam", counted)
    logistic.train(torch.rand(2, n_way, n_shot, 3), torch.ones(2, n_way, n_shot, dtype=torch.bool))
    assert len(subset) == steps


def test_every_epoch_of_logistic_regression_sees_every_image_once() -> None:
    batches, stops = logistic._mini_batches(torch.tensor([12, 5, 12]), 3)
    assert stops.tolist() == [9, 3, 9] and batches.shape == (9, 3, 5)
    for task, size in enumerate((12, 5, 12)):
        epochs = batches[: stops[task], task].reshape(3, -1)
        assert all(sorted(epoch[epoch >= 0].tolist()) == list(range(size)) for epoch in epochs)
        assert len({tuple(epoch.tolist()) for epoch in epochs}) == 3  # shuffled anew
    assert torch.equal(batches[:, 0], batches[:, 2]) and bool((batches[3:, 1] == -1).all())


# What easyfsl calls the methods that have a preset of its values, and what it must be told.
ORACLES: dict[str, tuple[str, dict]] = {
    "protonet": ("PrototypicalNetworks", {}),
    "simpleshot": ("SimpleShot", {}),
    "bd_cspn": ("BDCSPN", {}),
    "finetune": ("Finetune", {}),
    "tim": ("TIM", {}),
    "transductive_finetuning": ("TransductiveFinetuning", {}),
    "laplacian_shot": ("LaplacianShot", {}),
    "pt_map": ("PTMAP", {}),
    "matching": ("MatchingNetworks", {"feature_dimension": 64}),
}


@pytest.fixture(scope="module")
def easyfsl():
    from fsviz.features import torchvision_guard

    torchvision_guard.install()
    return pytest.importorskip("easyfsl.methods")


@pytest.mark.parametrize(
    ("name", "parameters", "oracle", "theirs"),
    [
        ("protonet", {}, "PrototypicalNetworks", {}),
        ("protonet", {"distance": "cosine"}, "SimpleShot", {}),
        ("simpleshot", {"distance": "cosine"}, "SimpleShot", {"feature_normalization": 2.0}),
        ("finetune", {}, "Finetune", {"fine_tuning_steps": 10, "fine_tuning_lr": 1e-3}),
        ("bd_cspn", {}, "BDCSPN", {}),
        ("tim", {"distance": "cosine", "scale": 10.0}, "TIM", {"fine_tuning_steps": 100, "fine_tuning_lr": 1e-3}),
        ("transductive_finetuning", {}, "TransductiveFinetuning", {}),
        # theirs counts the query itself among its neighbours
        ("laplacian_shot", {}, "LaplacianShot", {"feature_normalization": 2.0}),
        (
            "laplacian_shot",
            {"normalise": "none", "smoothness": 2.0},
            "LaplacianShot",
            {"lambda_regularization": 2.0},
        ),
        ("pt_map", {"normalise": "before", "steps": 10}, "PTMAP", {"feature_normalization": 2.0}),
        *(
            (
                name,
                {k: v for k, v in METHODS[name].checked(preset="easyfsl").items() if k != "unit_length"},
                oracle,
                theirs,
            )
            for name, (oracle, theirs) in ORACLES.items()
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_easyfsl_says_the_same(name: str, parameters: dict, oracle: str, theirs: dict, easyfsl) -> None:
    batch = make_batch([[5] * 5] * 12, [25] * 12, dims=64, seed=5, signal=0.5)
    if name == "pt_map":  # theirs has no numbers for long features: exp(-10 times a squared distance) is 0 in float32
        batch = replace(batch, support=batch.support / 6, query=batch.query / 6)
    if name == "simpleshot" and parameters.get("centring") != "none":
        parameters = {**parameters, "centre": batch.support.mean((0, 1, 2))}
        theirs = {**theirs, "feature_centering": parameters["centre"]}
    got = batch.predict(name, **parameters).argmax(-1)
    labels = torch.arange(5).repeat_interleave(5)
    expected = []
    for support, query in zip(batch.support, batch.query):
        classifier = getattr(easyfsl, oracle)(**theirs)
        if name == "matching":
            blank_encoders(classifier)
        classifier.process_support_set(support.reshape(25, -1), labels)
        with torch.no_grad():
            expected.append(classifier(query).argmax(-1))
    accuracy = (got == torch.arange(25) % 5).float().mean()
    assert 0.5 < float(accuracy) < 1  # neither hopeless nor trivial
    assert torch.equal(got, torch.stack(expected))


def blank_encoders(matching: torch.nn.Module) -> None:
    """Takes the context encoders out of easyfsl's matching networks: with weights of zero they add zero."""
    for weights in matching.parameters():
        torch.nn.init.zeros_(weights)


def test_every_preset_of_easyfsl_is_held_against_easyfsl() -> None:
    assert {name for name, method in METHODS.items() if "easyfsl" in method.presets} == set(ORACLES)


def test_a_method_that_easyfsl_does_not_have_says_so() -> None:
    for name in set(METHODS) - set(ORACLES):
        assert not METHODS[name].presets
        with pytest.raises(BadInput, match=r"has no presets: easyfsl does not have this method\. Got 'easyfsl'"):
            METHODS[name].checked(preset="easyfsl")


def test_easyfsl_probabilities_of_tim_and_finetune(easyfsl) -> None:
    for name, parameters, theirs in (
        ("finetune", {}, easyfsl.Finetune(use_softmax=True, fine_tuning_steps=10, fine_tuning_lr=1e-3)),
        ("tim", {"distance": "cosine", "scale": 10.0, "steps": 50, "lr": 1e-4}, easyfsl.TIM(use_softmax=True)),
    ):
        answer = EVEN.predict(name, **parameters)
        theirs.process_support_set(EVEN.support[0].reshape(25, -1), torch.arange(5).repeat_interleave(5))
        torch.testing.assert_close(answer[0], theirs(EVEN.query[0]), rtol=0, atol=1e-4)


def test_identical_images_do_no_harm() -> None:
    """Duplicates and zero vectors: distances of zero, lengths of zero."""
    support, query = torch.zeros(2, 3, 2, 6), torch.zeros(2, 4, 6)
    support[1], query[1] = 1.0, 1.0
    batch = Batch(support, torch.ones(2, 3, 2, dtype=torch.bool), query, torch.ones(2, 4, dtype=torch.bool))
    for name in METHODS:
        answer = batch.predict(name)
        near = 0.05 if name == "logistic" else 1e-3  # which favours the classes of its last mini-batches a little
        torch.testing.assert_close(answer, torch.full((2, 4, 3), 1 / 3), rtol=0, atol=near, msg=name)


def test_one_class_alone_gets_everything() -> None:
    for name in METHODS:
        batch = make_batch([[2, 0], [1, 3]], [3, 4])
        assert bool((batch.predict(name)[0, :3, 0] == 1).all()), name


def test_masks_of_a_ragged_batch_are_what_the_tests_think() -> None:
    assert RAGGED.support_mask.sum((1, 2)).tolist() == [11, 20, 6, 4, 9]
    assert RAGGED.query_mask.sum(1).tolist() == [12, 20, 7, 9, 1]


def test_a_sharper_softmax_of_bd_cspn_changes_no_prediction_but_spreads_its_confidence() -> None:
    import torch

    from fsviz.methods.bd_cspn import predict

    random = torch.Generator().manual_seed(0)
    centres = torch.randn(5, 64, generator=random) + 3.0  # features share a large mean, as those of backbones do
    support = (centres[:, None] + 0.5 * torch.randn(5, 3, 64, generator=random))[None]
    query = (centres.repeat_interleave(8, 0) + torch.randn(40, 64, generator=random))[None]
    masks = torch.ones(1, 5, 3, dtype=torch.bool), torch.ones(1, 40, dtype=torch.bool)
    plain, sharp = (predict(support, masks[0], query, masks[1], **more) for more in ({"scale": 1.0}, {}))
    assert torch.equal(plain.argmax(1), sharp.argmax(1))
    spreads = [float(scores.softmax(1).amax(1).max() - scores.softmax(1).amax(1).min()) for scores in (plain, sharp)]
    assert spreads[0] < 0.05 < spreads[1]
