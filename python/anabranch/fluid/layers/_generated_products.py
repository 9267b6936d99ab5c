"""Products of matrices and of batches of matrices.

Written by tools/generate_layers.py from the schemas of the operators.
"""
from __future__ import annotations

from ..framework import Variable
from . import check
from .check import one_op

__all__ = [
    "mul", "bmm", "addmm", "kron",
]


def mul(x: Variable, y: Variable, x_num_col_dims: int = 1, y_num_col_dims: int = 1,
        name: str | None = None) -> Variable:
    """out = x y, with x and y flattened to matrices.

    Args:
        x (Variable): [rows..., columns...] float; float32, float64.
        y (Variable): [rows..., columns...] like x; float32, float64.
        x_num_col_dims (int): number of leading axes of x that form the rows of its matrix. Default 1.
        y_num_col_dims (int): number of leading axes of y that form the rows of its matrix. Default 1.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: [x's rows..., y's columns...].

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 3, 4], "float32")
        >>> y = fluid.data("y", [12, 5], "float32")
        >>> fluid.layers.mul(x, y).shape
        (-1, 5)
    """
    check.operand(x, "x", "mul")
    check.operand(y, "y", "mul")
    return one_op("mul", {"X": x, "Y": y}, {"x_num_col_dims": x_num_col_dims, "y_num_col_dims": y_num_col_dims},
                  name=name)


def bmm(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """out = x y for each matrix of two batches.

    Args:
        x (Variable): [..., m, k] float; float32, float64.
        y (Variable): [..., k, n] like x; float32, float64.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: [..., m, n].

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [8, 2, 3], "float32")
        >>> y = fluid.data("y", [8, 3, 4], "float32")
        >>> fluid.layers.bmm(x, y).shape
        (8, 2, 4)
    """
    check.operand(x, "x", "bmm")
    check.operand(y, "y", "bmm")
    return one_op("bmm", {"X": x, "Y": y}, name=name)


def addmm(input: Variable, x: Variable, y: Variable, alpha: float = 1.0, beta: float = 1.0,
          name: str | None = None) -> Variable:
    """out = alpha x y + beta input.

    Args:
        input (Variable): [M, N] float; extents of 1 are broadcast; float32, float64.
        x (Variable): [M, K].
        y (Variable): [K, N].
        alpha (float): factor for the product. Default 1.0.
        beta (float): factor for input. Default 1.0.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: [M, N].

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> input = fluid.data("input", [2, 4], "float32")
        >>> x = fluid.data("x", [2, 3], "float32")
        >>> y = fluid.data("y", [3, 4], "float32")
        >>> fluid.layers.addmm(input, x, y).shape
        (2, 4)
    """
    check.operand(input, "input", "addmm")
    check.variable(x, "x", "addmm")
    check.variable(y, "y", "addmm")
    return one_op("addmm", {"Input": input, "X": x, "Y": y}, {"Alpha": alpha, "Beta": beta}, name=name)


def kron(x: Variable, y: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Kronecker product: block i of out is x[i] y; a tensor of lower rank gets leading axes of extent 1.

    Args:
        x (Variable): [...] numbers, at most four axes; int32, int64, float32, float64.
        y (Variable): [...], dtype of x; int32, int64, float32, float64.
        out (Variable, optional): receives the result.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: [...] with the product of the extents on each axis.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [2, 3], "float32")
        >>> y = fluid.data("y", [4, 5], "float32")
        >>> fluid.layers.kron(x, y).shape
        (8, 15)
    """
    check.operand(x, "x", "kron")
    check.operand(y, "y", "kron")
    return one_op("kron", {"X": x, "Y": y}, to=out, name=name)
