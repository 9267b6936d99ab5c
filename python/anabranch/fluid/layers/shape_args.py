"""Shapes, axes and sizes that are partly known only at run time.

Most ops accept a list as an attribute, as a single int32 Variable, or as a list of Variables of shape [1], in which
known entries become constants.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import InvalidType
from ..framework import Variable
from ..layer_helper import LayerHelper

if TYPE_CHECKING:
    from ..hints import DType, Shape


def has_variable(values: Any) -> Any:
    """Returns whether a list or tuple contains a Variable."""
    return any(isinstance(v, Variable) for v in values)


def as_variables(values: Any, helper: Any, dtype: DType = "int32") -> Any:
    """Converts a list of ints and Variables to Variables of shape [1]. If ``helper`` is given, it names them."""
    result = []
    for value in values:
        if isinstance(value, Variable):
            value.stop_gradient = True
            result.append(value)
        else:
            if not isinstance(value, int):
                raise InvalidType("%s: an entry must be an int or a Variable, got %s"
                                  % (helper.layer_type if helper else "shape", type(value).__name__))
            constant = LayerHelper("fill_constant")
            out = (helper or constant).create_variable_for_type_inference(dtype)
            constant.append_op(type="fill_constant", outputs={"Out": [out]},
                             attrs={"shape": [1], "dtype": out.dtype, "value": float(value), "str_value": str(value),
                                    "force_cpu": True})
            out.stop_gradient = True
            result.append(out)
    return result


def known(values: Any, unknown: Any = -1) -> Any:
    """Returns the list with Variables replaced by ``unknown``."""
    return [unknown if isinstance(v, Variable) else v for v in values]


def add_shape(shape: Shape, inputs: Any, attrs: Any, dtype: DType = "int32", helper: Any = None) -> None:
    """Passes ``shape`` to an op as the attribute shape or the input ShapeTensor or ShapeTensorList."""
    if isinstance(shape, Variable):
        shape.stop_gradient = True
        inputs["ShapeTensor"] = shape
        return
    attrs["shape"] = known(shape)
    if has_variable(shape):
        inputs["ShapeTensorList"] = as_variables(shape, helper, dtype)
