"""The map from sites to tests: one run of all tests that are not slow, with nothing switched on."""
import glob
import json
import os
import shutil
import subprocess
import sys
from typing import Dict, Iterable, List, Set

import tree

MAP = os.path.join(tree.BUILD, "map")
CPP = "tests/cpp"
DIRECTORIES = ("tests/ops", "tests/passes", "tests/python")
# These tests check other things than src/, or cost minutes: documents, signatures, programs of other interpreters.
LEFT_OUT = ("test_documents.py", "test_doctests.py", "test_docstrings.py", "test_house.py", "test_benchmarks.py",
            "test_examples.py", "test_api_signatures.py", "test_mutants.py")


def environment(**more: str) -> Dict[str, str]:
    tools = os.path.dirname(os.path.abspath(__file__))
    path = os.path.join(tree.TREE, "python") + os.pathsep + tools
    # New memory is full of large numbers: a read before the first write, or past an end, shows.
    return dict(os.environ, PYTHONPATH=path, PYTHONDONTWRITEBYTECODE="1", MALLOC_PERTURB_="128",
                ANABRANCH_SHARES="all", **more)


def pytest_command(paths: List[str], *options: str) -> List[str]:
    ignored = ["--ignore-glob=*/" + name for name in LEFT_OUT]
    return [sys.executable, "-m", "pytest", "-q", "-p", "plugin", "-p", "no:cacheprovider", "-m", "not slow", *ignored,
            *options, *paths]


def record(jobs: int, paths: List[str]) -> None:
    """Records all tests again, or adds those in the files given."""
    if not paths:
        shutil.rmtree(MAP, ignore_errors=True)
    os.makedirs(MAP, exist_ok=True)
    python = [path for path in paths or DIRECTORIES if path != CPP]
    with open(os.path.join(tree.BUILD, "record.log"), "w") as log:
        if not paths or CPP in paths:
            subprocess.run([os.path.join(tree.OUT, "anabranch_tests")], cwd=tree.TREE, stdout=log, stderr=log,
                           env=environment(AB_MUTANT="record", AB_MUTANT_MAP=os.path.join(MAP, "cpp.jsonl")))
        if python:
            subprocess.run(pytest_command(python, "-n", str(jobs)), cwd=tree.TREE, stdout=log, stderr=log,
                           env=environment(AB_MUTANT="record", AB_MUTANT_MAP=MAP))


class Reach:
    """tests[n]: names of the tests that reach site n and pass without a defect, the most telling first."""

    def __init__(self, sites: List[Dict]) -> None:
        self.places = {site["number"]: (site["path"], site["line"]) for site in sites}
        self.seconds: Dict[str, float] = {}
        self.load: Set[int] = set()
        self.width: Dict[str, int] = {}
        self.tests: Dict[int, List[str]] = {}
        rows: Dict[str, Dict] = {}
        for path in sorted(glob.glob(os.path.join(MAP, "*.jsonl")), key=os.path.getmtime):
            with open(path) as lines:
                for row in map(json.loads, lines):
                    if row["test"] == "load":
                        self.load |= set(row["hits"])
                    else:
                        rows[row["test"]] = row         # the last record of a test counts
        for row in rows.values():
            self.add(row)
        for number, names in self.tests.items():
            self.tests[number] = self.ordered(names)

    def add(self, row: Dict) -> None:
        if row["ok"]:
            self.seconds[row["test"]] = row["s"]
            self.width[row["test"]] = len(row["hits"])
            for number in row["hits"]:
                self.tests.setdefault(number, []).append(row["test"])

    def ordered(self, names: Iterable[str]) -> List[str]:
        """Quick tests of few sites first; of the cases of one function one in turn: all functions come early."""
        cost = {name: (self.seconds[name] + 0.02) * (self.width[name] + 5) for name in names}
        rounds: Dict[str, int] = {}
        round_of = {}
        for name in sorted(names, key=lambda n: cost[n]):
            function = name.split("[")[0]
            round_of[name] = rounds[function] = rounds.get(function, -1) + 1
        return sorted(names, key=lambda n: (round_of[n], cost[n]))

    def near(self, site: Dict) -> List[str]:
        """For a site that only loading reaches: Python tests of the nearest sites in its file, else one in fifty."""
        nearest = sorted((abs(line - site["line"]), n) for n, (path, line) in self.places.items()
                        if path == site["path"] and n in self.tests and n != site["number"])
        numbers = [n for _, n in nearest] + [site["number"]]
        names = dict.fromkeys(name for n in numbers for name in self.tests.get(n, []) if not is_cpp(name))
        return list(names) or self.ordered([name for name in self.seconds if not is_cpp(name)][::50])


def is_cpp(name: str) -> bool:
    return ".py::" not in name
