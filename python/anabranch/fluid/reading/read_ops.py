"""The ops of a reader in a program."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..framework.dtype import VarType

if TYPE_CHECKING:
    from ..framework import Variable
    from ..framework.block import Block


def append_reader(block: Block, variables: Sequence[Variable], queue_name: str, name: str, buffer_name: str | None,
                  startup: Block | None = None) -> Variable:
    """Appends the ops of a reader to ``block``.

    Args:
        block (Block): the global block of the main program.
        variables (list of Variable): variables that a batch fills.
        queue_name (str), name (str): names of the queue and of the reader.
        buffer_name (str|None): name of the reader that buffers; None if there is none.
        startup (Block): block of the op that creates the reader. Default: ``block``.

    Returns:
        Variable: the reader to read from.
    """
    shapes = [list(v.shape) for v in variables]
    attrs = {"shape_concat": [extent for shape in shapes for extent in shape], "ranks": [len(s) for s in shapes],
             "lod_levels": [v.lod_level for v in variables], "dtypes": [int(v.dtype) for v in variables],
             "need_check_feed": [int(v.need_check_feed) for v in variables]}
    owner = block if startup is None else startup
    queue = owner.create_var(name=queue_name, type=VarType.RAW)
    reader = owner.create_var(name=name, type=VarType.READER, persistable=True)
    _describe(reader, shapes, [v.dtype for v in variables], attrs["lod_levels"])
    owner.append_op(type="create_py_reader", inputs={"blocking_queue": queue}, outputs={"Out": reader}, attrs=attrs)
    reader = _in_block(block, reader)
    if buffer_name is None:
        return reader
    return append_buffer(block, reader, buffer_name)


def append_buffer(block: Any, reader: Any, name: str) -> Any:
    """Appends the op of a reader that buffers another one, and returns its Variable."""
    buffered = block.create_var(name=name, type=VarType.READER, persistable=True, stop_gradient=True)
    _copy_description(reader, buffered)
    block.append_op(type="create_double_buffer_reader", inputs={"UnderlyingReader": reader}, outputs={"Out": buffered},
                    attrs={"place": "AUTO"})
    return buffered


def _describe(reader: Any, shapes: Any, dtypes: Any, lod_levels: Any) -> None:
    """Writes the tensors of a batch into the description of a reader."""
    reader.desc.set_shapes(shapes)
    reader.desc.set_dtypes([int(dtype) for dtype in dtypes])
    reader.desc.set_lod_levels(lod_levels)


def _copy_description(source: Any, target: Any) -> None:
    _describe(target, source.desc.shapes(), source.desc.dtypes(), source.desc.lod_levels())


def _in_block(block, reader):
    """The variable of the reader in ``block``."""
    if reader.block is not block:
        created, reader = reader, block.create_var(name=reader.name, type=VarType.READER, persistable=True)
        _copy_description(created, reader)
    reader.stop_gradient = True
    return reader


def read_into(block: Any, reader: Any, variables: Any, drop_last: Any = True) -> None:
    """Appends the op that fills ``variables`` with the next batch."""
    block.append_op(type="read", inputs={"Reader": reader}, outputs={"Out": variables},
                    attrs={"throw_eof_exp": True, "infer_out": True, "drop_last": drop_last})
