#!/usr/bin/env python3
"""Makes a CUDA toolkit that compiles the plug-in for GPUs, out of the wheels that cuda.pip lists.

    cuda.py [FOLDER]

FOLDER, else build/cuda, gets nvcc, headers and the static CUDA runtime, about 210 MB. The wheels, 1.1 GB, come from
PyPI by pip, one after another, and are not kept. No library is taken that programs open when they run: those are for
the machine that has the GPU.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
# Of a wheel's files, and where they go below FOLDER.
CONTENTS = {
    "nvidia/cu13/bin/": "bin/",
    "nvidia/cu13/include/": "include/",
    "nvidia/cu13/nvvm/": "nvvm/",
    "nvidia/cudnn/include/": "include/",
    "nvidia/nccl/include/": "include/",
    "nvidia/cu13/lib/libcudart_static.a": "lib/libcudart_static.a",
}


def place_of(name):
    """Where a wheel's file goes, or None."""
    for begin, place in CONTENTS.items():
        if name.startswith(begin) and not name.endswith("/"):
            return place + name[len(begin):]
    return None


def unpack(wheel, folder):
    """Writes the files of CONTENTS that a wheel holds; programs stay executable. Returns the number of files."""
    count = 0
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            place = place_of(entry.filename)
            if place is None:
                continue
            path = folder / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(archive.read(entry))
            path.chmod(0o755 if entry.external_attr >> 16 & 0o100 else 0o644)
            count += 1
    return count


def fetch(requirement, folder):
    """The wheel of one requirement, downloaded into a folder."""
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", folder,
                    requirement], check=True)
    return next(pathlib.Path(folder).glob("*.whl"))


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parent.parent / "build" / "cuda"
    folder.parent.mkdir(parents=True, exist_ok=True)
    for requirement in (HERE / "cuda.pip").read_text().split():
        with tempfile.TemporaryDirectory(dir=folder.parent) as downloads:
            count = unpack(fetch(requirement, downloads), folder)
        print("%s: %d files" % (requirement, count), flush=True)
    return subprocess.run([os.fspath(folder / "bin" / "nvcc"), "--version"], check=True).returncode


if __name__ == "__main__":
    sys.exit(main())
