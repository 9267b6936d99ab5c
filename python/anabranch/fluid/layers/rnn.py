"""Names of Fluid's ``fluid.layers.rnn`` that are available here. Written by tools/generate_modules.py."""
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
