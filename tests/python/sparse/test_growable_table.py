"""Growable tables in programs: what users of embedding, optimizers, files and test programs see."""
import os
import struct
import sys
import threading
import time

import numpy as np
import pytest

import anabranch.fluid as fluid
from anabranch.fluid.errors import EnforceNotMet

OPTIMIZERS = {
    "sgd": lambda **k: fluid.optimizer.SGD(0.1, **k),
    "adagrad": lambda **k: fluid.optimizer.Adagrad(0.1, initial_accumulator_value=0.25, **k),
    "adam": lambda **k: fluid.optimizer.Adam(0.1, lazy_mode=True, **k),
}


class Model:
    """Two slots over one table, a dense layer after them."""

    def __init__(self, attr, optimizer=OPTIMIZERS["sgd"], size=(-1, 4), clip=None, padding_idx=None, layer=None):
        self.main, self.startup, self.scope = fluid.Program(), fluid.Program(), fluid.Scope()
        self.main.random_seed = self.startup.random_seed = 5
        self.table, self.exe = attr, fluid.Executor(fluid.CPUPlace())
        with fluid.program_guard(self.main, self.startup), fluid.unique_name.guard():
            a, b = fluid.data("a", [None, 1], "int64"), fluid.data("b", [None, 1], "int64")
            embed = layer or fluid.layers.embedding
            rows = [embed(s, list(size), is_sparse=True, param_attr=attr, padding_idx=padding_idx) for s in (a, b)]
            self.rows = rows[0]
            hidden = fluid.layers.fc(fluid.layers.concat(rows, 1), 3, act="tanh",
                                     param_attr=fluid.initializer.Constant(0.1))
            self.out = fluid.layers.reduce_sum(hidden, 1, keep_dim=True)
            self.loss = fluid.layers.mean(fluid.layers.square(self.out))
            self.test = self.main.clone(for_test=True)
            if optimizer:
                _, self.pairs = optimizer(grad_clip=clip).minimize(self.loss)
        self.start()

    def start(self):
        with fluid.scope_guard(self.scope):
            self.exe.run(self.startup)

    def run(self, a, b, program=None, fetch=None):
        feed = {"a": np.reshape(a, (-1, 1)).astype("int64"), "b": np.reshape(b, (-1, 1)).astype("int64")}
        with fluid.scope_guard(self.scope):
            return self.exe.run(program or self.main, feed=feed, fetch_list=[self.loss if fetch is None else fetch])[0]

    def train(self, steps, begin=0, program=None):
        losses = []
        for step in range(begin, begin + steps):
            draw = np.random.RandomState(step)
            losses.append(self.run(draw.randint(0, 50, 24), draw.randint(0, 50, 24), program).tobytes())
        return losses


def uniform(seed=3):
    return fluid.initializer.Uniform(-0.5, 0.5, seed=seed)


# ---- training


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("layer", ["layers", "fluid"])
def test_trains_as_a_fixed_table_does_bit_for_bit(name, layer):
    embed = fluid.layers.embedding if layer == "layers" else lambda x, *a, **k: fluid.layers.squeeze(
        fluid.embedding(x, *a, **k), [1])
    constant = fluid.initializer.Constant(0.25)
    grown = Model(fluid.GrowableTable("emb", constant), OPTIMIZERS[name], layer=embed)
    fixed = Model(fluid.ParamAttr("emb", constant), OPTIMIZERS[name], size=(50, 4), layer=embed)
    assert grown.train(20) == fixed.train(20)
    keys = grown.table.keys(grown.scope)
    expected = np.array(fixed.scope.find_var("emb").get_tensor())
    assert len(keys) > 40
    np.testing.assert_array_equal(grown.table.rows(keys, grown.scope), expected[keys])


def test_keys_are_any_64_bit_numbers():
    model = Model(fluid.GrowableTable("emb", uniform()))
    keys = [-1, -2 ** 63, 2 ** 63 - 1, 0]
    before = model.run(keys, keys, fetch=model.rows)
    after = model.run(keys, keys, fetch=model.rows)
    assert model.table.keys(model.scope).tolist() == sorted(keys)
    assert (before != 0).all() and (before != after).any()


