"""Waiting for processes that listen."""
from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

from ...errors import InvalidType, Unavailable

__all__ = ["wait_server_ready"]

_PAUSE_S = 0.2
_REPORT_S = 5.0


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
        deadline_s (float, optional): seconds to wait. Default: the environment variable FLAGS_wait_port_s, or 900.

    Raises:
        RuntimeError: an address did not answer in time; the message names it. TypeError: ``endpoints`` is not a list.
    """
    if isinstance(endpoints, str):
        raise InvalidType("wait_server_ready: endpoints must be a list of str, got a str")
    limit = float(os.environ.get("FLAGS_wait_port_s", "900")) if deadline_s is None else deadline_s
    end = time.monotonic() + limit
    reported = time.monotonic()
    missing = list(endpoints)
    while True:
        missing = [endpoint for endpoint in missing if not _listens(endpoint)]
        now = time.monotonic()
        if not missing:
            return
        if now >= end:
            raise Unavailable("no server listens at %s after %g s" % (", ".join(missing), limit))
        if now - reported >= _REPORT_S:
            print("waiting for servers at %s" % ", ".join(missing), file=sys.stderr, flush=True)
            reported = now
        time.sleep(_PAUSE_S)
