"""Decoders for training and for beam search, written with a cell whose states have names."""
from . import beam_search_decoder
from .beam_search_decoder import BeamSearchDecoder
from .states import InitState, StateCell
from .training_decoder import TrainingDecoder

__all__ = ["BeamSearchDecoder", "InitState", "StateCell", "TrainingDecoder", "beam_search_decoder"]
