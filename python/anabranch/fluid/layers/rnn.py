"""The names of Fluid's ``fluid.layers.rnn`` that are here. Written by tools/generate_modules.py."""
from .beams import beam_search, beam_search_decode
from .recurrent import dynamic_gru, dynamic_lstm, dynamic_lstmp, gru_unit, lstm_unit
from .stacked import lstm

__all__ = [
    "beam_search", "beam_search_decode", "dynamic_gru", "dynamic_lstm", "dynamic_lstmp", "gru_unit", "lstm",
    "lstm_unit",
]
