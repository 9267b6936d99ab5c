"""Plants defects in a copy of the sources and counts which of them the tests find.

    python tools/mutants build                  writes, compiles build/mutants; which tests reach which defect is noted
    python tools/mutants run --named            runs the tests that reach a defect, for each of the list in named.py;
                                                status 1 unless all of them are found
    python tools/mutants run --seeded           the same for 400 that a seed has chosen
    python tools/mutants report                 found, survived, not reached, judged equivalent, per folder
    python tools/mutants guarantees             takes the subject of each row of docs/understand/guarantees.md away

A run goes on where the last one ended (build/mutants/ledger.jsonl). After a new test: `record`, then `run --again`.
"""
import argparse
import os
import sys
import time

import compiling
import outcomes
import promises
import reach
import runner
import tree

SEED = 20


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tools/mutants", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["build", "record", "run", "report", "guarantees"])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--named", action="store_true")
    parser.add_argument("--seeded", action="store_true")
    parser.add_argument("--again", action="store_true", help="those that were not found, too")
    parser.add_argument("--only", type=int, nargs="*", help="numbers of defects")
    parser.add_argument("--python", action="store_true", help="guarantees: without the defects that must be compiled")
    parser.add_argument("--paths", nargs="*", default=[], help="record: these files of tests in addition")
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--limit", type=float, default=runner.LIMIT_S, help="seconds of tests a defect may cost")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    if args.command == "guarantees":
        sys.exit(1 if promises.run(args.jobs, args.only, args.python) else 0)
    if args.command == "build":
        compiling.build(SEED, args.jobs, sys.executable)
    state = tree.load_built(args.command)
    if args.command in ("build", "record"):
        tree.generate(SEED)
        reach.record(args.jobs, args.paths)
        return
    book = outcomes.Ledger()
    both = args.named == args.seeded
    chosen = [s for s in state["sites"] if both or (s["kind"] == "named") == args.named]
    if args.only is not None:
        chosen = [s for s in chosen if s["number"] in args.only]
    if not chosen:
        sys.exit("tools/mutants %s: the options select none of the %d planted defects" %
                 (args.command, len(state["sites"])))
    if args.command == "report":
        print(outcomes.report(chosen, book))
        return
    if args.again:
        book.forget(["survived", "not reached"])
    runner.Runner(state, book, args.limit).run(chosen, args.jobs, time.time() + 60 * args.minutes)
    print(outcomes.report(chosen, book))
    missed = [s for s in chosen if s["kind"] == "named" and outcomes.outcome(s, book, {}) != "found"]
    sys.exit("tools/mutants run: %d named defects are not found" % len(missed) if missed else 0)


main()
