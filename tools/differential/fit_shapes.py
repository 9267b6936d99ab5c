"""Shapes and sequences that fit the other inputs of an operator: each function changes a case, see partners.py."""

import numpy as np
from fit import at_least_of, one, resize, those
from fit_numbers import below
from neighbours import filled


def no_empty_sequences(case):
    for v in case["vars"].values():
        if v.get("lod"):
            filled(v["lod"][-1])


def one_output_a_slice(case):
    """An output of `unbind` for each slice of X, and an axis for each output."""
    x, axis = one(case, "X"), case["attrs"]["axis"]
    x["value"] = x = x["value"].reshape(x["value"].shape + (1,) * (2 - x["value"].ndim))
    case["attrs"]["axis"] = axis = axis if -x.ndim <= axis < x.ndim else axis % x.ndim
    first = case["outs"]["Out"][0]
    case["outs"]["Out"] = [first] + ["%s.%d" % (first, k) for k in range(1, x.shape[axis])]
    for name in case["outs"]["Out"]:
        case["vars"].setdefault(name, dict(case["vars"][first]))


def counts_of_auc(case):
    """The counts have a bin for each threshold, and for each batch of a window."""
    bins, steps = at_least_of(case, "num_thresholds") + 1, at_least_of(case, "slide_steps", 0)
    for v in those(case, "StatPos", "StatNeg"):
        resize(v, max(steps, 1), bins)
        v["value"] = np.abs(v["value"])
        if steps:  # batches, their sum, and how many batches there were
            total = v["value"].sum(0, keepdims=True)
            v["value"] = np.append(np.concatenate([v["value"], total]), total[0, :1] * 0)


def counts_of_classes(case):
    for v in those(case, "InWrongs", "InCorrects"):
        resize(v, case["attrs"]["num_classes"])


def tree_of_classes(case):
    """The default tree of `hierarchical_sigmoid` has a row of parameters for each class but one."""
    if case["ins"].get("PathTable"):
        return
    count = at_least_of(case, "num_classes", 2)
    below("num_classes", "Label")(case)
    for v in those(case, "W", "Bias"):
        if v["value"].ndim:
            resize(v, count - 1, *v["value"].shape[1:])


def pairs_of_positions(case):
    """X of `var_conv_2d` has a channel of ROW x COLUMN numbers for each pair of sequences."""
    row, column, x = (one(case, slot) for slot in ("ROW", "COLUMN", "X"))
    if not (row and column and x and row.get("lod") and column.get("lod")):
        return
    rows, columns = row["lod"][-1], column["lod"][-1]
    count = min(len(rows), len(columns))
    row["lod"], column["lod"] = [rows[: count - 1] + [sum(rows[count - 1 :])]], [columns[: count - 1]]
    column["lod"][0].append(sum(columns[count - 1 :]))
    channels = at_least_of(case, "InputChannel" if "InputChannel" in case["attrs"] else "channel_num")
    x["lod"] = [[channels * a * b for a, b in zip(row["lod"][0], column["lod"][0])]]
    resize(x, sum(x["lod"][0]), 1)
    if case["op"] == "var_conv_2d" and one(case, "W"):
        size = channels * at_least_of(case, "KernelH") * at_least_of(case, "KernelW")
        resize(one(case, "W"), at_least_of(case, "OutputChannel"), size)


