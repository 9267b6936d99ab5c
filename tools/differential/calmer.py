"""Cases that the original computes: calmer(case) is the case with what it dies of, refuses or gets wrong taken out."""

import copy


def calmer(case):
    """Without empty sequences, and as OTHERWISE says; None where that is the case itself."""
    made = copy.deepcopy(case)
    changed = [_filled(v["lod"][-1]) for v in made["vars"].values() if v.get("lod")]
    if case["op"] in OTHERWISE:
        changed.append(OTHERWISE[case["op"]](made) is not False)
    return made if any(changed) else None


def _filled(lengths):
    """Each length of 0 gets a row of the longest sequence, so that all rows stay."""
    changed = False
    while 0 in lengths and max(lengths) > 1:
        lengths[lengths.index(max(lengths))] -= 1
        lengths[lengths.index(0)] += 1
        changed = True
    return changed


def _one_image_a_step(case):
    case["attrs"]["im2col_step"] = 1


def _in_place(case):
    case["outs"]["Y"] = case["ins"]["X"]
    case["wanted"] = []


def _four_axes(case):
    v = case["vars"][case["ins"]["Input"][0]]
    v["value"] = v["value"].reshape((1,) * (4 - v["value"].ndim) + v["value"].shape)


def _both_gradients(case):
    case["grad"] = ["C", "H"]


def _without_gradient(case):
    case["wanted"] = []


OTHERWISE = {
    "deformable_conv": _one_image_a_step,
    "deformable_conv_v1": _one_image_a_step,
    "inplace_abn": _in_place,
    "lstm_unit": _both_gradients,
    "pyramid_hash": _without_gradient,
    "requantize": _four_axes,
}
