"""Operators that join replicas, or that the executor puts between values."""
from op_case import skip

for op in ("all_reduce", "barrier", "replica_weight"):
    skip(op, "joins replicas: tests/python/replicas/test_data_parallel.py")
skip("broadcast_from_owner", "gives replicas on devices what one has updated: tests/python/devices/test_device_collectives.py")
skip("empty_array", "starts an array in each step: tests/python/loops/test_loops.py")
skip("copy_value", "stands between two values of a variable: tests/python/program/test_written_twice.py")
