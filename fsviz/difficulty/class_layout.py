"""ClassLayout: features with the images of a class side by side, and the pools that support images come from.

T tasks, W ways, M queries of a task in a row, E entries of a class in the tasks, n_c images of class c, D dimensions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fsviz.errors import BadInput
from fsviz.numerics import LARGE, needs_double
from fsviz.records import PAD, Features, Tasks

if TYPE_CHECKING:
    import torch

_N_SAMPLED = 64  # classes whose features decide on the precision


def layout_of(features: Features, tasks: Tasks, device: str = "cpu") -> ClassLayout:
    """The layout of the classes of tasks; their pools must be large enough."""
    if not tasks.has_images:
        raise BadInput("These tasks name classes only. Sample them with n_shot and n_query of at least 1.")
    layout = ClassLayout(features, np.unique(tasks.class_ids[tasks.class_ids != PAD]), device)
    layout.require_pool(tasks)
    return layout


class ClassLayout:
    """Features with the rows of a class side by side, so that a class is one slice and one matrix.

    values[class_id] (n_c, D) float32, or float64 where the features need it (numerics.needs_double);
    image_ids[class_id] (n_c,); place (row of an image_id inside its class).
    """

    def __init__(self, features: Features, class_ids: np.ndarray, device: str = "cpu") -> None:
        import torch

        rows = np.flatnonzero(np.isin(features.class_ids, class_ids))
        order = rows[np.argsort(features.class_ids[rows], kind="stable")]
        values = np.asarray(features.values[order])
        values = values if values.dtype == np.float64 else values.astype(np.float32, copy=False)
        largest = max(float(values.max(initial=0)), -float(values.min(initial=0)))
        if not np.isfinite(largest):
            raise BadInput(
                f"The {features.backbone} features of {features.dataset} hold values that are not finite (NaN or "
                "infinity). Extract or import them again."
            )
        if largest > LARGE or _in_double(features):
            values = values.astype(np.float64, copy=False)
        sorted_classes = features.class_ids[order]
        self.device = device
        self.all_values = torch.from_numpy(values).to(device)
        self.row_of = np.full(int(features.image_ids.max(initial=0)) + 2, PAD, dtype=np.int64)
        self.row_of[features.image_ids[order]] = np.arange(len(order))
        self.all_image_ids = features.image_ids[order]
        self.groups = None if features.groups is None else features.groups[self.all_image_ids]
        self.first = {int(c): int(np.searchsorted(sorted_classes, c)) for c in class_ids}
        self.count = {
            int(c): int(np.searchsorted(sorted_classes, c, side="right")) - self.first[int(c)] for c in class_ids
        }

    def values(self, class_id: int) -> torch.Tensor:
        first = self.first[class_id]
        return self.all_values[first : first + self.count[class_id]]

    def image_ids(self, class_id: int) -> np.ndarray:
        first = self.first[class_id]
        return self.all_image_ids[first : first + self.count[class_id]]

    def rows(self, image_ids: np.ndarray) -> np.ndarray:
        """Row of every image_id in all_values; PAD if an id is PAD or has no features here."""
        beyond = (image_ids < 0) | (image_ids >= len(self.row_of) - 1)
        return self.row_of[np.where(beyond, len(self.row_of) - 1, image_ids)]

    def require_pool(self, tasks: Tasks) -> None:
        """Every query has features, and every class keeps at least as many images as it needs shots."""
        rows = self.rows(tasks.query)
        lost = (tasks.query != PAD) & (rows == PAD)
        if lost.any():
            raise BadInput(
                f"{int(lost.sum())} query images have no features (the first is image {int(tasks.query[lost][0])}). "
                "Extract the features of the whole dataset, or sample the tasks from images that have them."
            )
        n_query = (tasks.query != PAD).sum(axis=2)
        n_shot = (tasks.support != PAD).sum(axis=2)
        in_class = np.zeros_like(tasks.class_ids)
        for class_id, count in self.count.items():
            in_class[tasks.class_ids == class_id] = count
        in_pool = in_class - n_query
        if self.groups is not None:
            for class_id, at in class_entries(tasks):
                in_pool[at] = pool_mask(self, tasks, class_id, at).sum(dim=1).cpu().numpy()
        short = (tasks.class_ids != PAD) & (in_pool < n_shot)
        if short.any():
            t, w = np.argwhere(short)[0]
            lost = (
                "queries" if self.groups is None else "queries or of a group with a query (copies, frames of a video)"
            )
            raise BadInput(
                f"The pool of a class must hold at least as many images as shots. Class {int(tasks.class_ids[t, w])} "
                f"has {in_class[t, w]} images with features, {(in_class - in_pool)[t, w]} of them {lost}, and "
                f"{int(n_shot[t, w])} shots are asked for. Lower n_shot or n_query, or leave the class out."
            )

    def require_support(self, tasks: Tasks) -> None:
        """Every support image has features: what a search that starts from the support needs."""
        lost = (tasks.support != PAD) & (self.rows(tasks.support) == PAD)
        if lost.any():
            raise BadInput(f"{int(lost.sum())} support images have no features. Extract those of the whole dataset.")

    def queries(self, tasks: Tasks) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Query features (T, M, D), mask (T, M) and labels (T, M), with the queries of all classes in one row."""
        import torch

        n_tasks, n_way, n_query = tasks.query.shape
        rows = self.rows(tasks.query).reshape(n_tasks, n_way * n_query)
        mask = torch.from_numpy(rows != PAD).to(self.device)
        values = self.all_values[torch.from_numpy(np.maximum(rows, 0)).to(self.device)]
        labels = torch.arange(n_way, device=self.device).repeat_interleave(n_query).expand(n_tasks, -1)
        return values, mask, labels

    def group_codes(self, class_id: int) -> np.ndarray:
        """Group (n_c,) of every image of a class, counted from 0 in ascending order; its place if there are none."""
        first, count = self.first[class_id], self.count[class_id]
        if self.groups is None:
            return np.arange(count)
        return np.unique(self.groups[first : first + count], return_inverse=True)[1]

    def one_per_group(self, key: torch.Tensor, class_id: int) -> torch.Tensor:
        """Keys (E, n_c) in the same order, but behind the best image of every group come all others of it.

        Copies of a picture have the same key: without this, five of them would make a support set of one picture.
        """
        import torch

        codes = torch.from_numpy(self.group_codes(class_id)).to(key.device).expand(key.shape)
        rank = key.argsort(dim=1, descending=True, stable=True).argsort(dim=1)
        best = torch.full_like(rank, rank.shape[1]).scatter_reduce(1, codes, rank, "amin")
        again = (rank != best.gather(1, codes)) & key.isfinite()
        return -(rank + rank.shape[1] * (again + 2 * ~key.isfinite())).to(key)

    def pool_means(self, tasks: Tasks, query: torch.Tensor, query_mask: torch.Tensor) -> torch.Tensor:
        """Mean feature (T, W, D) of every class's pool: the class's sum without the task's queries of it."""
        import torch

        n_tasks, n_way = tasks.class_ids.shape
        if self.groups is not None:
            means = torch.zeros(n_tasks, n_way, query.shape[2]).to(query)
            for class_id, at in class_entries(tasks):
                pool = pool_mask(self, tasks, class_id, at).to(query)
                means[at] = pool @ self.values(class_id) / pool.sum(dim=1, keepdim=True).clamp(min=1)
            return means
        left_out = query.masked_fill(~query_mask[:, :, None], 0).reshape(n_tasks, n_way, -1, query.shape[2]).sum(dim=2)
        n_left_out = query_mask.reshape(n_tasks, n_way, -1).sum(dim=2)
        means = torch.zeros_like(left_out)
        for class_id, at in class_entries(tasks):
            values = self.values(class_id)
            means[at] = (values.sum(dim=0) - left_out[at]) / (len(values) - n_left_out[at])[:, None].clamp(min=1)
        return means


