"""What `./dev install` puts down for C++ programs: a project outside of the tree is built with it and answers."""
import os
import shutil
import subprocess

import numpy as np
import pytest
from repository import ROOT

import anabranch.fluid as fluid

RELEASE = os.path.join(ROOT, "build", "release")

pytestmark = pytest.mark.skipif(
    not os.path.exists(os.path.join(RELEASE, "build.ninja")) or not shutil.which("cmake"),
    reason="./dev build was not run")


def run(*words, **more):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=280, **more)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.slow(7)
def test_a_project_outside_of_the_tree(tmp_path):
    """The program of examples/cpp_project. One test: two that build the archive would be in each other's way."""
    run("ninja", "-C", RELEASE, "anabranch_archive")
    run("cmake", "--install", RELEASE, "--component", "cpp", "--prefix", str(tmp_path / "prefix"))
    shutil.copytree(os.path.join(ROOT, "examples", "cpp_project"), str(tmp_path / "project"))
    run("cmake", "-G", "Ninja", "-S", "project", "-B", "build", "-DCMAKE_PREFIX_PATH=%s" % (tmp_path / "prefix"),
        "-DCMAKE_BUILD_TYPE=Release", cwd=str(tmp_path))
    run("cmake", "--build", "build", cwd=str(tmp_path))
    answer = str(tmp_path / "build" / "answer")
    answers_like_python(answer, str(tmp_path / "model"))
    has_the_errors_of_the_engine(answer, str(tmp_path / "none"))
    has_headers_and_no_others(tmp_path / "prefix" / "include" / "anabranch")


def answers_like_python(answer, model):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        y = fluid.layers.fc(fluid.layers.fc(fluid.data("x", [None, 3]), 5, act="relu"), 2, act="softmax")
        exe = fluid.Executor()
        exe.run(startup)
        fluid.io.save_inference_model(model, ["x"], [y], exe, main)
        expected, = exe.run(main, {"x": np.array([[1, -0.5, 2]], "float32")}, [y])
    name, *found = run(answer, model, "1", "-0.5", "2").split()
    np.testing.assert_allclose([float(word) for word in found], expected[0], rtol=1e-5)
    assert name


def has_the_errors_of_the_engine(answer, missing):
    done = subprocess.run([answer, missing, "1"], stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 1 and "none" in done.stderr
    assert subprocess.run([answer], stderr=subprocess.PIPE, timeout=60).returncode == 2


def has_headers_and_no_others(include):
    assert (include / "engine" / "predictor.h").exists() and not (include / "ops").exists()
    assert all(name.endswith(".h") for _, _, names in os.walk(str(include)) for name in names)
