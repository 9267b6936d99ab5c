"""Operators that write variables to files and read them."""
import os

import numpy as np
import pytest

import anabranch.fluid as fluid

KINDS = fluid.core.VarDesc.VarType
X = np.arange(6, dtype="float32").reshape(2, 3) / 7
Y = np.array([1, -2], "int64")


def run(feed=None, fetch=(), **ops):
    """Programs of one op each: op -> (inputs, outputs, attributes), names of variables that it makes."""
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        block = program.global_block()
        for name, array in (feed or {}).items():
            array = array[0] if isinstance(array, tuple) else array
            block.create_var(name=name, shape=array.shape, dtype=str(array.dtype))
        for op, (ins, outs, attrs) in ops.items():
            for names in outs.values():
                for name in names:
                    block.create_var(name=name)
            block.append_op(type=op, inputs={s: [block.var(n) for n in v] for s, v in ins.items()},
                            outputs={s: [block.var(n) for n in v] for s, v in outs.items()}, attrs=attrs)
    return fluid.Executor(fluid.CPUPlace()).run(program, feed=feed, fetch_list=list(fetch))


def save(path, **attrs):
    run({"x": X}, save=({"X": ["x"]}, {}, dict(attrs, file_path=str(path))))


def load(path, **attrs):
    return run(None, ["o"], load=({}, {"Out": ["o"]}, dict(attrs, file_path=str(path))))[0]


def test_what_is_saved_is_loaded_by_op_and_by_function(tmp_path):
    save(tmp_path / "a" / "x")
    np.testing.assert_array_equal(load(tmp_path / "a" / "x"), X)
    with fluid.scope_guard(fluid.Scope()):
        program = fluid.Program()
        program.global_block().create_var(name="x", shape=[2, 3], dtype="float32", persistable=True)
        fluid.io.load_persistables(fluid.Executor(), str(tmp_path / "a"), program)
        np.testing.assert_array_equal(np.array(fluid.global_scope().find_var("x").get_tensor()), X)


def test_the_bytes_are_those_of_1_8_5(tmp_path):
    save(tmp_path / "x", save_as_fp16=True)
    head = bytes(16) + b"\x06\x00\x00\x00\x08\x04\x10\x02\x10\x03"
    assert (tmp_path / "x").read_bytes() == head + X.astype("float16").tobytes()


def test_half_precision(tmp_path):
    save(tmp_path / "x")
    got = load(tmp_path / "x", load_as_fp16=True)
    assert got.dtype == np.float16
    np.testing.assert_array_equal(got, X.astype("float16"))


def test_a_part_of_a_file(tmp_path):
    save(tmp_path / "x")
    np.testing.assert_array_equal(load(tmp_path / "x", seek=2, shape=[2, 2]), X.ravel()[2:6].reshape(2, 2))
    for seek, shape in ((5, [2]), (7, [0]), (0, [2**62, 4]), (2**62, [2])):
        with pytest.raises((ValueError, MemoryError)):
            load(tmp_path / "x", seek=seek, shape=shape)


def test_a_file_is_kept_unless_it_may_be_replaced(tmp_path):
    save(tmp_path / "x")
    save(tmp_path / "x")
    with pytest.raises(ValueError, match="overwrite must be true"):
        save(tmp_path / "x", overwrite=False)
    np.testing.assert_array_equal(load(tmp_path / "x"), X)


def test_several_variables_in_one_file(tmp_path):
    path = str(tmp_path / "all")
    run({"x": X, "y": Y}, save_combine=({"X": ["x", "y"]}, {}, {"file_path": path}))
    got = run(None, ["a", "b"], load_combine=({}, {"Out": ["a", "b"]}, {"file_path": path}))
    np.testing.assert_array_equal(got[0], X)
    np.testing.assert_array_equal(got[1], Y)
    for names in (["a"], ["a", "b", "c"]):
        with pytest.raises((ValueError, RuntimeError)):
            run(None, names, load_combine=({}, {"Out": names}, {"file_path": path}))


def test_bytes_in_memory(tmp_path):
    run({"x": X, "y": Y}, save_combine=({"X": ["x", "y"]}, {"Y": ["bytes"]}, {"file_path": "", "save_to_memory": True}))
    assert not os.listdir(tmp_path)
    with pytest.raises(ValueError, match="Y must be given"):
        run({"x": X}, save_combine=({"X": ["x"]}, {}, {"file_path": "", "save_to_memory": True}))


def test_sequences_stay(tmp_path):
    rows = fluid.create_lod_tensor(X, [[1, 1]], fluid.CPUPlace())
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        x = fluid.data("x", [None, 3], lod_level=1)
        x.block.append_op(type="save", inputs={"X": [x]}, outputs={}, attrs={"file_path": str(tmp_path / "x")})
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(program, feed={"x": rows})
    second = fluid.Program()
    out = second.global_block().create_var(name="o")
    second.global_block().append_op(type="load", outputs={"Out": [out]}, attrs={"file_path": str(tmp_path / "x")})
    assert exe.run(second, fetch_list=[out], return_numpy=False)[0].recursive_sequence_lengths() == [[1, 1]]


@pytest.mark.parametrize("content", [b"", b"\0" * 8, b"\1" * 40])
def test_broken_files_are_refused(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises((ValueError, RuntimeError)):
        load(tmp_path / "x")


def test_a_missing_file_and_a_missing_name(tmp_path):
    with pytest.raises((LookupError, OSError)):
        load(tmp_path / "x")
    with pytest.raises(ValueError, match="file_path"):
        load("")


def test_places():
    program = fluid.Program()
    out = program.global_block().create_var(name="places", type=KINDS.PLACE_LIST)
    program.global_block().append_op(type="get_places", outputs={"Out": [out]}, attrs={"device_count": 2})
    assert fluid.Executor(fluid.CPUPlace()).run(program) == []
    for attrs in ({"device_type": "CUDA"}, {"device_type": "x"}, {"device_count": -1}):
        with pytest.raises(ValueError):
            program.global_block().append_op(type="get_places", outputs={"Out": [out]}, attrs=attrs)
            fluid.Executor(fluid.CPUPlace()).run(program)


def test_places_of_old_programs():
    from anabranch.fluid.layers import device

    with fluid.program_guard(fluid.Program(), fluid.Program()):
        with pytest.warns(DeprecationWarning, match="with_data_parallel"):
            places = [device.get_places(), device.get_places(2, "CPU"), device.get_places(None, "CUDA")]
        assert [(v.name, v.type) for v in places] == [("get_places_%d.out_0" % i, KINDS.PLACE_LIST) for i in range(3)]
        with pytest.raises(ValueError, match="CUDA"):
            fluid.Executor(fluid.CPUPlace()).run(fluid.default_main_program())
        for wrong in ((-1,), (2, "XX")):
            with pytest.raises(ValueError), pytest.warns(DeprecationWarning):
                device.get_places(*wrong)
