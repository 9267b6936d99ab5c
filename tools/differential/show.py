"""Shows cases and what both engines make of them: show.py [--seed SEED] OPERATOR:NUMBER[:DRAW] ..."""

import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases  # noqa: E402
from drawing import Drawing  # noqa: E402
from run import SEED, VARIABLE, Engines  # noqa: E402

from engine import ARRAY, unpacked  # noqa: E402


def text(value):
    if value is None or value[0] == ARRAY:
        return str(value)
    return "%s %s %s %s" % (value[0], value[1][:2], unpacked(value[1]).ravel()[:24], value[2:])


def show(engines, op, number, draw, seed):
    case = Drawing(engines, op, seed).case(number, draw)
    print("%s:%d:%d %s\n  %s" % (op, number, draw, case["changes"], case["attrs"]))
    for slot, names in case["ins"].items():
        for name in names:
            v = case["vars"][name]
            print("  in", slot, name, v["kind"], {k: v[k] for k in ("lod", "rows", "height") if v.get(k)})
            print("     ", v["value"] is not None and (v["value"].dtype, v["value"].shape, v["value"].ravel()[:24]))
    for title, engine in (("1.8.5", engines.theirs), ("here", engines.ours)):
        record = engine.run(cases.sent(case), engines.hang_s)
        print(" ", title, record["stage"], record.get("error", ""))
        for name, value in list(record["outs"].items()) + list((record["grads"] or {}).items()):
            print("    ", name, text(value))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="+", metavar="OPERATOR:NUMBER[:DRAW]")
    parser.add_argument("--seed", default=SEED, help="what the cases were drawn from")
    given = parser.parse_args()
    if VARIABLE not in os.environ:
        print("skipped: %s does not name an interpreter with paddlepaddle 1.8.5" % VARIABLE)
        return
    engines = Engines(os.environ[VARIABLE], 20)
    for name in given.cases:
        op, number, draw = (name + ":0").split(":")[:3]
        show(engines, op, int(number), int(draw), given.seed)
    engines.close()


if __name__ == "__main__":
    main()
