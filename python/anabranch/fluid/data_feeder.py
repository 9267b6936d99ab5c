"""Fluid's name for :mod:`reading.data_feeder`."""
from .reading.data_feeder import DataFeeder, check_dtype, check_type, check_variable_and_dtype, convert_dtype

__all__ = ["DataFeeder", "check_dtype", "check_type", "check_variable_and_dtype", "convert_dtype"]
