"""Translations of convolutions, pooling, norms and softmax."""
from __future__ import annotations

import numpy as np

from .elementwise import Translation
from .graph import Graph, Op


def _borders(op: Op, kernel: list[int]) -> dict[str, object]:
    """pads, or auto_pad, of ONNX."""
    algorithm, given = op.attr("padding_algorithm", "EXPLICIT"), list(op.attr("paddings"))
    if op.attr("data_format", "NCHW") not in ("NCHW", "AnyLayout", ""):
        op.refuse("data_format %s has no translation" % op.attr("data_format"))
    if algorithm == "VALID":
        return {"pads": [0] * (2 * len(kernel))}
    if algorithm == "SAME":
        return {"auto_pad": "SAME_UPPER"}
    if len(given) == len(kernel):
        return {"pads": given + given}
    return {"pads": given[0::2] + given[1::2]}


def _conv(g: Graph, op: Op) -> None:
    op.only("Input", "Filter", "Bias")
    kernel = op.shape(op.x("Filter"))[2:]
    more = {"strides": list(op.attr("strides")), "dilations": list(op.attr("dilations")), "group": op.attr("groups", 1)}
    inputs = [op.x("Input"), op.x("Filter")] + op.names("Bias")
    if op.type.endswith("transpose"):
        if op.attr("output_size"):
            op.refuse("output_size has no translation")
        g.emit("ConvTranspose", inputs, op.out("Output"), **more, **_borders(op, kernel))
    else:
        g.emit("Conv", inputs, op.out("Output"), kernel_shape=kernel, **more, **_borders(op, kernel))


def _pool(g: Graph, op: Op) -> None:
    kind, size = op.attr("pooling_type"), list(op.attr("ksize"))
    if op.attr("global_pooling", False) or (op.attr("adaptive", False) and size == [1, 1]):
        g.emit("GlobalMaxPool" if kind == "max" else "GlobalAveragePool", [op.x()], op.out())
        return
    if op.attr("adaptive", False):
        op.refuse("adaptive pooling to %s has no translation" % size)
    borders = _borders(op, size)
    more = {"strides": list(op.attr("strides")), "ceil_mode": int(op.attr("ceil_mode", False)), "kernel_shape": size}
    if kind == "max":
        g.emit("MaxPool", [op.x()], op.out(), **more, **borders)
        return
    inside = not op.attr("exclusive", True)
    if inside and more["ceil_mode"] and any(borders.get("pads", [1])):  # type: ignore[arg-type]
        op.refuse("an average that counts borders, with ceil_mode, has no translation")
    g.emit("AveragePool", [op.x()], op.out(), count_include_pad=int(inside), **more, **borders)


def _batch_norm(g: Graph, op: Op) -> None:
    if not (op.attr("is_test", False) or op.attr("use_global_stats", False)):
        op.refuse("batch_norm must be in test mode")
    if op.attr("data_layout", "NCHW") != "NCHW" and len(op.shape(op.x())) > 2:
        op.refuse("data_layout %s has no translation" % op.attr("data_layout"))
    g.emit("BatchNormalization", [op.x(), op.x("Scale"), op.x("Bias"), op.x("Mean"), op.x("Variance")], op.out("Y"),
           epsilon=op.attr("epsilon"))


def _layer_norm(g: Graph, op: Op) -> None:
    axis, shape = op.attr("begin_norm_axis", 1), op.shape(op.x())
    tail = shape[axis:]
    if -1 in tail:
        op.refuse("a normalized axis of unknown length has no translation")
    dtype = op.dtype(op.x())
    given = []
    for slot, value in (("Scale", 1), ("Bias", 0)):
        if op.has(slot):
            given.append(g.emit("Reshape", [op.x(slot), g.const(tail)]))
        else:
            given.append(g.const(np.full(tail, value), dtype))
    g.emit("LayerNormalization", [op.x(), *given], op.out("Y"), axis=axis, epsilon=op.attr("epsilon"))


def _softmax(g: Graph, op: Op) -> None:
    g.emit("Softmax", [op.x()], op.out(), axis=op.attr("axis", -1))


def _dropout(g: Graph, op: Op) -> None:
    if not op.attr("is_test", False):
        op.refuse("dropout must be in test mode")
    if op.attr("dropout_implementation", "downgrade_in_infer") == "upscale_in_train":
        g.emit("Identity", [op.x()], op.out())
    else:
        kept = g.const(1 - op.attr("dropout_prob"), op.dtype(op.x()))
        g.emit("Mul", [op.x(), kept], op.out())


def _prelu(g: Graph, op: Op) -> None:
    slope, rank = op.x("Alpha"), len(op.shape(op.x()))
    if op.attr("mode") == "channel":
        slope = g.emit("Reshape", [slope, g.const([-1] + [1] * (rank - 2))])
    elif op.attr("mode") != "all":
        op.refuse("mode %s has no translation" % op.attr("mode"))
    g.emit("PRelu", [op.x(), slope], op.out())


TABLE: dict[str, Translation] = {
    "conv2d": _conv, "depthwise_conv2d": _conv, "conv2d_transpose": _conv, "pool2d": _pool, "batch_norm": _batch_norm,
    "layer_norm": _layer_norm, "softmax": _softmax,
    "dropout": _dropout, "prelu": _prelu}
