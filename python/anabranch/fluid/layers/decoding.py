"""Decoders, which generate sequences token by token, and the loop that runs a decoder until all sequences have
ended."""
from __future__ import annotations

from typing import Any

from ..errors import InvalidType, NotOffered
from ..explained import explain
from ..framework import Variable
from ..framework.dtype import dtype_name
from ._generated_elementwise import (
    elementwise_add,
    elementwise_mul,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
)
from ._generated_reductions import reduce_all
from .arrays import array_read, array_write, create_array, tensor_array_to_tensor
from .copies import assign, cast
from .fill import fill_constant, zeros_like
from .loops import While
from .query import increment
from .shapes import transpose
from .structures import flat, mapped

__all__ = ["Decoder", "dynamic_decode"]


class Decoder:
    """Generates sequences token by token. Subclasses define ``initialize`` and ``step``, which :func:`dynamic_decode`
    calls.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> layers = fluid.layers
        >>> class Halve(layers.Decoder):
        ...     def initialize(self, inits):
        ...         return inits, inits, layers.less_than(inits, layers.fill_constant([1], "float32", 1.0))
        ...     def step(self, time, inputs, states, **kwargs):
        ...         half = inputs * 0.5
        ...         return half, half, half, layers.less_than(half, layers.fill_constant([1], "float32", 1.0))
        >>> outputs, last = layers.dynamic_decode(Halve(), layers.fill_constant([1], "float32", 9.0))
        >>> fluid.Executor().run(fetch_list=[outputs])[0].tolist()
        [[4.5, 2.25, 1.125, 0.5625]]
    """

    def initialize(self, inits: Any) -> Any:
        """Returns the inputs and states of the first step.

        Args:
            inits (Variable): argument ``inits`` of :func:`dynamic_decode`.

        Returns:
            (inputs, states, finished): ``finished`` has dtype bool.

        Raises:
            NotImplementedError: the class does not define this method.
        """
        raise NotOffered("Decoder.initialize must be defined by %s" % type(self).__name__)

    def step(self, time: Variable, inputs: Any, states: Any, **kwargs: Any) -> Any:
        """Computes one step.

        Args:
            time (Variable): [1], int64: number of the step, from 0.
            inputs (Variable): inputs of this step, or a structure of them.
            states (Variable): states before this step, or a structure of them.
            kwargs: further arguments of :func:`dynamic_decode`.

        Returns:
            (outputs, new states, next inputs, finished): ``finished`` has dtype bool.

        Raises:
            NotImplementedError: the class does not define this method.
        """
        raise NotOffered("Decoder.step must be defined by %s" % type(self).__name__)

    def finalize(self, outputs: Any, final_states: Any, sequence_lengths: Variable) -> Any:
        """Computes the results from the outputs of all steps, time first. Optional for subclasses.

        Args:
            outputs (Variable): outputs of all steps, [steps, ...], or a structure of them.
            final_states (Variable): states after the last step, or a structure of them.
            sequence_lengths (Variable): number of steps of each sequence, int64.

        Returns:
            (outputs, final states).

        Raises:
            NotImplementedError: the class does not define this method.
        """
        raise NotOffered("Decoder.finalize must be defined by %s" % type(self).__name__)


def _kept_where_finished(finished, state, new):
    """Returns ``state`` for finished rows and ``new`` for the others."""
    is_bool = dtype_name(state.dtype) == "bool"
    if is_bool:
        state, new = cast(state, "float32"), cast(new, "float32")
    mask = _without_gradient(cast(finished, state.dtype))
    kept = elementwise_mul(state, mask, axis=0) - elementwise_mul(new, (mask - 1), axis=0)
    return cast(kept, "bool") if is_bool else kept


def _without_gradient(x):
    x.stop_gradient = True
    return x


def _batch_first(x):
    return transpose(x, [1, 0, *range(2, len(x.shape))])


class _Carried:
    """The inputs or states between steps: arrays with one element per step, which support gradients, or, with
    ``in_place``, the variables of the first step."""

    def __init__(self, first, step, in_place):
        self.first, self.step, self.in_place = first, step, in_place
        self.kept = first if in_place else mapped(lambda x: array_write(x, step), first)

    def now(self):
        return self.first if self.in_place else mapped(lambda array: array_read(array, self.step), self.kept)

    def set(self, values):
        for value, kept in zip(flat(values), flat(self.kept)):
            if self.in_place:
                assign(value, kept)
            else:
                array_write(value, self.step, kept)


