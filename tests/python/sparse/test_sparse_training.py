"""Training with sparse gradients of a table equals training with dense ones, bit for bit where the formulae coincide.

They do not in three places: Adam (Fluid moves its powers on before a sparse step and after a dense one, and lazy mode
leaves absent rows alone), clips by a norm (the squares are added in another order), and a table shared by slots (rows
are added sample by sample, dense gradients slot by slot).
"""
import numpy as np
import pytest

import anabranch.fluid as fluid

ROWS, WIDTH, PADDING, SLOTS, STEPS = 1000, 16, 7, 2, 6
RATE = 0.1
LOD_TENSOR = fluid.core.VarDesc.VarType.LOD_TENSOR
OPTIMIZERS = {
    "sgd": lambda **k: fluid.optimizer.SGD(RATE, **k),
    "momentum": lambda **k: fluid.optimizer.Momentum(RATE, 0.9, **k),
    "nesterov": lambda **k: fluid.optimizer.Momentum(RATE, 0.9, use_nesterov=True, **k),
    "adagrad": lambda **k: fluid.optimizer.Adagrad(RATE, **k),
    "decayed_adagrad": lambda **k: fluid.optimizer.DecayedAdagrad(RATE, **k),
    "adadelta": lambda **k: fluid.optimizer.Adadelta(RATE, **k),
    "adamax": lambda **k: fluid.optimizer.Adamax(RATE, **k),
    "rmsprop": lambda **k: fluid.optimizer.RMSProp(RATE, momentum=0.5, **k),
    "rmsprop_centered": lambda **k: fluid.optimizer.RMSProp(RATE, centered=True, **k),
    "ftrl": lambda **k: fluid.optimizer.Ftrl(RATE, l1=0.001, l2=0.01, **k),
    "lamb": lambda **k: fluid.optimizer.Lamb(RATE, **k),
    "lars": lambda **k: fluid.optimizer.LarsMomentum(RATE, 0.9, **k),
}
CLIPS = {
    "value": lambda: fluid.clip.GradientClipByValue(0.01),
    "norm": lambda: fluid.clip.GradientClipByNorm(0.05),
    "global_norm": lambda: fluid.clip.GradientClipByGlobalNorm(0.05),
}


def normal(seed, *shape):
    return np.random.RandomState(seed).normal(0, 0.3, shape).astype("float32")


def batches():
    """Ids of each slot with sequences of 0 to 4: repeated ones, a batch of padding and of one id each.

    Steps without rows, which some rules skip, are in test_fluid_numbers.py."""
    for step in range(STEPS):
        rng = np.random.RandomState(step)
        feed = {"y": rng.uniform(-1, 1, (8, 1)).astype("float32")}
        for slot in range(SLOTS):
            lengths = [1] + [0] * 7 if step == 3 else rng.randint(0, 5, 8).tolist()
            ids = rng.randint(0, 40 if slot else ROWS, (sum(lengths), 1))
            if step == 2:
                ids[1:] = PADDING
                ids[:1] = 1
            feed["slot%d" % slot] = fluid.create_lod_tensor(ids.astype("int64"), [lengths], fluid.CPUPlace())
        yield feed


class Model:
    """Pooled lookups, a hidden layer and a squared error."""

    def __init__(self, optimizer, sparse, shared=False, regularizer=None, lazy=None):
        self.main, self.startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(self.main, self.startup), fluid.unique_name.guard():
            y, pooled = fluid.data("y", [None, 1], "float32"), []
            for slot in range(SLOTS):
                ids = fluid.data("slot%d" % slot, [None, 1], "int64", lod_level=1)
                table = fluid.ParamAttr(name="table" if shared else "table%d" % slot, regularizer=regularizer,
                                        initializer=fluid.initializer.NumpyArrayInitializer(normal(1, ROWS, WIDTH)))
                rows = fluid.layers.embedding(ids, [ROWS, WIDTH], is_sparse=sparse, padding_idx=PADDING,
                                              param_attr=table)
                pooled.append(fluid.layers.sequence_pool(rows, "sum"))
            weight = fluid.ParamAttr(name="w", initializer=fluid.initializer.NumpyArrayInitializer(
                normal(2, SLOTS * WIDTH, 1)))
            score = fluid.layers.fc(fluid.layers.tanh(fluid.layers.concat(pooled, 1)), 1, param_attr=weight)
            self.loss = fluid.layers.mean(fluid.layers.square_error_cost(score, y))
            _, pairs = optimizer.minimize(self.loss)
            self.gradients = {p.name: g for p, g in pairs}

    def train(self, replicas=0, reduce=False, each=None):
        """{name: value} of all persistable variables after the last step; ``each(scope, fetched)`` after each."""
        program = self.main
        if replicas:
            build = fluid.BuildStrategy()
            build.reduce_strategy = getattr(build.ReduceStrategy, "Reduce" if reduce else "AllReduce")
            program = fluid.CompiledProgram(self.main).with_data_parallel(
                loss_name=self.loss.name, build_strategy=build, places=fluid.cpu_places(replicas))
        exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
        with fluid.scope_guard(scope):
            exe.run(self.startup)
            for feed in batches():
                exe.run(program, feed=feed, fetch_list=[self.loss])
                if each:
                    each(scope)
            kept = [v.name for v in self.main.list_vars() if v.persistable and v.type == LOD_TENSOR]
            return {name: np.array(scope.find_var(name).get_tensor()) for name in kept}


