#!/usr/bin/env python3
"""Exchanges files with an installed PaddlePaddle 1.8.5, both ways.

    BENCH_FLUID18_PYTHON=/path/to/python tools/check_files_live.py

BENCH_FLUID18_PYTHON names an interpreter that has paddlepaddle 1.8.5; without it the script says so and ends. Each side
writes every kind of file from the same values; the other side loads them, compares the values and writes them again.

One line a case: `ok` when values and predictions are the same and the second files equal the first ones byte for byte.
Of a program that Anabranch read and wrote again, not the bytes are compared but all that PaddlePaddle reads in it:
attributes lie in a different order there, and fields that hold their default may be left out. The lines `same` compare
the files that both sides wrote from the same values. Exit status 1 when a line says FAIL.
"""
import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
import zlib

import numpy

VARIABLE = "BENCH_FLUID18_PYTHON"
HERE = os.path.abspath(__file__)
PACKAGES = {"anabranch": "anabranch.fluid", "paddle": "paddle.fluid"}
# Program files name the lines of the script that built the program, and so differ between the sides.
PROGRAM_FILES = ("main", "__model__", "net", "model.pdmodel")


# ---- one side: runs in a separate process, with Python 3.7 too


class Side:
    """A program with set values, in one of the two packages."""

    def __init__(self, fluid):
        self.fluid = fluid
        self.x = fluid.data("x", [None, 1, 8, 8], "float32")
        self.ids = fluid.data("ids", [None, 1], "int64")
        y = fluid.data("y", [None, 1], "float32")
        conv = fluid.layers.conv2d(self.x, num_filters=3, filter_size=3)
        words = fluid.layers.embedding(self.ids, size=[20, 4], is_sparse=True, param_attr="table")
        hidden = fluid.layers.fc([fluid.layers.batch_norm(conv, act="relu"), words], size=6, act="tanh")
        self.prediction = fluid.layers.fc(hidden, size=1)
        loss = fluid.layers.mean(fluid.layers.square_error_cost(self.prediction, y))
        fluid.optimizer.Adam(fluid.layers.piecewise_decay([10, 20], [0.1, 0.01, 0.001])).minimize(loss)
        self.main = fluid.default_main_program()
        self.exe = fluid.Executor(fluid.CPUPlace())
        self.exe.run(fluid.default_startup_program())

    def names(self):
        return sorted(v.name for v in self.main.list_vars() if v.persistable and v.name not in ("feed", "fetch"))

    def tensor(self, name):
        return self.fluid.global_scope().find_var(name).get_tensor()

    def value(self, name):
        """The value that a variable is set to: numbers that follow from its name."""
        now = numpy.array(self.tensor(name))
        random = numpy.random.RandomState(zlib.crc32(name.encode()) % 2 ** 31)
        return (random.uniform(0.5, 1.5, now.shape) * 10 ** (now.dtype.kind == "i")).astype(now.dtype)

    def set_values(self):
        for name in self.names():
            self.tensor(name).set(self.value(name), self.fluid.CPUPlace())

    def clear(self):
        for name in self.names():
            self.tensor(name).set(numpy.zeros_like(numpy.array(self.tensor(name))), self.fluid.CPUPlace())

    def wrong(self, names):
        """Names of the variables that do not hold what they were set to."""
        return [name for name in names if not numpy.array_equal(numpy.array(self.tensor(name)), self.value(name))]

    def predict(self, program, feeds, fetches):
        random = numpy.random.RandomState(3)
        values = {"x": random.uniform(-1, 1, (5, 1, 8, 8)).astype("float32"), "ids": numpy.arange(5).reshape(5, 1)}
        result, = self.exe.run(program, feed={name: values[name] for name in feeds}, fetch_list=fetches)
        return numpy.array(result).ravel().tolist()


def parameters(side):
    return sorted(p.name for p in side.main.all_parameters())


def variables_case(function, names, filename):
    """save_X and load_X, into one file each or one for all."""
    def write(side, folder):
        getattr(side.fluid.io, "save_" + function)(side.exe, folder, side.main, filename=filename)

    def load(side, folder, again):
        getattr(side.fluid.io, "load_" + function)(side.exe, folder, side.main, filename=filename)
        write(side, again)
        return {"wrong": side.wrong(names(side))}
    return write, load


