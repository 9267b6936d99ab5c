"""Variants of an argument of a layer: Variables of other dtypes, and values of other classes.

Runs on Python 3.7 and later.
"""
import collections

import numpy

DTYPES = "bool int8 uint8 int16 int32 int64 float16 float32 float64".split()


def held(fluid, value):
    """The Variables in a value, a list or tuple of them, or a dict of them."""
    if isinstance(value, fluid.framework.Variable):
        return [value]
    if isinstance(value, (list, tuple)):
        return [v for one in value for v in held(fluid, one)]
    return held(fluid, list(value.values())) if isinstance(value, dict) else []


def _is_tensor(variable):
    return str(variable.type).endswith("LOD_TENSOR")


def retyped(fluid, value, dtype, only=None):
    """The value with new Variables of another dtype in place of its Variables, or of those of dtype ``only``."""
    if isinstance(value, fluid.framework.Variable):
        if only is not None and value.dtype != only:
            return value
        return fluid.default_main_program().current_block().create_var(
            name=fluid.unique_name.generate("probe"), shape=value.shape, dtype=dtype, lod_level=value.lod_level,
            stop_gradient=value.stop_gradient)
    if isinstance(value, (list, tuple)):
        return type(value)([retyped(fluid, one, dtype, only) for one in value])
    return {k: retyped(fluid, v, dtype, only) for k, v in value.items()} if isinstance(value, dict) else value


def _others(fluid):
    """Name -> value of another class."""
    tensor = fluid.LoDTensor()
    tensor.set(numpy.ones([2, 3], "float32"), fluid.CPUPlace())
    return collections.OrderedDict([
        ("ndarray", numpy.ones([2, 3], "float32")), ("LoDTensor", tensor), ("list", [1.5, 2.5]), ("None", None),
        ("int", 3), ("float", 1.5), ("str", "s")])


def variants(fluid, name, value):
    """[(name of the variant, function that makes the value)] of one argument."""
    inside = held(fluid, value)
    made = []
    if inside and all(map(_is_tensor, inside)):
        made += [(d, lambda d=d: retyped(fluid, value, d)) for d in DTYPES]
    if not inside and name.endswith("dtype"):
        made += [(d, lambda d=d: d) for d in DTYPES + ["nothing"]]
    made += [(k, lambda v=v: v) for k, v in _others(fluid).items()]
    if isinstance(value, (list, tuple)):
        made.append(("tuple" if isinstance(value, list) else "as list",
                     lambda: tuple(value) if isinstance(value, list) else list(value)))
    if isinstance(value, (list, tuple)) and inside:
        made += [("first " + k, lambda v=v: type(value)([v] + list(value[1:])))
                 for k, v in _others(fluid).items() if k in ("ndarray", "int", "None")]
        made.append(("alone", lambda: inside[0]))
    elif inside:
        made.append(("listed", lambda: [value]))
    else:
        made.append(("Variable", lambda: fluid.default_main_program().current_block().create_var(
            name=fluid.unique_name.generate("probe"), shape=[1], dtype="float32")))
    return made


def joint(fluid, arguments):
    """Variants of all arguments at once, each a function of the arguments: see ``*``."""
    inside = held(fluid, list(arguments.values()))
    same = [v for v in inside if v.dtype == inside[0].dtype]
    if len(same) < 2 or not all(map(_is_tensor, inside)):
        return []
    return [(d, lambda d=d: {k: retyped(fluid, v, d, same[0].dtype) for k, v in arguments.items()}) for d in DTYPES]
