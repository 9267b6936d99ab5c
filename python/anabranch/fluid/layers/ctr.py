"""Layers of click-through models: hashed ids, counts of shows and clicks, tags, and normalization by running
statistics."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import Unsupported
from ..explained import explain
from ..initializer import Constant
from ..layer_helper import LayerHelper
from ..param_attr import ParamAttr
from . import check

if TYPE_CHECKING:
    from ..framework import Variable
    from ..hints import Attr, DType

__all__ = [
    "continuous_value_model", "filter_by_instag", "data_norm",
]


def continuous_value_model(input: Variable, cvm: Variable, use_cvm: bool = True) -> Variable:
    """Converts the first two columns of an embedding, which count shows and clicks, to features, or removes them.

    With ``use_cvm``, the two columns become log(show + 1) and log(click + 1) - log(show + 1). In the backward pass, the
    counts of ``cvm`` are their gradients, so that the table adds up the counts.

    Args:
        input (Variable): [N, D] with D of at least 2, float32 or float64.
        cvm (Variable): [N, 2]: shows and clicks of each sample.
        use_cvm (bool): keeps the two columns. Default True.

    Returns:
        Variable: [N, D], or [N, D - 2] without ``use_cvm``.

    Raises:
        TypeError: the dtype is not supported.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> rows, counts = fluid.data("rows", [None, 11], "float32"), fluid.data("counts", [None, 2], "float32")
        >>> fluid.layers.continuous_value_model(rows, counts, use_cvm=False).shape
        (-1, 9)
    """
    check.operand(input, "input", "continuous_value_model", "cvm")
    check.variable(cvm, "cvm", "continuous_value_model")
    helper = LayerHelper("cvm")
    out = helper.create_variable(dtype=input.dtype)
    helper.append_op(type="cvm", inputs={"X": [input], "CVM": [cvm]}, outputs={"Y": [out]}, attrs={"use_cvm": use_cvm})
    return out


def filter_by_instag(ins: Variable, ins_tag: Variable, filter_tag: Variable, is_lod: bool,
                     out_val_if_empty: int = 0) -> tuple[Variable, Variable]:
    """Selects the samples with one of the given tags.

    Args:
        ins (Variable): [rows, ...], float32, float64, int32 or int64: a sample is a row, or a sequence of rows.
        ins_tag (Variable): [tags, 1], int64, with a sequence of tags for each sample.
        filter_tag (Variable): [N], int64, the tags to select.
        is_lod (bool): the samples of ``ins`` are sequences.
        out_val_if_empty (int): value of the single row of the result if no sample is selected. Default 0.

    Returns:
        tuple: the selected samples, each a sequence, and their weights [samples, 1], float32, 1 for each, or a single 0
        if there are none.

    Raises:
        TypeError: an argument is not a Variable.
        EnforceNotMet: at run time, the number of sequences of tags differs from the number of samples.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> rows = fluid.data("rows", [None, 16], "float32")
        >>> tags, chosen = fluid.data("tags", [None, 1], "int64", lod_level=1), fluid.data("chosen", [None], "int64")
        >>> kept, weights = fluid.layers.filter_by_instag(rows, tags, chosen, is_lod=False)
        >>> kept.shape, weights.shape
        ((-1, 16), (-1, 1))
    """
    check.operand(ins, "ins", "filter_by_instag")
    check.variable(ins_tag, "ins_tag", "filter_by_instag")
    check.variable(filter_tag, "filter_tag", "filter_by_instag")
    helper = LayerHelper("filter_by_instag")
    out = helper.create_variable_for_type_inference(ins.dtype)
    weight = helper.create_variable_for_type_inference("float32")
    places = helper.create_variable_for_type_inference("int64")
    weight.stop_gradient = True
    helper.append_op(type="filter_by_instag",
                     inputs={"Ins": ins, "Ins_tag": ins_tag, "Filter_tag": filter_tag},
                     outputs={"Out": out, "LossWeight": weight, "IndexMap": places},
                     attrs={"is_lod": is_lod, "out_val_if_empty": out_val_if_empty})
    return out, weight


def data_norm(input: Variable, act: str | None = None, epsilon: float = 1e-05, param_attr: Attr = None,
              data_layout: str = "NCHW", in_place: bool = False, name: str | None = None,
              moving_mean_name: str | None = None, moving_variance_name: str | None = None,
              do_model_average_for_mean_and_var: bool = True, slot_dim: int = -1, sync_stats: bool = False,
              summary_decay_rate: float = 0.9999999, enable_scale_and_shift: bool = False) -> Variable:
    """out = (x - mean) * scale for each column. The statistics are parameters that adapt to the data.

    mean = sum / size and scale = sqrt(size / square sum); in the backward pass, the gradients of size, sum and square
    sum are the contributions of the batch.

    Args:
        input (Variable): [N, C], float32 or float64.
        act (str, optional): activation applied to the result.
        epsilon (float): number that is added to the square sum for each row. Default 1e-5.
        param_attr (dict, optional): initial values: "batch_size" (1e4), "batch_sum" (0), "batch_square" (1e4), and
            "scale_w" (1) and "bias" (0) with ``enable_scale_and_shift``.
        data_layout (str): not used.
        in_place (bool): writes the result into ``input``. Default False.
        name (str, optional): prefix of the parameters' names. Default "dn".
        moving_mean_name (str): not used.
        moving_variance_name (str): not used.
        do_model_average_for_mean_and_var (bool): not used.
        slot_dim (int): number of columns of a slot. The first column of a slot counts its shows; if it is 0, the result
            of the slot is zeros and the statistics do not change. -1 means no slots. Default -1.
        sync_stats (bool): not used.
        summary_decay_rate (float): not used.
        enable_scale_and_shift (bool): multiplies by a trained ``scale_w`` and adds a trained ``bias``. Default False.

    Returns:
        Variable: shape and dtype of ``input``.

    Raises:
        TypeError: ``input`` is not a Variable of float32 or float64.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.data_norm(fluid.data("x", [None, 16], "float32")).shape
        (-1, 16)
    """
    check.operand(input, "input", "data_norm")
    helper = LayerHelper("data_norm", act=act, name=name)
    start: dict[Any, Any] = param_attr if isinstance(param_attr, dict) else {}
    stem, shape = name or "dn", [input.shape[1]]

    def parameter(suffix, key, value):
        attr = ParamAttr(name="%s.%s" % (stem, suffix), initializer=Constant(float(start.get(key, value))))
        return helper.create_parameter(attr=attr, shape=shape, dtype=input.dtype)

    inputs = {"X": input}
    if enable_scale_and_shift:
        inputs.update(scale_w=parameter("scale_w", "scale_w", 1.0), bias=parameter("bias", "bias", 0.0))
    inputs["BatchSize"] = parameter("batch_size", "batch_size", 1e4)
    inputs["BatchSum"] = parameter("batch_sum", "batch_sum", 0.0)
    inputs["BatchSquareSum"] = parameter("batch_square_sum", "batch_square", 1e4)
    means, scales = (helper.create_variable(dtype=input.dtype, stop_gradient=True) for _ in range(2))
    out = input if in_place else helper.create_variable(dtype=input.dtype)
    helper.append_op(type="data_norm", inputs=inputs, outputs={"Y": out, "Means": means, "Scales": scales},
                     attrs={"epsilon": epsilon, "slot_dim": slot_dim, "sync_stats": sync_stats,
                            "summary_decay_rate": summary_decay_rate,
                            "enable_scale_and_shift": enable_scale_and_shift})
    return helper.append_activation(out)


def _pull_box_sparse(input: Any, size: int, dtype: DType = "float32") -> Any:
    """Raises NotImplementedError: use ``embedding``, with ``GrowableTable`` for ids without a limit."""
    raise Unsupported("_pull_box_sparse is not supported, because BoxPS is not a part of this package: use "
                      "fluid.embedding with param_attr=fluid.GrowableTable(...)")


explain(globals())
