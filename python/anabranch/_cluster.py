"""The one place where the package talks to other processes: servers, and other workers.

Modules that need another process call a function of this module as ``_cluster.name(...)``, so each function can be
replaced in one place. The callers know programs and variables.
"""
from __future__ import annotations

import atexit
import itertools
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy

from . import _core
from .fluid.errors import InvalidType, InvalidValue, Unavailable, Unsupported

if TYPE_CHECKING:
    from ._core import Scope

Server = _core.PServer

_FILE_PAUSES = (0.02, 0.05, 0.1, 0.2, 0.5)  # seconds between two checks for a file that others have

_local_servers: list[threading.Thread] = []


# ---- servers


def listen(desc: Any, scope: Scope) -> Server:
    """Server: it listens, and serves the variables of a scope when its ``serve`` is called.

    Args:
        desc: the engine's part of a program whose block 0 is one ``listen_and_serv``. Port 0 selects a free port.
        scope (Scope): of its variables.
    """
    return _core.PServer(desc, scope)


def serve_in_threads(servers: list[Server]) -> None:
    """Lets servers run in threads of this process, and returns. The list is empty afterwards."""
    while servers:
        thread = threading.Thread(target=_serve_and_end, args=(servers,), daemon=True, name="parameter server")
        server = servers[-1]
        thread.start()
        while servers and servers[-1] is server:
            thread.join(0.001)
        _local_servers.append(thread)


def _serve_and_end(servers):
    servers.pop().serve()            # this is the last reference: the endpoint is free when it has stopped


def wait_for_local_servers() -> None:
    """Waits until the servers of :func:`serve_in_threads` have ended, for at most 10 seconds each."""
    while _local_servers:
        _local_servers.pop().join(10)


def server_stats(endpoint: str, deadline_ms: int) -> str:
    """str: statistics of a server, for any caller."""
    return str(_core.ps_server_stats(endpoint, deadline_ms))


def table_part(endpoint: str, variable: int, part: int, bits: int, deadline_ms: int) -> bytes:
    """bytes: the header of a growable table's file and the rows of one of 2 ** ``bits`` parts, for any caller; no rows
    with 0 bits."""
    return bytes(_core.ps_table_part(endpoint, variable, part, bits, deadline_ms))


# ---- workers of servers


def describe(trainer: int, job: Sequence[str]) -> None:
    """Sets the lines that servers compare with theirs when this worker connects."""
    _core.ps_describe(trainer, list(job))


def connect(trainer: int, endpoints: Iterable[str]) -> None:
    """Connects a worker to servers. It must be called before anything is sent; a second call has no effect."""
    for endpoint in endpoints:
        _core.ps_connect(trainer, endpoint)


def complete(trainer: int) -> None:
    """Reports to all servers of a worker that it is done, and closes its connections."""
    _core.ps_complete(trainer)


def communicator_start(trainer: int, mode: int, settings: Mapping[str, Any], flags: Mapping[str, str],
                       scope: Scope) -> None:
    """Starts the threads that send and receive for a worker. Sync training has none: its steps send and receive.

    Args:
        trainer (int): number of this worker.
        mode (int): ``DistributedMode``, another one than SYNC.
        settings (dict): for GEO: ``push_vars`` (parameter -> slices), ``trainers``, ``push_nums``; otherwise empty.
        flags (dict): ``TrainerRuntimeConfig.get_communicator_flags()``.
        scope (Scope): for GEO: of training.
    """
    if mode == _core.Mode.GEO:
        parameters = [(name, any(info["is_sparse"]), info.get("moves_all_rows", False),
                       list(zip(info["epmap"], info["var_names"], info["sections"])))
                      for name, info in settings["push_vars"].items()]
        _core.ps_start_geo(trainer, settings["trainers"], settings["push_nums"], scope, parameters)
        return
    queue = min(int(flags.get("communicator_" + name, 20)) for name in ("send_queue_size", "max_merge_var_num"))
    half_async = mode == _core.Mode.HALF_ASYNC
    merged_by_average = half_async or not int(flags.get("communicator_is_sgd_optimizer", 1))
    _core.ps_start_communicator(trainer, queue, merged_by_average, 1 if half_async else 0)


def begin_geo(trainers: Iterable[int]) -> None:
    """Declares that the parameters now equal those of the servers. From now on, GEO training sends differences.

    Args:
        trainers (iterable of int): workers whose startup programs have run.
    """
    for trainer in trainers:
        _core.ps_begin_geo(trainer)


def communicator_stop(trainer: int) -> None:
    """Sends all pending messages, then stops the threads of ``communicator_start``."""
    _core.ps_stop_communicator(trainer)


def communicator_flush() -> None:
    """Sends all pending messages of this process, and returns when servers have applied them. The threads keep
    running."""
    _core.ps_flush()


