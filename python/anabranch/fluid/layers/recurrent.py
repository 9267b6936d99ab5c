"""Recurrent layers over sequences of different lengths, and single steps of such layers."""
from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import InvalidValue, Violated
from ..explained import explain
from ..layer_helper import LayerHelper
from ..param_attr import ParamAttr
from . import check
from .dense import fc
from .joins import concat

if TYPE_CHECKING:
    from ..framework import Variable
    from ..hints import Attr, DType

__all__ = ["dynamic_lstm", "dynamic_lstmp", "dynamic_gru", "gru_unit", "lstm_unit"]

#: Numbers of activations in gru_unit.
_ACTIVATIONS = {"identity": 0, "sigmoid": 1, "tanh": 2, "relu": 3}


def _state(h_0, c_0):
    """The slots of the initial states that are given."""
    slots = {}
    if h_0 is not None:
        slots["H0"] = h_0
    if c_0 is not None:
        slots["C0"] = c_0
    return slots


def _results(helper, dtype, count):
    return [helper.create_variable_for_type_inference(dtype) for _ in range(count)]


def dynamic_lstm(input: Variable, size: int, h_0: Variable | None = None, c_0: Variable | None = None,
                 param_attr: Attr = None, bias_attr: Attr = None, use_peepholes: bool = True, is_reverse: bool = False,
                 gate_activation: str = "sigmoid", cell_activation: str = "tanh", candidate_activation: str = "tanh",
                 dtype: DType = "float32", name: str | None = None) -> tuple[Variable, Variable]:
    """Runs a long short-term memory (LSTM) over each sequence of an input that :func:`fc` has projected.

    The input x is split into the parts x_c, x_i, x_f and x_o. Then i = g(x_i + h W_i + p_i c),
    f = g(x_f + h W_f + p_f c), c' = f c + i k(x_c + h W_c), o = g(x_o + h W_o + p_o c'), h' = o s(c').

    Args:
        input (Variable): [rows, size] with sequences, float32 or float64.
        size (int): four times the width of the hidden state.
        h_0 (Variable, optional): [sequences, size / 4], the initial h of each sequence; requires ``c_0``. Default:
            zeros.
        c_0 (Variable, optional): [sequences, size / 4], the initial c of each sequence; requires ``h_0``. Default:
            zeros.
        param_attr (ParamAttr, optional): attributes of the weight [size / 4, size], which holds W_c, W_i, W_f and W_o
            side by side.
        bias_attr (ParamAttr, optional): attributes of the bias [1, size]. With peepholes, its shape is [1, 7 size / 4],
            and p_i, p_f and p_o follow the bias.
        use_peepholes (bool): adds peephole connections from the cell to the gates. Default True.
        is_reverse (bool): processes each sequence from the last row to the first. Default False.
        gate_activation (str): g: "sigmoid", "tanh", "relu" or "identity". Default "sigmoid".
        cell_activation (str): s, one of the same functions. Default "tanh".
        candidate_activation (str): k, one of the same functions. Default "tanh".
        dtype (str): dtype of the parameters. Default "float32".
        name (str, optional): prefix of the generated names.

    Returns:
        tuple: the hidden states and the cells, each [rows, size / 4] with the sequences of ``input``.

    Raises:
        TypeError: ``input`` has an unsupported dtype.
        EnforceNotMet: shapes do not match, only one of ``h_0`` and ``c_0`` is given, or at run time ``input`` has no
            sequences.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> words = fluid.data("words", [None, 64], "float32", lod_level=1)
        >>> hidden, cell = fluid.layers.dynamic_lstm(fluid.layers.fc(words, 4 * 32), size=4 * 32)
        >>> hidden.shape
        (-1, 32)
    """
    check.operand(input, "input", "dynamic_lstm", "lstm")
    if bias_attr is False:
        raise Violated("dynamic_lstm: bias_attr must not be False: the layer always has a bias")
    helper = LayerHelper("lstm", name=name)
    width = size // 4
    weight = helper.create_parameter(ParamAttr._to_attr(param_attr), [width, 4 * width], dtype)
    bias = helper.create_parameter(ParamAttr._to_attr(bias_attr), [1, (7 if use_peepholes else 4) * width], dtype,
                                   is_bias=True)
    hidden, cell, gate, before = _results(helper, dtype, 4)
    helper.append_op(
        type="lstm", inputs=dict({"Input": input, "Weight": weight, "Bias": bias}, **_state(h_0, c_0)),
        outputs={"Hidden": hidden, "Cell": cell, "BatchGate": gate, "BatchCellPreAct": before},
        attrs={"use_peepholes": use_peepholes, "is_reverse": is_reverse, "gate_activation": gate_activation,
               "cell_activation": cell_activation, "candidate_activation": candidate_activation})
    return hidden, cell


