#!/usr/bin/env python3
"""Prints which parts of an op exist: `./dev check-op NAME`.

docs/develop/add_an_operator.md lists the parts. Exits with 1 if one is missing. Parts that compare with Fluid 1.8.5
apply to ops that Fluid has.
"""
import argparse
import glob
import gzip
import importlib
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, *folder) for folder in (("tools", "differential"), ("tests", "ops"), ("tools",))]

OK, MISSING, NOT_NEEDED = "ok", "MISSING", "-"


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def naming(name, folder, ends):
    """Files below a folder that contain the name as a word, relative to the root."""
    word = re.compile(r"(?<![\w.])%s(?!\w)" % re.escape(name))
    found = []
    for path in sorted(glob.glob(os.path.join(ROOT, folder, "**", "*"), recursive=True)):
        if path.endswith(ends) and os.path.isfile(path):
            relative = os.path.relpath(path, ROOT)
            if word.search(read(relative)):
                found.append(relative)
    return found


def defining(name, folder):
    """Files of a folder with a public function of this name at their top level."""
    return [path for path in naming(name, folder, ".py")
            if re.search(r"^def %s\(" % re.escape(name), read(path), re.M)]


def is_of_fluid(name):
    return name in json.loads(read("tools", "fluid_coverage.json"))["ops"]


def first_of(files, *preferred):
    """The file that matches the earliest of these patterns."""
    def rank(path):
        return next((i for i, pattern in enumerate(preferred) if re.search(pattern, path)), len(preferred))
    return min(files, key=rank)


def declaration(name, info):
    if info is None:
        return MISSING, "no declaration in src/ops"
    files = naming(name, os.path.join("src", "ops", info["family"]), (".cc", ".h")) or ["in a table"]
    # AB_OP(relu) or `{.type = "relu",`; then the first word of a row or a call: `{"relu",`, `unary("relu",`.
    for pattern in r'AB_(OP|GRAD)\(%s\)|declare_op\("%s"|\.(type|name) = "%s"', r'^\s*[\w:<>, ]*[({]+"%s"[,)]':
        declares = re.compile(pattern.replace("%s", re.escape(name)), re.M)
        declaring = [path for path in files if path.endswith(".cc") and declares.search(read(path))]
        if declaring:
            break
    return OK, first_of(declaring or files, r"/%s\.cc$" % re.escape(name))


def documentation(name, info):
    if not info or not info["doc"]:
        return MISSING, "no .doc"
    return OK, info["doc"]


def gradient(name, info):
    if not info:
        return MISSING, "no AB_GRAD, .grad or .no_grad"
    if info["has_grad"]:
        return OK, name + "_grad, or other ops"
    return (OK, "none: " + info["no_grad_reason"]) if info["no_grad_reason"] else (MISSING, "no gradient and no reason")


def test_case(name, info):
    import op_case
    for path in glob.glob(os.path.join(ROOT, "tests", "ops", "cases_*.py")):
        importlib.import_module(os.path.basename(path)[:-3])
    if name in op_case.SKIPPED:
        return OK, "skipped: " + op_case.SKIPPED[name]
    cases = [case for case in op_case.CASES if case.op == name]
    return (OK, "%d in %s" % (len(cases), ", ".join(sorted(op_case.FILES[name])))) if cases else (
        MISSING, "no case in tests/ops/cases_*.py")


def device(name, info):
    """Whether an op that declares dtypes of devices has kernels for them. Otherwise only the CPU would run it."""
    if not info or not info["device_dtypes"]:
        return NOT_NEEDED, "no dtypes of devices"
    step = re.search(r'\bM\("%s"' % re.escape(name), read("src", "ops", "math", "step_functions.h"))
    if "elementwise" in info["traits"] and not step and not naming(name, os.path.join("src", "ops"), ".cu"):
        return MISSING, "no function in src/ops/math/step_functions.h"
    return OK, "kernels for " + ", ".join(info["device_dtypes"])


def layer(name, info):
    """A layer of Fluid by this name must exist; an optimizer, another layer or no layer may make other ops.

    fluid.layers holds only names that Fluid has.
    """
    import layer_table
    rows = [row for _, layers in layer_table.FAMILIES.values() for row in layers if (row.op or row.name) == name]
    fluid = json.loads(read("tools", "fluid_modules.json")).get("paddle.fluid.layers", {})
    strange = [row.name for row in rows if row.name not in fluid] or [
        name] * (name not in fluid and bool(defining(name, os.path.join("python", "anabranch", "fluid", "layers"))))
    if strange and not any(row.name in fluid for row in rows):
        return MISSING, "move %s out of fluid.layers: not a name of Fluid" % strange[0]
    if rows:
        return OK, "tools/layer_table.py: " + rows[0].name
    quoted = re.compile(r"""["']%s["']""" % re.escape(name))
    files = [path for path in naming(name, os.path.join("python", "anabranch"), ".py")
             if quoted.search(read(path)) and not re.search("_generated_|__init__", path)]
    if files:
        return OK, first_of(files, "fluid/layers/", "fluid/optimizer/", "fluid/contrib/", "fluid/")
    return (MISSING, "Fluid has the layer %s" % name) if name in fluid else (NOT_NEEDED, "no layer makes this op")


