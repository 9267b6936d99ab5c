"""Files of variables and programs: bytes, round trips, damage."""
import os
import pathlib
import pickle
import pickletools

import numpy as np
import pytest
from repository import TESTS

import anabranch.fluid as fluid
from anabranch.fluid.io.state_file import dump_state, load_state


@pytest.fixture
def net():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        x = fluid.data("x", [None, 3])
        pred = fluid.layers.fc(fluid.layers.fc(x, 4, act="tanh"), 1)
        loss = fluid.layers.mean(pred)
        fluid.optimizer.Adam(0.01).minimize(loss)
        exe = fluid.Executor()
        exe.run(startup)
        yield main, exe, pred


def values(main):
    scope = fluid.global_scope()
    return {v.name: np.array(scope.find_var(v.name).get_tensor()) for v in main.list_vars() if v.persistable}


def spoil(main):
    for name, array in values(main).items():
        fluid.global_scope().find_var(name).get_tensor().set(np.full_like(array, 9), fluid.CPUPlace())


def same(a, b):
    return set(a) == set(b) and all(np.array_equal(a[k], b[k]) for k in a)


@pytest.mark.parametrize("filename", [None, "all"])
def test_persistables_round_trip(net, tmp_path, filename):
    main, exe, _ = net
    before = values(main)
    fluid.io.save_persistables(exe, str(tmp_path / "d"), main, filename)
    assert sorted(os.listdir(tmp_path / "d")) == ([filename] if filename else sorted(before))
    spoil(main)
    fluid.io.load_persistables(exe, str(tmp_path / "d"), main, filename)
    assert same(values(main), before)


def test_params_are_the_parameters_only(net, tmp_path):
    main, exe, _ = net
    fluid.io.save_params(exe, str(tmp_path), main)
    assert sorted(os.listdir(tmp_path)) == ["fc_0.b_0", "fc_0.w_0", "fc_1.b_0", "fc_1.w_0"]


def test_stream_bytes(net, tmp_path):
    main, exe, _ = net
    fluid.io.save_vars(exe, str(tmp_path), main, vars=[main.global_block().var("fc_1.b_0")])
    data = (tmp_path / "fc_1.b_0").read_bytes()
    head = bytes(4) + bytes(8) + bytes(4) + b"\x04\x00\x00\x00" + b"\x08\x05\x10\x01"
    assert data == head + values(main)["fc_1.b_0"].tobytes()


def test_vars_by_predicate_and_in_memory(net, tmp_path):
    main, exe, _ = net
    before = values(main)
    fluid.io.save_vars(exe, str(tmp_path), main, predicate=lambda v: v.persistable and v.name.startswith("fc_1"))
    assert all(n.startswith("fc_1") for n in os.listdir(tmp_path))
    data = fluid.io.save_vars(exe, None, main, predicate=fluid.io.is_parameter)
    assert isinstance(data, bytes)
    spoil(main)
    fluid.io.load_vars(exe, None, main, predicate=fluid.io.is_parameter, filename=data)
    assert np.array_equal(values(main)["fc_0.w_0"], before["fc_0.w_0"])
    with pytest.warns(UserWarning, match="no variable"):
        fluid.io.save_vars(exe, str(tmp_path), main, predicate=lambda v: False)
    with pytest.raises(TypeError):
        fluid.io.save_vars(exe, str(tmp_path), 3)
    with pytest.raises(TypeError):
        fluid.io.save_params(exe, None, main, filename="f")


@pytest.mark.parametrize("filename, got", [(b"all", "bytes"), (3, "int"), (["all"], "list")])
def test_a_file_name_is_a_str(net, tmp_path, filename, got):
    main, exe, _ = net
    fluid.io.save_params(exe, str(tmp_path), main, "all")
    for call in (fluid.io.save_params, fluid.io.load_params):
        what = call.__name__.partition("_")[0] + "_vars"
        with pytest.raises(TypeError, match="^%s: filename must be a str, got %s" % (what, got)):
            call(exe, str(tmp_path), main, filename)
    assert os.listdir(tmp_path) == ["all"]


def test_paths_name_folders_and_files(net, tmp_path):
    main, exe, _ = net
    fluid.io.save_params(exe, os.fsencode(str(tmp_path)), main, pathlib.Path("all"))
    fluid.io.load_params(exe, os.fsencode(str(tmp_path)), main, pathlib.Path("all"))
    fluid.io.load_params(exe, tmp_path, main, "all")


