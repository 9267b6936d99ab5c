"""Checks, before any process starts, that a job can run."""
from __future__ import annotations

import os
import socket
from collections.abc import Sequence

from .fluid.errors import InvalidValue, Unavailable


def check(logs: str, servers: Sequence[str], workers: Sequence[str], host: str | None) -> None:
    """Creates the folder of logs, and checks that the processes of this machine can run.

    Args:
        logs (str): folder of the logs. ``servers``, ``workers`` (list of str): addresses of all.
        host (str, optional): starts those of this host alone.

    Raises:
        ValueError: no process belongs to ``host``, or two have one address.
        RuntimeError: a folder cannot be written, or an address of this host is not available.
    """
    addresses = [*servers, *workers]
    twice = sorted({one for one in addresses if addresses.count(one) > 1})
    if twice:
        raise InvalidValue("two processes have the same address: %s" % ", ".join(twice))
    mine = [one for one in addresses if host is None or one.rpartition(":")[0] == host]
    if not mine:
        raise InvalidValue("no process belongs to this host: it is %s, the addresses are %s"
                           % (host, ", ".join(addresses)))
    _writable(logs)
    for one in mine:
        if one in servers or not servers:  # workers that have servers listen on no port
            _bindable(one)


def _writable(folder: str) -> None:
    try:
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, ".written"), "w"):
            pass
        os.remove(os.path.join(folder, ".written"))
    except OSError as e:
        raise Unavailable("the folder of the logs, %s, cannot be written: %s" % (folder, e.strerror)) from None


def _bindable(address: str) -> None:
    """Binds an address as a server would, and releases it."""
    host, _, port = address.rpartition(":")
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind(where)
    except OSError as e:
        raise Unavailable("cannot listen on %s on this machine: %s" % (address, e.strerror or e)) from None
