"""Activations without trainable parameters.

Written by tools/generate_layers.py from the schemas of the operators.
"""
from __future__ import annotations

from ..explained import explain
from ..framework import Variable
from . import check
from .check import one_op

__all__ = [
    "sigmoid", "logsigmoid", "tanh", "tanh_shrink", "softplus", "softsign", "relu", "gelu", "relu6", "leaky_relu",
    "elu", "selu", "hard_sigmoid", "hard_swish", "stanh", "brelu", "soft_relu", "softshrink", "hard_shrink",
    "thresholded_relu",
]


def sigmoid(x: Variable, name: str | None = None) -> Variable:
    """Logistic function of each element: out = 1 / (1 + exp(-x)).

    Args:
        x (Variable): any shape, float32 or float64.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.sigmoid(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "sigmoid")
    return one_op("sigmoid", {"X": x}, name=name)


def logsigmoid(x: Variable, name: str | None = None) -> Variable:
    """Logarithm of the sigmoid of each element: out = ln(1 / (1 + e^-x)).

    Args:
        x (Variable): any shape, float32 or float64.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.logsigmoid(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "logsigmoid")
    return one_op("logsigmoid", {"X": x}, name=name)


def tanh(x: Variable, name: str | None = None) -> Variable:
    """Hyperbolic tangent of each element: out = tanh(x).

    Args:
        x (Variable): any shape, float32 or float64.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.tanh(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "tanh")
    return one_op("tanh", {"X": x}, name=name)


def tanh_shrink(x: Variable, name: str | None = None) -> Variable:
    """Each element minus its hyperbolic tangent: out = x - tanh(x).

    Args:
        x (Variable): any shape, float32 or float64.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.tanh_shrink(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "tanh_shrink")
    return one_op("tanh_shrink", {"X": x}, name=name)


def softplus(x: Variable, name: str | None = None) -> Variable:
    """Smooth approximation of the rectified linear unit: out = ln(1 + e^x).

    Dugas et al., NIPS 2000.

    Args:
        x (Variable): any shape, float32 or float64.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.softplus(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "softplus")
    return one_op("softplus", {"X": x}, name=name)


def softsign(x: Variable, name: str | None = None) -> Variable:
    """Softsign of each element: out = x / (1 + |x|).

    Glorot & Bengio, AISTATS 2010.

    Args:
        x (Variable): any shape, float32 or float64.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.softsign(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "softsign")
    return one_op("softsign", {"X": x}, name=name)


def relu(x: Variable, name: str | None = None) -> Variable:
    """Rectified linear unit: out = max(x, 0), elementwise.

    Nair & Hinton, Rectified linear units improve restricted Boltzmann machines, ICML 2010.

    Args:
        x (Variable): any shape, float32 or float64.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.relu(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "relu")
    return one_op("relu", {"X": x}, name=name)


def gelu(x: Variable, approximate: bool = False) -> Variable:
    """Gaussian error linear unit: out = x P(Z <= x), elementwise, for a standard normal variable Z.

    Hendrycks & Gimpel, Gaussian error linear units, arXiv:1606.08415.

    Args:
        x (Variable): any shape, float32 or float64.
        approximate (bool): approximates the normal distribution function with tanh. Default False.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.gelu(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "gelu")
    return one_op("gelu", {"X": x}, {"approximate": approximate})


def relu6(x: Variable, threshold: float = 6.0, name: str | None = None) -> Variable:
    """Rectified linear unit with an upper bound: out = min(max(x, 0), threshold).

    Krizhevsky, Convolutional deep belief networks, 2010.

    Args:
        x (Variable): any shape, float32 or float64.
        threshold (float): upper bound of the result. Default 6.0.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.relu6(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "relu6")
    return one_op("relu6", {"X": x}, {"threshold": threshold}, name=name)


def leaky_relu(x: Variable, alpha: float = 0.02, name: str | None = None) -> Variable:
    """Leaky rectified linear unit: out = max(x, alpha x).

    Maas et al., ICML 2013.

    Args:
        x (Variable): any shape, float32 or float64.
        alpha (float): slope for negative x; above 1, for positive x. Default 0.02.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.leaky_relu(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "leaky_relu")
    return one_op("leaky_relu", {"X": x}, {"alpha": alpha}, name=name)


def elu(x: Variable, alpha: float = 1.0, name: str | None = None) -> Variable:
    """Exponential linear unit: out = max(x, 0) + min(alpha (e^x - 1), 0).

    Clevert et al., arXiv:1511.07289.

    Args:
        x (Variable): any shape, float32 or float64.
        alpha (float): scale of the negative part, which tends to -alpha. Default 1.0.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.elu(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "elu")
    return one_op("elu", {"X": x}, {"alpha": alpha}, name=name)


def selu(x: Variable, scale: float | None = None, alpha: float | None = None,
         name: str | None = None) -> Variable:
    """Scaled exponential linear unit: out = scale x where x > 0, scale alpha (e^x - 1) elsewhere.

    Klambauer et al., arXiv:1706.02515.

    Args:
        x (Variable): any shape, float32 or float64.
        scale (float, optional): factor for the result. Default 1.050701.
        alpha (float, optional): factor for e^x - 1. Default 1.673263.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.selu(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "selu")
    return one_op("selu", {"X": x}, {"scale": scale, "alpha": alpha}, name=name)


