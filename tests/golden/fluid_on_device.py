"""anabranch.fluid where the CPU means a device: golden.py check --fluid fluid_on_device --expected ... runs the
programs on the devices of FLAGS_device_plugin, the first one for one place, several for several replicas, which share
devices where there are fewer.
"""
import os
import sys

import anabranch.fluid as fluid
from anabranch.fluid import compiler, parallel_executor


def one_place():
    return fluid.CUDAPlace(0)


def several_places(count=None):
    devices = fluid.core.get_cuda_device_count()
    return fluid.cuda_places([replica % devices for replica in range(count or 1)])


def as_many_as_asked():
    """The default places of replicas."""
    return several_places(int(os.environ["CPU_NUM"]))


fluid.CPUPlace, fluid.cpu_places = one_place, several_places
compiler.cuda_places = parallel_executor.cuda_places = as_many_as_asked
sys.modules[__name__] = fluid
