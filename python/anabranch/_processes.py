"""Processes of one job on this machine: started together, watched, and ended together."""
from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TextIO

_TAIL_LINES = 20
_POLL_S = 0.05
_GRACE_S = 10.0
_PR_SET_PDEATHSIG = 1


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """list of int: ports that nobody listens at now, all different.

    >>> len(set(free_ports(3)))
    3
    """
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in held:
            one.bind((host, 0))
        return [one.getsockname()[1] for one in held]


def _end_with_parent() -> None:
    """In the child: it ends when the launcher is killed."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class Process:
    """One role of a job, its output in a file of its own.

    Args:
        name (str): "worker 0".
        command (list of str): what runs.
        env (dict): its environment, whole.
        log (str): path of the file.
        serves (bool): ends by itself when the others have ended.
    """

    def __init__(self, name: str, command: Sequence[str], env: Mapping[str, str], log: str, serves: bool) -> None:
        self.name, self.log, self.serves = name, log, serves
        with open(log, "wb") as out:
            # A group of its own: Ctrl-C reaches the launcher alone, and what the process starts ends with it.
            self._popen = subprocess.Popen(list(command), env=dict(env), stdout=out, stderr=subprocess.STDOUT,
                                           stdin=subprocess.DEVNULL, start_new_session=True,
                                           preexec_fn=_end_with_parent)

    @property
    def pid(self) -> int:
        """int: number of the process, and of its group."""
        return self._popen.pid

    def poll(self) -> int | None:
        """int or None: how it ended; negative for a signal. What it has started ends with it."""
        if self._popen.returncode is None:
            if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                return None
            # Its number is nobody else's until it has been waited for.
            self._signal_group(signal.SIGKILL)
            self._popen.wait()
        return self._popen.returncode

    def send(self, number: int) -> None:
        """Sends a signal to the process and what it has started; nothing happens when it has ended."""
        if self.poll() is None:
            self._signal_group(number)

    def _signal_group(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def outcome(self) -> str:
        """str: "ended with 1", "was ended by SIGKILL"."""
        code = self.poll()
        if code is None:
            return "runs"
        if code < 0:
            return "was ended by %s" % signal.Signals(-code).name
        return "ended with %d" % code

    def tail(self, lines: int = _TAIL_LINES) -> str:
        """str: the last lines of its log."""
        with open(self.log, errors="replace") as file:
            return "".join(file.readlines()[-lines:])


class _Signalled(BaseException):
    """The launcher was told to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def _ends_on_signals() -> Iterator[None]:
    def told(number: int, _frame: Any) -> None:
        raise _Signalled(number)
    old = {number: signal.signal(number, told) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


class _Echo:
    """Copies what is added to a file."""

    def __init__(self, path: str, out: TextIO) -> None:
        self._file, self._out = open(path, errors="replace"), out

    def copy(self) -> None:
        text = self._file.read()
        if text:
            self._out.write(text)
            self._out.flush()


def end_all(processes: Sequence[Process], grace_s: float = _GRACE_S) -> None:
    """Ends what still runs: by SIGTERM, after ``grace_s`` by SIGKILL; what they have started, too."""
    running = [p for p in processes if p.poll() is None]
    for process in running:
        process.send(signal.SIGTERM)
    end = time.monotonic() + grace_s
    while running and time.monotonic() < end:
        time.sleep(_POLL_S)
        running = [p for p in running if p.poll() is None]
    for process in running:
        process.send(signal.SIGKILL)
    while any(p.poll() is None for p in running):
        time.sleep(_POLL_S)


def watch(processes: list[Process], echo: bool = True, server_grace_s: float = 60.0,
          err: TextIO | None = None) -> int:
    """Waits until all have ended; ends the rest when one fails or the launcher is told to end.

    Args:
        processes (list of Process): all of the job.
        echo (bool): copies the output of the first that does not serve. Default True.
        server_grace_s (float): how long servers may run after all others have ended well. Default 60.
        err (file, optional): where is said what happened; stderr.

    Returns:
        int: exit code: 0; that of the first process that failed; 128 and the number of a signal.
    """
    out = sys.stderr if err is None else err
    first = [p for p in processes if not p.serves][:1]
    following = _Echo(first[0].log, sys.stdout) if echo and first else None
    try:
        with _ends_on_signals():
            code = _wait(processes, following, server_grace_s, out)
    except _Signalled as told:
        out.write("launch: %s: ending all\n" % signal.Signals(told.number).name)
        code = 128 + told.number
    finally:
        end_all(processes)
        if following:
            following.copy()
    return code


def _wait(processes: list[Process], following: _Echo | None, grace_s: float, out: TextIO) -> int:
    done_at: float | None = None
    while True:
        if following:
            following.copy()
        failed = [p for p in processes if p.poll() not in (None, 0)]
        if failed:
            return _report(failed[0], out)
        running = [p for p in processes if p.poll() is None]
        if not running:
            return 0
        if all(p.serves for p in running):
            done_at = time.monotonic() if done_at is None else done_at
            if time.monotonic() - done_at > grace_s:
                out.write("launch: %s still ran %g s after all workers had ended: ended\n"
                          % (", ".join(p.name for p in running), grace_s))
                return 0
        time.sleep(_POLL_S)


def _report(process: Process, out: TextIO) -> int:
    code = process.poll() or 1
    out.write("launch: %s %s; the rest is ended. The end of %s:\n%s"
              % (process.name, process.outcome(), process.log, process.tail()))
    out.flush()
    return code if code > 0 else 128 - code
