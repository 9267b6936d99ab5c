"""Initializers: the initial value of a parameter, set by an op at the start of the startup program."""
from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import numpy

from .. import _on_demand
from . import arguments, unique_name
from .described import Described
from .errors import InvalidValue, Violated
from .framework import Variable
from .framework.dtype import VarType, numpy_dtype

__all__ = [
    "Constant", "Uniform", "Normal", "TruncatedNormal", "Xavier", "Bilinear", "MSRA", "ConstantInitializer",
    "UniformInitializer", "NormalInitializer", "TruncatedNormalInitializer", "XavierInitializer",
    "BilinearInitializer", "MSRAInitializer", "NumpyArrayInitializer",
]

_on_cpu = False


def force_init_on_cpu() -> bool:
    """bool: whether :func:`init_on_cpu` is active. Kept for programs of Fluid before 1.7."""
    return _on_cpu


@contextlib.contextmanager
def init_on_cpu() -> Iterator[None]:
    """Context manager in which initializers run on the CPU. Kept for programs of Fluid before 1.7; initializers
    always run on the CPU.

    >>> with init_on_cpu():
    ...     force_init_on_cpu()
    True
    >>> force_init_on_cpu()
    False
    """
    global _on_cpu
    before, _on_cpu = _on_cpu, True
    try:
        yield
    finally:
        _on_cpu = before


class Initializer(Described):
    """Base class of initializers. An initializer is a callable that appends an op to ``block``; the op fills ``var``.

    A subclass implements ``__call__(var, block)`` and returns the op.
    """

    def __call__(self, var: Any, block: Any) -> Any:
        raise NotImplementedError("%s must override __call__, which fills a variable" % type(self).__name__)

    def _compute_fans(self, var):
        """Returns (fan in, fan out) of a weight with the shape ``[in, out]``, or ``[out, in, k, ...]`` for a
        convolution."""
        shape = var.shape
        if not shape:
            return 1, 1
        if len(shape) == 1:
            return shape[0], shape[0]
        if len(shape) == 2:
            return shape[0], shape[1]
        field = int(numpy.prod(shape[2:]))
        return shape[1] * field, shape[0] * field

    @staticmethod
    def _fill(var, block, op_type, attrs, stem=None):
        """Inserts ``op_type`` at the start of the block. With a ``stem``, float16 is filled as float32 and cast."""
        if not isinstance(var, Variable):
            raise Violated("an initializer must fill a Variable, got %s" % type(var).__name__)
        dtype = VarType.FP32 if stem is not None and var.dtype == VarType.FP16 else var.dtype
        return _prepend(var, block, op_type, dict(attrs, shape=list(var.shape), dtype=dtype), stem)


def _prepend(var, block, op_type, attrs, stem):
    """Inserts ``op_type``, and a cast if it makes another dtype than that of ``var``."""
    target = var
    if attrs["dtype"] != var.dtype:
        target = block.create_var(
            name=unique_name.generate(".".join([stem, var.name, "tmp"])), shape=var.shape, dtype=attrs["dtype"],
            type=VarType.LOD_TENSOR, persistable=False)
    op = block._prepend_op(type=op_type, outputs={"Out": target}, attrs=attrs)
    if target is not var:
        # after the op that was put first, as that op is what it reads
        block._insert_op(1, type="cast", inputs={"X": target}, outputs={"Out": var},
                         attrs={"in_dtype": target.dtype, "out_dtype": var.dtype})
    var.op = op
    return op


def _seed(seed, block):
    return seed if seed != 0 else block.program.random_seed


class ConstantInitializer(Initializer):
    """Sets every element to ``value``.

    Args:
        value (float): value of the elements. Default 0.
        force_cpu (bool): fills CPU memory even if the program runs on a GPU. Default False.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> out = fluid.layers.fc(x, 3, bias_attr=fluid.initializer.Constant(0.5))
        >>> fluid.default_startup_program().global_block().ops[0].attr("value")
        0.5
    """

    def __init__(self, value: float = 0.0, force_cpu: bool = False) -> None:
        if value is None:
            raise Violated("Constant: value must be a number, got None")
        super().__init__()
        self._value = value
        self._force_cpu = force_cpu

    def __call__(self, var: Any, block: Any) -> Any:
        attrs = {"value": float(self._value), "force_cpu": bool(self._force_cpu)}
        return self._fill(var, block, "fill_constant", attrs, "constant_init")


