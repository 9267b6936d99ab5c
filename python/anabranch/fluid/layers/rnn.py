"""Names of Fluid's ``fluid.layers.rnn`` that are available here. Written by tools/generate_modules.py."""
from typing import TYPE_CHECKING as _TYPE_CHECKING

from ... import _on_demand

if _TYPE_CHECKING:
    from .beam_decoder import BeamSearchDecoder
    from .beams import beam_search, beam_search_decode
    from .cells import GRUCell, LSTMCell, RNNCell, rnn
    from .decode_helpers import BasicDecoder, DecodeHelper, GreedyEmbeddingHelper, SampleEmbeddingHelper, TrainingHelper
    from .decoding import Decoder, dynamic_decode
    from .recurrent import dynamic_gru, dynamic_lstm, dynamic_lstmp, gru_unit, lstm_unit
    from .stacked import lstm

__all__ = [
    "BasicDecoder", "BeamSearchDecoder", "DecodeHelper", "Decoder", "GRUCell", "GreedyEmbeddingHelper", "LSTMCell",
    "RNNCell", "SampleEmbeddingHelper", "TrainingHelper", "beam_search", "beam_search_decode", "dynamic_decode",
    "dynamic_gru", "dynamic_lstm", "dynamic_lstmp", "gru_unit", "lstm", "lstm_unit", "rnn",
]

_on_demand.give(__name__, {
    ".beam_decoder": "BeamSearchDecoder",
    ".beams": "beam_search beam_search_decode",
    ".cells": "GRUCell LSTMCell RNNCell rnn",
    ".decode_helpers": "BasicDecoder DecodeHelper GreedyEmbeddingHelper SampleEmbeddingHelper TrainingHelper",
    ".decoding": "Decoder dynamic_decode",
    ".recurrent": "dynamic_gru dynamic_lstm dynamic_lstmp gru_unit lstm_unit",
    ".stacked": "lstm",
})
