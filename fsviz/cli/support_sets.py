"""hard: support sets on which a classifier fails. stress: do other backbones and adaptations fail on them too?"""

from __future__ import annotations

import argparse
from typing import Any

from fsviz.cli import add_command, progress, table


def register(commands: argparse._SubParsersAction) -> None:
    hard = add_command(commands, "hard", run_hard, show_hard, "find support sets on which a classifier fails")
    hard.add_argument("dataset", metavar="DATASET")
    hard.add_argument("--backbone", default="efficientnet_lite0", help="features that are searched and classified")
    _add_tasks(hard)
    hard.add_argument("--objective", default="hard", choices=("hard", "easy"), help="which sets become the testbed")
    hard.add_argument("--classifier", default="protonet", help="the method whose accuracy is printed")
    hard.add_argument("--device", default="cpu")

    stress = add_command(
        commands, "stress", run_stress, show_stress, "classify hard and random tasks with other backbones and methods"
    )
    stress.add_argument("dataset", metavar="DATASET")
    stress.add_argument("--sources", metavar="A,B", help="backbones that hard sets are searched with (default: first)")
    stress.add_argument("--backbones", metavar="A,B", help="backbones that classify (default: all with features)")
    stress.add_argument(
        "--adaptations", metavar="A,B", default="protonet,finetune,tim", help="any of protonet, finetune, tim"
    )
    stress.add_argument("--full-finetuning", action="store_true", help="also train the whole backbone on every task")
    stress.add_argument("--finetuning-tasks", type=int, default=10, help="tasks for full finetuning")
    stress.add_argument("--finetuning-steps", type=int, default=50, help="steps a task of full finetuning")
    stress.add_argument("--finetuning-size", type=int, default=128, help="pixels a side for full finetuning")
    stress.add_argument("--device", default="cpu")
    _add_tasks(stress)


def _add_tasks(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--split", default="test")
    parser.add_argument(
        "--sampler", default="uniform", choices=("uniform", "semantic", "variable"), help="how classes are drawn"
    )
    parser.add_argument("--n-way", type=int, default=5)
    parser.add_argument("--n-shot", type=int, default=5)
    parser.add_argument("--n-query", type=int, default=10)
    parser.add_argument("--n-tasks", type=int, default=200)
    parser.add_argument("--alpha", type=float, default=0.383, help="closeness of classes, for --sampler semantic")
    parser.add_argument("--beta", type=float, default=100.0, help="balance of classes, for --sampler semantic")
    parser.add_argument("--method", default="fastdiffsel", choices=("fastdiffsel", "greedy"), help="the search")
    parser.add_argument(
        "--loss",
        default="euclidean",
        choices=("euclidean", "plain", "cosine"),
        help="scores of the search: squared distances scaled task by task (euclidean), as they are (plain), cosines",
    )
    parser.add_argument("--start", default="ones", choices=("ones", "random"), help="first weights of FastDiffSel")
    parser.add_argument(
        "--step", type=float, default=200.0, help="size of a gradient step; matters with --start random"
    )
    parser.add_argument("--steps", type=int, default=1, help="gradient steps of FastDiffSel")
    parser.add_argument("--sweeps", type=int, default=1, help="sweeps of greedy search")
    parser.add_argument("--seed", type=int, default=0)


def _tasks_of(args: argparse.Namespace) -> dict[str, Any]:
    names = ("split", "sampler", "n_way", "n_shot", "n_query", "n_tasks", "alpha", "beta", "loss", "start", "step")
    settings = {name: getattr(args, name) for name in (*names, "seed", "device")}
    return settings | {"search": args.method, "n_steps": args.steps, "n_sweeps": args.sweeps}


def run_hard(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import jobs

    spec = {
        "study": "support_sets",
        "dataset": args.dataset,
        "backbone": args.backbone,
        "classifier": args.classifier,
        "objective": args.objective,
        **_tasks_of(args),
    }
    run = jobs.run_here(spec, _tell)
    found = jobs.results(run.id)
    names = ("accuracy", "n_tasks", "testbed", "ci95", "drop", "drop_ci95", "spearman_loss_accuracy")
    return {name: found[name] for name in names} | {"run": run.id}


def show_hard(result: dict[str, Any]) -> str:
    rows = [
        {"support set": name, "accuracy %": result["accuracy"][name], "95% interval": result["ci95"][name]}
        for name in ("hard", "random", "easy")
    ]
    return (
        table(rows, ["support set", "accuracy %", "95% interval"])
        + f"\n\nHard support sets cost {result['drop']:.1f} points against random ones ({result['n_tasks']} tasks, the "
        f"same queries).\nSaved as testbed {result['testbed']}."
    )


def run_stress(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import datasets, features, jobs
    from fsviz.errors import Missing

    dataset = datasets.load(args.dataset)
    backbones = _list(args.backbones) or features.available(dataset)
    if not backbones:
        raise Missing(
            f"{dataset.title} has no features yet. Make some with "
            f"'python -m fsviz extract {dataset.name} --backbone efficientnet_lite0'."
        )
    adaptations = _list(args.adaptations) + (["full_finetuning"] if args.full_finetuning else [])
    spec = {
        "study": "stress",
        "dataset": args.dataset,
        "sources": _list(args.sources) or backbones[:1],
        "backbones": backbones,
        "adaptations": adaptations,
        "finetuning": {
            "n_tasks": args.finetuning_tasks,
            "n_steps": args.finetuning_steps,
            "size": args.finetuning_size,
        },
        **_tasks_of(args),
    }
    run = jobs.run_here(spec, _tell)
    return jobs.results(run.id) | {"run": run.id}


def show_stress(result: dict[str, Any]) -> str:
    columns = ["source", "backbone", "adaptation", "random", "hard", "drop", "n_tasks"]
    lines = [
        table(result["matrix"], columns),
        "",
        "Accuracies in percent; source is the backbone the tasks are hard for.",
    ]
    for entry in result["agreement"]:
        if entry["accuracy"] is not None:
            lines.append(
                f"Over random tasks and tasks hard for {entry['source']}, accuracies of {entry['backbone']} follow it "
                f"with a rank correlation of {entry['accuracy']:.2f}."
            )
    return "\n".join(lines)


def _list(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def _tell(done: int, total: int, message: str) -> None:
    progress(f"{message} ({done} of {total})")
