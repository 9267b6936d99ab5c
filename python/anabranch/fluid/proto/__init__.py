"""Modules of messages. The names of ``fluid.proto``."""
from . import framework_pb2

__all__ = ["framework_pb2"]
