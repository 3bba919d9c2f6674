"""WordNet senses guessed from class names, and taxonomies built from senses, a table or folders.

A class name such as "crane" has several WordNet senses. The guess weighs how usual each is against the company it
keeps: among robins and gulls a crane is a bird, and among bats and jaguars a seal is no sealing wax.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fsviz.errors import BadInput
from fsviz.records import Progress
from fsviz.taxonomy import dag, wordnet
from fsviz.taxonomy.wordnet import Sense

FOLDERS = "folders"  # instead of a file: the folders above the classes are the taxonomy
WORDNET, NONE = "wordnet", "none"  # WordNet's, and none at all
_TOP = "all classes"
ROOT = "n00001740"  # WordNet's "entity", above every noun
_SYNSET_ID = re.compile(r"n\d{8}")
_PLANT, _PERSON, _FOOD = "n00017222", "n00007846", {"n00021265", "n07555863"}
# Abstract in WordNet, but what a picture of a class with such a name shows: numbers, letters, colours, plane figures.
_SIGNS = frozenset(("n13582013", "n06828818", "n04956594", "n13863186"))
_STATES = frozenset(
    ("ok", "okay", "good", "bad", "new", "old", "left", "right", "front", "back", "top", "bottom", "small", "large")
)
_BEHIND = re.compile(r" (?:of|in|on|at|with|without|from|near|under) ")  # what follows is no longer the thing itself
# Weights of a sense, as logarithms of odds. They were set on class names of ImageNet and the demo, to one digit.
_RANK = 0.8  # of a sense's place in WordNet's order, which is by how often it is meant
_UNMET = 4.0  # against a sense that was not met in texts where another one of the name was; where company is small
_BORROWED = 2.0  # against a sense whose first word is another: "slug" for a bullet
_TREE = 4.0  # against the plant where the food has the same name: pictures show bananas, not banana plants
_ODD = 4.0  # against proper names (Crane the writer) and people (half the animals are also a kind of person)
_UNSEEN = 3.0  # against what no camera sees
_KIN = 13.0  # of the similarity to the nearest other classes, in large company
_FEW = 3  # at so many classes company counts half: that many may be of any kind, and how usual a sense is counts more
_NEAREST = 3  # how many other classes a sense is compared with, at most
_COMPANY = 400  # how many other classes are asked
_TURNS = 4  # of weighing senses against the senses that the other classes then have
# Similarities to the nearest other classes, 0 to 1, below which the sense of a class is doubted.
_FAR = 0.5  # times the median of the others: 0.1% of the right guesses of ImageNet-1k are so far, and none of the demo
_ALIEN = 0.2  # of any sense: a cocktail among apples has 0.16, any two living things have 0.5 and more
_AT_HOME = 0.5  # of a person or a proper name


@dataclass(frozen=True)
class SenseGuess:
    """Possible WordNet senses of a class name.

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


def guess_senses(class_names: Iterable[str], progress: Progress | None = None) -> list[SenseGuess]:
    """One guess per class, in order. Names are cleaned first: numbers, signs and camel case do not matter."""
    class_names = [str(name) for name in class_names]
    matches: list[tuple[str, tuple[Sense, ...]]] = []
    for i, name in enumerate(class_names):
        matches.append(_candidates(name))
        if progress:
            progress(i + 1, len(class_names), "looking class names up in WordNet")
    matches = _without_counters(class_names, matches)
    weights = _weigh([senses for _, senses in matches], [words for words, _ in matches])
    selected = [senses[int(weight.argmax())] if senses else None for (_, senses), weight in zip(matches, weights)]
    compared = iter(
        _compared(*zip(*((name, sense) for name, sense in zip(class_names, selected) if sense is not None)))
    )
    return [
        SenseGuess(
            name,
            "" if sense is None else sense.synset_id,
            senses,
            _unknown(words) if sense is None else _doubt(name, words, senses, sense, *next(compared)),
        )
        for name, (words, senses), sense in zip(class_names, matches, selected, strict=True)
    ]


def with_sense(guess: SenseGuess, synset_id: str) -> SenseGuess:
    """The guess with a sense that a person has checked, "" for none."""
    new = {synset_id} - {"", *(sense.synset_id for sense in guess.candidates)}
    return SenseGuess(guess.class_name, synset_id, (*map(wordnet.sense, new), *guess.candidates), "")


