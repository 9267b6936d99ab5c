"""anabranch.fluid where the CPU means a device: golden.py check --fluid fluid_on_device --expected ... runs the
programs on the devices of FLAGS_device_plugin, the first one for one place, several for several replicas.
"""
import sys

import anabranch.fluid as fluid


def one_place():
    return fluid.CUDAPlace(0)


def several_places(count=None):
    return fluid.cuda_places(list(range(count or 1)))


fluid.CPUPlace, fluid.cpu_places = one_place, several_places
sys.modules[__name__] = fluid
