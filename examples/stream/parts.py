"""The programs of the example, which are started, watched and ended together."""
import ctypes
import os
import signal
import subprocess
import time

_LIBC, _PR_SET_PDEATHSIG = ctypes.CDLL(None), 1
TAIL = 20              # lines of a log in a message


class Failed(Exception):
    """A part has ended before it should, or does not answer."""


class Part:
    """A program with its own log. It is in its own session, so Ctrl-C does not reach it, and ends with this process."""

    def __init__(self, name, command, log):
        self.name, self.log = name, log
        with open(log, "wb") as out:
            self._process = subprocess.Popen(
                command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
                env=dict(os.environ, PYTHONUNBUFFERED="1"),
                preexec_fn=lambda: _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM))

    def code(self):
        """Its exit code, None while it runs."""
        return self._process.poll()

    def text(self):
        with open(self.log, errors="replace") as file:
            return file.read()

    def tell(self, number):
        if self.code() is None:
            self._process.send_signal(number)

    def failed(self, why=None):
        """The error that says so, with the end of the log."""
        code = self.code()
        if why is None:
            why = "was ended by %s" % signal.Signals(-code).name if code < 0 else "ended with %d" % code
        lines = self.text().splitlines()[-TAIL:]
        return Failed("%s %s. The end of %s:\n%s" % (self.name, why, self.log, "\n".join(lines)))

    def wait(self, seconds):
        """Whether it has ended with success. A part that has failed is an error."""
        if self._left(seconds):
            return False
        if self.code() != 0:
            raise self.failed()
        return True

    def _left(self, seconds):
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return True
        return False

    def end(self, seconds=15):
        """Ends it with SIGTERM, or with SIGKILL if it takes longer."""
        self.tell(signal.SIGTERM)
        if self._left(seconds):
            self.tell(signal.SIGKILL)
            self._process.wait()


class Parts:
    """All parts; they are ended when the block ends, in the order in which they were started."""

    def __init__(self, logs):
        self._logs, self._parts = logs, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for part in self._parts:
            part.end()

    def start(self, name, *command):
        self._parts.append(Part(name, command, os.path.join(self._logs, name + ".log")))
        return self._parts[-1]

    def check(self):
        """Raises Failed if a part has failed. If several have, it names the one that was started last: the earlier ones
        need it."""
        for part in reversed(self._parts):
            if part.code() not in (None, 0):
                raise part.failed()

    def until(self, condition, what, ended, seconds=120):
        """Waits for a condition, and returns its value; None if ``ended`` is set before."""
        limit = time.monotonic() + seconds
        while not (found := condition()):
            self.check()
            if time.monotonic() > limit:
                raise Failed("%s took longer than %d s" % (what, seconds))
            if ended.wait(0.05):
                return None
        return found
