"""When the sanitizers and the tests under Ray have last passed: tests/sanitizers.tsv, which `./dev sanitize --record`
and tools/nightly write.

    python tools/sanitizers.py              shows the record
    python tools/sanitizers.py due          prints the sanitizer that must run now, or nothing
    python tools/sanitizers.py record NAME  writes that NAME has passed at this commit

A sanitizer is due when its sources have changed on more than DAYS days since its last run. A test fails when the
sources of a check have changed by more commits than LIMITS allows.
"""
import os
import sys
from typing import List, NamedTuple, Optional

import commits

TABLE = os.path.join(commits.ROOT, "tests", "sanitizers.tsv")
NAMES = ("asan", "tsan")
PASSED = "passed"
SOURCES = ["src", "plugins", "python/bindings", "tests/cpp"]
DAYS = 2


class Limit(NamedTuple):
    commits: int
    sources: List[str]
    command: str                        # which runs the check and writes the record


#: Check -> when its record is too old.
LIMITS = {
    "asan": Limit(300, SOURCES, "./dev sanitize --record asan"),
    "tsan": Limit(300, SOURCES, "./dev sanitize --record tsan"),
    "ray": Limit(20, ["python/anabranch/" + name for name in ("_ray.py", "_processes.py", "launch.py")],
                 "tools/nightly")}


class Run(NamedTuple):
    name: str
    commit: str
    date: str
    result: str


def read(path: str = TABLE) -> List[Run]:
    with open(path, encoding="utf-8") as file:
        return [Run(*line.rstrip("\n").split("\t")) for line in file if not line.startswith("#")]


def is_due(run: Run) -> bool:
    """Also where the commit of its last run is not known, as in a shallow clone."""
    return (run.result != PASSED or not commits.is_known(run.commit)
            or commits.days_of_changes(run.commit, SOURCES) > DAYS)


def due(runs: List[Run]) -> Optional[Run]:
    """Of those that are due the one that has waited longest."""
    def waits(run: Run) -> tuple:
        known = run.result == PASSED and commits.is_known(run.commit)
        return not known, commits.changes(run.commit, SOURCES) if known else 0

    return max((run for run in runs if run.name in NAMES and is_due(run)), key=waits, default=None)


def record(name: str, path: str = TABLE) -> None:
    runs = [run for run in read(path) if run.name != name] + [Run(name, commits.head(), commits.today(), PASSED)]
    with open(path, encoding="utf-8") as file:
        head = [line for line in file if line.startswith("#")]
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(head + ["\t".join(run) + "\n" for run in sorted(runs)])


def show(run: Run) -> str:
    if not commits.is_known(run.commit):
        return "%s: %s at commit %s, %s, which is not in this clone" % (run.name, run.result, run.commit, run.date)
    sources = LIMITS[run.name].sources
    return "%s: %s at commit %s, %s; since then %d commits on %d days" % (
        run.name, run.result, run.commit, run.date, commits.changes(run.commit, sources),
        commits.days_of_changes(run.commit, sources))


def main(command: str = "show", name: str = "") -> None:
    if command == "record":
        record(name)
    elif command == "due":
        found = due(read())
        print(found.name if found else "")
    else:
        print("\n".join(map(show, read())))


if __name__ == "__main__":
    main(*sys.argv[1:])
