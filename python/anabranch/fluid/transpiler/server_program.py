"""The program of a server, which keeps shards of parameters and runs a block for each gradient that arrives."""
from __future__ import annotations

from collections import Counter
from typing import Any

from ..framework import Program
from ..framework.dtype import VarType
from . import op_kinds
from .config import ServerRuntimeConfig
from .copying import copy_op, copy_var
from .delay import correct_for_age, keep_old_values
from .job import describe
from .modes import Mode
from .placement import Placement
from .rates import rate_ops
from .shards import Shard


class ServerProgram:
    """Builds the program of one server.

    Args:
        source (Program): the training program before it became a worker's.
        placement (Placement): assignment of the shards.
        mode (Mode): how workers and servers synchronize.
        endpoint (str): the server.
    """

    def __init__(self, source: Any, placement: Placement, mode: Mode, endpoint: str) -> None:
        self.source, self.placement, self.mode, self.endpoint = source, placement, mode, endpoint
        self.program = Program()
        self.program.random_seed = source.random_seed
        self.block = self.program.global_block()
        self.main = source.global_block()
        self.mine = placement.on(endpoint)
        self.blocks: list[Any] = []
        self.grad_to_block: list[str] = []
        self.sparse_to_param: list[str] = []
        self.received: list[Any] = []
        self.ops: dict[str, list[Any]] = {}
        self.names: dict[str, dict[str, str]] = {}  # parameter -> names of its shard and gradient here, for its ops
        self.here = Counter(shard.param for shard in self.mine)

    def build(self) -> Any:
        """Program: ``listen_and_serv`` and the blocks that it runs."""
        self.ops = op_kinds.ops_by_param(self.source)
        self._declare()
        rates = self._schedule()
        before = self.program.num_blocks - 1
        for shard in self._in_order():
            self._update(shard, before)
        if not self.blocks:
            self.blocks.append(self._new_block(before))
        self._listen(rates)
        self.program._sync_with_cpp()
        return self.program

    def _in_order(self) -> list[Shard]:
        """The server's shards in the order of the updates of their parameters."""
        place = {name: i for i, name in enumerate(self.placement.gradients)}
        return sorted(self.mine, key=lambda shard: place[shard.param])

    def _new_block(self, parent: int) -> Any:
        self.program.current_block_idx = 0
        made = self.program._create_block(parent)
        self.program.current_block_idx = 0
        return made

    # ---- variables

    def _declare(self) -> None:
        for shard in self.mine:
            copy_var(self.block, self.main.var(shard.param), name=shard.name, shape=shard.shape)
            if self.mode.dc_asgd:
                keep_old_values(self.block, shard, self.mode.trainers)
        for shard in self.mine:
            grad = self.main.var(self.placement.gradients[shard.param])
            one = copy_var(self.block, grad, name=shard.grad_name, shape=shard.shape)
            self.received += [one] if not self.mode.merges else [
                copy_var(self.block, grad, False, "%s.trainer_%d" % (shard.grad_name, i), shard.shape)
                for i in range(self.mode.trainers)]

    # ---- schedules

    def _schedule(self) -> int:
        """The block that computes learning rates; its number, -1 where there are none."""
        ops = rate_ops(self.source)
        if not ops:
            return -1
        block = self._new_block(self.program.num_blocks - 1)
        self.blocks.append(block)
        for op in ops:
            self._copy_schedule(op, block)
        return block.idx

    def _copy_schedule(self, op: Any, block: Any) -> None:
        for name in op.input_arg_names + op.output_arg_names:
            known = op.block._find_var_recursive(name)
            if known is not None:
                copy_var(self.block, known)
        attrs = {}
        if op.has_attr("sub_block"):
            inner = self._new_block(block.idx)
            for child in op.attr("sub_block").ops:
                self._copy_schedule(child, inner)
            attrs["sub_block"] = inner
        copy_op(op, block, {}, attrs)

    # ---- updates

    def _update(self, shard: Shard, parent: int) -> None:
        block = self._new_block(parent)
        self.blocks.append(block)
        self.grad_to_block.append("%s:%d" % (shard.grad_name, block.idx))
        if self.mode.merges:
            self._merge(block, shard)
        grad = shard.grad_name
        if self.mode.dc_asgd:
            grad = correct_for_age(block, shard, self.mode.trainers)
        self.names[shard.param] = {shard.param: shard.name, self.placement.gradients[shard.param]: grad}
        group = [one for one in self.placement.linked.get(shard.param, ()) if one in self.placement.gradients]
        if not group:
            self._copy_updates(block, {shard.param: shard}, self.ops.get(shard.param, ()))
        elif all(one in self.names for one in group):  # the last of them: all gradients of the common norm are summed
            shards = {one.param: one for one in self.mine if one.param in group}
            self._copy_updates(block, shards, [op for op in op_kinds.optimize_ops(self.source)
                                               if op_kinds.role_vars(op)[:1] and op_kinds.role_vars(op)[0] in group])

    def _copy_updates(self, block: Any, shards: dict[str, Shard], ops: Any) -> None:
        names = {old: new for param in shards for old, new in self.names[param].items()}
        for op in ops:
            shard = shards[op_kinds.role_vars(op)[0]]
            if op_kinds.is_update(op) and self._is_sparse(op):
                self.sparse_to_param.append("%s:%s" % (shard.grad_name, shard.name))
            self._states(op, shard, names)
            # A restarted server replays its journal, which does not hold the lookups between updates.
            copy_op(op, block, names, {"makes_rows": True} if op.type == "growable_update" else None)

    def _is_sparse(self, op: Any) -> bool:
        return bool(self.main.var(op.input("Grad")[0]).type == VarType.SELECTED_ROWS)

    def _merge(self, block: Any, shard: Shard) -> None:
        mine = ["%s.trainer_%d" % (shard.grad_name, i) for i in range(self.mode.trainers)]
        block.append_op(type="sum", inputs={"X": mine}, outputs={"Out": [shard.grad_name]},
                        attrs={"use_mkldnn": False})
        block.append_op(type="scale", inputs={"X": [shard.grad_name]}, outputs={"Out": [shard.grad_name]},
                        attrs={"scale": 1.0 / self.mode.trainers})

    def _states(self, op: Any, shard: Shard, names: dict[str, str]) -> None:
        """Splits moments like their parameter; those of two shards on one server need two names."""
        whole = tuple(self.main.var(shard.param).shape)
        several = self.here[shard.param] > 1
        rates = set(op.input("LearningRate"))
        for name in op.input_arg_names + op.output_arg_names:
            if name in names:
                continue
            var = self.main._var_recursive(name)
            cut = tuple(var.shape) == whole
            if several and name not in rates:
                names[name] = "%s.%s" % (name, shard.name.rsplit(".", 1)[-1])
            copy_var(self.block, var, name=names.get(name), shape=shard.shape if cut else None)

    # ---- the op

    def _listen(self, rates: int) -> None:
        threads = ServerRuntimeConfig()
        self.block.append_op(type="listen_and_serv", inputs={"X": self.received}, outputs={}, attrs={
            "optimize_blocks": self.blocks,
            "endpoint": self.endpoint,
            "pserver_id": self.placement.endpoints.index(self.endpoint),
            "Fanin": self.mode.trainers,
            "job": describe(self.source, self.placement, self.mode),
            "distributed_mode": self.mode.number,
            "grad_to_block_id": self.grad_to_block,
            "sparse_grad_to_param": self.sparse_to_param,
            "lr_decay_block_id": rates,
            "dc_asgd": self.mode.dc_asgd,
            "rpc_get_thread_num": threads._rpc_get_thread_num,
            "rpc_send_thread_num": threads._rpc_send_thread_num,
            "rpc_prefetch_thread_num": threads._rpc_prefetch_thread_num,
            **self._durability(),
        })

    def _durability(self) -> dict[str, list[str]]:
        """dict: the attribute ``table_durability``, if it sets the level of a table on this server."""
        levels = self.mode.durability
        found = ["%s:%d" % (shard.name, levels[shard.param]) for shard in self.mine if shard.param in levels]
        return {"table_durability": found} if found else {}
