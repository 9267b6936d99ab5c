"""DataFeeder: samples to feed dicts; and the checks of arguments that layers use."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core
from ..described import Described
from ..errors import InvalidType, InvalidValue, Violated
from ..framework import Variable, _cpu_num, cuda_places, default_main_program
from ..framework.dtype import as_dtype, dtype_name, numpy_dtype
from ..framework.places import CUDAPlace

if TYPE_CHECKING:
    from ..framework import Program
    from ..hints import DType, Place

__all__ = ["DataFeeder"]


def convert_dtype(dtype: DType) -> str:
    """str: name of a dtype given in any form; ValueError when it is none.

    >>> convert_dtype(np.float32), convert_dtype("int64")
    ('float32', 'int64')
    """
    return dtype_name(as_dtype(dtype))


def check_type(input: Any, input_name: Any, expected_type: Any, op_name: Any, extra_message: Any = "") -> None:
    """Raises TypeError unless ``input`` is an ``expected_type`` (a class or tuple of classes)."""
    if not isinstance(input, expected_type):
        classes = expected_type if isinstance(expected_type, tuple) else (expected_type,)
        raise InvalidType("%s: %s must be a %s, got %s. %s"
                          % (op_name, input_name, " or ".join(c.__name__ for c in classes),
                                                          type(input).__name__, extra_message))


def check_dtype(input_dtype: Any, input_name: Any, expected_dtype: Any, op_name: Any, extra_message: Any = "") -> None:
    """Raises TypeError unless the dtype is one of ``expected_dtype`` (a name or several)."""
    expected = (expected_dtype,) if isinstance(expected_dtype, str) else tuple(expected_dtype)
    try:
        name = convert_dtype(input_dtype)
    except InvalidValue:
        name = repr(input_dtype)
    if name not in expected:
        raise InvalidType("%s: the dtype of %s must be one of %s, got %s. %s"
                          % (op_name, input_name, ", ".join(expected), name, extra_message))


def check_variable_and_dtype(input: Any, input_name: Any, expected_dtype: Any, op_name: Any,
                             extra_message: Any = "") -> None:
    """Raises TypeError unless ``input`` is a Variable of one of these dtypes."""
    check_type(input, input_name, Variable, op_name, extra_message)
    check_dtype(input.dtype, input_name, expected_dtype, op_name, extra_message)


class _Column:
    """Collects one field of all samples."""

    def __init__(self, variable):
        self.name = variable.name
        self.lod_level = variable.lod_level
        self.dtype = numpy_dtype(variable.dtype)
        self.shape = list(variable.shape)
        self.rows = []
        self.lengths = [[] for _ in range(self.lod_level)]

    def add(self, field):
        self._add(field, 0)

    def _add(self, field, level):
        if level == self.lod_level:
            self.rows.append(field)
            return
        self.lengths[level].append(len(field))
        for item in field:
            self._add(item, level + 1)

    def tensor(self):
        try:
            array = np.array(self.rows, dtype=self.dtype)
        except ValueError as e:
            raise InvalidValue("DataFeeder: the samples of %s have no common shape: %s" % (self.name, e)) from None
        if self.shape:
            array = self._reshape(array)
        tensor = _core.LoDTensor()
        tensor.set(array, _core.CPUPlace())
        if self.lod_level:
            tensor.set_recursive_sequence_lengths(self.lengths)
        return tensor

    def _reshape(self, array):
        """Samples are brought into their declared form one by one, or else all together; samples that have as many axes
        as were declared stay as they are, and the run says whether they fit."""
        each = [len(self.rows)] + self.shape[1:] if self.shape[0] < 0 else self.shape
        for shape in (each, self.shape if array.ndim != len(self.shape) else array.shape):
            if shape.count(-1) <= 1:
                try:
                    return array.reshape(shape)
                except ValueError:
                    continue
        if self.shape.count(-1) > 1:
            return array
        raise InvalidValue("DataFeeder: the samples of %s must fit the shape %s, got the shape %s together"
                           % (self.name, self.shape, list(array.shape)))


class DataFeeder(Described):
    """Turns lists of samples into feed dicts.

    Args:
        feed_list (list of Variable|str): the variables, in the order of a sample's fields.
        place (CPUPlace|CUDAPlace): where programs run. The tensors are made in main memory, from where runs copy them.
        program (Program, optional): where names are looked up; the default main program when missing.

    Raises:
        TypeError: an item that is neither Variable nor name. ValueError: a name that the program does not have.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> with fluid.program_guard(fluid.Program(), fluid.Program()):
        ...     x, y = fluid.data("x", [None, 2]), fluid.data("y", [None, 1], "int64")
        ...     feeder = fluid.DataFeeder([x, y], fluid.CPUPlace())
        >>> feed = feeder.feed([([1, 2], 0), ([3, 4], 1)])
        >>> feed["x"].shape(), feed["y"].shape()
        ([2, 2], [2, 1])
    """

    def __init__(self, feed_list: Sequence[Variable | str], place: Place, program: Program | None = None) -> None:
        program = program or default_main_program()
        self.place = place
        self._variables: list[Variable] = []
        for item in feed_list:
            if isinstance(item, str):
                item = program.global_block().var(item)
            if not isinstance(item, Variable):
                raise InvalidType("DataFeeder: feed_list must hold Variables or names, got %s" % type(item).__name__)
            self._variables.append(item)
        self._feed_list = self._variables
        self.feed_names = [v.name for v in self._variables]

    def feed(self, iterable: Any) -> dict[str, Any]:
        """A feed dict of one batch.

        Args:
            iterable: samples, each a sequence with one field per variable; fields of variables with LoD are (nested)
                lists.

        Returns:
            dict: name -> LoDTensor.

        Raises:
            AssertionError: a sample with another number of fields. ValueError: a field of another shape.
        """
        columns = [_Column(v) for v in self._variables]
        for sample in iterable:
            if len(sample) != len(columns):
                raise Violated("DataFeeder: a sample has %d fields, there are %d variables (%s)"
                               % (len(sample), len(columns), ", ".join(self.feed_names)))
            for column, field in zip(columns, sample):
                column.add(field)
        return {column.name: column.tensor() for column in columns}

    def feed_parallel(self, iterable: Any, num_places: int | None = None) -> Iterator[Any]:
        """A feed dict for each replica.

        Args:
            iterable: batches, one a replica.
            num_places (int, optional): number of replicas. Default: ``CPU_NUM``; for a CUDAPlace all devices.

        Yields:
            dict: as from :meth:`feed`.

        Raises:
            ValueError: another number of batches.
        """
        count = self._replicas(num_places)
        batches = list(iterable)
        if len(batches) != count:
            raise InvalidValue("DataFeeder.feed_parallel: %d replicas need as many batches, got %d"
                               % (count, len(batches)))
        for batch in batches:
            yield self.feed(batch)

    def _replicas(self, num_places):
        if num_places is not None:
            return int(num_places)
        return len(cuda_places()) if isinstance(self.place, CUDAPlace) else _cpu_num()

    def decorate_reader(self, reader: Callable[..., Any], multi_devices: bool, num_places: int | None = None,
                        drop_last: bool = True) -> Callable[..., Any]:
        """A reader of feed dicts from a reader of batches.

        Args:
            reader (callable): gives batches (lists of samples).
            multi_devices (bool): gives lists with one dict per replica, else single dicts.
            num_places (int, optional): number of replicas. Default: ``CPU_NUM``; for a CUDAPlace all devices.
            drop_last (bool): drops batches left over at the end; else they raise ValueError. Default True.

        Returns:
            callable: the reader.
        """
        def single():
            for batch in reader():
                yield self.feed(batch)

        def grouped():
            count = self._replicas(num_places)
            group = []
            for batch in reader():
                group.append(batch)
                if len(group) == count:
                    yield list(self.feed_parallel(group, count))
                    group = []
            if group and not drop_last:
                raise InvalidValue("DataFeeder.decorate_reader: %d batches are left over, %d replicas need as many; "
                                   "use drop_last=True" % (len(group), count))

        return grouped if multi_devices else single
