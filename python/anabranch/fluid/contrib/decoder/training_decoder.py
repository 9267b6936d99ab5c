"""A decoder for training, which reads given sequences."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ... import arguments
from ...described import Described
from ...errors import InvalidType, InvalidValue
from ...framework import Variable
from ...layer_helper import LayerHelper
from ...layers import DynamicRNN
from .states import StateCell, _MemoryState

__all__ = ["TrainingDecoder"]


class TrainingDecoder(Described):
    """Runs a cell over given sequences, as a :class:`~fluid.layers.DynamicRNN` does.

    Args:
        state_cell (StateCell): cell that updates the states in each step.
        name (str, optional): prefix of the generated names.

    Raises:
        ValueError: the cell is in another decoder.
        TypeError: ``state_cell`` is not a StateCell.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> layers, contrib = fluid.layers, fluid.contrib
        >>> words = fluid.data("words", [None, 6], lod_level=1)
        >>> first = contrib.InitState(init=fluid.data("source", [None, 8]), need_reorder=True)
        >>> cell = contrib.StateCell(inputs={"word": None}, states={"h": first}, out_state="h")
        >>> @cell.state_updater
        ... def update(cell):
        ...     cell.set_state("h", layers.fc([cell.get_input("word"), cell.get_state("h")], 8, act="tanh"))
        >>> decoder = contrib.TrainingDecoder(cell)
        >>> with decoder.block():
        ...     cell.compute_state(inputs={"word": decoder.step_input(words)})
        ...     decoder.output(layers.fc(cell.get_state("h"), 20, act="softmax"))
        ...     cell.update_states()
        >>> decoder().shape
        (-1, 20)
    """

    BEFORE_DECODER, IN_DECODER, AFTER_DECODER = 0, 1, 2

    def __init__(self, state_cell: StateCell, name: str | None = None) -> None:
        if not isinstance(state_cell, StateCell):
            raise InvalidType("TrainingDecoder: state_cell must be a StateCell, got %s" % type(state_cell).__name__)
        self._helper = LayerHelper("training_decoder", name=name)
        self._status = TrainingDecoder.BEFORE_DECODER
        self._dynamic_rnn = DynamicRNN()
        self._state_cell = state_cell
        self._state_cell._enter_decoder(self)

    def _hold(self, name, init):
        return _MemoryState(name, self._dynamic_rnn, init)

    def _inside(self, method):
        if self._status != TrainingDecoder.IN_DECODER:
            raise InvalidValue("TrainingDecoder.%s must be called inside `with decoder.block()`" % method)

    @contextlib.contextmanager
    def block(self) -> Iterator[None]:
        """Context manager for the layers of one step.

        Raises:
            ValueError: there is already a block.
        """
        if self._status != TrainingDecoder.BEFORE_DECODER:
            raise InvalidValue("TrainingDecoder.block must be called only once")
        self._status = TrainingDecoder.IN_DECODER
        with self._dynamic_rnn.block():
            yield
        self._status = TrainingDecoder.AFTER_DECODER
        self._state_cell._leave_decoder(self)

    @property
    def state_cell(self) -> StateCell:
        """StateCell: the cell. Available inside of the block."""
        self._inside("state_cell")
        return self._state_cell

    @property
    def dynamic_rnn(self) -> DynamicRNN:
        """DynamicRNN: the network that runs the steps."""
        return self._dynamic_rnn

    @property
    def type(self) -> int:
        """int: 1."""
        return 1

    def step_input(self, x: Variable) -> Variable:
        """Adds sequences as input, one row per step.

        Args:
            x (Variable): Variable with sequences.

        Returns:
            Variable: the rows of a step.

        Raises:
            ValueError: it is called outside of the block.
        """
        self._inside("step_input")
        return self._dynamic_rnn.step_input(x)

    def static_input(self, x: Variable) -> Variable:
        """Makes a Variable available in every step.

        Args:
            x (Variable): one row, or sequence, per sequence of the input.

        Returns:
            Variable: ``x``, sorted by the length of the sequences.

        Raises:
            ValueError: it is called outside of the block.
        """
        self._inside("static_input")
        return self._dynamic_rnn.static_input(x)

    def output(self, *outputs: Variable) -> None:
        """Sets results of the step.

        Raises:
            ValueError: it is called outside of the block.
        """
        self._inside("output")
        self._dynamic_rnn.output(*outputs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the results with the sequences of the input.

        Returns:
            Variable: the result, or a list of several.

        Raises:
            ValueError: it is called before the end of the block.
        """
        if self._status != TrainingDecoder.AFTER_DECODER:
            raise InvalidValue("TrainingDecoder: call it after `with decoder.block()`, which computes the results")
        return self._dynamic_rnn(*args, **kwargs)


arguments.explain(globals())
