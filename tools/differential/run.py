"""Random cases of single operators, run here and in an installed PaddlePaddle 1.8.5: see README.md.

BENCH_FLUID18_PYTHON=/path/to/python tools/differential/run.py --count 20 --ledger build/differential.jsonl
"""

import argparse
import collections
import concurrent.futures
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases  # noqa: E402
from drawing import Drawing  # noqa: E402
from judge import difference, judge  # noqa: E402
from ledger import DISAGREE, VERDICTS, Ledger, table  # noqa: E402
from processes import Engine  # noqa: E402

VARIABLE = "BENCH_FLUID18_PYTHON"
#: An operator of the original that has hung this often gets IMPATIENT_S seconds instead of --hang.
PATIENCE, IMPATIENT_S = 3, 3
#: The default seed of cases.
SEED = "differential"


#: ``theirs``, ``ours``: records; ``data``: the case as it was sent.
Judged = collections.namedtuple("Judged", "verdict why differs theirs ours case data")


class Engines:
    def __init__(self, python, hang_s):
        self.theirs = Engine(python, "paddle.fluid", perturb=17)
        self.again = Engine(python, "paddle.fluid", perturb=201)
        self.ours = Engine(sys.executable, "anabranch.fluid", paths=[os.path.join(cases.ROOT, "python")], perturb=99)
        self.hang_s = hang_s
        self.parallel = concurrent.futures.ThreadPoolExecutor(1)

    def judged(self, case, hangs=0):
        """None: the original does not have the operator."""
        data = cases.sent(case)
        case = dict(case, outs=data["outs"])
        patience_s = self.hang_s if hangs < PATIENCE else min(self.hang_s, IMPATIENT_S)
        running = self.parallel.submit(self.theirs.run, data, patience_s)
        ours = self.ours.run(data, self.hang_s)
        theirs = running.result()
        if theirs.get("error", "").endswith("has not been registered."):
            return None
        asked = [lambda other, engine=engine: engine.run(other, patience_s) for engine in (self.theirs, self.again)]
        return Judged(*judge(case, data, theirs, ours, *asked), theirs, ours, case, data)

    def original_computes(self, case):
        """Whether Fluid 1.8.5 gives outputs and gradients, and the same ones with other numbers in unwritten memory."""
        data = cases.sent(case)
        case = dict(case, outs=data["outs"])
        first = self.theirs.run(data, IMPATIENT_S)
        if first["stage"] != "done":
            return False
        second = self.again.run(data, IMPATIENT_S)
        return not difference(case, first, second) and not difference(case, second, first)

    def close(self):
        self.parallel.shutdown()
        for engine in (self.theirs, self.again, self.ours):
            engine.close()


def of_op(engines, op, numbers, seed=SEED):
    drawing, hangs = Drawing(engines, op, seed), 0
    for number in numbers if drawing.known else ():
        passed = collections.Counter()
        for draw in range(drawing.draws(number)):
            got = engines.judged(drawing.case(number, draw), hangs)
            if got is None:
                return
            hangs += got.theirs["stage"] == "hangs"
            if got.verdict == DISAGREE or got.theirs["stage"] not in ("build", "run"):
                break
            passed[got.verdict] += 1
        else:
            passed[got.verdict] -= 1  # the last draw counts
        yield _row(op, number, seed, draw, +passed, got)


def _row(op, number, seed, draw, passed, got):
    """The line of the ledger. ``passed``: the verdicts on the draws before the one that counts."""
    stages = {"theirs": got.theirs["stage"], "ours": got.ours["stage"]}
    told = {"verdict": got.verdict, "why": got.why, "differs": got.differs}
    place = {"op": op, "number": number, "seed": seed, "draw": draw, "passed": passed}
    return dict(place, changes=got.case["changes"], **told, **stages)


def arguments_of_all(doc):
    """The arguments of every tool here that runs Fluid 1.8.5."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("ops", nargs="*")
    parser.add_argument("--families", default="", help="operators of these folders of src/ops, with commas between")
    parser.add_argument("--share", default="0/1", help="0/2 and 1/2: every second operator, for two runs at once")
    parser.add_argument("--hang", type=int, default=20, help="seconds after which the original hangs")
    return parser


def arguments():
    parser = arguments_of_all(__doc__)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--ledger", default="", help="goes on where this file ends")
    parser.add_argument("--seed", default=SEED, help="what cases are drawn from; a ledger has one")
    parser.add_argument("--again", nargs="*", default=[], choices=VERDICTS, help="cases of the ledger to run again")
    parser.add_argument("--table", default="")
    return parser.parse_args()


def chosen(given):
    """The types of operators to run."""
    from anabranch import _core

    families = set(filter(None, given.families.split(",")))
    ops = given.ops or cases.op_types(set(_core.op_types()))
    ops = [op for op in ops if not families or _core.op_info(op)["family"] in families]
    share, of = map(int, given.share.split("/"))
    return ops[share::of]


def main():
    given = arguments()
    python = os.environ.get(VARIABLE)
    if not python:
        print("skipped: %s does not name an interpreter with paddlepaddle 1.8.5" % VARIABLE)
        return 0
    ops, engines, ledger = chosen(given), Engines(python, given.hang), Ledger(given.ledger)
    ledger.drop(given.again)
    for op in ops:
        numbers = [n for n in range(given.first, given.first + given.count) if (op, n) not in ledger.rows]
        for row in of_op(engines, op, numbers, given.seed) if numbers else ():
            ledger.add(row)
            if row["verdict"] == DISAGREE and not given.ledger:
                print(row["op"], row["number"], row["changes"], row["why"])
    engines.close()
    rows = ledger.of(ops)
    text = table(rows)
    if given.table:
        with open(given.table, "w") as f:
            f.write(text)
    print(text if given.ops or not given.table else text.splitlines()[-1])
    return any(row["verdict"] == DISAGREE for row in rows)


if __name__ == "__main__":
    sys.exit(main())