def test_the_first_values_do_not_depend_on_the_order_of_the_data():
    one, two = (Model(fluid.GrowableTable("emb", uniform()), None) for _ in range(2))
    one.run(range(100), range(100))
    for key in reversed(range(100)):
        two.run([key], [key])
    np.testing.assert_array_equal(one.table.rows(range(100), one.scope), two.table.rows(range(100), two.scope))
    other = Model(fluid.GrowableTable("emb", uniform(4)), None)
    other.run(range(100), range(100))
    rows = other.table.rows(range(100), other.scope)
    assert (rows != one.table.rows(range(100), one.scope)).any()
    assert rows.min() >= -0.5 and rows.max() < 0.5 and len(np.unique(rows)) > 390


def test_threads_and_replicas_change_nothing():
    def rules():
        return fluid.GrowableTable("emb", uniform(), max_bytes=80 << 10, admit_count=2, expire_after=5)

    serial = Model(rules(), OPTIMIZERS["adam"])
    losses = serial.train(15)
    for threads in (1, 2, 7):
        model = Model(rules(), OPTIMIZERS["adam"])
        strategy = fluid.ExecutionStrategy()
        strategy.num_threads = threads
        with fluid.scope_guard(model.scope):
            compiled = fluid.CompiledProgram(model.main).with_data_parallel(
                loss_name=model.loss.name, exec_strategy=strategy, places=[fluid.CPUPlace()])
        assert model.train(15, program=compiled) == losses


@pytest.mark.parametrize("reduce", ["AllReduce", "Reduce"])
@pytest.mark.parametrize("replicas", [2, 3])
def test_replicas_share_the_table(reduce, replicas):
    serial, model = (Model(fluid.GrowableTable("emb", uniform()), OPTIMIZERS["adagrad"]) for _ in range(2))
    strategy = fluid.BuildStrategy()
    strategy.reduce_strategy = getattr(fluid.BuildStrategy.ReduceStrategy, reduce)
    with fluid.scope_guard(model.scope):
        compiled = fluid.CompiledProgram(model.main).with_data_parallel(
            loss_name=model.loss.name, build_strategy=strategy, places=[fluid.CPUPlace()] * replicas)
    serial.train(10)
    model.train(10, program=compiled)
    keys = serial.table.keys(serial.scope)
    assert model.table.keys(model.scope).tolist() == keys.tolist()
    np.testing.assert_allclose(model.table.rows(keys, model.scope), serial.table.rows(keys, serial.scope), rtol=2e-4,
                               atol=1e-6)


def test_padding_reads_as_zeros_and_is_never_stored():
    model = Model(fluid.GrowableTable("emb", uniform()), padding_idx=-1)
    rows = model.run([4, -1, 5], [-1, -1, -1], fetch=model.rows)
    assert (rows[1] == 0).all() and (rows[[0, 2]] != 0).all()
    model.run([-1, -1], [-1, -1])
    assert model.table.keys(model.scope).tolist() == [4, 5]


@pytest.mark.parametrize("clip", [fluid.clip.GradientClipByValue(0.01), fluid.clip.GradientClipByNorm(0.01),
                                  fluid.clip.GradientClipByGlobalNorm(0.01)], ids=lambda c: type(c).__name__)
def test_gradients_are_clipped_as_those_of_a_fixed_table(clip):
    constant = fluid.initializer.Constant(0.25)
    grown = Model(fluid.GrowableTable("emb", constant), clip=clip)
    fixed = Model(fluid.ParamAttr("emb", constant), size=(50, 4), clip=clip)
    assert grown.train(5) == fixed.train(5)


def test_a_table_that_is_not_trained_keeps_its_rows():
    model = Model(fluid.GrowableTable("emb", uniform(), trainable=False))
    model.run([1, 2], [3, 4])
    before = model.table.rows([1, 2, 3, 4], model.scope)
    model.train(3)
    assert (before != 0).all()
    np.testing.assert_array_equal(model.table.rows([1, 2, 3, 4], model.scope), before)


def test_the_startup_program_resets_the_state():
    model = Model(fluid.GrowableTable("emb", uniform()), OPTIMIZERS["adam"])
    first = model.train(5)
    model.start()
    assert model.table.statistics(model.scope)["rows"] == 0
    assert model.train(5) == first


# ---- data sets


def lines(path, count=600):
    draw = np.random.RandomState(0)
    path.write_text("".join("1 %d 1 %d\n" % tuple(draw.randint(0, 400, 2)) for _ in range(count)))
    return str(path)


