"""Control flow when it runs: which branch, its gradient, what an untaken branch must not touch, nesting, replicas."""
import numpy as np
import pytest

import anabranch.fluid as fluid

layers = fluid.layers
CPU = fluid.CPUPlace()


class Built:
    """A program over ``x`` (float64, [rows, 3]) and ``i`` (int64, [1]); the loss, and its gradient by x and w."""

    def __init__(self, build, optimizer=None):
        self.main, self.startup, self.scope = fluid.Program(), fluid.Program(), fluid.Scope()
        self.exe = fluid.Executor(CPU)
        with fluid.program_guard(self.main, self.startup), fluid.unique_name.guard():
            x, i = fluid.data("x", [None, 3], "float64"), fluid.data("i", [1], "int64")
            x.stop_gradient = False
            w = layers.create_parameter([3], "float64", name="w",
                                        default_initializer=fluid.initializer.Constant(0.0))
            self.loss = layers.reduce_sum(layers.square(build(x, w, i)))
            if optimizer:
                optimizer.minimize(self.loss)
            else:
                self.gradients = fluid.gradients(self.loss, [x, w])
        self.exe.run(self.startup, scope=self.scope)
        self.scope.find_var("w").get_tensor().set(WEIGHT, CPU)

    def run(self, x, i, fetch=None, target=None, w=None):
        if w is not None:
            self.scope.find_var("w").get_tensor().set(w, CPU)
        return self.exe.run(target or self.main, feed={"x": x, "i": np.array([i])}, fetch_list=fetch or [self.loss],
                            scope=self.scope)

    def check(self, x, i, value):
        """The loss is that of ``value(x, w)``, the gradients are central differences of the loss itself."""
        loss, *grads = self.run(x, i, [self.loss, *self.gradients], w=WEIGHT)
        np.testing.assert_allclose(loss, np.sum(value(x, WEIGHT) ** 2), rtol=1e-12)
        for which, got in enumerate(grads):
            numeric = np.zeros_like(got)
            for at in np.ndindex(*got.shape):
                ends = []
                for step in (1e-5, -1e-5):
                    moved = [x.copy(), WEIGHT.copy()]
                    moved[which][at] += step
                    ends.append(self.run(moved[0], i, w=moved[1])[0].item())
                numeric[at] = (ends[0] - ends[1]) / 2e-5
            np.testing.assert_allclose(got, numeric, rtol=1e-6, atol=1e-8, err_msg="x" if which == 0 else "w")


WEIGHT = np.array([0.7, -1.1, 0.4])
X = np.array([[0.3, 1.2, -0.8], [1.5, -0.4, 0.9]])


def below(i, bound):
    return layers.less_than(i, layers.fill_constant([1], "int64", bound))


def test_cond_runs_one_branch_and_its_gradient():
    built = Built(lambda x, w, i: layers.cond(
        below(i, 4), lambda: layers.elementwise_mul(x, w), lambda: layers.elementwise_sub(x, w)))
    built.check(X, 2, lambda x, w: x * w)
    built.check(X, 7, lambda x, w: x - w)
    built.check(X, 3, lambda x, w: x * w)


def test_what_is_made_before_a_cond_and_read_by_both_branches_has_one_gradient():
    def build(x, w, i):
        h = layers.elementwise_mul(x, w)
        return layers.cond(below(i, 4), lambda: layers.square(h), lambda: layers.elementwise_mul(h, layers.square(h)))
    built = Built(build)
    built.check(X, 2, lambda x, w: (x * w) ** 2)
    built.check(X, 7, lambda x, w: (x * w) ** 3)


def test_cond_with_structures_and_results_from_outside():
    def build(x, w, i):
        doubled = layers.scale(x, 2.0)
        first, (second,) = layers.cond(below(i, 4), lambda: (layers.tanh(doubled), [x]),
                                       lambda: (x, [layers.elementwise_mul(doubled, w)]))
        return layers.elementwise_add(first, second)
    built = Built(build)
    for i in (0, 9):
        loss, = built.run(X, i)
        expected = np.tanh(2 * X) + X if i < 4 else X + 2 * X * WEIGHT
        np.testing.assert_allclose(loss, np.sum(expected ** 2), rtol=1e-12)


def test_three_levels():
    def level(x, w, i, depth):
        if depth == 0:
            return layers.elementwise_mul(x, w)
        return layers.cond(below(i, 2 * depth), lambda: layers.scale(level(x, w, i, depth - 1), 2.0),
                           lambda: layers.elementwise_add(layers.square(x), w))
    built = Built(lambda x, w, i: level(x, w, i, 3))
    for i, value in ((1, lambda x, w: 8 * x * w), (3, lambda x, w: 4 * (x * x + w)), (5, lambda x, w: 2 * (x * x + w)),
                     (6, lambda x, w: x * x + w)):
        loss, = built.run(X, i)
        np.testing.assert_allclose(loss, np.sum(value(X, WEIGHT) ** 2), rtol=1e-12)