class UniformInitializer(Initializer):
    """Draws uniform random numbers from [low, high).

    Args:
        low (float): lower bound. Default -1.
        high (float): upper bound, at least ``low``. Default 1.
        seed (int): seed of the random numbers. Default 0: the startup program's ``random_seed``.
        diag_num (int): number of diagonal elements that are set to ``diag_val``. Default 0.
        diag_step (int): distance between these elements in the row. Default 0.
        diag_val (float): value of these elements. Default 1.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> attr = fluid.ParamAttr(initializer=fluid.initializer.Uniform(-0.1, 0.1))
        >>> fluid.layers.fc(fluid.data("x", [None, 4], "float32"), 3, param_attr=attr).shape
        (-1, 3)
    """

    def __init__(self, low: float = -1.0, high: float = 1.0, seed: int = 0, diag_num: int = 0, diag_step: int = 0,
                 diag_val: float = 1.0) -> None:
        if low is None or high is None or high < low:
            raise Violated("Uniform: low must not be above high, got %s and %s" % (low, high))
        if diag_num > 0 and (diag_step <= 0 or diag_val is None):
            raise Violated("Uniform: diag_num %s requires a diag_step above 0, got %s" % (diag_num, diag_step))
        super().__init__()
        self._low, self._high, self._seed = low, high, seed
        self._diag = {"diag_num": diag_num, "diag_step": diag_step, "diag_val": diag_val}

    def __call__(self, var: Any, block: Any) -> Any:
        attrs = dict(self._diag, min=float(self._low), max=float(self._high), seed=_seed(self._seed, block))
        return self._fill(var, block, "uniform_random", attrs, "uniform_random")


class NormalInitializer(Initializer):
    """Draws random numbers from a normal distribution.

    Args:
        loc (float): mean. Default 0.
        scale (float): standard deviation. Default 1.
        seed (int): seed of the random numbers. Default 0: the startup program's ``random_seed``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> ids = fluid.data("ids", [None, 1], "int64")
        >>> fluid.embedding(ids, [10, 4], param_attr=fluid.initializer.Normal(0.0, 0.1)).shape
        (-1, 1, 4)
    """

    _op, _stem = "gaussian_random", "gaussian_random"

    def __init__(self, loc: float = 0.0, scale: float = 1.0, seed: int = 0) -> None:
        if loc is None or scale is None or seed is None:
            raise Violated("%s: loc, scale and seed must be numbers" % type(self).__name__)
        super().__init__()
        self._mean, self._std_dev, self._seed = loc, scale, seed

    def __call__(self, var: Any, block: Any) -> Any:
        attrs = {"mean": float(self._mean), "std": float(self._std_dev), "seed": _seed(self._seed, block)}
        return self._fill(var, block, self._op, attrs, self._stem)


class TruncatedNormalInitializer(NormalInitializer):
    """Draws random numbers from a normal distribution. Numbers more than two standard deviations from the mean are
    drawn again.

    Args:
        loc (float): mean of the untruncated distribution. Default 0.
        scale (float): standard deviation of the untruncated distribution. Default 1.
        seed (int): seed of the random numbers. Default 0: the startup program's ``random_seed``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.create_parameter([4, 2], "float32",
        ...     default_initializer=fluid.initializer.TruncatedNormal(0.0, 0.02)).shape
        (4, 2)
    """

    _op, _stem = "truncated_gaussian_random", "truncated_gaussian_random"


