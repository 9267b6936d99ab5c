"""Processes of one job on this machine, which are started, watched and stopped together."""
from __future__ import annotations

import contextlib
import ctypes
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, TextIO

#: Of a process: how often its role was started before, a number.
STARTS = "ANABRANCH_STARTS"

_TAIL_LINES = 20
_POLL_S = 0.05
_GRACE_S = 10.0
_PR_SET_PDEATHSIG = 1


def _first_ephemeral() -> int:
    """The first port that the system gives to connections."""
    with contextlib.suppress(OSError, ValueError), open("/proc/sys/net/ipv4/ip_local_port_range") as file:
        return int(file.read().split()[0])
    return 32768


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """list of int: distinct ports on which no process listens. They are below the range that the system assigns to
    connections, so they stay free until the server starts, and while it is restarted.

    >>> len(set(free_ports(3)))
    3
    """
    last = _first_ephemeral()
    tried = random.SystemRandom().sample(range(last - 10000, last), 50 + 4 * count) if last > 12000 else []
    with contextlib.ExitStack() as stack:
        found: list[int] = []
        for port in [*tried, *[0] * count]:
            if len(found) == count:
                break
            one = stack.enter_context(socket.socket())
            try:
                one.bind((host, port))
            except OSError:
                if port == 0:
                    raise
                continue
            found.append(one.getsockname()[1])
        return found


_LIBC = ctypes.CDLL(None)  # loaded here: a child of a fork is not to wait for the loader, which a thread may have held


