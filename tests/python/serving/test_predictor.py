"""Saved models that are run again and again: ``anabranch.Predictor`` and Fluid's names for it."""
import os
import threading

import numpy
import pytest

import anabranch
import anabranch.fluid as fluid
from anabranch.fluid import core


@pytest.fixture
def saved(tmp_path):
    """A model with an image-like input, a sequence and two outputs, in a file each and in one; what it must give."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.scope_guard(scope):
        x = fluid.data("x", [None, 3])
        q = fluid.data("q", [None, 1], "int64", lod_level=1)
        y = fluid.layers.fc(x, 2, act="tanh")
        z = fluid.layers.sequence_pool(fluid.layers.cast(q, "float32"), "sum")
        exe = fluid.Executor()
        exe.run(startup)
        fluid.io.save_inference_model(str(tmp_path / "apart"), ["x", "q"], [y, z], exe, main)
        fluid.io.save_inference_model(str(tmp_path / "joined"), ["x", "q"], [y, z], exe, main, "net", "params")
        feed = {"x": numpy.arange(6, dtype="float32").reshape(2, 3) / 5, "q": sequences()}
        expected = exe.run(main, feed, [y, z])
    return tmp_path, feed, expected


def sequences():
    return fluid.create_lod_tensor(numpy.array([[1], [2], [3]], "int64"), [[1, 2]], fluid.CPUPlace())


def check(got, expected):
    assert len(got) == len(expected)
    for a, b in zip(got, expected):
        assert numpy.asarray(a).dtype == b.dtype and numpy.array_equal(numpy.asarray(a), b)


def test_it_gives_what_the_executor_gave(saved):
    folder, feed, expected = saved
    for predictor in (anabranch.Predictor(str(folder / "apart")),
                      anabranch.Predictor(str(folder / "joined"), "net", "params", num_threads=2)):
        check(predictor.run(feed), expected)
        check(predictor.run([feed["x"], feed["q"]]), expected)
        assert predictor.input_names == ["x", "q"] and len(predictor.output_names) == 2
        assert type(predictor.run(feed, return_numpy=False)[0]) is fluid.LoDTensor
        assert "fuse" in predictor.explain() and "x, q" in repr(predictor)


def test_a_change_of_the_batch_and_wrong_inputs(saved):
    folder, feed, expected = saved
    predictor = anabranch.Predictor(str(folder / "apart"))
    kept = predictor.run(feed)[0]
    assert predictor.run([feed["x"][:1], feed["q"]])[0].shape == (1, 2)
    check([kept], expected[:1])  # is not overwritten by a later run
    for wrong, error in (({"x": feed["x"]}, "inputs must be x, q"), ([feed["x"]], "takes 2 inputs"),
                         (3, "dict or a list"),
                         ([feed["x"].astype("int32"), feed["q"]], "input x must be float32, got int32"),
                         ([feed["x"][:, :2], feed["q"]], r"input x must be .*3\]?, got .*2\]?")):
        with pytest.raises((ValueError, TypeError), match=error):
            predictor.run(wrong)
    check(predictor.run(feed), expected)
    with pytest.raises(ValueError, match="no folder"):
        anabranch.Predictor(str(folder / "none"))
    with pytest.raises(ValueError, match="num_threads"):
        anabranch.Predictor(str(folder / "apart"), num_threads=-1)


def test_clones_answer_in_threads(saved):
    folder, feed, expected = saved
    first = anabranch.Predictor(str(folder / "apart"))
    begin, failed = threading.Barrier(3), []

    def work(predictor):
        begin.wait()
        try:
            for _ in range(100):
                check(predictor.run(feed), expected)
        except BaseException as e:
            failed.append(e)
    threads = [threading.Thread(target=work, args=(p,)) for p in (first, first.clone(), first.clone())]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_one_row_has_the_same_bits_on_any_number_of_threads(tmp_path):
    """Layers wide enough that two threads share each; of sleeping threads and of such that are awake."""
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        x = fluid.data("x", [None, 260])
        hidden = fluid.layers.fc(fluid.layers.fc(x, 403, act="relu"), 400, act="sigmoid")
        scores = fluid.layers.fc(hidden, 18)
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        fluid.io.save_inference_model(str(tmp_path), ["x"], [scores], exe)
    rows = numpy.random.RandomState(3).rand(5, 1, 260).astype("float32")
    alone = anabranch.Predictor(str(tmp_path))
    expected = [alone.run([row])[0] for row in rows]
    before = fluid.get_flags("FLAGS_spin_us")
    for spin_us in 0, 1000000:
        fluid.set_flags({"FLAGS_spin_us": spin_us})
        for threads in 2, 3:
            shared = anabranch.Predictor(str(tmp_path), num_threads=threads)
            for _ in range(20):
                for row, answer in zip(rows, expected):
                    assert numpy.array_equal(shared.run([row])[0], answer)
    fluid.set_flags(before)


def test_a_model_that_does_more_than_compute_is_refused(tmp_path):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        y = fluid.layers.Print(fluid.data("x", [None, 1]))
        fluid.io.save_inference_model(str(tmp_path), ["x"], [y], fluid.Executor(), main)
    with pytest.raises(ValueError, match="does more than compute"):
        anabranch.Predictor(str(tmp_path))
    assert anabranch.Predictor(str(tmp_path), trusted=True).input_names == ["x"]


def test_a_growable_table(tmp_path):
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.scope_guard(scope):
        ids = fluid.data("ids", [None, 1], "int64")
        rows = fluid.embedding(ids, [None, 4], is_sparse=True, param_attr=fluid.GrowableTable("table"))
        fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(rows))
        exe = fluid.Executor()
        exe.run(startup)
        key = numpy.array([[7]], "int64")
        exe.run(main, {"ids": key})
        expected = exe.run(main.clone(for_test=True), {"ids": key}, [rows.name])
        fluid.io.save_inference_model(str(tmp_path), ["ids"], [rows], exe, main)
    predictor = anabranch.Predictor(str(tmp_path))
    assert numpy.abs(expected[0]).max() > 0
    assert predictor.run([key])[0].shape == expected[0].shape
    assert not predictor.run([key + 1])[0].any()


# ---- Fluid's names


def test_tensors_by_name_or_in_order(saved):
    folder, feed, expected = saved
    config = core.AnalysisConfig(str(folder / "apart"))
    config.disable_gpu()
    config.switch_ir_optim(True)
    predictor = core.create_paddle_predictor(config)
    x, q = core.PaddleTensor(feed["x"], "x"), core.PaddleTensor(numpy.array([[1], [2], [3]]), "q")
    q.lod = [[0, 1, 3]]
    for inputs in ([x, q], [q, x]):
        outputs = predictor.run(inputs)
        check([t.as_ndarray() for t in outputs], expected)
    assert [t.shape for t in outputs] == [[2, 2], [2, 1]] and outputs[0].dtype == core.PaddleDType.FLOAT32
    assert outputs[0].data.length() == 16 and outputs[1].data.float_data() == [1.0, 5.0]
    check([t.as_ndarray() for t in predictor.clone().run([x, q])], expected)
    with pytest.raises(ValueError, match="takes 2 inputs"):
        predictor.run([x])


def test_tensors_that_stay(saved):
    folder, feed, expected = saved
    config = core.AnalysisConfig(str(folder / "joined" / "net"), str(folder / "joined" / "params"))
    config.switch_use_feed_fetch_ops(False)
    predictor = core.create_paddle_predictor(config)
    assert predictor.get_input_names() == ["x", "q"]
    assert predictor.get_input_tensor_shape() == {"x": [-1, 3], "q": [-1, 1]}
    predictor.get_input_tensor("x").copy_from_cpu(feed["x"])
    predictor.get_input_tensor("q").copy_from_cpu(numpy.array([[1], [2], [3]], "int64"))
    predictor.get_input_tensor("q").set_lod([[0, 1, 3]])
    assert predictor.zero_copy_run()
    tensors = [predictor.get_output_tensor(name) for name in predictor.get_output_names()]
    check([t.copy_to_cpu() for t in tensors], expected)
    assert tensors[0].shape() == [2, 2] and tensors[0].type() == core.PaddleDType.FLOAT32 and tensors[0].lod() == []


def test_what_a_config_says_and_refuses(saved):
    config = core.AnalysisConfig("folder")
    config.set_cpu_math_library_num_threads(3)
    assert (config.model_dir(), config.prog_file(), config.use_gpu()) == ("folder", "", False)
    assert config.cpu_math_library_num_threads() == 3 and config.use_feed_fetch_ops_enabled()
    with pytest.raises(NotImplementedError, match="anabranch run"):
        config.enable_use_gpu(100, 0)
    with pytest.raises(ValueError, match="no folder"):
        core.create_paddle_predictor(config)
    with pytest.raises(ValueError, match="positive"):
        config.set_cpu_math_library_num_threads(0)
    with pytest.raises(AttributeError):
        config.no_such_switch()
    with pytest.raises(TypeError, match="AnalysisConfig"):
        core.create_paddle_predictor("folder")
    with pytest.raises(TypeError, match="float32, int64 or int32"):
        core.PaddleTensor(numpy.ones(2))
    apart = core.AnalysisConfig(os.path.join("a", "net"), os.path.join("b", "params"))
    with pytest.raises(core.EnforceNotMet, match="net does not exist"):
        core.create_paddle_predictor(apart)
    with pytest.raises(TypeError, match="prog_buffer must be bytes"):
        config.set_model_buffer("net", 3, b"", 0)


def test_elements_of_a_buffer():
    data = core.PaddleBuf([1, 2])
    assert data.int64_data() == [1, 2] and data.tolist("int64") == [1, 2] and not data.empty()
    data.reset([0.5])
    assert data.float_data() == [0.5] and data.length() == 4
    data.resize(8)
    assert data.length() == 8
