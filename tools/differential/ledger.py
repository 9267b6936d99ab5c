"""The ledger of a run: a line of JSON for each case, appended as it is judged, so that a run goes on where it ended.

tools/differential/ledger.py build/differential.jsonl                 the table
tools/differential/ledger.py build/differential.jsonl --rules         how many cases each rule lists
tools/differential/ledger.py build/differential.jsonl --shares        the share of each verdict
tools/differential/ledger.py build/differential.jsonl --page          docs/differential.md
"""

import argparse
import collections
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import commits  # noqa: E402

VERDICTS = AGREE, REFUSE, DIES, LISTED, DISAGREE = "agree", "both refuse", "original dies", "listed", "DISAGREE"
#: Heads of columns that differ from the verdict in the ledgers.
HEADS = {REFUSE: "both raise", DIES: "1.8.5 crashes"}


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
    heads = [HEADS.get(verdict, verdict) for verdict in VERDICTS]
    lines = ["| operator | " + " | ".join(heads) + " |", "|---" * (len(VERDICTS) + 1) + "|"]
    for op in sorted(counts):
        lines.append("| %s | %s |" % (op, " | ".join(str(counts[op][v]) for v in VERDICTS)))
    total = sum(counts.values(), collections.Counter())
    lines.append("| %d operators | %s |" % (len(counts), " | ".join(str(total[v]) for v in VERDICTS)))
    return "\n".join(lines) + "\n"


def rules(rows):
    """Rules and how many cases they have, the largest first, and of which operators."""
    found = collections.defaultdict(collections.Counter)
    for row in rows:
        if row["verdict"] == LISTED:
            found[row["why"]][row["op"]] += 1
    of_ops = {rule: ", ".join("%s %d" % pair for pair in ops.most_common()) for rule, ops in found.items()}
    order = sorted(found, key=lambda rule: (-sum(found[rule].values()), rule))
    return "".join("%5d  %s: %s\n" % (sum(found[rule].values()), rule, of_ops[rule]) for rule in order)


def shares(rows):
    """The share of each verdict, how many cases compare numbers, and the verdicts on draws that were passed over."""
    counts, passed = collections.Counter(row["verdict"] for row in rows), collections.Counter()
    for row in rows:
        passed.update(row.get("passed", {}))
    said = ["%s %.1f %%" % (HEADS.get(v, v), 100 * counts[v] / len(rows)) for v in VERDICTS]
    numbers = _with_numbers(rows).values()
    said.append("numbers %.1f %%, at least %d of an operator" % (100 * sum(numbers) / len(rows), min(numbers)))
    said.append("drawn again: %s" % ", ".join("%d %s" % (n, HEADS.get(v, v)) for v, n in passed.most_common()))
    return "%d cases: %s\n" % (len(rows), "; ".join(said))


def _with_numbers(rows):
    """Operator -> how many of its cases compare numbers: both run."""
    stopped = ("build", "run")
    counts = collections.Counter({row["op"]: 0 for row in rows})
    for row in rows:
        ran = row["theirs"] not in stopped and row["ours"] not in stopped
        counts[row["op"]] += row["verdict"] in (AGREE, LISTED) and ran
    return counts


PAGE = """# Operators compared with Fluid 1.8.5

Every operator was run in Anabranch and in PaddlePaddle Fluid 1.8.5 on random inputs. Outputs and gradients were
compared. The run had %s cases of %d operators, at least %d for each, with the seed `%s`.

<!-- measured differential -->
- command: `tools/differential/run.py`
- commit: %s
- measured: %s
<!-- /measured -->

Two groups of operators are not included: those that Fluid 1.8.5 runs on GPUs or after passes only (`cudnn_lstm`,
`rank_attention`, `c_sync_calc_stream`, `c_sync_comm_stream`, `conditional_block_infer` ...), and those that have
effects outside their program (sockets, readers, Python functions, printing). `tools/differential` defines the cases and
reruns them. `tools/differential/ledger.py --page` writes this page.

If Fluid 1.8.5 refuses a case, there are no numbers to compare. Five of six cases were therefore drawn from inputs that
are likely to be valid. While Fluid 1.8.5 refused such a case, it was drawn again, at most seven times; what Anabranch
did was not considered. A refused draw with a difference that no row lists would have been kept. The sixth case was drawn
freely, so that refusals are compared, too. There were %s refused draws:

- %s.

| column | number of cases in which |
|---|---|
| agree | both give the same shape, dtype, sequences and values; a float32 value may differ by 1e-5 times the larger of its magnitude and the root mean square of the tensor |
| both raise | both raise an error |
| 1.8.5 crashes | Fluid 1.8.5 crashes, hangs, requests an absurd amount of memory or reads uninitialized memory; Anabranch raises an error, or gives NumPy's result if there is one |
| listed | the results differ on purpose, and a row of [differences](differences.md) says how |
| DISAGREE | the results differ and no row lists the difference |

%s"""  # noqa: E501  (rows of a table)


def page(rows):
    """The page of the documentation about a whole run, which was made at this commit, today."""
    seeds = sorted({row["seed"] for row in rows})
    if len(seeds) != 1:
        raise SystemExit("a page is about one seed, the ledgers have %s" % ", ".join(seeds))
    counts, passed = collections.Counter(row["op"] for row in rows), collections.Counter()
    for row in rows:
        passed.update(row.get("passed", {}))
    told = ", ".join("%s were *%s*" % (format(n, ","), HEADS.get(v, v)) for v, n in passed.most_common())
    head = (format(len(rows), ","), len(counts), min(counts.values()), seeds[0], commits.head(), commits.today())
    return PAGE % (*head, format(sum(passed.values()), ","), told, table(rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ledgers", nargs="+")
    parser.add_argument("--rules", action="store_true")
    parser.add_argument("--shares", action="store_true")
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    rows = [row for path in given.ledgers for row in Ledger(path).of()]
    print((rules if given.rules else shares if given.shares else page if given.page else table)(rows), end="")


if __name__ == "__main__":
    main()
