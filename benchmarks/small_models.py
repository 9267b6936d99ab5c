"""A small MobileNet and a CTR-DNN with data that they can learn, for quantization after training.

Python 3.7 is the oldest interpreter that must read this file.
"""
import numpy as np

CLASSES, SIDE = 10, 24
FIELDS, IDS, DENSE = 26, 400, 13


# ---- nets: each returns (fed variables, label, answer)


def mobile(fluid):
    """Depthwise and pointwise convolutions, each with batch norm, over 24 x 24 images of 3 channels."""
    image = fluid.data("image", [None, 3, SIDE, SIDE], "float32")

    def block(x, channels, size, stride, groups=1):
        made = fluid.layers.conv2d(x, channels, size, stride, size // 2, groups=groups, bias_attr=False,
                                   use_cudnn=False)
        return fluid.layers.batch_norm(made, act="relu6")

    x = block(image, 16, 3, 2)
    for channels, stride in ((32, 1), (64, 2), (64, 1), (128, 2)):
        x = block(block(x, x.shape[1], 3, stride, groups=x.shape[1]), channels, 1, 1)
    pooled = fluid.layers.pool2d(x, pool_type="avg", global_pooling=True)
    return [image], fluid.data("label", [None, 1], "int64"), fluid.layers.fc(pooled, CLASSES, act="softmax")


def ctr(fluid):
    """An embedding of 26 fields and 13 numbers, then three layers."""
    ids, dense = fluid.data("ids", [None, FIELDS], "int64"), fluid.data("dense", [None, DENSE], "float32")
    found = fluid.embedding(ids, [FIELDS * IDS, 16])
    x = fluid.layers.concat([fluid.layers.reshape(found, [-1, FIELDS * 16]), dense], axis=1)
    for width in (256, 128):
        x = fluid.layers.fc(x, width, act="relu")
    return [ids, dense], fluid.data("label", [None, 1], "int64"), fluid.layers.fc(x, 2, act="softmax")


# ---- data


def images(rows, seed):
    """{name: array}: a pattern for each class in noise."""
    patterns = np.random.RandomState(7).normal(size=(CLASSES, 3, SIDE // 4, SIDE // 4)).repeat(4, 2).repeat(4, 3)
    draw = np.random.RandomState(seed)
    label = draw.randint(0, CLASSES, (rows, 1))
    noise = draw.normal(size=(rows, 3, SIDE, SIDE))
    return {"image": (0.55 * patterns[label[:, 0]] + 1.6 * noise).astype("float32"), "label": label.astype("int64")}


def clicks(rows, seed):
    """{name: array}: labels drawn from a logistic model of ids and numbers."""
    known = np.random.RandomState(8)
    of_id, of_number = known.normal(size=FIELDS * IDS), known.normal(size=DENSE)
    draw = np.random.RandomState(seed)
    ids = draw.randint(0, IDS, (rows, FIELDS)) + IDS * np.arange(FIELDS)
    dense = draw.normal(size=(rows, DENSE)).astype("float32")
    score = 0.5 * of_id[ids].sum(1) + 0.5 * dense @ of_number
    label = draw.uniform(size=rows) < 1 / (1 + np.exp(-score))
    return {"ids": ids.astype("int64"), "dense": dense, "label": label[:, None].astype("int64")}


# ---- measures


def accuracy(answers, labels):
    return float((answers.argmax(1) == labels[:, 0]).mean())


def area(answers, labels):
    """Area under the ROC curve of the second class."""
    order = np.argsort(answers[:, 1], kind="stable")
    ranks = np.empty(len(order))
    ranks[order] = np.arange(1, len(order) + 1)
    clicked = labels[:, 0] == 1
    most, least = clicked.sum(), (~clicked).sum()
    return float((ranks[clicked].sum() - most * (most + 1) / 2) / (most * least))


#: name: (net, data, measure, steps of training, rows of a step, rate)
MODELS = {"mobile": (mobile, images, accuracy, 120, 64, 0.004), "ctr": (ctr, clicks, area, 150, 512, 0.004)}


def train(fluid, name, folder):
    """Trains a model and saves it for inference."""
    net, data, _, steps, rows, rate = MODELS[name]
    main, startup = fluid.Program(), fluid.Program()
    startup.random_seed = main.random_seed = 1
    executor = fluid.Executor(fluid.CPUPlace())
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.core.Scope()):
        fed, label, answer = net(fluid)
        loss = fluid.layers.mean(fluid.layers.cross_entropy(answer, label))
        fluid.optimizer.Adam(rate).minimize(loss)
        executor.run(startup)
        for step in range(steps):
            executor.run(main, data(rows, step), [loss])
        fluid.io.save_inference_model(folder, [v.name for v in fed], [answer], executor, main)


def quantize(fluid, name, folder, to, algo="KL", batches=8, **arguments):
    """Quantizes a saved model after training; saves it to `to`, and with int8 weights to `to` + "_int8"."""
    net, data, rows = MODELS[name][0], MODELS[name][1], 64
    slim, place = fluid.contrib.slim.quantization, fluid.CPUPlace()
    executor, scope = fluid.Executor(place), fluid.core.Scope()
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        fed = [v.name for v in net(fluid)[0]]

    def samples():
        for step in range(batches):
            batch = data(rows, 1000 + step)
            yield [batch[one] for one in fed]

    with fluid.scope_guard(scope):
        after = slim.PostTrainingQuantization(executor, scope, folder, batch_generator=samples, batch_nums=batches,
                                              algo=algo, **arguments)
        program = after.quantize()
        after.save_quantized_model(to)
        graph = fluid.framework.IrGraph(fluid.core.Graph(program.desc), for_test=True)
        slim.ConvertToInt8Pass(scope, place).apply(graph)
        small = graph.to_program()
        answer = [op for op in small.global_block().ops if op.type == "softmax"][-1].output("Out")[0]
        fluid.io.save_inference_model(to + "_int8", fed, [small.global_block().var(answer)], executor, small)


def measure(fluid, name, folder, rows=4000):
    """The accuracy, or the area, of a saved model on data that training has not seen."""
    _, data, measured = MODELS[name][:3]
    batch, executor = data(rows, 5000), fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.core.Scope()):
        program, fed, answers = fluid.io.load_inference_model(folder, executor)
        return measured(executor.run(program, {one: batch[one] for one in fed}, answers)[0], batch["label"])
