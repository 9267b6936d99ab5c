"""Workers with replicas, and the same training in one process."""
import numpy as np
import replica_worker

import anabranch.fluid as fluid


def strategy(reduce=False, async_mode=False, one=False):
    build = fluid.BuildStrategy()
    build.async_mode = async_mode
    if reduce:
        build.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.Reduce
    if one:
        build.gradient_scale_strategy = fluid.BuildStrategy.GradientScaleStrategy.One
    return build


def local_losses(replicas, async_mode=False):
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 3
        _, _, _, loss = replica_worker.network("dict")
        fluid.optimizer.SGD(0.05).minimize(loss)
        exe, scope = fluid.Executor(), fluid.Scope()
        exe.run(fluid.default_startup_program(), scope=scope)
        program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
            loss_name=loss.name, build_strategy=strategy(async_mode=async_mode), places=fluid.cpu_places(replicas))
        data = list(replica_worker.batches(0, replica_worker.STEPS * replicas))
        return [float(np.mean(exe.run(program, feed=[{"ids": b[0], "y": b[1]} for b in data[i:i + replicas]],
                                      fetch_list=[loss], scope=scope)[0])) for i in range(0, len(data), replicas)]
