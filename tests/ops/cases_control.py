"""Operators that run blocks, choose between branches or read what a thread feeds."""
from op_case import skip

for op in ("conditional_block", "conditional_block_grad", "select_input", "select_output", "while", "while_grad"):
    skip(op, "runs or follows a sub-block: tests of control flow")
for op in ("write_to_array", "write_to_array_grad", "read_from_array", "read_from_array_grad", "lod_array_length"):
    skip(op, "arrays of tensors: tests/python/test_loops.py")
for op in ("create_py_reader", "create_double_buffer_reader", "read"):
    skip(op, "reads what a thread feeds: tests/python/test_data_loader.py")
