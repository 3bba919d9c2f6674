"""Small synthetic features with subgroups, and tasks drawn from them: what the tests of this room share."""

from __future__ import annotations

import numpy as np

from fsviz.records import Features, Tasks


def clustered_features(
    n_classes: int = 6,
    n_images: int = 40,
    n_dims: int = 8,
    spread: float = 1.0,
    seed: int = 0,
    dtype: type = np.float64,
) -> Features:
    """Classes around random centres; image_ids count from 100 in shuffled order, so that ids are not rows."""
    rng = np.random.default_rng(seed)
    centres = 1.5 * rng.normal(size=(n_classes, n_dims))
    class_ids = np.repeat(np.arange(n_classes), n_images)
    values = centres[class_ids] + spread * rng.normal(size=(len(class_ids), n_dims))
    order = rng.permutation(len(class_ids))
    return Features("clusters", "none", values[order].astype(dtype), 100 + np.arange(len(order)), class_ids[order])


def random_tasks(features: Features, n_tasks: int, n_way: int, n_shot: int, n_query: int, seed: int = 1) -> Tasks:
    rng = np.random.default_rng(seed)
    expected = np.unique(features.class_ids)
    class_ids = np.stack([rng.choice(expected, n_way, replace=False) for _ in range(n_tasks)])
    sampled = np.stack(
        [
            [rng.choice(features.image_ids[features.class_ids == c], n_shot + n_query, replace=False) for c in row]
            for row in class_ids
        ]
    )
    return Tasks(class_ids, sampled[:, :, :n_shot], sampled[:, :, n_shot:])


def query_loss(features: Features, support: np.ndarray, query: np.ndarray, loss: str, scale: float) -> float:
    """Cross-entropy of one task's queries (W, Q) under the prototypes of its support (W, S), written out plainly."""
    prototypes = np.stack([features.values[features.rows_of(s[s >= 0])].mean(axis=0) for s in support])
    losses = []
    for label, row in enumerate(query):
        for x in features.values[features.rows_of(row[row >= 0])]:
            if loss == "euclidean":
                logits = -scale * ((x - prototypes) ** 2).sum(axis=1)
            else:
                logits = scale * prototypes @ x / np.linalg.norm(x) / np.linalg.norm(prototypes, axis=1)
            losses.append(np.logaddexp.reduce(logits) - logits[label])
    return float(np.mean(losses))


def accuracy(features: Features, tasks: Tasks) -> float:
    """Mean accuracy of nearest prototypes."""
    hits = []
    for support, query in zip(tasks.support, tasks.query, strict=True):
        prototypes = np.stack([features.values[features.rows_of(s[s >= 0])].mean(axis=0) for s in support])
        for label, row in enumerate(query):
            x = features.values[features.rows_of(row[row >= 0])]
            distance = ((x[:, None] - prototypes) ** 2).sum(axis=2)
            hits.extend(distance.argmin(axis=1) == label)
    return float(np.mean(hits))
