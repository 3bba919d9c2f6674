"""Features in two dimensions: a map on which images that look alike to a backbone lie together.

    features -> unit length -> PCA -> t-SNE (openTSNE, one thread and a seed: the same map every time)

There are two kinds. The fast one takes a second or two: few steps, and of many images only some are laid out, the
others are put between the ones they are most like. The better one takes all images and many more steps. Both say how
many of an image's nearest neighbours in all dimensions are still its neighbours on the map.

A map is next to its features, workspace/features/DATASET/BACKBONE-DIGEST/map.npz; those of the demo ship with it.
"""

from __future__ import annotations

import zipfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fsviz import workspace
from fsviz.errors import BadInput, WorkspaceError
from fsviz.features import store
from fsviz.records import PAD, Dataset, Features, Progress
from fsviz.shipped import DATA

VERSION = 2
SHIPPED = DATA  # ORIGIN/maps/BACKBONE.npz
FAST, BETTER = "fast", "better"
MIN_IMAGES = 10  # images: of fewer, neighbourhoods mean nothing
NEIGHBOURS = 10  # of an image, by which a map is judged
_MEASURED = 1000  # images by which it is judged
_LANDMARK_SEED, _AXES_SEED, _MEASURE_SEED = 0, 1, 2  # three independent random choices of images
_AXES = 50
_PERPLEXITY = 15  # about how many neighbours are kept together; of 15 and 30 the one that kept more of the demo's
_LANDMARKS = 6000  # images that a fast map lays out by itself
_BETWEEN = 3  # of these, the ones that another image is put between
# (steps, exaggeration, momentum): first groups form, far apart; then they take their shape
_STEPS = {FAST: ((25, 12.0, 0.5), (50, 1.0, 0.8)), BETTER: ((50, 12.0, 0.5),) * 5 + ((50, 1.0, 0.8),) * 10}


@dataclass(frozen=True)
class FeatureMap:
    """A map of the features of a dataset.

    xy (n, 2) of image_ids (n,)
    key       digest of what the features depend on
    kind      "fast" or "better"
    preserved mean share, 0 to 1, of the NEIGHBOURS nearest images in all dimensions (by cosine) that are among as many
              nearest on the map; `chance` is that of a map at random, `measured` how many images it is a mean over
    left_out  rows of the features that hold something else than finite numbers
    """

    dataset: str
    backbone: str
    key: str
    kind: str
    xy: np.ndarray
    image_ids: np.ndarray
    preserved: float
    chance: float
    measured: int
    left_out: int = 0

    @property
    def cache_key(self) -> tuple[str, ...]:
        """Key that changes whenever the map does."""
        return self.dataset, self.backbone, self.key, self.kind, str(len(self.image_ids))


def find(dataset: Dataset, backbone: str, kind: str = "") -> FeatureMap | None:
    """The stored map of up-to-date features, the better one where there are two kinds; None if there is none.

    kind  only a map that is at least of this kind
    """
    stored = store.load(dataset, backbone)
    for path in (_path(stored), SHIPPED / dataset.origin / "maps" / f"{stored.backbone}.npz"):
        feature_map = _read(path, stored)
        if feature_map is not None and (kind != BETTER or feature_map.kind == BETTER):
            return feature_map
    return None


def stamp(dataset: Dataset, backbone: str) -> int:
    """Changes when another map of these features is stored."""
    try:
        return _path(store.load(dataset, backbone)).stat().st_mtime_ns
    except OSError:
        return 0


def make(
    dataset: Dataset, backbone: str, kind: str = FAST, progress: Progress | None = None, keep: bool = True
) -> FeatureMap:
    """The stored map of this kind (or better), else one made now; saved on request if possible."""
    stored_map = find(dataset, backbone, kind)
    if stored_map is not None:
        return stored_map
    stored = store.load(dataset, backbone)
    feature_map = with_quality(stored, kind, lay_out(stored, kind, progress))
    if keep:
        with suppress(WorkspaceError):
            save(stored, feature_map)
    return feature_map


