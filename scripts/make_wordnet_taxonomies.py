"""Writes the taxonomies of benchmarks whose class names are WordNet nouns: quickdraw, vgg_flower and cu_birds.

    python scripts/make_wordnet_taxonomies.py

Senses are guessed in the company of the other classes (fsviz.taxonomy.senses); every row was checked with its gloss,
and what was wrong stands corrected below: class name -> a word of WordNet, after a bar a concept that must be above the
sense meant. Species that WordNet does not have stand under the nearest concept that it has: their genus, their family,
or at worst "flower".
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from fsviz.taxonomy import wordnet  # noqa: E402
from fsviz.taxonomy.senses import clean, guess_senses, taxonomy_from_senses  # noqa: E402

BODY = "elbow leg arm hand knee toe finger mouth face eye nose tooth foot ear brain".split()  # noqa: SIM905
# Where a word and a concept above it do not tell two senses apart.
OLD_WORLD_LARK, EUROPEAN_GOLDFINCH = "n01527617", "n01531178"
EASTERN_CONEFLOWER, COMMON_OXEYE_DAISY = "n11962272", "n11989869"
CORRECTED: dict[str, dict[str, str]] = {
    "quickdraw": {part: f"{part}|body part" for part in BODY}
    | {shape: f"{shape}|shape" for shape in ("square", "triangle", "circle", "line")}
    | {
        "crown": "crown|headdress",
        "flip flops": "flip-flop|footwear",
        "drums": "drum|musical instrument",
        "fork": "fork|cutlery",
        "spoon": "spoon|cutlery",
        "motorbike": "motorcycle",
        "pool": "swimming pool",
        "lollipop": "lollipop|candy",
        "The Great Wall of China": "Great Wall",
        "The Mona Lisa": "portrait|artifact",
        "dragon": "dragon|imaginary being",
        "pants": "trouser",
        "shoe": "shoe|footwear",
        "swing set": "swing|plaything",
        "stereo": "stereo system",
        "power outlet": "wall socket",
        "radio": "radio receiver",
        "television": "television receiver",
        "smiley face": "face|body part",
        "waterslide": "slide|plaything",
        "angel": "angel|spiritual being",
        "firetruck": "fire engine",
        "rollerskates": "roller skate",
        "couch": "sofa",
        "toilet": "toilet|plumbing fixture",
        "door": "door|movable barrier",
        "star": "star|plane figure",
        "stop sign": "street sign",
        "cannon": "cannon|artillery",
        "keyboard": "computer keyboard",
        "dresser": "chest of drawers",
        "calendar": "calendar|array",
        "animal migration": "migration|periodic event",
        "stitches": "suture|seam",
        "purse": "handbag",
        "yoga": "yoga|exercise",
    },
    "vgg_flower": {
        "colt's foot": "Tussilago farfara",
        "sword lily": "gladiolus",
        "prince of wales feathers": "cockscomb|plant",
        "silverbush": "convolvulus",
        "bird of paradise": "Strelitzia reginae",
        "toad lily": "liliaceous plant",
        "tree poppy": "Romneya coulteri",
        "black-eyed susan": "black-eyed Susan|coneflower",
        "purple coneflower": EASTERN_CONEFLOWER,
        "bromelia": "flower|plant",
        "cape flower": "amaryllis",
        "gaura": "evening primrose",
        "pink primrose": "evening primrose",
        "cautleya spicata": "ginger|plant",
        "siam tulip": "ginger|plant",
        "pelargonium": "geranium|plant",
        "osteospermum": "daisy|plant",
        "oxeye daisy": COMMON_OXEYE_DAISY,
        "barbeton daisy": "Barberton daisy",
        "love in the mist": "love-in-a-mist|nigella",
        "bishop of llandaff": "dahlia",
        "bolero deep blue": "prairie gentian",
        "artichoke": "artichoke|plant",
        "ball moss": "air plant",
        "blackberry lily": "blackberry-lily",
        "hard-leaved pocket orchid": "Venus's slipper",
        "moon orchid": "moth orchid",
        "mexican aster": "cosmos|flower",
        "mexican petunia": "flower|plant",
        "english marigold": "pot marigold",
        "balloon flower": "bellflower",
        "californian poppy": "California poppy",
    },
    "cu_birds": {
        "green violetear": "hummingbird",
        "northern waterthrush": "water thrush|warbler",
        "louisiana waterthrush": "water thrush|warbler",
        "chuck will widow": "chuck-will's-widow",
        "geococcyx": "roadrunner",
        "sayornis": "phoebe|bird",
        "frigatebird": "frigate bird",
        "gadwall": "duck|bird",
        "clark nutcracker": "Clark's nutcracker",
        "horned lark": OLD_WORLD_LARK,
        "european goldfinch": EUROPEAN_GOLDFINCH,
        "acadian flycatcher": "New World flycatcher",
        "vermilion flycatcher": "vermillion flycatcher",
        "scissor tailed flycatcher": "scissortail",
        "eastern towhee": "chewink",
        "common tern": "sea swallow",
        "tree swallow": "white-bellied swallow",
        "tree sparrow": "tree sparrow|New World sparrow",
    },
}
# Birds of America: where WordNet's first meaning is a family of the Old World.
AMERICAN = {
    "warbler": "New World warbler",
    "sparrow": "New World sparrow",
    "Old World oriole": "New World oriole",
    "Old World flycatcher": "New World flycatcher",
    "flycatcher": "New World flycatcher",
    "jay": "New World jay",
    "blackbird": "New World blackbird",
}


def main() -> None:
    for name, corrections in CORRECTED.items():
        path = ROOT / "data" / "catalog" / f"{name}.csv"
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        synset_of = {}
        unused = dict(corrections)
        for guess in guess_senses(table["class_name"]):
            words = clean(guess.class_name)
            correction = unused.pop(guess.class_name, None) or unused.pop(words, None)
            if correction is None and name == "cu_birds":
                correction = spelt_out(words)
            if correction is None and name == "cu_birds" and guess.sense is not None:
                correction = AMERICAN.get(guess.sense.name)
            synset_of[guess.class_name] = guess.synset_id if correction is None else first_sense(correction)
        if unused:
            raise SystemExit(f"{name} has no classes {sorted(unused)}")
        taxonomy = taxonomy_from_senses(synset_of)
        assert taxonomy is not None
        assert not taxonomy.notes, taxonomy.notes
        folder = ROOT / "data" / "taxonomies"
        taxonomy.edges.to_csv(folder / f"wordnet_{name}.csv", index=False, lineterminator="\n")
        names = pd.DataFrame(sorted(taxonomy.names.items()), columns=["node", "name"])
        names.to_csv(folder / f"wordnet_{name}_names.csv", index=False, lineterminator="\n")
        table["node"] = table["class_name"].map(taxonomy.nodes)
        table.to_csv(path, index=False, lineterminator="\n")
        print(name, len(table), "classes,", len(taxonomy.edges), "edges")


def spelt_out(words: str) -> str | None:
    """A bird as WordNet spells it: names of CUB have lost hyphens and apostrophes (red eyed vireo, bewick wren)."""
    parts = words.split()
    whole = [words.replace(" ", "-", n) for n in range(1, len(parts))]
    spellings = [*whole, " ".join([f"{parts[0]}'s", *parts[1:]])]
    for spelling in spellings:
        for sense in wordnet.senses(spelling):
            if (
                spelling.casefold() in {lemma.replace("_", " ").casefold() for lemma in sense.lemmas}
                and "bird" in sense.path
            ):
                return sense.synset_id
    return None


def first_sense(query: str) -> str:
    """The first sense of a word that lies below the concept named after the bar."""
    if re.fullmatch(r"n\d{8}", query):
        return wordnet.sense(query).synset_id
    word, _, above = query.partition("|")
    for sense in wordnet.senses(word):
        if not above or above in sense.path or any(wordnet.sense(i).name == above for i in sense.above):
            return sense.synset_id
    raise SystemExit(f"WordNet has no {word!r} below {above!r}")


if __name__ == "__main__":
    main()
