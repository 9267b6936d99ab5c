"""Checks that layers make of their arguments, and the shortest way from arguments to an op.

A wrong class or dtype raises TypeError, a wrong value ValueError, both naming layer, argument, what is taken and what
was given. Shapes are checked by the shape function of the op itself.
"""
from ..errors import InvalidType, InvalidValue
from ..framework import Variable, get_flags
from ..framework.dtype import dtype_name
from ..layer_helper import LayerHelper

FLOATS = ("float16", "float32", "float64")
WIDE_FLOATS = ("float32", "float64")
NUMBERS = ("float16", "float32", "float64", "int32", "int64")
WIDE_NUMBERS = ("float32", "float64", "int32", "int64")
INTS = ("int32", "int64")


def exact_fluid():
    """Whether the flag asks for the behaviour of Fluid 1.8.5 also where another one is better."""
    return get_flags(["FLAGS_fluid_exact"])["FLAGS_fluid_exact"] == "1.8.5"


def of_type(value, argument, layer, types):
    """TypeError unless ``value`` is an instance of ``types`` (a class or a tuple of classes)."""
    if isinstance(value, types):
        return
    classes = types if isinstance(types, tuple) else (types,)
    raise InvalidType("%s: %s is %s, got %s" % (
        layer, argument, " or ".join("None" if t is type(None) else t.__name__ for t in classes), type(value).__name__))


def of_dtype(dtype, argument, layer, dtypes):
    """TypeError unless ``dtype`` (a VarType) is one of the names ``dtypes``."""
    name = dtype_name(dtype)
    if name not in dtypes:
        raise InvalidType("%s: the dtype of %s is one of %s, got %s" % (layer, argument, ", ".join(dtypes), name))


def variable(value, argument, layer, dtypes=None):
    """TypeError unless ``value`` is a Variable, of one of ``dtypes`` where those are given."""
    if not isinstance(value, Variable):
        raise InvalidType("%s: %s is a Variable, got %s" % (layer, argument, type(value).__name__))
    if dtypes is not None:
        of_dtype(value.dtype, argument, layer, dtypes)


def variables(values, argument, layer, dtypes=None):
    """The list of Variables given as one Variable, a list or a tuple; TypeError otherwise."""
    of_type(values, argument, layer, (Variable, list, tuple))
    values = list(values) if isinstance(values, (list, tuple)) else [values]
    for i, value in enumerate(values):
        variable(value, "%s[%d]" % (argument, i), layer, dtypes)
    return values


def one_of(value, argument, layer, choices):
    """ValueError unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise InvalidValue("%s: %s is one of %s, got %r"
                           % (layer, argument, ", ".join(repr(c) for c in choices), value))


def is_bool(value, argument, layer, error=InvalidValue):
    """ValueError (or ``error``) unless ``value`` is True or False."""
    if not isinstance(value, bool):
        raise error("%s: %s is True or False, got %r" % (layer, argument, value))


def ints(value, count, argument, layer):
    """``value`` as a list of ``count`` ints: one int is repeated. ValueError otherwise."""
    if isinstance(value, int) and not isinstance(value, bool):
        return [value] * count
    if not isinstance(value, (list, tuple)):
        raise InvalidValue("%s: %s is an int or a list of %d ints, got %r" % (layer, argument, count, value))
    if len(value) != count or not all(isinstance(v, int) for v in value):
        raise InvalidValue("%s: %s is an int or a list of %d ints, got %r" % (layer, argument, count, value))
    return list(value)


def one_op(op, inputs, attrs=None, dtype=None, layer=None, name=None, act=None, out="Out", to=None,
           stop_gradient=False):
    """Appends one op with one result.

    Args:
        op (str): type of the op.
        inputs (dict): slot -> Variable or list.
        attrs (dict, optional): its attributes.
        dtype: of the result; of the first input by default.
        layer (str): stem of the result's name; ``op`` by default.
        name (str, optional): given by the user instead of an automatic one.
        act (str, optional): activation of the result.
        out (str): output slot.
        to (Variable, optional): write the result there.
        stop_gradient (bool): the result has no gradient.

    Returns:
        Variable: the result.
    """
    helper = LayerHelper(layer or op, name=name, act=act)
    if to is None:
        if dtype is None:
            first = next(iter(inputs.values()))
            dtype = (first[0] if isinstance(first, (list, tuple)) else first).dtype
        to = helper.create_variable_for_type_inference(dtype, stop_gradient=stop_gradient)
    helper.append_op(type=op, inputs=inputs, outputs={out: [to]}, attrs=attrs or {})
    return helper.append_activation(to) if act is not None else to
