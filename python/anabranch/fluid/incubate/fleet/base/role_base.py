"""Base class of the role makers, which determine the role and index of a process and the addresses of the others."""
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy

from ..... import _cluster, _launched
from ....errors import InvalidType, InvalidValue, NotOffered


class Role:
    """Workers train, servers keep parameters.

    >>> Role.WORKER, Role.SERVER
    (1, 2)
    """

    WORKER = 1
    SERVER = 2


class RoleMakerBase:
    """Base class of the role makers. Subclasses override ``generate_role``."""

    def __init__(self) -> None:
        self._worker_endpoints: list[str] = []
        self._server_endpoints: list[str] = []
        self._role_is_generated = False
        self._role: int | None = None
        self._current_id = -1
        self._workers = 0

    def generate_role(self) -> None:
        """Determines the role of this process; called by ``fleet.init``."""
        raise NotOffered("%s is a base class that has no role: use a subclass" % type(self).__name__)

    def _known(self) -> None:
        if not self._role_is_generated:
            self.generate_role()
            self._role_is_generated = True

    # ---- the role of this process

    def is_worker(self) -> bool:
        """bool: whether this process trains."""
        self._known()
        return self._role == Role.WORKER

    def is_server(self) -> bool:
        """bool: whether this process keeps parameters."""
        self._known()
        return self._role == Role.SERVER

    def is_first_worker(self) -> bool:
        """bool: whether this is worker 0, which saves."""
        return self.is_worker() and self._current_id == 0

    def worker_index(self) -> int:
        """int: index of this worker, from 0."""
        self._known()
        return self._current_id

    def server_index(self) -> int:
        """int: index of this server, from 0."""
        self._known()
        return self._current_id

    def role_id(self) -> int:
        """int: index of this process among those of its role."""
        return self.worker_index() if self.is_worker() else self.server_index()

    # ---- the others

    def worker_num(self) -> int:
        """int: number of workers."""
        self._known()
        return self._workers or len(self._worker_endpoints)

    _worker_num: Any = property(worker_num)

    def server_num(self) -> int:
        """int: number of servers."""
        self._known()
        return len(self._server_endpoints)

    def get_trainer_endpoints(self) -> list[str]:
        """list of str: addresses of the workers; empty if they are not needed."""
        self._known()
        return self._worker_endpoints

    def get_pserver_endpoints(self) -> list[str]:
        """list of str: addresses of the servers."""
        self._known()
        return self._server_endpoints

    # ---- collective calls

    def all_gather(self, input: Any) -> list[Any]:
        """list: the inputs of all workers."""
        self._known()
        return [input] if self.worker_num() == 1 else _cluster.all_gather(self, input)

    def all_reduce_worker(self, input: Any, output: Any, mode: str = "sum") -> None:
        """Puts the sum, maximum or minimum over all workers into ``output``, elementwise.

        Args:
            input (numpy.ndarray|list): numbers, of the same shape in all workers.
            output (numpy.ndarray|list): receives the result.
            mode (str): "sum", "max" or "min". Default "sum".

        Raises:
            ValueError: the mode is unknown, or ``output`` has the wrong size.
        """
        if mode not in ("sum", "max", "min"):
            raise InvalidValue("all_reduce_worker: mode must be sum, max or min, got %r" % (mode,))
        mine = numpy.asarray(input)
        taken = mine if self.worker_num() == 1 else _cluster.all_reduce(self, mine, mode)
        if numpy.asarray(output).size != mine.size:
            raise InvalidValue("all_reduce_worker: output must have the %d elements of input, got %d"
                               % (mine.size, numpy.asarray(output).size))
        if isinstance(output, numpy.ndarray):
            output[...] = numpy.asarray(taken).reshape(output.shape)
        else:
            output[:] = numpy.asarray(taken).reshape(-1).tolist()

    def barrier_worker(self) -> None:
        """Waits until all workers have called this method."""
        if self.is_worker() and self.worker_num() > 1:
            _cluster.barrier(self, "worker")

    def barrier_all(self) -> None:
        """Waits until all workers and servers have called this method."""
        self._known()
        if self.worker_num() + self.server_num() > 1:
            _cluster.barrier(self, "all")

    def to_string(self) -> str:
        """str: role, index, addresses."""
        self._known()
        return "role: %s, current_id: %s, worker_endpoints: %s, server_endpoints: %s" % (
            self._role, self._current_id, self._worker_endpoints, self._server_endpoints)


