"""Activations and other functions of one tensor, element by element."""
from ..errors import Violated
from . import check
from .check import FLOATS, WIDE_FLOATS, one_op

_ABS_TYPES = FLOATS + ("int32", "int64")

# op type and layer name, formula, dtypes
_TABLE = (
    ("sigmoid", "1 / (1 + exp(-x))", FLOATS),
    ("logsigmoid", "log(1 / (1 + exp(-x)))", FLOATS),
    ("exp", "e ** x", _ABS_TYPES),
    ("tanh", "(exp(x) - exp(-x)) / (exp(x) + exp(-x))", FLOATS),
    ("tanh_shrink", "x - tanh(x)", FLOATS),
    ("sqrt", "the square root of x, x >= 0", FLOATS),
    ("rsqrt", "1 / sqrt(x), x > 0", FLOATS),
    ("abs", "|x|", _ABS_TYPES),
    ("ceil", "the smallest integer that is at least x", FLOATS),
    ("floor", "the largest integer that is at most x", FLOATS),
    ("round", "the integer next to x, halves away from 0", FLOATS),
    ("cos", "cos(x), x in radians", FLOATS),
    ("sin", "sin(x), x in radians", FLOATS),
    ("acos", "arc cosine in radians, x in [-1, 1]", FLOATS),
    ("asin", "arc sine in radians, x in [-1, 1]", FLOATS),
    ("atan", "arc tangent in radians", FLOATS),
    ("reciprocal", "1 / x", FLOATS),
    ("square", "x * x", _ABS_TYPES),
    ("softplus", "log(1 + exp(x))", FLOATS),
    ("softsign", "x / (1 + |x|)", FLOATS),
    ("relu", "max(x, 0)", FLOATS),
    ("log", "the natural logarithm of x, x > 0", WIDE_FLOATS),
)

_DOC = """out = {formula}, element by element.

    Args:
        x (Variable): [...], {dtypes}.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` is no Variable or of another dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.{name}(fluid.data("x", [None, 4], "float32")).shape
        (-1, 4)
    """


def _unary(op, formula, dtypes):
    def layer(x, name=None):
        check.variable(x, "x", op, dtypes)
        return one_op(op, {"X": x}, name=name)

    layer.__name__ = layer.__qualname__ = op
    layer.__doc__ = _DOC.format(name=op, formula=formula, dtypes=", ".join(dtypes))
    return layer


for _row in _TABLE:
    globals()[_row[0]] = _unary(*_row)


def _with_attrs(op, x, attrs, name=None, dtypes=FLOATS):
    """An activation with attributes; those that are None keep the op's default."""
    check.variable(x, "x", op, dtypes)
    return one_op(op, {"X": x}, {k: v for k, v in attrs.items() if v is not None}, name=name)


def sign(x):
    """out = -1, 0 or 1: the sign of each element.

    Args:
        x (Variable|numpy.ndarray): [...], float16, float32 or float64.

    Returns:
        Variable: shape and dtype of ``x``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.sign(fluid.data("x", [None, 4], "float32")).shape
        (-1, 4)
    """
    import numpy
    if isinstance(x, numpy.ndarray):
        from .tensor import assign
        x = assign(x)
    check.variable(x, "x", "sign", FLOATS)
    return one_op("sign", {"X": x})


def erf(x):
    """out = 2 / sqrt(pi) * integral of exp(-t * t) from 0 to x, the error function.

    Args:
        x (Variable): [...], float16, float32 or float64.

    Returns:
        Variable: shape and dtype of ``x``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.erf(fluid.data("x", [None, 4], "float32")).shape
        (-1, 4)
    """
    check.variable(x, "x", "erf")
    return one_op("erf", {"X": x})


def log1p(x, out=None, name=None):
    """out = log(1 + x), exact also near 0.

    Args:
        x (Variable): [...], float32 or float64, above -1.
        out (Variable, optional): gets the result.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: shape and dtype of ``x``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.log1p(fluid.data("x", [None, 4], "float32")).shape
        (-1, 4)
    """
    check.variable(x, "x", "log1p", WIDE_FLOATS)
    return one_op("log1p", {"X": x}, name=name, to=out)


