"""Recurrent layers of cells, with several layers, both directions, and dropout between layers."""
from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ... import arguments
from ...errors import InvalidType, InvalidValue
from ...explained import preparation
from ...framework import Variable
from ...layers import (
    GRUCell,
    LSTMCell,
    StaticRNN,
    check,
    concat,
    dropout,
    elementwise_mul,
    reshape,
    reverse,
    sequence_mask,
    transpose,
)
from ...layers import shape as shape_of
from ...param_attr import ParamAttr
from .units import Unit

__all__ = ["BasicGRUUnit", "basic_gru", "BasicLSTMUnit", "basic_lstm"]


class BasicGRUUnit(Unit):
    """Computes one step of a gated recurrent unit (GRU): h' = u h + (1 - u) c. u and r depend on [x, h], and the
    candidate c on [x, r h].

    A call with the input [batch, I] and the previous state [batch, H] returns the new state.

    Args:
        name_scope (str): prefix of the generated names.
        hidden_size (int): H, the width of the state.
        param_attr (ParamAttr, optional): attributes of the weights [I + H, 2 H] (gates) and [I + H, H] (candidate).
        bias_attr (ParamAttr, optional): attributes of the biases [2 H] and [H].
        gate_activation (callable, optional): activation of r and u. Default: sigmoid.
        activation (callable, optional): activation of c. Default: tanh.
        dtype (str): dtype of the parameters. Default "float32".

    Examples:
        >>> import anabranch.fluid as fluid
        >>> unit = fluid.contrib.layers.BasicGRUUnit("unit", hidden_size=6)
        >>> unit(fluid.data("x", [None, 4]), fluid.data("h", [None, 6])).shape
        (-1, 6)
        >>> [p.name for p in unit.parameters()][:2]
        ['unit/BasicGRUUnit_0.w_0', 'unit/BasicGRUUnit_0.w_1']
    """

    _parts = {"_gate_weight": "gate_w", "_candidate_weight": "candidate_w", "_gate_bias": "gate_b",
              "_candidate_bias": "candidate_b"}

    def __init__(self, name_scope: str, hidden_size: int, param_attr: Any = None, bias_attr: Any = None,
                 gate_activation: Callable[..., Any] | None = None, activation: Callable[..., Any] | None = None,
                 dtype: Any = "float32") -> None:
        super().__init__()
        self._hidden_size = hidden_size
        self._cell = GRUCell(hidden_size, param_attr, bias_attr, gate_activation, activation, dtype, name_scope)

    def forward(self, input: Variable, pre_hidden: Variable) -> Variable:
        """Computes one step, like a call of the unit.

        Args:
            input (Variable): [batch, I].
            pre_hidden (Variable): [batch, H].

        Returns:
            Variable: the new state, [batch, H].
        """
        return self._cell(input, pre_hidden)[0]


class BasicLSTMUnit(Unit):
    """Computes one step of an LSTM: c' = c sigmoid(f + forget_bias) + sigmoid(i) tanh(j), h' = tanh(c') sigmoid(o). i,
    j, f and o depend on [x, h].

    A call with the input [batch, I] and the previous hidden state and cell, each [batch, H], returns the new ones.

    Args:
        name_scope (str): prefix of the generated names.
        hidden_size (int): H, the width of both states.
        param_attr (ParamAttr, optional): attributes of the weight [I + H, 4 H].
        bias_attr (ParamAttr, optional): attributes of the bias [4 H].
        gate_activation (callable, optional): activation of i, f and o. Default: sigmoid.
        activation (callable, optional): activation of j and c'. Default: tanh.
        forget_bias (float): number that is added to f. Default 1.
        dtype (str): dtype of the parameters. Default "float32".

    Examples:
        >>> import anabranch.fluid as fluid
        >>> unit = fluid.contrib.layers.BasicLSTMUnit("unit", hidden_size=6)
        >>> h, c = unit(fluid.data("x", [None, 4]), fluid.data("h", [None, 6]), fluid.data("c", [None, 6]))
        >>> h.shape, c.shape
        ((-1, 6), (-1, 6))
    """

    _parts = {"_weight": "w", "_bias": "b"}

    def __init__(self, name_scope: str, hidden_size: int, param_attr: Any = None, bias_attr: Any = None,
                 gate_activation: Callable[..., Any] | None = None, activation: Callable[..., Any] | None = None,
                 forget_bias: float = 1.0, dtype: Any = "float32") -> None:
        super().__init__()
        self._hidden_size = hidden_size
        self._cell = LSTMCell(hidden_size, param_attr, bias_attr, gate_activation, activation, forget_bias, dtype,
                              name_scope)

    def forward(self, input: Variable, pre_hidden: Variable, pre_cell: Variable) -> Any:
        """Computes one step, like a call of the unit.

        Args:
            input (Variable): [batch, I].
            pre_hidden (Variable): [batch, H].
            pre_cell (Variable): [batch, H].

        Returns:
            (Variable, Variable): the new hidden state and cell, [batch, H].
        """
        return tuple(self._cell(input, [pre_hidden, pre_cell])[1])


