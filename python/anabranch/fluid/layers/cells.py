"""Cells, which compute one step of a recurrent network, and the layer that runs a cell over sequences."""
from __future__ import annotations

import copy
from functools import partial
from typing import Any

from .. import unique_name
from ..described import Described
from ..errors import InvalidType, NotOffered
from ..explained import explain
from ..framework import Variable
from ..layer_helper import LayerHelper
from ..param_attr import ParamAttr
from . import check
from ._generated_activations import sigmoid, tanh
from ._generated_elementwise import elementwise_add, elementwise_mul
from ._generated_places import shape as shape_of
from .fill import fill_constant, fill_constant_batch_size_like
from .index import reverse
from .joins import concat, split
from .lod import sequence_mask
from .math import matmul
from .shapes import transpose
from .static_rnn import StaticRNN
from .structures import flat, mapped, rebuilt

__all__ = ["RNNCell", "GRUCell", "LSTMCell", "rnn"]


def _function(given, default, what):
    """An activation of a cell: a function of a Variable. None, False and an empty text mean the default."""
    if given is None or given is False or (isinstance(given, str) and not given):
        return default
    if not callable(given):
        raise InvalidType("%s must be a function, got %s" % (what, type(given).__name__))
    return given


class RNNCell:
    """Base class of cells, which compute one step of a recurrent network. Subclasses define ``call`` and
    ``state_shape``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> layers = fluid.layers
        >>> class Sum(layers.RNNCell):
        ...     def call(self, inputs, states):
        ...         states = states + inputs
        ...         return states, states
        ...     @property
        ...     def state_shape(self):
        ...         return [4]
        >>> outputs, last = layers.rnn(Sum(), fluid.data("x", [None, 5, 4]))
        >>> outputs.shape, last.shape
        ((-1, 5, 4), (-1, 4))
    """

    def call(self, inputs: Any, states: Any, **kwargs: Any) -> Any:
        """Computes one step.

        Args:
            inputs (Variable): [batch, ...], or a structure of such Variables.
            states (Variable): states that the previous step returned, or a structure of them.

        Returns:
            (outputs, new states). The new states have the structure of ``states``.

        Raises:
            NotImplementedError: the class does not define this method.
        """
        raise NotOffered("RNNCell.call must be defined by %s" % type(self).__name__)

    def __call__(self, inputs: Any, states: Any, **kwargs: Any) -> Any:
        return self.call(inputs, states, **kwargs)

    def get_initial_states(self, batch_ref: Any, shape: Any = None, dtype: Any = "float32", init_value: Any = 0,
                           batch_dim_idx: int = 0) -> Any:
        """Creates constant states for the first step.

        Args:
            batch_ref (Variable): Variable that determines the batch size, or a structure of such Variables.
            shape (list|tuple, optional): shape of a state without the batch axis, or a structure of shapes. Default:
                ``state_shape``.
            dtype (str): dtype of the states. Default "float32".
            init_value (float): value of all elements. Default 0.
            batch_dim_idx (int): batch axis of ``batch_ref``. Default 0.

        Returns:
            Variable: the states, or a structure of them.
        """
        like = flat(batch_ref)[0]
        shape = self.state_shape if shape is None else shape
        return _each_shape(shape, lambda extents: fill_constant_batch_size_like(
            input=like, shape=[-1, *extents], dtype=dtype, value=init_value, input_dim_idx=batch_dim_idx))

    @property
    def state_shape(self) -> Any:
        """list: shape of a state without the batch axis, or a structure of shapes."""
        raise NotOffered("RNNCell.state_shape must be defined by %s" % type(self).__name__)

    @property
    def state_dtype(self) -> Any:
        """str: dtype of the states."""
        raise NotOffered("RNNCell.state_dtype must be defined by %s" % type(self).__name__)


def _each_shape(shape, fn):
    """Applies ``fn`` to each shape in a structure. A list or tuple of numbers is a shape."""
    if isinstance(shape, dict):
        return {k: _each_shape(shape[k], fn) for k in shape}
    if isinstance(shape, int):
        return fn([shape])
    if all(isinstance(extent, int) for extent in shape):
        return fn([extent for extent in shape if extent != -1] if shape and shape[0] == -1 else list(shape))
    return type(shape)(_each_shape(s, fn) for s in shape)


class _Parameters:
    """Weights and biases of a cell, created when the width of its input is known."""

    def __init__(self, name, unit, param_attr, bias_attr, dtype):
        self.helper = LayerHelper(unit, name=unique_name.generate("%s/%s" % (name, unit)))
        self.attrs, self.dtype = {False: param_attr, True: bias_attr}, dtype
        self.made: dict[str, Any] = {}

    def get(self, part, shape, is_bias=False, suffix=""):
        if part not in self.made:
            attr = self.attrs[is_bias]
            if suffix and isinstance(attr, ParamAttr) and attr.name is not None:
                attr = copy.deepcopy(attr)
                attr.name += suffix
            self.made[part] = self.helper.create_parameter(attr=attr, shape=shape, dtype=self.dtype, is_bias=is_bias)
        return self.made[part]


