"""The ledger of a run: a line of JSON for each case, appended as it is judged, so that a run goes on where it ended.

tools/differential/ledger.py build/differential.jsonl                 the table
tools/differential/ledger.py build/differential.jsonl --rules         which rule hides how many cases of which operator
"""

import argparse
import collections
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
VERDICTS = AGREE, REFUSE, DIES, LISTED, DISAGREE = "agree", "both refuse", "original dies", "listed", "DISAGREE"


class Ledger:
    """Rows by operator and number; ``path`` "": kept in memory only."""

    def __init__(self, path=""):
        self.path, self.rows = path, {}
        if path and os.path.exists(path):
            with open(path) as f:
                for line in f:
                    self._keep(line)

    def _keep(self, line):
        try:
            row = json.loads(line)
        except ValueError:  # the end of a run that was killed
            return
        self.rows[row["op"], row["number"]] = row

    def drop(self, verdicts):
        self.rows = {key: row for key, row in self.rows.items() if row["verdict"] not in verdicts}

    def add(self, row):
        self.rows[row["op"], row["number"]] = row
        if self.path:
            with open(self.path, "a") as f:
                f.write(json.dumps(row) + "\n")

    def of(self, ops=()):
        return [self.rows[key] for key in sorted(self.rows) if not ops or key[0] in ops]


def table(rows):
    """The counts of each operator as text."""
    counts = collections.defaultdict(collections.Counter)
    for row in rows:
        counts[row["op"]][row["verdict"]] += 1
    lines = ["| operator | " + " | ".join(VERDICTS) + " |", "|---" * (len(VERDICTS) + 1) + "|"]
    for op in sorted(counts):
        lines.append("| %s | %s |" % (op, " | ".join(str(counts[op][v]) for v in VERDICTS)))
    total = sum(counts.values(), collections.Counter())
    lines.append("| %d operators | %s |" % (len(counts), " | ".join(str(total[v]) for v in VERDICTS)))
    return "\n".join(lines) + "\n"


def rules(rows):
    """Rule and operator, and how many cases they have."""
    found = collections.Counter((row["why"], row["op"]) for row in rows if row["verdict"] == LISTED)
    return "".join("%5d  %s: %s\n" % (n, op, rule) for (rule, op), n in sorted(found.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ledgers", nargs="+")
    parser.add_argument("--rules", action="store_true")
    given = parser.parse_args()
    rows = [row for path in given.ledgers for row in Ledger(path).of()]
    print((rules if given.rules else table)(rows), end="")


if __name__ == "__main__":
    main()
