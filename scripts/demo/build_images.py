"""Write the demo's image table and taxonomy: data/demo/images.parquet, taxonomy.csv, taxonomy_names.csv.

    python scripts/demo/build_images.py [--wordnet /usr/share/wordnet] [--sheet FILE.png]

Needs sprites.parquet and backgrounds.parquet (build_sprites.py, build_backgrounds.py). One fixed seed; the mix of
contexts follows each concept's three homes in concepts.csv, so concept x context counts are uneven.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from fsviz.datasets import demo  # noqa: E402

SEED = 20241
PER_CONCEPT = 48
HOME_COUNTS = (17, 9, 6)  # images in the first, second and third home; the rest goes to AWAY other contexts
AWAY = 4
WINDOW = (190, 320)  # pixels of the 320-pixel scene that are seen

# Tuned on a subsample so that 5-way ProtoNet on EfficientNet-Lite0 is neither trivial nor noise, then fixed.
SCALE = (0.50, 0.94)
TURN = 12.0  # standard deviation of the rotation, degrees
TURN_LIMIT = 35.0
MIDDLE = (0.50, 0.54)  # where an object stands on average
BLUR = (0.3, 1.0)  # per cent of the side
SHARP = 0.6  # share of images without blur
BRIGHTNESS = (0.72, 1.22)
COVERED = 0.2  # share of images with something in front
COVER = (0.12, 0.40)
CLUTTERED = 0.24  # share of images with a second object
CLUTTER = (0.20, 0.34)


def context_counts(homes: list[str], contexts: list[str], rng: np.random.Generator) -> dict[str, int]:
    counts = dict(zip(homes, HOME_COUNTS, strict=True))
    away = rng.permutation([c for c in contexts if c not in homes])[:AWAY]
    rest = PER_CONCEPT - sum(HOME_COUNTS)
    extra = rng.multinomial(rest - 3 * AWAY, np.full(AWAY, 1 / AWAY))
    return counts | {str(c): 3 + int(e) for c, e in zip(away, extra, strict=True)}


def rows_of(
    class_id: int,
    name: str,
    places: np.ndarray,
    sprites: pd.DataFrame,
    rng: np.random.Generator,
    measured: bool = True,
) -> list[dict]:
    """One row per image of a concept, for each of the given contexts; every style about equally often.

    measured  whether the occlusion is worked out, which costs more than the rest.
    """
    own = sprites[sprites["class_name"] == name]
    styles = sorted(own["style"].unique())
    drawn_styles = rng.permutation(np.resize(rng.permutation(styles), len(places)))
    other_sprites = sprites.index[sprites["class_name"] != name].to_numpy()
    scenes = demo.background_table().query("part == 'scene'")["variant"].max() + 1
    fronts = demo.background_table().query("part == 'front'")["variant"].max() + 1
    rows = []
    for place, style in zip(places, drawn_styles, strict=True):
        sprite = int(rng.choice(own.index[own["style"] == style]))
        covered, cluttered, sharp = rng.random() < COVERED, rng.random() < CLUTTERED, rng.random() < SHARP
        window = int(rng.integers(*WINDOW, endpoint=True))
        # A small object may stand further from the middle.
        scale = round(rng.uniform(*SCALE), 3)
        room = max(0.06, 0.52 - 0.5 * scale)
        x, y = MIDDLE[0] + room * rng.uniform(-1, 1), MIDDLE[1] + 0.6 * room * rng.uniform(-1, 1)
        row = {
            "class_id": class_id,
            "context": str(place),
            "style": str(style),
            "family": own.at[sprite, "family"],
            "pose": own.at[sprite, "pose"],
            "scale": scale,
            "rotation": round(float(np.clip(rng.normal(0, TURN), -TURN_LIMIT, TURN_LIMIT)), 1),
            "x": round(x, 3),
            "y": round(y, 3),
            "blur": 0.0 if sharp else round(rng.uniform(*BLUR), 2),
            "brightness": round(float(np.exp(rng.uniform(*np.log(BRIGHTNESS)))), 3),
            "occlusion": 0.0,
            "clutter": round(rng.uniform(*CLUTTER), 3) if cluttered else 0.0,
            "sprite": sprite,
            "scene": int(rng.integers(scenes)),
            "window": window,
            "window_x": int(rng.integers(0, 320 - window, endpoint=True)),
            # Keep the ground in view: the window leaves out sky rather than ground.
            "window_y": int(rng.integers((320 - window) // 2, 320 - window, endpoint=True)),
            "mirror": bool(rng.random() < 0.5),
            "front": int(rng.integers(fronts)) if covered else -1,
            "cover": round(rng.uniform(*COVER), 3) if covered else 0.0,
            "second": int(rng.choice(other_sprites)) if cluttered else -1,
            # The second object stands in front, on the side that the first one leaves free.
            "second_x": round(0.5 + (1 if x < 0.5 else -1) * rng.uniform(0.28, 0.38), 3),
            "second_y": round(rng.uniform(0.70, 0.84), 3),
        }
        if measured:
            row["occlusion"] = round(demo.hidden_share(row), 3)
        rows.append(row)
    return rows


def images(concepts: pd.DataFrame) -> pd.DataFrame:
    sprites = demo.sprite_table()
    contexts = list(dict.fromkeys(demo.background_table()["context"]))
    rows = []
    for class_id, concept in enumerate(concepts.itertuples(index=False)):
        rng = np.random.default_rng([SEED, class_id])
        counts = context_counts(concept.homes.split(), contexts, rng)
        places = rng.permutation(np.repeat(list(counts), list(counts.values())))
        rows += rows_of(class_id, concept.class_name, places, sprites, rng)
    table = pd.DataFrame(rows)
    for column in table.columns:
        if table[column].dtype == np.int64:
            table[column] = table[column].astype(np.int16)
    return table


def taxonomy(nodes: list[str], wordnet: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The hypernym closure of the nodes: edges (child, parent) and names (node, name). Nouns of WordNet 3.0."""
    parents, names = {}, {}
    with open(wordnet / "data.noun", encoding="latin-1") as file:
        for text in file:
            if text.startswith("  "):
                continue
            fields = text.split("|", 1)[0].split()
            words = int(fields[3], 16)
            pointers = fields[4 + 2 * words :]
            node = "n" + fields[0]
            names[node] = fields[4].replace("_", " ")
            parents[node] = [
                "n" + pointers[2 + 4 * k] for k in range(int(pointers[0])) if pointers[1 + 4 * k] in ("@", "@i")
            ]
    edges, visited, todo = [], set(), list(dict.fromkeys(nodes))
    while todo:
        node = todo.pop(0)
        if node in visited:
            continue
        visited.add(node)
        edges += [(node, parent) for parent in parents[node]]
        todo += parents[node]
    edges = pd.DataFrame(sorted(edges), columns=["child", "parent"])
    return edges, pd.DataFrame([(n, names[n]) for n in sorted(visited)], columns=["node", "name"])


