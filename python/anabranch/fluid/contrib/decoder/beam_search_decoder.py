"""A decoder with beam search, which keeps a sequence of live beams for each source."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ... import arguments, unique_name
from ...described import Described
from ...errors import InvalidType, InvalidValue
from ...framework import Variable
from ...framework.dtype import VarType
from ...layer_helper import LayerHelper
from ...layers import (
    Switch,
    While,
    array_read,
    array_write,
    beam_search,
    beam_search_decode,
    check,
    elementwise_add,
    embedding,
    fc,
    fill_constant,
    increment,
    is_empty,
    less_than,
    lod_reset,
    log,
    reshape,
    sequence_expand,
    topk,
)
from .states import InitState, StateCell, _ArrayState
from .training_decoder import TrainingDecoder

__all__ = ["InitState", "StateCell", "TrainingDecoder", "BeamSearchDecoder"]


class BeamSearchDecoder(Described):
    """Searches for the best sentences with the cell that a :class:`TrainingDecoder` has trained.

    :meth:`decode` builds the usual search. Other searches are written in :meth:`block`.

    Args:
        state_cell (StateCell): cell that updates the states in each step.
        init_ids (Variable): [batch, 1], int64: the token before the first one, with two levels of sequences.
        init_scores (Variable): [batch, 1], float32: initial scores, with the sequences of ``init_ids``.
        target_dict_dim (int): number of tokens.
        word_dim (int): width of the embedding of tokens.
        input_var_dict (dict): further inputs of the cell: name -> Variable [batch, ...].
        topk_size (int): number of continuations considered per beam. Default 50.
        sparse_emb (bool): the gradient of the embedding is sparse. Default True.
        max_len (int): maximum length of a sentence. Default 100.
        beam_size (int): number of beams per source. Default 1.
        end_id (int): token that ends a sentence. Default 1.
        name (str, optional): prefix of the generated names.

    Raises:
        ValueError: the cell is in another decoder.
        TypeError: ``state_cell`` is not a StateCell.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> layers, contrib = fluid.layers, fluid.contrib
        >>> first = contrib.InitState(init=fluid.data("source", [None, 8]))
        >>> cell = contrib.StateCell(inputs={"word": None}, states={"h": first}, out_state="h")
        >>> @cell.state_updater
        ... def update(cell):
        ...     cell.set_state("h", layers.fc([cell.get_input("word"), cell.get_state("h")], 8, act="tanh"))
        >>> decoder = contrib.BeamSearchDecoder(
        ...     cell, init_ids=fluid.data("ids", [None, 1], "int64", lod_level=2),
        ...     init_scores=fluid.data("scores", [None, 1], lod_level=2), target_dict_dim=20, word_dim=6, topk_size=10,
        ...     beam_size=3)
        >>> decoder.decode()
        >>> ids, scores = decoder()
        >>> ids.lod_level
        2
    """

    BEFORE_BEAM_SEARCH_DECODER, IN_BEAM_SEARCH_DECODER, AFTER_BEAM_SEARCH_DECODER = 0, 1, 2

    def __init__(self, state_cell: StateCell, init_ids: Variable, init_scores: Variable, target_dict_dim: int,
                 word_dim: int, input_var_dict: dict[str, Any] = {}, topk_size: int = 50,  # noqa: B006
                 sparse_emb: bool = True, max_len: int = 100, beam_size: int = 1, end_id: int = 1,
                 name: str | None = None) -> None:
        if not isinstance(state_cell, StateCell):
            raise InvalidType("BeamSearchDecoder: state_cell must be a StateCell, got %s" % type(state_cell).__name__)
        self._helper = LayerHelper("beam_search_decoder", name=name)
        self._counter = fill_constant(shape=[1], dtype="int64", value=0)
        self._max_len = fill_constant(shape=[1], dtype="int64", value=max_len)
        self._cond = less_than(self._counter, fill_constant(shape=[1], dtype="int64", value=max_len))
        self._while_op = While(self._cond)
        self._zero_idx = fill_constant(shape=[1], dtype="int64", value=0, force_cpu=True)
        self._state_cell = state_cell
        self._state_cell._enter_decoder(self)
        self._status = BeamSearchDecoder.BEFORE_BEAM_SEARCH_DECODER
        self._array_of: dict[str, Any] = {}
        self._array_link: list[Any] = []
        self._ids_array: Any = None
        self._scores_array: Any = None
        self._beam_size, self._end_id, self._init_ids, self._init_scores = beam_size, end_id, init_ids, init_scores
        self._target_dict_dim, self._topk_size = target_dict_dim, topk_size
        self._sparse_emb, self._word_dim, self._input_var_dict = sparse_emb, word_dim, input_var_dict

    def _parent(self):
        program = self._helper.main_program
        return program.block(program.current_block().parent_idx)

    def _hold(self, name, init):
        return _ArrayState(name, self._parent(), init)

    def _inside(self, method):
        if self._status != BeamSearchDecoder.IN_BEAM_SEARCH_DECODER:
            raise InvalidValue("BeamSearchDecoder.%s must be called inside `with decoder.block()`" % method)

    @contextlib.contextmanager
    def block(self) -> Iterator[None]:
        """Context manager for the layers of one step.

        Raises:
            ValueError: there is already a block.
        """
        if self._status != BeamSearchDecoder.BEFORE_BEAM_SEARCH_DECODER:
            raise InvalidValue("BeamSearchDecoder.block must be called only once")
        self._status = BeamSearchDecoder.IN_BEAM_SEARCH_DECODER
        with self._while_op.block():
            yield
            with Switch() as switch, switch.case(self._cond):
                increment(self._counter, value=1.0, in_place=True)
                for value, array in self._array_link:
                    array_write(value, self._counter, array)
                less_than(self._counter, self._max_len, cond=self._cond)
        self._status = BeamSearchDecoder.AFTER_BEAM_SEARCH_DECODER
        self._state_cell._leave_decoder(self)

    @property
    def state_cell(self) -> StateCell:
        """StateCell: the cell. Available inside of the block."""
        self._inside("state_cell")
        return self._state_cell

    @property
    def type(self) -> int:
        """int: 2."""
        return 2

    def early_stop(self) -> None:
        """Ends the search with this step."""
        fill_constant(shape=[1], value=0, dtype="bool", force_cpu=True, out=self._cond)

    def _further_inputs(self, scores):
        """Returns the further inputs with one row per beam, and their values for the next step."""
        inputs: dict[str, Any] = {}
        links = []
        for name, first in self._input_var_dict.items():
            if name not in self._state_cell._inputs:
                raise InvalidValue("BeamSearchDecoder: %r of input_var_dict is not an input of the cell" % name)
            before = self.read_array(init=first)
            inputs[name] = sequence_expand(before, scores)
            links.append((before, inputs[name]))
        return inputs, links

    def _step(self, ids, scores):
        """Returns pairs for :meth:`update_array`: tokens and scores of the best continuations of the beams, and further
        inputs."""
        cell = self._state_cell
        words = embedding(ids, size=[self._target_dict_dim, self._word_dim], dtype="float32",
                          is_sparse=self._sparse_emb)
        inputs, links = self._further_inputs(scores)
        for name in cell._init_states:
            cell.set_state(name, sequence_expand(cell.get_state(name), scores))
        for name in cell._inputs:
            inputs.setdefault(name, words)
        cell.compute_state(inputs=inputs)
        state = lod_reset(cell.out_state(), y=scores)
        probabilities, tokens = topk(fc(state, size=self._target_dict_dim, act="softmax"), k=self._topk_size)
        sums = elementwise_add(log(probabilities), reshape(scores, shape=[-1]), axis=0)
        # Fluid 1.8.5 stops beams at token 1 and ignores end_id.
        end_id = 1 if check.exact_fluid() else self._end_id
        best, best_scores = beam_search(ids, scores, tokens, sums, self._beam_size, end_id=end_id, level=0)
        return [(ids, best), (scores, best_scores), *links]

    def decode(self) -> None:
        """Builds the usual search: embeds the tokens, computes probabilities from the out state with a layer ``fc``,
        and keeps the best continuations of each source. If all beams of a source have ended, the source is removed.

        Raises:
            ValueError: the cell does not have an input.
            TypeError: the cell has no updater.
        """
        with self.block():
            ids = self.read_array(init=self._init_ids, is_ids=True)
            scores = self.read_array(init=self._init_scores, is_scores=True)
            links = self._step(ids, scores)
            with Switch() as switch:
                with switch.case(is_empty(links[0][1])):
                    self.early_stop()
                with switch.default():
                    self._state_cell.update_states()
                    for array, value in links:
                        self.update_array(array, value)

    def read_array(self, init: Variable, is_ids: bool = False, is_scores: bool = False) -> Variable:
        """Returns the value that :meth:`update_array` set in the previous step.

        Args:
            init (Variable): value in the first step.
            is_ids (bool): the values are the tokens of the sentences. Default False.
            is_scores (bool): the values are the scores of the beams. Default False.

        Returns:
            Variable: like ``init``.

        Raises:
            ValueError: it is called outside of the block, or both ``is_ids`` and ``is_scores`` are set.
            TypeError: an argument is not a Variable.
        """
        self._inside("read_array")
        if is_ids and is_scores:
            raise InvalidValue("BeamSearchDecoder.read_array: at most one of is_ids and is_scores must be True")
        check.variable(init, "init", "BeamSearchDecoder.read_array")
        parent = self._parent()
        array = parent.create_var(name=unique_name.generate("beam_search_decoder_array"),
                                  type=VarType.LOD_TENSOR_ARRAY, dtype=init.dtype)
        parent.append_op(type="write_to_array", inputs={"X": init, "I": self._zero_idx}, outputs={"Out": array})
        if is_ids:
            self._ids_array = array
        elif is_scores:
            self._scores_array = array
        now = array_read(array, self._counter)
        self._array_of[now.name] = array
        return now

    def update_array(self, array: Variable, value: Variable) -> None:
        """Sets the value that :meth:`read_array` returns in the next step.

        Args:
            array (Variable): result of :meth:`read_array`.
            value (Variable): new value, with the same shape.

        Raises:
            ValueError: it is called outside of the block, or ``array`` is not a result of :meth:`read_array`.
            TypeError: an argument is not a Variable.
        """
        self._inside("update_array")
        check.variable(array, "array", "BeamSearchDecoder.update_array")
        check.variable(value, "value", "BeamSearchDecoder.update_array")
        if array.name not in self._array_of:
            raise InvalidValue("BeamSearchDecoder.update_array: array must come from read_array, got %s" % array.name)
        self._array_link.append((value, self._array_of[array.name]))

    def __call__(self) -> Any:
        """Returns the sentences that were found.

        Returns:
            tuple: the tokens and scores of :func:`~fluid.layers.beam_search_decode`.

        Raises:
            ValueError: it is called before the end of the block.
            TypeError: there is no array of tokens or of scores.
        """
        if self._status != BeamSearchDecoder.AFTER_BEAM_SEARCH_DECODER:
            raise InvalidValue("BeamSearchDecoder: call it after `with decoder.block()`, which computes the results")
        return beam_search_decode(ids=self._ids_array, scores=self._scores_array, beam_size=self._beam_size,
                                  end_id=self._end_id)


arguments.explain(globals())
