"""Checks of the arguments of layers, and short ways to append an op.

A wrong class or dtype raises TypeError, a wrong value raises ValueError. The message names the layer, the argument, the
accepted values and the given one. The shape function of the op checks shapes.
"""
from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ... import _core
from .. import user_warnings
from ..errors import InvalidArgument, InvalidType, InvalidValue
from ..framework import Variable, get_flags
from ..framework.dtype import dtype_name
from ..framework.variable_operators import warn_of_pairs
from ..layer_helper import LayerHelper
from . import probabilities

if TYPE_CHECKING:
    from ..hints import DType

FLOATS = ("float16", "float32", "float64")
WIDE_FLOATS = ("float32", "float64")
NUMBERS = ("float16", "float32", "float64", "int32", "int64")
WIDE_NUMBERS = ("float32", "float64", "int32", "int64")
INTS = ("int32", "int64")
# Layers that Fluid 1.8.5 builds with float16, which only GPUs compute there. Its other layers raise TypeError.
_HALVES = frozenset(
    "abs accuracy acos adaptive_pool2d adaptive_pool3d anchor_generator asin atan batch_norm "
    "bilinear_tensor_product box_coder bpr_loss brelu ceil center_loss clip continuous_value_model conv2d conv3d "
    "cos cross_entropy ctc_greedy_decoder cumsum data_norm diag_embed dropout elementwise_add elementwise_div "
    "elementwise_floordiv elementwise_max elementwise_min elementwise_mod elementwise_mul elementwise_pow "
    "elementwise_sub elu erf exp fc filter_by_instag floor gelu hard_shrink hard_sigmoid hard_swish has_inf "
    "has_nan image_resize image_resize_short iou_similarity leaky_relu log_softmax logsigmoid margin_rank_loss "
    "matmul mean mul pad pad2d pad_constant_like prelu prroi_pool reciprocal reduce_max reduce_min reduce_prod "
    "relu relu6 resize_bilinear resize_nearest roi_pool round rsqrt sampled_softmax_with_cross_entropy "
    "sampling_id scatter shuffle_channel sigmoid sigmoid_cross_entropy_with_logits sign sin soft_relu softmax "
    "softmax_with_cross_entropy softplus softshrink softsign space_to_depth sqrt square stanh swish tanh "
    "tanh_shrink thresholded_relu trace where yolo_box yolov3_loss".split())


def exact_fluid() -> bool:
    """Whether ``FLAGS_fluid_exact`` requires the behavior of Fluid 1.8.5 even where Anabranch differs by default."""
    return get_flags(["FLAGS_fluid_exact"])["FLAGS_fluid_exact"] == "1.8.5"


def of_type(value: Any, argument: str, layer: str, types: Any) -> None:
    """Raises TypeError unless ``value`` is an instance of ``types`` (a class or a tuple of classes)."""
    if isinstance(value, types):
        return
    classes = types if isinstance(types, tuple) else (types,)
    raise InvalidType("%s: %s must be %s, got %s" % (
        layer, argument, " or ".join("None" if t is type(None) else t.__name__ for t in classes), _got(value)))


def _got(value: Any) -> str:
    """The class of a value; for an array that is passed instead of a Variable, followed by a hint."""
    name = type(value).__name__
    return name if name != "ndarray" else (
        name + "; an array is fed when the program runs: say x = fluid.data(name, shape, dtype) here, "
        "and executor.run(feed={name: array})")


def of_dtype(dtype: DType, argument: str, layer: str, dtypes: Sequence[str]) -> None:
    """Raises TypeError unless ``dtype`` (a VarType) is one of the names ``dtypes``."""
    name = dtype_name(dtype)
    if name not in dtypes:
        raise InvalidType("%s: the dtype of %s must be one of %s, got %s" % (layer, argument, ", ".join(dtypes), name))


def variable(value: Any, argument: str, layer: str, dtypes: Sequence[str] | None = None) -> None:
    """Raises TypeError unless ``value`` is a Variable and, if ``dtypes`` is given, has one of these dtypes."""
    if not isinstance(value, Variable):
        raise InvalidType("%s: %s must be a Variable, got %s" % (layer, argument, _got(value)))
    if dtypes is not None:
        of_dtype(value.dtype, argument, layer, dtypes)


