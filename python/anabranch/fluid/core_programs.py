"""Functions of ``fluid.core`` that build and prune programs, and that read and write variables of a scope."""
from __future__ import annotations

import enum
import functools
from collections.abc import Collection, Sequence
from typing import Any

import numpy

from .. import _core
from .core_methods import _checked
from .errors import InvalidType, InvalidValue, NotFound

_GRAD = "@GRAD"
#: Names of dtypes in C++, where they differ.
_IN_C = {"float32": "float", "float64": "double", "float16": "::paddle::platform::float16", "int8": "int8_t",
         "uint8": "uint8_t", "int16": "int16_t", "int32": "int", "int64": "int64_t"}

#: Inputs of Fluid 1.8.5's operators whose shape is used, and whose values are not.
_ONLY_SHAPES = {
    **dict.fromkeys((
        "concat_grad", "mean_grad", "reduce_sum_grad", "sequence_pool_grad", "gather_grad", "expand_grad",
        "nearest_interp_grad", "bilinear_interp_grad", "pad2d_grad", "sequence_concat_grad", "fill_zeros_like2"),
        ("X",)),
    **dict.fromkeys((
        "slice_grad", "fill_constant_batch_size_like", "uniform_random_batch_size_like",
        "gaussian_random_batch_size_like"), ("Input",)),
    **dict.fromkeys(("elementwise_add_grad", "elementwise_sub_grad", "sequence_expand_grad"), ("X", "Y")),
    **dict.fromkeys(("lookup_table_grad", "lookup_table_v2_grad"), ("W",)),
    "scatter_grad": ("Updates",), "layer_norm_grad": ("Bias",)}


# ---- gradients


def get_grad_op_desc(op: Any, no_grad_set: Collection[str], blocks: Sequence[Any] = ()) -> tuple[list[Any], Any]:
    """The gradient operators of one operator. They belong to no program.

    Args:
        op (OpDesc): operator.
        no_grad_set (set of str): names of gradients that are not needed.
        blocks (list of BlockDesc): blocks of the gradients of control flow, ignored because programs make them.

    Returns:
        tuple: list of OpDesc, and a dict from the name of a gradient to its variable.

    Raises:
        EnforceNotMet: there is no such operator.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> with fluid.program_guard(fluid.Program()):
        ...     op = fluid.layers.relu(fluid.data("x", [2], "float32")).op.desc
        >>> made, gradients = get_grad_op_desc(op, set(), [])
        >>> made[0].type(), made[0].output("X@GRAD"), gradients["x@GRAD"]
        ('relu_grad', ['x@GRAD'], 'x')
    """
    _checked(op.type())
    made = _core.op_gradients(op, _block_of(op), set(no_grad_set))
    names = {name for one in made for name in one.input_arg_names() + one.output_arg_names()}
    return made, {name: name[:-len(_GRAD)] for name in sorted(names) if name.endswith(_GRAD)}


def _block_of(op: Any) -> Any:
    """The block of the default main program that holds the operator, or else the first block."""
    from .framework import default_main_program
    blocks = [block.desc for block in default_main_program().blocks]
    return next((block for block in blocks if any(held is op for held in block.ops())), blocks[0])


def infer_no_need_buffer_slots(op_type: str, inputs: Any, outputs: Any, attrs: Any) -> set[str]:
    """set of str: input slots whose values the operator does not read, only their shapes, so the values may be freed.

    >>> sorted(infer_no_need_buffer_slots("elementwise_add_grad", {}, {}, {}))
    ['X', 'Y']
    """
    return set(_ONLY_SHAPES.get(_checked(op_type), ()))


def _get_all_register_op_kernels() -> dict[str, list[str]]:
    """The operators that have kernels, with a text for each kernel that names its dtype as Fluid 1.8.5 does.

    >>> _get_all_register_op_kernels()["sgd"][0]
    'data_type[float]:data_layout[ANY_LAYOUT]:place[CPUPlace]:library_type[PLAIN]'
    """
    return {name: ["data_type[%s]:data_layout[ANY_LAYOUT]:place[CPUPlace]:library_type[PLAIN]" % _IN_C.get(one, one)
                   for one in dtypes]
            for name in _core.op_types() if (dtypes := _core.op_info(name)["dtypes"])}


# ---- programs


def prune_backward(program: Any) -> tuple[Any, dict[int, int]]:
    """A copy of a program without its backward pass and updates, and a dict from the indices of its blocks to those of
    Fluid 1.8.5."""
    from .framework import pruning
    pruned = pruning.forward_desc(program)
    return pruned, {index: index for index in range(pruned.num_blocks())}


# ---- variables of a scope


def _found(scope: Any, name: str) -> Any:
    variable = scope.find_var(name)
    if variable is None:
        raise NotFound("the scope has no variable %s" % name)
    return variable


def get_variable_tensor(scope: Any, name: str) -> Any:
    """The tensor of a variable of a scope.

    Raises:
        EnforceNotMet: the scope has no such variable.
    """
    return _found(scope, name).get_tensor()


