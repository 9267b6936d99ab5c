"""Reader decorators under the name that programs import: ``anabranch.reader``."""
from .fluid.decorators import (
    ComposeNotAligned,
    Fake,
    batch,
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

__all__ = ["ComposeNotAligned", "Fake", "batch", "buffered", "cache", "chain", "compose", "firstn", "map_readers",
           "multiprocess_reader", "shuffle", "xmap_readers"]