def _attr_of_layer(attr, direction, kind, layer):
    """Derives a name for each layer and direction."""
    if isinstance(attr, ParamAttr) and attr.name is not None:
        attr = copy.deepcopy(attr)
        attr.name += "_%s_%s_%d" % (direction, kind, layer)
    return attr


def _cells(unit, prefix, num_layers, direction, param_attr, bias_attr, **arguments):
    return [unit("%s_layers_%d" % (prefix, layer), param_attr=_attr_of_layer(param_attr, direction, "w", layer),
                 bias_attr=_attr_of_layer(bias_attr, direction, "b", layer), **arguments)
            for layer in range(num_layers)]


class _Stack:
    """Layers of cells over steps [steps, batch, ...], with the common parts of both directions."""

    def __init__(self, hidden_size, initial, num_layers, directions, dropped):
        self.hidden_size, self.num_layers, self.dropped = hidden_size, num_layers, dropped
        self.initial = [None if state is None else reshape(state, shape=[num_layers, directions, -1, hidden_size])
                        for state in initial]

    def _step(self, rnn, cells, now, mask, batch_ref, first):
        """Returns the output of one step. The new states of each layer are outputs, too."""
        for cell, states in zip(cells, first):
            before = [rnn.memory(shape=[-1, self.hidden_size], batch_ref=batch_ref) if state is None
                      else rnn.memory(init=state) for state in states]
            made = cell(now, *before)
            made = list(made) if isinstance(made, tuple) else [made]
            if mask is not None:
                made = [elementwise_mul(new, mask, axis=0) - elementwise_mul(old, (mask - 1), axis=0)
                        for new, old in zip(made, before)]
            for old, new in zip(before, made):
                rnn.update_memory(old, new)
            for new in made:
                rnn.step_output(new)
            now = self.dropped(made[0])
        return now

    def run(self, cells, x, mask, direction):
        """Returns (outputs, last states [layers, batch, H])."""
        first = [[None if state is None else state[layer, direction] for state in self.initial]
                 for layer in range(self.num_layers)]
        rnn = StaticRNN()
        with rnn.step():
            now = rnn.step_input(x)
            mask_now = None if mask is None else rnn.step_input(mask)
            rnn.step_output(self._step(rnn, cells, now, mask_now, x, first))
        *of_layers, outputs = rnn()
        last = [value[-1] for value in of_layers]
        count = len(self.initial)
        states = [reshape(concat(last[k::count], axis=0), shape=[self.num_layers, -1, self.hidden_size])
                  for k in range(count)]
        return outputs, states


def _reversed(x):
    return None if x is None else reverse(x, axis=[0])


def _dropping(probability, implementation):
    """Returns the dropout function for the output of a layer."""
    if not probability:
        return lambda x: x
    return lambda x: dropout(x, dropout_prob=probability, dropout_implementation=implementation)


def _recurrent(layer, unit, input, initial, hidden_size, num_layers, sequence_length, dropped, bidirectional,
               batch_first, param_attr, bias_attr, name, **arguments):
    """Returns the outputs and last states of :func:`basic_gru` and :func:`basic_lstm`."""
    check.variable(input, "input", layer)
    if num_layers < 1:
        raise InvalidValue("%s: num_layers must be at least 1, got %d" % (layer, num_layers))
    if len({state is None for state in initial}) > 1:
        raise InvalidType("%s: init_hidden and init_cell must be given together" % layer)
    directions = 2 if bidirectional else 1
    arguments["hidden_size"] = hidden_size
    cells = [_cells(unit, name + prefix, num_layers, short, param_attr, bias_attr, **arguments)
             for prefix, short in (("", "fw"), ("_reverse", "bw"))[:directions]]
    x = transpose(input, [1, 0, 2]) if batch_first else input
    mask: Any = None
    if sequence_length is not None:
        mask = sequence_mask(sequence_length, maxlen=shape_of(x)[0], dtype=arguments["dtype"])
        mask = transpose(mask, [1, 0])
    stack = _Stack(hidden_size, initial, num_layers, directions, dropped)
    outputs, states = stack.run(cells[0], x, mask, 0)
    if bidirectional:
        back, back_states = stack.run(cells[1], _reversed(x), _reversed(mask), 1)
        outputs = concat([outputs, _reversed(back)], axis=2)
        states = [reshape(concat([forth, other], axis=1), shape=[num_layers * 2, -1, hidden_size])
                  for forth, other in zip(states, back_states)]
    return transpose(outputs, [1, 0, 2]) if batch_first else outputs, states