def variables(values: Any, argument: str, layer: str, dtypes: Sequence[str] | None = None) -> list[Variable]:
    """Returns a Variable, or a list or tuple of Variables, as a list. Raises TypeError for anything else."""
    of_type(values, argument, layer, (Variable, list, tuple))
    values = list(values) if isinstance(values, (list, tuple)) else [values]
    for i, value in enumerate(values):
        variable(value, "%s[%d]" % (argument, i), layer, dtypes)
    return values


@functools.lru_cache(maxsize=None)
def _kernels(op: str) -> tuple[str, ...]:
    return tuple(_core.op_info(op)["dtypes"])


def of_kernels(op: str) -> tuple[str, ...]:
    """The names of the dtypes for which ``op`` has kernels. With ``FLAGS_fluid_exact``, float16 is added, because Fluid
    accepts it in programs that only other devices can run."""
    dtypes = _kernels(op)
    return ("float16",) + dtypes if "float32" in dtypes and exact_fluid() else dtypes


def half(value: Any, argument: str, layer: str, op: str | None = None) -> bool:
    """Whether ``value`` is a Variable of float16 that Fluid 1.8.5 accepts and ``op`` (default: ``layer``) cannot
    compute. A warning says that the program cannot run."""
    if layer not in _HALVES or not isinstance(value, Variable) or dtype_name(value.dtype) != "float16":
        return False
    known = _kernels(op or layer)
    if "float16" in known or exact_fluid():
        return False
    user_warnings.warn("%s: %s is float16, for which there is no kernel: the program can be built and saved, but a run "
                       "raises Unsupported. Kernels: %s" % (layer, argument, ", ".join(known)))
    return True


def operand(value: Any, argument: str, layer: str, op: str | None = None) -> None:
    """Raises TypeError unless ``value`` is a Variable of a dtype for which ``op`` (default: ``layer``) has a kernel. If
    the kernels of the op do not depend on the dtype, any dtype is accepted."""
    known = _kernels(op or layer)
    if known and isinstance(value, Variable) and dtype_name(value.dtype) in known:
        probabilities.check(layer, argument, value)
        return
    if known and half(value, argument, layer, op):
        return
    variable(value, argument, layer, of_kernels(op or layer) if known else None)


def operands(values: Any, argument: str, layer: str, op: str | None = None) -> list[Variable]:
    """Returns one or several Variables as a list, after checking each of them with :func:`operand`."""
    values = variables(values, argument, layer)
    for i, value in enumerate(values):
        operand(value, "%s[%d]" % (argument, i), layer, op)
    return values


def sequences(value: Variable, argument: str, layer: str, only: int | None = None) -> None:
    """Raises EnforceNotMet unless ``value`` has a ``lod_level`` of at least 1, or, if ``only`` is given, of exactly
    ``only``."""
    if value.lod_level >= 1 if only is None else value.lod_level == only:
        return
    fed = [name for name in _fed_into(value) if name != value.name]
    raise InvalidArgument("%s: %s must have lod_level %s, got lod_level %d of variable %s%s\n"
                          "  Declare variables that hold sequences with fluid.data(name, shape, dtype, lod_level=1)"
                          % (layer, argument, "1 at least" if only is None else only, value.lod_level, value.name,
                             ", which is computed from %s" % ", ".join(fed) if fed else ""))


def _fed_into(value: Variable) -> list[str]:
    """Names of the variables of ``fluid.data`` that ``value`` is computed from, in the order of the program."""
    needed, block = {value.name}, value.block
    for op in reversed(block.ops):
        if needed.intersection(op.output_arg_names):
            needed.update(op.input_arg_names)
    return [name for name, var in block.vars.items() if name in needed and var.is_data]


