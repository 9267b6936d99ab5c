"""A barrier for all workers, which uses files."""
from __future__ import annotations

import os
import time

from ....errors import Unavailable
from .hdfs import HDFSClient as HDFSClient

_PAUSE_S = 10.0


def check_all_trainers_ready(ready_path: str, epoch: int) -> None:
    """Waits until all workers have called this function for an epoch.

    Each worker creates the file ``<ready_path>/<epoch>/ready.<epoch>.<id>.done``. These environment variables apply:

    - ``PADDLE_TRAINER_ID`` and ``PADDLE_TRAINERS_NUM``: the id of this worker and the number of workers.
    - ``HADOOP_HOME``, ``FS_NAME`` and ``FS_UGI``: where Hadoop is installed and how to connect to it. Without
      ``HADOOP_HOME``, the files are created in a local folder, which all workers must share.
    - ``FLAGS_barrier_deadline_s``: the time in seconds after which the function raises an error (default: 3600).

    Args:
        ready_path (str): folder for the files.
        epoch (int): number of the epoch.

    Raises:
        RuntimeError: not all workers arrived in time. The message contains their number.
    """
    env = os.environ
    count, mine = int(env.get("PADDLE_TRAINERS_NUM", "1")), int(env.get("PADDLE_TRAINER_ID", "0"))
    configs = {"fs.default.name": env.get("FS_NAME", ""), "hadoop.job.ugi": env.get("FS_UGI", "")}
    client = HDFSClient(env.get("HADOOP_HOME"), {k: v for k, v in configs.items() if v})
    folder = os.path.join(ready_path, str(epoch))
    client.makedirs(folder)
    name = "ready.%d.%d.done" % (epoch, mine)
    with open(name, "w") as file:
        file.write("")
    try:
        client.upload(os.path.join(folder, name), name, overwrite=True)
    finally:
        os.remove(name)
    end = time.monotonic() + float(env.get("FLAGS_barrier_deadline_s", "3600"))
    pause = min(_PAUSE_S, 0.1)
    while True:
        there = len([p for p in client.ls(folder) if p.endswith(".done")])
        if there >= count:
            return
        if time.monotonic() > end:
            raise Unavailable("check_all_trainers_ready: %d of %d trainers have reached epoch %d"
                              % (there, count, epoch))
        time.sleep(pause)
        pause = min(_PAUSE_S, pause * 1.5)
