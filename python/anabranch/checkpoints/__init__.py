"""Training runs that are taken up where they were: :class:`Checkpoints`."""
from .training import Checkpoints as Checkpoints

__all__ = ["Checkpoints"]
