"""The guard is tried in fresh processes: an import can only be watched once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_timm_and_open_clip_import_behind_the_guard() -> None:
    code = (
        "from fsviz.features import torchvision_guard as guard\n"
        "first = guard.install(); assert guard.install() == first\n"
        "import gc; gc.collect()\n"
        "import timm, open_clip, torchvision.transforms, torch\n"
        "print(hasattr(torch.ops.torchvision, 'nms'), timm.is_model('resnet18'), 'ViT-B-32' in open_clip.list_models())"
    )
    assert run(code) == "True True True"


def test_the_guard_does_nothing_where_torch_has_cuda() -> None:
    code = (
        "import torch; torch.version.cuda = '12.8'\n"
        "from fsviz.features import torchvision_guard as guard\n"
        "print(guard.install(), hasattr(torch.ops.torchvision, 'nms'), guard._library)"
    )
    assert run(code) == "False False None"


def test_the_guard_steps_back_where_the_operators_are_there_already() -> None:
    code = (
        "import torch\n"
        "own = torch.library.Library('torchvision', 'DEF')\n"
        "own.define('nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor')\n"
        "from fsviz.features import torchvision_guard as guard\n"
        "print(guard.install(), guard._library)"
    )
    assert run(code) == "False None"


def test_importing_the_features_room_is_light() -> None:
    code = "import sys, fsviz.features, fsviz.features.decoding; print('torch' in sys.modules)"
    assert run(code) == "False"
