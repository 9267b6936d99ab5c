"""Files and readers: the names of ``fluid.io``."""
from ... import _on_demand
from ..dataloader import BatchSampler as BatchSampler
from ..dataloader import Dataset as Dataset
from ..reading.decorators import (
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
from ..reading.pipe_reader import PipeReader
from ..reading.reader import DataLoader, PyReader, default_collate_fn
from .checkpoint import load, load_program_state, save, set_program_state
from .inference_model import append_fetch_ops as append_fetch_ops
from .inference_model import load_inference_model, save_inference_model
from .inference_model import prepend_feed_ops as prepend_feed_ops
from .variables import _clone_var_in_block_ as _clone_var_in_block_
from .variables import (
    get_parameter_value,
    get_parameter_value_by_name,
    get_program_parameter,
    get_program_persistable_vars,
    is_belong_to_optimizer,
    is_parameter,
    is_persistable,
    load_params,
    load_persistables,
    load_vars,
    save_params,
    save_persistables,
    save_vars,
)

__all__ = [
    "ComposeNotAligned", "DataLoader", "Fake", "PipeReader", "PyReader", "batch", "buffered", "cache", "chain",
    "compose", "default_collate_fn", "firstn", "get_parameter_value", "get_parameter_value_by_name",
    "get_program_parameter", "get_program_persistable_vars", "is_belong_to_optimizer", "is_parameter", "is_persistable",
    "load", "load_inference_model", "load_params", "load_persistables", "load_program_state", "load_vars",
    "map_readers", "multiprocess_reader", "save", "save_inference_model", "save_params", "save_persistables",
    "save_vars", "set_program_state", "shuffle", "xmap_readers",
]

_on_demand.give(__name__, {})
