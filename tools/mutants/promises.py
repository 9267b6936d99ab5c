"""Takes the subject of each row of docs/understand/guarantees.md away, and runs the test that the row names.

A row is held if its test passes without a defect and fails with it. Defects of Python files go into a copy of the
package by links. Those of C++ files are compiled once, in build/guarantees/tree, each with its switch.
"""
import os
import re
import shlex
import shutil
import subprocess
import sys
from typing import Dict, Iterator, List, NamedTuple, Optional

import compiling
import tree
from defects import MUTANT
from guarantees import GUARANTEES, Guarantee
from plugin import end_group

PAGE = os.path.join("docs", "understand", "guarantees.md")
BUILD = os.path.join(tree.ROOT, "build", "guarantees")
TREE = os.path.join(BUILD, "tree")
OUT = os.path.join(TREE, "build", "release")
LIMIT_S = 400


class Row(NamedTuple):
    promise: str
    paths: List[str]                    # of tests: files and folders


def rows(text: str) -> List[Row]:
    found = [line.strip("|").split("|") for line in text.split("\n") if line.startswith("| ")]
    return [Row(cells[0].strip(), re.findall(r"`(tests/[^`]+)`", cells[1])) for cells in found
            if len(cells) == 2 and cells[0].strip() != "promise"]


def read_page() -> List[Row]:
    with open(os.path.join(tree.ROOT, PAGE), encoding="utf-8") as file:
        return rows(file.read())


def row_of(guarantee: Guarantee, page: List[Row]) -> Row:
    found = [row for row in page if guarantee.promise in row.promise]
    if len(found) != 1:
        raise LookupError("%r must be in one row of %s, is in %d" % (guarantee.promise, PAGE, len(found)))
    return found[0]


def file_of(guarantee: Guarantee, page: List[Row]) -> str:
    """The path of the test, which the row names, or a folder of it."""
    name = guarantee.test.split("::")[0]
    for path in row_of(guarantee, page).paths:
        inside = os.path.join(path, name)
        if os.path.basename(path) == name or os.path.exists(os.path.join(tree.ROOT, inside)):
            return path if os.path.basename(path) == name else inside
    raise LookupError("the row of %r does not name %s" % (guarantee.promise, name))


def faults(page: List[Row]) -> Iterator[str]:
    """Sentences about rows without a defect, and about entries that do not fit."""
    unheld = {(row.promise, path) for row in page for path in row.paths}
    for guarantee in GUARANTEES:
        try:
            row, path = row_of(guarantee, page), file_of(guarantee, page)
        except LookupError as error:
            yield str(error)
            continue
        unheld -= {(row.promise, named) for named in row.paths if path == named or path.startswith(named + "/")}
        if not is_in(guarantee.test, path):
            yield "%s has no test %s" % (path, guarantee.test)
    for row in page:
        if not row.paths:
            yield "no test: " + row.promise
    for promise, path in sorted(unheld):
        yield "tools/mutants/guarantees.py has no defect that %s must find: %s" % (path, promise)


def is_in(test: str, path: str) -> bool:
    name = shlex.split(test)[0].split("::")[1]
    pattern = r"^def %s\(" % name if path.endswith(".py") else r"^TEST(_F|_P)?\(%s, %s\)" % tuple(name.split("."))
    path = os.path.join(tree.ROOT, path)
    if not os.path.exists(path):
        return False
    with open(path, encoding="utf-8") as file:
        return re.search(pattern, file.read(), re.M) is not None


# ---- trees

def is_python(guarantee: Guarantee) -> bool:
    return guarantee.defect.path.endswith(".py")


def linked_tree(folder: str, path: str, data: Optional[str]) -> None:
    """The checkout by links, with other contents of the file at ``path`` if ``data`` is given."""
    at = ""
    for part in path.split("/"):
        os.makedirs(os.path.join(folder, at), exist_ok=True)
        for name in os.listdir(os.path.join(tree.ROOT, at)):
            if name not in (part, "__pycache__", ".git"):
                os.symlink(os.path.join(tree.ROOT, at, name), os.path.join(folder, at, name))
        at = os.path.join(at, part)
    if data is None:
        os.symlink(os.path.join(tree.ROOT, path), os.path.join(folder, path))
    else:
        with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
            file.write(data)


def planted_text(guarantee: Guarantee) -> str:
    defect = guarantee.defect
    return tree.read(defect.path).decode().replace(defect.find, defect.text.replace(MUTANT, "True"))


