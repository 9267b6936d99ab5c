"""Predicts clicks from sparse ids, trained by workers with parameter servers.

    python 06_parameter_servers.py                                          servers and a worker in this process
    anabranch launch --servers 2 --workers 2 06_parameter_servers.py        one process each
    anabranch launch --ray --servers 2 --workers 2 06_parameter_servers.py  actors of Ray

--strategy is sync (default), half_async, async or geo. The data are synthetic: each id has a hidden weight, and the sum
of the weights decides how likely a click is. The AUC of a perfect model is therefore known. `./dev demo ps` kills a
worker and a server during the training.
"""
import argparse
import os
import time

import numpy as np

import anabranch.fluid as fluid
from anabranch.datasets import criteo
from anabranch.fluid.incubate.fleet.base import role_maker
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import StrategyFactory

SLOTS, BATCH, WINDOW = 8, 256, 50


def network(ids_there_are):
    ids, click = fluid.data("ids", [None, SLOTS], "int64"), fluid.data("click", [None, 1], "int64")
    rows = fluid.layers.embedding(fluid.layers.unsqueeze(ids, [2]), [ids_there_are, 8], is_sparse=True,
                                  param_attr=fluid.ParamAttr(name="table"))
    hidden = fluid.layers.fc(fluid.layers.reshape(rows, [-1, SLOTS * 8]), 32, act="relu")
    prediction = fluid.layers.fc(hidden, 2, act="softmax")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(prediction, click))
    _, newest_auc, _ = fluid.layers.auc(prediction, click, slide_steps=WINDOW)  # of batches that were not seen before
    return loss, newest_auc


def weights_of(ids_there_are):
    return np.random.RandomState(1).normal(0, 1, ids_there_are)


def batch(random, weights):
    ids = random.randint(0, len(weights), (BATCH, SLOTS))
    chance = 1 / (1 + np.exp(-weights[ids].sum(1)))
    return {"ids": ids.astype("int64"), "click": (random.rand(BATCH) < chance).astype("int64")[:, None]}


def perfect_auc(weights, rows=50000):
    random = np.random.RandomState(2)
    scores = weights[random.randint(0, len(weights), (rows, SLOTS))].sum(1)
    return criteo.auc(scores, random.rand(rows) < 1 / (1 + np.exp(-scores)))


def strategy_of(name):
    return getattr(StrategyFactory, "create_%s_strategy" % name)()


def train(exe, loss, newest_auc, arguments):
    """Trains, and returns all losses. A worker that was started again goes on with batches that it has not seen."""
    me, weights = fleet.worker_index(), weights_of(arguments.ids)
    random = np.random.RandomState([me, int(os.environ.get("ANABRANCH_STARTS", "0"))])
    losses = []
    for step in range(1, arguments.steps + 1):
        value, auc = exe.run(fleet.main_program, feed=batch(random, weights), fetch_list=[loss, newest_auc])
        losses.append(value.item())
        if step % WINDOW == 0:
            print("at %.3f worker %d: step %d, loss %.4f, AUC %.4f" % (time.time(), me, step,
                                                                      np.mean(losses[-WINDOW:]), auc.item()))
    print("worker %d of %d: loss %.3f at first, %.3f at last, AUC %.4f; a perfect model: %.4f" % (
        me, fleet.worker_num(), np.mean(losses[:10]), np.mean(losses[-10:]), auc.item(), perfect_auc(weights)))


def main(arguments):
    if any(name in os.environ for name in ("TRAINING_ROLE", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")):
        fleet.init()                       # by the environment: of a launcher, of your hosts, of Slurm or mpirun
    else:
        fleet.init(role_maker.LocalRoleMaker(server_num=2))
    loss, newest_auc = network(arguments.ids)
    optimizer = fluid.optimizer.Adam(arguments.rate, lazy_mode=True)
    fleet.distributed_optimizer(optimizer, strategy_of(arguments.strategy)).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        return
    exe = fluid.Executor(fluid.CPUPlace())
    fleet.init_worker()
    exe.run(fleet.startup_program)
    train(exe, loss, newest_auc, arguments)
    if arguments.save and fleet.is_first_worker():
        fleet.save_persistables(exe, arguments.save)
    fleet.stop_worker()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--strategy", default="sync", choices=["sync", "half_async", "async", "geo"])
    parser.add_argument("--steps", type=int, default=150, help="Number of steps of each worker (default: %(default)s)")
    parser.add_argument("--ids", type=int, default=2000, help="Number of rows of the table (default: %(default)s)")
    parser.add_argument("--rate", type=float, default=0.01, help="Learning rate (default: %(default)s)")
    parser.add_argument("--save", metavar="FOLDER", help="Folder in which the first worker saves the model.")
    main(parser.parse_args())
