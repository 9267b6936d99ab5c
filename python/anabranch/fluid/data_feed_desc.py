"""Fluid's name for :mod:`reading.data_feed_desc`."""
from .reading.data_feed_desc import DataFeedDesc

__all__ = ["DataFeedDesc"]
