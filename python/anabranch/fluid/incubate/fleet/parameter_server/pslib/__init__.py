"""pslib, a closed parameter server of Fluid, is not here; each name says at its first use what takes its place."""
from __future__ import annotations

from typing import Any, NoReturn

from ......_absent import Absent
from .....errors import Unsupported

INSTEAD = ("use fleet of fluid.incubate.fleet.parameter_server.distribute_transpiler; tables that grow are "
           "embedding(..., param_attr=fluid.GrowableTable(...))")


def refuse(name: str) -> NoReturn:
    """Raises NotImplementedError, which says what to use instead of a name of pslib."""
    raise Unsupported("pslib.%s is not offered: %s" % (name, INSTEAD))


fleet: Any = Absent("fleet", refuse)
PSLib: Any = Absent("PSLib", refuse)
DownpourOptimizer: Any = Absent("DownpourOptimizer", refuse)
fleet_embedding: Any = Absent("fleet_embedding", refuse)
