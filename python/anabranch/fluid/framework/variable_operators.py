"""Operators of a Variable: arithmetic, comparisons, astype. Each appends ops to the current block."""
from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Union

import numpy

from .. import unique_name
from ..errors import InvalidArgument, InvalidType, InvalidValue, Violated
from ..user_warnings import warn
from .context import default_programs
from .dtype import VarType, convert_np_dtype_to_dtype_, dtype_name
from .indexing import Indexed

if TYPE_CHECKING:
    from .variable import Variable

    Operand = Union[Variable, float, numpy.ndarray[Any, Any], numpy.generic]

#: Methods whose number operand makes a scale op: number -> (scale, bias).
_SCALED = {
    "__add__": lambda n: (1.0, n),
    "__radd__": lambda n: (1.0, n),
    "__sub__": lambda n: (1.0, -n),
    "__rsub__": lambda n: (-1.0, n),
    "__mul__": lambda n: (n, 0.0),
    "__rmul__": lambda n: (n, 0.0),
    "__truediv__": lambda n: (1.0 / n, 0.0),
}
_NO_VALUE = ("%s has no value while the program is built: fetch it by value, = executor.run(program, feed=..., "
             "fetch_list=[variable])")
_INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
_COMPARISONS = frozenset(["equal", "not_equal", "less_than", "less_equal", "greater_than", "greater_equal"])


class VariableOperators(Indexed):
    """Python's operators on a Variable. The other operand is a Variable or a number."""

    def __add__(self, other: Operand) -> Variable:
        return _binary(self, other, "__add__", "elementwise_add")

    def __radd__(self, other: Operand) -> Variable:
        return _binary(self, other, "__radd__", "elementwise_add")

    def __sub__(self, other: Operand) -> Variable:
        return _binary(self, other, "__sub__", "elementwise_sub")

    def __rsub__(self, other: Operand) -> Variable:
        return _binary(self, other, "__rsub__", "elementwise_sub", swapped=True)

    def __mul__(self, other: Operand) -> Variable:
        return _binary(self, other, "__mul__", "elementwise_mul")

    def __rmul__(self, other: Operand) -> Variable:
        return _binary(self, other, "__rmul__", "elementwise_mul")

    def __truediv__(self, other: Operand) -> Variable:
        return _binary(self, other, "__truediv__", "elementwise_div")

    def __rtruediv__(self, other: Operand) -> Variable:
        return _binary(self, other, "__rtruediv__", "elementwise_div", swapped=True)

    # Python 2 names of the two.
    __div__ = __truediv__
    __rdiv__ = __rtruediv__

    def __pow__(self, other: Operand) -> Variable:
        return _binary(self, other, "__pow__", "elementwise_pow")

    def __rpow__(self, other: Operand) -> Variable:
        return _binary(self, other, "__rpow__", "elementwise_pow", swapped=True)

    def __floordiv__(self, other: Operand) -> Variable:
        return _binary(self, other, "__floordiv__", "elementwise_floordiv")

    def __mod__(self, other: Operand) -> Variable:
        return _binary(self, other, "__mod__", "elementwise_mod")

    def __eq__(self, other: Operand) -> Variable:  # type: ignore[override]
        return _binary(self, other, "__eq__", "equal")

    def __ne__(self, other: Operand) -> Variable:  # type: ignore[override]
        return _binary(self, other, "__ne__", "not_equal")

    def __lt__(self, other: Operand) -> Variable:
        return _binary(self, other, "__lt__", "less_than")

    def __le__(self, other: Operand) -> Variable:
        return _binary(self, other, "__le__", "less_equal")

    def __gt__(self, other: Operand) -> Variable:
        return _binary(self, other, "__gt__", "greater_than")

    def __ge__(self, other: Operand) -> Variable:
        return _binary(self, other, "__ge__", "greater_equal")

    __hash__ = object.__hash__  # __eq__ appends an op; Variables stay usable as keys

    def __neg__(self) -> Variable:
        return _scaled(self, -1.0, 0.0)

    def __bool__(self) -> bool:
        """True, with a warning if the Variable is boolean: ``if`` decides while the program is built, when the Variable
        has no value."""
        if self.dtype == VarType.BOOL:  # type: ignore[attr-defined]
            warnings.warn("%s has no value while the program is built, so `if`, `while`, `and` and `not` take it for "
                          "True: let the program decide with fluid.layers.cond, While or logical_and"
                          % self.name, stacklevel=2)  # type: ignore[attr-defined]
        return True

    def __float__(self) -> float:
        """Raises TypeError: a Variable has no value while the program is built."""
        raise InvalidType(_NO_VALUE % self.name)  # type: ignore[attr-defined]

    def __int__(self) -> int:
        """Raises TypeError: a Variable has no value while the program is built."""
        raise InvalidType(_NO_VALUE % self.name)  # type: ignore[attr-defined]

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        """An array that holds the Variable itself, with a warning, as NumPy cannot compute with it."""
        warnings.warn(_NO_VALUE % self.name, stacklevel=2)  # type: ignore[attr-defined]
        holder = numpy.empty((), dtype=object)
        holder[()] = self
        return holder

    def __iter__(self) -> Any:
        """Raises: a Variable is not a sequence of values; use ``layers.unstack`` to get its slices."""
        raise InvalidArgument("%s cannot be iterated: it has no values while the program is built. Use layers.unstack"
                              % self.name)  # type: ignore[attr-defined]

    def astype(self, dtype: Any) -> Variable:
        """Casts the Variable to a different element type.

        Args:
            dtype (str): the new element type.

        Returns:
            Variable: the cast Variable, of the same shape.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> fluid.data("x", [None, 4], "float32").astype("int64").shape
            (-1, 4)
        """
        return _cast(self, convert_np_dtype_to_dtype_(dtype))


