"""Images to pixels in separate processes, so that the backbone never waits for a file.

The processes import neither torch nor a backbone, and they end with the process that started them, however it ends.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.connection import wait
from types import ModuleType
from typing import Any

import numpy as np

from fsviz import datasets
from fsviz.datasets import pixel_attributes
from fsviz.errors import FsvizError, WorkspaceError
from fsviz.features.preprocessing import Preprocessing
from fsviz.records import Dataset

AHEAD = 48  # images decoded before they are needed, so that a busy machine does not let the backbone wait
LOOK = 2.0  # seconds without an answer after which the processes are looked at
FEW = 96  # below this many images, starting processes costs more than it saves


@dataclass(frozen=True)
class DecodedBatch:
    """Some images, preprocessed. pixels (n, height, width, 3) uint8 of image_ids (n,); the others with the reason.

    attributes (n, A): what else their pixels say, in the order of pixel_attributes.NAMES; (n, 0) if not requested.
    """

    pixels: np.ndarray
    image_ids: np.ndarray
    skipped: tuple[tuple[int, str], ...]
    attributes: np.ndarray


def decode(
    dataset: Dataset, image_ids: Sequence[int], preprocessing: Preprocessing, attributes: bool = False
) -> DecodedBatch:
    """Opens and preprocesses images; one that cannot be read is excluded and named."""
    pixels, decoded_ids, skipped, attribute_rows = [], [], [], []
    for image_id in image_ids:
        try:
            image = datasets.open_image(dataset, int(image_id))
            array, values = preprocessing.apply(image), pixel_attributes.measure_image(image) if attributes else []
            pixels.append(array)
            attribute_rows.append(values)
            decoded_ids.append(int(image_id))
        except FsvizError as error:
            skipped.append((int(image_id), str(error)))
        except Exception as error:  # decoders raise whatever broken bytes lead them to
            why = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            skipped.append((int(image_id), f"The image cannot be decoded ({why}). Replace or remove it."))
    shape = (0, *preprocessing.size, 3)
    return DecodedBatch(
        np.stack(pixels) if pixels else np.zeros(shape, np.uint8),
        np.array(decoded_ids, np.int64),
        tuple(skipped),
        np.array(attribute_rows, np.float32).reshape(len(decoded_ids), -1 if decoded_ids else 0),
    )


class Decoder:
    """Decodes batches of images ahead of their use, in `workers` processes (0: in this one). A context manager."""

    def __init__(self, dataset: Dataset, workers: int) -> None:
        if multiprocessing.current_process().daemon:
            workers = 0  # such a process may not have children
        self._dataset, self.workers = dataset, workers
        self._pool: ProcessPoolExecutor | None = None
        if workers:
            context = multiprocessing.get_context("spawn")  # a fork would copy torch's threads in an unknown state
            try:
                self._pool = ProcessPoolExecutor(workers, context, _begin, (dataset,))
                for _ in range(workers):
                    self._submit(_ready)  # starts the processes while the backbone loads
            except (OSError, ImportError, NotImplementedError):  # a sandbox without processes or semaphores
                self._pool, self.workers = None, 0

    def __enter__(self) -> Decoder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def batches(self, batches: Sequence[Sequence[int]], preprocessing: Preprocessing) -> Iterator[DecodedBatch]:
        """The decoded batches in order; a few are decoded ahead."""
        done = 0
        if self._pool is not None:
            ahead: deque[Future[DecodedBatch]] = deque()
            following = iter(batches)
            depth = self.workers + max(2, AHEAD // max(1, len(batches[0]) if batches else 1))
            try:
                for batch in following:
                    ahead.append(self._submit(_decode_here, batch, preprocessing))
                    if len(ahead) >= depth:
                        break
                while ahead:
                    decoded = self._result(ahead.popleft())
                    for batch in following:
                        ahead.append(self._submit(_decode_here, batch, preprocessing))
                        break
                    yield decoded
                    done += 1
                return
            except BrokenProcessPool as error:
                if done:
                    raise WorkspaceError(
                        "A process that decodes images was killed, perhaps for want of memory. Run the same command "
                        "again: finished parts are kept. Fewer images at once (--batch) need less memory."
                    ) from error
                # The processes could not start at all: decode here instead.
        for batch in batches:
            yield decode(self._dataset, batch, preprocessing, True)

    def _result(self, future: Future[DecodedBatch]) -> DecodedBatch:
        """The result of a decoding process.

        One that is killed while it hands over an answer leaves the pool waiting for the rest of it for ever: neither
        the library nor the other processes close the pipe. Then all are ended, and the pool knows that it is broken.
        """
        while True:
            try:
                return future.result(timeout=LOOK)
            except TimeoutError:
                pool: Any = self._pool
                processes = list((pool._processes or {}).values())
                if wait([process.sentinel for process in processes], timeout=0) and not future.done():
                    for process in processes:
                        process.kill()
                    pool._result_queue._writer.close()

    def _submit(self, function: Callable[..., Any], *arguments: object) -> Future[Any]:
        """A process may start here. Without this it would first import the script that runs, which needs a guard."""
        assert self._pool is not None
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            return self._pool.submit(function, *arguments)
        finally:
            sys.modules["__main__"] = main


_worker_dataset: Dataset | None = None


def _begin(dataset: Dataset) -> None:
    global _worker_dataset
    _worker_dataset = dataset
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: multiprocessing.process.BaseProcess) -> None:
    """A killed parent cannot tell its children; without this they would wait for ever."""
    parent.join()
    os._exit(1)


def _ready() -> bool:
    return _worker_dataset is not None


def _decode_here(image_ids: Sequence[int], preprocessing: Preprocessing) -> DecodedBatch:
    assert _worker_dataset is not None
    return decode(_worker_dataset, image_ids, preprocessing, True)
