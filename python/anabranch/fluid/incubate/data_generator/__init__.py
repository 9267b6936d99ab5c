"""Base classes of programs that convert lines to MultiSlot text, for use as the pipe command of a data set.

>>> class Words(MultiSlotDataGenerator):
...     def generate_sample(self, line):
...         def samples():
...             yield [("words", [3, 14, 15]), ("label", [1])]
...         return samples
>>> Words().run_from_memory()
3 3 14 15 1 1
"""
from __future__ import annotations

import numbers
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ...errors import InvalidType, InvalidValue, NotOffered

__all__ = ["MultiSlotDataGenerator", "MultiSlotStringDataGenerator"]

_SLOTS = "a list or tuple of slots: [(name, [value, ...]), ...]"


class DataGenerator:
    """Base class of the generators. Derive from one of the classes below and override ``generate_sample``."""

    def __init__(self) -> None:
        self._proto_info = None
        self.batch_size_ = 32
        self._line_limit: int | None = None

    def _set_line_limit(self, line_limit: int) -> None:
        """Keeps a number that has no effect, like in Fluid 1.8.5."""
        if isinstance(line_limit, bool) or not isinstance(line_limit, numbers.Integral) or line_limit < 1:
            raise InvalidValue("_set_line_limit: line_limit must be an int of at least 1, got %r" % (line_limit,))
        self._line_limit = int(line_limit)

    def set_batch(self, batch_size: int) -> None:
        """Sets the number of samples per call of ``generate_batch``.

        Args:
            batch_size (int): at least 1. Default of a new generator: 32.

        Raises:
            TypeError: ``batch_size`` is not an int.
            ValueError: it is below 1.
        """
        if isinstance(batch_size, bool) or not isinstance(batch_size, numbers.Integral):
            raise InvalidType("set_batch: batch_size must be an int, got %s" % type(batch_size).__name__)
        if batch_size < 1:
            raise InvalidValue("set_batch: batch_size must be at least 1, got %d" % batch_size)
        self.batch_size_ = int(batch_size)

    def generate_sample(self, line: Any) -> Callable[..., Any]:
        """Converts a line to samples. Override it.

        Args:
            line (str): a line of the input with its line break; None for ``run_from_memory``.

        Returns:
            callable: returns an iterable of samples. A sample is ``[(name, [value, ...]), ...]`` with the slots in
            order, or None, which is skipped.

        Raises:
            NotImplementedError: the method is not overridden.
        """
        raise NotOffered("generate_sample: override this method to return a generator of samples, each one "
                         "[(name, [value, ...]), ...] or ((name, [value, ...]), ...)")

    def generate_batch(self, samples: Sequence[Any]) -> Callable[..., Any]:
        """Converts ``batch_size`` samples at once before they are written. May be overridden. Default: the samples.

        Args:
            samples (list): samples of ``generate_sample``.

        Returns:
            callable: returns an iterable of samples.
        """
        return lambda: iter(samples)

    def run_from_memory(self) -> None:
        """Writes the samples of ``generate_sample(None)`` to stdout."""
        self._write(self.generate_sample(None)())

    def run_from_stdin(self) -> None:
        """Writes the samples of each line of stdin to stdout."""
        self._write(sample for line in sys.stdin for sample in self.generate_sample(line)())

    def _write(self, samples):
        group = []
        for sample in samples:
            if sample is None:
                continue
            group.append(sample)
            if len(group) == self.batch_size_:
                self._write_batch(group)
                group = []
        if group:
            self._write_batch(group)

    def _write_batch(self, group):
        for sample in self.generate_batch(group)():
            sys.stdout.write(self._gen_str(sample))

    def _gen_str(self, line):
        raise NotOffered("DataGenerator: derive from MultiSlotDataGenerator or MultiSlotStringDataGenerator")


def _check_sample(sample):
    if not isinstance(sample, (list, tuple)):
        raise InvalidValue("a sample must be %s, got %s" % (_SLOTS, type(sample).__name__))


class MultiSlotDataGenerator(DataGenerator):
    """Writes samples of ints and floats, and checks them: all have the same slots, and no slot is empty.

    Raises (while it runs):
        ValueError: a sample is not a list or tuple, a name is not a str, values are not a non-empty list of ints and
        floats, or slots differ from those of the first sample.

    Examples:
        >>> class Pairs(MultiSlotDataGenerator):
        ...     def generate_sample(self, line):
        ...         return lambda: [[("x", [0.5, n]), ("y", [n])] for n in range(2)]
        >>> Pairs().run_from_memory()
        2 0.5 0 1 0
        2 0.5 1 1 1
    """

    def _gen_str(self, line):
        _check_sample(line)
        known = self._proto_info
        if known is not None and len(line) != len(known):
            raise InvalidValue("a sample must have as many slots as the first one (%d), got %d"
                               % (len(known), len(line)))
        info = list(known) if known is not None else [None] * len(line)
        fields = []
        for place, (name, values) in enumerate(line):
            self._check_slot(name, values, info[place])
            floats = [self._is_float(name, value) for value in values]
            kind = "float" if any(floats) or (info[place] and info[place][1] == "float") else "uint64"
            info[place] = (name, kind)
            fields.append(str(len(values)))
            fields += [str(value if is_float else int(value)) for value, is_float in zip(values, floats)]
        self._proto_info = info
        return " ".join(fields) + "\n"

    @staticmethod
    def _check_slot(name, values, known):
        if not isinstance(name, str):
            raise InvalidValue("the name of a slot must be a str, got %s" % type(name).__name__)
        if not isinstance(values, list):
            raise InvalidValue("the values of slot %s must be a list, got %s" % (name, type(values).__name__))
        if not values:
            raise InvalidValue("slot %s must not be empty: add a padding value" % name)
        if known is not None and known[0] != name:
            raise InvalidValue("a sample has slot %s, but the first one had %s" % (name, known[0]))

    @staticmethod
    def _is_float(name, value):
        if isinstance(value, numbers.Integral):
            return False
        if isinstance(value, numbers.Real):
            return True
        raise InvalidValue("a value of slot %s must be an int or float, got %r" % (name, value))


class MultiSlotStringDataGenerator(DataGenerator):
    """Writes samples with values that are strings. It is faster, as it only checks the sample itself.

    Raises (while it runs):
        ValueError: a sample is not a list or tuple.

    Examples:
        >>> class Copy(MultiSlotStringDataGenerator):
        ...     def generate_sample(self, line):
        ...         return lambda: [[("x", ["0.5", "2"]), ("y", ["1"])]]
        >>> Copy().run_from_memory()
        2 0.5 2 1 1
    """

    def _gen_str(self, line):
        _check_sample(line)
        return " ".join(" ".join([str(len(values)), *values]) for _, values in line) + "\n"
