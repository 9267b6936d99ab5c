"""Operators that stand for several others in saved programs."""
import numpy as np
from op_case import Seq, apart, big, case, integers, real

FUNCTIONS = {"relu": lambda v, a: np.maximum(v, 0), "scale": lambda v, a: v * v.dtype.type(a["scale"]),
             "tanh": lambda v, a: np.tanh(v), "sigmoid": lambda v, a: 1 / (1 + np.exp(-v))}
BINARY = {"elementwise_add": np.add, "elementwise_mul": np.multiply}


def met(x, y, axis):
    """The operand of lower rank with axes for the other one."""
    if y.ndim < x.ndim:
        at = x.ndim - y.ndim if axis == -1 else axis
        return x, y.reshape(y.shape + (1,) * (x.ndim - at - y.ndim))
    if x.ndim < y.ndim:
        at = y.ndim - x.ndim if axis == -1 else axis
        return x.reshape(x.shape + (1,) * (y.ndim - at - x.ndim)), y
    return x, y


def fused(i, a):
    first, second = a["functor_list"]
    if first in BINARY:
        inner = FUNCTIONS[second](i["Y"], a)
        return {"Out": BINARY[first](*met(i["X"], inner, a.get("axis", -1))), "IntermediateOut": inner}
    inner = BINARY[second](*met(i["X"], i["Y"], a.get("axis", -1)))
    return {"Out": FUNCTIONS[first](inner, a), "IntermediateOut": inner}


FORMS = (["elementwise_add", "relu"], ["elementwise_add", "scale"], ["elementwise_mul", "scale"],
         ["elementwise_mul", "tanh"], ["elementwise_mul", "sigmoid"], ["relu", "elementwise_add"],
         ["scale", "elementwise_add"], ["tanh", "elementwise_add"])
for form in FORMS:
    attrs = {"functor_list": form, "scale": 0.5, "save_intermediate_out": True}
    case("fused_elemwise_activation", {"X": apart(3, 4), "Y": apart(3, 4)[::-1] * 0.7 + 0.05}, attrs, fused,
         name=" ".join(form), large={"X": big(), "Y": big()}, rtol=5e-6)
for name, x, y, axis in (("a row", (3, 4), (4,), -1), ("a column", (2, 3, 4), (2,), 0), ("X is smaller", (4,), (3, 4), -1)):
    for form in (["elementwise_mul", "sigmoid"], ["tanh", "elementwise_add"], ["elementwise_add", "relu"]):
        case("fused_elemwise_activation", {"X": real(*x), "Y": apart(*y)}, {"functor_list": form, "axis": axis}, fused,
             name="%s, %s" % (name, form[0]))


def chain(i, a):
    made = [i["X"]]
    for w, b in zip(i["W"], i["Bias"]):
        made.append(np.maximum(made[-1] @ w + b.reshape(-1), 0))
    return {"Out": made[-1], "ReluOut": made[1:-1]}


case("fusion_repeated_fc_relu", {"X": real(2, 3), "W": [real(3, 5), real(5, 4), real(4, 2)],
                                 "Bias": [real(5), real(1, 4), real(2)]}, {}, chain, outs={"ReluOut": 2}, rtol=5e-6)
case("fusion_repeated_fc_relu", {"X": Seq(real(3, 3), [[1, 2]]), "W": [real(3, 5), real(5, 2)],
                                 "Bias": [real(5), real(2)]}, {}, lambda i, a: {
                                     "Out": Seq(chain(dict(i, X=i["X"].array), a)["Out"], [[1, 2]])},
     outs={"ReluOut": 1}, name="sequences", rtol=5e-6)


def pairs(i, a):
    x, y = i["X"], i["Y"]
    return {"SquaredX": x * x, "SquaredY": y * y, "SquaredXY": (x @ y) ** 2,
            "Out": x.dtype.type(a.get("scalar", 1.0)) * ((x @ y) ** 2 - (x * x) @ (y * y))}


case("fusion_squared_mat_sub", {"X": real(3, 4), "Y": real(4, 2)}, {"scalar": 0.5}, pairs, rtol=2e-5)
case("fusion_squared_mat_sub", {"X": real(3, 4), "Y": real(4, 2)}, {}, pairs, name="default", rtol=2e-5)


def equal(i, a):
    x, y = met(i["X"], i["Y"], a.get("axis", -1))
    same = np.abs(x - y) < 1e-8 if x.dtype.kind == "f" else x == y
    return np.array([bool(np.all(same))])


ROWS = np.array([[1, 2], [1, 2]])
for name, x, y, axis in (("equal", ROWS, ROWS, -1), ("a row", ROWS, ROWS[0], -1), ("other", ROWS, ROWS[0], 0),
                         ("column", ROWS.T, ROWS[0], 0), ("near", ROWS / 3, ROWS / 3 + 1e-10, -1),
                         ("far", real(3, 4), real(3, 4), -1)):
    case("equal_reduce", {"X": x, "Y": y}, {"axis": axis}, equal, name=name)
case("equal_reduce", {"X": integers(3, 2, dtype="int32"), "Y": integers(3, 2, dtype="int32")}, {}, equal, name="int32")
