"""Casts, clips, norms."""
import numpy as np
from op_case import ON_CPU, Rows, apart, big, case, real

NUMBERS = {"bool": 0, "int16": 1, "int32": 2, "int64": 3, "float32": 5, "float64": 6, "uint8": 20, "int8": 21}
for name, number in NUMBERS.items():
    case("cast", {"X": np.array([0.0, 0.5, 1.0, 2.75, 90.0])}, {"in_dtype": 6, "out_dtype": number}, grad=(), name=f"to_{name}",
         ref=lambda i, a, name=name: i["X"].astype(name), hostile=name == "int32")
    case("cast", {"X": np.array([0, 1, 1, 7, 90]).astype(name)}, {"in_dtype": number, "out_dtype": 5}, grad=(), hostile=False,
         name=f"from_{name}", ref=lambda i, a: i["X"].astype("float32"))
case("cast", {"X": np.array([np.nan, np.inf, -np.inf, 3e9, -3e9, 300.7, -1.5])}, {"in_dtype": 6, "out_dtype": 2}, grad=(), hostile=False,
     name="without_an_integer", ref=lambda i, a: np.array([-2**31] * 5 + [300, -1], "int32"))


def halves(x):
    """x as float16, cut towards zero; more than 65504 is infinite. Devices round to the nearest, as GPUs do."""
    with np.errstate(over="ignore"):
        made = x.astype("float16")
    if ON_CPU is not None:
        return made
    beyond = np.isfinite(made) & (np.abs(made.astype("float64")) > np.abs(x.astype("float64")))
    made = np.where(beyond, np.nextafter(made, np.float16(0)), made)
    return np.where(np.abs(x) > 65504, np.copysign(np.float16(np.inf), made), made).astype("float16")


HALVES = np.array([0.0, -0.0, 1.0, 65504, 65519, 65520, -1e9, 1e-8, 3e-8, 6e-5, 0.1, 2049, 2051, np.inf])
case("cast", {"X": HALVES.astype("float32")}, {"in_dtype": 5, "out_dtype": 4}, grad=(), hostile=False, name="to_float16",
     dtypes=("float32",), ref=lambda i, a: halves(i["X"]))
case("cast", {"X": np.arange(0, 0x7c01, 31, dtype="uint16").view("float16")}, {"in_dtype": 4, "out_dtype": 5}, grad=(), hostile=False,
     name="of_float16", dtypes=("float32",), ref=lambda i, a: i["X"].astype("float32"))
case("cast", {"X": real(3, 4)}, {"in_dtype": 6, "out_dtype": 6}, dtypes=("float64",), ref=lambda i, a: i["X"], name="gradient")
case("clip", {"X": apart(3, 4)}, {"min": -0.25, "max": 0.5}, ref=lambda i, a: np.clip(i["X"], a["min"], a["max"]),
     large={"X": big()})
case("clip", {"X": apart(3, 4), "Min": np.array([-0.25]), "Max": np.array([0.5])}, {"min": 0.0, "max": 0.0}, grad=["X"],
     ref=lambda i, a: np.clip(i["X"], i["Min"], i["Max"]), name="tensors")
MERGED = np.array([[5.0, 6.0], [4.0, 6.0]])
case("clip", {"X": Rows([3, 1, 3], 5, np.array([[1.0, 2.0], [5.0, 6.0], [3.0, 4.0]]))}, {"min": 0.0, "max": 5.5}, grad=(),
     name="rows", hostile=False, ref=lambda i, a: Rows([1, 3], 5, np.clip(MERGED, 0, 5.5)))


def shortened(x, bound):
    length = np.sqrt(np.sum(np.square(x)))
    return x * (bound / length if length > bound else 1)


case("clip_by_norm", {"X": real(3, 4)}, {"max_norm": 0.5}, ref=lambda i, a: shortened(i["X"], a["max_norm"]), large={"X": big()})
case("clip_by_norm", {"X": real(3, 4)}, {"max_norm": 50.0}, ref=lambda i, a: shortened(i["X"], a["max_norm"]))
case("clip_by_norm", {"X": Rows([3, 1, 3], 5, np.array([[1.0, 2.0], [5.0, 6.0], [3.0, 4.0]]))}, {"max_norm": 2.0}, name="rows",
     hostile=False, ref=lambda i, a: Rows([1, 3], 5, shortened(MERGED, 2.0)))
case("squared_l2_norm", {"X": real(3, 4)}, ref=lambda i, a: np.sum(i["X"] ** 2).reshape(1), large={"X": big()})


def normed(i, a):
    length = np.sqrt(np.sum(np.square(i["X"]), a["axis"], keepdims=True) + a.get("epsilon", 1e-10))
    return {"Out": i["X"] / length, "Norm": length}


for axis in (1, -1, 0):
    case("norm", {"X": real(3, 4, 5)}, {"axis": axis, "epsilon": 0.25}, ref=normed, rtol=3e-6, large={"X": big()})
