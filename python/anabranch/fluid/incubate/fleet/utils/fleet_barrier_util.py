"""A barrier for all workers, which uses files."""
from __future__ import annotations

import os
import time

from ....errors import Unavailable
from .hdfs import HDFSClient as HDFSClient

_PAUSE_S = 10.0


def check_all_trainers_ready(ready_path: str, epoch: int) -> None:
    """Waits until all workers have called it for an epoch.

    Each leaves the file ``ready.<epoch>.<id>.done`` in the folder. Workers
    are known by PADDLE_TRAINER_ID and PADDLE_TRAINERS_NUM, Hadoop by HADOOP_HOME and its settings by FS_NAME and
    FS_UGI; without HADOOP_HOME the folder is one of this machine. FLAGS_barrier_deadline_s ends the waiting (3600 s).

    Args:
        ready_path (str): folder.
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