def test_gradients_of_three_levels():
    def level(x, w, i, depth):
        if depth == 0:
            return layers.elementwise_mul(x, w)
        return layers.cond(below(i, 2 * depth), lambda: layers.scale(level(x, w, i, depth - 1), 2.0),
                           lambda: layers.elementwise_add(layers.square(x), w))
    built = Built(lambda x, w, i: level(x, w, i, 3))
    for i, value in ((1, lambda x, w: 8 * x * w), (3, lambda x, w: 4 * (x * x + w)), (5, lambda x, w: 2 * (x * x + w)),
                     (6, lambda x, w: x * x + w)):
        built.check(X, i, value)


POWERS = {1: lambda x: x, 2: np.square, 7: lambda x: x ** 3}


def power_branches(x):
    return {1: lambda: layers.scale(x, 1.0), 2: lambda: layers.square(x),
            7: lambda: layers.elementwise_mul(x, layers.square(x))}


@pytest.mark.parametrize("i", [1, 2, 7, 5, -1])
def test_switch_case(i):
    built = Built(lambda x, w, at: layers.switch_case(at, power_branches(layers.scale(x, 3.0)),
                                                      lambda: layers.scale(x, -1.0)))
    expected = POWERS[i](3 * X) if i in POWERS else -X
    np.testing.assert_allclose(built.run(X, i)[0], np.sum(expected ** 2), rtol=1e-12)


@pytest.mark.parametrize("i", [0, 1, 2, 5, 6, 100])
def test_case_takes_the_first_true_one(i):
    def build(x, w, at):
        branches = power_branches(x)
        return layers.case([(below(at, bound), branches[bound]) for bound in (1, 2, 7)], lambda: layers.scale(x, -1.0))
    built = Built(build)
    bound = next((b for b in (1, 2, 7) if i < b), None)
    expected = POWERS[bound](X) if bound else -X
    np.testing.assert_allclose(built.run(X, i)[0], np.sum(expected ** 2), rtol=1e-12)


def test_switch_writes_what_its_case_assigns():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        i = fluid.data("i", [1], "int64")
        out = layers.create_global_var([1], -1.0, "float32", persistable=True)
        with layers.Switch() as switch:
            for bound in (2, 5):
                with switch.case(below(i, bound)):
                    layers.assign(np.array([float(bound)], "float32"), out)
            with switch.default():
                layers.assign(np.array([9.0], "float32"), out)
    exe = fluid.Executor(CPU)
    got = [exe.run(main, feed={"i": np.array([at])}, fetch_list=[out])[0].item() for at in (0, 1, 2, 4, 5, 8, 0)]
    assert got == [2, 2, 5, 5, 9, 9, 2]


class Counted:
    """Programs in which each branch adds to its own persistable number."""

    def __init__(self):
        self.main, self.scope = fluid.Program(), fluid.Scope()
        with fluid.program_guard(self.main, fluid.Program()), fluid.unique_name.guard():
            block = self.main.global_block()
            i = fluid.data("i", [1], "int64")
            self.names = ["yes", "no"]
            for name in self.names:
                self.scope.var(name).get_tensor().set(np.zeros(1, "float32"), CPU)
            yes, no = (block.create_var(name=n, shape=[1], dtype="float32", persistable=True) for n in self.names)
            layers.cond(below(i, 4), lambda: layers.increment(yes), lambda: layers.increment(no, 10.0))
        self.exe = fluid.Executor(CPU)

    def run(self, i):
        self.exe.run(self.main, feed={"i": np.array([i])}, scope=self.scope)
        return [np.array(self.scope.find_var(n).get_tensor()).item() for n in self.names]


def test_the_other_branch_does_not_run():
    counted = Counted()
    assert [counted.run(i) for i in (0, 9, 1)] == [[1, 0], [1, 10], [2, 10]]


def parameter_of_each_branch():
    def build(x, w, i):
        extra = layers.create_parameter([3], "float64", name="extra",
                                        default_initializer=fluid.initializer.Constant(0.5))
        return layers.cond(below(i, 4), lambda: layers.elementwise_mul(x, w), lambda: layers.elementwise_mul(x, extra))
    return Built(build, fluid.optimizer.SGD(0.01))


@pytest.mark.parametrize("i", [1, 6])
def test_the_parameter_of_the_branch_that_did_not_run_stays(i):
    built = parameter_of_each_branch()
    before = {n: np.array(built.scope.find_var(n).get_tensor()) for n in ("w", "extra")}
    built.run(X, i)
    after = {n: np.array(built.scope.find_var(n).get_tensor()) for n in ("w", "extra")}
    used, unused = ("w", "extra") if i < 4 else ("extra", "w")
    np.testing.assert_array_equal(after[unused], before[unused])
    gradient = 2 * np.sum(X * X, 0) * before[used]
    np.testing.assert_allclose(after[used], before[used] - np.float32(0.01) * gradient, rtol=1e-12)


