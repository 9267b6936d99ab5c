"""The four strategies of training with parameter servers, and their settings."""
from __future__ import annotations

import os
import warnings
from typing import Any

from .....compiler import BuildStrategy, ExecutionStrategy
from .....errors import InvalidType, InvalidValue
from .....framework.flags import set_flags
from .....transpiler.config import DistributedMode, DistributeTranspilerConfig, ServerRuntimeConfig
from .....transpiler.details.checkport import RPC_DEADLINE_MS

__all__ = ["TrainerRuntimeConfig", "DistributedStrategy", "SyncStrategy", "AsyncStrategy", "HalfAsyncStrategy",
           "GeoStrategy", "StrategyFactory"]

#: Keys of ``debug_opt``, which selects the values that ``train_from_dataset`` dumps.
DEBUG_KEYS = frozenset(["dump_slot", "dump_converter", "dump_fields", "dump_file_num", "dump_fields_path",
                        "dump_param"])

_WAITING = ("communicator_max_merge_var_num", "communicator_send_wait_times", "communicator_thread_pool_size",
            "communicator_send_queue_size")
_GEO = ("communicator_thread_pool_size", "communicator_send_wait_times")


def _threads() -> str:
    text = os.environ.get("CPU_NUM", "1")
    if not text.isdigit() or int(text) < 1:
        raise InvalidValue("the environment variable CPU_NUM must be an integer of at least 1, got %r" % text)
    return text


class TrainerRuntimeConfig:
    """Settings of a worker's communicator, from the environment variables ``FLAGS_<key>`` if they are set.

    Keys of ``runtime_configs``, values are texts: communicator_max_merge_var_num, _send_queue_size and
    _min_send_grad_num_before_recv (CPU_NUM), _independent_recv_thread (1), _thread_pool_size (5), _send_wait_times (5),
    _is_sgd_optimizer (1), rpc_deadline (180000 ms), rpc_retry_times (3).

    Raises:
        ValueError: CPU_NUM is not a number.

    Examples:
        >>> TrainerRuntimeConfig().get_communicator_flags()["communicator_thread_pool_size"]
        '5'
    """

    def __init__(self) -> None:
        self.mode: int | None = None
        threads = _threads()
        defaults = {"communicator_max_merge_var_num": threads, "communicator_send_queue_size": threads,
                    "communicator_independent_recv_thread": "1",
                    "communicator_min_send_grad_num_before_recv": threads, "communicator_thread_pool_size": "5",
                    "communicator_send_wait_times": "5", "communicator_is_sgd_optimizer": "1",
                    "rpc_deadline": str(RPC_DEADLINE_MS), "rpc_retry_times": "3"}
        self.runtime_configs = {k: os.environ.get("FLAGS_" + k, v) for k, v in defaults.items()}

    def set_deadline(self) -> None:
        """Sets the flag FLAGS_rpc_deadline if rpc_deadline is not its default, which leaves what the program has set.

        Raises:
            ValueError: rpc_deadline is not a number of milliseconds.
        """
        text = str(self.runtime_configs["rpc_deadline"])
        if not text.isdigit() or int(text) < 1:
            raise InvalidValue("rpc_deadline must be a positive number of milliseconds, got %r" % text)
        if int(text) != RPC_DEADLINE_MS:
            set_flags({"FLAGS_rpc_deadline": int(text)})

    def get_communicator_flags(self) -> dict[str, str]:
        """dict: the settings that the mode uses. In sync and half-async mode merges and queues are those of CPU_NUM.

        Warns when a setting is replaced.
        """
        if self.mode == DistributedMode.GEO:
            return {key: str(self.runtime_configs[key]) for key in _GEO}
        if self.mode not in (DistributedMode.SYNC, DistributedMode.HALF_ASYNC):
            return {key: str(value) for key, value in self.runtime_configs.items()}
        threads = _threads()
        for key in ("communicator_max_merge_var_num", "communicator_send_queue_size"):
            if str(self.runtime_configs[key]) != threads:
                warnings.warn("%s must be CPU_NUM if the threads of a worker wait for each other, got %s; it is set to "
                              "%s" % (key, self.runtime_configs[key], threads), stacklevel=2)
                self.runtime_configs[key] = threads
        return {key: str(self.runtime_configs[key]) for key in _WAITING}

    def display(self, configs: Any) -> str:
        """str: settings as a table."""
        width = max([len(str(key)) for key in configs] + [20])
        rows = ["%-*s  %s" % (width, key, value) for key, value in configs.items()]
        return "\n".join(["%-*s  value" % (width, "TrainerRuntimeConfig"), *rows])

    def __repr__(self) -> str:
        return self.display(self.runtime_configs)


