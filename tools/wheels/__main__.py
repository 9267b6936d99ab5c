"""Wheels for the CPythons of a machine, of one engine that is compiled once.

    python tools/wheels build CORE [PYTHON...]   writes dist/*.whl; CORE is where ./dev install has put the engine
    python tools/wheels check [PYTHON...]        installs each into an environment with NumPy alone, tries it, and
                                                 prints the table of docs/install.md
    python tools/wheels chroot                   tries the one for Debian's Python in a system that has Python and
                                                 nothing else (debootstrap, as root)

PYTHON are interpreters; without them all that are found: python3.N on the path, Debian's, and those of pyenv. From 3.12
on one wheel serves all (the stable ABI), so it is built with the first of those and tried with each.
"""
import argparse
import glob
import os
import platform
import shutil
import subprocess
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
WORK = os.path.join(ROOT, "build", "wheels")
DIST = os.path.join(ROOT, "dist")
FIRST, STABLE = (3, 8), (3, 12)                         # the oldest CPython; the first that the stable ABI serves
TOOLS = ("pip>=23.1", "scikit-build-core>=0.8", "nanobind>=2.0; python_version >= '3.9'",
         "nanobind>=2.0,<2.10; python_version < '3.9'", "numpy", "typing-extensions", "cmake>=3.26", "ninja")


def version_of(python):
    """(major, minor) of an interpreter, None where it does not run or lacks its headers or ensurepip."""
    code = ("import sys, os, sysconfig, ensurepip, venv; "
            "ok = os.path.exists(sysconfig.get_path('include') + '/Python.h') and sys.implementation.name == 'cpython';"
            "print(*sys.version_info[:2]) if ok else sys.exit(1)")
    try:
        done = subprocess.run([python, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60)
    except OSError:
        return None
    return tuple(map(int, done.stdout.split())) if done.returncode == 0 else None


def interpreters(named):
    """[(version, path)] by version, one each."""
    found = {}
    candidates = named or ["/usr/bin/python3"] + [shutil.which("python3.%d" % n) for n in range(8, 30)] + sorted(
        glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python")))
    for path in filter(None, candidates):
        version = version_of(path)
        if version and version >= FIRST:
            found.setdefault(version, path)
        elif named:
            raise SystemExit("%s is not a CPython from %d.%d on with headers" % ((path,) + FIRST))
    return sorted(found.items())


def fresh(folder, python, packages):
    """The interpreter of a new environment with these packages, and nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([python, "-m", "venv", folder], check=True)
    inside = os.path.join(folder, "bin", "python")
    subprocess.run([inside, "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages], check=True)
    return inside


def small_onednn():
    """A folder with the oneDNN of onednn.txt, to be found before the system's: the same soname, a smaller file."""
    folder = os.path.join(WORK, "onednn")
    if not os.path.exists(os.path.join(folder, "libdnnl.so.2")):
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--require-hashes", "-d", folder,
                        "-r", os.path.join(HERE, "onednn.txt")], check=True)
        path, = glob.glob(os.path.join(folder, "*.whl"))
        with zipfile.ZipFile(path) as packed:
            inside, = [name for name in packed.namelist() if name.endswith("/libdnnl.so.2")]
            with packed.open(inside) as source, open(os.path.join(folder, "libdnnl.so.2"), "wb") as target:
                shutil.copyfileobj(source, target)
    return folder


def build(core, python, version):
    """A wheel for an interpreter; all shared libraries are copied into it."""
    name = "%d.%d" % version
    folder = os.path.join(WORK, "build-" + name)
    inside = os.path.join(folder, "bin", "python")
    if not os.path.exists(os.path.join(folder, "bin", "cmake")):  # of an earlier build
        inside = fresh(folder, python, TOOLS)
    raw = os.path.join(WORK, "raw-" + name)
    shutil.rmtree(raw, ignore_errors=True)
    settings = ["cmake.define.ANABRANCH_CORE=" + os.path.abspath(core),
                "build-dir=" + os.path.join(WORK, "tree-" + name)]
    if version >= STABLE:
        settings.append("wheel.py-api=cp%d%d" % STABLE)
    options = [word for setting in settings for word in ("-C", setting)]
    subprocess.run([inside, "-m", "pip", "wheel", ROOT, "-q", "--no-deps", "--no-build-isolation", "-w", raw, *options],
                   check=True)
    path, = glob.glob(os.path.join(raw, "*.whl"))
    repaired = os.path.join(WORK, "repaired-" + name)
    shutil.rmtree(repaired, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "auditwheel", "repair", "--strip", "-w", repaired, path], check=True,
                   env=dict(os.environ, PATH=os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"],
                            LD_LIBRARY_PATH=small_onednn()))
    made, = glob.glob(os.path.join(repaired, "*.whl"))
    if shutil.which("advzip"):  # the same format, with more patience: 4 % less
        subprocess.run(["advzip", "-z", "-3", "-q", made], check=True)
    for old in glob.glob(os.path.join(DIST, "anabranch-*-%s-*.whl" % tag_of(version))):
        os.remove(old)
    shutil.move(made, DIST)


