"""The list of graph passes of one BuildStrategy."""
from __future__ import annotations

from typing import Any

from .. import _core
from .described import Described
from .errors import InvalidValue
from .old_passes import OldPass


class GraphPass:
    """A pass, identified by its name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def type(self) -> str:
        """str: the name."""
        return self._name

    def __repr__(self) -> str:
        return "GraphPass(%r)" % self._name


class PassBuilder(Described):
    """The list of passes of one BuildStrategy. The engine determines their order; its own passes can only be
    removed and restored. Passes of Fluid 1.8.5 are accepted where they leave results as they are (``OldPass``).

    Examples:
        >>> import anabranch.fluid as fluid
        >>> builder = fluid.BuildStrategy()._finalize_strategy_and_create_passes()
        >>> first = builder.all_passes()[0].type()
        >>> builder.remove_pass(0)
        >>> first in [p.type() for p in builder.all_passes()]
        False
    """

    def __init__(self) -> None:
        self._passes: list[Any] = [GraphPass(name) for name, *_ in _core.pass_list()]

    def all_passes(self) -> list[Any]:
        """list of GraphPass and OldPass: the passes that will run, in order."""
        return list(self._passes)

    def remove_pass(self, index: Any) -> None:
        """Removes the pass at this position. Raises IndexError if there is none."""
        del self._passes[index]

    def append_pass(self, name: str) -> Any:
        """Restores a removed pass at its fixed position in the order, or adds a pass of Fluid 1.8.5.

        Raises:
            ValueError: the pass does not exist, or it is already in the list.
            NotImplementedError: a pass of Fluid 1.8.5 would change results in a way that is not available.
        """
        return self.insert_pass(len(self._passes), name)

    def insert_pass(self, index: Any, name: str) -> Any:
        """Like :meth:`append_pass`. The engine determines the positions of engine passes."""
        known = [n for n, *_ in _core.pass_list()]
        if name not in known:
            self._passes.insert(index, OldPass(name).for_strategy())
            return self._passes[min(index, len(self._passes) - 1)]
        if name in [p.type() for p in self._passes]:
            raise InvalidValue("pass %s is in the list already" % name)
        old = [p for p in self._passes if isinstance(p, OldPass)]
        own = [*(p for p in self._passes if isinstance(p, GraphPass)), GraphPass(name)]
        self._passes = old + sorted(own, key=lambda p: known.index(p.type()))
        return next(p for p in self._passes if p.type() == name)

    def check(self, program: Any) -> None:
        """Raises NotImplementedError where a pass of Fluid 1.8.5 would change the results of this program."""
        for p in self._passes:
            if isinstance(p, OldPass):
                p.check(program)

    def graphviz_path(self) -> str:
        """str: the file of a graph_viz_pass, or an empty string."""
        paths = [p._attributes.get("graph_viz_path", "") for p in self._passes if isinstance(p, OldPass)]
        return next((path for path in paths if path), "")
