"""Compiles the tree of planted defects; a seeded one that does not compile is refused and another takes its place."""
import os
import re
import subprocess
from typing import Dict, List, Set

import tree

PLACE = re.compile(r"(src/[\w/]+\.(?:cc|h)):(\d+)(?::\d+)?(?::|,|$)")
ROUNDS = 12


def configure(python: str) -> None:
    if os.path.exists(os.path.join(tree.OUT, "build.ninja")):
        return
    subprocess.run(["cmake", "--preset", "mutants", "-DPython_EXECUTABLE=" + python], cwd=tree.TREE, check=True,
                   stdout=subprocess.DEVNULL)


def ninja(jobs: int) -> str:
    """The text of the errors; empty when everything is built."""
    env, log = dict(os.environ, CCACHE_BASEDIR=tree.TREE), os.path.join(tree.BUILD, "build.log")
    with open(log, "w") as file:
        run = subprocess.run(["ninja", "-C", tree.OUT, "-j", str(jobs), "-k", "0", "anabranch_tests", "_core"], env=env,
                             stdout=file, stderr=subprocess.STDOUT)
    with open(log, errors="replace") as file:
        return file.read() if run.returncode else ""


def planted_at(errors: str, sites: List[Dict]) -> Set[str]:
    """Names of the seeded sites on lines that errors name, else on lines that led to them."""
    by_line: Dict[tuple, List[str]] = {}
    for site in sites:
        for line in range(site["line"], site["last_line"] + 1):
            if site["kind"] != "named":
                by_line.setdefault((site["path"], line), []).append(site["name"])

    def names(lines: List[str]) -> Set[str]:
        places = [(m.group(1), int(m.group(2))) for line in lines for m in PLACE.finditer(line)]
        return {name for place in places for name in by_line.get(place, [])}

    lines = errors.split("\n")
    return names([line for line in lines if " error: " in line]) or names(lines)


def build(seed: int, jobs: int, python: str) -> None:
    for _ in range(ROUNDS):
        state = tree.generate(seed)
        configure(python)
        errors = ninja(jobs)
        if not errors:
            link_module(tree.TREE, tree.OUT)
            return
        bad = planted_at(errors, state["sites"])
        if not bad:
            raise SystemExit("the build fails apart from seeded defects; see build/mutants/build.log")
        print("%d defects do not compile: others take their places" % len(bad), flush=True)
        state["refused"] += sorted(bad)
        tree.save(state)
    raise SystemExit("still defects that do not compile after %d rounds" % ROUNDS)


def link_module(root: str, out: str) -> None:
    package = os.path.join(root, "python", "anabranch")
    for name in os.listdir(os.path.join(out, "python")):
        link = os.path.join(package, name)
        if os.path.islink(link):
            os.unlink(link)
        os.symlink(os.path.join(out, "python", name), link)
