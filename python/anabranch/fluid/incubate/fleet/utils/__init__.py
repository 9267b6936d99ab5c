"""Helpers for jobs on clusters."""
from ....._on_demand import modules as _modules

__getattr__ = _modules(__name__, "fleet_barrier_util", "fleet_util", "hdfs", "utils")
