"""What the cluster interface asks of the network: the one place where it meets servers and other workers.

Everything in ``fluid.incubate.fleet``, ``fluid.communicator`` and ``fluid.io`` that needs another process calls a
function of this module, by ``_cluster.name(...)``, so that each can be replaced here. Without a connection they raise
:class:`fluid.errors.Unsupported`, which names the call.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from .fluid.errors import Unsupported


def _absent(what: str) -> NoReturn:
    raise Unsupported("%s: this build has no connection to other processes yet" % what)


def serve(program: Any, endpoint: str) -> None:
    """Runs a server: serves the global scope until all workers have said that they are done.

    Args:
        program (Program): of the transpiler's ``get_pserver_program``; its block 0 is one ``listen_and_serv``.
        endpoint (str): address to listen at; port 0 takes a free one.
    """
    _absent("run_server at %s" % endpoint)


def serve_locally(programs: Sequence[tuple[Any, Any]]) -> None:
    """Starts servers inside this process and returns: for the local role maker.

    Args:
        programs (list): (program, startup program) of each server, in the order of their endpoints.
    """
    _absent("%d servers in this process" % len(programs))


def connect(program: Any, endpoints: Sequence[str], trainer_id: int, trainers: int) -> None:
    """Connects a worker to all servers, before anything is sent; again does nothing.

    Args:
        program (Program): the trainer's program.
        endpoints (list of str): of the servers.
        trainer_id (int): number of this worker.
        trainers (int): how many there are.
    """
    _absent("init_worker: servers at %s" % ", ".join(endpoints))


def communicator_start(program: Any, mode: int, settings: Mapping[str, Any], flags: Mapping[str, str]) -> None:
    """Starts the threads that send and receive for a worker.

    Args:
        program (Program): the trainer's program: its ``send`` and ``recv`` ops say what goes where.
        mode (int): ``DistributedMode``.
        settings (dict): of GEO: ``push_vars`` (parameter -> pieces), ``trainers``, ``push_nums``; else empty.
        flags (dict): ``TrainerRuntimeConfig.get_communicator_flags()``.
    """
    _absent("Communicator.start")


def communicator_stop() -> None:
    """Sends what waits, then ends the threads of ``communicator_start``."""
    _absent("Communicator.stop")


def pull_persistables(program: Any, dirname: str, variables: Mapping[str, Any]) -> None:
    """Writes variables that lie on servers as one file each, as ``fluid.io.save_vars`` writes them.

    Args:
        program (Program): the trainer's program.
        dirname (str): folder, which is there.
        variables (dict): name -> ``RemoteVariable``: shape, dtype, and the parts with their servers and names there.
    """
    _absent("save_persistables")


def complete(endpoints: Sequence[str], trainer_id: int) -> None:
    """Tells all servers that this worker is done, and ends its connections.

    Args:
        endpoints (list of str): of the servers.
        trainer_id (int): number of this worker.
    """
    _absent("stop_worker")


def barrier(role: Any, group: str) -> None:
    """Returns when all processes of the group have called it.

    Args:
        role (RoleMakerBase): who this process is.
        group (str): "worker" or "all".
    """
    _absent("barrier over %ss" % group)


def all_reduce(role: Any, values: Any, how: str) -> Any:
    """numpy.ndarray: elementwise over all workers.

    Args:
        role (RoleMakerBase): who this process is.
        values (numpy.ndarray): of one shape in all workers.
        how (str): "sum", "max" or "min".
    """
    _absent("all_reduce over workers")


def all_gather(role: Any, value: Any) -> list[Any]:
    """list: what each worker gave, in order of the workers.

    Args:
        role (RoleMakerBase): who this process is.
        value: a number or a text.
    """
    _absent("all_gather over workers")
