"""Trains a model on clicks that never end, as one process of a cluster. run.py starts it:

    anabranch launch --servers 2 --workers 2 train.py --clicks FOLDER ...

Each worker trains on its share of each minute. After every minute, the first worker saves a checkpoint with the rows
that have changed. After minute --export-after, it also saves the model for serving, once. A worker that is restarted
continues with the minute that it had begun.
"""
import argparse
import os
import time

import numpy as np
from world import SLOTS

import anabranch.fluid as fluid
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import StrategyFactory

WIDTH, BATCH = 8, 100


def network(limit_bytes):
    """(loss, score). An id gets a row when it comes for the second time; at the limit, the row that was not updated for
    longest is removed."""
    ids, click = fluid.data("ids", [None, len(SLOTS)], "int64"), fluid.data("click", [None, 1])
    table = fluid.GrowableTable("ids_table", admit_count=2, max_bytes=limit_bytes, evict="lru")
    rows = fluid.embedding(ids, [-1, WIDTH], is_sparse=True, param_attr=table)
    wide = fluid.layers.reduce_sum(fluid.layers.slice(rows, [2], [0], [1]), dim=[1])
    deep = fluid.layers.fc(fluid.layers.reshape(rows, [-1, len(SLOTS) * WIDTH]), 16, act="relu")
    logit = fluid.layers.elementwise_add(wide, fluid.layers.fc(deep, 1))
    loss = fluid.layers.mean(fluid.layers.sigmoid_cross_entropy_with_logits(logit, click))
    return loss, fluid.layers.sigmoid(logit)


def minutes(folder, number):
    """Yields (number, arrays) of each minute from ``number``, as it is written, until the stream ends."""
    while True:
        path = os.path.join(folder, "%06d.npz" % number)
        last = os.path.exists(os.path.join(folder, "end"))    # asked first: the clicks are written before
        if os.path.exists(path):
            with np.load(path) as file:
                yield number, {"ids": file["ids"], "click": file["click"][:, None]}
            number += 1
        elif last:
            return
        else:
            time.sleep(0.02)
            kept = sorted(name for name in os.listdir(folder) if name.endswith(".npz"))
            number = max(number, int(kept[0][:-4])) if kept else number     # a worker that was away for too long


def share(arrays, me, workers):
    """Batches of a worker's share of a minute."""
    own = {name: values[me::workers] for name, values in arrays.items()}
    for begin in range(0, len(own["ids"]), BATCH):
        yield {name: values[begin:begin + BATCH] for name, values in own.items()}


def export(exe, folder, score):
    """Saves the model for serving; the folder appears when it is complete."""
    if not os.path.exists(folder):
        fleet.save_inference_model(exe, folder + ".writing", ["ids"], [score])
        os.rename(folder + ".writing", folder)


def train(exe, loss, score, a):
    me, position = fleet.worker_index(), os.path.join(a.positions, "worker-%d" % fleet.worker_index())
    first = 1
    if os.path.exists(position):                              # of a worker that was started again
        with open(position) as file:
            first = int(file.read()) + 1
    for number, arrays in minutes(a.clicks, first):
        losses = [exe.run(fleet.main_program, feed=feed, fetch_list=[loss])[0].item()
                  for feed in share(arrays, me, fleet.worker_num())]
        print("minute %d: loss %.4f" % (number, np.mean(losses)))
        with open(position + ".writing", "w") as file:
            file.write(str(number))
        os.replace(position + ".writing", position)
        if fleet.is_first_worker():
            fleet.save_persistables(exe, a.run, mode=1, keep=5)
            if number >= a.export_after:
                export(exe, a.model, score)


def main(a):
    fleet.init()
    loss, score = network(int(a.limit_mb * 2 ** 20))
    fleet.distributed_optimizer(fluid.optimizer.Adam(0.01, lazy_mode=True),
                                StrategyFactory.create_async_strategy()).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        return
    exe = fluid.Executor(fluid.CPUPlace())
    fleet.init_worker()
    exe.run(fleet.startup_program)
    train(exe, loss, score, a)
    fleet.stop_worker()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clicks", required=True, help="Folder of the clicks.")
    parser.add_argument("--run", required=True, help="Folder for the checkpoints.")
    parser.add_argument("--model", required=True, help="Folder for the model.")
    parser.add_argument("--positions", required=True, help="Folder in which workers note how far they are.")
    parser.add_argument("--export-after", type=int, default=5, help="Minute after which the model is saved "
                        "(default: %(default)s).")
    parser.add_argument("--limit-mb", type=float, default=4, help="Limit of the table in MiB, of both servers together "
                        "(default: %(default)s).")
    main(parser.parse_args())
