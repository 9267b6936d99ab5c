"""Parts of the scripts that ``anabranch train`` writes. Names between @ are replaced."""

HEAD = '''"""Trains @MODEL@ to predict @WHAT@.

`anabranch train` wrote this script. Edit it and run it again: it trains, stops
early, prints the result of the test, and saves the model.
"""
import tempfile

@NUMPY@import anabranch
import anabranch.fluid as fluid
from anabranch.callbacks import BestModel, EarlyStopping

FILES = @FILES@
# Files, and shares of their lines (by hash@BY@): to train, to stop early, to test.
TRAIN = FILES, 0, @TRAIN_END@
VALID = FILES, @TRAIN_END@, @VALID_END@
TEST = @TEST@
BATCH, EPOCHS, RATE, WIDTH = @BATCH@, @EPOCHS@, @RATE@, 8

program = fluid.default_main_program()
startup = fluid.default_startup_program()
program.random_seed = startup.random_seed = 1
'''

COLUMNS = '''
# ---- columns
@SCHEMA@
label, group = @LABEL@, @GROUP_NAME@
@CLASSES_LINE@numbers = @NUMBERS@
# Ids, also of lists and of buckets of numbers.
categories = @CATEGORIES@
inputs = schema.inputs()
format_of_lines = schema


def embed(name, width):
    """The row of a table for each id, or the sum for a list, [batch, width]."""
    rows = fluid.layers.embedding(
        inputs[name], [schema[name].size, width], is_sparse=True,
        param_attr=fluid.ParamAttr(initializer=fluid.initializer.Normal(0, 0.01)))
    if inputs[name].lod_level:
        return fluid.layers.sequence_pool(rows, "sum")
    return fluid.layers.reshape(rows, [-1, width])


dense = [inputs[name] for name in numbers]
'''

PAIRS = '''
def pairs(vectors):
    """The sum of the inner products of all pairs of vectors, [batch, 1]."""
    square = fluid.layers.square(fluid.layers.sums(vectors))
    squares = fluid.layers.sums([fluid.layers.square(v) for v in vectors])
    twice = fluid.layers.elementwise_sub(square, squares)
    return fluid.layers.scale(
        fluid.layers.reduce_sum(twice, dim=1, keep_dim=True), 0.5)

'''

PAIRS_OF_CLASSES = '''
def pairs(vectors):
    """The sum of the products of all pairs of vectors, [batch, width]."""
    square = fluid.layers.square(fluid.layers.sums(vectors))
    squares = fluid.layers.sums([fluid.layers.square(v) for v in vectors])
    return fluid.layers.scale(
        fluid.layers.elementwise_sub(square, squares), 0.5)

'''

DEEP = '''
def deep(x):
    """Two dense layers."""
    for _ in range(2):
        x = fluid.layers.fc(x, 64, act="relu")
    return x

'''

CROSS = '''
def cross(x0, x):
    """A cross layer: x0 (x w) + b + x."""
    bias = fluid.layers.create_parameter([x0.shape[1]], "float32", is_bias=True)
    product = fluid.layers.elementwise_mul(
        x0, fluid.layers.fc(x, 1, bias_attr=False), axis=0)
    return fluid.layers.elementwise_add(
        fluid.layers.elementwise_add(product, bias, axis=1), x)

'''

MODELS = {
    "lr": '''
def model():
    """A weight for each id and each number, [batch, 1]."""
    parts = [embed(name, 1) for name in categories]
    if dense:
        parts.append(fluid.layers.fc(fluid.layers.concat(dense, 1), 1))
    bias = fluid.layers.create_parameter([1], "float32", is_bias=True)
    return fluid.layers.elementwise_add(fluid.layers.sums(parts), bias)

''',
    "deepfm": PAIRS + DEEP + '''
def model():
    """Weights, pairs of embeddings and a dense network, [batch, 1]."""
    vectors = [embed(name, WIDTH) for name in categories]
    parts = [embed(name, 1) for name in categories]
    if len(vectors) > 1:
        parts.append(pairs(vectors))
    x = fluid.layers.concat(vectors + dense, 1)
    return fluid.layers.sums(parts + [fluid.layers.fc(deep(x), 1)])

''',
    "dcn": DEEP + CROSS + '''
def model():
    """Cross layers next to a dense network, [batch, 1]."""
    x0 = fluid.layers.concat([embed(name, WIDTH) for name in categories] + dense, 1)
    x = x0
    for _ in range(3):
        x = cross(x0, x)
    return fluid.layers.fc(fluid.layers.concat([x, deep(x0)], 1), 1)

''',
}

