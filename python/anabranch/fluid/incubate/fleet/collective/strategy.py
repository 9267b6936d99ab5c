"""Settings of workers that sum their gradients."""
from __future__ import annotations

from typing import Any

from ....compiler import BuildStrategy, ExecutionStrategy
from ....errors import InvalidValue, Unsupported


class LambConfig:
    """A class without settings, for programs that name it."""

    def __init__(self) -> None:
        pass


class DistFCConfig:
    """A class without settings, for programs that name it."""

    def __init__(self) -> None:
        pass


class DistributedStrategy(BuildStrategy):
    """A BuildStrategy with the settings of a job of several workers.

    Attributes:
        use_local_sgd (bool): whether workers train locally and average parameters. Default False.
        mode (str): "nccl2" sums over the replicas of all workers, "collective" by ops of the program. Default "nccl2".
        collective_mode (str, optional): "grad_allreduce" or "local_sgd", for the mode "collective".
        exec_strategy (ExecutionStrategy): settings of the runs of a worker.
        forward_recompute (bool): whether the backward pass recomputes the activations between checkpoints, like
            ``RecomputeOptimizer``. Default False.
        recompute_checkpoints (list of Variable|str): the checkpoints, in the order of the program.
        use_amp, amp_loss_scaling, use_dist_fc, dist_fc_config: not supported; enabling one raises.

    Raises:
        AttributeError: there is no such attribute.

    Examples:
        >>> from anabranch.fluid.incubate.fleet.collective import DistributedStrategy
        >>> strategy = DistributedStrategy()
        >>> strategy.mode, strategy.amp_loss_scaling, strategy.fuse_all_reduce_ops
        ('nccl2', 32768, True)
    """

    _OWN = {"use_local_sgd": False, "use_dist_fc": False, "dist_fc_config": None, "mode": "nccl2",
            "collective_mode": None, "forward_recompute": False, "use_amp": False, "amp_loss_scaling": 2**15,
            "_ut4grad_allreduce": False}

    def __init__(self) -> None:
        super().__init__()
        for name, value in self._OWN.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "recompute_checkpoints", [])
        object.__setattr__(self, "exec_strategy", ExecutionStrategy())

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._OWN or name in ("recompute_checkpoints", "exec_strategy"):
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)


def check_strategy(strategy: Any, workers: int) -> None:
    """Raises ValueError for contradictory settings, and NotImplementedError for unsupported ones."""
    if strategy.use_local_sgd:
        strategy.mode, strategy.collective_mode = "collective", "local_sgd"
    if strategy.mode not in ("nccl2", "collective"):
        raise InvalidValue("DistributedStrategy.mode must be nccl2 or collective, got %r" % (strategy.mode,))
    if strategy.mode == "collective" and strategy.collective_mode not in ("grad_allreduce", "local_sgd"):
        raise InvalidValue("DistributedStrategy.collective_mode must be grad_allreduce or local_sgd, got %r"
                           % (strategy.collective_mode,))
    if strategy.forward_recompute and not strategy.recompute_checkpoints:
        raise InvalidValue("DistributedStrategy: recompute_checkpoints must be given with forward_recompute")
    for name in ("use_amp", "use_dist_fc"):
        if getattr(strategy, name):
            raise Unsupported("DistributedStrategy.%s is not supported: set it to False" % name)
