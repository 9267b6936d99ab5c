"""Averages of parameters, Lookahead, recomputation, pipelines, decoupled decay: numbers against plain training."""
import numpy
import pytest
from wrapped_optimizers import FEED, assert_same, executor, fresh_programs, net, train, values  # noqa: F401

import anabranch.fluid as fluid

# ---- averages

@pytest.mark.parametrize("thres", [False, True])
def test_moving_average_is_the_formula(thres):
    loss, _ = net(sizes=(3,))
    fluid.optimizer.SGD(0.1).minimize(loss)
    steps = fluid.layers.autoincreased_step_counter() if thres else None
    ema = fluid.optimizer.ExponentialMovingAverage(0.75, thres_steps=steps)
    ema.update()
    exe = executor()
    seen, average = [], {n: numpy.zeros_like(v) for n, v in values().items()}
    for step in range(1, 5):
        exe.run(fluid.default_main_program(), feed=FEED)
        decay = min(0.75, (1 + step) / (10 + step)) if thres else 0.75
        average = {n: decay * average[n] + (1 - decay) * v for n, v in values().items()}
    trained = values()
    for _ in range(2):  # an average that was applied is not another one afterwards
        with ema.apply(exe):
            for name, value in values().items():
                numpy.testing.assert_allclose(value, average[name] / (1 - decay ** 4), rtol=1e-5, atol=1e-6)
                seen.append(name)
        for name, value in values().items():
            numpy.testing.assert_array_equal(value, trained[name])
    assert len(seen) == 8


def test_moving_average_before_the_first_step_leaves_the_parameters():
    loss, _ = net(sizes=(3,))
    fluid.optimizer.SGD(0.1).minimize(loss)
    ema = fluid.optimizer.ExponentialMovingAverage(0.75)
    ema.update()
    exe = executor()
    before = values()
    with ema.apply(exe, need_restore=False):
        pass
    for name, value in values().items():
        numpy.testing.assert_array_equal(value, before[name])


def test_model_average_is_the_mean_of_the_window():
    loss, _ = net(sizes=(3,))
    fluid.optimizer.SGD(0.1).minimize(loss)
    average = fluid.optimizer.ModelAverage(1.0, min_average_window=3, max_average_window=3)
    exe = executor()
    history = []
    for _ in range(5):
        exe.run(fluid.default_main_program(), feed=FEED)
        history.append(values())
    trained = history[-1]
    with average.apply(exe):
        for name, value in values(list(trained)).items():
            numpy.testing.assert_allclose(value, numpy.mean([h[name] for h in history], 0), rtol=2e-6, atol=1e-7)
    for name, value in values(list(trained)).items():
        numpy.testing.assert_array_equal(value, trained[name])


def test_parameters_may_stay_out_of_averages():
    x = fluid.data("x", [None, 6], "float32")
    loss = fluid.layers.mean(fluid.layers.fc(x, 1, param_attr=fluid.ParamAttr("out", do_model_average=False)))
    fluid.optimizer.SGD(0.1).minimize(loss)
    fluid.optimizer.ModelAverage(0.5)
    made = [op.input("param")[0] for op in fluid.default_main_program().global_block().ops
            if op.type == "average_accumulates"]
    assert made == ["fc_0.b_0"]


# ---- Lookahead

def test_lookahead_goes_back_every_k_steps():
    plain = [train(n, lambda loss, hidden: fluid.optimizer.SGD(0.1).minimize(loss), sizes=(3,)) for n in (0, 2)]
    ahead = train(2, lambda loss, hidden: fluid.optimizer.LookaheadOptimizer(
        fluid.optimizer.SGD(0.1), alpha=0.25, k=2).minimize(loss), sizes=(3,))
    for name, value in ahead[1].items():
        expected = 0.25 * plain[1][1][name] + 0.75 * plain[0][1][name]
        numpy.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-7)


