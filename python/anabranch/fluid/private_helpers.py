"""Private functions of Fluid 1.8.5 that scripts import: of ``fluid.executor``, ``fluid.io``, ``fluid.metrics``,
``fluid.average`` and ``fluid.regularizer``.

Scripts run by ``anabranch run`` find them there, as ``_legacy/imported_names.json`` lists.
"""
from __future__ import annotations

from typing import Any

import numpy

from .compiler import CompiledProgram
from .errors import InvalidType, Violated
from .framework import Block, Program, Variable, default_main_program
from .layers.losses.classification import cross_entropy
from .regularizer import append_regularization_ops

__all__: list[str] = []


# ---- fluid.executor


def _served(block: Block, op_type: str, variable: str, holder: str, asked: set[str]) -> bool:
    """Whether a block has operators that feed or fetch exactly the variables that are asked for, by one holder."""
    ops = [op for op in block.ops if op.type == op_type]
    for op in ops:
        if holder not in op.input_arg_names + op.output_arg_names:
            raise Violated("the %s operators of the program must use the variable %s, got %s"
                           % (op_type, holder, op.input_arg_names + op.output_arg_names))
    names = {(op.output if op_type == "feed" else op.input)(variable)[0] for op in ops}
    if names and names != asked:
        raise Violated("the program has %s operators of %s, got a %s of %s"
                       % (op_type, sorted(names), op_type, sorted(asked)))
    return bool(names)


def has_feed_operators(block: Block, feed_targets: dict[str, Any], feed_holder_name: str) -> bool:
    """bool: whether a block has feed operators, of ``feed_targets``.

    Args:
        block (Block): block to search.
        feed_targets (dict): names of the variables to feed.
        feed_holder_name (str): name of the variable from which feed operators take.

    Raises:
        AssertionError: feed operators of other variables are there.
    """
    return _served(block, "feed", "Out", feed_holder_name, set(feed_targets))


def has_fetch_operators(block: Block, fetch_targets: Any, fetch_holder_name: str) -> bool:
    """bool: whether a block has fetch operators, of ``fetch_targets``.

    Args:
        block (Block): block to search.
        fetch_targets (list of Variable or str): variables to fetch.
        fetch_holder_name (str): name of the variable to which fetch operators write.

    Raises:
        AssertionError: fetch operators of other variables are there.
    """
    return _served(block, "fetch", "X", fetch_holder_name, {to_name_str(target) for target in fetch_targets})


def to_name_str(variable: Any) -> str:
    """str: the name of a Variable, or of a name itself.

    Raises:
        TypeError: the argument is neither a Variable nor a str.
    """
    if isinstance(variable, Variable):
        return variable.name
    if isinstance(variable, str):
        return variable
    raise InvalidType("a name or a Variable is required, got %s" % type(variable).__name__)


# ---- fluid.io


def valid_program(main_program: Any = None) -> Program:
    """Program: the default main program, a Program, or that of a CompiledProgram.

    Raises:
        TypeError: ``main_program`` is something else.
    """
    if main_program is None:
        return default_main_program()
    if isinstance(main_program, CompiledProgram):
        main_program = main_program._program
    if not isinstance(main_program, Program):
        raise InvalidType("main_program must be a Program or a CompiledProgram, got %s" % type(main_program).__name__)
    return main_program


# ---- fluid.metrics, fluid.average


def is_numpy(value: Any) -> bool:
    """bool: whether a value is an array or a number of numpy.

    >>> is_numpy(numpy.ones(2)), is_numpy(1.0)
    (True, False)
    """
    return isinstance(value, (numpy.ndarray, numpy.generic))


def is_number(value: Any) -> bool:
    """bool: whether a value is an int, a float or an array of one element.

    >>> is_number(3), is_number(numpy.ones(1)), is_number(numpy.ones(2))
    (True, True, False)
    """
    return isinstance(value, (int, float)) or (isinstance(value, numpy.ndarray) and value.shape == (1,))


def is_number_or_matrix(value: Any) -> bool:
    """bool: whether a value is a number or an array."""
    return is_number(value) or isinstance(value, numpy.ndarray)


# ---- fluid.layers.loss


def cross_entropy2(input: Variable, label: Variable, ignore_index: int = -100) -> Variable:
    """Variable: the cross entropy of probabilities and classes."""
    return cross_entropy(input, label, ignore_index=ignore_index)


# ---- fluid.regularizer


def regularized_gradient(param: Any, grad: Any, regularization: Any = None) -> Any:
    """Variable: the gradient with the decay of the parameter, by its own regularizer or the given one."""
    return append_regularization_ops([(param, grad)], regularization)[0][1]
