"""Published numbers to compare runs with, always marked as published."""

from __future__ import annotations

import re
from functools import cache, lru_cache

import pandas as pd

from fsviz.datasets.catalog import DATA, ENTRIES
from fsviz.tables import Column, Table

PAPERS = {
    "bennequin2022": "Bennequin et al. 2022",
    "metacoco2024": "Zhang et al. 2024",
    "bontonou2020": "Bontonou et al. 2020",
    "basu2023": "Basu et al. 2023",
    "arnold2021": "Arnold & Sha 2021",
}

TITLES = {"emnist": "EMNIST", "lfw10": "LFW10"}  # datasets of papers that the catalog does not have


def published_results() -> pd.DataFrame:
    """Every published number: paper, table, dataset, benchmark, quartile, setting, backbone, method, fsviz_method,
    metric, value (percent for accuracies), ci95 (half-width, NaN if the paper gives none), n_way, n_shot."""
    return _read().copy()


def published_benchmarks(dataset: str | None = None) -> list[tuple[str, str]]:
    """(benchmark, setting) pairs with published top-1 accuracies, of one dataset or of all."""
    table = _read()
    table = table[table["metric"] == "top1"]
    if dataset is not None:
        table = table[table["dataset"] == dataset]
    pairs = table[["benchmark", "setting"]].drop_duplicates()
    return [(str(b), str(s)) for b, s in pairs.itertuples(index=False)]


def benchmark_title(benchmark: str) -> str:
    """A benchmark's name for people: datasets in it by their titles."""
    return " ".join(ENTRIES[word].title if word in ENTRIES else TITLES.get(word, word) for word in benchmark.split())


PUBLISHED = Table(
    "Published accuracies",
    Column("family", "Family"),
    Column("method", "Method", width=150),
    Column("backbone", "Backbone", width=80),
    Column("accuracy", "Published accuracy", kind="percent", interval="ci95", width=90),
    Column("top5", "Published top-5", kind="percent"),
    *(Column(name, name, kind="percent", width=60) for name in ("Q1", "Q2", "Q3", "Q4")),
    Column("source", "Source"),
)


def published_table(benchmark: str, setting: str) -> pd.DataFrame:
    """One published table, a row per method and backbone.

    Columns method, fsviz_method, backbone, accuracy, ci95, top5, Q1 .. Q4 (NaN if not printed), source.
    """
    return _published_table(benchmark, setting).copy()


@cache
def _published_table(benchmark: str, setting: str) -> pd.DataFrame:
    table = _read()
    table = table[(table["benchmark"] == benchmark) & (table["setting"] == setting)]
    rows = []
    for (method, backbone), part in table.groupby(["method", "backbone"], sort=False):
        total = part[part["quartile"] == ""]
        top1, top5 = total[total["metric"] == "top1"], total[total["metric"] == "top5"]
        row = {
            "method": method,
            "fsviz_method": part["fsviz_method"].iloc[0],
            "backbone": backbone,
            "accuracy": top1["value"].iloc[0] if len(top1) else float("nan"),
            "ci95": top1["ci95"].iloc[0] if len(top1) else float("nan"),
            "top5": top5["value"].iloc[0] if len(top5) else float("nan"),
        }
        for quartile in ("Q1", "Q2", "Q3", "Q4"):
            values = part[(part["quartile"] == quartile) & (part["metric"] == "top1")]["value"]
            row[quartile] = values.iloc[0] if len(values) else float("nan")
        first = part.iloc[0]
        row["source"] = f"{PAPERS[first['paper']]}, {first['table']}"
        rows.append(row)
    columns = ["method", "fsviz_method", "backbone", "accuracy", "ci95", "top5", "Q1", "Q2", "Q3", "Q4", "source"]
    return pd.DataFrame(rows, columns=columns)


def published_families() -> dict[str, str]:
    """The family of every method of Zhang et al. 2024, as their tables group them."""
    table = pd.read_csv(DATA / "published" / "metacoco_families.csv")
    return dict(zip(table["method"], table["family"], strict=True))


def published_side_by_side(setting: str) -> pd.DataFrame:
    """Tables 1 and 2 of Bennequin et al. 2022: methods on semantic and on uniform tasks of tieredImageNet.

    Columns method, backbone, semantic, semantic_ci95, Q1 .. Q4, uniform, uniform_ci95, source; empty for a setting
    that was not published ("5-way 1-shot" and "5-way 5-shot" were).
    """
    semantic, uniform = (
        published_table(benchmark, setting).rename(columns={"accuracy": name, "ci95": f"{name}_ci95"})
        for benchmark, name in (("better-tieredImageNet", "semantic"), ("tieredImageNet uniform", "uniform"))
    )
    columns = ["method", "backbone", "semantic", "semantic_ci95", "Q1", "Q2", "Q3", "Q4", "source"]
    return semantic[columns].merge(uniform[["method", "backbone", "uniform", "uniform_ci95"]])


def published_splits(dataset: str | None = None) -> pd.DataFrame:
    """Splits printed by Arnold & Sha 2021, tables 6 to 11: dataset, divergence, split, class_index; of one or all.

    class_index is the class_id of datasets that the catalog has.
    """
    table = _read_splits()
    return table.copy() if dataset is None else table[table["dataset"] == dataset].reset_index(drop=True)


@lru_cache(maxsize=1)
def _read_splits() -> pd.DataFrame:
    return pd.read_csv(DATA / "published" / "atg_partitions.csv")


@lru_cache(maxsize=1)
def _read() -> pd.DataFrame:
    table = pd.read_csv(DATA / "published" / "paper_results.csv", keep_default_na=False)
    for name in ("value", "ci95"):
        table[name] = pd.to_numeric(table[name], errors="coerce")
    for name in ("way", "shot"):
        matches = table["setting"].map(lambda text, name=name: re.search(rf"(\d+)-{name}", text))
        table[f"n_{name}"] = [int(match[1]) if match else pd.NA for match in matches]
    return table
