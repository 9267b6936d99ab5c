"""The table of bad inputs: class of the error, key words of its message, and the line that made the op."""
import os

import numpy as np
import pytest

import anabranch.fluid as fluid
from anabranch.fluid import layers as L

CPU = fluid.CPUPlace
Enforce = fluid.core.EnforceNotMet


@pytest.fixture(autouse=True)
def fresh(monkeypatch, tmp_path):
    monkeypatch.setenv("CPU_NUM", "2")
    monkeypatch.chdir(tmp_path)
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard(), \
            fluid.scope_guard(fluid.Scope()):
        yield


def ones(*shape, dtype="float32"):
    return np.ones(shape, dtype)


def block():
    return fluid.default_main_program().global_block()


def net(train=True):
    x = fluid.data("x", [None, 4])
    loss = L.mean(L.fc(x, 2, param_attr="w", bias_attr="b"))  # the culprit
    if train:
        fluid.optimizer.SGD(0.1).minimize(loss)
    return loss


def ready():
    exe = fluid.Executor(CPU())
    exe.run(fluid.default_startup_program())
    return exe


def run(feed=None, fetch=None, **kwargs):
    net()
    return ready().run(feed={"x": ones(4, 4)} if feed is None else feed, fetch_list=fetch, **kwargs)


def closed():
    net()
    exe = ready()
    exe.close()
    exe.run()


def lod_result():
    s = fluid.data("s", [None, 1], lod_level=1)
    ready().run(feed={"s": fluid.create_lod_tensor(ones(5, 1), [[2, 3]], CPU())}, fetch_list=[L.scale(s, 2.0)])


def compiled(loss_name="mean_0.tmp_0", **kwargs):
    return fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(loss_name=loss_name, **kwargs)


def parallel(feed, **kwargs):
    net()
    return ready().run(compiled(**kwargs), feed=feed, fetch_list=["mean_0.tmp_0"])


def shared(ran_from):
    net()
    other = ran_from()
    program = fluid.CompiledProgram(fluid.default_main_program().clone(for_test=True))
    ready().run(program.with_data_parallel(share_vars_from=other), feed={"x": ones(4, 4)}, fetch_list=["mean_0.tmp_0"])


def other_scope():
    net()
    exe, program = ready(), compiled()
    exe.run(program, feed={"x": ones(4, 4)})
    exe.run(program, feed={"x": ones(4, 4)}, scope=fluid.Scope())


def finalized():
    net()
    build = fluid.BuildStrategy()
    ready().run(compiled(build_strategy=build), feed={"x": ones(4, 4)})
    build.enable_inplace = False


def field(cls, name, value):
    setattr(cls(), name, value)


def trainer_id():
    build = fluid.BuildStrategy()
    build.trainer_id = 3
    parallel({"x": ones(4, 4)}, build_strategy=build)


def twice_initialized():
    start = fluid.default_startup_program().global_block()
    out = start.create_var(name="w", shape=[4, 2], dtype="float32", persistable=True)
    for _ in range(2):
        start.append_op(type="fill_constant", outputs={"Out": out}, attrs={"shape": [4, 2], "value": 1.0, "dtype": 5})
    L.fc(fluid.data("x", [None, 4]), 2, param_attr="w")


def append(**change):
    x, y = fluid.data("x", [2]), block().create_var(name="y", dtype="float32")
    block().append_op(**dict({"type": "relu", "inputs": {"X": x}, "outputs": {"Out": y}}, **change))


def bad_lod():
    t = fluid.LoDTensor()
    t.set(ones(5, 1), CPU())
    t.set_lod([[0, 2, 9]])


def damaged(change):
    net()
    exe = ready()
    fluid.io.save_params(exe, "saved", filename="all")
    with open("saved/all", "rb") as f:
        data = f.read()
    with open("saved/all", "wb") as f:
        f.write(change(data))
    fluid.io.load_params(exe, "saved", filename="all")


