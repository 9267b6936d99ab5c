"""One measurement kept alive in its own process, and stopped while others are measured."""
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time

import common

HERE = os.path.dirname(os.path.abspath(__file__))


class Live:
    """A (script, case, configuration) that is measured again and again; its answers are None once it has ended.

    Its processes are stopped by a signal between its slices: threads of some engines spin for a while after their work,
    which would otherwise slow down the engine that is measured next.
    """

    def __init__(self, python, script, options, case, config, warmup, limit=300.0):
        self.what = "%s %s [%s]" % (script, common.metric_name(case), config)
        command = [python, os.path.join(HERE, script + ".py")] + options
        command += ["--case", json.dumps(case), "--config", config, "--warmup", str(warmup), "--serve"]
        self.directory, self.errors, self.limit = tempfile.TemporaryDirectory(), tempfile.TemporaryFile(), limit
        self.child = subprocess.Popen(command, cwd=self.directory.name, start_new_session=True, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=self.errors)
        self.buffer, self.selector, self.failure = b"", selectors.DefaultSelector(), None
        self.selector.register(self.child.stdout, selectors.EVENT_READ)

    def ready(self):
        """Waits until the case is built; False, with a message, when it cannot be."""
        built = self.line(lambda line: line == common.READY) is not None
        self.signal(signal.SIGSTOP)
        return built

    def trace(self, seconds):
        """Runs the first steps and warms up: {losses, cycle, version, unit}, or None."""
        return self.ask(b"trace %g\n" % seconds)

    def measure(self, seconds):
        """A result of so long a slice of steady state, or None."""
        return self.ask(b"%g\n" % seconds)

    def ask(self, command):
        if self.child is None:
            return None
        self.signal(signal.SIGCONT)
        try:
            self.child.stdin.write(command)
            self.child.stdin.flush()
        except OSError:
            return self.fail("the process ended")
        found = self.line(lambda line: line.startswith('{"row"'))
        self.signal(signal.SIGSTOP)
        return json.loads(found) if found else None

    def signal(self, number):
        if self.child is not None:
            try:
                os.killpg(self.child.pid, number)
            except ProcessLookupError:
                pass                              # the next command finds out

    def line(self, fits):
        """The next line of its output that fits; other lines, which libraries print, are skipped."""
        end = time.monotonic() + self.limit
        while self.child is not None:
            while b"\n" in self.buffer:
                line, self.buffer = self.buffer.split(b"\n", 1)
                if fits(line.decode(errors="replace")):
                    return line.decode()
            if not self.selector.select(max(0.0, end - time.monotonic())):
                return self.fail("stopped after %.0f s" % self.limit)
            part = os.read(self.child.stdout.fileno(), 65536)
            if not part:
                return self.fail("the process ended")
            self.buffer += part

    def fail(self, reason):
        self.errors.seek(0)
        said = self.errors.read().decode(errors="replace").strip().splitlines()
        said = "last line of its errors: " + said[-1][:160] if said else "it printed no error"
        self.failure = "%s; %s" % (reason, said)
        print("no result: %s: %s" % (self.what, self.failure), file=sys.stderr, flush=True)
        self.close()

    def close(self):
        if self.child is None:
            return
        common.end_group(self.child)
        self.selector.close()
        for stream in (self.child.stdin, self.child.stdout, self.errors):
            try:
                stream.close()
            except OSError:                       # of a process that has ended
                pass
        self.child = None
        self.directory.cleanup()
