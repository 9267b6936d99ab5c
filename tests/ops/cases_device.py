"""Operators that the pass place_on_devices puts where values move between places."""
from op_case import skip

skip("copy_between_places", "stands where values move between places: tests/python/devices/test_devices.py")
skip("rows_of_block", "sparse rows of a device become those of the CPU: tests/python/devices/test_device_rows.py")
