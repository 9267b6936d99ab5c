"""Records a sample that agrees in tests/data/differential; tests/python/layers/test_differential.py replays it.

    BENCH_FLUID18_PYTHON=/path/to/python PYTHONPATH=python .venv/bin/python tools/differential/record.py [OPERATOR ...]

Other operators of their families keep their cases. Numbers of inputs are rounded to sixty-fourths, so that they pack
well; of large results four sums with signs stand for the numbers.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import numpy as np  # noqa: E402
import sample  # noqa: E402
from compare import compared  # noqa: E402
from drawing import Drawing  # noqa: E402
from ledger import AGREE, REFUSE  # noqa: E402
from run import SEED, VARIABLE, Engines, arguments_of_all, chosen  # noqa: E402

CASES, TRIED, LARGEST, REFUSED = 20, 240, 400, 5


def rounded(case):
    for v in case["vars"].values():
        if v["value"] is not None and v["value"].dtype.kind == "f":
            with np.errstate(all="ignore"):
                v["value"] = (np.round(v["value"].astype("float64") * 64) / 64 + 0.0).astype(v["value"].dtype)  # no -0
    return case


def small(case):
    arrays = [v["value"] for v in case["vars"].values() if v["value"] is not None]
    whole = all(np.all(np.isfinite(a.astype("float64"))) and np.all(np.abs(a.astype("float64")) < 500) for a in arrays)
    return whole and sum(a.size for a in arrays) <= LARGEST


def of_op(engines, op):
    drawing, made, refused, hangs = Drawing(engines, op, SEED), [], 0, 0
    for number in range(TRIED if drawing.known else 0):
        case = rounded(drawing.case(number))
        if not small(case):
            continue
        got = engines.judged(case, hangs)
        if got is None:
            break
        hangs += got.theirs["stage"] == "hangs"
        if got.verdict not in (AGREE, REFUSE) or got.verdict == REFUSE and refused == REFUSED:
            continue
        refused += got.verdict == REFUSE
        made.append([sample.short(got.data), sample.expected(got.theirs, compared(got.case))])
        if len(made) == CASES:
            break
    return made


def main():
    given = arguments_of_all(__doc__).parse_args()
    if VARIABLE not in os.environ:
        print("skipped: %s does not name an interpreter with paddlepaddle 1.8.5" % VARIABLE)
        return
    from anabranch import _core

    engines, ops = Engines(os.environ[VARIABLE], given.hang), chosen(given)
    for family in sorted({_core.op_info(op)["family"] for op in ops}):
        record = sample.read([family])
        for op in ops:
            if _core.op_info(op)["family"] == family:
                record.pop(op, None)
                made = of_op(engines, op)
                if made:
                    record[op] = made
        sample.write(family, record)  # this much is kept, also after an error
        print("%s: %d cases of %d operators" % (family, sum(map(len, record.values())), len(record)), flush=True)
    engines.close()


if __name__ == "__main__":
    main()
