"""An engine in separate processes: Engine(python, module).run(case, seconds) gives the record of engine.py."""

import os
import pickle
import select
import signal
import struct
import subprocess
import tempfile

from listed import EXACT

HERE = os.path.dirname(os.path.abspath(__file__))
#: Seconds beyond the alarm of engine.py after which a process counts as hung; of its start.
MORE_S, START_S = 5, 300


class Engine:
    """Processes of engine.py. ``perturb``: the bytes of memory that was never written, from 1 to 255."""

    def __init__(self, python, module, paths=(), perturb=0):
        self.environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        self.environment.update(
            GLOG_v="0",
            FLAGS_fluid_exact=EXACT,
            OMP_NUM_THREADS="1",
            PYTHONDONTWRITEBYTECODE="1",
            FLAGS_use_system_allocator="1",
            MALLOC_PERTURB_=str(perturb),
        )
        if paths:
            self.environment["PYTHONPATH"] = os.pathsep.join(paths)
        self.folder = tempfile.TemporaryDirectory()  # what operators write
        self.arguments = [os.path.abspath(python), os.path.join(HERE, "engine.py"), module]
        self.child = None

    def run(self, case, patience_s):
        """The record of a case that may take this many seconds. One that ends its process runs again in another one,
        whose memory no case before it has broken.
        """
        record = self._attempt(case, patience_s)
        return self._attempt(case, patience_s) if record["stage"] == "dies" or record.get("lost") else record

    def _attempt(self, case, patience_s):
        if self.child is None:
            self._start()
        data = pickle.dumps(dict(case, patience_s=patience_s), 4)
        data = memoryview(struct.pack("<Q", len(data)) + data)
        try:
            while data:
                data = data[self.child.stdin.write(data) :]
            record = self._read(patience_s + MORE_S)
        except BrokenPipeError:
            record = None
        if record is None:
            self.close()
            return {"stage": "hangs", "error": "no answer", "outs": {}, "grads": None, "lost": True}
        return record

    def close(self):
        """Ends the process and its children at once; the next case starts others."""
        if self.child is None:
            return
        os.killpg(self.child.pid, signal.SIGKILL)
        self.child.wait()
        self.child = None

    def _start(self):
        self.child = subprocess.Popen(
            self.arguments,
            env=self.environment,
            cwd=self.folder.name,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        if self._read(START_S) is None:
            raise RuntimeError("the engine %s does not start" % self.arguments[2])

    def _read(self, patience_s):
        """The next record; None when none comes."""
        if not select.select([self.child.stdout], [], [], patience_s)[0]:
            return None
        size = self._exactly(8)
        return pickle.loads(self._exactly(struct.unpack("<Q", size)[0])) if len(size) == 8 else None  # noqa: S301  own child

    def _exactly(self, n):
        parts, missing = [], n
        while missing:
            got = self.child.stdout.read(missing)
            if not got:
                break
            parts.append(got)
            missing -= len(got)
        return b"".join(parts)
