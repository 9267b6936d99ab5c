"""Small programs, one a layer, optimizer or error; what Paddle 1.8.5 makes of each is in ../data/layer_programs.json.gz.

Each case is a function of the interface: case(name, lambda f, L: ...), f the module fluid, L its layers. One file holds
one part of the interface; files that are added are listed here.
"""
from . import (  # noqa: F401
    contrib_recurrent,
    control_flow,
    decoders,
    dense,
    detection,
    elementwise,
    images,
    losses,
    ranking,
    resized,
    rest,
    sequences,
    tensors,
    training,
)
from .common import CASES  # noqa: F401
