"""Operators of Variables: + - * / ** // %, comparisons, unary minus, astype."""
import numpy

from .. import unique_name
from ..errors import InvalidType, InvalidValue, Violated
from ..framework import Variable, convert_np_dtype_to_dtype_
from ..framework.dtype import dtype_name
from . import indexing

#: Methods whose number operand makes a scale op: number -> (scale, bias).
_SCALED = {
    "__add__": lambda n: (1.0, n),
    "__radd__": lambda n: (1.0, n),
    "__sub__": lambda n: (1.0, -n),
    "__rsub__": lambda n: (-1.0, n),
    "__mul__": lambda n: (n, 0.0),
    "__rmul__": lambda n: (n, 0.0),
    "__div__": lambda n: (1.0 / n, 0.0),
    "__truediv__": lambda n: (1.0 / n, 0.0),
}
#: Python method, op, whether the operands are swapped.
_METHODS = (
    ("__add__", "elementwise_add", False), ("__radd__", "elementwise_add", False),
    ("__sub__", "elementwise_sub", False), ("__rsub__", "elementwise_sub", True),
    ("__mul__", "elementwise_mul", False), ("__rmul__", "elementwise_mul", False),
    ("__div__", "elementwise_div", False), ("__truediv__", "elementwise_div", False),
    ("__rdiv__", "elementwise_div", True), ("__rtruediv__", "elementwise_div", True),
    ("__pow__", "elementwise_pow", False), ("__rpow__", "elementwise_pow", True),
    ("__floordiv__", "elementwise_floordiv", False), ("__mod__", "elementwise_mod", False),
    ("__eq__", "equal", False), ("__ne__", "not_equal", False), ("__lt__", "less_than", False),
    ("__le__", "less_equal", False), ("__gt__", "greater_than", False), ("__ge__", "greater_equal", False),
)
_INTEGERS = ("uint8", "int8", "int16", "int32", "int64")


def _temporary(block, dtype):
    return block.create_var(name=unique_name.generate_with_ignorable_key("tmp"), dtype=dtype, persistable=False)


def _block():
    from ..framework import default_main_program
    return default_main_program().current_block()


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
            "Variable.%s: the other operand is a number or a Variable, got %s"
            % (method, type(value).__name__)) from None


def _constant_for(var, number, like_var):
    """A Variable for a number: [1], or of the shape of ``var`` where the number stands on the left."""
    block = _block()
    out = _temporary(block, var.dtype)
    attrs = {"dtype": var.dtype, "value": number, "shape": list(var.shape) if like_var else [1]}
    if dtype_name(var.dtype) in _INTEGERS + ("float64",) and float(numpy.float32(number)) != number:
        # the attribute is a float32: text keeps what it would lose of a large integer or a double
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


def _binary(method, op, swapped):
    scaled, divides = _SCALED.get(method), method in ("__div__", "__truediv__")

    def operator(self, other):
        if not isinstance(other, Variable):
            number = _as_number(method, other)
            integers = dtype_name(self.dtype) in _INTEGERS
            if scaled and integers and not divides and number != int(number):
                raise Violated("Variable.%s: %s has integer elements, the number %s is none"
                               % (method, self.name, number))
            if scaled and isinstance(other, (int, float)) and not (divides and integers):
                return _scaled(self, *scaled(number))
            other = _constant_for(self, number, swapped)
        elif other.dtype != self.dtype:
            other = _cast(other, self.dtype)
        # batches are aligned at the front, everything else at the end
        batches = other.shape and other.shape[0] == -1 and len(self.shape) >= len(other.shape)
        x, y = (other, self) if swapped else (self, other)
        block = _block()
        out = _temporary(block, "bool" if op in _COMPARISONS else x.dtype)
        block.append_op(type=op, inputs={"X": [x], "Y": [y]}, outputs={"Out": out},
                        attrs={"axis": 0 if batches else -1})
        return out

    operator.__name__ = method
    operator.__doc__ = "Appends %s; the other operand is a Variable or a number." % op
    return operator


_COMPARISONS = frozenset(["equal", "not_equal", "less_than", "less_equal", "greater_than", "greater_equal"])


def _negate(self):
    """Appends a scale by -1."""
    return _scaled(self, -1.0, 0.0)


def _astype(self, dtype):
    """The Variable with elements of another type.

    Args:
        dtype (str): the new one.

    Returns:
        Variable: shape of this one.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.data("x", [None, 4], "float32").astype("int64").shape
        (-1, 4)
    """
    return _cast(self, convert_np_dtype_to_dtype_(dtype))


def monkey_patch_variable():
    """Gives Variable its operators. Called once when the package is imported."""
    for method, op, swapped in _METHODS:
        setattr(Variable, method, _binary(method, op, swapped))
    Variable.__neg__ = _negate
    Variable.astype = _astype
    Variable.__getitem__ = indexing.getitem
    Variable.__iter__ = indexing.iterate
    Variable.__hash__ = object.__hash__  # __eq__ appends an op; Variables stay usable as keys