CLASS_MODELS = {
    "lr": '''
def model():
    """A weight for each id, number and class, [batch, classes]."""
    parts = [embed(name, CLASSES) for name in categories]
    if dense:
        parts.append(fluid.layers.fc(fluid.layers.concat(dense, 1), CLASSES))
    bias = fluid.layers.create_parameter([CLASSES], "float32", is_bias=True)
    return fluid.layers.elementwise_add(fluid.layers.sums(parts), bias)

''',
    "deepfm": PAIRS_OF_CLASSES + DEEP + '''
def model():
    """Weights, pairs of embeddings and a dense network, [batch, classes]."""
    vectors = [embed(name, WIDTH) for name in categories]
    parts = [embed(name, CLASSES) for name in categories]
    last = [deep(fluid.layers.concat(vectors + dense, 1))]
    if len(vectors) > 1:
        last.append(pairs(vectors))
    last = fluid.layers.fc(fluid.layers.concat(last, 1), CLASSES)
    return fluid.layers.sums(parts + [last])

''',
    "dcn": MODELS["dcn"].replace("[batch, 1]", "[batch, classes]").replace(
        "fluid.layers.fc(fluid.layers.concat([x, deep(x0)], 1), 1)",
        "fluid.layers.fc(fluid.layers.concat([x, deep(x0)], 1), CLASSES)"),
}

LIBSVM = '''
# ---- lines: label index:value index:value ...
label, group = "label", None
inputs = {
    "label": fluid.data("label", [None, 1], "float32"),
    "index": fluid.data("index", [None, 1], "int64", lod_level=1),
    "value": fluid.data("value", [None, 1], "float32", lod_level=1),
}
format_of_lines = """libsvm
    label = label
    index = index
    value = value"""
HEIGHT = @HEIGHT@  # above all indices


def embed(width):
    """The row of each index times its value, [values, width]."""
    rows = fluid.layers.embedding(
        inputs["index"], [HEIGHT, width], is_sparse=True,
        param_attr=fluid.ParamAttr(initializer=fluid.initializer.Normal(0, 0.01)))
    return fluid.layers.elementwise_mul(rows, inputs["value"], axis=0)


def total(x):
    """The sum over the values of a line, [batch, width]."""
    return fluid.layers.sequence_pool(x, "sum")

'''

_LIBSVM_LINEAR = '''    bias = fluid.layers.create_parameter([1], "float32", is_bias=True)
    linear = fluid.layers.elementwise_add(total(embed(1)), bias)
'''

LIBSVM_MODELS = {
    "lr": '''
def model():
    """A weight for each index, [batch, 1]."""
''' + _LIBSVM_LINEAR + '''    return linear

''',
    "deepfm": DEEP + '''
def model():
    """Weights, pairs of embeddings and a dense network, [batch, 1]."""
''' + _LIBSVM_LINEAR + '''    rows = embed(WIDTH)
    vector = total(rows)
    twice = fluid.layers.elementwise_sub(
        fluid.layers.square(vector), total(fluid.layers.square(rows)))
    pairs = fluid.layers.scale(
        fluid.layers.reduce_sum(twice, dim=1, keep_dim=True), 0.5)
    return fluid.layers.sums(
        [linear, pairs, fluid.layers.fc(deep(vector), 1)])

''',
    "dcn": DEEP + CROSS + '''
def model():
    """Weights, and cross layers next to a dense network, [batch, 1]."""
''' + _LIBSVM_LINEAR + '''    x0 = total(embed(WIDTH))
    x = x0
    for _ in range(3):
        x = cross(x0, x)
    x = fluid.layers.concat([x, deep(x0)], 1)
    return fluid.layers.elementwise_add(linear, fluid.layers.fc(x, 1))

''',
}

CLASSES = '''
# ---- loss and metrics
score = model()
answer = fluid.layers.sigmoid(score)
truth = @TRUTH@
loss = fluid.layers.mean(
    fluid.layers.sigmoid_cross_entropy_with_logits(score, truth))
ranking = anabranch.RankingMetrics(answer, truth@GROUP@)
positive = fluid.layers.mean(truth)
test_program = program.clone(for_test=True)
@MINIMIZE@METRICS, MONITORED, MODE = ["loss", "auc"@GAUC@], "valid_auc", "max"


def evaluate(data):
    """Loss, AUC and more of a data set."""
    result = executor.infer_from_dataset(
        test_program, data, fetch_list=[loss, positive],
        fetch_info=["loss", "positive"], metrics=ranking)
    if result["positive"] in (0, 1):
        raise SystemExit("%s: all labels of this share are equal, so the AUC is "
                         "not defined: use more rows or other shares" % label)
    return result


def text(result):
    """The result in words, and the mean prediction next to the mean label."""
    lines = ["test AUC %.4f, log loss %.4f, positive %.3g %%" % (
        result["auc"], result["loss"], 100 * result["positive"]),
        "test @GAUC_TEXT@normalized entropy %.4f, calibration %.3f" % (
            @GAUC_VALUE@result["ne"], result["calibration"]),
        "    rows  predicted  observed"]
    for bucket in result.ranking[0].calibration:
        lines.append("%8d %10.4f %9.4f" % bucket)
    if result["auc"] > 0.99:
        lines.append("An AUC this high is rare: is there a column that is known\\n"
                     "only after the label? anabranch train --ignore leaves it out.")
    return "\\n".join(lines)

'''

