"""BuildStrategy and ExecutionStrategy: settings that control how the graph of a program is built and run."""
from __future__ import annotations

import enum
from typing import Any

from .. import _core
from . import arguments
from .errors import InvalidArgument, InvalidType
from .framework import gpu
from .pass_builder import PassBuilder
from .strategy_fields import Field, Strategy


class ReduceStrategy(enum.IntEnum):
    """The replicas on which gradients are summed and parameters updated."""

    AllReduce = 0
    Reduce = 1

    def __str__(self) -> str:
        return "ReduceStrategy." + self.name


class GradientScaleStrategy(enum.IntEnum):
    """Initial value of the loss's gradient on each replica."""

    CoeffNumDevice = 0
    One = 1
    Customized = 2

    def __str__(self) -> str:
        return "GradientScaleStrategy." + self.name


class BuildStrategy(Strategy):
    """Settings of the graph of a program and its replicas. Set them before the first run.

    Raises:
        TypeError: a value has the wrong type.
        ValueError: a number is out of range.
        AttributeError: the attribute does not exist.
        EnforceNotMet: an attribute is set after the first run.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> strategy = fluid.BuildStrategy()
        >>> strategy.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.Reduce
        >>> strategy.enable_inplace
        True
    """

    ReduceStrategy = ReduceStrategy
    GradientScaleStrategy = GradientScaleStrategy

    reduce_strategy = Field(
        ReduceStrategy.AllReduce, ReduceStrategy,
        "ReduceStrategy: AllReduce (default): every replica gets every summed gradient. Reduce: each gradient is "
        "summed on the one replica that updates the parameter. In both modes, the replicas share their parameters, "
        "each parameter is updated once, and the bits are the same.")
    gradient_scale_strategy = Field(
        GradientScaleStrategy.CoeffNumDevice, GradientScaleStrategy,
        "GradientScaleStrategy: CoeffNumDevice (default): the update of a loss that is a mean, or is linear in means, "
        "equals that of the whole batch on one replica. For any other loss, each of N replicas contributes 1/N of "
        "its gradient. One: the replicas' gradients are summed without weights. Customized: feed ``<loss>@GRAD``, one "
        "value per replica.")
    debug_graphviz_path = Field(
        "", str,
        "str: if not empty, the graph after each pass is written as <path>_<nn>_<pass>.dot, and drawn as .svg unless "
        "it has more than 5000 nodes.")
    enable_sequential_execution = Field(False, bool, "bool: operations keep the order of the program. Default False.")
    enable_backward_optimizer_op_deps = Field(
        True, bool,
        "bool: updates wait for the whole backward part. Default True.")
    remove_unnecessary_lock = Field(
        True, bool, "bool: has no effect, because operations use no locks. Default True.", inert=True)
    cache_runtime_context = Field(
        False, bool, "bool: has no effect, because plans always keep their context. Default False.", inert=True)
    fuse_elewise_add_act_ops = Field(
        False, bool,
        "bool: fuses a product with the bias and the activation after it, in the forward and the backward part, and "
        "chains of other elementwise operations. It reads False until it is set, but the operations are fused "
        "unless it is set to False.",
        automatic=True)
    fuse_bn_act_ops = Field(
        False, bool,
        "bool: fuses batch norm with the relu after it, and their gradients. It reads False until it is set, but they "
        "are fused unless it is set to False.", automatic=True)
    fuse_relu_depthwise_conv = Field(
        False, bool,
        "bool: has no effect. Fluid fuses relu with a depthwise convolution, on GPUs only. Default False.", inert=True)
    fuse_all_optimizer_ops = Field(
        False, bool,
        "bool: fuses the updates of one optimizer into a single operation over all parameters. It reads False until it "
        "is set; until then, the engine fuses them if ``enable_backward_optimizer_op_deps`` is True.",
        automatic=True)
    fuse_all_reduce_ops = Field(
        True, bool,
        "bool or None: sums gradients in groups. None and True (default): the engine decides.", optional=True)
    fuse_broadcast_ops = Field(
        True, bool,
        "bool or None: has no effect on the CPU, because replicas share their parameters. Default True.", optional=True,
        inert=True)
    use_bfloat16 = Field(
        False, bool,
        "bool: matrix products of fully connected layers (``mul``), forward and backward, round their operands to "
        "bfloat16 where the processor has instructions for it; sums, gradients, parameters and optimizer state stay "
        "float32. ``explain()`` shows whether this was done. Fluid has no such field. Default False.")
    enable_auto_fusion = Field(
        False, bool, "bool: has no effect. Fluid generates kernels at run time, on GPUs only. Default False.",
        inert=True)
    sync_batch_norm = Field(
        False, bool,
        "bool: in training, ``batch_norm`` uses the mean and variance over the batch of all replicas of this process. "
        "As in Fluid 1.8.5, this works on devices only, where each batch norm and each of its gradients sums 2 C + 1 "
        "float64 numbers over the replicas. On the CPU, each replica has its own statistics. Default False.")
    memory_optimize = Field(
        None, bool,
        "bool or None: has no effect, because temporaries always share memory. Default None.",
        optional=True, inert=True)
    enable_inplace = Field(
        True, bool,
        "bool: an output may reuse the memory of an input that is not read later. Default True.")
    is_distribution = Field(
        False, bool, "bool: has no effect. Default False.", inert=True)
    async_mode = Field(
        False, bool,
        "bool: replicas do not sum their gradients. Each applies its own to the shared parameters, one after "
        "another, or, as a worker of parameter servers, sends its own. It has no effect on a worker in sync training. "
        "It works on the CPU only. Default False.")
    num_trainers = Field(
        1, int,
        "int: number of processes that train together and sum their gradients. Default 1.", least=1)
    trainer_id = Field(0, int, "int: number of this process, below num_trainers. Default 0.", least=0)
    trainers_endpoints = Field(
        [], list, "list of str: host:port of every process. Connects the processes if no startup program "
        "does; otherwise it has no effect. Default [].", inert=True)
    nccl_comm_num = Field(
        1, int, "int: number of communicators of devices, which sums of gradients use in turn. It must be the same in "
        "all processes, and has no effect on the CPU. Default 1.",
        least=1)
    use_hierarchical_allreduce = Field(
        False, bool,
        "bool: has no effect, because sums of several processes with devices always have two levels: first over "
        "the devices of each process, then over the processes. Default False.", inert=True)
    hierarchical_allreduce_inter_nranks = Field(
        0, int,
        "int: has no effect, because the lower level is always a process. Default 0.", least=0, inert=True)
    mkldnn_enabled_op_types = Field(
        set(), set,
        "set of str: has no effect, because oneDNN runs all operations that it supports. Default empty.", inert=True)

    _compiled = None  # a weak reference to the CompiledProgram that was compiled with it last

    def __init__(self) -> None:
        super().__init__()
        # The containers are the object's own: adding to one is a change of this strategy alone.
        self._values.update(trainers_endpoints=[], mkldnn_enabled_op_types=set())

    def _finalize_strategy_and_create_passes(self):
        """PassBuilder: the passes that will run; removing one disables it. The strategy is finalized."""
        self._finalized = True
        if self._passes is None:
            self._passes = PassBuilder()
        return self._passes

    def explain(self) -> str:
        """Lists the graph passes that are applied under this strategy, and those that are not, with reasons.

        Returns:
            str: one line per pass. Before a run, the line shows whether the pass will be tried. After a run of a
            CompiledProgram with this strategy, it shows what the pass changed in the graph of the last run, as in
            ``CompiledProgram.explain``.

        Raises:
            InvalidArgument: ``FLAGS_disable_passes`` names an unknown pass.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> strategy = fluid.BuildStrategy()
            >>> strategy.enable_inplace = False
            >>> print(strategy.explain().splitlines()[-1].strip())
            reuse_input      skipped: enable_inplace is False
        """
        compiled = self._compiled and self._compiled()
        if compiled is not None:
            return compiled.explain()
        return "not compiled yet\n" + _core.explain_passes(self._to_core())

    def _to_core(self):
        """Returns the C++ strategy."""
        if self.trainer_id >= self.num_trainers:
            raise InvalidArgument("BuildStrategy.trainer_id must be below num_trainers (%d), got %d"
                                  % (self.trainer_id, self.num_trainers))
        core = _core.BuildStrategy()
        for field in self._fields():
            if field.inert or (field.automatic and field.name not in self._values):
                continue
            value = getattr(self, field.name)
            if field.name == "reduce_strategy":
                value = (_core.ReduceMode.AllReduce, _core.ReduceMode.Reduce)[value]
            elif field.name == "gradient_scale_strategy":
                kinds = _core.GradientScale
                value = (kinds.CoeffNumDevice, kinds.One, kinds.Customized)[value]
            setattr(core, field.name, value)
        if self._passes is not None:
            kept = {p.type() for p in self._passes.all_passes()}
            core.disabled_passes = {name for name, *_ in _core.pass_list()} - kept
        return core


