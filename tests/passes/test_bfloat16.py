"""Products on bfloat16 operands: by a flag only, near to float32, the same bits for any number of threads."""
import numpy as np
import pytest
from trained_nets import Trained

import anabranch.fluid as fluid

layers = fluid.layers


def perceptron(width=96, dtype="float32"):
    def model():
        x, y = fluid.data("x", [None, 40], dtype), fluid.data("y", [None, 1], dtype)
        h = layers.fc(layers.fc(x, width, act="relu"), width, bias_attr=False)
        loss = layers.mean(layers.square_error_cost(layers.fc(h, 1), y))
        fluid.optimizer.SGD(0.01).minimize(loss)

        def feed(rng):
            x = rng.normal(0, 1, (64, 40)).astype(dtype)
            return {"x": x, "y": x[:, :1] * x[:, 1:2]}
        return loss, feed
    return model


def train(model, flag, threads=1, steps=4):
    """Losses, the state after them, and explain()."""
    trained = Trained(model)
    scope = fluid.Scope()
    for name, value in trained.start.items():
        scope.var(name).get_tensor().set(value, fluid.CPUPlace())
    build, execution = fluid.BuildStrategy(), fluid.ExecutionStrategy()
    build.use_bfloat16 = flag
    execution.num_threads = threads
    target = fluid.CompiledProgram(trained.main).with_data_parallel(
        trained.loss.name, build, execution, places=fluid.cpu_places(1))
    rng = np.random.RandomState(0)
    losses = [trained.exe.run(target, feed=trained.feed(rng), fetch_list=[trained.loss], scope=scope)[0]
              for _ in range(steps)]
    return losses + [np.array(scope.find_var(n).get_tensor()) for n in trained.persistable], target.explain()


def applied(told):
    return "applied" in next(line for line in told.splitlines() if "bfloat16_products" in line)


def needs_instructions():
    if not applied(train(perceptron(), True, steps=1)[1]):
        pytest.skip("this processor has no instructions for bfloat16")


def test_off_by_default():
    _, told = train(perceptron(), False, steps=1)
    assert not applied(told) and "use_bfloat16 is False" in told


def test_near_to_float32_but_rounded():
    needs_instructions()
    full, _ = train(perceptron(), False)
    near, _ = train(perceptron(), True)
    assert any((a != b).any() for a, b in zip(full, near))
    for a, b in zip(full, near):
        assert b.dtype == np.float32
        np.testing.assert_allclose(a, b, rtol=0.02, atol=5e-3)


def test_same_bits_for_any_number_of_threads():
    needs_instructions()
    expected, _ = train(perceptron(200), True)
    for threads in (2, 7):
        got, _ = train(perceptron(200), True, threads)
        for a, b in zip(expected, got):
            np.testing.assert_array_equal(a, b)


