"""Each command builds what it needs: the targets of tests, the default target, units of several files."""
import os
import re
import shutil
import subprocess
import sys

import pytest
from repository import ROOT

RELEASE = os.path.join(ROOT, "build", "release")
sys.path.insert(0, os.path.join(ROOT, "tools"))
import needed_targets  # noqa: E402

PACKAGE, DEVICE = "python_package", "anabranch_simdevice"


@pytest.mark.parametrize("arguments, expected", [
    (["tests/python/reading/test_multislot.py"], [PACKAGE]),
    (["tests/python/reading/test_multislot.py::test_a", "-k", "b"], [PACKAGE]),
    (["tests/python/devices/test_gpu_check.py"], [PACKAGE, DEVICE]),
    (["tests/python/project/test_example_models.py"], [PACKAGE, "score"]),
    (["-k", "relu"], [PACKAGE, "cpp_programs", DEVICE])])
def test_targets_of_python_tests(arguments, expected):
    arguments = [os.path.join(ROOT, word) if word.startswith("tests/") else word for word in arguments]
    assert needed_targets.python_targets(arguments) == expected


def test_a_helper_that_a_test_imports_counts(tmp_path):
    (tmp_path / "helper.py").write_text("import second\n")
    (tmp_path / "second.py").write_text('PLUGIN = "anabranch_simdevice.so"\n')
    (tmp_path / "test_it.py").write_text("from helper import x\n")
    assert needed_targets.python_targets([str(tmp_path)]) == [PACKAGE, DEVICE]


@pytest.mark.parametrize("pattern, program", [
    ("PsSimulation.Histories", "anabranch_tests"), ("PsSim*:-PsSimulation.H*", "anabranch_tests"),
    ("CudaGemm.*", "cuda_tests"), ("Cuda.IsOpenOnce", "cuda_tests")])
def test_programs_of_cpp_tests(pattern, program):
    assert program in needed_targets.cpp_targets(pattern)


@pytest.mark.parametrize("pattern, loads", [("DeviceRings*", True), ("DeviceRings.AWait*", True), ("DataTest*", False)])
def test_cpp_tests_get_the_plug_in_that_they_load(pattern, loads):
    assert (DEVICE in needed_targets.cpp_targets(pattern)) == loads


def test_a_filter_that_matches_nothing():
    assert needed_targets.cpp_targets("Nothing.Like.This") == []
    assert needed_targets.cpp_targets("CudaStep*") == []  # they need a toolkit: ./dev cuda
    done = subprocess.run([sys.executable, needed_targets.__file__, "--cpp", "Nothing.Like.This"], capture_output=True,
                          text=True)
    assert done.returncode == 1 and "no C++ test matches" in done.stderr


def commands(target):
    return subprocess.run(["ninja", "-C", RELEASE, "-t", "commands", target], check=True, capture_output=True,
                          text=True).stdout


@pytest.mark.skipif(not os.path.exists(os.path.join(RELEASE, "build.ninja")) or not shutil.which("ninja"),
                    reason="./dev build was not run")
@pytest.mark.parametrize("target", ["all", PACKAGE])
def test_the_default_target_is_the_package(target):
    compiled = set(re.findall(r" -c (\S+)", commands(target)))
    assert any("bindings" in path or "_core.dir" in path for path in compiled)
    others = [path for path in compiled if re.search(r"/(tests|benchmarks|examples|simdevice)/|\.cu$", path)]
    assert others == []
    assert len(compiled) < len(set(re.findall(r" -c (\S+)", commands("cpp_tests") + commands(PACKAGE))))


# ---- units

PROJECT = """
cmake_minimum_required(VERSION 3.21)
project(units LANGUAGES CXX)
include(%s/cmake/unity.cmake)
add_library(ab_ops OBJECT a.cc b.cc c.cc)
ab_unity(ab_ops 4)
"""
FILE = "namespace anabranch::math%s {\nnamespace {\nint infer() { return 1; }\n}\nint use_%s() { return infer(); }\n}\n"


@pytest.mark.slow(6)
@pytest.mark.parametrize("unity, objects", [("ON", 2), ("OFF", 3)])
def test_files_share_a_unit_unless_highway_compiles_them_several_times(tmp_path, unity, objects):
    """a and b have their own namespaces; c stays alone and may use the same name."""
    if not shutil.which("cmake") or not shutil.which("ninja"):
        pytest.skip("cmake or ninja is not installed")
    (tmp_path / "CMakeLists.txt").write_text(PROJECT % ROOT)
    for name, own in (("a", "::a_op"), ("b", "::b_op"), ("c", "::a_op")):
        (tmp_path / (name + ".cc")).write_text("// foreach_target.h\n" * (name == "c") + FILE % (own, name))
    build = str(tmp_path / "build")
    subprocess.run(["cmake", "-S", str(tmp_path), "-B", build, "-G", "Ninja", "-DANABRANCH_UNITY=" + unity], check=True,
                   stdout=subprocess.DEVNULL)
    done = subprocess.run(["ninja", "-C", build], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    made = [name for _, _, names in os.walk(build) for name in names if name.endswith(("cc.o", "cxx.o"))]
    assert len([name for name in made if "CMakeCXX" not in name]) == objects