#: The weight after each of five steps of the net below, by Fluid 1.8.5 with CPU_NUM 1 and with CPU_NUM 2.
AHEAD = [[0.8960000276565552, 0.9704999923706055], [0.9016314744949341, 0.9707115888595581],
         [0.8082762956619263, 0.9416611194610596], [0.8133236765861511, 0.9418966770172119],
         [0.7295094728469849, 0.9133392572402954]]


@pytest.mark.parametrize("replicas", [1, 2, 4])
@pytest.mark.parametrize("strategy", ["AllReduce", "Reduce"])
def test_lookahead_on_replicas_gives_the_numbers_of_fluid(replicas, strategy):
    weight = fluid.ParamAttr("w", initializer=fluid.initializer.Constant(1.0))
    x = fluid.data("x", [None, 2], "float32")
    loss = fluid.layers.mean(fluid.layers.square(fluid.layers.fc(x, 1, param_attr=weight, bias_attr=False)))
    fluid.optimizer.LookaheadOptimizer(fluid.optimizer.SGD(0.1), alpha=0.5, k=2).minimize(loss)
    build = fluid.BuildStrategy()
    build.reduce_strategy = getattr(fluid.BuildStrategy.ReduceStrategy, strategy)
    program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
        loss_name=loss.name, build_strategy=build, places=fluid.cpu_places(replicas))
    exe, seen = executor(), []
    for _ in AHEAD:
        exe.run(program, feed={"x": numpy.array([[1, .5], [.2, -.3], [.4, .1], [-1, .6]], "float32")},
                fetch_list=[loss])
        seen.append(values(["w"])["w"].ravel())
    numpy.testing.assert_allclose(seen, AHEAD, rtol=1e-6)


# ---- recomputation

def recompute(places):
    def minimize(loss, hidden):
        made = fluid.optimizer.RecomputeOptimizer(fluid.optimizer.Momentum(0.1, 0.9))
        made._set_checkpoints([hidden[i] for i in places])
        made.minimize(loss)
    return minimize


def plain(loss, hidden):
    fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)


@pytest.mark.parametrize("kwargs", [{}, {"dropout": 0.5}, {"norm": True}, {"norm": True, "dropout": 0.25}])
@pytest.mark.parametrize("places", [(), (0,), (2,), (0, 2), (0, 1, 2)])
def test_recomputed_training_is_the_same_bit_for_bit(places, kwargs):
    assert_same(train(4, plain, **kwargs), train(4, recompute(places), **kwargs))


def test_recomputed_training_on_replicas():
    def replicas(loss):
        return fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
            loss_name=loss.name, places=fluid.cpu_places(2))

    assert_same(train(4, plain, replicas, dropout=0.5), train(4, recompute((0, 1)), replicas, dropout=0.5))


def test_what_parts_share_and_what_is_drawn_without_a_number_is_kept():
    x = fluid.data("x", [None, 6], "float32")
    a = fluid.layers.fc(x, 6, act="tanh")
    b = fluid.layers.fc(a, 6, act="sigmoid")
    c = fluid.layers.fc(b, 6, act="tanh")
    skip = fluid.layers.elementwise_add(c, a)  # read after b
    loss = fluid.layers.mean(fluid.layers.fc(skip, 1))
    fluid.backward.append_backward(loss, checkpoints=[b, skip.name])
    names = [v.name for v in fluid.default_main_program().list_vars()]
    assert a.name + ".subprog_1" not in names and c.name + ".subprog_0" in names


def test_recomputation_needs_less_memory():
    def held(minimize):
        with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard(), \
                fluid.scope_guard(fluid.Scope()):
            loss, hidden = net(sizes=(32,) * 160)
            minimize(loss, hidden)
            exe = executor()
            exe.run(feed={k: numpy.zeros([1024, v.shape[1]], "float32") for k, v in FEED.items()}, fetch_list=[loss])
            return fluid.memory_report()["gradients"] + fluid.memory_report()["activations"]

    assert held(recompute(range(11, 160, 12))) < 0.85 * held(plain)