def hard_sigmoid(x: Variable, slope: float = 0.2, offset: float = 0.5, name: str | None = None) -> Variable:
    """Piecewise linear approximation of the sigmoid: out = min(max(slope x + offset, 0), 1).

    Gulcehre et al., arXiv:1603.00391.

    Args:
        x (Variable): any shape, float32 or float64.
        slope (float): slope of the linear part. Default 0.2.
        offset (float): offset of the linear part. Default 0.5.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.hard_sigmoid(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "hard_sigmoid")
    return one_op("hard_sigmoid", {"X": x}, {"slope": slope, "offset": offset}, name=name)


def hard_swish(x: Variable, threshold: float = 6.0, scale: float = 6.0, offset: float = 3.0,
               name: str | None = None) -> Variable:
    """Piecewise approximation of swish: out = x min(max(x + offset, 0), threshold) / scale.

    Howard et al., arXiv:1905.02244.

    Args:
        x (Variable): any shape, float32 or float64.
        threshold (float): upper bound of x + offset. Default 6.0.
        scale (float): divisor of the result. Default 6.0.
        offset (float): number that is added to x. Default 3.0.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.hard_swish(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "hard_swish")
    return one_op("hard_swish", {"X": x}, {"threshold": threshold, "scale": scale, "offset": offset}, name=name)


def stanh(x: Variable, scale_a: float = 0.67, scale_b: float = 1.7159, name: str | None = None) -> Variable:
    """Scaled hyperbolic tangent: out = scale_b tanh(scale_a x).

    LeCun et al., Efficient BackProp, 1998.

    Args:
        x (Variable): any shape, float32 or float64.
        scale_a (float): factor for x. Default 0.67.
        scale_b (float): factor for the result. Default 1.7159.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.stanh(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "stanh")
    return one_op("stanh", {"X": x}, {"scale_a": scale_a, "scale_b": scale_b}, name=name)


def brelu(x: Variable, t_min: float = 0.0, t_max: float = 24.0, name: str | None = None) -> Variable:
    """Clips each element to [t_min, t_max]: out = min(max(x, t_min), t_max).

    Args:
        x (Variable): any shape, float32 or float64.
        t_min (float): lower bound of the result. Default 0.0.
        t_max (float): upper bound of the result. Default 24.0.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.brelu(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "brelu")
    return one_op("brelu", {"X": x}, {"t_min": t_min, "t_max": t_max}, name=name)


def soft_relu(x: Variable, threshold: float = 40.0, name: str | None = None) -> Variable:
    """Softplus of x clipped to [-threshold, threshold]: out = ln(1 + e^min(max(x, -threshold), threshold)).

    Args:
        x (Variable): any shape, float32 or float64.
        threshold (float): bound to which x and -x are clipped. Default 40.0.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.soft_relu(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "soft_relu")
    return one_op("soft_relu", {"X": x}, {"threshold": threshold}, name=name)


def softshrink(x: Variable, alpha: float | None = None) -> Variable:
    """Soft shrinkage: out = x - alpha where x > alpha, plus x + alpha where x < -alpha, 0 elsewhere.

    Args:
        x (Variable): any shape, float32 or float64.
        alpha (float, optional): bound of the interval [-alpha, alpha] in which the result is 0. Default 0.5.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.softshrink(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "softshrink")
    return one_op("softshrink", {"X": x}, {"lambda": alpha})


def hard_shrink(x: Variable, threshold: float | None = None) -> Variable:
    """Hard shrinkage: out = x where x > threshold, plus x where x < -threshold, 0 elsewhere.

    Args:
        x (Variable): any shape, float32 or float64.
        threshold (float, optional): bound of the interval [-threshold, threshold] in which the result is 0. Default
            0.5.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.hard_shrink(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "hard_shrink")
    return one_op("hard_shrink", {"X": x}, {"threshold": threshold})


def thresholded_relu(x: Variable, threshold: float | None = None) -> Variable:
    """Rectified linear unit with a threshold: out = x where x > threshold, 0 elsewhere.

    Konda et al., arXiv:1402.3337.

    Args:
        x (Variable): any shape, float32 or float64.
        threshold (float, optional): largest x for which the result is 0. Default 1.0.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.thresholded_relu(x).shape
        (-1, 4)
    """
    check.operand(x, "x", "thresholded_relu")
    return one_op("thresholded_relu", {"X": x}, {"threshold": threshold})


explain(globals())
