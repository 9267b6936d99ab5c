"""Where the measured figures of the pages come from: docs/figures.json.

    python tools/figures.py               shows each record with its age
    python tools/figures.py record NAME   writes that the command of NAME has been run at this commit, today

On the pages, a figure stands between <!-- measured NAME --> and <!-- /measured -->, with its command, commit and date.
All other numbers with a unit are limits, defaults and the like, which tests/stated_numbers.tsv lists.
"""
import glob
import json
import os
import re
import sys
from typing import Dict, Iterator, List, Tuple

import commits

FILE = os.path.join(commits.ROOT, "docs", "figures.json")
STATED = os.path.join(commits.ROOT, "tests", "stated_numbers.tsv")
COMMITS, DAYS = 200, 60
PAGES = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "RELEASING.md", "ARCHITECTURE.md", "CHANGELOG.md",
         "benchmarks/RESULTS.md"]
#: Written from the code by a command that a test runs again, or about 1.8.5.
GENERATED = ("docs/differences.md", "docs/absent.md", "docs/reference", "docs/classes", "docs/coverage.md",
             "docs/operators", "docs/understand/measured.md")
BEGIN = re.compile(r"^<!-- (?:measured (\w+)|figures) -->$", re.M)
END = re.compile(r"^<!-- /(?:measured|figures) -->$", re.M)
UNITS = "%|[kMG]i?B|bytes|[mun]s|seconds?|minutes?|hours?|s|times|[kM]"
NUMBER = re.compile(r"(?<![\w.,/-])\d[\d.,]*(?:(?: | to \d[\d.,]* ?)?(?:%s)| of (?:the )?\d[\d.,]*)(?![\w-])" % UNITS)


def read() -> Dict[str, Dict]:
    """Of a record with a page, that page says the commit and the date, because its command writes it."""
    with open(FILE, encoding="utf-8") as file:
        found = json.load(file)
    for record in found.values():
        if "page" in record:
            text = text_of(record["page"])
            record["commit"] = re.search(r"^- commit: (\w+)", text, re.M).group(1)  # type: ignore[union-attr]
            record["date"] = re.search(r"^- measured: (\S+)", text, re.M).group(1)  # type: ignore[union-attr]
    return found


def pages() -> List[str]:
    docs = glob.glob(os.path.join(commits.ROOT, "docs", "**", "*.md"), recursive=True)
    named = sorted(os.path.relpath(path, commits.ROOT) for path in docs)
    return PAGES + [name for name in named if not name.startswith(GENERATED)]


def text_of(page: str) -> str:
    with open(os.path.join(commits.ROOT, page), encoding="utf-8") as file:
        return file.read()


def blocks(text: str) -> Iterator[Tuple[str, str]]:
    """(name of the record, text) of each part with measured figures; the marks of the benchmark have the name speed."""
    for begin in BEGIN.finditer(text):
        end = END.search(text, begin.end())
        yield begin.group(1) or "speed", text[begin.end():end.start() if end else len(text)]


def outside(text: str) -> Iterator[str]:
    """The lines of a page without blocks, code and links."""
    for block in blocks(text):
        text = text.replace(block[1], "\n")
    fenced = False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            yield re.sub(r"`[^`]*`|\]\([^)]*\)", "", line)


def numbers(text: str) -> Iterator[str]:
    for line in outside(text):
        for found in NUMBER.finditer(line):
            yield found.group(0).strip().rstrip(".,")


def stated() -> List[Tuple[str, str, str]]:
    """(page, number, why it was not measured)."""
    with open(STATED, encoding="utf-8") as file:
        return [tuple(line.rstrip("\n").split("\t")) for line in file if not line.startswith("#")]  # type: ignore


def unsourced() -> List[str]:
    """"PAGE: NUMBER" of each number that is neither measured with a record nor stated."""
    known = {(page, number) for page, number, _ in stated()}
    return ["%s: %s" % (page, number) for page in pages() for number in dict.fromkeys(numbers(text_of(page)))
            if (page, number) not in known and page != "benchmarks/RESULTS.md"]


def lacking(name: str, block: str, record: Dict) -> List[str]:
    """The parts of its record that a block does not name."""
    said = re.sub(r"\s+", " ", block)
    return [key for key in ("command", "commit", "date") if key not in record.get("elsewhere", ()) and
            record[key] not in said]


def too_old(record: Dict) -> bool:
    """``overdue_until``: the date until which figures that are too old may stay, because they are being measured."""
    if record.get("overdue_until") and commits.days_since(record["overdue_until"]) <= 0:
        return False
    return commits.changes(record["commit"], record["code"]) > COMMITS or commits.days_since(record["date"]) > DAYS


def show(name: str, record: Dict) -> str:
    return "%-14s %s at %s: %d commits and %d days ago: %s" % (
        name, record["date"], record["commit"], commits.changes(record["commit"], record["code"]),
        commits.days_since(record["date"]), record["command"])


def record_now(name: str, path: str = FILE) -> None:
    with open(path, encoding="utf-8") as file:
        found = json.load(file)
    found[name].update(commit=commits.head(), date=commits.today())
    found[name].pop("overdue_until", None)
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["record"]:
        record_now(sys.argv[2])
    for one, of in read().items():
        print(show(one, of))
