"""Mistakes of a first week that are refused: each error says what to do."""
import os
import re

import numpy as np
import pytest
from mistaken_runs import EXECUTOR, data, net, train

import anabranch
import anabranch.fluid as fluid
from anabranch.callbacks import EarlyStopping
from anabranch.fluid import layers as L

pytestmark = pytest.mark.usefixtures("fresh")


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