def _create_loaded_parameter(variables: Sequence[Any], scope: Any, executor: Any = None) -> None:
    """Creates the variables in a scope, with zeros in the shapes that their descriptions give."""
    for variable in variables:
        tensor = scope.var(variable.name).get_tensor()
        if not tensor._is_initialized():
            _zeros(tensor, variable)


def _zeros(tensor: Any, variable: Any) -> None:
    from .framework.dtype import numpy_dtype
    tensor.set(numpy.zeros(variable.shape, numpy_dtype(variable.dtype)), _core.CPUPlace())


def set_feed_variable(scope: Any, tensor: Any, name: str, index: int) -> None:
    """Puts a tensor into a list of a scope, which is extended with empty tensors up to the index. Executors do not read
    it: they are fed by ``Executor.run(feed=...)``.

    Args:
        scope (Scope): scope of the list.
        tensor (LoDTensor): the tensor; its memory is shared.
        name (str): name of the list.
        index (int): position in the list.

    Raises:
        ValueError: ``index`` is below 0.

    Examples:
        >>> import numpy, anabranch.fluid as fluid
        >>> scope, tensor = fluid.core.Scope(), fluid.create_lod_tensor(numpy.ones([3, 1]), [[1, 2]], fluid.CPUPlace())
        >>> set_feed_variable(scope, tensor, "feed", 1)
        >>> get_fetch_variable(scope, "feed", 1).recursive_sequence_lengths()
        [[1, 2]]
    """
    if index < 0:
        raise InvalidValue("set_feed_variable: index must be at least 0, got %d" % index)
    tensors = scope.var(name).get_lod_tensor_array()
    while len(tensors) <= index:
        tensors.append(_core.LoDTensor())
    tensors[index] = tensor


def get_fetch_variable(scope: Any, name: str, index: int) -> Any:
    """LoDTensor: the tensor at a position of a list of a scope.

    Raises:
        EnforceNotMet: the scope has no such variable.
        ValueError: the list has no such position.
    """
    tensors = _found(scope, name).get_lod_tensor_array()
    if not 0 <= index < len(tensors):
        raise InvalidValue("get_fetch_variable: %s holds %d tensors, got the index %d" % (name, len(tensors), index))
    return tensors[index]


# ---- the profiler


class ProfilerState(enum.Enum):
    """Kinds of measurements of the profiler."""

    kDisabled = 0
    kCPU = 1
    kCUDA = 2
    kAll = 3


class TracerOption(enum.Enum):
    """How much detail the profiler records. It has no effect."""

    kDefault = 0
    kOpDetail = 1
    kAllOpDetail = 2


class EventSortingKey(enum.Enum):
    """Column by which the profiler sorts its table."""

    kDefault = 0
    kCalls = 1
    kTotal = 2
    kMin = 3
    kMax = 4
    kAve = 5


def _member(value: Any, of: type[enum.Enum], function: str) -> Any:
    if not isinstance(value, of):
        raise InvalidType("%s: the argument must be a %s, got %s" % (function, of.__name__, type(value).__name__))
    return value


def is_profiler_enabled() -> bool:
    """bool: whether the profiler runs."""
    return _core.profiler_on()


def enable_profiler(state: ProfilerState) -> None:
    """Starts the profiler."""
    from . import profiler
    if _member(state, ProfilerState, "enable_profiler") is ProfilerState.kDisabled:
        raise InvalidValue("enable_profiler: state must be kCPU, kCUDA or kAll, got kDisabled")
    profiler.start_profiler({"kAll": "All"}.get(state.name, state.name[1:]))


def disable_profiler(key: EventSortingKey, path: str) -> None:
    """Stops the profiler, prints its table and writes the profile."""
    from . import profiler
    name = _member(key, EventSortingKey, "disable_profiler").name[1:].lower()
    profiler.stop_profiler(None if name == "default" else name, path)


def reset_profiler() -> None:
    """Discards the measurements of the profiler."""
    _core.reset_profiler()


def set_tracer_option(option: TracerOption) -> None:
    """Does nothing."""
    _member(option, TracerOption, "set_tracer_option")


@functools.lru_cache(maxsize=1)
def names() -> dict[str, Any]:
    """dict: the names of this module that ``fluid.core`` has."""
    found: dict[str, Any] = {value.__name__: value for value in (
        get_grad_op_desc, infer_no_need_buffer_slots, prune_backward, get_variable_tensor, _create_loaded_parameter,
        set_feed_variable, get_fetch_variable, _get_all_register_op_kernels,
        ProfilerState, TracerOption, EventSortingKey, is_profiler_enabled, enable_profiler, disable_profiler,
        reset_profiler, set_tracer_option)}
    for kind in (ProfilerState, TracerOption, EventSortingKey):
        found.update(kind.__members__)
    return {**found, "kDefault": EventSortingKey.kDefault}