def basic_gru(input: Variable, init_hidden: Variable | None, hidden_size: int, num_layers: int = 1,
              sequence_length: Variable | None = None, dropout_prob: float | None = 0.0, bidirectional: bool = False,
              batch_first: bool = True, param_attr: Any = None, bias_attr: Any = None,
              gate_activation: Callable[..., Any] | None = None, activation: Callable[..., Any] | None = None,
              dtype: Any = "float32", name: str = "basic_gru") -> tuple[Variable, Variable]:
    """Runs GRU layers over padded sequences.

    Args:
        input (Variable): [batch, steps, I]. The number of steps must be known while the program is built.
        init_hidden (Variable, optional): initial states, [layers * directions, batch, H]. Default: zeros.
        hidden_size (int): H, the width of the states.
        num_layers (int): number of layers. Default 1.
        sequence_length (Variable, optional): [batch], int32 or int64: number of steps of each sequence. Later steps do
            not change the states.
        dropout_prob (float): dropout probability of the output of each layer, of the kind "downgrade_in_infer". Default
            0.
        bidirectional (bool): runs layers in both directions, and concatenates their results. Default False.
        batch_first (bool): False: input and output are [steps, batch, ...]. Default True.
        param_attr (ParamAttr, optional): attributes of the weights. Suffixes such as "_fw_w_0" are appended to its
            name.
        bias_attr (ParamAttr, optional): attributes of the biases. Suffixes such as "_fw_b_0" are appended to its name.
        gate_activation (callable, optional): activation of the gates. Default: sigmoid.
        activation (callable, optional): activation of the candidate. Default: tanh.
        dtype (str): dtype of the parameters. Default "float32".
        name (str): prefix of the generated names. Default "basic_gru".

    Returns:
        (Variable, Variable): the outputs [batch, steps, H * directions]; and the last states [layers * directions,
        batch, H].

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: ``num_layers`` is below 1.

    Source:
        "Learning Phrase Representations using RNN Encoder-Decoder for Statistical Machine Translation", Cho and
        others, 2014.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 5, 4])
        >>> outputs, last = fluid.contrib.layers.basic_gru(x, None, hidden_size=6, num_layers=2, bidirectional=True)
        >>> outputs.shape, last.shape
        ((-1, 5, 12), (4, -1, 6))
    """
    outputs, states = _recurrent(
        "basic_gru", BasicGRUUnit, input, [init_hidden], hidden_size, num_layers, sequence_length,
        _dropping(dropout_prob, "downgrade_in_infer"), bidirectional, batch_first, param_attr, bias_attr, name,
        gate_activation=gate_activation, activation=activation, dtype=dtype)
    return outputs, states[0]


def basic_lstm(input: Variable, init_hidden: Variable | None, init_cell: Variable | None, hidden_size: int,
               num_layers: int = 1, sequence_length: Variable | None = None, dropout_prob: float | None = 0.0,
               bidirectional: bool = False, batch_first: bool = True, param_attr: Any = None, bias_attr: Any = None,
               gate_activation: Callable[..., Any] | None = None, activation: Callable[..., Any] | None = None,
               forget_bias: float = 1.0, dtype: Any = "float32",
               name: str = "basic_lstm") -> tuple[Variable, Variable, Variable]:
    """Runs LSTM layers over padded sequences.

    Args:
        input (Variable): [batch, steps, I]. The number of steps must be known while the program is built.
        init_hidden (Variable, optional): initial states, [layers * directions, batch, H]. Default: zeros.
        init_cell (Variable, optional): initial cells, shape of ``init_hidden``. Give both or none.
        hidden_size (int): H, the width of the states.
        num_layers (int): number of layers. Default 1.
        sequence_length (Variable, optional): [batch], int32 or int64: number of steps of each sequence. Later steps do
            not change the states.
        dropout_prob (float): dropout probability of the output of each layer, of the kind "upscale_in_train". Default
            0.
        bidirectional (bool): runs layers in both directions, and concatenates their results. Default False.
        batch_first (bool): False: input and output are [steps, batch, ...]. Default True.
        param_attr (ParamAttr, optional): attributes of the weights. Suffixes such as "_fw_w_0" are appended to its
            name.
        bias_attr (ParamAttr, optional): attributes of the biases. Suffixes such as "_fw_b_0" are appended to its name.
        gate_activation (callable, optional): activation of the gates. Default: sigmoid.
        activation (callable, optional): activation of the candidate. Default: tanh.
        forget_bias (float): number that is added to the forget gate. Default 1.
        dtype (str): dtype of the parameters. Default "float32".
        name (str): prefix of the generated names. Default "basic_lstm".

    Returns:
        (Variable, Variable, Variable): the outputs [batch, steps, H * directions]; and the last hidden states and
        cells, each [layers * directions, batch, H].

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: ``num_layers`` is below 1.

    Source:
        "Long Short-Term Memory", Hochreiter and Schmidhuber, 1997.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 5, 4])
        >>> outputs, hidden, cell = fluid.contrib.layers.basic_lstm(x, None, None, hidden_size=6, num_layers=2)
        >>> outputs.shape, hidden.shape, cell.shape
        ((-1, 5, 6), (2, -1, 6), (2, -1, 6))
    """
    outputs, states = _recurrent(
        "basic_lstm", BasicLSTMUnit, input, [init_hidden, init_cell], hidden_size, num_layers, sequence_length,
        _dropping(dropout_prob, "upscale_in_train"), bidirectional, batch_first, param_attr, bias_attr, name,
        gate_activation=gate_activation, activation=activation, forget_bias=forget_bias, dtype=dtype)
    return outputs, states[0], states[1]


arguments.explain(globals(), preparation)
