"""Layers of operators that sum, broadcast and gather over workers. The names of ``fluid.layers.collective``."""
from __future__ import annotations

from typing import Any

from .. import unique_name
from ..errors import InvalidType, InvalidValue
from ..framework import Variable
from ..layer_helper import LayerHelper

_REDUCTIONS = ("sum", "prod", "max", "min")


def _appended(op: str, x: Variable, out: Variable | None, rows: int | None = None, suffix: str = "",
              **attrs: Any) -> Variable:
    """Appends ``op``. Without ``out``, its output is a new variable named after ``x``, with ``rows`` rows if given."""
    helper = LayerHelper(op)
    if out is None:
        out = helper.create_variable(
            name=unique_name.generate("%s.%s" % (x.name, suffix or op)), dtype=x.dtype, type=x.type,
            shape=list(x.shape) if rows is None else [rows, *x.shape[1:]], persistable=x.persistable)
    helper.append_op(type=op, inputs={"X": [x]}, outputs={"Out": [out]}, attrs=attrs)
    return out


def _checked(reduce_type: str) -> str:
    if reduce_type not in _REDUCTIONS:
        raise InvalidType("reduce_type must be one of %s, got %r" % (", ".join(_REDUCTIONS), reduce_type))
    return reduce_type


def _allreduce(x: Variable, out: Variable | None = None, reduce_type: str = "sum",
               sync_mode: bool = False) -> Variable:
    """The sum, product, maximum or minimum of ``x`` over all workers, using the operator ``allreduce``."""
    code = _REDUCTIONS.index(_checked(reduce_type))
    return _appended("allreduce", x, out, suffix="tmp", reduce_type=code, sync_mode=sync_mode)


def _broadcast(x: Variable, root: int, sync_mode: bool = False) -> Variable:
    """Replaces ``x`` with the value of worker ``root``, using the operator ``broadcast``."""
    return _appended("broadcast", x, x, root=root, sync_mode=sync_mode)


def _c_allreduce(x: Variable, out: Variable | None = None, reduce_type: str = "sum", ring_id: int = 0,
                 use_calc_stream: bool = False) -> Variable:
    """The sum, product, maximum or minimum of ``x`` over the workers of a ring."""
    return _appended("c_allreduce_" + _checked(reduce_type), x, out, ring_id=ring_id, use_calc_stream=use_calc_stream)


def _c_broadcast(x: Variable, root: int = 0, ring_id: int = 0, use_calc_stream: bool = False) -> Variable:
    """Replaces ``x`` with the value of worker ``root`` of a ring."""
    return _appended("c_broadcast", x, x, root=root, ring_id=ring_id, use_calc_stream=use_calc_stream)


def _c_allgather(x: Variable, nranks: int, ring_id: int = 0, use_calc_stream: bool = False) -> Variable:
    """The rows of all ``nranks`` workers of a ring, in the order of the workers."""
    rows = x.shape[0] * nranks if x.shape[0] > 0 else -1
    return _appended("c_allgather", x, None, rows, nranks=nranks, ring_id=ring_id, use_calc_stream=use_calc_stream)


def _c_reducescatter(x: Variable, nranks: int, ring_id: int = 0, use_calc_stream: bool = False) -> Variable:
    """This worker's part of the rows of the sum over the ``nranks`` workers of a ring."""
    if x.shape[0] > 0 and x.shape[0] % nranks:
        raise InvalidValue("_c_reducescatter: the rows of x must be a multiple of %d, got %d" % (nranks, x.shape[0]))
    rows = x.shape[0] // nranks if x.shape[0] > 0 else -1
    return _appended("c_reducescatter", x, None, rows, nranks=nranks, ring_id=ring_id,
                     use_calc_stream=use_calc_stream)


def _c_sync_calc_stream(x: Variable) -> Variable:
    """Waits for the operators that compute ``x``."""
    return _appended("c_sync_calc_stream", x, x)


def _c_sync_comm_stream(x: Variable, ring_id: int) -> Variable:
    """Waits for the exchanges of a ring."""
    return _appended("c_sync_comm_stream", x, x, ring_id=ring_id)
