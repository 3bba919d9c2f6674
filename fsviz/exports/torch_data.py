"""Tasks for a training or testing loop elsewhere: a torch Dataset of images and a BatchSampler of tasks.

    images = fsviz.torch_images("demo", transform)
    loader = DataLoader(images, batch_sampler=batches, collate_fn=batches.episodic_collate_fn)

Both stand where easyfsl's FewShotDataset and TaskSampler stood: a batch is the image_ids of one task, class by class,
the support of a class before its queries; the collate function returns support images, their labels, query images,
their labels and the class_ids. Unlike there, the label of a class is its place in the task, and tasks follow from a
seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset as TorchDataset
from torch.utils.data import Sampler

from fsviz import datasets
from fsviz.errors import BadInput
from fsviz.records import PAD, Dataset, Tasks, Testbed
from fsviz.settings import SEED, RawSettings
from fsviz.tasks import draw


class TorchImages(TorchDataset):
    """Images of a dataset by image_id: (image, class_id). Untransformed, a tensor (3, height, width) from 0 to 1."""

    def __init__(self, dataset: Dataset, transform: Callable[[Any], Any] | None = None) -> None:
        if not dataset.has_pixels:
            datasets.open_image(dataset, 0)  # says what is missing
        self.dataset, self.transform = dataset, transform
        self.class_ids = dataset.image_class_ids()

    def __len__(self) -> int:
        return len(self.class_ids)

    def __getitem__(self, image_id: int) -> tuple[Any, int]:
        image = datasets.open_image(self.dataset, int(image_id))
        if self.transform is not None:
            return self.transform(image), int(self.class_ids[image_id])
        pixels = torch.from_numpy(np.asarray(image, dtype=np.uint8).copy())
        return pixels.permute(2, 0, 1).float() / 255, int(self.class_ids[image_id])

    def get_labels(self) -> list[int]:
        """The class_id of every image, as easyfsl's datasets tell it."""
        return self.class_ids.tolist()


class TaskBatches(Sampler[list[int]]):
    """Batches of image_ids, one per task; `episodic_collate_fn` makes the five parts of a task of them.

    Tasks of a testbed come in its order, in every pass the same. Live ones are drawn anew for every pass: pass number
    p of seed s always gives the same tasks, so that a run can be repeated.
    """

    def __init__(self, n_tasks: int, n_shot: int, n_query: int, tasks_of: Callable[[int], Tasks]) -> None:
        self.n_tasks, self.n_shot, self.n_query, self.epoch = n_tasks, n_shot, n_query, 0
        self.tasks_of = tasks_of  # the tasks of a pass, by its number

    @classmethod
    def of_testbed(cls, testbed: Testbed) -> TaskBatches:
        tasks = testbed.tasks
        if not tasks.has_images:
            raise BadInput(f"Testbed {testbed.name!r} names classes only. Sample one with n_shot and n_query.")
        _check_even(tasks, testbed.name)
        return cls(len(tasks), tasks.support.shape[2], tasks.query.shape[2], lambda epoch: tasks)

    @classmethod
    def live(cls, dataset: Dataset, settings: RawSettings) -> TaskBatches:
        seed = SEED.check(settings.get("seed", SEED.default))
        recipe = draw.recipe_for(dataset, **settings)
        first = draw.sample(dataset, **{**settings, "n_tasks": 1}).tasks
        if not first.has_images:
            raise BadInput("A loop needs images: give n_shot and n_query of at least 1.")

        def sampled(epoch: int) -> Tasks:
            own = int(np.random.SeedSequence([seed, epoch]).generate_state(1)[0] % 2**31) if epoch else seed
            tasks = draw.sample(dataset, **{**settings, "seed": own}).tasks
            _check_even(tasks, recipe.sampler)
            return tasks

        return cls(recipe.n_tasks, first.support.shape[2], first.query.shape[2], sampled)

    def __len__(self) -> int:
        return self.n_tasks

    def __iter__(self) -> Iterator[list[int]]:
        """Every pass over the batches is one epoch further; `set_epoch` goes back to one."""
        tasks, self.epoch = self.tasks_of(self.epoch), self.epoch + 1
        for support, query in zip(tasks.support, tasks.query, strict=True):
            yield [int(i) for pair in zip(support, query, strict=True) for side in pair for i in side[side != PAD]]

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def episodic_collate_fn(self, batch: Sequence[tuple[torch.Tensor, int]]) -> tuple[Any, Any, Any, Any, list[int]]:
        """Support images (W S, ...), their labels (W S), query images (W Q, ...), their labels (W Q), class_ids (W)."""
        size = self.n_shot + self.n_query
        class_ids = [int(label) for _, label in batch[::size]]
        images = torch.stack([image for image, _ in batch])
        images = images.view(len(class_ids), size, *images.shape[1:])
        labels = torch.arange(len(class_ids))
        sides = images[:, : self.n_shot].flatten(0, 1), images[:, self.n_shot :].flatten(0, 1)
        of_support, of_query = (labels.repeat_interleave(n) for n in (self.n_shot, self.n_query))
        return sides[0], of_support, sides[1], of_query, class_ids


def _check_even(tasks: Tasks, name: str) -> None:
    is_way = tasks.class_ids != PAD
    if any((side[is_way] == PAD).any() for side in (tasks.support, tasks.query)):
        raise BadInput(
            f"Tasks for a loop have as many support and query images in every class, and those of {name!r} do not. "
            "Draw some with another sampler."
        )
