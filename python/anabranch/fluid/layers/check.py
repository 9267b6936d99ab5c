"""Checks that layers make of their arguments, and the shortest way from arguments to an op.

A wrong class or dtype raises TypeError, a wrong value ValueError, both naming layer, argument, what is taken and what
was given. Shapes are checked by the shape function of the op itself.
"""
from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ... import _core
from ..errors import InvalidType, InvalidValue
from ..framework import Variable, get_flags
from ..framework.dtype import dtype_name
from ..layer_helper import LayerHelper

if TYPE_CHECKING:
    from ..hints import DType

FLOATS = ("float16", "float32", "float64")
WIDE_FLOATS = ("float32", "float64")
NUMBERS = ("float16", "float32", "float64", "int32", "int64")
WIDE_NUMBERS = ("float32", "float64", "int32", "int64")
INTS = ("int32", "int64")


def exact_fluid() -> bool:
    """Whether the flag asks for the behaviour of Fluid 1.8.5 also where another one is better."""
    return get_flags(["FLAGS_fluid_exact"])["FLAGS_fluid_exact"] == "1.8.5"


def of_type(value: Any, argument: str, layer: str, types: Any) -> None:
    """TypeError unless ``value`` is an instance of ``types`` (a class or a tuple of classes)."""
    if isinstance(value, types):
        return
    classes = types if isinstance(types, tuple) else (types,)
    raise InvalidType("%s: %s must be %s, got %s" % (
        layer, argument, " or ".join("None" if t is type(None) else t.__name__ for t in classes), _got(value)))


def _got(value: Any) -> str:
    """The class of a value, with what to do where it is an array that stands for a Variable."""
    name = type(value).__name__
    return name if name != "ndarray" else (
        name + "; an array is fed when the program runs: say x = fluid.data(name, shape, dtype) here, "
        "and executor.run(feed={name: array})")


def of_dtype(dtype: DType, argument: str, layer: str, dtypes: Sequence[str]) -> None:
    """TypeError unless ``dtype`` (a VarType) is one of the names ``dtypes``."""
    name = dtype_name(dtype)
    if name not in dtypes:
        raise InvalidType("%s: the dtype of %s must be one of %s, got %s" % (layer, argument, ", ".join(dtypes), name))


def variable(value: Any, argument: str, layer: str, dtypes: Sequence[str] | None = None) -> None:
    """TypeError unless ``value`` is a Variable, of one of ``dtypes`` where those are given."""
    if not isinstance(value, Variable):
        raise InvalidType("%s: %s must be a Variable, got %s" % (layer, argument, _got(value)))
    if dtypes is not None:
        of_dtype(value.dtype, argument, layer, dtypes)


def variables(values: Any, argument: str, layer: str, dtypes: Sequence[str] | None = None) -> list[Variable]:
    """The list of Variables given as one Variable, a list or a tuple; TypeError otherwise."""
    of_type(values, argument, layer, (Variable, list, tuple))
    values = list(values) if isinstance(values, (list, tuple)) else [values]
    for i, value in enumerate(values):
        variable(value, "%s[%d]" % (argument, i), layer, dtypes)
    return values


@functools.lru_cache(maxsize=None)
def _kernels(op: str) -> tuple[str, ...]:
    return tuple(_core.op_info(op)["dtypes"])


def of_kernels(op: str) -> tuple[str, ...]:
    """The names of the dtypes that ``op`` has kernels for; with ``FLAGS_fluid_exact`` float16 as well, which a program
    may name in Fluid although it runs only elsewhere."""
    dtypes = _kernels(op)
    return ("float16",) + dtypes if "float32" in dtypes and exact_fluid() else dtypes


def operand(value: Any, argument: str, layer: str, op: str | None = None) -> None:
    """TypeError unless ``value`` is a Variable of a dtype that ``op`` (``layer`` by default) has a kernel for; any
    dtype for an op whose kernels do not look at it."""
    known = _kernels(op or layer)
    if known and isinstance(value, Variable) and dtype_name(value.dtype) in known:
        return
    variable(value, argument, layer, of_kernels(op or layer) if known else None)


def operands(values: Any, argument: str, layer: str, op: str | None = None) -> list[Variable]:
    """The list of Variables given as one or several, each as for :func:`operand`."""
    values = variables(values, argument, layer)
    for i, value in enumerate(values):
        operand(value, "%s[%d]" % (argument, i), layer, op)
    return values


