"""Starts the servers and workers of a script on this machine.

    anabranch launch --servers 2 --workers 4 train.py --epochs 3
    python -m anabranch.launch --servers 2 --workers 4 train.py --epochs 3

Each process finds its role in the environment, by the names that Fluid's PaddleCloudRoleMaker reads. Its output is in
``LOGS/serverlog.0``, ``LOGS/workerlog.0`` ...; that of the first worker is shown, too. When one process fails, it is
named with the end of its log, and the others are ended. Ctrl-C ends all.
"""
from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from . import run
from ._kubernetes import manifest
from ._processes import Process, end_all, free_ports, watch

#: Read by ``fleet.init_server``: the folder that servers start from.
RESUME = "ANABRANCH_RESUME_DIR"


#: What says which process this is: of the launcher's own environment nothing is handed on.
_ROLES = frozenset(["TRAINING_ROLE", "PADDLE_TRAINING_ROLE", "PADDLE_TRAINER_ID", "PADDLE_PSERVERS_IP_PORT_LIST",
                    "PADDLE_PSERVERS", "CURRENT_ENDPOINT", RESUME])


class Plan(NamedTuple):
    """What is started on this machine."""

    servers: Sequence[str]        # addresses of all servers
    workers: Sequence[str]        # addresses of all workers
    command: Sequence[str]        # the script with its arguments
    logs: str
    host: str | None = None       # starts those of this host alone; None: all
    resume: str | None = None
    echo: bool = True
    server_grace_s: float = 60.0


def _interpreter() -> list[str]:
    """What runs a script: Python, or ``anabranch run`` where the launcher itself runs under that."""
    return [sys.executable, "-u", *(["-m", __package__, "run"] if os.environ.get(run.VARIABLE) else [])]


def _of(plan: Plan, endpoint: str) -> bool:
    return plan.host is None or endpoint.rpartition(":")[0] == plan.host


def environment(plan: Plan, endpoint: str, serves: bool, index: int, base: Mapping[str, str]) -> dict[str, str]:
    """dict: the environment of one process: ``base`` and its role.

    >>> plan = Plan(["127.0.0.1:6174"], ["127.0.0.1:6180"], ["train.py"], "logs")
    >>> environment(plan, "127.0.0.1:6180", False, 0, {})["TRAINING_ROLE"]
    'TRAINER'
    """
    host, _, port = endpoint.rpartition(":")
    env = {name: value for name, value in base.items() if name not in _ROLES}
    env.update(PADDLE_TRAINERS_NUM=str(len(plan.workers)), PADDLE_TRAINER_ENDPOINTS=",".join(plan.workers),
               PADDLE_CURRENT_ENDPOINT=endpoint, POD_IP=host, PADDLE_PORT=port, PYTHONUNBUFFERED="1",
               TRAINING_ROLE="PSERVER" if serves else "TRAINER")
    if plan.servers:
        env["PADDLE_PSERVERS_IP_PORT_LIST"] = ",".join(plan.servers)
    if not serves:
        env["PADDLE_TRAINER_ID"] = str(index)
    if plan.resume:
        env[RESUME] = os.path.abspath(plan.resume)
    hosts = sorted({e.rpartition(":")[0] for e in [*plan.servers, *plan.workers]})
    for name in ("no_proxy", "NO_PROXY"):  # what is between processes passes by no proxy
        env[name] = ",".join([part for part in [env.get(name, "")] if part] + hosts)
    return env


def start(plan: Plan) -> int:
    """Starts the processes of a plan and waits for them.

    Returns:
        int: exit code: 0, or that of the process that failed first.
    """
    os.makedirs(plan.logs, exist_ok=True)
    running: list[Process] = []
    try:
        for serves, endpoints in ((True, plan.servers), (False, plan.workers)):
            for index, endpoint in enumerate(endpoints):
                if _of(plan, endpoint):
                    kind = "server" if serves else "worker"
                    running.append(Process("%s %d" % (kind, index), [*_interpreter(), *plan.command],
                                           environment(plan, endpoint, serves, index, os.environ),
                                           os.path.join(plan.logs, "%slog.%d" % (kind, index)), serves))
    except BaseException:
        end_all(running)
        raise
    return watch(running, plan.echo, plan.server_grace_s)


def _count(least: int) -> type:
    def count(text: str) -> int:
        if not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError("must be a whole number from %d on, got %r" % (least, text))
        return int(text)
    return count  # type: ignore[return-value]  # argparse takes any function


def parser() -> argparse.ArgumentParser:
    """ArgumentParser: of ``anabranch launch``."""
    made = argparse.ArgumentParser(prog="anabranch launch", description=(__doc__ or "").partition("\n")[0])
    made.add_argument("--servers", type=_count(0), default=1, help="parameter servers; 0: workers alone. Default 1")
    made.add_argument("--workers", type=_count(1), default=1, help="workers. Default 1")
    made.add_argument("--nproc", type=_count(1), metavar="N", help="workers alone, which add up their gradients: as "
                      "--servers 0 --workers N")
    made.add_argument("--log-dir", default="logs", help="folder of the logs. Default logs")
    made.add_argument("--resume", metavar="DIR", help="servers start from this folder of fleet.save_persistables")
    made.add_argument("--quiet", action="store_true", help="does not show the output of the first worker")
    made.add_argument("--server-grace", type=float, default=60.0, metavar="S",
                      help="seconds that servers may run after all workers have ended. Default 60")
    made.add_argument("--print-kubernetes", action="store_true", help="writes a JobSet manifest instead of starting")
    made.add_argument("--image", default="anabranch:latest", help="with --print-kubernetes: the container image")
    made.add_argument("--name", default="anabranch", help="with --print-kubernetes: the name of the JobSet")
    made.add_argument("script", help="a Python script")
    made.add_argument("args", nargs=argparse.REMAINDER, help="its arguments")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``anabranch launch``.

    Args:
        argv (list of str, optional): arguments; those of the process by default.

    Returns:
        int: exit code.
    """
    made = parser()
    args = made.parse_args(argv)
    if args.nproc:
        args.servers, args.workers = 0, args.nproc
    if args.print_kubernetes:
        sys.stdout.write(manifest(args.name, args.image, args.servers, args.workers, [args.script, *args.args],
                                  args.resume))
        return 0
    if not os.path.exists(args.script):
        made.error("there is no script %s" % args.script)
    if args.resume and not os.path.isdir(args.resume):
        made.error("--resume: there is no folder %s" % args.resume)
    ports = free_ports(args.servers + args.workers)
    endpoints = ["127.0.0.1:%d" % port for port in ports]
    return start(Plan(endpoints[:args.servers], endpoints[args.servers:], [args.script, *args.args], args.log_dir,
                      resume=args.resume, echo=not args.quiet, server_grace_s=args.server_grace))


if __name__ == "__main__":
    sys.exit(main())
