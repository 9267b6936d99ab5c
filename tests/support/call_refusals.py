"""Calls with arguments of other classes what call_cases.py and running_cases.py name, and notes the exceptions.

    call_refusals.py --fluid paddle.fluid      records data/call_refusals.json.gz; --only CASE ...: prints these
    call_refusals.py --fluid anabranch.fluid   prints what differs from the record, with the reasons of
                                               data/call_refusals.tsv; a ? stands for a reason that is missing

One argument at a time is replaced, or left out. Runs on Python 3.7 and later.
"""
import argparse
import collections
import contextlib
import gzip
import importlib
import json
import os
import signal
import sys
import tempfile
import warnings

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from repository import DATA  # noqa: E402
from running_cases import CASES  # noqa: E402

RECORD = os.path.join(DATA, "call_refusals.json.gz")
LISTED = os.path.join(DATA, "call_refusals.tsv")
GIVEN = "given"


def variants(fluid):
    """Name -> value of another class."""
    tensor = fluid.LoDTensor()
    tensor.set(np.ones([2, 3], "float32"), fluid.CPUPlace())
    variable = fluid.default_main_program().global_block().create_var(name="probe", shape=[1], dtype="float32")
    return collections.OrderedDict([
        ("None", None), ("bool", True), ("int", 3), ("float", 1.5), ("str", "s"), ("list", [1.5, 2.5]),
        ("dict", {"a": 1}), ("ndarray", np.ones([2, 3], "float32")), ("LoDTensor", tensor), ("Variable", variable),
        ("Variables", [variable]), ("Program", fluid.Program()), ("function", lambda *more: None)])


@contextlib.contextmanager
def fresh(fluid):
    """New programs, names and a new scope; files go to a new folder."""
    before = os.getcwd(), tempfile.tempdir
    with tempfile.TemporaryDirectory() as folder, fluid.program_guard(fluid.Program(), fluid.Program()), \
            fluid.unique_name.guard(), fluid.scope_guard(fluid.core.Scope()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.chdir(folder)
        tempfile.tempdir = folder
        try:
            yield
        finally:
            os.chdir(before[0])
            tempfile.tempdir = before[1]


def attempt(fluid, name, argument, variant):
    """The verdict of one call: "ok", or the classes of its exception, the precise one first."""
    with fresh(fluid):
        call, arguments = CASES[name](fluid)
        arguments = dict(arguments)
        if variant != GIVEN:
            arguments[argument] = variants(fluid)[variant]
        try:
            call(**arguments)
            return "ok"
        except Exception as error:
            return " ".join(c.__name__ for c in type(error).__mro__ if c.__name__ not in ("object", "BaseException"))


def arguments_of(fluid, name):
    with fresh(fluid):
        return list(CASES[name](fluid)[1])


def survey(fluid, name):
    """{argument: {variant: verdict}} of a case; the argument "" has the call as it is."""
    found = {"": {GIVEN: attempt(fluid, name, None, GIVEN)}}
    for argument in arguments_of(fluid, name):
        found[argument] = {variant: attempt(fluid, name, argument, variant) for variant in variants(fluid)}
    return found


def _child(fluid, name, argument, left, file):
    """Writes a line for each verdict of a case, or for each argument."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.dup2(2, 1)
    if not left:
        file.writelines(one + "\n" for one in arguments_of(fluid, name))
    for variant in left:
        signal.alarm(6)     # a call that never returns counts as one that ends the process
        file.write(attempt(fluid, name, argument, variant) + "\n")


def _lines(fluid, name, argument, left):
    """The lines that another process writes, and whether it ended well."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        with os.fdopen(write, "w", 1) as file:
            _child(fluid, name, argument, left, file)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        lines = file.read().splitlines()
    return lines, os.waitpid(child, 0)[1] == 0


def _in_children(fluid, name, argument, names):
    """{variant: verdict}. Some calls end 1.8.5: another process goes on after them."""
    found = {}
    while len(found) < len(names):
        left = names[len(found):]
        verdicts, well = _lines(fluid, name, argument, left)
        found.update(zip(left, verdicts if well else verdicts + ["crash"]))
    return found


def survey_in_children(fluid, name):
    found = {"": _in_children(fluid, name, None, [GIVEN])}
    for argument in _lines(fluid, name, None, [])[0]:
        found[argument] = _in_children(fluid, name, argument, NAMES)
    return found


NAMES = "None bool int float str list dict ndarray LoDTensor Variable Variables Program function".split()


def recorded():
    with gzip.open(RECORD, "rt") as f:
        return json.load(f)


def _is_notable(there, here):
    """Whether a verdict differs: this package accepts what 1.8.5 refuses, refuses what 1.8.5 accepts, or raises no
    TypeError where 1.8.5 does."""
    if "ok" in (there, here):
        return there != here
    first = there.split()[0]
    return first == "TypeError" and first not in here.split()


def differences(fluid, name, record):
    """[(case, argument, verdict of 1.8.5, ours, "variant variant ...")]."""
    found = {}
    for argument, verdicts in survey(fluid, name).items():
        for variant, here in verdicts.items():
            there = record[argument][variant]
            if _is_notable(there, here):
                key = (name, argument, there.split()[0], here.split()[0])
                found.setdefault(key, []).append(variant)
    return [key + (" ".join(names),) for key, names in found.items()]


def listed():
    """{(case, argument, verdict of 1.8.5, ours, variants): reason}: the differences that are meant."""
    with open(LISTED) as f:
        rows = [line.rstrip("\n").split("\t") for line in f]
    return {tuple(row[:5]): row[5] for row in rows}


def _record(fluid, only):
    record = {}
    for name in only or CASES:
        record[name] = survey_in_children(fluid, name)
        print(name, record[name][""][GIVEN], file=sys.stderr, flush=True)
    if only:
        print(json.dumps(record, indent=1))
        return
    with open(RECORD, "wb") as raw, gzip.GzipFile("", "wb", mtime=0, fileobj=raw) as f:
        f.write(json.dumps(record, separators=(",", ":")).encode())


def _compare(fluid, only):
    known, record = listed(), recorded()
    for name in only or record:
        for row in differences(fluid, name, record[name]):
            print("\t".join(row + (known.get(row, "?"),)), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--fluid", required=True)
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    fluid = importlib.import_module(options.fluid)
    (_record if fluid.__name__.startswith("paddle") else _compare)(fluid, options.only)
