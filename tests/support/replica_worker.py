"""A worker, or server, of a cluster whose workers have CPU_NUM replicas. Prints the losses of its steps as JSON.

    python replica_worker.py --strategy sync --feed dict
"""
import argparse
import json
import os

import numpy as np

import anabranch.fluid as fluid
from anabranch.fluid.incubate.fleet.base import role_maker
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import StrategyFactory

IDS, SLOTS, ROWS, STEPS = 40, 3, 8, 24


def batches(trainer, count, rows=ROWS):
    random, weights = np.random.RandomState(100 + trainer), np.random.RandomState(1).normal(0, 1, IDS)
    for _ in range(count):
        ids = random.randint(0, IDS, (rows, SLOTS)).astype("int64")
        yield ids, (weights[ids].sum(1, keepdims=True)).astype("float32")


def network(feed):
    ids, y = fluid.data("ids", [None, SLOTS], "int64"), fluid.data("y", [None, 1])
    reader = None
    if feed in ("py_reader", "started"):
        make = fluid.io.PyReader if feed == "started" else fluid.layers.py_reader
        if feed == "started":
            reader = make(feed_list=[ids, y], capacity=4, iterable=False)
        else:
            reader = make(4, [[-1, SLOTS], [-1, 1]], ["int64", "float32"], name="reader", use_double_buffer=False)
            ids, y = fluid.layers.read_file(reader)
    rows = fluid.layers.embedding(fluid.layers.unsqueeze(ids, [2]), [IDS, 1], is_sparse=True,
                                  param_attr=fluid.ParamAttr(name="table"))
    hidden = fluid.layers.fc(fluid.layers.reshape(rows, [-1, SLOTS]), 1, param_attr=fluid.ParamAttr(
        name="w", initializer=fluid.initializer.Constant(1.0)))
    return ids, y, reader, fluid.layers.mean(fluid.layers.square_error_cost(hidden, y))


def losses_of(arguments, exe, program, ids, y, reader, loss):
    replicas = int(os.environ["CPU_NUM"])
    data = list(batches(fleet.worker_index(), arguments.steps * replicas))
    out = []

    def step(feed):
        out.append(float(np.mean(exe.run(program, feed=feed, fetch_list=[loss])[0])))
        if arguments.progress:
            print("step", flush=True)

    if arguments.feed == "dict":
        for i in range(0, len(data), replicas):
            part = data[i:i + replicas]
            step({"ids": np.concatenate([b[0] for b in part]), "y": np.concatenate([b[1] for b in part])})
    elif arguments.feed == "list":
        for i in range(0, len(data), replicas):
            feeds = [{"ids": b[0], "y": b[1]} for b in data[i:i + replicas]]
            step(feeds if replicas > 1 else feeds[0])
    elif arguments.feed == "loader":
        loader = fluid.io.DataLoader.from_generator(feed_list=[ids, y], capacity=4)
        loader.set_batch_generator(lambda: iter(data), places=fluid.cpu_places())
        for feed in loader():
            step(feed)
    else:
        reader.decorate_batch_generator(lambda: iter(data)) if arguments.feed == "started" else \
            reader.decorate_tensor_provider(lambda: iter(data))
        reader.start()
        try:
            while True:
                step(None)
        except fluid.core.EOFException:
            reader.reset()
    return out


def main(arguments):
    role = None if "TRAINING_ROLE" in os.environ else role_maker.LocalRoleMaker(server_num=arguments.servers)
    fleet.init(role)
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 3
    ids, y, reader, loss = network(arguments.feed)
    strategy = getattr(StrategyFactory, "create_%s_strategy" % arguments.strategy)(
        *([4] if arguments.strategy == "geo" else []))
    fleet.distributed_optimizer(fluid.optimizer.SGD(0.05), strategy).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        return
    exe = fluid.Executor(fluid.CPUPlace())
    fleet.init_worker()
    exe.run(fleet.startup_program)
    program = fluid.CompiledProgram(fleet.main_program).with_data_parallel(
        loss_name=loss.name, build_strategy=strategy.get_build_strategy(),
        exec_strategy=strategy.get_execute_strategy())
    losses = losses_of(arguments, exe, program, ids, y, reader, loss)
    fleet.stop_worker()
    print(json.dumps({"trainer": fleet.worker_index(), "losses": losses}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--strategy", default="sync")
    parser.add_argument("--feed", default="dict", choices=["dict", "list", "loader", "started", "py_reader"])
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--progress", action="store_true", help="Print a line after each step.")
    main(parser.parse_args())
