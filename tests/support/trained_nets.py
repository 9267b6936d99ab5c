"""Six small models that between them use what the passes look at, and a way to train them with passes on and off."""
import numpy as np

import anabranch.fluid as fluid
from anabranch import _core

PASSES = [name for name, *_ in _core.pass_list()]
layers = fluid.layers
ROWS = 6


def labels(rng, n, classes=3):
    return rng.randint(0, classes, (n, 1)).astype("int64")


def mlp():
    x, y = fluid.data("x", [None, 6], "float32"), fluid.data("y", [None, 1], "int64")
    h = layers.fc(x, 8, act="relu")
    h = layers.fc(h, 8, act="sigmoid")
    h = layers.fc(h, 40, act="tanh")
    loss = layers.mean(layers.cross_entropy(layers.fc(h, 3, act="softmax"), y))
    fluid.optimizer.Adam(0.05).minimize(loss)
    return loss, lambda rng: {"x": rng.normal(0, 1, (ROWS, 6)).astype("float32"), "y": labels(rng, ROWS)}


def conv_bn():
    x, y = fluid.data("x", [None, 2, 6, 6], "float32"), fluid.data("y", [None, 1], "int64")
    h = layers.conv2d(x, 4, 3, padding=1, act="relu")
    h = layers.batch_norm(layers.conv2d(h, 4, 3, padding=1, bias_attr=False), act="relu")
    h = layers.relu(layers.elementwise_add(h, layers.batch_norm(layers.conv2d(x, 4, 1, bias_attr=False))))
    h = layers.pool2d(h, 2, "avg", 2)
    loss = layers.mean(layers.softmax_with_cross_entropy(layers.fc(h, 3), y))
    fluid.optimizer.Momentum(0.05, 0.9).minimize(loss)
    return loss, lambda rng: {"x": rng.normal(0, 1, (ROWS, 2, 6, 6)).astype("float32"), "y": labels(rng, ROWS)}


def sparse_ctr():
    ids, dense = fluid.data("ids", [None, 3], "int64"), fluid.data("dense", [None, 4], "float32")
    y = fluid.data("y", [None, 1], "float32")
    embedded = fluid.embedding(ids, [20, 4], is_sparse=True)
    h = layers.concat([layers.reshape(embedded, [-1, 12]), dense], axis=1)
    h = layers.fc(h, 8, act="relu")
    logit = layers.fc(h, 1) + layers.fc(dense, 1, bias_attr=False)
    loss = layers.mean(layers.sigmoid_cross_entropy_with_logits(logit, y))
    fluid.optimizer.Adagrad(0.05).minimize(loss)

    def feed(rng):
        return {"ids": rng.randint(0, 20, (ROWS, 3)).astype("int64"),
                "dense": rng.normal(0, 1, (ROWS, 4)).astype("float32"),
                "y": rng.randint(0, 2, (ROWS, 1)).astype("float32")}
    return loss, feed


def sequences():
    words = fluid.data("words", [None, 1], "int64", lod_level=1)
    y = fluid.data("y", [None, 1], "int64")
    h = layers.embedding(words, [15, 5])
    h = layers.fc(h, 6, act="tanh")
    h = layers.sequence_pool(h, "sum") + layers.sequence_pool(h, "max")
    loss = layers.mean(layers.cross_entropy(layers.fc(h, 3, act="softmax"), y))
    fluid.optimizer.SGD(0.1).minimize(loss)

    def feed(rng):
        lengths = rng.randint(1, 4, ROWS).tolist()
        ids = rng.randint(0, 15, (sum(lengths), 1)).astype("int64")
        return {"words": fluid.create_lod_tensor(ids, [lengths], fluid.CPUPlace()), "y": labels(rng, ROWS)}
    return loss, feed


def deep_elementwise():
    x = fluid.data("x", [None, 5], "float32")
    w = layers.create_parameter([5], "float32", name="w")
    h = x
    for i in range(6):
        h = layers.elementwise_add(layers.scale(h, 0.5 + 0.1 * i, bias=0.1), w)
        h = (layers.relu, layers.tanh, layers.sigmoid, layers.square, layers.exp, layers.abs)[i](h)
        h = layers.elementwise_mul(h, x) if i % 2 else layers.elementwise_sub(h, w)
    h = layers.assign(layers.scale(layers.cast(h, "float32"), 1.0))
    loss = layers.mean(layers.square(h))
    fluid.optimizer.RMSProp(0.01).minimize(loss)
    return loss, lambda rng: {"x": rng.normal(0, 0.5, (ROWS, 5)).astype("float32")}