class _ByFan(Initializer):
    """Zero mean, variance from the fans: uniform in [-sqrt(3 v), sqrt(3 v)] or Gaussian with deviation sqrt(v)."""

    _stem = ""

    def __init__(self, uniform, seed):
        if uniform is None or seed is None:
            raise Violated("%s: uniform must be a bool and seed an int" % type(self).__name__)
        super().__init__()
        self._uniform, self._seed = uniform, seed

    def _variance(self, var):
        raise NotImplementedError

    def __call__(self, var, block):
        if not isinstance(var, Variable):
            raise Violated("an initializer must fill a Variable, got %s" % type(var).__name__)
        variance, seed = self._variance(var), _seed(self._seed, block)
        if self._uniform:
            limit = math.sqrt(3.0 * variance)
            return self._fill(var, block, "uniform_random", {"min": -limit, "max": limit, "seed": seed}, self._stem)
        attrs = {"mean": 0.0, "std": math.sqrt(variance), "seed": seed}
        return self._fill(var, block, "gaussian_random", attrs, self._stem)


class XavierInitializer(_ByFan):
    """Keeps the variance of activations and gradients over layers: variance 2 / (fan in + fan out).

    Glorot and Bengio, Understanding the difficulty of training deep feedforward neural networks, AISTATS 2010.

    Args:
        uniform (bool): True: uniform distribution; False: normal distribution. Default True.
        fan_in (float, optional): number of inputs of a unit. Default: computed from the shape.
        fan_out (float, optional): number of outputs of a unit. Default: computed from the shape.
        seed (int): seed of the random numbers. Default 0: the startup program's ``random_seed``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.fc(fluid.data("x", [None, 4], "float32"), 3,
        ...     param_attr=fluid.initializer.Xavier(uniform=False)).shape
        (-1, 3)
    """

    _stem = "xavier_init"

    def __init__(self, uniform: bool = True, fan_in: float | None = None, fan_out: float | None = None,
                 seed: int = 0) -> None:
        super().__init__(uniform, seed)
        self._fan_in, self._fan_out = fan_in, fan_out

    def _variance(self, var):
        fan_in, fan_out = self._compute_fans(var)
        fan_in = fan_in if self._fan_in is None else self._fan_in
        fan_out = fan_out if self._fan_out is None else self._fan_out
        return 2.0 / float(fan_in + fan_out)


class MSRAInitializer(_ByFan):
    """Initializes layers that are followed by a ReLU: variance 2 / fan in.

    He, Zhang, Ren and Sun, Delving deep into rectifiers, ICCV 2015.

    Args:
        uniform (bool): True: uniform distribution; False: normal distribution. Default True.
        fan_in (float, optional): number of inputs of a unit. Default: computed from the shape.
        seed (int): seed of the random numbers. Default 0: the startup program's ``random_seed``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> image = fluid.data("image", [None, 3, 8, 8], "float32")
        >>> fluid.layers.conv2d(image, 4, 3, param_attr=fluid.initializer.MSRA(uniform=False)).shape
        (-1, 4, 6, 6)
    """

    _stem = "masra_init"

    def __init__(self, uniform: bool = True, fan_in: float | None = None, seed: int = 0) -> None:
        super().__init__(uniform, seed)
        self._fan_in = fan_in

    def _variance(self, var):
        fan_in = self._compute_fans(var)[0] if self._fan_in is None else self._fan_in
        return 2.0 / float(fan_in)


