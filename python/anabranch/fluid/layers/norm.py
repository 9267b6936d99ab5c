"""Layers that normalize over the batch, over features or over groups of channels, or that scale channels."""
from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import InvalidValue, Violated
from ..explained import explain
from ..framework import Variable
from ..initializer import Constant
from ..layer_helper import LayerHelper
from ..param_attr import ParamAttr
from . import check
from .check import one_op

if TYPE_CHECKING:
    from ..hints import Attr

__all__ = ["batch_norm", "inplace_abn", "layer_norm", "group_norm", "instance_norm", "lrn", "affine_channel"]


def _temporaries(helper, dtype, count):
    return [helper.create_variable_for_type_inference(dtype, stop_gradient=True) for _ in range(count)]


def batch_norm(input: Variable, act: str | None = None, is_test: bool = False, momentum: float | Variable = 0.9,
               epsilon: float = 1e-05, param_attr: Attr = None, bias_attr: Attr = None, data_layout: str = "NCHW",
               in_place: bool = False, name: str | None = None, moving_mean_name: str | None = None,
               moving_variance_name: str | None = None, do_model_average_for_mean_and_var: bool = True,
               use_global_stats: bool = False) -> Variable:
    """out = scale * (x - mean) / sqrt(variance + epsilon) + bias, with the statistics of each channel over the batch.

    In training, the layer uses the statistics of the batch, and each moving statistic becomes moving * momentum +
    batch * (1 - momentum). A test program uses the moving statistics. Ioffe and Szegedy, Batch normalization:
    accelerating deep network training, ICML 2015 (arXiv:1502.03167).

    Args:
        input (Variable): [N, C, ...], or [N, ..., C] with "NHWC"; 2 to 5 axes; float32 or float64.
        act (str, optional): activation applied to the result.
        is_test (bool): uses the moving statistics. Default False; ``clone(for_test=True)`` of the program sets it.
        momentum (float|Variable): weight of the old moving statistics. Default 0.9.
        epsilon (float): number that is added to the variance. Default 1e-5.
        param_attr (ParamAttr, optional): attributes of the scale, [C]. Its initial value is 1.
        bias_attr (ParamAttr, optional): attributes of the bias, [C]; must not be False. Its initial value is 0.
        data_layout (str): "NCHW" or "NHWC". Default "NCHW".
        in_place (bool): writes the result into ``input``. Default False.
        name (str, optional): prefix of the generated names.
        moving_mean_name (str, optional): name of the moving mean, [C].
        moving_variance_name (str, optional): name of the moving variance, [C].
        do_model_average_for_mean_and_var (bool): ``ModelAverage`` also averages the moving statistics. Default True.
        use_global_stats (bool): uses the moving statistics in training as well. Default False.

    Returns:
        Variable: shape and dtype of ``input``.

    Raises:
        TypeError: ``input`` is not a Variable of a float dtype.
        AssertionError: ``bias_attr`` is False.
        ValueError: ``data_layout`` is unknown.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> image = fluid.data("image", [None, 3, 8, 8], "float32")
        >>> fluid.layers.batch_norm(image, act="relu").shape
        (-1, 3, 8, 8)
    """
    if bias_attr is False:
        raise Violated("batch_norm: bias_attr must not be False")
    helper = LayerHelper("batch_norm", param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    inputs = _channel_inputs(helper, input, data_layout, (moving_mean_name, moving_variance_name),
                             do_model_average_for_mean_and_var)
    saved = _temporaries(helper, inputs["Scale"].dtype, 2)
    out = input if in_place else helper.create_variable_for_type_inference(input.dtype)
    attrs = {"epsilon": epsilon, "is_test": is_test, "data_layout": data_layout, "use_mkldnn": False,
             "fuse_with_relu": False, "use_global_stats": use_global_stats}
    _append_norm(helper, inputs, out, saved, attrs, momentum)
    return helper.append_activation(out)


def _channel_inputs(helper, input, data_layout, moving_names, averaged):
    """Returns the input, the scale and bias of the channels, and their moving statistics, by slot."""
    op = helper.layer_type
    check.operand(input, "input", op)
    check.one_of(data_layout, "data_layout", op, ("NCHW", "NHWC"))
    dtype = "float32" if check.dtype_name(input.dtype) == "float16" else input.dtype
    shape = [input.shape[1 if data_layout == "NCHW" else -1]]
    scale = helper.create_parameter(attr=helper.param_attr, shape=shape, dtype=dtype,
                                    default_initializer=Constant(1.0))
    bias = helper.create_parameter(attr=helper.bias_attr, shape=shape, dtype=dtype, is_bias=True)
    moving = []
    for name, value in zip(moving_names, (0.0, 1.0)):
        attr = ParamAttr(name=name, initializer=Constant(value), trainable=False, do_model_average=averaged)
        stat = helper.create_parameter(attr=attr, shape=shape, dtype=dtype)
        stat.stop_gradient = True
        moving.append(stat)
    return {"X": input, "Scale": scale, "Bias": bias, "Mean": moving[0], "Variance": moving[1]}


def _append_norm(helper, inputs, out, saved, attrs, momentum):
    if isinstance(momentum, Variable):
        inputs = dict(inputs, MomentumTensor=momentum)
    else:
        attrs = dict(attrs, momentum=momentum)
    helper.append_op(type=helper.layer_type, inputs=inputs, attrs=attrs,
                     outputs={"Y": out, "MeanOut": inputs["Mean"], "VarianceOut": inputs["Variance"],
                              "SavedMean": saved[0], "SavedVariance": saved[1]})


def inplace_abn(input: Variable, act: str | None = None, is_test: bool = False, momentum: float | Variable = 0.9,
                epsilon: float = 1e-05, param_attr: Attr = None, bias_attr: Attr = None, data_layout: str = "NCHW",
                name: str | None = None, moving_mean_name: str | None = None, moving_variance_name: str | None = None,
                do_model_average_for_mean_and_var: bool = True, use_global_stats: bool = False,
                act_alpha: float = 1.0) -> Variable:
    """:func:`batch_norm` and an activation that overwrite ``input``. The gradient is computed from the result alone.

    Rota Bulo, Porzi and Kontschieder, In-place activated batch norm, CVPR 2018 (arXiv:1712.02616).

    Args:
        input (Variable): [N, C, ...], or [N, ..., C] with "NHWC"; 2 to 5 axes; float32 or float64. It is overwritten.
        act (str, optional): "identity", "leaky_relu" or "elu"; other activations have no inverse. Default "identity".
        is_test (bool): uses the moving statistics. Default False; ``clone(for_test=True)`` of the program sets it.
        momentum (float|Variable): weight of the old moving statistics. Default 0.9.
        epsilon (float): number that is added to the variance. Default 1e-5.
        param_attr (ParamAttr, optional): attributes of the scale, [C]. Its initial value is 1, and it must not become
            0.
        bias_attr (ParamAttr, optional): attributes of the bias, [C]; must not be False. Its initial value is 0.
        data_layout (str): "NCHW" or "NHWC". Default "NCHW".
        name (str, optional): prefix of the generated names.
        moving_mean_name (str, optional): name of the moving mean, [C].
        moving_variance_name (str, optional): name of the moving variance, [C].
        do_model_average_for_mean_and_var (bool): ``ModelAverage`` also averages the moving statistics. Default True.
        use_global_stats (bool): uses the moving statistics in training as well. Default False.
        act_alpha (float): the slope of leaky_relu, or the limit of elu. Default 1.

    Returns:
        Variable: ``input``.

    Raises:
        TypeError: ``input`` is not a Variable of a float dtype.
        AssertionError: ``bias_attr`` is False, or ``act`` is not supported.
        ValueError: ``data_layout`` is unknown.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> image = fluid.data("image", [None, 3, 8, 8], "float32")
        >>> fluid.layers.inplace_abn(fluid.layers.conv2d(image, 4, 3), act="elu").shape
        (-1, 4, 6, 6)
    """
    if act not in (None, "identity", "leaky_relu", "elu"):
        raise Violated("inplace_abn: act must be None, 'identity', 'leaky_relu' or 'elu', got %r" % (act,))
    if bias_attr is False:
        raise Violated("inplace_abn: bias_attr must not be False")
    helper = LayerHelper("inplace_abn", param_attr=param_attr, bias_attr=bias_attr, name=name)
    inputs = _channel_inputs(helper, input, data_layout, (moving_mean_name, moving_variance_name),
                             do_model_average_for_mean_and_var)
    attrs = {"epsilon": epsilon, "is_test": is_test, "data_layout": data_layout, "use_mkldnn": False,
             "fuse_with_relu": False, "use_global_stats": use_global_stats, "activation": act or "",
             "alpha": act_alpha}
    saved = _temporaries(helper, inputs["Scale"].dtype, 2)
    _append_norm(helper, inputs, input, saved, attrs, momentum)
    return input


def _scale_and_bias(helper, inputs, shape, dtype, scale=True, bias=True):
    """Adds the parameters Scale and Bias to ``inputs``."""
    if scale:
        inputs["Scale"] = helper.create_parameter(attr=helper.param_attr, shape=shape, dtype=dtype,
                                                  default_initializer=Constant(1.0))
    if bias:
        inputs["Bias"] = helper.create_parameter(attr=helper.bias_attr, shape=shape, dtype=dtype, is_bias=True)


def layer_norm(input: Variable, scale: bool = True, shift: bool = True, begin_norm_axis: int = 1,
               epsilon: float = 1e-05, param_attr: Attr = None, bias_attr: Attr = None, act: str | None = None,
               name: str | None = None) -> Variable:
    """out = scale * (x - mean) / sqrt(variance + epsilon) + shift, with the statistics of each sample over its
    features.

    Ba, Kiros and Hinton, Layer normalization, arXiv:1607.06450.

    Args:
        input (Variable): [...], float32 or float64.
        scale (bool): multiplies each feature by a parameter with the initial value 1. Default True.
        shift (bool): adds to each feature a parameter with the initial value 0. Default True.
        begin_norm_axis (int): first axis of the features. Default 1.
        epsilon (float): number that is added to the variance. Default 1e-5.
        param_attr (ParamAttr, optional): attributes of the scale, [product of the features' extents].
        bias_attr (ParamAttr, optional): attributes of the shift, which has the same shape as the scale.
        act (str, optional): activation applied to the result.
        name (str, optional): prefix of the generated names.

    Returns:
        Variable: shape and dtype of ``input``.

    Raises:
        TypeError: ``input`` is not a Variable of a float dtype.
        AssertionError: an attribute is False although its parameter is enabled.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.layer_norm(fluid.data("x", [None, 6, 16], "float32"), begin_norm_axis=2).shape
        (-1, 6, 16)
    """
    check.operand(input, "input", "layer_norm")
    helper = LayerHelper("layer_norm", param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    features = 1
    for extent in input.shape[begin_norm_axis:]:
        features *= extent
    inputs = {"X": input}
    if scale:
        if param_attr is False:
            raise Violated("layer_norm: param_attr must not be False when scale is True")
        inputs["Scale"] = helper.create_parameter(attr=helper.param_attr, shape=[features], dtype=input.dtype,
                                                  default_initializer=Constant(1.0))
    if shift:
        if bias_attr is False:
            raise Violated("layer_norm: bias_attr must not be False when shift is True")
        inputs["Bias"] = helper.create_parameter(attr=helper.bias_attr, shape=[features], dtype=input.dtype,
                                                 is_bias=True)
    mean, variance = _temporaries(helper, input.dtype, 2)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type="layer_norm", inputs=inputs, outputs={"Y": out, "Mean": mean, "Variance": variance},
                     attrs={"epsilon": epsilon, "begin_norm_axis": begin_norm_axis})
    return helper.append_activation(out)


def group_norm(input: Variable, groups: int, epsilon: float = 1e-05, param_attr: Attr = None, bias_attr: Attr = None,
               act: str | None = None, data_layout: str = "NCHW", name: str | None = None) -> Variable:
    """Normalizes each sample over groups of channels.

    Wu and He, Group normalization, ECCV 2018.

    Args:
        input (Variable): [N, C, ...], or [N, ..., C] with "NHWC"; float32 or float64.
        groups (int): number of groups, a divisor of C.
        epsilon (float): number that is added to the variance. Default 1e-5.
        param_attr (ParamAttr|bool, optional): attributes of a scale, [C]. None or False means no scale.
        bias_attr (ParamAttr|bool, optional): attributes of a bias, [C]. None or False means no bias.
        act (str, optional): activation applied to the result.
        data_layout (str): "NCHW" or "NHWC". Default "NCHW".
        name (str, optional): prefix of the generated names.

    Returns:
        Variable: shape and dtype of ``input``.

    Raises:
        ValueError: ``data_layout`` is unknown.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.group_norm(fluid.data("x", [None, 6, 8, 8], "float32"), groups=3).shape
        (-1, 6, 8, 8)
    """
    check.operand(input, "input", "group_norm")
    check.one_of(data_layout, "data_layout", "group_norm", ("NCHW", "NHWC"))
    helper = LayerHelper("group_norm", param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    inputs = {"X": input}
    _scale_and_bias(helper, inputs, [input.shape[1 if data_layout == "NCHW" else -1]], input.dtype, bool(param_attr),
                    bool(bias_attr))
    mean, variance = (helper.create_variable(dtype=input.dtype, stop_gradient=True) for _ in range(2))
    out = helper.create_variable(dtype=input.dtype)
    helper.append_op(type="group_norm", inputs=inputs, outputs={"Y": out, "Mean": mean, "Variance": variance},
                     attrs={"epsilon": epsilon, "groups": groups, "data_layout": data_layout})
    return helper.append_activation(out)


def instance_norm(input: Variable, epsilon: float = 1e-05, param_attr: Attr = None, bias_attr: Attr = None,
                  name: str | None = None) -> Variable:
    """Normalizes each channel of each sample.

    Ulyanov, Vedaldi and Lempitsky, Instance normalization, arXiv:1607.08022.

    Args:
        input (Variable): [N, C, ...], 2 to 5 axes, float32 or float64.
        epsilon (float): number that is added to the variance. Default 1e-5.
        param_attr (ParamAttr, optional): attributes of the scale, [C]. Its initial value is 1.
        bias_attr (ParamAttr, optional): attributes of the bias, [C]. Its initial value is 0.
        name (str, optional): prefix of the generated names.

    Returns:
        Variable: shape and dtype of ``input``.

    Raises:
        AssertionError: an attribute is False.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.instance_norm(fluid.data("x", [None, 3, 8, 8], "float32")).shape
        (-1, 3, 8, 8)
    """
    check.operand(input, "input", "instance_norm")
    if param_attr is False or bias_attr is False:
        raise Violated("instance_norm: param_attr and bias_attr must not be False")
    helper = LayerHelper("instance_norm", param_attr=param_attr, bias_attr=bias_attr, name=name)
    inputs = {"X": input}
    _scale_and_bias(helper, inputs, [input.shape[1]], input.dtype)
    saved_mean, saved_variance = _temporaries(helper, input.dtype, 2)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type="instance_norm", inputs=inputs, attrs={"epsilon": epsilon},
                     outputs={"Y": out, "SavedMean": saved_mean, "SavedVariance": saved_variance})
    return out


def lrn(input: Variable, n: int = 5, k: float = 1.0, alpha: float = 0.0001, beta: float = 0.75, name: str | None = None,
        data_format: str = "NCHW") -> Variable:
    """out = x / (k + alpha * sum of x * x over n adjacent channels) ** beta.

    Krizhevsky, Sutskever and Hinton, ImageNet classification with deep convolutional neural networks, NIPS 2012.

    Args:
        input (Variable): [N, C, H, W] or [N, H, W, C], float32.
        n (int): number of channels in the sum. Default 5.
        k (float): the constant k. Default 1.
        alpha (float): factor of the sum. Default 1e-4.
        beta (float): exponent. Default 0.75.
        name (str, optional): prefix of the generated names.
        data_format (str): "NCHW" or "NHWC". Default "NCHW".

    Returns:
        Variable: shape and dtype of ``input``.

    Raises:
        ValueError: ``input`` does not have four axes, or ``data_format`` is unknown.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.lrn(fluid.data("x", [None, 6, 8, 8], "float32")).shape
        (-1, 6, 8, 8)
    """
    check.variable(input, "input", "lrn", ("float32",))
    if len(input.shape) != 4:
        raise InvalidValue("lrn: input must have four axes, got shape %s" % (tuple(input.shape),))
    check.one_of(data_format, "data_format", "lrn", ("NCHW", "NHWC"))
    helper = LayerHelper("lrn", name=name)
    middle = helper.create_variable_for_type_inference(input.dtype, stop_gradient=True)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type="lrn", inputs={"X": input}, outputs={"Out": out, "MidOut": middle},
                     attrs={"n": n, "k": k, "alpha": alpha, "beta": beta, "data_format": data_format})
    return out