def lay_out(stored: Features, kind: str = FAST, progress: Progress | None = None) -> np.ndarray:
    """Places (n, 2) of the usable rows of the features; nothing is stored."""
    steps = n_steps(kind)
    state = begin(stored, kind)
    for step in range(steps):
        if progress is not None:
            progress(step, steps, "laying the images out")
        state.advance()
    if progress is not None:
        progress(steps, steps, "laid out")
    return state.places()


def n_steps(kind: str) -> int:
    """The number of times that `Layout.advance` must be called."""
    return len(_STEPS[kind])


def check(stored: Features) -> None:
    """Refuses features of which no map can be made."""
    _rows(stored)


def begin(stored: Features, kind: str) -> IncrementalLayout:
    """A layout before its first step. Refuses features of which no map can be made."""
    axes = _axes(stored)
    few = kind == FAST and len(axes) > _LANDMARKS
    landmarks = (
        np.sort(np.random.default_rng(_LANDMARK_SEED).permutation(len(axes))[:_LANDMARKS])
        if few
        else np.arange(len(axes))
    )
    return IncrementalLayout(axes, landmarks, _STEPS[kind])


class IncrementalLayout:
    """A layout that goes on step by step; `arrays` is all of it that changes, so that it can be kept and resumed."""

    def __init__(self, axes: np.ndarray, landmarks: np.ndarray, steps: tuple[tuple[int, float, float], ...]) -> None:
        from openTSNE import TSNEEmbedding, affinity, initialization, nearest_neighbors

        self.step, self._steps, self._axes, self._landmarks = 0, steps, axes, landmarks
        points = axes[landmarks]
        n = len(points)
        perplexity = min(_PERPLEXITY, (n - 1) / 3)
        near, far = _nearest(points, min(n - 1, int(3 * perplexity)))
        neighbours = nearest_neighbors.PrecomputedNeighbors(near, far)
        likeness = affinity.PerplexityBasedNN(perplexity=perplexity, knn_index=neighbours, n_jobs=1, random_state=0)
        flat = points[:, :2] if points.shape[1] > 1 else np.column_stack([points[:, 0], np.zeros(n)])
        start = initialization.rescale(flat.astype(np.float64), target_std=1e-4)
        start = initialization.jitter(start, inplace=False, random_state=0)  # copies do not lie on each other
        self._embedding: Any = TSNEEmbedding(
            start, likeness, negative_gradient_method="fft" if n > 2000 else "bh", n_jobs=1, random_state=0
        )

        self._likeness = self._embedding.affinities.P.data.copy()

    def advance(self) -> None:
        # exaggerated and divided again, it would be another by its last bit, and a resumed layout another map
        self._embedding.affinities.P.data[:] = self._likeness
        times, exaggeration, momentum = self._steps[self.step]
        more = {"exaggeration": exaggeration} if exaggeration > 1 else {}
        self._embedding.optimize(times, momentum=momentum, inplace=True, **more)
        self.step += 1

    def arrays(self) -> dict[str, np.ndarray]:
        xy, moving = np.asarray(self._embedding, np.float64), self._embedding.optimizer
        if not self.step:
            return {"step": np.array(0), "xy": xy, "gains": np.ones_like(xy), "update": np.zeros_like(xy)}
        return {"step": np.array(self.step), "xy": xy, "gains": moving.gains, "update": moving.update}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.step, moving = int(arrays["step"]), self._embedding.optimizer
        self._embedding[:] = arrays["xy"]
        moving.gains, moving.update = arrays["gains"].copy(), arrays["update"].copy()

    def places(self) -> np.ndarray:
        """The current position (n, 2) of every image."""
        xy = np.asarray(self._embedding, np.float64)
        if len(self._landmarks) == len(self._axes):
            return xy.astype(np.float32)
        positions = np.empty((len(self._axes), 2))
        positions[self._landmarks] = xy
        rest = np.setdiff1d(np.arange(len(self._axes)), self._landmarks)
        near, far = _nearest(self._axes[self._landmarks], _BETWEEN, self._axes[rest])
        weights = 1 / np.maximum(far, 1e-9) ** 2
        positions[rest] = np.einsum("nk,nkd->nd", weights / weights.sum(axis=1, keepdims=True), xy[near])
        return positions.astype(np.float32)


