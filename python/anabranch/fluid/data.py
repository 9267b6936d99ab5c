"""``fluid.data``: a variable that is fed, with checks of the feeds."""
from __future__ import annotations

from typing import TYPE_CHECKING

from .explained import explain
from .framework import VarType, default_main_program
from .reading.data_feeder import check_dtype, check_type

if TYPE_CHECKING:
    from .framework import Variable
    from .hints import DType, Shape

__all__ = ["data"]


def data(name: str, shape: Shape, dtype: DType = "float32", lod_level: int = 0) -> Variable:
    """Declares a variable that is fed. In every run, the shape and dtype of the feed are checked.

    Args:
        name (str): name of the variable, the key in ``feed``.
        shape (list|tuple): the whole shape, including the batch. None or -1 stands for any extent.
        dtype (str|numpy.dtype|VarType): dtype of the elements. Default 'float32'.
        lod_level (int): number of LoD levels. Default 0.

    Returns:
        Variable: the variable, in the global block of the default main program. It has no gradient.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a different variable with this name exists.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> with fluid.program_guard(fluid.Program(), fluid.Program()):
        ...     x = fluid.data("x", [None, 3, 8, 8])
        >>> x.shape
        (-1, 3, 8, 8)
    """
    check_type(name, "name", str, "data")
    check_type(shape, "shape", (list, tuple), "data")
    check_dtype(dtype, "dtype", ["bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8"],
                "data")
    return default_main_program().global_block().create_var(
        name=name, shape=[-1 if extent is None else extent for extent in shape], dtype=dtype, type=VarType.LOD_TENSOR,
        stop_gradient=True, lod_level=lod_level, is_data=True, need_check_feed=True)


explain(globals())
