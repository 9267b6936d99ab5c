"""A block that runs for each step of tensors whose first axis is time."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .. import unique_name
from ..described import Described
from ..errors import InvalidValue, Violated
from ..explained import explain
from ..framework import Variable
from ..framework.dtype import VarType
from ..layer_helper import LayerHelper
from . import check
from .sub_blocks import collected, seen_from

__all__ = ["StaticRNN"]


class _Memory:
    def __init__(self, init, before):
        self.init, self.before, self.after = init, before, None


class StaticRNN(Described):
    """Runs the layers of a block for each step of inputs [steps, batch, ...]. Memories pass values from one step to the
    next.

    Args:
        name (str, optional): prefix of the generated names.

    Raises:
        ValueError: a method is called outside of its context, or inputs have different numbers of steps.
        AssertionError: a memory is not updated.

    Examples:
        >>> import numpy
        >>> import anabranch.fluid as fluid
        >>> layers = fluid.layers
        >>> x = fluid.data("x", [3, None, 1])
        >>> rnn = layers.StaticRNN()
        >>> with rnn.step():
        ...     now = rnn.step_input(x)
        ...     total = rnn.memory(shape=[-1, 1], batch_ref=now)
        ...     rnn.update_memory(total, total + now)
        ...     rnn.step_output(total + now)
        >>> feed = {"x": numpy.array([[[1]], [[2]], [[4]]], "float32")}
        >>> fluid.Executor().run(feed=feed, fetch_list=[rnn()])[0].ravel().tolist()
        [1.0, 3.0, 7.0]
    """

    BEFORE_RNN_BLOCK, IN_RNN_BLOCK, AFTER_RNN_BLOCK = 0, 1, 2

    def __init__(self, name: str | None = None) -> None:
        check.of_type(name, "name", "StaticRNN", (str, type(None)))
        self.helper = LayerHelper("static_rnn", name=name)
        self.memories: dict[str, _Memory] = {}
        self.inputs: list[Variable] = []
        self.outputs: list[Variable] = []
        self.status = StaticRNN.BEFORE_RNN_BLOCK
        self.seq_len: int | None = None

    def step(self) -> Any:
        """Context manager for the layers of one step."""
        return self._collect()

    @contextlib.contextmanager
    def _collect(self) -> Iterator[None]:
        self.status = StaticRNN.IN_RNN_BLOCK
        with collected(self.helper.main_program, self._append):
            yield
            self._carry_states()
        self.status = StaticRNN.AFTER_RNN_BLOCK

    def _inside(self, method):
        if self.status != StaticRNN.IN_RNN_BLOCK:
            raise InvalidValue("StaticRNN.%s must be called inside `with rnn.step()`" % method)

    def _parent(self):
        program = self.helper.main_program
        return program.block(program.current_block().parent_idx)

    def memory(self, init: Variable | None = None, shape: Any = None, batch_ref: Variable | None = None,
               init_value: float = 0.0, init_batch_dim_idx: int = 0, ref_batch_dim_idx: int = 1) -> Variable:
        """Returns a memory: the value that :meth:`update_memory` set in the previous step.

        Args:
            init (Variable, optional): value in the first step. Default: a constant.
            shape (list|tuple, optional): shape of the constant, with -1 for the batch.
            batch_ref (Variable, optional): Variable whose batch size is used for the constant.
            init_value (float): value of the constant. Default 0.
            init_batch_dim_idx (int): batch axis of ``shape``. Default 0.
            ref_batch_dim_idx (int): batch axis of the whole input, if ``batch_ref`` is a step of an input. Default 1.

        Returns:
            Variable: the memory, with the shape of ``init``.

        Raises:
            ValueError: it is called outside of a step, or without ``init`` and without ``shape`` and ``batch_ref``.
                TypeError: an argument has the wrong type.
        """
        self._inside("memory")
        check.of_type(init, "init", "StaticRNN.memory", (Variable, type(None)))
        check.of_type(shape, "shape", "StaticRNN.memory", (list, tuple, type(None)))
        check.of_type(batch_ref, "batch_ref", "StaticRNN.memory", (Variable, type(None)))
        if init is None:
            if shape is None or batch_ref is None:
                raise InvalidValue("StaticRNN.memory: without init, shape and batch_ref must be given")
            init = self._boot(list(shape), batch_ref, init_value, init_batch_dim_idx, ref_batch_dim_idx)
        before = self.helper.create_variable(name=unique_name.generate("@".join([self.helper.name, "mem"])),
                                             dtype=init.dtype, shape=init.shape)
        self.memories[before.name] = _Memory(init, before)
        return before

    def _boot(self, shape, batch_ref, value, axis, ref_axis):
        parent = self._parent()
        boot = parent.create_var(name=unique_name.generate("@".join([self.helper.name, "memory_boot"])), shape=shape,
                                 dtype=batch_ref.dtype, persistable=False)
        parent.append_op(type="fill_constant_batch_size_like", inputs={"Input": [batch_ref]}, outputs={"Out": [boot]},
                         attrs={"value": value, "shape": boot.shape, "dtype": boot.dtype,
                                "input_dim_idx": ref_axis, "output_dim_idx": axis})
        return boot

    def step_input(self, x: Variable) -> Variable:
        """Returns one step of an input.

        Args:
            x (Variable): [steps, ...]. The number of steps must be known while the program is built.

        Returns:
            Variable: the step, with the shape x.shape[1:].

        Raises:
            ValueError: it is called outside of a step, or the number of steps differs from that of the first input.
            TypeError: ``x`` is not a Variable.
        """
        self._inside("step_input")
        check.variable(x, "x", "StaticRNN.step_input")
        if self.seq_len is None:
            self.seq_len = x.shape[0]
        elif x.shape[0] != -1 and self.seq_len != x.shape[0]:
            raise InvalidValue("StaticRNN.step_input: inputs must have %d steps, got %d" % (self.seq_len, x.shape[0]))
        now = self.helper.create_variable(name=x.name, dtype=x.dtype, shape=list(x.shape[1:]), type=x.type)
        self.inputs.append(now)
        return now

    def step_output(self, o: Variable) -> None:
        """Declares a Variable of the step as an output.

        Args:
            o (Variable): output, which must have the same shape in each step.

        Raises:
            ValueError: it is called outside of a step.
            TypeError: an argument is not a Variable.
        """
        self._inside("step_output")
        check.variable(o, "o", "StaticRNN.step_output")
        self.outputs.append(self._copied(o))

    def _copied(self, value):
        copy = self.helper.create_variable_for_type_inference(dtype=value.dtype)
        self.helper.append_op(type="rnn_memory_helper", inputs={"X": [value]}, outputs={"Out": copy},
                              attrs={"dtype": value.dtype})
        return copy

    def output(self, *outputs: Variable) -> None:
        """Calls :meth:`step_output` for each argument."""
        for each in outputs:
            self.step_output(each)

    def update_memory(self, mem: Variable, var: Variable) -> None:
        """Sets the value of a memory in the next step.

        Args:
            mem (Variable): memory, a result of :meth:`memory`.
            var (Variable): new value, with the same shape.

        Raises:
            ValueError: ``mem`` is not a memory.
            TypeError: an argument is not a Variable.
        """
        check.variable(mem, "mem", "StaticRNN.update_memory")
        check.variable(var, "var", "StaticRNN.update_memory")
        if mem.name not in self.memories:
            raise InvalidValue("StaticRNN.update_memory: mem must be a memory, got %s" % mem.name)
        self.memories[mem.name].after = var

    def _carry_states(self):
        for memory in self.memories.values():
            if memory.after is None:
                raise Violated("StaticRNN: memory %s is not updated" % memory.before.name)
            memory.after = self._copied(memory.after)

    def _append(self, inside, outside):
        local = {v.name for v in self.inputs} | {m.before.name for m in self.memories.values()}
        made, read = set(), {}
        for op in inside.ops:
            read.update(dict.fromkeys(n for n in op.input_arg_names if n not in local and n not in made))
            made.update(op.output_arg_names)
        results = [outside.create_var(name=o.name, shape=[self.seq_len, *o.shape], dtype=o.dtype)
                   for o in self.outputs]
        memories = list(self.memories.values())
        outside.append_op(
            type="recurrent",
            inputs={"inputs": [outside._var_recursive(v.name) for v in self.inputs],
                    "initial_states": [m.init for m in memories], "parameters": seen_from(outside, list(read))},
            outputs={"outputs": results, "step_scopes": [outside.create_var(type=VarType.STEP_SCOPES)]},
            attrs={"has_states": bool(memories), "ex_states": [m.before.name for m in memories],
                   "states": [m.after.name for m in memories], "sub_block": inside})
        self._results = results

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the outputs of all steps.

        Returns:
            Variable: [steps, ...], or a list of several outputs.

        Raises:
            ValueError: it is called before the end of the step, or there is no output.
        """
        if self.status != StaticRNN.AFTER_RNN_BLOCK:
            raise InvalidValue("StaticRNN: call it after `with rnn.step()`, which computes the results")
        if not self.outputs:
            raise InvalidValue("StaticRNN: a step must have an output")
        return self._results[0] if len(self._results) == 1 else self._results


explain(globals())