def gelu(x, approximate=False):
    """out = x * P(X <= x) for a standard normal X, 0.5 * x * (1 + erf(x / sqrt(2))).

    Hendrycks and Gimpel, Gaussian error linear units, arXiv:1606.08415.

    Args:
        x (Variable): [...], float32 or float64.
        approximate (bool): 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x ** 3))) instead. Default False.

    Returns:
        Variable: shape and dtype of ``x``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.gelu(fluid.data("x", [None, 4], "float32"), approximate=True).shape
        (-1, 4)
    """
    check.variable(x, "x", "gelu")
    return one_op("gelu", {"X": x}, {"approximate": approximate})


def relu6(x, threshold=6.0, name=None):
    """out = min(max(x, 0), threshold).

    Krizhevsky, Convolutional deep belief networks on CIFAR-10, 2010.

    Args:
        x (Variable): [...], float16, float32 or float64.
        threshold (float): upper bound. Default 6.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: shape and dtype of ``x``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.relu6(fluid.data("x", [None, 4], "float32")).shape
        (-1, 4)
    """
    return _with_attrs("relu6", x, {"threshold": threshold}, name)


def leaky_relu(x, alpha=0.02, name=None):
    """out = max(x, alpha * x).

    Maas, Hannun and Ng, Rectifier nonlinearities improve neural network acoustic models, ICML 2013.

    Args:
        x (Variable): [...], float16, float32 or float64.
        alpha (float): slope below 0. Default 0.02.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: shape and dtype of ``x``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.leaky_relu(fluid.data("x", [None, 4], "float32"), alpha=0.1).shape
        (-1, 4)
    """
    return _with_attrs("leaky_relu", x, {"alpha": alpha}, name)


def elu(x, alpha=1.0, name=None):
    """out = x where x > 0, else alpha * (exp(x) - 1).

    Clevert, Unterthiner and Hochreiter, ICLR 2016 (arXiv:1511.07289).

    Args:
        x (Variable): [...], float16, float32 or float64.
        alpha (float): minus the limit for small x. Default 1.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: shape and dtype of ``x``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.elu(fluid.data("x", [None, 4], "float32")).shape
        (-1, 4)
    """
    return _with_attrs("elu", x, {"alpha": alpha}, name)


def selu(x, scale=None, alpha=None, name=None):
    """out = scale * x where x > 0, else scale * alpha * (exp(x) - 1).

    Klambauer, Unterthiner, Mayr and Hochreiter, Self-normalizing neural networks, NIPS 2017.

    Args:
        x (Variable): [...], float32 or float64.
        scale (float, optional): 1.0507009873554804934193349852946 by default.
        alpha (float, optional): 1.6732632423543772848170429916717 by default.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: shape and dtype of ``x``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.selu(fluid.data("x", [None, 4], "float32")).shape
        (-1, 4)
    """
    return _with_attrs("selu", x, {"scale": scale, "alpha": alpha}, name, WIDE_FLOATS)


def swish(x, beta=1.0, name=None):
    """out = x / (1 + exp(-beta * x)).

    Ramachandran, Zoph and Le, Searching for activation functions, arXiv:1710.05941.

    Args:
        x (Variable): [...], float16, float32 or float64.
        beta (float): steepness. Default 1.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: shape and dtype of ``x``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.swish(fluid.data("x", [None, 4], "float32")).shape
        (-1, 4)
    """
    # 1.8.5 ignores beta
    return _with_attrs("swish", x, {"beta": 1.0 if check.exact_fluid() else beta}, name)


