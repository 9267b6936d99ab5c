"""Starts the servers and workers of a cluster on this machine.

    anabranch launch --servers 2 --workers 4 train.py --epochs 3
    python -m anabranch.launch --servers 2 --workers 4 train.py --epochs 3

The environment gives each process its role, in the variables that Fluid's PaddleCloudRoleMaker reads. Its output goes
to ``LOGS/serverlog.0``, ``LOGS/workerlog.0`` ...; the output of the first worker is also shown. If a process fails, the
launcher prints its name with the end of its log and stops the others, unless --restarts allows another start: servers
then keep acknowledged updates on disk. Ctrl-C stops all. A script that imports ``paddle`` runs under ``anabranch run``.
"""
from __future__ import annotations

import argparse
import contextlib
import fcntl
import glob
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TextIO

from . import _launched, _preflight, run
from ._imports import needs_fluid
from ._kubernetes import manifest
from ._processes import STARTS, Process, end_all, free_ports, watch
from .looking.command_line import Parser, ended, no_script

#: Read by ``fleet.init_server``: the folder that servers start from.
RESUME = "ANABRANCH_RESUME_DIR"
#: Read by servers: the folder of their durable state.
STATE = "FLAGS_ps_state_dir"
#: In the launcher's folder of state: locked while the launcher runs.
_HELD = "launcher"
#: Variables that define the role of a process: those of the launcher's own environment are not passed on.
_ROLES = frozenset(["TRAINING_ROLE", "PADDLE_TRAINING_ROLE", "PADDLE_TRAINER_ID", "PADDLE_PSERVERS_IP_PORT_LIST",
                    "PADDLE_PSERVERS", "CURRENT_ENDPOINT", RESUME, STARTS, _launched.SCRIPT])
#: Passed on to other machines, in addition to flags.
_PASSED_ON = frozenset(["CPU_NUM", "PYTHONPATH", "http_proxy", "https_proxy", "no_proxy", "NO_PROXY"])


class Plan(NamedTuple):
    """The processes to start on this machine."""

    servers: Sequence[str]        # addresses of all servers
    workers: Sequence[str]        # addresses of all workers
    command: Sequence[str]        # the script with its arguments
    logs: str
    host: str | None = None       # starts those of this host alone; None: all
    resume: str | None = None
    echo: bool = True
    server_grace_s: float = 60.0
    restarts: int = 0             # of each process
    state: str | None = None      # where servers keep their state, unless the environment says it


class Role(NamedTuple):
    """One process of a plan."""

    name: str
    endpoint: str
    serves: bool
    number: int
    log: str


def roles(plan: Plan) -> list[Role]:
    """list of Role: all processes of a plan, servers first.

    >>> [role.log for role in roles(Plan(["h:1"], ["h:2"], ["train.py"], "logs"))]
    ['logs/serverlog.0', 'logs/workerlog.0']
    """
    return [Role("%s %d" % (kind, index), endpoint, serves, index, os.path.join(plan.logs, "%slog.%d" % (kind, index)))
            for kind, serves, endpoints in (("server", True, plan.servers), ("worker", False, plan.workers))
            for index, endpoint in enumerate(endpoints)]


def interpreter(script: str, python: str = sys.executable) -> list[str]:
    """list of str: the command that runs a script: Python, or ``anabranch run`` if the script imports ``paddle`` or
    the launcher itself runs under ``anabranch run``.
    """
    old = os.environ.get(run.VARIABLE) or needs_fluid(script)
    return [python, "-u", *(["-m", "anabranch", "run"] if old else [])]


def _of(plan: Plan, endpoint: str) -> bool:
    return plan.host is None or endpoint.rpartition(":")[0] == plan.host


def passed_on(given: Mapping[str, str]) -> dict[str, str]:
    """dict: the variables of the launcher's environment that processes on other machines get as well.

    >>> passed_on({"FLAGS_rpc_insecure": "1", "EDITOR": "vi"})
    {'FLAGS_rpc_insecure': '1'}
    """
    return {name: value for name, value in given.items() if name in _PASSED_ON
            or (name.startswith(("FLAGS_", "ANABRANCH_")) and name not in _ROLES)}


