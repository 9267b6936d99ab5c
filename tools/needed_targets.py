#!/usr/bin/env python3
"""Prints the build targets that tests need, one line.

    needed_targets.py [ARGUMENTS OF PYTEST]     targets for the test files and folders among the arguments
    needed_targets.py --cpp FILTER              test programs that contain C++ tests matching a GoogleTest filter, and
                                                the plug-in that they load

All Python tests need the package. A test that mentions the simulated device, or a program of build/release, itself or
in a helper that it imports, needs those as well. Arguments that name no file select from all tests, so they need
everything.
"""
import fnmatch
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PACKAGE = "python_package"
PLUGIN = "anabranch_simdevice"
EVERYTHING = [PACKAGE, "cpp_programs", PLUGIN]
HELPERS = ("tests/support", "tests/ops", "tests/passes", "tests/trials", "tests/simdevice", "benchmarks",
           "tools", "tools/simdevice")
IMPORT = re.compile(r"^\s*(?:from|import)\s+(\w+)", re.M)
PROGRAM = re.compile(r'"release", "(?:python", ")?(\w+)(?:\.so)?"|build/release/(\w+)')
DEVICE = re.compile(r"simdevice|ANABRANCH_TEST_PLACE|DeviceKernels", re.I)
CPP_TEST = re.compile(r"^\s*(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", re.M)
PROGRAMS = (("anabranch_tests", ("tests/cpp/*_test.cc", "tests/cpp/sim/*.cc")),
            ("anabranch_steady_tests", ("tests/cpp/steady/*.cc",)),
            ("simdevice_tests", ("tests/cpp/device/simdevice_*.cc",)),
            ("device_kernels_test", ("tests/cpp/device_kernels/*.cc",)),
            ("cuda_tests", ("tests/cpp/cuda/[!ps]*_test.cc", "tests/cpp/cuda/process_test.cc")))


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def imported(path, text):
    """Paths of the modules of this repository that a file imports."""
    folders = [os.path.dirname(path)] + [os.path.join(ROOT, folder) for folder in HELPERS]
    for name in IMPORT.findall(text):
        for folder in folders:
            candidate = os.path.join(folder, name + ".py")
            if os.path.exists(candidate):
                yield os.path.realpath(candidate)
                break


def with_imports(path):
    """The texts of a file and of all files that it imports, directly or not."""
    pending, seen = [os.path.realpath(path)], set()
    while pending:
        path = pending.pop()
        if path not in seen:
            seen.add(path)
            text = read(path)
            yield text
            pending.extend(imported(path, text))


def files_of(arguments):
    """The test files among pytest's arguments; of a folder all its tests."""
    for argument in arguments:
        path = argument.split("::")[0]
        if os.path.isdir(path):
            yield from sorted(glob.glob(os.path.join(path, "**", "test_*.py"), recursive=True))
        elif path.endswith(".py") and os.path.exists(path):
            yield path


def python_targets(arguments):
    """Targets of a selection, the package first."""
    files, found = list(files_of(arguments)), {}
    if not files:
        return EVERYTHING
    for path in files:
        for text in with_imports(path):
            found.update(dict.fromkeys(filter(None, (name for pair in PROGRAM.findall(text) for name in pair))))
            if DEVICE.search(text):
                found[PLUGIN] = None
    known = {PLUGIN} | {os.path.basename(path)[:-3] for folder in ("examples", "benchmarks") for path in
                                       glob.glob(os.path.join(ROOT, folder, "cpp", "*.cc"))}
    return [PACKAGE] + sorted(known & set(found))


def matches(name, pattern):
    """Whether a GoogleTest filter selects a test; parameterized suites are named PREFIX/SUITE."""
    positive, _, negative = pattern.partition("-")

    def any_of(patterns):
        return any(fnmatch.fnmatchcase(name, one) or fnmatch.fnmatchcase("x/" + name + "/0", one)
                   for one in patterns.split(":") if one)

    return any_of(positive or "*") and not any_of(negative)


def cpp_targets(pattern):
    """Test programs with at least one test that the filter selects, and the plug-in that these tests load."""
    found, plugin = [], []
    for program, patterns in PROGRAMS:
        for path in sorted(path for each in patterns for path in glob.glob(os.path.join(ROOT, each))):
            text = read(path)
            if any(matches("%s.%s" % test, pattern) for test in CPP_TEST.findall(text)):
                found += [] if program in found else [program]
                plugin = [PLUGIN] if program == "anabranch_tests" and DEVICE.search(text) else plugin
    return found + plugin


def main(arguments):
    if arguments[:1] == ["--cpp"]:
        targets = cpp_targets(arguments[1])
        if not targets:
            raise SystemExit("no C++ test matches %s" % arguments[1])
    else:
        targets = python_targets(arguments)
    print(*targets)


if __name__ == "__main__":
    main(sys.argv[1:])
