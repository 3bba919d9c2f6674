"""The guard is tried in fresh processes: an import can only be watched once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Each in a process of its own that has imported torch and nothing else.
WAYS = {
    "timm and open_clip": (
        "from fsviz.features import torchvision_guard as guard\n"
        "first = guard.install(); assert guard.install() == first\n"
        "import gc; gc.collect()\n"
        "import timm, open_clip, torchvision.transforms, torch\n"
        "print(hasattr(torch.ops.torchvision, 'nms'), timm.is_model('resnet18'), 'ViT-B-32' in open_clip.list_models())"
    ),
    "threads at once": (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from threading import Barrier\n"
        "from time import sleep\n"
        "from fsviz.features import torchvision_guard as guard\n"
        "together, look = Barrier(8), guard._operators_load\n"
        "guard._operators_load = lambda: (sleep(0.2), look())[1]\n"
        "pool = ThreadPoolExecutor(8)\n"
        "print(len(set(pool.map(lambda _: (together.wait(), guard.install())[1], range(8)))))"
    ),
    "torch with CUDA": (
        "torch.version.cuda = '12.8'\n"
        "from fsviz.features import torchvision_guard as guard\n"
        "print(guard.install(), hasattr(torch.ops.torchvision, 'nms'), guard._library)"
    ),
    "operators there already": (
        "own = torch.library.Library('torchvision', 'DEF')\n"
        "own.define('nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor')\n"
        "from fsviz.features import torchvision_guard as guard\n"
        "print(guard.install(), guard._library)"
    ),
}
FORKED = """
import json, os, sys, torch
for name, code in json.loads(sys.argv[1]).items():
    print(f"{name}: ", end="", flush=True)
    child = os.fork()
    if not child:
        exec(code)
        sys.stdout.flush()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, name
"""


def run(*words: str) -> str:
    done = subprocess.run([sys.executable, "-c", *words], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def output() -> dict[str, str]:
    return dict(line.split(": ") for line in run(FORKED, json.dumps(WAYS)).splitlines())


def test_timm_and_open_clip_import_behind_the_guard(output: dict[str, str]) -> None:
    assert output["timm and open_clip"] == "True True True"


def test_threads_that_come_first_share_one_declaration(output: dict[str, str]) -> None:
    assert output["threads at once"] == "1"


def test_the_guard_does_nothing_where_torch_has_cuda(output: dict[str, str]) -> None:
    assert output["torch with CUDA"] == "False False None"


def test_the_guard_steps_back_where_the_operators_are_there_already(output: dict[str, str]) -> None:
    assert output["operators there already"] == "False None"


def test_importing_the_features_room_is_light() -> None:
    code = "import sys, fsviz.features, fsviz.features.decoding; print('torch' in sys.modules)"
    assert run(code) == "False"
