"""Numbers and attributes that fit the other inputs of an operator: each function changes a case, see partners.py."""

import numpy as np
from fit import at_least_of, one, resize, those
from neighbours import ascending, spread


def below(attribute, *slots):
    """Numbers of classes: from 0 to the attribute - 1."""

    def fit(case):
        count = at_least_of(case, attribute)
        for v in those(case, *slots):
            v["value"] = v["value"] % v["value"].dtype.type(count)

    return fit


def ids_in(slot, table, axis=0):
    """Ids that name places of another input."""

    def fit(case):
        count = one(case, table)["value"].shape[axis : axis + 1] if one(case, table) else ()
        for v in those(case, slot) if count and count[0] else ():
            v["value"] = v["value"] % v["value"].dtype.type(count[0])

    return fit


def different(*slots):
    """Numbers of which no two are equal, and none is NaN."""

    def fit(case):
        for v in those(case, *slots):
            v["value"] = spread(v["value"])

    return fit


def matrix_of_rows(case):
    """Sparse rows of two axes, each id once."""
    for v in case["vars"].values():
        if v.get("rows") and v["value"].ndim:
            v["value"] = v["value"].reshape(len(v["value"]), -1)


def each_row_once(case):
    for v in case["vars"].values():
        if v.get("rows"):
            v["rows"] = list(dict.fromkeys(v["rows"]))
            v["value"] = v["value"][: len(v["rows"])]


def one_number_an_element(case):
    count = int(np.prod(case["attrs"]["shape"])) if min(case["attrs"]["shape"], default=1) >= 0 else 0
    numbers = case["attrs"]["value"] or [1.0]
    case["attrs"]["value"] = [numbers[k % len(numbers)] for k in range(count)]


def labels_without_blank(case):
    blank = case["attrs"].get("blank", 0)
    for v in those(case, "Label"):
        v["value"] = np.where(v["value"] == blank, blank - 1 if blank else 1, v["value"]).astype(v["value"].dtype)


def classes_of_logits(case):
    logits = one(case, "Logits")["value"]
    for v in those(case, "Label") if logits.ndim and logits.shape[-1] else ():
        v["value"] = v["value"] % v["value"].dtype.type(logits.shape[-1])


def boxes_with_area(*slots):
    def fit(case):
        for v in those(case, *slots):
            if v["value"].ndim == 2 and v["value"].shape[1] == 4:
                v["value"] = ascending(v["value"])

    return fit


def at_most(name, limit):
    return lambda case: case["attrs"].update({name: min(case["attrs"].get(name, limit), limit)})


def at_least(name, limit):
    return lambda case: at_least_of(case, name, limit)


def at_least_one_each(case):
    case["attrs"]["topks"] = sorted(max(1, k) for k in case["attrs"]["topks"]) or [1]


def one_entry_an_output(case):
    count, sections = len(case["outs"]["Out"]), [max(0, n) for n in case["attrs"]["height_sections"]] or [1]
    case["attrs"]["height_sections"] = [sections[k % len(sections)] for k in range(count)]


def gradient_of_filters(case):
    """The gradient with respect to the nodes is compared for one filter: of more, that of the original is wrong."""
    if one(case, "Filter")["value"].shape[2:] != (1, 1):
        case["wanted"] = [n for n in case["wanted"] if n not in case["ins"]["NodesVector"]]


def different_together(slot):
    """No two numbers of a list of tensors are equal."""

    def fit(case):
        found = those(case, slot)
        made = spread(np.concatenate([v["value"].ravel() for v in found])) if found else None
        for v in found:
            first, made = np.split(made, [v["value"].size])
            v["value"] = first.reshape(v["value"].shape).astype(v["value"].dtype)

    return fit


def ids_of_param(case):
    """Sparse rows of a gradient have the height of Param, and ids below it."""
    param = one(case, "Param")
    for v in those(case, "Grad") if param and param["value"].ndim else ():
        if v.get("rows"):
            v["height"] = len(param["value"])
            v["rows"] = [n % max(v["height"], 1) for n in v["rows"]] if v["height"] else []
            v["value"] = v["value"][: len(v["rows"])]


def between(name, low, high):
    return lambda case: case["attrs"].update({name: min(max(case["attrs"].get(name, low), low), high)})


def one_value_an_element(case):
    """Those of the dtype that `assign_value` writes."""
    slot = {0: "bool_values", 2: "int32_values", 3: "int64_values"}.get(case["attrs"]["dtype"], "fp32_values")
    shape = [max(1, n) for n in case["attrs"]["shape"]] or [1]
    values = case["attrs"].get(slot) or [1.0 if slot == "fp32_values" else 1]
    case["attrs"].update({"shape": shape, slot: [values[k % len(values)] for k in range(int(np.prod(shape)))]})


def tags_of_emission(case):
    """Transition of `linear_chain_crf` has two rows more than there are tags, and labels are tags."""
    tags = one(case, "Emission")["value"].shape[-1]
    resize(one(case, "Transition"), tags + 2, tags)
    for v in those(case, "Label") if tags else ():
        v["value"] = v["value"] % v["value"].dtype.type(tags)


def groups_of_channels(case):
    """A number of groups that divides the channels."""
    x, last = one(case, "X")["value"], case["attrs"].get("data_layout") == "NHWC"
    if x.ndim > 1:
        case["attrs"]["groups"] = int(np.gcd(at_least_of(case, "groups"), x.shape[-1 if last else 1])) or 1


def part_of_the_input(case):
    """Offsets and a shape of `crop` that lie within X."""
    x, offsets, shape = one(case, "X")["value"], case["attrs"].get("offsets"), case["attrs"].get("shape")
    if offsets and len(offsets) == x.ndim and not case["ins"].get("Offsets"):
        extents = one(case, "Y")["value"].shape if one(case, "Y") else shape
        room = [max(n - m, 0) for n, m in zip(x.shape, extents)] if len(extents) == x.ndim else []
        case["attrs"]["offsets"] = [min(max(o, 0), n) for o, n in zip(offsets, room)] or offsets


def groups_of_inputs(case):
    """A number of groups that divides the channels of Input."""
    x, last = one(case, "Input")["value"], case["attrs"].get("data_format") in ("NHWC", "NDHWC")
    if x.ndim > 1:
        case["attrs"]["groups"] = int(np.gcd(at_least_of(case, "groups"), x.shape[-1 if last else 1])) or 1


def bits_of_scales(case):
    """A number of bits for each tensor of scales."""
    bits, count = [max(2, n) for n in case["attrs"]["quant_bits"]] or [8], len(case["ins"]["Scales"])
    case["attrs"]["quant_bits"] = [bits[k % len(bits)] for k in range(count)]


def one_of(name, *texts):
    return lambda case: case["attrs"].update({name: case["attrs"][name] if case["attrs"][name] in texts else texts[0]})
