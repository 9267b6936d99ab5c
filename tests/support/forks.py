"""Programs with simulated devices, each in its own process: a fork of one that has loaded the package, which saves
the second that loading takes. Flags of the simulated device are read once in a process, when a device is first used.

As a program: answers requests, one a line of stdin, {"text", "flags", "log", "limit_s"}, by {"status", "seconds"}.
"""
import glob
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from typing import Any, Dict, NamedTuple, Optional

from repository import ROOT, TESTS

PROGRAMS = os.path.join(TESTS, "simdevice")
TIMED_OUT = 124


class Done(NamedTuple):
    """How a program went: its exit status (negative: the signal that ended it), what it printed, how long it took."""
    status: int
    said: str
    seconds: float


class Forks:
    """A process that runs programs in forks of itself, one at a time."""

    def __init__(self, package: str = "", **environment: str) -> None:
        path = os.pathsep.join([package or package_in_use(), PROGRAMS])
        self.process = subprocess.Popen([sys.executable, os.path.abspath(__file__)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, universal_newlines=True,
                                        env=dict(os.environ, PYTHONPATH=path, **environment))

    def run(self, text: str, flags: Dict[str, Any], limit_s: float = 120) -> Done:
        """`flags` without FLAGS_; the plug-in is the simulated device."""
        assert self.process.stdin and self.process.stdout
        with tempfile.NamedTemporaryFile("r", prefix="simdevice", errors="replace") as log:
            json.dump({"text": text, "flags": dict(flags, device_plugin="simdevice"), "log": log.name,
                       "limit_s": limit_s}, self.process.stdin)
            self.process.stdin.write("\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
            if not answer:
                raise RuntimeError("the process that forks has ended with status %s" % self.process.wait())
            return Done(said=log.read(), **json.loads(answer))

    def close(self) -> None:
        if self.process.stdin:
            self.process.stdin.close()
        self.process.wait()


_shared: Dict[int, Forks] = {}


def shared() -> Forks:
    """The one of this process; its own after a fork. It ends when this process does."""
    if os.getpid() not in _shared:
        _shared[os.getpid()] = Forks()
    return _shared[os.getpid()]


def package_in_use() -> str:
    """The folder with the package that this process would load, which need not be that of the checkout."""
    found = importlib.util.find_spec("anabranch")
    return os.path.dirname(os.path.dirname(found.origin)) if found and found.origin else os.path.join(ROOT, "python")


def plugin() -> Optional[str]:
    """The file of the simulated device that the package would load, None where it was not built."""
    for core in glob.glob(os.path.join(package_in_use(), "anabranch", "_core*.so")):
        path = os.path.join(os.path.dirname(os.path.realpath(core)), "anabranch_simdevice.so")
        return path if os.path.exists(path) else None
    return None


# ---- the process that forks


def work(request: Dict[str, Any]) -> int:
    """In the fork."""
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    log = os.open(request["log"], os.O_WRONLY)
    os.dup2(log, 1)
    os.dup2(log, 2)
    import anabranch.fluid as fluid
    for name, value in request["flags"].items():
        kind = type(fluid.get_flags("FLAGS_" + name)["FLAGS_" + name])
        fluid.set_flags({"FLAGS_" + name: kind(value)})
    try:
        exec(compile(request["text"], "<program>", "exec"), {"__name__": "__main__"})  # noqa: S102
    except SystemExit as e:
        if isinstance(e.code, str):
            print(e.code)
        return e.code if isinstance(e.code, int) else int(e.code is not None)
    except BaseException:
        traceback.print_exc(file=sys.stdout)
        return 1
    return 0


def wait(child: int, limit_s: float) -> int:
    ends = time.monotonic() + limit_s
    pause = 0.001
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        if time.monotonic() > ends:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return TIMED_OUT
        time.sleep(pause)
        pause = min(0.02, pause * 1.3)


def main() -> int:
    import anabranch.fluid as fluid
    for package in (fluid, fluid.layers):       # modules are imported at first use: once for all forks
        for name in package.__all__:
            getattr(package, name)
    for line in sys.stdin:
        request, began = json.loads(line), time.monotonic()
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            return work(request)        # and end as any program does
        answer = {"status": wait(child, request["limit_s"]), "seconds": time.monotonic() - began}
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