def with_quality(stored: Features, kind: str, xy: np.ndarray) -> FeatureMap:
    """The map with these places (n, 2) of the usable rows, and how many neighbours it keeps."""
    usable = _usable(stored)
    recall, measured = neighbour_recall(np.asarray(stored.values[usable], np.float32), xy)
    left_out = len(usable) - int(usable.sum())
    key, image_ids = store.key_digest(stored.key), stored.image_ids[usable]
    return FeatureMap(
        *(stored.dataset, stored.backbone, key, kind, xy.astype(np.float32), image_ids),
        *(recall, _chance(len(image_ids)), measured, left_out),
    )


def save(stored: Features, feature_map: FeatureMap, path: Path | None = None) -> Path:
    """Saves a map of these features next to them."""
    path = path or _path(stored)
    with workspace.atomic_file(path) as temporary, open(temporary, "wb") as file:
        np.savez_compressed(
            file,
            version=VERSION,
            key=feature_map.key,
            kind=feature_map.kind,
            xy=feature_map.xy,
            image_ids=feature_map.image_ids,
            kept=feature_map.preserved,
            measured=feature_map.measured,
            left_out=feature_map.left_out,
        )
    return path


def _chance(n: int) -> float:
    return min(1.0, NEIGHBOURS / max(1, n - 1))


def neighbour_recall(
    values: np.ndarray, xy: np.ndarray, k: int = NEIGHBOURS, max_rows: int = _MEASURED
) -> tuple[float, int]:
    """Mean share of the k nearest rows by cosine that are among the k nearest on the map, and over how many rows.

    At most `max_rows` random rows, the same every time, are measured; their neighbours are sought among all. They are
    independent of the landmarks of a fast map, which lie better than the images between them.
    """
    values = _unit_length(values)
    k = min(k, len(values) - 1)
    rows = np.random.default_rng(_MEASURE_SEED).permutation(len(values))[:max_rows]
    at = np.arange(len(rows))
    likeness = values[rows] @ values.T
    likeness[at, rows] = -np.inf
    near = np.argpartition(-likeness, k - 1, axis=1)[:, :k]
    places = xy.astype(np.float64)
    squares = (places**2).sum(axis=1)
    distances = squares[rows, None] + squares - 2 * places[rows] @ places.T
    distances[at, rows] = np.inf
    on_map = np.argpartition(distances, k - 1, axis=1)[:, :k]
    marked = np.zeros((len(rows), len(values)), dtype=bool)
    marked[at[:, None], near] = True
    return float(marked[at[:, None], on_map].mean()), len(rows)


def same_class_share(xy: np.ndarray, class_ids: np.ndarray, k: int = NEIGHBOURS) -> tuple[float, float]:
    """Mean share of the k nearest images on the map that are of an image's class, and what chance gives."""
    return agreement(nearest_on_map(xy, k), class_ids)


def nearest_on_map(xy: np.ndarray, k: int = NEIGHBOURS) -> np.ndarray:
    """The k nearest others (n, k) of every place (n, 2)."""
    return _nearest(xy.astype(np.float64), min(k, len(xy) - 1))[0]


def agreement(near: np.ndarray, codes: np.ndarray) -> tuple[float, float]:
    """Share of neighbours `near` (n, k) with the same code (n,), and the share expected by chance.

    Images whose code is PAD are excluded, as an image and as a neighbour. NaN if nothing is left.
    """
    has_code = codes != PAD
    pairs = has_code[near] & has_code[:, None]
    sizes = np.bincount(codes[has_code]).astype(float)
    n = sizes.sum()
    if n < 2 or not pairs.any():
        return float("nan"), float("nan")
    same = (codes[near] == codes[:, None]) & pairs
    return float(same.sum() / pairs.sum()), float((sizes * (sizes - 1)).sum() / (n * (n - 1)))


