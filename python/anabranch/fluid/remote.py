"""Programs that communicate with other processes: serving, and the notification that a worker has finished."""
from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

from .. import _core

if TYPE_CHECKING:
    from .._core import Scope
    from .framework import Program

_BARRIERS = ("send_barrier", "fetch_barrier")
_RECEIVES = ("recv", "send_barrier", "fetch_barrier", "distributed_lookup_table",
             "distributed_lookup_growable")


def trainers_of(program: Program) -> set[int]:
    """Returns the indices of the workers of this program, which its ops contain."""
    return {op.attr("trainer_id") for op in program.global_block().ops if op.type in _RECEIVES}


def starts_geo(program: Program) -> bool:
    """Returns whether the program is the startup program of a worker that exchanges differences (GEO)."""
    ops = program.global_block().ops
    return bool(ops) and ops[-1].type == "send" and ops[-1].attr("send_varnames") == [_core.GEO_START]


def serves(program: Program) -> bool:
    """Returns whether a run of the program serves until all workers have finished."""
    return any(op.type == "listen_and_serv" for op in program.global_block().ops)


def server_of(program: Program, scope: Scope) -> _core.PServer:
    """Returns a listening server for a program. Branches of the schedule are replaced first, because a server runs
    the schedule as one block."""
    from .transpiler.straight import straightened
    return _core.PServer(straightened(program, scope).desc, scope)


def serve(program: Program, scope: Scope) -> None:
    """Serves the variables of a program until every worker has reported that it is complete."""
    server = server_of(program, scope)
    asked = [op.attr("endpoint") for op in program.global_block().ops if op.type == "listen_and_serv"][0]
    if asked.endswith(":0"):  # scripts look here for the port that was chosen
        with open(os.path.join(tempfile.gettempdir(), "paddle.%d.port" % os.getpid()), "w") as file:
            file.write(server.endpoint.rpartition(":")[2])
    server.serve()


class Trainers:
    """The workers whose programs an executor has run."""

    __slots__ = ("_numbers", "_seen", "_servers")

    def __init__(self):
        self._numbers, self._seen, self._servers = set(), {}, set()

    def note(self, program):
        """Records the workers of a program if it is new or has changed."""
        desc = program.desc
        if self._seen.get(desc.id) == desc.version:
            return
        self._connect()
        for trainer in trainers_of(program) if getattr(program, "_job", None) else ():
            _core.ps_describe(trainer, program._job)
        self._seen[desc.id] = desc.version
        self._numbers.update(trainers_of(program))
        self._servers.update((op.attr("trainer_id"), endpoint) for op in program.global_block().ops
                             if op.type in _BARRIERS for endpoint in op.attr("endpoints"))

    def _connect(self):
        """Connects to the servers of the programs so far: one that keeps nothing must receive the end, too."""
        servers, self._servers = self._servers, set()
        for trainer, endpoint in sorted(servers):
            _core.ps_connect(trainer, endpoint)

    def complete(self):
        """Notifies the servers that these workers have finished."""
        numbers, self._numbers = self._numbers, set()
        self._seen.clear()
        self._servers.clear()
        for trainer in numbers:
            _core.ps_complete(trainer)
