""":class:`Checkpoints`, which saves training runs and resumes them."""
from .training import Checkpoints as Checkpoints

__all__ = ["Checkpoints"]
