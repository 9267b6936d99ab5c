"""The programming interface of Fluid 1.8 on the engine of Anabranch.

>>> import numpy
>>> import anabranch.fluid as fluid
>>> main, startup = fluid.Program(), fluid.Program()
>>> with fluid.program_guard(main, startup):
...     x = fluid.data("x", [None, 4])
...     loss = fluid.layers.mean(fluid.layers.fc(x, 1))
...     _ = fluid.optimizer.SGD(0.1).minimize(loss)
>>> exe = fluid.Executor(fluid.CPUPlace())
>>> _ = exe.run(startup)
>>> exe.run(main, feed={"x": numpy.ones((8, 4), "float32")}, fetch_list=[loss])[0].shape
(1,)
"""
from typing import TYPE_CHECKING as _TYPE_CHECKING

from .. import _launched, _on_demand
from . import core, framework, unique_name  # noqa: I001  core first: it gives the engine its error classes
from .core import CPUPlace, CUDAPinnedPlace, CUDAPlace, LoDTensor, LoDTensorArray, Scope, Tensor, _Scope
from .data import data  # imported now: later, its module would replace it
from .framework import (
    ComplexVariable,
    Program,
    Variable,
    cpu_places,
    cuda_pinned_places,
    cuda_places,
    default_main_program,
    default_startup_program,
    device_guard,
    get_flags,
    in_dygraph_mode,
    is_compiled_with_cuda,
    load_op_library,
    name_scope,
    program_guard,
    require_version,
    set_flags,
)

if _TYPE_CHECKING:
    from . import (
        average,
        backward,
        clip,
        communicator,
        compiler,
        contrib,
        data_feeder,
        dataset,
        debugger,
        evaluator,
        executor,
        incubate,
        initializer,
        io,
        layer_helper,
        layers,
        lod_tensor,
        log_helper,
        metrics,
        net_drawer,
        nets,
        optimizer,
        parallel_executor,
        param_attr,
        profiler,
        reader,
        regularizer,
        transpiler,
    )
    from . import trainer_factory as trainer_factory
    from .backward import append_backward, gradients
    from .compiler import BuildStrategy, CompiledProgram, ExecutionStrategy
    from .data_feed_desc import DataFeedDesc
    from .data_feeder import DataFeeder
    from .dataset import DatasetFactory, InMemoryDataset, QueueDataset
    from .executor import Executor, global_scope, scope_guard
    from .growable_table import GrowableTable
    from .incubate import data_generator
    from .input import embedding, one_hot
    from .io import load, load_program_state, save, set_program_state
    from .legacy import (
        disable_dygraph,
        disable_imperative,
        enable_dygraph,
        enable_imperative,
        memory_optimize,
        release_memory,
    )
    from .lod_tensor import create_lod_tensor, create_random_int_lodtensor
    from .memory import memory_report
    from .parallel_executor import ParallelExecutor
    from .param_attr import ParamAttr, WeightNormParamAttr
    from .table_rules import ShowClickScore
    from .transpiler import DistributeTranspiler, DistributeTranspilerConfig

__all__ = [
    "BuildStrategy", "CPUPlace", "CUDAPinnedPlace", "CUDAPlace", "CompiledProgram", "ComplexVariable",
    "DataFeedDesc", "DataFeeder", "DatasetFactory", "DistributeTranspiler", "DistributeTranspilerConfig",
    "ExecutionStrategy", "Executor", "GrowableTable", "InMemoryDataset",
    "LoDTensor", "LoDTensorArray", "ParallelExecutor", "ParamAttr", "Program", "QueueDataset", "Scope",
    "ShowClickScore", "Tensor",
    "Variable", "WeightNormParamAttr", "_Scope",
    "append_backward", "average", "backward", "clip", "communicator", "compiler", "contrib", "core", "cpu_places",
    "create_lod_tensor", "create_random_int_lodtensor", "cuda_pinned_places", "cuda_places", "data", "data_feeder",
    "data_generator", "dataset", "debugger", "default_main_program", "default_startup_program", "device_guard",
    "disable_dygraph", "disable_imperative", "embedding", "enable_dygraph", "enable_imperative", "evaluator",
    "executor", "framework", "get_flags", "global_scope", "gradients", "in_dygraph_mode", "incubate", "initializer",
    "io", "is_compiled_with_cuda", "layer_helper", "layers", "load", "load_op_library", "load_program_state",
    "lod_tensor", "log_helper",
    "memory_optimize", "memory_report", "metrics", "name_scope", "net_drawer", "nets", "one_hot",
    "optimizer", "parallel_executor", "param_attr", "profiler", "program_guard", "reader", "regularizer",
    "release_memory", "require_version", "save", "scope_guard", "set_flags", "set_program_state", "transpiler",
    "unique_name",
]

_launched.watch()

_on_demand.give(__name__, {
    ".backward": "append_backward gradients",
    ".compiler": "BuildStrategy CompiledProgram ExecutionStrategy",
    ".data_feed_desc": "DataFeedDesc",
    ".data_feeder": "DataFeeder",
    ".dataset": "DatasetFactory InMemoryDataset QueueDataset",
    ".executor": "Executor global_scope scope_guard",
    ".growable_table": "GrowableTable",
    ".incubate": "data_generator",
    ".input": "embedding one_hot",
    ".io": "load load_program_state save set_program_state",
    ".legacy": "disable_dygraph disable_imperative enable_dygraph enable_imperative memory_optimize release_memory",
    ".lod_tensor": "create_lod_tensor create_random_int_lodtensor",
    ".memory": "memory_report",
    ".parallel_executor": "ParallelExecutor",
    ".param_attr": "ParamAttr WeightNormParamAttr",
    ".table_rules": "ShowClickScore",
    ".transpiler": "DistributeTranspiler DistributeTranspilerConfig",
})
