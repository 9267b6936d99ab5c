"""Writes build/mutants/tree: a copy of the checkout whose sources hold all planted defects, each with its switch."""
import hashlib
import json
import os
import subprocess
from typing import Dict, List

import named
import sites
from defects import MUTANT

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, "build", "mutants")
TREE = os.path.join(BUILD, "tree")
OUT = os.path.join(TREE, "build", "mutants")      # where CMake builds
SITES = os.path.join(BUILD, "sites.json")
RUNTIME = os.path.join(os.path.dirname(os.path.abspath(__file__)), "runtime")
FIRST_SEEDED = 200                      # named defects have the numbers below


def files() -> List[str]:
    """The files of the checkout: those that git knows or would take."""
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, stdout=subprocess.PIPE, check=True,
                         universal_newlines=True).stdout
    return [path for path in out.split("\n") if path and os.path.isfile(os.path.join(ROOT, path))]


def write(path: str, data: bytes, root: str = TREE) -> None:
    """Leaves a file alone that has these bytes already, so that it is not compiled again."""
    path = os.path.join(root, path)
    if os.path.exists(path):
        with open(path, "rb") as file:
            if file.read() == data:
                return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def read(path: str) -> bytes:
    with open(os.path.join(ROOT, path), "rb") as file:
        return file.read()


def named_sites(defects: List[named.Named]) -> List[sites.Site]:
    found = []
    for defect in defects:
        data, find = read(defect.path), defect.find.encode()
        if data.count(find) != 1:
            raise SystemExit("%s: %r must occur once in %s, occurs %d times" %
                             (defect.name, defect.find, defect.path, data.count(find)))
        at = data.index(find)
        line = data[:at].count(b"\n") + 1
        found.append(sites.Site(defect.path, at, at + len(find), line, line + find.count(b"\n"), "named", defect.text,
                                "named|" + defect.name))
    return found


def load() -> Dict:
    if not os.path.exists(SITES):
        return {"numbers": {}, "refused": [], "sites": []}
    with open(SITES) as file:
        return json.load(file)


def load_built(command: str) -> Dict:
    """The state after a build. Without one the command ends: a count of no defects would look like success."""
    state = load()
    if not state["sites"] or not os.path.exists(os.path.join(OUT, "anabranch_tests")):
        raise SystemExit("tools/mutants %s: no defects are planted yet; run `./dev mutants build` first" % command)
    return state


def save(state: Dict) -> None:
    os.makedirs(BUILD, exist_ok=True)
    with open(SITES + ".new", "w") as file:
        json.dump(state, file, indent=1)
    os.replace(SITES + ".new", SITES)


def numbers(state: Dict, chosen: List[sites.Site]) -> Dict[str, int]:
    """A site keeps its number as long as it is chosen, so that its file need not be compiled again."""
    known = dict(state["numbers"])
    free = FIRST_SEEDED + len([n for n in known.values() if n >= FIRST_SEEDED])
    names = [d.name for d in named.DEFECTS]
    for site in chosen:
        if site.kind == "named":
            known[site.name] = names.index(site.name[len("named|"):]) + 1
        elif site.name not in known:
            known[site.name] = free
            free += 1
    return known


def mutated(data: bytes, planted: List[tuple]) -> bytes:
    """The file's bytes with the defects in place; the number of its lines stays."""
    for number, site in sorted(planted, key=lambda p: p[1].start, reverse=True):
        switch = "::anabranch::mutant(%d)" % number
        text = site.text.replace(MUTANT, switch)
        missing = site.last_line - site.line - text.count("\n")
        if missing < 0:
            raise SystemExit("%s: the defect has more lines than the text it replaces" % site.name)
        data = data[:site.start] + text.encode() + b"\n" * missing + data[site.end:]
    return data


def generate(seed: int) -> Dict:
    """Chooses the sites, copies the checkout, plants the defects; returns what save() keeps."""
    state, fixed = load(), named_sites(named.DEFECTS)
    taken: Dict[str, List[tuple]] = {}
    for site in fixed:
        taken.setdefault(site.path, []).append((site.start, site.end))
    seeded = sites.choose(sites.all_sites(ROOT), seed, taken=taken, refused=frozenset(state["refused"]))
    chosen = fixed + seeded
    state["numbers"] = numbers(state, chosen)
    by_file: Dict[str, List[tuple]] = {}
    for site in chosen:
        by_file.setdefault(site.path, []).append((state["numbers"][site.name], site))
    plant(by_file, TREE)
    state["sites"] = [dict(site._asdict(), number=state["numbers"][site.name], file=digest(site.path))
                      for site in chosen]
    save(state)
    return state


def plant(by_file: Dict[str, List[tuple]], root: str, included: bool = False) -> None:
    """Copies the checkout to ``root`` with defects: (number, site) by file. ``included``: the files with defects
    include the switch themselves, so that all others compile as in the checkout."""
    known = files()
    head = b'#include "base/mutant.h"\n#line 1\n' if included else b""
    for path in known:
        data = read(path)
        write(path, head + mutated(data, by_file[path]) if path in by_file else data, root)
    for name, path in (("mutant.h", "src/base"), ("mutant.cc", "src/base"), ("mutant_listener_test.cc", "tests/cpp")):
        if included and name == "mutant_listener_test.cc":
            continue                    # nothing is recorded there
        with open(os.path.join(RUNTIME, name), "rb") as file:
            write(os.path.join(path, name), file.read(), root)
        known.append(os.path.join(path, name))
    remove_others(set(known), root)


def remove_others(known: set, root: str) -> None:
    for top in ("src", "tests", "python", "cmake"):
        for where, folders, names in os.walk(os.path.join(root, top)):
            folders[:] = [f for f in folders if f != "__pycache__"]
            for name in names:
                path = os.path.relpath(os.path.join(where, name), root)
                if path not in known and not name.startswith("_core"):
                    os.unlink(os.path.join(root, path))


def digest(path: str) -> str:
    return hashlib.sha1(read(path)).hexdigest()[:12]


def key(site: Dict) -> str:
    """Of the ledger: what was found is true of this file, this place and this change of it."""
    text = hashlib.sha1(site["text"].encode()).hexdigest()[:8]
    return "%s:%d:%s:%s" % (site["file"], site["start"], site["kind"], text)
