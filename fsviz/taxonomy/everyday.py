"""Groups of classes by the names that people use, such as mammals, food and vehicles, and the most familiar class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from fsviz.records import Dataset
from fsviz.taxonomy.dag import Dag
from fsviz.taxonomy.superclasses import spanning, superclasses

# WordNet nodes; the closest one above a class names its group.
GROUPS = {
    "n01861778": "mammals",
    "n01317541": "mammals",  # domestic animals, such as dogs: not below mammal on the shortest path
    "n01503061": "birds",
    "n02512053": "fish",
    "n01661091": "reptiles",
    "n01627424": "amphibians",
    "n02159955": "insects",
    "n01905661": "other invertebrates",
    "n00017222": "plants",
    "n13086908": "plants",
    "n12992868": "fungi",
    "n00021265": "food",
    "n07555863": "food",
    "n13134947": "food",
    "n03100490": "vehicles",
    "n04524313": "vehicles",
    "n04576211": "vehicles",  # wheeled: below container on the shortest path
    "n03800933": "musical instruments",
    "n03563967": "tools",
    "n03051540": "clothing",
    "n03122748": "clothing",
    "n03405265": "furniture",
    "n04341686": "buildings",
    "n00007846": "people",
    "n03278248": "electronics",
    "n04285146": "sports equipment",
    "n03414162": "sports equipment",
    "n03094503": "containers",
    "n03183080": "devices",
    "n00021939": "other objects",
    "n09287968": "landscapes",
}
OTHERS = "others"
_ENOUGH, _TOO_MANY = 0.8, 0.85  # shares of classes: that have a group, and that one group may have


def everyday_groups(dataset: Dataset, class_ids: np.ndarray, n_groups: int = 10) -> list[str]:
    """The group of every class, at most `n_groups` of them; superclasses if WordNet's groups do not divide the classes.

    Small groups beyond that number are called "others".
    """
    names = _wordnet_groups(spanning(dataset, class_ids)) or superclasses(dataset, class_ids, n_groups=n_groups)
    return _largest(names, n_groups)


def even_groups(dataset: Dataset, class_ids: np.ndarray, n_groups: int = 10) -> list[str]:
    """The group of every class, about `n_groups` of similar size and at most so many.

    Everyday groups, or the top of the taxonomy, of which the largest is divided again and again by the concept that
    holds nearest to half of its classes. Small groups beyond that number are called "others".
    """
    dag = spanning(dataset, class_ids)
    names = np.array(_wordnet_groups(dag) or superclasses(dataset, class_ids, n_groups=2), dtype=object)
    groups = {name: names == name for name in dict.fromkeys(names)}
    whole: set[str] = {""}
    while candidates := [name for name in groups if name not in whole]:
        largest = max(candidates, key=lambda name: groups[name].sum())
        share = groups[largest].sum() * n_groups / len(names)
        if share <= 1.25 or (share <= 2 and len(groups) >= n_groups):
            break
        parts = _halves(dag, groups[largest], largest, groups)
        if parts is None:
            whole.add(largest)
        else:
            del groups[largest]
            groups |= parts
    for name, inside in groups.items():
        names[inside] = name if inside.sum() > 1 or len(names) <= n_groups else ""
    return _largest(names.tolist(), n_groups)


def _wordnet_groups(dag: Dag) -> list[str]:
    """The everyday group of every class, "" for none; [] if these groups do not divide the classes."""
    names = []
    for node in dag.class_nodes:
        path = dag.path_to(int(node))[::-1]
        names.append(next((GROUPS[dag.nodes[v]] for v in path if dag.nodes[v] in GROUPS), ""))
    sizes = Counter(names)
    divide = len(names) - sizes[""] >= _ENOUGH * len(names) and max(sizes.values()) <= _TOO_MANY * len(names)
    return names if divide else []


def _largest(names: Sequence[str], n_groups: int) -> list[str]:
    """The same names, "others" in place of those of small groups beyond `n_groups`."""
    sizes = Counter(names)
    ranked = sorted((name for name in sizes if name), key=lambda name: (-sizes[name], name))
    largest = ranked if "" not in sizes and len(ranked) <= n_groups else ranked[: n_groups - 1]
    return [name if name in largest else OTHERS for name in names]


def _halves(dag: Dag, inside: np.ndarray, name: str, groups: Mapping[str, np.ndarray]) -> dict[str, np.ndarray] | None:
    """A group (C,) divided by a concept below it: its classes, and the others; None if no concept divides it."""
    held = dag.held & inside
    sizes, size = held.sum(axis=1), int(inside.sum())
    usable = [v for v in np.flatnonzero((sizes > 1) & (sizes < size)).tolist() if dag.names[v] not in groups]
    if not usable:
        return None
    best = min(usable, key=lambda v: (abs(2 * int(sizes[v]) - size), v))
    rest = inside & ~held[best]
    same = np.flatnonzero((held == rest).all(axis=1) & (sizes < size)).tolist()
    default_name = name if name.startswith("other ") else f"other {name}"
    rest_name = next((dag.names[v] for v in same if dag.names[v] not in groups), default_name)
    return {dag.names[best]: held[best], rest_name: rest}


def familiar_class(names: Sequence[str]) -> int:
    """Position of a class that most people know: the shortest single word, the first of equals.

    Common words are short (Zipf's law of abbreviation). Names may be paths, such as Fruit/Kiwi.
    """
    words = [name.rpartition("/")[2] or name for name in names]
    return min(range(len(words)), key=lambda i: (not words[i].isalpha() or len(words[i]) < 3, len(words[i]), i))
