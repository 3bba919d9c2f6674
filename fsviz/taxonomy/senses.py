"""What class names mean: a guess of WordNet senses, and the taxonomy that senses, a table or folders give.

A class name such as "crane" has several WordNet senses. The guess takes the most usual one that a camera can see,
unless another fits the company it keeps clearly better: among robins and gulls a crane is a bird.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fsviz.errors import BadInput
from fsviz.records import Progress
from fsviz.taxonomy import dag, wordnet
from fsviz.taxonomy.wordnet import Sense

FOLDERS = "folders"  # instead of a file: the folders above the classes are the taxonomy
_TOP = "all classes"
ROOT = "n00001740"  # WordNet's "entity", above every noun
_SYNSET_ID = re.compile(r"n\d{8}")
_CLEARLY = 1.2  # how much better another sense must fit the other classes to displace the most usual one
_COMPANY = 60  # how many other classes are asked


@dataclass(frozen=True)
class Guess:
    """What a class name may mean.

    synset_id   the sense taken, "" when WordNet knows none
    candidates  every sense, those a camera can see first
    doubt       why a person should look at it, "" when there is nothing to doubt
    """

    class_name: str
    synset_id: str
    candidates: tuple[Sense, ...]
    doubt: str

    @property
    def sense(self) -> Sense | None:
        return next((s for s in self.candidates if s.synset_id == self.synset_id), None)


def guess_senses(class_names: Iterable[str], progress: Progress | None = None) -> list[Guess]:
    """One guess per class, in order. Names are cleaned first: numbers, signs and camel case do not matter."""
    class_names = [str(name) for name in class_names]
    found: list[tuple[str, tuple[Sense, ...]]] = []
    for i, name in enumerate(class_names):
        found.append(_candidates(name))
        if progress:
            progress(i + 1, len(class_names), "looking class names up in WordNet")
    company = [next((s.path for s in senses if s.is_physical), ()) for _, senses in found]
    return [
        _guess(name, words, senses, _others(company, i))
        for i, (name, (words, senses)) in enumerate(zip(class_names, found))
    ]


def class_titles(class_names: Iterable[str]) -> dict[str, str]:
    """Readable titles for classes named by a WordNet id: n02084071 becomes dog (two of a kind keep their id)."""
    titles = {}
    for name in class_names:
        if _SYNSET_ID.fullmatch(name):
            try:
                titles[name] = wordnet.sense(name).name
            except BadInput:
                continue
    repeated = {title for title, n in Counter(titles.values()).items() if n > 1}
    return {name: f"{title} ({name})" if title in repeated else title for name, title in titles.items()}


@dataclass(frozen=True)
class Taxonomy:
    """Is-a edges and what every class is called in them; `notes` says what had to be improvised."""

    nodes: Mapping[str, str]
    edges: pd.DataFrame
    names: Mapping[str, str]
    notes: tuple[str, ...] = ()


def taxonomy_from_senses(chosen: Mapping[str, str]) -> Taxonomy | None:
    """The part of WordNet above the chosen senses (class_name -> synset id, "" for none); None when none is chosen.

    A class without a sense hangs directly below "entity", far from everything; classes that share a sense become its
    children, so that every class keeps a node of its own.
    """
    known = {name: synset for name, synset in chosen.items() if synset}
    if not known:
        return None
    edges, names = wordnet.hypernym_closure(dict.fromkeys(known.values()))
    names = dict(names)
    shared = {synset for synset, n in Counter(known.values()).items() if n > 1}
    extra, nodes = [], {}
    for name, synset in chosen.items():
        if synset and synset not in shared:
            nodes[name] = synset
            continue
        nodes[name] = f"class: {name}"
        names[nodes[name]] = name
        extra.append((nodes[name], synset or ROOT))
    names.setdefault(ROOT, "entity")
    edges = pd.concat([edges, pd.DataFrame(extra, columns=["child", "parent"])], ignore_index=True)
    without = [name for name in chosen if not chosen[name]]
    notes = []
    if without:
        notes.append(
            f"{len(without)} of {len(chosen)} classes have no WordNet sense and hang directly below 'entity': "
            f"{', '.join(without[:5])}{', ...' if len(without) > 5 else ''}."
        )
    return Taxonomy(nodes, edges, names, tuple(notes))


def taxonomy_from_edges(edges: pd.DataFrame, class_names: Iterable[str]) -> Taxonomy:
    """A taxonomy of the user's own (columns child and parent); every class must be one of its nodes."""
    every = pd.unique(pd.concat([edges["child"], edges["parent"]]))
    alike = {_plain(node): node for node in reversed(every)}
    exact = set(every)
    nodes = {name: name if name in exact else alike.get(_plain(name), "") for name in class_names}
    absent = [name for name, node in nodes.items() if not node]
    if absent:
        raise BadInput(
            f"Every class must be in the taxonomy, as a child or a parent. {len(absent)} of {len(nodes)} are not: "
            f"{', '.join(absent[:5])}{', ...' if len(absent) > 5 else ''}. Add a row child,parent for each."
        )
    dag.span(edges, list(nodes.values()), np.ones(len(nodes)))  # cycles and several roots are refused here
    return Taxonomy(nodes, edges, {node: node for node in every})


