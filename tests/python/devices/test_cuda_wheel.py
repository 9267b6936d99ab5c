"""tools/wheels/cuda.py: the wheel anabranch-cuda, and what the engine says of the plug-in in it."""
import base64
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile

import pytest
from repository import ROOT

PLUGIN = os.path.join(ROOT, "build", "cuda_plugin", "anabranch_cuda.so")
COMPILER = shutil.which(os.environ.get("CC", "cc"))
AUDITWHEEL = importlib.util.find_spec("auditwheel")
packs = pytest.mark.skipif(not AUDITWHEEL or not COMPILER, reason="no auditwheel or no C compiler")


@pytest.fixture
def wheels():
    spec = importlib.util.spec_from_file_location("wheels_cuda", os.path.join(ROOT, "tools", "wheels", "cuda.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def plugin_of(folder, version):
    """A library that says it is the plug-in of this version, and has nothing else."""
    source, made = folder / "plugin.c", folder / "plugin.so"
    source.write_text('const char* anabranch_device_build(void) { return "%s"; }\n'
                      "#include <math.h>\n"
                      "double needs_libc(double x) { return pow(x, x); }\n" % version)
    subprocess.run([COMPILER, "-shared", "-fPIC", "-g", "-o", str(made), str(source), "-lm"], check=True)
    return str(made)


def said_by(folder, wheel):
    """What CUDAPlace(0) raises where anabranch and the wheel are installed side by side."""
    site = folder / "site"
    site.mkdir()
    os.symlink(os.path.join(ROOT, "python", "anabranch"), site / "anabranch")
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", str(site),
                    wheel], check=True)
    code = ("import anabranch.fluid as fluid\n"
            "x = fluid.data('x', [2, 3])\n"
            "y = fluid.layers.relu(x)\n"
            "exe = fluid.Executor(fluid.CUDAPlace(0))\n"
            "exe.run(feed={'x': [[1, 2, 3]] * 2}, fetch_list=[y])\n")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("FLAGS_")}
    done = subprocess.run([sys.executable, "-c", code], env=dict(environment, PYTHONPATH=str(site)), text=True,
                          capture_output=True)
    return done.returncode, done.stderr


@packs
@pytest.mark.slow
def test_one_file_for_every_python(wheels, tmp_path):
    wheel = wheels.build(plugin_of(tmp_path, "1.2"), str(tmp_path / "dist"))
    assert "-py3-none-manylinux_" in wheel
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        info = next(name for name in names if name.endswith("METADATA"))
        lines = packed.read(info).decode().splitlines()
        assert packed.getinfo("anabranch_cuda/anabranch_cuda.so").external_attr >> 16 & 0o100
    assert "Requires-Dist: anabranch==" + wheels.version() in lines
    assert [line for line in lines if "extra" in line][0].startswith("Requires-Dist: nvidia-cublas>=13")
    assert not [name for name in names if ".libs/" in name], "libraries are opened by name, not bundled"


@packs
@pytest.mark.slow
def test_a_plugin_of_another_version_is_refused_by_name(wheels, tmp_path):
    code, text = said_by(tmp_path, wheels.build(plugin_of(tmp_path, "9.8.7"), str(tmp_path / "dist")))
    assert code == 1
    assert "anabranch_cuda.so was built for anabranch 9.8.7, this is anabranch " + wheels.version() in text, text


@packs
@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists(PLUGIN), reason="the plug-in for GPUs was not built")
def test_without_a_driver_the_error_says_so(wheels, tmp_path):
    code, text = said_by(tmp_path, wheels.build(PLUGIN, str(tmp_path / "dist")))
    if code != 0:  # else there is a GPU
        assert "there is no NVIDIA driver" in text or "this machine has 0 devices" in text, text


def test_the_record_names_every_file(wheels, tmp_path):
    plugin = tmp_path / "plugin.so"
    plugin.write_bytes(b"\0" * 1000)
    with zipfile.ZipFile(wheels.write(str(plugin), str(tmp_path))) as packed:
        names = packed.namelist()
        text = packed.read(next(name for name in names if name.endswith("RECORD"))).decode()
    assert [line.split(",")[0] for line in text.splitlines()] == names
    digest = base64.urlsafe_b64encode(hashlib.sha256(b"\0" * 1000).digest()).decode().rstrip("=")
    assert text.splitlines()[0] == "anabranch_cuda/anabranch_cuda.so,sha256=%s,1000" % digest
