"""Random cases of single operators, run here and in an installed PaddlePaddle 1.8.5: see README.md.

    BENCH_FLUID18_PYTHON=/path/to/python tools/differential/run.py --count 20 --ledger build/differential.jsonl
"""
import argparse
import collections
import json
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases  # noqa: E402
from processes import Engine  # noqa: E402
from judge import DISAGREE, VERDICTS, judge  # noqa: E402
from vary import vary  # noqa: E402

VARIABLE = "BENCH_FLUID18_PYTHON"
#: An operator of the original that has died or hung this often is not asked again: each time costs seconds.
PATIENCE = 10


def drawn(op, number, known):
    """The case of this number: the first ones as tests/ops has them."""
    r = random.Random("differential/%s/%d" % (op, number))
    if number < len(known) and number < 4:
        return cases.copied(known[number * len(known) // min(len(known), 4)])
    return vary(r, cases.copied(r.choice(known)))


class Engines:
    def __init__(self, python, hang_s):
        self.theirs = Engine(python, "paddle.fluid", perturb=17, hang_s=hang_s)
        self.again = Engine(python, "paddle.fluid", perturb=201, hang_s=hang_s)
        self.ours = Engine(sys.executable, "anabranch.fluid", paths=[os.path.join(cases.ROOT, "python")], perturb=99)

    def judged(self, case, deaths=0):
        """(verdict, why, how far the original came, how far we came); None: the original does not have the operator."""
        data = cases.sent(case)
        case = dict(case, outs=data["outs"])
        theirs = self.theirs.run(data) if deaths < PATIENCE else {"stage": "hangs", "outs": {}, "grads": None}
        if theirs.get("error", "").endswith("has not been registered."):
            return None
        ours = self.ours.run(data)
        return judge(case, theirs, lambda: self.again.run(data), ours) + (theirs["stage"], ours["stage"])

    def close(self):
        for engine in (self.theirs, self.again, self.ours):
            if engine.child is not None:
                engine.close()


def of_op(engines, op, numbers):
    known, deaths = cases.seeds(op), 0
    for number in numbers if known else ():
        case = drawn(op, number, known)
        got = engines.judged(case, deaths)
        if got is None:
            return
        deaths += got[2] in ("dies", "hangs")
        yield dict(op=op, number=number, verdict=got[0], why=got[1], theirs=got[2], ours=got[3],
                   changes=case["changes"])


def table(rows):
    """The counts of each operator as text."""
    counts = collections.OrderedDict()
    for row in rows:
        counts.setdefault(row["op"], collections.Counter())[row["verdict"]] += 1
    lines = ["| operator | " + " | ".join(VERDICTS) + " |", "|---" * (len(VERDICTS) + 1) + "|"]
    for op in sorted(counts):
        lines.append("| %s | %s |" % (op, " | ".join(str(counts[op][v]) for v in VERDICTS)))
    total = sum(counts.values(), collections.Counter())
    lines.append("| %d operators | %s |" % (len(counts), " | ".join(str(total[v]) for v in VERDICTS)))
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ops", nargs="*")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--ledger", default="")
    parser.add_argument("--table", default="")
    parser.add_argument("--hang", type=int, default=20, help="seconds after which the original hangs")
    given = parser.parse_args()
    python = os.environ.get(VARIABLE)
    if not python:
        print("skipped: %s does not name an interpreter with paddlepaddle 1.8.5" % VARIABLE)
        return 0
    from anabranch import _core

    ops = given.ops or cases.op_types(set(_core.op_types()))
    engines, rows = Engines(python, given.hang), []
    ledger = open(given.ledger, "w") if given.ledger else None
    for op in ops:
        for row in of_op(engines, op, range(given.first, given.first + given.count)):
            rows.append(row)
            if ledger:
                ledger.write(json.dumps(row) + "\n")
                ledger.flush()
            if row["verdict"] == DISAGREE and not ledger:
                print(row["op"], row["number"], row["changes"], row["why"])
    engines.close()
    text = table(rows)
    if given.table:
        with open(given.table, "w") as f:
            f.write(text)
    print(text if given.ops or not given.table else text.splitlines()[-1])
    return any(row["verdict"] == DISAGREE for row in rows)


if __name__ == "__main__":
    sys.exit(main())