def test_nothing_is_loaded_unless_all_can_be(net, tmp_path):
    main, exe, _ = net
    fluid.io.save_persistables(exe, str(tmp_path), main)
    (tmp_path / "learning_rate_0").unlink()
    spoil(main)
    with pytest.raises(fluid.core.EnforceNotMet, match="learning_rate_0"):
        fluid.io.load_persistables(exe, str(tmp_path), main)
    assert all((a == 9).all() for a in values(main).values())


def test_wrong_shape_and_partial_files(net, tmp_path):
    main, exe, _ = net
    fluid.io.save_params(exe, str(tmp_path / "one"), main, "all")
    with pytest.raises(fluid.core.EnforceNotMet):
        fluid.io.load_vars(exe, str(tmp_path / "one"), main, vars=[main.global_block().var("fc_0.b_0")], filename="all")
    fluid.global_scope().find_var("fc_0.w_0").get_tensor().set(np.ones((2, 2), "float32"), fluid.CPUPlace())
    fluid.io.save_params(exe, str(tmp_path / "each"), main)
    with pytest.raises(RuntimeError, match="fc_0.w_0"):
        fluid.io.load_params(exe, str(tmp_path / "each"), main)


def test_uninitialized_variables_are_not_saved(net, tmp_path):
    main, exe, _ = net
    with fluid.scope_guard(fluid.Scope()):
        with pytest.raises(fluid.core.EnforceNotMet, match="fc_0.b_0"):
            fluid.io.save_params(exe, str(tmp_path / "d"), main)
    assert not (tmp_path / "d").exists() or not os.listdir(tmp_path / "d")


@pytest.mark.parametrize("names", [{}, {"model_filename": "net", "params_filename": "weights"}])
def test_inference_model(net, tmp_path, names):
    main, exe, pred = net
    version = main.desc.version
    feed = {"x": np.ones((2, 3), "float32")}
    expected = exe.run(main.clone(for_test=True), feed=feed, fetch_list=[pred])[0]
    out = fluid.io.save_inference_model(str(tmp_path), ["x"], [pred], exe, main, **names)
    assert out == ["save_infer_model/scale_0.tmp_0"] and main.desc.version == version
    files = ["fc_0.b_0", "fc_0.w_0", "fc_1.b_0", "fc_1.w_0"]
    assert sorted(os.listdir(tmp_path)) == (["net", "weights"] if names else ["__model__"] + files)
    with fluid.scope_guard(fluid.Scope()):
        program, feeds, targets = fluid.io.load_inference_model(str(tmp_path), exe, **names)
        ops = [op.type for op in program.global_block().ops]
        assert ops == ["feed", "mul", "elementwise_add", "tanh", "mul", "elementwise_add", "scale", "fetch"]
        assert feeds == ["x"] and [t.name for t in targets] == out
        assert np.array_equal(exe.run(program, feed=feed, fetch_list=targets)[0], expected)
        again = fluid.io.save_inference_model(str(tmp_path / "again"), feeds, targets, exe, program)
        assert len(again) == 1


def test_inference_model_forms(net, tmp_path):
    main, exe, pred = net
    fluid.io.save_inference_model(str(tmp_path / "a"), "x", pred, exe, main, program_only=True)
    assert os.listdir(tmp_path / "a") == ["__model__"]
    fluid.io.save_inference_model(str(tmp_path / "b"), ["x"], [pred], exe, main, export_for_deployment=False)
    assert {"__model__.main_program", "learning_rate_0"} <= set(os.listdir(tmp_path / "b"))
    whole = fluid.Program.parse_from_string((tmp_path / "b" / "__model__.main_program").read_bytes())
    assert "adam" in [op.type for op in whole.global_block().ops]


def test_inference_model_arguments(net, tmp_path):
    main, exe, pred = net
    x = main.global_block().var("x")
    for feeds, targets, program, error in (([x], [pred], main, ValueError), (["x"], ["p"], main, ValueError),
                                           (["x"], [], main, ValueError), (["zz"], [pred], main, ValueError),
                                           (["x"], [pred], 3, TypeError)):
        with pytest.raises(error):
            fluid.io.save_inference_model(str(tmp_path / "d"), feeds, targets, exe, program)
    with pytest.raises(ValueError):
        fluid.io.load_inference_model(str(tmp_path / "nothing"), exe)
    with pytest.raises(ValueError):
        fluid.io.load_inference_model(None, exe)
    with pytest.raises(fluid.core.EnforceNotMet):
        fluid.io.load_inference_model(str(tmp_path), exe)


