"""Layers that convert between sequences and rectangular tensors, or change only the sequences."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import InvalidValue
from ..explained import explain
from ..framework import Variable
from ..framework.dtype import VarType, convert_np_dtype_to_dtype_
from ..layer_helper import LayerHelper
from . import check
from .check import WIDE_NUMBERS, one_op

if TYPE_CHECKING:
    from ..hints import DType

__all__ = ["sequence_pad", "sequence_unpad", "sequence_mask", "lod_reset", "lod_append"]


def sequence_pad(x: Variable, pad_value: Variable, maxlen: int | None = None,
                 name: str | None = None) -> tuple[Variable, Variable]:
    """Pads sequences of different lengths to a rectangular tensor.

    Args:
        x (Variable): [rows, ...] with sequences, float32, float64, int32 or int64.
        pad_value (Variable): padding after the end of shorter sequences, [1] or the shape of a row of ``x``; dtype of
            ``x``.
        maxlen (int, optional): length of the result, at least that of the longest sequence. Default: the length of the
            longest sequence.
        name (str, optional): prefix of the generated names.

    Returns:
        tuple: the tensor [sequences, maxlen, ...], without sequences; and the lengths [sequences], int64, without a
        gradient.

    Raises:
        TypeError: the dtype is not supported.
        EnforceNotMet: ``x`` has the ``lod_level`` 0, or at run time, ``maxlen`` is below the length of the longest
            sequence.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> words = fluid.data("words", [None, 8], "float32", lod_level=1)
        >>> padded, lengths = fluid.layers.sequence_pad(words, fluid.layers.zeros([1], "float32"), maxlen=20)
        >>> padded.shape, lengths.shape
        ((-1, 20, 8), (-1,))
    """
    check.operand(x, "x", "sequence_pad")
    check.operand(pad_value, "pad_value", "sequence_pad")
    check.sequences(x, "x", "sequence_pad")
    helper = LayerHelper("sequence_pad", name=name)
    out = helper.create_variable_for_type_inference(x.dtype)
    lengths = helper.create_variable_for_type_inference("int64")
    pad_value.stop_gradient = True
    lengths.stop_gradient = True
    helper.append_op(type="sequence_pad", inputs={"X": x, "PadValue": pad_value},
                     outputs={"Out": out, "Length": lengths}, attrs={"padded_length": -1 if maxlen is None else maxlen})
    return out, lengths


def sequence_unpad(x: Variable, length: Variable, name: str | None = None) -> Variable:
    """Converts the first rows of each sample to sequences: the inverse of :func:`sequence_pad`.

    Args:
        x (Variable): [N, maxlen, ...], float32, float64, int32 or int64.
        length (Variable): [N], int64: number of rows of each sample, at most maxlen.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: [sum of length, ...] with N sequences, or [sum of length, 1] if ``x`` has two axes.

    Raises:
        TypeError: the dtype is not supported.
        EnforceNotMet: at run time, a length is outside of [0, maxlen].

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, n = fluid.data("x", [10, 5, 8], "float32"), fluid.data("n", [10], "int64")
        >>> fluid.layers.sequence_unpad(x, n).shape
        (-1, 8)
    """
    check.operand(x, "x", "sequence_unpad")
    check.variable(length, "length", "sequence_unpad", ("int64",))
    length.stop_gradient = True
    return one_op("sequence_unpad", {"X": x, "Length": length}, name=name)


def _cast(x: Variable, dtype: DType) -> Variable:
    return one_op("cast", {"X": x}, {"in_dtype": x.dtype, "out_dtype": dtype}, dtype=dtype, stop_gradient=True)


def sequence_mask(x: Variable, maxlen: int | Variable | None = None, dtype: DType = "int64",
                  name: str | None = None) -> Variable:
    """out[..., j] = 1 if j < x[...], otherwise 0.

    Args:
        x (Variable): lengths, [...], int32, int64, float32 or float64.
        maxlen (int|Variable, optional): last extent of the result. Default: the largest length.
        dtype (str): dtype of the result. Default "int64".
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: [..., maxlen], without a gradient.

    Raises:
        TypeError: ``x`` is not a Variable of one of these dtypes.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.sequence_mask(fluid.data("n", [10], "int64"), maxlen=5, dtype="float32").shape
        (10, 5)
    """
    check.variable(x, "x", "sequence_mask", WIDE_NUMBERS)
    if x.dtype in (VarType.FP32, VarType.FP64):     # lengths that were summed as floats; 1.5 covers j = 0 and 1
        if maxlen is None:
            maxlen = _cast(one_op("reduce_max", {"X": x}, {"reduce_all": True}, stop_gradient=True), VarType.INT32)
        x = _cast(one_op("ceil", {"X": x}, stop_gradient=True), VarType.INT64)
    inputs: dict[str, Any] = {"X": [x]}
    attrs: dict[str, Any] = {"out_dtype": int(convert_np_dtype_to_dtype_(dtype)), "maxlen": -1}
    if isinstance(maxlen, Variable):
        inputs["MaxLenTensor"] = maxlen
    elif maxlen is not None:
        attrs["maxlen"] = maxlen
    return one_op("sequence_mask", inputs, attrs, dtype=dtype, name=name, out="Y", stop_gradient=True)


def lod_reset(x: Variable, y: Variable | None = None, target_lod: Sequence[Any] | None = None) -> Variable:
    """Replaces the sequences of a tensor.

    Args:
        x (Variable): [rows, ...], float32, float64, int32 or int64.
        y (Variable, optional): Variable whose sequences are used, or an int32 Variable of offsets that has no
            sequences.
        target_lod (list, optional): offsets, increasing from 0 to the number of rows. Used if ``y`` is not given.

    Returns:
        Variable: the rows of ``x`` with the new sequences.

    Raises:
        TypeError: ``x`` is not a Variable of a numeric dtype.
        ValueError: neither ``y`` nor ``target_lod`` is given.
        EnforceNotMet: at run time, the last offset is not the number of rows.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [6, 8], "float32")
        >>> fluid.layers.lod_reset(x, target_lod=[0, 4, 6]).lod_level
        1
    """
    check.variable(x, "x", "lod_reset", WIDE_NUMBERS)
    if y is not None:
        check.variable(y, "y", "lod_reset")
        return one_op("lod_reset", {"X": x, "Y": y})
    if target_lod is None:
        raise InvalidValue("lod_reset: y or target_lod must be given, got neither")
    return one_op("lod_reset", {"X": x}, {"target_lod": target_lod})


def lod_append(x: Variable, level: Sequence[Any] | Variable) -> Variable:
    """Appends an innermost level of sequences to a tensor.

    Args:
        x (Variable): [rows, ...], float32, float64, int32 or int64. If it has no sequences, the new level is the only
            one.
        level (list|tuple|Variable): offsets of the new level, or a Variable whose sequences replace those of ``x``.

    Returns:
        Variable: the rows of ``x`` with the new sequences.

    Raises:
        TypeError: ``x`` is not a Variable of a numeric dtype.
        ValueError: ``level`` is not a list, tuple or Variable.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [6, 8], "float32", lod_level=1)
        >>> fluid.layers.lod_append(x, [0, 1, 4, 6]).lod_level
        2
    """
    check.variable(x, "x", "lod_append", WIDE_NUMBERS)
    if isinstance(level, Variable):
        return one_op("lod_reset", {"X": x, "Y": level}, {"append": True}, layer="lod_append")
    if not isinstance(level, (list, tuple)):
        raise InvalidValue("lod_append: level must be a list, a tuple or a Variable, got %s" % type(level).__name__)
    return one_op("lod_reset", {"X": x}, {"append": True, "target_lod": level}, layer="lod_append")


explain(globals())
