"""Update rules, dense and sparse, each over one step from a state in the middle of a run."""
import numpy as np
from op_case import Rows, big, case, real, skip

P, G = real(4, 3), real(4, 3)
LR = np.array([0.05])
IDS = [2, 0, 2]
SPARSE = Rows(IDS, 4, real(3, 3))


def positive(*shape):
    return real(*shape, lo=0.1, hi=1.0)


def grad_of(g):
    """The gradient as a dense array, and which rows it has."""
    if not isinstance(g, Rows):
        return g, np.ones((len(g),) + (1,) * (g.ndim - 1), bool)
    dense = np.zeros((g.height, *g.values.shape[1:]), g.values.dtype)
    np.add.at(dense, g.ids, g.values)
    touched = np.zeros((g.height,) + (1,) * (dense.ndim - 1), bool)
    touched[g.ids] = True
    return dense, touched


def rule(op, inputs, attrs, ref, only_touched=False, **options):
    """Dense, sparse and large cases of one rule; ref(inputs, attributes, gradient) -> outputs."""
    def with_grad(i, a):
        assert a.get("lazy_mode", False) == attrs.get("lazy_mode", False)
        assert all(0 <= v <= 1 for k, v in a.items() if isinstance(v, float) and k != "lr_power"), "wild attributes"
        g, touched = grad_of(i["Grad"])
        out = ref(i, a, g)
        if only_touched and isinstance(i["Grad"], Rows):
            out = {k: np.where(touched, v, i[k.replace("Out", "").replace("Accum", "Accumulator")])
                   if np.shape(v) == g.shape else v for k, v in out.items()}
        return out

    def sized(make):
        return {k: make(k, v) for k, v in inputs.items()}

    large = sized(lambda k, v: np.abs(big()) + 0.1 if k != "Param" and k != "Grad" and v.shape == P.shape else
                  big() if v.shape == P.shape else v)
    case(op, dict(inputs, Grad=G), attrs, with_grad, large=dict(large, Grad=big()), **options)
    case(op, dict(inputs, Grad=SPARSE), attrs, with_grad, name="sparse" + options.pop("name", ""), **options)


def state(*slots, **more):
    return dict({"Param": P, "Grad": G, "LearningRate": LR}, **{s: positive(4, 3) for s in slots}, **more)


rule("sgd", state(), {}, lambda i, a, g: {"ParamOut": i["Param"] - i["LearningRate"] * g})


def momentum(i, a, g):
    v = a["mu"] * i["Velocity"] + g
    step = g + a["mu"] * v if a.get("use_nesterov") else v
    return {"ParamOut": i["Param"] - i["LearningRate"] * step, "VelocityOut": v}


rule("momentum", state("Velocity"), {"mu": 0.75}, momentum)
rule("momentum", state("Velocity"), {"mu": 0.625, "use_nesterov": True}, momentum, name="nesterov")


def adam(i, a, g):
    b1, b2 = np.float32(a.get("beta1", 0.9)), np.float32(a.get("beta2", 0.999))
    if i["Param"].dtype == np.float64:
        b1, b2 = float(b1), float(b2)
    m1 = b1 * i["Moment1"] + (1 - b1) * g
    m2 = b2 * i["Moment2"] + (1 - b2) * g * g
    sparse = isinstance(i["Grad"], Rows)
    p1, p2 = (i["Beta1Pow"] * b1, i["Beta2Pow"] * b2) if sparse else (i["Beta1Pow"], i["Beta2Pow"])
    rate = i["LearningRate"] * np.sqrt(1 - p2) / (1 - p1)
    return {"ParamOut": i["Param"] - rate * m1 / (np.sqrt(m2) + a.get("epsilon", 1e-8)), "Moment1Out": m1,
            "Moment2Out": m2, "Beta1PowOut": i["Beta1Pow"] * b1, "Beta2PowOut": i["Beta2Pow"] * b2}


POWERS = {"Beta1Pow": np.array([0.9 ** 3]), "Beta2Pow": np.array([0.75])}
rule("adam", state("Moment1", "Moment2", **POWERS), {"beta2": 0.75}, adam, rtol=5e-6)
rule("adam", state("Moment1", "Moment2", **POWERS), {"beta2": 0.75, "lazy_mode": True}, adam, only_touched=True,
     rtol=5e-6, name="lazy")


