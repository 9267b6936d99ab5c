"""Methods that ``fluid.core`` adds to the engine's classes, and functions about operators and tensors."""
from __future__ import annotations

from typing import Any

import numpy

from .. import _core
from .errors import EnforceNotMet, InvalidArgument, InvalidType, NotAllowed, NotFound
from .framework.version_check import FILE_VERSION

__all__ = ["from_dlpack", "has_grad_op_maker", "has_infer_inplace"]

#: Operators of Fluid 1.8.5 that declare no gradient, not even an empty one.
_WITHOUT_MAKER = frozenset((
    "attention_lstm", "beam_search", "c_comm_init", "c_comm_init_all", "c_reducescatter", "c_sync_calc_stream",
    "c_sync_comm_stream", "coalesce_tensor", "dequantize", "distributed_lookup_table", "fused_embedding_fc_lstm",
    "fusion_gru", "fusion_lstm", "fusion_repeated_fc_relu", "fusion_seqconv_eltadd_relu", "fusion_seqexpand_concat_fc",
    "fusion_seqpool_concat", "fusion_squared_mat_sub", "gather_tree", "get_tensor_from_selected_rows",
    "listen_and_serv", "load", "load_combine", "merge_ids", "merge_selected_rows", "quantize", "recv_save",
    "requantize", "rnn_memory_helper_grad", "save", "save_combine", "split_ids"))


# ---- elements of tensors


def _values(tensor: Any, dtype: str, index: int) -> Any:
    """A flat copy of a tensor. EnforceNotMet unless it has this dtype and the index."""
    if not tensor._is_initialized():
        raise EnforceNotMet("the tensor holds no memory: call set first")
    found = numpy.array(tensor)
    if found.dtype != dtype:
        raise InvalidArgument("the tensor must hold %s, got %s" % (dtype, found.dtype))
    if not 0 <= index < found.size:
        raise InvalidArgument("the index of an element must be from 0 to %d, got %d" % (found.size - 1, index))
    return found


def _reader(dtype: str) -> Any:
    def get(self: Any, index: int) -> float:
        return float(_values(self, dtype, index).reshape(-1)[index])
    return get


def _writer(dtype: str) -> Any:
    def put(self: Any, index: int, value: float) -> None:
        values, lod = _values(self, dtype, index), self.lod()
        values.reshape(-1)[index] = value
        self.set(values, self._place())
        self.set_lod(lod)
    return put


class _Capsule:
    """The argument of numpy.from_dlpack, for a capsule that has already been made."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def from_dlpack(capsule: Any) -> Any:
    """The tensor of a DLPack capsule in host memory. The values are copied.

    Args:
        capsule (PyCapsule): capsule of another library, such as ``array.__dlpack__()``. It can be used once.

    Returns:
        LoDTensor: the tensor.

    Raises:
        TypeError: ``capsule`` is not a DLPack capsule.

    Examples:
        >>> import numpy
        >>> numpy.array(from_dlpack(numpy.ones([1, 2], "float32").__dlpack__())).tolist()
        [[1.0, 1.0]]
    """
    if type(capsule).__name__ != "PyCapsule":
        raise InvalidType("from_dlpack: capsule must be a DLPack capsule, got %s" % type(capsule).__name__)
    made = _core.LoDTensor()
    made.set(numpy.array(numpy.from_dlpack(_Capsule(capsule))), _core.CPUPlace())
    return made


# ---- operators


def _checked(op_type: str) -> str:
    if op_type not in _core.op_types():
        raise NotFound("there is no operator %s" % op_type)
    return op_type


def has_grad_op_maker(op_type: str) -> bool:
    """Tells whether an operator of Fluid 1.8.5 declares a gradient. The gradient may be empty, like that of ``sgd``.

    Gradient operators declare none: their gradients consist of several operators, which need a program.

    Args:
        op_type (str): type of the operator.

    Returns:
        bool: whether the gradient is declared.

    Raises:
        EnforceNotMet: there is no such operator.

    Examples:
        >>> has_grad_op_maker("relu"), has_grad_op_maker("sgd"), has_grad_op_maker("gather_tree")
        (True, True, False)
    """
    return not _checked(op_type).endswith("_grad") and op_type not in _WITHOUT_MAKER


def has_infer_inplace(op_type: str) -> bool:
    """Tells whether an operator may overwrite its input with its output. More operators can do this than in Fluid
    1.8.5.

    Args:
        op_type (str): type of the operator.

    Returns:
        bool: whether output and input may share memory.

    Raises:
        EnforceNotMet: there is no such operator.

    Examples:
        >>> has_infer_inplace("relu"), has_infer_inplace("mul")
        (True, False)
    """
    return bool(_core.op_info(_checked(op_type))["shares"])


# ---- descriptions


def _block_attr_id(self: Any, name: str) -> int:
    if not self.has_attr(name):
        raise NotFound("operator %s has no attribute %s" % (self._type, name))
    return self.attr(name).idx


def _blocks_attr_ids(self: Any, name: str) -> list[int]:
    if not self.has_attr(name):
        raise NotFound("operator %s has no attribute %s" % (self._type, name))
    return [block.idx for block in self.attr(name)]


def _insert_op(self: Any, index: int) -> Any:
    """An empty op at this position, to be filled in."""
    made = self.insert_op(index, self.append_op())
    self.remove_ops(self.op_size() - 1, self.op_size())
    return made


def _remove_var(self: Any, name: Any) -> None:
    self.remove_var(name.decode() if isinstance(name, bytes) else name)


def _set_version(self: Any, version: int = FILE_VERSION) -> None:
    self.file_version = version


def _gpu_device_id(self: Any) -> int:
    if self.is_gpu_place():
        return hash(self) % 1000  # the hash is 1000 times the kind, plus the index
    raise NotAllowed("gpu_device_id: the place is not a CUDAPlace")


def _install() -> None:
    """Adds the methods to the classes."""
    added = {
        _core.LoDTensor: {"_get_float_element": _reader("float32"), "_set_float_element": _writer("float32"),
                          "_get_double_element": _reader("float64"), "_set_double_element": _writer("float64")},
        _core.Op: {"_block_attr_id": _block_attr_id, "_blocks_attr_ids": _blocks_attr_ids},
        _core.Block: {"_insert_op": _insert_op, "_remove_var": _remove_var,
                      "_remove_op": lambda self, first, last: self.remove_ops(first, last)},
        _core.Program: {"_version": lambda self: self.file_version, "_set_version": _set_version},
        _core.CPUPlace: {"gpu_device_id": _gpu_device_id},
    }
    for cls, methods in added.items():
        for name, method in methods.items():
            setattr(cls, name, method)


_install()
