"""Batched methods against a loop over tasks with easyfsl, on the same features and with the same predictions.

CPU, one thread on both sides, 5-way 5-shot 10-query tasks, 640 dimensions. easyfsl has no logistic regression: there
the loop is torch's own linear layer, autograd and Adam on the same mini-batches. Both sides start from the table of
features and end at predicted labels. Rounds alternate between the two; a ratio is the median over rounds, of processor
time, so that other work on the machine counts for neither side.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from fsviz.errors import Missing
from fsviz.evaluation import evaluate
from fsviz.methods import METHODS
from fsviz.records import Features, Tasks

N_WAY, N_SHOT, N_QUERY, DIMS = 5, 5, 10, 640
ROUNDS = 5
# tasks a round, how many of them the loop works on (times are per task), and settings. easyfsl's PT-MAP does not
# scale features, so they come scaled.
CASES: dict[str, tuple[int, int, dict[str, Any]]] = {
    "protonet": (512, 256, {}),
    "bd_cspn": (512, 256, {}),
    "finetune": (192, 64, {}),
    "tim": (64, 16, {"distance": "cosine", "scale": 10.0}),
    "transductive_finetuning": (64, 32, {}),
    "laplacian_shot": (256, 128, {}),
    "logistic": (64, 16, {}),
    "pt_map": (64, 16, {"normalise": "none", "steps": 10}),
}
REQUIRED = {"protonet": 3, "bd_cspn": 3, "finetune": 12, "tim": 12, "logistic": 15, "pt_map": 40}
LARGE_CASE = """
import numpy as np
from benchmarks.evaluation import peak_memory_mb
from fsviz.evaluation import evaluate
from fsviz.records import Features, Tasks
rng = np.random.default_rng(0)
class_ids = np.repeat(np.arange(1604), 15)
table = rng.random((len(class_ids), 512), dtype=np.float32)
features = Features("large", "noise", table, np.arange(len(table)), class_ids)
ways = np.stack([rng.permutation(1604)[:100] for _ in range(24)])
images = ways[..., None] * 15 + np.arange(15)
tasks = Tasks(ways, images[..., :5], images[..., 5:])
for method in ("protonet", "pt_map"):
    evaluate(features, tasks, method)
print(peak_memory_mb())
"""


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    import torch

    loops = _loops()
    features, tasks = _problem()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        results = {name: _compare(name, loops[name], features, tasks, progress) for name in CASES}
    finally:
        torch.set_num_threads(threads)
    progress("Peak memory of 100-way 5-shot 10-query tasks on 1,604 classes x 512 dimensions")
    large = subprocess.run([sys.executable, "-c", LARGE_CASE], capture_output=True, text=True, check=True)
    ratios = [result["ratio"] for result in results.values()]
    return {
        "ratio": round(float(np.exp(np.mean(np.log(ratios)))), 2),
        "methods": results,
        "peak_memory_mb": peak_memory_mb(),
        "large_case_peak_memory_mb": int(large.stdout),
        "threads": 1,
    }


def peak_memory_mb() -> int:
    """The most memory this process ever held; unlike getrusage's, Linux's own figure starts anew in a child."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) // 1024
    except (OSError, StopIteration):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak // (2**20 if sys.platform == "darwin" else 2**10)


def _compare(
    name: str, loop: Callable[[Any, np.ndarray, np.ndarray], Any], features: Features, tasks: Tasks, progress: Callable
) -> dict[str, Any]:
    import torch

    n_tasks, n_looped, parameters = CASES[name]
    tasks = tasks.take(slice(0, n_tasks))
    table = torch.from_numpy(features.values)

    def batched() -> np.ndarray:
        return evaluate(features, tasks, name, parameters).predicted

    def per_task() -> np.ndarray:
        shape = (N_WAY, N_QUERY)
        pairs = zip(tasks.support[:n_looped], tasks.query[:n_looped])
        return np.stack([loop(table, s.reshape(-1), q.reshape(-1)).numpy().reshape(shape) for s, q in pairs])

    batched()  # compiles and warms up
    loop(table, tasks.support[0].reshape(-1), tasks.query[0].reshape(-1))
    ours, theirs, predictions, expected = [], [], None, None
    for _ in range(ROUNDS):
        start = time.process_time()
        predictions = batched()
        middle = time.process_time()
        expected = per_task()
        theirs.append((time.process_time() - middle) / n_looped)
        ours.append((middle - start) / n_tasks)
    ratio = statistics.median(b / a for a, b in zip(ours, theirs))
    same = float((predictions[:n_looped] == expected).mean())
    # one query in a thousand may be so close to a tie that the order of float32 additions decides it
    if same < 0.999:
        raise AssertionError(f"{name}: only {same:.2%} of the predictions are the same")
    result = {
        "ratio": round(ratio, 2),
        "required": REQUIRED.get(name),
        "same_predictions": round(same, 5),
        "accuracy": round(float((predictions == np.arange(N_WAY)[:, None]).mean()), 4),
        "batched_us_per_task": round(statistics.median(ours) * 1e6, 1),
        "loop_us_per_task": round(statistics.median(theirs) * 1e6, 1),
    }
    progress(f"{METHODS[name].title}: {ratio:.1f} times, {same:.2%} of the predictions the same")
    return result


