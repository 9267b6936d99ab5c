"""Sums of parameters over windows of steps; updates around compressed gradients."""
import numpy as np
from op_case import big, case, real


def average(i, a):
    count, before, steps = (int(i["in_" + k][0]) for k in ("num_accumulates", "old_num_accumulates", "num_updates"))
    count, steps = count + 1, steps + 1
    s1, s2, s3 = i["in_sum_1"] + i["param"], i["in_sum_2"], i["in_sum_3"]
    if steps % 16384 == 0:
        s1, s2 = 0 * s1, s2 + s1
    if count >= a["min_average_window"] and count >= min(a["max_average_window"], int(steps * a["average_window"])):
        s1, s2, s3, before, count = 0 * s1, 0 * s2, s1 + s2, count, 0
    made = {"sum_1": s1, "sum_2": s2, "sum_3": s3}
    counts = {"num_accumulates": count, "old_num_accumulates": before, "num_updates": steps}
    return {"out_" + k: v for k, v in {**made, **{k: np.array([v]) for k, v in counts.items()}}.items()}


def window(count, before, steps, rate=0.5, least=3, most=10, name="", make=lambda: real(4, 3)):
    inputs = {"param": make(), "in_sum_1": make(), "in_sum_2": make(), "in_sum_3": make()}
    counts = {"in_num_accumulates": count, "in_old_num_accumulates": before, "in_num_updates": steps}
    inputs.update({k: np.array([v]) for k, v in counts.items()})
    large = {k: big() if k not in counts else v for k, v in inputs.items()}
    case("average_accumulates", inputs, {"average_window": rate, "min_average_window": least,
                                         "max_average_window": most}, average, large=large, name=name)


window(2, 0, 2, name="full")
window(2, 0, 7, name="a part of the steps")
window(2, 0, 7, most=3, name="the longest window")
window(1, 4, 16383, name="moved to the second sum")
window(5, 1, 16383, most=6, name="moved twice")
window(1, 0, 2, name="too short")


def dgc_momentum(i, a):
    begin, step, g = a["rampup_begin_step"], i["current_step"][0], i["Grad"] / i["nranks"]
    if begin < 0:
        return {"ParamOut": i["Param"], "VelocityOut": i["Velocity"], "Grad_out": i["Grad"]}
    v = a["mu"] * i["Velocity"] + g if step < begin else i["Velocity"]
    way = g if step >= begin else g + a["mu"] * v if a.get("use_nesterov") else v
    return {"ParamOut": i["Param"] - i["LearningRate"] * way, "VelocityOut": v, "Grad_out": g}


def at(step, **more):
    shared = {"current_step": np.array([step], "float32"), "nranks": np.array([2.0], "float32")}
    return dict({"Param": real(4, 3), "Grad": real(4, 3), "Velocity": real(4, 3), "LearningRate": np.array([0.05])},
                **shared, **more)


for begin, step, name in ((2.0, 1.0, "before"), (2.0, 2.0, "compressed"), (-1.0, 5.0, "off")):
    attrs = {"mu": 0.75, "rampup_begin_step": begin}
    case("dgc_momentum", at(step), attrs, dgc_momentum, name=name,
         large=dict(at(step), Param=big(), Grad=big(), Velocity=big()))
    case("dgc_momentum", at(step), dict(attrs, use_nesterov=True), dgc_momentum, name=name + " nesterov")


def dgc_clip(i, a):
    norm = np.sqrt((i["X"].astype("float64") ** 2).sum())
    clips = 0 <= int(a["rampup_begin_step"]) <= i["current_step"][0]
    return i["X"] * (a["max_norm"] / max(a["max_norm"], norm)) if clips else i["X"]


for begin, step, name in ((2.0, 1.0, "before"), (2.0, 2.0, "clips"), (-1.0, 5.0, "off"), (2.25, 2.0, "whole steps"),
                          (-0.5, 0.0, "above minus one")):
    inputs = {"X": real(4, 3), "current_step": np.array([step], "float32")}
    case("dgc_clip_by_norm", inputs, {"max_norm": 0.5, "rampup_begin_step": begin}, dgc_clip, name=name,
         large=dict(inputs, X=big()))
