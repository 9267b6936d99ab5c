"""A worker or server that infers over its own file, and prints the metrics of all workers.

    python measured_worker.py FOLDER KIND        KIND: collective or servers
"""
import json
import os
import sys

import numpy as np

import anabranch
import anabranch.fluid as fluid
from anabranch.fluid.incubate.fleet.base.role_maker import PaddleCloudRoleMaker

WEIGHTS = np.array([[1.5], [-2.0], [0.5]], "float32")
BATCH = 16


def write(path, seed, rows):
    """Rows of three numbers, a label and a user."""
    draw = np.random.RandomState(seed)
    with open(path, "w") as file:
        for x in draw.normal(size=(rows, 3)).round(3):
            label = draw.rand() < 0.5 + 0.3 * np.tanh(x[0])
            file.write("3 %s 1 %d 1 %d\n" % (" ".join("%.3f" % value for value in x), label, draw.randint(9)))
    return str(path)


def network():
    """(inputs, loss, (prediction, its mean)): constant parameters, so that all workers predict alike."""
    x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1], "int64")
    user = fluid.data("user", [None, 1], "int64")
    attr = fluid.ParamAttr(name="w", initializer=fluid.initializer.NumpyArrayInitializer(WEIGHTS))
    score = fluid.layers.fc(x, 1, param_attr=attr, bias_attr=False)
    chance = fluid.layers.sigmoid(score)
    loss = fluid.layers.mean(fluid.layers.sigmoid_cross_entropy_with_logits(score, fluid.layers.cast(y, "float32")))
    fluid.layers.auc(fluid.layers.concat([fluid.layers.scale(chance, -1.0, 1.0), chance], 1), y)
    return [x, y, user], loss, (chance, fluid.layers.mean(chance))


def infer(path, threads=1):
    """PassResult of the rows of a file, by the default program."""
    inputs, loss, chances = network()
    return measured(inputs, loss, chances, path, threads)


def measured(inputs, loss, chances, path, threads=1):
    """PassResult of a pass of inference over a file."""
    data = fluid.DatasetFactory().create_dataset("QueueDataset")
    data.set_use_var(inputs)
    data.set_batch_size(BATCH)
    data.set_thread(threads)
    data.set_bad_rows("skip")
    data.set_filelist([path])
    executor = fluid.Executor(fluid.CPUPlace())
    executor.run(fluid.default_startup_program())
    chance, mean = chances
    test = fluid.default_main_program().clone(for_test=True)
    return executor.infer_from_dataset(test, data, fetch_list=[loss, mean], fetch_info=["loss", "chance"],
                                       metrics=anabranch.RankingMetrics(chance, *inputs[1:], prefix="ranked_"))


def main(folder, kind):
    if kind == "collective":
        from anabranch.fluid.incubate.fleet.collective import fleet
        fleet.init(PaddleCloudRoleMaker(is_collective=True))
        result = infer(os.path.join(folder, "part-%d" % fleet.worker_index()), threads=2)
    else:
        from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
        from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (
            StrategyFactory,
        )
        fleet.init(PaddleCloudRoleMaker())
        inputs, loss, chances = network()
        fleet.distributed_optimizer(fluid.optimizer.SGD(0.0), StrategyFactory.create_sync_strategy()).minimize(loss)
        if fleet.is_server():
            fleet.init_server()
            fleet.run_server()
            return
        executor = fluid.Executor(fluid.CPUPlace())
        executor.run(fluid.default_startup_program())
        fleet.init_worker()
        result = measured(inputs, loss, chances, os.path.join(folder, "part-%d" % fleet.worker_index()), 2)
    whole = result.over_workers(fleet)
    print("RESULT " + json.dumps([result.rows, whole.metrics, whole.rows, whole.batches, whole.bad_rows]), flush=True)
    if kind == "servers":
        fleet.stop_worker()


if __name__ == "__main__":
    main(*sys.argv[1:])
