"""The factory of strategies, under its name in Fluid 1.7."""
from __future__ import annotations

from .distributed_strategy import StrategyFactory

__all__ = ["DistributedStrategyFactory"]


class DistributedStrategyFactory(StrategyFactory):
    """Same as ``StrategyFactory``.

    Examples:
        >>> type(DistributedStrategyFactory.create_half_async_strategy()).__name__
        'HalfAsyncStrategy'
    """