#: How the loss of two classes is minimized: without and with a penalty.
MINIMIZE = "fluid.optimizer.Adam(RATE, lazy_mode=True).minimize(loss)\n"

MINIMIZE_PENALIZED = '''# L2 keeps the weights of rare indices small; training chooses it.
l2 = fluid.layers.create_global_var([1], 0.0, "float32", persistable=True)
weights = next(p for p in program.all_parameters() if p.shape[0] == HEIGHT)
squares = fluid.layers.reduce_sum(fluid.layers.square(weights))
penalty = fluid.layers.scale(fluid.layers.elementwise_mul(l2, squares), 0.5)
fluid.optimizer.Adam(RATE).minimize(fluid.layers.elementwise_add(loss, penalty))
'''

SOFTMAX = '''
# ---- loss and metrics; the label is one of CLASSES
score = model()
answer = fluid.layers.softmax(score)
loss = fluid.layers.mean(
    fluid.layers.softmax_with_cross_entropy(score, inputs[label]))
accuracy = fluid.layers.accuracy(answer, inputs[label])
test_program = program.clone(for_test=True)
fluid.optimizer.Adam(RATE, lazy_mode=True).minimize(loss)
METRICS, MONITORED, MODE = ["loss", "accuracy"], "valid_loss", "min"


def evaluate(data):
    """Loss and accuracy of a data set."""
    return executor.infer_from_dataset(
        test_program, data, fetch_list=[loss, accuracy],
        fetch_info=["loss", "accuracy"])


def text(result):
    """The result in words."""
    return "test accuracy %.4f, log loss %.4f (%d classes)" % (
        result["accuracy"], result["loss"], CLASSES)

'''

NUMBERS = '''
# ---- loss and metrics; the label is a number
MEAN, SCALE = @MEAN@, @SCALE@  # of the label
score = model()
answer = fluid.layers.scale(score, SCALE, MEAN)
truth = fluid.layers.scale(inputs[label], 1 / SCALE, -MEAN / SCALE)
loss = fluid.layers.mean(fluid.layers.square_error_cost(score, truth))
test_program = program.clone(for_test=True)
fluid.optimizer.Adam(RATE, lazy_mode=True).minimize(loss)
METRICS, MONITORED, MODE = ["loss"], "valid_loss", "min"


def evaluate(data):
    """The mean squared error, in squares of SCALE."""
    return executor.infer_from_dataset(
        test_program, data, fetch_list=[loss], fetch_info=["loss"])


def text(result):
    """The result in words."""
    return "test RMSE %.4g (the label has the standard deviation %.4g)" % (
        SCALE * result["loss"] ** 0.5, SCALE)

'''

TAIL = '''
# ---- data
def dataset(files, begin, end):
    """The lines of a share@IN_MEMORY@."""
    data = fluid.DatasetFactory().create_dataset("@DATASET@")
    data.set_use_var(list(inputs.values()))
    data.set_format(format_of_lines)
    data.set_filelist(files)
    data.set_share(begin, end@COLUMN@)
    data.set_batch_size(BATCH)
    data.set_bad_rows("skip", max_share=0.05)
    data.set_shuffle_seed(1)
@LOAD@    return data


train, valid = dataset(*TRAIN), dataset(*VALID)

# ---- training
executor = fluid.Executor(fluid.CPUPlace())


def fit(data@ARGUMENTS@):
    """Trains from the start and keeps the model of the best epoch. Returns its
    result for the held-out lines."""
    executor.run(startup)
@SET_PENALTY@    with tempfile.TemporaryDirectory() as folder:
        best = BestModel(folder + "/best", MONITORED, program, mode=MODE)
        loop = anabranch.Loop(
            [EarlyStopping(MONITORED, patience=2, mode=MODE), best])
        for epoch in loop.epochs(EPOCHS):
@SHUFFLE@            trained = executor.train_from_dataset(program, data, thread=1)
            found = {"train_loss": trained["loss"]}
            result = evaluate(valid)
            for name in METRICS:
                found["valid_" + name] = result[name]
            loop.log_epoch(**found)
    return best.best


@FIT@
# ---- test, and the model of the best epoch
print(text(evaluate(dataset(*TEST))))
names = [name for name in inputs if name not in (label, group)]
fluid.io.save_inference_model(
    @FOLDER@, names, [answer], executor, program@SAVE@)
'''

FIT = "fit(train)\n"

SET_PENALTY = '''    fluid.global_scope().find_var(l2.name).get_tensor().set(
        np.array([l2_of_all / rows], "float32"), fluid.CPUPlace())
'''

FIT_PENALIZED = '''# The L2 that is best after training on some of the lines. In the mean loss of
# more lines, it has a smaller share.
some, ROWS, SOME_ROWS = @SOME@, @ROWS@, @SOME_ROWS@
results = {l2: fit(some, SOME_ROWS, l2) for l2 in (0, 1, 3, 10, 30, 100)}
chosen = max(results, key=results.get)
print("L2 of all lines: %g" % chosen)
fit(train, ROWS, chosen)
'''
