"""Values that compute something else than is meant, in files, readers, arguments and rows: each one has a warning."""
import re
import warnings

import numpy as np
import pytest
from mistaken_runs import EXECUTOR, net

import anabranch
import anabranch.fluid as fluid
from anabranch.fluid import layers as L

pytestmark = pytest.mark.usefixtures("fresh")
MAIN = fluid.default_main_program


def csv(value="%d", count=200, name="a.csv", encoding="utf-8"):
    with open(name, "w", encoding=encoding) as file:
        file.write("clicked;value\n" + "".join("%d;%s\n" % (row % 2, value % (row * 37 % 200 + 10))
                                               for row in range(count)))
    return name


def read(describe, *files, drop_last=False):
    schema = anabranch.Schema(separator=";")
    describe(schema)
    schema.label("clicked", dtype="float32")
    inputs = schema.inputs()
    data = fluid.DatasetFactory().create_dataset()
    data.set_use_var(list(inputs.values()))
    data.set_format(schema)
    data.set_filelist(list(files) or [csv()])
    data.set_drop_last(drop_last)
    return list(data._batches())


def number(*steps):
    def describe(schema):
        feature = schema.number("value")
        for name, *arguments in steps:
            getattr(feature, name)(*arguments)
    return describe


def text(*steps):
    def describe(schema):
        feature = schema.text("value")
        for name, *arguments in steps:
            getattr(feature, name)(*arguments)
    return describe


OF_COLUMN = [
    ("clip to another range", number(("clip", 0, 1)), "%d", "the steps clip of the feature value make all of the"),
    ("bounds of another unit", number(("bucketize", [1000, 2000])), "%d", "the steps bucketize .* values equal"),
    ("mean of another unit", number(("normalize", 0.5, 0.1)), "%d", "the mean of the first 200 values .* far from 0"),
    ("decimals as text", text(("hash", 1000)), "%d.25", r"numbers with decimals, .* read the column with Schema.num"),
    ("decimal commas as text", text(("hash", 1000)), "%d,5", "Schema.number, after decimal commas have become points"),
    ("few ids", text(("hash", 10)), "u%d", "the first 200 texts have .* different values, which share 10 ids"),
    ("words for missing", text(("missing", "none"), ("hash", 1000)), "NA%.0s", "200 of the first 200 texts are 'NA'"),
]


@pytest.mark.parametrize("describe, value, message", [one[1:] for one in OF_COLUMN], ids=[one[0] for one in OF_COLUMN])
def test_columns_that_are_read_in_another_way(describe, value, message):
    with pytest.warns(UserWarning, match="a.csv: column value: .*" + message):
        read(describe, csv(value))


@pytest.mark.parametrize("describe, value", [
    (number(("clip", 0, 100), ("log",), ("normalize", 4, 1)), "%d"), (number(("bucketize", [50, 100])), "%d"),
    (text(("hash", 1000)), "1.%d"), (text(("hash", 1000)), "u%d"), (text(("hash", 1000)), "\u00e4%d"),
    (number(("clip", 0, 100)), "5%.0s")])
def test_columns_as_meant_get_no_warning(describe, value):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(describe, csv(value))


def test_text_of_other_bytes():
    with pytest.warns(UserWarning, match=r"column value: the text '\\udce4.* is not UTF-8.*iconv -f LATIN1 -t UTF-8"):
        read(text(("hash", 10000)), csv("\u00e4%d", encoding="latin-1"))


def test_files_that_count_more_than_others():
    csv(), csv(name="b.csv")
    for files in (["a.csv", "b.csv", "a.csv"], ["a.csv", "./a.csv"]):
        with pytest.warns(UserWarning, match="set_filelist has ./?a.csv 2 times|set_filelist has a.csv 2 times"):
            read(number(), *files)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(number(), "a.csv", "b.csv", "a.csv", "b.csv")


def test_a_batch_that_is_larger_than_all_rows():
    with pytest.warns(UserWarning, match=r"the 5 rows are fewer than a batch \(32\), so that drop_last leaves none"):
        assert read(number(), csv(count=5), drop_last=True) == []


def labels(values, column="1", loss=L.sigmoid_cross_entropy_with_logits, **kwargs):
    x, y = fluid.data("x", [None, 1]), fluid.data("y", [None, 1])
    fluid.optimizer.SGD(0.01).minimize(L.mean(loss(L.fc(x, 1), y, **kwargs)))
    EXECUTOR.run(fluid.default_startup_program())
    with open("a", "w") as file:
        file.write("".join("%g,%g\n" % (row % 7, values[row % len(values)]) for row in range(210)))
    data = fluid.DatasetFactory().create_dataset()
    data.set_use_var([x, y])
    data.set_format("columns comma\nx = %s\ny = 1" % ("1" if column == "label" else "0"))
    data.set_filelist(["a"])
    EXECUTOR.train_from_dataset(MAIN(), data)


OF_LABELS = [
    ([1, 2], {}, "the label y must be from 0 to 1 for sigmoid_cross_entropy_with_logits, got 1 to 2"),
    ([-1, 1], {}, "must be from 0 to 1 .*, got -1 to 1"),
    ([0], {}, "all rows have the label y 0, so that there is nothing to learn"),
    ([0, 1], {"column": "label"}, "value 0 of x equals the label y in all of 210 rows: .* given the answer"),
]


@pytest.mark.parametrize("values, settings, message", OF_LABELS)
def test_labels_that_mislead(values, settings, message):
    with pytest.warns(UserWarning, match="train_from_dataset: .*" + message):
        labels(values, **settings)


@pytest.mark.parametrize("values, settings", [([0, 1], {}), ([0, 0.5, 1], {}), ([0, 1, -1], {"ignore_index": -1}), (
    [1, 5], {"loss": L.square_error_cost})])