def whole_blocks(case):
    """Extents that are multiples of `blocksize`, and channels of its square."""
    size, x = at_least_of(case, "blocksize", 2), one(case, "X")
    if x["value"].ndim == 4:
        n, c, h, w = x["value"].shape
        resize(x, n, max(1, c // size**2) * size**2, max(1, h // size) * size, max(1, w // size) * size)


def channels_of_places(case):
    """A channel of X for each output channel and place of `psroi_pool`."""
    x = one(case, "X")
    places = at_least_of(case, "pooled_height") * at_least_of(case, "pooled_width")
    if x["value"].ndim == 4:
        resize(x, x["value"].shape[0], places * at_least_of(case, "output_channels", 2), *x["value"].shape[2:])


def part_of_each_sequence(case):
    """Offset and Length lie in their sequences, and have one number for each."""
    x, offset, length = (one(case, slot) for slot in ("X", "Offset", "Length"))
    if not (x.get("lod") and offset and length):
        return
    lengths = np.array(x["lod"][-1]).reshape(-1, 1)
    for v in (offset, length):
        resize(v, *lengths.shape)
    starts = offset["value"].astype("int64") % np.maximum(lengths, 1)
    counts = length["value"].astype("int64") % (lengths + 1 - starts)
    offset["value"], length["value"] = starts.astype(offset["value"].dtype), counts.astype(length["value"].dtype)


def edges_of_a_tree(case):
    """A tree over all nodes of each sample of `tree_conv`: a node's parent has a smaller number."""
    edges, nodes = one(case, "EdgeSet"), one(case, "NodesVector")["value"]
    if nodes.ndim != 3 or edges["value"].ndim != 3:
        return
    numbers = np.resize(edges["value"].astype("int64").ravel(), nodes.shape[:1] + (max(nodes.shape[1] - 1, 0),))
    made = [[[1 + abs(int(n)) % (k + 1), k + 2] for k, n in enumerate(sample)] for sample in numbers]
    edges["value"] = np.array(made, edges["value"].dtype).reshape(numbers.shape + (2,))


def rows_of_sequences(*slots):
    """A row of a state for each sequence."""

    def fit(case):
        lods = [v["lod"][-1] for v in case["vars"].values() if v.get("lod")]
        for v in those(case, *slots) if lods else ():
            if v["value"].ndim == 2:
                resize(v, len(lods[0]), v["value"].shape[1])

    return fit


def numbers_of_sides(case):
    """Two or four numbers, and a real size for each image."""
    for name, count in (("kernels", 2), ("strides", 2), ("paddings", 4), ("out_stride", 2)):
        numbers = case["attrs"].get(name) or [1]
        case["attrs"][name] = [numbers[k % len(numbers)] for k in range(count)]
    for v in those(case, "Y"):
        resize(v, one(case, "X")["value"].shape[0], 2)


def table_of(slot, count):
    def fit(case):
        for v in those(case, slot):
            resize(v, count)

    return fit


def sequences_of(slot, *others):
    """Other inputs have the sequences and rows of one."""

    def fit(case):
        v = one(case, slot)
        for w in those(case, *others) if v and v.get("lod") else ():
            if w.get("lod") and w["value"].ndim:
                w["lod"] = [list(level) for level in v["lod"]]
                resize(w, len(v["value"]), *w["value"].shape[1:])

    return fit


def boxes_of_places(case):
    """Scores [N, A, H, W] of `generate_proposals` say how many deltas, anchors and variances there are."""
    scores, images = one(case, "Scores"), one(case, "ImInfo")
    if scores["value"].ndim != 4:
        return
    n, a, h, w = scores["value"].shape
    resize(images, n, 3)
    for v in those(case, "BboxDeltas"):
        resize(v, n, 4 * a, h, w)
    for v in those(case, "Anchors", "Variances"):
        resize(v, h, w, a, 4)


def one_width(case):
    """X, Y and both sides of W of `match_matrix_tensor` have the width of X."""
    x, y, w = (one(case, slot)["value"] for slot in ("X", "Y", "W"))
    if x.ndim == y.ndim == 2 and w.ndim == 3:
        resize(one(case, "Y"), len(y), x.shape[1])
        resize(one(case, "W"), x.shape[1], at_least_of(case, "dim_t"), x.shape[1])


def images_of_sequences(slot):
    """ImInfo has an image for each sequence of another input."""

    def fit(case):
        v, images = one(case, slot), one(case, "ImInfo")
        if v and v.get("lod") and images:
            resize(images, len(v["lod"][0]), 3)

    return fit


def channels_of_bins(case):
    """Channels of Input for each output channel and group of `deformable_psroi_pooling`."""
    x, groups = one(case, "Input"), case["attrs"].get("group_size", [1])
    if x["value"].ndim == 4 and min(groups, default=0) > 0:
        channels = at_least_of(case, "output_dim") * int(np.prod(groups))
        resize(x, x["value"].shape[0], channels, *x["value"].shape[2:])


def equally_long(first, second):
    """Two lists with the same number of tensors."""

    def fit(case):
        names = [case["ins"].get(slot, []) for slot in (first, second)]
        count = min(map(len, names))
        for slot, found in zip((first, second), names):
            case["ins"][slot] = found[:count]
        case["wanted"] = [n for n in case["wanted"] if not any(n in found[count:] for found in names)]

    return fit


def rows_of_scatter(case):
    """X of `sequence_scatter` is a matrix with a row for each sequence of Ids."""
    x, ids = one(case, "X"), one(case, "Ids")
    if ids.get("lod"):
        resize(x, len(ids["lod"][-1]), max(1, x["value"].shape[-1] if x["value"].ndim else 1))


def parts_of_axes(case):
    """Axes of `strided_slice` that Input has, each once, with a start, an end and a stride of -1 or more for each."""
    x, attrs = one(case, "Input")["value"], case["attrs"]
    if not x.ndim:
        return
    axes = {n % x.ndim: n for n in attrs["axes"] if -x.ndim <= n < x.ndim} or {0: 0}
    attrs["axes"] = list(axes.values())
    for name in ("starts", "ends", "strides", "infer_flags"):
        numbers = attrs.get(name)
        attrs[name] = [numbers[k % len(numbers)] for k in range(len(axes))] if numbers else numbers
    for v in those(case, "StartsTensor", "EndsTensor", "StridesTensor"):
        resize(v, len(axes))
    attrs["strides"] = [max(n, -1) or 1 for n in attrs.get("strides") or ()]
    for v in those(case, "StridesTensor"):
        v["value"] = np.where(v["value"] == 0, 1, np.maximum(v["value"], -1)).astype(v["value"].dtype)


def mask_of_both_sides(case):
    """A number for each row or sequence of X, and both sides of `split_lod_tensor` get some."""
    x, mask = one(case, "X"), one(case, "Mask")
    count = len(x["lod"][0]) if x.get("lod") else len(x["value"])
    resize(mask, count, 1)
    if count > 1 and len(np.unique(mask["value"] != 0)) == 1:
        mask["value"][0] = mask["value"][0] == 0
