"""Parts of Fluid that were young when its interface was fixed."""
from . import data_generator

__all__ = ["data_generator"]