def test_save_and_load(net, tmp_path):
    main, exe, _ = net
    before = values(main)
    path = str(tmp_path / "ck" / "model")
    fluid.save(main, path)
    assert sorted(os.listdir(tmp_path / "ck")) == ["model.pdmodel", "model.pdopt", "model.pdparams"]
    for suffix in ("", ".pdparams", ".pdopt", ".pdmodel"):
        spoil(main)
        fluid.load(main, path + suffix, exe)
        assert same(values(main), before)
    state = fluid.load_program_state(path)
    assert same(state, before)
    with open(path + ".pdparams", "rb") as f:
        assert sorted(pickle.load(f)) == ["fc_0.b_0", "fc_0.w_0", "fc_1.b_0", "fc_1.w_0"]  # noqa: S301  our own file
    with pytest.raises(AssertionError):
        fluid.save(main, str(tmp_path) + "/")
    os.remove(path + ".pdopt")
    with pytest.warns(UserWarning, match="pdopt"):
        fluid.load(main, path)


def parsed(path):
    with open(path + ".pdmodel", "rb") as f:
        return fluid.Program.parse_from_string(f.read())


@pytest.mark.parametrize("cloned", [False, True])
def test_three_files_are_enough_to_go_on(net, tmp_path, cloned):
    main, exe, pred = net
    path = str(tmp_path / "model")
    feed = {name: np.ones([2] + list(main.global_block().var(name).shape[1:]), "float32")
            for name in main.global_block().vars if main.global_block().var(name).is_data}
    exe.run(main, feed=feed)
    fluid.save(main, path)
    expected = [exe.run(main, feed=feed, fetch_list=[pred.name])[0] for _ in range(3)]
    with fluid.scope_guard(fluid.Scope()):
        program = parsed(path).clone() if cloned else parsed(path)
        fluid.load(program, path, exe)
        got = [exe.run(program, feed=feed, fetch_list=[pred.name])[0] for _ in range(3)]
    np.testing.assert_array_equal(got, expected)


def test_either_program_loads_the_files_of_the_other(net, tmp_path):
    main, exe, _ = net
    before = values(main)
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    fluid.save(main, first)
    fluid.save(parsed(first), second)       # has no parameters: all values are in .pdopt, as in Fluid
    for program in (main, parsed(first), parsed(second)):
        for path in (first, second):
            spoil(main)
            fluid.load(program, path, exe)
            assert same(values(main), before)


def test_a_parsed_program_without_the_state_of_the_optimizer(net, tmp_path):
    main, exe, _ = net
    path = str(tmp_path / "model")
    before = values(main)
    fluid.save(main, path)
    program = parsed(path)
    os.remove(path + ".pdopt")
    spoil(main)
    with pytest.warns(UserWarning, match="model.pdopt does not exist"):
        fluid.load(program, path, exe)
    after = values(main)
    assert np.array_equal(after["fc_0.w_0"], before["fc_0.w_0"]) and (after["fc_0.w_0_moment1_0"] == 9).all()


def test_a_variable_in_neither_file_is_named_and_nothing_is_loaded(net, tmp_path):
    main, exe, _ = net
    path = str(tmp_path / "model")
    fluid.save(main, path)
    program = parsed(path)
    with open(path + ".pdopt", "wb") as f:
        f.write(dump_state({}))
    spoil(main)
    for one in (main, program):
        with pytest.raises(AssertionError, match="neither in .*model.pdparams nor in .*model.pdopt"):
            fluid.load(one, path, exe)
    assert all((array == 9).all() for array in values(main).values())


def test_load_falls_back_to_files_of_variables(net, tmp_path):
    main, exe, _ = net
    before = values(main)
    fluid.io.save_persistables(exe, str(tmp_path / "each"), main)
    fluid.io.save_params(exe, str(tmp_path / "one"), main, "all")
    spoil(main)
    with pytest.raises(ValueError, match="executor"):
        fluid.load(main, str(tmp_path / "each"))
    fluid.load(main, str(tmp_path / "each"), exe)
    assert same(values(main), before)
    with pytest.raises(ValueError, match="var_list"):
        fluid.load(main, str(tmp_path / "one" / "all"), exe)
    spoil(main)
    fluid.load(main, str(tmp_path / "one" / "all"), exe, var_list=fluid.io.get_program_parameter(main))
    assert np.array_equal(values(main)["fc_0.w_0"], before["fc_0.w_0"])
    other = fluid.Program().global_block().create_var(name="zz", shape=[1], dtype="float32")
    with pytest.raises(LookupError):
        fluid.load(main, str(tmp_path / "one" / "all"), exe, var_list=[other])
    with pytest.raises(fluid.core.EnforceNotMet):
        fluid.load(main, str(tmp_path / "nothing"), exe)
    with pytest.raises(ValueError, match="var_list"):
        fluid.load_program_state(str(tmp_path / "one" / "all"))
    assert same(fluid.load_program_state(str(tmp_path / "each")), before)


