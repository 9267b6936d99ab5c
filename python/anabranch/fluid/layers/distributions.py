"""Probability distributions whose parameters are numbers or Variables of a program."""
from __future__ import annotations

import math
from typing import Any

import numpy

from ..described import Described
from ..errors import InvalidType, InvalidValue, NotOffered
from ..explained import explain
from ..framework import Variable
from . import check
from ._generated_elementwise import elementwise_add, elementwise_div, elementwise_mul, elementwise_sub, less_than
from ._generated_functions import exp, log
from ._generated_reductions import reduce_max, reduce_prod, reduce_sum
from .copies import assign, cast
from .fill import fill_constant, fill_constant_batch_size_like
from .random import (
    gaussian_random,
    gaussian_random_batch_size_like,
    uniform_random,
    uniform_random_batch_size_like,
)
from .shapes import reshape, transpose

__all__ = ["Categorical", "MultivariateNormalDiag", "Normal", "Uniform"]


def _parameters(distribution, classes, **given):
    """Returns the parameters as Variables of one shape. Numbers become constants of the program."""
    kind = type(distribution).__name__
    for name, value in given.items():
        if not isinstance(value, classes):
            raise InvalidType("%s: %s must be one of %s, got %s"
                              % (kind, name, ", ".join(c.__name__ for c in classes), type(value).__name__))
    are_variables = [isinstance(v, Variable) for v in given.values()]
    if any(are_variables):
        if not all(are_variables):
            raise InvalidValue("%s: parameters must be all Variables or all numbers" % kind)
        return list(given.values())
    arrays = {name: _numbers("%s: %s" % (kind, name), value) for name, value in given.items()}
    try:
        same = numpy.broadcast_arrays(*arrays.values())
    except ValueError:
        raise InvalidValue("%s: parameters must have shapes that broadcast, got %s" % (
            kind, ", ".join("%s %s" % (name, list(a.shape)) for name, a in arrays.items()))) from None
    return [assign(numpy.ascontiguousarray(a)) for a in same]


def _numbers(what, value):
    """A parameter as an array of at least one axis."""
    if isinstance(value, (list, tuple)) and any(isinstance(v, Variable) for v in value):
        raise InvalidType("%s must hold numbers, got a %s of Variables" % (what, type(value).__name__))
    try:
        return numpy.atleast_1d(numpy.asarray(value, "float32"))
    except (TypeError, ValueError):
        raise InvalidType("%s must hold numbers, got %r" % (what, value)) from None


class Distribution(Described):
    """Base class of the distributions."""

    def sample(self) -> Variable:
        """Not supported: raises NotImplementedError."""
        raise NotOffered("%s has no sample()" % type(self).__name__)

    def entropy(self) -> Variable:
        """Not supported: raises NotImplementedError."""
        raise NotOffered("%s has no entropy()" % type(self).__name__)

    def log_prob(self, value: Variable) -> Variable:
        """Not supported: raises NotImplementedError."""
        raise NotOffered("%s has no log_prob()" % type(self).__name__)

    def kl_divergence(self, other: Any) -> Variable:
        """Not supported: raises NotImplementedError."""
        raise NotOffered("%s has no kl_divergence()" % type(self).__name__)

    def _same_kind(self, other):
        if not isinstance(other, type(self)):
            raise InvalidType("%s.kl_divergence: other must be a %s, got %s"
                              % (type(self).__name__, type(self).__name__, type(other).__name__))


class _Located(Distribution):
    """Base class of distributions with two parameters, each with the shape of one sample."""

    _one: Variable
    _two: Variable
    _from_numbers: bool

    def _noise(self, shape, seed, plain, like):
        """Samples with ``shape``, followed by the shape of the parameters."""
        if not isinstance(shape, list):
            raise InvalidType("%s.sample: shape must be a list, got %s" % (type(self).__name__, type(shape).__name__))
        if not isinstance(seed, int):
            raise InvalidType("%s.sample: seed must be an int, got %s" % (type(self).__name__, type(seed).__name__))
        own = list(elementwise_add(self._one, self._two).shape)
        if not own or own[0] >= 0:
            return plain(shape + own, seed)
        # Unknown rows come first, as fill_constant_batch_size_like requires; the transpose moves them after `shape`.
        rank, more = len(own), len(shape)
        drawn = like(fill_constant_batch_size_like(elementwise_add(self._one, self._two), own + shape, "float32", 0.0),
                     own + shape, seed)
        return transpose(drawn, list(range(rank, rank + more)) + list(range(rank)))

    def _shaped(self, drawn, shape):
        return reshape(drawn, shape) if self._from_numbers else drawn


