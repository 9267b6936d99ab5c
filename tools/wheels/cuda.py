"""The wheel anabranch-cuda: the plug-in for GPUs as a separate package next to anabranch.

    python tools/wheels/cuda.py PLUGIN    writes dist/anabranch_cuda-*.whl of a built anabranch_cuda.so

It serves every CPython, because nothing in it knows Python, and exactly the version of anabranch it was built with:
pip keeps the two together, and the engine refuses another one by name. Libraries of NVIDIA are not in it; the extra
`libraries` installs them from PyPI, else those of the system are taken.
"""
import argparse
import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DIST = os.path.join(ROOT, "dist")
LIBRARIES = ("nvidia-cublas>=13,<14", "nvidia-cudnn-cu13>=9,<10", "nvidia-nccl-cu13>=2.20,<3")

METADATA = """Metadata-Version: 2.1
Name: anabranch-cuda
Version: {version}
Summary: The plug-in of anabranch for GPUs of NVIDIA
License: Apache-2.0
Requires-Python: >=3.8
Requires-Dist: anabranch=={version}
{libraries}Provides-Extra: libraries

With this package `fluid.CUDAPlace(0)` is a GPU of compute capability 9.0 or later, with a driver of CUDA 13 or later.
cuBLASLt 13, cuDNN 9 and NCCL 2 are opened by name when they are first needed; `pip install "anabranch-cuda[libraries]"`
installs them. It has run on one H100, never on several GPUs.
"""
WHEEL = "Wheel-Version: 1.0\nGenerator: anabranch\nRoot-Is-Purelib: false\nTag: py3-none-linux_x86_64\n"
PACKAGE = '"""The plug-in of anabranch for GPUs of NVIDIA, which anabranch loads when a program asks for a GPU."""\n' \
          '__version__ = "%s"\n'


def version():
    """That of pyproject.toml."""
    with open(os.path.join(ROOT, "pyproject.toml"), encoding="utf-8") as file:
        return re.search(r'^version = "(.*)"', file.read(), re.MULTILINE).group(1)


def metadata(of):
    libraries = "".join('Requires-Dist: %s; extra == "libraries"\n' % name for name in LIBRARIES)
    return METADATA.format(version=of, libraries=libraries)


def record(files):
    """The text of RECORD: each file with its hash and size."""
    lines = []
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append("%s,sha256=%s,%d\n" % (name, digest, len(content)))
    return "".join(lines)


def write(plugin, folder):
    """Writes a wheel for this machine, and returns its path."""
    of = version()
    info = "anabranch_cuda-%s.dist-info/" % of
    with open(plugin, "rb") as file:
        files = {"anabranch_cuda/anabranch_cuda.so": file.read()}
    files["anabranch_cuda/__init__.py"] = (PACKAGE % of).encode()
    files[info + "METADATA"] = metadata(of).encode()
    files[info + "WHEEL"] = WHEEL.encode()
    files[info + "RECORD"] = (record(files) + info + "RECORD,,\n").encode()
    path = os.path.join(folder, "anabranch_cuda-%s-py3-none-linux_x86_64.whl" % of)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100755 if name.endswith(".so") else 0o100644) << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return path


def build(plugin, dist=DIST):
    """The wheel in dist/, with the oldest glibc that it runs with in its name."""
    os.makedirs(dist, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        raw, repaired = write(plugin, folder), os.path.join(folder, "repaired")
        subprocess.run([sys.executable, "-m", "auditwheel", "repair", "--strip", "-w", repaired, raw], check=True,
                       env=dict(os.environ, PATH=os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]),
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        name, = os.listdir(repaired)
        return shutil.move(os.path.join(repaired, name), os.path.join(dist, name))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plugin")
    print(build(parser.parse_args().plugin))
    return 0


if __name__ == "__main__":
    sys.exit(main())
