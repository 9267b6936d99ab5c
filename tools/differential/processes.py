"""An engine in processes of its own: Engine(python, module).run(case) gives the record of engine.py."""
import os
import pickle
import select
import signal
import struct
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))


class Engine:
    """A process of engine.py. ``perturb``: what memory holds that nobody has written, from 1 to 255."""

    def __init__(self, python, module, paths=(), perturb=0, hang_s=20):
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        environment.update(GLOG_v="0", FLAGS_fluid_exact="1.8.5", OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1",
                           FLAGS_use_system_allocator="1", MALLOC_PERTURB_=str(perturb))
        if paths:
            environment["PYTHONPATH"] = os.pathsep.join(paths)
        self.patience_s = 300  # of the import
        self.child = subprocess.Popen([python, os.path.join(HERE, "engine.py"), module, str(hang_s)], env=environment,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.patience_s = hang_s + 5
        self._read()

    def run(self, case):
        data = pickle.dumps(case, 4)
        data = memoryview(struct.pack("<Q", len(data)) + data)
        while data:
            data = data[self.child.stdin.write(data):]
        return self._read()

    def close(self):
        self.child.stdin.close()
        self.child.wait()

    def _kill_worker(self):
        with open("/proc/%d/task/%d/children" % (self.child.pid, self.child.pid)) as f:
            for pid in f.read().split():
                os.kill(int(pid), signal.SIGKILL)

    def _read(self):
        if not select.select([self.child.stdout], [], [], self.patience_s)[0]:
            self._kill_worker()
        size = self._exactly(8)
        if len(size) < 8:
            raise RuntimeError("the engine %s does not start" % " ".join(map(str, self.child.args[2:])))
        return pickle.loads(self._exactly(struct.unpack("<Q", size)[0]))

    def _exactly(self, n):
        data = b""
        while len(data) < n:
            got = self.child.stdout.read(n - len(data))
            if not got:
                return data
            data += got
        return data