def mish(x, threshold=20, name=None):
    """out = x * tanh(softplus(x)).

    Misra, Mish: a self regularized non-monotonic activation function, arXiv:1908.08681.

    Args:
        x (Variable): [...], float32 or float64.
        threshold (float): beyond it softplus(x) counts as x, below its negative as exp(x). Default 20.
        name (str, optional): stem of the result's name.

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
        raise Violated("mish: threshold is positive, got %s" % threshold)
    return _with_attrs("mish", x, {"threshold": float(threshold)}, name, WIDE_FLOATS)


def hard_sigmoid(x, slope=0.2, offset=0.5, name=None):
    """out = min(max(slope * x + offset, 0), 1).

    Args:
        x (Variable): [...], float16, float32 or float64.
        slope (float): Default 0.2.
        offset (float): Default 0.5.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: shape and dtype of ``x``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.hard_sigmoid(fluid.data("x", [None, 4], "float32")).shape
        (-1, 4)
    """
    return _with_attrs("hard_sigmoid", x, {"slope": slope, "offset": offset}, name)


def hard_swish(x, threshold=6.0, scale=6.0, offset=3.0, name=None):
    """out = x * min(max(x + offset, 0), threshold) / scale.

    Howard and others, Searching for MobileNetV3, ICCV 2019.

    Args:
        x (Variable): [...], float16, float32 or float64.
        threshold (float): Default 6.
        scale (float): Default 6.
        offset (float): Default 3.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: shape and dtype of ``x``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.hard_swish(fluid.data("x", [None, 4], "float32")).shape
        (-1, 4)
    """
    return _with_attrs("hard_swish", x, {"threshold": threshold, "scale": scale, "offset": offset}, name)


def stanh(x, scale_a=0.67, scale_b=1.7159, name=None):
    """out = scale_b * tanh(scale_a * x).

    LeCun, Bottou, Orr and Mueller, Efficient BackProp, 1998.

    Args:
        x (Variable): [...], float16, float32 or float64.
        scale_a (float): Default 0.67.
        scale_b (float): Default 1.7159.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: shape and dtype of ``x``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.stanh(fluid.data("x", [None, 4], "float32")).shape
        (-1, 4)
    """
    return _with_attrs("stanh", x, {"scale_a": scale_a, "scale_b": scale_b}, name)


def brelu(x, t_min=0.0, t_max=24.0, name=None):
    """out = min(max(x, t_min), t_max).

    Args:
        x (Variable): [...], float16, float32 or float64.
        t_min (float): lower bound. Default 0.
        t_max (float): upper bound. Default 24.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: shape and dtype of ``x``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.brelu(fluid.data("x", [None, 4], "float32"), t_max=20.0).shape
        (-1, 4)
    """
    return _with_attrs("brelu", x, {"t_min": t_min, "t_max": t_max}, name)


def soft_relu(x, threshold=40.0, name=None):
    """out = log(1 + exp(min(max(x, -threshold), threshold))).

    Args:
        x (Variable): [...], float16, float32 or float64.
        threshold (float): Default 40.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: shape and dtype of ``x``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.soft_relu(fluid.data("x", [None, 4], "float32")).shape
        (-1, 4)
    """
    return _with_attrs("soft_relu", x, {"threshold": threshold}, name)


def softshrink(x, alpha=None):
    """out = x - alpha where x > alpha, x + alpha where x < -alpha, else 0.

    Args:
        x (Variable): [...], float16, float32 or float64.
        alpha (float, optional): 0.5 by default.

    Returns:
        Variable: shape and dtype of ``x``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.softshrink(fluid.data("x", [None, 4], "float32"), 0.3).shape
        (-1, 4)
    """
    return _with_attrs("softshrink", x, {"lambda": alpha})


def hard_shrink(x, threshold=None):
    """out = x where |x| > threshold, else 0.

    Args:
        x (Variable): [...], float16, float32 or float64.
        threshold (float, optional): 0.5 by default.

    Returns:
        Variable: shape and dtype of ``x``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.hard_shrink(fluid.data("x", [None, 4], "float32"), 0.3).shape
        (-1, 4)
    """
    return _with_attrs("hard_shrink", x, {"threshold": threshold})


def thresholded_relu(x, threshold=None):
    """out = x where x > threshold, else 0.

    Args:
        x (Variable): [...], float16, float32 or float64.
        threshold (float, optional): 1 by default.

    Returns:
        Variable: shape and dtype of ``x``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.thresholded_relu(fluid.data("x", [None, 4], "float32"), 0.3).shape
        (-1, 4)
    """
    return _with_attrs("thresholded_relu", x, {"threshold": threshold})


__all__ = [_row[0] for _row in _TABLE] + [
    "sign", "erf", "log1p", "gelu", "relu6", "leaky_relu", "elu", "selu", "swish", "mish", "hard_sigmoid", "hard_swish",
    "stanh", "brelu", "soft_relu", "softshrink", "hard_shrink", "thresholded_relu",
]
