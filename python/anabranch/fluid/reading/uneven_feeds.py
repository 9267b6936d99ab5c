"""Adds advice to the engine's error about a feed with too few samples: how to feed one value to several replicas."""
from __future__ import annotations

import re

from ..errors import EnforceNotMet

_UNEVEN = re.compile(r"feed (\S+) has \d+ samples? and gives work to (\d+) of (\d+) replicas?, "
                     r"but feed (\S+) gives work to (\d+)")
_TOO_FEW = re.compile(r"feed (\S+) has \d+ samples?, too few for (\d+) devices?")


def refuse(error: EnforceNotMet) -> None:
    """Raises ``error`` again, with advice, if it is about a fed batch that cannot be split over the replicas.

    Args:
        error (EnforceNotMet): raised by a run.
    """
    uneven, too_few = _UNEVEN.search(error.message), _TOO_FEW.search(error.message)
    if uneven:
        name, slices, replicas, other, of_other = uneven.groups()
        short = name if int(slices) < int(of_other) else other
    elif too_few:
        short, replicas = too_few.groups()
    else:
        return
    raise type(error)(
        "%s\n"
        '  A fed batch is split over the replicas: "%s" must have samples for each of the %s.\n'
        "  If it is one value for every replica, such as a learning rate, set `persistable = True` on its Variable,\n"
        '  or feed a list of one dict per replica: exe.run(program, feed=[{"%s": ...}, ...])'
        % (error.message, short, replicas, short)) from None
