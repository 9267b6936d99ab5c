"""Operators that run blocks, choose between branches or read what a thread feeds."""
from op_case import skip

for op in ("conditional_block", "conditional_block_grad", "select_input", "select_output"):
    skip(op, "runs or follows a sub-block: tests of control flow")
for op in ("create_py_reader", "create_double_buffer_reader", "read"):
    skip(op, "reads what a thread feeds: tests/python/test_data_loader.py")
