"""Distributions against NumPy; averages and estimates outside of programs."""
import numpy
import pytest

import anabranch.fluid as fluid

D = fluid.layers.distributions
A, B = numpy.array([0.5, -1.0], "float32"), numpy.array([2.0, 0.75], "float32")
C, E = numpy.array([0.25, -0.5], "float32"), numpy.array([1.0, 1.5], "float32")
V = numpy.array([[0.6, -0.2], [1.5, 0.1], [3.0, 0.0]], "float32")
ROWS = {"a": numpy.tile(A, (3, 1)), "b": numpy.tile(B, (3, 1)), "c": numpy.tile(C, (3, 1)), "d": numpy.tile(E, (3, 1)),
        "v": V}


@pytest.fixture(autouse=True)
def fresh_programs():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        fluid.default_main_program().random_seed = 5
        yield


def run(*fetch):
    fed = fluid.default_main_program().global_block().vars
    got = fluid.Executor(fluid.CPUPlace()).run(feed={k: v for k, v in ROWS.items() if k in fed}, fetch_list=list(fetch))
    return got[0] if len(got) == 1 else got


def given(kind, names, arrays):
    """The distribution of arrays, or of Variables that are fed."""
    return kind(*arrays) if not names else kind(*(fluid.data(n, [None, 2], "float32") for n in names))


def value():
    return fluid.data("v", [None, 2], "float32")


@pytest.mark.parametrize("names", ["", "ab"])
def test_normal(names):
    normal = given(D.Normal, names, (A, B))
    entropy, density = run(normal.entropy(), normal.log_prob(value()))
    numpy.testing.assert_allclose(entropy, numpy.broadcast_to(0.5 + 0.5 * numpy.log(2 * numpy.pi) + numpy.log(B),
                                                              entropy.shape), rtol=1e-5)
    numpy.testing.assert_allclose(
        density, -((V - A) / B) ** 2 / 2 - numpy.log(B) - 0.5 * numpy.log(2 * numpy.pi), rtol=1e-5)


@pytest.mark.parametrize("names", ["", "ab"])
def test_uniform(names):
    uniform = given(D.Uniform, names, (A, A + B))
    if names:
        uniform = D.Uniform(uniform.low, fluid.layers.elementwise_add(uniform.low, uniform.high))
    entropy, density = run(uniform.entropy(), uniform.log_prob(value()))
    numpy.testing.assert_allclose(entropy, numpy.broadcast_to(numpy.log(B), entropy.shape), rtol=1e-5)
    with numpy.errstate(divide="ignore"):
        expected = numpy.log(((V > A) & (V < A + B)).astype("float32")) - numpy.log(B)
    numpy.testing.assert_allclose(density, expected, rtol=1e-5)


