"""Names of Fluid's ``reader.decorator`` that are available here. Written by tools/generate_modules.py."""
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