def _without_counters(
    class_names: list[str], matches: list[tuple[str, tuple[Sense, ...]]]
) -> list[tuple[str, tuple[Sense, ...]]]:
    """No senses for names that are one word counted through (character01, character02, ...): they would all mean the
    same, and what the classes are is not in the word."""
    unnamed = [senses and wordnet.named_sense(name) is None for name, (_, senses) in zip(class_names, matches)]
    counts = Counter(words for (words, _), open_ in zip(matches, unnamed) if open_)
    counted = {words for words, n in counts.items() if n > 2 and 2 * n > len(class_names)}
    return [(words, () if words in counted else senses) for words, senses in matches]


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


def taxonomy_from_senses(synset_of: Mapping[str, str]) -> Taxonomy | None:
    """The part of WordNet above the chosen senses (class_name -> synset id, "" for none); None when none is chosen.

    A class without a sense hangs directly below "entity", far from everything; classes that share a sense become its
    children, so that every class keeps a node of its own.
    """
    synsets = {name: synset for name, synset in synset_of.items() if synset}
    if not synsets:
        return None
    edges, names = wordnet.hypernym_closure(dict.fromkeys(synsets.values()))
    names = dict(names)
    shared = {synset for synset, n in Counter(synsets.values()).items() if n > 1}
    extra, nodes = [], {}
    for name, synset in synset_of.items():
        if synset and synset not in shared:
            nodes[name] = synset
            continue
        nodes[name] = f"class: {name}"
        names[nodes[name]] = name
        extra.append((nodes[name], synset or ROOT))
    names.setdefault(ROOT, "entity")
    edges = pd.concat([edges, pd.DataFrame(extra, columns=["child", "parent"])], ignore_index=True)
    without = [name for name in synset_of if not synset_of[name]]
    notes = []
    if without:
        notes.append(
            f"{len(without)} of {len(synset_of)} classes have no WordNet sense and hang directly below 'entity': "
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


def describe(guess: SenseGuess, synset_id: str) -> dict[str, Any]:
    """A guess as plain values: the sense taken, its path, and the other candidates."""
    by_id = {s.synset_id: s for s in guess.candidates}
    sense = by_id.get(synset_id) or (wordnet.sense(synset_id) if synset_id else None)
    return {
        "class_name": guess.class_name,
        "synset": synset_id or None,
        "meaning": None if sense is None else sense.gloss,
        "path": [] if sense is None else list(sense.path),
        "doubt": guess.doubt if synset_id == guess.synset_id else "",
        "candidates": [{"synset": s.synset_id, "name": s.name, "gloss": s.gloss} for s in guess.candidates],
    }


def _candidates(name: str) -> tuple[str, tuple[Sense, ...]]:
    """The cleaned words of a class name and its senses, those a camera can see first."""
    exact = wordnet.named_sense(name)
    if exact is not None:
        return name, (exact,)
    words = clean(name)
    matches = wordnet.senses(words) if len(words) > 1 else []
    if " " in words and not _covers_name(matches, words):
        joined = wordnet.senses(re.sub(r"[ -]", "", words))  # "gold fish" is the goldfish, not any fish
        matches = joined or _of_the_thing(_BEHIND.split(words)[0]) or matches
    return words, tuple(sorted(matches, key=_unlikely))


def _of_the_thing(words: str) -> list[Sense]:
    """The senses of the part of a name that names a thing: "screw ok" and "screw bad" are screws.

    The end of a name is what it is ("red kitchen chair"), unless the end is no thing but a state of one, or a letter.
    """
    parts = words.split()
    while len(parts) > 1:
        matches = wordnet.senses(" ".join(parts))
        if (
            len(parts[-1]) > 1
            and parts[-1] not in _STATES
            and any(s.is_physical and not _is_odd(s)[0] for s in matches)
        ):
            return matches
        parts.pop()
    return wordnet.senses(parts[0]) if len(parts[0]) > 1 else []


def _unlikely(sense: Sense) -> tuple[bool, bool, bool]:
    """Sorts what few image classes are to the end: what no camera sees, proper names, and people."""
    return (not _is_visible(sense), *_is_odd(sense))


def _is_visible(sense: Sense) -> bool:
    """Whether a picture can show it: a physical thing, a number, a letter, a colour or a plane figure."""
    return sense.is_physical or not _SIGNS.isdisjoint(sense.above)


def _is_odd(sense: Sense) -> tuple[bool, bool]:
    """Whether a sense is a proper name, written large in all its words (Crane), and whether it is a person."""
    return all(lemma[:1].isupper() for lemma in sense.lemmas), _PERSON in sense.above


def clean(name: str) -> str:
    """The words of a class name as WordNet spells them: "001.WildCat_x2 (adult)" is wild cat x."""
    text = re.sub(r"<[^>]*>", " ", name)
    text = re.split(r"[/\\]", text.strip("/\\ "))[-1]
    text = text.split(",")[0]
    text = re.sub(r"\([^)]*\)|\[[^\]]*\]", " ", text)
    text = re.sub(r"(?<![A-Za-z0-9])[nN]\d{8}(?!\d)", " ", text)
    text = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)
    text = re.sub(r"[^\w' -]|[\d_]", " ", text)
    return " ".join(text.lower().split()).strip("-' ")


