"""``python -m anabranch.distributed.launch``: starts workers that sum their gradients, with the arguments of Fluid's
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

    >>> parse_args(["--nproc_per_node", "2", "train.py"]).nproc_per_node
    2
    """
    made = argparse.ArgumentParser(prog="launch", description="Starts workers that sum their gradients.")
    made.add_argument("--cluster_node_ips", default="127.0.0.1",
                      help="Addresses of the hosts, separated by commas (default: 127.0.0.1).")
    made.add_argument("--node_ip", default="127.0.0.1", help="Address of this host (default: 127.0.0.1).")
    made.add_argument("--use_paddlecloud", action="store_true", help="No effect; accepted for scripts of Fluid 1.8.5.")
    made.add_argument("--started_port", type=int, default=0,
                      help="First port of each host; 0 chooses free ports on one host.")
    made.add_argument("--print_config", default="true", help="No effect; accepted for scripts of Fluid 1.8.5.")
    made.add_argument("--selected_gpus", default="", help="Numbers separated by commas; one worker starts for each.")
    made.add_argument("--nproc_per_node", type=int, default=0,
                      help="Number of workers on a host; Fluid 1.8.5 lacks this option (default: 1).")
    made.add_argument("--log_dir", default="logs", help="Folder of the logs (default: logs).")
    made.add_argument("training_script", help="Python script.")
    made.add_argument("training_script_args", nargs=argparse.REMAINDER, help="Arguments of the script.")
    args = made.parse_args(argv)
    if not args.started_port and "," in args.cluster_node_ips:
        made.error("started_port must be given if there are several hosts, because all name the same addresses")
    return args


def plan_of(args: argparse.Namespace) -> Plan:
    """Plan: the processes that the arguments define. The processes of a host have consecutive ranks."""
    hosts = args.cluster_node_ips.split(",")
    each = args.nproc_per_node or len([n for n in args.selected_gpus.split(",") if n]) or 1
    ports = [args.started_port + i for i in range(each)] if args.started_port else free_ports(each)
    workers = ["%s:%d" % (host, port) for host in hosts for port in ports]
    return Plan([], workers, [args.training_script, *args.training_script_args], args.log_dir,
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