def one_of(value: Any, argument: str, layer: str, choices: Sequence[Any]) -> None:
    """Raises ValueError unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise InvalidValue("%s: %s must be one of %s, got %r"
                           % (layer, argument, ", ".join(repr(c) for c in choices), value))


def is_bool(value: Any, argument: str, layer: str, error: Any = InvalidValue) -> None:
    """Raises ValueError (or ``error``) unless ``value`` is True or False."""
    if not isinstance(value, bool):
        raise error("%s: %s must be True or False, got %r" % (layer, argument, value))


def ints(value: Any, count: int, argument: str, layer: str) -> list[int]:
    """Returns ``value`` as a list of ``count`` ints; a single int is repeated. Raises ValueError for anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return [value] * count
    if not isinstance(value, (list, tuple)):
        raise InvalidValue("%s: %s must be an int or a list of %d ints, got %r" % (layer, argument, count, value))
    if len(value) != count or not all(isinstance(v, int) for v in value):
        raise InvalidValue("%s: %s must be an int or a list of %d ints, got %r" % (layer, argument, count, value))
    return list(value)


def one_op(op: str, inputs: dict[str, Any], attrs: dict[str, Any] | None = None, dtype: DType = None,
           layer: str | None = None, name: str | None = None, act: str | None = None, out: str = "Out",
           to: Variable | None = None, stop_gradient: bool = False) -> Variable:
    """Appends one op that has one result.

    Args:
        op (str): type of the op.
        inputs (dict): slot -> Variable or list of Variables. None means that the input is absent.
        attrs (dict, optional): attributes. If one is None, the op uses its default.
        dtype: dtype of the result. Default: that of the first input.
        layer (str): prefix of the output's name. Default: ``op``.
        name (str, optional): prefix that the user chose for the generated names.
        act (str, optional): activation applied to the result.
        out (str): output slot.
        to (Variable, optional): Variable that receives the result.
        stop_gradient (bool): sets ``stop_gradient`` of a result that is created here.

    Returns:
        Variable: the result.
    """
    helper = LayerHelper(layer or op, name=name, act=act)
    inputs = {slot: value for slot, value in inputs.items() if value is not None}
    if op.startswith("elementwise_") and (attrs or {}).get("axis", -1) == -1:
        warn_of_pairs(op, inputs["X"], inputs["Y"])
    if to is not None:
        variable(to, "the output", layer or op)
    else:
        if dtype is None:
            first = next(iter(inputs.values()), None)
            if first is None:
                raise InvalidType("%s: the input must be a Variable, got None" % (layer or op))
            dtype = (first[0] if isinstance(first, (list, tuple)) else first).dtype
        to = helper.create_variable_for_type_inference(dtype, stop_gradient=stop_gradient)
    helper.append_op(type=op, inputs=inputs, outputs={out: [to]},
                     attrs={key: value for key, value in (attrs or {}).items() if value is not None})
    return helper.append_activation(to) if act is not None else to


def several(op: str, inputs: dict[str, Any], attrs: dict[str, Any], outs: dict[str, DType], layer: str | None = None,
            name: str | None = None, stop_gradient: bool = False) -> tuple[Variable, ...]:
    """Appends one op that has several results, like :func:`one_op`. ``outs`` maps its output slots to their dtypes."""
    helper = LayerHelper(layer or op, name=name)
    made = {slot: helper.create_variable_for_type_inference(dtype, stop_gradient=stop_gradient)
            for slot, dtype in outs.items()}
    helper.append_op(type=op, inputs={slot: value for slot, value in inputs.items() if value is not None},
                     outputs={slot: [value] for slot, value in made.items()},
                     attrs={key: value for key, value in attrs.items() if value is not None})
    return tuple(made.values())


def reduced(op: str, input: Variable, dim: int | Sequence[int] | None, keep_dim: bool, name: str | None) -> Variable:
    """A reduction (sum, mean and so on) over the axes ``dim``. Default: all axes."""
    operand(input, "input", op)
    axes = [dim] if isinstance(dim, int) else list(dim) if isinstance(dim, (list, tuple)) else dim
    if axes is not None and not (isinstance(axes, list) and all(isinstance(a, int) for a in axes)):
        raise InvalidType("%s: dim must be an int or a list of ints, got %r" % (op, dim))
    return one_op(op, {"X": input}, {"dim": axes or [0], "keep_dim": bool(keep_dim), "reduce_all": not axes}, name=name)
