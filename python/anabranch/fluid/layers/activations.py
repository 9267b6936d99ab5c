"""Activations with trainable parameters, and activations that consist of more than one operator."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

from ..errors import Violated
from ..explained import explain
from ..initializer import Constant
from ..layer_helper import LayerHelper
from . import check
from .check import one_op
from .copies import assign

if TYPE_CHECKING:
    from ..framework import Variable
    from ..hints import Attr

__all__ = [
    "sign", "swish", "mish", "prelu", "maxout",
]


def sign(x: Any) -> Variable:
    """out = -1, 0 or 1: the sign of each element.

    Args:
        x (Variable|numpy.ndarray): [...], float32 or float64.

    Returns:
        Variable: shape and dtype of ``x``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.sign(fluid.data("x", [None, 4], "float32")).shape
        (-1, 4)
    """
    if isinstance(x, numpy.ndarray):
        x = assign(x)
    check.operand(x, "x", "sign")
    return one_op("sign", {"X": x})


def swish(x: Variable, beta: float = 1.0, name: str | None = None) -> Variable:
    """out = x / (1 + exp(-beta * x)).

    Ramachandran, Zoph and Le, Searching for activation functions, arXiv:1710.05941.

    Args:
        x (Variable): [...], float32 or float64.
        beta (float): steepness. Default 1.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: shape and dtype of ``x``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.swish(fluid.data("x", [None, 4], "float32")).shape
        (-1, 4)
    """
    # 1.8.5 ignores beta
    check.operand(x, "x", "swish")
    return one_op("swish", {"X": x}, {"beta": 1.0 if check.exact_fluid() else beta}, name=name)


def mish(x: Variable, threshold: float = 20, name: str | None = None) -> Variable:
    """out = x * tanh(softplus(x)).

    Misra, Mish: a self regularized non-monotonic activation function, arXiv:1908.08681.

    Args:
        x (Variable): [...], float32 or float64.
        threshold (float): positive number; it has no effect, because the logarithm is exact for every x. Default 20.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: shape and dtype of ``x``.

    Raises:
        AssertionError: ``threshold`` is not positive.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.mish(fluid.data("x", [None, 4], "float32")).shape
        (-1, 4)
    """
    if not threshold > 0:
        raise Violated("mish: threshold must be positive, got %s" % threshold)
    check.operand(x, "x", "mish")
    return one_op("mish", {"X": x}, {"threshold": float(threshold)}, name=name)


def prelu(x: Variable, mode: str, param_attr: Attr = None, name: str | None = None) -> Variable:
    """out = max(0, x) + alpha * min(0, x), where alpha is a parameter.

    He, Zhang, Ren and Sun, Delving deep into rectifiers, ICCV 2015.

    Args:
        x (Variable): [N, C, ...], float32 or float64.
        mode (str): "all": a single alpha; "channel": one alpha for each channel; "element": one alpha for each element
            of [C, ...].
        param_attr (ParamAttr, optional): attributes of alpha, which starts at 0.25.
        name (str, optional): prefix of the generated names.

    Returns:
        Variable: shape and dtype of ``x``.

    Raises:
        ValueError: ``mode`` is unknown.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.prelu(fluid.data("x", [None, 3, 8, 8], "float32"), mode="channel").shape
        (-1, 3, 8, 8)
    """
    check.variable(x, "x", "prelu")
    helper = LayerHelper("prelu", param_attr=param_attr, name=name)
    check.one_of(mode, "mode", "prelu", ("all", "channel", "element"))
    shape = {"all": [1], "channel": [1, x.shape[1], 1, 1], "element": [1] + list(x.shape[1:])}[mode]
    alpha = helper.create_parameter(attr=helper.param_attr, shape=shape, dtype="float32", is_bias=False,
                                    default_initializer=Constant(0.25))
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op(type="prelu", inputs={"X": x, "Alpha": alpha}, attrs={"mode": mode}, outputs={"Out": out})
    return out


def maxout(x: Variable, groups: int, name: str | None = None, axis: int = 1) -> Variable:
    """The maximum over ``groups`` adjacent channels.

    Goodfellow and others, Maxout networks, ICML 2013.

    Args:
        x (Variable): [N, C, H, W], or [N, H, W, C] with axis -1 or 3; float32 or float64.
        groups (int): a divisor of C.
        name (str, optional): prefix of the output's name.
        axis (int): axis of the channels: 1, -1 or 3. Default 1.

    Returns:
        Variable: like ``x``, with C / groups channels.

    Raises:
        ValueError: ``axis`` is not 1, -1 or 3.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.maxout(fluid.data("x", [None, 6, 8, 8], "float32"), groups=2).shape
        (-1, 3, 8, 8)
    """
    check.operand(x, "x", "maxout")
    check.one_of(axis, "axis", "maxout", (1, -1, 3))
    return one_op("maxout", {"X": x}, {"groups": groups, "axis": 3 if axis == -1 else axis}, name=name)


explain(globals())
