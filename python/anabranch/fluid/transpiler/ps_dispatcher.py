"""Rules that assign blocks of variables to servers."""
from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

from .. import arguments
from ..errors import InvalidValue, NotOffered

__all__ = ["PSDispatcher", "RoundRobin", "HashName"]


class PSDispatcher:
    """Base class of the rules that assign blocks of variables to servers.

    Args:
        pserver_endpoints (list of str): addresses of the servers.

    Raises:
        ValueError: there is no server.
    """

    def __init__(self, pserver_endpoints: Sequence[str]) -> None:
        if not pserver_endpoints:
            raise InvalidValue("%s: pserver_endpoints must name at least one server" % type(self).__name__)
        self._eps = list(pserver_endpoints)
        self._step = 0

    @property
    def eps(self) -> list[str]:
        """list of str: the servers."""
        return self._eps

    def reset(self) -> None:
        """Restarts with the first server."""
        self._step = 0

    def dispatch(self, varlist: Sequence[Any]) -> list[str]:
        """list of str: a server for each variable."""
        raise NotOffered("%s is a base class: use RoundRobin or HashName" % type(self).__name__)


class RoundRobin(PSDispatcher):
    """Assigns variables to the servers in turn.

    Examples:
        >>> from anabranch.fluid.transpiler import RoundRobin
        >>> RoundRobin(["a:1", "b:2"]).dispatch(["w", "x", "y"])
        ['a:1', 'b:2', 'a:1']
    """

    def dispatch(self, varlist: Sequence[Any]) -> list[str]:
        """list of str: the next server for each variable."""
        chosen = []
        for _ in varlist:
            chosen.append(self._eps[self._step])
            self._step = (self._step + 1) % len(self._eps)
        return chosen


class HashName(PSDispatcher):
    """Assigns each variable to a server by a hash of its name, the same in every process.

    Examples:
        >>> from anabranch.fluid.transpiler import HashName
        >>> HashName(["a:1", "b:2"]).dispatch(["w", "w"])
        ['a:1', 'a:1']
    """

    def dispatch(self, varlist: Sequence[Any]) -> list[str]:
        """list of str: the server of each variable, by its name."""
        names = [v if isinstance(v, str) else v.name for v in varlist]
        return [self._eps[zlib.crc32(name.encode()) % len(self._eps)] for name in names]


arguments.explain(globals())
