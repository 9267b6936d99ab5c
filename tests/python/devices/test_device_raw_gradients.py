"""Updates on a simulated device that take gradients in 16 bits, not yet divided by the scale of the loss: the bits are
those of the casts and divisions that the pass raw_gradients leaves out."""
import pytest
from device_runs import pytestmark, run  # noqa: F401

TRAIN = r"""
import re
L = fluid.layers
amp = fluid.contrib.mixed_precision

RULES = {
    "sgd": lambda: fluid.optimizer.SGD(0.05),
    "momentum": lambda: fluid.optimizer.Momentum(0.05, 0.9),
    "nesterov": lambda: fluid.optimizer.Momentum(0.05, 0.9, use_nesterov=True),
    "adam": lambda: fluid.optimizer.Adam(0.01),
}

def net(sizes=(3, 5)):
    "Weights of 13 n, n and n elements: products in 16 bits, a sum in float32."
    x, y = fluid.data("x", [None, 13]), fluid.data("y", [None, 1])
    parts = [L.reduce_mean(L.tanh(L.fc(x, n)), dim=1, keep_dim=True) for n in sizes]
    return L.mean(L.square_error_cost(L.sums(parts), y))

def scaled(rule, scale, dtype="bfloat16", dynamic=False):
    "Minimizes by this rule, with operators of 16 bits and a scaled loss."
    return lambda loss: amp.decorate(RULES[rule](), dtype=dtype, init_loss_scaling=scale,
                                     use_dynamic_loss_scaling=dynamic).minimize(loss)

def learn(apply, places=None, fetch=(), sizes=(3, 5), disable="", steps=4, given=None, mode="AllReduce"):
    "The persistable variables after the steps, the fetches, and the explanation of the passes."
    fluid.set_flags({"FLAGS_disable_passes": disable})
    places = places or fluid.cuda_places([0])
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 5
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss = net(sizes)
        apply(loss)
    exe, scope = fluid.Executor(places[0]), fluid.Scope()
    build = fluid.BuildStrategy()
    build.reduce_strategy = getattr(fluid.BuildStrategy.ReduceStrategy, mode)
    program = fluid.CompiledProgram(main).with_data_parallel(loss.name, build_strategy=build, places=places)
    fetched = []
    with fluid.scope_guard(scope):
        exe.run(startup)
        for step in range(steps):
            r = np.random.RandomState(step)
            x = r.rand(12, 13).astype("float32")
            if given:
                given(step, scope)
            fetched.append(exe.run(program, feed={"x": x, "y": x.sum(1, keepdims=True)}, fetch_list=[loss, *fetch]))
        kept = {v.name: np.array(scope.find_var(v.name).get_tensor()) for v in main.list_vars() if v.persistable}
    return kept, fetched, program.explain()

def done(text):
    "Gradients that are taken as they come, casts and divisions that are left out."
    said = re.search(r"raw_gradients +applied, (\d+) changes?.*(?:\n +updates do (\d+) casts? and (\d+) div)?", text)
    return tuple(int(n or 0) for n in said.groups())

def check(apply, counts, **k):
    "The same with and without the pass, whose counts are those of the case."
    kept, fetched, text = learn(apply, **k)
    assert done(text) == counts, (done(text), text)
    assert "on the CPU: none" in text, text
    plain, expected, text = learn(apply, disable="raw_gradients", **k)
    assert "raw_gradients    skipped: FLAGS_disable_passes names it" in text, text
    for name in plain:
        assert np.isfinite(plain[name]).all() and (kept[name] == plain[name]).all(), name
    for a, b in zip(fetched, expected):
        assert all((x == y).all() for x, y in zip(a, b))
    return kept, text
"""


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("rule", ["sgd", "momentum", "nesterov", "adam"])
def test_bits_are_those_of_casts_and_divisions(rule, dtype):
    """Parameters end after a pack of 16 bytes, in it and before it, and after a chunk of 1024 elements."""
    run(TRAIN + f"""
sizes = (1, 3, 5, 1000, 1025, 4097)
kept, _ = check(scaled("{rule}", 128.0, "{dtype}"), (12, 12, 12), sizes=sizes)
assert sorted({{v.size for v in kept.values()}} & set(sizes)) == list(sizes)
single, _, text = learn(scaled("{rule}", 128.0, "{dtype}"), sizes=sizes, disable="fuse_optimizers")
assert done(text) == (0, 0, 0) and all((kept[name] == single[name]).all() for name in single)
""")


