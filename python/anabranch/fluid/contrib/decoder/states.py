"""States of decoders: their initial values, and the cell that updates them in each step."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import arguments, unique_name
from ...described import Described
from ...errors import InvalidType, InvalidValue
from ...framework import Variable
from ...framework.dtype import VarType
from ...layer_helper import LayerHelper
from ...layers import array_read, array_write, fill_constant_batch_size_like, increment

__all__ = ["InitState", "StateCell"]


class InitState(Described):
    """The initial value of a decoder's state.

    Args:
        init (Variable, optional): initial value, [batch, ...]. Default: a constant.
        shape (list|tuple, optional): shape of the constant, with -1 for the batch.
        value (float): value of the constant. Default 0.
        init_boot (Variable, optional): Variable whose batch size is used for the constant.
        need_reorder (bool): ``init`` has the order of the input, and a decoder for training sorts it by length. Default
            False.
        dtype (str): dtype of the constant. Default "float32".

    Raises:
        ValueError: neither ``init`` nor ``init_boot`` is given.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> source = fluid.data("source", [None, 8])
        >>> fluid.contrib.InitState(init=source).value.name
        'source'
        >>> fluid.contrib.InitState(init_boot=source, shape=[-1, 3], value=0.5).value.shape
        (-1, 3)
    """

    def __init__(self, init: Variable | None = None, shape: Any = None, value: float = 0.0,
                 init_boot: Variable | None = None, need_reorder: bool = False, dtype: Any = "float32") -> None:
        if init is not None:
            self._init = init
        elif init_boot is None:
            raise InvalidValue("InitState: init or init_boot must be given")
        else:
            self._init = fill_constant_batch_size_like(input=init_boot, shape=shape, dtype=dtype, value=value)
        self._shape, self._value, self._need_reorder, self._dtype = shape, value, need_reorder, dtype

    @property
    def value(self) -> Variable:
        """Variable: the initial value."""
        return self._init

    @property
    def need_reorder(self) -> bool:
        """bool: the argument ``need_reorder``."""
        return self._need_reorder


class _MemoryState:
    """A state in a decoder for training: a memory of its DynamicRNN."""

    def __init__(self, name, rnn, init):
        self._rnn = rnn
        self._memory = rnn.memory(init=init.value, need_reorder=init.need_reorder)

    def get_state(self):
        return self._memory

    def update_state(self, value):
        self._rnn.update_memory(self._memory, value)


class _ArrayState:
    """A state in a beam search decoder: an array with one element per step."""

    def __init__(self, name, block, init):
        self._counter = block.create_var(name=unique_name.generate("array_state_counter"), dtype="int64")
        self._counter.stop_gradient = True
        block.append_op(type="fill_constant", outputs={"Out": [self._counter]},
                        attrs={"shape": [1], "dtype": self._counter.dtype, "value": 0.0, "force_cpu": True})
        self._array = block.create_var(name=unique_name.generate("array_state_array"), type=VarType.LOD_TENSOR_ARRAY,
                                       dtype=init.value.dtype)
        block.append_op(type="write_to_array", inputs={"X": init.value, "I": self._counter},
                        outputs={"Out": self._array})

    def get_state(self):
        return array_read(self._array, self._counter)

    def update_state(self, value):
        increment(self._counter)
        array_write(value, self._counter, self._array)


class StateCell(Described):
    """The named states of a decoder, and the function that updates them in each step.

    A cell is used by one decoder after the other: first by a :class:`TrainingDecoder`, then by a
    :class:`BeamSearchDecoder`.

    Args:
        inputs (dict): name -> Variable, or None for inputs that are passed to :meth:`compute_state`.
        states (dict): name -> :class:`InitState`.
        out_state (str): name of the state that :meth:`out_state` returns.
        name (str, optional): prefix of the generated names.

    Raises:
        ValueError: a state is not an InitState, or ``out_state`` is not among the states.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> layers, contrib = fluid.layers, fluid.contrib
        >>> source = fluid.data("source", [None, 8])
        >>> words = fluid.data("words", [None, 6], lod_level=1)
        >>> cell = contrib.StateCell(inputs={"word": None}, states={"h": contrib.InitState(init=source)}, out_state="h")
        >>> @cell.state_updater
        ... def update(cell):
        ...     cell.set_state("h", layers.fc([cell.get_input("word"), cell.get_state("h")], 8, act="tanh"))
        >>> decoder = contrib.TrainingDecoder(cell)
        >>> with decoder.block():
        ...     cell.compute_state(inputs={"word": decoder.step_input(words)})
        ...     cell.update_states()
        ...     decoder.output(cell.out_state())
        >>> decoder().shape
        (-1, 8)
    """

    def __init__(self, inputs: dict[str, Any], states: dict[str, Any], out_state: str, name: str | None = None) -> None:
        self._helper = LayerHelper("state_cell", name=name)
        for key, state in states.items():
            if not isinstance(state, InitState):
                raise InvalidValue("StateCell: state %s must be an InitState, got %s" % (key, type(state).__name__))
        if out_state not in states:
            raise InvalidValue("StateCell: out_state must be one of %s, got %r" % (", ".join(states), out_state))
        self._cur_states: dict[str, Any] = dict(states)
        self._init_states = dict(states)
        self._inputs = dict(inputs)
        self._out_state = out_state
        self._state_updater: Callable[..., Any] | None = None
        self._decoder: Any = None
        self._holders: dict[str, Any] = {}

    def _enter_decoder(self, decoder):
        if self._decoder is not None:
            raise InvalidValue("StateCell: the cell is in use by a decoder that has not ended")
        self._decoder, self._holders = decoder, {}

    def _leave_decoder(self, decoder):
        if self._decoder is not decoder:
            raise InvalidValue("StateCell: the cell is in use by another decoder")
        self._decoder, self._holders = None, {}
        self._cur_states = dict(self._init_states)

    def _hold(self):
        """Converts states to memories or arrays of the decoder at their first use inside of it."""
        if self._decoder is None or self._holders:
            return
        for name, init in self._init_states.items():
            self._holders[name] = self._decoder._hold(name, init)
        self._cur_states = {name: holder.get_state() for name, holder in self._holders.items()}

    def get_state(self, state_name: str) -> Any:
        """Returns the current value of a state.

        Args:
            state_name (str): name of the state.

        Returns:
            Variable: the value inside of a decoder. Outside, the InitState is returned.

        Raises:
            ValueError: there is no state with this name.
        """
        self._hold()
        if state_name not in self._cur_states:
            raise InvalidValue("StateCell: %r is not one of the states %s" % (state_name, ", ".join(self._cur_states)))
        return self._cur_states[state_name]

    def get_input(self, input_name: str) -> Any:
        """Returns an input of the step.

        Args:
            input_name (str): name of the input.

        Returns:
            Variable: the input, from the constructor or from :meth:`compute_state`.

        Raises:
            ValueError: there is no input with this name, or it has no value.
        """
        if self._inputs.get(input_name) is None:
            raise InvalidValue("StateCell: input %r must be given to compute_state first" % (input_name,))
        return self._inputs[input_name]

    def set_state(self, state_name: str, state_value: Any) -> None:
        """Sets a state for the rest of the step.

        Args:
            state_name (str): name of the state.
            state_value (Variable): value of the state.
        """
        self._cur_states[state_name] = state_value

    def state_updater(self, updater: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator of the function that updates the states in a step.

        Args:
            updater (callable): function that takes a cell, reads its inputs and states, and sets its states.

        Returns:
            callable: a function that calls ``updater`` with another cell.
        """
        self._state_updater = updater

        def of_another(cell: Any) -> None:
            if cell is self:
                raise InvalidType("StateCell.state_updater: cell must be another StateCell; compute_state runs the "
                                  "updater of this one")
            updater(cell)

        return of_another

    def compute_state(self, inputs: dict[str, Any]) -> None:
        """Runs the updater.

        Args:
            inputs (dict): inputs of the step: name -> Variable.

        Raises:
            ValueError: there is no input with this name.
            TypeError: the cell has no updater.
        """
        self._hold()
        for name, value in inputs.items():
            if name not in self._inputs:
                raise InvalidValue("StateCell: %r is not one of the inputs %s" % (name, ", ".join(self._inputs)))
            self._inputs[name] = value
        if self._state_updater is None:
            raise InvalidType("StateCell: a function must be declared with state_updater first")
        self._state_updater(self)

    def update_states(self) -> None:
        """Passes the states to the next step."""
        self._hold()
        for name, holder in self._holders.items():
            holder.update_state(self._cur_states[name])

    def out_state(self) -> Any:
        """Returns the state that ``out_state`` names.

        Returns:
            Variable: the value, as for :meth:`get_state`.
        """
        return self._cur_states[self._out_state]


arguments.explain(globals())
