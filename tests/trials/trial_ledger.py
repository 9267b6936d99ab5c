"""The trials that ran: a line of JSON per hundred trials. Rows of other sources or another build do not count."""

import collections
import functools
import hashlib
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sanitized import SANITIZED  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
# Code that every op runs through; the engine and the passes are the subject of other families.
BELOW_OPS = ("src/base", "src/core", "src/ir", "src/opdef", "src/exec", "src/autodiff")
OPS = os.path.join("src", "ops")
# family -> the sources that its trials run through, besides the tests' own; of OPS the folders that name the op
FAMILIES = {
    "single_ops": (*BELOW_OPS, OPS),
    "aliased": (*BELOW_OPS, "src/graph", OPS),
    "layers": ("src", "python"),
    "model_files": ("src", "python"),
    "small_files": ("src/base", "src/core", "src/io", "src/sparse", "python"),
    "chains": ("src/base", "src/core", "src/io", "src/sparse", "src/engine", "python"),
    "passes_off": ("src",),
    "inplace": ("src",),
    "loops": ("src", "python"),
    "readers": ("src/base", "src/core", "src/data", "python"),
    "raw_rows": ("src/base", "src/core", "src/data", "src/engine", "python"),
}


@functools.lru_cache(maxsize=None)
def texts(folder):
    """{path: bytes} of the sources there."""
    found = {}
    for where, _, files in os.walk(os.path.join(ROOT, folder)):
        for name in files:
            if name.endswith((".cc", ".h", ".py", ".proto")):
                with open(os.path.join(where, name), "rb") as f:
                    found[os.path.relpath(f.name, ROOT)] = f.read()
    return found


@functools.lru_cache(maxsize=None)
def folders_of_op(name):
    """Folders of ops in which a file names the op, or that all ops share."""
    word = re.compile(rb"\b%s\b" % name.replace("_grad", "").encode())
    named = {os.path.dirname(path) for path, text in texts(OPS).items() if word.search(text)}
    return sorted(named | {os.path.join(OPS, "declare"), os.path.join(OPS, "kernels")})


@functools.lru_cache(maxsize=None)
def hash_of(family, name):
    folders = [f for f in FAMILIES[family] if f != OPS]
    if OPS in FAMILIES[family]:
        folders += folders_of_op(name)
    digest = hashlib.sha256()
    for folder in folders:
        for path, text in sorted(texts(folder).items()):
            digest.update(path.encode() + b"\0" + text)
    return digest.hexdigest()[:12]


class Ledger:
    def __init__(self, path):
        self.path, self.rows = path, []
        self.build = "sanitized" if SANITIZED else "release"
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
            sources=hash_of(family, name),
            verdicts=collections.Counter(verdict.split()[0] for _, verdict, _ in results),
            findings=[[number, verdict, text[:400]] for number, verdict, text in results if verdict.isupper()],
        )
        self.rows.append(row)
        with open(self.path, "a") as f:
            f.write(json.dumps(row) + "\n")

    def current(self):
        ours = [r for r in self.rows if r["build"] == self.build and r["family"] in FAMILIES]
        return [r for r in ours if r["sources"] == hash_of(r["family"], r["name"])]

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