def _end_with_parent() -> None:
    """In the child: it ends when the launcher is killed."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def outcome_of(code: int | None) -> str:
    """str: how a process ended, in words.

    >>> outcome_of(1), outcome_of(-9)
    ('ended with 1', 'was ended by SIGKILL')
    """
    if code is None:
        return "runs"
    return "was ended by %s" % signal.Signals(-code).name if code < 0 else "ended with %d" % code


class Process:
    """One role of a job; its output goes to its own file.

    Args:
        name (str): "worker 0".
        command (list of str): command to run.
        env (dict): its complete environment, to which ``ANABRANCH_STARTS``, the number of earlier starts, is added.
        log (str): path of the file.
        serves (bool): whether the process is a server, which ends by itself when the others have ended.
        restarts (int): maximum number of restarts. Default 0.
        starts (int): number of earlier starts. If it is above 0, output is appended to the log. Default 0.
        cwd (str, optional): folder in which it runs; the current one by default.
    """

    def __init__(self, name: str, command: Sequence[str], env: Mapping[str, str], log: str, serves: bool,
                 restarts: int = 0, starts: int = 0, cwd: str | None = None) -> None:
        self.name, self.log, self.serves, self.restarts, self.starts = name, log, serves, restarts, starts
        self._command, self._env, self._cwd = list(command), dict(env), cwd
        begin = self._start()
        self._reader = open(log, errors="replace")
        self._reader.seek(begin)

    def _start(self) -> int:
        """Starts it. Returns the size of its log before that: it may write before this function returns."""
        with open(self.log, "ab" if self.starts else "wb") as out:
            begin = out.tell()
            # Its own process group: Ctrl-C reaches only the launcher, and child processes end with this one.
            self._popen = subprocess.Popen(self._command, env={**self._env, STARTS: str(self.starts)}, stdout=out,
                                           stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=self._cwd,
                                           start_new_session=True, preexec_fn=_end_with_parent)
        return begin

    def start_again(self) -> bool:
        """bool: whether a process that has ended may be restarted, which is possible up to ``restarts`` times."""
        if self.restarts == 0:
            return False
        self.restarts -= 1
        self.starts += 1
        self._start()
        return True

    def added(self) -> str:
        """str: what its log holds since the last call."""
        return self._reader.read()

    @property
    def pid(self) -> int:
        """int: number of the process, and of its group."""
        return self._popen.pid

    def poll(self) -> int | None:
        """int or None: exit code, negative for a signal. Child processes of an ended process are killed."""
        if self._popen.returncode is None:
            if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                return None
            # No other process gets its number until it has been waited for.
            self._signal_group(signal.SIGKILL)
            self._popen.wait()
        return self._popen.returncode

    def send(self, number: int) -> None:
        """Sends a signal to the process and its children; has no effect if the process has ended."""
        if self.poll() is None:
            self._signal_group(number)

    def _signal_group(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def outcome(self) -> str:
        """str: "ended with 1", "was ended by SIGKILL"."""
        return outcome_of(self.poll())

    def tail(self, lines: int = _TAIL_LINES) -> str:
        """str: the last lines of its log."""
        with open(self.log, errors="replace") as file:
            return "".join(file.readlines()[-lines:])


class Watched(Protocol):
    """The interface of a process that :func:`watch` needs, wherever the process runs: see :class:`Process`."""

    name: str
    log: str
    serves: bool

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def send(self, number: int) -> None: ...
    def start_again(self) -> bool: ...
    def added(self) -> str: ...
    def outcome(self) -> str: ...
    def tail(self, lines: int = _TAIL_LINES) -> str: ...


class _Signalled(BaseException):
    """The launcher received a signal to end."""

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


def end_all(processes: Sequence[Watched], grace_s: float = _GRACE_S) -> None:
    """Ends all processes that still run, and their children, with SIGTERM and, after ``grace_s``, with SIGKILL."""
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


def watch(processes: Sequence[Watched], echo: bool = True, server_grace_s: float = 60.0,
          err: TextIO | None = None) -> int:
    """Waits until all processes have ended, and restarts those that fail, as often as allowed. If a process has
    failed for good, or the launcher receives a signal, it ends all others.

    Args:
        processes (list of Process): all of the job.
        echo (bool): copies the output of the first that does not serve. Default True.
        server_grace_s (float): seconds that servers may run after all other processes have ended successfully. Default
            60.
        err (file, optional): output of messages. Default: stderr.

    Returns:
        int: exit code: 0, the exit code of the first process that failed, or 128 plus the number of a signal.
    """
    out = sys.stderr if err is None else err
    followed = [p for p in processes if not p.serves][:1] if echo else []
    try:
        with _ends_on_signals():
            code = _wait(processes, followed, server_grace_s, out)
    except _Signalled as told:
        _say(out, "%s: ending all" % signal.Signals(told.number).name)
        code = 128 + told.number
    finally:
        end_all(processes)
        _copy(followed)
    return code


def _say(out: TextIO, text: str) -> None:
    out.write("launch: %s\n" % text)
    out.flush()


def _copy(followed: Sequence[Watched]) -> None:
    """Shows what a process has written."""
    for process in followed:
        text = process.added()
        if text:
            sys.stdout.write(text)
            sys.stdout.flush()


def _wait(processes: Sequence[Watched], followed: Sequence[Watched], grace_s: float, out: TextIO) -> int:
    done_at: float | None = None
    while True:
        _copy(followed)
        codes = [process.poll() for process in processes]  # one check: later failures are found by the next one
        over = [p.name for p, code in zip(processes, codes) if p.serves and code == 0]
        for process, code in zip(processes, codes):
            if code not in (None, 0) and (_needs(process, over) or not _began_again(process, out)):
                return _report(process, out, over)
        running = [p for p, code in zip(processes, codes) if code != 0]
        if not running:
            return 0
        if all(p.serves for p in running):
            done_at = time.monotonic() if done_at is None else done_at
            if time.monotonic() - done_at > grace_s:
                _say(out, "%s still ran %g s after all workers had ended: ended. Each worker must call "
                     "fleet.stop_worker() at its end"
                     % (", ".join(p.name for p in running), grace_s))
                return 0
        time.sleep(_POLL_S)


def _needs(process: Watched, over: Sequence[str]) -> bool:
    """Whether another start of a process would wait for servers that have ended."""
    return bool(over) and not process.serves


def _began_again(process: Watched, out: TextIO) -> bool:
    """Starts a process again that has failed, where it may be."""
    outcome = process.outcome()
    last = process.tail(1).strip()
    if not process.start_again():
        return False
    _say(out, "%s %s%s; it is started again%s" % (
        process.name, outcome, " (%s)" % last if last and "SIG" not in outcome else "",
        ", as process %d" % process.pid if process.pid else ""))
    return True


def _report(process: Watched, out: TextIO, over: Sequence[str]) -> int:
    code = process.poll() or 1
    after = " after %s had ended, without which it cannot start again" % " and ".join(over) \
        if _needs(process, over) else ""
    _say(out, "%s %s%s; the rest is ended. The end of %s:\n%s"
         % (process.name, process.outcome(), after, process.log, process.tail().rstrip("\n")))
    return code if code > 0 else 128 - code
