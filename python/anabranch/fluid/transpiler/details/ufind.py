"""Disjoint sets of elements. The names of ``fluid.transpiler.details.ufind``."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class UnionFind:
    """Disjoint sets, which ``union`` merges.

    Args:
        elementes (iterable, optional): the elements, each in a set of one. Default: none.

    Examples:
        >>> sets = UnionFind(["a", "b", "c"])
        >>> sets.union("a", "b")
        >>> sets.is_connected("a", "b"), sets.is_connected("a", "c"), sets.find("d")
        (True, False, -1)
    """

    def __init__(self, elementes: Iterable[Any] | None = None) -> None:
        self._index: dict[Any, int] = {}
        for element in elementes or ():
            self._index.setdefault(element, len(self._index))
        self._parents = list(range(len(self._index)))

    def find(self, x: Any) -> int:
        """int: number of the set of an element; -1 for an unknown element."""
        if x not in self._index:
            return -1
        at = self._index[x]
        while self._parents[at] != at:
            self._parents[at] = self._parents[self._parents[at]]
            at = self._parents[at]
        return at

    def union(self, x: Any, y: Any) -> None:
        """Merges the sets of two elements."""
        self._parents[self.find(x)] = self.find(y)

    def is_connected(self, x: Any, y: Any) -> bool:
        """bool: whether two elements are in one set."""
        return self.find(x) == self.find(y)
