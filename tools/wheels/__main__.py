"""Wheels for the CPythons of a machine, of one engine that is compiled once.

    python tools/wheels build CORE [PYTHON...]   writes dist/*.whl; CORE is where ./dev install has put the engine
    python tools/wheels check [PYTHON...]        installs each into an environment with NumPy alone, tries it, and
                                                 prints the table of docs/install.md

PYTHON are interpreters; without them all that are found: python3.N on the path, Debian's, and those of pyenv. From 3.12
on one wheel serves all (the stable ABI), so it is built with the first of those and tried with each.
"""
import argparse
import glob
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
WORK = os.path.join(ROOT, "build", "wheels")
DIST = os.path.join(ROOT, "dist")
FIRST, STABLE = (3, 8), (3, 12)                         # the oldest CPython; the first that the stable ABI serves
TOOLS = ("pip>=23.1", "scikit-build-core>=0.8", "nanobind>=2.0", "numpy", "typing-extensions", "cmake>=3.26", "ninja")


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
            raise SystemExit("%s is no CPython from %d.%d on with headers" % ((path,) + FIRST))
    return sorted(found.items())


def fresh(folder, python, packages):
    """The interpreter of a new environment with these packages, and nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([python, "-m", "venv", folder], check=True)
    inside = os.path.join(folder, "bin", "python")
    subprocess.run([inside, "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages], check=True)
    return inside


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
    subprocess.run([sys.executable, "-m", "auditwheel", "repair", "-z", "9", "-w", DIST, path], check=True,
                   env=dict(os.environ, PATH=os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]))


def tag_of(version):
    return "cp%d%d-abi3" % STABLE if version >= STABLE else "cp%d%d-cp%d%d" % (version * 2)


def wheel_of(version):
    found = glob.glob(os.path.join(DIST, "anabranch-*-%s-*.whl" % tag_of(version)))
    if not found:
        raise SystemExit("dist/ has no wheel %s" % tag_of(version))
    return max(found, key=os.path.getmtime)


def check(version, python):
    """A row of the table: CPython, wheel, MiB, glibc, milliseconds of the import, trials."""
    wheel = wheel_of(version)
    inside = fresh(os.path.join(WORK, "try-%d.%d" % version), python, [wheel])
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "LD_"))}
    done = subprocess.run([inside, os.path.join(HERE, "trial.py")], stdout=subprocess.PIPE, universal_newlines=True,
                          env=environment, cwd=WORK)
    *lines, last = done.stdout.strip().splitlines() or ["nothing"]
    sys.stderr.write("\n".join(lines) + "\n")
    floor = wheel.split("manylinux_")[1].split("_x86_64")[0].split(".")[0].replace("_", ".")
    size = os.path.getsize(wheel) / 2 ** 20
    row = "| %d.%d | `%s` | %.1f | %s | %s |" % (version + (tag_of(version), size, floor, last))
    return row, done.returncode == 0


def refused_by_musl():
    """Whether pip finds no wheel for systems with musl."""
    done = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-index", "--no-deps", "--find-links",
                           DIST, "--only-binary=:all:", "--platform", "musllinux_1_2_x86_64", "-d", WORK, "anabranch"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    return done.returncode != 0 and "No matching distribution" in done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("build", "check"))
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
    rows = [check(*found) for found in interpreters(args.rest)]
    print("| CPython | wheel | MiB | glibc | import, ms | trials |\n|---|---|---|---|---|---|")
    print("\n".join(row for row, _ in rows))
    refused = refused_by_musl()
    print("\nSystems with musl %s the wheels." % ("refuse" if refused else "TAKE"))
    return int(not (refused and all(good for _, good in rows)))


if __name__ == "__main__":
    sys.exit(main())