def inference_case(model, params):
    names = {"model_filename": model, "params_filename": params}

    def write(side, folder):
        side.fluid.io.save_inference_model(folder, ["x", "ids"], [side.prediction], side.exe, side.main, **names)
        program, feeds, fetches = side.fluid.io.load_inference_model(folder, side.exe, **names)
        return {"prediction": side.predict(program, feeds, fetches)}

    def load(side, folder, again):
        program, feeds, fetches = side.fluid.io.load_inference_model(folder, side.exe, **names)
        side.fluid.io.save_persistables(side.exe, again, program, filename=params)
        with open(os.path.join(again, model or "__model__"), "wb") as f:
            f.write(program.desc.serialize_to_string())
        return {"wrong": side.wrong(parameters(side)), "prediction": side.predict(program, feeds, fetches)}
    return write, load


def write_state(side, folder):
    side.fluid.save(side.main, os.path.join(folder, "model"))


def load_state(side, folder, again):
    side.fluid.load(side.main, os.path.join(folder, "model"), side.exe)
    write_state(side, again)
    with open(os.path.join(folder, "model.pdmodel"), "rb") as f:
        program = side.fluid.Program.parse_from_string(f.read())
    with open(os.path.join(again, "model.pdmodel"), "wb") as f:
        f.write(program.desc.serialize_to_string())
    return {"wrong": side.wrong(side.names())}


def write_program(side, folder):
    with open(os.path.join(folder, "main"), "wb") as f:
        f.write(side.main.desc.serialize_to_string())


def load_program(side, folder, again):
    with open(os.path.join(folder, "main"), "rb") as f:
        program = side.fluid.Program.parse_from_string(f.read())
    with open(os.path.join(again, "main"), "wb") as f:
        f.write(program.desc.serialize_to_string())
    return {}


CASES = [
    ("persistables, a file each", variables_case("persistables", Side.names, None)),
    ("persistables, one file", variables_case("persistables", Side.names, "all")),
    ("params, a file each", variables_case("params", parameters, None)),
    ("params, one file", variables_case("params", parameters, "all")),
    ("inference model, a file each", inference_case(None, None)),
    ("inference model, two files", inference_case("net", "weights")),
    ("fluid.save", (write_state, load_state)),
    ("program", (write_program, load_program)),
]


def one_side(package, source, target):
    """Writes all cases into ``target``, from set values or, when ``source`` is given, from the files there."""
    side, report = Side(importlib.import_module(PACKAGES[package])), {}
    for number, (name, (write, load)) in enumerate(CASES):
        folder = os.path.join(target, str(number))
        os.makedirs(folder)
        try:
            if source is None:
                side.set_values()
                report[name] = write(side, folder) or {}
            else:
                side.clear()
                report[name] = load(side, os.path.join(source, str(number)), folder)
        except Exception:
            report[name] = {"error": traceback.format_exc()}
    with open(os.path.join(target, "report.json"), "w") as f:
        json.dump(report, f)


def described(fluid, path):
    """The whole contents of a program file, except the lines of the scripts that built it."""
    with open(path, "rb") as f:
        program = fluid.Program.parse_from_string(f.read())
    kinds, found = fluid.core.VarDesc.VarType, []
    for block in program.blocks:
        variables, ops = {}, []
        for v in block.vars.values():
            variables[v.name] = [str(v.type), v.persistable, v.desc.need_check_feed()]
            if v.type in (kinds.LOD_TENSOR, kinds.LOD_TENSOR_ARRAY, kinds.SELECTED_ROWS):
                variables[v.name] += [str(v.dtype), [max(extent, -1) for extent in v.shape]]  # below 0: unknown
            if v.type in (kinds.LOD_TENSOR, kinds.LOD_TENSOR_ARRAY):
                variables[v.name].append(v.lod_level)
        for op in block.ops:
            attrs = {name: repr(getattr(value, "idx", value)) for name, value in op.all_attrs().items()}
            attrs.pop("op_callstack", None)
            ops.append([op.type, {slot: op.input(slot) for slot in op.input_names},
                        {slot: op.output(slot) for slot in op.output_names}, attrs])
        found.append([block.idx, block.parent_idx, variables, ops])
    return found


