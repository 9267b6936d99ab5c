"""Operators that the engine puts into programs: they need replicas or sub-blocks, which a case of one operator has not."""
from op_case import skip

for op in ("all_reduce", "barrier", "replica_weight"):
    skip(op, "joins replicas: tests/python/test_data_parallel.py")
skip("copy_value", "stands between two values of a variable: tests/python/test_written_twice.py")
for op in ("conv2d_fusion", "fused_adam", "fused_batch_norm_act", "fused_batch_norm_act_grad", "fused_elementwise",
           "fused_fc", "fused_fc_grad", "fused_momentum", "fused_sgd", "reorder_channels"):
    skip(op, "made of several ops by a pass: tests/passes")
for op in ("conditional_block", "conditional_block_grad", "select_input", "select_output"):
    skip(op, "runs or follows a sub-block: tests of control flow")
for op in ("create_growable_table", "lookup_growable", "lookup_growable_grad", "growable_update"):
    skip(op, "works on a table, which is no tensor: tests/python/test_growable_table.py")
for op in ("create_py_reader", "create_double_buffer_reader", "read"):
    skip(op, "reads what a thread feeds: tests/python/test_data_loader.py")
