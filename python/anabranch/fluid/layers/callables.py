"""Layers that call Python functions or print tensors."""
from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable
from typing import Any

import numpy

from ... import _core
from ..errors import InvalidType, InvalidValue, NotFound
from ..explained import explain
from ..framework import Variable
from ..framework.variable import var_names
from ..layer_helper import LayerHelper
from . import check

__all__ = ["Print", "py_func"]


def _results(function, inputs, count):
    """Returns the results of a user's function as a list with one entry per output."""
    made = function(*inputs)
    if made is None:
        made = ()
    made = list(made) if isinstance(made, (list, tuple)) else [made]
    if not count and all(v is None for v in made):
        return []
    if len(made) != count:
        raise InvalidValue("py_func: %s must return %d values for the outputs, got %d"
                           % (getattr(function, "__name__", function), count, len(made)))
    return [v if v is None or isinstance(v, _core.LoDTensor) else numpy.asarray(v) for v in made]


def _register(function, unfed=None):
    if not callable(function):
        raise InvalidType("py_func: func must be a function, got %s" % type(function).__name__)
    try:  # a function that takes nothing is called with nothing, as in Fluid
        if not inspect.signature(function).parameters:
            return _core.add_callable(lambda inputs, count: _results(lambda *_: function(), inputs, count))
    except (TypeError, ValueError):
        pass

    def call(inputs, count):
        if unfed is not None and any(value is None for value in inputs):
            unfed.refuse(inputs)
        return _results(function, inputs, count)

    return _core.add_callable(call)


def _check_arity(function, count):
    """A function that takes nothing is called with nothing; others must take one argument for each input."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        if signature.parameters:
            signature.bind(*[None] * count)
    except TypeError:
        raise InvalidType("py_func: func must take %d arguments, one for each Variable of x, got %s%s" % (
            count, getattr(function, "__name__", type(function).__name__), signature)) from None


class _Unfed:
    """Refuses to call the function of one py_func if an input has no value that only a feed could give.

    As in Fluid, a variable that an operator computes, or a persistable one, is passed as None if it has no value.
    """

    def __init__(self, inputs: list[Variable]) -> None:
        self._names = [None if v.persistable else v.name for v in inputs]
        self._program = weakref.ref(inputs[0].block.program) if inputs else None
        self.made_at = ""

    def refuse(self, values: Any) -> None:
        """Raises NotFound, worded as by the engine, for the first input that was not fed."""
        for name, value in zip(self._names, values):
            if value is None and name is not None and not self._is_computed(name):
                raise NotFound("py_func: variable %s holds no value%s"
                               % (name, "\n  op     py_func  made at " + self.made_at if self.made_at else ""))

    def _is_computed(self, name):
        program = self._program()
        return program is not None and any(name in op.output_arg_names for b in program.blocks for op in b.ops)


def _listed(value, name):
    if value is None:
        return []
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    for v in values:
        if not isinstance(v, Variable):
            raise InvalidType("py_func: %s must be a Variable or a list of them, got %s" % (name, type(v).__name__))
    return values


def py_func(func: Callable[..., Any], x: Any, out: Any, backward_func: Callable[..., Any] | None = None,
            skip_vars_in_backward_input: Any = None) -> Any:
    """Makes an operator of a Python function, which is called in each step with copies of the tensors.

    Args:
        func (callable): function that takes a LoDTensor for each Variable of ``x``; ``numpy.array(t)`` converts one to
            an array. It returns an array or LoDTensor for each Variable of ``out``, or None if there is no output.
        x (Variable|list|tuple|None): inputs.
        out (Variable|list|tuple|None): outputs with shape and dtype, created before (``create_variable``). They receive
            the results of ``func`` unchanged.
        backward_func (callable, optional): function that computes the gradient. It takes the inputs, the outputs and
            the gradients of the outputs (None for a missing gradient). It returns the gradients of the inputs (None for
            an input without a gradient). Default: the operator has no gradient.
        skip_vars_in_backward_input (Variable|list, optional): inputs and outputs that are not passed to
            ``backward_func``.

    Returns:
        Variable|list|None: ``out``.

    Raises:
        TypeError: an argument has the wrong type, or ``func`` takes a different number of arguments.
        ValueError: an output has no shape, a skipped Variable is neither an input nor an output, or at run time
            ``func`` returns the wrong number of results.
        LookupError: at run time, an input was not fed.

    Examples:
        >>> import numpy
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 2], "float32")
        >>> out = fluid.default_main_program().current_block().create_var(name="out", shape=[-1, 2], dtype="float32")
        >>> out = fluid.layers.py_func(lambda t: numpy.array(t) * 2, x, out)
        >>> executor = fluid.Executor(fluid.CPUPlace())
        >>> executor.run(feed={"x": numpy.ones([1, 2], "float32")}, fetch_list=[out])[0].tolist()
        [[2.0, 2.0]]
    """
    inputs, outputs = _listed(x, "x"), _listed(out, "out")
    for v in outputs:
        if len(v.shape) == 0:
            raise InvalidValue("py_func: output %s must have a shape" % v.name)
    unfed = _Unfed(inputs)
    forward = _register(func, unfed)
    _check_arity(func, len(inputs))
    backward, skipped = -1, []
    if backward_func is not None:
        backward = _register(backward_func)
        skipped = _listed(skip_vars_in_backward_input, "skip_vars_in_backward_input")
        known = var_names(inputs) + var_names(outputs)
        for v in skipped:
            if v.name not in known:
                raise InvalidValue("py_func: the skipped Variable %s must be an input or output" % v.name)
    op = LayerHelper("py_func").append_op(
        type="py_func", inputs={"X": inputs}, outputs={"Out": outputs},
        attrs={"forward_callable_id": forward, "backward_callable_id": backward,
               "backward_skip_vars": sorted(set(var_names(skipped)))})
    unfed.made_at = op.desc.made_at
    return out


def Print(input: Variable, first_n: int = -1, message: str | None = None, summarize: int = 20,
          print_tensor_name: bool = True, print_tensor_type: bool = True, print_tensor_shape: bool = True,
          print_tensor_lod: bool = True, print_phase: str = "both") -> Variable:
    """Prints a tensor, and its gradient, to the standard output in each step, and returns it unchanged.

    Args:
        input (Variable): any shape and dtype.
        first_n (int): maximum number of times to print after the program was prepared. -1 means no limit. Default -1.
        message (str, optional): prefix of the output.
        summarize (int): number of elements to print. -1 means all elements. Default 20.
        print_tensor_name (bool): prints the variable's name. Default True.
        print_tensor_type (bool): prints the dtype. Default True.
        print_tensor_shape (bool): prints the shape. Default True.
        print_tensor_lod (bool): prints the sequences, if there are any. Default True.
        print_phase (str): 'forward', 'backward' or 'both'. Default 'both'.

    Returns:
        Variable: same as ``input``. The gradient is printed only if the result is read.

    Raises:
        TypeError: ``input`` is not a Variable.
        ValueError: ``print_phase`` is unknown.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 2], "float32")
        >>> fluid.layers.Print(x, message="before the layer").shape
        (-1, 2)
    """
    check.variable(input, "input", "Print")
    helper = LayerHelper("print_" + input.name)
    output = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type="print", inputs={"In": [input]}, outputs={"Out": [output]},
                     attrs={"first_n": first_n, "summarize": summarize, "message": message or "",
                            "print_tensor_name": print_tensor_name, "print_tensor_type": print_tensor_type,
                            "print_tensor_shape": print_tensor_shape, "print_tensor_lod": print_tensor_lod,
                            "print_phase": print_phase.upper()})
    return output


explain(globals())
