"""Inspection of programs: text, pictures, and runs that stop at the first NaN or infinity."""
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..drawing import program_graph, write_picture
from ..profiling.files import write_whole
from .errors import InvalidType
from .framework import Program, get_flags, set_flags
from .framework import Variable as Variable
from .framework import default_main_program as default_main_program
from .framework.block import Block
from .layer_helper import LayerHelper as LayerHelper

if TYPE_CHECKING:
    from .executor import Executor

__all__ = ["draw_block_graphviz", "pprint_block_codes", "pprint_program_codes", "prepare_fast_nan_inf_debug",
           "run_fast_nan_inf_debug"]


def pprint_program_codes(program_desc: Program) -> str:
    """Returns a program as text, block by block.

    Args:
        program_desc (Program): the program.

    Returns:
        str: the text. Nothing is printed.

    Raises:
        TypeError: an argument has the wrong type.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> main = fluid.Program()
        >>> with fluid.program_guard(main, fluid.Program()):
        ...     x = fluid.data("x", [None, 2])
        >>> print(fluid.debugger.pprint_program_codes(main))    # doctest: +ELLIPSIS
        block 0...
    """
    if not isinstance(program_desc, Program):
        raise InvalidType("pprint_program_codes: program_desc must be a Program, got %s" % type(program_desc).__name__)
    return program_desc.to_string(True)


def pprint_block_codes(block_desc: Block, show_backward: bool = False) -> str:
    """Returns a block as text: its variables and operators.

    Args:
        block_desc (Block): the block.
        show_backward (bool): includes the operators of the backward part and the updates. Default False.

    Returns:
        str: the text. Nothing is printed.

    Raises:
        TypeError: an argument has the wrong type.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 2])
        >>> y = fluid.layers.relu(x)
        >>> text = fluid.debugger.pprint_block_codes(fluid.default_main_program().global_block())
        >>> print(text)    # doctest: +ELLIPSIS
        # block 0
        ...relu...
    """
    if not isinstance(block_desc, Block):
        raise InvalidType("pprint_block_codes: block_desc must be a Block, got %s" % type(block_desc).__name__)
    forward = [op for op in block_desc.ops if show_backward or not _role(op) & 3]
    used = {name for op in forward for name in op.input_arg_names + op.output_arg_names}
    shown = [var for name, var in block_desc.vars.items() if name in used]
    return "\n".join(["# block %d" % block_desc.idx, *map(str, [*shown, *forward])])


def _role(op):
    return op.attr("op_role") if op.has_attr("op_role") else 0


def draw_block_graphviz(block: Block | Program, highlights: Sequence[str] | None = None,
                        path: str = "./temp.dot") -> None:
    """Writes a block as a DOT file and as an SVG picture next to it.

    Args:
        block (Block|Program): block to draw; for a Program, its global block.
        highlights (list of str, optional): names of variables to mark.
        path (str): the DOT file. The picture has the suffix .svg instead of .dot. Default "./temp.dot".

    Returns:
        None.

    Raises:
        TypeError: an argument has the wrong type.
        OSError: a file cannot be written.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 2])
        >>> y = fluid.layers.relu(x)
        >>> fluid.debugger.draw_block_graphviz(fluid.default_main_program().global_block(), path="block.dot")
        >>> import os
        >>> sorted(os.listdir("."))
        ['block.dot', 'block.svg']
    """
    if isinstance(block, Program):
        block = block.global_block()
    if not isinstance(block, Block):
        raise InvalidType("draw_block_graphviz: block must be a Block, got %s" % type(block).__name__)
    graph = program_graph(block, highlights=highlights)
    write_whole(path, graph.dot().encode("utf-8"))
    write_picture(graph, os.path.splitext(path)[0] + ".svg")


def prepare_fast_nan_inf_debug(_program: Program) -> None:
    """Does nothing, because no preparation is necessary: see :func:`run_fast_nan_inf_debug`.

    Args:
        _program (Program): the program.

    Returns:
        None.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.debugger.prepare_fast_nan_inf_debug(fluid.Program())
    """


def run_fast_nan_inf_debug(executor: Executor, program: Any = None, feed: Any = None, fetch_list: Any = None,
                           feed_var_name: Any = "feed", fetch_var_name: Any = "fetch", scope: Any = None,
                           return_numpy: Any = True, use_program_cache: Any = False,
                           dump_core: bool = True) -> list[Any]:
    """Runs a program and stops at the first operator that computes a NaN or an infinity.

    Args:
        executor (Executor): executor of the run.
        program, feed, fetch_list, feed_var_name, fetch_var_name, scope, return_numpy, use_program_cache: as for
            ``Executor.run``.
        dump_core (bool): ignored; an exception contains the information. Default True.

    Returns:
        list: the result of ``Executor.run``.

    Raises:
        EnforceNotMet: a value is not finite. The message names the operator, the variable and the element.

    Examples:
        >>> import numpy
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 1])
        >>> y = fluid.layers.log(x)
        >>> exe = fluid.Executor(fluid.CPUPlace())
        >>> zero = {"x": numpy.zeros((2, 1), "float32")}
        >>> try:
        ...     _ = fluid.debugger.run_fast_nan_inf_debug(exe, feed=zero, fetch_list=[y])
        ... except fluid.core.EnforceNotMet as error:
        ...     print(str(error).splitlines()[0])    # doctest: +ELLIPSIS
        InvalidArgument: log: FLAGS_check_nan_inf: log_0.tmp_0 holds -inf at element 0 ...
    """
    flag = "FLAGS_check_nan_inf"
    before = get_flags(flag)
    set_flags({flag: True})
    try:
        return executor.run(program, feed=feed, fetch_list=fetch_list, feed_var_name=feed_var_name,
                            fetch_var_name=fetch_var_name, scope=scope, return_numpy=return_numpy,
                            use_program_cache=use_program_cache)
    finally:
        set_flags(before)
