"""The names of Fluid's ``fluid.layers.rnn`` that are here. Written by tools/generate_modules.py."""
from .beams import beam_search, beam_search_decode
from .cells import GRUCell, LSTMCell, RNNCell, rnn
from .recurrent import dynamic_gru, dynamic_lstm, dynamic_lstmp, gru_unit, lstm_unit
from .stacked import lstm

__all__ = [
    "GRUCell", "LSTMCell", "RNNCell", "beam_search", "beam_search_decode", "dynamic_gru", "dynamic_lstm",
    "dynamic_lstmp", "gru_unit", "lstm", "lstm_unit", "rnn",
]
