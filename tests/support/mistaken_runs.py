"""A small net, its data and its executor, with which tests make mistakes."""
import numpy as np

import anabranch.fluid as fluid
from anabranch.fluid import layers as L

EXECUTOR = fluid.Executor(fluid.CPUPlace())


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
