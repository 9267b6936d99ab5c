"""What was tried: a line of JSON per hundred trials. Rows of other sources or another build do not count."""

import collections
import hashlib
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from sanitized import SANITIZED  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
# family -> the sources that its trials run through, besides the tests' own
FAMILIES = {
    "single_ops": ("src",),
    "aliased": ("src",),
    "layers": ("src", "python"),
    "model_files": ("src", "python"),
    "small_files": ("src/base", "src/core", "src/io", "src/sparse", "python"),
    "passes_off": ("src",),
    "inplace": ("src",),
    "readers": ("src/base", "src/core", "src/data", "python"),
}


def hash_of(folders):
    digest = hashlib.sha256()
    for folder in folders:
        for where, below, files in os.walk(os.path.join(ROOT, folder)):
            below.sort()
            for name in sorted(files):
                if name.endswith((".cc", ".h", ".py", ".proto")):
                    with open(os.path.join(where, name), "rb") as f:
                        digest.update(name.encode() + b"\0" + f.read())
    return digest.hexdigest()[:12]


class Ledger:
    def __init__(self, path):
        self.path, self.rows = path, []
        self.build = "sanitized" if SANITIZED else "release"
        self.hashes = {family: hash_of(folders) for family, folders in FAMILIES.items()}
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        if os.path.exists(path):
            with open(path) as f:
                self.rows = [json.loads(line) for line in f]

    def add(self, family, name, first, results):
        row = dict(
            build=self.build,
            family=family,
            name=name,
            first=first,
            count=len(results),
            sources=self.hashes[family],
            verdicts=collections.Counter(verdict.split()[0] for _, verdict, _ in results),
            findings=[[number, verdict, text[:400]] for number, verdict, text in results if verdict.isupper()],
        )
        self.rows.append(row)
        with open(self.path, "a") as f:
            f.write(json.dumps(row) + "\n")

    def current(self):
        return [r for r in self.rows if r["build"] == self.build and r["sources"] == self.hashes.get(r["family"])]

    def done(self, family, name):
        """(trials, crashes and hangs) so far."""
        rows = [r for r in self.current() if (r["family"], r["name"]) == (family, name)]
        return (
            max((r["first"] + r["count"] for r in rows), default=0),
            sum(r["verdicts"].get(v, 0) for r in rows for v in ("CRASH", "HANG")),
        )

    def findings(self):
        return sum(len(r["findings"]) for r in self.current())

    def table(self):
        totals = collections.defaultdict(collections.Counter)
        for r in self.current():
            totals[r["family"]].update(r["verdicts"])
        lines = ["%-12s %8s  %s (%s)" % ("family", "trials", "verdicts", self.build)]
        for family, counts in totals.items():
            said = ", ".join("%s %d" % item for item in sorted(counts.items()))
            lines.append("%-12s %8d  %s" % (family, sum(counts.values()), said))
        return "\n".join(lines)
