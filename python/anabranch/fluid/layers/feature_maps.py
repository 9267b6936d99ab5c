"""Comparison of feature maps."""
from __future__ import annotations

from typing import TYPE_CHECKING

from ..explained import explain
from . import check

if TYPE_CHECKING:
    from ..framework import Variable

__all__ = ["fsp_matrix"]


def fsp_matrix(x: Variable, y: Variable) -> Variable:
    """out[n, i, j] = the mean of x[n, i] y[n, j] over all pixels.

    Yim et al., A gift from knowledge distillation, CVPR 2017, doi:10.1109/CVPR.2017.754.

    Args:
        x (Variable): [N, Cx, H, W], float32 or float64.
        y (Variable): [N, Cy, H, W], dtype of ``x``.

    Returns:
        Variable: [N, Cx, Cy].

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 3, 8, 8], "float32")
        >>> y = fluid.data("y", [None, 5, 8, 8], "float32")
        >>> fluid.layers.fsp_matrix(x, y).shape
        (-1, 3, 5)
    """
    check.operand(x, "x", "fsp_matrix", "fsp")
    check.operand(y, "y", "fsp_matrix", "fsp")
    return check.one_op("fsp", {"X": x, "Y": y}, layer="fsp_matrix")


explain(globals())
