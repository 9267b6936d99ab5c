"""Variables that the user feeds."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..explained import explain
from ..framework.dtype import VarType
from ..layer_helper import LayerHelper
from . import check

if TYPE_CHECKING:
    from ..framework import Variable
    from ..hints import DType

__all__ = ["data"]


def data(name: str, shape: Sequence[int | None], append_batch_size: bool = True, dtype: DType = "float32",
         lod_level: int = 0, type: VarType = VarType.LOD_TENSOR, stop_gradient: bool = True) -> Variable:
    """Declares a Variable that is fed. This older form of ``fluid.data`` does not check the feeds.

    Args:
        name (str): name of the Variable, the key in the feed dict.
        shape (list|tuple): extents. None or -1 stands for any extent.
        append_batch_size (bool): prepends -1 to the shape unless it has an unknown extent. Default True.
        dtype (str): dtype of the elements. Default "float32".
        lod_level (int): number of LoD levels. Default 0.
        type (VarType): type of the variable. Default LOD_TENSOR.
        stop_gradient (bool): the Variable has no gradient. Default True.

    Returns:
        Variable: the Variable, in the global block.

    Raises:
        TypeError: ``name`` is not a str, or ``shape`` is not a list or tuple.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.data("x", [784]).shape
        (-1, 784)
    """
    check.of_type(name, "name", "data", (bytes, str))
    check.of_type(shape, "shape", "data", (list, tuple))
    helper = LayerHelper("data", name=name)
    extents = [-1 if extent is None else extent for extent in shape]
    if append_batch_size and all(extent >= 0 for extent in extents):
        extents = [-1] + extents
    return helper.create_global_variable(name=helper.name, shape=extents, dtype=dtype, type=type,
                                         stop_gradient=stop_gradient, lod_level=lod_level, is_data=True)


explain(globals())
