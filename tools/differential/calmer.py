"""Cases that the original computes: calmer(case) is the case with what it dies of, refuses or gets wrong taken out."""

import copy

from fit_numbers import gradient_of_filters
from fit_shapes import edges_of_a_tree, one_width
from neighbours import filled


def calmer(case):
    """Without empty sequences, and as OTHERWISE says; None where that is the case itself."""
    made = copy.deepcopy(case)
    changed = [filled(v["lod"][-1]) for v in made["vars"].values() if v.get("lod")]
    if case["op"] in OTHERWISE:
        changed.append(OTHERWISE[case["op"]](made) is not False)
    return made if any(changed) else None


def _one_image_a_step(case):
    case["attrs"]["im2col_step"] = 1


def _in_place(case):
    case["outs"]["Y"] = case["ins"]["X"]
    case["wanted"] = []


def _whole_tree(case):
    """Of nodes without edges the original returns what memory held."""
    edges_of_a_tree(case)
    gradient_of_filters(case)


def _four_axes(case):
    v = case["vars"][case["ins"]["Input"][0]]
    v["value"] = v["value"].reshape((1,) * (4 - v["value"].ndim) + v["value"].shape)


def _both_gradients(case):
    case["grad"] = ["C", "H"]


def _without_gradient(case):
    case["wanted"] = []


def _of_five_vectors(case):
    """The gradient of six raises."""
    if len(case["ins"]["X"]) < 6:
        return False
    case["wanted"] = []
    return True


def _times_as_attribute(case):
    """The gradient with respect to X raises where a tensor says how often."""
    if not case["ins"].get("ExpandTimes") and not case["ins"].get("expand_times_tensor"):
        return False
    case["wanted"] = []
    return True


def _usual_mode(case):
    found = case["attrs"].get("origin_mode", False)
    case["attrs"]["origin_mode"] = False
    return found


def _fixed_padding(case):
    """The gradient of the padding raises."""
    names = case["ins"].get("PaddingData", [])
    wanted, case["wanted"] = case["wanted"], [n for n in case["wanted"] if n not in names]
    return wanted != case["wanted"]


OTHERWISE = {
    "deformable_conv": _one_image_a_step,
    "deformable_conv_v1": _one_image_a_step,
    "expand": _times_as_attribute,
    "fusion_gru": _usual_mode,
    "inplace_abn": _in_place,
    "lstm_unit": _both_gradients,
    "match_matrix_tensor": one_width,
    "meshgrid": _of_five_vectors,
    "pyramid_hash": _without_gradient,
    "requantize": _four_axes,
    "sequence_conv": _fixed_padding,
    "shuffle_channel": _without_gradient,
    "tree_conv": _whole_tree,
}
