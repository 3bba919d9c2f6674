"""Place of one class in its dataset's taxonomy, and its nearest relatives."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from fsviz.records import Dataset


@dataclass(frozen=True)
class TaxonomyPlace:
    """Place of a class in its taxonomy.

    path      readable names from the root down to the class, along a shortest path
    shared    the lowest node on it that other classes of the dataset are below, too ("" when there is none)
    siblings  class_ids of those other classes
    """

    path: tuple[str, ...]
    shared: str
    siblings: tuple[int, ...]


def place_in_taxonomy(dataset: Dataset, class_id: int) -> TaxonomyPlace | None:
    """The place of a class, or None when the dataset or the class has no taxonomy."""
    if dataset.taxonomy is None or not dataset.classes["node"].iat[class_id]:
        return None
    parents: dict[str, list[str]] = {}
    for child, parent in zip(dataset.taxonomy["child"], dataset.taxonomy["parent"], strict=True):
        parents.setdefault(child, []).append(parent)
    node = str(dataset.classes["node"].iat[class_id])
    path = _shortest_way_up(node, parents)
    level = {ancestor: i for i, ancestor in enumerate(path)}  # 0 is the class itself
    meeting: dict[int, list[int]] = {}
    for class_index, other_node in enumerate(dataset.classes["node"].astype(str)):
        if class_index != class_id and other_node:
            met = [level[a] for a in _ancestors(other_node, parents) if a in level]
            if met:
                meeting.setdefault(min(met), []).append(class_index)
    lowest = min(meeting) if meeting else None
    names = dataset.node_names
    return TaxonomyPlace(
        path=tuple(names.get(n, n) for n in reversed(path)),
        shared="" if lowest is None else names.get(path[lowest], path[lowest]),
        siblings=() if lowest is None else tuple(meeting[lowest]),
    )


def _shortest_way_up(node: str, parents: dict[str, list[str]]) -> list[str]:
    """Breadth-first from the node to the nearest root; the first parent listed wins a tie."""
    before: dict[str, str] = {}
    waiting = deque([node])
    visited = {node}
    while waiting:
        here = waiting.popleft()
        if not parents.get(here):
            path = [here]
            while path[-1] != node:
                path.append(before[path[-1]])
            return path[::-1]
        for parent in parents[here]:
            if parent not in visited:
                visited.add(parent)
                before[parent] = here
                waiting.append(parent)
    return [node]  # a cycle has no root: only the class itself can be told


def _ancestors(node: str, parents: dict[str, list[str]]) -> set[str]:
    ancestors = {node}
    waiting = [node]
    while waiting:
        for parent in parents.get(waiting.pop(), ()):
            if parent not in ancestors:
                ancestors.add(parent)
                waiting.append(parent)
    return ancestors
