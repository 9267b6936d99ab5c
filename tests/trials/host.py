"""Runs trials in a child process and starts another when that one crashes or hangs."""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile

CPU_S = 10  # of one trial, in CPU time of the child: a machine that stands still is not a hang
STILL_S = 60  # in which the child sleeps and uses no CPU time at all
OUT_OF_MEMORY = ("AddressSanitizer: out-of-memory", "AddressSanitizer: allocation-size-too-big")
TICKS = os.sysconf("SC_CLK_TCK")
HERE = os.path.dirname(os.path.abspath(__file__))


class Host:
    """trials(family, name, first, count) yields (number, verdict, text) of each; a crash or hang costs one child."""

    def __init__(self, environment=None):
        self.environment = dict(os.environ, MALLOC_PERTURB_="165", PYTHONDONTWRITEBYTECODE="1", **(environment or {}))
        self.child = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._end()

    def trials(self, family, name, first, count):
        done, last = first, first + count
        while done < last:
            if self.child is None:
                self._start()
            self.child.stdin.write(
                json.dumps(dict(family=family, name=name, first=done, count=last - done)).encode() + b"\n"
            )
            self.child.stdin.flush()
            for number, verdict, text in self._answers():
                yield number, verdict, text
                done = number + 1

    def _start(self):
        self.errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115  lives as long as the child
        self.folder = tempfile.TemporaryDirectory(prefix="trials")  # operators write files by any name
        self.child = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "worker.py")],
            stdin=subprocess.PIPE,
            stderr=self.errors,
            stdout=subprocess.PIPE,
            env=self.environment,
            cwd=self.folder.name,
            start_new_session=True,
        )
        self.buffer = b""
        if self._line() != {"ready": True}:
            raise RuntimeError("the child does not start: " + self._said())

    def _end(self):
        if self.child is not None:
            try:
                os.killpg(self.child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.child.wait()
            self.child = None
            self.folder.cleanup()

    def _said(self):
        self.errors.seek(0)
        text = self.errors.read()
        return text[-3000:] if len(text) < 6000 else text[:3000] + "\n...\n" + text[-3000:]

    def _answers(self):
        at = None
        while True:
            line = self._line()
            if line is None or line == "hang":
                self._end()
                if at is None:
                    raise RuntimeError("the child ended before a trial: " + self._said())
                yield at, *self._verdict(line)
                return
            if "at" in line:
                at = line["at"]
            elif "of" in line:
                yield line["of"], line["verdict"], line["text"]
            else:
                return

    def _verdict(self, line):
        text = self._said()
        if line:
            return "HANG", text
        if any(s in text for s in OUT_OF_MEMORY):  # operator new throws without the sanitizer
            return "skipped", text
        return "CRASH", "exit %s: %s" % (self.last_code, text)

    def _line(self):
        """The next answer; None at the child's end; "hang" when it has worked, or slept, for too long."""
        begin, still = self._cpu_s(), 0.0
        last = begin
        while b"\n" not in self.buffer:
            if select.select([self.child.stdout], [], [], 1.0)[0]:
                got = os.read(self.child.stdout.fileno(), 1 << 16)
                if not got:
                    self.last_code = self.child.wait()
                    return None
                self.buffer += got
                continue
            now = self._cpu_s()
            still = still + 1.0 if now == last and self._state() == "S" else 0.0
            last = now
            if now - begin > CPU_S or still > STILL_S:
                return "hang"
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def _stat(self):
        try:
            with open("/proc/%d/stat" % self.child.pid) as f:
                return f.read().rsplit(")", 1)[1].split()
        except OSError:
            return ["Z"] + ["0"] * 20

    def _state(self):
        return self._stat()[0]

    def _cpu_s(self):
        fields = self._stat()
        return (int(fields[11]) + int(fields[12])) / TICKS
