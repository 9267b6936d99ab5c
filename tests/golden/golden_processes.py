"""The processes of the programs. One is started for each program, or forked from one that has imported the
implementation, which takes longer than most programs.
"""
from __future__ import print_function

import atexit
import functools
import json
import os
import signal
import subprocess
import sys

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden.py")

ENDED = "GOLDEN ended "
PID = "GOLDEN pid "


def environment_of(args, behaviour):
    env = dict(os.environ)
    if args.fluid.split(".")[0] == "paddle":
        env.setdefault("OMP_NUM_THREADS", "1")           # Anabranch gives the same bits with any number of threads
    env.setdefault("MKL_DEBUG_CPU_TYPE", "5")            # the records were made with it (AVX2 on any CPU)
    env.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    env["FLAGS_fluid_exact"] = {"exact": "1.8.5", "default": ""}[behaviour]
    env["CPU_NUM"] = "1"
    return env


def started(words, env, stdin=None):
    return subprocess.Popen([sys.executable, GOLDEN] + words, stdin=stdin, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, env=env, universal_newlines=True, start_new_session=True)


class Process:
    """A program in a separate process."""

    def __init__(self, words, env):
        self._process = started(["_worker"] + words, env)

    def lines(self):
        return self._process.stdout

    def kill(self):
        os.killpg(self._process.pid, signal.SIGKILL)

    def wait(self):
        return self._process.wait()


class Forks:
    """Programs in forks of a process that has imported the implementation."""

    def __init__(self, fluid, env):
        self._words, self._env, self._process = ["_forks", fluid], env, None
        atexit.register(self.close)

    def start(self, words):
        if self._process is None or self._process.poll() is not None:
            self._process = started(self._words, self._env, subprocess.PIPE)
        self._pid, self._code = None, None
        try:
            self._process.stdin.write(json.dumps(words) + "\n")
            self._process.stdin.flush()
        except OSError:                                  # it ends, and its output says why
            pass
        return self

    def lines(self):
        for line in self._process.stdout:
            if line.startswith(PID):
                self._pid = int(line[len(PID):])
            elif line.startswith(ENDED):
                self._code = int(line[len(ENDED):])
                return
            else:
                yield line

    def kill(self):
        if self._pid:
            os.killpg(self._pid, signal.SIGKILL)

    def wait(self):
        return self._process.wait() if self._code is None else self._code

    def close(self):
        if self._process:
            self._process.kill()
            self._process.wait()


def starters(args, behaviours):
    """behaviour -> function that starts a program. Records are made in a process for each."""
    found = {}
    for behaviour in behaviours:
        env = environment_of(args, behaviour)
        if args.action == "check" and args.fluid.split(".")[0] != "paddle":
            found[behaviour] = Forks(args.fluid, env).start
        else:
            found[behaviour] = functools.partial(Process, env=env)
    return found
