"""Sums between processes on a GPU, of one process: what NCCL makes of a communicator with a single rank. Each operator
gives back what it was given, in queues and, from its second run on, after captured graphs.
"""
import os

import numpy as np

import anabranch.fluid as fluid
from anabranch import _cluster
from anabranch._processes import free_ports

SIMULATED = os.environ.get("FLAGS_device_plugin") == "simdevice"
KINDS = {"c_allreduce_sum": {}, "c_allreduce_max": {}, "c_allreduce_min": {}, "c_allreduce_prod": {},
         "c_broadcast": {"root": 0}, "c_allgather": {"nranks": 1}, "c_reducescatter": {"nranks": 1}}
TYPES = ["float32", "float64", "int32", "int64"]


def program(dtype):
    main = fluid.Program()
    with fluid.program_guard(main), fluid.unique_name.guard():
        x = fluid.data("x", [None, 3], dtype)
        made = [fluid.layers.scale(x, 2.0)]
        for kind, attrs in KINDS.items():
            out = main.global_block().create_var(name=kind, dtype=dtype)
            main.global_block().append_op(type=kind, inputs={"X": [made[0]]}, outputs={"Out": [out]},
                                          attrs=dict(attrs, ring_id=0))
            made.append(out)
    return main, made


def check(dtype):
    main, made = program(dtype)
    exe = fluid.Executor(fluid.CUDAPlace(0))
    for rows in (4, 4, 4, 1 << 16):
        x = np.random.RandomState(rows).randint(-9, 9, (rows, 3)).astype(dtype)
        for name, got in zip(["scale", *KINDS], exe.run(main, feed={"x": x}, fetch_list=made)):
            assert np.array_equal(got, x * 2), (dtype, name)
    said = list(exe._bound.values())[-1].bound.engine.explain()
    assert "%d of %d ops run on a device" % (len(made), len(made)) in said, said


if __name__ == "__main__":
    _cluster.join(0, 0, ["127.0.0.1:%d" % free_ports(1)[0]])
    for type_of in TYPES:
        check(type_of)
    with open("/proc/self/maps") as maps:
        assert SIMULATED or "libnccl" in maps.read(), "NCCL was not opened"
    print("%d operators of %d types, one rank of %s" % (len(KINDS), len(TYPES), "the CPU" if SIMULATED else "NCCL"))