def _unknown(words: str) -> str:
    """Why a class has no senses: WordNet knows none, or the name is one word counted through."""
    counted = bool(words) and bool(wordnet.senses(words))
    return "a counter, not a name" if counted else "not in WordNet"


def _doubt(name: str, words: str, candidates: tuple[Sense, ...], guess: Sense, close: float, typical: float) -> str:
    """Why a person should look at the sense taken, "" when there is nothing to doubt.

    close    similarity of the sense to those of the nearest other classes
    typical  median of that similarity over the other classes
    """
    n_visible = sum(_is_visible(sense) for sense in candidates)
    if wordnet.named_sense(name) is not None:
        return ""
    if not _covers_name([guess], words):
        return f"only {_part_that_says(guess, words)!r} was found in WordNet"
    if not n_visible:
        return "no sense is a visible thing"
    if not _is_visible(guess):
        return "the sense closest to the other classes is not a visible thing"
    if 0 < close < max(_FAR * typical, _ALIEN):
        return f"no other class is similar to {guess.name!r}"
    if n_visible > 1:
        return f"{n_visible} senses are visible things"
    if any(_is_odd(guess)) and close < _AT_HOME:
        return "a person or a proper name, which is rare for image classes"
    return ""


def _part_that_says(sense: Sense, words: str) -> str:
    """The part of a name that a sense is of: its longest end that is spelt alike, else a word of it, else the last."""
    lemmas, parts = {_letters(lemma) for lemma in sense.lemmas}, re.split(r"[ -]+", words)
    ends = [" ".join(parts[start:]) for start in range(1, len(parts))]
    return next((part for part in [*ends, *parts[::-1]] if _letters(part) in lemmas), parts[-1])


