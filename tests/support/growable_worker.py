"""A cluster of processes that trains a growable table and saves it for inference: run by `anabranch launch`."""
import os

import numpy as np

import anabranch.fluid as fluid
from anabranch.fluid.incubate.fleet.base import role_maker
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import StrategyFactory

KEYS = np.random.RandomState(5).randint(-2 ** 62, 2 ** 62, 300)


def main():
    fleet.init(role_maker.PaddleCloudRoleMaker())
    ids, y = fluid.data("ids", [None, 3], "int64"), fluid.data("y", [None, 1])
    table = fluid.GrowableTable("table", fluid.initializer.Uniform(-1, 1, seed=3))
    rows = fluid.embedding(ids, [-1, 4], is_sparse=True, is_distributed=True, param_attr=table)
    prediction = fluid.layers.fc(fluid.layers.reshape(rows, [-1, 12]), 1)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(prediction, y))
    kind = os.environ["ANABRANCH_STRATEGY"]
    strategy = getattr(StrategyFactory, "create_%s_strategy" % kind)(*([5] if kind == "geo" else []))
    fleet.distributed_optimizer(fluid.optimizer.Adagrad(0.1), strategy).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        return fleet.run_server()
    exe = fluid.Executor()
    fleet.init_worker()
    exe.run(fleet.startup_program)
    random, losses = np.random.RandomState(fleet.worker_index()), []
    for _ in range(60):
        chosen = random.randint(0, len(KEYS), (32, 3))
        feed = {"ids": KEYS[chosen], "y": (chosen.sum(axis=1, keepdims=True) % 2).astype("float32")}
        losses.append(float(exe.run(fleet.main_program, feed=feed, fetch_list=[loss])[0][0]))
    # A worker may begin when others have trained the table: 0.25 is what half of all has, 0.5 what nothing has.
    assert np.mean(losses[-10:]) < 0.4, losses
    if fleet.is_first_worker():
        fleet.save_inference_model(exe, os.environ["ANABRANCH_MODEL"], ["ids"], [prediction])
    return fleet.stop_worker()


if __name__ == "__main__":
    main()
