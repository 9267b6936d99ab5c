"""Lists of operators that may work in lower precision."""
from __future__ import annotations

from collections.abc import Iterable

from ... import arguments
from ...described import Described
from ...errors import InvalidValue

__all__ = ["AutoMixedPrecisionLists"]

#: Scripts change these sets before they create lists.
white_list = {"conv2d", "matmul", "mul"}
black_list = {"exp", "square", "log", "mean", "sum", "cos_sim", "softmax", "softmax_with_cross_entropy",
              "sigmoid_cross_entropy_with_logits", "cross_entropy", "cross_entropy2"}
gray_list = {"elementwise_add", "elementwise_sub", "elementwise_mul", "elementwise_div", "elementwise_max",
             "elementwise_min", "elementwise_pow", "elementwise_mod", "elementwise_floordiv", "batch_norm", "tanh",
             "sigmoid", "lookup_table", "top_k", "pool2d", "pool3d", "dropout", "relu", "relu6", "leaky_relu",
             "soft_relu", "flatten2", "stack", "unstack", "uniform_random_batch_size_like", "gaussian_random",
             "gaussian_random_batch_size_like", "slice", "rank", "scale", "transpose2", "reshape2", "gather",
             "fill_constant", "get_tensor_from_selected_rows", "sign", "cast"}


class AutoMixedPrecisionLists(Described):
    """Types of operators: those that benefit from lower precision (white), those that need full precision (black), and
    others (gray).

    Args:
        custom_white_list (iterable of str, optional): additional white types.
        custom_black_list (iterable of str, optional): additional black types.
        custom_black_varnames (iterable of str, optional): variables whose operators keep full precision.

    Raises:
        ValueError: a type is both white and black.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> lists = fluid.contrib.mixed_precision.AutoMixedPrecisionLists(custom_black_list=["mul"])
        >>> "mul" in lists.white_list, "mul" in lists.black_list
        (False, True)
    """

    def __init__(self, custom_white_list: Iterable[str] | None = None, custom_black_list: Iterable[str] | None = None,
                 custom_black_varnames: Iterable[str] | None = None) -> None:
        white, black = set(custom_white_list or ()), set(custom_black_list or ())
        if white & black:
            raise InvalidValue("AutoMixedPrecisionLists: %s cannot be white and black"
                               % ", ".join(sorted(white & black)))
        self.white_list = (white_list | white) - black
        self.black_list = (black_list | black) - white
        self.gray_list = gray_list - white - black
        self.black_varnames = custom_black_varnames


arguments.explain(globals())
