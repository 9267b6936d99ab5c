"""An engine in processes of its own: Engine(python, module).run(case) gives the record of engine.py."""
import os
import pickle
import select
import signal
import struct
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
#: Seconds beyond the alarm of engine.py after which a process counts as hung; of its start.
MORE_S, START_S = 15, 300


class Engine:
    """Processes of engine.py. ``perturb``: what memory holds that nobody has written, from 1 to 255."""

    def __init__(self, python, module, paths=(), perturb=0, hang_s=20):
        self.environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        self.environment.update(GLOG_v="0", FLAGS_fluid_exact="1.8.5", OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1",
                                FLAGS_use_system_allocator="1", MALLOC_PERTURB_=str(perturb))
        if paths:
            self.environment["PYTHONPATH"] = os.pathsep.join(paths)
        self.arguments = [python, os.path.join(HERE, "engine.py"), module, str(hang_s)]
        self.hang_s, self.child = hang_s, None

    def run(self, case):
        if self.child is None:
            self._start()
        data = pickle.dumps(case, 4)
        data = memoryview(struct.pack("<Q", len(data)) + data)
        while data:
            data = data[self.child.stdin.write(data):]
        record = self._read(self.hang_s + MORE_S)
        if record is None:
            self.close()
            return {"stage": "hangs", "error": "no answer", "outs": {}, "grads": None}
        return record

    def close(self):
        """Ends the process and its children, whatever they are at; the next case starts others."""
        os.killpg(self.child.pid, signal.SIGKILL)
        self.child.wait()
        self.child = None

    def _start(self):
        self.child = subprocess.Popen(self.arguments, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      bufsize=0, start_new_session=True)
        if self._read(START_S) is None:
            raise RuntimeError("the engine %s does not start" % self.arguments[2])

    def _read(self, patience_s):
        """The next record; None when none comes."""
        if not select.select([self.child.stdout], [], [], patience_s)[0]:
            return None
        size = self._exactly(8)
        return pickle.loads(self._exactly(struct.unpack("<Q", size)[0])) if len(size) == 8 else None

    def _exactly(self, n):
        data = b""
        while len(data) < n:
            got = self.child.stdout.read(n - len(data))
            if not got:
                return data
            data += got
        return data
