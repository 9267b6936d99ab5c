"""pslib, a closed parameter server of Fluid, is not here; each name says at its first use what takes its place."""
from __future__ import annotations

from typing import Any, NoReturn

from .....errors import Unsupported

INSTEAD = ("use fleet of fluid.incubate.fleet.parameter_server.distribute_transpiler; tables that grow are "
           "embedding(..., param_attr=fluid.GrowableTable(...))")


def refuse(name: str) -> NoReturn:
    """Raises NotImplementedError, which says what to use instead of a name of pslib."""
    raise Unsupported("pslib.%s is not offered: %s" % (name, INSTEAD))


class _Absent:
    """Stands for an object of pslib: any use of it is refused."""

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # what tools ask of any object
        refuse("%s.%s" % (self._name, name))

    def __setattr__(self, name: str, value: Any) -> None:
        refuse("%s.%s" % (self._name, name))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        refuse(self._name)


fleet: Any = _Absent("fleet")
PSLib: Any = _Absent("PSLib")
DownpourOptimizer: Any = _Absent("DownpourOptimizer")
fleet_embedding: Any = _Absent("fleet_embedding")
