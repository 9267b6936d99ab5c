"""Operators that run blocks, choose between branches or read what a thread feeds."""
from op_case import skip

for op in ("conditional_block", "conditional_block_grad", "conditional_block_infer", "select_input", "select_output",
           "while", "while_grad"):
    skip(op, "runs or follows a sub-block: tests of control flow")
skip("add_to_sum", "adds to the sums that iterations of a gradient block pass on: tests/python/loops/test_loop_sums.py")
for op in ("write_to_array", "write_to_array_grad", "read_from_array", "read_from_array_grad", "lod_array_length"):
    skip(op, "arrays of tensors: tests/python/loops/test_loops.py")
for op in ("recurrent", "recurrent_grad", "rnn_memory_helper", "rnn_memory_helper_grad", "lod_rank_table",
           "max_sequence_len", "lod_tensor_to_array", "lod_tensor_to_array_grad", "array_to_lod_tensor",
           "array_to_lod_tensor_grad", "reorder_lod_tensor_by_rank", "reorder_lod_tensor_by_rank_grad",
           "shrink_rnn_memory", "shrink_rnn_memory_grad", "split_lod_tensor", "split_lod_tensor_grad",
           "merge_lod_tensor", "merge_lod_tensor_grad", "merge_lod_tensor_infer", "tensor_array_to_tensor",
           "tensor_array_to_tensor_grad"):
    skip(op, "steps of sequences, branches of rows: tests/python/loops/test_recurrent_blocks.py")
for op in ("create_py_reader", "create_double_buffer_reader", "read"):
    skip(op, "reads what a thread feeds: tests/python/reading/test_data_loader.py")
skip("get_places", "its output is not a tensor: tests/python/layers/test_file_ops.py")
for op in ("print", "py_func"):
    skip(op, "reaches out of the program: tests/python/layers/test_py_func.py")
