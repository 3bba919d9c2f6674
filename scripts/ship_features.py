"""Extract the features that ship with a dataset: data/DATASET/features/BACKBONE.npy (float16, by image_id) and .json.

    python scripts/ship_features.py demo|fruit [BACKBONE ...]     (default: efficientnet_lite0 demo_clip)

Goes through fsviz.features.extraction, so they are what 'fsviz extract DATASET' gives.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from fsviz import datasets, workspace  # noqa: E402
from fsviz.features import extraction  # noqa: E402


def ship(name: str, backbone: str, workers: int | None) -> None:
    dataset = datasets.load(name)
    folder = ROOT / "data" / name / "features"

    def progress(done: int, total: int, message: str) -> None:
        print(f"\r{backbone}: {done} of {total} {message}", end="", flush=True)

    extracted = extraction.extract(dataset, backbone, device="cpu", workers=workers, progress=progress)
    features = extracted.features
    order = np.argsort(features.image_ids)
    if extracted.skipped or not np.array_equal(features.image_ids[order], np.arange(len(dataset.images))):
        raise SystemExit(f"{backbone}: {len(extracted.skipped)} images were skipped; nothing was written.")
    values = np.asarray(features.values)[order].astype(np.float16)
    if not np.isfinite(values).all():
        raise SystemExit(f"{backbone}: some features do not fit into float16; nothing was written.")
    folder.mkdir(exist_ok=True)
    with workspace.atomic_file(folder / f"{backbone}.npy") as path, open(path, "wb") as file:
        np.save(file, values)
    about = {
        "key": dict(features.key),
        "label": backbone,
        "n_images": len(values),
        "dims": values.shape[1],
        "dtype": "float16",
        "skipped": [],
    }
    text = json.dumps(about, indent=2, sort_keys=True)
    (folder / f"{backbone}.json").write_text(text + "\n", encoding="utf-8")
    print(f"\n{backbone}: {values.shape}, {values.nbytes / 1e6:.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", choices=["demo", "fruit"])
    parser.add_argument("backbones", nargs="*", default=["efficientnet_lite0", "demo_clip"])
    parser.add_argument("--home", help="a workspace to keep, so that a stopped extraction continues (default: none)")
    parser.add_argument("--workers", type=int, help="processes that draw images (default: by the number of cores)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FSVIZ_HOME"] = arguments.home or folder
        for backbone in arguments.backbones:
            ship(arguments.dataset, backbone, arguments.workers)


if __name__ == "__main__":
    main()
