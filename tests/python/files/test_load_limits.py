"""Loading takes memory for what the file holds, not for what it says: twice its size and 64 MiB at most."""
import os
import struct
import subprocess
import sys

import numpy as np
import pytest

import anabranch.fluid as fluid
from anabranch.fluid.io.state_file import dump_state, load_state

CHILD = """
import resource, sys
import anabranch.fluid as fluid
from anabranch import _core
path, before = sys.argv[1], None
with open("/proc/self/statm") as f:
    before = int(f.read().split()[0]) * resource.getpagesize()
size = __import__("os").path.getsize(path)
resource.setrlimit(resource.RLIMIT_AS, (before + 2 * size + (64 << 20),) * 2)
try:
    %s
    print("loaded")
except fluid.core.EnforceNotMet as e:
    print(e.kind)
"""
STATE = "found = fluid.io.load_program_state(path)"
TABLE = "_core.load_growable_table(_core.Scope().var('t'), None, 't', path)"


def load(code, path):
    """The end of loading a file, in a process with no more memory than is promised."""
    done = subprocess.run([sys.executable, "-c", CHILD % code, str(path)], timeout=60, capture_output=True,  # noqa: S603
                          text=True, env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)), check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def laugh(n):
    deeper = b"".join(b"0]q" + bytes([i]) + (b"h" + bytes([i - 1]) + b"a") * 2 for i in range(2, n))
    return b"\x80\x02}q\x00X\x01\x00\x00\x00w]q\x01K\x01a" + deeper + b"s."


BOMBS = {
    "lists": laugh(60),
    "dicts": b"\x80\x02" + b"}" * 3_000_000 + b".",
    "tuples": b"\x80\x02" + b")" + b"\x85" * 3_000_000 + b".",
    "wide": b"\x80\x02(" + b")" * 2_000_000 + b"t.",
    "marks": b"\x80\x02" + b"(" * 3_000_000 + b".",
    "numbers": b"\x80\x02(" + b"K\x07" * 2_000_000 + b"t.",
    "memo of names": b"\x80\x02X\x01\x00\x00\x00a" + b"".join(b"r" + struct.pack("<I", i) + b"j" + struct.pack("<I", i)
                                                           for i in range(400_000)) + b".",
}


def test_a_large_number_of_the_memo_is_only_a_number(tmp_path):
    path = tmp_path / "m.pdparams"
    path.write_bytes(b"\x80\x02}r" + struct.pack("<I", 400_000_000) + b".")
    assert load(STATE, path) == "loaded"


@pytest.mark.parametrize("name", sorted(BOMBS))
def test_bombs_are_refused(tmp_path, name):
    path = tmp_path / "m.pdparams"
    path.write_bytes(BOMBS[name])
    assert load(STATE, path) == "InvalidArgument"


def test_one_text_does_not_become_many_arrays():
    data = b"B" + struct.pack("<I", 1 << 14) + b"x" * (1 << 14)
    dtype = b"cnumpy\ndtype\nX\x02\x00\x00\x00u1K\x00K\x01\x87R"
    array = (b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R"
             b"(K\x01M\x00\x40\x85" + dtype + b"\x89h\x01tb")

    def state(count):
        items = b"".join(b"X\x04\x00\x00\x00%04d" % i + array + b"s" for i in range(count))
        return b"\x80\x02}X\x01\x00\x00\x00w" + data + b"q\x01s" + items + b"."

    found = load_state(state(3), "file")
    assert len(found) == 4 and (found["0002"] == ord("x")).all()
    with pytest.raises(ValueError, match="more elements than the file"):
        load_state(state(100), "file")


def test_states_of_honest_files_fit(tmp_path):
    rng = np.random.RandomState(3)
    state = {"w": rng.randint(0, 256, 48 << 20).astype("uint8"), "z": np.zeros(24 << 20, "uint8"), "b": np.ones(3)}
    path = tmp_path / "m.pdparams"
    path.write_bytes(dump_state(state))
    assert load(STATE, path) == "loaded"
    found = load_state(path.read_bytes(), "file")
    assert all(np.array_equal(found[name], state[name]) for name in state) and found["w"].flags.writeable


def test_the_loader_stays_what_it_is():
    evil = b"\x80\x02c_codecs\nencode\n(N}X\x0c\x00\x00\x00__defaults__(X\x03\x00\x00\x00footstb0}."
    with pytest.raises(ValueError):
        load_state(evil, "file")
    with pytest.raises(ValueError):
        load_state(evil.replace(b"b0}.", b"b."), "file")


def saved_table(path, max_bytes, rows=30):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        words = fluid.data("w", [None], "int64")
        rows_of = fluid.embedding(words, [-1, 4], is_sparse=True,
                                  param_attr=fluid.GrowableTable("tab", max_bytes=max_bytes))
        loss = fluid.layers.mean(rows_of)
        fluid.optimizer.SGD(0.1).minimize(loss)
        exe = fluid.Executor()
        exe.run(startup)
        exe.run(main, feed={"w": np.arange(rows)}, fetch_list=[loss])
        fluid.io.save_persistables(exe, str(path), main)
    return path / "tab"


@pytest.mark.parametrize("limit", [(1 << 36) + (1 << 20), 1 << 62])
def test_the_limit_of_a_table_is_no_reason_to_take_memory(tmp_path, limit):
    path = saved_table(tmp_path, 1 << 20)
    data = bytearray(path.read_bytes())
    data[48:56] = struct.pack("<q", limit)
    path.write_bytes(data)
    assert load(TABLE, path) == "loaded"


@pytest.mark.parametrize("max_bytes", [0, 64 << 20, 1 << 33])
def test_tables_of_narrow_rows_fit(tmp_path, max_bytes):
    rows = 1_500_000 if max_bytes != 64 << 20 else 500_000
    header = struct.pack("<8s9q4f", b"ABTABLE1", 1, 0, rows, 5, 1, max_bytes, 0, 1, 1, 0, 1, 0, 1)
    body = np.zeros(rows, [("key", "<i8"), ("seen", "<u4"), ("x", "<f4")])
    body["key"] = np.arange(rows)
    path = tmp_path / "t"
    path.write_bytes(header + body.tobytes())
    assert load(TABLE, path) == "loaded"


def test_times_of_a_forged_table_are_times(tmp_path):
    """Bit 31 of the time of a row is the engine's own mark."""
    path = saved_table(tmp_path, 0)
    data = bytearray(path.read_bytes())
    for row in range(30):
        at = 96 + row * 28 + 8
        data[at:at + 4] = struct.pack("<I", 0xffffffff - row)
    path.write_bytes(data)
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        words = fluid.data("w", [None], "int64")
        loss = fluid.layers.mean(fluid.embedding(words, [-1, 4], is_sparse=True, param_attr=fluid.GrowableTable("tab")))
        fluid.optimizer.SGD(0.1).minimize(loss)
        exe = fluid.Executor()
        exe.run(startup)
        fluid.io.load_persistables(exe, str(tmp_path), main)
        keys = np.arange(30)
        before = np.array(exe.run(main.clone(for_test=True), feed={"w": keys}, fetch_list=[loss])[0])
        exe.run(main, feed={"w": keys}, fetch_list=[loss])
        after = np.array(exe.run(main.clone(for_test=True), feed={"w": keys}, fetch_list=[loss])[0])
        assert np.isclose(before - after, 0.1 / 120, rtol=1e-3) and np.isfinite(after)