class ExecutionStrategy(Strategy):
    """Settings of the runs of a compiled program.

    Raises:
        TypeError: a value has the wrong type, or the number of threads is negative.
        AttributeError: the attribute does not exist.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> strategy = fluid.ExecutionStrategy()
        >>> strategy.num_threads = 4
        >>> strategy.num_iteration_per_drop_scope
        100
    """

    num_threads = Field(
        0, int,
        "int: number of worker threads, which may exceed the number of cores. 0 (default): one per core that the "
        "process may use. Results do not depend on it. Device kernels are launched by one thread, that of the run.")
    num_iteration_per_drop_scope = Field(
        100, int,
        "int: number of runs after which idle temporaries are released. Default 100.", least=1)
    num_iteration_per_run = Field(1, int, "int: number of repetitions of the program in one run. Default 1.", least=1)
    allow_op_delay = Field(
        False, bool,
        "bool: has no effect, as in Fluid 1.8.5. Default False.", inert=True)
    use_experimental_executor = Field(
        True, bool, "bool: has no effect, because there is only one executor. Default True.", inert=True)
    use_thread_barrier = Field(
        False, bool, "bool: used only by half-asynchronous parameter servers. Default False.", inert=True)
    use_cuda = Field(
        True, bool,
        "bool: set from the places at the first run. Setting it to True needs the device plug-in. The default, True, "
        "has no effect.", automatic=True, inert=True)
    _dry_run = Field(False, bool, "bool: runs everything except the kernels. Default False.")

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "num_threads" and isinstance(value, int) and value < 0:
            raise InvalidType("ExecutionStrategy.num_threads must be a number >= 0, got %d" % value)
        super().__setattr__(name, value)

    def _to_core(self, on_devices=False):
        """Returns the C++ strategy."""
        if self._values.get("use_cuda") and not _core.devices_offered():
            gpu.ask("ExecutionStrategy.use_cuda", "use_cuda=False", InvalidArgument)
        self.use_cuda = on_devices
        core = _core.ExecutionStrategy()
        for field in self._fields():
            if not field.inert:
                setattr(core, field.name.lstrip("_"), getattr(self, field.name))
        return core


arguments.explain(globals())
