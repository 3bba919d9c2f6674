"""Lay out the maps that ship with a dataset: data/DATASET/maps/BACKBONE.npz, of the features that ship with it.

    python scripts/ship_maps.py demo|fruit [BACKBONE ...]     (default: efficientnet_lite0 demo_clip)

Goes through fsviz.features.maps, so they are what 'fsviz map DATASET --better' would give.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from fsviz import datasets, features  # noqa: E402
from fsviz.features import maps  # noqa: E402


def ship(name: str, backbone: str) -> None:
    stored = features.load(datasets.load(name), backbone)

    def progress(done: int, total: int, message: str) -> None:
        print(f"\r{backbone}: {message}, {done} of {total}", end="", flush=True)

    layout = maps.with_quality(stored, maps.BETTER, maps.lay_out(stored, maps.BETTER, progress))
    path = maps.save(stored, layout, maps.SHIPPED / name / "maps" / f"{backbone}.npz")
    print(f"\n{backbone}: {layout.preserved:.1%} of neighbours kept, {path.stat().st_size / 1e3:.0f} KB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", choices=["demo", "fruit"])
    parser.add_argument("backbones", nargs="*", default=["efficientnet_lite0", "demo_clip"])
    arguments = parser.parse_args()
    for backbone in arguments.backbones:
        ship(arguments.dataset, backbone)


if __name__ == "__main__":
    main()
