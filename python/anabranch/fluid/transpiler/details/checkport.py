"""Waiting for processes that listen."""
from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

from ...errors import InvalidType, Unavailable
from ...framework.flags import get_flags

__all__ = ["wait_server_ready"]

RPC_DEADLINE_MS = 180000  # the default of FLAGS_rpc_deadline
_PAUSE_S = 0.2
_REPORT_S = 5.0


def _limit_s() -> float:
    """float: seconds; jobs of a cluster may start minutes apart, so the default of requests is too short."""
    if "FLAGS_wait_port_s" in os.environ:
        return float(os.environ["FLAGS_wait_port_s"])
    deadline_ms = get_flags("FLAGS_rpc_deadline")["FLAGS_rpc_deadline"]
    chosen = deadline_ms != RPC_DEADLINE_MS or "FLAGS_rpc_deadline" in os.environ
    return deadline_ms / 1000 if chosen else 900.0


def _listens(endpoint: str) -> bool:
    import socket  # not when the package is imported: few programs need it
    host, _, port = endpoint.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=2):
            return True
    except OSError:
        return False


def wait_server_ready(endpoints: Sequence[str], deadline_s: float | None = None) -> None:
    """Waits until a process listens at each address, and prints the missing addresses every few seconds.

    Args:
        endpoints (list of str): "host:port" each.
        deadline_s (float, optional): seconds to wait. Default: the environment variable FLAGS_wait_port_s. If it is
            not set, the flag FLAGS_rpc_deadline if the program has changed it, otherwise 900.

    Raises:
        RuntimeError: an address did not answer in time; the message names it.
        TypeError: ``endpoints`` is not a list.
    """
    if isinstance(endpoints, str):
        raise InvalidType("wait_server_ready: endpoints must be a list of str, got a str")
    limit = _limit_s() if deadline_s is None else deadline_s
    end = time.monotonic() + limit
    reported = time.monotonic()
    missing = list(endpoints)
    while True:
        missing = [endpoint for endpoint in missing if not _listens(endpoint)]
        now = time.monotonic()
        if not missing:
            return
        if now >= end:
            raise Unavailable("no server listens at %s after %g s; FLAGS_rpc_deadline, in milliseconds, and the "
                              "environment variable FLAGS_wait_port_s, in seconds, set how long to wait"
                              % (", ".join(missing), limit))
        if now - reported >= _REPORT_S:
            print("waiting for servers at %s" % ", ".join(missing), file=sys.stderr, flush=True)
            reported = now
        time.sleep(_PAUSE_S)