def _array_outside(value):
    """An array that the ops after the loop can read."""
    program = value.block.program
    inside = program.current_block_idx
    program._rollback()
    try:
        return create_array(dtype_name(value.dtype))
    finally:
        program.current_block_idx = inside


class _Loop:
    """The iterations of a decoder: their states, and the arrays of their outputs."""

    def __init__(self, decoder, first, max_step_num, is_test):
        inputs, states, self.finished = first
        self.decoder, self.is_test = decoder, is_test
        self.step = fill_constant(shape=[1], dtype="int64", value=0)
        self.going_on = logical_not(reduce_all(self.finished))
        self.last = None if max_step_num is None else fill_constant(shape=[1], dtype="int64", value=max_step_num)
        self.lengths = _without_gradient(cast(zeros_like(self.finished), "int64"))
        self.inputs, self.states = _Carried(inputs, self.step, is_test), _Carried(states, self.step, is_test)
        self.outputs: Any = None

    def run(self, impute_finished, kwargs):
        with While(self.going_on, is_test=self.is_test).block():
            inputs, states = self.inputs.now(), self.states.now()
            outputs, new_states, next_inputs, finished = self.decoder.step(self.step, inputs, states, **kwargs)
            finished = logical_or(finished, self.finished)
            lengths = elementwise_add(self.lengths, cast(logical_not(self.finished), self.lengths.dtype))
            if impute_finished:
                new_states = mapped(lambda old, new: _kept_where_finished(self.finished, old, new), states, new_states)
            self.outputs = mapped(_array_outside, outputs)
            mapped(lambda value, array: array_write(value, self.step, array), outputs, self.outputs)
            increment(self.step, value=1.0, in_place=True)
            self.inputs.set(next_inputs)
            self.states.set(new_states)
            assign(finished, self.finished)
            assign(lengths, self.lengths)
            self._decide()

    def _decide(self):
        """Sets whether there is another iteration."""
        if self.last is None:
            logical_not(reduce_all(self.finished), out=self.going_on)
            return
        logical_and(logical_not(reduce_all(self.finished)), less_equal(self.step, self.last), out=self.going_on)


def dynamic_decode(decoder: Decoder, inits: Any = None, max_step_num: int | None = None,
                   output_time_major: bool = False, impute_finished: bool = False, is_test: bool = False,
                   return_length: bool = False, **kwargs: Any) -> Any:
    """Runs a decoder step by step, until all sequences have ended.

    Args:
        decoder (Decoder): the decoder that computes a step.
        inits (Variable, optional): argument of ``decoder.initialize``, or a structure of Variables.
        max_step_num (int, optional): index of the last step, from 0. Default: no limit.
        output_time_major (bool): outputs are [steps, batch, ...]. Default False: [batch, steps, ...].
        impute_finished (bool): keeps the states of sequences that have ended unchanged. Default False.
        is_test (bool): steps overwrite the variables of the first step, which saves memory but does not allow
            gradients. Default False.
        return_length (bool): also returns the number of steps of each sequence. Default False.
        kwargs: passed to ``decoder.step``.

    Returns:
        (outputs, states): the outputs of all steps, from ``decoder.finalize`` if it is defined; the states after the
        last step; and, if requested, the lengths, [batch, ...], int64.

    Raises:
        TypeError: ``decoder`` is not a decoder.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> layers = fluid.layers
        >>> cell = layers.GRUCell(hidden_size=6)
        >>> helper = layers.GreedyEmbeddingHelper(lambda ids: fluid.embedding(ids, [10, 4]),
        ...                                       start_tokens=fluid.data("start", [None], "int64"), end_token=1)
        >>> decoder = layers.BasicDecoder(cell, helper, output_fn=lambda x: layers.fc(x, 10))
        >>> outputs, _ = layers.dynamic_decode(decoder, inits=fluid.data("h", [None, 6]), max_step_num=7)
        >>> outputs.sample_ids.shape
        (-1, -1)
    """
    if not hasattr(decoder, "initialize"):
        raise InvalidType("dynamic_decode: decoder must be a Decoder, got %s" % type(decoder).__name__)
    loop = _Loop(decoder, decoder.initialize(inits), max_step_num, is_test)
    loop.run(impute_finished, kwargs)
    outputs = mapped(lambda array: tensor_array_to_tensor(array, axis=0, use_stack=True)[0], loop.outputs)
    states = loop.states.now()
    try:
        outputs, states = decoder.finalize(outputs, states, loop.lengths)
    except NotImplementedError:
        pass
    if not output_time_major:
        outputs = mapped(_batch_first, outputs)
    return (outputs, states, loop.lengths) if return_length else (outputs, states)


explain(globals())
