"""Says what this machine and this installation are like, and tries them for about ten seconds.

    anabranch doctor             a report to copy into a question; takes about ten seconds
    anabranch doctor --quick     without the trials
"""
from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence

import numpy

from . import __version__, _core
from ._trials import TRIALS, NotTried

#: Instructions that kernels make use of, by their names in /proc/cpuinfo.
_INSTRUCTIONS = ("sse4_2", "avx", "avx2", "fma", "avx512f", "avx512_bf16", "amx_bf16")
_GIB = 1 << 30


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return None


def _field(text: str | None, name: str) -> str:
    """The value of the first line ``name : value``; "unknown" when there is none."""
    for line in (text or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return "unknown"


def quota_cores(text: str | None) -> float | None:
    """float|None: how many cores /sys/fs/cgroup/cpu.max allows; None: as many as there are.

    >>> quota_cores("150000 100000"), quota_cores("max 100000"), quota_cores(None)
    (1.5, None, None)
    """
    parts = (text or "max").split()
    if len(parts) != 2 or not all(part.isdigit() for part in parts):
        return None
    return int(parts[0]) / int(parts[1])


def available_gib() -> float:
    """float: memory that is left, in GiB, to the machine or to its control group; infinity where nothing says so."""
    left = [float("inf")]
    number = _field(_read("/proc/meminfo"), "MemAvailable").split()[0]
    if number.isdigit():
        left.append(int(number) * 1024 / _GIB)
    limit, used = _read("/sys/fs/cgroup/memory.max"), _read("/sys/fs/cgroup/memory.current")
    if limit and used and limit.isdigit() and used.isdigit():
        left.append((int(limit) - int(used)) / _GIB)
    return min(left)


def _gib(text: str) -> str:
    number = text.split()[0] if text else ""
    return "%.1f GiB" % (int(number) * 1024 / _GIB) if number.isdigit() else "unknown"


def machine() -> dict[str, str]:
    """dict: what the machine is like: name -> text."""
    cpu, memory = _read("/proc/cpuinfo"), _read("/proc/meminfo")
    flags = set(_field(cpu, "flags").split())
    limit, cores = _read("/sys/fs/cgroup/memory.max"), quota_cores(_read("/sys/fs/cgroup/cpu.max"))
    return {
        "processor": _field(cpu, "model name"),
        "instructions": " ".join(name for name in _INSTRUCTIONS if name in flags) or "none that kernels look for",
        "cores": "%d usable of %s; quota %s" % (len(os.sched_getaffinity(0)), os.cpu_count(),
                                                "none" if cores is None else "%.3g cores" % cores),
        "memory": "%s, %s available; limit %s" % (
            _gib(_field(memory, "MemTotal")), _gib(_field(memory, "MemAvailable")),
            "%.1f GiB" % (int(limit) / _GIB) if limit and limit.isdigit() else "none"),
        "huge pages": _read("/sys/kernel/mm/transparent_hugepage/enabled") or "unknown",
        "system": "%s, %s" % (platform.platform(), " ".join(platform.libc_ver())),
    }


def plugins() -> list[str]:
    """list of str: the plug-ins that are installed, of "grpc" and "gloo"."""
    # Beside the engine, which is a link in a source tree.
    folders = [os.path.dirname(of(_core.__file__)) for of in (os.path.abspath, os.path.realpath)]
    return [name for name in ("grpc", "gloo")
            if any(os.path.exists(os.path.join(folder, "anabranch_%s.so" % name)) for folder in folders)]


def installation() -> dict[str, str]:
    """dict: versions, and settings of the environment that change what programs do: name -> text."""
    named = sorted(name for name in os.environ if name.startswith(("FLAGS_", "CPU_NUM", "OMP_", "MKL_", "ANABRANCH_")))
    return {
        "anabranch": "%s in %s" % (__version__, os.path.dirname(os.path.abspath(__file__))),
        "python": "%s, numpy %s" % (platform.python_version(), numpy.__version__),
        "plug-in for clusters": ", ".join(plugins()) or "not installed",
        "environment": " ".join("%s=%s" % (name, os.environ[name]) for name in named) or "nothing set",
    }


def odd() -> list[str]:
    """list of str: what is unusual here, and what it does to programs."""
    found = list(_core.environment_flag_warnings())
    usable, cores = len(os.sched_getaffinity(0)), quota_cores(_read("/sys/fs/cgroup/cpu.max"))
    if cores is not None and cores < usable:
        found.append("a quota of %.3g cores for %d: threads beyond it stop the others; CPU_NUM=%d"
                     % (cores, usable, max(1, int(cores))))
    load = float((_read("/proc/loadavg") or "0").split()[0])
    if load > usable + 0.5:
        found.append("other programs work: a load of %.1f on %d cores; what is measured now misleads" % (load, usable))
    if "[never]" in (_read("/sys/kernel/mm/transparent_hugepage/enabled") or ""):
        found.append("huge pages are off: large tensors take longer to reach")
    if "avx2" not in _field(_read("/proc/cpuinfo"), "flags").split():
        found.append("no AVX2: kernels take narrow vectors")
    if available_gib() < 1:
        found.append("less than 1 GiB of memory is available")
    if shutil.disk_usage(tempfile.gettempdir()).free < _GIB:
        found.append("less than 1 GiB is free in %s, where data sets and models are written" % tempfile.gettempdir())
    return found


def parser() -> argparse.ArgumentParser:
    """ArgumentParser: of ``anabranch doctor``."""
    made = argparse.ArgumentParser(prog="anabranch doctor", description=(__doc__ or "").partition("\n")[0])
    made.add_argument("--quick", action="store_true", help="without the trials")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``anabranch doctor``.

    Args:
        argv (list of str, optional): arguments; those of the process by default.

    Returns:
        int: exit code: 0, or 1 when a trial failed.
    """
    quick = parser().parse_args(argv).quick
    for name, text in {**machine(), **installation()}.items():
        print("%-22s %s" % (name, text))
    for text in odd():
        print("%-22s %s" % ("odd", text))
    failed, begin = 0, time.monotonic()
    for name, trial in {} if quick else TRIALS.items():
        try:
            print("%-22s ok: %s" % (name, trial()), flush=True)
        except NotTried as e:
            print("%-22s not tried: %s" % (name, e))
        except Exception as e:
            failed = 1
            print("%-22s FAILED: %s: %s" % (name, type(e).__name__, e))
    if not quick:
        print("%-22s %.0f s" % ("trials took", time.monotonic() - begin))
    return failed


if __name__ == "__main__":
    sys.exit(main())
