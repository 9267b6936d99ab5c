"""Simulated quantization, and numbers from levels."""
import numpy as np
from op_case import big, case, real, skip

ONE = np.array([1.0])


def levels(bits):
    return float(2 ** (bits - 1) - 1)


def rounded(x, scale, n):
    """Half away from zero, as the kernels round."""
    if not scale > 0:
        return 0 * x
    y = np.clip(x, -scale, scale) * (np.asarray(n, x.dtype) / x.dtype.type(scale))
    return np.sign(y) * np.floor(np.abs(y) + np.asarray(0.5, x.dtype))


def abs_max(i, a):
    scale = np.abs(i["X"]).max(initial=0)
    return {"Out": rounded(i["X"], scale, levels(a["bit_length"])), "OutScale": np.reshape(scale, 1)}


X = np.array([[0.96, -0.31, 0.2], [0.113, -0.77, 0.0]])
case("fake_quantize_abs_max", {"X": X}, {"bit_length": 8}, abs_max, large={"X": np.round(big() * 100) / 128})
case("fake_quantize_abs_max", {"X": 0 * X}, {"bit_length": 4}, abs_max, name="zeros")


def channels(i, a):
    scales = np.abs(i["X"]).reshape(len(i["X"]), -1).max(1, initial=0)
    out = [rounded(x, s, levels(a["bit_length"])) for x, s in zip(i["X"], scales)]
    return {"Out": np.reshape(out, i["X"].shape), "OutScale": scales}


case("fake_channel_wise_quantize_abs_max", {"X": X}, {"bit_length": 8}, channels,
     large={"X": np.round(big() * 100) / 128})
case("fake_channel_wise_quantize_abs_max", {"X": np.stack([X, 0 * X])}, {"bit_length": 4}, channels, name="a zero")


def average(i, a, makes):
    rate, x = np.float32(a.get("moving_rate", 0.9)).astype(i["X"].dtype), i["X"]
    state, accum = i.get("InState", 0 * ONE), i.get("InAccum", 0 * ONE)
    if a.get("is_test"):
        scale = i["InScale"] if "InScale" in i else accum / state
    else:
        state, accum = rate * state + 1, rate * accum + np.abs(x).max(initial=0)
        scale = accum / state
    n = levels(a.get("bit_length", 8))
    out = x if makes == "copy" else rounded(x, scale[0], n)
    if makes == "numbers":
        out = out * scale / np.asarray(n, x.dtype) if scale[0] > 0 else out
    return {"Out": out, "OutScale": scale, "OutState": state, "OutAccum": accum}


SUMS = {"InState": np.array([3.0]), "InAccum": np.array([2.0])}
LAST = {"InScale": np.array([0.25])}
for op, makes in (("fake_quantize_moving_average_abs_max", "levels"),
                  ("fake_quantize_dequantize_moving_average_abs_max", "numbers"),
                  ("moving_average_abs_max_scale", "copy")):
    def ref(i, a, makes=makes):
        return average(i, a, makes)

    first = {} if makes == "copy" else LAST
    bits = {} if makes == "copy" else {"bit_length": 4}
    case(op, dict(first, X=X, **SUMS), dict(bits, moving_rate=0.75), ref,
         large=dict(first, X=np.round(big() * 100) / 128, **SUMS), rtol=5e-6)
    case(op, dict(first, X=X, **SUMS), dict(bits, is_test=True), ref, name="test", rtol=5e-6)

case("fake_dequantize_max_abs", {"X": real(3, 4), "Scale": np.array([0.5])}, {"max_range": 127.0},
     lambda i, a: i["X"] * i["Scale"] / i["X"].dtype.type(a["max_range"]), large={"X": big(), "Scale": np.array([0.5])})


def by_channel(i, a):
    first, bits = i["Scales"][0], a["quant_bits"]
    axis = len(i["Scales"]) - 1
    out = i["X"] * first.reshape([-1] + [1] * (i["X"].ndim - 1 - axis)) / i["X"].dtype.type(levels(bits[0]))
    return out * i["Scales"][1] / i["X"].dtype.type(levels(bits[1])) if axis else out


case("fake_channel_wise_dequantize_max_abs", {"X": real(3, 4, 2), "Scales": [real(3)]}, {"quant_bits": [8]}, by_channel,
     large={"X": big(), "Scales": [real(301)]})