def dynamic_lstmp(input: Variable, size: int, proj_size: int, param_attr: Attr = None, bias_attr: Attr = None,
                  use_peepholes: bool = True, is_reverse: bool = False, gate_activation: str = "sigmoid",
                  cell_activation: str = "tanh", candidate_activation: str = "tanh", proj_activation: str = "tanh",
                  dtype: DType = "float32", name: str | None = None, h_0: Variable | None = None,
                  c_0: Variable | None = None, cell_clip: float | None = None,
                  proj_clip: float | None = None) -> tuple[Variable, Variable]:
    """Like :func:`dynamic_lstm`, with a projection of the hidden state, r = q(h P), as the recurrent state.

    Args:
        input (Variable): [rows, size] with sequences, float32 or float64.
        size (int): four times the width of the cell.
        proj_size (int): width of the projection.
        param_attr (ParamAttr, optional): attributes of the weight [proj_size, size] and of P [size / 4, proj_size].
        bias_attr (ParamAttr, optional): attributes of the bias [1, size], or [1, 7 size / 4] with peepholes.
        use_peepholes (bool): adds peephole connections from the cell to the gates. Default True.
        is_reverse (bool): processes each sequence from the last row to the first. Default False.
        gate_activation (str): activation of the gates: "sigmoid", "tanh", "relu" or "identity". Default "sigmoid".
        cell_activation (str): activation applied to the cell to compute the hidden state. Default "tanh".
        candidate_activation (str): activation of the candidate. Default "tanh".
        proj_activation (str): q, the activation of the projection. Default "tanh".
        dtype (str): dtype of the parameters. Default "float32".
        name (str, optional): prefix of the generated names.
        h_0 (Variable, optional): [sequences, proj_size], the initial r of each sequence; requires ``c_0``. Default:
            zeros.
        c_0 (Variable, optional): [sequences, size / 4], the initial cell of each sequence; requires ``h_0``. Default:
            zeros.
        cell_clip (float, optional): clips the cell to [-cell_clip, cell_clip].
        proj_clip (float, optional): clips the projection to [-proj_clip, proj_clip].

    Returns:
        tuple: the projections [rows, proj_size] and the cells [rows, size / 4], with the sequences of ``input``.

    Raises:
        TypeError: ``input`` has an unsupported dtype.
        EnforceNotMet: as for :func:`dynamic_lstm`.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> words = fluid.data("words", [None, 64], "float32", lod_level=1)
        >>> r, cell = fluid.layers.dynamic_lstmp(fluid.layers.fc(words, 4 * 32), size=4 * 32, proj_size=16)
        >>> r.shape, cell.shape
        ((-1, 16), (-1, 32))
    """
    check.operand(input, "input", "dynamic_lstmp", "lstmp")
    if bias_attr is False:
        raise Violated("dynamic_lstmp: bias_attr must not be False: the layer always has a bias")
    helper = LayerHelper("lstmp", name=name)
    width = size // 4
    weight = helper.create_parameter(ParamAttr._to_attr(param_attr), [proj_size, 4 * width], dtype)
    into = helper.create_parameter(ParamAttr._to_attr(param_attr), [width, proj_size], dtype)
    bias = helper.create_parameter(ParamAttr._to_attr(bias_attr), [1, (7 if use_peepholes else 4) * width], dtype,
                                   is_bias=True)
    projection, cell, _, hidden, gate, before = _results(helper, dtype, 6)  # the third one is in Fluid's programs, too
    helper.append_op(
        type="lstmp",
        inputs=dict({"Input": input, "Weight": weight, "ProjWeight": into, "Bias": bias}, **_state(h_0, c_0)),
        outputs={"Projection": projection, "Cell": cell, "BatchHidden": hidden, "BatchGate": gate,
                 "BatchCellPreAct": before},
        attrs={"use_peepholes": use_peepholes, "cell_clip": float(cell_clip or 0), "proj_clip": float(proj_clip or 0),
               "is_reverse": is_reverse, "gate_activation": gate_activation, "cell_activation": cell_activation,
               "candidate_activation": candidate_activation, "proj_activation": proj_activation})
    return projection, cell


