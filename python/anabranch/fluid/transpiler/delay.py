"""Delay compensation of gradients: g + g * g * (current parameter - parameter when the worker fetched it)."""
from __future__ import annotations

from typing import Any

from ..framework.dtype import VarType
from .shards import Shard


def backup(name: str, trainer: int) -> str:
    """Name of the copy of a parameter that a worker last fetched."""
    return "%s.trainer_%d_bak" % (name, trainer)


def keep_old_values(block: Any, shard: Shard, trainers: int) -> None:
    """Creates the variables that hold the values each worker last fetched."""
    param = block.var(shard.name)
    for trainer in range(trainers):
        block.create_var(name=backup(shard.name, trainer), type=param.type, shape=param.shape, dtype=param.dtype,
                         persistable=False)


def correct_for_age(block: Any, shard: Shard, trainers: int) -> str:
    """Appends the correction and returns the name of the corrected gradient."""
    param = block._var_recursive(shard.name)
    old = block.create_var(name=shard.name + ".local_bak", type=param.type, shape=param.shape, dtype=param.dtype,
                           persistable=False)
    trainer = block.create_var(name="@TRAINER_ID@", type=VarType.LOD_TENSOR, shape=[1], dtype="int64",
                               persistable=False)
    block.append_op(type="ref_by_trainer_id", outputs={"Out": [old]}, inputs={
        "X": [backup(shard.name, i) for i in range(trainers)], "TrainerId": [trainer]})
    number = 4 * sum(1 for b in block.program.blocks for op in b.ops if op.type == "ref_by_trainer_id") - 4
    last = shard.grad_name
    for step, (kind, x, y) in enumerate((("elementwise_sub", shard.name, old.name),
                                         ("elementwise_mul", "", shard.grad_name),
                                         ("elementwise_mul", "", shard.grad_name),
                                         ("elementwise_add", shard.grad_name, ""))):
        out = block.create_var(name="tmp_dc_output_%d" % (number + step), type=param.type, shape=param.shape,
                               dtype=param.dtype, persistable=False)
        block.append_op(type=kind, inputs={"X": [x or last], "Y": [y or last]}, outputs={"Out": [out]})
        last = out.name
    return last
