"""Programs that communicate with servers: the workers that they name, serving, and the end of a worker."""
from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .. import _cluster, _core
from .errors import InvalidValue
from .scope import scope_guard

if TYPE_CHECKING:
    from .._core import Scope
    from .framework import Program


def trainers_of(program: Program) -> set[int]:
    """Returns the indices of the workers of this program, which its ops contain."""
    return _core.workers_of(program.desc)


def trainer_of(program: Program) -> int:
    """Returns the index of the worker that a communicator of this program is for.

    Raises:
        ValueError: the program is not a trainer's.
    """
    trainers = trainers_of(program)
    if trainers:
        return min(trainers)
    trainer: int | None = getattr(program, "_trainer_id", None)
    if trainer is None:
        raise InvalidValue("Communicator: the program must be a trainer's program, but it has no operators that "
                           "receive from servers")
    return trainer


def starts_geo(program: Program) -> bool:
    """Returns whether the program is the startup program of a worker that exchanges differences (GEO)."""
    return _core.starts_geo(program.desc)


def serves(program: Program) -> bool:
    """Returns whether a run of the program serves until all workers have finished."""
    return _core.served_endpoint(program.desc) is not None


def server_of(program: Program, scope: Scope) -> _cluster.Server:
    """Returns a listening server for a program. Branches of the schedule are replaced first, because a server runs
    the schedule as one block."""
    from .transpiler.straight import straightened
    return _cluster.listen(straightened(program, scope).desc, scope)


def serve(program: Program, scope: Scope) -> None:
    """Serves the variables of a program until every worker has reported that it is complete."""
    server = server_of(program, scope)
    if (_core.served_endpoint(program.desc) or "").endswith(":0"):  # scripts look here for the port that was chosen
        with open(os.path.join(tempfile.gettempdir(), "paddle.%d.port" % os.getpid()), "w") as file:
            file.write(server.endpoint.rpartition(":")[2])
    server.serve()


def serve_locally(programs: Sequence[tuple[Any, Any]], start: Callable[[Any, Any], None]) -> None:
    """Starts servers inside this process, for the local role maker, and returns.

    Args:
        programs (list): (program, startup program) of each server, in the order of their endpoints.
        start (callable): called with each pair, in the scope of its server, to run the startup program there.
    """
    servers = []
    for main, startup in programs:
        scope = _core.Scope()
        with scope_guard(scope):
            start(main, startup)
        servers.append(server_of(main, scope))
    _cluster.serve_in_threads(servers)


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
        begin = program._serve_locally
        if begin is not None:
            begin()
        self._connect()
        trainers = trainers_of(program)
        for trainer in trainers if getattr(program, "_job", None) else ():
            _cluster.describe(trainer, program._job)
        self._seen[desc.id] = desc.version
        self._numbers.update(trainers)
        self._servers.update(_core.servers_of(desc))

    def _connect(self):
        """Connects to the servers of the programs so far: one that keeps nothing must receive the end, too."""
        servers, self._servers = self._servers, set()
        for trainer, endpoint in sorted(servers):
            _cluster.connect(trainer, [endpoint])

    def complete(self):
        """Notifies the servers that these workers have finished."""
        numbers, self._numbers = self._numbers, set()
        self._seen.clear()
        self._servers.clear()
        for trainer in numbers:
            _cluster.complete(trainer)
