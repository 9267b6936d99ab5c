"""Script of each process of the trial ``cluster``: cluster_job.py FOLDER."""
import os
import sys

import numpy as np

import anabranch.fluid as fluid
from anabranch.fluid.incubate.fleet.base import role_maker
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import StrategyFactory


def main(folder: str) -> None:
    """Fits a line; a worker writes its losses and its weight to the folder."""
    fleet.init(role_maker.PaddleCloudRoleMaker())
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
    out = fluid.layers.fc(x, 1, param_attr=fluid.ParamAttr("weight", fluid.initializer.Constant(0.0)))
    loss = fluid.layers.mean(fluid.layers.square_error_cost(out, y))
    fleet.distributed_optimizer(fluid.optimizer.SGD(0.2), StrategyFactory.create_sync_strategy()).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        return
    fleet.init_worker()
    executor = fluid.Executor()
    executor.run(fleet.startup_program)
    rank = fleet.worker_index()
    rows = np.random.RandomState(rank).rand(32, 4).astype("float32")
    feed = {"x": rows, "y": rows.sum(axis=1, keepdims=True)}
    losses = [float(np.mean(executor.run(fleet.main_program, feed, [loss])[0])) for _ in range(40)]
    np.savez(os.path.join(folder, "worker%d.npz" % rank), losses=losses,
             weight=np.array(fluid.global_scope().find_var("weight").get_tensor()))
    fleet.stop_worker()


if __name__ == "__main__":
    main(sys.argv[1])