class BilinearInitializer(Initializer):
    """Sets the weights of a transposed convolution that enlarges images by bilinear interpolation.

    Use it with ``filter_size = 2 * factor - factor % 2``, ``stride = factor``,
    ``padding = ceil((factor - 1) / 2)``, ``groups = channels`` and a learning rate of 0.

    Raises:
        ValueError: the weight does not have four axes, or its last two extents differ.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> image = fluid.data("image", [None, 3, 8, 8], "float32")
        >>> attr = fluid.ParamAttr(learning_rate=0.0, initializer=fluid.initializer.Bilinear())
        >>> fluid.layers.conv2d_transpose(image, 3, filter_size=4, stride=2, padding=1, groups=3,
        ...     param_attr=attr, bias_attr=False).shape
        (-1, 3, 16, 16)
    """

    def __init__(self) -> None:
        super().__init__()

    def __call__(self, var: Any, block: Any) -> Any:
        if not isinstance(var, Variable):
            raise InvalidValue("Bilinear: var must be a Variable, got %s" % type(var).__name__)
        shape = var.shape
        if len(shape) != 4:
            raise InvalidValue("Bilinear: the weight must have four dimensions, got shape %s" % (tuple(shape),))
        if shape[2] != shape[3]:
            raise InvalidValue("Bilinear: the kernel must be square, got shape %s" % (tuple(shape),))
        return _assign(self, var, block, self._weight(shape).astype("float32"), "bilinear_init")

    @staticmethod
    def _weight(shape):
        size = shape[3]
        factor = math.ceil(size / 2.0)
        center = (2 * factor - 1 - factor % 2) / (2.0 * factor)
        # Saved models hold these very numbers: the row index is not reduced to an integer here.
        index = numpy.arange(int(numpy.prod(shape)))
        column, row = index % size, (index / size) % size
        weight = (1 - numpy.abs(column / factor - center)) * (1 - numpy.abs(row / factor - center))
        return weight.reshape(shape)


class NumpyArrayInitializer(Initializer):
    """Sets the initial value of a parameter to a copy of an array.

    Args:
        value (numpy.ndarray): numbers with the shape of the parameter, at most 268,435,456 of them. They are converted
            to its dtype. For parameters of other dtypes than float32, float16 and int32, they must be float32 or
            int32.

    Raises:
        AssertionError: ``value`` is not an array.
        ValueError: the dtype is not supported, or there are too many elements.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> import numpy
        >>> start = fluid.initializer.NumpyArrayInitializer(numpy.eye(3, dtype="float32"))
        >>> fluid.layers.create_parameter([3, 3], "float32", default_initializer=start).shape
        (3, 3)
    """

    def __init__(self, value: Any) -> None:
        if not isinstance(value, numpy.ndarray):
            raise Violated("NumpyArrayInitializer: value must be a numpy.ndarray, got %s" % type(value).__name__)
        super().__init__()
        self._value = value

    def __call__(self, var: Any, block: Any) -> Any:
        return _assign(self, var, block, self._value, "numpy_array_init")


_MAX_ASSIGNED_ELEMS = 1 << 28


# Dtype of a parameter -> that of the numbers in the operator.
_STORED = {VarType.FP32: numpy.float32, VarType.FP16: numpy.float32, VarType.INT32: numpy.int32}
_SLOTS = {numpy.dtype("float32"): ("fp32_values", VarType.FP32), numpy.dtype("int32"): ("int32_values", VarType.INT32)}


def _assign(initializer, var, block, array, stem):
    array = numpy.atleast_1d(array)     # every tensor has an axis
    if array.dtype.kind in "fiub" and var.dtype in _STORED:
        array = array.astype(_STORED[var.dtype], copy=False)
    if array.dtype not in _SLOTS:
        raise InvalidValue("%s: the array must be float32 or int32 for %s of dtype %s, got %s"
                           % (type(initializer).__name__, var.name, numpy_dtype(var.dtype), array.dtype))
    if array.size > _MAX_ASSIGNED_ELEMS:
        raise InvalidValue("%s: the number of elements must be at most %d, got %d: load such a parameter from a file" %
                           (type(initializer).__name__, _MAX_ASSIGNED_ELEMS, array.size))
    slot, dtype = _SLOTS[array.dtype]
    return _prepend(var, block, "assign_value", {"dtype": dtype, "shape": list(array.shape), slot: array}, stem)


Constant = ConstantInitializer
Uniform = UniformInitializer
Normal = NormalInitializer
TruncatedNormal = TruncatedNormalInitializer
Xavier = XavierInitializer
MSRA = MSRAInitializer
Bilinear = BilinearInitializer

_on_demand.give(__name__, {})


arguments.explain(globals())
