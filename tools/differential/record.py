"""Records a sample that agrees: tests/python/data/differential.json.xz, replayed by tests/python/test_differential.py.

    BENCH_FLUID18_PYTHON=/path/to/python PYTHONPATH=python .venv/bin/python tools/differential/record.py [OPERATOR ...]

With operators only their cases are recorded anew. Numbers of inputs are rounded to sixty-fourths, so that they pack
well; of large results four sums with signs stand for the numbers.
"""

import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases  # noqa: E402
import numpy as np  # noqa: E402
import sample  # noqa: E402
from judge import AGREE, REFUSE, compared, judge  # noqa: E402
from run import PATIENCE, VARIABLE, Engines, drawn  # noqa: E402

CASES, TRIED, LARGEST, REFUSED = 20, 60, 160, 5


def rounded(case):
    for v in case["vars"].values():
        if v["value"] is not None and v["value"].dtype.kind == "f":
            with np.errstate(all="ignore"):
                v["value"] = (np.round(v["value"].astype("float64") * 64) / 64).astype(v["value"].dtype)
    return case


def small(case):
    arrays = [v["value"] for v in case["vars"].values() if v["value"] is not None]
    whole = all(np.all(np.isfinite(a.astype("float64"))) and np.all(np.abs(a.astype("float64")) < 500) for a in arrays)
    return whole and sum(a.size for a in arrays) <= LARGEST


def of_op(engines, op):
    known, made, refused, deaths = cases.seeds(op), [], 0, 0
    for number in range(TRIED if known else 0):
        case = rounded(drawn(op, number, known))
        if not small(case):
            continue
        data = cases.sent(case)
        theirs, ours = engines.theirs.run(data), engines.ours.run(data)
        deaths += theirs["stage"] in ("dies", "hangs")
        if deaths == PATIENCE:
            break
        verdict, _ = judge(dict(case, outs=data["outs"]), theirs, lambda: engines.again.run(data), ours)  # noqa: B023
        if verdict not in (AGREE, REFUSE) or verdict == REFUSE and refused == REFUSED:
            continue
        refused += verdict == REFUSE
        made.append([sample.short(data), sample.expected(theirs, compared(dict(case, outs=data["outs"])))])
        if len(made) == CASES:
            break
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ops", nargs="*")
    parser.add_argument("--hang", type=int, default=20)
    given = parser.parse_args()
    if VARIABLE not in os.environ:
        print("skipped: %s does not name an interpreter with paddlepaddle 1.8.5" % VARIABLE)
        return
    from anabranch import _core

    record = sample.read() if given.ops else {}
    engines = Engines(os.environ[VARIABLE], given.hang)
    for number, op in enumerate(given.ops or cases.op_types(set(_core.op_types()))):
        record[op] = of_op(engines, op)
        if not record[op]:
            del record[op]
        if number % 10 == 9:
            sample.write(record)  # this much is kept, whatever comes
    engines.close()
    sample.write(record)
    print("%d cases of %d operators" % (sum(map(len, record.values())), len(record)))


if __name__ == "__main__":
    main()