def tag_of(version):
    return "cp%d%d-abi3" % STABLE if version >= STABLE else "cp%d%d-cp%d%d" % (version * 2)


def wheel_of(version):
    found = glob.glob(os.path.join(DIST, "anabranch-*-%s-*.whl" % tag_of(version)))
    if not found:
        raise SystemExit("dist/ has no wheel %s" % tag_of(version))
    return max(found, key=os.path.getmtime)


def check(version, python):
    """A row of the table, and whether all trials passed."""
    wheel = wheel_of(version)
    inside = fresh(os.path.join(WORK, "try-%d.%d" % version), python, [wheel])
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "LD_"))}
    done = subprocess.run([inside, os.path.join(HERE, "trial.py")], stdout=subprocess.PIPE, universal_newlines=True,
                          env=environment, cwd=WORK)
    return row("%d.%d" % version, version, wheel, done)


def in_chroot():
    """The row of a system with Python and nothing else, into which wheels are unpacked: it has no pip either."""
    root, site = os.path.join(WORK, "chroot"), os.path.join(WORK, "chroot", "opt", "site")
    if not os.path.exists(os.path.join(root, "usr", "bin", "python3")):
        release = platform.freedesktop_os_release()["VERSION_CODENAME"]
        subprocess.run(["debootstrap", "--variant=minbase", "--include=python3", release, root], check=True)
    inside = ["chroot", root, "/usr/bin/env", "-i", "PATH=/usr/bin:/bin", "PYTHONPATH=/opt/site"]
    told = subprocess.run([*inside, "python3", "-c", "import sys; print(*sys.version_info[:2])"], check=True,
                          stdout=subprocess.PIPE).stdout
    version = tuple(map(int, told.split()))
    numpy = os.path.join(WORK, "numpy-%d.%d" % version)
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:",
                    "--python-version", "%d.%d" % version, "-d", numpy, "numpy"], check=True)
    shutil.rmtree(site, ignore_errors=True)
    wheel = wheel_of(version)
    for path in [wheel, *glob.glob(os.path.join(numpy, "*.whl"))]:
        with zipfile.ZipFile(path) as packed:
            packed.extractall(site)
    shutil.copy(os.path.join(HERE, "trial.py"), os.path.join(root, "opt"))
    done = subprocess.run([*inside, "python3", "/opt/trial.py"], stdout=subprocess.PIPE, universal_newlines=True)
    return row("%d.%d, of Debian, in a chroot with nothing else" % version, version, wheel, done)


def row(title, version, wheel, done):
    """A row of the table - CPython, wheel, MB, glibc, milliseconds of the import, trials - and whether all is well."""
    *lines, last = done.stdout.strip().splitlines() or ["nothing"]
    sys.stderr.write("\n".join(lines) + "\n")
    floor = wheel.split("manylinux_")[1].split("_x86_64")[0].split(".")[0].replace("_", ".")
    size = os.path.getsize(wheel) / 1e6
    return "| %s | `%s` | %.1f | %s | %s |" % (title, tag_of(version), size, floor, last), done.returncode == 0


def refused_by_musl():
    """Whether pip finds no wheel for systems with musl."""
    done = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-index", "--no-deps", "--find-links",
                           DIST, "--only-binary=:all:", "--platform", "musllinux_1_2_x86_64", "-d", WORK, "anabranch"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    return done.returncode != 0 and "No matching distribution" in done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("build", "check", "chroot"))
    parser.add_argument("rest", nargs="*")
    args = parser.parse_args()
    if args.what == "build":
        os.makedirs(DIST, exist_ok=True)
        tags = set()
        for version, python in interpreters(args.rest[1:]):
            if tag_of(version) not in tags:
                build(args.rest[0], python, version)
            tags.add(tag_of(version))
        return 0
    rows = [in_chroot()] if args.what == "chroot" else [check(*found) for found in interpreters(args.rest)]
    print("| CPython | wheel | MB | glibc | import, ms | trials |\n|---|---|---|---|---|---|")
    print("\n".join(text for text, _ in rows))
    refused = refused_by_musl()
    print("\nSystems with musl %s the wheels." % ("refuse" if refused else "TAKE"))
    return int(not (refused and all(good for _, good in rows)))


if __name__ == "__main__":
    sys.exit(main())