def environment(plan: Plan, role: Role, base: Mapping[str, str]) -> dict[str, str]:
    """dict: the environment of one process: ``base`` and its role.

    >>> plan = Plan(["127.0.0.1:6174"], ["127.0.0.1:6180"], ["train.py"], "logs")
    >>> environment(plan, roles(plan)[1], {})["TRAINING_ROLE"]
    'TRAINER'
    """
    host, _, port = role.endpoint.rpartition(":")
    env = {name: value for name, value in base.items() if name not in _ROLES}
    env.update(PADDLE_TRAINERS_NUM=str(len(plan.workers)), PADDLE_TRAINER_ENDPOINTS=",".join(plan.workers),
               PADDLE_CURRENT_ENDPOINT=role.endpoint, POD_IP=host, PADDLE_PORT=port, PYTHONUNBUFFERED="1",
               TRAINING_ROLE="PSERVER" if role.serves else "TRAINER")
    if len(plan.servers) + len(plan.workers) > 1:
        env[_launched.SCRIPT] = os.path.abspath(plan.command[0])
    if plan.servers:
        env["PADDLE_PSERVERS_IP_PORT_LIST"] = ",".join(plan.servers)
    if not role.serves:
        env["PADDLE_TRAINER_ID"] = str(role.number)
    if plan.resume:
        env[RESUME] = os.path.abspath(plan.resume)
    if plan.state:
        env[STATE] = plan.state
    hosts = sorted({e.rpartition(":")[0] for e in [*plan.servers, *plan.workers]})
    for name in ("no_proxy", "NO_PROXY"):  # what is between processes passes by no proxy
        env[name] = ",".join([part for part in [env.get(name, "")] if part] + hosts)
    return env


def process(plan: Plan, role: Role, base: Mapping[str, str], starts: int = 0, cwd: str | None = None) -> Process:
    """Process: a process started on this machine. ``base`` is its environment, and ``starts`` the number of earlier
    starts."""
    script = os.path.join(cwd or "", plan.command[0])
    command = [*interpreter(script), *plan.command]
    return Process(role.name, command, environment(plan, role, base), role.log, role.serves, plan.restarts, starts, cwd)