def adagrad(i, a, g):
    m = i["Moment"] + g * g
    return {"ParamOut": i["Param"] - i["LearningRate"] * g / (np.sqrt(m) + a["epsilon"]), "MomentOut": m}


rule("adagrad", state("Moment"), {"epsilon": 2.0 ** -20}, adagrad, rtol=5e-6)


def decayed_adagrad(i, a, g):
    m = a["decay"] * i["Moment"] + (1 - a["decay"]) * g * g
    return {"ParamOut": i["Param"] - i["LearningRate"] * g / (np.sqrt(m) + a["epsilon"]), "MomentOut": m}


rule("decayed_adagrad", state("Moment"), {"decay": 0.75, "epsilon": 2.0 ** -10}, decayed_adagrad, rtol=5e-6)


def adadelta(i, a, g):
    e, rho = a["epsilon"], a["rho"]
    sg = rho * i["AvgSquaredGrad"] + (1 - rho) * g * g
    step = -np.sqrt((i["AvgSquaredUpdate"] + e) / (sg + e)) * g
    average = rho * i["AvgSquaredUpdate"] + (1 - rho) * step * step
    return {"ParamOut": i["Param"] - np.sqrt((average + e) / (sg + e)) * g, "AvgSquaredGradOut": sg,
            "AvgSquaredUpdateOut": average}


ADADELTA = state("AvgSquaredGrad", "AvgSquaredUpdate")
ADADELTA.pop("LearningRate")
rule("adadelta", ADADELTA, {"rho": 0.75, "epsilon": 2.0 ** -10}, adadelta, rtol=5e-6)


def adamax(i, a, g):
    m = a["beta1"] * i["Moment"] + (1 - a["beta1"]) * g
    inf = np.maximum(np.abs(g), a["beta2"] * i["InfNorm"] + a["epsilon"])
    rate = i["LearningRate"] / (1 - i["Beta1Pow"])
    return {"ParamOut": i["Param"] - rate * m / inf, "MomentOut": m, "InfNormOut": inf}


rule("adamax", state("Moment", "InfNorm", Beta1Pow=np.array([0.25])), {"beta1": 0.5, "beta2": 0.75, "epsilon": 2.0 ** -10},
     adamax, rtol=5e-6)


def rmsprop(i, a, g):
    keep = a["decay"]
    ms = keep * i["MeanSquare"] + (1 - keep) * g * g
    out = {"MeanSquareOut": ms}
    under = ms
    if a.get("centered"):
        mg = keep * i["MeanGrad"] + (1 - keep) * g
        out["MeanGradOut"] = mg
        under = ms - mg * mg
    mom = a["momentum"] * i["Moment"] + i["LearningRate"] * g / np.sqrt(under + a["epsilon"])
    return dict(out, MomentOut=mom, ParamOut=i["Param"] - mom)


RMS = {"decay": 0.75, "momentum": 0.5, "epsilon": 2.0 ** -4}
rule("rmsprop", state("MeanSquare", "Moment"), RMS, rmsprop, rtol=5e-6)
rule("rmsprop", state("MeanSquare", "Moment", MeanGrad=real(4, 3, lo=-0.1, hi=0.1)), dict(RMS, epsilon=1.0, centered=True),
     rmsprop, rtol=5e-6, name="centered")


def ftrl(i, a, g):
    n, z, lr, p = i["SquaredAccumulator"], i["LinearAccumulator"], i["LearningRate"], i["Param"]
    l1, l2, power = a.get("l1", 0), a.get("l2", 0), -a.get("lr_power", -0.5)
    new = n + g * g
    z = z + g - (new ** power - n ** power) / lr * p
    w = np.where(np.abs(z) > l1, (np.sign(z) * l1 - z) / (new ** power / lr + 2 * l2), 0)
    return {"ParamOut": w, "SquaredAccumOut": new, "LinearAccumOut": z}


rule("ftrl", state("SquaredAccumulator", LinearAccumulator=real(4, 3)), {"l1": 0.5, "l2": 0.25}, ftrl, rtol=2e-5)
rule("ftrl", state("SquaredAccumulator", LinearAccumulator=real(4, 3)), {"l1": 0.5, "lr_power": -0.75}, ftrl, rtol=2e-5,
     name="power")