def _weigh(candidates: Sequence[tuple[Sense, ...]], words: Sequence[str]) -> list[np.ndarray]:
    """For every class the weights of its senses (logarithms of odds, as large as they are likely).

    A sense starts with how usual it is. In turns it is then compared with the other classes: the mean similarity to
    those nearest to it, each with the senses it likely has by then. The nearest only, because datasets mix kinds: a
    bird is at home where some others are birds.
    """
    senses = [sense for several in candidates for sense in several]
    if not senses:
        return [np.zeros(0) for _ in candidates]
    sizes = np.array([len(several) for several in candidates])
    owner = np.repeat(np.arange(len(candidates)), sizes)
    classes = np.flatnonzero(sizes)
    trust = len(classes) / (len(classes) + _FEW)
    usual = np.concatenate([_usual(*pair, 1 - trust) for pair in zip(candidates, words, strict=True)])
    compared = classes[:: -(-len(classes) // _COMPANY)]
    if len(compared) < 2:
        return np.split(usual, np.cumsum(sizes)[:-1])
    theirs = np.flatnonzero(np.isin(owner, compared))
    alike = _similarities(senses, theirs)
    own = owner[:, None] == compared[None, :]
    starts = np.searchsorted(owner[theirs], compared)
    nearest = max(1, min(_NEAREST, len(compared) // 2))
    first, place = np.searchsorted(owner, classes), np.repeat(np.arange(len(classes)), sizes[classes])
    weights = usual
    for _ in range(_TURNS):
        likely = np.exp(weights - np.maximum.reduceat(weights, first)[place])
        likely /= np.add.reduceat(likely, first)[place]
        kin = np.add.reduceat(alike * likely[theirs], starts, axis=1)  # (senses, asked classes)
        kin[own] = -1.0
        weights = usual + trust * _KIN * _of_nearest(kin, nearest)
    return np.split(weights, np.cumsum(sizes)[:-1])


def _of_nearest(alike: np.ndarray, nearest: int) -> np.ndarray:
    """The mean of the largest similarities of every row."""
    return np.maximum(-np.partition(-alike, nearest - 1, axis=1)[:, :nearest], 0.0).mean(axis=1)


def _compared(class_names: Sequence[str] = (), senses: Sequence[Sense] = ()) -> list[tuple[float, float]]:
    """`_closeness` of the sense of every class, among all classes or, where it is farther off, those of its folder.

    Folders are in the names: among Fruit/Apple/Gala and its like a pink lady is no drink, whatever else is there.
    """
    closeness = np.stack(_closeness(senses), axis=1)
    folders: dict[str, list[int]] = {}
    for i, name in enumerate(class_names):
        folders.setdefault(name.rstrip("/").rpartition("/")[0], []).append(i)
    for places in folders.values():
        if 2 < len(places) < len(senses):
            inside = np.stack(_closeness([senses[i] for i in places]), axis=1)
            farther = inside[:, 0] * closeness[places, 1] < closeness[places, 0] * inside[:, 1]
            closeness[places] = np.where(farther[:, None], inside, closeness[places])
    return [(float(close), float(typical)) for close, typical in closeness]


def _closeness(senses: Sequence[Sense]) -> tuple[np.ndarray, np.ndarray]:
    """For every class the mean similarity of its sense to the nearest other ones, and the median of that of the others.

    The median is 0 for fewer than three classes, as nothing is typical then; alone a class has the similarity 0.
    """
    n = len(senses)
    if n < 2:
        return np.zeros(n), np.zeros(n)
    compared = np.arange(n)[:: -(-n // _COMPANY)]
    alike = _similarities(senses, compared)
    alike[compared, np.arange(len(compared))] = -1.0
    close = _of_nearest(alike, max(1, min(_NEAREST, len(compared) // 2)))
    if n < 3:
        return close, np.zeros(n)
    order = np.argsort(close, kind="stable")
    rank = np.argsort(order, kind="stable")
    middles = [close[order[at + (rank <= at)]] for at in ((n - 2) // 2, (n - 1) // 2)]  # without the class itself
    return close, (middles[0] + middles[1]) / 2


def _usual(senses: tuple[Sense, ...], words: str, alone: float) -> np.ndarray:
    """Log odds of each sense of a class by itself; `alone` is 1 if there are no other classes."""
    ids = {i for sense in senses if sense.is_physical for i in sense.above}
    some_met = any(sense.met for sense in senses)
    weights = []
    for rank, sense in enumerate(senses):
        weight = -_RANK * np.log1p(rank) - alone * _UNMET * (some_met and not sense.met)
        weight -= _UNSEEN * (not _is_visible(sense))
        weight -= _ODD * sum(_is_odd(sense))
        weight -= _BORROWED * (_letters(sense.name) != _letters(words))
        weight -= _TREE * (_PLANT in sense.above and not _FOOD.isdisjoint(ids) and _FOOD.isdisjoint(sense.above))
        weights.append(weight)
    return np.array(weights, dtype=float)


def _similarities(senses: Sequence[Sense], references: np.ndarray) -> np.ndarray:
    """(senses, others) twice the number of concepts above both, over the sum of those above each: 0 to 1.

    In a tree this is the similarity of Wu & Palmer (1994); WordNet gives some senses several parents.
    """
    from scipy.sparse import csr_array

    column: dict[str, int] = {}
    indices = [column.setdefault(i, len(column)) for sense in senses for i in sense.above]
    sizes = np.array([len(sense.above) for sense in senses])
    pointers = np.concatenate([[0], np.cumsum(sizes)])
    above = csr_array((np.ones(len(indices), np.float32), indices, pointers), shape=(len(senses), len(column)))
    shared = (above @ above[references].T).toarray()
    return 2 * shared / (sizes[:, None] + sizes[references][None, :])


def _letters(text: str) -> str:
    return re.sub(r"[^a-z]", "", text.lower())


def _covers_name(senses: Iterable[Sense], words: str) -> bool:
    """Whether the senses are of the whole name, up to spaces and a plural ending, not just of its last word."""
    if " " not in words and "-" not in words:
        return True  # a single word has no head to fall back on
    joined = _letters(words)
    for sense in senses:
        for lemma in sense.lemmas:
            plain = _letters(lemma)
            if plain and (
                plain == joined or (plain[:-1] == joined[: len(plain) - 1] and abs(len(joined) - len(plain)) < 4)
            ):
                return True
    return False


def _plain(text: str) -> str:
    return re.sub(r"[\W_]+", " ", str(text)).strip().casefold()