case("fake_channel_wise_dequantize_max_abs", {"X": real(3, 4, 2), "Scales": [real(4), np.array([0.5])]},
     {"quant_bits": [8, 4]}, by_channel, name="two")

BYTES = np.array([[-128, -1, 0], [1, 127, -77]], "int8")
case("dequantize_abs_max", {"X": BYTES, "Scale": np.array([0.5], "float32")}, {"max_range": 127.0},
     lambda i, a: i["Scale"] * i["X"].astype("float32") / np.float32(a["max_range"]), dtypes=("float32",))
case("dequantize_log", {"X": BYTES, "Dict": np.arange(128, dtype="float32") / 7}, {},
     lambda i, a: np.where(i["X"] < 0, -i["Dict"][i["X"].astype("int64") + 128 * (i["X"] < 0)],
                           i["Dict"][i["X"].astype("int64") * (i["X"] >= 0)]), dtypes=("float32",))


def packed(*numbers):
    return np.frombuffer(bytes(numbers), "float32")


def unpacked(i, a):
    w, ids = i["W"], i["Ids"].reshape(-1)
    codes = np.ascontiguousarray(w[:, 2:]).view("uint8").astype("float32")
    rows = (w[:, 1:2] - w[:, :1]) / np.float32(256) * codes + w[:, :1]
    out = rows[ids] * (ids != a.get("padding_idx", -1))[:, None] if a.get("padding_idx", -1) != -1 else rows[ids]
    return out.reshape(*i["Ids"].shape[:-1], -1)


TABLE = np.array([[0, 1, *packed(1, 2, 3, 63), *packed(0, 20, 3, 10)], [-1, 2, *packed(9, 8, 7, 6), *packed(1, 1, 1, 1)],
                  [5, 6, *packed(1, 2, 3, 4), *packed(5, 6, 7, 8)]], "float32")
for attrs in ({"padding_idx": -1}, {"padding_idx": 1}):
    case("lookup_table_dequant", {"W": TABLE, "Ids": np.array([[1], [0], [2], [1]])}, attrs, unpacked,
         dtypes=("float32",))


def saturated(numbers, kind):
    """The nearest integers, halves to even; NaN becomes the least one."""
    kind = np.iinfo(kind)
    numbers = np.where(numbers == numbers, numbers, kind.min)
    return np.rint(np.clip(numbers, kind.min, kind.max)).astype(kind.dtype)


def integers_of(i, a):
    with np.errstate(invalid="ignore", over="ignore"):
        return saturated(i["Input"] * np.float32(a["Scale"]), "int8" if a.get("is_negative_input") else "uint8")


def other_integers(i, a):
    with np.errstate(all="ignore"):
        return saturated(i["Input"].astype("float32") * (np.float32(a["Scale_out"]) / np.float32(a["Scale_in"])),
                         i["Input"].dtype)


NUMBERS = np.array([[0.05, 0.15, -0.25, 3.1], [-0.35, -30.5, 30.0, 0.0]], "float32")
for signed in (False, True):
    case("quantize", {"Input": NUMBERS}, {"Scale": 10.0, "is_negative_input": signed}, integers_of, dtypes=("float32",),
         large={"Input": big().astype("float32")})
for kind in ("int8", "uint8"):
    BYTE = np.array([[-127, -3, 0], [5, 77, 127]]).astype(kind)
    case("dequantize", {"Input": BYTE}, {"Scale": 2.0}, lambda i, a: i["Input"].astype("float32") * (np.float32(1) / np.float32(a["Scale"])),
         dtypes=("float32",))
    case("requantize", {"Input": BYTE}, {"Scale_in": 2.0, "Scale_out": 5.0}, other_integers, dtypes=("float32",))


def ranged(i, a):
    scale = i["InScale"].reshape(1)
    if not a.get("is_test"):
        scale = np.maximum(scale, np.abs(i["X"]).max(initial=0))
    return {"Out": rounded(i["X"], scale[0], levels(a.get("bit_length", 8))), "OutScale": scale}


for name, last in (("larger", 2.0), ("smaller", 0.25)):
    case("fake_quantize_range_abs_max", {"X": X, "InScale": np.array([last]), "Iter": np.array([0])},
         {"window_size": 3}, ranged, name=name)
case("fake_quantize_range_abs_max", {"X": X, "InScale": np.array([0.25])}, {"is_test": True, "bit_length": 4}, ranged,
     name="test")
skip("quantized_fc", "made of several ops by a pass: tests/passes/test_fuse_quantized.py")