def test_the_scale_counts():
    """A power of two is exact: others round."""
    run(TRAIN + """
kept = [check(scaled("sgd", scale), (4, 4, 4), steps=2)[0] for scale in (1.0, 3.0, 100.0)]
assert any((kept[0][n] != kept[1][n]).any() for n in kept[0])
""")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_scales_that_move(dtype):
    """Where steps may be skipped, gradients are read and written after their divisions, which stay."""
    run(TRAIN + f"""
kept, _ = check(scaled("adam", SCALE, "{dtype}", dynamic=True), (0, 0, 0), steps=6)
assert kept["loss_scaling_0"] < SCALE
""".replace("SCALE", "2.0 ** 127" if dtype == "bfloat16" else "2.0 ** 30"))


def test_replicas_divide_what_they_have_added_up():
    run(TRAIN + """
for mode, changes in (("AllReduce", 8), ("Reduce", 3)):
    check(scaled("adam", 100.0), (changes, 0, changes), places=fluid.cuda_places([0, 1]), mode=mode)
""", simdevice_devices=2)


def test_an_output_with_another_reader_keeps_its_op():
    run(TRAIN + """
check(scaled("momentum", 100.0), (4, 3, 4), fetch=["fc_0.w_0@GRAD"])
check(scaled("momentum", 100.0), (3, 3, 3), fetch=["tmp_1"])
""")


HANDMADE = """
def steps(*change, clip=None):
    def apply(loss):
        optimizer = fluid.optimizer.Momentum(0.05, 0.9, grad_clip=clip)
        pairs = optimizer.backward(loss)
        gradients = [g for _, g in pairs]
        with fluid.default_main_program()._optimized_guard([]):
            for each in change:
                gradients = each(gradients)
        optimizer.apply_gradients([(p, g) for (p, _), g in zip(pairs, gradients)])
    return apply

def number(value=3.0, **k):
    return L.create_global_var([1], value, "float32", persistable=True, name="scale", **k)

def rounded(gs):
    return [L.cast(L.cast(g, "float16"), "float32") for g in gs]

def divided(gs):
    scale = number()
    return [g / scale for g in gs]
"""


def test_each_alone():
    run(TRAIN + HANDMADE + """
check(steps(rounded), (4, 4, 0))
check(steps(divided), (4, 0, 4))
check(steps(rounded, divided), (4, 4, 4))
check(steps(divided, rounded), (4, 4, 0))
""")


def test_gradients_of_one_update_may_differ():
    run(TRAIN + HANDMADE + """
def some(gs):
    one, other = number(), L.fill_constant([1], "float32", 7.0)
    return [gs[0] / one, rounded(gs[1:2])[0], rounded(gs[2:3])[0] / other, gs[3]]
check(steps(some), (3, 2, 2))
""")


def test_a_gradient_that_is_read_elsewhere_is_made():
    run(TRAIN + HANDMADE + """
def looked_at(gs):
    L.assign(L.reduce_sum(gs[1]), L.create_global_var([1], 0.0, "float32", persistable=True, name="seen"))
    return gs
kept, _ = check(steps(rounded, divided, looked_at), (3, 3, 3))
assert kept["seen"] != 0
check(steps(rounded, looked_at, divided), (4, 3, 4))
for clip in ("Value(0.01)", "Norm(0.1)", "GlobalNorm(0.1)"):
    check(steps(rounded, divided, clip=eval("fluid.clip.GradientClipBy" + clip)), (0, 0, 0))
decayed = lambda loss: amp.decorate(
    fluid.optimizer.SGD(0.05, regularization=fluid.regularizer.L2Decay(0.1)), dtype="bfloat16", init_loss_scaling=100.0,
    use_dynamic_loss_scaling=False).minimize(loss)
check(decayed, (0, 0, 0))
""")