def _attributes(config: Any) -> frozenset[str]:
    return frozenset(k for k in dir(config) if not k.startswith("__") and not callable(getattr(config, k)))


class DistributedStrategy:
    """Base class of the strategies: settings of programs, workers, servers and executors.

    ``get_<part>()`` returns a part, and ``set_<part>()`` sets it to an object of its class, or changes it by a dict.
    Parts: program_config, trainer_runtime_config, server_runtime_config, execute_strategy, build_strategy, debug_opt.

    Examples:
        >>> strategy = StrategyFactory.create_async_strategy()
        >>> strategy.set_program_config({"min_block_size": 81920})
        >>> strategy.get_program_config().min_block_size
        81920
    """

    def __init__(self) -> None:
        threads = int(_threads())
        self._program_config = DistributeTranspilerConfig()
        self._trainer_runtime_config = TrainerRuntimeConfig()
        self._server_runtime_config = ServerRuntimeConfig()
        self._execute_strategy = ExecutionStrategy()
        self._build_strategy = BuildStrategy()
        self._execute_strategy.num_threads = threads
        if threads > 1:
            self._build_strategy.reduce_strategy = BuildStrategy.ReduceStrategy.Reduce
        self.debug_opt: dict[str, Any] = {}

    def _set(self, part: str, kind: type, config: Any) -> None:
        """Sets a part to an object, or changes it by a dict. An unknown key changes nothing."""
        if isinstance(config, kind):
            setattr(self, "_" + part, config)
        elif isinstance(config, dict):
            current = getattr(self, "_" + part)
            known = _attributes(current)
            for key in config:
                if key not in known:
                    raise InvalidValue("set_%s: %s has no %s" % (part, kind.__name__, key))
            for key, value in config.items():
                setattr(current, key, value)
        else:
            raise InvalidType("set_%s: config must be a dict or a %s, got %s"
                              % (part, kind.__name__, type(config).__name__))
        getattr(self, "check_" + part)()

    # ---- programs

    def get_program_config(self) -> DistributeTranspilerConfig:
        """DistributeTranspilerConfig: settings of splitting programs."""
        return self._program_config

    def set_program_config(self, config: Any) -> None:
        """Sets a DistributeTranspilerConfig, or changes it by a dict. ValueError for an unknown key."""
        self._set("program_config", DistributeTranspilerConfig, config)

    def check_program_config(self) -> None:
        """Applies the settings that the strategy requires."""

    # ---- workers

    def get_trainer_runtime_config(self) -> TrainerRuntimeConfig:
        """TrainerRuntimeConfig: settings of sending and receiving."""
        return self._trainer_runtime_config

    def set_trainer_runtime_config(self, config: Any) -> None:
        """Sets a TrainerRuntimeConfig, or changes its ``runtime_configs`` by a dict. ValueError for an unknown key."""
        if isinstance(config, dict):
            known = self._trainer_runtime_config.runtime_configs
            for key in config:
                if key not in known:
                    raise InvalidValue("set_trainer_runtime_config: TrainerRuntimeConfig has no %s" % key)
            known.update(config)
            self.check_trainer_runtime_config()
        else:
            self._set("trainer_runtime_config", TrainerRuntimeConfig, config)

    def check_trainer_runtime_config(self) -> None:
        """Applies the strategy's mode."""

    # ---- servers

    def get_server_runtime_config(self) -> ServerRuntimeConfig:
        """ServerRuntimeConfig: threads of servers."""
        return self._server_runtime_config

    def set_server_runtime_config(self, config: Any) -> None:
        """Sets a ServerRuntimeConfig, or changes it by a dict. ValueError for an unknown key."""
        self._set("server_runtime_config", ServerRuntimeConfig, config)

    def check_server_runtime_config(self) -> None:
        """Does nothing: strategies do not differ in it."""

    # ---- executors

    def get_execute_strategy(self) -> ExecutionStrategy:
        """ExecutionStrategy: threads of a worker."""
        return self._execute_strategy

    def set_execute_strategy(self, config: Any) -> None:
        """Sets an ExecutionStrategy, or changes it by a dict. ValueError for an unknown key."""
        self._set("execute_strategy", ExecutionStrategy, config)

    def check_execute_strategy(self) -> None:
        """Applies the settings that the strategy requires."""

    def get_build_strategy(self) -> BuildStrategy:
        """BuildStrategy: settings of building the graph of a worker's program."""
        return self._build_strategy

    def set_build_strategy(self, config: Any) -> None:
        """Sets a BuildStrategy, or changes it by a dict. ValueError for an unknown key."""
        self._set("build_strategy", BuildStrategy, config)

    def check_build_strategy(self) -> None:
        """Applies the settings that the strategy requires."""

    # ---- dumps

    def get_debug_opt(self) -> dict[str, Any]:
        """dict: the values that ``train_from_dataset`` dumps."""
        return self.debug_opt

    def set_debug_opt(self, opt_info: Any) -> None:
        """Sets a dict with keys dump_slot, dump_converter, dump_fields, dump_file_num, dump_fields_path, dump_param.

        Raises:
            TypeError: ``opt_info`` is not a dict.
            ValueError: a key is unknown.
        """
        if not isinstance(opt_info, dict):
            raise InvalidType("set_debug_opt: opt_info must be a dict, got %s" % type(opt_info).__name__)
        unknown = sorted(set(opt_info) - DEBUG_KEYS)
        if unknown:
            raise InvalidValue("set_debug_opt: unknown key %s, keys must be among %s"
                               % (", ".join(unknown), ", ".join(sorted(DEBUG_KEYS))))
        self.debug_opt = dict(opt_info)


