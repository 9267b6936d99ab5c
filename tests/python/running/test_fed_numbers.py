"""One number fed to several replicas: the error says how, and each way it names trains as one replica does."""
import numpy as np
import pytest

import anabranch.fluid as fluid

REPLICAS = 2


class Trainer:
    """A regression whose learning rate is fed."""

    def __init__(self, replicas, persistable=False, number_first=False):
        self.main, self.startup, self.scope = fluid.Program(), fluid.Program(), fluid.Scope()
        self.replicas = replicas
        with fluid.program_guard(self.main, self.startup), fluid.unique_name.guard():
            self.x = None if number_first else fluid.data("x", [None, 4])
            rate = fluid.layers.data("rate", [1], append_batch_size=False)
            rate.persistable = persistable
            self.x = self.x or fluid.data("x", [None, 4])
            start = fluid.ParamAttr(name="w", initializer=fluid.initializer.Constant(0.2))
            out = fluid.layers.fc(self.x, 1, bias_attr=False, param_attr=start)
            self.loss = fluid.layers.mean(fluid.layers.square(out))
            fluid.optimizer.SGD(rate).minimize(self.loss)
        self.executor = fluid.Executor()
        self.executor.run(self.startup, scope=self.scope)
        self.program = self.main
        if replicas > 1:
            self.program = fluid.CompiledProgram(self.main).with_data_parallel(
                loss_name=self.loss.name, places=fluid.cpu_places(replicas))

    def run(self, feed):
        self.executor.run(self.program, feed=feed, fetch_list=[self.loss], scope=self.scope)

    def weights(self):
        return np.array(self.scope.find_var("w").get_tensor())


def batches():
    random = np.random.RandomState(0)
    return [(random.rand(8, 4).astype("float32"), np.array([0.1 / (i + 1)], "float32")) for i in range(3)]


def as_one_replica():
    trainer = Trainer(1)
    for x, rate in batches():
        trainer.run({"x": x, "rate": rate})
    return trainer.weights()


@pytest.mark.parametrize("rate", [np.array([0.1], "float32"), 0.1])
@pytest.mark.parametrize("number_first", [False, True])
def test_the_error_says_how(rate, number_first):
    trainer = Trainer(REPLICAS, number_first=number_first)
    x = np.ones((8, 4), "float32")
    for feed in ({"x": x, "rate": rate}, {"rate": rate, "x": x}):
        with pytest.raises(fluid.core.EnforceNotMet) as e:
            trainer.run(feed)
        told = str(e.value)
        assert '"rate" must have samples for each of the 2' in told and "`persistable = True`" in told
        assert "a list of one dict per replica" in told and told.count("anabranch help ShapeMismatch") == 1


def test_the_error_of_a_repeated_call_says_how():
    trainer = Trainer(REPLICAS)
    x = np.ones((8, 4), "float32")
    for _ in range(2):
        trainer.run({"x": x, "rate": np.full([2], 0.1, "float32")})
    with pytest.raises(ValueError, match='"rate" must have samples'):
        trainer.run({"x": x, "rate": np.full([1], 0.1, "float32")})
    with pytest.raises(ValueError, match='"x" must have samples'):
        trainer.run({"x": x[:1], "rate": np.full([2], 0.1, "float32")})


def test_parallel_executor_says_how():
    trainer = Trainer(REPLICAS)
    with fluid.scope_guard(trainer.scope), pytest.MonkeyPatch.context() as patch:
        patch.setenv("CPU_NUM", str(REPLICAS))
        parallel = fluid.ParallelExecutor(use_cuda=False, main_program=trainer.main, loss_name=trainer.loss.name)
        with pytest.raises(ValueError, match="a list of one dict per replica"):
            parallel.run([trainer.loss.name], feed={"x": np.ones((8, 4), "float32"), "rate": 0.1})


def test_the_error_in_exact_mode_says_how():
    before = fluid.get_flags("FLAGS_fluid_exact")
    fluid.set_flags({"FLAGS_fluid_exact": "1.8.5"})
    try:
        with pytest.raises(ValueError, match='too few for 2 devices(.|\n)*"rate" must have samples'):
            Trainer(REPLICAS).run({"x": np.ones((8, 4), "float32"), "rate": np.array([0.1], "float32")})
    finally:
        fluid.set_flags(before)


def test_other_errors_of_shapes_stay_as_they_are():
    with pytest.raises(ValueError) as e:
        Trainer(REPLICAS).run({"x": np.ones((8, 3), "float32"), "rate": np.ones([2], "float32")})
    assert "per replica" not in str(e.value)


@pytest.mark.parametrize("way", ["persistable", "list", "repeated"])
def test_each_way_trains_as_one_replica_does(way):
    trainer = Trainer(REPLICAS, persistable=way == "persistable")
    for x, rate in batches():
        trainer.run({"persistable": {"x": x, "rate": rate},
                     "list": [{"x": half, "rate": rate} for half in np.split(x, REPLICAS)],
                     "repeated": {"x": x, "rate": np.repeat(rate, REPLICAS)}}[way])
    np.testing.assert_allclose(trainer.weights(), as_one_replica(), rtol=1e-5)
