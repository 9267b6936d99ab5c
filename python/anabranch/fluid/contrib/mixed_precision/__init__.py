"""Training with products of lower precision and scaled losses."""
from . import decorator, fp16_lists
from .decorator import decorate
from .fp16_lists import AutoMixedPrecisionLists

__all__ = ["decorate", "AutoMixedPrecisionLists", "decorator", "fp16_lists"]
