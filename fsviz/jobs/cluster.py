"""The Ray engine: the chunks of a run on the machines of a cluster.

The process that carries the run out stays what it is with the local engine: it holds the lock, writes every chunk as it
comes and tells how far the run is. Only `run_chunk` goes out, as Ray tasks, or, where a study holds a model
(holds_model) or computes on GPUs, in actors that live as long as the run. Chunks are given out as places get free, so
that no more results are on their way than there are places; whatever a chunk needs it reads from the workspace, which
all machines must share. Machines use as many threads as this one would, so that sums are added in the same order.
"""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import tempfile
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import fsviz
from fsviz import studies
from fsviz.errors import BadInput, FsvizError
from fsviz.jobs.engines import Engine, pick
from fsviz.jobs.execute import ChunkRunner, Outcome
from fsviz.studies import chunk_data, thread_limits
from fsviz.studies.study import first_needed
from fsviz.workspace import home

_SEEN = ".seen"  # a file in a run's folder that every machine must read the same
_LOOK_AGAIN = 5.0  # seconds after which places of machines that came or went are counted anew
_KNOCK = 10.0  # seconds that a cluster may take to open its door
_JOIN = 120.0  # seconds that machines may take to answer the first question


def runner(engine: Engine) -> ChunkRunner:
    """A chunk runner on the cluster of this engine."""

    def run(spec: dict[str, Any], waiting: deque[int]) -> Iterator[tuple[int, Outcome]]:
        if not waiting:
            return
        address = pick(engine.name, engine.address).address  # Ray may be gone since the run was recorded
        n_gpus = 1 if str(spec.get("device", "")).startswith("cuda") else 0
        with _joined(address):
            _check_machines(spec)
            n_cpus = _cpus_per_chunk(n_gpus)
            holds = n_gpus or studies.of(spec).holds_model
            places = (_Actors if holds else _Tasks)(spec, n_cpus, n_gpus)
            try:
                yield from _given_out(places, waiting, spec)
            except SystemError as error:  # what a signal raised inside of Ray's own code
                raise error.__cause__ or error from None
            finally:
                places.close()

    return run


@contextmanager
def _joined(address: str) -> Iterator[None]:
    """Connected to the cluster inside the block; a connection that the program has already is used and left open."""
    import ray

    if ray.is_initialized():
        joined = str(ray.get_runtime_context().gcs_address)
        if address != "auto" and not _is_same(address, joined):
            raise BadInput(
                f"This program is connected to the Ray cluster at {joined} already. Got the address {address!r}. Leave "
                "that cluster with ray.shutdown() first, or give its address."
            )
        yield
        return
    handler = signal.getsignal(signal.SIGTERM)
    try:
        _knock(address)
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)
    except (ConnectionError, OSError, RuntimeError, ValueError) as error:
        raise BadInput(
            f"No Ray cluster answers at {address!r} ({_first_line(error)}). Start one with 'ray start --head', on "
            "further machines 'ray start --address=HOST:6379', and give --address HOST:6379."
        ) from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)  # Ray has set its own
    try:
        yield
    finally:
        ray.shutdown()


def _remote(target: Any, **needs: Any) -> Any:
    """A function or class that runs on a machine of the cluster as it would here: same code, workspace and threads."""
    import ray

    root = str(Path(fsviz.__file__).resolve().parent.parent)
    environment = {
        "FSVIZ_HOME": str(home()),
        "PYTHONPATH": os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])]),
        **{name: os.environ[name] for name in ("FSVIZ_STUDIES",) if name in os.environ},
        **thread_limits.as_here(),
    }
    return ray.remote(runtime_env={"env_vars": environment}, **needs)(target)


def _is_same(first: str, second: str) -> bool:
    """Whether two addresses HOST:PORT are of one place, by name or by number."""

    def place(address: str) -> tuple[str, str]:
        host, _, port = address.rpartition(":")
        try:
            return socket.gethostbyname(host), port
        except OSError:
            return host, port

    return place(first) == place(second)


def _knock(address: str) -> None:
    """Raises OSError where nobody listens: Ray itself would go on trying for minutes."""
    if address == "auto":
        address_file = Path(tempfile.gettempdir(), "ray", "ray_current_cluster")  # as Ray finds the one of this machine
        address = os.environ.get("RAY_ADDRESS") or (address_file.read_text().strip() if address_file.is_file() else "")
    host, _, port = address.rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=_KNOCK).close()