def compare_programs(package, first, second):
    """Prints, for every program file of two folders of cases, whether both files say the same."""
    fluid = importlib.import_module(PACKAGES[package])
    report = {}
    for number in range(len(CASES)):
        for name in PROGRAM_FILES:
            paths = [os.path.join(folder, str(number), name) for folder in (first, second)]
            if all(map(os.path.exists, paths)):
                report["%d/%s" % (number, name)] = described(fluid, paths[0]) == described(fluid, paths[1])
    print(json.dumps(report))


# ---- both sides


def process(python, package, folder, *options):
    """Runs this script as one side; what it prints."""
    environment = dict(os.environ)
    if package == "paddle":
        environment.pop("PYTHONPATH", None)
    done = subprocess.run([python, HERE, "--side", package] + list(options), env=environment, cwd=folder,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    if done.returncode:
        raise SystemExit("%s (%s) ended with status %d:\n%s" % (python, package, done.returncode, done.stderr))
    return done.stdout


def start(python, package, source, target):
    process(python, package, os.path.dirname(target), "--target", target, *(["--source", source] if source else []))
    with open(os.path.join(target, "report.json")) as f:
        return json.load(f)


def differing_files(first, second, leave_out=()):
    """Names of the files that are not the same in both folders."""
    differing = []
    for name in sorted(set(os.listdir(first)) | set(os.listdir(second))):
        paths = [os.path.join(folder, name) for folder in (first, second)]
        if not all(map(os.path.exists, paths)):
            differing.append(name + " (one side only)")
        elif name not in leave_out:
            contents = []
            for path in paths:
                with open(path, "rb") as f:
                    contents.append(f.read())
            if contents[0] != contents[1]:
                differing.append(name)
    return differing


def faults(written, loaded, first, second, same_programs):
    """The faults of one case, as text; empty when there are none.

    ``same_programs``: path of a program file -> whether it says the same again; None: they are compared as bytes.
    """
    for report in (written, loaded):
        if "error" in report:
            return report["error"].strip().splitlines()[-1]
    if loaded.get("wrong"):
        return "other values: " + ", ".join(loaded["wrong"])
    if "prediction" in written and not numpy.allclose(written["prediction"], loaded["prediction"], 1e-5, 1e-6):
        return "other predictions"
    if same_programs is None:
        differing = differing_files(first, second)
    else:
        case = os.path.basename(first)
        differing = differing_files(first, second, PROGRAM_FILES)
        differing += [path for path, same in same_programs.items() if path.startswith(case + "/") and not same]
    return "other contents: " + ", ".join(differing) if differing else ""


def check(other_python, folder):
    """Runs both sides, prints a line a case, returns the number of failures."""
    pythons = {"anabranch": sys.executable, "paddle": other_python}
    at = lambda name: os.path.join(folder, name)
    written = {package: start(pythons[package], package, None, at(package)) for package in pythons}
    failures = 0

    def line(what, name, fault):
        print("%-5s %-24s %s%s" % ("FAIL" if fault else "ok", what, name, ": " + fault if fault else ""))
        return bool(fault)

    for writer, reader in (("anabranch", "paddle"), ("paddle", "anabranch")):
        again = writer + "-" + reader
        loaded = start(pythons[reader], reader, at(writer), at(again))
        same_programs = None
        if reader == "anabranch":
            text = process(other_python, "paddle", folder, "--source", at(writer), "--compare", at(again))
            same_programs = json.loads(text.splitlines()[-1])
        for number, (name, _) in enumerate(CASES):
            fault = faults(written[writer][name], loaded[name], os.path.join(at(writer), str(number)),
                           os.path.join(at(again), str(number)), same_programs)
            failures += line("%s -> %s" % (writer, reader), name, fault)
    for number, (name, _) in enumerate(CASES):
        differing = differing_files(*[os.path.join(at(package), str(number)) for package in pythons],
                                    leave_out=PROGRAM_FILES)
        failures += line("same", name, ", ".join(differing))
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option in ("--side", "--source", "--target", "--compare"):
        parser.add_argument(option, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.compare:
        compare_programs(options.side, options.source, options.compare)
        return 0
    if options.side:
        one_side(options.side, options.source, options.target)
        return 0
    python = os.environ.get(VARIABLE)
    if not python:
        print("skipped: %s does not name an interpreter with paddlepaddle 1.8.5" % VARIABLE)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        failures = check(python, folder)
    print("%d failed" % failures if failures else "all passed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
