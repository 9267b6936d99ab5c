"""The result of a pass over a Dataset: its loss, its AUC and its counts, apart from those of other passes."""
import io

import numpy as np
import pytest

import anabranch
import anabranch.fluid as fluid
from anabranch.fluid.reading import metric_states

BATCH = 8
TRAIN, TEST = (1, 203), (2, 101)    # seed and number of rows; the last batch is smaller


def rows_of(seed, count):
    draw = np.random.RandomState(seed)
    x = np.round(draw.rand(count, 3), 3).astype("float32")
    return x, (draw.rand(count) < x[:, 0]).astype("int64")


def write(path, seed, count):
    with open(path, "w") as file:
        for x, y in zip(*rows_of(seed, count)):
            file.write("3 %s 1 %d\n" % (" ".join("%.3f" % v for v in x), y))
    return str(path)


class Model:
    """A logistic regression with the area over all batches and over a window."""

    def __init__(self, rate=0.5):
        self.main, self.startup, self.scope = fluid.Program(), fluid.Program(), fluid.Scope()
        self.main.random_seed = self.startup.random_seed = 5
        with fluid.program_guard(self.main, self.startup), fluid.unique_name.guard():
            self.inputs = [fluid.data("x", [None, 3]), fluid.data("y", [None, 1], "int64")]
            self.chance = fluid.layers.fc(self.inputs[0], 2, act="softmax")
            self.loss = fluid.layers.mean(fluid.layers.cross_entropy(self.chance, self.inputs[1]))
            self.accuracy = fluid.layers.accuracy(self.chance, self.inputs[1])
            self.auc, self.newest, _ = fluid.layers.auc(self.chance, self.inputs[1], slide_steps=3)
            self.test = self.main.clone(for_test=True)
            fluid.optimizer.SGD(rate).minimize(self.loss)
        self.exe = fluid.Executor()
        self.exe.run(self.startup, scope=self.scope)

    def dataset(self, path, threads=1):
        made = fluid.DatasetFactory().create_dataset("QueueDataset")
        made.set_use_var(self.inputs)
        made.set_batch_size(BATCH)
        made.set_thread(threads)
        made.set_filelist([path])
        return made

    def train(self, path, **how):
        return self.exe.train_from_dataset(self.main, self.dataset(path), self.scope, **how)

    def infer(self, path, program=None, threads=1, **how):
        return self.exe.infer_from_dataset(self.main if program is None else program, self.dataset(path, threads),
                                           self.scope, **how)

    def expected(self, seed, count):
        """Loss, AUC and accuracy of all rows by the present parameters, by other means."""
        x, y = rows_of(seed, count)
        inference = self.main.clone(for_test=True)._prune_with_input(["x"], [self.chance.name])
        chance, = self.exe.run(inference, {"x": x}, [self.chance.name], scope=self.scope)
        up, down = chance[y == 1, 1], chance[y == 0, 1]
        bins = [np.floor(values * 4095) for values in (up, down)]
        pairs = (bins[0][:, None] > bins[1][None, :]) + 0.5 * (bins[0][:, None] == bins[1][None, :])
        return {"loss": -np.log(chance[np.arange(len(y)), y]).mean(), "auc": pairs.mean(),
                "accuracy": (chance.argmax(1) == y).mean()}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("passes")
    return write(folder / "train", *TRAIN), write(folder / "test", *TEST)


@pytest.mark.parametrize("threads", [1, 3])
def test_inference_returns_the_metrics_of_its_rows_alone(files, threads):
    model = Model()
    for _ in range(2):
        model.train(files[0])
        for _ in range(2):      # a pass twice: the same
            result = model.infer(files[1], threads=threads, thread=threads, fetch_list=[model.accuracy],
                                 fetch_info=["accuracy"])
            assert result.metrics == pytest.approx(model.expected(*TEST), abs=1e-6)
            assert (result.rows, result.batches, result.bad_rows) == (101, 13, 0)


def test_a_test_program_returns_the_fetched_loss(files):
    model = Model()
    assert sorted(model.infer(files[1], model.test).metrics) == ["auc"]
    result = model.infer(files[1], model.test, fetch_list=[model.loss, model.auc], fetch_info=["loss", "area"])
    expected = model.expected(*TEST)
    assert result.metrics == pytest.approx({"loss": expected["loss"], "auc": expected["auc"], "area": expected["auc"]},
                                           abs=1e-6)


def test_training_returns_its_own_pass(files):
    model = Model(rate=0.0)     # so that what is expected does not move
    expected = model.expected(*TRAIN)
    for _ in range(3):
        result = model.train(files[0])
        assert {name: result[name] for name in ("loss", "auc")} == pytest.approx(
            {name: expected[name] for name in ("loss", "auc")}, abs=1e-6)
    assert (result.rows, result.batches) == (203, 26)


