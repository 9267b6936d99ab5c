"""The trial with processes: a parameter server and two workers on this machine."""
from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import numpy as np

from .nets import NotTried

_JOB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cluster_job.py")
_SECONDS = 120


def _plugin() -> bool:
    from ..doctor import plugins
    return "grpc" in plugins()


def cluster() -> str:
    """Starts a server and two workers on this machine, connects them through the gRPC plug-in, and trains with them"""
    if not _plugin():
        raise NotTried("the plug-in grpc is not installed")
    root = os.path.dirname(os.path.dirname(os.path.dirname(_JOB)))
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "anabranch", "launch", "--servers", "1", "--workers", "2", "--quiet",
                   "--log-dir", folder, _JOB, folder]
        done = subprocess.run(command, env=dict(os.environ, PYTHONPATH=path, CPU_NUM="1"), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, universal_newlines=True, timeout=_SECONDS)
        if done.returncode != 0:
            raise RuntimeError("launch ended with %d: %s" % (done.returncode, done.stdout[-2000:]))
        found = [np.load(os.path.join(folder, "worker%d.npz" % rank)) for rank in (0, 1)]
    if not np.array_equal(found[0]["weight"], found[1]["weight"]):
        raise RuntimeError("the parameters of two workers differ: %s and %s"
                           % tuple(f["weight"].tolist() for f in found))
    first, last = (float(np.mean([f["losses"][k] for f in found])) for k in (0, -1))
    if not last < first / 10:
        raise RuntimeError("the loss of two workers went from %g to %g" % (first, last))
    return "1 server, 2 workers: loss %.3g to %.3g, equal parameters" % (first, last)