def test_gradients_without_further_readers_hold_no_memory():
    """Updates wait for the gradients of parameters; the others are free for new values before."""
    loss, _ = net(sizes=(32,) * 80)
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe = executor()
    exe.run(feed={k: numpy.zeros([1024, v.shape[1]], "float32") for k, v in FEED.items()}, fetch_list=[loss])
    image = 1024 * 32 * 4
    assert fluid.memory_report()["gradients"] + fluid.memory_report()["activations"] < 130 * image


@pytest.mark.parametrize("make, error", [
    (lambda o: o.RecomputeOptimizer(None), TypeError), (lambda o: o.RecomputeOptimizer("x"), TypeError),
    (lambda o: o.RecomputeOptimizer(o.SGD(0.1))._set_checkpoints("h"), TypeError),
    (lambda o: o.RecomputeOptimizer(o.SGD(0.1)).minimize(net()[0]), AssertionError),
    (lambda o: o.RecomputeOptimizer(o.SGD(0.1)).load({}), NotImplementedError),
    (lambda o: o.LookaheadOptimizer(None), AssertionError),
    (lambda o: o.LookaheadOptimizer(o.SGD(0.1), alpha=1.5), AssertionError),
    (lambda o: o.LookaheadOptimizer(o.SGD(0.1), k=0), AssertionError),
    (lambda o: o.LookaheadOptimizer(o.SGD(0.1), k=1.5), AssertionError),
    (lambda o: o.LookaheadOptimizer(o.SGD(0.1)).minimize(3), AssertionError),
    (lambda o: o.PipelineOptimizer(3), TypeError), (lambda o: o.PipelineOptimizer(o.SGD(0.1), [3]), TypeError),
    (lambda o: o.PipelineOptimizer(o.SGD(0.1)).minimize(3), AssertionError),
    (lambda o: o.Dpsgd(0.1, clip=None), AssertionError), (lambda o: o.Dpsgd(None), AssertionError),
    (lambda o: o.ExponentialMovingAverage("a"), TypeError),
    (lambda o: o.ExponentialMovingAverage(0.9, thres_steps=3), TypeError),
    (lambda o: o.DGCMomentumOptimizer(0.1, 0.9, -1), AssertionError),
    (lambda o: o.DGCMomentumOptimizer(0.1, 0.9, 1, sparsity=[1.5]), AssertionError),
    (lambda o: o.DGCMomentumOptimizer(0.1, 0.9, 1, grad_clip=fluid.clip.GradientClipByValue(1.0)), TypeError),
    (lambda o: o.DGCMomentumOptimizer(0.1, 0.9, 1, grad_clip=fluid.clip.GradientClipByNorm(1.0)), TypeError),
])
def test_bad_arguments(make, error):
    with pytest.raises(error) as caught:
        make(fluid.optimizer)
    assert len(str(caught.value)) > 20


def test_checkpoint_that_is_not_there():
    loss, _ = net()
    before = fluid.default_main_program().to_string(True)
    with pytest.raises(Exception, match="checkpoint nosuch"):
        fluid.backward.append_backward(loss, checkpoints=["nosuch"])
    assert fluid.default_main_program().to_string(True) == before


# ---- others

def test_pipeline_and_compression_in_one_process_are_the_inner_optimizer():
    assert_same(train(3, plain), train(3, lambda loss, hidden: fluid.optimizer.PipelineOptimizer(
        fluid.optimizer.Momentum(0.1, 0.9), cut_list=[[hidden[0]], [loss]]).minimize(loss)))
    assert_same(train(3, plain), train(3, lambda loss, hidden: fluid.optimizer.DGCMomentumOptimizer(
        0.1, 0.9, rampup_begin_step=1).minimize(loss)))


def test_private_descent_without_noise_is_clipped_descent():
    clip = fluid.clip.GradientClipByNorm(0.05)
    clipped = train(3, lambda loss, hidden: fluid.optimizer.SGD(0.1, grad_clip=clip).minimize(loss))
    private = train(3, lambda loss, hidden: fluid.optimizer.Dpsgd(0.1, 0.05, 16.0, 0.0).minimize(loss))
    for name, value in clipped[1].items():
        numpy.testing.assert_allclose(private[1][name], value, rtol=1e-5, atol=1e-7)
