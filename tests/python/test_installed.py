"""What `./dev install` puts down for C++ programs: a project outside of the tree is built with it and answers."""
import os
import shutil
import subprocess

import numpy as np
import pytest

import anabranch.fluid as fluid

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
RELEASE = os.path.join(ROOT, "build", "release")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(
    not os.path.exists(os.path.join(RELEASE, "build.ninja")) or not shutil.which("cmake"),
    reason="./dev build was not run")]


def run(*words, **more):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=280, **more)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def answer(tmp_path_factory):
    """The program of examples/cpp_project, built in a folder of its own."""
    folder = tmp_path_factory.mktemp("project")
    run("ninja", "-C", RELEASE, "anabranch_archive")
    run("cmake", "--install", RELEASE, "--component", "cpp", "--prefix", str(folder / "prefix"))
    shutil.copytree(os.path.join(ROOT, "examples", "cpp_project"), str(folder / "project"))
    run("cmake", "-S", "project", "-B", "build", "-DCMAKE_PREFIX_PATH=%s" % (folder / "prefix"),
        "-DCMAKE_BUILD_TYPE=Release", cwd=str(folder))
    run("cmake", "--build", "build", cwd=str(folder))
    return str(folder / "build" / "answer")


def test_a_project_outside_of_the_tree_answers(answer, tmp_path):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        y = fluid.layers.fc(fluid.layers.fc(fluid.data("x", [None, 3]), 5, act="relu"), 2, act="softmax")
        exe = fluid.Executor()
        exe.run(startup)
        fluid.io.save_inference_model(str(tmp_path), ["x"], [y], exe, main)
        expected, = exe.run(main, {"x": np.array([[1, -0.5, 2]], "float32")}, [y])
    name, *found = run(answer, str(tmp_path), "1", "-0.5", "2").split()
    np.testing.assert_allclose([float(word) for word in found], expected[0], rtol=1e-5)
    assert name


def test_its_errors_are_those_of_the_engine(answer, tmp_path):
    done = subprocess.run([answer, str(tmp_path / "none"), "1"], stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 1 and "none" in done.stderr
    assert subprocess.run([answer], stderr=subprocess.PIPE, timeout=60).returncode == 2


def test_headers_and_no_others(answer):
    include = os.path.join(os.path.dirname(answer), "..", "prefix", "include", "anabranch")
    assert os.path.exists(os.path.join(include, "engine", "predictor.h"))
    assert not os.path.exists(os.path.join(include, "ops"))
    assert all(name.endswith(".h") for _, _, names in os.walk(include) for name in names)
