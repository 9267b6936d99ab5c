"""Another value of an attribute: one of those that the checks of the schema name, or a neighbour."""

import re

from anabranch import _core

#: Values of texts, by what the name of the attribute ends with.
TEXTS = {
    "layout": ("NCHW", "NHWC", "AnyLayout", "NCDHW", "NDHWC"),
    "data_format": ("NCHW", "NHWC", "AnyLayout", "NCDHW", "NDHWC"),
    "padding_algorithm": ("EXPLICIT", "SAME", "VALID"),
    "pooling_type": ("max", "avg"),
    "pooltype": ("AVERAGE", "SUM", "SQRT", "LAST", "FIRST", "MAX"),
    "reduction": ("none", "sum", "mean", "batchmean"),
    "activation": ("relu", "sigmoid", "tanh", "identity"),
    "mode": ("constant", "reflect", "edge", "all", "channel", "element"),
    "interp_method": ("bilinear", "nearest", "trilinear", "bicubic"),
    "implementation": ("downgrade_in_infer", "upscale_in_train"),
    "code_type": ("encode_center_size", "decode_center_size"),
    "match_type": ("bipartite", "per_prediction"),
    "mining_type": ("max_negative", "hard_example"),
    "ap_type": ("integral", "11point"),
    "chunk_scheme": ("IOB", "IOE", "IOBES", "plain"),
}
#: Of types in the numbering of framework.proto.
DTYPES = (0, 2, 3, 5, 6, 20, 21)
BIG = 64
#: Attributes that choose kernels: not part of an operator's definition.
OF_KERNELS = ("use_mkldnn", "use_cudnn", "use_quantizer", "mkldnn_data_type", "workspace_size_MB", "exhaustive_search")

#: Attributes whose values all show one and the same difference of docs/differences.md, by operator, "": of all.
TELLING = {
    "": (
        "fuse_activation",
        "fuse_brelu",
        "fuse_relu",
        "fuse_relu_before_depthwise_conv",
        "fuse_residual_connection",
        "fuse_with_relu",
        "in_dtype",
        "out_dtype",
        "head_number",
        "origin_mode",
        "im2col_step",
        "save_as_fp16",
        "load_as_fp16",
        "is_cascade_rcnn",
    ),
    "center_loss": ("cluster_num",),
    "coalesce_tensor": ("check_name",),
    "detection_map": ("background_label", "class_num"),
    "distribute_fpn_proposals": ("refer_scale",),
    "lod_reset": ("append",),
    "merge_lod_tensor": ("level",),
    "merge_lod_tensor_infer": ("level",),
    "split_lod_tensor": ("level",),
    "unique": ("dtype",),
}


def attribute(r, case):
    return _attribute(r, case, ())


def quiet_attribute(r, case):
    """One whose value alone does not make a difference that is listed."""
    return _attribute(r, case, TELLING[""] + TELLING.get(case["op"], ()))


def _attribute(r, case, without):
    known = {a["name"]: a for a in _core.op_info(case["op"])["attrs"]}
    without += OF_KERNELS
    names = sorted(n for n in known if n not in without and (n in case["attrs"] or known[n]["default"] is not None))
    if not names:
        return None
    name = r.choice(names)
    value = case["attrs"].get(name, known[name]["default"])
    new = _other(r, known[name], value)
    if new is None:
        return None
    case["attrs"][name] = new
    return "attribute %s = %.60r" % (name, new)


def _other(r, known, value):
    kind, name = known["type"], known["name"]
    if kind == "BOOLEAN" and isinstance(value, bool):
        return not value
    if kind in ("INT", "LONG") and isinstance(value, int):
        if "dtype" in name:
            return r.choice(DTYPES)
        near = [0, 1, -1, 2, 3, value + 1, value - 1, -value, value + 2]
        return r.choice([n for n in near if abs(n) < max(BIG, abs(value) + 3)])
    if kind == "FLOAT" and isinstance(value, (int, float)):
        return r.choice([0.0, 1.0, -1.0, 0.5, 2.0, value * 2, value / 2, -value, value + 0.25])
    if kind in ("INTS", "LONGS", "FLOATS") and isinstance(value, list):
        return _list(r, value, 1 if kind != "FLOATS" else 0.5)
    if kind == "STRING":
        return _text(r, known, value)
    return None


def _list(r, value, step):
    base = list(value)
    how = r.choice(["one", "one", "one", "shuffled", "shorter", "longer", "equal"])
    if not base:
        return [type(step)(r.choice([0, 1, -1, 2]))]
    at = r.randrange(len(base))
    if how == "one":
        base[at] = type(step)(r.choice([base[at] + step, base[at] - step, 0, 1, -1, 2, 3, base[at] * 2]))
    elif how == "shuffled":
        r.shuffle(base)
    elif how == "equal":
        base = [base[at]] * len(base)
    else:
        base = base[:-1] if how == "shorter" else base + [base[-1]]
    return base


def _text(r, known, value):
    said = re.findall(r"[A-Za-z_][A-Za-z_0-9]+", known["doc"])
    table = next((v for end, v in TEXTS.items() if known["name"].endswith(end)), ())
    found = list(table) * 3 + [w for w in said if w.isupper()]
    return r.choice(found) if found else None
