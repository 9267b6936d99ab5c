"""Assignment of parameter shards to servers."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from ..errors import InvalidType, InvalidValue, Unsupported, Violated
from ..framework.dtype import VarType
from ..framework.variable import is_growable
from . import op_kinds
from .config import DistributeTranspilerConfig
from .ps_dispatcher import PSDispatcher, RoundRobin
from .shards import Shard, elements, shards_by_key, shards_of

_CLIPS = {"clip_by_norm": "GradientClipByNorm", "reduce_sum": "GradientClipByGlobalNorm"}
LEAST = 8192  # elements: a smaller shard costs more in messages than it saves


class Placement:
    """The shards of all trained parameters with their servers, in the order of their updates.

    Args:
        program (Program): a training program, after ``minimize``.
        endpoints (list of str): addresses of the servers.
        config (DistributeTranspilerConfig): settings.
        together (bool): whether parameters of one common norm share a server, which sums their gradients.
        copied (bool): whether each worker updates its own copy of all parameters.

    Raises:
        NotImplementedError: a growable table, whose keys are spread over servers, has a common norm with others; or a
            block of a branch or loop looks up rows that are on servers.
        ValueError: there is no server, one is given twice, or the program trains nothing.
        AssertionError: ``min_block_size`` is too small, or ``split_method`` is unknown.
    """

    def __init__(self, program: Any, endpoints: Sequence[str], config: DistributeTranspilerConfig,
                 together: bool = False, copied: bool = False) -> None:
        self.endpoints, self._copied = list(endpoints), copied
        check_endpoints(self.endpoints)
        self.gradients = {p: g for p, g in op_kinds.gradients_of(program).items()
                          if getattr(program.global_block().var(p), "trainable", True)}
        if not self.gradients:
            raise InvalidValue("transpile: the program updates no parameter: call minimize first")
        self.tables = {name: ops for name, ops in remote_lookups(program).items() if name in self.gradients}
        if not copied:
            _refuse_inner_lookups(program)
        self.linked = op_kinds.linked_params(program) if together else {}
        self.shards = self._placed(program, config)
        self._check_durability(program, config.table_durability)

    def _check_durability(self, program: Any, levels: Any) -> None:
        tables = sorted(name for name in self.gradients if self.is_sparse(program, name))
        for name, level in levels.items():
            if name not in tables:
                raise InvalidValue("table_durability: %r must be a table with a sparse gradient, one of: %s"
                                   % (name, ", ".join(tables) or "none"))
            if level not in (0, 1, 2) or isinstance(level, bool):
                raise InvalidValue("table_durability: the level of %s must be 0, 1 or 2, got %r" % (name, level))

    def _placed(self, program: Any, config: DistributeTranspilerConfig) -> dict[str, list[Shard]]:
        block = program.global_block()
        dispatcher = _dispatcher(config, self.endpoints)
        names = list(self.gradients)
        if not config.slice_var_up:
            # Shuffled as in Fluid 1.8.5, so that large and small variables mix.
            numpy.random.RandomState(program.random_seed).shuffle(names)
        placed, ops = {}, op_kinds.ops_by_param(program)
        for name in names:
            param = block.var(name)
            kinds = {op.type for op in ops.get(name, ())}
            if is_growable(param):
                if not self._copied:
                    _refuse_whole(name, kinds, name in self.linked)
                placed[name] = shards_by_key(param, self.gradients[name], self.endpoints)
                continue
            whole = not config.slice_var_up or name in self.linked or any(map(op_kinds.is_whole, kinds))
            shards = [Shard(name, self.gradients[name], name, self.gradients[name], 0, tuple(param.shape), "")] \
                if whole else shards_of(param, self.gradients[name], len(self.endpoints), config.min_block_size)
            first = next((other for other in self.linked.get(name, ()) if other in placed), None)
            servers = [placed[first][0].endpoint] if first else dispatcher.dispatch([shard.name for shard in shards])
            placed[name] = [shard._replace(endpoint=e) for shard, e in zip(shards, servers)]
        self.order = names
        return {name: placed[name] for name in self.gradients}

    def on(self, endpoint: str) -> list[Shard]:
        """list of Shard: the shards that this server keeps, in the order of assignment."""
        return [shard for name in self.order for shard in self.shards[name] if shard.endpoint == endpoint]

    def whole_on(self, name: str) -> bool:
        """bool: whether the parameter has a single shard."""
        return len(self.shards[name]) == 1

    def remote(self, name: str) -> bool:
        """bool: whether this is a table whose rows workers request one by one, instead of receiving the whole value."""
        return name in self.tables or self.shards[name][0].rows < 0

    def is_sparse(self, program: Any, name: str) -> bool:
        """bool: whether the gradient of a parameter holds rows."""
        return program.global_block().var(self.gradients[name]).type == VarType.SELECTED_ROWS

    def largest(self) -> int:
        """int: elements of the largest shard."""
        return max(elements(shard.shape) for shards in self.shards.values() for shard in shards)


def check_endpoints(endpoints: Sequence[str]) -> None:
    """Raises ValueError unless each server has its own address."""
    for endpoint in endpoints:
        host, _, port = endpoint.rpartition(":")
        if not host or not port.isdigit():
            raise InvalidValue("transpile: pservers must be host:port,host:port, got %r" % (",".join(endpoints),))
        if endpoints.count(endpoint) > 1:
            raise InvalidValue("transpile: the server %s is given twice" % endpoint)


def check_config(config: Any) -> None:
    """Raises AssertionError or TypeError for settings that no transpiler accepts."""
    if not isinstance(config, DistributeTranspilerConfig):
        raise InvalidType("config must be a DistributeTranspilerConfig, got %s" % type(config).__name__)
    if not config.min_block_size >= LEAST:
        raise Violated("min_block_size must be at least %d, got %s" % (LEAST, config.min_block_size))
    method = config.split_method
    if method is not None and not (isinstance(method, type) and issubclass(method, PSDispatcher)):
        raise Violated("split_method must be RoundRobin, HashName or another PSDispatcher, got %r" % (method,))


def _refuse_whole(table: str, kinds: set[str], linked: bool) -> None:
    """Raises NotImplementedError for ops that need the whole gradient of a growable table, which no server has."""
    if linked:
        raise Unsupported("transpile: GradientClipByGlobalNorm needs the whole gradient of the growable table %s, "
                          "whose keys are spread over all servers. Clip by value, or give need_clip a function that "
                          "leaves the table out" % table)
    whole = sorted(kind for kind in kinds if op_kinds.is_whole(kind) and kind != "growable_update")
    if whole:
        raise Unsupported("transpile: %s needs the whole gradient of the growable table %s, whose keys are spread "
                          "over all servers" % (_CLIPS.get(whole[0], whole[0]), table))


def _dispatcher(config: DistributeTranspilerConfig, endpoints: Sequence[str]) -> PSDispatcher:
    return (config.split_method or RoundRobin)(endpoints)


def _is_remote(op: Any) -> bool:
    return op.type == op_kinds.GROWABLE_LOOKUP or \
        op.type in op_kinds.LOOK_UPS and bool(op.attr("remote_prefetch") or op.attr("is_distributed"))


def _refuse_inner_lookups(program: Any) -> None:
    """Raises NotImplementedError where a block of a branch or loop looks up rows that are on servers: workers fetch
    rows for the first block only."""
    for block in program.blocks[1:]:
        for op in block.ops:
            if _is_remote(op):
                raise Unsupported("transpile: a branch or loop looks up rows of the table %s, which is on servers: do "
                                  "the lookup before the branch or loop, or use GEO training, in which workers have a "
                                  "copy" % op.input("W")[0])


def remote_lookups(program: Any) -> dict[str, list[Any]]:
    """Table -> the ops that look up its rows on the servers, in order."""
    found: dict[str, list[Any]] = {}
    for op in program.global_block().ops:
        if _is_remote(op):
            found.setdefault(op.input("W")[0], []).append(op)
    return found
