"""Servers and workers as actors of `Ray <https://ray.io>`_, which places them and starts those again that die.

Each actor starts the script on its node, in the environment of the launcher. Ray restarts an actor that was killed.
If the script of an actor fails, the launcher lets Ray restart the actor. A restarted server reads its state from
disk, and a restarted worker joins again. Addresses belong to machines, so an actor always stays on its machine.
"""
from __future__ import annotations

import os
import signal
import sys
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from . import _preflight
from ._processes import Process, free_ports, outcome_of, watch
from .fluid.errors import InvalidValue, NotOffered, Unavailable
from .launch import Plan, Role, kept_state, passed_on, process, roles

_ROOM_S = 60.0                     # for how long Ray may look for room
_STORE_BYTES = 80 << 20            # of the store of objects, which nothing is put into


def _ray() -> Any:
    try:
        import ray
        import ray.util.scheduling_strategies
    except ImportError:
        raise NotOffered("anabranch launch --ray needs ray: pip install 'anabranch[ray]'") from None
    return ray


class Seen(NamedTuple):
    """Report of an actor on its script."""

    life: str            # another one for each start of the actor
    code: int | None
    pid: int
    tail: str
    added: str


def _count_starts(log: str, again: bool) -> int:
    """Number of earlier starts of a role, kept in a file next to the log, because Ray does not count restarts."""
    path = os.path.join(os.path.dirname(log), ".%s.starts" % os.path.basename(log))
    count = 0
    if again and os.path.exists(path):
        with open(path) as file:
            count = int(file.read()) + 1
    with open(path, "w") as file:
        file.write(str(count))
    return count


class Actor:
    """A process of the job, on the node where Ray has put it.

    Args:
        plan (Plan): with all addresses.
        role (Role): this one.
        node (str): the node at whose address the others connect.
        environment (dict): passed on by the launcher.
        cwd (str): the launcher's folder, for nodes that have it.
    """

    def __init__(self, plan: Plan, role: Role, node: str, environment: Mapping[str, str], cwd: str) -> None:
        context = _ray().get_runtime_context()
        if context.get_node_id() != node:
            raise Unavailable("Ray has started %s on a different machine, where the other processes cannot find it"
                              % role.name)
        self._life = uuid.uuid4().hex
        os.makedirs(plan.logs, exist_ok=True)
        starts = _count_starts(role.log, context.was_current_actor_reconstructed)
        self._process: Process = process(plan, role, {**os.environ, **environment}, starts,
                                         cwd if os.path.isdir(cwd) else None)

    def look(self) -> Seen:
        """Seen: how the script is."""
        code = self._process.poll()
        return Seen(self._life, code, self._process.pid, "" if code is None else self._process.tail(),
                    self._process.added())

    def send(self, number: int) -> None:
        """Sends a signal to the script and its child processes."""
        self._process.send(number)


class RemoteProcess:
    """An actor with the interface of a process of this machine, for :func:`watch`.

    Args:
        ray (module): the package ray.
        actor: handle of an :class:`Actor`, which Ray starts again ``restarts`` times.
        role (Role): its role.
        restarts (int): restarts that the plan allows.
    """

    def __init__(self, ray: Any, actor: Any, role: Role, restarts: int) -> None:
        self.name, self.log, self.serves = role.name, role.log, role.serves
        self._ray, self._actor, self._restarts = ray, actor, restarts
        self._asked: Any = None
        self._seen = Seen("", None, 0, "", "")
        self._ended_life, self._lost, self._added = "", "", ""
        self.starts = 0

    @property
    def pid(self) -> int:
        """int: number of the script's process on its machine; 0 before it is known."""
        return 0 if self._ended_life == self._seen.life else self._seen.pid

    def poll(self) -> int | None:
        """int or None: exit code of the script; 1 if Ray has lost its actor."""
        if self._lost or self._seen.code == 0:
            return 1 if self._lost else 0
        if self._asked is None:
            self._asked = self._actor.look.remote()
        ready, _ = self._ray.wait([self._asked], timeout=0)
        if ready:
            self._take()
        return 1 if self._lost else None if self._seen.life == self._ended_life else self._seen.code

    def _take(self) -> None:
        asked, self._asked = self._asked, None
        try:
            seen = self._ray.get(asked)
        except self._ray.exceptions.RayError as e:
            self._lost = str(e).strip()
            return
        if seen.life == self._ended_life:      # of the script that is being replaced
            return
        if self._seen.life and seen.life != self._seen.life:
            self.starts += 1
            sys.stderr.write("launch: Ray has started %s again, as process %d\n" % (self.name, seen.pid))
        self._added += seen.added
        self._seen = seen
        if seen.code == 0:                     # its work is done: Ray is not to start it again
            self._ray.kill(self._actor, no_restart=True)

    def start_again(self) -> bool:
        """bool: whether Ray may restart the actor. Ray's own restarts count as well: see poll."""
        if self._lost or self._restarts == 0:
            return False
        self._restarts -= 1
        self._ended_life = self._seen.life
        self._ray.kill(self._actor, no_restart=False)
        return True

    def send(self, number: int) -> None:
        """Sends a signal to the script; SIGKILL also ends its actor permanently."""
        if number == signal.SIGKILL:
            self._ray.kill(self._actor, no_restart=True)
            self._lost = self._lost or "it was ended"
        else:
            self._actor.send.remote(number)

    def added(self) -> str:
        """str: what the script has written since the last call."""
        text, self._added = self._added, ""
        return text

    def outcome(self) -> str:
        """str: "ended with 1", "was ended by SIGKILL", "was lost: ..."."""
        return "was lost: " + self._lost if self._lost else outcome_of(self.poll())

    def tail(self, lines: int = 20) -> str:
        """str: the last lines that are known."""
        return "\n".join(self._seen.tail.splitlines()[-lines:])


