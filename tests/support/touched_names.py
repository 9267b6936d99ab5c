"""Looks up each name of data/touched_names.tsv as a script would, and prints what is there. Run by `anabranch run`."""
import importlib
import json
import os
import sys

import paddle
import paddle.fluid as fluid
from paddle.fluid import core
from repository import DATA

from anabranch import _absent


def objects():
    """Class -> an object of it."""
    from paddle.fluid.incubate.fleet.base import role_maker
    from paddle.fluid.incubate.fleet.parameter_server.pslib import fleet
    from paddle.fluid.incubate.fleet.utils.fleet_util import FleetUtil
    from paddle.fluid.transpiler.collective import Collective
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        x = fluid.data("x", [None, 4])
        weight = fluid.layers.create_parameter([4, 2], "float32")
        op = fluid.layers.mul(x, weight).block.ops[0]
        ema = fluid.optimizer.ExponentialMovingAverage(0.9)
    factory, block = fluid.DatasetFactory(), program.global_block()
    sgd = fluid.optimizer.Momentum(0.1, 0.9)
    return {
        "InMemoryDataset": factory.create_dataset("InMemoryDataset"), "QueueDataset": factory.create_dataset(),
        "ParallelExecutor": fluid.ParallelExecutor, "DistributeTranspilerConfig": fluid.DistributeTranspilerConfig,
        "DistributeTranspiler": fluid.DistributeTranspiler(), "Momentum": sgd, "Executor": fluid.Executor(),
        "PipelineOptimizer": fluid.optimizer.PipelineOptimizer(sgd), "ExponentialMovingAverage": ema,
        "LoDTensor": core.LoDTensor(), "Tensor": core.Tensor(), "Place": core.Place(), "Scope": core.Scope(),
        "_Scope": core._Scope(), "Program": program, "ProgramDesc": program.desc, "Block": block,
        "BlockDesc": block.desc, "Operator": op, "OpDesc": op.desc, "Variable": x, "Parameter": weight,
        "OpRole": core.op_proto_and_checker_maker.OpRole, "CompiledProgram": fluid.CompiledProgram(program),
        "LayerHelper": fluid.layer_helper.LayerHelper("fc"), "Collective": Collective(1), "Fleet": fleet,
        "LayerHelperBase": fluid.layer_helper_base.LayerHelperBase("a", "fc"), "FleetUtil": FleetUtil("transpiler"),
        "GeneralRoleMaker": role_maker.GeneralRoleMaker(), "MPISymetricRoleMaker": role_maker.MPISymetricRoleMaker()}


def found(name, of):
    """The object of a name; raises as a script would see it."""
    first, *rest = name.split(".")
    at, value = first, paddle if first == "paddle" else of[first]
    for part in rest:
        at += "." + part
        try:
            value = getattr(value, part)
        except AttributeError:
            if first != "paddle":
                raise
            value = importlib.import_module(at)
    return value


def state(name, of):
    """"here" for an object, "absent" for what stands for one or raises at its use."""
    try:
        return "absent" if isinstance(found(name, of), _absent.Absent) else "here"
    except (AttributeError, ImportError, NotImplementedError):
        return "absent"


if __name__ == "__main__":
    with open(os.path.join(DATA, "touched_names.tsv")) as file:
        names = [line.split("\t")[1] for line in file.read().splitlines()]
    everything = objects()
    json.dump({name: state(name, everything) for name in names}, sys.stdout)
