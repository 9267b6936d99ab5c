"""Role makers: from the environment, from arguments, from a scheduler, or all in this process."""
from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ....errors import InvalidType, InvalidValue
from .mpi_environment import Job
from .role_base import Calls, Role, RoleMakerBase, check_endpoints, check_id, needed, needed_number, split_addresses

__all__ = ["GeneralRoleMaker", "LocalRoleMaker", "MPISymetricRoleMaker", "PaddleCloudRoleMaker", "Role",
           "RoleMakerBase", "UserDefinedCollectiveRoleMaker", "UserDefinedRoleMaker"]


class PaddleCloudRoleMaker(RoleMakerBase):
    """Role maker that reads the environment.

    Parameter servers: ``TRAINING_ROLE`` (TRAINER or PSERVER), ``PADDLE_PSERVERS_IP_PORT_LIST``,
    ``PADDLE_TRAINERS_NUM``, ``PADDLE_TRAINER_ID`` of a worker, ``POD_IP`` and ``PADDLE_PORT`` of a server,
    ``PADDLE_TRAINER_ENDPOINTS`` where workers need each other's addresses. Names of Fluid 1.5 are read, too:
    ``PADDLE_TRAINING_ROLE``, ``PADDLE_PSERVERS`` with ``PADDLE_PORT``, ``CURRENT_ENDPOINT``.
    Collective: ``PADDLE_TRAINER_ID``, ``PADDLE_TRAINER_ENDPOINTS``, ``PADDLE_CURRENT_ENDPOINT``.

    Args:
        is_collective (bool): whether there are only workers. Default False.

    Raises:
        ValueError: a variable is missing or invalid, when the role is queried; the message names it.

    Examples:
        >>> import os
        >>> os.environ.update(TRAINING_ROLE="TRAINER", PADDLE_PSERVERS_IP_PORT_LIST="127.0.0.1:6174",
        ...                   PADDLE_TRAINERS_NUM="2", PADDLE_TRAINER_ID="1")
        >>> role = PaddleCloudRoleMaker()
        >>> role.is_worker(), role.worker_index(), role.worker_num()
        (True, 1, 2)
    """

    def __init__(self, is_collective: bool = False) -> None:
        super().__init__()
        self._is_collective = is_collective

    def generate_role(self) -> None:
        """Reads the environment."""
        if self._role_is_generated:
            return
        if self._is_collective:
            self._read_collective()
        else:
            self._read_servers()
        self._role_is_generated = True

    def _read_collective(self) -> None:
        self._worker_endpoints = split_addresses("PADDLE_TRAINER_ENDPOINTS", needed("PADDLE_TRAINER_ENDPOINTS"))
        self._workers = len(self._worker_endpoints)
        self._current_id = needed_number("PADDLE_TRAINER_ID", 0)
        self._role = Role.WORKER
        if self._current_id >= self._workers:
            raise InvalidValue("the environment variable PADDLE_TRAINER_ID is %d, but PADDLE_TRAINER_ENDPOINTS names %d"
                               % (self._current_id, self._workers))

    def _read_servers(self) -> None:
        self._workers = needed_number("PADDLE_TRAINERS_NUM", 1)
        self._server_endpoints = _servers_of_environment()
        workers = os.environ.get("PADDLE_TRAINER_ENDPOINTS")
        self._worker_endpoints = split_addresses("PADDLE_TRAINER_ENDPOINTS", workers) if workers else []
        name = "TRAINING_ROLE" if "TRAINING_ROLE" in os.environ else "PADDLE_TRAINING_ROLE"
        role = needed(name if name in os.environ else "TRAINING_ROLE")
        if role == "TRAINER":
            self._role = Role.WORKER
            self._current_id = needed_number("PADDLE_TRAINER_ID", 0)
            if self._current_id >= self._workers:
                raise InvalidValue("the environment variable PADDLE_TRAINER_ID is %d, but PADDLE_TRAINERS_NUM is %d"
                                   % (self._current_id, self._workers))
        elif role == "PSERVER":
            self._role = Role.SERVER
            me = _own_address()
            if me not in self._server_endpoints:
                raise InvalidValue("POD_IP and PADDLE_PORT give %s, but this server must be one of %s"
                                   % (me, ",".join(self._server_endpoints)))
            self._current_id = self._server_endpoints.index(me)
        else:
            raise InvalidValue("the environment variable %s must be TRAINER or PSERVER, got %r" % (name, role))


