"""What SECURITY.md promises of models that come from others."""
import os
import subprocess
import sys

import numpy as np
import pytest
from repository import ROOT
from sanitized import SANITIZED

import anabranch.fluid as fluid
from anabranch import _core

# Ops that no model from a stranger may hold: those that replicas need, and readers, which belong to a process.
REFUSED = {"all_reduce", "barrier", "copy_between_places", "copy_value", "empty_array", "broadcast_from_owner",
           "replica_weight", "ring_sum", "ring_weight", "rows_of_block", "trainer_weight", "py_func", "print",
           "create_py_reader", "create_double_buffer_reader",
           # of clusters, also those that only cut and join: a saved model has no use for them
           "send", "recv", "send_barrier", "fetch_barrier", "listen_and_serv", "prefetch", "distributed_lookup_table",
           "distributed_lookup_growable",
           "checkpoint_notify", "recv_save", "split_byref", "split_ids", "split_selected_rows", "merge_ids",
           "ref_by_trainer_id", "fake_init", "c_allreduce_sum", "c_allreduce_max", "c_allreduce_min",
           "c_allreduce_prod", "c_broadcast", "c_allgather", "c_reducescatter", "c_sync_calc_stream",
           "c_sync_comm_stream", "c_gen_nccl_id", "gen_nccl_id", "c_comm_init", "c_comm_init_all", "allreduce",
           "broadcast", "fl_listen_and_serv",
           # files
           "save", "save_combine", "load", "load_combine"}
COMPUTING = ("loss", "math", "metric", "nn", "optim", "reduce", "sequence", "sparse", "tensor", "vision")
EFFECTS = ("<fstream>", "<cstdio>", "<filesystem>", "<fcntl.h>", "<unistd.h>", "<sys/socket.h>", "<dlfcn.h>",
           "<Python.h>", "system(", "popen(", "std::cout", "fmt::print", "getenv", "nanobind")


def save_model(folder):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        x = fluid.data("x", [None, 2])
        positive = fluid.layers.reduce_sum(x) > 0.0
        y = fluid.layers.cond(positive, lambda: fluid.layers.fc(x, 3), lambda: fluid.layers.fc(x, 3))
        exe = fluid.Executor()
        exe.run(startup)
        fluid.io.save_inference_model(str(folder), ["x"], [y], exe, main)


def test_every_op_is_known_to_compute_or_is_refused():
    refused = {op for op in _core.op_types() if not _core.only_computes(op)}
    assert refused == REFUSED & set(_core.op_types())
    assert not _core.only_computes("some_op_of_tomorrow")


@pytest.mark.parametrize("folder", COMPUTING)
def test_ops_of_computing_folders_reach_nothing_else(folder):
    where = os.path.join(ROOT, "src", "ops", folder)
    found = []
    for name in os.listdir(where):
        with open(os.path.join(where, name)) as f:
            text = f.read()
        found += [(name, effect) for effect in EFFECTS if effect in text]
    assert os.listdir(where) and not found


def test_saved_models_load_by_default(tmp_path):
    save_model(tmp_path)
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor()
        program, feeds, targets = fluid.io.load_inference_model(str(tmp_path), exe)
        assert any(op.type == "conditional_block" for op in program.global_block().ops)
        out, = exe.run(program, feed={feeds[0]: np.ones((2, 2), "float32")}, fetch_list=targets)
        assert np.array(out).shape == (2, 3)


@pytest.mark.parametrize("evil", ["barrier", "all_reduce"])
def test_effects_are_refused_unless_trusted(tmp_path, evil):
    save_model(tmp_path)
    with open(tmp_path / "__model__", "rb") as f:
        program = fluid.Program.parse_from_string(f.read())
    block = program.global_block()
    names = [v for v in block.vars if v not in ("feed", "fetch")][:1]
    block.desc.insert_raw_op(1, evil, [("X", names)], [("Out", names)], {"op_role": 0})
    with open(tmp_path / "__model__", "wb") as f:
        f.write(program.desc.serialize_to_string())
    with fluid.scope_guard(fluid.Scope()):
        with pytest.raises(ValueError, match="operator %s does more than compute" % evil):
            fluid.io.load_inference_model(str(tmp_path), fluid.Executor())
        program, _, _ = fluid.io.load_inference_model(str(tmp_path), fluid.Executor(), trusted=True)
        assert any(op.type == evil for op in program.global_block().ops)


