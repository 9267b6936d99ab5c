"""Settings of DistributeTranspiler."""
from __future__ import annotations

import os
from typing import Any

from ... import _core
from .. import arguments
from ..described import Described
from ..errors import InvalidValue


class DistributeTranspilerConfig(Described):
    """Settings of :class:`DistributeTranspiler`; plain attributes, checked when they are used.

    ``sync_mode`` and ``runtime_split_send_recv`` exclude each other: set the first to False, then the second to True.

    Attributes:
        slice_var_up (bool): whether large variables are split into blocks, one per server. Default True.
        split_method (type, optional): rule that assigns blocks to servers: ``RoundRobin`` or ``HashName``. Default
            None, RoundRobin.
        min_block_size (int): minimum number of elements in a block, at least 8192. Default 8192.
        enable_dc_asgd (bool): whether servers correct gradients for their delay; requires sync_mode=False. Default
            False.
        mode (str): "pserver", "nccl2" or "collective". Default "pserver".
        print_log (bool): whether to log which server keeps which variables. Default False.
        wait_port (bool): whether workers wait until the servers listen. Default True.
        half_async (bool): whether the threads of one worker wait for each other, but workers do not wait for other
            workers. Default False.
        completely_not_async (bool): like half_async, but servers also wait for all workers. Default False.
        geo_sgd_mode (bool): whether workers train locally and exchange differences. Default False.
        geo_sgd_need_push_nums (int): number of batches between exchanges. Default 100.
        nccl_comm_num (int): number of rings of collective mode. Default 1.
        use_hierarchical_allreduce (bool): whether to sum within machines first. Default False.
        hierarchical_allreduce_inter_nranks (int): number of workers per machine. Default 0.
        collective_mode (str, optional): "grad_allreduce", "local_sgd" or "single_process_multi_thread".
        table_durability (dict): durability levels of single tables with sparse gradients. All other tables have the
            level of ``FLAGS_ps_durability``. Level 0 restores the last snapshot, level 1 survives a crash of the
            server, and level 2 a crash of its machine. Default {}.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> config = fluid.DistributeTranspilerConfig()
        >>> config.sync_mode, config.min_block_size
        (True, 8192)
        >>> config.sync_mode = False
        >>> config.runtime_split_send_recv = True
    """

    slice_var_up = True
    split_method: Any = None
    min_block_size = 8192
    enable_dc_asgd = False
    mode = "pserver"
    print_log = False
    wait_port = True
    half_async = False
    completely_not_async = False
    geo_sgd_mode = False
    geo_sgd_need_push_nums = 100
    nccl_comm_num = 1
    use_hierarchical_allreduce = False
    hierarchical_allreduce_inter_nranks = 0
    collective_mode: str | None = None

    def __init__(self) -> None:
        self._sync_mode = True
        self._runtime_split_send_recv = False
        self.table_durability: dict[str, int] = {}

    @property
    def sync_mode(self) -> bool:
        """bool: a step's gradients of all workers are averaged and applied once.

        Raises:
            ValueError: it is set to None, or to True while runtime_split_send_recv is True.
        """
        return self._sync_mode

    @sync_mode.setter
    def sync_mode(self, value: Any) -> None:
        if value is None:
            raise InvalidValue("sync_mode must be True or False, got None")
        if value and self._runtime_split_send_recv:
            raise InvalidValue("sync_mode must be False while runtime_split_send_recv is True: set that to False first")
        self._sync_mode = value

    @property
    def runtime_split_send_recv(self) -> bool:
        """bool: whether the communicator, rather than the program, splits variables and sends them.

        Raises:
            ValueError: it is set to None, or to True while sync_mode is True.
        """
        return self._runtime_split_send_recv

    @runtime_split_send_recv.setter
    def runtime_split_send_recv(self, value: Any) -> None:
        if value is None:
            raise InvalidValue("runtime_split_send_recv must be True or False, got None")
        if value and self._sync_mode:
            raise InvalidValue("runtime_split_send_recv must be False while sync_mode is True: set that to False first")
        self._runtime_split_send_recv = value


class ServerRuntimeConfig(Described):
    """Numbers of threads of a server, from the environment variables ``FLAGS_rpc_send_thread_num``,
    ``FLAGS_rpc_get_thread_num`` and ``FLAGS_rpc_prefetch_thread_num`` (default: 12 each).

    Examples:
        >>> from anabranch.fluid.transpiler.distribute_transpiler import ServerRuntimeConfig
        >>> ServerRuntimeConfig()._rpc_send_thread_num
        12
    """

    def __init__(self) -> None:
        self._rpc_send_thread_num = _threads("send")
        self._rpc_get_thread_num = _threads("get")
        self._rpc_prefetch_thread_num = _threads("prefetch")


def _threads(kind: str) -> int:
    name = "FLAGS_rpc_%s_thread_num" % kind
    text = os.environ.get(name, "12")
    if not text.isdigit():
        raise InvalidValue("the environment variable %s must be a number, got %r" % (name, text))
    return int(text)


class DistributedMode:
    """Values of the attribute ``distributed_mode`` of a server: how workers and servers synchronize."""

    SYNC = int(_core.Mode.SYNC)
    ASYNC = int(_core.Mode.ASYNC)
    HALF_ASYNC = int(_core.Mode.HALF_ASYNC)
    GEO = int(_core.Mode.GEO)


arguments.explain(globals())
