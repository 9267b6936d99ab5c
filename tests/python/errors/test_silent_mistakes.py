"""Mistakes of a first week: each one has a warning or an error that says what to do."""
import os
import re
import warnings

import numpy as np
import pytest

import anabranch
import anabranch.fluid as fluid
from anabranch.callbacks import BestModel, EarlyStopping
from anabranch.fluid import layers as L

EXECUTOR = fluid.Executor(fluid.CPUPlace())


@pytest.fixture(autouse=True)
def fresh(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard(), \
            fluid.scope_guard(fluid.Scope()):
        yield


def net(train=None):
    x, y = fluid.data("x", [None, 2]), fluid.data("y", [None, 1])
    prediction = L.fc(x, 1)
    loss = L.mean(L.square_error_cost(prediction, y))
    test = fluid.default_main_program().clone(for_test=True)
    if train is not None:
        train.minimize(loss)
    EXECUTOR.run(fluid.default_startup_program())
    return x, y, prediction, loss, test


def data(variables, text, name="lines"):
    with open(name, "w") as file:
        file.write(text)
    made = fluid.DatasetFactory().create_dataset("QueueDataset")
    made.set_use_var(variables)
    made.set_filelist([name])
    return made


def batches(count=3):
    return [{"x": np.ones((4, 2), "float32"), "y": np.ones((4, 1), "float32")}] * count


def train(program, data_set):
    return EXECUTOR.train_from_dataset(program, data_set)


# ---- warnings


def loss_as_a_target():
    _, _, _, loss, _ = net()
    fluid.io.save_inference_model("model", ["x"], [loss], EXECUTOR)


def logits_as_probabilities():
    L.cross_entropy(L.fc(fluid.data("x", [None, 2]), 3), fluid.data("y", [None, 1], "int64"))


def logits_in_log_loss():
    L.log_loss(L.fc(fluid.data("x", [None, 2]), 1, bias_attr=False), fluid.data("y", [None, 1]))


def probabilities_as_logits():
    L.softmax_with_cross_entropy(L.fc(fluid.data("x", [None, 2]), 3, act="softmax"),
                                 fluid.data("y", [None, 1], "int64"))


def sigmoid_twice():
    L.sigmoid_cross_entropy_with_logits(L.fc(fluid.data("x", [None, 2]), 1, act="sigmoid"), fluid.data("y", [None, 1]))


def label_without_an_axis():
    L.square_error_cost(L.fc(fluid.data("x", [None, 2]), 1), fluid.data("y", [None]))


def minimize_twice():
    _, _, _, loss, _ = net(fluid.optimizer.SGD(0.1))
    fluid.optimizer.Adam(0.1).minimize(loss)


def training_a_test_program():
    x, y, _, _, test = net(fluid.optimizer.SGD(0.1))
    train(test, data([x, y], "2 1 1 1 1\n"))


def checkpoints_of_a_test_program():
    _, _, _, _, test = net(fluid.optimizer.Adam(0.1))
    list(anabranch.Checkpoints("run", test, EXECUTOR).epochs(1))


def empty_files():
    x, y, _, _, _ = net(fluid.optimizer.SGD(0.1))
    train(fluid.default_main_program(), data([x, y], ""))


def no_files():
    x, y, _, _, _ = net(fluid.optimizer.SGD(0.1))
    made = data([x, y], "")
    made.set_filelist([])
    train(fluid.default_main_program(), made)


def nothing_in_memory():
    x, y, _, _, _ = net()
    open("empty", "w").close()
    made = fluid.DatasetFactory().create_dataset("InMemoryDataset")
    made.set_use_var([x, y])
    made.set_filelist(["empty"])
    made.load_into_memory()


def smaller_auc_is_better():
    net()
    BestModel("best/net", "valid_auc", fluid.default_main_program())


def early_stopping_of_an_accuracy():
    EarlyStopping("accuracy")


def nothing_to_start_from():
    net()
    fluid.save(fluid.default_main_program(), "state/run")
    other, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(other, startup):
        L.fc(fluid.data("q", [None, 2]), 1, param_attr="other.w", bias_attr="other.b")
    EXECUTOR.run(startup)
    anabranch.warm_start(other, "state/run")


def rows_of_a_growable_table():
    fluid.embedding(fluid.data("ids", [None], "int64"), size=[10, 4], is_sparse=True,
                    param_attr=fluid.GrowableTable("table"))


def swapped_slots():
    x, y, _, _, _ = net(fluid.optimizer.SGD(0.1))
    with pytest.raises(ValueError):
        train(fluid.default_main_program(), data([y, x], "2 1 1 1 1\n"))


def folder_of_checkpoints_that_is_not_there():
    _, _, prediction, _, _ = net()
    fluid.io.save_inference_model("model", ["x"], [prediction], EXECUTOR)
    anabranch.Predictor("model", follow="rum").close()


def model_as_checkpoints():
    _, _, prediction, _, _ = net()
    fluid.io.save_inference_model("model", ["x"], [prediction], EXECUTOR)
    anabranch.Predictor("model", follow="model").close()


WARNED = [
    (folder_of_checkpoints_that_is_not_there, "Predictor: follow: rum does not exist. Until it has a checkpoint"),
    (model_as_checkpoints, "Predictor: follow: model is the folder of a model. Until it has a checkpoint"),
    (loss_as_a_target, "mean_0.tmp_0 cannot be computed without y, which feeded_var_names lacks: add it, or save"),
    (logits_as_probabilities, "cross_entropy: input must be probabilities, but fc_0.tmp_1 is the result of a layer "
     "without activation: use softmax_with_cross_entropy"),
    (logits_in_log_loss, "log_loss: input must be probabilities, but fc_0.tmp_0 .*use sigmoid_cross_entropy_with"),
    (probabilities_as_logits, "softmax_with_cross_entropy: logits must be logits, but fc_0.tmp_2 is the result of"),
    (sigmoid_twice, "sigmoid_cross_entropy_with_logits: x must be logits, but fc_0.tmp_2 is the result of sigmoid"),
    (label_without_an_axis, r"label y has \[-1\], so that their difference has a value for each pair of rows"),
    (minimize_twice, "the program already updates fc_0.b_0, fc_0.w_0, so that each step now does so twice"),
    (training_a_test_program, "train_from_dataset: the program trains nothing: pass the program on which minimize"),
    (checkpoints_of_a_test_program, "checkpoints lack the state of the optimizer: pass the program on which"),
    (empty_files, "train_from_dataset: the data set has no rows: 1 file of set_filelist has no lines"),
    (no_files, "the data set has no rows: set_filelist names no files"),
    (nothing_in_memory, "load_into_memory: the data set has no rows: 1 file of set_filelist has no lines"),
    (smaller_auc_is_better, "BestModel: smaller values of valid_auc count as better, .* pass mode='max'"),
    (early_stopping_of_an_accuracy, "EarlyStopping: smaller values of accuracy count as better, .* pass mode='max'"),
    (nothing_to_start_from, "nothing was loaded from state/run.* it has fc_0.b_0, fc_0.w_0; the program has other.b"),
    (rows_of_a_growable_table, r"the number of rows 10 is ignored, .* write size=\[-1, 4\]"),
    (swapped_slots, "the number of values is not that of the variable's shape"),
]


@pytest.mark.parametrize("mistake, message", WARNED, ids=lambda one: getattr(one, "__name__", ""))
def test_a_warning_names_the_cure(mistake, message):
    with pytest.warns(UserWarning) as found:
        mistake()
    assert any(re.search(message, str(one.message)) for one in found), [str(one.message) for one in found]


def right_programs():
    x, y, prediction, loss, _ = net(fluid.optimizer.SGD(0.1))
    fluid.io.save_inference_model("model", ["x"], [prediction], EXECUTOR)
    fluid.io.save_inference_model("loss", ["x", "y"], [loss], EXECUTOR)
    train(fluid.default_main_program(), data([x, y], "2 1 1 1 1\n"))
    list(anabranch.Checkpoints("run", fluid.default_main_program(), EXECUTOR).epochs(1))
    BestModel("best/net", "valid_auc", fluid.default_main_program(), mode="max")
    EarlyStopping("test_loss")
    EarlyStopping("mapped_loss")


def right_losses():
    x, y, label = fluid.data("x", [None, 2]), fluid.data("y", [None, 1]), fluid.data("label", [None, 1], "int64")
    L.cross_entropy(L.fc(x, 3, act="softmax"), label)
    L.cross_entropy(L.elementwise_add(L.softmax(x), L.softmax(x)), label)
    L.log_loss(L.fc(x, 1, act="sigmoid"), y)
    L.log_loss(y, y)
    L.softmax_with_cross_entropy(L.fc(x, 3), label)
    L.sigmoid_cross_entropy_with_logits(L.fc(x, 1), y)
    L.square_error_cost(L.fc(x, 1), y)


def two_optimizers_of_two_parts():
    x, y = fluid.data("x", [None, 2]), fluid.data("y", [None, 1])
    loss = L.mean(L.square_error_cost(L.elementwise_add(L.fc(x, 1, param_attr="w", bias_attr=False),
                                                        L.fc(x, 1, param_attr="v", bias_attr=False)), y))
    fluid.optimizer.SGD(0.1).minimize(loss, parameter_list=["w"])
    fluid.optimizer.Adam(0.1).minimize(loss, parameter_list=["v"])


@pytest.mark.parametrize("program", [right_programs, right_losses, two_optimizers_of_two_parts])
def test_right_programs_get_no_warning(program):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program()


# ---- errors


def another_optimizer_on_resume():
    _, _, _, loss, _ = net(fluid.optimizer.SGD(0.1))
    for _ in anabranch.Checkpoints("run", fluid.default_main_program(), EXECUTOR).epochs(1):
        pass
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        net(fluid.optimizer.Adam(0.1))
        list(anabranch.Checkpoints("run", fluid.default_main_program(), EXECUTOR).epochs(2))


def folder_instead_of_a_prefix():
    net()
    fluid.save(fluid.default_main_program(), "state/run")
    fluid.load(fluid.default_main_program(), "state", EXECUTOR)


def one_file_for_all():
    net()
    fluid.io.save_persistables(EXECUTOR, "saved", filename="all")
    fluid.io.load_persistables(EXECUTOR, "saved")


def variable_without_a_slot():
    x, _, _, _, _ = net(fluid.optimizer.SGD(0.1))
    train(fluid.default_main_program(), data([x], "2 1 1\n"))


def checkpoints_as_a_model():
    net(fluid.optimizer.SGD(0.1))
    list(anabranch.Checkpoints("run", fluid.default_main_program(), EXECUTOR).epochs(1))
    anabranch.Predictor("run")


def saved_program_as_a_model():
    net()
    fluid.save(fluid.default_main_program(), "state/run")
    anabranch.Predictor("state")


def folder_of_models():
    _, _, prediction, _, _ = net()
    fluid.io.save_inference_model("models/first", ["x"], [prediction], EXECUTOR)
    anabranch.Predictor("models")


def vocabulary_with_line_ends():
    with open("words", "w") as file:
        file.write("red\nblue\n")
    with open("words") as file:
        anabranch.Schema().text("kind").vocabulary(list(file))


def vocabulary_of_a_windows_file():
    anabranch.Schema().text("kind").vocabulary("red\r\nblue\r\n".split("\n")[:2])


def missing_word_with_a_line_end():
    anabranch.Schema().text("kind").missing("none\n")


def set_as_a_vocabulary():
    anabranch.Schema().text("kind").vocabulary({"red", "blue"})


def file_as_a_vocabulary():
    anabranch.Schema().text("kind").vocabulary("words.txt")


def model_of_rows():
    schema = anabranch.Schema()
    schema.number("price")
    schema.text("kind").hash(10)
    inputs = schema.inputs()
    score = L.fc(L.concat([inputs["price"], L.cast(inputs["kind"], "float32")], 1), 1)
    EXECUTOR.run(fluid.default_startup_program())
    fluid.io.save_inference_model("model", list(inputs), [score], EXECUTOR, schema=schema)
    return anabranch.Predictor("model")


def one_row_without_a_list():
    model_of_rows().run_rows({"price": 1, "kind": "red"})


def raw_rows_to_run():
    model_of_rows().run([{"price": 1, "kind": "red"}])


def raw_columns_to_run():
    model_of_rows().run({"price": [1.0], "kind": ["red"]})


def plain():
    _, _, prediction, _, _ = net()
    fluid.io.save_inference_model("model", ["x"], [prediction], EXECUTOR)
    return anabranch.Predictor("model")


def lists_to_a_predictor():
    plain().run({"x": [[1, 2]]})


def doubles_to_a_predictor():
    plain().run({"x": np.ones((1, 2))})


def callback_without_a_list():
    anabranch.Loop(EarlyStopping("loss"))


def epochs_as_a_float():
    list(anabranch.Loop(show=False).epochs(2.0))


def steps_of_nothing():
    list(anabranch.Loop(show=False).steps(None))


def rows_without_an_axis():
    L.fc(fluid.data("x", [4]), 3)


REFUSED = [
    (rows_without_an_axis, r"fc: input must have an axis of rows .* got \[4\] of variable x: .* such as \[None, 4\]"),
    (callback_without_a_list, r"Loop: callbacks must be a list, got EarlyStopping: write \[callback\]"),
    (epochs_as_a_float, "Loop.epochs: epochs must be an int or an iterable of ints, got float"),
    (steps_of_nothing, "Loop.steps: batches must be an iterable, .* got NoneType"),
    (another_optimizer_on_resume, r"has the variables of another program; the program has also .*fc_0.b_0_moment1_0.* "
     r"start a run in a new folder, after anabranch.warm_start\(program, 'run'\)"),
    (folder_instead_of_a_prefix, "model_path must be folder/prefix for files of fluid.save, .* pass 'state/run'"),
    (one_file_for_all, "the folder has the files all: if the variables were saved in one file, pass its name"),
    (variable_without_a_slot, 'variable "y" has no value: the data set does not feed it.*\n.*\n.*Name it in '
     'set_use_var, which names "x"'),
    (checkpoints_as_a_model, "no file __model__, which save_inference_model writes; it holds checkpoints"),
    (saved_program_as_a_model, "no file __model__, .*; fluid.save has written run there"),
    (folder_of_models, "no file __model__, .*; there is a model in models/first"),
    (vocabulary_with_line_ends, r'a word must not contain a line end, .*: use line.rstrip\("\\r\\n"\)'),
    (vocabulary_of_a_windows_file, "a word must not contain a line end"),
    (missing_word_with_a_line_end, "the value must not contain a line end"),
    (set_as_a_vocabulary, "vocabulary of kind must be a list, got"),
    (file_as_a_vocabulary, "the words must be a list"),
    (one_row_without_a_list, r"column price must be a list or an array of values, got int; a single row is \[row\]"),
    (raw_rows_to_run, "raw rows are for run_rows"),
    (raw_columns_to_run, "raw rows are for run_rows"),
    (lists_to_a_predictor, r"input x must be float32, got int64; pass numpy.array\(value, 'float32'\)"),
    (doubles_to_a_predictor, r"input x must be float32, got float64; pass numpy.array\(value, 'float32'\)"),
]


@pytest.mark.parametrize("mistake, message", REFUSED, ids=lambda one: getattr(one, "__name__", ""))
def test_an_error_names_the_cure(mistake, message):
    with pytest.raises(fluid.core.EnforceNotMet) as error:
        mistake()
    assert re.search(message, str(error.value)), str(error.value)


def test_another_format_on_resume(capfd):
    def run(salt, epochs):
        with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard(), \
                fluid.scope_guard(fluid.Scope()):
            schema = anabranch.Schema()
            schema.text("kind").hash(100, salt=salt)
            inputs = schema.inputs()
            rows = fluid.embedding(inputs["kind"], [100, 2])
            fluid.optimizer.SGD(0.1).minimize(L.mean(rows))
            EXECUTOR.run(fluid.default_startup_program())
            made = data(list(inputs.values()), "kind\nred\nblue\n")
            made.set_format(schema)
            checkpoints = anabranch.Checkpoints("run", fluid.default_main_program(), EXECUTOR)
            for _ in checkpoints.epochs(epochs):
                EXECUTOR.train_from_dataset(fluid.default_main_program(), made, checkpoints=checkpoints, thread=1)
        return capfd.readouterr().err
    assert "another format" not in run("a", 1)
    assert "another format" not in run("a", 2)
    assert "the data set has another format (set_format) than before" in run("b", 3)
    assert os.path.isdir("run")