class Uniform(_Located):
    """The uniform distribution over [low, high).

    Args:
        low (float|ndarray|Variable): lower bound.
        high (float|ndarray|Variable): upper bound, which is broadcast with ``low``. Variables must have the same shape.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: Variables and numbers are mixed.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> uniform = fluid.layers.distributions.Uniform(0.0, 2.0)
        >>> uniform.sample([3]).shape, uniform.entropy().shape
        ((3,), (1,))
    """

    def __init__(self, low: float | numpy.ndarray | Variable, high: float | numpy.ndarray | Variable) -> None:
        self._from_numbers = isinstance(low, float) and isinstance(high, float)
        self._one, self._two = self.low, self.high = _parameters(
            self, (float, numpy.ndarray, Variable, list), low=low, high=high)

    def sample(self, shape: list[int], seed: int = 0) -> Variable:  # type: ignore[override]
        """Draws samples.

        Args:
            shape (list of int): shape of the samples.
            seed (int): seed of the random numbers. 0 means the seed of the program. Default 0.

        Returns:
            Variable: float32, of ``shape`` followed by the shape of the parameters; of ``shape`` if they are floats.
        """
        drawn = self._noise(shape, seed, lambda s, seed: uniform_random(s, "float32", 0.0, 1.0, seed),
                            lambda x, s, seed: uniform_random_batch_size_like(x, s, "float32", 0, 0, 0.0, 1.0, seed))
        return self._shaped(elementwise_add(elementwise_mul(drawn, elementwise_sub(self.high, self.low)), self.low),
                            shape)

    def log_prob(self, value: Variable) -> Variable:
        """Variable: log of the density at ``value`` (float32): -log(high - low) inside the range, -infinity outside of
        it."""
        check.variable(value, "value", "Uniform.log_prob")
        inside = elementwise_mul(cast(less_than(_as(self.low, value), value), value.dtype),
                                 cast(less_than(value, _as(self.high, value)), value.dtype))
        return elementwise_sub(log(inside), log(elementwise_sub(self.high, self.low)))

    def entropy(self) -> Variable:
        """Variable: log(high - low)."""
        return log(elementwise_sub(self.high, self.low))


def _as(parameter, value):
    """Returns the parameter with the shape of ``value``, because comparisons require equal shapes."""
    return elementwise_add(elementwise_mul(value, fill_constant([1], "float32", 0.0)), parameter)


class Normal(_Located):
    """The normal distribution.

    Args:
        loc (float|ndarray|Variable): mean.
        scale (float|ndarray|Variable): standard deviation, above 0, which is broadcast with ``loc``. Variables must
            have the same shape.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: Variables and numbers are mixed.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> normal = fluid.layers.distributions.Normal(0.0, 2.0)
        >>> normal.sample([3]).shape
        (3,)
    """

    def __init__(self, loc: float | numpy.ndarray | Variable, scale: float | numpy.ndarray | Variable) -> None:
        self._from_numbers = isinstance(loc, float) and isinstance(scale, float)
        self._one, self._two = self.loc, self.scale = _parameters(
            self, (float, numpy.ndarray, Variable, list), loc=loc, scale=scale)

    def sample(self, shape: list[int], seed: int = 0) -> Variable:  # type: ignore[override]
        """Draws samples.

        Args:
            shape (list of int): shape of the samples.
            seed (int): seed of the random numbers. 0 means the seed of the program. Default 0.

        Returns:
            Variable: float32, of ``shape`` followed by the shape of the parameters; of ``shape`` if they are floats.
        """
        drawn = self._noise(shape, seed, lambda s, seed: gaussian_random(s, 0.0, 1.0, seed, "float32"),
                            lambda x, s, seed: gaussian_random_batch_size_like(x, s, 0, 0, 0.0, 1.0, seed, "float32"))
        return self._shaped(elementwise_add(elementwise_mul(drawn, self.scale), self.loc), shape)

    def entropy(self) -> Variable:
        """Variable: log(scale) + (1 + log(2 pi)) / 2."""
        zero = elementwise_sub(self.loc, self.loc)  # in the shape of both
        return log(elementwise_add(zero, self.scale)) + (0.5 + 0.5 * math.log(2 * math.pi))

    def log_prob(self, value: Variable) -> Variable:
        """Variable: log of the density at ``value`` (float32)."""
        check.variable(value, "value", "Normal.log_prob")
        way = elementwise_div(elementwise_sub(value, self.loc), self.scale)
        return elementwise_sub(elementwise_mul(way, way) * -0.5, log(self.scale)) - 0.5 * math.log(2 * math.pi)

    def kl_divergence(self, other: Normal) -> Variable:
        """Variable: the divergence of this distribution from ``other``, another Normal."""
        self._same_kind(other)
        ratio = elementwise_div(self.scale, other.scale)
        ratio = elementwise_mul(ratio, ratio)
        way = elementwise_div(elementwise_sub(self.loc, other.loc), other.scale)
        return (elementwise_sub(elementwise_add(ratio, elementwise_mul(way, way)) - 1.0, log(ratio))) * 0.5