def dynamic_gru(input: Variable, size: int, param_attr: Attr = None, bias_attr: Attr = None, is_reverse: bool = False,
                gate_activation: str = "sigmoid", candidate_activation: str = "tanh", h_0: Variable | None = None,
                origin_mode: bool = False) -> Variable:
    """Runs gated recurrent units (GRU) over each sequence of an input that :func:`fc` has projected.

    u, r = g(x_u + h W_u), g(x_r + h W_r), c = k(x_c + (r h) V), h' = (1 - u) h + u c.

    Args:
        input (Variable): [rows, 3 size] with sequences, float32 or float64: x_u, x_r, x_c.
        size (int): width of the hidden state.
        param_attr (ParamAttr, optional): attributes of the weight [size, 3 size]. Its first 2 size^2 numbers are W, row
            by row; the others are V.
        bias_attr (ParamAttr or bool, optional): attributes of the bias [1, 3 size], which is added to the input. False:
            no bias.
        is_reverse (bool): processes each sequence from the last row to the first. Default False.
        gate_activation (str): g: "sigmoid", "tanh", "relu" or "identity". Default "sigmoid".
        candidate_activation (str): k, one of the same functions. Default "tanh".
        h_0 (Variable, optional): [sequences, size], the initial h of each sequence. Default: zeros.
        origin_mode (bool): computes h' = u h + (1 - u) c instead, as in the paper. Default False.

    Returns:
        Variable: [rows, size] with the sequences of ``input``.

    Raises:
        TypeError: ``input`` has an unsupported dtype.
        EnforceNotMet: shapes do not match, or at run time ``input`` has no sequences.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> words = fluid.data("words", [None, 64], "float32", lod_level=1)
        >>> fluid.layers.dynamic_gru(fluid.layers.fc(words, 3 * 32), size=32).shape
        (-1, 32)
    """
    check.operand(input, "input", "dynamic_gru", "gru")
    helper = LayerHelper("gru", param_attr=param_attr, bias_attr=bias_attr)
    weight = helper.create_parameter(helper.param_attr, [size, 3 * size], input.dtype)
    bias = helper.create_parameter(helper.bias_attr, [1, 3 * size], input.dtype, is_bias=True)
    hidden, gate, reset, states = _results(helper, input.dtype, 4)
    inputs = dict({"Input": input, "Weight": weight}, **_state(h_0, None))
    if bias is not None:
        inputs["Bias"] = bias
    helper.append_op(
        type="gru", inputs=inputs,
        outputs={"Hidden": hidden, "BatchGate": gate, "BatchResetHiddenPrev": reset, "BatchHidden": states},
        attrs={"is_reverse": is_reverse, "gate_activation": gate_activation, "activation": candidate_activation,
               "origin_mode": origin_mode})
    return hidden