def _servers_of_environment() -> list[str]:
    if "PADDLE_PSERVERS_IP_PORT_LIST" in os.environ or "PADDLE_PSERVERS" not in os.environ:
        name = "PADDLE_PSERVERS_IP_PORT_LIST"
        return split_addresses(name, needed(name))
    hosts = needed("PADDLE_PSERVERS").split(",")
    ports = os.environ.get("PADDLE_PORT", "6174").split(",")
    ports = ports if len(ports) == len(hosts) else ports[:1] * len(hosts)
    return split_addresses("PADDLE_PSERVERS", ",".join("%s:%s" % pair for pair in zip(hosts, ports)))


def _own_address() -> str:
    if "POD_IP" not in os.environ and "CURRENT_ENDPOINT" in os.environ:
        return needed("CURRENT_ENDPOINT")
    return "%s:%s" % (needed("POD_IP"), os.environ.get("PADDLE_PORT", "6174").split(",")[0])


class UserDefinedRoleMaker(RoleMakerBase):
    """Role maker with the role as arguments.

    Args:
        current_id (int): index of this worker or server. Default 0.
        role (int): ``Role.WORKER`` or ``Role.SERVER``. Default ``Role.WORKER``.
        worker_num (int): number of workers, at least 1. The default 0 raises.
        server_endpoints (list of str): addresses of the servers.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a number is out of range; a server is missing or repeated.

    Examples:
        >>> role = UserDefinedRoleMaker(1, Role.SERVER, 2, ["127.0.0.1:6174", "127.0.0.1:6175"])
        >>> role.is_server(), role.server_index(), role.worker_num()
        (True, 1, 2)
    """

    def __init__(self, current_id: int = 0, role: int = Role.WORKER, worker_num: int = 0,
                 server_endpoints: list[str] | None = None) -> None:
        super().__init__()
        self._server_endpoints = check_endpoints("UserDefinedRoleMaker: server_endpoints", server_endpoints)
        if role not in (Role.WORKER, Role.SERVER):
            raise InvalidType("UserDefinedRoleMaker: role must be Role.WORKER or Role.SERVER, got %r" % (role,))
        if not isinstance(worker_num, int) or isinstance(worker_num, bool):
            raise InvalidType("UserDefinedRoleMaker: worker_num must be an int, got %s" % type(worker_num).__name__)
        if worker_num <= 0:
            raise InvalidValue("UserDefinedRoleMaker: worker_num must be at least 1, got %d" % worker_num)
        count = worker_num if role == Role.WORKER else len(self._server_endpoints)
        self._current_id = check_id("UserDefinedRoleMaker: current_id", current_id, count)
        self._role, self._workers = role, worker_num

    def generate_role(self) -> None:
        """Does nothing: the role is set."""
        self._role_is_generated = True


class UserDefinedCollectiveRoleMaker(RoleMakerBase):
    """Like :class:`UserDefinedRoleMaker`, for workers without servers.

    Args:
        current_id (int): index of this worker. Default 0.
        worker_endpoints (list of str): addresses of all workers.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a number is out of range; a worker is missing or repeated.

    Examples:
        >>> UserDefinedCollectiveRoleMaker(0, ["127.0.0.1:6170", "127.0.0.1:6171"]).worker_num()
        2
    """

    def __init__(self, current_id: int = 0, worker_endpoints: list[str] | None = None) -> None:
        super().__init__()
        self._worker_endpoints = check_endpoints("UserDefinedCollectiveRoleMaker: worker_endpoints", worker_endpoints)
        self._workers = len(self._worker_endpoints)
        self._current_id = check_id("UserDefinedCollectiveRoleMaker: current_id", current_id, self._workers)
        self._role = Role.WORKER

    def generate_role(self) -> None:
        """Does nothing: the role is set."""
        self._role_is_generated = True