def affine_channel(x: Variable, scale: Variable | None = None, bias: Variable | None = None, data_layout: str = "NCHW",
                   name: str | None = None, act: str | None = None) -> Variable:
    """out = scale[c] * x + bias[c] for the elements of each channel c.

    Args:
        x (Variable): [N, C, ...], or [N, ..., C] with ``data_layout`` "NHWC"; float32 or float64.
        scale (Variable, optional): [C], the factor of each channel.
        bias (Variable, optional): [C], the offset of each channel.
        data_layout (str): "NCHW" or "NHWC". Default "NCHW".
        name (str, optional): prefix of the generated names.
        act (str, optional): activation applied to the result.

    Returns:
        Variable: shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` has an unsupported dtype, or another argument is not a Variable.
        EnforceNotMet: shapes do not match.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, scale, bias = fluid.data("x", [None, 3, 8, 8]), fluid.data("s", [3]), fluid.data("b", [3])
        >>> fluid.layers.affine_channel(x, scale, bias).shape
        (-1, 3, 8, 8)
    """
    check.operand(x, "x", "affine_channel")
    for argument, value in (("scale", scale), ("bias", bias)):
        check.of_type(value, argument, "affine_channel", (Variable, type(None)))
    inputs = {slot: value for slot, value in (("X", x), ("Scale", scale), ("Bias", bias)) if value is not None}
    return one_op("affine_channel", inputs, {"data_layout": data_layout}, name=name, act=act)


explain(globals())
