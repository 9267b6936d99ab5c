"""A cluster whose test programs were cloned before ``minimize``. A worker prints their losses and those of a later one.

    python tested_worker.py TABLE        TABLE: sparse, distributed or growable
"""
import json
import sys

import numpy as np

import anabranch.fluid as fluid
from anabranch.fluid.incubate.fleet.base.role_maker import PaddleCloudRoleMaker
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import StrategyFactory


def embedding(ids, table):
    """The rows of ids, by the kind of table."""
    attr = fluid.ParamAttr(name="table", initializer=fluid.initializer.Constant(0.25))
    if table == "growable":
        growable = fluid.GrowableTable("table", fluid.initializer.Constant(0.25))
        return fluid.layers.embedding(ids, [-1, 4], is_sparse=True, param_attr=growable)
    return fluid.layers.embedding(ids, [50, 4], is_sparse=True, is_distributed=table == "distributed", param_attr=attr)


def main(table):
    fleet.init(PaddleCloudRoleMaker())
    ids, y = fluid.data("ids", [None, 1], "int64"), fluid.data("y", [None, 1])
    rows = fluid.layers.reshape(embedding(ids, table), [-1, 4])
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(rows, 1), y))
    early = fluid.default_main_program().clone(for_test=True)
    copied = early.clone(for_test=True)
    fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), StrategyFactory.create_sync_strategy()).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        return
    executor = fluid.Executor(fluid.CPUPlace())
    executor.run(fleet.startup_program)
    fleet.init_worker()
    feed = {"ids": np.arange(8).reshape(8, 1), "y": np.ones((8, 1), "float32")}
    losses = [executor.run(fleet.main_program, feed, [loss.name])[0] for _ in range(5)]
    tests = [executor.run(program, feed, [loss.name])[0]
             for program in (early, copied, fleet.main_program.clone(for_test=True))]
    print("RESULT " + json.dumps([float(np.mean(value)) for value in losses + tests]), flush=True)
    fleet.stop_worker()


if __name__ == "__main__":
    main(*sys.argv[1:])