def contact_sheet(table: pd.DataFrame, path: Path, px: int = 112, columns: int = 16, rows: int = 12) -> None:
    rows_shown = np.random.default_rng(3).choice(len(table), columns * rows, replace=False)
    pictures = demo.compose_rows(table.iloc[np.sort(rows_shown)].to_dict("records"), px)
    sheet = pictures.reshape(rows, columns, px, px, 3).transpose(0, 2, 1, 3, 4).reshape(rows * px, columns * px, 3)
    Image.fromarray(sheet).save(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--wordnet", type=Path, default=Path("/usr/share/wordnet"), help="folder with WordNet 3.0's data.noun"
    )
    parser.add_argument("--sheet", type=Path, help="also write a contact sheet here")
    arguments = parser.parse_args()
    concepts = pd.read_csv(demo.FOLDER / "concepts.csv", keep_default_na=False)
    edges, names = taxonomy(concepts["node"].tolist(), arguments.wordnet)
    edges.to_csv(demo.FOLDER / "taxonomy.csv", index=False, lineterminator="\n")
    names.to_csv(demo.FOLDER / "taxonomy_names.csv", index=False, lineterminator="\n")
    table = images(concepts)
    table.to_parquet(demo.FOLDER / "images.parquet", index=False, compression="zstd")
    print(f"{len(table)} images, {len(edges)} is-a edges over {len(names)} nodes")
    print(table[["scale", "rotation", "blur", "brightness", "occlusion", "clutter"]].describe().round(2).to_string())
    if arguments.sheet:
        contact_sheet(table, arguments.sheet)


if __name__ == "__main__":
    main()
