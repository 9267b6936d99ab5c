"""Mistakes of a first week that compute something: each one has a warning that says what to do."""
import re
import warnings

import pytest
from mistaken_runs import EXECUTOR, data, net, train

import anabranch
import anabranch.fluid as fluid
from anabranch.callbacks import BestModel, EarlyStopping
from anabranch.fluid import layers as L

pytestmark = pytest.mark.usefixtures("fresh")


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
