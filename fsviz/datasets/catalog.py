"""The benchmarks that ship as class tables: names, splits, counts and taxonomies, without pixels.

Each table is data/catalog/NAME.csv with columns class_name, split, n_images (empty if not public) and node (empty
where the class has no place in a taxonomy); a further column split_* holds a second, overlapping scheme.
data/README.md names the source and licence of every file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from fsviz.errors import BadInput
from fsviz.records import Dataset
from fsviz.shipped import DATA

COLUMNS = ("class_name", "split", "n_images", "node")


@dataclass(frozen=True)
class CatalogEntry:
    """Description of a benchmark in the catalog, next to its class table."""

    title: str
    summary: str
    source: str
    licence: str
    homepage: str
    taxonomy: str = ""
    contexts: str = ""
    notes: tuple[str, ...] = ()


_META = "Triantafillou et al. 2020, Meta-Dataset (class splits and counts)"
_SENSES = "The taxonomy is made of WordNet senses of the class names; each was checked with its gloss."
_RESEARCH = "images: non-commercial research use; the class table is facts"
_WORDNET = "taxonomy: WordNet 3.0 licence (Princeton)"

ENTRIES: dict[str, CatalogEntry] = {
    "tiered_imagenet": CatalogEntry(
        "tieredImageNet",
        "608 ImageNet classes, split so that train and test classes come from different branches of WordNet.",
        "Ren et al. 2018; image counts of ILSVRC 2012",
        f"{_RESEARCH}; {_WORDNET}",
        "https://github.com/renmengye/few-shot-ssl-public",
        taxonomy="wordnet_imagenet",
    ),
    "mini_imagenet": CatalogEntry(
        "miniImageNet",
        "100 ImageNet classes with 600 images each, the most used few-shot benchmark.",
        "Vinyals et al. 2016; split of Ravi & Larochelle 2017",
        f"{_RESEARCH}; {_WORDNET}",
        "https://arxiv.org/abs/1606.04080",
        taxonomy="wordnet_imagenet",
    ),
    "imagenet1k": CatalogEntry(
        "ImageNet-1k",
        "The 1,000 classes of the ImageNet challenge; the usual source of pretrained backbones.",
        "ILSVRC 2012, Russakovsky et al. 2015",
        f"{_RESEARCH}; {_WORDNET}",
        "https://image-net.org/challenges/LSVRC/2012/",
        taxonomy="wordnet_imagenet",
        notes=("Of the challenge's 1,281,167 training images, 61 cannot be told to a class here and are not counted.",),
    ),
    "df20": CatalogEntry(
        "Danish Fungi 2020",
        "1,604 species of fungi with their full biological taxonomy: fine-grained, and wide enough for 100-way tasks.",
        "Picek et al. 2022",
        "taxonomy: facts; images: CC BY-NC 4.0 (Atlas of Danish Fungi)",
        "https://sites.google.com/view/danish-fungi-dataset",
        taxonomy="df20",
        notes=("Image counts per species are not public here, so the classes are treated as balanced.",),
    ),
    "cifar100": CatalogEntry(
        "CIFAR-100",
        "100 classes of 32 x 32 photographs in 20 superclasses; its few-shot splits are CIFAR-FS and FC100.",
        "Krizhevsky 2009; CIFAR-FS: Bertinetto et al. 2019; FC100: Oreshkin et al. 2018",
        "class table: facts",
        "https://www.cs.toronto.edu/~kriz/cifar.html",
        taxonomy="cifar100_superclasses",
        notes=("Splits train, val and test are CIFAR-FS; fc100_train, fc100_val and fc100_test are FC100.",),
    ),
    "omniglot": CatalogEntry(
        "Omniglot",
        "1,623 handwritten characters from 50 alphabets, 20 drawings each.",
        f"Lake et al. 2015; {_META}",
        "MIT (Omniglot)",
        "https://github.com/brendenlake/omniglot",
        taxonomy="omniglot_alphabets",
    ),
    "aircraft": CatalogEntry(
        "FGVC-Aircraft",
        "100 variants of aircraft: fine-grained classes that differ in small parts.",
        f"Maji et al. 2013; {_META}",
        _RESEARCH,
        "https://www.robots.ox.ac.uk/~vgg/data/fgvc-aircraft/",
        notes=("No taxonomy: classes are models such as A340-300, which no dictionary of meanings tells apart.",),
    ),
    "cu_birds": CatalogEntry(
        "CUB-200-2011 (birds)",
        "200 species of birds: fine-grained photographs.",
        f"Wah et al. 2011; {_META}",
        _RESEARCH,
        "https://www.vision.caltech.edu/datasets/cub_200_2011/",
        taxonomy="wordnet_cu_birds",
        notes=(_SENSES, "Birds that WordNet does not have stand under their genus or family (warbler, gull)."),
    ),
    "dtd": CatalogEntry(
        "Describable Textures",
        "47 kinds of texture (chequered, woven, ...): classes that are not objects.",
        f"Cimpoi et al. 2014; {_META}",
        _RESEARCH,
        "https://www.robots.ox.ac.uk/~vgg/data/dtd/",
        notes=("No taxonomy: classes are adjectives for textures (braided, dotted), and is-a trees are of nouns.",),
    ),
    "quickdraw": CatalogEntry(
        "Quick, Draw!",
        "345 kinds of doodle, 50 million drawings made in a game.",
        f"Jongejan et al. 2016; {_META}",
        "CC BY 4.0 (Quick, Draw!)",
        "https://quickdraw.withgoogle.com/data",
        taxonomy="wordnet_quickdraw",
        notes=(
            _SENSES,
            "Where a word is drawn in several ways, one is taken: star is the figure, diamond the gem, bat the animal.",
        ),
    ),
    "fungi": CatalogEntry(
        "FGVCx Fungi",
        "1,394 species of wild mushrooms.",
        f"Schroeder & Cui 2018; {_META}; ranks above the genus from Danish Fungi 2020 (Picek et al. 2022)",
        _RESEARCH,
        "https://github.com/visipedia/fgvcx_fungi_comp",
        taxonomy="fungi_genera",
        notes=(
            "The genus is the first word of the species' name; genera unknown to Danish Fungi hang below the root.",
        ),
    ),
    "vgg_flower": CatalogEntry(
        "VGG Flowers",
        "102 species of flowers.",
        f"Nilsback & Zisserman 2008; {_META}",
        _RESEARCH,
        "https://www.robots.ox.ac.uk/~vgg/data/flowers/102/",
        taxonomy="wordnet_vgg_flower",
        notes=(
            _SENSES,
            "Flowers that WordNet does not have stand under a relative (balloon flower under bellflower), or, as "
            "bromelia and Mexican petunia, under flower.",
        ),
    ),
    "traffic_sign": CatalogEntry(
        "GTSRB (traffic signs)",
        "43 German traffic signs; in Meta-Dataset all of them are test classes.",
        f"Houben et al. 2013; {_META}",
        _RESEARCH,
        "https://benchmark.ini.rub.de/",
        notes=("No taxonomy: classes are signs such as a speed limit of 20, which WordNet does not have.",),
    ),
    "mscoco": CatalogEntry(
        "MS COCO (cropped objects)",
        "80 kinds of everyday object cut out of photographs, in twelve supercategories; no train classes.",
        f"Lin et al. 2014; {_META}",
        "class table: facts; images: CC BY 4.0 annotations",
        "https://cocodataset.org",
        taxonomy="coco_supercategories",
    ),
    "ilsvrc_2012": CatalogEntry(
        "ImageNet (Meta-Dataset split)",
        "The 1,000 ImageNet classes with Meta-Dataset's train, val and test classes.",
        f"Russakovsky et al. 2015; {_META}",
        f"{_RESEARCH}; {_WORDNET}",
        "https://github.com/google-research/meta-dataset",
        taxonomy="wordnet_imagenet",
    ),
    "metacoco": CatalogEntry(
        "MetaCoCo",
        "Concepts photographed in many contexts (dog on grass, dog on snow): how much does the background matter?",
        "Zhang et al. 2024, table 5",
        f"class table: facts; {_WORDNET}",
        "https://github.com/remiMZ/MetaCoCo-ICLR24",
        taxonomy="wordnet_metacoco",
        contexts="metacoco_contexts",
        notes=(
            "This is the readable part of the paper's table: 23 of 100 concepts and 69 of 155 contexts.",
            "Splits follow the paper's rule by size: the largest 64% of concepts train, the next 20% test, then val.",
        ),
    ),
}


def load_entry(name: str) -> Dataset:
    """The dataset of a catalog entry."""
    entry = ENTRIES[name]
    table = read_class_table(DATA / "catalog" / f"{name}.csv")
    taxonomy, node_names = read_taxonomy(entry.taxonomy, table["node"]) if entry.taxonomy else (None, {})
    contexts = None
    if entry.contexts:
        contexts = pd.read_csv(DATA / "catalog" / f"{entry.contexts}.csv")
        class_id = pd.Series(table.index, index=table["class_name"])
        contexts.insert(0, "class_id", contexts.pop("class_name").map(class_id))
    return Dataset(
        name=name,
        title=entry.title,
        classes=table[list(COLUMNS)],
        splits=splits_of(table),
        summary=entry.summary,
        source=entry.source,
        licence=entry.licence,
        homepage=entry.homepage,
        taxonomy=taxonomy,
        node_names=node_names,
        contexts=contexts,
        notes=entry.notes,
    )


def read_class_table(path: Path) -> pd.DataFrame:
    """Reads and checks a class table; the index is class_id."""
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise BadInput(
            f"The class table {path} cannot be read ({error}). It must be a CSV file with a header."
        ) from error
    raw = pd.read_csv(path, header=None, nrows=1, dtype=str).iloc[0].tolist() if len(table.columns) else []
    return check_class_table(table, str(path), raw)


def check_class_table(table: pd.DataFrame, where: str, header: list[str] | None = None) -> pd.DataFrame:
    """The class table with typed columns, or one sentence that says which column or row is wrong."""
    header = [str(h) for h in (header or list(table.columns))]
    repeated_columns = sorted({c for c in header if header.count(c) > 1})
    if repeated_columns:
        raise BadInput(f"{where}: column {repeated_columns[0]!r} is there twice. Keep one of the two.")
    absent = [c for c in ("class_name", "split") if c not in table]
    if absent:
        raise BadInput(
            f"{where}: a class table needs the columns class_name and split (n_images and node may follow). "
            f"{absent[0]!r} is missing; it has {', '.join(map(str, table.columns)) or 'no columns'}."
        )
    table = table.copy()
    for column in ("n_images", "node"):
        if column not in table:
            table[column] = ""
    repeated = table["class_name"][table["class_name"].duplicated()]
    if len(repeated):
        raise BadInput(
            f"{where}: class names must be unique. {repeated.iloc[0]!r} stands again in row {repeated.index[0] + 2}. "
            "Rename one of them."
        )
    counts = pd.to_numeric(table["n_images"].replace("", None), errors="coerce")
    wrong = (table["n_images"].astype(str).str.len() > 0) & (counts.isna() | (counts < 0) | (counts % 1 != 0))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise BadInput(
            f"{where}: n_images must be a whole number of images or empty. "
            f"Row {row + 2} ({table['class_name'].iloc[row]!r}) has {table['n_images'].iloc[row]!r}."
        )
    table["n_images"] = counts.astype("Int64")
    table.index = pd.RangeIndex(len(table), name="class_id")
    return table


def splits_of(table: pd.DataFrame) -> dict[str, np.ndarray]:
    """Split name -> class_ids, over the column split and every further split_* column; train, val, test first."""
    splits: dict[str, np.ndarray] = {}
    for column in ["split", *(c for c in table.columns if str(c).startswith("split_"))]:
        for name in table[column].unique():
            if name and name != "all":
                splits[str(name)] = np.flatnonzero(table[column] == name)
    order = {name: i for i, name in enumerate(("train", "val", "test"))}
    splits = dict(sorted(splits.items(), key=lambda item: order.get(item[0], len(order))))
    return splits or {"all": np.arange(len(table))}


def read_taxonomy(name: str, nodes: pd.Series) -> tuple[pd.DataFrame, dict[str, str]]:
    """The is-a edges above these nodes from data/taxonomies, and readable names of the nodes."""
    edges = pd.read_csv(DATA / "taxonomies" / f"{name}.csv", dtype=str, keep_default_na=False)
    edges = edges_above(edges, nodes)
    names_file = DATA / "taxonomies" / f"{name}_names.csv"
    if names_file.exists():
        names = pd.read_csv(names_file, dtype=str, keep_default_na=False).set_index("node")["name"].to_dict()
    else:
        names = {}
    used = pd.unique(pd.concat([edges["child"], edges["parent"]]))
    prefixes = ("class: ", "species: ")
    return edges, {
        node: names.get(node) or next((node.removeprefix(p) for p in prefixes if node.startswith(p)), node)
        for node in used
    }


def edges_above(edges: pd.DataFrame, nodes: pd.Series) -> pd.DataFrame:
    """Only the edges on a way from one of these nodes to a root."""
    children = edges["child"].to_numpy(object)
    parents: dict[str, list[str]] = {}
    for child, parent in zip(children, edges["parent"].to_numpy(object)):
        parents.setdefault(child, []).append(parent)
    reached = set(nodes[nodes.astype(bool)])
    ahead = list(reached)
    while ahead:
        grown = set(parents.get(ahead.pop(), ())) - reached
        reached |= grown
        ahead += grown
    return edges[[child in reached for child in children]].reset_index(drop=True)