def both(make, **options):
    return [Model(make(), sparse, **options).train() for sparse in (True, False)]


def same_bits(a, b):
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def close(a, b, rtol=1e-5):
    for name in a:
        atol = rtol * max(1e-3, np.abs(b[name]).max())
        np.testing.assert_allclose(a[name], b[name], rtol=rtol, atol=atol, err_msg=name)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_sparse_equals_dense(name):
    sparse, dense = both(OPTIMIZERS[name])
    same_bits(sparse, dense)
    assert np.any(sparse["table0"] != normal(1, ROWS, WIDTH))


@pytest.mark.parametrize("name", ["sgd", "momentum", "adagrad", "rmsprop", "ftrl"])
def test_shared_table(name):
    close(*both(OPTIMIZERS[name], shared=True))


@pytest.mark.parametrize("name", ["sgd", "adagrad"])
@pytest.mark.parametrize("decay", [fluid.regularizer.L1Decay(0.01), fluid.regularizer.L2Decay(0.01)], ids=["l1", "l2"])
def test_regularizers_decay_all_rows(name, decay):
    """As in Fluid the gradient becomes dense: rows that a batch lacks decay, too."""
    same_bits(*both(OPTIMIZERS[name], regularizer=decay))
    same_bits(*both(lambda: OPTIMIZERS[name](regularization=decay)))


@pytest.mark.parametrize("name", ["sgd", "momentum", "adagrad"])
@pytest.mark.parametrize("clip", CLIPS)
def test_clips(clip, name):
    sparse, dense = both(lambda: OPTIMIZERS[name](grad_clip=CLIPS[clip]()))
    close(sparse, dense)
    if clip == "value":
        same_bits(sparse, dense)


@pytest.mark.parametrize("clip", CLIPS)
def test_clip_and_regularizer(clip):
    """Clipped first, decayed then."""
    close(*both(lambda: OPTIMIZERS["sgd"](grad_clip=CLIPS[clip](), regularization=fluid.regularizer.L2Decay(0.01))))


def adam(lazy):
    return fluid.optimizer.Adam(RATE, beta1=0.8, beta2=0.95, epsilon=1e-6, lazy_mode=lazy)


@pytest.mark.parametrize("lazy", [True, False])
def test_adam(lazy):
    """The table follows Kingma and Ba's rule in NumPy, absent rows with gradient zero or left alone."""
    model = Model(adam(lazy), sparse=True)
    reference = AdamReference(lazy)
    model.train(each=reference.check(dense_gradients(adam(lazy), lazy)))


def dense_gradients(optimizer, lazy):
    """The gradients of table0 that the same steps give, made dense by hand."""
    model = Model(optimizer, sparse=True)
    gradient = model.gradients["table0"]
    with fluid.program_guard(model.main):
        merged = fluid.layers.merge_selected_rows(gradient)
    merged.persistable = True
    found = []

    def keep(scope):
        rows = scope.find_var(merged.name).get_selected_rows()
        dense, touched = np.zeros((ROWS, WIDTH), "float32"), np.zeros(ROWS, bool)
        dense[rows.rows()] = np.array(rows.get_tensor())
        touched[rows.rows()] = True
        found.append((dense, touched))

    model.train(each=keep)
    return found


class AdamReference:
    def __init__(self, lazy):
        self.lazy, self.step = lazy, 0
        self.w = normal(1, ROWS, WIDTH).astype("float64")
        self.m1 = np.zeros_like(self.w)
        self.m2 = np.zeros_like(self.w)

    def check(self, gradients):
        def each(scope):
            g, touched = gradients[self.step]
            self.step += 1
            rows = touched if self.lazy else slice(None)
            self.update(rows, g.astype("float64"))
            for name, expected in (("table0", self.w), ("table0_moment1_0", self.m1), ("table0_moment2_0", self.m2)):
                got = np.array(scope.find_var(name).get_tensor())
                np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-6,
                                           err_msg="%s, step %d" % (name, self.step))
        return each

    def update(self, rows, g):
        self.m1[rows] = 0.8 * self.m1[rows] + 0.2 * g[rows]
        self.m2[rows] = 0.95 * self.m2[rows] + 0.05 * g[rows] ** 2
        power = self.step + 1  # one ahead, as in Fluid with sparse gradients
        rate = RATE * np.sqrt(1 - 0.95 ** power) / (1 - 0.8 ** power)
        self.w[rows] -= rate * self.m1[rows] / (np.sqrt(self.m2[rows]) + 1e-6)


@pytest.mark.parametrize("name", ["adam_lazy", "adam_full", *OPTIMIZERS])
def test_replicas_equal_serial(name):
    """One to four replicas, either way of reduction, equal the plain executor; both ways have equal bits."""
    make = {"adam_lazy": lambda: adam(True), "adam_full": lambda: adam(False)}.get(name) or OPTIMIZERS[name]
    serial = Model(make(), sparse=True, shared=True).train()
    for replicas in (1, 2, 3, 4):
        model = Model(make(), sparse=True, shared=True)
        sums, owned = model.train(replicas), model.train(replicas, reduce=True)
        same_bits(sums, owned)
        close(sums, serial, rtol=1e-4)
        if replicas == 1:
            same_bits(sums, serial)