class _ServerStrategy(DistributedStrategy):
    """Base class with the settings of a strategy as tables."""

    #: Fields of DistributeTranspilerConfig, in the order in which they can be set.
    _program: dict[str, Any] = {}
    _mode = DistributedMode.ASYNC
    _barrier = False

    def __init__(self) -> None:
        super().__init__()
        for check in ("program_config", "trainer_runtime_config", "server_runtime_config", "build_strategy",
                      "execute_strategy"):
            getattr(self, "check_" + check)()

    def check_program_config(self) -> None:
        """Applies the settings that the strategy requires."""
        for name, value in {"sync_mode": False, "runtime_split_send_recv": True, **self._program}.items():
            setattr(self._program_config, name, value)

    def check_trainer_runtime_config(self) -> None:
        """Applies the strategy's mode."""
        self._trainer_runtime_config.mode = self._mode

    def check_build_strategy(self) -> None:
        """Makes replicas of a worker run independently."""
        self._build_strategy.async_mode = True

    def check_execute_strategy(self) -> None:
        """Sets whether threads of a worker wait for each other."""
        self._execute_strategy.use_thread_barrier = self._barrier


class SyncStrategy(_ServerStrategy):
    """Averages the gradients of all workers at each step and applies them once."""

    _program = {"half_async": True, "completely_not_async": True}
    _mode = DistributedMode.SYNC
    _barrier = True


class HalfAsyncStrategy(_ServerStrategy):
    """Threads of one worker wait for each other, but workers do not."""

    _program = {"half_async": True}
    _mode = DistributedMode.HALF_ASYNC
    _barrier = True


class AsyncStrategy(_ServerStrategy):
    """No thread or worker waits for another."""


class GeoStrategy(_ServerStrategy):
    """Workers train locally and exchange their changes every ``update_frequency`` batches.

    Args:
        update_frequency (int): number of batches between exchanges. Default 100.

    Raises:
        TypeError: ``update_frequency`` is not an int.
        ValueError: it is below 1.
    """

    _program = {"geo_sgd_mode": True}
    _mode = DistributedMode.GEO

    def __init__(self, update_frequency: int = 100) -> None:
        if not isinstance(update_frequency, int) or isinstance(update_frequency, bool):
            raise InvalidType("GeoStrategy: update_frequency must be an int, got %s" % type(update_frequency).__name__)
        if update_frequency < 1:
            raise InvalidValue("GeoStrategy: update_frequency must be at least 1, got %d" % update_frequency)
        super().__init__()
        self._program_config.geo_sgd_need_push_nums = update_frequency


class StrategyFactory:
    """Creates the four strategies.

    Examples:
        >>> StrategyFactory.create_geo_strategy(400).get_program_config().geo_sgd_need_push_nums
        400
        >>> StrategyFactory.create_sync_strategy().get_trainer_runtime_config().mode
        0
    """

    @staticmethod
    def create_sync_strategy() -> SyncStrategy:
        """SyncStrategy: all workers wait for each other at each step."""
        return SyncStrategy()

    @staticmethod
    def create_half_async_strategy() -> HalfAsyncStrategy:
        """HalfAsyncStrategy: threads of one worker wait for each other."""
        return HalfAsyncStrategy()

    @staticmethod
    def create_async_strategy() -> AsyncStrategy:
        """AsyncStrategy: no thread or worker waits for another."""
        return AsyncStrategy()

    @staticmethod
    def create_geo_strategy(update_frequency: int = 100) -> GeoStrategy:
        """GeoStrategy: differences are exchanged every ``update_frequency`` batches."""
        return GeoStrategy(update_frequency)