def one_pass(model, path, threads, infer=False, **arguments):
    with fluid.scope_guard(model.scope):
        block = model.main.global_block()
        data = fluid.DatasetFactory().create_dataset("QueueDataset")
        data.set_use_var([block.var("a"), block.var("b")])
        data.set_batch_size(20)
        data.set_thread(threads)
        data.set_filelist([path])
        run = model.exe.infer_from_dataset if infer else model.exe.train_from_dataset
        run(model.main, data, thread=threads, **arguments)
    keys = model.table.keys(model.scope)
    return keys.tolist(), model.table.rows(keys, model.scope).tobytes()


def test_train_from_dataset_trains_tables(tmp_path):
    path = lines(tmp_path / "part-0")

    def model():
        return Model(fluid.GrowableTable("emb", uniform()), OPTIMIZERS["adam"])

    by_hand = model()
    columns = np.loadtxt(path, dtype="int64")[:, [1, 3]]
    for begin in range(0, 600, 20):
        by_hand.run(columns[begin:begin + 20, 0], columns[begin:begin + 20, 1])
    keys = by_hand.table.keys(by_hand.scope)
    expected = keys.tolist(), by_hand.table.rows(keys, by_hand.scope).tobytes()
    assert one_pass(model(), path, 1) == expected
    assert one_pass(model(), path, 3)[0] == expected[0]
    together = [one_pass(model(), path, threads, deterministic=True) for threads in (1, 2, 7)]
    assert together[0] == together[1] == together[2]
    assert one_pass(model(), path, 2, infer=True) == ([], b"")


# ---- test programs


def test_test_programs_leave_no_trace():
    model = Model(fluid.GrowableTable("emb", uniform()), OPTIMIZERS["adam"])
    model.run([1, 2], [3, 4])
    rows = model.run([1, 99], [3, 98], model.test, model.rows)
    assert (rows[0] != 0).all() and (rows[1] == 0).all()
    assert model.table.keys(model.scope).tolist() == [1, 2, 3, 4]
    assert model.table.statistics(model.scope)["created"] == 4


# ---- rules


def test_a_limit_holds_under_endless_new_ids_and_says_what_was_dropped(capfd):
    limit = 256 << 10
    model = Model(fluid.GrowableTable("emb", uniform(), max_bytes=limit), OPTIMIZERS["adam"])
    for step in range(60):
        fresh = np.arange(step * 200, step * 200 + 200) + 1000
        model.run([7] * 200, fresh)
        assert model.table.statistics(model.scope)["bytes"] <= limit
    s = model.table.statistics(model.scope)
    assert s["rows"] + s["evicted"] == s["created"] == 12001 - s["refused"]
    assert s["evicted"] > 5000 and 7 in model.table.keys(model.scope)
    said = capfd.readouterr().err
    assert "table emb is at its limit of %d bytes" % limit in said and "rows evicted" in said


def test_admission_and_expiry():
    model = Model(fluid.GrowableTable("emb", uniform(), admit_count=2, expire_after=3))
    model.run([1], [1])  # one lookup of each slot
    model.run([2], [3])
    assert model.table.keys(model.scope).tolist() == [1]
    for _ in range(12):
        model.run([2], [3])
    assert model.table.keys(model.scope).tolist() == [2, 3]
    s = model.table.statistics(model.scope)
    assert s["expired"] == 1 and s["waiting"] == 3


# ---- files


