"""Inputs and outputs of :mod:`.inference`, with Fluid's names."""
from __future__ import annotations

import enum
from typing import Any

import numpy

from .. import _core
from .errors import InvalidType

__all__ = ["PaddleBuf", "PaddleDType", "PaddleTensor", "ZeroCopyTensor"]


class PaddleDType(enum.Enum):
    """Element types of inputs and outputs."""

    FLOAT32 = "float32"
    INT64 = "int64"
    INT32 = "int32"


def _dtype(array: Any) -> PaddleDType:
    try:
        return PaddleDType(str(array.dtype))
    except ValueError:
        raise InvalidType("the dtype must be float32, int64 or int32, got %s" % array.dtype) from None


class PaddleBuf:
    """The elements of a tensor, without its shape.

    Args:
        data (array-like): elements.

    >>> PaddleBuf([1.0, 2.0]).float_data()
    [1.0, 2.0]
    """

    def __init__(self, data: Any = ()) -> None:
        self.reset(data)

    def reset(self, data: Any) -> None:
        """Replaces the elements."""
        array = numpy.asarray(data)
        self._array = numpy.ascontiguousarray(array, "float32" if array.dtype == "float64" else array.dtype)

    def resize(self, length: int) -> None:
        """Allocates ``length`` bytes, whose values are undefined."""
        self._array = numpy.zeros(length // self._array.itemsize, self._array.dtype)

    def empty(self) -> bool:
        """bool: whether there are no elements."""
        return self._array.size == 0

    def length(self) -> int:
        """int: size in bytes."""
        return self._array.nbytes

    def _list(self, dtype):
        return self._array.ravel().view(dtype).tolist()

    def float_data(self) -> list[float]:
        """list of float: the elements, read as float32."""
        return self._list("float32")

    def int32_data(self) -> list[int]:
        """list of int: the elements, read as int32."""
        return self._list("int32")

    def int64_data(self) -> list[int]:
        """list of int: the elements, read as int64."""
        return self._list("int64")

    def tolist(self, dtype: str = "float32") -> list[Any]:
        """list: the elements, read as ``dtype``."""
        return self._list(dtype)


class PaddleTensor:
    """An input or output of :meth:`AnalysisPredictor.run`.

    Args:
        data (numpy.ndarray): float32, int64 or int32.
        name (str): name of the variable. Default "": inputs are assigned by their order.

    >>> PaddleTensor(numpy.ones((2, 3), "float32"), "x").shape
    [2, 3]
    """

    def __init__(self, data: Any = None, name: str = "") -> None:
        array = numpy.zeros(0, "float32") if data is None else numpy.asarray(data)
        self.dtype: PaddleDType = _dtype(array)
        self.data: PaddleBuf = PaddleBuf(array)
        self.shape: list[int] = list(array.shape)
        self.lod: list[list[int]] = []
        self.name: str = name

    def as_ndarray(self) -> Any:
        """numpy.ndarray: the values."""
        return numpy.array(self.data._array).view(self.dtype.value).reshape(self.shape)


def as_fed(array: Any, lod: list[list[int]]) -> Any:
    """Returns the input of a predictor: the array, or a LoDTensor if it has sequences."""
    if not lod:
        return array
    tensor = _core.LoDTensor()
    tensor.set(array, _core.CPUPlace())
    tensor.set_lod(lod)
    return tensor


class ZeroCopyTensor:
    """An input or output that stays in the predictor, which creates it."""

    def __init__(self) -> None:
        self._array: Any = numpy.zeros(0, "float32")
        self._lod: list[list[int]] = []

    def copy_from_cpu(self, array: Any) -> None:
        """Copies values from an array.

        Args:
            array (numpy.ndarray): values; float32, int64 or int32.
        """
        array = numpy.asarray(array)
        _dtype(array)
        self._array = numpy.array(array)

    def copy_to_cpu(self) -> Any:
        """numpy.ndarray: the values."""
        return numpy.array(self._array)

    def reshape(self, shape: Any) -> None:
        """Declares a shape. :meth:`copy_from_cpu` replaces it with the shape of the values."""

    def shape(self) -> list[int]:
        """list of int: extents."""
        return list(self._array.shape)

    def type(self) -> PaddleDType:
        """PaddleDType: dtype of the elements."""
        return _dtype(self._array)

    def set_lod(self, lod: list[list[int]]) -> None:
        """Sets the offsets of the sequences."""
        self._lod = lod

    def lod(self) -> list[list[int]]:
        """list of list of int: offsets of sequences."""
        return self._lod