def one_of(value: Any, argument: str, layer: str, choices: Sequence[Any]) -> None:
    """ValueError unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise InvalidValue("%s: %s must be one of %s, got %r"
                           % (layer, argument, ", ".join(repr(c) for c in choices), value))


def is_bool(value: Any, argument: str, layer: str, error: Any = InvalidValue) -> None:
    """ValueError (or ``error``) unless ``value`` is True or False."""
    if not isinstance(value, bool):
        raise error("%s: %s must be True or False, got %r" % (layer, argument, value))


def ints(value: Any, count: int, argument: str, layer: str) -> list[int]:
    """``value`` as a list of ``count`` ints: one int is repeated. ValueError otherwise."""
    if isinstance(value, int) and not isinstance(value, bool):
        return [value] * count
    if not isinstance(value, (list, tuple)):
        raise InvalidValue("%s: %s must be an int or a list of %d ints, got %r" % (layer, argument, count, value))
    if len(value) != count or not all(isinstance(v, int) for v in value):
        raise InvalidValue("%s: %s must be an int or a list of %d ints, got %r" % (layer, argument, count, value))
    return list(value)


def one_op(op: str, inputs: dict[str, Any], attrs: dict[str, Any] | None = None, dtype: DType = None,
           layer: str | None = None, name: str | None = None, act: str | None = None, out: str = "Out",
           to: Variable | None = None, stop_gradient: bool = False) -> Variable:
    """Appends one op with one result.

    Args:
        op (str): type of the op.
        inputs (dict): slot -> Variable or list; None: not given.
        attrs (dict, optional): its attributes; those that are None keep the default of the op.
        dtype: of the result; of the first input by default.
        layer (str): prefix of the output's name; ``op`` by default.
        name (str, optional): given by the user instead of an automatic one.
        act (str, optional): activation of the result.
        out (str): output slot.
        to (Variable, optional): write the result there.
        stop_gradient (bool): a result made here has no gradient.

    Returns:
        Variable: the result.
    """
    helper = LayerHelper(layer or op, name=name, act=act)
    inputs = {slot: value for slot, value in inputs.items() if value is not None}
    if to is not None:
        variable(to, "the output", layer or op)
    else:
        if dtype is None:
            first = next(iter(inputs.values()), None)
            if first is None:
                raise InvalidType("%s: the input must be a Variable, got None" % (layer or op))
            dtype = (first[0] if isinstance(first, (list, tuple)) else first).dtype
        to = helper.create_variable_for_type_inference(dtype, stop_gradient=stop_gradient)
    helper.append_op(type=op, inputs=inputs, outputs={out: [to]},
                     attrs={key: value for key, value in (attrs or {}).items() if value is not None})
    return helper.append_activation(to) if act is not None else to


def several(op: str, inputs: dict[str, Any], attrs: dict[str, Any], outs: dict[str, DType], layer: str | None = None,
            name: str | None = None, stop_gradient: bool = False) -> tuple[Variable, ...]:
    """Appends one op with several results; ``outs`` maps its output slots to their dtypes. As :func:`one_op`."""
    helper = LayerHelper(layer or op, name=name)
    made = {slot: helper.create_variable_for_type_inference(dtype, stop_gradient=stop_gradient)
            for slot, dtype in outs.items()}
    helper.append_op(type=op, inputs={slot: value for slot, value in inputs.items() if value is not None},
                     outputs={slot: [value] for slot, value in made.items()},
                     attrs={key: value for key, value in attrs.items() if value is not None})
    return tuple(made.values())


def reduced(op: str, input: Variable, dim: int | Sequence[int] | None, keep_dim: bool, name: str | None) -> Variable:
    """A sum, mean ... over the axes ``dim``, all of them when there are none."""
    operand(input, "input", op)
    axes = [dim] if isinstance(dim, int) else list(dim) if isinstance(dim, (list, tuple)) else dim
    if axes is not None and not (isinstance(axes, list) and all(isinstance(a, int) for a in axes)):
        raise InvalidType("%s: dim must be an int or a list of ints, got %r" % (op, dim))
    return one_op(op, {"X": input}, {"dim": axes or [0], "keep_dim": bool(keep_dim), "reduce_all": not axes}, name=name)
