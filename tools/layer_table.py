"""The layers that are one operator: their signatures, and facts that the schema of the operator does not hold.

generate_layers.py generates functions from these rows. Texts, dtypes and attribute types come from the schema.
"""
from __future__ import annotations

import dataclasses


@dataclasses.dataclass
class Layer:
    """One layer.

    Attributes:
        signature: name and arguments with their defaults, as Fluid has them.
        op: type of the operator. Default: the layer's name.
        slots: argument -> slot or attribute, where the names differ by more than their case. ``input`` stands for the
            first slot.
        dtype: of the result; of the first input by default.
        attrs: attributes that no argument gives.
        stop_gradient: the result has no gradient.
        body: a call that replaces checks and operator.
        data: shapes of the Variables in the example, each "[extents] dtype".
        call: further arguments in the example.
        types: argument -> its type, where it takes more than the attribute holds.
        defaults: argument -> the text of its default, where neither the signature nor the schema shows it.
    """

    signature: str
    op: str = ""
    slots: dict[str, str] = dataclasses.field(default_factory=dict)
    dtype: str = ""
    attrs: dict[str, object] = dataclasses.field(default_factory=dict)
    stop_gradient: bool = False
    body: str = ""
    data: dict[str, str] = dataclasses.field(default_factory=dict)
    call: str = ""
    types: dict[str, str] = dataclasses.field(default_factory=dict)
    defaults: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.signature.partition("(")[0]


def _each(names: str, signature: str, **more) -> list[Layer]:
    return [Layer(name + signature, **more) for name in names.split()]


_ROWS = {"x": "[None, 1] float32 1", "y": "[None, 1] float32 1"}
_REDUCE = "return check.reduced({op!r}, input, dim, keep_dim, name)"

