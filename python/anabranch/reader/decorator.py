"""Names of Fluid's ``reader.decorator`` that are available here. Written by tools/generate_modules.py."""
from typing import TYPE_CHECKING as _TYPE_CHECKING

from .. import _on_demand

if _TYPE_CHECKING:
    from ..fluid.reading.decorators import (
        ComposeNotAligned,
        buffered,
        cache,
        chain,
        compose,
        firstn,
        map_readers,
        multiprocess_reader,
        shuffle,
        xmap_readers,
    )

__all__ = [
    "ComposeNotAligned", "buffered", "cache", "chain", "compose", "firstn", "map_readers", "multiprocess_reader",
    "shuffle", "xmap_readers",
]

_on_demand.give(__name__, {
    "..fluid.reading.decorators":
        "ComposeNotAligned buffered cache chain compose firstn map_readers multiprocess_reader shuffle xmap_readers",
})
