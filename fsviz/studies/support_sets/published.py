"""Published accuracies with hard support sets (Basu et al. 2023), for datasets without features."""

from __future__ import annotations

import pandas as pd

from fsviz.datasets.published import PAPERS, published_results
from fsviz.tables import Column, Table

PAPER = "basu2023"
META_DATASET = "Meta-Dataset"
_BACKBONES = {
    "dino_small_patch16": "DINO ViT-S",
    "dino_base_patch16": "DINO ViT-B",
    "dino_resnet50": "DINO ResNet-50",
    "vit_base_1k": "ViT-B (ImageNet-1k)",
    "dino_small": "DINO ViT-S",
    "dino_base": "DINO ViT-B",
    "clip_vit_base": "CLIP ViT-B",
    "deit_small": "DeiT ViT-S",
    "deit_base": "DeiT ViT-B",
}
PUBLISHED = Table(
    "Published accuracies with hard supports",
    Column("label", "Benchmark"),
    Column("random", "Random supports", kind="percent"),
    Column("hard", "Hard supports", kind="percent"),
    Column("source", "Source"),
)


def published_accuracies(dataset: str, title: str) -> pd.DataFrame:
    """Accuracies on a dataset, then on Meta-Dataset: columns label, random (NaN if not published), hard, source."""
    results = published_results()
    results = results[(results["paper"] == PAPER) & (results["metric"] == "top1")]
    own = results[results["dataset"] == dataset]
    rows = []
    for quartile, part in own[own["table"] == "Table 1"].groupby("quartile", sort=True):
        is_hard = part["method"].str.startswith("FastDiffSel")
        rows.append(
            (f"{title}, {quartile}", part[~is_hard]["value"].iloc[0], part[is_hard]["value"].iloc[0], "Table 1")
        )
    for row in own[own["table"] == "Table 3"].itertuples():
        rows.append((f"{title}, {_BACKBONES[row.backbone]}", float("nan"), row.value, "Table 3"))
    overall = results[results["table"] == "Figure 31"].pivot(index="backbone", columns="benchmark", values="value")
    for backbone, row in overall.sort_values("MD", ascending=False).iterrows():
        rows.append((f"{META_DATASET}, {_BACKBONES[str(backbone)]}", row["MD"], row["Hard-MD"], "Figure 31"))
    return pd.DataFrame(rows, columns=["label", "random", "hard", "source"])


def describe_published(table: pd.DataFrame, title: str) -> tuple[str, str]:
    """The published cost of hard supports as a sentence, and its setting; of the dataset if the paper has it."""
    source = str(table["source"].iloc[0])
    rows = table[table["source"] == source]
    cost, hard = rows["random"] - rows["hard"], rows["hard"]
    cited = f"({PAPERS[PAPER]}, {source})"
    if cost.isna().all():
        return (
            f"Published: {hard.min():.1f} to {hard.max():.1f}% accuracy with hard support sets on {title} {cited}.",
            "Variable-way, variable-shot tasks, five backbones. The paper prints no accuracy with random supports for "
            "this dataset.",
        )
    on = META_DATASET if source == "Figure 31" else title
    setting = {
        "Figure 31": "Variable-way, variable-shot tasks compared with random ones; backbones trained with ProtoNet.",
        "Table 1": "5-way 5-shot, ResNet12, by quartile of coarsity: Q1 is the most fine-grained.",
    }[source]
    return f"Published: hard support sets cost {cost.min():.1f} to {cost.max():.1f} points on {on} {cited}.", setting