def compiled_tree(chosen: List[Guarantee], jobs: int) -> None:
    """build/guarantees/tree, with all defects of C++ files and their switches."""
    by_file: Dict[str, List[tuple]] = {}
    for number, site in zip(map(number_of, chosen), tree.named_sites([g.defect for g in chosen])):
        by_file.setdefault(site.path, []).append((number, site))
    tree.plant(by_file, TREE, included=True)
    if not os.path.exists(os.path.join(OUT, "build.ninja")):
        subprocess.run(["cmake", "--preset", "release", "-DPython_EXECUTABLE=" + sys.executable], cwd=TREE, check=True,
                       stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", OUT, "-j", str(jobs), "python_package", "anabranch_tests",
                    "anabranch_steady_tests"], check=True,
                   env=dict(os.environ, CCACHE_BASEDIR=TREE), stdout=subprocess.DEVNULL)
    compiling.link_module(TREE, OUT)


def number_of(guarantee: Guarantee) -> int:
    return GUARANTEES.index(guarantee) + 1


# ---- runs

def verdict(command: List[str], folder: str, log: str, number: int = 0) -> str:
    """passed, failed or hung; otherwise what is wrong with the test itself."""
    # Shares and seeds must not depend on the day.
    env = dict(os.environ, PYTHONPATH=os.path.join(folder, "python"), PYTHONDONTWRITEBYTECODE="1",
               ANABRANCH_SHARES="all", AB_MUTANT=str(number))
    with open(log, "w") as file:
        run = subprocess.Popen(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                               start_new_session=True)
    try:
        code = run.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        return "hung"
    finally:
        end_group(run.pid)
        run.wait()
    with open(log, errors="replace") as file:
        ran = re.search(r"\b[1-9]\d* passed|\[  PASSED  \] [1-9]", file.read())
    if code == 0:
        return "passed" if ran else "no test ran"
    return "failed" if code == 1 or code < 0 else "the tests cannot be loaded"


def command_of(guarantee: Guarantee, path: str, folder: str) -> List[str]:
    name, *options = shlex.split(guarantee.test)
    test = name.split("::")[1]
    if path.endswith(".py"):
        return [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "%s::%s" % (path, test), *options]
    program = "anabranch_steady_tests" if "/steady/" in path else "anabranch_tests"
    return [os.path.join(folder, "build", "release", program), "--gtest_filter=" + test]


def held(guarantee: Guarantee, path: str, folder: str, number: int, log: str) -> str:
    """The verdict with the defect: of the first try that finds it, else of the last."""
    for _ in range(guarantee.tries):
        found = verdict(command_of(guarantee, path, folder), folder, log, number)
        if found in ("failed", "hung"):
            break
    return found


def try_python(guarantee: Guarantee, path: str, folder: str) -> str:
    """In two trees by links: without the defect, then with it."""
    for name, data in (("without", None), ("with", planted_text(guarantee))):
        linked_tree(os.path.join(folder, name), guarantee.defect.path, data)
    log = os.path.join(folder, "log")
    before = verdict(command_of(guarantee, path, os.path.join(folder, "without")), os.path.join(folder, "without"), log)
    if before != "passed":
        return "without a defect: " + before
    return held(guarantee, path, os.path.join(folder, "with"), 0, log)


def try_cpp(guarantee: Guarantee, path: str, log: str) -> str:
    before = verdict(command_of(guarantee, path, TREE), TREE, log)
    if before != "passed":
        return "without a defect: " + before
    return held(guarantee, path, TREE, number_of(guarantee), log)


def run(jobs: int, numbers: Optional[List[int]], python_only: bool) -> int:
    """Prints a line for each defect; returns how many were not found."""
    page = read_page()
    wrong = list(faults(page))
    if wrong:
        raise SystemExit("\n".join(wrong))
    chosen = [g for g in GUARANTEES if (is_python(g) or not python_only) and (not numbers or number_of(g) in numbers)]
    compiled = [g for g in GUARANTEES if not is_python(g)]
    logs = os.path.join(BUILD, "logs")
    os.makedirs(logs, exist_ok=True)
    if any(g in compiled for g in chosen):
        compiled_tree(compiled, jobs)
    missed = 0
    for guarantee in chosen:
        path, log = file_of(guarantee, page), os.path.join(logs, "%d.log" % number_of(guarantee))
        if is_python(guarantee):
            folder = os.path.join(BUILD, "linked", str(number_of(guarantee)))
            shutil.rmtree(folder, ignore_errors=True)
            found = try_python(guarantee, path, folder)
        else:
            found = try_cpp(guarantee, path, log)
        missed += found not in ("failed", "hung")
        print("%-8s %3d %s: %s" % ("found" if found in ("failed", "hung") else "MISSED", number_of(guarantee),
                                   guarantee.defect.name, found), flush=True)
    print("%d of %d passed: the test of a guarantee finds its defect" % (len(chosen) - missed, len(chosen)))
    return missed
