"""GEO-SGD: workers train locally and exchange differences."""
from __future__ import annotations

import zlib
from typing import Any

from ... import _core
from .. import arguments
from ..errors import InvalidValue
from ..framework.dtype import VarType
from ..framework.variable import is_growable
from ..growable_table import MAKER
from . import op_kinds
from .config import DistributeTranspilerConfig
from .copying import copy_var
from .distribute_transpiler import DistributeTranspiler
from .modes import Mode
from .placement import Placement
from .remote_variables import RemoteModel
from .server_program import ServerProgram
from .shards import Shard
from .trainer_program import make_startup

__all__ = ["GeoSgdTranspiler"]


class GeoSgdTranspiler(DistributeTranspiler):
    """Splits a program for GEO-SGD: workers keep their optimizer and send their changes to the parameters every
    ``geo_sgd_need_push_nums`` batches, and servers add them up.

    Args:
        config (DistributeTranspilerConfig, optional): settings with ``geo_sgd_mode`` on, which is the default.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> from anabranch.fluid.transpiler.geo_sgd_transpiler import GeoSgdTranspiler
        >>> y = fluid.layers.fc(fluid.data("x", [None, 8]), 1)
        >>> _ = fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(y))
        >>> t = GeoSgdTranspiler()
        >>> t.transpile(trainer_id=0, pservers="127.0.0.1:6174", trainers=2)
        >>> t.get_trainer_program(wait_port=False).global_block().ops[-1].type
        'send'
    """

    def __init__(self, config: DistributeTranspilerConfig | None = None) -> None:
        if config is None:
            config = DistributeTranspilerConfig()
            config.sync_mode = False
            config.runtime_split_send_recv = True
            config.geo_sgd_mode = True
        super().__init__(config)

    def _rewrite(self, program: Any, startup: Any, endpoints: list[str], mode: Mode) -> None:
        self.origin_program, self.startup_program = program, startup
        self.trainer_id, self.trainer_num, self.sync_mode = mode.trainer_id, mode.trainers, False
        self.pserver_endpoints = endpoints
        placement = Placement(program, endpoints, self.config, copied=True)
        mode = mode._replace(sync=False, geo=True)
        self._refuse_distributed(placement)
        makers = [op for op in startup.global_block().ops
                  if op.type == MAKER and op.output("Out")[0] in placement.shards]
        _agree_on_first_rows(makers)
        self._mode, self._placement = mode, placement
        self._source, self._source_startup = program.clone(), startup.clone()
        self._built = {}
        self._trainer_done = True
        self.vars_info = _vars_info(program, placement)
        _note_ids(program, placement)
        _leave_rules_to_servers(makers)
        _start(program, startup, placement, mode)
        self._note(program, mode)

    @staticmethod
    def _refuse_distributed(placement: Placement) -> None:
        for table, ops in placement.tables.items():
            if any(op.type in op_kinds.LOOK_UPS and op.attr("is_distributed") for op in ops):
                raise InvalidValue("geo: the table %s must not be distributed: each worker needs its own copy of it"
                                   % table)

    def get_pserver_program(self, endpoint: str) -> Any:
        """Like :meth:`DistributeTranspiler.get_pserver_program`, with blocks that add differences."""
        self._check_transpiled("get_pserver_program")
        if endpoint not in self._built and endpoint in self.pserver_endpoints:
            built = _GeoServer(self._source, self._placement, self._mode, endpoint).build()
            built._is_distributed, built._ps_endpoint = True, endpoint
            built._endpoints, built._parameters_on_pservers = list(self.pserver_endpoints), RemoteModel(self)
            self._built[endpoint] = built
        return super().get_pserver_program(endpoint)


