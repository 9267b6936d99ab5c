"""Mixed precision compared with float32: a residual network and an encoder end within 2 % of the loss."""
import encoders
import numpy
import pytest

import anabranch.fluid as fluid

layers = fluid.layers
STEPS, CLASSES, SIZE = 60, 6, 16


def conv_bn(x, filters, size=3, stride=1, act=None):
    x = layers.conv2d(x, filters, size, stride=stride, padding=size // 2, bias_attr=False)
    return layers.batch_norm(x, act=act)


def residual():
    image, label = fluid.data("image", [None, 3, SIZE, SIZE]), fluid.data("label", [None, 1], "int64")
    x = conv_bn(image, 16, act="relu")
    for filters, stride in ((16, 1), (32, 2), (48, 2)):
        y = conv_bn(conv_bn(x, filters, stride=stride, act="relu"), filters)
        x = layers.elementwise_add(conv_bn(x, filters, 1, stride), y, act="relu")
    logits = layers.fc(layers.pool2d(x, pool_type="avg", global_pooling=True), CLASSES)
    return layers.mean(layers.softmax_with_cross_entropy(logits, label))


def images():
    rng = numpy.random.RandomState(4)
    kinds = rng.normal(0, 1, (CLASSES, 3, SIZE, SIZE))
    while True:
        label = rng.randint(0, CLASSES, (16, 1))
        image = 0.4 * kinds[label[:, 0]] + rng.normal(0, 1, (16, 3, SIZE, SIZE))
        yield {"image": image.astype("float32"), "label": label.astype("int64")}


def sequences():
    rng = numpy.random.RandomState(6)
    while True:
        yield encoders.batch(rng, 16, 16, 32)


#: name: (loss, batches, operators that take operands of bfloat16)
MODELS = {
    "residual": (residual, images, {"conv2d", "conv2d_grad", "mul", "mul_grad"}),
    "encoder": (lambda: encoders.labeled(2, 4, 16, 32)[0], sequences, {"mul", "mul_grad", "matmul", "matmul_grad"}),
}


def train(name, lower, run_as=lambda program, loss: program):
    """Losses of all steps, and the types of the operators that were told to round."""
    model, batches, _ = MODELS[name]
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 7
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        loss = model()
        optimizer = fluid.optimizer.Momentum(0.02, 0.9)
        if lower:
            optimizer = fluid.contrib.mixed_precision.decorate(optimizer, init_loss_scaling=128.0)
        optimizer.minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        target, feeds = run_as(main, loss), batches()
        losses = [exe.run(target, feed=next(feeds), fetch_list=[loss])[0].item() for _ in range(STEPS)]
    return numpy.array(losses), {op.type for op in main.global_block().ops if op.has_attr("bfloat16")}


def end(losses):
    return losses[-10:].mean()


@pytest.mark.parametrize("name", sorted(MODELS))
def test_mixed_precision_ends_where_float32_ends(name):
    full, marked = train(name, False)
    assert not marked
    lower, marked = train(name, True)
    assert marked == MODELS[name][2]
    assert end(full) < 0.7 * full[0]
    assert abs(end(lower) - end(full)) <= 0.02 * end(full)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_bfloat16_by_strategy_ends_where_float32_ends(name):
    def strategy(program, loss):
        build = fluid.BuildStrategy()
        build.use_bfloat16 = True
        compiled.append(fluid.CompiledProgram(program).with_data_parallel(loss.name, build, places=fluid.cpu_places(1)))
        return compiled[-1]

    compiled = []
    full, lower = train(name, False)[0], train(name, False, strategy)[0]
    if "applied" not in next(line for line in compiled[0].explain().splitlines() if "bfloat16_products" in line):
        pytest.skip("this processor has no instructions for bfloat16")
    assert (full != lower).any()
    assert abs(end(lower) - end(full)) <= 0.02 * end(full)
