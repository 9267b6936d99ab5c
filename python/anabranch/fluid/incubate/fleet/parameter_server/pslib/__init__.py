"""Names of pslib, a closed-source parameter server of Fluid that is not supported; each use raises an error."""
from __future__ import annotations

from typing import Any, NoReturn

from ......_absent import Absent
from .....errors import Unsupported

INSTEAD = ("use fleet of fluid.incubate.fleet.parameter_server.distribute_transpiler, and for growable tables "
           "embedding(..., param_attr=fluid.GrowableTable(...))")


def refuse(name: str) -> NoReturn:
    """Raises NotImplementedError with the replacement of a name of pslib."""
    raise Unsupported("pslib.%s is not available: %s" % (name, INSTEAD))


fleet: Any = Absent("fleet", refuse)
PSLib: Any = Absent("PSLib", refuse)
DownpourOptimizer: Any = Absent("DownpourOptimizer", refuse)
fleet_embedding: Any = Absent("fleet_embedding", refuse)