def test_operands_are_rounded_to_nearest_even():
    """A product with the identity shows each operand as it was rounded."""
    needs_instructions()
    rng = np.random.RandomState(1)
    x = np.concatenate([rng.normal(0, 10.0 ** rng.uniform(-30, 30, 4000)).astype("float32"),
                        np.float32([0, -0.0, 1, 1 + 2.0 ** -8, 1 + 3 * 2.0 ** -8, np.inf, -np.inf, 3.3895314e38])])
    x = np.resize(x, (80, 51)).astype("float32")
    bits = x.view("uint32").astype("uint64")
    expected = ((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000).astype("uint32").view("float32")
    expected[np.isinf(x)] = x[np.isinf(x)]
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        out = layers.mul(fluid.data("x", [80, 51], "float32"), fluid.data("w", [51, 51], "float32"))
    build = fluid.BuildStrategy()
    build.use_bfloat16 = True
    finite = np.where(np.isfinite(expected), x, 0)
    got, = fluid.Executor().run(fluid.CompiledProgram(main, build), fetch_list=[out],
                                feed={"x": finite, "w": np.eye(51, dtype="float32")})
    np.testing.assert_array_equal(got, np.where(np.isfinite(expected), expected, 0))


def test_float64_stays():
    full, _ = train(perceptron(dtype="float64"), False)
    flagged, _ = train(perceptron(dtype="float64"), True)
    for a, b in zip(full, flagged):
        np.testing.assert_array_equal(a, b)


def images(groups=1, stride=1, data_format="NCHW"):
    """A convolution, a normalization and a convolution with bias and relu, which is fused."""
    def model():
        shape = [None, 8, 12, 12] if data_format == "NCHW" else [None, 12, 12, 8]
        x, y = fluid.data("x", shape, "float32"), fluid.data("y", [None, 1], "float32")
        h = layers.conv2d(x, 16, 3, stride=stride, padding=1, groups=groups, bias_attr=False, data_format=data_format)
        h = layers.batch_norm(h, act="relu", data_layout=data_format)
        h = layers.conv2d(h, 8, 3, act="relu", data_format=data_format)
        loss = layers.mean(layers.square_error_cost(layers.reduce_mean(h, dim=[1, 2, 3], keep_dim=False), y))
        fluid.optimizer.SGD(0.05).minimize(loss)

        def feed(rng):
            x = rng.normal(0, 1, [10] + shape[1:]).astype("float32")
            return {"x": x, "y": x[:, 0, 0, :1]}
        return loss, feed
    return model


def attention():
    """Batches of products with a factor, either operand transposed, and one matrix shared by a batch."""
    x, y = fluid.data("x", [None, 24, 20], "float32"), fluid.data("y", [None, 24, 16], "float32")
    w = layers.create_parameter([20, 16], "float32")
    share = layers.softmax(layers.matmul(x, x, transpose_y=True, alpha=0.2))
    h = layers.matmul(layers.matmul(share, x, transpose_x=True), w)
    loss = layers.mean(layers.square_error_cost(h, y))
    fluid.optimizer.SGD(0.1).minimize(loss)

    def feed(rng):
        x = rng.normal(0, 1, (6, 24, 20)).astype("float32")
        return {"x": x, "y": x[:, :, :16]}
    return loss, feed


@pytest.mark.parametrize("model", [images(), images(groups=4), images(stride=2), images(data_format="NHWC"), attention])
def test_convolutions_and_batches_of_products(model):
    needs_instructions()
    full, _ = train(model, False)
    near, told = train(model, True)
    assert applied(told) and any((a != b).any() for a, b in zip(full, near))
    for a, b in zip(full, near):
        np.testing.assert_allclose(a, b, rtol=0.02, atol=5e-3)
    for a, b in zip(near, train(model, True, threads=7)[0]):
        np.testing.assert_array_equal(a, b)


def test_a_convolution_shows_its_operands_as_they_were_rounded():
    needs_instructions()
    x = np.random.RandomState(2).normal(0, 1, (2, 16, 6, 6)).astype("float32")
    bits = x.view("uint32").astype("uint64")
    expected = ((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000).astype("uint32").view("float32")
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        eye = fluid.initializer.NumpyArrayInitializer(np.eye(16, dtype="float32").reshape(16, 16, 1, 1))
        out = layers.conv2d(fluid.data("x", [2, 16, 6, 6]), 16, 1, param_attr=fluid.ParamAttr(initializer=eye),
                            bias_attr=False)
    build = fluid.BuildStrategy()
    build.use_bfloat16 = True
    exe = fluid.Executor()
    exe.run(startup)
    got, = exe.run(fluid.CompiledProgram(main, build), fetch_list=[out], feed={"x": x})
    np.testing.assert_array_equal(got, expected)


def test_a_marked_convolution_stays_marked_when_it_is_fused():
    """Mixed precision marks operators of the program, before passes join them."""
    needs_instructions()
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        out = layers.conv2d(fluid.data("x", [3, 8, 9, 9]), 8, 3, act="relu")
    exe, x = fluid.Executor(), np.random.RandomState(3).normal(0, 1, (3, 8, 9, 9)).astype("float32")
    exe.run(startup)
    full, = exe.run(main, feed={"x": x}, fetch_list=[out])
    main.global_block().ops[0]._set_attr("bfloat16", True)
    assert main.global_block().ops[0].type == "conv2d"
    results = []
    for fused in (False, True):
        build = fluid.BuildStrategy()
        build.fuse_elewise_add_act_ops = fused
        compiled = fluid.CompiledProgram(main, build)
        results.append(exe.run(compiled, feed={"x": x}, fetch_list=[out])[0])
        assert ("applied" in next(line for line in compiled.explain().splitlines() if "fuse_conv" in line)) == fused
    np.testing.assert_array_equal(results[0], results[1])
    assert (results[0] != full).any()
