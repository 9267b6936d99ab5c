"""Means over batches, computed outside of the program."""
from __future__ import annotations

from typing import Any

import numpy

from . import arguments
from .described import Described
from .errors import InvalidValue

__all__ = ["WeightedAverage"]


def _is_number(value):
    return isinstance(value, (int, float, numpy.number)) or (isinstance(value, numpy.ndarray) and value.shape == (1,))


class WeightedAverage(Described):
    """Weighted mean of numbers or arrays, for example of the losses of batches, weighted by their rows.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> average = fluid.average.WeightedAverage()
        >>> average.add(value=2.0, weight=1)
        >>> average.add(value=4.0, weight=3)
        >>> average.eval()
        3.5
    """

    numerator: Any
    denominator: Any

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Removes all values."""
        self.numerator = self.denominator = None

    def add(self, value: Any, weight: Any) -> None:
        """Adds a value.

        Args:
            value (float|ndarray): value, with the same shape in all calls.
            weight (float): weight of the value.

        Raises:
            ValueError: an argument has the wrong type.
        """
        if not _is_number(value) and not isinstance(value, numpy.ndarray):
            raise InvalidValue("WeightedAverage.add: value must be a number or an array, got %s" % type(value).__name__)
        if not _is_number(weight):
            raise InvalidValue("WeightedAverage.add: weight must be a number, got %s" % type(weight).__name__)
        if self.numerator is None:
            self.numerator, self.denominator = value * weight, weight
        else:
            self.numerator = self.numerator + value * weight
            self.denominator = self.denominator + weight

    def eval(self) -> Any:
        """float or ndarray: the weighted mean.

        Raises:
            ValueError: nothing was added.
        """
        if self.numerator is None or self.denominator is None:
            raise InvalidValue("WeightedAverage.eval: nothing was added yet")
        return self.numerator / self.denominator


arguments.explain(globals())
