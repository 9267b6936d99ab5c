"""Values that kernels refuse, on the CPU and on a device: run as a program, it prints a line for each that a device
takes or words otherwise. After each the executor goes on with allowed values, and gives what the CPU gives for them.
"""
import sys

import numpy as np
import op_case
from op_case import Case, Run, array_of

import anabranch.fluid as fluid

TABLE = np.arange(12.0, dtype="float32").reshape(4, 3)
CHANCES = np.full((3, 4), 0.25, "float32")


def ids(*values, dtype="int64", shape=None):
    """Indices, [n] unless ``shape`` is given."""
    return np.array(values, dtype).reshape(shape or (len(values),))


#: (operator, inputs, attributes, slot, values that are refused, slots that have a gradient)
FAULTS = [
    *[(op, {"X": ids(7, 8, 9, dtype=dtype), "Y": ids(2, 3, 4, dtype=dtype)}, {}, "Y", ids(2, 0, 4, dtype=dtype), ())
      for op in ("elementwise_div", "elementwise_mod", "elementwise_floordiv") for dtype in ("int32", "int64")],
    *[(op, {"W": TABLE, "Ids": ids(0, 3, 1, shape=shape)}, {}, "Ids", ids(0, wrong, 1, shape=shape), ())
      for op, shape in (("lookup_table", (3, 1)), ("lookup_table_v2", (3,))) for wrong in (4, -1, 10**12)],
    ("lookup_table_v2", {"W": TABLE, "Ids": ids(0, 3, 2)}, {"padding_idx": 2}, "Ids", ids(0, 4, 2), ()),
    *[("gather", {"X": TABLE, "Index": ids(0, 3, dtype=dtype)}, {}, "Index", ids(0, wrong, dtype=dtype), ("X",))
      for dtype in ("int32", "int64") for wrong in (4, -1)],
    ("gather_nd", {"X": TABLE, "Index": ids(0, 1, 3, 2, shape=(2, 2))}, {}, "Index", ids(0, 1, 3, 3, shape=(2, 2)),
     ("X",)),
    *[("scatter", {"X": TABLE, "Ids": ids(0, 3), "Updates": TABLE[:2]}, {"overwrite": over}, "Ids", ids(0, wrong),
       ("X",))
      for over in (True, False) for wrong in (4, -1)],
    ("scatter_nd_add", {"X": TABLE, "Index": ids(0, 3, shape=(2, 1)), "Updates": TABLE[:2]}, {}, "Index",
     ids(0, -1, shape=(2, 1)), ("X",)),
    *[("index_select", {"X": TABLE, "Index": ids(0, 2)}, {"dim": 1}, "Index", ids(0, wrong), ("X",))
      for wrong in (3, -1)],
    ("index_sample", {"X": TABLE, "Index": ids(0, 2, 1, 0, shape=(4, 1))}, {}, "Index", ids(0, 2, 3, 0, shape=(4, 1)),
     ("X",)),
    ("multiplex", {"Ids": ids(1, 0, 1, 0, shape=(4, 1)), "X": [TABLE, TABLE + 1]}, {}, "Ids",
     ids(1, 0, 2, 0, shape=(4, 1)), ()),
    ("shard_index", {"X": ids(1, 9, 5, shape=(3, 1))}, {"index_num": 10, "nshards": 2, "shard_id": 1}, "X",
     ids(1, 10, 5, shape=(3, 1)), ()),
    *[(op, {"X": ids(1, 0, 3, shape=(3, 1))}, {"depth": 4}, "X", ids(1, wrong, 3, shape=(3, 1)), ())
      for op in ("one_hot", "one_hot_v2") for wrong in (4, -1)],
    *[(op, {"X": CHANCES, "Label": ids(1, 0, 3, shape=(3, 1))}, {}, "Label", ids(1, wrong, 3, shape=(3, 1)), ("X",))
      for op in ("cross_entropy", "cross_entropy2") for wrong in (4, -1)],
    *[("softmax_with_cross_entropy", {"Logits": CHANCES, "Label": ids(1, 0, 3, shape=(3, 1))}, {}, "Label",
       ids(1, wrong, 3, shape=(3, 1)), ("Logits",)) for wrong in (4, -1)],
]


def outcome(run, weights, feed=None):
    """(what a run gives, None), or (None, its error)."""
    try:
        return run(feed=feed, weights=weights), None
    except fluid.core.EnforceNotMet as e:
        return None, e



def culprit(error):
    """The line of an error that names the operator and where the program made it."""
    return next(line for line in str(error).splitlines() if "made at" in line)


def findings(op, inputs, attrs, slot, wrong, grad):
    """The difference for one line of FAULTS."""
    c = Case(op, inputs, attrs, None, grad, None, ("float32",), {}, None, 0, 0, False, op)
    runs = {}
    for place in (fluid.CPUPlace(), fluid.CUDAPlace(0)):
        op_case.PLACE = place
        run = Run(c, inputs, grad=grad)
        weights = run.weight_feeds(Run(c, inputs)()[0], "float32") if grad else {}
        before, failed = outcome(run, weights)
        assert failed is None, failed
        name = next(n for n, s in run.slots.items() if s == slot)
        _, error = outcome(run, weights, {name: wrong})
        after, failed = outcome(run, weights)
        assert failed is None, failed
        for key in before[0]:
            np.testing.assert_array_equal(array_of(after[0][key]), array_of(before[0][key]))
        runs[place] = error, after
    if error is not None and name not in str(error).splitlines()[0]:
        yield f"it does not name {name}: {str(error).splitlines()[0]}"
    (cpu, there), (device, also) = runs.values()
    for key in there[0]:
        np.testing.assert_allclose(array_of(also[0][key]), array_of(there[0][key]), rtol=1e-6)
    for a, b in zip(there[1], also[1]):
        np.testing.assert_allclose(b, a, rtol=1e-6)
    if cpu is None or device is None:
        yield f"refused by the CPU: {cpu is not None}, by the device: {device is not None}"
        return
    if device.kind != cpu.kind or type(device) is not type(cpu):
        yield f"kind {device.kind}, not {cpu.kind}"
    if culprit(device) != culprit(cpu):
        yield f"{culprit(device)}, not {culprit(cpu)}"
    if "reports fault" in str(device):
        yield f"it has no words: {device}"


def main():
    op_case.ON_CPU = None
    count = 0
    for op, inputs, attrs, slot, wrong, grad in FAULTS:
        count += 1
        for what in findings(op, inputs, attrs, slot, wrong, grad):
            print(f"WRONG {op} {slot} {wrong.ravel().tolist()}: {what}", flush=True)
    print(f"{count} values tried")


if __name__ == "__main__":
    sys.exit(main())