def _block():
    return default_programs()[0].current_block()


def _temporary(block, dtype):
    return block.create_var(name=unique_name.generate_with_ignorable_key("tmp"), dtype=dtype, persistable=False)


def _scaled(var, scale, bias):
    block = _block()
    out = _temporary(block, var.dtype)
    block.append_op(type="scale", inputs={"X": [var]}, outputs={"Out": [out]},
                    attrs={"scale": scale, "bias": bias})
    return out


def _as_number(method, value):
    try:
        return float(value)
    except (TypeError, ValueError) as e:
        raise (InvalidType if isinstance(e, TypeError) else InvalidValue)(
            "Variable.%s: the other operand must be a number or a Variable, got %s"
            % (method, type(value).__name__)) from None


def _constant_for(var, number, like_var):
    """A Variable for a number: [1], or of the shape of ``var`` if the number is the left operand."""
    block = _block()
    out = _temporary(block, var.dtype)
    attrs = {"dtype": var.dtype, "value": number, "shape": list(var.shape) if like_var else [1]}
    if dtype_name(var.dtype) in _INTEGERS + ("float64",) and float(numpy.float32(number)) != number:
        # The attribute is a float32; text keeps the digits that it would lose of a large integer or a double.
        attrs["str_value"] = str(int(number)) if dtype_name(var.dtype) in _INTEGERS else repr(number)
    if like_var and -1 in attrs["shape"]:
        batch = attrs["shape"].index(-1)
        attrs.update(input_dim_idx=batch, output_dim_idx=batch)
        block.append_op(type="fill_constant_batch_size_like", inputs={"Input": [var]}, outputs={"Out": [out]},
                        attrs=attrs)
    else:
        block.append_op(type="fill_constant", outputs={"Out": [out]}, attrs=attrs)
    out.stop_gradient = True
    return out


def _cast(var, dtype):
    block = _block()
    out = _temporary(block, dtype)
    block.append_op(type="cast", inputs={"X": [var]}, outputs={"Out": [out]},
                    attrs={"in_dtype": var.dtype, "out_dtype": out.dtype})
    return out


def warn_of_pairs(op: str, x: Any, y: Any) -> None:
    """Warns if one of two operands whose last axes are aligned is a column of rows [-1, 1] and the other one a vector
    [-1]: the result has a value for each pair of rows, and a mean of it hides that."""
    if {tuple(x.shape), tuple(y.shape)} == {(-1, 1), (-1,)}:
        warn("%s: %s has the shape %s and %s has %s, so that the result has a value for each pair of rows: give both "
             "the same shape, such as [None, 1]" % (op, x.name, list(x.shape), y.name, list(y.shape)))


def _binary(self, other, method, op, swapped=False):
    if not isinstance(other, VariableOperators):
        scaled, divides = _SCALED.get(method), method == "__truediv__"
        number = _as_number(method, other)
        integers = dtype_name(self.dtype) in _INTEGERS
        if scaled and integers and not divides and number != int(number):
            raise Violated("Variable.%s: the number must be whole for the integer Variable %s, got %s"
                           % (method, self.name, number))
        if scaled and isinstance(other, (int, float)) and not (divides and integers):
            return _scaled(self, *scaled(number))
        other = _constant_for(self, number, swapped)
    elif other.dtype != self.dtype:
        other = _cast(other, self.dtype)
    # Batch axes are aligned at the front, all others at the end.
    batches = other.shape and other.shape[0] == -1 and len(self.shape) >= len(other.shape)
    x, y = (other, self) if swapped else (self, other)
    if not batches:
        warn_of_pairs(op, x, y)
    block = _block()
    out = _temporary(block, "bool" if op in _COMPARISONS else x.dtype)
    block.append_op(type=op, inputs={"X": [x], "Y": [y]}, outputs={"Out": out}, attrs={"axis": 0 if batches else -1})
    return out
