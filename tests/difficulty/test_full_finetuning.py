from __future__ import annotations

import numpy as np
import pytest
import torch

from fsviz.difficulty.full_finetuning import augmented, choose_learning_rate, finetuned_scores
from fsviz.errors import BadInput


def tiny_network() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, stride=2, padding=1),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
    )


def stripes(n_each: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Noisy images with horizontal or vertical stripes of any phase and colour."""
    rng = np.random.default_rng(seed)
    images, labels = [], []
    for label in range(2):
        for _ in range(n_each):
            wave = 0.5 + 0.4 * np.sin(np.arange(16) * 1.6 + rng.uniform(0, 6))
            image = np.broadcast_to(wave[:, None] if label else wave[None, :], (16, 16))
            images.append(image * rng.uniform(0.5, 1, (3, 1, 1)) + 0.1 * rng.normal(size=(3, 16, 16)))
            labels.append(label)
    return torch.from_numpy(np.clip(images, 0, 1).astype(np.float32)), torch.tensor(labels)


def test_finetuning_learns_the_task_and_leaves_the_network_as_it_was() -> None:
    network = tiny_network().requires_grad_(False)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    support, labels = stripes(5, 0)
    query, truth = stripes(40, 1)

    def accuracy(n_steps: int) -> float:
        answer = finetuned_scores(network, network, support, labels, query, 1e-2, n_steps, 0.9, seed=1)
        return float((answer.argmax(dim=1) == truth).float().mean())

    assert accuracy(60) > max(0.85, accuracy(0) + 0.1)
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
    assert not any(p.requires_grad for p in network.parameters())


def test_no_step_is_plain_cosine_prototypes_and_seeds_repeat() -> None:
    network = tiny_network()
    support, labels = stripes(3, 0)
    query, _ = stripes(4, 1)
    untouched = finetuned_scores(network, network, support, labels, query, 1e-3, n_steps=0)
    with torch.inference_mode():
        features = torch.nn.functional.normalize(network.eval()(query), dim=1)
        means = torch.stack([network(support)[labels == k].mean(dim=0) for k in range(2)])
        expected = 10 * features @ torch.nn.functional.normalize(means, dim=1).T
    torch.testing.assert_close(untouched, expected)
    first, again = (finetuned_scores(network, network, support, labels, query, 1e-3, 5, seed=3) for _ in range(2))
    assert torch.equal(first, again)


def test_augmented_images_are_images_and_differ_from_each_other() -> None:
    images, _ = stripes(4, 0)
    changed = augmented(images, torch.Generator().manual_seed(0))
    assert changed.shape == images.shape
    assert float(changed.min()) >= 0
    assert float(changed.max()) <= 1
    assert float((changed - images).abs().mean()) > 0.05


def test_the_best_learning_rate_wins_and_the_smaller_one_of_equals() -> None:
    assert choose_learning_rate({1e-4: 0.5, 1e-3: 0.7, 1e-2: 0.6}.get)[0] == 1e-3
    best, reached = choose_learning_rate({1e-4: 0.5, 1e-3: 0.7, 1e-2: 0.7}.get)
    assert best == 1e-3
    assert reached == {1e-4: 0.5, 1e-3: 0.7, 1e-2: 0.7}


def test_bad_settings_are_named() -> None:
    network = tiny_network()
    support, labels = stripes(2, 0)
    with pytest.raises(BadInput, match="learning rate"):
        finetuned_scores(network, network, support, labels, support, 0.0)
