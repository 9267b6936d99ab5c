"""A cluster that counts: each record has a number, and a table at the servers counts how often it was trained.

    python queued_files.py STRATEGY FOLDER [COMMAND]     a server or a worker, as the environment says
"""
import os
import sys

import numpy as np

import anabranch.fluid as fluid
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet as the_fleet
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import StrategyFactory

ROWS, FILLING = 300, 500               # records a file: more than the chunk that a reader reads at once


def write(folder, files, rows, filling=1):
    """Paths of files with records one after the other."""
    paths = []
    for i in range(files):
        paths.append(str(folder / ("part-%d" % i)))
        with open(paths[-1], "w") as out:
            out.writelines("1 %d %d%s\n" % (n, filling, " 0" * filling) for n in range(i * rows, (i + 1) * rows))
    return paths


def network(records, filling=1):
    """(slots, loss): plain SGD with a rate of 1 adds 1 to the row of each record."""
    record, more = fluid.data("record", [None, 1], "int64"), fluid.data("more", [None, filling])
    row = fluid.layers.embedding(record, [records, 1], is_sparse=True, param_attr=fluid.ParamAttr(
        name="counts", initializer=fluid.initializer.Constant(0.0)))
    return [record, more], fluid.layers.scale(fluid.layers.reduce_sum(row), -1.0)


def begin(fleet, role, strategy, records, filling=1):
    """(slots, loss), when the program is cut."""
    fleet.init(role)
    slots, loss = network(records, filling)
    made = getattr(StrategyFactory, "create_%s_strategy" % strategy)()
    fleet.distributed_optimizer(fluid.optimizer.SGD(1.0), made).minimize(loss)
    return slots, loss


def dataset(slots, files, batch_size=8):
    made = fluid.DatasetFactory().create_dataset("QueueDataset")
    made.set_use_var(slots)
    made.set_batch_size(batch_size)
    made.set_filelist(files)
    return made


def counts(folder, records):
    """How often each record was trained, of a folder of ``save_persistables``."""
    with open(os.path.join(str(folder), "counts"), "rb") as file:
        return np.frombuffer(file.read()[-4 * records:], "float32")


def main(strategy, folder, command="cat"):
    paths = sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.startswith("part-"))
    slots, loss = begin(the_fleet, None, strategy, len(paths) * ROWS, FILLING)
    if the_fleet.is_server():
        the_fleet.init_server()
        the_fleet.run_server()
        return
    exe = fluid.Executor(fluid.CPUPlace())
    the_fleet.init_worker()
    exe.run(the_fleet.startup_program)
    data = dataset(slots, the_fleet.file_queue(paths))
    data.set_pipe_command(command)
    exe.train_from_dataset(the_fleet.main_program, data, fetch_list=[loss], print_period=1)
    print("files %d" % data.statistics()["files"], flush=True)
    the_fleet.save_persistables(exe, os.path.join(folder, "saved-%d" % the_fleet.worker_index()))
    the_fleet.stop_worker()


if __name__ == "__main__":
    main(*sys.argv[1:])
