"""Rank, size and hosts of a process, as schedulers pass them in the environment."""
from __future__ import annotations

import os
import re
import zlib
from typing import NamedTuple

from ....errors import InvalidValue
from .role_base import needed_number

#: scheduler, rank, size, processes on this machine, number of the job
_KNOWN = (
    ("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
     "OMPI_MCA_ess_base_jobid"),
    ("Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_TASKS_PER_NODE", "SLURM_JOB_ID"),
    ("MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", "PMI_ID"),
)

_FIRST_PORT, _PORTS = 60001, 3999


class Job(NamedTuple):
    """The job of a scheduler to which this process belongs."""

    scheduler: str
    rank: int
    size: int
    hosts: list[str]   # of the nodes, in order of their ranks
    number: str        # of the job

    @staticmethod
    def is_there() -> bool:
        """bool: whether a scheduler has started this process."""
        return any(rank in os.environ and size in os.environ for _, rank, size, _, _ in _KNOWN)

    @classmethod
    def of_environment(cls) -> Job:
        """Job: the job of this process. ValueError if no scheduler has started it."""
        for scheduler, rank, size, local, number in _KNOWN:
            if rank in os.environ and size in os.environ:
                count = needed_number(size, 1)
                return cls(scheduler, needed_number(rank, 0), count, _hosts(scheduler, count, local),
                           os.environ.get(number, ""))
        raise InvalidValue("no scheduler has started this process: none of %s is set"
                           % ", ".join(rank for _, rank, _, _, _ in _KNOWN))

    def host(self, rank: int) -> str:
        """str: the machine of a rank. All nodes have the same number of consecutive ranks."""
        return self.hosts[rank * len(self.hosts) // self.size]

    def port(self, server: int) -> int:
        """int: port of a server, the same in all processes of a job and different in most other jobs."""
        return _FIRST_PORT + (zlib.crc32(self.number.encode()) + server) % _PORTS


def _hosts(scheduler: str, size: int, local: str) -> list[str]:
    if os.environ.get("PADDLE_HOSTS"):
        return [host.strip() for host in os.environ["PADDLE_HOSTS"].split(",") if host.strip()]
    nodes = os.environ.get("SLURM_STEP_NODELIST") or os.environ.get("SLURM_JOB_NODELIST")
    if scheduler == "Slurm" and nodes:
        return expanded(nodes)
    here = os.environ.get(local, "").split("(")[0]
    if here and here != str(size):
        raise InvalidValue("%s started %d processes, %s of them on this machine: set PADDLE_HOSTS to the hosts, in "
                           "order of their ranks" % (scheduler, size, here))
    return ["127.0.0.1"]


def expanded(nodes: str) -> list[str]:
    """list of str: the hosts of Slurm's compact form.

    >>> expanded("a[01-03,7],b")
    ['a01', 'a02', 'a03', 'a7', 'b']
    """
    found = []
    for part in re.findall(r"[^,\[]+(?:\[[^\]]*\])?", nodes):
        match = re.fullmatch(r"([^\[]+)\[([^\]]*)\]", part)
        if not match:
            found.append(part)
            continue
        for entry in match.group(2).split(","):
            first, _, last = entry.partition("-")
            last = last or first
            found += ["%s%0*d" % (match.group(1), len(first), i) for i in range(int(first), int(last) + 1)]
    return found
