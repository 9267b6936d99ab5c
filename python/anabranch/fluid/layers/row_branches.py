"""Branches that are chosen for each row of a batch."""
from __future__ import annotations

from typing import Any

from .. import unique_name
from ..described import Described
from ..errors import InvalidValue
from ..explained import explain
from ..framework import Variable
from ..layer_helper import LayerHelper
from . import check
from .branches import ConditionalBlock
from .copies import assign

__all__ = ["IfElse"]


def split_lod_tensor(input: Variable, mask: Variable, level: int = 0) -> tuple[Variable, Variable]:
    """Splits the sequences of ``input``, or its rows if it has no sequences, by ``mask``: true and false."""
    check.variable(input, "input", "split_lod_tensor")
    check.variable(mask, "mask", "split_lod_tensor")
    helper = LayerHelper("split_lod_tensor")
    yes = helper.create_variable_for_type_inference(input.dtype)
    no = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type="split_lod_tensor", inputs={"X": input, "Mask": mask},
                     outputs={"OutTrue": yes, "OutFalse": no}, attrs={"level": level})
    return yes, no


def merge_lod_tensor(in_true: Variable, in_false: Variable, x: Variable, mask: Variable, level: int = 0) -> Variable:
    """Merges the results of :func:`split_lod_tensor` in the order of ``mask``."""
    helper = LayerHelper("merge_lod_tensor")
    out = helper.create_variable_for_type_inference(in_true.dtype)
    helper.append_op(type="merge_lod_tensor",
                     inputs={"X": x, "Mask": mask, "InTrue": in_true, "InFalse": in_false}, outputs={"Out": out},
                     attrs={"level": level})
    return out


class IfElse(Described):
    """Sends each row of its inputs through one of two blocks, and merges the results in the order of the rows.

    Args:
        cond (Variable): condition, [rows, 1], bool. Rows for which it is true go through ``true_block``.
        name (str, optional): prefix of the generated names.

    Raises:
        TypeError: ``cond`` is not a Variable.
        ValueError: a method is called in the wrong block, or the results of the blocks differ.

    Examples:
        >>> import numpy
        >>> import anabranch.fluid as fluid
        >>> layers = fluid.layers
        >>> x = fluid.data("x", [None, 1])
        >>> chosen = layers.IfElse(x > 0.0)
        >>> with chosen.true_block():
        ...     chosen.output(layers.sqrt(chosen.input(x)))
        >>> with chosen.false_block():
        ...     chosen.output(chosen.input(x) * 0.0)
        >>> feed = {"x": numpy.array([[4], [-1], [9]], "float32")}
        >>> fluid.Executor().run(feed=feed, fetch_list=chosen())[0].ravel().tolist()
        [2.0, 0.0, 3.0]
    """

    OUT_IF_ELSE_BLOCKS, IN_IF_ELSE_TRUE_BLOCKS, IN_IF_ELSE_FALSE_BLOCKS = 0, 1, 2

    def __init__(self, cond: Variable, name: str | None = None) -> None:
        check.variable(cond, "cond", "IfElse")
        self.helper = LayerHelper("ifelse", name=name)
        self.cond = cond
        self.status = IfElse.OUT_IF_ELSE_BLOCKS
        self.input_table: dict[str, tuple[Variable, Variable]] = {}  # by name: where the mask holds, and the rest
        self.output_table: tuple[list[Variable], list[Variable]] = ([], [])

    def _outside(self, prefix, dtype):
        program = self.helper.main_program
        return program.block(program.current_block().parent_idx).create_var(
            name=unique_name.generate(prefix), dtype=dtype)

    def _branch(self) -> int:
        if self.status == IfElse.OUT_IF_ELSE_BLOCKS:
            raise InvalidValue("IfElse: input and output must be called inside true_block or false_block")
        return 0 if self.status == IfElse.IN_IF_ELSE_TRUE_BLOCKS else 1

    def input(self, x: Variable) -> Variable:
        """Returns the rows of ``x`` that go through this block.

        Args:
            x (Variable): the same number of rows, or sequences, as the condition.

        Raises:
            ValueError: it is called outside of a block.
        """
        branch = self._branch()
        check.variable(x, "x", "IfElse.input")
        if x.name not in self.input_table:
            prefix = "ifelse_input" + self.helper.name
            parts = self._outside(prefix, x.dtype), self._outside(prefix, x.dtype)
            program = self.helper.main_program
            program.block(program.current_block().parent_idx).append_op(
                type="split_lod_tensor", inputs={"X": x, "Mask": self.cond},
                outputs={"OutTrue": parts[0], "OutFalse": parts[1]}, attrs={"level": 0})
            self.input_table[x.name] = parts
        return self.input_table[x.name][branch]

    def true_block(self) -> Any:
        """Context manager for the layers for rows whose condition is true."""
        return _Branch(self, IfElse.IN_IF_ELSE_TRUE_BLOCKS)

    def false_block(self) -> Any:
        """Context manager for the layers for the other rows."""
        return _Branch(self, IfElse.IN_IF_ELSE_FALSE_BLOCKS)

    def output(self, *outs: Variable) -> None:
        """Sets the results of a block. Both blocks must have the same number.

        Raises:
            ValueError: it is called outside of a block.
        """
        results = self.output_table[self._branch()]
        for out in outs:
            check.variable(out, "an output", "IfElse.output")
            outside = self._outside("_".join([self.helper.name, "output"]), out.dtype)
            results.append(outside)
            assign(out, outside)

    def __call__(self) -> list[Variable]:
        """Returns the results, each with all rows.

        Returns:
            list of Variable: the merged results.

        Raises:
            ValueError: it is called inside a block, there are no results, or the blocks have different numbers of
                results.
        """
        if self.status != IfElse.OUT_IF_ELSE_BLOCKS:
            raise InvalidValue("IfElse: call it after the blocks, which compute the results")
        yes, no = self.output_table
        if not yes and not no:
            raise InvalidValue("IfElse: a block must call output")
        if yes and no and len(yes) != len(no):
            raise InvalidValue("IfElse: both blocks must have the same number of outputs, got %d and %d"
                               % (len(yes), len(no)))
        if not yes or not no:
            return yes or no
        return [merge_lod_tensor(t, f, self.cond, self.cond) for t, f in zip(yes, no)]


class _Branch:
    def __init__(self, owner, status):
        self.owner, self.status = owner, status
        self.block = ConditionalBlock([owner.cond]).block()

    def __enter__(self):
        if self.owner.status != IfElse.OUT_IF_ELSE_BLOCKS:
            raise InvalidValue("IfElse: a block must not be inside the other one")
        self.owner.status = self.status
        return self.block.__enter__()

    def __exit__(self, *raised):
        branch = self.owner.output_table[0 if self.status == IfElse.IN_IF_ELSE_TRUE_BLOCKS else 1]
        self.owner.status = IfElse.OUT_IF_ELSE_BLOCKS
        if raised[0] is None and not branch:
            raised = (InvalidValue, InvalidValue("IfElse: a block must call output"), None)
            self.block.__exit__(*raised)
        return self.block.__exit__(*raised)


explain(globals())