@pytest.mark.parametrize("i", [1, 6])
@pytest.mark.parametrize("reduce", [False, True])
@pytest.mark.parametrize("replicas", [2, 3])
def test_replicas_take_the_same_branch_as_one(replicas, reduce, i):
    rng = np.random.RandomState(0)
    one, several = parameter_of_each_branch(), parameter_of_each_branch()
    build = fluid.BuildStrategy()
    modes = fluid.BuildStrategy.ReduceStrategy
    build.reduce_strategy = modes.Reduce if reduce else modes.AllReduce
    build.gradient_scale_strategy = fluid.BuildStrategy.GradientScaleStrategy.One  # the loss is a sum
    target = fluid.CompiledProgram(several.main).with_data_parallel(several.loss.name, build, places=[CPU] * replicas)
    for _ in range(3):
        x = rng.normal(size=(6, 3))
        one.run(x, i)
        several.exe.run(target, feed=[{"x": part, "i": np.array([i])} for part in np.split(x, replicas)],
                        fetch_list=[several.loss], scope=several.scope)
        for name in ("w", "extra"):
            np.testing.assert_allclose(np.array(several.scope.find_var(name).get_tensor()),
                                       np.array(one.scope.find_var(name).get_tensor()), rtol=1e-9, err_msg=name)


def test_each_replica_may_take_its_own_branch():
    built = Built(lambda x, w, i: layers.cond(
        below(i, 4), lambda: layers.elementwise_mul(x, w), lambda: layers.elementwise_sub(x, w)))
    target = fluid.CompiledProgram(built.main).with_data_parallel(built.loss.name, places=[CPU] * 2)
    losses, = built.exe.run(target, feed=[{"x": X, "i": np.array([0])}, {"x": X, "i": np.array([9])}],
                            fetch_list=[built.loss], scope=built.scope)
    np.testing.assert_allclose(losses, [np.sum((X * WEIGHT) ** 2), np.sum((X - WEIGHT) ** 2)], rtol=1e-12)


def test_a_branch_may_write_what_the_op_reads():
    """softmax reads a row again and again: its result is put into its input's place at the end."""
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        x, i = fluid.data("x", [None, 3], "float64"), fluid.data("i", [1], "int64")

        def branch():
            h = layers.scale(x, 2.0)
            h.block.append_op(type="softmax", inputs={"X": h}, outputs={"Out": h})
            h.block.append_op(type="cumsum", inputs={"X": h}, outputs={"Out": h})
            return h
        out = layers.cond(below(i, 1), branch, lambda: layers.scale(x, 1.0))
    softmax = np.exp(2 * X) / np.exp(2 * X).sum(1, keepdims=True)
    for number, expected in ((0, softmax.cumsum(1)), (1, X), (0, softmax.cumsum(1))):
        (got,) = fluid.Executor(CPU).run(main, feed={"x": X, "i": np.array([number])}, fetch_list=[out])
        np.testing.assert_allclose(got, expected, rtol=1e-12)


def inference_branch():
    """out = 2 x where the condition holds, x where it does not, by the operator that programs for inference hold."""
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x, yes = fluid.data("x", [None, 2]), fluid.data("yes", [1], "bool")
        top = main.global_block()
        out, scopes = top.create_var(name="out", shape=[-1, 2], dtype="float32"), top.create_var(
            name="scopes", type=fluid.core.VarDesc.VarType.STEP_SCOPES)
        layers.assign(x, out)
        branch = main._create_block()
        branch.append_op(type="scale", inputs={"X": [x]}, outputs={"Out": [out]}, attrs={"scale": 2.0})
        main._rollback()
        top.append_op(type="conditional_block_infer", inputs={"Cond": [yes], "Input": [x]},
                      outputs={"Out": [out], "Scope": [scopes]},
                      attrs={"sub_block": branch, "is_scalar_condition": True})
    return main, out


@pytest.mark.parametrize("yes, expected", [(True, 2.0), (False, 1.0)])
def test_the_branch_of_programs_for_inference(yes, expected, tmp_path):
    main, out = inference_branch()
    feed = {"x": np.ones((3, 2), "float32"), "yes": np.array([yes])}
    exe = fluid.Executor(CPU)
    np.testing.assert_array_equal(exe.run(main, feed=feed, fetch_list=[out])[0], np.full((3, 2), expected))
    loaded = fluid.Program.parse_from_string(main.desc.serialize_to_string())
    np.testing.assert_array_equal(exe.run(loaded, feed=feed, fetch_list=["out"])[0], np.full((3, 2), expected))
    fluid.io.save_inference_model(str(tmp_path), ["x", "yes"], [out], exe, main)
    program, _, fetches = fluid.io.load_inference_model(str(tmp_path), exe)
    np.testing.assert_array_equal(exe.run(program, feed=feed, fetch_list=fetches)[0], np.full((3, 2), expected))
