#!/usr/bin/env python3
"""Hostile trials (README.md): trials.py [FAMILY[:NAME,NAME]...] [--count N] [--minutes M] [--ledger FILE]

Goes on where the ledger ends. Prints each finding, and at the end a table of the ledger at today's sources; ends with
status 1 when there is a finding in it.
"""

import argparse
import importlib
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
from host import Host  # noqa: E402
from trial_ledger import FAMILIES, Ledger  # noqa: E402

CHUNK = 100
SHOWN = 4  # findings of a chunk that are printed; the ledger has all
MOST_CRASHES = 10  # of one name: after that the rest of its trials is skipped


def work(ledger, host, chosen, count, deadline):
    for family, only in chosen:
        module = importlib.import_module(family)
        for name in only or module.names():
            whole = module.COUNT if isinstance(module.COUNT, int) else module.COUNT[name]
            todo = min(count or whole, whole)
            done, crashes = ledger.done(family, name)
            while done < todo and crashes < MOST_CRASHES:
                if time.time() > deadline:
                    return
                results = list(host.trials(family, name, done, min(CHUNK, todo - done)))
                for number, verdict, text in [r for r in results if r[1].isupper()][:SHOWN]:
                    print("%s %s %s %d: %s" % (verdict, family, name, number, text[:1500]), flush=True)
                ledger.add(family, name, done, results)
                done += len(results)
                crashes += sum(verdict in ("CRASH", "HANG") for _, verdict, _ in results)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", default=list(FAMILIES))
    parser.add_argument("--count", type=int, help="trials of each name; default: each family's own number")
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--ledger", default=os.path.join(HERE, "..", "..", "build", "trials.jsonl"))
    arguments = parser.parse_args()
    chosen = [(f.split(":")[0], f.split(":")[1].split(",") if ":" in f else None) for f in arguments.families]
    ledger = Ledger(arguments.ledger)
    with Host() as host:
        work(ledger, host, chosen, arguments.count, time.time() + 60 * arguments.minutes)
    print(ledger.table())
    return ledger.findings() > 0


if __name__ == "__main__":
    sys.exit(main())