@contextlib.contextmanager
def kept_state(plan: Plan) -> Iterator[Plan]:
    """Adds a folder for the state of servers to a plan with restarts, and removes the folder at the end."""
    if not plan.restarts or not plan.servers or os.environ.get(STATE):
        yield plan
        return
    _remove_left(plan.logs)
    folder = tempfile.mkdtemp(prefix="state-", dir=os.path.abspath(plan.logs))
    try:
        with open(os.path.join(folder, _HELD), "w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield plan._replace(state=folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_left(logs: str) -> None:
    """Removes the state folders of launchers that were killed."""
    for held in glob.glob(os.path.join(glob.escape(logs), "state-*", _HELD)):
        with contextlib.suppress(OSError), open(held) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(os.path.dirname(held), ignore_errors=True)


def start(plan: Plan, extra: Mapping[str, str] | None = None, err: TextIO | None = None) -> int:
    """Starts the processes of a plan and waits for them.

    Args:
        plan (Plan): the processes to start.
        extra (dict, optional): environment of all processes, in addition to the launcher's.
        err (file, optional): output of messages about failures. Default: stderr.

    Returns:
        int: exit code: 0, or that of the process that failed first.

    Raises:
        ValueError, RuntimeError: the job cannot run on this machine. No process was started.
    """
    _preflight.check(plan.logs, plan.servers, plan.workers, plan.host)
    base = {**os.environ, **(extra or {})}
    running: list[Process] = []
    with kept_state(plan) as kept:
        try:
            for role in roles(kept):
                if _of(plan, role.endpoint):
                    running.append(process(kept, role, base))
                    if plan.echo:
                        sys.stderr.write("launch: %s is process %d at %s\n"
                                         % (role.name, running[-1].pid, role.endpoint))
        except KeyboardInterrupt:
            end_all(running)
            return 128 + signal.SIGINT
        except BaseException:
            end_all(running)
            raise
        return watch(running, plan.echo, plan.server_grace_s, err)


def _count(least: int) -> type:
    def count(text: str) -> int:
        if not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError("must be an integer of at least %d, got %r" % (least, text))
        return int(text)
    return count  # type: ignore[return-value]  # argparse takes any function


def parser() -> argparse.ArgumentParser:
    """ArgumentParser: the parser of ``anabranch launch``."""
    made = Parser(prog="anabranch launch", description=(__doc__ or "").partition("\n")[0])
    made.add_argument("--servers", type=_count(0), default=1,
                      help="Number of parameter servers; 0 starts only workers (default: 1).")
    made.add_argument("--workers", type=_count(1), default=1, help="Number of workers (default: 1).")
    made.add_argument("--nproc", type=_count(1), metavar="N", help="Number of workers that sum their gradients without "
                      "servers; the same as --servers 0 --workers N.")
    made.add_argument("--log-dir", default="logs", help="Folder of the logs (default: logs).")
    made.add_argument("--resume", metavar="DIR",
                      help="Folder written by fleet.save_persistables from which servers start.")
    made.add_argument("--quiet", action="store_true", help="Do not show the output of the first worker.")
    made.add_argument("--restarts", type=_count(0), default=0, metavar="N", help="Number of times that a failed "
                      "process is restarted; servers then keep acknowledged updates on disk until the job ends "
                      "(default: 0).")
    made.add_argument("--server-grace", type=float, default=60.0, metavar="S",
                      help="Seconds that servers may run after the last worker has ended (default: 60).")
    made.add_argument("--ray", action="store_true", help="Run as actors of Ray, on the cluster that RAY_ADDRESS "
                      "names or on a new one on this machine.")
    made.add_argument("--cpus", type=float, default=1.0, metavar="N",
                      help="With --ray: number of cores that Ray reserves for "
                      "each process (default: 1).")
    made.add_argument("--print-kubernetes", action="store_true",
                      help="Print a JobSet manifest instead of starting processes.")
    made.add_argument("--image", default="anabranch:latest", help="With --print-kubernetes: container image.")
    made.add_argument("--name", default="anabranch", help="With --print-kubernetes: name of the JobSet.")
    made.add_argument("script", help="Python script.")
    made.add_argument("args", nargs=argparse.REMAINDER, help="Arguments of the script.")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``anabranch launch``.

    Args:
        argv (list of str, optional): arguments. Default: those of the process.

    Returns:
        int: exit code.
    """
    made = parser()
    args = made.parse_args(argv)
    _warn_of_late_options(made, args)
    if args.nproc:
        args.servers, args.workers = 0, args.nproc
    if args.print_kubernetes:
        return ended("launch", lambda: _print_kubernetes(args))
    if args.cpus < 0:
        made.error("--cpus must be at least 0, got %g" % args.cpus)
    if not os.path.exists(args.script):
        made.error(no_script(args.script))
    if args.resume and not os.path.isdir(args.resume):
        made.error("--resume: there is no folder %s" % args.resume)
    plan = Plan([""] * args.servers, [""] * args.workers, [args.script, *args.args], args.log_dir, resume=args.resume,
                echo=not args.quiet, server_grace_s=args.server_grace, restarts=args.restarts)
    return ended("launch", lambda: _started(plan, args.ray, args.cpus))


def _warn_of_late_options(made: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Says that numbers of processes after the script are arguments of the script, unless others precede it."""
    given = any(getattr(args, name) != made.get_default(name) for name in ("servers", "workers", "nproc"))
    late = [one for one in args.args if one.partition("=")[0] in ("--servers", "--workers", "--nproc")]
    if late and not given:
        sys.stderr.write("launch: %s after %s %s of the script, so the launcher starts %d server and %d worker. "
                         "Options of the launcher precede the script: anabranch launch %s N %s\n"
                         % (" and ".join(late), args.script, "is an argument" if len(late) == 1 else "are arguments",
                            args.servers, args.workers, " N ".join(late), args.script))


def _print_kubernetes(args: argparse.Namespace) -> int:
    flags = {name: value for name, value in passed_on(os.environ).items() if name.startswith("FLAGS_")}
    sys.stdout.write(manifest(args.name, args.image, args.servers, args.workers,
                              [*interpreter(args.script, "python"), args.script, *args.args], args.resume,
                              args.restarts, flags))
    if args.servers and not flags.keys() & {"FLAGS_rpc_certificates", "FLAGS_rpc_insecure"}:
        sys.stderr.write("launch: these servers will refuse to listen: set FLAGS_rpc_certificates, or "
                         "FLAGS_rpc_insecure=1 where the network is trusted, for this command\n")
    return 0


def _started(plan: Plan, ray: bool, cpus: float) -> int:
    """Starts the processes at addresses that are chosen now."""
    if ray:
        from . import _ray
        return _ray.start(plan, cpus)
    endpoints = ["127.0.0.1:%d" % port for port in free_ports(len(plan.servers) + len(plan.workers))]
    return start(plan._replace(servers=endpoints[:len(plan.servers)], workers=endpoints[len(plan.servers):]))


if __name__ == "__main__":
    sys.exit(main())
