"""Operators of Variables: + - * / ** // %, comparisons, unary minus, astype."""
from .. import unique_name
from ..errors import InvalidType, InvalidValue, Violated
from ..framework import Variable, convert_np_dtype_to_dtype_
from ..framework.dtype import dtype_name

#: Python method -> (op, whether the operands are swapped, (scale, bias) of a number operand or None)
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


def _as_number(method, var, value):
    try:
        number = float(value)
    except (TypeError, ValueError) as e:
        raise (InvalidType if isinstance(e, TypeError) else InvalidValue)(
            "Variable.%s: the other operand is a number or a Variable, got %s" % (method, type(value).__name__)) from None
    return number


def _constant_for(var, number, like_shape):
    """A Variable for a number: [1], or of the shape of ``var`` when it stands on the left."""
    block = _block()
    out = _temporary(block, var.dtype)
    text = str(int(number)) if dtype_name(var.dtype) in _INTEGERS else str(number)
    if not like_shape:
        block.append_op(type="fill_constant", outputs={"Out": [out]},
                        attrs={"dtype": var.dtype, "shape": [1], "value": number, "force_cpu": False})
        out.stop_gradient = True
        return out
    shape = list(var.shape)
    if not shape or -1 not in shape:
        block.append_op(type="fill_constant", outputs={"Out": [out]},
                        attrs={"dtype": var.dtype, "shape": shape, "value": number, "force_cpu": False})
    else:
        batch = shape.index(-1)
        shape[batch] = 1
        block.append_op(type="fill_constant_batch_size_like", inputs={"Input": [var]}, outputs={"Out": [out]},
                        attrs={"dtype": var.dtype, "shape": shape, "value": number, "str_value": text,
                               "input_dim_idx": batch, "output_dim_idx": batch})
    out.stop_gradient = True
    return out


def _cast(var, dtype):
    block = _block()
    out = _temporary(block, dtype)
    block.append_op(type="cast", inputs={"X": [var]}, outputs={"Out": [out]},
                    attrs={"in_dtype": var.dtype, "out_dtype": out.dtype})
    return out


def _binary(method, op, swapped):
    def operator(self, other):
        if not isinstance(other, Variable):
            number = _as_number(method, self, other)
            if method in _SCALED:
                if dtype_name(self.dtype) in _INTEGERS and method not in ("__div__", "__truediv__") \
                        and number != int(number):
                    raise Violated("Variable.%s: %s has integer elements, the number %s is none"
                                   % (method, self.name, number))
                if not (method in ("__div__", "__truediv__") and dtype_name(self.dtype) in _INTEGERS):
                    return _scaled(self, *_SCALED[method](number))
            other = _constant_for(self, number, swapped)
        elif other.dtype != self.dtype:
            other = _cast(other, self.dtype)
        x, y = (other, self) if swapped else (self, other)
        block = _block()
        out = _temporary(block, "bool" if op in _COMPARISONS else x.dtype)
        axis = -1
        if x.shape and y.shape and x.shape[0] == -1:
            axis = 0
        block.append_op(type=op, inputs={"X": [x], "Y": [y]}, outputs={"Out": out}, attrs={"axis": axis})
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
    Variable.__hash__ = object.__hash__  # __eq__ appends an op; Variables stay usable as keys