def _nodes() -> list[dict[str, Any]]:
    import ray

    return [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]


def _cpus_per_chunk(n_gpus: int) -> int:
    """Cores that a chunk takes: as many as it has threads, no more than the smallest machine has."""
    import torch

    nodes = [node["Resources"] for node in _nodes() if node["Resources"].get("GPU", 0) >= n_gpus]
    if not nodes and not n_gpus:
        raise BadInput("No machine of the cluster offers a core. Start Ray there with 'ray start --num-cpus N'.")
    if not nodes:
        raise BadInput(
            "This run computes on CUDA, and no machine of the cluster reports a GPU to Ray. Choose the device cpu, or "
            "start Ray there with 'ray start --num-gpus N'."
        )
    return max(1, min(torch.get_num_threads(), *(int(node["CPU"]) for node in nodes)))


# --- what all machines must see ----------------------------------------------------------------------------------


def _check_machines(spec: dict[str, Any]) -> None:
    """Raises a sentence that names the first machine which cannot do the work, and why."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    token, nodes = secrets.token_hex(8), _nodes()
    token_file = Path(spec["folder"]) / _SEEN
    token_file.write_text(token, encoding="utf-8")
    ask = _remote(_trouble, num_cpus=0, max_retries=0)
    node_of_check = {
        ask.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)).remote(
            spec, token, fsviz.__version__
        ): node
        for node in nodes
    }
    try:
        ready, late = ray.wait(list(node_of_check), num_returns=len(node_of_check), timeout=_JOIN)
        reasons = {node_of_check[ref]["NodeID"]: f"no answer within {_JOIN:.0f} seconds" for ref in late}
        for ref in ready:
            try:
                reasons[node_of_check[ref]["NodeID"]] = ray.get(ref)
            except (ray.exceptions.TaskUnschedulableError, ray.exceptions.NodeDiedError):  # it has left meanwhile
                reasons[node_of_check[ref]["NodeID"]] = ""
            except ray.exceptions.RayError as error:
                reasons[node_of_check[ref]["NodeID"]] = f"cannot load fsviz {fsviz.__version__} ({_first_line(error)})"
    finally:
        token_file.unlink(missing_ok=True)
    for node in nodes:
        if trouble := reasons[node["NodeID"]]:
            raise BadInput(
                f"Machine {node['NodeManagerHostname']} ({node['NodeManagerAddress']}) of the cluster cannot take "
                f"part: {trouble}. All machines must see the workspace {home()} under this path, with the same fsviz: "
                "share it (NFS, for example), set FSVIZ_HOME to a folder that is shared, or stop Ray on that machine."
            )


def _trouble(spec: dict[str, Any], token: str, version: str) -> str:
    """Runs on every machine: why it cannot compute chunks of this spec, "" if it can."""
    if fsviz.__version__ != version:
        return f"it has fsviz {fsviz.__version__}, not {version}"
    try:
        if (Path(spec["folder"]) / _SEEN).read_text(encoding="utf-8") != token:
            return f"its {spec['folder']} is another folder"
    except OSError:
        return f"it does not see {spec['folder']}"
    try:
        root = chunk_data.folder_of_images(spec) if studies.of(spec).reads_images else None
    except (FsvizError, ImportError) as error:
        return str(error).rstrip(".")
    return f"it does not see the images in {root}" if root is not None and not root.is_dir() else ""


# --- giving out --------------------------------------------------------------------------------------------------


class _Refused:
    """A sentence for the user, raised by a chunk: trying it again does not help."""

    def __init__(self, sentence: str) -> None:
        self.sentence = sentence


def _run_chunk(spec: dict[str, Any], index: int) -> Any:
    try:
        return studies.of(spec).chunk(spec, index)
    except FsvizError as error:
        return _Refused(str(error))


class _Worker:
    """An actor: a process that keeps what it has loaded."""

    def ready(self) -> None:
        """Answers as soon as the process is there."""

    def run(self, spec: dict[str, Any], index: int) -> Any:
        return _run_chunk(spec, index)


class _Tasks:
    """Chunks as Ray tasks: Ray finds them a machine, also one that joined since."""

    def __init__(self, spec: dict[str, Any], n_cpus: int, n_gpus: int) -> None:
        import ray

        self.spec, self.n_cpus = ray.put(spec), n_cpus
        self.task = _remote(_run_chunk, num_cpus=n_cpus, max_retries=0)
        self.begun: set[Any] = set()

    def n_places(self) -> int:
        """One more than there are, so that no machine waits for the next chunk."""
        return 1 + sum(int(node["Resources"]["CPU"]) // self.n_cpus for node in _nodes())

    def begin(self, index: int) -> Any:
        ref = self.task.remote(self.spec, index)
        self.begun.add(ref)
        return ref

    def ended(self, ref: Any, reusable: bool) -> None:
        self.begun.discard(ref)

    def close(self) -> None:
        import ray

        for ref in self.begun:
            with suppress(Exception):  # the cluster may be gone
                ray.cancel(ref, force=True)


class _Actors:
    """Chunks in actors, one for each place; one that dies is replaced wherever there is room."""

    def __init__(self, spec: dict[str, Any], n_cpus: int, n_gpus: int) -> None:
        import ray

        self.spec, self.n_cpus, self.n_gpus = ray.put(spec), n_cpus, n_gpus
        self.worker = _remote(_Worker, num_cpus=n_cpus, num_gpus=n_gpus)
        self.coming: dict[Any, Any] = {}
        self.free: list[Any] = []
        self.busy: dict[Any, Any] = {}

    def n_places(self) -> int:
        """Actors that live; the missing ones are requested."""
        import ray

        resources = [node["Resources"] for node in _nodes()]
        n_workers = sum(
            min(int(r["CPU"]) // self.n_cpus, int(r.get("GPU", 0)) if self.n_gpus else 10**6) for r in resources
        )
        for _ in range(n_workers - len(self.coming) - len(self.free) - len(self.busy)):
            actor = self.worker.remote()
            self.coming[actor.ready.remote()] = actor
        if self.coming:
            patience = 0.0 if self.free or self.busy else _LOOK_AGAIN
            for ref in ray.wait(list(self.coming), num_returns=1, timeout=patience)[0]:
                actor = self.coming.pop(ref)
                with suppress(ray.exceptions.RayError):
                    ray.get(ref)
                    self.free.append(actor)
        return len(self.free) + len(self.busy)

    def begin(self, index: int) -> Any:
        actor = self.free.pop()
        ref = actor.run.remote(self.spec, index)
        self.busy[ref] = actor
        return ref

    def ended(self, ref: Any, reusable: bool) -> None:
        import ray

        actor = self.busy.pop(ref)
        if reusable:
            self.free.append(actor)
        else:
            with suppress(Exception):
                ray.kill(actor)

    def close(self) -> None:
        import ray

        for actor in (*self.coming.values(), *self.free, *self.busy.values()):
            with suppress(Exception):
                ray.kill(actor)


def _given_out(places: _Tasks | _Actors, waiting: deque[int], spec: dict[str, Any]) -> Iterator[tuple[int, Outcome]]:
    """Every chunk as it ends. `waiting` may grow meanwhile: a chunk that failed is put back by whoever tries again."""
    import ray

    parts = studies.of(spec).parts(spec)
    begun: dict[Any, int] = {}
    missing, n_first = set(waiting), 0  # chunks that are not finished; those before n_first are
    while waiting or begun:
        while n_first not in missing and missing:
            n_first += 1
        n_free = places.n_places() - len(begun)
        while n_free > 0 and waiting and first_needed(parts, waiting[0]) <= n_first:
            index = waiting.popleft()
            begun[places.begin(index)] = index
            n_free -= 1
        if not begun:
            if waiting and first_needed(parts, waiting[0]) > n_first:
                return  # what it waits for has failed for good
            continue
        for ref in ray.wait(list(begun), num_returns=1, timeout=_LOOK_AGAIN)[0]:
            index = begun.pop(ref)
            try:
                outcome = ray.get(ref)
                places.ended(ref, reusable=True)
            except ray.exceptions.RayTaskError as error:  # raised by the study
                places.ended(ref, reusable=True)
                outcome = _as_error(error)
            except ray.exceptions.RayError as error:  # a process or a machine is gone
                places.ended(ref, reusable=False)
                outcome = RuntimeError(f"the process or the machine that computed it is gone: {_first_line(error)}")
            if isinstance(outcome, _Refused):
                raise FsvizError(outcome.sentence)
            if not isinstance(outcome, Exception):
                missing.discard(index)
            yield index, outcome


def _as_error(error: Any) -> Exception:
    """The error that a study raised, with the report of the machine where it did."""
    failure = RuntimeError(f"{type(error.cause).__name__}: {error.cause}")
    failure.add_note(str(error))
    return failure


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