def pull(trainer: int, endpoint: str, name: str) -> numpy.ndarray:
    """numpy.ndarray: a variable of a server."""
    return numpy.asarray(_core.ps_pull(trainer, endpoint, name))


def recorded_since(trainer: int, shards: Sequence[tuple[str, str]]) -> list[int]:
    """list of int: for each shard of a table the link since which its server has recorded changes."""
    return list(_core.ps_recorded_since(trainer, list(shards)))


def save_table(trainer: int, shards: Sequence[tuple[str, str]], path: str) -> None:
    """Writes a growable table as one file, shard by shard.

    Args:
        trainer (int): number of this worker.
        shards (list): (server, name there) of each.
        path (str): of the file.
    """
    with _core.FileSet() as files:
        _core.ps_save_table(trainer, list(shards), path, files)


class FilesOfPass:
    """The files of one pass that this worker takes from the first server, one at a time. Inside its ``with`` block,
    the worker sends heartbeats to the server. A file that has not been trained at the end of the block goes back to
    the queue.

    Args:
        role (RoleMakerBase): the role of this process.
        name (str): name of the queue and the pass, the same in all workers.
        files (list of str): paths, the same in all workers.
    """

    def __init__(self, role: Any, name: str, files: Sequence[str]) -> None:
        self._at = (role.worker_index(), role.get_pserver_endpoints()[0], name)
        self._files = list(files)
        self._beats: Any = None
        self._held: tuple[int, str] | None = None
        self.left = len(self._files)

    def __enter__(self) -> FilesOfPass:
        self._beats = _core.ps_offer_files(*self._at, self._files)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        held, self._held = self._held, None
        if held is not None:
            _core.ps_give_back_file(*self._at, held[0])
        self._beats = None

    def take(self) -> str | None:
        """str: the next file, or None if there is no file left for this worker. Waits while other workers still hold
        files."""
        for pause in itertools.chain(_FILE_PAUSES, itertools.repeat(_FILE_PAUSES[-1])):
            found = _core.ps_take_file(*self._at)
            if isinstance(found, tuple):
                number, path, self.left = found
                self._held = (number, path)
                return str(path)
            if found:
                return None
            time.sleep(pause)
        return None

    def trained(self) -> None:
        """Sends the gradients of the file to the servers, then marks the file as done."""
        communicator_flush()
        number, path = self._held or (-1, "")
        counts = _core.ps_end_file(*self._at, number)
        self._held = None
        if not counts:
            sys.stderr.write("%s was given to another worker, because this one did not report in time: its records are "
                             "trained on twice\n" % path)


# ---- workers alone

_CONTROL = 4095                      # ring of messages between workers outside of steps; programs use other rings
_GOODBYE_MS = 5000


def join(ring: int, rank: int, endpoints: Sequence[str]) -> None:
    """Connects this process to the others of its group. A second call has no effect.

    Args:
        ring (int): number of the group. Several groups of the same processes have different numbers.
        rank (int): number of this process.
        endpoints (list of str): addresses of all, by their numbers.
    """
    _core.comm_join(ring, rank, list(endpoints))


def join_trainers(build: Any) -> None:
    """Joins the ring of training programs if no startup program has joined it.

    Args:
        build (BuildStrategy): ``num_trainers``, ``trainer_id`` and, if it knows them, ``trainers_endpoints``.
    """
    if build.num_trainers <= 1 or _core.comm_joined(0):  # ring 0: of the startup program
        return
    endpoints = list(build.trainers_endpoints or ())
    if not endpoints:
        endpoints = [e for e in os.environ.get("PADDLE_TRAINER_ENDPOINTS", "").split(",") if e]
    if len(endpoints) != build.num_trainers:
        raise InvalidValue("num_trainers must be the number of known addresses (%d), got %d: "
                           "BuildStrategy.trainers_endpoints or PADDLE_TRAINER_ENDPOINTS must name all trainers"
                           % (len(endpoints), build.num_trainers))
    join(0, build.trainer_id, endpoints)


def _say_goodbye() -> None:
    """Keeps the connections open until no other worker reads from them."""
    _core.comm_leave(_GOODBYE_MS)


atexit.register(_say_goodbye)


def barrier(role: Any, group: str) -> None:
    """Waits until all processes of the group have called this function.

    Args:
        role (RoleMakerBase): the role of this process.
        group (str): "worker" or "all".
    """
    servers = role.get_pserver_endpoints()
    if group != "worker" and servers:
        raise Unsupported("barrier_all is not supported with servers: the workers wait for each other at a "
                          "server, and servers do not wait; use barrier_worker")
    if servers:
        _core.ps_reduce(role.worker_index(), servers[0], "barrier", None)
    else:
        _gather_bytes(role, b"")