def _problem() -> tuple[Features, Tasks]:
    """160 noisy classes of 80 images with non-negative features of length one, as a ReLU backbone gives."""
    rng = np.random.default_rng(0)
    n_classes, n_images = 160, 80
    class_ids = np.repeat(np.arange(n_classes), n_images)
    middle = rng.normal(0, 0.25, size=(n_classes, DIMS))
    table = np.maximum(middle[class_ids] + rng.normal(size=(len(class_ids), DIMS)), 0).astype(np.float32)
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    features = Features("noise", "relu", table, np.arange(len(table)), class_ids)
    n_tasks = max(n for n, _, _ in CASES.values())
    ways = np.stack([rng.permutation(n_classes)[:N_WAY] for _ in range(n_tasks)])
    inside = rng.permuted(np.tile(np.arange(n_images), (n_tasks, N_WAY, 1)), axis=2)[..., : N_SHOT + N_QUERY]
    images = ways[..., None] * n_images + inside
    return features, Tasks(ways, images[..., :N_SHOT], images[..., N_SHOT:])


def _loops() -> dict[str, Callable[[Any, np.ndarray, np.ndarray], Any]]:
    """name -> function(table, support image_ids, query image_ids) -> predicted labels of one task."""
    import torch

    from fsviz.features import torchvision_guard

    torchvision_guard.install()
    try:
        from easyfsl import methods as easyfsl
    except ImportError as error:
        raise Missing("This benchmark compares with easyfsl: pip install -r requirements-dev.txt.") from error
    labels = torch.arange(N_WAY).repeat_interleave(N_SHOT)

    def looped(classifier: Any) -> Callable[[Any, np.ndarray, np.ndarray], Any]:
        def predict(table: Any, support: np.ndarray, query: np.ndarray) -> Any:
            classifier.process_support_set(table[support], labels)
            with torch.no_grad():
                return classifier(table[query]).argmax(-1)

        return predict

    def logistic(table: Any, support: np.ndarray, query: np.ndarray) -> Any:
        images = torch.nn.functional.normalize(table[support], dim=1)
        layer = torch.nn.Linear(DIMS, N_WAY)
        torch.nn.init.zeros_(layer.weight)
        torch.nn.init.zeros_(layer.bias)
        optimiser = torch.optim.Adam(layer.parameters(), lr=0.01, weight_decay=5e-6)
        luck = np.random.default_rng(0)
        for _ in range(50):
            for batch in torch.from_numpy(luck.permutation(len(images))).split(5):
                loss = torch.nn.functional.cross_entropy(layer(images[batch]), labels[batch])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
        with torch.no_grad():
            return layer(torch.nn.functional.normalize(table[query], dim=1)).argmax(-1)

    return {
        "protonet": looped(easyfsl.PrototypicalNetworks()),
        "bd_cspn": looped(easyfsl.BDCSPN()),
        "finetune": looped(easyfsl.Finetune(fine_tuning_steps=10, fine_tuning_lr=1e-3)),
        "tim": looped(easyfsl.TIM(fine_tuning_steps=100, fine_tuning_lr=1e-3)),
        "transductive_finetuning": looped(easyfsl.TransductiveFinetuning()),
        # easyfsl counts the image itself among its neighbours
        "laplacian_shot": looped(easyfsl.LaplacianShot(feature_normalization=2.0)),
        "logistic": logistic,
        "pt_map": looped(easyfsl.PTMAP()),
    }