def wrong_shape():
    net()
    exe = ready()
    fluid.io.save_params(exe, "saved")
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        L.fc(fluid.data("x", [None, 4]), 3, param_attr="w", bias_attr="b")
        fluid.io.load_params(exe, "saved")


def clip_groups():
    a = L.fc(fluid.data("x", [None, 4]), 2, param_attr="w", bias_attr="b")
    for name, norm in (("w", 1.0), ("b", 2.0)):
        fluid.clip.set_gradient_clip(fluid.clip.GradientClipByGlobalNorm(norm), param_list=[name])
    fluid.optimizer.SGD(0.1).minimize(L.mean(a))


def saved_vars_layout(**kwargs):
    net()
    exe = ready()
    fluid.io.save_persistables(exe, "saved", **({"filename": "all"} if "var_list" in kwargs else {}))
    fluid.load(fluid.default_main_program(), "saved/all" if "var_list" in kwargs else "saved", **kwargs)


TABLE = [
    ("1 closed", closed, RuntimeError, "closed"),
    ("2 program", lambda: fluid.Executor().run("text"), TypeError, "Program.*str"),
    ("3 feed", lambda: run(feed="x"), TypeError, "dict.*str"),
    ("4 feeds", lambda: run(feed=[{}, {}]), AssertionError, "a list of feeds.*compiled with data parallel, got 2"),
    ("5 list", lambda: run(feed={"x": [[1.0] * 4]}), RuntimeError, "x.*LoDTensor"),
    ("6 shape", lambda: run(feed={"x": ones(2, 3)}), ValueError, r"'x'.*\[-1, 4\].*\[2, 3\]"),
    ("6 dtype", lambda: run(feed={"x": ones(2, 4, dtype="int64")}), ValueError, "'x'.*float32.*int64"),
    ("7 fetch_list", lambda: run(fetch=3), AssertionError, "fetch_list.*int"),
    ("8 fetch item", lambda: run(fetch=[3]), TypeError, "fetch_list.*int"),
    ("9 unknown fetch", lambda: run(fetch=["absent"]), Enforce, "absent"),
    ("10 LoD", lod_result, RuntimeError, "return_numpy=False"),
    ("11 no startup", lambda: (net(), fluid.Executor().run(feed={"x": ones(1, 4)})), Enforce,
     "w holds no value(.|\n)*mul(.|\n)*test_error_table.py(.|\n)*the culprit(.|\n)*startup"),
    ("13 feed list", lambda: parallel([{"x": ones(1, 4)}]), ValueError, "2 replicas, got 1"),
    ("14 feed element", lambda: parallel([{}, 3]), TypeError, "dict.*int"),
    ("16 keyword", lambda: fluid.ParallelExecutor(False, num_threads=2), ValueError, "num_threads.*Strategy"),
    ("17 share", lambda: fluid.ParallelExecutor(False, share_vars_from=3), TypeError, "ParallelExecutor.*int"),
    ("18 not run", lambda: shared(compiled), ValueError, "not run"),
    ("18 not parallel", lambda: shared(lambda: fluid.CompiledProgram(fluid.default_main_program())), ValueError,
     "must be a data-parallel"),
    ("19 compiled", lambda: fluid.CompiledProgram(3), TypeError, "Program.*int"),
    ("20 twice", lambda: (net(), compiled().with_data_parallel("x")), AssertionError, "only once"),
    ("21 no loss", lambda: parallel({"x": ones(4, 4)}, loss_name=None), AssertionError, "loss_name"),
    ("23 scope", other_scope, ValueError, "scope"),
    ("25 finalized", finalized, Enforce, "enable_inplace"),
    ("26 build", lambda: field(fluid.BuildStrategy, "reduce_strategy", "Reduce"), TypeError, "reduce_strategy"),
    ("26 execution", lambda: field(fluid.ExecutionStrategy, "num_threads", "2"), TypeError, "num_threads"),
    ("27 trainer", trainer_id, Enforce, "trainer_id"),
    ("31 var", lambda: block().var(3), TypeError, "int"),
    ("31 absent", lambda: block().var("absent"), ValueError, "absent"),
    ("32 missing input", lambda: append(inputs={}), AssertionError, "relu.*X"),
    ("32 several", lambda: append(inputs={"X": ["x", "x"]}), ValueError, "X"),
    ("32 argument", lambda: append(inputs={"X": 3}), TypeError, "int"),
    ("32 attrs", lambda: append(attrs=[1]), TypeError, "list"),
    ("33 redefined", lambda: (block().create_var(name="v", shape=[2], dtype="float32"),
                              block().create_var(name="v", shape=[3], dtype="float32")), ValueError, "v"),
    ("34 twice", twice_initialized, RuntimeError, "w"),
    ("36 lod", bad_lod, Enforce, "9"),
    ("36 create", lambda: fluid.create_lod_tensor(ones(5, 1), [[1, 1]], CPU()), AssertionError, "5"),
    ("37 dtype", lambda: block().create_var(name="q", shape=[2], dtype="float31"), ValueError, "float31"),
    ("52 save", lambda: fluid.io.save_vars(fluid.Executor(), "s", main_program=3, vars=[]), TypeError, "int"),
    ("53 missing", lambda: (net(), fluid.io.load_params(ready(), "absent")), Enforce, "absent"),
    ("53 shape", wrong_shape, RuntimeError, "w|b"),
    ("53 short", lambda: damaged(lambda d: d[:-1]), Enforce, "all"),
    ("53 long", lambda: damaged(lambda d: d + b"0"), Enforce, "all"),
    ("54 folder", lambda: fluid.io.load_inference_model("absent", fluid.Executor()), ValueError, "absent"),
    ("55 executor", saved_vars_layout, ValueError, "executor"),
    ("56 state", lambda: (net(), ready(), fluid.set_program_state(fluid.default_main_program(), {"w": ones(3, 3)})),
     AssertionError, "w"),
    ("67 cuda", fluid.cuda_places, AssertionError, "CUDA"),
    ("67 pinned", fluid.cuda_pinned_places, AssertionError, "CUDA"),
    ("68 type", lambda: fluid.require_version(1), TypeError, "int"),
    ("68 format", lambda: fluid.require_version("a.b"), ValueError, "a.b"),
    ("68 range", lambda: fluid.require_version("99.0.0"), Exception, "99.0.0"),
    ("69 scope", lambda: fluid.name_scope("").__enter__(), AssertionError, "prefix"),
    ("71 padding", lambda: fluid.embedding(fluid.data("i", [None], "int64"), [4, 2], padding_idx=-9), ValueError, "-9"),
    ("72 fc", lambda: L.fc(fluid.data("r", [4]), 2), ValueError, "fc"),
    ("72 pool", lambda: L.pool2d(fluid.data("p", [1, 2, 4, 4]), 2, pool_type="mid"), ValueError, "mid"),
    ("72 groups", lambda: L.conv2d(fluid.data("p", [1, 3, 8, 8]), 4, 3, groups=2), ValueError, "groups"),
    ("74 piecewise", lambda: L.piecewise_decay([1, 2], [0.1]), ValueError, "values"),
    ("75 clip", clip_groups, ValueError, "clip_norm|group"),
]


@pytest.mark.parametrize("call, error, words", [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_row(call, error, words):
    with pytest.raises(error, match=words) as info:
        call()
    assert isinstance(info.value, Enforce)


def test_71_id_out_of_range_names_op_value_and_line():
    out = fluid.embedding(fluid.data("i", [None], "int64"), [4, 2])  # the culprit
    with pytest.raises(Enforce, match=r"(?s)9.*lookup_table_v2.*test_error_table.py.*the culprit"):
        ready().run(feed={"i": np.array([9])}, fetch_list=[out])


def test_nothing_is_left_over():
    net()
    exe = ready()
    with pytest.raises(Enforce):
        exe.run(feed={"x": ones(1, 3)})
    assert os.listdir(".") == []