class GRUCell(RNNCell, Described):
    """A gated recurrent unit (GRU): h' = u h + (1 - u) c.

    The gates u and r depend on [x, h], the candidate c on [x, r h].

    Args:
        hidden_size (int): H, the width of the state.
        param_attr (ParamAttr, optional): attributes of the weights [I + H, 2 H] (gates) and [I + H, H] (candidate).
        bias_attr (ParamAttr, optional): attributes of the biases [2 H] and [H].
        gate_activation (callable, optional): activation of r and u. Default: sigmoid.
        activation (callable, optional): activation of c. Default: tanh.
        dtype (str): dtype of the parameters. Default "float32".
        name (str): prefix of the generated names. Default "GRUCell".

    Examples:
        >>> import anabranch.fluid as fluid
        >>> layers = fluid.layers
        >>> outputs, last = layers.rnn(layers.GRUCell(6), fluid.data("x", [None, 5, 4]))
        >>> outputs.shape, last.shape
        ((-1, 5, 6), (-1, 6))
    """

    def __init__(self, hidden_size: int, param_attr: Any = None, bias_attr: Any = None, gate_activation: Any = None,
                 activation: Any = None, dtype: Any = "float32", name: str = "GRUCell") -> None:
        self.hidden_size = hidden_size
        self._parameters = _Parameters(name, "BasicGRUUnit", param_attr, bias_attr, dtype)
        self._gate = _function(gate_activation, sigmoid, "GRUCell: gate_activation")
        self._candidate = _function(activation, tanh, "GRUCell: activation")

    def call(self, inputs: Variable, states: Variable) -> Any:  # type: ignore[override]
        """Computes one step.

        Args:
            inputs (Variable): [batch, I].
            states (Variable): [batch, H].

        Returns:
            (Variable, Variable): the new state, twice.
        """
        check.variable(inputs, "inputs", "GRUCell", check.WIDE_FLOATS)
        check.variable(states, "states", "GRUCell", check.WIDE_FLOATS)
        size, rows = self.hidden_size, inputs.shape[-1] + self.hidden_size
        of = self._parameters.get
        gate_w, candidate_w = of("gate_w", [rows, 2 * size], suffix="_gate"), of("candidate_w", [rows, size],
                                                                               suffix="_candidate")
        gate_b = of("gate_b", [2 * size], is_bias=True, suffix="_gate")
        candidate_b = of("candidate_b", [size], is_bias=True, suffix="_candidate")
        gates = self._gate(elementwise_add(matmul(x=concat([inputs, states], 1), y=gate_w), gate_b))
        r, u = split(gates, num_or_sections=2, dim=1)
        candidate = matmul(concat([inputs, r * states], 1), candidate_w)
        c = self._candidate(elementwise_add(candidate, candidate_b))
        hidden = u * states + (1 - u) * c
        return hidden, hidden

    @property
    def state_shape(self) -> list[int]:
        """list: [H]."""
        return [self.hidden_size]


class LSTMCell(RNNCell, Described):
    """A long short-term memory (LSTM): c' = c sigmoid(f + forget_bias) + sigmoid(i) tanh(j), h' = tanh(c') sigmoid(o).
    i, j, f and o depend on [x, h].

    Args:
        hidden_size (int): H, the width of both states.
        param_attr (ParamAttr, optional): attributes of the weight [I + H, 4 H].
        bias_attr (ParamAttr, optional): attributes of the bias [4 H].
        gate_activation (callable, optional): activation of i, f and o. Default: sigmoid.
        activation (callable, optional): activation of j and c'. Default: tanh.
        forget_bias (float): number that is added to f. Default 1.
        dtype (str): dtype of the parameters. Default "float32".
        name (str): prefix of the generated names. Default "LSTMCell".

    Examples:
        >>> import anabranch.fluid as fluid
        >>> layers = fluid.layers
        >>> outputs, (hidden, cell) = layers.rnn(layers.LSTMCell(6), fluid.data("x", [None, 5, 4]))
        >>> outputs.shape, hidden.shape, cell.shape
        ((-1, 5, 6), (-1, 6), (-1, 6))
    """

    def __init__(self, hidden_size: int, param_attr: Any = None, bias_attr: Any = None, gate_activation: Any = None,
                 activation: Any = None, forget_bias: float = 1.0, dtype: Any = "float32",
                 name: str = "LSTMCell") -> None:
        self.hidden_size = hidden_size
        self._parameters = _Parameters(name, "BasicLSTMUnit", param_attr, bias_attr, dtype)
        if check.exact_fluid():  # Fluid 1.8.5 ignores them
            gate_activation = activation = None
        self._gate = _function(gate_activation, sigmoid, "LSTMCell: gate_activation")
        self._squash = _function(activation, tanh, "LSTMCell: activation")
        self._forget_bias = fill_constant([1], dtype=dtype, value=forget_bias)
        self._forget_bias.stop_gradient = False

    def call(self, inputs: Variable, states: Any) -> Any:  # type: ignore[override]
        """Computes one step.

        Args:
            inputs (Variable): [batch, I].
            states (list): hidden state and cell, each [batch, H].

        Returns:
            (Variable, list): the new hidden state, and a list of the new hidden state and the new cell.
        """
        check.variable(inputs, "inputs", "LSTMCell", check.WIDE_FLOATS)
        check.of_type(states, "states", "LSTMCell", (list, tuple))
        hidden, cell = states
        size, rows = self.hidden_size, inputs.shape[-1] + self.hidden_size
        weight = self._parameters.get("w", [rows, 4 * size])
        bias = self._parameters.get("b", [4 * size], is_bias=True)
        gates = elementwise_add(matmul(x=concat([inputs, hidden], 1), y=weight), bias)
        i, j, f, o = split(gates, num_or_sections=4, dim=-1)
        kept = elementwise_mul(cell, self._gate(elementwise_add(f, self._forget_bias)))
        cell = elementwise_add(kept, elementwise_mul(self._gate(i), self._squash(j)))
        hidden = self._squash(cell) * self._gate(o)
        return hidden, [hidden, cell]

    @property
    def state_shape(self) -> list[list[int]]:
        """list: [[H], [H]]."""
        return [[self.hidden_size], [self.hidden_size]]


