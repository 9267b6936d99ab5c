"""Odd numbers, arrays, sequence lengths and attribute values. All draws come from the `random.Random` that is given."""

import numpy as np

DTYPES = ("float32", "float64", "int64", "int32", "bool", "int8", "uint8", "int16", "float16")
NUMBERS = (
    0, 1, -1, 2, -2, 3, 7, 100, -100, 1000, 65536, 2**31 - 1, -(2**31), 2**31, 2**32, 2**40, -(2**40), 2**62,
    2**63 - 1, -(2**63), 2**64, 0.5, -0.5, 1e30, -1e30, 1e-30, float("nan"), float("inf"), -float("inf"), True,
)
INTEGERS = (0, 1, -1, 2, 3, 5, 8, 100, -100, 1000, 65535, 2**20, 2**31 - 1, -(2**31), 2**31, 2**40, 2**63 - 1, -(2**63))
FLOATS = (
    0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 1e-8, 1e30, -1e30, 3.5e38, 1e300, float("nan"), float("inf"), -float("inf"), 5,
)
TEXTS = (
    "", "nonsense", "NHWC", "NCHW", "SAME", "VALID", "EXPLICIT", "max", "avg", "sum", "SUM", "AVERAGE", "LAST",
    "FIRST", "MAX", "SQRT", "constant", "reflect", "edge", "relu", "tanh", "sigmoid", "identity", "channel",
    "element", "all", "bilinear", "nearest", "none", "mean", "batchmean", "\0", "\u00e9", "x" * 1000, "%s%n",
    "upscale_in_train", "downgrade_in_infer", "AnyLayout", "float32", "int64",
)
OF_LISTS = (0, 1, -1, 2, -2, 3, 4, 5, 100, -100, 2**20, 2**31 - 1, -(2**31), 2**40, 2**62)
OTHER_TYPES = (
    "", "nonsense", b"\xff\xfe", 1, 1.5, True, None, [], [1], ["a"], [True], [1.5], [2**40], {"a": 1}, object(),
    [[1]], [None], "x" * 100000, np.float32(2), np.int64(5), np.array([1, 2]), (1,), range(3), complex(1, 2),
    [1, "a"], 2**70, [2**70],
)
LISTS_OF = {
    "FLOATS": ([], [0.0], [float("nan")], [1.0] * 10, [1e30, -1e30], [float("inf")] * 3, [1.0, 2.0], [0.5] * 1000),
    "STRINGS": ([], [""], ["a"] * 100, ["\0"], ["nonsense"]),
    "BOOLEANS": ([], [True], [False] * 10),
}


def array(r, shape, dtype):
    """Numbers of one kind: small, positive, with holes of NaN or infinity, huge, negative, all 0 or all 1."""
    count = int(np.prod(shape)) if len(shape) else 1
    draw = np.random.RandomState(r.randrange(2**31))
    kind = r.choice(["small", "small", "small", "unit", "nan", "inf", "big", "negative", "zero", "one"])
    if dtype.startswith("float"):
        numbers = draw.uniform(0 if kind == "unit" else -2, 1 if kind == "unit" else 2, count)
        if kind in ("nan", "inf") and count:
            holes = draw.randint(0, count, max(1, count // 3))
            numbers[holes] = np.nan if kind == "nan" else draw.choice([np.inf, -np.inf])
        numbers *= 1e30 if kind == "big" and dtype != "float16" else 1
    else:
        numbers = _integers(r, draw, kind, count, dtype)
    changed = {"negative": lambda: -np.abs(numbers), "zero": lambda: numbers * 0, "one": lambda: numbers * 0 + 1}
    with np.errstate(all="ignore"):
        return changed.get(kind, lambda: numbers)().astype(dtype).reshape(shape)


def _integers(r, draw, kind, count, dtype):
    if dtype != "bool" and kind in ("big", "nan"):
        limits = np.iinfo(dtype)
        if kind == "big":
            return np.full(count, r.choice([limits.max, limits.min, limits.max - 1]), dtype)
        return draw.randint(max(limits.min, -(2**31)), min(limits.max, 2**31 - 1), count)
    return draw.randint(0, 5, count)


def lengths(r, rows, fit=True):
    """Lengths of sequences, outermost level first; ones that do not fit the rows when not `fit`."""

    def cut(total):
        cuts = sorted(r.randint(0, total) for _ in range(r.choice([0, 1, 2, 4])))
        return [b - a for a, b in zip([0] + cuts, cuts + [total])]

    levels = [cut(rows)]
    for _ in range(r.choice([0, 0, 0, 1, 2])):
        levels.insert(0, cut(len(levels[0])))
    if fit:
        return levels
    last = levels[-1]
    return r.choice(
        [levels[:-1] + [[n + 1 for n in last]], levels[:-1] + [[2**40]], levels[:-1] + [last[:-1] or [0]], []]
    )


def attribute(r, value, kind):
    """Another value of an attribute: of its type mostly."""
    if r.random() < 0.12:
        return r.choice(OTHER_TYPES)
    if kind == "BOOLEAN" or isinstance(value, bool):
        return r.choice([True, False, 0, 1, 2, -1])
    if kind in ("INT", "LONG"):
        near = value if isinstance(value, int) else 0
        return r.choice((near + 1, near - 1, -near) + INTEGERS)
    if kind in ("INTS", "LONGS"):
        return _list(r, value)
    if kind in LISTS_OF:
        return r.choice(LISTS_OF[kind])
    return r.choice({"FLOAT": FLOATS, "STRING": TEXTS}.get(kind, NUMBERS))


def _list(r, value):
    base = list(value) if isinstance(value, list) else [1]
    number = r.choice(OF_LISTS)
    shuffled = r.sample(base, len(base))
    other = list(base)
    if other:
        other[r.randrange(len(other))] = number
    return r.choice(
        [
            [],
            base + [number],
            base[:-1],
            base + base,
            [number] * len(base),
            shuffled,
            other,
            [r.choice(OF_LISTS) for _ in range(r.choice([1, 2, 3, 4, 5, 8, 9, 10, 12]))],
        ]
    )


def view(a, how):
    """The same numbers in memory of another kind."""
    if how == "gaps" and a.ndim:
        wide = np.empty(a.shape[:-1] + (a.shape[-1] * 2,), a.dtype)
        wide[..., ::2] = a
        return wide[..., ::2]
    if how == "locked":
        a = a.copy()
        a.flags.writeable = False
        return a
    if how == "big endian":
        return a.astype(a.dtype.newbyteorder(">"))
    if how == "columns first":
        return np.asfortranarray(a)
    if how == "backwards" and a.ndim:
        return a[::-1].copy()[::-1]
    return a


VIEWS = ("gaps", "locked", "big endian", "columns first", "backwards")
