"""Products of matrices and of batches of matrices.

Written by tools/generate_layers.py from the schemas of the operators.
"""
from __future__ import annotations

from ..explained import explain
from ..framework import Variable
from . import check
from .check import one_op

__all__ = [
    "mul", "bmm", "addmm", "kron",
]


def mul(x: Variable, y: Variable, x_num_col_dims: int = 1, y_num_col_dims: int = 1,
        name: str | None = None) -> Variable:
    """Matrix product of x and y, which are flattened to matrices: out = x y.

    Args:
        x (Variable): [rows..., columns...], float32 or float64.
        y (Variable): [rows..., columns...], dtype of x.
        x_num_col_dims (int): number of leading axes of x that form the rows of its matrix. Default 1.
        y_num_col_dims (int): number of leading axes of y that form the rows of its matrix. Default 1.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: [rows... of x, columns... of y], dtype of x.

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
    """Matrix product of each pair of matrices of two batches: out = x y.

    Args:
        x (Variable): [..., m, k], float32 or float64.
        y (Variable): [..., k, n], dtype of x.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: [..., m, n], dtype of x.

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
    """Matrix product plus a matrix: out = alpha x y + beta input.

    Args:
        input (Variable): [M, N], float32 or float64; extents of 1 are broadcast.
        x (Variable): [M, K], dtype of input.
        y (Variable): [K, N], dtype of input.
        alpha (float): factor for the product. Default 1.0.
        beta (float): factor for input. Default 1.0.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: [M, N], dtype of input.

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
        x (Variable): any shape, int32, int64, float32 or float64, at most four axes.
        y (Variable): any shape, dtype of x.
        out (Variable, optional): receives the result. Default: a new Variable.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: each extent is the product of those of x and y; dtype of x.

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


explain(globals())