def schedule_and_clip():
    x, y = fluid.data("x", [None, 6], "float32"), fluid.data("y", [None, 1], "float32")
    h = layers.fc(x, 7, act="relu", param_attr=fluid.ParamAttr(learning_rate=0.5))
    loss = layers.mean(layers.square_error_cost(layers.fc(h, 1), y))
    rate = layers.exponential_decay(0.05, 2, 0.9, staircase=True)
    fluid.optimizer.Momentum(rate, 0.9, regularization=fluid.regularizer.L2Decay(0.01),
                             grad_clip=fluid.clip.GradientClipByGlobalNorm(0.5)).minimize(loss)
    return loss, lambda rng: {"x": rng.normal(0, 1, (ROWS, 6)).astype("float32"),
                              "y": rng.normal(0, 1, (ROWS, 1)).astype("float32")}


MODELS = {f.__name__: f for f in (mlp, conv_bn, sparse_ctr, sequences, deep_elementwise, schedule_and_clip)}


def changes(explained, name):
    """How many changes a pass says that it made."""
    line = next(line for line in explained.splitlines() if line.split()[0] == name)
    return int(line.split("applied, ")[1].split()[0])


def found(explained, name):
    """How many changes a pass says that it made, and what of each place: without the place, but with how many steps it
    has where these are counted."""
    lines = explained.splitlines()
    at = next(i for i, line in enumerate(lines) if line.split()[:1] == [name])
    notes = []
    for line in lines[at + 1:]:
        if not line.startswith(" " * 6):
            break
        count = [word for word in line.split()[:1] if word.isdigit()]
        what = line.rsplit("): ", 1)[1].rpartition(":: ")[2]  # after the user's line
        notes.append(" ".join([*count, what]))
    return changes(explained, name), notes


def same_bits(expected, got):
    assert len(expected) == len(got)
    for a, b in zip(expected, got):
        np.testing.assert_array_equal(a, b)


def of_one_size(expected, got):
    """Up to 1e-6 of the largest element: sums in another order."""
    assert len(expected) == len(got)
    for a, b in zip(expected, got):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-6 * max(1.0, np.abs(a).max(initial=0)))


def check_pass(trained, name, nodes, around=None, compare=same_bits, **how):
    """With and without the pass: by itself, and with all others around it; `around`: with these lists instead."""
    others = [p for p in PASSES if p != name]
    for passes in around or ([], others):
        expected, _ = trained.run(passes, **how)
        got, told = trained.run([*passes, name], **how)
        assert changes(told, name) == nodes
        compare(expected, got)


class Trained:
    """A program with its state at the beginning, to be trained again and again from there."""

    def __init__(self, model, seed=3):
        self.main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
        self.main.random_seed = startup.random_seed = seed
        self.exe = fluid.Executor(fluid.CPUPlace())
        with fluid.program_guard(self.main, startup), fluid.unique_name.guard():
            self.loss, self.feed = model()
        if startup.global_block().ops:
            self.exe.run(startup, scope=scope)
        self.persistable = [v.name for v in self.main.list_vars() if v.persistable]
        self.start = {n: np.array(scope.find_var(n).get_tensor()) for n in self.persistable}

    def begin(self):
        """A scope with the state of the beginning."""
        scope = fluid.Scope()
        for name, value in self.start.items():
            scope.var(name).get_tensor().set(value, fluid.CPUPlace())
        return scope

    def compiled(self, on, replicas=1, reduce=False, threads=1):
        """The program with these passes only."""
        build, execution = fluid.BuildStrategy(), fluid.ExecutionStrategy()
        modes = fluid.BuildStrategy.ReduceStrategy
        build.reduce_strategy = modes.Reduce if reduce else modes.AllReduce
        execution.num_threads = threads
        builder = build._finalize_strategy_and_create_passes()
        for name in set(PASSES) - set(on):
            builder.remove_pass([p.type() for p in builder.all_passes()].index(name))
        return fluid.CompiledProgram(self.main).with_data_parallel(
            loss_name=self.loss.name, build_strategy=build, exec_strategy=execution,
            places=fluid.cpu_places(replicas))

    def run(self, on, replicas=1, reduce=False, threads=1, fetch=None, steps=2):
        """Fetched values of every step, then the state; and explain()."""
        scope, target = self.begin(), self.compiled(on, replicas, reduce, threads)
        rng, out = np.random.RandomState(0), []
        for _ in range(steps):
            out += self.exe.run(target, feed=self.feed(rng), fetch_list=fetch or [self.loss], scope=scope,
                                return_numpy=False)
        out = [np.array(t) for t in out] + [np.array(scope.find_var(n).get_tensor()) for n in self.persistable]
        return out, target.explain()
