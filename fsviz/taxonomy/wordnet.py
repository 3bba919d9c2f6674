"""WordNet 3.0 nouns through NLTK, offline. ImageNet's class ids are WordNet 3.0 offsets: n02084071 is "dog".

A noun-only copy ships in data/wordnet; a fuller WordNet 3.0 in the user's own nltk_data wins when present.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
import warnings
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from fsviz.errors import BadInput, Missing
from fsviz.shipped import DATA

SHIPPED = DATA / "wordnet"
_SYNSET_ID = re.compile(r"n(\d{8})")
_ID_IN_NAME = re.compile(r"(?<![A-Za-z0-9])[nN]\d{8}(?!\d)")
# Of the names of the shipped files, each with the digest of its content.
_SHIPPED_DIGEST = "30b4e87cf562703b2dfe05c72d3210bf177026cf6db2dace5d2bdc1a45ac4bac"


@dataclass(frozen=True)
class Sense:
    """One meaning of a noun.

    path   readable names from the root ("entity") down to this sense, along its shortest hypernym path
    above  ids of every concept above this sense, itself among them
    met    the sense was met in the texts that WordNet's makers read word by word (Brown and others), under the name
           that was looked up: their order of senses is by how often, and says nothing of those that were not met
    """

    synset_id: str
    name: str
    lemmas: tuple[str, ...]
    gloss: str
    path: tuple[str, ...]
    above: frozenset[str] = frozenset()
    met: bool = False

    @property
    def is_physical(self) -> bool:
        """Something a camera can see: below "physical entity"."""
        return "physical entity" in self.path


def senses(name: str) -> list[Sense]:
    """The noun senses of a class name, most usual first; empty when WordNet does not know it.

    Underscores, hyphens, digits in front ("090.canna lily") and letter case do not matter. When the whole name is
    unknown, its head (the last word, in English) is looked up instead: "red kitchen chair" gives "chair". A WordNet id
    in the name ("vessel n04530566") says which sense is meant.
    """
    if (exact := named_sense(name)) is not None:
        return [exact]
    text = re.sub(r"^\d+[.\s_-]+", "", str(name)).replace("_", " ").lower()
    spelt = _exact_senses(SHIPPED, "_".join(text.split()))  # WordNet writes some names with hyphens
    if spelt:
        return list(spelt)
    words = text.replace("-", " ").split()
    for start in range(len(words)):
        matches = _exact_senses(SHIPPED, "_".join(words[start:]))
        if matches:
            return list(matches)
    return []


@lru_cache(maxsize=8192)
def _exact_senses(shipped: Path, lemma: str) -> tuple[Sense, ...]:
    """The senses of a name as WordNet spells it, or of its singular."""
    synsets = _reader().synsets(lemma, pos="n")
    if not synsets:
        return ()
    met = set().union(*(_met(shipped, form) for form in {lemma, _reader().morphy(lemma, "n") or lemma}))
    return tuple(replace(_sense(s), met=s.offset() in met) for s in synsets)


def _met(shipped: Path, lemma: str) -> set[int]:
    """Offsets of the senses of a lemma that were met in texts.

    A line of the index: lemma n SENSES POINTERS pointer... SENSES MET offset...; the first MET offsets are those.
    """
    lines = _index(shipped)
    at = bisect_left(lines, f"{lemma} ".encode())
    if at == len(lines) or not lines[at].startswith(f"{lemma} ".encode()):
        return set()
    parts = lines[at].split()
    first = 6 + int(parts[3])
    return {int(offset) for offset in parts[first : first + int(parts[first - 1])]}


@lru_cache(maxsize=1)
def _index(shipped: Path) -> list[bytes]:
    return sorted((shipped / "corpora" / "wordnet" / "index.noun").read_bytes().splitlines())


def named_sense(name: str) -> Sense | None:
    """The sense whose id stands in a name, as in "crane (n02012849)"; None if there is no id of WordNet."""
    for match_id in _ID_IN_NAME.findall(str(name)):
        try:
            return sense(match_id.lower())
        except BadInput:
            continue
    return None


def sense(synset_id: str) -> Sense:
    """The sense of an id such as n02084071."""
    return _sense(_synset(synset_id))


def hypernym_closure(synset_ids: Iterable[str]) -> tuple[pd.DataFrame, dict[str, str]]:
    """All is-a edges (child, parent) above these synsets, and a readable name for every synset on the way.

    By child; the parents of one child in reverse alphabetical order (see `dag.span` for why).
    """
    edges: list[tuple[str, str]] = []
    names: dict[str, str] = {}
    waiting = [_synset(i) for i in synset_ids]
    while waiting:
        current = waiting.pop()
        child = _id(current)
        if child in names:
            continue
        names[child] = _readable(current)
        # Instances ("Mona Lisa" is an instance of painting) hang below classes by their own pointer.
        parents = current.hypernyms() + current.instance_hypernyms()
        for parent in sorted(parents, key=lambda synset: synset.name(), reverse=True):
            edges.append((child, _id(parent)))
            waiting.append(parent)
    return pd.DataFrame(sorted(edges, key=lambda edge: edge[0]), columns=["child", "parent"]), names


def source() -> str:
    """Source of the WordNet in use, as a phrase."""
    return "your nltk_data" if _reader_and_source()[1] == "user" else "the copy that ships with fsviz"


def _synset(synset_id: str) -> Any:
    match = _SYNSET_ID.fullmatch(str(synset_id))
    if match:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NLTK warns and returns None if no synset starts
            synset = _reader().synset_from_pos_and_offset("n", int(match[1]))
        if synset is not None:
            return synset
    raise BadInput(
        f"A WordNet id is the letter n and eight digits of WordNet 3.0, such as n02084071 (dog). Got {synset_id!r}. "
        "Look ids up with 'fsviz senses NAME'."
    )


def _id(synset: Any) -> str:
    return f"n{synset.offset():08d}"


def _readable(synset: Any) -> str:
    return synset.lemmas()[0].name().replace("_", " ")


def _sense(synset: Any) -> Sense:
    paths = synset.hypernym_paths()
    path = min(paths, key=len)
    return Sense(
        synset_id=_id(synset),
        name=_readable(synset),
        lemmas=tuple(lemma.name().replace("_", " ") for lemma in synset.lemmas()),
        gloss=synset.definition(),
        path=tuple(_readable(s) for s in path),
        above=frozenset(_id(s) for way in paths for s in way),
    )


def _reader() -> Any:
    return _reader_and_source()[0]


def _reader_and_source() -> tuple[Any, str]:
    return _opened(SHIPPED)


@lru_cache(maxsize=1)
def _opened(shipped: Path) -> tuple[Any, str]:
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
    for root in (lambda: shipped, _private_copy):
        place = str(root())
        if place not in nltk.data.path:  # NLTK opens corpora only below its known roots
            nltk.data.path.append(place)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a folder that others may write to; the copy answers it
                path = nltk.data.find("corpora/wordnet", paths=[place])
            return read(path), "shipped"
        except (LookupError, OSError):
            nltk.data.path.remove(place)
    raise Missing(f"WordNet could not be read from {SHIPPED}. Restore data/wordnet from the repository.")


def _private_copy() -> Path:
    """The shipped WordNet in a folder of this process alone, checked to be what was shipped.

    NLTK reads nothing that other accounts may write, as after a clone with umask 002, or that another account owns.
    """
    source = SHIPPED / "corpora" / "wordnet"
    folder = Path(_keep_folder(tempfile.TemporaryDirectory(prefix="fsviz-wordnet-")).name)
    target = folder / "corpora" / "wordnet"
    target.mkdir(parents=True, mode=0o700)
    (folder / "corpora").chmod(0o700)
    digest = hashlib.sha256()
    try:
        for path in sorted(source.iterdir()):
            content = path.read_bytes()
            digest.update(path.name.encode() + b"\0" + hashlib.sha256(content).digest())
            (target / path.name).write_bytes(content)
            (target / path.name).chmod(0o600)
    except OSError as error:
        raise Missing(
            f"WordNet could not be copied from {source} ({error.strerror or error}). Restore data/wordnet from the "
            "repository, or take the rights of others to write there: 'chmod -R go-w data/wordnet'."
        ) from error
    if digest.hexdigest() != _SHIPPED_DIGEST:
        raise Missing(
            f"The WordNet in {source} is not the one that ships with fsviz, and other accounts may write there. "
            "Restore data/wordnet from the repository."
        )
    return folder


@lru_cache(maxsize=1)
def _keep_folder(folder: tempfile.TemporaryDirectory[str]) -> tempfile.TemporaryDirectory[str]:
    """Keeps the folder as long as this process; it is removed at its end."""
    return folder
