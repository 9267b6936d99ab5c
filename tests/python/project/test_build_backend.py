"""pip install takes what ./dev has built, where that is for the same kind of interpreter; otherwise it compiles."""
import importlib.machinery
import os
import shutil
import subprocess

import pytest
from repository import ROOT

NINJA = shutil.which("ninja")
SUFFIX = importlib.machinery.EXTENSION_SUFFIXES[0]
RULES = """rule make
  command = %s
build python/made: make
build python_package: phony python/made
"""


@pytest.fixture
def backend(monkeypatch):
    pytest.importorskip("scikit_build_core")
    if NINJA is None:
        pytest.skip("ninja is not installed")
    monkeypatch.syspath_prepend(os.path.join(ROOT, "tools"))
    import build_backend
    return build_backend


def release(folder, module, command="echo $$PYTHONPATH >$out"):
    """A build folder with a module, whose ninja file makes `made`."""
    (folder / "python").mkdir()
    (folder / "build.ninja").write_text(RULES % command)
    if module:
        (folder / "python" / module).write_text("")
    return str(folder)


def test_a_finished_build_is_updated_and_packed(backend, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/of/the/build/environment")
    built = release(tmp_path, "_core" + SUFFIX)
    assert backend.settings(None, built) == {"cmake.define.ANABRANCH_BUILT": os.path.join(built, "python"),
                                             "build-dir": "build/packed-{wheel_tag}"}
    assert (tmp_path / "python" / "made").read_text() == "\n", "ninja ran, and did not see pip's environment"


@pytest.mark.parametrize("module, command", [(None, "touch $out"), ("_core.cpython-27-other.so", "touch $out"),
                                             ("_core" + SUFFIX, "false")], ids=["none", "other python", "fails"])
def test_everything_is_compiled_otherwise(backend, tmp_path, module, command):
    assert backend.settings(None, release(tmp_path, module, command)) is None


def test_settings_of_the_user_come_first(backend, tmp_path):
    given = {"cmake.build-type": "Debug"}
    assert backend.settings(given, release(tmp_path, "_core" + SUFFIX)) is given
    assert not (tmp_path / "python" / "made").exists()


@pytest.mark.slow(8)
def test_packing_compiles_nothing(tmp_path):
    """CMake installs the module, its stub and the two plug-ins, and no other file."""
    if not shutil.which("cmake"):
        pytest.skip("cmake is not installed")
    built = tmp_path / "built"
    built.mkdir()
    for name in ("_core" + SUFFIX, "_core.pyi", "anabranch_grpc.so", "anabranch_gloo.so", "anabranch_simdevice.so"):
        (built / name).write_text(name)
    build, prefix = str(tmp_path / "build"), tmp_path / "prefix"
    for words in (["-G", "Ninja", "-S", ROOT, "-B", build, "-DANABRANCH_BUILT=%s" % built],
                  ["--install", build, "--component", "python", "--prefix", str(prefix)]):
        done = subprocess.run(["cmake", *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    expected = {"_core" + SUFFIX, "_core.pyi", "anabranch_grpc.so", "anabranch_gloo.so"}
    assert {path.name for path in (prefix / "anabranch").iterdir()} == expected
    assert not (tmp_path / "build" / "compile_timer").exists()
