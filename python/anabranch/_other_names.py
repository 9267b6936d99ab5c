"""Names of other frameworks for what Fluid calls otherwise, and suggestions from them.

Newcomers from PyTorch, Keras or TensorFlow type the names that they know, which are not similar to Fluid's.
"""
from __future__ import annotations

from collections.abc import Iterable

from ._near import near

#: Functions and classes: name elsewhere, in lower case and without underscores -> names of Fluid.
CALLABLES = {
    "dense": "fc", "linear": "fc", "fullyconnected": "fc", "fullconnected": "fc", "fulllyconnected": "fc",
    "innerproduct": "fc", "mlp": "fc", "conv": "conv2d", "convolution": "conv2d", "convolution2d": "conv2d",
    "convtranspose2d": "conv2d_transpose", "deconv2d": "conv2d_transpose", "deconv": "conv2d_transpose",
    "maxpool": "pool2d", "maxpool2d": "pool2d", "avgpool": "pool2d", "avgpool2d": "pool2d",
    "averagepooling2d": "pool2d", "maxpooling2d": "pool2d", "bn": "batch_norm", "batchnorm2d": "batch_norm",
    "batchnormalization": "batch_norm", "layernormalization": "layer_norm", "input": "data", "placeholder": "data",
    "add": "elementwise_add", "subtract": "elementwise_sub", "sub": "elementwise_sub", "divide": "elementwise_div",
    "div": "elementwise_div", "multiply": "elementwise_mul", "maximum": "elementwise_max",
    "minimum": "elementwise_min", "mm": "matmul", "cat": "concat", "concatenate": "concat", "view": "reshape",
    "permute": "transpose", "tile": "expand", "repeat": "expand", "amax": "reduce_max",
    "amin": "reduce_min", "prod": "reduce_prod", "any": "reduce_any", "all": "reduce_all", "reducesum": "reduce_sum",
    "lookuptable": "embedding", "embeddinglookup": "embedding", "embeddingbag": "embedding",
    "crossentropyloss": "cross_entropy", "softmaxcrossentropy": "softmax_with_cross_entropy",
    "bceloss": "log_loss", "binarycrossentropy": "log_loss",
    "bcewithlogitsloss": "sigmoid_cross_entropy_with_logits",
    "binarycrossentropywithlogits": "sigmoid_cross_entropy_with_logits", "mse": "mse_loss",
    "meansquarederror": "mse_loss", "smoothl1loss": "smooth_l1", "gru": "dynamic_gru", "simplernn": "rnn",
    "sgdoptimizer": "SGD", "gradientdescent": "SGD", "gradientdescentoptimizer": "SGD", "adamw": "Adam",
    "nadam": "Adam", "glorot": "Xavier", "glorotuniform": "Xavier", "xavieruniform": "Xavier",
    "xaviernormal": "Xavier", "kaiming": "MSRA", "kaimingnormal": "MSRA", "kaiminguniform": "MSRA", "he": "MSRA",
    "henormal": "MSRA", "zeros": "Constant", "ones": "Constant", "l2": "L2Decay", "l1": "L1Decay",
    "weightdecay": "L2Decay", "leakyrelu": "leaky_relu", "logsoftmax": "log_softmax",
    "session": "Executor", "tensorboardlogger": "TensorBoard", "clipgradnorm": "GradientClipByGlobalNorm",
}

#: Arguments: name in other frameworks -> names in Fluid. A function has at most one of them.
ARGUMENTS = {
    "lr": ("learning_rate",), "rate": ("learning_rate",), "eta": ("learning_rate",),
    "activation": ("act",), "nonlinearity": ("act",), "weight_decay": ("regularization", "regularizer"),
    "l2": ("regularization", "regularizer"), "reg": ("regularization", "regularizer"),
    "params": ("parameter_list",), "parameters": ("parameter_list",), "clip": ("grad_clip",),
    "clipnorm": ("grad_clip",), "eps": ("epsilon",), "betas": ("beta1",), "nesterov": ("use_nesterov",),
    "units": ("size", "num_filters"), "out_features": ("size",), "num_units": ("size",), "hidden_size": ("size",),
    "out_channels": ("num_filters",), "filters": ("num_filters",), "kernel_size": ("filter_size", "pool_size"),
    "strides": ("stride", "pool_stride"), "stride": ("pool_stride",), "pad": ("padding", "paddings"),
    "axis": ("dim",), "dim": ("axis",), "keepdim": ("keep_dim",), "keepdims": ("keep_dim",),
    "x": ("input",), "input": ("x",), "inputs": ("input", "x", "feed"), "input_tensor": ("input", "x"),
    "target": ("label",), "labels": ("label",), "targets": ("label", "target_vars"), "y": ("label",),
    "p": ("dropout_prob",), "prob": ("dropout_prob",),
    "bias": ("bias_attr",), "use_bias": ("bias_attr",), "weight": ("param_attr",), "weight_attr": ("param_attr",),
    "kernel_initializer": ("param_attr",), "init": ("initializer",), "feeds": ("feed",), "feed_dict": ("feed",),
    "fetches": ("fetch_list",), "fetch": ("fetch_list",), "outputs": ("fetch_list",), "model": ("program",),
    "device": ("place",), "threads": ("thread", "num_threads"), "mean": ("loc",), "std": ("scale",),
    "stddev": ("scale",), "folder": ("dirname",), "path": ("dirname",), "epochs": ("passes",),
    "val": ("value",), "frozen": ("trainable",), "requires_grad": ("trainable", "stop_gradient"),
}


def _plain(name: str) -> str:
    return name.lower().replace("_", "")


def near_name(name: str, names: Iterable[str]) -> str:
    """str: "; did you mean fc?" for a name of another framework, or one with a typo, else "".

    >>> near_name("full_connected", ["fc", "relu"]), near_name("rleu", ["fc", "relu"])
    ('; did you mean fc?', '; did you mean relu?')
    """
    names = list(names)
    known = CALLABLES.get(_plain(name), "")
    return "; did you mean %s?" % known if known in names and known != name else near(name, names)


def near_argument(name: str, names: Iterable[str]) -> str:
    """str: "; did you mean act?" for an argument of another framework, or one with a typo, else "".

    >>> near_argument("lr", ["learning_rate", "name"]), near_argument("namee", ["learning_rate", "name"])
    ('; did you mean learning_rate?', '; did you mean name?')
    """
    names = list(names)
    known = next((one for one in ARGUMENTS.get(name, ()) if one in names), None)
    return "; did you mean %s?" % known if known else near(name, names)
