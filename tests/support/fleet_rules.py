"""A script of fleet that trains a growable table with one of its rules:

    anabranch launch --servers 2 --workers 2 fleet_rules.py RULE STRATEGY FOLDER

The first worker saves the variables. With KILL in the environment, it kills a server in the middle, which the launcher
starts again.
"""
import os
import signal
import sys

from table_rules import RULES, STEPS, feed_of, network, share

import anabranch.fluid as fluid
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import StrategyFactory


def kill_a_server(folder):
    with open(os.path.join(folder, "server-0")) as file:
        os.kill(int(file.read()), signal.SIGKILL)


def main(name, strategy, folder):
    fleet.init()
    chosen = getattr(StrategyFactory, "create_%s_strategy" % strategy)()
    _, _, loss = network(RULES[name], lambda: fleet.distributed_optimizer(fluid.optimizer.Adagrad(0.1), chosen))
    if fleet.is_server():
        with open(os.path.join(folder, "server-%d" % fleet.server_index()), "w") as file:
            file.write(str(os.getpid()))
        fleet.init_server()
        fleet.run_server()
        return
    exe = fluid.Executor(fluid.CPUPlace())
    fleet.init_worker()
    exe.run(fleet.startup_program)
    for step in range(STEPS):
        if step == STEPS // 2 and fleet.is_first_worker() and "KILL" in os.environ:
            kill_a_server(folder)
        exe.run(fleet.main_program, feed=feed_of(step, share(fleet.worker_index(), fleet.worker_num())),
                fetch_list=[loss])
    fleet._role_maker.barrier_worker()
    if fleet.is_first_worker():
        fleet.save_persistables(exe, folder)
    fleet.stop_worker()


if __name__ == "__main__":
    main(*sys.argv[1:])