@pytest.mark.parametrize("way", ["persistables", "one file", "save"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_files_carry_rows_and_moments(tmp_path, way, name):
    model = Model(fluid.GrowableTable("emb", uniform()), OPTIMIZERS[name])
    model.train(6)
    filename = "all" if way == "one file" else None
    with fluid.scope_guard(model.scope):
        if way == "save":
            fluid.save(model.main, str(tmp_path / "model"))
        else:
            fluid.io.save_persistables(model.exe, str(tmp_path), model.main, filename)
    expected = model.train(6, 6)
    model.start()
    model.train(2, 30)
    with fluid.scope_guard(model.scope):
        if way == "save":
            fluid.load(model.main, str(tmp_path / "model"))
        else:
            fluid.io.load_persistables(model.exe, str(tmp_path), model.main, filename)
    assert model.train(6, 6) == expected
    file = {"persistables": "emb", "one file": "all.emb", "save": "model.emb.pdtable"}[way]
    assert file in os.listdir(str(tmp_path))


def test_loading_needs_no_startup_program(tmp_path):
    model = Model(fluid.GrowableTable("emb", uniform(), max_bytes=1 << 20), OPTIMIZERS["adam"])
    model.train(4)
    with fluid.scope_guard(model.scope):
        fluid.save(model.main, str(tmp_path / "model"))
    expected = model.train(4, 4)
    model.scope = fluid.Scope()
    with fluid.scope_guard(model.scope):
        fluid.load(model.main, str(tmp_path / "model"))
        state = fluid.load_program_state(str(tmp_path / "model"))
    assert "emb" not in state
    assert model.train(4, 4) == expected


@pytest.mark.parametrize("filename", [None, "params"])
def test_inference_models_score_and_drop_the_moments(tmp_path, filename):
    model = Model(fluid.GrowableTable("emb", uniform()), OPTIMIZERS["adam"])
    model.train(4)
    keys = model.table.keys(model.scope)
    feed = {"a": keys[:8].reshape(-1, 1), "b": np.array([[999]] * 8)}
    expected = model.run(feed["a"], feed["b"], model.test, model.out)
    with fluid.scope_guard(model.scope):
        fluid.io.save_inference_model(str(tmp_path), ["a", "b"], [model.out], model.exe, model.main,
                                      params_filename=filename)
    path = tmp_path / ("params.emb" if filename else "emb")
    assert path.stat().st_size == 96 + len(keys) * (12 + 4 * 4)
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor(fluid.CPUPlace())
        program, feeds, targets = fluid.io.load_inference_model(str(tmp_path), exe, params_filename=filename)
        got = exe.run(program, feed=feed, fetch_list=targets)[0]
        assert model.table.statistics()["rows"] == len(keys)
    assert feeds == ["a", "b"]
    np.testing.assert_array_equal(got, expected)


def test_damaged_files_change_nothing(tmp_path):
    model = Model(fluid.GrowableTable("emb", uniform()), OPTIMIZERS["adam"])
    model.train(3)
    with fluid.scope_guard(model.scope):
        fluid.io.save_persistables(model.exe, str(tmp_path), model.main)
        model.train(1, 5)
        keys = model.table.keys()
        before = model.table.rows(keys)
        path = tmp_path / "emb"
        good = path.read_bytes()
        for bad in (good[:-1], b"", good[:40], good[:8] + struct.pack("<q", 5) + good[16:]):
            path.write_bytes(bad)
            with pytest.raises((EnforceNotMet, RuntimeError)):
                fluid.io.load_persistables(model.exe, str(tmp_path), model.main)
        np.testing.assert_array_equal(model.table.rows(keys), before)


def test_a_table_that_is_not_there_is_named():
    with fluid.scope_guard(fluid.Scope()), pytest.raises(RuntimeError, match="no growable table emb"):
        fluid.GrowableTable("emb").statistics()
    model = Model(fluid.GrowableTable("emb", uniform()))
    model.scope = fluid.Scope()
    with pytest.raises(EnforceNotMet, match="emb"):
        model.run([1], [2])
    with pytest.raises(EnforceNotMet):
        Model(fluid.GrowableTable("emb", max_bytes=10))


def test_the_memory_report_counts_tables():
    model = Model(fluid.GrowableTable("emb", uniform()), OPTIMIZERS["adam"])
    model.train(3)
    with fluid.scope_guard(model.scope):
        report = fluid.memory_report(model.main)
    entries = [entry for entry in report.variables if entry["name"] == "emb"]
    assert [entry["owner"] for entry in entries] == ["parameters"]
    assert 0 <= model.table.statistics(model.scope)["bytes"] - entries[0]["bytes"] < 1000


def test_other_python_threads_run_while_a_table_is_asked():
    """Calls that query a table may have to wait for a save, so they must not keep the interpreter."""
    model = Model(fluid.GrowableTable("emb", uniform()))
    ids = np.arange(200000)
    model.run(ids, ids)
    iterations, ended = [0], threading.Event()

    def count():
        while not ended.is_set():
            iterations[0] += 1
            time.sleep(0)

    other = threading.Thread(target=count)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(100)  # a thread that keeps the interpreter is not asked for it
    other.start()
    try:
        for ask in (lambda: model.table.rows(np.tile(ids, 20), model.scope), lambda: model.table.keys(model.scope)):
            before = iterations[0]
            ask()
            assert iterations[0] - before > 20
    finally:
        ended.set()
        sys.setswitchinterval(interval)
        other.join()
