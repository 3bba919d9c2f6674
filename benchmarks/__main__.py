"""python -m benchmarks NAME [--json]: runs benchmarks/NAME.py, whose `run(progress)` returns {"ratio": ..., ...}."""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import sys

import benchmarks


def main() -> int:
    names = sorted(m.name for m in pkgutil.iter_modules(benchmarks.__path__) if not m.name.startswith("_"))
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=benchmarks.__doc__)
    parser.add_argument("name", choices=names)
    parser.add_argument("--json", action="store_true", help="print one JSON object only")
    args = parser.parse_args()
    result = importlib.import_module(f"benchmarks.{args.name}").run(lambda text: print(text, file=sys.stderr))
    print(json.dumps(result, indent=None if args.json else 2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
