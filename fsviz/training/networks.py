"""A network with its head and optimiser: built from a seed, as arrays and back, and the images that it sees.

The networks are those of fsviz.features.fewshot_backbones, so that a trained one is a backbone like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from fsviz.features.fewshot_backbones import sized
from fsviz.settings import Settings

_MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # what Adam keeps of every weight


class Model(nn.Module):
    """A backbone and, if there is one, a linear head: images (n, 3, height, width) -> (n, outputs)."""

    def __init__(self, backbone: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.backbone, self.head = backbone, head

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.backbone(images))


class TaskNorm2d(nn.BatchNorm2d):
    """Batch norm of one task at a time: while training by the images of the batch, or by the first `n_first` of them.

    Nothing is remembered on the way, so that it may run inside torch.func; see `cache_data` for the running statistics.
    Written out, because second derivatives of torch's own batch norm are off by up to a percent inside vmap (torch
    2.13; finite differences and a loop over tasks agree with this one).
    """

    n_first: int | None = None

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.track_running_stats:
            return super().forward(x)
        first = x[: self.n_first]
        mean = first.mean((0, 2, 3), keepdim=True)
        spread = (first - mean).square().mean((0, 2, 3), keepdim=True)
        scale = self.weight.view(1, -1, 1, 1) * (spread + self.eps).rsqrt()
        return (x - mean) * scale + self.bias.view(1, -1, 1, 1)


@contextmanager
def normalised_by_first(model: nn.Module, n: int | None) -> Iterator[None]:
    """Inside, every batch norm of the model takes mean and spread from the first n images (None: from all)."""
    norms = [module for module in model.modules() if isinstance(module, TaskNorm2d)]
    try:
        for norm in norms:
            norm.n_first = n
        yield
    finally:
        for norm in norms:
            norm.n_first = None


@dataclass(frozen=True)
class Images:
    """Pixels by row, as a network wants them.

    values     (n, height, width, 3) uint8
    mean, std  per channel, of pixels in 0..1
    """

    values: np.ndarray
    mean: tuple[float, ...]
    std: tuple[float, ...]
    device: str = "cpu"

    def __len__(self) -> int:
        return len(self.values)

    def __call__(self, rows: np.ndarray) -> Tensor:
        """(..., 3, height, width) float32 of rows (...)."""
        pixels = torch.from_numpy(np.ascontiguousarray(self.values[rows.reshape(-1)])).to(self.device)
        mean, std = (torch.tensor(values, device=self.device).view(3, 1, 1) for values in (self.mean, self.std))
        scaled = (pixels.movedim(-1, 1).float() / 255 - mean) / std
        return scaled.view(*rows.shape, *scaled.shape[1:])


@dataclass(frozen=True)
class Learner:
    """A model in training and its optimiser. Both change at every step; `arrays` and `restore` carry them over."""

    model: Model
    optimiser: torch.optim.Adam

    def weights(self) -> dict[str, np.ndarray]:
        """Every weight and running statistic, by name."""
        return {name: value.detach().cpu().numpy().copy() for name, value in self.model.state_dict().items()}

    def load(self, weights: Mapping[str, np.ndarray]) -> None:
        self.model.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in weights.items()})

    def arrays(self) -> dict[str, np.ndarray]:
        """All that the next step depends on."""
        values = {f"weights.{name}": value for name, value in self.weights().items()}
        for name, parameter in self.model.named_parameters():
            for moment, value in self.optimiser.state.get(parameter, {}).items():
                values[f"{moment}.{name}"] = value.detach().cpu().numpy().copy()
        return values

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """The learner as it was when `arrays` were taken, to the last bit."""
        self.load({name.removeprefix("weights."): v for name, v in arrays.items() if name.startswith("weights.")})
        for name, parameter in self.model.named_parameters():
            stored = {m: torch.from_numpy(np.array(arrays[f"{m}.{name}"])) for m in _MOMENTS if f"{m}.{name}" in arrays}
            if stored:
                moments = {m: value if m == "step" else value.to(parameter.device) for m, value in stored.items()}
                self.optimiser.state[parameter] = moments


def build(settings: Settings, n_outputs: int = 0, by_task: bool = False, device: str = "cpu") -> Learner:
    """A learner with first weights that follow from the seed alone.

    n_outputs  of the linear head; 0: none, the model gives features
    by_task    batch norms look at one task at a time (TaskNorm2d)
    """
    backbone = sized(settings["network"], settings["width"], settings["seed"])
    if by_task:
        _swap(backbone)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings["seed"])
        dims = n_dims(backbone, settings["side"])
        head = nn.Linear(dims, n_outputs) if n_outputs else nn.Identity()
    model = Model(backbone, head).to(device).train()
    return Learner(model, torch.optim.Adam(model.parameters(), lr=settings["lr"]))


def n_dims(backbone: nn.Module, side: int) -> int:
    """Dimensions of the features of images of this side."""
    training = backbone.training
    with torch.no_grad():
        dims = int(backbone.eval()(torch.zeros(1, 3, side, side)).shape[1])
    backbone.train(training)
    return dims


def _swap(network: nn.Module) -> None:
    """Every batch norm becomes one by task, its weights as they are; activations are not overwritten in place."""
    for module in list(network.modules()):
        for name, child in module.named_children():
            if isinstance(child, nn.BatchNorm2d):
                norm = TaskNorm2d(child.num_features, child.eps)
                norm.load_state_dict(child.state_dict())
                norm.track_running_stats = False
                setattr(module, name, norm)
            elif isinstance(child, nn.ReLU):
                child.inplace = False


def update(learner: Learner, loss: Tensor) -> None:
    """One step of Adam down the gradient of a loss."""
    learner.optimiser.zero_grad(set_to_none=True)
    loss.backward()
    learner.optimiser.step()


@torch.no_grad()
def remember(learner: Learner, images: Images, rows: np.ndarray, batch: int = 256) -> None:
    """Sets the running statistics of batch norms by task to those of these images, one whole pass.

    A network trained on tasks has none; as a frozen backbone it needs them.
    """
    norms = [module for module in learner.model.modules() if isinstance(module, TaskNorm2d)]
    for norm in norms:
        norm.track_running_stats, norm.momentum = True, None  # the plain mean over batches
        norm.reset_running_stats()
    learner.model.train()
    for start in range(0, len(rows), batch):
        learner.model.backbone(images(rows[start : start + batch]))
    for norm in norms:
        norm.track_running_stats = False


def in_batches(function: Callable[[Tensor], Tensor], images: Images, rows: np.ndarray, batch: int = 256) -> Tensor:
    """function(pixels) of many rows (n,), a batch at a time: (n, ...)."""
    return torch.cat([function(images(rows[start : start + batch])) for start in range(0, len(rows), batch)])


def labels_of(n_way: int, each: int, device: str | torch.device = "cpu") -> Tensor:
    """The labels of n_way classes of `each` images in a row: 0 0 .. 1 1 .. (n_way x each,)."""
    return torch.arange(n_way, device=device).repeat_interleave(each)