def _in_double(features: Features) -> bool:
    """Whether these features need float64, from one image each of some classes: the same whichever tasks are asked."""
    _, rows = np.unique(features.class_ids, return_index=True)
    rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), _N_SAMPLED)).astype(int)]
    return bool(needs_double(np.asarray(features.values[rows], dtype=np.float32)[None])[0])


def class_entries(tasks: Tasks) -> list[tuple[int, tuple[np.ndarray, np.ndarray]]]:
    """Class by class, where it stands: class_id and the (task, way) positions that use it."""
    flat = tasks.class_ids.ravel()
    order = np.argsort(flat, kind="stable")
    order = order[flat[order] != PAD]
    classes, first = np.unique(flat[order], return_index=True)
    groups = np.split(order, first[1:])
    return [(int(c), divmod(g, tasks.n_way)) for c, g in zip(classes, groups, strict=True)]


def pool_mask(layout: ClassLayout, tasks: Tasks, class_id: int, at: tuple[np.ndarray, np.ndarray]) -> torch.Tensor:
    """(E, n_c): true for the images that a task may select, false for its queries and what shares a group with one."""
    import torch

    if layout.groups is not None:
        first, codes = layout.first[class_id], layout.group_codes(class_id)
        own = np.unique(layout.groups[first : first + layout.count[class_id]])
        rows = layout.rows(tasks.query[at[0]]).reshape(len(at[0]), -1)  # the queries of all classes of the task
        query_groups = layout.groups[np.maximum(rows, 0)]
        place = np.minimum(np.searchsorted(own, query_groups), len(own) - 1)
        entry, slot = np.nonzero((rows != PAD) & (own[place] == query_groups))
        met = np.zeros((len(at[0]), len(own)), dtype=bool)
        met[entry, place[entry, slot]] = True
        return torch.from_numpy(~met[:, codes]).to(layout.device)
    places = layout.rows(tasks.query[at]) - layout.first[class_id]
    entry, slot = np.nonzero(tasks.query[at] != PAD)
    mask = np.ones((len(at[0]), layout.count[class_id]), dtype=bool)
    mask[entry, places[entry, slot]] = False
    return torch.from_numpy(mask).to(layout.device)
