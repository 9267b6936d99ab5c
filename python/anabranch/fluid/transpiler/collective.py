"""Collective training: every worker keeps all parameters, and collective ops in its program sum over the workers."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import unique_name
from ..errors import InvalidType, InvalidValue
from ..framework import Program, default_main_program, default_startup_program
from ..framework.context import OpRole
from ..framework.dtype import VarType
from . import op_kinds
from .checks import check_whole_number
from .details.checkport import wait_server_ready

__all__ = ["GradAllReduce", "LocalSGD"]

_BACKWARD, _OPTIMIZE = int(OpRole.Backward), int(OpRole.Optimize)


class Collective:
    """Base class of the rewriters: connects the processes in the startup program and broadcasts rank 0's parameters.

    Args:
        nrings (int): number of groups of processes that sum independently. Parameters are distributed over the groups
            round-robin.
    """

    def __init__(self, nrings: int) -> None:
        check_whole_number("%s: nrings" % type(self).__name__, nrings, 1)
        self.nrings = nrings

    def transpile(self, startup_program: Program | None, main_program: Program | None, rank: int,
                  endpoints: Any, current_endpoint: str, wait_port: bool) -> None:
        """Inserts the collective ops of one process into its programs.

        Args:
            startup_program (Program, optional): the default startup program.
            main_program (Program, optional): the training program, after ``minimize``; the default main program.
            rank (int): rank of this process.
            endpoints (str|list): addresses of all processes.
            current_endpoint (str): address of this process.
            wait_port (bool): True makes rank 0 wait until the others listen.

        Raises:
            TypeError: a program is not a Program.
            ValueError: the rank does not match the addresses.
        """
        self.main = default_main_program() if main_program is None else main_program
        self.startup = default_startup_program() if startup_program is None else startup_program
        for given in (self.main, self.startup):
            if not isinstance(given, Program):
                raise InvalidType("%s: a Program must be given, got %s" % (type(self).__name__, type(given).__name__))
        self.endpoints = endpoints.split(",") if isinstance(endpoints, str) else list(endpoints)
        check_whole_number("%s: rank" % type(self).__name__, rank, 0)
        if rank >= len(self.endpoints) or len(set(self.endpoints)) < len(self.endpoints):
            raise InvalidValue("%s: rank must be below the number of endpoints, which must be different, got %d and %s"
                               % (type(self).__name__, rank, self.endpoints))
        if current_endpoint not in self.endpoints:
            raise InvalidValue("%s: %s is not one of the processes at %s"
                               % (type(self).__name__, current_endpoint, self.endpoints))
        self.rank, self.current, self.nranks = rank, current_endpoint, len(self.endpoints)
        self._connect(wait_port)
        self._begin_alike()
        self._rewrite()

    def _connect(self, wait_port: bool) -> None:
        others = [e for e in self.endpoints if e != self.current]
        if self.rank == 0 and wait_port:
            wait_server_ready(others)
        block = self.startup.global_block()
        for ring in range(self.nrings):
            name = block.create_var(name=unique_name.generate("nccl_id"), persistable=True, type=VarType.RAW)
            block.append_op(type="c_gen_nccl_id", inputs={}, outputs={"Out": [name]},
                            attrs={"rank": self.rank, "endpoint": self.current, "other_endpoints": others,
                                   "ring_id": ring})
            block.append_op(type="c_comm_init", inputs={"X": [name]}, outputs={},
                            attrs={"nranks": self.nranks, "rank": self.rank, "ring_id": ring})

    def _begin_alike(self) -> None:
        block = self.startup.global_block()
        params = [p for p in block.iter_parameters() if not p.is_distributed]
        for number, param in enumerate(params):
            block.append_op(type="c_broadcast", inputs={"X": [param]}, outputs={"Out": [param]},
                            attrs={"ring_id": number % self.nrings, "root": 0})
        for ring in range(self.nrings if params else 0):
            block.append_op(type="c_sync_comm_stream", inputs={"X": [params[-1]]}, outputs={"Out": [params[-1]]},
                            attrs={"ring_id": ring})

    def _rewrite(self) -> None:
        raise NotImplementedError

    def _is_backward_op(self, op: Any) -> bool:
        return bool(op_kinds.role_of(op) & _BACKWARD)

    def _is_optimizer_op(self, op: Any) -> bool:
        return bool(op_kinds.role_of(op) & _OPTIMIZE)

    # ---- steps of the rewriting

    def _sum(self, block: Any, index: int, var: Any, ring: int, role: int) -> None:
        """Inserts ops before ``index`` that replace ``var`` with its sum over all processes."""
        pair = {"inputs": {"X": [var]}, "outputs": {"Out": [var]}}
        block._insert_op(index, type="c_sync_calc_stream", attrs={"op_role": role}, **pair)
        block._insert_op(index + 1, type="c_allreduce_sum", attrs={"ring_id": ring, "op_role": role}, **pair)

    def _wait(self, block: Any, index: int, var: Any, role: int) -> None:
        for ring in range(self.nrings):
            block._insert_op(index + ring, type="c_sync_comm_stream", inputs={"X": [var]}, outputs={"Out": [var]},
                             attrs={"ring_id": ring, "op_role": role})


class GradAllReduce(Collective):
    """Sums gradients over all processes; the loss is scaled so that the sum is a mean.

    Args:
        nrings (int): groups that sum independently. Default 2.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> from anabranch.fluid.transpiler.collective import GradAllReduce
        >>> y = fluid.layers.fc(fluid.data("x", [None, 8]), 1)
        >>> _ = fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(y))
        >>> GradAllReduce(1).transpile(None, None, 0, "127.0.0.1:6174,127.0.0.1:6175", "127.0.0.1:6174", False)
        >>> sum(op.type == "c_allreduce_sum" for op in fluid.default_main_program().global_block().ops)
        2
    """

    def __init__(self, nrings: int = 2) -> None:
        super().__init__(nrings)

    def _rewrite(self) -> None:
        self._scale_loss()
        self._sum_gradients()

    def _scale_loss(self) -> None:
        block = self.main.global_block()
        for index, op in reversed(list(enumerate(block.ops))):
            if op_kinds.role_of(op) == int(OpRole.Backward | OpRole.Loss):
                var = block.var(op.output_arg_names[0])
                block._insert_op(index + 1, type="scale", inputs={"X": [var]}, outputs={"Out": [var]},
                                 attrs={"scale": 1.0 / self.nranks, "op_role": _BACKWARD})

    def _sum_gradients(self) -> None:
        block = self.main.global_block()
        last, ring = None, 0
        for index, op in reversed(list(enumerate(block.ops))):
            names = op_kinds.role_vars(op)
            if not op_kinds.role_of(op) & _BACKWARD:
                continue
            for param, grad in zip(names[::2], names[1::2]):
                if block.var(param).is_distributed or grad not in op.output_arg_names:
                    continue
                last = block.var(grad)
                self._sum(block, index + 1, last, ring % self.nrings, _BACKWARD)
                ring += 1
        if last is not None:
            first = [i for i, op in enumerate(block.ops) if op_kinds.is_optimize(op)]
            self._wait(block, first[0] if first else len(block.ops), last, _BACKWARD)


class LocalSGD(Collective):
    """Trains each process locally and averages the parameters of all processes after every step.

    Args:
        nrings (int): groups that sum independently. Default 2.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> from anabranch.fluid.transpiler.collective import LocalSGD
        >>> y = fluid.layers.fc(fluid.data("x", [None, 8]), 1)
        >>> _ = fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(y))
        >>> LocalSGD().transpile(None, None, 1, "127.0.0.1:6174,127.0.0.1:6175", "127.0.0.1:6175", False)
        >>> fluid.default_main_program().global_block().ops[-1].output("Out")[0].endswith("@SNAPSHOT")
        True
    """

    def __init__(self, nrings: int = 2) -> None:
        super().__init__(nrings)

    @staticmethod
    def snapshot_name(param_name: str) -> str:
        """str: the variable that holds a parameter as of the last average."""
        return param_name + "@SNAPSHOT"

    def _snapshot(self, block: Any, param: Any) -> Any:
        return block.create_var(name=self.snapshot_name(param.name), shape=param.shape, dtype=param.dtype,
                                persistable=True, stop_gradient=True)

    def _rewrite(self) -> None:
        started = self.startup.global_block()
        for param in list(started.iter_parameters()):
            if not param.is_distributed:
                started.append_op(type="assign", inputs={"X": [param]},
                                  outputs={"Out": [self._snapshot(started, param)]})
        block = self.main.global_block()
        summed: list[tuple[Any, Any]] = []
        for index, op in reversed(list(enumerate(block.ops))):
            if not op_kinds.is_update(op):
                continue
            param = block.var(op.input("Param")[0])
            if param.is_distributed:
                continue
            kept = self._snapshot(block, param)
            self._difference(block, index + 1, kept, param)
            self._sum(block, index + 2, param, len(summed) % self.nrings, _OPTIMIZE)
            summed.append((param, kept))
        if summed:
            self._wait(block, len(block.ops), summed[-1][0], _OPTIMIZE)
        for param, kept in reversed(summed):
            self._move(block, param, kept)

    def _difference(self, block: Any, index: int, kept: Any, param: Any) -> None:
        block._insert_op(index, type="elementwise_sub", inputs={"X": [kept], "Y": [param]}, outputs={"Out": [param]},
                         attrs={"op_role": _OPTIMIZE})

    def _move(self, block: Any, param: Any, kept: Any) -> None:
        """Applies the mean of the changes of all processes to the parameter."""
        block.append_op(type="scale", inputs={"X": [param]}, outputs={"Out": [param]},
                        attrs={"scale": 1.0 / self.nranks, "op_role": _OPTIMIZE})
        self._difference(block, len(block.ops), kept, param)
        block.append_op(type="assign", inputs={"X": [param]}, outputs={"Out": [kept]}, attrs={"op_role": _OPTIMIZE})


class SingleProcessMultiThread(GradAllReduce):
    """Like :class:`GradAllReduce`, but between the devices of one process."""

    def __init__(self) -> None:
        super().__init__(1)

    def _connect(self, wait_port: bool) -> None:
        self.startup.global_block().append_op(type="c_comm_init_all", inputs={}, outputs={}, attrs={"ring_id": 0})

    def _begin_alike(self) -> None:
        """Devices of one process share their parameters."""


_COLLECTIVES = {"grad_allreduce": GradAllReduce, "local_sgd": LocalSGD,
                "single_process_multi_thread": SingleProcessMultiThread}


def transpile_collective(config: Any, trainer_id: int, program: Any, trainers: Any, startup: Any,
                         current: str) -> None:
    """Implements ``DistributeTranspiler.transpile`` with mode "collective"."""
    kind = _COLLECTIVES.get(config.collective_mode)
    if kind is None:
        raise InvalidValue("transpile: collective_mode must be one of %s, got %r"
                           % (", ".join(sorted(_COLLECTIVES)), config.collective_mode))
    endpoints = _addresses(trainers)
    rewriter = kind() if kind is SingleProcessMultiThread else kind(config.nccl_comm_num)
    rewriter.transpile(startup, program, trainer_id, endpoints, current, config.wait_port)


def transpile_rings(config: Any, trainer_id: int, program: Any, trainers: Any, startup: Any, current: str) -> None:
    """Implements ``DistributeTranspiler.transpile`` with mode "nccl2": the startup program connects the workers, and
    ``ParallelExecutor`` sums."""
    endpoints = _addresses(trainers)
    check_whole_number("transpile: trainer_id", trainer_id, 0)
    if trainer_id >= len(endpoints):
        raise InvalidValue("transpile: trainer_id must be below the number of trainers, got %d for %s"
                           % (trainer_id, ",".join(endpoints)))
    program._trainers_endpoints = endpoints
    program._nccl_comm_num = config.nccl_comm_num
    program._use_hierarchical_allreduce = config.use_hierarchical_allreduce
    program._hierarchical_allreduce_inter_nranks = config.hierarchical_allreduce_inter_nranks
    if trainer_id == 0 and config.wait_port:
        wait_server_ready([e for e in endpoints if e != current])
    block = startup.global_block()
    name = block.create_var(name="NCCLID", persistable=True, type=VarType.RAW)
    block.append_op(type="gen_nccl_id", inputs={}, outputs={"NCCLID": [name]}, attrs={
        "trainers": endpoints, "trainer_id": trainer_id, "endpoint": current, "nccl_comm_num": config.nccl_comm_num,
        "use_hierarchical_allreduce": config.use_hierarchical_allreduce,
        "hierarchical_allreduce_inter_nranks": config.hierarchical_allreduce_inter_nranks})


def _addresses(trainers: Any) -> Sequence[str]:
    if not isinstance(trainers, str) or not trainers:
        raise InvalidType("transpile: trainers must list the addresses of all trainers, \"host:port,host:port\", got %r"
                          % (trainers,))
    return trainers.split(",")
