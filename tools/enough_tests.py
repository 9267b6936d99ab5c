"""Checks the log of a step of ./dev test: enough tests ran, and all tests that were skipped may be.

    python tools/enough_tests.py "Python tests" build/logs/3.log

tests/allowed_skips.tsv lists the reasons of pytest, and the names of C++ tests, that may be skipped. Without this
check, a machine without gRPC or a renamed marker would lose whole groups of tests in silence. ANABRANCH_SKIPS=any
accepts all skips.
"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLE = os.path.join(ROOT, "tests", "allowed_skips.tsv")

#: Step -> the least number of tests, about a twentieth below that of today.
LEAST = {"C++ tests": 850, "Python tests": 19800, "Python tests, fast": 18400, "golden records": 1400,
         "simulated devices": 280}

_COUNT = re.compile(r"^(?:=+ )?(?:\d+ failed, )?(\d+) passed|tests failed out of (\d+)|^(\d+) of \d+ passed", re.M)
_SKIPPED = re.compile(r"^SKIPPED \[\d+\] (.+)$|^\s*\d+ - (\S+) \((?:Skipped|Disabled)\)$", re.M)


def allowed():
    """List of patterns."""
    with open(TABLE, encoding="utf-8") as file:
        return [re.compile(line.split("\t")[0]) for line in file if line.strip() and not line.startswith("#")]


def faults(step, log):
    """List of sentences about the log of a step."""
    counts = [int(next(filter(None, groups))) for groups in _COUNT.findall(log)]
    found = counts[-1] if counts else 0
    if found < LEAST[step]:
        yield "%s: at least %d tests must run, got %d" % (step, LEAST[step], found)
    patterns = allowed()
    for reason in sorted({one or other for one, other in _SKIPPED.findall(log)}):
        if not any(pattern.search(reason) for pattern in patterns):
            yield "%s: skipped, but not listed in tests/allowed_skips.tsv: %s" % (step, reason)


def main(step, path):
    with open(path, encoding="utf-8", errors="replace") as file:
        found = list(faults(step, file.read()))
    if os.environ.get("ANABRANCH_SKIPS") == "any":
        found = [text for text in found if "skipped, but" not in text]
    for text in found:
        print("FAILED " + text)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
