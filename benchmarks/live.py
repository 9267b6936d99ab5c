"""One measurement kept alive in a process of its own, so that rounds of several engines can be run in turn."""
import json
import os
import selectors
import subprocess
import sys
import tempfile
import time

import common

HERE = os.path.dirname(os.path.abspath(__file__))
READY = common.READY


class Live:
    """A (script, case, configuration) that is ready to be measured again and again; None results once it has ended."""

    def __init__(self, python, script, options, case, config, warmup, limit=300.0):
        self.what = "%s %s [%s]" % (script, common.metric_name(case), config)
        command = [python, os.path.join(HERE, script + ".py")] + options
        command += ["--case", json.dumps(case), "--config", config, "--warmup", str(warmup), "--serve"]
        self.directory, self.errors, self.limit = tempfile.TemporaryDirectory(), tempfile.TemporaryFile(), limit
        self.child = subprocess.Popen(command, cwd=self.directory.name, start_new_session=True, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=self.errors)
        self.buffer, self.selector = b"", selectors.DefaultSelector()
        self.selector.register(self.child.stdout, selectors.EVENT_READ)

    def ready(self):
        """Waits until the case is built and warm; False, and said, when it cannot be."""
        return self.line(lambda line: line == READY) is not None

    def measure(self, seconds):
        """A result of so many seconds of steady state, or None."""
        if self.child is None:
            return None
        try:
            self.child.stdin.write(b"%g\n" % seconds)
            self.child.stdin.flush()
        except OSError:
            return self.fail("it ended")
        found = self.line(lambda line: line.startswith('{"row"'))
        return json.loads(found) if found else None

    def line(self, wanted):
        """The next line of its output that is wanted; what libraries print besides is passed over."""
        end = time.monotonic() + self.limit
        while self.child is not None:
            while b"\n" in self.buffer:
                line, self.buffer = self.buffer.split(b"\n", 1)
                if wanted(line.decode(errors="replace")):
                    return line.decode()
            if not self.selector.select(max(0.0, end - time.monotonic())):
                return self.fail("took longer than %.0f s" % self.limit)
            part = os.read(self.child.stdout.fileno(), 65536)
            if not part:
                return self.fail("it ended")
            self.buffer += part

    def fail(self, reason):
        self.errors.seek(0)
        said = self.errors.read().decode(errors="replace").strip().splitlines()
        print("no result: %s: %s: %s" % (self.what, reason, said[-1] if said else "no message"), file=sys.stderr,
              flush=True)
        self.close()

    def close(self):
        if self.child is None:
            return
        common.end_group(self.child)
        self.selector.close()
        for stream in (self.child.stdin, self.child.stdout, self.errors):
            try:
                stream.close()
            except OSError:                       # what was never taken by an ended process
                pass
        self.child = None
        self.directory.cleanup()
