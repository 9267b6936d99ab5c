"""Fully connected layers, dropout, softmax and label smoothing."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import InvalidArgument, InvalidValue
from ..explained import explain
from ..layer_helper import LayerHelper
from . import check

if TYPE_CHECKING:
    from ..framework import Variable
    from ..hints import Attr, DType

__all__ = [
    "fc", "dropout", "log_softmax", "label_smooth",
]


def fc(input: Variable | Sequence[Any], size: int, num_flatten_dims: int = 1, param_attr: Attr = None,
       bias_attr: Attr = None, act: str | None = None, name: str | None = None) -> Variable:
    """Fully connected layer: out = act(sum over inputs of x_i w_i + b).

    Args:
        input (Variable|list|tuple): [d_0, ..., d_n], n >= 1, float32 or float64. For a list, each element has its own
            weight, and the products are added.
        size (int): number of outputs, at least 1.
        num_flatten_dims (int): number of leading axes to keep; the others are flattened to one. -1 keeps all except the
            last. Default 1.
        param_attr (ParamAttr|list, optional): attributes of the weights, [product of the extents from axis
            num_flatten_dims on, size].
        bias_attr (ParamAttr|bool, optional): attributes of the bias, [size]. False means no bias.
        act (str, optional): activation applied to the result, for example "relu".
        name (str, optional): prefix of all names.

    Returns:
        Variable: [d_0, ..., d_(num_flatten_dims - 1), size], dtype of ``input``.

    Raises:
        TypeError: ``input`` contains an object other than a Variable, or has an unsupported dtype.
        ValueError: ``input`` has fewer than two axes, a flattened extent is unknown, or ``act`` is unknown.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 28, 28], "float32")
        >>> fluid.layers.fc(x, size=10, act="softmax").shape
        (-1, 10)
        >>> fluid.layers.fc(x, size=10, num_flatten_dims=2).shape
        (-1, 28, 10)
    """
    inputs = check.variables(input, "input", "fc")
    helper = LayerHelper("fc", input=inputs, param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    dtype = helper.input_dtype()
    if not check.half(inputs[0], "input", "fc", "mul"):
        check.of_dtype(dtype, "input", "fc", check.of_kernels("mul"))
    products = []
    for x, attr in helper.iter_inputs_and_params():
        if len(x.shape) == 1:
            raise InvalidArgument("fc: input must have an axis of rows and one of values, got %s of variable %s: the "
                                  "first extent in fluid.data is the number of rows, such as [None, 4]"
                                  % (list(x.shape), x.name))
        kept = len(x.shape) - 1 if num_flatten_dims == -1 else num_flatten_dims
        rows = 1
        for extent in x.shape[kept:]:
            rows *= extent
        weight = helper.create_parameter(attr=attr, shape=[rows, size], dtype=dtype, is_bias=False)
        product = helper.create_variable_for_type_inference(dtype)
        helper.append_op(type="mul", inputs={"X": x, "Y": weight}, outputs={"Out": product},
                         attrs={"x_num_col_dims": kept, "y_num_col_dims": 1})
        products.append(product)
    total = products[0]
    if len(products) > 1:
        total = helper.create_variable_for_type_inference(dtype)
        helper.append_op(type="sum", inputs={"X": products}, outputs={"Out": total}, attrs={"use_mkldnn": False})
    kept = len(total.shape) - 1 if num_flatten_dims == -1 else num_flatten_dims
    return helper.append_activation(helper.append_bias_op(total, dim_start=kept))


def dropout(x: Variable, dropout_prob: float, is_test: bool = False, seed: int | None = None, name: str | None = None,
            dropout_implementation: str = "downgrade_in_infer") -> Variable:
    """In training, sets each element to 0 with probability p.

    Srivastava and others, Dropout: a simple way to prevent neural networks from overfitting, JMLR 15 (2014).

    Args:
        x (Variable): [...], float32 or float64.
        dropout_prob (float): p, in [0, 1].
        is_test (bool): behaves as in inference. Default False; ``clone(for_test=True)`` of the program sets it.
        seed (int, optional): seed of the masks. A fixed seed gives the same masks in every process and a new mask in
            each step.
        name (str, optional): prefix of the generated names.
        dropout_implementation (str): "downgrade_in_infer": x * mask in training, x * (1 - p) in inference.
            "upscale_in_train": x * mask / (1 - p) in training, x in inference. Default "downgrade_in_infer".

    Returns:
        Variable: shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` is not a Variable of a float dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.dropout(fluid.data("x", [None, 4], "float32"), dropout_prob=0.5).shape
        (-1, 4)
    """
    check.operand(x, "x", "dropout")
    helper = LayerHelper("dropout", name=name)
    out = helper.create_variable_for_type_inference(x.dtype)
    mask = helper.create_variable_for_type_inference("uint8", stop_gradient=True)
    if (seed is None or seed == 0) and helper.main_program.random_seed != 0:
        seed = helper.main_program.random_seed
    helper.append_op(type="dropout", inputs={"X": [x]}, outputs={"Out": [out], "Mask": [mask]},
                     attrs={"dropout_prob": dropout_prob, "is_test": is_test, "fix_seed": seed is not None,
                            "seed": seed if seed is not None else 0,
                            "dropout_implementation": dropout_implementation})
    return out


def log_softmax(input: Variable, axis: int | None = None, dtype: DType = None, name: str | None = None) -> Variable:
    """out = log(softmax(x)) along an axis.

    Args:
        input (Variable): [...], float32 or float64.
        axis (int, optional): axis of the softmax. Default -1.
        dtype (str, optional): dtype to which the input is cast first.
        name (str, optional): prefix of the generated names.

    Returns:
        Variable: shape of ``input``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.log_softmax(fluid.data("x", [None, 4], "float32")).shape
        (-1, 4)
    """
    check.operand(input, "input", "log_softmax", "softmax")
    helper = LayerHelper("log_softmax", name=name)
    if dtype is not None:
        source, input = input, helper.create_variable_for_type_inference(dtype)
        helper.append_op(type="cast", inputs={"X": source}, outputs={"Out": input},
                         attrs={"in_dtype": source.dtype, "out_dtype": input.dtype})
    probability = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type="softmax", inputs={"X": input}, outputs={"Out": probability},
                     attrs={"axis": -1 if axis is None else axis, "use_cudnn": False})
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type="log", inputs={"X": probability}, outputs={"Out": out})
    return out


def label_smooth(label: Variable, prior_dist: Variable | None = None, epsilon: float = 0.1, dtype: DType = "float32",
                 name: str | None = None) -> Variable:
    """out = (1 - epsilon) * label + epsilon * prior. By default, the prior is 1 / number of classes.

    Szegedy and others, Rethinking the inception architecture for computer vision, CVPR 2016.

    Args:
        label (Variable): [N, classes], one-hot or probabilities, float32 or float64.
        prior_dist (Variable, optional): prior, [1, classes].
        epsilon (float): weight of the prior, in [0, 1]. Default 0.1.
        dtype (str): dtype of the result. Default "float32".
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: shape of ``label``.

    Raises:
        ValueError: ``epsilon`` is out of range.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> ids = fluid.data("ids", [None, 1], "int64")
        >>> fluid.layers.label_smooth(fluid.layers.one_hot(ids, 4), epsilon=0.1).shape
        (-1, 4)
    """
    if epsilon > 1.0 or epsilon < 0.0:
        raise InvalidValue("label_smooth: epsilon must be in [0, 1], got %s" % epsilon)
    check.variable(label, "label", "label_smooth")
    helper = LayerHelper("label_smooth", name=name)
    label.stop_gradient = True
    out = helper.create_variable_for_type_inference(dtype)
    inputs = {"X": label}
    if prior_dist is not None:
        inputs["PriorDist"] = prior_dist
    helper.append_op(type="label_smooth", inputs=inputs, outputs={"Out": out}, attrs={"epsilon": float(epsilon)})
    return out


explain(globals())
