"""Tasks + features + method -> predictions, chunk by chunk in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from fsviz import methods
from fsviz.errors import BadInput, BrokenCode, FsvizError, Missing, NotFinite
from fsviz.methods.declaration import UNIT_LENGTH, Method
from fsviz.numerics import LARGE, N_PROBED, needs_double
from fsviz.records import PAD, Features, Predictions, Progress, Tasks
from fsviz.settings import RawSettings, Settings, images_advice
from fsviz.user import code as user_code

MEMORY = 256 * 2**20  # bytes of work space a chunk may take; a constant, so that the same run has the same chunks
CPU_CHUNK, GPU_CHUNK = 64, 1024  # tasks at most: more leave a CPU's caches, fewer cost more calls
CPU_GATHERED = 16 * 2**20  # bytes of features in a chunk on a CPU: large tasks gain nothing from company
_SMALL = 1e-2
_BLOCK = 4096  # rows or tasks looked at together while checking


def evaluate(
    features: Features,
    tasks: Tasks,
    method: str | Method,
    parameters: RawSettings | None = None,
    device: str = "cpu",
    chunk: int | None = None,
    progress: Progress | None = None,
    centre: np.ndarray | None = None,
    first: int = 0,
) -> Predictions:
    """Predictions of a method for every query of every task.

    device    a torch device name; "auto" takes CUDA when there is one.
    chunk     tasks worked on together; by default what fits 256 MB of work space, at most 64 (1,024 on a GPU).
    progress  called as progress(done, total, message) after every chunk.
    centre    (D,) mean features for methods that centre on a wider set; by default the mean of all `features`.
    first     the number of the first task where these are part of more, for the error that names one.

    Tasks that float32 cannot tell apart (see numerics.needs_double) are computed in float64, each by itself: a task's
    answer does not depend on its company.
    """
    import torch

    spec = methods.get(method) if isinstance(method, str) else method
    settings: dict[str, Any] = spec.checked(parameters)
    on = torch_device(device)
    check_tasks(features, tasks)
    table = np.asarray(features.values)
    n_images = tasks.support.size + tasks.query.size
    check_each_chunk = n_images < len(table)
    largest = LARGE if check_each_chunk else _largest_in_table(features)
    in_units = "scale" not in spec.invariant_to(settings)
    unit_length = settings.pop(UNIT_LENGTH.name)
    if spec.wants_centre:
        mean = features_mean(features, unit_length=unit_length) if centre is None else np.asarray(centre, np.float64)
        settings["centre"] = torch.from_numpy(np.ascontiguousarray(mean))  # methods take it in their own precision

    n_tasks, n_way, n_shot = tasks.support.shape
    n_query = tasks.query.shape[2]
    if chunk is None:
        chunk = chunk_size(n_way, n_shot, n_query, table.shape[1], spec.pairwise, gpu=on.type != "cpu")
    chunk = max(1, min(int(chunk), n_tasks))
    row_of = _row_lookup(features)
    supports, queries = _Gatherer(table, chunk * n_way * n_shot), _Gatherer(table, chunk * n_way * n_query)
    predict = _on_unit_length(spec.load()) if unit_length else spec.load()

    answer = Predictions.blank((n_tasks, n_way, n_query))
    with torch.inference_mode():
        for start in range(0, n_tasks, chunk):
            part = slice(start, start + chunk)
            support_ids, query_ids = tasks.support[part], tasks.query[part]
            size = len(support_ids)
            support_mask, query_mask = support_ids >= 0, query_ids >= 0
            support = supports.take(row_of[support_ids]).view(size, n_way, n_shot, -1)
            query = queries.take(row_of[query_ids]).view(size, n_way * n_query, -1)
            if check_each_chunk:
                largest = float(np.maximum(_size(support.numpy()), _size(query.numpy())))  # NaN stays NaN
                if not np.isfinite(largest):
                    _check_rows(features, np.union1d(row_of[support_ids], row_of[query_ids]))
            masks = torch.from_numpy(support_mask), torch.from_numpy(query_mask.reshape(size, -1))
            images = support, masks[0], query, masks[1]
            double = _in_double(images, settings.get("centre"), largest, in_units)
            if spec.function is None:
                scores, cause = _scores(predict, images, double, on, settings), partial(_cause, images)
            else:
                scores = _own_scores(predict, images, double, on, settings, spec.title, first + start)
                cause = partial(_own_cause, spec.title)
            predictions = predictions_from(scores, masks[0].any(2), query_mask, spec.title, cause, first + start)
            for name, values in predictions.arrays().items():
                getattr(answer, name)[part] = values
            if progress is not None:
                done = start + size
                progress(done, n_tasks, f"{spec.title}: {done} of {n_tasks} tasks")
    return answer


def predictions_from(
    scores: Any,
    ways: Any,
    query_mask: np.ndarray,
    who: str,
    cause: Callable[[int], str],
    first: int = 0,
) -> Predictions:
    """Predictions for the queries (T, W, Q) from scores (T, W, W Q), by the rule that Predictions states.

    ways (T, W) and query_mask (T, W, Q) are True if a task has the way, the query. A score that is not finite is no
    answer: the error names `who` gave it, the task (counted from `first`), and the cause, a sentence for a position.
    """
    import torch

    from fsviz.methods.geometry import probabilities

    n_tasks, n_way, n_query = query_mask.shape
    by_class = scores.view(n_tasks, n_way, n_way, n_query)  # predicted, true, position
    there = torch.from_numpy(query_mask)
    broken = ~by_class.isfinite() & ways[:, :, None, None] & there.unsqueeze(1)
    if bool(broken.any()):
        task = int(broken.flatten(1).any(1).nonzero()[0])
        raise NotFinite(f"{who} returned NaN or infinity on task {first + task}. {cause(task)}")
    own = by_class.diagonal(dim1=1, dim2=2).transpose(1, 2)
    rank = (by_class > own.unsqueeze(1)).sum(1)
    equal = by_class == own.unsqueeze(1)
    if int(equal.sum()) > own.numel():  # more than each with itself
        label = torch.arange(n_way)
        rank += (equal & (label[:, None] < label)[..., None]).sum(1)
    probability = probabilities(scores, ways)
    answer = Predictions.blank(query_mask.shape)
    for array, values in (
        (answer.predicted, scores.max(1).indices),  # the first of equals
        (answer.rank, rank),
        (answer.confidence, probability.amax(1)),
        (answer.likelihood, probability.view_as(by_class).diagonal(dim1=1, dim2=2).transpose(1, 2)),
    ):
        np.copyto(array, values.reshape(query_mask.shape).numpy(), where=query_mask, casting="same_kind")
    return answer


def chunk_size(n_way: int, n_shot: int, n_query: int, dims: int, pairwise: bool = False, gpu: bool = False) -> int:
    """Number of tasks to process together so that the work space stays within MEMORY."""
    images = n_way * (n_shot + n_query)
    floats = 5 * images * dims + 12 * n_way * dims + 12 * images * n_way + (5 * images**2 if pairwise else 0)
    fits = MEMORY // (4 * floats)
    if gpu:
        return int(np.clip(fits, 1, GPU_CHUNK))
    return int(np.clip(min(fits, CPU_GATHERED // (4 * images * dims)), 1, CPU_CHUNK))


def _on_unit_length(predict: Callable[..., Any]) -> Callable[..., Any]:
    """The same method on features that are scaled to length one first."""
    from fsviz.methods.geometry import unit

    def predict_units(support: Any, support_mask: Any, query: Any, query_mask: Any, **settings: Any) -> Any:
        return predict(unit(support), support_mask, unit(query), query_mask, **settings)

    return predict_units


def features_mean(features: Features, class_ids: np.ndarray | None = None, unit_length: bool = False) -> np.ndarray:
    """Mean features (D,) over all images, or those of some classes, read in blocks; of length one first where asked."""
    total, count = np.zeros(features.values.shape[1]), 0
    for start in range(0, len(features.values), _BLOCK):
        block = features.values[start : start + _BLOCK]
        if class_ids is not None:
            block = block[np.isin(features.class_ids[start : start + _BLOCK], class_ids)]
        if unit_length:
            block = np.asarray(block, dtype=np.float64)
            block = block / np.maximum(np.linalg.norm(block, axis=1, keepdims=True), 1e-100)
        total += block.sum(0, dtype=np.float64)
        count += len(block)
    return total / max(count, 1)


def torch_device(name: str) -> Any:
    """The torch device of that name, or a sentence on what this machine has."""
    import torch

    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise BadInput(f"Unknown device {name!r}. Use cpu, cuda, cuda:0, ... or auto.") from error
    if device.type == "cuda" and (not torch.cuda.is_available() or (device.index or 0) >= torch.cuda.device_count()):
        raise BadInput(f"Device {name!r} not found ({torch.cuda.device_count()} CUDA devices). Use cpu or auto.")
    return device


def resolved_device(name: str) -> str:
    """The name of the device that a spec records: "auto" and a bare "cuda" as what they mean here."""
    device = torch_device(name)
    return f"cuda:{device.index or 0}" if device.type == "cuda" else str(device)


def check_tasks(features: Features, tasks: Tasks) -> None:
    """Raises a sentence when these tasks cannot be evaluated on these features."""
    if not tasks.has_images:
        raise BadInput(
            "These tasks name classes only, so there is nothing to predict. "
            "Sample them with n_shot and n_query of at least 1."
        )
    if len(tasks) == 0:
        raise BadInput("There are no tasks to evaluate. Sample at least one.")
    if len(features.values) == 0:
        raise Missing(f"The features of {features.dataset!r} under {features.backbone!r} are empty: {features.remake}.")
    row_of = _row_lookup(features)
    for start in range(0, len(tasks), _BLOCK):
        part = slice(start, start + _BLOCK)
        class_ids, support, query = tasks.class_ids[part], tasks.support[part], tasks.query[part]
        for half, image_ids in (("support", support), ("query", query)):
            beyond = image_ids >= len(row_of) - 1
            rows = row_of[np.where(beyond, PAD, image_ids)]
            without = (image_ids >= 0) & (rows < 0)
            if without.any():
                _raise_without_features(features, tasks, half, np.argwhere(without)[0] + [start, 0, 0])
            mismatch = (image_ids >= 0) & (features.class_ids[rows] != class_ids[..., None])
            if mismatch.any():
                task, way, place = np.argwhere(mismatch)[0]
                raise BadInput(
                    f"Image {image_ids[task, way, place]} is given as class {class_ids[task, way]} in the {half} "
                    f"of task {start + task}, but dataset {features.dataset!r} has it as class "
                    f"{features.class_ids[rows[task, way, place]]}. The tasks were drawn from another dataset or "
                    "another version of it: sample them again."
                )
        bare = (class_ids >= 0) & ~(support >= 0).any(2)
        if bare.any():
            task, way = np.argwhere(bare)[0]
            raise BadInput(
                f"Class {class_ids[task, way]} of task {start + task} has no support image, and every class of a task "
                "needs at least one. Sample the tasks again with n_shot of at least 1."
            )
        silent = ~(query >= 0).any((1, 2))
        if silent.any():
            raise BadInput(
                f"Task {start + int(np.argmax(silent))} has no query image, and a task needs at least one. "
                "Sample the tasks again with n_query of at least 1."
            )


def check_class_sizes(
    features: Features, class_ids: np.ndarray, n_shot: int, n_query: int, names: Mapping[int, str] | None = None
) -> None:
    """Raises a sentence when a class has fewer images with features than n_shot + n_query, with what would fit."""
    class_ids = np.asarray(class_ids)
    counts = np.bincount(features.class_ids, minlength=int(class_ids.max(initial=0)) + 1)[class_ids]
    short = np.flatnonzero(counts < n_shot + n_query)
    if len(short) == 0:
        return
    worst = short[np.argmin(counts[short])]
    class_id, count = int(class_ids[worst]), int(counts[worst])
    name = f"Class {names[class_id]!r}" if names is not None else f"Class {class_id}"
    more = "" if len(short) == 1 else f" ({len(short) - 1} more are too small as well)"
    raise BadInput(
        f"{name} has {count} images with features under {features.backbone!r}, fewer than n_shot + n_query = "
        f"{n_shot + n_query}{more}. {images_advice(n_shot, n_query, count)}"
    )


class _Gatherer:
    """Copies rows of the features into one float32 buffer that is used again for every chunk."""

    def __init__(self, table: np.ndarray, rows: int) -> None:
        import torch

        self.table = table
        self.raw = np.empty((rows, table.shape[1]), dtype=table.dtype)
        same = table.dtype == np.float32
        self.buffer = torch.from_numpy(self.raw) if same else torch.empty(self.raw.shape, dtype=torch.float32)
        self.same = same

    def take(self, rows: np.ndarray) -> Any:
        """Features (n, D) of these rows; padded rows hold some other image, which the mask hides."""
        import torch

        rows = rows.reshape(-1)
        # "clip" sends PAD to row 0 and, unlike "raise", writes straight into the buffer
        np.take(self.table, rows, axis=0, out=self.raw[: len(rows)], mode="clip")
        if not self.same:
            self.buffer[: len(rows)].copy_(torch.from_numpy(self.raw[: len(rows)]))
        return self.buffer[: len(rows)]


def _few_per_way(support: Any, mask: np.ndarray) -> np.ndarray:
    """Support images (T, W, K, D) of every way, the first that are there; NaN if a way has fewer."""
    first = support[:, :, : max(1, N_PROBED // support.shape[1])].numpy()
    if mask[:, :, : first.shape[2]].all():
        return first
    places = np.argsort(~mask, axis=2, kind="stable")[:, :, : first.shape[2]]
    there = np.take_along_axis(mask, places, axis=2)
    return np.where(there[..., None], np.take_along_axis(support.numpy(), places[..., None], axis=2), np.nan)


def _scores(
    predict: Callable[..., Any], images: tuple[Any, ...], double: np.ndarray, on: Any, settings: Settings
) -> Any:
    """Scores (T, W, M) of a chunk: in float32, and for the tasks that need it or overflow there, in float64."""
    import torch

    support, support_mask, query, query_mask = images
    if double.all():
        scores = torch.empty(support_mask.shape[:2] + query_mask.shape[1:], dtype=torch.float64)
    else:
        scores = predict(*(tensor.to(on) for tensor in images), **settings).cpu()
    if double.any():
        scores = scores.double()
        on = torch.device("cpu") if on.type == "mps" else on  # which has no float64
        # half as many tasks take the same work space
        for part in torch.from_numpy(np.flatnonzero(double)).split(max(1, len(support) // 2)):
            exact = support[part].to(on, torch.float64), query[part].to(on, torch.float64)
            masks = support_mask[part].to(on), query_mask[part].to(on)
            scores[part] = predict(exact[0], masks[0], exact[1], masks[1], **settings).cpu().double()
    return scores


def _own_scores(
    predict: Callable[..., Any],
    images: tuple[Any, ...],
    double: np.ndarray,
    on: Any,
    settings: Settings,
    who: str,
    first: int,
) -> Any:
    """The same for code of the user. Where it fails, tasks are tried one by one to name the first that it fails on."""
    try:
        return _scores(predict, images, double, on, settings)
    except FsvizError:
        raise
    except (Exception, SystemExit) as error:
        for i in range(len(double)):
            try:
                _scores(predict, tuple(tensor[i : i + 1] for tensor in images), double[i : i + 1], on, settings)
            except (Exception, SystemExit) as alone:
                raise BrokenCode(f"{who} fails on task {first + i}: {user_code.describe_error(alone)}.") from alone
        raise BrokenCode(
            f"{who} fails on tasks {first} to {first + len(double) - 1} together, though on none of them alone: "
            f"{user_code.describe_error(error)}."
        ) from error


def _in_double(images: tuple[Any, ...], centre: Any, largest: float, in_units: bool) -> np.ndarray:
    """Mask (T,) of the tasks that need float64.

    largest   the largest absolute value of their features, or of all features
    in_units  whether the method's predictions depend on the scale of the features
    """
    support, support_mask = images[:2]
    few = _few_per_way(support, support_mask.numpy())
    double = needs_double(few)
    if centre is not None:  # images may be close together around it that are not around the origin
        double |= needs_double(few - centre.float().numpy())
    if largest > LARGE:
        double |= _largest_of(images) > LARGE
    if in_units:  # steps, or parts of the scores, are far larger than features as small as this
        double |= _largest_of(images) < _SMALL
    return double


def _own_cause(who: str, task: int) -> str:
    return f"Look at what {who} returns for it: the features are finite."


def _size(values: np.ndarray) -> float:
    """The largest absolute value of an array of floats; NaN or infinite if one of its values is.

    Without their sign, floats are ordered as their bits are, NaN last; the maximum of float16 itself is slow.
    """
    bits = values.view(f"u{values.itemsize}")
    return float((bits & (np.iinfo(bits.dtype).max >> 1)).max().view(values.dtype))


def _largest_of(images: tuple[Any, ...]) -> np.ndarray:
    """The largest absolute value among the images of each task (T,)."""
    support, support_mask, query, query_mask = images
    sides = ((support.flatten(1, 2), support_mask.flatten(1)), (query, query_mask))
    return np.maximum(*((values.abs().amax(2) * there).amax(1).numpy() for values, there in sides))


def _cause(images: tuple[Any, ...], task: int) -> str:
    return (
        f"Its features reach {_largest_of(images)[task]:.3g}. Divide all features by their standard deviation and "
        "import them again, or lower the method's learning rate and scale where you raised them."
    )


def _row_lookup(features: Features) -> np.ndarray:
    """Row of every image_id, PAD if there is none; its last entry is PAD, so that PAD finds PAD."""
    lookup = np.full(int(features.image_ids.max()) + 2, PAD, dtype=np.intp)
    lookup[features.image_ids] = np.arange(len(features.image_ids))
    return lookup


def _largest_in_table(features: Features) -> float:
    """The largest absolute value of all features; what is not finite is named."""
    largest = 0.0
    for start in range(0, len(features.values), _BLOCK):
        size = _size(features.values[start : start + _BLOCK])
        if not np.isfinite(size):
            _check_rows(features, np.arange(start, min(start + _BLOCK, len(features.values))))
        largest = max(largest, size)
    return largest


def _check_rows(features: Features, rows: np.ndarray) -> None:
    bad = rows[~np.isfinite(np.asarray(features.values[rows], dtype=np.float32)).all(1)]
    if len(bad):
        raise BadInput(
            f"{features.backbone} features of {features.dataset} contain NaN or infinity (first: image "
            f"{features.image_ids[bad[0]]} of class {features.class_ids[bad[0]]}"
            f"{'' if len(bad) == 1 else f'; {len(bad)} images in all'}). "
            f"{features.remake[:1].upper()}{features.remake[1:]}."
        )


def _raise_without_features(features: Features, tasks: Tasks, half: str, at: np.ndarray) -> None:
    task, way, place = (int(i) for i in at)
    image_id = int(getattr(tasks, half)[task, way, place])
    raise Missing(
        f"Image {image_id} (class {int(tasks.class_ids[task, way])}), in the {half} of task {task}, has no features "
        f"under {features.backbone!r}. Extract the features of {features.dataset!r} again, or sample tasks from the "
        "images that have them."
    )
