"""Says what this machine and this installation are like, and tries them for a few seconds.

    anabranch doctor             a report to copy into a question
    anabranch doctor --quick     without the trial
"""
from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Sequence

import numpy

from . import __version__, _core, fluid

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


def quota(text: str | None) -> str:
    """str: what /sys/fs/cgroup/cpu.max allows.

    >>> quota("150000 100000"), quota("max 100000"), quota(None)
    ('1.5 cores', 'none', 'none')
    """
    parts = (text or "max").split()
    if len(parts) != 2 or not all(part.isdigit() for part in parts):
        return "none"
    return "%.3g cores" % (int(parts[0]) / int(parts[1]))


def _gib(text: str) -> str:
    number = text.split()[0] if text else ""
    return "%.1f GiB" % (int(number) * 1024 / _GIB) if number.isdigit() else "unknown"


def machine() -> dict[str, str]:
    """dict: what the machine is like: name -> text."""
    cpu, memory = _read("/proc/cpuinfo"), _read("/proc/meminfo")
    flags = set(_field(cpu, "flags").split())
    limit = _read("/sys/fs/cgroup/memory.max")
    return {
        "processor": _field(cpu, "model name"),
        "instructions": " ".join(name for name in _INSTRUCTIONS if name in flags) or "none that kernels look for",
        "cores": "%d usable of %s; quota %s" % (len(os.sched_getaffinity(0)), os.cpu_count(),
                                                quota(_read("/sys/fs/cgroup/cpu.max"))),
        "memory": "%s, %s available; limit %s" % (
            _gib(_field(memory, "MemTotal")), _gib(_field(memory, "MemAvailable")),
            "%.1f GiB" % (int(limit) / _GIB) if limit and limit.isdigit() else "none"),
        "huge pages": _read("/sys/kernel/mm/transparent_hugepage/enabled") or "unknown",
        "system": "%s, %s" % (platform.platform(), " ".join(platform.libc_ver())),
    }


def installation() -> dict[str, str]:
    """dict: versions, and settings of the environment that change what programs do: name -> text."""
    # Beside the engine, which is a link in a source tree.
    folders = [os.path.dirname(of(_core.__file__)) for of in (os.path.abspath, os.path.realpath)]
    plugins = [name for name in ("grpc", "gloo")
               if any(os.path.exists(os.path.join(folder, "anabranch_%s.so" % name)) for folder in folders)]
    named = sorted(name for name in os.environ if name.startswith(("FLAGS_", "CPU_NUM", "OMP_", "MKL_", "ANABRANCH_")))
    return {
        "anabranch": "%s in %s" % (__version__, os.path.dirname(os.path.abspath(__file__))),
        "python": "%s, numpy %s" % (platform.python_version(), numpy.__version__),
        "plug-in for clusters": ", ".join(plugins) or "not installed",
        "environment": " ".join("%s=%s" % (name, os.environ[name]) for name in named) or "nothing set",
    }


# ---- the trial


def _train(replicas: int, steps: int) -> tuple[list[float], float]:
    """Losses of a small net, and steps per second."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    main.random_seed = startup.random_seed = 1
    with fluid.program_guard(main, startup), fluid.scope_guard(scope), fluid.unique_name.guard():
        x, y = fluid.data("x", [None, 64]), fluid.data("y", [None, 1])
        loss = fluid.layers.mean(fluid.layers.square_error_cost(
            fluid.layers.fc(fluid.layers.fc(x, 128, act="relu"), 1), y))
        fluid.optimizer.Adam(0.01).minimize(loss)
        executor = fluid.Executor()
        executor.run(startup)
        program = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=fluid.cpu_places(replicas))
        rows = numpy.random.RandomState(0).rand(256, 64).astype("float32")
        feed = {"x": rows, "y": rows[:, :8].sum(axis=1, keepdims=True)}
        losses, begin = [], time.monotonic()
        for _ in range(steps):
            losses.append(float(numpy.mean(executor.run(program, feed, [loss])[0])))
        return losses, steps / (time.monotonic() - begin)


def _learns() -> str:
    losses, rate = _train(1, 200)
    if not losses[-1] < losses[0] / 10:
        raise RuntimeError("the loss went from %g to %g in 200 steps" % (losses[0], losses[-1]))
    return "loss %.3g to %.3g in 200 steps, %.0f steps/s" % (losses[0], losses[-1], rate)


def _repeats() -> str:
    first, again = _train(2, 50)[0], _train(2, 50)[0]
    if first != again:
        raise RuntimeError("two runs of two replicas differ: %r and %r" % (first[-1], again[-1]))
    return "two runs of two replicas gave the same bits"


def _keeps() -> str:
    with tempfile.TemporaryDirectory() as folder:
        scope = fluid.Scope()
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup), fluid.scope_guard(scope), fluid.unique_name.guard():
            y = fluid.layers.fc(fluid.data("x", [None, 3]), 2)
            executor, rows = fluid.Executor(), numpy.ones((1, 3), "float32")
            executor.run(startup)
            expected = executor.run(main, {"x": rows}, [y])[0]
            fluid.io.save_inference_model(folder, ["x"], [y], executor, main)
        from .predictor import Predictor
        if not numpy.array_equal(Predictor(folder).run([rows])[0], expected):
            raise RuntimeError("a saved model gives other numbers than before")
    return "a saved model gave the same bits"


TRIALS: dict[str, Callable[[], str]] = {"training": _learns, "repetition": _repeats, "files": _keeps}


def parser() -> argparse.ArgumentParser:
    """ArgumentParser: of ``anabranch doctor``."""
    made = argparse.ArgumentParser(prog="anabranch doctor", description=(__doc__ or "").partition("\n")[0])
    made.add_argument("--quick", action="store_true", help="without the trial")
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
    for warning in _core.environment_flag_warnings():
        print("%-22s %s" % ("odd", warning))
    failed = 0
    for name, trial in {} if quick else TRIALS.items():
        try:
            print("%-22s ok: %s" % (name, trial()))
        except Exception as e:
            failed = 1
            print("%-22s FAILED: %s: %s" % (name, type(e).__name__, e))
    return failed


if __name__ == "__main__":
    sys.exit(main())