#: File -> (what is in it, its layers).
FAMILIES: dict[str, tuple[str, list[Layer]]] = {
    "functions": ("Elementwise mathematical functions of one tensor.", _each(
        "exp log sqrt rsqrt abs ceil floor round cos sin acos asin atan reciprocal square", "(x, name=None)") + [
        Layer("erf(x)"),
        Layer("log1p(x, out=None, name=None)"),
    ]),
    "activations": ("Activations without trainable parameters.", _each(
        "sigmoid logsigmoid tanh tanh_shrink softplus softsign relu", "(x, name=None)") + [
        Layer("gelu(x, approximate=False)"),
        Layer("relu6(x, threshold=6.0, name=None)"),
        Layer("leaky_relu(x, alpha=0.02, name=None)"),
        Layer("elu(x, alpha=1.0, name=None)"),
        Layer("selu(x, scale=None, alpha=None, name=None)"),
        Layer("hard_sigmoid(x, slope=0.2, offset=0.5, name=None)"),
        Layer("hard_swish(x, threshold=6.0, scale=6.0, offset=3.0, name=None)"),
        Layer("stanh(x, scale_a=0.67, scale_b=1.7159, name=None)"),
        Layer("brelu(x, t_min=0.0, t_max=24.0, name=None)"),
        Layer("soft_relu(x, threshold=40.0, name=None)"),
        Layer("softshrink(x, alpha=None)", slots={"alpha": "lambda"}),
        Layer("hard_shrink(x, threshold=None)"),
        Layer("thresholded_relu(x, threshold=None)"),
    ]),
    "elementwise": ("Elementwise functions of two tensors with broadcasting; comparisons and logic.", _each(
        "elementwise_add elementwise_sub elementwise_mul elementwise_div elementwise_max elementwise_min "
        "elementwise_pow elementwise_mod elementwise_floordiv", "(x, y, axis=-1, act=None, name=None)",
        attrs={"use_mkldnn": False}, data={"x": "[None, 3, 4]", "y": "[3]"}, call="axis=1") + _each(
        "less_equal greater_than greater_equal equal not_equal", "(x, y, cond=None)", dtype="bool", stop_gradient=True,
        data={"y": "[None, 4]"}) + [
        Layer("less_than(x, y, force_cpu=None, cond=None)", dtype="bool", stop_gradient=True,
              data={"y": "[None, 4]"})] + _each(
        "logical_and logical_or logical_xor", "(x, y, out=None, name=None)", data={"y": "[None, 4]"}) + [
        Layer("logical_not(x, out=None, name=None)"),
        Layer("expand_as(x, target_tensor, name=None)", data={"x": "[1, 3]", "target_tensor": "[4, 3]"}),
    ]),
    "reductions": ("Sums, means, extremes and products over axes.", [
        Layer("mean(x, name=None)"),
        Layer("cumsum(x, axis=None, exclusive=None, reverse=None)", call="axis=0"),
        Layer("softmax(input, use_cudnn=False, name=None, axis=-1)"),
        Layer("isfinite(x)", dtype="bool"),
        Layer("has_inf(x)", op="isinf"),
        Layer("has_nan(x)", op="isnan")] + _each(
        "reduce_sum reduce_mean reduce_max reduce_min reduce_prod reduce_all reduce_any",
        "(input, dim=None, keep_dim=False, name=None)", body=_REDUCE, data={"input": "[3, 4, 5]"},
        types={"dim": "int | Sequence[int] | None"}, defaults={"dim": "all axes"},
        call="dim=[0, -1], keep_dim=True")),
    "products": ("Products of matrices and of batches of matrices.", [
        Layer("mul(x, y, x_num_col_dims=1, y_num_col_dims=1, name=None)", data={"x": "[None, 3, 4]", "y": "[12, 5]"}),
        Layer("bmm(x, y, name=None)", data={"x": "[8, 2, 3]", "y": "[8, 3, 4]"}),
        Layer("addmm(input, x, y, alpha=1.0, beta=1.0, name=None)", slots={"alpha": "Alpha", "beta": "Beta"},
              data={"input": "[2, 4]", "x": "[2, 3]", "y": "[3, 4]"}),
        Layer("kron(x, y, out=None, name=None)", data={"x": "[2, 3]", "y": "[4, 5]"}),
    ]),
    "losses": ("Losses that are a single operator.", [
        Layer("sigmoid_cross_entropy_with_logits(x, label, ignore_index=-100, name=None, normalize=False)",
              data={"label": "[None, 4] float32"}),
        Layer("log_loss(input, label, epsilon=1e-4, name=None)", slots={"label": "Labels"},
              data={"input": "[None, 1]", "label": "[None, 1]"}),
        Layer("kldiv_loss(x, target, reduction='mean', name=None)", data={"target": "[None, 4]"}),
        Layer("rank_loss(label, left, right, name=None)",
              data={"label": "[None, 1]", "left": "[None, 1]", "right": "[None, 1]"}),
        Layer("bpr_loss(input, label, name=None)", data={"input": "[None, 4]", "label": "[None, 1] int64"}),
    ]),
    "places": ("Layers that select, add or replace elements by position.", [
        Layer("index_select(input, index, dim=0)", data={"input": "[4, 7]", "index": "[2] int64"}, call="dim=1"),
        Layer("index_sample(x, index)", data={"x": "[None, 7]", "index": "[None, 2] int64"}),
        Layer("gather(input, index, overwrite=True)", data={"input": "[5, 4]", "index": "[3] int64"}),
        Layer("gather_nd(input, index, name=None)", data={"input": "[5, 4, 3]", "index": "[2, 2] int64"}),
        Layer("scatter(input, index, updates, name=None, overwrite=True)", slots={"index": "Ids"},
              data={"input": "[5, 4]", "index": "[3] int64", "updates": "[3, 4]"}),
        Layer("where(condition)", op="where_index", dtype="int64", data={"condition": "[None, 4] bool"}),
        Layer("shape(input)", dtype="int32"),
        Layer("size(input)", dtype="int64"),
        Layer("pad(x, paddings, pad_value=0.0, name=None)", data={"x": "[2, 3]"}, call="paddings=[0, 1, 1, 2]"),
        Layer("pad_constant_like(x, y, pad_value=0.0, name=None)", data={"x": "[4, 5]", "y": "[2, 3]"}),
        Layer("hash(input, hash_size, num_hash=1, name=None)", slots={"hash_size": "mod_by"}, stop_gradient=True,
              data={"input": "[None, 1] int64"}, call="hash_size=100, num_hash=4"),
    ]),
    "images": ("Layers that move elements of images between channels, pixels and frames, or sample images.", [
        Layer("grid_sampler(x, grid, name=None)", data={"x": "[None, 3, 8, 8]", "grid": "[None, 8, 8, 2]"}),
        Layer("pixel_shuffle(x, upscale_factor)", data={"x": "[None, 9, 4, 4]"}, call="upscale_factor=3"),
        Layer("space_to_depth(x, blocksize, name=None)", data={"x": "[None, 4, 6, 6]"}, call="blocksize=2"),
        Layer("shuffle_channel(x, group, name=None)", data={"x": "[None, 6, 4, 4]"}, call="group=2"),
        Layer("temporal_shift(x, seg_num, shift_ratio=0.25, name=None)", data={"x": "[None, 4, 3, 3]"},
              call="seg_num=2"),
    ]),
    "sequences": ("Layers that join, repeat, reverse or split sequences.", [
        Layer("sequence_concat(input, name=None)", data={"input": "[None, 4] float32 1"}),
        Layer("sequence_expand(x, y, ref_level=-1, name=None)", data=_ROWS),
        Layer("sequence_expand_as(x, y, name=None)", data={"x": "[None, 1] float32", "y": "[None, 1] float32 1"}),
        Layer("sequence_reverse(x, name=None)", data={"x": "[None, 4] float32 1"}),
        Layer("sequence_reshape(input, new_dim)", data={"input": "[None, 4] float32 1"}, call="new_dim=2"),
        Layer("sequence_enumerate(input, win_size, pad_value=0, name=None)", stop_gradient=True,
              data={"input": "[None, 1] int64 1"}, call="win_size=3"),
        Layer("sequence_scatter(input, index, updates, name=None)", slots={"index": "Ids"},
              data={"input": "[None, 6]", "index": "[None, 1] int64 1", "updates": "[None, 1] float32 1"}),
        Layer("sequence_softmax(input, use_cudnn=False, name=None)", data={"input": "[None, 1] float32 1"}),
        Layer("gather_tree(ids, parents)", data={"ids": "[5, None, 3] int64", "parents": "[5, None, 3] int64"}),
        Layer("add_position_encoding(input, alpha, beta, name=None)", data={"input": "[None, 7, 4]"},
              call="alpha=1.0, beta=0.5"),
    ]),
}