class _GeoServer(ServerProgram):
    """Adds differences to its parameters."""

    def build(self) -> Any:
        for shard in self.mine:
            param = self.main.var(shard.param)
            copy_var(self.block, param, name=shard.name, shape=shard.shape)
            self.block.create_var(name=shard.name + ".delta", shape=shard.shape, dtype=param.dtype, persistable=False,
                                  type=VarType.SELECTED_ROWS if self._rows(shard) else VarType.LOD_TENSOR)
        for shard in self._in_order():
            self._add(shard)
        if not self.blocks:
            self.blocks.append(self._new_block(0))
        self._listen(-1)
        self.block.ops[0]._set_attr("pserver_id", -1)
        self.program._sync_with_cpp()
        return self.program

    def _rows(self, shard: Shard) -> bool:
        return self.placement.is_sparse(self.source, shard.param)

    def _add(self, shard: Shard) -> None:
        block = self._new_block(0)
        self.blocks.append(block)
        delta = shard.name + ".delta"
        if is_growable(self.main.var(shard.param)):
            self._add_by_rules(block, shard, delta)
        else:
            block.append_op(type="sum", inputs={"X": [shard.name, delta]}, outputs={"Out": [shard.name]})
        self.grad_to_block.append("%s:%d" % (delta, block.idx))
        if self._rows(shard):
            self.sparse_to_param.append("%s:%s" % (delta, shard.name))

    def _add_by_rules(self, block: Any, shard: Shard, delta: str) -> None:
        """Adds differences to the rows of a growable table, as SGD with the rate -1 does."""
        rate = block.create_var(name=shard.name + ".delta_rate", shape=[1], dtype="float32", persistable=False)
        block.append_op(type="fill_constant", outputs={"Out": [rate]},
                        attrs={"shape": [1], "dtype": rate.dtype, "value": -1.0})
        block.append_op(type="growable_update", inputs={"Param": [shard.name], "Grad": [delta], "LearningRate": [rate]},
                        outputs={"ParamOut": [shard.name]}, attrs={"rule": "sgd", "makes_rows": True})


def _agree_on_first_rows(makers: list[Any]) -> None:
    """Gives growable tables without a seed the same one in all processes, so that the copies of the workers and the
    tables of the servers create equal rows."""
    for op in makers:
        if op.attr("seed") == 0:
            op._set_attr("seed", zlib.crc32(op.output("Out")[0].encode()) >> 1 or 1)


def _leave_rules_to_servers(makers: list[Any]) -> None:
    """Removes limits, admission and expiry from the workers' copies of growable tables: the servers apply these rules.
    Only copies with scores keep their policy, because they count shows and clicks."""
    for op in makers:
        for name, value in (("max_bytes", 0), ("evict", True), ("admit_count", 1), ("admit_probability", 1.0),
                            ("expire_after", 0), ("timed", False), ("shrink_every", 0)):
            op._set_attr(name, value)
        if op.attr("policy") != "score":
            op._set_attr("policy", "lru")


def _note_ids(program: Any, placement: Placement) -> None:
    """Makes the last op report to the communicator which rows of sparse tables the batch has used."""
    block = program.global_block()
    used: list[tuple[str, str]] = []
    for op in block.ops:
        if op.type not in op_kinds.LOOK_UPS or not op.attr("is_sparse") or op.input("W")[0] not in placement.shards:
            continue
        if op.type == "lookup_table":
            op._set_attr("remote_prefetch", False)
        pair = (op.input("Ids")[0], op.input("W")[0])
        if pair not in used:
            used.append(pair)
    block.append_op(type="send", inputs={"X": [block._var_recursive(ids) for ids, _ in used]},
                    outputs={"Out": [op_kinds.control_var(block)]},
                    attrs={"send_varnames": [table for _, table in used]})


def _start(program: Any, startup: Any, placement: Placement, mode: Mode) -> None:
    make_startup(startup, program, placement, mode, keep_tables=True)
    block = startup.global_block()
    ready = block.create_var(name=_core.GEO_START, persistable=False)
    block.append_op(type="send", inputs={"X": [ready]}, outputs={"Out": [op_kinds.control_var(block)]},
                    attrs={"send_varnames": [ready.name]})


def _vars_info(program: Any, placement: Placement) -> dict[str, Any]:
    """Returns what the communicator needs to know about each parameter: its shards with their rows and servers, whether
    rows are sent one by one, and whether its update rule also changes rows that no step has looked up."""
    updates = op_kinds.ops_by_param(program)
    return {name: {"var_names": [shard.name for shard in shards], "sections": [shard.rows for shard in shards],
                   "epmap": [shard.endpoint for shard in shards], "is_sparse": [placement.is_sparse(program, name)],
                   "moves_all_rows": any(op_kinds.is_update(op) and op_kinds.moves_all_rows(op)
                                         for op in updates.get(name, ()))}
            for name, shards in placement.shards.items()}


arguments.explain(globals())
