"""Reports on this machine and this installation, and tests them for about ten seconds.

    anabranch doctor             a report to copy into a question
    anabranch doctor --quick     without the trials
"""
from __future__ import annotations

import argparse
import contextlib
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import IO

import numpy

from . import __version__, _core
from ._terminal import WIDTH, wrapped
from ._trials import TRIALS, NotTried
from ._trials_row import Trials
from .looking.command_line import Parser

#: Instruction sets that kernels use, by their names in /proc/cpuinfo.
_INSTRUCTIONS = ("sse4_2", "avx", "avx2", "fma", "avx512f", "avx512_bf16", "amx_bf16")
_GIB = 1 << 30
#: Width of the column of names; lines of a trial's output that a failure shows.
_NAMES, _LINES = 14, 8


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
    """float|None: number of cores that /sys/fs/cgroup/cpu.max allows; None: no limit.

    >>> quota_cores("150000 100000"), quota_cores("max 100000"), quota_cores(None)
    (1.5, None, None)
    """
    parts = (text or "max").split()
    if len(parts) != 2 or not all(part.isdigit() for part in parts):
        return None
    return int(parts[0]) / int(parts[1])


def available_gib() -> float:
    """float: GiB of memory available to the machine and its control group; infinity where that is unknown."""
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
    """dict: the report on the machine: name -> text."""
    cpu, memory = _read("/proc/cpuinfo"), _read("/proc/meminfo")
    flags = set(_field(cpu, "flags").split())
    limit, cores = _read("/sys/fs/cgroup/memory.max"), quota_cores(_read("/sys/fs/cgroup/cpu.max"))
    return {
        "processor": _field(cpu, "model name"),
        "instructions": " ".join(name for name in _INSTRUCTIONS if name in flags) or "none that kernels use",
        "cores": "%d usable of %s; quota %s" % (len(os.sched_getaffinity(0)), os.cpu_count(),
                                                "none" if cores is None else "%.3g cores" % cores),
        "memory": "%s, %s available; limit %s" % (
            _gib(_field(memory, "MemTotal")), _gib(_field(memory, "MemAvailable")),
            "%.1f GiB" % (int(limit) / _GIB) if limit and limit.isdigit() else "none"),
        "huge pages": _read("/sys/kernel/mm/transparent_hugepage/enabled") or "unknown",
        "system": "%s %s %s, %s" % (platform.system(), platform.release(), platform.machine(),
                                    " ".join(platform.libc_ver())),
    }


def plugins() -> list[str]:
    """list of str: the installed plug-ins, of "grpc" and "gloo"."""
    # Next to the engine, which is a link in a source tree.
    folders = [os.path.dirname(of(_core.__file__)) for of in (os.path.abspath, os.path.realpath)]
    return [name for name in ("grpc", "gloo")
            if any(os.path.exists(os.path.join(folder, "anabranch_%s.so" % name)) for folder in folders)]


def installation() -> dict[str, str]:
    """dict: versions, plug-ins and environment variables that change how programs run: name -> text."""
    named = sorted(name for name in os.environ if name.startswith(("FLAGS_", "CPU_NUM", "OMP_", "MKL_", "ANABRANCH_")))
    return {
        "anabranch": "%s in %s" % (__version__, os.path.dirname(os.path.abspath(__file__))),
        "python": "%s, numpy %s" % (platform.python_version(), numpy.__version__),
        "plug-ins": ", ".join(plugins()) or "none: training with several processes needs grpc",
        "environment": " ".join("%s=%s" % (name, os.environ[name]) for name in named) or "nothing set",
    }


def odd() -> list[str]:
    """list of str: unusual settings of this machine, each with its consequence."""
    found = list(_core.environment_flag_warnings())
    usable, cores = len(os.sched_getaffinity(0)), quota_cores(_read("/sys/fs/cgroup/cpu.max"))
    if cores is not None and cores < usable:
        found.append("a quota of %.3g cores for %d: more threads than that stall each other; set CPU_NUM=%d"
                     % (cores, usable, max(1, int(cores))))
    load = float((_read("/proc/loadavg") or "0").split()[0])
    if load > usable + 0.5:
        found.append("a load of %.1f on %d cores: other programs run, so timings mislead" % (load, usable))
    if "[never]" in (_read("/sys/kernel/mm/transparent_hugepage/enabled") or ""):
        found.append("huge pages are off: access to large tensors is slower")
    if "avx2" not in _field(_read("/proc/cpuinfo"), "flags").split():
        found.append("no AVX2: kernels use narrow vectors")
    if available_gib() < 1:
        found.append("less than 1 GiB of memory is available")
    if shutil.disk_usage(tempfile.gettempdir()).free < _GIB:
        found.append("less than 1 GiB is free in %s, which data sets and models need" % tempfile.gettempdir())
    return found


def parser() -> argparse.ArgumentParser:
    """ArgumentParser: the parser of ``anabranch doctor``."""
    made = Parser(prog="anabranch doctor", description=(__doc__ or "").partition("\n")[0])
    made.add_argument("--quick", action="store_true", help="Report only; run no trials.")
    return made


def _report(name: str, text: str) -> None:
    """Prints an entry, wrapped at words, in two columns."""
    lines = wrapped(text, WIDTH - _NAMES - 1).splitlines() or [""]
    for at, line in enumerate(lines):
        print(("%-*s %s" % (_NAMES, "" if at else name, line)).rstrip(), flush=True)


@contextlib.contextmanager
def _captured() -> Iterator[IO[str]]:
    """Sends the output of this process, of the engine and of child processes to a file until the block ends."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as file:
        sys.stdout.flush()
        sys.stderr.flush()
        kept = [os.dup(1), os.dup(2)]
        try:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            with contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
                yield file
        finally:
            file.flush()
            for number, copy in zip((1, 2), kept):
                os.dup2(copy, number)
                os.close(copy)


def _try(name: str, trial: Callable[[], str], progress: Trials) -> bool:
    """Runs a trial, whose output is shown only if it fails. Returns whether it failed."""
    failed, output = False, ""
    progress.start(name)
    with _captured() as file:
        try:
            verdict = "ok: " + trial()
        except NotTried as e:
            verdict = "not tried: %s" % e
        except Exception as e:
            failed, verdict = True, "FAILED: %s: %s" % (type(e).__name__, e)
            file.flush()
            file.seek(0)
            output = file.read()
    progress.clear()
    _report(name, verdict)
    for line in output.replace("\r", "\n").splitlines()[-_LINES:] if failed else ():
        _report("", "| " + line.rstrip())
    return failed


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``anabranch doctor``.

    Args:
        argv (list of str, optional): arguments. Default: those of the process.

    Returns:
        int: exit code: 0, or 1 when a trial failed.
    """
    quick = parser().parse_args(argv).quick
    for name, text in {**machine(), **installation()}.items():
        _report(name, text)
    for text in odd():
        _report("unusual", text)
    if quick:
        return 0
    begin = time.monotonic()
    with Trials(len(TRIALS)) as progress:
        failed = [_try(name, trial, progress) for name, trial in TRIALS.items()]
    _report("trials", "took %.0f s; %s" % (time.monotonic() - begin,
                                          "%d FAILED" % sum(failed) if any(failed) else "none failed"))
    return int(any(failed))


if __name__ == "__main__":
    sys.exit(main())