class MPISymetricRoleMaker(Calls, RoleMakerBase):
    """Role maker for mpirun and srun, with two processes per node: even ranks are servers, odd ranks are workers.

    Reads the environment variables of Open MPI, MPICH (PMI) and Slurm; mpi4py is not needed. All processes derive the
    same addresses of servers: on the hosts of Slurm or ``PADDLE_HOSTS``, otherwise on this machine, at ports from 60001
    on that depend on the job's number.

    Raises:
        ValueError: the role is queried without a scheduler, with an odd number of processes, or with unknown hosts.

    Examples:
        >>> import os
        >>> os.environ.update(OMPI_COMM_WORLD_RANK="3", OMPI_COMM_WORLD_SIZE="4", OMPI_COMM_WORLD_LOCAL_SIZE="4")
        >>> role = MPISymetricRoleMaker()
        >>> role.is_worker(), role.worker_index(), role.worker_num(), role.server_num()
        (True, 1, 2, 2)
    """

    def generate_role(self) -> None:
        """Reads the scheduler's environment."""
        if self._role_is_generated:
            return
        job = Job.of_environment()
        if job.size % 2:
            raise InvalidValue("the number of processes must be even, because every second one is a server, but %s "
                               "started %d"
                               % (job.scheduler, job.size))
        self._role = Role.SERVER if job.rank % 2 == 0 else Role.WORKER
        self._current_id, self._workers = job.rank // 2, job.size // 2
        self._server_endpoints = ["%s:%d" % (job.host(2 * i), job.port(i)) for i in range(self._workers)]
        self._role_is_generated = True

    def get_local_ip(self) -> str:
        """str: the address of this machine that the others use."""
        self._known()
        job = Job.of_environment()
        return job.host(job.rank)


class GeneralRoleMaker(Calls, PaddleCloudRoleMaker):
    """Like :class:`PaddleCloudRoleMaker`, for workers that also gather and reduce values.

    Args:
        **kwargs: ``path``, ``prefix``, ``init_timeout_seconds``, ``run_timeout_seconds`` and others of Fluid, kept in
            ``_settings``.

    Examples:
        >>> import os
        >>> os.environ.update(TRAINING_ROLE="PSERVER", PADDLE_PSERVERS_IP_PORT_LIST="127.0.0.1:6174",
        ...                   PADDLE_TRAINERS_NUM="1", POD_IP="127.0.0.1", PADDLE_PORT="6174")
        >>> GeneralRoleMaker(init_timeout_seconds=60).get_local_endpoint()
        '127.0.0.1:6174'
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        self._settings = kwargs

    def get_local_endpoint(self) -> str:
        """str: the address of this process; empty if a worker has none."""
        self._known()
        known = self._server_endpoints if self._role == Role.SERVER else self._worker_endpoints
        return known[self._current_id] if known else ""


class LocalRoleMaker(RoleMakerBase):
    """Role maker that runs worker 0 and all servers in this process, for trying out a script. Not in Fluid.

    Args:
        server_num (int): number of servers. Default 1.

    Raises:
        TypeError: ``server_num`` is not an int.
        ValueError: it is below 1.

    Examples:
        >>> role = LocalRoleMaker(server_num=2)
        >>> role.is_worker(), role.worker_num(), role.get_pserver_endpoints()
        (True, 1, ['local:0', 'local:1'])
    """

    is_local = True

    def __init__(self, server_num: int = 1) -> None:
        super().__init__()
        check_id("LocalRoleMaker: server_num", server_num, 2**31)
        if server_num < 1:
            raise InvalidValue("LocalRoleMaker: server_num must be at least 1, got %d" % server_num)
        self._server_endpoints = ["local:%d" % i for i in range(server_num)]
        self._role, self._current_id, self._workers = Role.WORKER, 0, 1

    def generate_role(self) -> None:
        """Does nothing: the role is set."""
        self._role_is_generated = True


#: Conditions under which a role maker fits the environment, in the order of their checks.
_SIGNS: list[tuple[Callable[[], bool], Callable[[], RoleMakerBase]]] = [
    (lambda: "TRAINING_ROLE" in os.environ or "PADDLE_TRAINING_ROLE" in os.environ, PaddleCloudRoleMaker),
    (lambda: Job.is_there(), MPISymetricRoleMaker),
    (lambda: True, LocalRoleMaker),
]


def role_of_environment() -> RoleMakerBase:
    """RoleMakerBase: the role maker of ``fleet.init()`` that fits the environment, otherwise the local one.

    >>> import os
    >>> type(role_of_environment()).__name__ if "TRAINING_ROLE" not in os.environ else "LocalRoleMaker"
    'LocalRoleMaker'
    """
    return next(make() for fits, make in _SIGNS if fits())