def _join_workers(role):
    endpoints = role.get_trainer_endpoints()
    if len(endpoints) != role.worker_num():
        raise InvalidValue("workers must know each other's addresses: PADDLE_TRAINER_ENDPOINTS must name %d, got %s"
                           % (role.worker_num(), ",".join(endpoints) or "none"))
    join(_CONTROL, role.worker_index(), endpoints)


def _gather_bytes(role, mine):
    _join_workers(role)
    return _core.comm_gather(_CONTROL, mine)


def exchange_records(role: Any, dataset: Any) -> None:
    """Distributes the records of all workers among them, as evenly as possible.

    Args:
        role (RoleMakerBase): the role of this process.
        dataset: data set of the engine, whose records are in a random order.
    """
    _join_workers(role)
    parts = dataset.deal(role.worker_num(), role.worker_index())
    dataset.take(_core.comm_exchange(_CONTROL, parts))


def all_reduce(role: Any, values: Any, how: str) -> Any:
    """numpy.ndarray: the result, computed elementwise over all workers.

    Args:
        role (RoleMakerBase): the role of this process.
        values (numpy.ndarray): values, with the same shape in all workers.
        how (str): "sum", "max" or "min".
    """
    mine = numpy.asarray(values)
    wide = mine.astype("int64" if mine.dtype.kind in "biu" else "float64")
    rows = _rows_of_all(role, wide)
    result = {"sum": rows.sum, "max": rows.max, "min": rows.min}[how](axis=0)
    return result.astype(mine.dtype)


def _rows_of_all(role, mine):
    """One row for each worker. At a server, each adds its own to zeros."""
    servers = role.get_pserver_endpoints()
    if servers:
        rows = numpy.zeros((role.worker_num(),) + mine.shape, mine.dtype)
        rows[role.worker_index()] = mine
        return numpy.asarray(_core.ps_reduce(role.worker_index(), servers[0], "rows of workers", rows))
    form = json.dumps([mine.dtype.str, mine.shape]).encode()
    given = [text.partition(b"\n") for text in _gather_bytes(role, form + b"\n" + mine.tobytes())]
    for rank, (other, _, _data) in enumerate(given):
        if other != given[0][0]:
            raise InvalidValue("all_reduce: worker 0 has %s, worker %d has %s"
                               % (given[0][0].decode(), rank, other.decode()))
    return numpy.stack([numpy.frombuffer(data, mine.dtype).reshape(mine.shape) for _, _, data in given])


def role_of(fleet: Any, what: str) -> Any:
    """RoleMakerBase: the role of this process.

    Args:
        fleet: the ``fleet`` object.
        what (str): function to which the user has passed it.
    """
    role = getattr(fleet, "_role", None)
    if not callable(role):
        raise InvalidType("%s: fleet must be a fleet object, got %s" % (what, type(fleet).__name__))
    return role()


def gather_arrays(role: Any, mine: numpy.ndarray) -> list[numpy.ndarray]:
    """list of numpy.ndarray: those of all workers, in the order of the workers.

    Args:
        role (RoleMakerBase): the role of this process.
        mine (numpy.ndarray): int64 or float64, [N], where each worker has its own N.
    """
    sizes = _rows_of_all(role, numpy.array([mine.size], "int64"))[:, 0]
    padded = numpy.zeros(int(sizes.max()), mine.dtype)
    padded[:mine.size] = mine
    return [row[:size] for row, size in zip(_rows_of_all(role, padded), sizes)]


def all_gather(role: Any, value: Any) -> list[Any]:
    """list: the values of all workers, in the order of the workers.

    Args:
        role (RoleMakerBase): the role of this process.
        value: a number or a text.
    """
    if not role.get_pserver_endpoints():
        return [json.loads(text) for text in _gather_bytes(role, json.dumps(value).encode())]
    text = numpy.frombuffer(json.dumps(value).encode(), "uint8").astype("int64")
    return [json.loads(bytes(row.astype("uint8"))) for row in gather_arrays(role, text)]


def meet(role: Any) -> None:
    """Waits until all workers have called this function."""
    if role.worker_num() > 1:
        all_gather(role, "")


def by_first_worker(role: Any, what: str, do: Callable[[], object]) -> None:
    """Calls ``do`` in the first worker. All workers call this function, and return when it is done.

    Args:
        role (RoleMakerBase): the role of this process.
        what (str): name of the action, for the error of the other workers if it fails.
        do (callable): the action.
    """
    failed = ""
    try:
        if role.is_first_worker():
            do()
    except Exception as error:
        failed = str(error) or type(error).__name__
        raise
    finally:
        told = all_gather(role, failed)[0] if role.worker_num() > 1 else ""
    if told:
        raise Unavailable("%s: the first worker failed: %s" % (what, told))