def test_effects_hide_in_no_sub_block(tmp_path):
    save_model(tmp_path)
    with open(tmp_path / "__model__", "rb") as f:
        program = fluid.Program.parse_from_string(f.read())
    inner = program.block(program.num_blocks - 1)
    inner.desc.insert_raw_op(0, "barrier", [], [], {"op_role": 0})
    with open(tmp_path / "__model__", "wb") as f:
        f.write(program.desc.serialize_to_string())
    with pytest.raises(ValueError, match="barrier"):
        fluid.io.load_inference_model(str(tmp_path), fluid.Executor())


MEMORY = """
import numpy as np, anabranch.fluid as fluid
x = fluid.layers.fill_constant([%d, 1024, 1024], "float32", 1.0)
y = fluid.layers.reduce_sum(fluid.layers.exp(x))
exe = fluid.Executor()
exe.run(fluid.default_startup_program())
try:
    exe.run(fetch_list=[y])
    print("ran")
except MemoryError as e:
    print(e.kind)
small = fluid.Program()
with fluid.program_guard(small, fluid.Program()):
    z = fluid.layers.fill_constant([4], "float32", 2.0)
print(np.array(exe.run(small, fetch_list=[z])[0]).sum())
"""


@pytest.mark.parametrize("size, ends", [(1, "ran"), (1000, "ResourceExhausted"), (1 << 22, "ResourceExhausted")])
def test_a_run_has_a_limit_of_memory(size, ends):
    done = subprocess.run([sys.executable, "-c", MEMORY % size], capture_output=True, text=True, timeout=60,  # noqa: S603
                          env=dict(os.environ, FLAGS_memory_limit_mb="256", PYTHONPATH=os.pathsep.join(sys.path)))
    assert done.stdout.split() == [ends, "8.0"], done.stderr


def test_links_do_not_lead_out_of_the_folder(tmp_path):
    save_model(tmp_path / "model")
    inside = [n for n in os.listdir(tmp_path / "model") if n != "__model__"][0]
    for name in (inside, "__model__"):
        os.rename(tmp_path / "model" / name, tmp_path / "elsewhere")
        os.symlink(tmp_path / "elsewhere", tmp_path / "model" / name)
        with fluid.scope_guard(fluid.Scope()), pytest.raises(ValueError, match="a link points out of the folder"):
            fluid.io.load_inference_model(str(tmp_path / "model"), fluid.Executor())
        os.remove(tmp_path / "model" / name)
        os.rename(tmp_path / "elsewhere", tmp_path / "model" / name)
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.load_inference_model(str(tmp_path / "model"), fluid.Executor())


@pytest.mark.timeout(20)
def test_named_pipes_are_refused(tmp_path):
    os.mkfifo(tmp_path / "tab")
    with pytest.raises(ValueError, match="not a regular file"):
        fluid.io.load_program_state(str(tmp_path))
    with pytest.raises(ValueError, match="not a regular file"):
        _core.load_growable_table(_core.Scope().var("tab"), None, "tab", str(tmp_path / "tab"))
    with pytest.raises(ValueError, match="not a regular file"):
        fluid.DataFeedDesc(str(tmp_path / "tab"))


@pytest.mark.skipif(SANITIZED, reason="a sanitizer puts red zones around everything")
def test_a_program_file_takes_memory_in_proportion():
    """The smallest op a file can hold, a million times."""
    code = """
import resource
from anabranch import _core
import anabranch.fluid as fluid
op = b"\\x22\\x05\\x1a\\x03abc"
block = b"\\x08\\x00\\x10\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x01" + op * 200000
size, length = len(block), b""
n = size
while n >= 0x80:
    length += bytes([n & 0x7f | 0x80]); n >>= 7
data = b"\\x0a" + length + bytes([n]) + block
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
program = fluid.Program.parse_from_string(data)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / len(data))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60,  # noqa: S603
                          env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))
    assert float(done.stdout) < 200, done.stderr
