"""Classes of Fluid 1.8.5's ``layers.control_flow`` and ``data_feeder`` that scripts import although they are private.

Scripts run by ``anabranch run`` find them in these modules, as ``_legacy/imported_names.json`` lists.
"""
from __future__ import annotations

import types
from typing import Any

from .framework.dtype import convert_np_dtype_to_dtype_
from .layers.branches import ConditionalBlock
from .layers.loops import While
from .layers.row_branches import IfElse
from .layers.static_rnn import StaticRNN
from .reading.data_feeder import _Column

__all__: list[str] = []


class _Guard:
    """A context manager for the body of a layer of control flow."""

    def __init__(self, entered: Any) -> None:
        self._entered = entered

    def __enter__(self) -> Any:
        return self._entered.__enter__()

    def __exit__(self, *exception: Any) -> Any:
        return self._entered.__exit__(*exception)


class WhileGuard(_Guard):
    """The body of a While."""

    def __init__(self, while_op: While) -> None:
        super().__init__(while_op.block())


class ConditionalBlockGuard(_Guard):
    """The body of a ConditionalBlock."""

    def __init__(self, block: ConditionalBlock) -> None:
        super().__init__(block.block())


class BlockGuardWithCompletion(_Guard):
    """The body of a StaticRNN."""

    def __init__(self, rnn: StaticRNN) -> None:
        super().__init__(rnn.step())


class IfElseBlockGuard(_Guard):
    """One of the two bodies of an IfElse."""

    def __init__(self, is_true: bool, ifelse: IfElse) -> None:
        super().__init__(ifelse.true_block() if is_true else ifelse.false_block())


class StaticRNNMemoryLink:
    """A state of a StaticRNN: its first value, its value before the step, and its value after it.

    >>> StaticRNNMemoryLink("init", "before").mem is None
    True
    """

    def __init__(self, init: Any, pre_mem: Any, mem: Any = None) -> None:
        self.init, self.pre_mem, self.mem = init, pre_mem, mem


class DataToLoDTensorConverter:
    """Collects one field of all samples of a batch, and makes a tensor of it.

    Args:
        place (Place): ignored, because tensors are made in host memory.
        lod_level (int): number of levels of nested sequences.
        shape (list): shape of a row, with -1 for any extent.
        dtype (VarType|str): dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> column = DataToLoDTensorConverter(fluid.CPUPlace(), 1, [-1, 1], "int64")
        >>> column.feed([1, 2]), column.feed([3])
        (None, None)
        >>> column.done().recursive_sequence_lengths()
        [[2, 1]]
    """

    def __init__(self, place: Any, lod_level: int, shape: Any, dtype: Any) -> None:
        self.place, self.lod_level, self.shape, self.dtype = place, lod_level, shape, dtype
        self._reset()

    def _reset(self) -> None:
        self._column = _Column(types.SimpleNamespace(name="data", lod_level=self.lod_level, shape=self.shape,
                                                     dtype=convert_np_dtype_to_dtype_(self.dtype)))

    def feed(self, data: Any) -> None:
        """Adds the field of a sample."""
        self._column.add(data)

    def done(self) -> Any:
        """LoDTensor: the fields so far. The next batch starts."""
        made = self._column.tensor()
        self._reset()
        return made
