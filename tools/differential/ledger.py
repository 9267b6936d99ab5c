"""The ledger of a run: a line of JSON for each case, appended as it is judged, so that a run goes on where it ended.

tools/differential/ledger.py build/differential.jsonl                 the table
tools/differential/ledger.py build/differential.jsonl --rules         which rule hides how many cases of which operator
tools/differential/ledger.py build/differential.jsonl --page          docs/differential.md
"""

import argparse
import collections
import datetime
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


PAGE = """# Operators beside 1.8.5

Random cases of every operator, run here and in PaddlePaddle 1.8.5, forward and gradient: %d cases of %d operators, at
least %d of each, drawn from the seed `%s` on %s. Operators that the original has for GPUs only, and those whose work
is outside of their program (sockets, readers, Python functions, printing), are not among them. Written by
`tools/differential/ledger.py --page`; `tools/differential` says what a case is, and runs them again.

Where both run, they agree in value (1e-5 of the larger of the number and the root mean square, in float32), shape,
dtype and sequences. The original dies where it crashes, hangs, asks for nonsensical memory, or reads memory that
nobody wrote; here such a case raises, or gives what NumPy gives where there is a reference. A row of
[differences](differences.md) stands for each listed case.

%s"""


def page(rows, today=None):
    """The page of the documentation about a whole run."""
    seeds = sorted({row["seed"] for row in rows})
    if len(seeds) != 1:
        raise SystemExit("a page is about one seed, the ledgers have %s" % ", ".join(seeds))
    counts = collections.Counter(row["op"] for row in rows)
    today = today or datetime.date.today().isoformat()
    return PAGE % (len(rows), len(counts), min(counts.values()), seeds[0], today, table(rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ledgers", nargs="+")
    parser.add_argument("--rules", action="store_true")
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    rows = [row for path in given.ledgers for row in Ledger(path).of()]
    print((rules if given.rules else page if given.page else table)(rows), end="")


if __name__ == "__main__":
    main()
