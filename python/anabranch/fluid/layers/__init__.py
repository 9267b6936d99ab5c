"""The layers: functions that append ops to the default main program and return Variables."""
from . import (
    composed,
    control_flow,
    conv,
    ctr,
    elementwise,
    io,
    learning_rate_scheduler,
    loss,
    manipulate,
    math,
    math_op_patch,
    metric_op,
    nn,
    norm,
    ops,
    places,
    query,
    random,
    reader,
    recurrent,
    reduce,
    sampled,
    select,
    sequence,
    sequence_lod,
    sequence_rows,
    tensor,
)

__all__ = []
for _module in (nn, math, conv, norm, loss, ops, elementwise, reduce, tensor, query, manipulate, select, random,
                sequence, sequence_rows, sequence_lod, recurrent, places, composed,
                sampled, ctr, io, reader, control_flow, metric_op,
                learning_rate_scheduler):
    for _name in _module.__all__:
        globals()[_name] = getattr(_module, _name)
    __all__ += _module.__all__

math_op_patch.monkey_patch_variable()