def state(model):
    names = [op.input(slot)[0] for op in model.main.global_block().ops if op.type == "auc"
             for slot in ("StatPos", "StatNeg")]
    return {name: np.array(model.scope.find_var(name).get_tensor()) for name in names}


@pytest.mark.parametrize("by_run", [False, True])
def test_the_histograms_of_training_continue_after_inference(files, by_run):
    def train(model):
        if by_run:
            x, y = rows_of(*TRAIN)
            model.exe.run(model.main, {"x": x, "y": y[:, None]}, scope=model.scope)
        else:
            model.train(files[0])
    mixed, alone = Model(), Model()
    for _ in range(3):
        train(mixed)
        train(alone)
        mixed.infer(files[1])
        mixed.infer(files[1], mixed.test)
    train(mixed)
    train(alone)
    for name, value in state(mixed).items():
        assert np.array_equal(value, state(alone)[name]), name


def test_scripts_find_the_histograms_of_inference_in_the_scope(files):
    """As after setting them to zero by hand, the habit of scripts written for Fluid."""
    model = Model()
    model.train(files[0])
    model.infer(files[1])
    over_all = next(op for op in model.main.global_block().ops if op.type == "auc" and not op.attr("slide_steps"))
    assert sum(state(model)[over_all.input(slot)[0]].sum() for slot in ("StatPos", "StatNeg")) == 101


def test_a_state_that_the_script_sets_stays(files):
    model = Model()
    model.train(files[0])
    model.infer(files[1])
    for name, value in state(model).items():
        model.scope.find_var(name).get_tensor().set(np.zeros_like(value), fluid.CPUPlace())
    model.train(files[0])
    fresh = Model()
    fresh.train(files[0])
    assert {name: value.sum() for name, value in state(model).items()} == \
        {name: value.sum() for name, value in state(fresh).items()}


@pytest.fixture
def exact_fluid():
    fluid.set_flags({"FLAGS_fluid_exact": "1.8.5"})
    yield
    fluid.set_flags({"FLAGS_fluid_exact": ""})


def test_as_fluid_on_request(files, exact_fluid):
    model = Model()
    model.train(files[0])
    before = {name: value.sum() for name, value in state(model).items()}
    result = model.infer(files[1])
    assert sum(v.sum() for v in state(model).values()) > sum(before.values())
    assert result["auc"] == pytest.approx(model.expected(*TEST)["auc"], abs=1e-6)


def test_parts_between_checkpoints_are_one_pass(files, tmp_path):
    model = Model(rate=0.0)
    run = anabranch.Checkpoints(str(tmp_path), model.main, model.exe, every=4, scope=model.scope, stream=io.StringIO())
    for _ in run.epochs(1):
        result = model.train(files[0], checkpoints=run)
    expected = model.expected(*TRAIN)
    assert result["loss"] == pytest.approx(expected["loss"], abs=1e-6) and result.batches == 26
    assert result["auc"] == pytest.approx(expected["auc"], abs=1e-6)


def test_an_unknown_metric_names_the_known_ones(files):
    with pytest.raises(LookupError, match="no metric 'ouc', it has: loss, auc; did you mean auc"):
        Model().train(files[0])["ouc"]


def test_the_result_goes_into_a_loop(files):
    model, loop = Model(), anabranch.Loop(show=False)
    for _ in loop.epochs(1):
        loop.log_epoch(**model.infer(files[1]).metrics)
    assert set(loop.values) == {"loss", "auc"}


def test_steady_steps_after_inference_do_not_look_at_the_program_again(monkeypatch):
    """Only the first run of a test program finds out that it does not train; a changed program is looked at again."""
    looked = []
    monkeypatch.setattr(metric_states, "trains", lambda program: looked.append(program))
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        label = fluid.data("label", [None, 1], "int64")
        auc = fluid.layers.auc(fluid.data("p", [None, 2]), label)[0]
        exe, main = fluid.Executor(), fluid.default_main_program()
        exe.run(fluid.default_startup_program())
        with metric_states.Fresh(metric_states.aucs(main), fluid.global_scope()):
            pass
        feed = {"p": np.full((2, 2), 0.5, "float32"), "label": np.array([[0], [1]])}
        for _ in range(3):
            exe.run(main, feed=feed, fetch_list=[auc])
        assert looked == [main]
        fluid.layers.scale(auc, 2.0)
        exe.run(main, feed=feed, fetch_list=[auc])
        assert looked == [main, main]
