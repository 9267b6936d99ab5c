"""Operators that the pass place_on_devices puts where values move between places."""
from op_case import skip

skip("copy_between_places", "stands where values move between places: tests/python/test_devices.py")
skip("squares_of_rows", "stands for several ops there: tests/python/test_device_versions.py")
skip("rows_of_block", "sparse rows of a device become those of the CPU: tests/python/test_device_rows.py")
for name in ("batch_norm_sums", "batch_norm_by_sums", "batch_norm_grad_by_sums"):
    skip(name, "stands for batch_norm of replicas on devices: tests/python/test_device_sync_norm.py")
