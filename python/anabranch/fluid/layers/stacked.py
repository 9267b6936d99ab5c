"""Stacked LSTM layers in one operator."""
from __future__ import annotations

from typing import TYPE_CHECKING

from ..explained import explain
from ..layer_helper import LayerHelper
from . import check

if TYPE_CHECKING:
    from ..framework import Variable
    from ..initializer import Initializer

__all__ = ["lstm"]


def lstm(input: Variable, init_h: Variable, init_c: Variable, max_len: int, hidden_size: int, num_layers: int,
         dropout_prob: float = 0.0, is_bidirec: bool = False, is_test: bool = False, name: str | None = None,
         default_initializer: Initializer | None = None,
         seed: int = -1) -> tuple[Variable, Variable, Variable]:
    """Runs stacked LSTM layers over a dense batch.

    i, f, o = sigmoid and g = tanh of W x + b + R h + r, each with its own weights; c' = f c + i g; h' = o tanh(c').

    Args:
        input (Variable): [steps, batch, D], float32 or float64.
        init_h (Variable): initial h, [num_layers * ways, batch, hidden_size]. ways is 2 with ``is_bidirec``, otherwise
            1.
        init_c (Variable): initial c, shape of ``init_h``.
        max_len (int): not used: the number of steps is that of ``input``.
        hidden_size (int): width of h and c.
        num_layers (int): number of layers.
        dropout_prob (float): dropout probability of the inputs of all layers except the first, in training. Default 0.
        is_bidirec (bool): also runs from the last step to the first, and concatenates both results. Default False.
        is_test (bool): disables dropout. Default False.
        name (str, optional): prefix of the generated names.
        default_initializer (Initializer, optional): initializer of the weights. They form one vector: W and R of each
            layer and way, with rows in the order i, f, g, o; then b and r of each layer and way.
        seed (int): seed of the dropout. -1 means the seed of the program. Default -1.

    Returns:
        tuple: h of the last layer, [steps, batch, ways * hidden_size]; and h and c after the last step, each with the
        shape of ``init_h``.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        EnforceNotMet: the states have the wrong shape.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [20, None, 16], "float32")
        >>> h, c = (fluid.data(n, [2, None, 32], "float32") for n in "hc")
        >>> out, last_h, last_c = fluid.layers.lstm(x, h, c, max_len=20, hidden_size=32, num_layers=2)
        >>> out.shape, last_h.shape
        ((20, -1, 32), (2, -1, 32))
    """
    check.operand(input, "input", "lstm", "cudnn_lstm")
    check.variable(init_h, "init_h", "lstm")
    check.variable(init_c, "init_c", "lstm")
    helper = LayerHelper("cudnn_lstm", name=name)
    ways = 2 if is_bidirec else 1
    count, width = 0, input.shape[2]
    for _ in range(num_layers):
        count += ways * 4 * hidden_size * (width + hidden_size + 2)
        width = ways * hidden_size
    weight = helper.create_parameter(attr=helper.param_attr, shape=[count], dtype=input.dtype,
                                     default_initializer=default_initializer)
    slots = ("Out", "last_h", "last_c") if is_test else ("Out", "last_h", "last_c", "Reserve")
    made = {slot: helper.create_variable_for_type_inference(input.dtype) for slot in slots}
    helper.append_op(type="cudnn_lstm", inputs={"Input": input, "InitH": init_h, "InitC": init_c, "W": weight},
                     outputs=made,
                     attrs={"max_len": max_len, "is_bidirec": is_bidirec, "input_size": input.shape[2],
                            "hidden_size": hidden_size, "num_layers": num_layers, "is_test": is_test,
                            "dropout_prob": dropout_prob, "seed": 0 if seed == -1 else seed})
    return made["Out"], made["last_h"], made["last_c"]


explain(globals())
