"""A script that keeps the best model and stops early: alone, with replicas, or as a worker or server of a cluster.

    python best_worker.py FOLDER TABLE        TABLE: sparse or growable

CPU_NUM replicas. It reads FOLDER/valid-0 and -1, writes FOLDER/best and FOLDER/model, and prints its decisions.
"""
import json
import os
import sys

import numpy as np

import anabranch
import anabranch.fluid as fluid
from anabranch.callbacks import BestModel, EarlyStopping
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import StrategyFactory

ITEMS, BATCH, STEPS, EPOCHS = 40, 32, 4, 20


def drawn(seed, rows):
    """Ids, numbers, labels with noise, users."""
    draw = np.random.RandomState(seed)
    ids, x = draw.randint(0, ITEMS, (rows, 1)), draw.normal(size=(rows, 3)).round(3).astype("float32")
    chance = 1 / (1 + np.exp(-(0.8 * np.sin(ids[:, :1]) + 0.7 * x[:, :1])))
    return ids, x, (draw.rand(rows, 1) < chance).astype("float32"), draw.randint(0, 12, (rows, 1))


def write(path, seed, rows):
    """A file of drawn rows."""
    with open(path, "w") as file:
        for ids, x, y, user in zip(*drawn(seed, rows)):
            file.write("1 %d 3 %s 1 %d 1 %d\n" % (ids[0], " ".join("%.3f" % value for value in x), y[0], user[0]))


def network(table):
    """(inputs, answer, loss)"""
    ids, x = fluid.data("ids", [None, 1], "int64"), fluid.data("x", [None, 3])
    y, user = fluid.data("y", [None, 1]), fluid.data("user", [None, 1], "int64")
    start = fluid.initializer.Uniform(-0.1, 0.1, seed=4)
    size, attr = [ITEMS, 8], fluid.ParamAttr("table", initializer=start)
    if table == "growable":
        size, attr = [-1, 8], fluid.GrowableTable("table", start)
    rows = fluid.layers.reshape(fluid.layers.embedding(ids, size, is_sparse=True, param_attr=attr), [-1, 8])
    hidden = fluid.layers.fc(fluid.layers.concat([rows, x], 1), 16, act="relu")
    score = fluid.layers.fc(hidden, 1)
    loss = fluid.layers.mean(fluid.layers.sigmoid_cross_entropy_with_logits(score, y))
    return [ids, x, y, user], fluid.layers.sigmoid(score), loss


def batches():
    """The rows of this worker in each step of an epoch."""
    ids, x, y, user = drawn(1, BATCH * STEPS)
    each = BATCH // fleet.worker_num()
    for step in range(STEPS):
        begin = step * BATCH + fleet.worker_index() * each
        mine = slice(begin, begin + each)
        yield {"ids": ids[mine], "x": x[mine], "y": y[mine]}


def main(folder, table):
    fleet.init()
    program, startup = fluid.default_main_program(), fluid.default_startup_program()
    program.random_seed = startup.random_seed = 3
    inputs, answer, loss = network(table)
    test_program = program.clone(for_test=True)
    fleet.distributed_optimizer(fluid.optimizer.Adam(0.02, lazy_mode=True),
                                StrategyFactory.create_sync_strategy()).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        return
    executor = fluid.Executor(fluid.CPUPlace())
    executor.run(fleet.startup_program)
    fleet.init_worker()
    trained = fluid.CompiledProgram(fleet.main_program).with_data_parallel(loss.name)
    valid = fluid.DatasetFactory().create_dataset("QueueDataset")
    valid.set_use_var(inputs)
    valid.set_batch_size(16)
    valid.set_filelist(fleet.split_files([os.path.join(folder, "valid-%d" % part) for part in range(2)]))
    metrics = anabranch.RankingMetrics(answer, "y", "user")

    best = BestModel(os.path.join(folder, "best"), "valid_ne", program)
    loop = anabranch.Loop([EarlyStopping("valid_ne", patience=2), best], fleet=fleet)
    epochs = []
    for _ in loop.epochs(EPOCHS):
        for feed in loop.steps(batches()):
            executor.run(trained, feed, [loss.name])
        result = executor.infer_from_dataset(test_program, valid, fetch_list=[loss], fetch_info=["loss"],
                                             metrics=metrics).over_workers(fleet)
        loop.log_epoch(**{"valid_" + name: value for name, value in result.metrics.items()})
        epochs.append(result.metrics)
    best.save_inference_model(os.path.join(folder, "model"), ["ids", "x"], [answer], executor)
    print("RESULT " + json.dumps({"worker": fleet.worker_index(), "best": best.best_epoch, "stopped": loop.stopped,
                                  "epochs": epochs}), flush=True)
    fleet.stop_worker()


if __name__ == "__main__":
    main(*sys.argv[1:])
