"""Ops that need other processes: their declarations, and that they are refused outside a cluster."""
import json
import os

import pytest
from repository import TESTS

import anabranch.fluid as fluid
from anabranch import _core

#: The ops of clusters as Fluid 1.8.5 declares them: attributes with defaults, "-" where they must be given.
DECLARED = {
    "send": {"trainer_id": 0, "epmap": ["127.0.0.1:6164"], "sections": [], "send_varnames": [], "num": 0,
             "merge_add": False, "use_send_handler": True},
    "recv": {"epmap": [], "trainer_id": 0, "with_barrier": True, "varnames": [], "recv_varnames": [], "do_not_run": 0},
    "send_barrier": {"trainer_id": 0, "endpoints": ["127.0.0.1:6164"], "half_async": False},
    "fetch_barrier": {"trainer_id": 0, "endpoints": ["127.0.0.1:6164"]},
    "listen_and_serv": {"endpoint": "127.0.0.1:6164", "pserver_id": -1, "grad_to_block_id": [], "distributed_mode": 0,
                        "dc_asgd": False, "optimize_blocks": [], "prefetch_var_name_to_block_id": [],
                        "sparse_grad_to_param": [], "Fanin": 1, "checkpint_block_id": -1, "lr_decay_block_id": -1,
                        "rpc_get_thread_num": 1, "rpc_send_thread_num": 1, "rpc_prefetch_thread_num": 1},
    "prefetch": {"trainer_id": 0, "epmap": ["127.0.0.1:6164"]},
    "checkpoint_notify": {"epmap": ["127.0.0.1:6164"], "dir": "-", "lookup_table": "-", "trainer_id": "-"},
    "recv_save": {"dtype": 5, "overwrite": True, "file_path": "-", "shape": "-", "slice_varnames": "-",
                  "remote_varnames": "-", "slice_shapes": "-", "endpoints": "-", "trainer_id": "-"},
    "c_allreduce_sum": {"ring_id": 0, "use_calc_stream": False},
    "c_allreduce_max": {"ring_id": 0, "use_calc_stream": False},
    "c_allreduce_min": {"ring_id": 0, "use_calc_stream": False},
    "c_allreduce_prod": {"ring_id": 0, "use_calc_stream": False},
    "c_broadcast": {"ring_id": 0, "root": 0, "use_calc_stream": False},
    "c_allgather": {"ring_id": 0, "use_calc_stream": False, "nranks": "-"},
    "c_reducescatter": {"ring_id": 0, "nranks": 1, "use_calc_stream": False},
    "c_comm_init": {"nranks": "-", "rank": "-", "ring_id": "-"},
    "c_comm_init_all": {"devices": [], "ring_id": 0},
}
GIVEN = {"dir": "d", "lookup_table": "t", "trainer_id": 1, "file_path": "f", "shape": [4], "slice_varnames": ["a"],
         "remote_varnames": ["a"], "slice_shapes": ["4"], "endpoints": ["h:1"], "nranks": 2, "rank": 0, "ring_id": 0}


def appended(op, **attrs):
    block = fluid.Program().global_block()
    ins, outs = _core.op_slots(op)
    x = block.create_var(name="x", shape=[4, 3], dtype="float32", persistable=True)
    y = block.create_var(name="y", shape=[4, 3], dtype="float32", persistable=True)
    return block.append_op(type=op, inputs={s: [x] for s in ins}, outputs={s: [y] for s in outs}, attrs=attrs)


@pytest.mark.parametrize("op", sorted(DECLARED))
def test_attributes_have_fluids_defaults(op):
    given = {k: GIVEN[k] for k, v in DECLARED[op].items() if v == "-"}
    made = appended(op, **given)
    expected = {k: given.get(k, v) for k, v in DECLARED[op].items()}
    assert {k: made.attr(k) for k in expected} == expected
    for name in given:
        with pytest.raises(ValueError, match=name):
            appended(op, **{k: v for k, v in given.items() if k != name})


@pytest.mark.parametrize("op", ["c_allreduce_sum", "c_broadcast"])
def test_without_a_connection_a_run_says_so(op):
    made = appended(op)
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    import numpy
    with fluid.scope_guard(scope):
        for name in ("x", "y"):
            scope.var(name).get_tensor().set(numpy.zeros((4, 3), "float32"), fluid.CPUPlace())
        with pytest.raises(RuntimeError, match="has not joined ring 0: run the startup program"):
            exe.run(made.block.program)


def test_a_table_that_others_hold_takes_no_memory():
    program = fluid.Program()
    table = program.global_block().create_var(name="table", shape=[10**12, 8], dtype="float32", persistable=True)
    program.global_block().append_op(type="fake_init", outputs={"Out": [table]}, attrs={"shape": [10**12, 8]})
    scope = fluid.Scope()
    with fluid.scope_guard(scope):
        fluid.Executor(fluid.CPUPlace()).run(program)
    assert not scope.find_var("table").get_tensor()._is_initialized()


@pytest.mark.parametrize("attrs, word", [({}, "same length"), ({"table_names": ["t"], "height_sections": [4]}, "Ids"),
                                         ({"lookup_table_version": "x"}, "lookup_table_version")])
def test_a_request_for_rows_is_checked(attrs, word):
    with pytest.raises(ValueError, match=word):
        appended("distributed_lookup_table", **attrs)


@pytest.mark.parametrize("attrs, word", [
    ({}, "same length"), ({"height_sections": [4]}, "must be -1"), ({"width": 0}, "width"),
    ({"last_is_one": True}, "Ids")])
def test_a_request_for_keys_is_checked(attrs, word):
    program = fluid.Program()
    block = program.global_block()
    ids = block.create_var(name="ids", shape=[2, 3], dtype="int64")
    w = block.create_var(name="w", shape=[-1, 4], dtype="float32")
    full = {"table_names": ["t"], "endpoints": ["local:1"], "height_sections": [-1], "width": 4, **attrs}
    with pytest.raises(ValueError, match=word):
        block.append_op(type="distributed_lookup_growable", inputs={"Ids": [ids], "W": [w]},
                        outputs={"Outputs": [block.create_var(name="out%d" % k, dtype="float32")
                                             for k in range(1 if attrs else 2)]}, attrs=full)


def test_untrusted_models_hold_none_of_them():
    refused = [op for op in _core.op_types() if "ops/distributed/" in (_core.op_info(op).get("file") or "")] \
        if "file" in _core.op_info("send") else [*DECLARED, "split_ids", "merge_ids", "fake_init", "gen_nccl_id"]
    assert len(refused) > 15 and not any(_core.only_computes(op) for op in refused)


def test_golden_programs_name_only_what_is_declared():
    folder = os.path.join(TESTS, "golden", "transpile")
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name)) as file:
            parts = json.load(file)
        missing = {op["type"] for blocks in parts.values() for b in blocks for op in b["ops"]} - set(_core.op_types())
        assert not missing, name
