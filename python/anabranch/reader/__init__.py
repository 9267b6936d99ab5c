"""Reader decorators under the name that programs import: ``anabranch.reader``."""
from ..fluid.reading.decorators import (
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
from ..fluid.reading.pipe_reader import PipeReader
from . import decorator as decorator

__all__ = [
    "ComposeNotAligned", "Fake", "PipeReader", "batch", "buffered", "cache", "chain", "compose", "firstn",
    "map_readers", "multiprocess_reader", "shuffle", "xmap_readers",
]
