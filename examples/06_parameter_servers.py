"""Clicks from sparse ids, trained by workers with parameter servers.

    python 06_parameter_servers.py                                    servers and a worker in this process
    anabranch launch --servers 2 --workers 2 06_parameter_servers.py  one process each
    ANABRANCH_STRATEGY=async ...                                      sync (default), half_async, async or geo

The ids are synthetic: each has a hidden weight, and their sum decides how likely a click is.
"""
import os

import numpy as np

import anabranch.fluid as fluid
from anabranch.fluid.incubate.fleet.base import role_maker
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import StrategyFactory

IDS, SLOTS, BATCH, STEPS = 2000, 8, 256, 150


def network():
    ids, click = fluid.data("ids", [None, SLOTS], "int64"), fluid.data("click", [None, 1], "int64")
    rows = fluid.layers.embedding(fluid.layers.unsqueeze(ids, [2]), [IDS, 8], is_sparse=True,
                                  param_attr=fluid.ParamAttr(name="table"))
    hidden = fluid.layers.fc(fluid.layers.reshape(rows, [-1, SLOTS * 8]), 32, act="relu")
    prediction = fluid.layers.fc(hidden, 2, act="softmax")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(prediction, click))
    return loss, prediction


def batch(random):
    weights = np.random.RandomState(1).normal(0, 1, IDS)
    ids = random.randint(0, IDS, (BATCH, SLOTS))
    chance = 1 / (1 + np.exp(-weights[ids].sum(1)))
    return {"ids": ids.astype("int64"), "click": (random.rand(BATCH) < chance).astype("int64")[:, None]}


def main():
    in_a_cluster = "TRAINING_ROLE" in os.environ
    fleet.init(role_maker.PaddleCloudRoleMaker() if in_a_cluster else role_maker.LocalRoleMaker(server_num=2))
    loss, prediction = network()
    strategy = getattr(StrategyFactory, "create_%s_strategy" % os.environ.get("ANABRANCH_STRATEGY", "sync"))()
    fleet.distributed_optimizer(fluid.optimizer.Adam(0.01, lazy_mode=True), strategy).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        return
    exe = fluid.Executor(fluid.CPUPlace())
    fleet.init_worker()
    exe.run(fleet.startup_program)
    random = np.random.RandomState(10 + fleet.worker_index())
    losses = [exe.run(fleet.main_program, feed=batch(random), fetch_list=[loss])[0].item() for _ in range(STEPS)]
    print("worker %d of %d: loss %.3f at first, %.3f at last" % (fleet.worker_index(), fleet.worker_num(),
                                                                np.mean(losses[:10]), np.mean(losses[-10:])))
    folder = os.environ.get("ANABRANCH_MODEL")
    if folder and fleet.is_first_worker():
        fleet.save_persistables(exe, folder)
    fleet.stop_worker()


if __name__ == "__main__":
    main()
