"""A decoder for beam search that keeps a fixed number of beams per sequence."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..described import Described
from ..errors import InvalidValue
from ..explained import explain
from ..framework import Variable
from . import check
from ._generated_elementwise import (
    elementwise_add,
    elementwise_floordiv,
    elementwise_mod,
    elementwise_mul,
    equal,
    logical_not,
    logical_or,
)
from ._generated_functions import log
from ._generated_places import gather_nd
from ._generated_places import shape as shape_of
from ._generated_reductions import softmax
from ._generated_sequences import gather_tree
from .borders import expand
from .cells import RNNCell
from .copies import assign, cast
from .decoding import Decoder
from .fill import fill_constant, fill_constant_batch_size_like, zeros_like
from .fill import range as range_of
from .joins import stack
from .search import topk
from .shapes import reshape, transpose, unsqueeze
from .structures import flat, mapped

__all__ = ["BeamSearchDecoder"]


class BeamSearchDecoder(Decoder, Described):
    """A decoder that continues the ``beam_size`` best beams of each sequence.

    A finished beam continues with the end token at no cost. The cell and the functions receive the beams of a batch as
    rows, [batch * beam, ...]. Other tensors that they read, such as the source of an attention, must be repeated with
    :meth:`tile_beam_merge_with_batch`.

    Args:
        cell (RNNCell): cell that computes a step.
        start_token (int): token before the first token of a sentence.
        end_token (int): token that ends a sentence.
        beam_size (int): number of beams per sequence.
        embedding_fn (callable, optional): converts tokens [batch, beam] to inputs of the cell.
        output_fn (callable, optional): converts outputs of the cell to logits [batch, beam, tokens].

    Examples:
        >>> import anabranch.fluid as fluid
        >>> layers = fluid.layers
        >>> decoder = layers.BeamSearchDecoder(
        ...     layers.GRUCell(6), start_token=0, end_token=1, beam_size=4,
        ...     embedding_fn=lambda ids: fluid.embedding(ids, [10, 4]),
        ...     output_fn=lambda x: layers.fc(x, 10, num_flatten_dims=2))
        >>> ids, _ = layers.dynamic_decode(decoder, inits=fluid.data("h", [None, 6]), max_step_num=7)
        >>> ids.shape
        (-1, -1, 4)
    """

    class OutputWrapper(NamedTuple):
        """The results of a step, each [batch, beam]: scores, tokens, and the indices of the beams that the tokens
        continue."""

        scores: Any
        predicted_ids: Any
        parent_ids: Any

    class StateWrapper(NamedTuple):
        """The state between steps: the states of the cell, and the score, end flag and length of each beam."""

        cell_states: Any
        log_probs: Any
        finished: Any
        lengths: Any

    kinf = 1e9  # the logarithm of a probability that is never chosen is -kinf

    def __init__(self, cell: RNNCell, start_token: int, end_token: int, beam_size: int,
                 embedding_fn: Callable[..., Any] | None = None, output_fn: Callable[..., Any] | None = None) -> None:
        self.cell, self.embedding_fn, self.output_fn = cell, embedding_fn, output_fn
        self.start_token, self.end_token, self.beam_size = start_token, end_token, beam_size

    @staticmethod
    def tile_beam_merge_with_batch(x: Variable, beam_size: int) -> Variable:
        """Repeats each row of a batch once per beam.

        Args:
            x (Variable): [batch, ...].
            beam_size (int): number of beams per sequence.

        Returns:
            Variable: [batch * beam, ...].

        Raises:
            TypeError: ``x`` is not a Variable.
        """
        check.variable(x, "x", "BeamSearchDecoder.tile_beam_merge_with_batch")
        rank = len(x.shape)
        x = expand(unsqueeze(x, [1]), [1, beam_size] + [1] * (rank - 1))
        x = transpose(x, [*range(2, rank + 1), 0, 1])
        x = reshape(x, shape=[0] * (rank - 1) + [-1])
        return transpose(x, [rank - 1, *range(rank - 1)])

    def _split_batch_beams(self, x):
        """Reshapes [batch * beam, ...] to [batch, beam, ...]."""
        check.variable(x, "x", "BeamSearchDecoder")
        return reshape(x, shape=[-1, self.beam_size, *x.shape[1:]])

    def _merge_batch_beams(self, x):
        """Reshapes [batch, beam, ...] to [batch * beam, ...]."""
        check.variable(x, "x", "BeamSearchDecoder")
        return reshape(x, shape=[-1, *x.shape[2:]])

    def _expand_to_beam_size(self, x):
        """Repeats [batch, ...] to [batch, beam, ...]."""
        check.variable(x, "inits", "BeamSearchDecoder")
        return expand(unsqueeze(x, [1]), [1, self.beam_size] + [1] * (len(x.shape) - 1))

    def _gather(self, x, indices, batch_size):
        """Selects ``indices`` [batch, beam] of ``x`` [batch, n, ...]."""
        count = cast(batch_size, indices.dtype)
        count.stop_gradient = True
        rows = expand(unsqueeze(range_of(0, count, 1, indices.dtype), [1]), [1, self.beam_size])
        places = stack([rows, indices], axis=2)
        places.stop_gradient = True
        return gather_nd(x, places)

    def initialize(self, initial_cell_states: Any) -> Any:
        """Returns the inputs and states of the first step.

        Args:
            initial_cell_states (Variable): initial states of the cell, [batch, ...], or a structure of them.

        Returns:
            (inputs, StateWrapper, finished): the inputs are those of the start tokens. Only the first beam of each
            sequence has a probability above 0.

        Raises:
            TypeError: an argument is not a Variable.
        """
        state = flat(initial_cell_states)[0]
        check.variable(state, "inits", "BeamSearchDecoder")
        self.batch_size = shape_of(state)[0]
        self.start_token_tensor = fill_constant(shape=[1], dtype="int64", value=self.start_token)
        self.end_token_tensor = fill_constant(shape=[1], dtype="int64", value=self.end_token)
        cell_states = mapped(self._expand_to_beam_size, initial_cell_states)
        tokens = expand(unsqueeze(expand(self.start_token_tensor, [self.batch_size]), [1]), [1, self.beam_size])
        first_alone = np.array([[0.0] + [-self.kinf] * (self.beam_size - 1)], dtype="float32")
        log_probs = expand(assign(first_alone), [self.batch_size, 1])
        finished = fill_constant_batch_size_like(input=state, shape=[-1, self.beam_size], dtype="bool", value=0,
                                                 force_cpu=True)
        lengths = zeros_like(tokens)
        inputs = self.embedding_fn(tokens) if self.embedding_fn else tokens
        return inputs, self.StateWrapper(cell_states, log_probs, finished, lengths), finished

    def _mask_probs(self, probs, finished):
        """Logarithms of probabilities [batch, beam, tokens]: a finished beam continues only with the end token."""
        ended = cast(finished, probs.dtype)
        of_ended = elementwise_mul(expand(unsqueeze(ended, [2]), [1, 1, self.vocab_size]), self.noend_mask_tensor)
        return of_ended - elementwise_mul(probs, (ended - 1), axis=0)

    def _count_tokens(self, logits):
        """Sets the attributes that depend on the number of tokens."""
        self.vocab_size = logits.shape[-1]
        if not -self.vocab_size <= self.end_token < self.vocab_size:
            raise InvalidValue("BeamSearchDecoder: end_token must be one of %d tokens, got %d"
                               % (self.vocab_size, self.end_token))
        only_end = np.full([self.vocab_size], -self.kinf, dtype="float32")
        only_end[self.end_token] = 0
        self.vocab_size_tensor = fill_constant(shape=[1], dtype="int64", value=self.vocab_size)
        self.noend_mask_tensor = assign(only_end)

    def _beam_search_step(self, time, logits, next_cell_states, beam_state):
        """Returns the best continuations: (OutputWrapper, StateWrapper)."""
        self._count_tokens(logits)
        log_probs = self._mask_probs(log(softmax(logits)), beam_state.finished)
        flat_shape = [-1, self.beam_size * self.vocab_size]
        log_probs = elementwise_add(log_probs, beam_state.log_probs, axis=0)
        scores, places = topk(reshape(log_probs, flat_shape), k=self.beam_size)
        parents = elementwise_floordiv(places, self.vocab_size_tensor)
        chosen = elementwise_mod(places, self.vocab_size_tensor)
        log_probs = self._gather(reshape(log_probs, flat_shape), places, self.batch_size)
        cell_states = mapped(lambda x: self._gather(x, parents, self.batch_size), next_cell_states)
        finished = self._gather(beam_state.finished, parents, self.batch_size)
        lengths = self._gather(beam_state.lengths, parents, self.batch_size)
        lengths = lengths + cast(logical_not(finished), lengths.dtype)
        finished = logical_or(finished, equal(chosen, self.end_token_tensor))
        return (self.OutputWrapper(scores, chosen, parents),
                self.StateWrapper(cell_states, log_probs, finished, lengths))

    def step(self, time: Variable, inputs: Any, states: Any, **kwargs: Any) -> Any:
        """Computes one step.

        Args:
            time (Variable): [1], int64: number of the step. Has no effect.
            inputs (Variable): inputs, [batch, beam, ...], or a structure of them.
            states (StateWrapper): states after the previous step.
            kwargs: passed to the cell.

        Returns:
            (OutputWrapper, StateWrapper, inputs, finished): the chosen tokens, the states and inputs of the next step,
            and the beams that have finished.

        Raises:
            ValueError: the end token is not one of the tokens.
        """
        inputs = mapped(self._merge_batch_beams, inputs)
        cell_states = mapped(self._merge_batch_beams, states.cell_states)
        outputs, cell_states = self.cell(inputs, cell_states, **kwargs)
        outputs, cell_states = mapped(self._split_batch_beams, outputs), mapped(self._split_batch_beams, cell_states)
        if self.output_fn is not None:
            outputs = self.output_fn(outputs)
        found, states = self._beam_search_step(time, outputs, cell_states, states)
        tokens = found.predicted_ids
        tokens.stop_gradient = True
        return found, states, self.embedding_fn(tokens) if self.embedding_fn else tokens, states.finished

    def finalize(self, outputs: Any, final_states: Any, sequence_lengths: Variable) -> Any:
        """Traces the beams back from their last tokens.

        Args:
            outputs (OutputWrapper): results of all steps, [steps, batch, beam].
            final_states (StateWrapper): states after the last step.
            sequence_lengths (Variable): has no effect.

        Returns:
            (tokens, states): the tokens [steps, batch, beam], int64, and ``final_states``.
        """
        return gather_tree(outputs.predicted_ids, outputs.parent_ids), final_states


explain(globals())