def test_operands_that_are_written_before_the_update():
    run(TRAIN + HANDMADE + """
def then_other_scale(gs):
    gs = divided(gs)
    L.increment(fluid.default_main_program().global_block().var("scale"), 4.0)
    return gs
kept, _ = check(steps(rounded, then_other_scale), (0, 0, 0))
assert kept["scale"] == 3 + 4 * 4

def then_other_gradient(gs):
    "The first lies in 16 bits in a variable that is written again."
    block = fluid.default_main_program().global_block()
    low = L.create_global_var(gs[0].shape, 0.0, "float16", persistable=True, name="low")
    L.assign(L.cast(gs[0], "float16"), low)
    first = L.cast(low, "float32")
    L.assign(L.cast(first * 2.0, "float16"), low)
    return [first] + rounded(gs[1:])
kept, _ = check(steps(then_other_gradient), (3, 3, 0))
assert kept["low"].any()

def by_a_parameter(gs):
    "A parameter that the same update moves."
    scale = L.create_parameter([1], "float32", name="moved", default_initializer=fluid.initializer.Constant(2.0))
    return [g / scale for g in gs]
def apply(loss):
    optimizer = fluid.optimizer.SGD(0.05)
    pairs = optimizer.backward(loss)
    with fluid.default_main_program()._optimized_guard([]):
        gradients = by_a_parameter([g for _, g in pairs])
    moved = fluid.default_main_program().global_block().var("moved")
    extra = [(moved, L.fill_constant([1], "float32", 0.5))]
    optimizer.apply_gradients([(p, g) for (p, _), g in zip(pairs, gradients)] + extra)
kept, text = check(apply, (0, 0, 0))
assert kept["moved"] < 2 and "fuse_optimizers  applied, 5 changes" in text, text
""")


def test_one_gradient_may_be_read_twice():
    run(TRAIN + HANDMADE + """
def shared(gs):
    one, = divided(rounded(gs[:1]))
    return [one, gs[1], one, gs[3]]
check(steps(shared), (2, 1, 1), sizes=(3, 3))

def apply(loss):
    "One number is the gradient of a bias and the rate of all parameters."
    with fluid.default_main_program()._optimized_guard([]):
        rate = L.fill_constant([1], "float32", 0.1) / number()
    optimizer = fluid.optimizer.SGD(rate)
    optimizer.apply_gradients([(p, rate if p.shape == (1,) else g) for p, g in optimizer.backward(loss)])
kept, text = check(apply, (0, 0, 0), sizes=(1, 3))
assert "fuse_optimizers  applied, 4 changes" in text, text
""")


def test_other_casts_and_divisions_stay():
    run(TRAIN + HANDMADE + """
check(steps(lambda gs: [L.cast(L.cast(g, "float64"), "float32") for g in gs]), (0, 0, 0))
check(steps(lambda gs: [g / (L.square(g) + 1.0) for g in gs]), (0, 0, 0))
""")


def test_a_scale_of_another_shape_is_refused_as_without_the_pass():
    run(TRAIN + HANDMADE + """
def given(step, scope):
    if step == 2:
        scope.find_var("scale").get_tensor().set(np.ones([2], "float32"), fluid.CPUPlace())
for disable in ("", "raw_gradients"):
    try:
        learn(steps(divided), given=given, disable=disable)
        raise SystemExit("it ran")
    except fluid.core.EnforceNotMet as e:
        assert e.kind == "ShapeMismatch" and "elementwise_div" in str(e), str(e)
""")