def agreement_within(near: np.ndarray, codes: np.ndarray, groups: np.ndarray) -> tuple[float, float]:
    """Share of neighbours `near` (n, k) of the same group that have the same code (n,), and the share by chance.

    By chance: that of another image of the same group, drawn at random. PAD in either is excluded; NaN if nothing is
    left.
    """
    usable = (codes != PAD) & (groups != PAD)
    same_group = (groups[near] == groups[:, None]) & usable[near] & usable[:, None]
    if not same_group.any():
        return float("nan"), float("nan")
    share = float((codes[near] == codes[:, None])[same_group].mean())
    _, code = np.unique(np.stack([codes, groups]), axis=1, return_inverse=True)
    sizes, group_sizes = np.bincount(code.ravel()[usable], minlength=code.max() + 1), np.bincount(groups[usable])
    chance = (sizes[code.ravel()] - 1) / np.maximum(group_sizes[np.maximum(groups, 0)] - 1, 1)
    return share, float(np.average(chance, weights=same_group.sum(axis=1)))


def _axes(stored: Features) -> np.ndarray:
    """The usable rows (n, d) at unit length along their principal axes, at most _AXES of them."""
    from sklearn.decomposition import PCA

    values = _rows(stored)
    n = len(values)
    sample = (
        values if n <= _LANDMARKS else values[np.sort(np.random.default_rng(_AXES_SEED).permutation(n)[:_LANDMARKS])]
    )
    pca = PCA(min(_AXES, *sample.shape), random_state=0).fit(sample)
    return np.ascontiguousarray(pca.transform(values), np.float64)


def _rows(stored: Features) -> np.ndarray:
    """The usable rows (n, D) at unit length, where a map can be made of them."""
    usable = _usable(stored)
    n = int(usable.sum())
    if n < MIN_IMAGES:
        n_unusable = len(usable) - n
        lost = f" ({n_unusable:,} more hold values that are not finite numbers)" if n_unusable else ""
        raise BadInput(
            f"A map needs at least {MIN_IMAGES} images with features. {stored.dataset} has {n:,} under "
            f"{stored.backbone}{lost}. Add more images and extract their features."
        )
    values = _unit_length(np.asarray(stored.values[usable], np.float32))
    if not (np.abs(values - values[0]) > 1e-6).any():
        raise BadInput(
            f"All features of {stored.dataset} under {stored.backbone} are the same but for their scale, so no image "
            "lies nearer to one than to another. Choose another backbone, or check how the features were made."
        )
    return values


def _usable(stored: Features) -> np.ndarray:
    return np.asarray(np.isfinite(np.asarray(stored.values, np.float32)).all(axis=1))


def _unit_length(values: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    return values / np.where(lengths > 0, lengths, 1)


def _nearest(points: np.ndarray, k: int, of: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest points (n, k) and their distances, nearest first; of the points themselves, or of others."""
    from sklearn.neighbors import NearestNeighbors

    flat = points.shape[1] <= 3
    search = NearestNeighbors(n_neighbors=k, algorithm="kd_tree" if flat else "brute").fit(points)
    distances, indices = search.kneighbors(of)  # of the points themselves: without the point itself
    return indices, distances


def _path(stored: Features) -> Path:
    return store.folder_of(stored.key, stored.backbone) / "map.npz"


def _read(path: Path, stored: Features) -> FeatureMap | None:
    """A stored map of these features; None if there is none that can be read."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            if int(arrays["version"]) != VERSION or str(arrays["key"]) != store.key_digest(stored.key):
                return None
            xy, image_ids = arrays["xy"], arrays["image_ids"]
            if xy.shape != (len(image_ids), 2) or not np.isfinite(xy).all() or (stored.rows_of(image_ids) < 0).any():
                return None
            return FeatureMap(
                stored.dataset,
                stored.backbone,
                str(arrays["key"]),
                str(arrays["kind"]),
                xy,
                image_ids,
                float(arrays["kept"]),
                _chance(len(image_ids)),
                int(arrays["measured"]),
                int(arrays["left_out"]),
            )
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