def lars(i, a, g):
    p, d = i["Param"], a["lars_weight_decay"]
    norm = np.sqrt(np.sum(p * p))
    local = i["LearningRate"] * a["lars_coeff"] * norm / (np.sqrt(np.sum(g * g)) + d * norm)
    v = a["mu"] * i["Velocity"] + local * (g + d * p)
    return {"ParamOut": p - v, "VelocityOut": v}


rule("lars_momentum", state("Velocity"), {"mu": 0.5, "lars_coeff": 0.25, "lars_weight_decay": 0.125}, lars, rtol=5e-6)


def lamb(i, a, g):
    m1 = a["beta1"] * i["Moment1"] + (1 - a["beta1"]) * g
    m2 = a["beta2"] * i["Moment2"] + (1 - a["beta2"]) * g * g
    step = m1 / (np.sqrt(m2) + a["epsilon"]) + a["weight_decay"] * i["Param"]
    ratio = np.sqrt(np.sum(i["Param"] ** 2)) / np.sqrt(np.sum(step ** 2))
    return {"ParamOut": i["Param"] - i["LearningRate"] * ratio * step, "Moment1Out": m1, "Moment2Out": m2}


rule("lamb", state("Moment1", "Moment2", Beta1Pow=np.array([0.5]), Beta2Pow=np.array([0.75])),
     {"beta1": 0.5, "beta2": 0.75, "weight_decay": 0.125, "epsilon": 2.0 ** -10}, lamb, rtol=5e-6)


def dpsgd(i, a):
    """Without noise only the clipped norm is left."""
    assert a["sigma"] == 0 and a["batch_size"] == 4
    return i["Param"] - i["LearningRate"] * i["Grad"] / max(1.0, np.sqrt(np.sum(i["Grad"] ** 2)) / a["clip"])


case("dpsgd", state(), {"clip": 0.5, "batch_size": 4.0, "sigma": 0.0}, dpsgd)
for op in ("fused_adam", "fused_momentum", "fused_sgd"):
    skip(op, "made of several ops by a pass: tests/passes")


def shrunk(v, a, rate):
    size = np.maximum(np.abs(v) - rate * max(a.get("l1", 0.0), 0), 0)
    return np.sign(v) * size / (1 + rate * a.get("l2", 0.0))


def proximal_gd(i, a):
    rate = i["LearningRate"]
    return shrunk(i["Param"] - rate * i["Grad"], a, rate)


def proximal_adagrad(i, a):
    rate, moment = i["LearningRate"], i["Moment"] + i["Grad"] ** 2
    return {"ParamOut": shrunk(i["Param"] - rate * i["Grad"] / np.sqrt(moment), a, rate), "MomentOut": moment}


for attrs in ({}, {"l1": 0.5}, {"l2": 0.25}, {"l1": 0.25, "l2": 0.5}):
    case("proximal_gd", {"Param": real(3, 4), "Grad": real(3, 4), "LearningRate": np.array([0.5])}, attrs, proximal_gd)
    case("proximal_adagrad", {"Param": real(3, 4), "Grad": real(3, 4), "Moment": real(3, 4, lo=0.1), "LearningRate": np.array([0.5])},
         attrs, proximal_adagrad)
rule("lars_momentum", state("Velocity"), {"mu": 0.5, "lars_coeff": 0.25, "lars_weight_decay": 0.0}, lars, rtol=5e-6)

# ---- decay of the rows in a sparse gradient

SIGNED = np.where(real(4, 3) > 0.3, real(4, 3), 0.0)


def regularized(i, a):
    found = sorted(set(i["X"].ids))
    dense, _ = grad_of(i["X"])
    w = i["W"][found]
    return Rows(found, i["X"].height,
                dense[found] + a.get("l2_decay", 0.0) * w + a.get("l1_decay", 0.0) * np.sign(w))


def decayed(i, a):
    _, touched = grad_of(i["X"])
    return np.where(touched, i["W"] - i["W"] * i.get("Factor", a.get("factor", 0.0)), i["W"])


case("regularize_rows", {"W": P, "X": SPARSE}, {"l2_decay": 0.25}, ref=regularized)
case("regularize_rows", {"W": SIGNED, "X": SPARSE}, {"l1_decay": 0.5, "l2_decay": 0.25}, ref=regularized, name="signs")
case("decay_rows", {"W": P, "X": SPARSE}, {"factor": 0.25}, ref=decayed)
case("decay_rows", {"W": P, "X": SPARSE, "Factor": np.array([0.75])}, {"factor": 0.25}, ref=decayed, name="given")
