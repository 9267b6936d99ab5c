"""DataFeeder, which converts samples to feed dicts, and the argument checks that layers use."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core
from ..._near import near
from ..._terminal import counted
from .. import arguments
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
    """str: name of a dtype given in any form. ValueError if there is no such dtype.

    >>> convert_dtype(np.float32), convert_dtype("int64")
    ('float32', 'int64')
    """
    return dtype_name(as_dtype(dtype))


def check_type(input: Any, input_name: Any, expected_type: Any, op_name: Any, extra_message: Any = "") -> None:
    """Raises TypeError unless ``input`` is an ``expected_type`` (a class or tuple of classes)."""
    if not isinstance(input, expected_type):
        classes = expected_type if isinstance(expected_type, tuple) else (expected_type,)
        raise InvalidType(("%s: %s must be a %s, got %s. %s" % (
            op_name, input_name, " or ".join(c.__name__ for c in classes), type(input).__name__,
            extra_message)).rstrip(". "))


def check_dtype(input_dtype: Any, input_name: Any, expected_dtype: Any, op_name: Any, extra_message: Any = "") -> None:
    """Raises TypeError unless the dtype is one of ``expected_dtype`` (a name or several)."""
    expected = (expected_dtype,) if isinstance(expected_dtype, str) else tuple(expected_dtype)
    try:
        name = convert_dtype(input_dtype)
    except InvalidValue:
        name = repr(input_dtype)
    if name not in expected:
        what = "dtype" if input_name == "dtype" else "the dtype of %s" % input_name
        raise InvalidType(("%s: %s must be one of %s, got %s%s. %s" % (
            op_name, what, ", ".join(expected), name, near(name.strip("'"), expected), extra_message)).rstrip(". "))


def check_variable_and_dtype(input: Any, input_name: Any, expected_dtype: Any, op_name: Any,
                             extra_message: Any = "") -> None:
    """Raises TypeError unless ``input`` is a Variable of one of these dtypes."""
    check_type(input, input_name, Variable, op_name, extra_message)
    check_dtype(input.dtype, input_name, expected_dtype, op_name, extra_message)


def _plain_numbers(value):
    """Lists as they are, except that an array of one number becomes that number."""
    if isinstance(value, (list, tuple)):
        return [_plain_numbers(item) for item in value]
    return value.item() if isinstance(value, np.ndarray) and value.size == 1 else value


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
        try:
            self.lengths[level].append(len(field))
        except TypeError:
            raise InvalidType(self._needs(type(field).__name__)) from None
        for item in field:
            self._add(item, level + 1)

    def tensor(self):
        try:
            array = np.array(self.rows, dtype=self.dtype)
        except ValueError:
            array = self._mixed()
        if self.shape:
            array = self._reshape(array)
        tensor = _core.LoDTensor()
        tensor.set(array, _core.CPUPlace())
        if self.lod_level:
            if sum(self.lengths[-1]) != array.shape[0]:  # the numbers of one row were taken for rows
                raise InvalidValue(self._needs("%s that make %s" % (
                    counted(len(self.rows), "number"), counted(array.shape[0], "row"))))
            tensor.set_recursive_sequence_lengths(self.lengths)
        return tensor

    def _mixed(self):
        """Rows that are numbers here and arrays of one number there, as numbers: earlier NumPy accepted the mixture."""
        try:
            return np.array(_plain_numbers(self.rows), dtype=self.dtype)
        except ValueError as e:
            raise InvalidValue("DataFeeder: the samples of %s must have the same shape: %s" % (self.name, e)) from None

    def _needs(self, got):
        """The text of an error for a field with too few levels of lists."""
        return ("DataFeeder: a sample of %s must be a sequence of rows, %s, because its lod_level is %d; got %s"
                % (self.name, "nested %d deep" % self.lod_level if self.lod_level > 1 else "a list of rows of shape %s"
                   % self.shape[1:], self.lod_level, got))

    def _reshape(self, array):
        """Reshapes samples to their declared shape, one by one or else together. Samples with the declared number of
        axes are unchanged; the run checks them."""
        each = [len(self.rows)] + self.shape[1:] if self.shape[0] < 0 else self.shape
        for shape in (each, self.shape if array.ndim != len(self.shape) else array.shape):
            if shape.count(-1) <= 1:
                try:
                    return array.reshape(shape)
                except ValueError:
                    continue
        if self.shape.count(-1) > 1:
            return array
        raise InvalidValue("DataFeeder: the samples of %s must fit the shape %s, got the combined shape %s"
                           % (self.name, self.shape, list(array.shape)))


class DataFeeder(Described):
    """Converts lists of samples to feed dicts.

    Args:
        feed_list (list of Variable|str): the variables, in the order of a sample's fields.
        place (CPUPlace|CUDAPlace): place on which programs run. Tensors are created in host memory; runs copy them.
        program (Program, optional): program in which names are looked up. Default: the default main program.

    Raises:
        TypeError: an item is neither Variable nor name.
        ValueError: the program has no variable of that name.

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
        self.feed_dtypes = [v.dtype for v in self._variables]
        self.feed_shapes = [list(v.shape) for v in self._variables]
        self.feed_lod_level = [v.lod_level for v in self._variables]

    def feed(self, iterable: Any) -> dict[str, Any]:
        """Converts one batch to a feed dict.

        Args:
            iterable: samples, each a sequence with one field per variable; fields of variables with LoD are (nested)
                lists.

        Returns:
            dict: name -> LoDTensor.

        Raises:
            AssertionError: a sample has the wrong number of fields.
            ValueError: a field has the wrong shape.
        """
        columns = [_Column(v) for v in self._variables]
        for sample in iterable:
            if len(sample) != len(columns):
                raise Violated("DataFeeder: a sample must have one field for each variable (%s), got %d"
                               % (", ".join(self.feed_names), len(sample)))
            for column, field in zip(columns, sample):
                column.add(field)
        return {column.name: column.tensor() for column in columns}

    def feed_parallel(self, iterable: Any, num_places: int | None = None) -> Iterator[Any]:
        """Converts batches to one feed dict per replica.

        Args:
            iterable: batches, one per replica.
            num_places (int, optional): number of replicas. Default: ``CPU_NUM``; for a CUDAPlace all devices.

        Yields:
            dict: a result of :meth:`feed`.

        Raises:
            ValueError: the number of batches differs from that of replicas.
        """
        count = self._replicas(num_places)
        batches = list(iterable)
        if len(batches) != count:
            raise InvalidValue("DataFeeder.feed_parallel: the number of batches must be %d, one per replica, got %d"
                               % (count, len(batches)))
        for batch in batches:
            yield self.feed(batch)

    def _replicas(self, num_places):
        if num_places is not None:
            return int(num_places)
        return len(cuda_places()) if isinstance(self.place, CUDAPlace) else _cpu_num()

    def decorate_reader(self, reader: Callable[..., Any], multi_devices: bool, num_places: int | None = None,
                        drop_last: bool = True) -> Callable[..., Any]:
        """Converts a reader of batches to a reader of feed dicts.

        Args:
            reader (callable): reader of batches (lists of samples).
            multi_devices (bool): whether to yield lists with one dict per replica, rather than single dicts.
            num_places (int, optional): number of replicas. Default: ``CPU_NUM``; for a CUDAPlace all devices.
            drop_last (bool): whether to drop batches left over at the end; if not, they raise ValueError. Default True.

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
                raise InvalidValue("DataFeeder.decorate_reader: the last batches must fill all replicas (%d), got %d: "
                                   "pass drop_last=True" % (count, len(group)))

        return grouped if multi_devices else single


arguments.explain(globals())
