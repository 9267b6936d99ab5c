"""Statistics of the operators of a program."""
from __future__ import annotations

import collections

from .. import arguments
from ..errors import InvalidType
from ..framework import Program

__all__ = ["op_freq_statistic"]


def op_freq_statistic(program: Program) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """Counts the operators of a program, and the pairs in which the second operator reads a result of the first.

    Args:
        program (Program): program whose global block is counted.

    Returns:
        tuple: two lists of (name, count), the most frequent first: types, and pairs as 'first->second'.

    Raises:
        TypeError: an argument is not a Program.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> _ = fluid.layers.relu(fluid.layers.relu(fluid.layers.fc(x, 2)))
        >>> types, pairs = fluid.contrib.op_freq_statistic(fluid.default_main_program())
        >>> types[0], pairs[0]
        (('relu', 2), ('mul->elementwise_add', 1))
    """
    if not isinstance(program, Program):
        raise InvalidType("op_freq_statistic: program must be a Program, got %s" % type(program).__name__)
    block = program.global_block()
    types: collections.Counter[str] = collections.Counter()
    pairs: collections.Counter[str] = collections.Counter()
    makers: dict[str, str] = {}
    for op in block.ops:
        types[op.type] += 1
        for name in op.input_arg_names:
            if name in makers:
                pairs["%s->%s" % (makers[name], op.type)] += 1
        makers.update((name, op.type) for name in op.output_arg_names)
    return types.most_common(), pairs.most_common()


arguments.explain(globals())
