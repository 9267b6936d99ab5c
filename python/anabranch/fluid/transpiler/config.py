"""How programs are cut for several processes: the settings of DistributeTranspiler."""
from __future__ import annotations

import os
from typing import Any

from ..described import Described
from ..errors import InvalidValue


class DistributeTranspilerConfig(Described):
    """Settings of :class:`DistributeTranspiler`; plain attributes, checked when they are used.

    ``sync_mode`` and ``runtime_split_send_recv`` cannot both be True: switch the first off, then the second on.

    Attributes:
        slice_var_up (bool): large variables are cut into blocks, one a server. Default True.
        split_method (type, optional): how blocks choose their server: ``RoundRobin`` or ``HashName``. Default None,
            RoundRobin.
        min_block_size (int): elements that a block has at least; 8192 or more. Default 8192.
        enable_dc_asgd (bool): servers correct gradients for their age; without sync_mode. Default False.
        mode (str): "pserver", "nccl2" or "collective". Default "pserver".
        print_log (bool): says what goes where. Default False.
        wait_port (bool): trainers wait until the servers listen. Default True.
        half_async (bool): threads of one trainer wait for each other, trainers do not. Default False.
        completely_not_async (bool): as half_async, and servers wait for all trainers. Default False.
        geo_sgd_mode (bool): trainers train alone and exchange differences. Default False.
        geo_sgd_need_push_nums (int): batches between exchanges. Default 100.
        nccl_comm_num (int): rings of collective mode. Default 1.
        use_hierarchical_allreduce (bool): sums within machines first. Default False.
        hierarchical_allreduce_inter_nranks (int): trainers of one machine. Default 0.
        collective_mode (str, optional): "grad_allreduce", "local_sgd" or "single_process_multi_thread".
        table_durability (dict): tables with sparse gradients that survive less or more than ``FLAGS_ps_durability``
            says -> 0, the last snapshot; 1, the death of their server; 2, that of its machine. Default {}.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> config = fluid.DistributeTranspilerConfig()
        >>> config.sync_mode, config.min_block_size
        (True, 8192)
        >>> config.sync_mode = False
        >>> config.runtime_split_send_recv = True
    """

    def __init__(self) -> None:
        self.slice_var_up = True
        self.split_method: Any = None
        self.min_block_size = 8192
        self.enable_dc_asgd = False
        self.mode = "pserver"
        self.print_log = False
        self.wait_port = True
        self._sync_mode = True
        self._runtime_split_send_recv = False
        self.half_async = False
        self.completely_not_async = False
        self.geo_sgd_mode = False
        self.geo_sgd_need_push_nums = 100
        self.nccl_comm_num = 1
        self.use_hierarchical_allreduce = False
        self.hierarchical_allreduce_inter_nranks = 0
        self.collective_mode: str | None = None
        self.table_durability: dict[str, int] = {}

    @property
    def sync_mode(self) -> bool:
        """bool: a step's gradients of all trainers are averaged and applied once.

        Raises:
            ValueError: set to None, or to True beside runtime_split_send_recv.
        """
        return self._sync_mode

    @sync_mode.setter
    def sync_mode(self, value: Any) -> None:
        if value is None:
            raise InvalidValue("sync_mode must be True or False, got None")
        if value and self._runtime_split_send_recv:
            raise InvalidValue("sync_mode cannot be on beside runtime_split_send_recv: switch that off first")
        self._sync_mode = value

    @property
    def runtime_split_send_recv(self) -> bool:
        """bool: the communicator cuts variables and sends them, not the program.

        Raises:
            ValueError: set to None, or to True beside sync_mode.
        """
        return self._runtime_split_send_recv

    @runtime_split_send_recv.setter
    def runtime_split_send_recv(self, value: Any) -> None:
        if value is None:
            raise InvalidValue("runtime_split_send_recv must be True or False, got None")
        if value and self._sync_mode:
            raise InvalidValue("runtime_split_send_recv cannot be on beside sync_mode: switch that off first")
        self._runtime_split_send_recv = value


class ServerRuntimeConfig(Described):
    """Threads of a server, from the environment: FLAGS_rpc_send_thread_num, _get_ and _prefetch_, 12 each.

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
    """How workers and servers go together: the attribute ``distributed_mode`` of a server."""

    SYNC = 0
    ASYNC = 1
    HALF_ASYNC = 2
    GEO = 3
