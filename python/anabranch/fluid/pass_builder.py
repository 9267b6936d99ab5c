"""The list of graph passes of one BuildStrategy."""
from __future__ import annotations

from typing import Any

from .. import _core
from .described import Described
from .errors import InvalidValue


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
    """The list of passes of one BuildStrategy. The engine determines their order; passes can only be removed and
    restored.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> builder = fluid.BuildStrategy()._finalize_strategy_and_create_passes()
        >>> first = builder.all_passes()[0].type()
        >>> builder.remove_pass(0)
        >>> first in [p.type() for p in builder.all_passes()]
        False
    """

    def __init__(self) -> None:
        self._passes = [GraphPass(name) for name, *_ in _core.pass_list()]

    def all_passes(self) -> list[Any]:
        """list of GraphPass: the passes that will run, in order."""
        return list(self._passes)

    def remove_pass(self, index: Any) -> None:
        """Removes the pass at this position. Raises IndexError if there is none."""
        del self._passes[index]

    def append_pass(self, name: str) -> Any:
        """Restores a removed pass at its fixed position in the order.

        Raises:
            ValueError: the pass does not exist, or it is already in the list.
        """
        known = [n for n, *_ in _core.pass_list()]
        if name not in known:
            raise InvalidValue("there is no pass %r; there are %s" % (name, ", ".join(known)))
        if name in [p.type() for p in self._passes]:
            raise InvalidValue("pass %s is in the list already" % name)
        self._passes.append(GraphPass(name))
        self._passes.sort(key=lambda p: known.index(p.type()))
        return self._passes[[p.type() for p in self._passes].index(name)]

    def insert_pass(self, index: Any, name: str) -> Any:
        """Like :meth:`append_pass`. The engine determines the position."""
        return self.append_pass(name)
