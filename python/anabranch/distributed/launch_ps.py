"""``python -m anabranch.distributed.launch_ps``: starts servers and workers, with the arguments of Fluid's
command."""
from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .._processes import free_ports
from ..launch import Plan, start
from ..looking.command_line import ended


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Namespace: the arguments.

    >>> parse_args(["--worker_num", "4", "train.py"]).worker_num
    4
    """
    made = argparse.ArgumentParser(prog="launch_ps", description="Starts parameter servers and their workers.")
    made.add_argument("--cluster_node_ips", default="127.0.0.1",
                      help="Addresses of the hosts, separated by commas (default: 127.0.0.1).")
    made.add_argument("--node_ip", default="127.0.0.1", help="Address of this host (default: 127.0.0.1).")
    made.add_argument("--start_port", type=int, default=0,
                      help="First port of each host; 0 chooses free ports on one host.")
    made.add_argument("--print_config", default="true", help="No effect; accepted for scripts of Fluid 1.8.5.")
    made.add_argument("--endpoints", default="",
                      help="Addresses of the servers, separated by commas (default: on the hosts).")
    made.add_argument("--worker_num", type=int, default=2, help="Number of workers on all hosts together (default: 2).")
    made.add_argument("--server_num", type=int, default=2, help="Number of servers on all hosts together (default: 2).")
    made.add_argument("--log_dir", default="logs", help="Folder of the logs (default: logs).")
    made.add_argument("training_script", help="Python script.")
    made.add_argument("training_script_args", nargs=argparse.REMAINDER, help="Arguments of the script.")
    args = made.parse_args(argv)
    if args.worker_num < 1 or args.server_num < 0:
        made.error("worker_num must be at least 1 and server_num at least 0")
    if not args.start_port and "," in args.cluster_node_ips:
        made.error("start_port must be given if there are several hosts, because all name the same addresses")
    return args


def plan_of(args: argparse.Namespace) -> Plan:
    """Plan: the processes that the arguments define, distributed over the hosts in turn."""
    hosts = args.cluster_node_ips.split(",")
    total = args.server_num + args.worker_num
    ports = [args.start_port + i // len(hosts) for i in range(total)] if args.start_port else free_ports(total)
    addresses = ["%s:%d" % (hosts[i % len(hosts)], port) for i, port in enumerate(ports)]
    servers = args.endpoints.split(",") if args.endpoints else addresses[:args.server_num]
    return Plan(servers, addresses[args.server_num:], [args.training_script, *args.training_script_args], args.log_dir,
                host=args.node_ip if len(hosts) > 1 else None)


def launch(argv: Sequence[str] | None = None) -> int:
    """Starts the processes of this host and waits for them.

    Returns:
        int: exit code: 0, or that of the process that failed first.
    """
    args = parse_args(argv)
    return ended("launch", lambda: start(plan_of(args)))


if __name__ == "__main__":
    sys.exit(launch())