def test_labels_as_meant_get_no_warning(values, settings):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labels(values, **settings)


def x():
    return fluid.data("wide", [None, 2])


def classes():
    return fluid.data("y", [None, 1], "int64")


def loader(source, **settings):
    made = fluid.io.DataLoader.from_generator([fluid.data("x", [None, 1])], 4, **settings)
    return made.set_batch_generator(source, places=fluid.cpu_places(1) if settings.get("iterable", True) else None)


def exhausted():
    batches = iter([[np.ones((1, 1), "float32")]] * 2)
    made = loader(lambda: batches)
    assert [len(list(made())) for _ in range(2)] == [2, 0]


def exhausted_in_a_program():
    batches = iter([[np.ones((1, 1), "float32")]])
    made = loader(lambda: batches, iterable=False)
    for _ in range(2):
        made.start()
        with pytest.raises(fluid.core.EOFException):
            while True:
                EXECUTOR.run(MAIN())
        made.reset()


def exhausted_in_a_loop():
    loop, batches = anabranch.Loop(show=False), iter(range(2))
    for _ in loop.epochs(2):
        for _ in loop.steps(batches):
            loop.log(loss=1)


def ids_to_a_predictor():
    schema = anabranch.Schema()
    schema.text("kind").vocabulary(["red", "blue"])
    score = L.fc(L.cast(schema.inputs()["kind"], "float32"), 1)
    EXECUTOR.run(fluid.default_startup_program())
    fluid.io.save_inference_model("model", ["kind"], [score], EXECUTOR, schema=schema)
    predictor = anabranch.Predictor("model")
    for _ in range(2):
        predictor.run_rows([{"kind": 2}])


def label_as_an_input():
    schema = anabranch.Schema()
    schema.label("clicked", dtype="float32")
    score = L.fc(schema.inputs()["clicked"], 1)
    EXECUTOR.run(fluid.default_startup_program())
    fluid.io.save_inference_model("model", ["clicked"], [score], EXECUTOR, schema=schema)


def input_that_is_not_needed():
    _, _, prediction, _, _ = net()
    fluid.io.save_inference_model("model", ["x", "y"], [prediction], EXECUTOR)


WARNED = [
    (exhausted, "DataLoader of x: the pass has no batches, but an earlier one had: the function must return a new"),
    (exhausted_in_a_program, "the pass has no batches, but an earlier one had"),
    (lambda: list(loader(list)()), "the pass has no batches: the source has no samples"),
    (exhausted_in_a_loop, r"Loop.steps: there are no batches: a generator .* write loop.steps\(batches\(\)\)"),
    (lambda: list(fluid.io.batch(lambda: range(3), 4, drop_last=True)()), "batch: the 3 samples are fewer than batch"),
    (lambda: fluid.io.shuffle(lambda: range(3), 1), "shuffle: with buf_size=1, the order stays the same"),
    (lambda: L.cross_entropy(L.fc(x(), 1, act="softmax"), classes()), "cross_entropy: input must have a column for"),
    (lambda: L.softmax_with_cross_entropy(L.fc(x(), 1), classes()), "logits must have a column for each class.*sigm"),
    (lambda: L.accuracy(L.fc(x(), 1, act="sigmoid"), classes()), "accuracy: input must have a column for each class"),
    (lambda: fluid.optimizer.SGD(-0.1), "SGDOptimizer: learning_rate is -0.1, so that each step makes the loss larger"),
    (lambda: L.piecewise_decay([20, 10], [1.0, 0.5, 0.1]), "piecewise_decay: boundaries must rise"),
    (lambda: fluid.regularizer.L2Decay(-0.1), "L2Decay: regularization_coeff is -0.1, so that the weights grow"),
    (lambda: fluid.clip.GradientClipByGlobalNorm(0.0), "clip_norm is 0, so that nothing is learned"),
    (lambda: fluid.clip.GradientClipByNorm(-1.0), "clip_norm is -1, so that nothing is learned"),
    (lambda: fluid.clip.GradientClipByValue(1.0, 2.0), "GradientClipByValue: min is 2, above max, which is 1"),
    (lambda: L.embedding(classes(), [1000000, 2]), r"updates all 1000000 rows of the table: pass is_sparse=True"),
    (ids_to_a_predictor, "run_rows: column kind has the number 2, but the vocabulary of the model has no numbers"),
    (label_as_an_input, "save_inference_model: the input clicked is the label: the model is given the answer"),
    (input_that_is_not_needed, "y is not needed for fc_0.tmp_1, but every request must have it"),
]


@pytest.mark.parametrize("mistake, message", WARNED, ids=[message[:40] for _, message in WARNED])
def test_a_warning_names_the_cure(mistake, message):
    with pytest.warns(UserWarning) as found:
        mistake()
    assert [bool(re.search(message, str(one.message))) for one in found] == [True], [str(one.message) for one in found]


def test_a_generator_instead_of_a_function():
    with pytest.raises(TypeError, match="must be a function that returns an iterable .*, got list_iterator: pass the"):
        list(loader(iter([1]))())


def test_right_arguments_get_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = loader(lambda: [[np.ones((1, 1), "float32")]])
        assert [len(list(made())) for _ in range(2)] == [1, 1]
        loop = anabranch.Loop(show=False)
        for _ in loop.epochs(2):
            list(loop.steps(iter(range(2))))
            list(loop.steps([]))
        list(fluid.io.batch(lambda: range(3), 2, drop_last=True)())
        L.accuracy(L.fc(x(), 2, act="softmax"), classes())
        L.embedding(classes(), [1000000, 2], is_sparse=True)
        fluid.clip.GradientClipByValue(1.0, -2.0)
        L.piecewise_decay([10, 20], [1.0, 0.5, 0.1])