def gru_unit(input: Variable, hidden: Variable, size: int, param_attr: Attr = None, bias_attr: Attr = None,
             activation: str = "tanh", gate_activation: str = "sigmoid",
             origin_mode: bool = False) -> tuple[Variable, Variable, Variable]:
    """Runs one step of :func:`dynamic_gru` for each row.

    Args:
        input (Variable): [N, size], float32 or float64.
        hidden (Variable): [N, size / 3], the previous state.
        size (int): three times the width of the state.
        param_attr (ParamAttr, optional): attributes of the weight [size / 3, size], as in :func:`dynamic_gru`.
        bias_attr (ParamAttr or bool, optional): attributes of the bias [1, size]. False means no bias.
        activation (str): activation of the candidate: "sigmoid", "tanh", "relu" or "identity". Default "tanh".
        gate_activation (str): activation of the gates, one of the same functions. Default "sigmoid".
        origin_mode (bool): weights the old state by u and the candidate by 1 - u, instead of the reverse. Default
            False.

    Returns:
        tuple: the new state [N, size / 3]; the product of the reset gate and ``hidden`` [N, size / 3]; the gates and
        the candidate [N, size].

    Raises:
        TypeError: ``input`` or ``hidden`` has an unsupported dtype.
        ValueError: an activation is unknown.
        EnforceNotMet: shapes do not match.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, h = fluid.data("x", [None, 12], "float32"), fluid.data("h", [None, 4], "float32")
        >>> new, reset, gate = fluid.layers.gru_unit(x, h, size=12)
        >>> new.shape
        (-1, 4)
    """
    check.operand(input, "input", "gru_unit")
    check.operand(hidden, "hidden", "gru_unit")
    for argument, value in (("activation", activation), ("gate_activation", gate_activation)):
        check.one_of(value, argument, "gru_unit", tuple(_ACTIVATIONS))
    if check.exact_fluid():  # Fluid 1.8.5 ignores them
        activation, gate_activation = "tanh", "sigmoid"
    helper = LayerHelper("gru_unit", param_attr=param_attr, bias_attr=bias_attr)
    width = size // 3
    weight = helper.create_parameter(helper.param_attr, [width, 3 * width], input.dtype)
    gate, reset, new = _results(helper, input.dtype, 3)
    inputs = {"Input": input, "HiddenPrev": hidden, "Weight": weight}
    bias = helper.create_parameter(helper.bias_attr, [1, 3 * width], input.dtype, is_bias=True)
    if bias is not None:
        inputs["Bias"] = bias
    helper.append_op(
        type="gru_unit", inputs=inputs, outputs={"Gate": gate, "ResetHiddenPrev": reset, "Hidden": new},
        attrs={"activation": _ACTIVATIONS[activation], "gate_activation": _ACTIVATIONS[gate_activation],
               "origin_mode": origin_mode})
    return new, reset, gate


def lstm_unit(x_t: Variable, hidden_t_prev: Variable, cell_t_prev: Variable, forget_bias: float = 0.0,
              param_attr: Attr = None, bias_attr: Attr = None, name: str | None = None) -> tuple[Variable, Variable]:
    """Runs one LSTM step for each row: a fully connected layer of the input and the state, then the cell.

    With [i, f, o, g] = fc([x_t, h]): c' = c sigmoid(f + forget_bias) + sigmoid(i) tanh(g), h' = sigmoid(o) tanh(c').

    Args:
        x_t (Variable): [N, M], float32 or float64.
        hidden_t_prev (Variable): [N, D], h.
        cell_t_prev (Variable): [N, D], c.
        forget_bias (float): number that is added to f. Default 0.
        param_attr (ParamAttr, optional): attributes of the weight [M + D, 4 D].
        bias_attr (ParamAttr or bool, optional): attributes of the bias [4 D]. False means no bias.
        name (str, optional): prefix of the generated names.

    Returns:
        tuple: h' [N, D] and c' [N, D].

    Raises:
        TypeError: an argument has an unsupported dtype.
        ValueError: an argument does not have two axes, the numbers of rows differ, or the states have different widths.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, h, c = [fluid.data(n, [None, 8], "float32") for n in "xhc"]
        >>> hidden, cell = fluid.layers.lstm_unit(x, h, c)
        >>> hidden.shape
        (-1, 8)
    """
    parts = (("x_t", x_t), ("hidden_t_prev", hidden_t_prev), ("cell_t_prev", cell_t_prev))
    for argument, value in parts:
        check.operand(value, argument, "lstm_unit")
    for argument, value in parts:
        if len(value.shape) != 2 or value.shape[0] != x_t.shape[0]:
            raise InvalidValue("lstm_unit: %s must have two axes and as many rows as x_t, got the shape %s"
                               % (argument, list(value.shape)))
    if hidden_t_prev.shape[1] != cell_t_prev.shape[1]:
        raise InvalidValue("lstm_unit: hidden_t_prev and cell_t_prev must have the same width, got %s and %s"
                           % (list(hidden_t_prev.shape), list(cell_t_prev.shape)))
    if bias_attr is None:
        bias_attr = ParamAttr()
    helper = LayerHelper("lstm_unit", name=name)
    together = concat([x_t, hidden_t_prev], axis=1)
    gates = fc(together, size=4 * cell_t_prev.shape[1], param_attr=param_attr, bias_attr=bias_attr)
    cell, hidden = _results(helper, x_t.dtype, 2)
    helper.append_op(type="lstm_unit", inputs={"X": gates, "C_prev": cell_t_prev}, outputs={"C": cell, "H": hidden},
                     attrs={"forget_bias": forget_bias})
    return hidden, cell


explain(globals())
