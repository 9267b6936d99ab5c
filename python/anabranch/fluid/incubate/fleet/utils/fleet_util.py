"""FleetUtil: metrics over all workers, and messages of the first worker."""
from __future__ import annotations

import sys
from typing import Any, NoReturn

import numpy

from ....areas import roc_area
from ....core import CPUPlace
from ....errors import InvalidValue, Unsupported
from ....scope import global_scope

__all__ = ["FleetUtil"]


class FleetUtil:
    """Computes metrics over all workers, and prints messages on the first worker.

    Args:
        mode (str): "transpiler". Fluid's default "pslib" is not supported.

    Raises:
        ValueError: the mode is unknown.
        NotImplementedError: the mode is "pslib", or a call exists only in pslib.

    Examples:
        >>> from anabranch.fluid.incubate.fleet.base import role_maker
        >>> from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
        >>> fleet.init(role_maker.UserDefinedRoleMaker(0, role_maker.Role.WORKER, 1, ["127.0.0.1:6174"]))
        >>> FleetUtil("transpiler").rank0_print("started")
        started
    """

    def __init__(self, mode: str = "pslib") -> None:
        if mode not in ("pslib", "transpiler"):
            raise InvalidValue("FleetUtil: mode must be pslib or transpiler, got %r" % (mode,))
        if mode == "pslib":
            from ..parameter_server.pslib import refuse
            refuse("FleetUtil")
        from ..parameter_server.distribute_transpiler import fleet
        self._fleet = fleet

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise Unsupported("FleetUtil.%s is not supported: it is part of pslib" % name)

    # ---- messages

    def rank0_print(self, s: str) -> None:
        """Prints on the first worker only."""
        if self._fleet.worker_index() == 0:
            print(s)
            sys.stdout.flush()

    rank0_info = rank0_print

    def rank0_error(self, s: str) -> None:
        """Prints to stderr on the first worker only."""
        if self._fleet.worker_index() == 0:
            print(s, file=sys.stderr, flush=True)

    # ---- figures

    def set_zero(self, var_name: str, scope: Any = None, place: Any = None, param_type: str = "int64") -> None:
        """Sets a variable to zeros, for instance the counts of ``auc`` between two passes.

        Args:
            var_name (str): the variable.
            scope (Scope, optional): the global scope by default.
            place (Place, optional): place of the variable.
            param_type (str): its element type. Default "int64".
        """
        tensor = (global_scope() if scope is None else scope).var(var_name).get_tensor()
        tensor.set(numpy.zeros(tensor.shape(), dtype=param_type), CPUPlace() if place is None else place)

    def _summed(self, scope: Any, name: str) -> numpy.ndarray:
        found = (global_scope() if scope is None else scope).find_var(name)
        if found is None:
            raise InvalidValue("FleetUtil: there is no variable %s" % name)
        mine = numpy.array(found.get_tensor()).astype("float64").reshape(-1)
        total = numpy.zeros_like(mine)
        self._fleet.all_reduce_worker(mine, total)
        return total

    def get_global_auc(self, scope: Any = None, stat_pos: str = "_generated_var_2",
                       stat_neg: str = "_generated_var_3") -> float:
        """The area under the curve over all workers; called by all of them.

        Args:
            scope (Scope, optional): the global scope by default.
            stat_pos (str): variable of ``layers.auc`` that counts positive samples.
            stat_neg (str): variable of ``layers.auc`` that counts negative samples.

        Returns:
            float: the area; 0.5 where there are no positive or no negative samples.

        Raises:
            ValueError: no such variable.
        """
        return roc_area(self._summed(scope, stat_pos), self._summed(scope, stat_neg), 0.5)

    def print_global_auc(self, scope: Any = None, stat_pos: str = "_generated_var_2",
                         stat_neg: str = "_generated_var_3", print_prefix: str = "") -> None:
        """Prints :meth:`get_global_auc`, on the first worker."""
        found = self.get_global_auc(scope, stat_pos, stat_neg)
        self.rank0_print("%s global auc = %s" % (print_prefix, found))
