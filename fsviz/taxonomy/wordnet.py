"""WordNet 3.0 nouns through NLTK, offline. ImageNet's class ids are WordNet 3.0 offsets: n02084071 is "dog".

A noun-only copy ships in data/wordnet; a fuller WordNet 3.0 in the user's own nltk_data wins when present.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from fsviz.errors import BadInput

SHIPPED = Path(__file__).resolve().parent.parent.parent / "data" / "wordnet"
_SYNSET_ID = re.compile(r"n(\d{8})")


@dataclass(frozen=True)
class Sense:
    """One meaning of a noun.

    path  readable names from the root ("entity") down to this sense, along its shortest hypernym path.
    """

    synset_id: str
    name: str
    lemmas: tuple[str, ...]
    gloss: str
    path: tuple[str, ...]

    @property
    def is_physical(self) -> bool:
        """Something a camera can see: below "physical entity"."""
        return "physical entity" in self.path


def senses(name: str) -> list[Sense]:
    """The noun senses of a class name, most usual first; empty when WordNet does not know it.

    Underscores, hyphens, digits in front ("090.canna lily") and letter case do not matter. When the whole name is
    unknown, its head (the last word, in English) is looked up instead: "red kitchen chair" gives "chair".
    """
    text = re.sub(r"^\d+[.\s_-]+", "", str(name)).replace("_", " ").lower()
    reader = _reader()
    spelt = reader.synsets("_".join(text.split()), pos="n")  # WordNet writes some names with hyphens
    if spelt:
        return [_sense(s) for s in spelt]
    words = text.replace("-", " ").split()
    for start in range(len(words)):
        found = reader.synsets("_".join(words[start:]), pos="n")
        if found:
            return [_sense(s) for s in found]
    return []


def sense(synset_id: str) -> Sense:
    """The sense of an id such as n02084071."""
    return _sense(_synset(synset_id))


def hypernym_closure(synset_ids: Iterable[str]) -> tuple[pd.DataFrame, dict[str, str]]:
    """All is-a edges (child, parent) above these synsets, and a readable name for every synset on the way."""
    edges: set[tuple[str, str]] = set()
    names: dict[str, str] = {}
    waiting = [_synset(i) for i in synset_ids]
    while waiting:
        current = waiting.pop()
        child = _id(current)
        if child in names:
            continue
        names[child] = _readable(current)
        # Instances ("Mona Lisa" is an instance of painting) hang below classes by their own pointer.
        for parent in current.hypernyms() + current.instance_hypernyms():
            edges.add((child, _id(parent)))
            waiting.append(parent)
    return pd.DataFrame(sorted(edges), columns=["child", "parent"]), names


def source() -> str:
    """Where the WordNet in use comes from, for people."""
    return "your nltk_data" if _reader_and_source()[1] == "user" else "the copy that ships with fsviz"


def _synset(synset_id: str) -> Any:
    match = _SYNSET_ID.fullmatch(str(synset_id))
    if match:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NLTK warns and returns None where no synset starts
            found = _reader().synset_from_pos_and_offset("n", int(match[1]))
        if found is not None:
            return found
    raise BadInput(
        f"A WordNet id is the letter n and eight digits of WordNet 3.0, such as n02084071 (dog). Got {synset_id!r}. "
        "Look ids up with 'python -m fsviz senses NAME'."
    )


def _id(synset: Any) -> str:
    return f"n{synset.offset():08d}"


def _readable(synset: Any) -> str:
    return synset.lemmas()[0].name().replace("_", " ")


def _sense(synset: Any) -> Sense:
    path = min(synset.hypernym_paths(), key=len)
    return Sense(
        synset_id=_id(synset),
        name=_readable(synset),
        lemmas=tuple(lemma.name().replace("_", " ") for lemma in synset.lemmas()),
        gloss=synset.definition(),
        path=tuple(_readable(s) for s in path),
    )


def _reader() -> Any:
    return _reader_and_source()[0]


@lru_cache(maxsize=1)
def _reader_and_source() -> tuple[Any, str]:
    import nltk
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    def read(root: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # other languages are not needed here
            return WordNetCorpusReader(root, omw_reader=None)

    try:
        theirs = read(nltk.data.find("corpora/wordnet"))
        if theirs.get_version() == "3.0" and theirs.synsets("dog", pos="n"):
            return theirs, "user"
    except Exception:  # absent, zipped, another version or broken: the shipped copy serves
        pass
    if str(SHIPPED) not in nltk.data.path:  # NLTK opens corpora only below its known roots
        nltk.data.path.append(str(SHIPPED))
    return read(nltk.data.find("corpora/wordnet", paths=[str(SHIPPED)])), "shipped"