def addresses(nodes: Sequence[str], hosts: Mapping[str, str], ports: Mapping[str, Sequence[int]]) -> list[str]:
    """list of str: one address for each process.

    Args:
        nodes (list of str): node of each process.
        hosts (dict): address of each node.
        ports (dict): free ports of each node.

    >>> addresses(["a", "b", "a"], {"a": "10.0.0.1", "b": "10.0.0.2"}, {"a": [1, 2], "b": [1]})
    ['10.0.0.1:1', '10.0.0.2:1', '10.0.0.1:2']
    >>> addresses(["a", "a"], {"a": "10.0.0.1"}, {"a": [1, 2]})       # no other node needs to reach them
    ['127.0.0.1:1', '127.0.0.1:2']
    """
    left = {node: list(given) for node, given in ports.items()}
    alone = len(set(nodes)) == 1
    return ["%s:%d" % ("127.0.0.1" if alone else hosts[node], left[node].pop(0)) for node in nodes]


def _room(ray: Any, count: int, cpus: float) -> tuple[Any, list[str]]:
    """(placement group, node of each bundle): Ray keeps it free, and starts actors again within it."""
    group = ray.util.placement_group([{"CPU": cpus}] * count, strategy="PACK")
    if not group.wait(_ROOM_S):
        has = ray.cluster_resources().get("CPU", 0)
        ray.util.remove_placement_group(group)
        raise Unavailable("Ray could not place %d processes of %g cores within %g s: it has %g cores, which other jobs "
                          "may be using; --cpus sets the cores of each process" % (count, cpus, _ROOM_S, has))
    table = ray.util.placement_group_table(group)["bundles_to_node_id"]
    return group, [table[i] for i in range(count)]


def _placed(ray: Any, plan: Plan, cpus: float) -> tuple[Plan, list[str], list[Any]]:
    """(the plan with addresses, node of each process, where Ray is to start each)."""
    count = len(plan.servers) + len(plan.workers)
    group, nodes = _room(ray, count, cpus)
    where = [ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=i)
             for i in range(count)]
    hosts = {node["NodeID"]: node["NodeManagerAddress"] for node in ray.nodes()}
    ask = ray.remote(free_ports)
    ports = {node: ray.get(ask.options(num_cpus=0, scheduling_strategy=where[nodes.index(node)])
                           .remote(nodes.count(node), "")) for node in set(nodes)}
    found = addresses(nodes, hosts, ports)
    return (plan._replace(servers=found[:len(plan.servers)], workers=found[len(plan.servers):],
                          logs=os.path.abspath(plan.logs)), nodes, where)


def _run(ray: Any, plan: Plan, cpus: float) -> int:
    plan, nodes, where = _placed(ray, plan, cpus)
    with kept_state(plan) as kept:
        made = ray.remote(Actor)
        running = []
        for role, node, place in zip(roles(kept), nodes, where):
            actor = made.options(num_cpus=cpus, scheduling_strategy=place, max_restarts=kept.restarts,
                                 max_task_retries=-1 if kept.restarts else 0,
                                 name="%s of %d" % (role.name, os.getpid()))
            handle = actor.remote(kept._replace(restarts=0), role, node, passed_on(os.environ), os.getcwd())
            running.append(RemoteProcess(ray, handle, role, kept.restarts))
            if kept.echo:
                sys.stderr.write("launch: %s is an actor at %s\n" % (role.name, role.endpoint))
        return watch(running, kept.echo, kept.server_grace_s)


def start(plan: Plan, cpus: float = 1.0) -> int:
    """Starts the processes of a plan as actors and waits for them.

    Args:
        plan (Plan): how many servers and workers; their addresses are chosen.
        cpus (float): cores of each.

    Returns:
        int: exit code: 0, or that of the process that failed first.

    Raises:
        ImportError: there is no Ray.
        RuntimeError: Ray has too few free cores.
    """
    ray = _ray()
    if ray.is_initialized():
        raise InvalidValue("Ray is already running in this process: anabranch launch --ray starts or joins Ray itself")
    _preflight.check(plan.logs, [], ["127.0.0.1:0"], None)
    try:
        if os.environ.get("RAY_ADDRESS"):
            ray.init(log_to_driver=False, logging_level="warning")
        else:
            count = len(plan.servers) + len(plan.workers)
            ray.init(address="local", num_cpus=max(os.cpu_count() or 1, int(count * cpus + 0.999)),
                     include_dashboard=False, object_store_memory=_STORE_BYTES, log_to_driver=False,
                     logging_level="warning")
        return _run(ray, plan, cpus)
    finally:
        ray.shutdown()
