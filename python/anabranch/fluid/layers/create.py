"""Variables, parameters and counters that a program keeps."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy

from .. import unique_name
from ..explained import explain
from ..framework import convert_np_dtype_to_dtype_
from ..framework.variable import extents
from ..initializer import Constant, Initializer
from ..layer_helper import LayerHelper
from ..param_attr import ParamAttr
from . import check

if TYPE_CHECKING:
    from ..framework import Parameter, Variable
    from ..hints import Attr, DType

__all__ = [
    "create_tensor", "create_parameter", "create_global_var", "autoincreased_step_counter",
]


def create_tensor(dtype: DType, name: str | None = None, persistable: bool = False) -> Variable:
    """Creates an empty Variable that an op can write.

    Args:
        dtype (str): dtype of the elements.
        name (str, optional): name of the Variable.
        persistable (bool): the Variable keeps its value after a run. Default False.

    Returns:
        Variable: a Variable without a shape until an op writes it.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.create_tensor("float32").name
        'create_tensor_0'
    """
    dtype = convert_np_dtype_to_dtype_(dtype)
    helper = LayerHelper("create_tensor", name=name)
    return helper.create_variable(name=helper.name, dtype=dtype, persistable=persistable)


def create_parameter(shape: Sequence[int], dtype: DType, name: str | None = None, attr: Attr = None,
                     is_bias: bool = False, default_initializer: Initializer | None = None) -> Parameter:
    """Creates a parameter, for example for a custom layer.

    Args:
        shape (list|tuple): extents, each positive.
        dtype (str): dtype of the elements.
        name (str, optional): name of the Variable.
        attr (ParamAttr, optional): further attributes.
        is_bias (bool): the initial value is 0 instead of Xavier's random numbers. Default False.
        default_initializer (Initializer, optional): initializer to use if ``attr`` has none.

    Returns:
        Parameter: the parameter. The startup program sets its initial value.

    Raises:
        TypeError: ``shape`` is not a list or tuple, ``attr`` not a ParamAttr, or ``default_initializer`` not an
            Initializer.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.create_parameter([3, 2], "float32", name="w").shape
        (3, 2)
    """
    layer = "create_parameter"
    check.of_type(shape, "shape", layer, (list, tuple, numpy.ndarray))
    check.of_type(attr, "attr", layer, (type(None), ParamAttr))
    check.of_type(default_initializer, "default_initializer", layer, (type(None), Initializer))
    helper = LayerHelper("create_parameter", name=name)
    if attr is None:
        attr = ParamAttr(name=name)
    return helper.create_parameter(attr, extents(shape, name or layer), convert_np_dtype_to_dtype_(dtype), is_bias,
                                   default_initializer)


def create_global_var(shape: Sequence[int], value: float | int, dtype: DType, persistable: bool = False,
                      force_cpu: bool = False, name: str | None = None) -> Variable:
    """Creates a Variable in the global block. The startup program fills it with one value.

    Args:
        shape (list|tuple): extents.
        value (float|int): initial value of all elements.
        dtype (str): dtype of the elements.
        persistable (bool): the Variable keeps its value after a run. Default False.
        force_cpu (bool): has no effect on the CPU. Default False.
        name (str, optional): name of the Variable.

    Returns:
        Variable: the Variable, which has no gradient.

    Raises:
        TypeError: ``shape`` is not a list or tuple.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.create_global_var([1], 0.0, "float32", persistable=True, name="count").name
        'count'
    """
    check.of_type(shape, "shape", "create_global_var", (list, tuple, numpy.ndarray))
    helper = LayerHelper("global_var", name=name)
    var = helper.create_global_variable(dtype=dtype, shape=extents(shape, name or "create_global_var"),
                                        persistable=persistable, stop_gradient=True,
                                        name=name or unique_name.generate("_generated_var"))
    helper.set_variable_initializer(var, initializer=Constant(value=float(value), force_cpu=force_cpu))
    return var


def autoincreased_step_counter(counter_name: str | None = None, begin: int = 1, step: int = 1) -> Variable:
    """Creates a counter: a persistable int64 Variable that increases in each run of the program.

    Args:
        counter_name (str, optional): name of the counter. Default '@STEP_COUNTER@'. If the counter exists, it is
            reused and not increased a second time.
        begin (int): value in the first run. Default 1.
        step (int): increment per run. Default 1.

    Returns:
        Variable: [1], int64.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.autoincreased_step_counter(begin=0).shape
        (1,)
    """
    helper = LayerHelper("global_step_counter")
    counter, is_new = helper.create_or_get_global_variable(
        name="@STEP_COUNTER@" if counter_name is None else counter_name, dtype="int64", shape=[1], persistable=True)
    if is_new:
        helper.set_variable_initializer(counter, initializer=Constant(value=float(begin - 1), force_cpu=True))
        # first in the block: the schedules and everything else of this run see the new value
        helper.main_program.global_block()._prepend_op(type="increment", inputs={"X": [counter]},
                                                       outputs={"Out": [counter]}, attrs={"step": float(step)})
        counter.stop_gradient = True
    return counter


explain(globals())
