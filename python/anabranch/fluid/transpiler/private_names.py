"""Private methods of Fluid's DistributeTranspiler that scripts and subclasses call."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..framework.context import OpRole
from . import op_kinds

if TYPE_CHECKING:
    from .details.ufind import UnionFind


def _variables(variables: Mapping[str, Any], slots: Iterable[str], names_of: Any) -> dict[str, Any]:
    """Slot -> its Variable, or a list of several."""
    found: dict[str, Any] = {}
    for slot in slots:
        of = [variables[name] for name in names_of(slot)]
        found[slot] = of[0] if len(of) == 1 else of
    return found


class PrivateNames:
    """Queries about the operators of a training program, and about the locations of its parameters."""

    origin_program: Any
    _placement: Any
    _source: Any

    def _is_optimizer_op(self, op: Any) -> bool:
        """Whether the op updates a parameter by a learning rate."""
        return {"Param", "LearningRate"} <= set(op.input_names)

    def _is_opt_role_op(self, op: Any) -> bool:
        """Whether the op has the role of an update and no other role."""
        return op.has_attr("op_role") and int(op.attr("op_role")) == int(OpRole.Optimize)

    def _is_opt_op_on_pserver(self, endpoint: str, op: Any) -> bool:
        """Whether the server has a part of the parameter that the op updates; True for other ops."""
        return "Param" not in op.input_names or op.input("Param")[0] in {
            shard.param for shard in self._placement.on(endpoint)}

    def _is_op_connected(self, op1: Any, op2: Any) -> bool:
        """Whether one of the ops reads what the other writes."""
        return bool(set(op1.input_arg_names) & set(op2.output_arg_names)
                    or set(op2.input_arg_names) & set(op1.output_arg_names))

    def _create_ufind(self, optimize_ops: list[Any]) -> UnionFind:
        """Sets of ops, numbered by position, that are connected."""
        from .details.ufind import UnionFind
        sets = UnionFind(optimize_ops)
        for i, op in enumerate(optimize_ops):
            for other in optimize_ops[i + 1:]:
                if self._is_op_connected(op, other):
                    sets.union(op, other)
        return sets

    def _get_input_map_from_op(self, varmap: Mapping[str, Any], op: Any) -> dict[str, Any]:
        """Input slot -> its Variable, or a list of several."""
        return _variables(varmap, op.input_names, op.input)

    def _get_output_map_from_op(self, varmap: Mapping[str, Any], op: Any) -> dict[str, Any]:
        """Output slot -> its Variable, or a list of several."""
        return _variables(varmap, op.output_names, op.output)

    def _get_lr_ops(self) -> list[Any]:
        """The ops of the training program that compute learning rates."""
        return op_kinds.schedule_ops(self.origin_program)

    def _get_optimize_pass(self) -> tuple[list[Any], list[tuple[Any, Any]]]:
        """The ops that update parameters, and pairs of (parameter, gradient)."""
        block = self.origin_program.global_block()
        updates = [op for op in block.ops if self._is_opt_role_op(op)]
        return updates, [(block.var(op.input("Param")[0]), block.var(op.input("Grad")[0])) for op in updates
                         if self._is_optimizer_op(op)]

    def _get_all_remote_sparse_update_op(self, main_program: Any) -> list[Any]:
        """The lookups whose rows workers fetch from the servers."""
        return [op for op in main_program.global_block().ops
                if op.type in op_kinds.LOOK_UPS and op.attr("remote_prefetch") and not op.attr("is_distributed")]

    def _get_varname_parts(self, varname: str) -> tuple[str, str, str]:
        """The name of a variable, of its block and of its worker: "w.block0.trainer_1" -> (w, block0, trainer_1)."""
        name, found, trainer = varname.partition(".trainer_")
        name, split, block = name.partition(".block")
        return name, "block" + block if split else "", "trainer_" + trainer if found else ""

    def _clone_var(self, block: Any, var: Any, persistable: bool = True) -> Any:
        """A variable like ``var`` in another block."""
        return block.create_var(name=var.name, shape=var.shape, dtype=var.dtype, type=var.type,
                                lod_level=var.lod_level, persistable=persistable)
