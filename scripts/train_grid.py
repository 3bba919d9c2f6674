"""Trains every method on splits of several divergences and keeps what came out: data/training/DATASET.json.

    python scripts/train_grid.py [demo] --home GRID_WORKSPACE [--methods ...] [--targets ...] [--seeds 0 1 2] [--plan]
    python scripts/train_grid.py [demo] --home GRID_WORKSPACE --seeds 1 --add-to data/training/demo.json ...
    python scripts/train_grid.py --add-to data/training/demo.json --from seed1.json

and every setting of `fsviz train`, such as --epochs 10 --width 16 --order first.

Every method, divergence, side and seed is one run of the study `training` in the workspace --home, so that a stopped
grid continues where it was, and --plan only says what is left. The file is written when all runs are finished: rows as
fsviz.analyses.transfer.run_table gives them, the recipe, the date and the seconds. --add-to joins them to a file that
was written before with the same recipe and other seeds; --from takes the new ones from a file. With the defaults that
is about forty hours of one core, thirty of them for MAML with second derivatives (0.7 s per task). data/README.md says
how the grid of the demo was made. With --address HOST:PORT the runs go over a Ray cluster, sixteen at a time.
"""

from __future__ import annotations

import argparse
import datetime
import math
import os
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import pandas as pd  # noqa: E402

from fsviz import datasets, jobs, workspace  # noqa: E402
from fsviz.analyses import class_splits, transfer  # noqa: E402
from fsviz.cli import engine  # noqa: E402
from fsviz.errors import BadInput, FsvizError  # noqa: E402
from fsviz.settings import add_flags, from_args  # noqa: E402
from fsviz.studies import training  # noqa: E402
from fsviz.training import TRAINERS  # noqa: E402

SETTINGS = [setting for name, setting in training.SETTINGS.items() if name != "seed"]


AT_ONCE = 16  # runs on a cluster: each has a process here that hands out its chunks, of about 400 MB


def run_of(spec: dict[str, Any]) -> jobs.Run | None:
    """The run of this spec, finished or not."""
    settings = {key: value for key, value in spec.items() if key != "split"}
    for run in jobs.list_runs("training"):
        split = run.spec.get("split", {})
        alike = all(split.get(key) == spec["split"].get(key) for key in ("train", "val", "test", "recipe"))
        if alike and jobs.has_same_spec(settings, run.spec):
            return run
    return None


