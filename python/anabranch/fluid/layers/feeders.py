"""Readers as layers, the older alternative to ``DataLoader``."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import unique_name
from ..errors import InvalidType, InvalidValue
from ..explained import explain
from ..framework import default_main_program, default_startup_program
from ..framework.dtype import VarType, as_dtype
from ..layer_helper import LayerHelper
from ..reading.data_feeder import DataFeeder
from ..reading.decorators import batch as batched
from ..reading.generator_loader import ready_tensors
from ..reading.read_ops import append_buffer, append_reader, read_into
from ..reading.reader_source import ReaderSource

if TYPE_CHECKING:
    from ..framework import Variable
    from ..hints import Place

__all__ = ["py_reader", "create_py_reader_by_data", "read_file", "double_buffer"]


class _Described:
    """A tensor of a batch that has no Variable yet."""

    def __init__(self, shape, dtype, lod_level, need_check_feed, name):
        self.shape = [-1 if extent is None else int(extent) for extent in shape]
        self.dtype, self.lod_level, self.need_check_feed, self.name = dtype, lod_level, need_check_feed, name


class _Control:
    """Additional methods of a reader Variable, which set its source and start or stop a pass."""

    def __init__(self, variables, capacity):
        self.variables = variables
        self.source = ReaderSource([v.name for v in variables], capacity, True, "py_reader")

    def decorate_tensor_provider(self, reader):
        """Sets a source of complete batches: one array or LoDTensor per variable."""
        def batches():
            for number, batch in enumerate(reader()):
                yield ready_tensors(batch, number, self.source.names, "py_reader")

        self.source.set_batches(batches)

    def decorate_sample_list_generator(self, reader, places=None):
        """Sets a source of batches that are lists of samples."""
        feeder = DataFeeder([_as_variable(v) for v in self.variables], None)

        def batches():
            for samples in reader():
                feed = feeder.feed(samples)
                yield [feed[name] for name in self.source.names]

        self.source.set_batches(batches)

    def decorate_sample_generator(self, sample_generator, batch_size, drop_last=True, places=None):
        """Sets a source of samples, which are grouped into batches."""
        self.decorate_sample_list_generator(batched(sample_generator, batch_size, drop_last))

    def attach(self, reader):
        """Adds these methods to the Variable."""
        source = self.source
        reader.start, reader.reset = source.start, source.reset
        reader.decorate_tensor_provider = reader.decorate_batch_generator = self.decorate_tensor_provider
        reader.decorate_paddle_reader = reader.decorate_sample_list_generator = self.decorate_sample_list_generator
        reader.decorate_sample_generator = self.decorate_sample_generator
        reader.queue = source.view()
        reader._described, reader._source = self.variables, source
        return reader


def _as_variable(described):
    """Creates a Variable in a separate program, to convert samples."""
    from ..framework import Program
    return Program().global_block().create_var(name=described.name, shape=described.shape, dtype=described.dtype,
                                               lod_level=described.lod_level)


def _make(described, capacity, name, use_double_buffer):
    if capacity is None or capacity <= 0:
        raise InvalidValue("py_reader: capacity, the number of batches made ahead, must be at least 1, got %s"
                           % capacity)
    main, startup = default_main_program().global_block(), default_startup_program().global_block()
    names = ([name + "_queue", name + "_reader", name + "_double_buffer"] if name is not None else
             [unique_name.generate(key) for key in ("lod_tensor_blocking_queue", "create_py_reader")])
    if use_double_buffer and name is None:
        names.append(unique_name.generate("double_buffer"))
    reader = append_reader(main, described, names[0], names[1], names[2] if use_double_buffer else None, startup)
    control = _Control(described, capacity)
    main.program._readers = dict(main.program._readers, **{reader.name: control.source, names[1]: control.source})
    return control.attach(reader)


def py_reader(capacity: int, shapes: Sequence[Sequence[Any]], dtypes: Sequence[str],
              lod_levels: Sequence[int] | None = None, name: str | None = None,
              use_double_buffer: bool = True) -> Variable:
    """Creates a reader inside the program. ``read_file`` returns the Variables of its batches.

    Args:
        capacity (int): number of batches to prepare ahead of time, at least 1.
        shapes (list of list): shape of each tensor. -1 stands for any extent.
        dtypes (list of str): dtypes of the tensors.
        lod_levels (list of int, optional): number of LoD levels of each tensor. Default 0.
        name (str, optional): prefix of the names of its variables.
        use_double_buffer (bool): appends the op of a double buffer. Batches are prepared ahead of time in any case.
            Default True.

    Returns:
        Variable: the reader, with the methods ``decorate_paddle_reader`` (lists of samples),
        ``decorate_tensor_provider`` (arrays), ``start`` and ``reset``. After ``start``, each ``Executor.run`` takes
        one batch. After the last batch, it raises EOFException.

    Raises:
        ValueError: ``capacity`` is below 1, or the lists have different lengths.

    Examples:
        >>> import numpy, anabranch.fluid as fluid
        >>> main, startup = fluid.Program(), fluid.Program()
        >>> with fluid.program_guard(main, startup):
        ...     reader = fluid.layers.py_reader(4, [[-1, 2]], ["float32"])
        ...     x = fluid.layers.read_file(reader)
        ...     total = fluid.layers.reduce_sum(x)
        >>> reader.decorate_tensor_provider(lambda: ([numpy.full((3, 2), i, "float32")] for i in range(2)))
        >>> exe = fluid.Executor()
        >>> _ = exe.run(startup)
        >>> reader.start()
        >>> exe.run(main, fetch_list=[total])[0].tolist(), exe.run(main, fetch_list=[total])[0].tolist()
        ([0.0], [6.0])
        >>> reader.reset()
    """
    levels = [0] * len(shapes) if lod_levels is None else lod_levels
    if not len(shapes) == len(dtypes) == len(levels):
        raise InvalidValue("py_reader: shapes, dtypes and lod_levels must have the same length, got %d, %d and %d"
                           % (len(shapes), len(dtypes), len(levels)))
    described = [_Described(s, as_dtype(t), level, False, "read_%d" % i)
                 for i, (s, t, level) in enumerate(zip(shapes, dtypes, levels))]
    return _make(described, capacity, name, use_double_buffer)


def create_py_reader_by_data(capacity: int, feed_list: Sequence[Variable], name: str | None = None,
                             use_double_buffer: bool = True) -> Variable:
    """Like :func:`py_reader`, with the shapes, dtypes and levels of existing Variables.

    Args:
        capacity (int): number of batches to prepare ahead of time, at least 1.
        feed_list (list of Variable): Variables with the shapes and dtypes of a batch.
        name (str, optional), use_double_buffer (bool): as for ``py_reader``.

    Returns:
        Variable: the reader.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> reader = fluid.layers.create_py_reader_by_data(2, [fluid.data("x", [None, 2])])
        >>> fluid.layers.read_file(reader).shape
        (-1, 2)
    """
    described = [_Described(v.shape, v.dtype, v.lod_level, v.need_check_feed, v.name) for v in feed_list]
    return _make(described, capacity, name, use_double_buffer)


def read_file(reader: Variable) -> Variable | list[Variable]:
    """Returns the Variables that hold the batches of a reader.

    Args:
        reader (Variable): reader of ``py_reader``, ``create_py_reader_by_data`` or ``double_buffer``.

    Returns:
        Variable or list of Variable: one for each tensor of a batch.

    Raises:
        TypeError: ``reader`` is not a reader.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> reader = fluid.layers.py_reader(4, [[-1, 2], [-1, 1]], ["float32", "int64"])
        >>> [v.shape for v in fluid.layers.read_file(reader)]
        [(-1, 2), (-1, 1)]
    """
    described = getattr(reader, "_described", None)
    if described is None:
        raise InvalidType("read_file: reader must be a reader that py_reader created, got %s" % type(reader).__name__)
    helper = LayerHelper("read_file")
    out = []
    for d in described:
        variable = helper.create_variable_for_type_inference(dtype=d.dtype, stop_gradient=True)
        variable._var.shape = d.shape
        variable._var.lod_level = d.lod_level
        variable._var.need_check_feed = d.need_check_feed
        out.append(variable)
    read_into(reader.block, reader, out)
    return out[0] if len(out) == 1 else out


def double_buffer(reader: Variable, place: Place | None = None, name: str | None = None) -> Variable:
    """Appends the op of a double buffer. All readers prepare batches ahead of time, so it has no further effect.

    Args:
        reader (Variable): reader of ``py_reader``.
        place (CPUPlace, optional): has no effect; batches stay in host memory.
        name (str, optional): name of the new reader.

    Returns:
        Variable: the reader.

    Raises:
        TypeError: ``reader`` is not a reader.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> reader = fluid.layers.py_reader(4, [[-1, 2]], ["float32"], use_double_buffer=False)
        >>> fluid.layers.read_file(fluid.layers.double_buffer(reader)).shape
        (-1, 2)
    """
    described = getattr(reader, "_described", None)
    if described is None:
        raise InvalidType("double_buffer: reader must be a reader that py_reader created, got %s"
                          % type(reader).__name__)
    if reader.type != VarType.READER:
        raise InvalidType("double_buffer: reader must be a READER, got %s" % reader.type)
    block = reader.block
    buffered = append_buffer(block, reader, name if name is not None else unique_name.generate("double_buffer"))
    program = block.program
    program._readers = dict(program._readers, **{buffered.name: program._readers[reader.name]})
    for key, value in reader.__dict__.items():
        if key not in ("block", "desc", "op"):
            buffered.__dict__[key] = value
    return buffered


explain(globals())