def layer_calls(name, info):
    if layer(name, info)[0] == NOT_NEEDED:
        return NOT_NEEDED, "no layer makes this op"
    if not is_of_fluid(name):
        public = re.findall(r"^(?:def|class) ([a-zA-Z]\w*)", read(layer(name, info)[1]), re.M)
        tests = [path for made in (name, *public) for path in naming(made, os.path.join("tests", "python"), ".py")]
        return (OK, tests[0]) if tests else (MISSING, "no test in tests/python calls the layer")
    with gzip.open(os.path.join(ROOT, "tests", "data", "layer_programs.json.gz"), "rt") as file:
        record = json.load(file)
    calls = [call for call, made in sorted(record.items()) if isinstance(made, dict) and any(
        op[0] == name for side in ("main", "startup") for block in made[side] for op in block)]
    return (OK, "%d recorded, such as %s" % (len(calls), calls[0])) if calls else (
        MISSING, "no line of tests/support/layer_cases makes it, or the line is not recorded")


def golden(name, info):
    listed = json.loads(read("tests", "golden", "expected_failures.json"))["both"]
    word = re.compile(r"(?<!\w)%s(?!\w)" % re.escape(name))
    waiting = [line for line, entry in listed.items() if word.search(line + " " + entry["why"])]
    return (MISSING, "still fails: " + ", ".join(waiting)) if waiting else (OK, "no expected failure names it")


def sequences(name, info):
    """Its entry among the recorded sequences, or recorded random cases whose inputs have sequences."""
    import sample
    record = json.loads(read("tests", "ops", "lod_of_1_8_5.json"))
    if name in record:
        return OK, "%d cases in tests/ops/lod_of_1_8_5.json" % len(record[name])
    if info and not info["inputs"]:
        return NOT_NEEDED, "it has no inputs"
    with_lod = sum(any(var.get("lod") for var in case["vars"].values()) for case, _ in sample.read().get(name, []))
    return (OK, "%d differential cases" % with_lod) if with_lod else (MISSING, "not in tests/ops/lod_of_1_8_5.json")


def differential(name, info):
    import sample
    record = sample.read()
    return (OK, "%d cases" % len(record[name])) if name in record else (
        MISSING, "record it: tools/differential/record.py " + name)


def git(*command):
    return subprocess.run(("git", "-C", ROOT) + command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          universal_newlines=True)


def changes(name, info):
    """A line of the changelog or the history, unless the last release has the op already."""
    # Such as `fc`, `fluid.layers.fc` or `fc(input, size)`.
    word = re.compile(r"`(?:[\w.]+\.)?%s(?:\([^`]*)?`" % re.escape(name))
    for page in (("CHANGELOG.md",), ("docs", "develop", "history.md"), ("docs", "differences.md")):
        if word.search(read(*page)):
            return OK, "/".join(page)
    version = re.search(r"^## \[(\d[\d.]*)\]", read("CHANGELOG.md"), re.M).group(1)
    released = git("log", "--format=%H", "-S## [%s]" % version, "--", "CHANGELOG.md").stdout.split()
    if released and git("grep", "-qwF", name, released[-1], "--", "src/ops").returncode == 0:
        return OK, "released before %s" % version
    return MISSING, "no line in CHANGELOG.md or docs/develop/history.md"


#: (place, function, whether only ops of Fluid need it).
PLACES = [("declaration", declaration, False), ("documentation", documentation, False), ("gradient", gradient, False),
          ("test case", test_case, False), ("device", device, False), ("layer", layer, False),
          ("layer calls", layer_calls, False), ("golden records", golden, True), ("sequences", sequences, True),
          ("differential", differential, True), ("changes", changes, False)]


def check(name):
    """[(place, state, detail)] of an op."""
    from anabranch import _core
    info = _core.op_info(name) if name in _core.op_types() else None
    of_fluid = is_of_fluid(name)
    not_of_fluid = NOT_NEEDED, "Fluid 1.8.5 has no such op"
    return [(place, *(function(name, info) if of_fluid or not fluid_only else not_of_fluid))
            for place, function, fluid_only in PLACES]


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="./dev check-op", description=__doc__.split("\n")[0])
    parser.add_argument("name", help="Type of the op, such as relu.")
    name = parser.parse_args(arguments).name
    rows = check(name)
    for place, state, detail in rows:
        detail = " ".join(detail.split())
        print("%-15s %-8s %s" % (place, state, detail if len(detail) <= 55 else detail[:52] + "..."))
    missing = [place for place, state, _ in rows if state == MISSING]
    print("%s: %s" % (name, "missing: " + ", ".join(missing) if missing else "complete"))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