def taxonomy_from_folders(class_names: Iterable[str]) -> Taxonomy:
    """The user's own folders as a taxonomy: class Greek/alpha hangs below Greek, and Greek below the root."""
    edges: dict[tuple[str, str], None] = {}
    nodes = {}
    names = {_TOP: "all classes"}
    for class_name in class_names:
        above = _TOP
        parts = [part for part in class_name.split("/") if part]
        for depth in range(1, len(parts)):
            group = "group: " + "/".join(parts[:depth])
            edges[(group, above)] = None
            names[group] = parts[depth - 1]
            above = group
        nodes[class_name] = f"class: {class_name}"
        names[nodes[class_name]] = parts[-1] if parts else class_name
        edges[(nodes[class_name], above)] = None
    return Taxonomy(nodes, pd.DataFrame(list(edges), columns=["child", "parent"]), names)


def describe(guess: Guess, chosen: str) -> dict[str, Any]:
    """A guess as plain values: the sense taken, its path, and the other candidates."""
    by_id = {s.synset_id: s for s in guess.candidates}
    taken = by_id.get(chosen) or (wordnet.sense(chosen) if chosen else None)
    return {
        "class_name": guess.class_name,
        "synset": chosen or None,
        "meaning": None if taken is None else taken.gloss,
        "path": [] if taken is None else list(taken.path),
        "doubt": guess.doubt if chosen == guess.synset_id else "",
        "candidates": [{"synset": s.synset_id, "name": s.name, "gloss": s.gloss} for s in guess.candidates],
    }


def _candidates(name: str) -> tuple[str, tuple[Sense, ...]]:
    """The cleaned words of a class name and its senses, those a camera can see first."""
    if _SYNSET_ID.fullmatch(name):
        try:
            return name, (wordnet.sense(name),)
        except BadInput:
            return name, ()
    words = clean(name)
    found = wordnet.senses(words) if len(words) > 1 else []
    if found and " " in words and not _says(found, words):
        joined = wordnet.senses(re.sub(r"[ -]", "", words))  # "gold fish" is the goldfish, not any fish
        found = joined or found
    return words, tuple(sorted(found, key=_unlikely))


def _unlikely(sense: Sense) -> tuple[bool, bool, bool]:
    """Sorts what few image classes are to the end: what no camera sees, proper names (Crane the writer), and people.

    Half the animals in WordNet are also a kind of person (shrimp, goat); a class that is a person has no other sense.
    """
    return (not sense.is_physical, sense.name[:1].isupper(), "person" in sense.path)


def clean(name: str) -> str:
    """The words of a class name as WordNet spells them: "001.WildCat_x2 (adult)" is wild cat x."""
    text = re.sub(r"<[^>]*>", " ", name)
    text = re.split(r"[/\\]", text.strip("/\\ "))[-1]
    text = text.split(",")[0]
    text = re.sub(r"\([^)]*\)|\[[^\]]*\]", " ", text)
    text = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)
    text = re.sub(r"[^\w' -]|[\d_]", " ", text)
    return " ".join(text.lower().split()).strip("-' ")


def _guess(name: str, words: str, candidates: tuple[Sense, ...], others: list[tuple[str, ...]]) -> Guess:
    if not candidates:
        return Guess(name, "", (), "WordNet does not know this name")
    seen = [sense for sense in candidates if sense.is_physical]
    taken = candidates[0]
    if len(seen) > 1 and others:
        fits = {s.synset_id: _fit(s, others) for s in seen}
        best = max(seen, key=lambda s: fits[s.synset_id])
        if fits[best.synset_id] > _CLEARLY * fits[taken.synset_id]:
            taken = best
    if _SYNSET_ID.fullmatch(name):
        doubt = ""
    elif not _says([taken], words):
        doubt = f"only {words.split()[-1]!r} was found in WordNet"
    elif not seen:
        doubt = "nothing a camera can see goes by this name"
    elif len(seen) > 1:
        doubt = f"{len(seen)} meanings that a camera can see"
    else:
        doubt = ""
    return Guess(name, taken.synset_id, candidates, doubt)


def _others(company: list[tuple[str, ...]], i: int) -> list[tuple[str, ...]]:
    """The paths of the likeliest senses of up to _COMPANY other classes, spread evenly over the dataset."""
    rest = [path for j, path in enumerate(company) if j != i and path]
    return rest[:: max(1, len(rest) // _COMPANY)]


def _fit(sense: Sense, others: list[tuple[str, ...]]) -> float:
    """How near a sense is to the nearest quarter of the other classes: their mean similarity, 0 to 1.

    The similarity of Wu & Palmer (1994) is twice the depth of the lowest node two paths share, over the sum of their
    depths. A quarter, because datasets mix kinds: a bird is at home where some others are birds.
    """
    near = sorted((_similarity(sense.path, path) for path in others), reverse=True)
    n = max(1, len(near) // 4)
    return sum(near[:n]) / n


def _similarity(one: tuple[str, ...], other: tuple[str, ...]) -> float:
    shared = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        shared += 1
    return 2 * shared / (len(one) + len(other))


def _says(found: Iterable[Sense], words: str) -> bool:
    """Whether the senses are of the whole name, up to spaces and a plural ending, not just of its last word."""
    if " " not in words and "-" not in words:
        return True  # a single word has no head to fall back on
    joined = re.sub(r"[^a-z]", "", words)
    for sense in found:
        for lemma in sense.lemmas:
            plain = re.sub(r"[^a-z]", "", lemma.lower())
            if plain and (
                plain == joined or (plain[:-1] == joined[: len(plain) - 1] and abs(len(joined) - len(plain)) < 4)
            ):
                return True
    return False


def _plain(text: str) -> str:
    return re.sub(r"[\W_]+", " ", str(text)).strip().casefold()