def _turned(x):
    """Exchanges the axes of batch and time."""
    return transpose(x, [1, 0, *range(2, len(x.shape))])


def _kept_where_ended(mask, state, new):
    return elementwise_mul(new, mask, axis=0) - elementwise_mul(state, (mask - 1), axis=0)


def _reversed(x):
    return reverse(x, axis=[0])


def rnn(cell: RNNCell, inputs: Any, initial_states: Any = None, sequence_length: Variable | None = None,
        time_major: bool = False, is_reverse: bool = False, **kwargs: Any) -> tuple[Any, Any]:
    """Runs a cell over the steps of padded sequences.

    Args:
        cell (RNNCell): the cell that computes a step.
        inputs (Variable): [batch, steps, ...], or a structure of such Variables. The number of steps must be known
            while the program is built.
        initial_states (Variable, optional): states before the first step, or a structure of them. Default: zeros.
        sequence_length (Variable, optional): [batch], int: the number of steps of each sequence. Later steps do not
            change the states.
        time_major (bool): inputs and outputs are [steps, batch, ...]. Default False.
        is_reverse (bool): runs from the last step to the first. Default False.
        kwargs: passed to ``cell.call``.

    Returns:
        (outputs, states): the outputs of all steps, and the states after the last step.

    Raises:
        TypeError: an argument has the wrong type.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> layers = fluid.layers
        >>> x, lengths = fluid.data("x", [None, 5, 4]), fluid.data("lengths", [None], "int64")
        >>> outputs, last = layers.rnn(layers.GRUCell(6), x, sequence_length=lengths)
        >>> outputs.shape
        (-1, 5, 6)
    """
    if not hasattr(cell, "call"):
        raise InvalidType("rnn: cell must be an RNNCell, got %s" % type(cell).__name__)
    for value in flat(inputs):
        check.variable(value, "inputs", "rnn")
    if initial_states is None:
        initial_states = cell.get_initial_states(batch_ref=inputs, batch_dim_idx=1 if time_major else 0)
    for state in flat(initial_states):
        state.stop_gradient = False
    if not time_major:
        inputs = mapped(_turned, inputs)
    mask: Any = None
    if sequence_length is not None:
        check.variable(sequence_length, "sequence_length", "rnn")
        steps = shape_of(flat(inputs)[0])[0]
        mask = transpose(sequence_mask(sequence_length, maxlen=steps, dtype=flat(initial_states)[0].dtype), [1, 0])
    if is_reverse:
        inputs = mapped(_reversed, inputs)
        mask = None if mask is None else _reversed(mask)
    network = StaticRNN()
    with network.step():
        now = mapped(network.step_input, inputs)
        states = mapped(lambda init: network.memory(init=init), initial_states)
        outputs, new_states = cell.call(now, states, **kwargs)
        if mask is not None:
            new_states = mapped(partial(_kept_where_ended, network.step_input(mask)), states, new_states)
        for before, after in zip(flat(states), flat(new_states)):
            network.update_memory(before, after)
        network.output(*flat(outputs), *flat(new_states))
    made = network()
    count = len(flat(outputs))
    last = rebuilt(new_states, iter([value[-1] for value in made[count:]]))
    outputs = rebuilt(outputs, iter(made[:count]))
    if is_reverse:
        outputs = mapped(_reversed, outputs)
    if not time_major:
        outputs = mapped(_turned, outputs)
    return outputs, last


explain(globals())
