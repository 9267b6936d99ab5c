"""Helpers that choose the inputs of a decoder's steps (a given sequence, the best token or a sampled token), and the
decoder that uses them."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..described import Described
from ..errors import NotOffered
from ..explained import explain
from ..framework import Variable
from ..framework.dtype import dtype_name
from . import check
from ._generated_elementwise import equal, less_equal
from ._generated_places import pad
from ._generated_reductions import softmax
from .cells import RNNCell
from .copies import cast
from .decoding import Decoder
from .fill import fill_constant, fill_constant_batch_size_like
from .random_ints import sampling_id
from .search import argmax
from .shapes import squeeze
from .slices import slice
from .structures import flat, mapped

__all__ = ["DecodeHelper", "TrainingHelper", "GreedyEmbeddingHelper", "SampleEmbeddingHelper", "BasicDecoder"]


class DecodeHelper:
    """Base class of helpers, which choose tokens and inputs for :class:`BasicDecoder`. Helpers define ``initialize``,
    ``sample`` and ``next_inputs``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> class Forced(fluid.layers.GreedyEmbeddingHelper):
        ...     def sample(self, time, outputs, states):
        ...         return fluid.layers.fill_constant_batch_size_like(outputs, [-1], "int64", 3)
        >>> helper = Forced(lambda ids: fluid.embedding(ids, [10, 4]), fluid.data("start", [None], "int64"), 1)
        >>> isinstance(helper, fluid.layers.DecodeHelper)
        True
    """

    def initialize(self) -> Any:
        """Returns the inputs of the first step.

        Returns:
            (inputs, finished): ``finished`` is [batch], bool.

        Raises:
            NotImplementedError: the class does not define this method.
        """
        raise NotOffered("DecodeHelper.initialize must be defined by %s" % type(self).__name__)

    def sample(self, time: Variable, outputs: Any, states: Any) -> Any:
        """Chooses the tokens of a step.

        Args:
            time (Variable): [1], int64: number of the step.
            outputs (Variable): outputs of the cell, [batch, tokens].
            states (Variable): states of the cell, or a structure of them.

        Returns:
            Variable: the tokens, [batch], int64.

        Raises:
            NotImplementedError: the class does not define this method.
        """
        raise NotOffered("DecodeHelper.sample must be defined by %s" % type(self).__name__)

    def next_inputs(self, time: Variable, outputs: Any, states: Any, sample_ids: Any) -> Any:
        """Computes the inputs of the next step.

        Args:
            time (Variable): [1], int64: number of this step.
            outputs (Variable): outputs of the cell, [batch, tokens].
            states (Variable): states of the cell, or a structure of them.
            sample_ids (Variable): tokens of this step, [batch], int64.

        Returns:
            (finished, inputs, states): values for the next step. ``finished`` is [batch], bool.

        Raises:
            NotImplementedError: the class does not define this method.
        """
        raise NotOffered("DecodeHelper.next_inputs must be defined by %s" % type(self).__name__)


class _BestTokens(DecodeHelper):
    """Chooses the best tokens of a step."""

    def sample(self, time: Variable, outputs: Any, states: Any) -> Variable:
        """Chooses the best tokens of a step.

        Args:
            time (Variable): [1], int64: number of the step. Has no effect.
            outputs (Variable): outputs of the cell, [batch, tokens].
            states (Variable): has no effect.

        Returns:
            Variable: the tokens, [batch], int64.
        """
        return argmax(outputs, axis=-1)


class TrainingHelper(_BestTokens, Described):
    """Feeds the steps of given sequences, to train a decoder.

    Args:
        inputs (Variable): [batch, steps, ...], or a structure of such Variables.
        sequence_length (Variable): length of each sequence, [batch], int32 or int64.
        time_major (bool): ``inputs`` is [steps, batch, ...]. Default False.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> layers = fluid.layers
        >>> words, lengths = fluid.data("words", [None, None, 4]), fluid.data("lengths", [None], "int64")
        >>> decoder = layers.BasicDecoder(layers.GRUCell(6), layers.TrainingHelper(words, lengths))
        >>> outputs, _ = layers.dynamic_decode(decoder, inits=fluid.data("h", [None, 6]))
        >>> outputs.cell_outputs.shape
        (-1, -1, 6)
    """

    def __init__(self, inputs: Any, sequence_length: Variable, time_major: bool = False) -> None:
        for value in flat(inputs):
            check.variable(value, "inputs", "TrainingHelper")
        check.variable(sequence_length, "sequence_length", "TrainingHelper", check.INTS)
        self.inputs, self.sequence_length, self.time_major = inputs, sequence_length, time_major
        self.inputs_ = mapped(self._one_step_more, inputs)

    def _axis(self):
        return 0 if self.time_major else 1

    def _one_step_more(self, x):
        """Pads the steps by one, because the inputs after the last step are requested but not used."""
        paddings = [0] * (2 * len(x.shape))
        paddings[2 * self._axis() + 1] = 1
        return pad(x, paddings=paddings)

    def initialize(self) -> Any:
        """Returns the inputs of the first step.

        Returns:
            (inputs, finished): the first step of the sequences; ``finished`` marks empty sequences.
        """
        zero = fill_constant(shape=[1], dtype=dtype_name(self.sequence_length.dtype), value=0)
        finished = equal(self.sequence_length, zero)
        return mapped(lambda x: x[0] if self.time_major else x[:, 0], self.inputs), finished

    def next_inputs(self, time: Variable, outputs: Any, states: Any, sample_ids: Any) -> Any:
        """Returns the next step of the sequences.

        Args:
            time (Variable): [1], int64: number of this step.
            outputs (Variable): has no effect.
            states (Variable): states of the cell, or a structure of them.
            sample_ids (Variable): has no effect.

        Returns:
            (finished, inputs, states): ``finished`` marks sequences that end with this step. ``inputs`` is the next
            step, and ``states`` is unchanged.
        """
        time, length = _as_int32(time), _as_int32(self.sequence_length)
        following = time + 1
        finished = less_equal(length, following)

        def step_of(x):
            axes = [self._axis()]
            return squeeze(slice(x, axes=axes, starts=[following], ends=[following + 1]), axes=axes)

        return finished, mapped(step_of, self.inputs_), states


def _as_int32(x):
    return cast(x, "int32") if dtype_name(x.dtype) == "int64" else x


class GreedyEmbeddingHelper(_BestTokens, Described):
    """Feeds the embedding of the best token of the previous step.

    Args:
        embedding_fn (callable): converts tokens [batch] to inputs.
        start_tokens (Variable): [batch], int64: the first token of each sequence.
        end_token (int): token that ends a sequence.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> layers = fluid.layers
        >>> helper = layers.GreedyEmbeddingHelper(lambda ids: fluid.embedding(ids, [10, 4]),
        ...                                       start_tokens=fluid.data("start", [None], "int64"), end_token=1)
        >>> inputs, finished = helper.initialize()
        >>> inputs.shape, finished.shape
        ((-1, 4), (-1,))
    """

    def __init__(self, embedding_fn: Callable[..., Any], start_tokens: Variable, end_token: int) -> None:
        self.embedding_fn, self.start_tokens = embedding_fn, start_tokens
        self.end_token = fill_constant(shape=[1], dtype="int64", value=end_token)

    def initialize(self) -> Any:
        """Returns the inputs of the first step.

        Returns:
            (inputs, finished): the embeddings of the start tokens. ``finished`` is False for each sequence.
        """
        finished = fill_constant_batch_size_like(input=self.start_tokens, shape=[-1], dtype="bool", value=0,
                                                 force_cpu=True)
        return self.embedding_fn(self.start_tokens), finished

    def next_inputs(self, time: Variable, outputs: Any, states: Any, sample_ids: Variable) -> Any:
        """Computes the inputs of the next step.

        Args:
            time (Variable): [1], int64: number of this step. Has no effect.
            outputs (Variable): has no effect.
            states (Variable): states of the cell, or a structure of them.
            sample_ids (Variable): tokens of this step, [batch], int64.

        Returns:
            (finished, inputs, states): ``finished`` marks sequences whose token is the end token. ``inputs`` holds the
            embeddings of the tokens, and ``states`` is unchanged.
        """
        finished = equal(sample_ids, self.end_token)
        return finished, self.embedding_fn(sample_ids), states


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """Feeds the embedding of a token that is sampled from the probabilities.

    Args:
        embedding_fn (callable): converts tokens [batch] to inputs.
        start_tokens (Variable): [batch], int64: the first token of each sequence.
        end_token (int): token that ends a sequence.
        softmax_temperature (float, optional): divisor of the logits. Default 1.
        seed (int, optional): seed of the random numbers. Default: a new seed in each step.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> helper = fluid.layers.SampleEmbeddingHelper(
        ...     lambda ids: fluid.embedding(ids, [10, 4]), start_tokens=fluid.data("start", [None], "int64"),
        ...     end_token=1, softmax_temperature=0.7)
        >>> helper.sample(None, fluid.data("outputs", [None, 10]), None).shape
        (-1,)
    """

    def __init__(self, embedding_fn: Callable[..., Any], start_tokens: Variable, end_token: int,
                 softmax_temperature: float | None = None, seed: int | None = None) -> None:
        super().__init__(embedding_fn, start_tokens, end_token)
        self.softmax_temperature = None if softmax_temperature is None else fill_constant(
            shape=[1], dtype="float32", value=softmax_temperature)
        self.seed = seed

    def sample(self, time: Variable, outputs: Any, states: Any) -> Variable:
        """Samples tokens from their probabilities.

        Args:
            time (Variable): [1], int64: number of the step. Has no effect.
            outputs (Variable): logits, [batch, tokens].
            states (Variable): has no effect.

        Returns:
            Variable: the tokens, [batch], int64.
        """
        logits = outputs if self.softmax_temperature is None else outputs / self.softmax_temperature
        probabilities = softmax(logits)
        probabilities.stop_gradient = True
        return sampling_id(probabilities, seed=self.seed or 0, dtype=dtype_name(self.start_tokens.dtype))


class BasicDecoder(Decoder, Described):
    """A decoder that consists of a cell and of a helper, which chooses the tokens and inputs.

    Args:
        cell (RNNCell): cell that computes a step.
        helper (DecodeHelper): helper that chooses the tokens and the inputs of the next step.
        output_fn (callable, optional): converts outputs of the cell to logits.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> layers = fluid.layers
        >>> words, lengths = fluid.data("words", [None, None, 4]), fluid.data("lengths", [None], "int64")
        >>> decoder = layers.BasicDecoder(layers.GRUCell(6), layers.TrainingHelper(words, lengths),
        ...                               output_fn=lambda x: layers.fc(x, 10))
        >>> outputs, _ = layers.dynamic_decode(decoder, inits=fluid.data("h", [None, 6]))
        >>> outputs.cell_outputs.shape, outputs.sample_ids.shape
        ((-1, -1, 10), (-1, -1))
    """

    class OutputWrapper(NamedTuple):
        """The results of a step: logits, and the tokens chosen from them."""

        cell_outputs: Any
        sample_ids: Any

    def __init__(self, cell: RNNCell, helper: DecodeHelper, output_fn: Callable[..., Any] | None = None) -> None:
        self.cell, self.helper, self.output_fn = cell, helper, output_fn

    def initialize(self, initial_cell_states: Any) -> Any:
        """Returns the inputs of the first step.

        Args:
            initial_cell_states (Variable): initial states of the cell, or a structure of them.

        Returns:
            (inputs, states, finished): ``inputs`` and ``finished`` come from the helper.
        """
        inputs, finished = self.helper.initialize()
        return inputs, initial_cell_states, finished

    def step(self, time: Variable, inputs: Any, states: Any, **kwargs: Any) -> Any:
        """Computes one step.

        Args:
            time (Variable): [1], int64: number of the step, from 0.
            inputs (Variable): inputs of the cell, or a structure of them.
            states (Variable): states of the cell, or a structure of them.
            kwargs: passed to the cell.

        Returns:
            (OutputWrapper, states, inputs, finished): the logits and tokens, the states and inputs of the next step,
            and the sequences that have finished.
        """
        outputs, states = self.cell(inputs, states, **kwargs)
        if self.output_fn is not None:
            outputs = self.output_fn(outputs)
        tokens = self.helper.sample(time=time, outputs=outputs, states=states)
        tokens.stop_gradient = True
        finished, inputs, states = self.helper.next_inputs(time=time, outputs=outputs, states=states,
                                                           sample_ids=tokens)
        return self.OutputWrapper(outputs, tokens), states, inputs, finished


explain(globals())
