"""Element types: Fluid's enum, and conversion from numpy dtypes."""
from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._near import near
from ..errors import InvalidValue, also

if TYPE_CHECKING:
    from ..hints import DType


class VarType(enum.IntEnum):
    """Kinds of variables and element types, with the numbers of program files.

    >>> VarType.FP32, int(VarType.FP32), str(VarType.INT64)
    (VarType.FP32, 5, 'VarType.INT64')
    """

    BOOL = 0
    INT16 = 1
    INT32 = 2
    INT64 = 3
    FP16 = 4
    FP32 = 5
    FP64 = 6
    LOD_TENSOR = 7
    SELECTED_ROWS = 8
    FEED_MINIBATCH = 9
    FETCH_LIST = 10
    STEP_SCOPES = 11
    LOD_RANK_TABLE = 12
    LOD_TENSOR_ARRAY = 13
    PLACE_LIST = 14
    READER = 15
    RAW = 17
    TUPLE = 18
    UINT8 = 20
    INT8 = 21

    def __str__(self) -> str:
        return "VarType." + self.name

    __repr__ = __str__
    __format__ = object.__format__  # type: ignore[assignment]


_TYPE_OF_NAME = {
    "bool": VarType.BOOL,
    "int8": VarType.INT8,
    "int16": VarType.INT16,
    "int32": VarType.INT32,
    "int64": VarType.INT64,
    "uint8": VarType.UINT8,
    "float16": VarType.FP16,
    "float32": VarType.FP32,
    "float64": VarType.FP64,
}
_NAME_OF_TYPE = {t: n for n, t in _TYPE_OF_NAME.items()}
_NUMPY_OF_TYPE = {t: np.dtype(n) for n, t in _TYPE_OF_NAME.items()}


def convert_np_dtype_to_dtype_(np_dtype: Any) -> Any:
    """The VarType of a dtype given as str, numpy dtype, numpy scalar class or VarType.

    Raises:
        ValueError: the engine does not support the dtype.

    Examples:
        >>> convert_np_dtype_to_dtype_("float32"), convert_np_dtype_to_dtype_(np.int64)
        (VarType.FP32, VarType.INT64)
    """
    if isinstance(np_dtype, VarType):
        return np_dtype
    found = _TYPE_OF_NAME.get(np_dtype) if isinstance(np_dtype, str) else None
    if found is not None:
        return found
    try:
        name = np.dtype(np_dtype).name
    except (TypeError, ValueError):
        name = None
    if name not in _TYPE_OF_NAME or isinstance(np_dtype, int) or np_dtype is None:
        # Fluid raises one or the other, which depends on the layer.
        raise also(InvalidValue, TypeError, "ValueError")("dtype must be one of %s, got %r%s" % (
            ", ".join(_TYPE_OF_NAME), np_dtype, near(np_dtype, _TYPE_OF_NAME) if isinstance(np_dtype, str) else ""))
    return _TYPE_OF_NAME[name]


def as_dtype(dtype: DType) -> Any:
    """Like :func:`convert_np_dtype_to_dtype_`, but also accepts the plain number of a VarType."""
    if isinstance(dtype, int) and not isinstance(dtype, (bool, VarType)):
        try:
            return VarType(dtype)
        except ValueError:
            raise InvalidValue("dtype must be the number of a VarType, got %d" % dtype) from None
    return convert_np_dtype_to_dtype_(dtype)


def dtype_name(dtype: Any) -> str:
    """The name of an element type, such as ``float32`` for VarType.FP32; the number as text for other types."""
    return _NAME_OF_TYPE.get(dtype, str(dtype))


def numpy_dtype(dtype: Any) -> Any:
    """The numpy dtype of an element type."""
    return _NUMPY_OF_TYPE[dtype]


def dtype_is_floating(dtype: DType) -> Any:
    """Whether a dtype (in any form) is float16, float32 or float64."""
    return as_dtype(dtype) in (VarType.FP16, VarType.FP32, VarType.FP64)