@pytest.mark.parametrize("names", ["", "abcd"])
def test_divergence_of_normals(names):
    one, two = given(D.Normal, names[:2], (A, B)), given(D.Normal, names[2:], (C, E))
    got = run(one.kl_divergence(two))
    expected = numpy.log(E / B) + (B ** 2 + (A - C) ** 2) / (2 * E ** 2) - 0.5
    numpy.testing.assert_allclose(got, numpy.broadcast_to(expected, got.shape), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("names", ["", "ab"])
def test_samples(names):
    normal = given(D.Normal, names, (A, B)).sample([500, 4])
    uniform = D.Uniform(A, A + B).sample([2000]) if not names else None
    got = run(normal)
    assert got.shape == ((500, 4, 3, 2) if names else (500, 4, 2))
    flat = got.reshape(-1, 2)
    numpy.testing.assert_allclose(flat.mean(0), A, atol=0.15)
    numpy.testing.assert_allclose(flat.std(0), B, rtol=0.1)
    if uniform is not None:
        drawn = run(uniform)
        assert drawn.shape == (2000, 2) and (drawn >= A).all() and (drawn < A + B).all()
        numpy.testing.assert_allclose(drawn.mean(0), A + B / 2, atol=0.1)


def test_samples_of_numbers_have_the_shape_that_is_asked_for():
    assert run(D.Normal(0.5, 2.0).sample([3, 2], seed=7)).shape == (3, 2)
    drawn = run(D.Uniform(0.5, 2.0).sample([300]))
    assert drawn.shape == (300,) and drawn.min() >= 0.5 and drawn.max() < 2.0 and drawn.max() > 1.7


@pytest.mark.parametrize("fed", [False, True])
def test_categorical(fed):
    one = D.Categorical(fluid.data("a", [None, 2], "float32") if fed else ROWS["a"])
    two = D.Categorical(fluid.data("v", [None, 2], "float32") if fed else V)
    entropy, divergence = run(one.entropy(), one.kl_divergence(two))
    p, q = (numpy.exp(x) / numpy.exp(x).sum(-1, keepdims=True) for x in (ROWS["a"], V))
    numpy.testing.assert_allclose(entropy, -(p * numpy.log(p)).sum(-1, keepdims=True), rtol=1e-5)
    numpy.testing.assert_allclose(divergence, (p * numpy.log(p / q)).sum(-1, keepdims=True), rtol=1e-4, atol=1e-6)


def test_multivariate():
    one = D.MultivariateNormalDiag(A, numpy.diag(B))
    two = D.MultivariateNormalDiag(C, numpy.diag(E))
    entropy, divergence = run(one.entropy(), one.kl_divergence(two))
    numpy.testing.assert_allclose(entropy, [0.5 * (2 * (1 + numpy.log(2 * numpy.pi)) + numpy.log(B).sum())], rtol=1e-5)
    expected = 0.5 * ((B / E).sum() + ((C - A) ** 2 / E).sum() - 2 + numpy.log(E).sum() - numpy.log(B).sum())
    numpy.testing.assert_allclose(divergence, [expected], rtol=1e-5)
    assert divergence.shape == (1,)                       # as in 1.8.5, which takes means [k] only
    rows = run(D.MultivariateNormalDiag([A, C], numpy.diag(B)).kl_divergence(two))
    numpy.testing.assert_allclose(rows[:1], [[expected]], rtol=1e-5)


@pytest.mark.parametrize("make, error", [
    (lambda: D.Normal("a", 1.0), TypeError), (lambda: D.Uniform(0.0, (1.0,)), TypeError),
    (lambda: D.Normal(0.0, value()), ValueError), (lambda: D.Normal(0.0, 1.0).sample(3), TypeError),
    (lambda: D.Normal(0.0, 1.0).sample([3], seed="a"), TypeError), (lambda: D.Normal(0.0, 1.0).log_prob(3), TypeError),
    (lambda: D.Normal(0.0, 1.0).kl_divergence(D.Uniform(0.0, 1.0)), TypeError), (lambda: D.Categorical(3), TypeError),
    (lambda: D.Uniform(0.0, 1.0).kl_divergence(3), NotImplementedError),
    (lambda: D.Categorical(A).sample(), NotImplementedError),
    (lambda: D.Categorical(A).log_prob(3), NotImplementedError),
    (lambda: D.MultivariateNormalDiag(A, A), ValueError),
])
def test_bad_arguments(make, error):
    with pytest.raises(error):
        make()


@pytest.mark.parametrize("make, error, said", [
    (lambda: D.Normal(["a"], [1]), TypeError, "Normal: loc must hold numbers, got ['a']"),
    (lambda: D.Normal([1], [1, "a"]), TypeError, "Normal: scale must hold numbers, got [1, 'a']"),
    (lambda: D.Uniform([[1, 2], [3]], [4]), TypeError, "Uniform: low must hold numbers, got [[1, 2], [3]]"),
    (lambda: D.Categorical([fluid.data("x", [3])]), TypeError, "Categorical: logits must hold numbers, got a list of"),
    (lambda: D.Uniform([1, 2], [1, 2, 3]), ValueError,
     "Uniform: parameters must have shapes that broadcast, got low [2], high [3]")])
def test_parameters_that_are_not_numbers(make, error, said):
    with pytest.raises(error) as caught:
        make()
    assert said in str(caught.value)


def test_weighted_average():
    average = fluid.average.WeightedAverage()
    with pytest.raises(ValueError):
        average.eval()
    average.add(numpy.array([1.0, 2.0]), 2)
    average.add(3, 1)
    numpy.testing.assert_allclose(average.eval(), [5 / 3, 7 / 3])
    for bad in (("a", 1), (1, "a"), (1, numpy.ones(2))):
        with pytest.raises(ValueError):
            average.add(*bad)
    average.reset()
    with pytest.raises(ValueError):
        average.eval()


def test_memory_usage_is_that_of_1_8_5():
    x, y = fluid.data("x", [None, 784], "float32"), fluid.data("y", [None, 1], "int64")
    h = fluid.layers.fc(x, 100, act="relu")
    fluid.layers.mean(fluid.layers.cross_entropy(fluid.layers.fc(h, 10, act="softmax"), y))
    program = fluid.default_main_program()
    low, high, unit = fluid.contrib.memory_usage(program, 32)
    assert (round(low, 4), round(high, 4), unit) == (43.5791, 45.6543, "KB")
    assert fluid.contrib.memory_usage(program, 100000)[2] == "MB"
    for bad, error in (((program, 0), ValueError), ((3, 1), TypeError)):
        with pytest.raises(error):
            fluid.contrib.memory_usage(*bad)
    types, pairs = fluid.contrib.op_freq_statistic(program)
    assert dict(types)["mul"] == 2 and dict(pairs)["mul->elementwise_add"] == 2
    with pytest.raises(TypeError):
        fluid.contrib.op_freq_statistic(3)
