"""Splitting variables into shards by rows, and the names of the shards."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class VarBlock:
    """A shard of a variable before it has a server: its name, number and elements.

    Examples:
        >>> from anabranch.fluid.transpiler.distribute_transpiler import VarBlock
        >>> str(VarBlock("w", 0, 100))
        'w:0:100'
    """

    def __init__(self, varname: str, offset: int, size: int) -> None:
        self.varname = varname
        self.offset = offset
        self.size = size

    def __str__(self) -> str:
        return "%s:%d:%d" % (self.varname, self.offset, self.size)


class Shard(NamedTuple):
    """Rows of a parameter that one server keeps, and its gradient."""

    param: str            # name of the whole parameter
    grad: str             # name of its gradient, before workers append their number
    name: str             # name of the shard on its server
    grad_name: str        # likewise
    begin: int            # first row
    shape: tuple[int, ...]
    endpoint: str         # the server

    @property
    def rows(self) -> int:
        """int: extent of the first axis; -1 of a growable table."""
        return self.shape[0]


def elements(shape: Sequence[int]) -> int:
    """int: number of elements of a tensor of this shape."""
    count = 1
    for extent in shape:
        count *= extent
    return count


def cut(shape: Sequence[int], shards: int, least: int) -> list[int]:
    """The sizes of at most ``shards`` shards, each of whole rows and at least ``least`` elements."""
    total = elements(shape)
    count = min(shards, max(1, total // least))
    size = -(-total // count)
    if len(shape) >= 2:
        row = elements(shape[1:])
        size = -(-size // row) * row
    return [min(size, total - begin) for begin in range(0, total, size)]


def slice_variable(var_list: Sequence[Any], slice_count: int, min_block_size: int) -> list[str]:
    """The blocks of variables, as ``name:number:elements``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> from anabranch.fluid.transpiler.distribute_transpiler import slice_variable
        >>> w = fluid.Program().global_block().create_var(name="w", shape=[20, 1000], dtype="float32")
        >>> slice_variable([w], 2, 8192)
        ['w:0:10000', 'w:1:10000']
    """
    return [str(VarBlock(var.name, number, size)) for var in var_list
            for number, size in enumerate(cut(var.shape, slice_count, min_block_size))]


def shards_of(param: Any, grad: str, shards: int, least: int) -> list[Shard]:
    """The shards of a parameter, not yet assigned to servers; a parameter that is not split keeps its name."""
    width = elements(param.shape[1:])
    sizes = cut(param.shape, shards, least)
    found, begin = [], 0
    for number, size in enumerate(sizes):
        suffix = ".block%d" % number if len(sizes) > 1 else ""
        shape = (size // width, *param.shape[1:])
        found.append(Shard(param.name, grad, param.name + suffix, grad + suffix, begin, shape, ""))
        begin += shape[0]
    return found


def shards_by_key(param: Any, grad: str, endpoints: Sequence[str]) -> list[Shard]:
    """The shards of a growable table: one per server, with the keys that hash to it."""
    suffixes = [".block%d" % number if len(endpoints) > 1 else "" for number in range(len(endpoints))]
    return [Shard(param.name, grad, param.name + suffix, grad + suffix, 0, tuple(param.shape), endpoint)
            for suffix, endpoint in zip(suffixes, endpoints)]


def same_or_split_var(p_name: str, var_name: str) -> bool:
    """bool: whether ``p_name`` is the variable or a shard of it."""
    return p_name == var_name or p_name.startswith(var_name + ".block")
