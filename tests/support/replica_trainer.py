"""Small models that replicas train, and a trainer that has its own scope."""
import numpy as np

import anabranch.fluid as fluid

REDUCE = fluid.BuildStrategy.ReduceStrategy


def dense_model(width=5):
    x = fluid.data("x", [None, 4], "float32")
    y = fluid.data("y", [None, 1], "float32")
    h = fluid.layers.fc(x, width, act="tanh")
    return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(h, 1), y))


class Trainer:
    """One model with its own programs and scope."""

    def __init__(self, model, optimizer, seed=5):
        self.main, self.startup, self.scope = fluid.Program(), fluid.Program(), fluid.Scope()
        self.main.random_seed = self.startup.random_seed = seed
        with fluid.program_guard(self.main, self.startup), fluid.unique_name.guard():
            self.loss = model()
            optimizer().minimize(self.loss)
        self.exe = fluid.Executor(fluid.CPUPlace())
        self.target = self.main
        with fluid.scope_guard(self.scope):
            self.exe.run(self.startup)

    def parallel(self, replicas, reduce=REDUCE.AllReduce, threads=0, **build):
        bs, es = fluid.BuildStrategy(), fluid.ExecutionStrategy()
        bs.reduce_strategy = reduce
        es.num_threads = threads
        for k, v in build.items():
            setattr(bs, k, v)
        self.target = fluid.CompiledProgram(self.main).with_data_parallel(
            loss_name=self.loss.name, build_strategy=bs, exec_strategy=es, places=[fluid.CPUPlace()] * replicas)
        return self

    def step(self, feed, fetch=None):
        with fluid.scope_guard(self.scope):
            return self.exe.run(self.target, feed=feed, fetch_list=fetch or [self.loss])

    def state(self):
        names = sorted(v.name for v in self.main.list_vars() if v.persistable)
        return {n: np.array(self.scope.find_var(n).get_tensor()) for n in names}


def sgd():
    return fluid.optimizer.SGD(0.1)


def momentum():
    return fluid.optimizer.Momentum(0.1, 0.9)


def adam():
    return fluid.optimizer.Adam(0.05)


def batch(rows, seed):
    rng = np.random.RandomState(seed)
    x = rng.normal(0, 1, (rows, 4)).astype("float32")
    return {"x": x, "y": x.sum(1, keepdims=True).astype("float32")}


def assert_same_bits(a, b):
    assert sorted(a) == sorted(b)
    for n in a:
        np.testing.assert_array_equal(a[n], b[n], err_msg=n)