def correlations(classes: class_splits.ClassFeatures, run_id: str) -> list[dict[str, Any]]:
    """Correlations of the divergence of single tasks with their accuracy in a run."""
    rows = transfer.divergence_correlations(classes, jobs.spec(run_id), jobs.chunks(run_id))
    return [{"run": run_id, **row} for row in rows.to_dict("records")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", nargs="?", default="demo")
    parser.add_argument("--home", help="the workspace that keeps the runs")
    parser.add_argument("--backbone", default="efficientnet_lite0", help="whose features the splits are found by")
    parser.add_argument("--methods", nargs="+", default=list(TRAINERS), choices=list(TRAINERS))
    parser.add_argument("--targets", nargs="+", type=float, default=list(transfer.TARGETS), help="divergences")
    parser.add_argument("--matched-at", type=float, default=2.0, help="the divergence of the matched comparison")
    parser.add_argument("--compared", nargs="*", default=[], choices=list(transfer.COMPARED), help="other splits too")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    add_flags(parser, SETTINGS)
    parser.add_argument("--out", type=Path, help="the file (default: data/training/DATASET.json)")
    parser.add_argument("--add-to", type=Path, metavar="FILE", help="a grid of other seeds to join the new one to")
    parser.add_argument(
        "--from", dest="taken", type=Path, metavar="FILE", help="with --add-to: a grid that is finished"
    )
    engine.add_engine(parser)
    parser.add_argument("--plan", action="store_true", help="say what is left to do, and do nothing")
    arguments = parser.parse_args()
    try:
        if arguments.taken is not None:
            if arguments.add_to is None:
                raise BadInput("--from needs --add-to FILE, the grid to join it to.")
            write(arguments.out or arguments.add_to, add_to(arguments.add_to, workspace.read_json(arguments.taken)))
        elif arguments.home is None:
            raise BadInput("--home FOLDER is needed: the workspace that keeps the runs.")
        else:
            train(arguments)
    except FsvizError as error:
        parser.error(str(error))


def add_to(file: Path, facts: dict[str, Any]) -> dict[str, Any]:
    """The facts joined to those of a file that was written before."""
    return transfer.joined(workspace.read_json(file), facts)


def train(arguments: argparse.Namespace) -> None:
    """Carries out the runs that are missing, and writes what came out of all."""
    os.environ["FSVIZ_HOME"] = str(Path(arguments.home).absolute())
    dataset = datasets.load(arguments.dataset)
    classes = class_splits.class_features(dataset, arguments.backbone)
    settings = from_args(arguments, SETTINGS)
    grid = {"methods": arguments.methods, "targets": arguments.targets, "seeds": arguments.seeds}
    more = {"matched_at": arguments.matched_at, "compared": arguments.compared}
    recipe = {"backbone": arguments.backbone, **grid, **more, **settings}
    if arguments.add_to is not None:  # found out before hours of training
        add_to(arguments.add_to, {"dataset": dataset.name, "recipe": recipe, "date": "", "seconds": 0, "rows": []})
    specs = transfer.grid(dataset, classes, **grid, **more, **settings)
    runs = [run_of(spec) for spec in specs]
    n_left = sum(run is None or run.state != "finished" for run in runs)
    print(f"{len(specs)} runs, {n_left} of them left to do", flush=True)
    if arguments.plan:
        return
    on = engine.from_flags(arguments)
    if on is not None:
        begin_all(specs, runs, on)
    for i, (spec, existing) in enumerate(zip(specs, runs, strict=True)):
        run = existing or jobs.run_in_foreground(spec)
        if on is not None:
            run = jobs.wait(run.id, math.inf, every=1.0)
            if run.state != "finished":
                raise BadInput(f"Run {run.id} is {run.state}: {run.error or run.message}")
        elif run.state != "finished":
            run = jobs.resume_here(run.id)
        runs[i] = run
        rows = ", ".join(f"{row['label']} {row['accuracy']:.1f}" for row in jobs.results(run.id)["results"])
        print(f"{i + 1} of {len(specs)}: {spec['split']['name']} seed {spec['seed']}: {rows}", flush=True)
    done = [run for run in runs if run is not None]
    table = transfer.run_table((run.id, run.spec, run.summary) for run in done)
    facts = {
        "dataset": dataset.name,
        "date": datetime.date.today().isoformat(),
        "recipe": recipe,
        "seconds": sum(run.seconds for run in done),
        "rows": table.to_dict("records"),
        "correlations": [row for run in done for row in correlations(classes, run.id)],
    }
    if arguments.add_to is not None:
        facts = add_to(arguments.add_to, workspace.plain_json(facts))
    write(arguments.out or arguments.add_to or transfer.RECORDED / f"{dataset.name}.json", facts)


def begin_all(specs: list[dict[str, Any]], runs: list[jobs.Run | None], on: jobs.Engine) -> None:
    """Queues what is left to do on a cluster, many runs at a time: an epoch waits for the one before, the machines for
    none."""
    jobs.set_workers(AT_ONCE)
    for i, (spec, existing) in enumerate(zip(specs, runs, strict=True)):
        if existing is None:
            runs[i] = jobs.status(jobs.submit(spec, on))
        elif existing.resumable and existing.state != "finished":
            runs[i] = jobs.resume(existing.id, on)


def write(out: Path, facts: dict[str, Any]) -> None:
    """Keeps a grid, and says what it says of slopes and matched pairs."""
    out.parent.mkdir(parents=True, exist_ok=True)
    workspace.write_json(out, workspace.plain_json(facts))
    table = pd.DataFrame(facts["rows"], columns=list(transfer.COLUMNS))
    for slope in transfer.slopes(table):
        half = "" if slope.ci95 is None else f" ± {slope.ci95:.2f}"
        print(f"{slope.method}, {slope.sides}: {slope.slope:.2f}{half} points per unit of divergence")
    for pair in transfer.matched_differences(table):
        half = "" if pair.ci95 is None else f" ± {pair.ci95:.2f}"
        print(f"{pair.method}: nearest {pair.nearest:.1f}, farthest {pair.farthest:.1f}, {pair.difference:+.1f}{half}")
    print(out)


if __name__ == "__main__":
    main()
