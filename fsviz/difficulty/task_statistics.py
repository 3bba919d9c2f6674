"""Statistics of tasks that measures share, each computed once, without query labels.

Settings (Bontonou et al. 2020)
    supervised    only the labelled support images are seen; a logistic regression then names the queries
    semi          queries are seen too, without labels: all features are first mixed with those of their neighbours
    unsupervised  no label is seen: support and query images are clustered into as many groups as there are classes
T tasks, W ways, S shots, Q queries per class, M = W Q, D dimensions; V images that are seen, in a row: support, then
queries, class by class.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from fsviz.difficulty import n_means, similarity_graph
from fsviz.difficulty.measures.declaration import MeasureInputs, Need
from fsviz.difficulty.similarity_graph import NEIGHBOURS
from fsviz.errors import BadInput
from fsviz.methods import logistic
from fsviz.methods.geometry import softmax, unit, with_ways
from fsviz.numerics import N_PROBED, needs_double
from fsviz.records import Features, Tasks

_MEMORY = 96 * 2**20  # bytes of features and products of a chunk: more leave the caches of a processor
_MOST = 64
_ROWS = 20_000  # images of the tasks whose features are made ready together


SETTINGS = {"supervised": "Supervised", "semi": "Semi-supervised", "unsupervised": "Unsupervised"}


@dataclass(frozen=True)
class TaskView(MeasureInputs):
    """Inputs of measures for T tasks in one setting: unit-length features, zeros for padding.

    query (T, M, D) holds the queries class by class, so that their labels are known, to whoever may see them.
    """

    setting: str = "supervised"
    neighbours: int = NEIGHBOURS

    def has(self, need: Need) -> bool:
        """Whether this setting shows it: labels of the support, queries without labels, images."""
        offers = {"support": self.setting != "unsupervised", "queries": self.setting != "supervised", "images": True}
        return offers[need] if need in offers else super().has(need)

    @property
    def n_ways(self) -> Tensor:
        """Classes of every task (T,)."""
        return self.ways.sum(1)

    @cached_property
    def ways(self) -> Tensor:
        """Mask (T, W) of the ways that a task has."""
        return self.support_mask.any(2)

    @property
    def n_support(self) -> int:
        """Places of the support images in a row: those before the queries."""
        return self.support_mask[0].numel()

    @cached_property
    def mask(self) -> Tensor:
        """Mask (T, V) of the images in view: False for padding."""
        support = self.support_mask.flatten(1)
        return support if self.setting == "supervised" else torch.cat([support, self.query_mask], 1)

    @cached_property
    def labels(self) -> Tensor:
        """The true class of every image that is seen (T, V)."""
        n_ways, n_shot = self.support_mask.shape[1:]
        support = torch.arange(n_ways).repeat_interleave(n_shot)
        rows = support if self.setting == "supervised" else torch.cat([support, self.query_labels])
        return rows.expand(len(self.support), -1)

    @property
    def query_labels(self) -> Tensor:
        """The true class of every query (M,)."""
        n_ways = self.support_mask.shape[1]
        return torch.arange(n_ways).repeat_interleave(self.query_mask.shape[1] // n_ways)

    @cached_property
    def _mixed(self) -> tuple[Tensor, Tensor]:
        """The images that are seen (T, V, D), diffused where queries are seen, and their inner products (T, V, V)."""
        support = self.support.flatten(1, 2)
        if self.setting == "supervised":
            return support, torch.bmm(support, support.transpose(1, 2))
        images = torch.cat([support, self.query], 1)
        products = torch.bmm(images, images.transpose(1, 2))
        graph = similarity_graph.nearest_graph(products, self.mask, self.neighbours)
        mixing = similarity_graph.diffusion(graph)
        return torch.bmm(mixing, images), torch.bmm(torch.bmm(mixing, products), mixing.transpose(1, 2))

    @property
    def images(self) -> Tensor:
        return self._mixed[0]

    @property
    def products(self) -> Tensor:
        return self._mixed[1]

    @cached_property
    def cosines(self) -> Tensor:
        """Cosines (T, V, V) of the images that are seen; zero for an image without length."""
        length = self.products.diagonal(dim1=1, dim2=2).clamp(min=0).sqrt()
        scale = torch.where(length > 0, 1 / length.clamp(min=1e-30), 0.0)
        return self.products * scale.unsqueeze(2) * scale.unsqueeze(1)

    @cached_property
    def scores(self) -> Tensor:
        """Scores (T, W, W S + M) of every image by a logistic regression trained on the support; support first."""
        images = [self.images] if self.setting != "supervised" else [self.images, self.query]
        support = self.images[:, : self.n_support].view_as(self.support)
        weights = logistic.train(support, self.support_mask)
        by_features, bias = weights[:, :, :-1], weights[:, :, -1:]
        return torch.cat([torch.bmm(by_features, x.transpose(1, 2)) for x in images], 2) + bias

    @cached_property
    def probabilities(self) -> Tensor:
        """The same as probabilities (T, W, M) of the queries."""
        return softmax(self.scores[:, :, self.n_support :], self.ways)

    @cached_property
    def clusters(self) -> Tensor:
        """N-means of the images that are seen (T, V), N the number of classes."""
        return n_means.n_means(self.products, self.mask, self.ways)

    @cached_property
    def eigenvalues(self) -> Tensor:
        """Eigenvalues (T, V) of the Laplacian of the nearest-neighbour graph of the images, the lowest first."""
        graph = similarity_graph.nearest_graph(self.cosines, self.mask, self.neighbours)
        return similarity_graph.laplacian_eigenvalues(graph, self.mask)

    # What is to be predicted ---------------------------------------------------------------------------------------

    @cached_property
    def predicted(self) -> Tensor:
        """The label that the logistic regression gives every query (T, M); the lower one of equals."""
        return with_ways(self.scores[:, :, self.n_support :], self.ways).max(1).indices

    @cached_property
    def confidence(self) -> Tensor:
        """The largest probability of every query (T, M)."""
        return self.probabilities.amax(1)

    @cached_property
    def expected(self) -> Tensor:
        """Mean confidence (T,): the accuracy that the logistic regression itself expects."""
        return (self.confidence * self.query_mask).sum(1) / self.query_mask.sum(1)

    @cached_property
    def outcome(self) -> Tensor:
        """Accuracy on the queries (T,), or without labels the adjusted Rand index of the clusters."""
        if self.setting == "unsupervised":
            return n_means.adjusted_rand(self.labels, self.clusters, self.mask, self.ways.shape[1])
        right = (self.predicted == self.query_labels) & self.query_mask
        return right.sum(1).double() / self.query_mask.sum(1)


def task_view(inputs: MeasureInputs) -> TaskView:
    """The inputs as a view; plain inputs get the setting that fits the images they hold."""
    if isinstance(inputs, TaskView):
        return inputs
    query, mask = inputs.query, inputs.query_mask
    if query is None:
        query, mask = inputs.support[:, :0, 0], inputs.support_mask[:, :0, 0]
    return TaskView(
        support=_unit(inputs.support),
        support_mask=inputs.support_mask,
        query=_unit(query),
        query_mask=mask,
        setting="supervised" if inputs.query is None else "semi",
        neighbours=int(inputs.settings.get("neighbours", NEIGHBOURS)),
    )


def task_views(
    features: Features, tasks: Tasks, setting: str, neighbours: int = NEIGHBOURS
) -> Iterator[tuple[np.ndarray, TaskView]]:
    """The tasks chunk by chunk: their positions, and what is seen of them.

    Tasks whose classes float32 cannot tell apart (see numerics.needs_double) come in float64.
    """
    n_images = tasks.support[0].size + tasks.query[0].size
    block = max(1, _ROWS // n_images)
    for start in range(0, len(tasks), block):
        part = tasks.take(slice(start, start + block))
        table = _Table(features, part)
        double = needs_double(table.few_per_way(part))
        for which, dtype in ((np.flatnonzero(~double), torch.float32), (np.flatnonzero(double), torch.float64)):
            size = _chunk_size(n_images, features.values.shape[1])
            for chunk in (which[i : i + size] for i in range(0, len(which), size)):
                support, query = part.support[chunk], part.query[chunk].reshape(len(chunk), -1)
                view = TaskView(
                    support=table.take(support, dtype),
                    support_mask=torch.from_numpy(support >= 0),
                    query=table.take(query, dtype),
                    query_mask=torch.from_numpy(query >= 0),
                    setting=setting,
                    neighbours=neighbours,
                )
                yield start + chunk, view


class _Table:
    """Features of length one of the images of some tasks, each made once however many tasks share it."""

    def __init__(self, features: Features, tasks: Tasks) -> None:
        ids = np.unique(np.concatenate([tasks.support.ravel(), tasks.query.ravel()]))
        self.ids = ids[ids >= 0]
        values = np.asarray(features.values[features.rows_of(self.ids)])
        finite = np.isfinite(values).all(1)
        if not finite.all():
            raise BadInput(
                f"{features.backbone} features of {features.dataset} contain NaN or infinity (first: image "
                f"{self.ids[~finite][0]}). {features.remake[:1].upper()}{features.remake[1:]}."
            )
        nothing = np.zeros((1, values.shape[1]), dtype=values.dtype)  # the last row, where PAD leads
        self.raw = torch.from_numpy(np.concatenate([values, nothing]))
        self.unit = {torch.float32: _unit(self.raw.float())}

    def rows(self, image_ids: np.ndarray) -> Tensor:
        rows = np.where(image_ids >= 0, np.searchsorted(self.ids, image_ids), len(self.ids))
        return torch.from_numpy(rows)

    def take(self, image_ids: np.ndarray, dtype: torch.dtype) -> Tensor:
        """Features (..., D) of images in this precision, zeros if there is none."""
        if dtype not in self.unit:
            self.unit[dtype] = _unit(self.raw.to(dtype))
        rows = self.rows(image_ids)
        return self.unit[dtype].index_select(0, rows.flatten()).view(*rows.shape, -1)

    def few_per_way(self, tasks: Tasks) -> np.ndarray:
        """The first support images (T, W, K, D) of every way, NaN for none."""
        first = tasks.support[:, :, : max(1, N_PROBED // tasks.n_way)]
        return np.where((first >= 0)[..., None], self.take(first, torch.float32).numpy(), np.nan)


def _unit(values: Tensor) -> Tensor:
    """Features of length one. The largest value is divided out first, so that squares stay in range."""
    return unit(values / values.abs().amax(-1, keepdim=True).clamp(min=torch.finfo(values.dtype).tiny))


def _chunk_size(n_images: int, dims: int) -> int:
    """Tasks that are worked on together."""
    return int(np.clip(_MEMORY // (4 * n_images * (3 * dims + 4 * n_images)), 1, _MOST))
