"""The names of Fluid's ``fluid.layers.rnn`` that are here. Written by tools/generate_modules.py."""
from .cells import GRUCell, LSTMCell, RNNCell, rnn
from .recurrent import dynamic_gru, dynamic_lstm, dynamic_lstmp, gru_unit, lstm_unit

__all__ = [
    "GRUCell", "LSTMCell", "RNNCell", "dynamic_gru", "dynamic_lstm", "dynamic_lstmp", "gru_unit", "lstm_unit", "rnn",
]