def test_set_program_state(net):
    main, _, _ = net
    before = values(main)
    spoil(main)
    fluid.set_program_state(main, before)
    assert same(values(main), before)
    for bad in (np.ones((9, 9), "float32"), np.ones((3, 4), "float64"), "text"):
        with pytest.raises(AssertionError):
            fluid.set_program_state(main, {"fc_0.w_0": bad, "fc_0.b_0": np.zeros(4, "float32")})
        assert same(values(main), before)
    with pytest.warns(UserWarning, match="zz"):
        fluid.set_program_state(main, {"zz": np.ones(1)})


def test_parameter_values(net):
    main, exe, _ = net
    w = main.global_block().var("fc_0.w_0")
    assert np.array_equal(fluid.io.get_parameter_value(w, exe), values(main)["fc_0.w_0"])
    assert fluid.io.get_parameter_value_by_name("fc_0.w_0", exe, main).shape == (3, 4)
    with pytest.raises(AssertionError):
        fluid.io.get_parameter_value(main.global_block().var("x"), exe)


def test_pickles_are_those_of_the_standard_library():
    state = {"a": np.arange(6, dtype="float32").reshape(2, 3), "b": np.array([3], "int64"), "c": np.ones((1, 2, 3, 4)),
             "long name %s" % ("x" * 300): np.zeros(70000, "int8"), "e": np.zeros((0, 3), "float32"),
             "f": np.array([True, False]), "g": np.array(2.5, "float32"), "h": np.ones(1, "uint8")}
    loaded = pickle.loads(dump_state(state))  # noqa: S301  made one line above
    assert list(loaded) == list(state)
    for name, array in state.items():
        assert loaded[name].dtype == array.dtype and loaded[name].shape == array.shape
        assert np.array_equal(loaded[name], array)
    assert same(load_state(dump_state(state), "x"), state)
    assert same(load_state(pickle.dumps(state, protocol=2), "x"), state)
    assert same(load_state(pickle.dumps(state, protocol=4), "x"), state)
    pickletools.dis(dump_state(state), out=open(os.devnull, "w"))


@pytest.mark.parametrize("count", [0, 1, 2, 1001])
def test_pickles_of_many_variables(count):
    state = {"v%d" % i: np.array([i], "int32") for i in range(count)}
    assert same(pickle.loads(dump_state(state)), state)  # noqa: S301  made here


class Evil:
    def __reduce__(self):
        return os.system, ("echo evil > evil_was_here",)


def test_pickles_run_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for bad in (pickle.dumps({"a": Evil()}, 2), pickle.dumps({"a": os.getcwd}, 2), b"cos\nsystem\n(S'echo x'\ntR.",
                pickle.dumps([1, 2]), pickle.dumps({"a": np.array([object()])}, 2), b"", b"\x80\x02", b"rubbish"):
        with pytest.raises(ValueError):
            load_state(bad, "file")
    assert not os.listdir(tmp_path)


def test_damaged_pickles_raise_and_nothing_else():
    data = dump_state({"w": np.arange(12, dtype="float32").reshape(3, 4), "b": np.zeros(2, "int64")})
    rng, refused = np.random.RandomState(7), 0
    for trial in range(500):
        broken = bytearray(data if trial % 2 else data[:rng.randint(1, len(data))])
        for _ in range(rng.randint(1, 4)):
            broken[rng.randint(len(broken))] = rng.randint(256)
        try:
            state = load_state(bytes(broken), "file")
        except fluid.core.EnforceNotMet:
            refused += 1
        else:  # the damage was to numbers or names
            assert all(type(name) is str and value.dtype.kind in "fi" for name, value in state.items())
            assert trial % 2
    assert 250 <= refused < 500


def test_golden_checkpoint_bytes():
    here = os.path.join(TESTS, "golden", "data", "save_load", "files", "checkpoint")
    for suffix in ("pdparams", "pdopt"):
        with open(os.path.join(here, "model." + suffix), "rb") as f:
            data = f.read()
        assert dump_state(load_state(data, suffix)) == data


def test_a_folder_without_a_model_is_a_missing_file(tmp_path):
    """Scripts catch these errors to start from new values, so the classes are those of Fluid 1.8.5."""
    exe = fluid.Executor(fluid.CPUPlace())
    for arguments in ((), ("model", "parameters")):
        with pytest.raises(FileNotFoundError, match=arguments[0] if arguments else "__model__") as info:
            fluid.io.load_inference_model(str(tmp_path), exe, *arguments)
        assert isinstance(info.value, fluid.core.EnforceNotMet)
        with pytest.raises(ValueError, match="no folder"):
            fluid.io.load_inference_model(str(tmp_path / "none"), exe, *arguments)