# ---- Fluid's private calls


class Calls:
    """The private calls of Fluid's role makers that exchange values."""

    def _worker_num(self: Any) -> int:
        return self.worker_num()

    def _all_reduce(self: Any, input: Any, output: Any, mode: str = "sum") -> None:
        self.all_reduce_worker(input, output, mode)

    def _barrier_worker(self: Any) -> None:
        self.barrier_worker()


# ---- checks


def needed(name: str, env: Any = None) -> str:
    """str: an environment variable. ValueError, with its name, if it is not set."""
    _launched.asked()
    value = (os.environ if env is None else env).get(name)
    if not value:
        raise InvalidValue("the environment variable %s is not set: %s" % (name, _how_to_start(name)))
    return str(value)


def _how_to_start(name: str) -> str:
    servers, alone = "anabranch launch --servers 1 --workers 2 SCRIPT", "anabranch launch --nproc 2 SCRIPT"
    if name.startswith("PADDLE_PSERVERS") and os.environ.get("PADDLE_TRAINER_ENDPOINTS"):
        return "the process was started without servers, which this role needs. Start the script with " + servers
    if name == "PADDLE_TRAINER_ID" and os.environ.get("TRAINING_ROLE") == "PSERVER":
        return "the process was started as a server, but this role is of workers alone. Start the script with " + alone
    return ("start the script with %s, or with %s if it needs no servers; on several machines, set the variables of "
            "docs/clusters.md" % (servers, alone))


def needed_number(name: str, least: int) -> int:
    """int: an environment variable. ValueError, with its name, if it is not a number or too small."""
    text = needed(name)
    if not text.lstrip("-").isdigit() or int(text) < least:
        raise InvalidValue("the environment variable %s must be an integer of at least %d, got %r"
                           % (name, least, text))
    return int(text)


def check_endpoints(what: str, endpoints: Any) -> list[str]:
    """The list itself; TypeError or ValueError unless it holds addresses, each once."""
    if not isinstance(endpoints, list):
        raise InvalidType("%s must be a list of str, got %s" % (what, type(endpoints).__name__))
    if not endpoints:
        raise InvalidValue("%s must not be empty" % what)
    for endpoint in endpoints:
        if not isinstance(endpoint, str):
            raise InvalidType("%s must hold str, got %s" % (what, type(endpoint).__name__))
    if len(set(endpoints)) < len(endpoints):
        raise InvalidValue("%s must not name an address twice, got %s" % (what, endpoints))
    return endpoints


def check_id(what: str, number: Any, count: int) -> int:
    """The number itself; TypeError unless it is an int, ValueError unless it is from 0 to ``count`` - 1."""
    if not isinstance(number, int) or isinstance(number, bool):
        raise InvalidType("%s must be an int, got %s" % (what, type(number).__name__))
    if not 0 <= number < count:
        raise InvalidValue("%s must be from 0 to %d, got %d" % (what, count - 1, number))
    return number


def split_addresses(name: str, text: str) -> list[str]:
    """list of str: "host:port,host:port" of an environment variable, checked."""
    found: Sequence[str] = [part.strip() for part in text.split(",") if part.strip()]
    for endpoint in found:
        host, _, port = endpoint.rpartition(":")
        if not host or not port.isdigit():
            raise InvalidValue("the environment variable %s must be host:port,host:port, got %r" % (name, text))
    return check_endpoints("the environment variable %s" % name, list(found))
