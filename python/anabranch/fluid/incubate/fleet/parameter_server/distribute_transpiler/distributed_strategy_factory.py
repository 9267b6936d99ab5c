"""The factory of strategies under the name that Fluid 1.7 gave it."""
from __future__ import annotations

from .distributed_strategy import StrategyFactory

__all__ = ["DistributedStrategyFactory"]


class DistributedStrategyFactory(StrategyFactory):
    """As ``StrategyFactory``.

    Examples:
        >>> type(DistributedStrategyFactory.create_half_async_strategy()).__name__
        'HalfAsyncStrategy'
    """