class Categorical(Distribution):
    """The categorical distribution, with the probabilities softmax(logits).

    Args:
        logits (ndarray|Variable): [..., classes], float32.

    Raises:
        TypeError: an argument has the wrong type.

    Examples:
        >>> import numpy
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.distributions.Categorical(numpy.ones([2, 5], "float32")).entropy().shape
        (2, 1)
    """

    def __init__(self, logits: numpy.ndarray | Variable) -> None:
        self.logits, = _parameters(self, (numpy.ndarray, Variable, list), logits=logits)

    def _logs(self):
        """Returns the logarithms of the probabilities."""
        shifted = elementwise_sub(self.logits, reduce_max(self.logits, dim=-1, keep_dim=True), axis=0)
        return elementwise_sub(shifted, log(reduce_sum(exp(shifted), dim=-1, keep_dim=True)), axis=0)

    def entropy(self) -> Variable:
        """Variable: the entropy, [..., 1]."""
        logs = self._logs()
        return reduce_sum(elementwise_mul(exp(logs), logs), dim=-1, keep_dim=True) * -1.0

    def kl_divergence(self, other: Categorical) -> Variable:
        """Variable: [..., 1], the divergence of this distribution from ``other``, another Categorical."""
        self._same_kind(other)
        logs = self._logs()
        return reduce_sum(elementwise_mul(exp(logs), elementwise_sub(logs, other._logs())), dim=-1, keep_dim=True)


class MultivariateNormalDiag(Distribution):
    """The normal distribution of a vector with independent components.

    Args:
        loc (ndarray|Variable): means, [k], [1, k] or [k, k] with equal rows, float32.
        scale (ndarray|Variable): matrix [k, k] with the variances on the diagonal and 0 elsewhere, float32.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: Variables and arrays are mixed, or ``scale`` is not a square matrix.

    Examples:
        >>> import numpy
        >>> import anabranch.fluid as fluid
        >>> d = fluid.layers.distributions.MultivariateNormalDiag(
        ...     numpy.array([0.3, 0.5], "float32"), numpy.diag([0.4, 0.5]).astype("float32"))
        >>> d.entropy().shape
        (1,)
    """

    def __init__(self, loc: numpy.ndarray | Variable, scale: numpy.ndarray | Variable) -> None:
        if isinstance(loc, Variable) != isinstance(scale, Variable):
            raise InvalidValue("MultivariateNormalDiag: parameters must be both Variables or both arrays")
        self.loc, = _parameters(self, (numpy.ndarray, Variable, list), loc=loc)  # not broadcast: scale is a matrix
        self.scale, = _parameters(self, (numpy.ndarray, Variable, list), scale=scale)
        shape = self.scale.shape
        if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 1:
            raise InvalidValue("MultivariateNormalDiag: scale must be a square matrix, got shape %s" % (list(shape),))
        self._size = int(shape[0])

    def _mask(self):
        return assign(numpy.eye(self._size, dtype="float32"))

    def _variances(self):
        """Returns the diagonal, [k]."""
        return reduce_sum(elementwise_mul(self.scale, self._mask()), dim=0)

    def _means(self):
        """Returns the means, [1, k] or [k, k]."""
        return self.loc if len(self.loc.shape) == 2 else reshape(self.loc, [1, self._size])

    def entropy(self) -> Variable:
        """Variable: the entropy, [1]: (k (1 + log(2 pi)) + log det scale) / 2."""
        constant = self._size * (1.0 + math.log(2 * math.pi))
        return (log(reduce_prod(self._variances())) + constant) * 0.5

    def kl_divergence(self, other: MultivariateNormalDiag) -> Variable:
        """Variable: the divergence of this distribution from ``other``, of the same size: [1] if loc is [k], else
        [rows of loc, 1]."""
        self._same_kind(other)
        mine, theirs = self._variances(), other._variances()
        way = elementwise_sub(other._means(), self._means())
        distance = reduce_sum(elementwise_div(elementwise_mul(way, way), theirs), dim=-1, keep_dim=True)
        if len(self.loc.shape) == len(other.loc.shape) == 1:
            distance = reshape(distance, [1])
        ratio = elementwise_div(mine, theirs)
        rest = elementwise_sub(reduce_sum(ratio), log(reduce_prod(ratio))) - float(self._size)
        return elementwise_add(distance, rest) * 0.5


explain(globals())
