"""DistributeTranspiler: splits one training program into the programs of workers and parameter servers."""
from __future__ import annotations

import logging
from typing import Any

from ... import _launched
from .. import arguments
from ..described import Described
from ..errors import InvalidType, InvalidValue, NotAllowed
from ..framework import Program, default_main_program, default_startup_program
from . import op_kinds
from .checks import check_whole_number
from .collective import transpile_collective, transpile_rings
from .config import DistributedMode, DistributeTranspilerConfig, ServerRuntimeConfig
from .counters import give_counters
from .details.checkport import wait_server_ready
from .followers import put_back, take_out
from .job import describe
from .modes import Mode
from .placement import Placement, check_config
from .private_names import PrivateNames
from .rates import carry_rates
from .remote_variables import RemoteModel
from .server_program import ServerProgram
from .server_startup import server_startup
from .shards import VarBlock, same_or_split_var, slice_variable
from .trainer_program import drop_states, drop_updates, make_startup, make_trainer, name_gradients

__all__ = ["DistributeTranspiler", "DistributeTranspilerConfig"]

#: Other names that Fluid's module exports.
REACHABLE = (DistributedMode, ServerRuntimeConfig, VarBlock, slice_variable, same_or_split_var)

_log = logging.getLogger(__name__)


class DistributeTranspiler(PrivateNames, Described):
    """Splits a training program into those of workers and of parameter servers, or adds sums over all workers.

    With mode "pserver", workers send gradients to servers, which keep shards of the parameters, update them, and send
    them back before the next step. With "nccl2" and "collective", every worker keeps all parameters, and gradients are
    summed over the workers.

    Args:
        config (DistributeTranspilerConfig, optional): settings. Default: a config with default values.

    Raises:
        TypeError: ``config`` is something else.
        AssertionError: the block size is below 8192, or ``split_method`` is unknown.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> y = fluid.layers.fc(fluid.data("x", [None, 8]), 1)
        >>> fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(y)) is None
        False
        >>> t = fluid.DistributeTranspiler()
        >>> t.transpile(trainer_id=0, pservers="127.0.0.1:6174,127.0.0.1:6175", trainers=2)
        >>> server, startup = t.get_pserver_programs("127.0.0.1:6175")
        >>> [op.type for op in server.global_block().ops]
        ['listen_and_serv']
        >>> [op.type for op in t.get_trainer_program(wait_port=False).global_block().ops][-3:]
        ['recv', 'recv', 'fetch_barrier']
    """

    def __init__(self, config: DistributeTranspilerConfig | None = None) -> None:
        self.config = DistributeTranspilerConfig() if config is None else config
        check_config(self.config)
        self._placement: Any = None

    def transpile(self, trainer_id: int, program: Program | None = None, pservers: Any = "127.0.0.1:6174",
                  trainers: Any = 1, sync_mode: bool = True, startup_program: Program | None = None,
                  current_endpoint: str = "127.0.0.1:6174") -> None:
        """Rewrites the programs.

        Args:
            trainer_id (int): index of this worker, from 0; ignored on a server.
            program (Program, optional): the training program, after ``minimize``; the default main program.
            pservers (str): addresses of the servers, "host:port,host:port". Default "127.0.0.1:6174".
            trainers (int|str): number of workers; with "nccl2" and "collective", their addresses. Default 1.
            sync_mode (bool): whether workers wait for each other at each step. Default True.
            startup_program (Program, optional): the default startup program.
            current_endpoint (str): this worker's address, with "nccl2" and "collective".

        Returns:
            None.

        Raises:
            TypeError: an argument has the wrong type.
            ValueError: a number or address is invalid, or the program updates no parameter.
            NotImplementedError: servers cannot compute the learning rate, the clip or another part of the update; the
                error names it.
        """
        program = default_main_program() if program is None else program
        startup = default_startup_program() if startup_program is None else startup_program
        for what, given in (("program", program), ("startup_program", startup)):
            if not isinstance(given, Program):
                raise InvalidType("transpile: %s must be a Program, got %s" % (what, type(given).__name__))
        _launched.asked()
        if self.config.mode in ("nccl2", "collective"):
            self._transpile_rings(trainer_id, program, trainers, startup, current_endpoint)
            return
        check_whole_number("transpile: trainer_id", trainer_id, 0)
        check_whole_number("transpile: trainers", trainers, 1)
        mode = Mode.of(self.config, trainer_id, trainers, bool(sync_mode))
        self._rewrite(program, startup, pservers.split(",") if isinstance(pservers, str) else list(pservers), mode)

    def _transpile_rings(self, trainer_id: int, program: Any, trainers: Any, startup: Any, current: str) -> None:
        rewrite = transpile_rings if self.config.mode == "nccl2" else transpile_collective
        rewrite(self.config, trainer_id, program, trainers, startup, current)
        self.origin_program, self.startup_program = program, startup

    def _rewrite(self, program: Any, startup: Any, endpoints: list[str], mode: Mode) -> None:
        self.origin_program, self.startup_program = program, startup
        self.trainer_id, self.trainer_num, self.sync_mode = mode.trainer_id, mode.trainers, mode.sync
        self.pserver_endpoints = endpoints
        if not mode.merges:
            op_kinds.clip_at_trainers(program)
        placement = Placement(program, endpoints, self.config, mode.merges)
        self._followers = take_out(program, placement)
        carry_rates(program, mode)
        give_counters(program, startup, mode)
        name_gradients(program, placement, mode)
        self._mode, self._placement = mode, placement
        self._source, self._source_startup = program.clone(), startup.clone()
        self._built: dict[str, Any] = {}
        self._trainer_done = False
        make_trainer(program, placement, mode)
        make_startup(startup, program, placement, mode)
        self._note(program, mode)
        if self.config.print_log:
            for endpoint in endpoints:
                _log.info("%s keeps %s", endpoint, ", ".join(shard.name for shard in placement.on(endpoint)))

    def _note(self, program: Any, mode: Mode) -> None:
        """Records the facts about the program that saving and loading need."""
        program._is_distributed = True
        program._is_chief = mode.trainer_id == 0
        program._takes_steps_together = mode.sync or mode.waits
        program._trainer_id = mode.trainer_id
        program._job = describe(self._source, self._placement, mode)
        program._endpoints = list(self.pserver_endpoints)
        program._parameters_on_pservers = RemoteModel(self)

    def _check_transpiled(self, what: str) -> None:
        if self._placement is None:
            raise NotAllowed("DistributeTranspiler.%s: call transpile, with mode \"pserver\", first" % what)

    def get_trainer_program(self, wait_port: bool = True) -> Program:
        """Returns the program of this worker. It contains no updates, because the servers update the parameters.

        Args:
            wait_port (bool): whether to wait until all servers listen. Default True.

        Returns:
            Program: the one that was passed to ``transpile``, modified in place.

        Raises:
            RuntimeError: ``transpile`` was not called, or a server does not listen in time.
        """
        self._check_transpiled("get_trainer_program")
        if not self._trainer_done:
            states = drop_updates(self.origin_program, self._placement.gradients)
            drop_states(self.startup_program, states)
            put_back(self.origin_program, self._followers)
            self._trainer_done = True
        if wait_port and self.config.wait_port:
            wait_server_ready(self.pserver_endpoints)
        return self.origin_program

    def get_pserver_program(self, endpoint: str) -> Program:
        """The program of a server; ``get_pserver_programs`` also returns its startup program.

        Args:
            endpoint (str): address of the server, as passed to ``transpile``.

        Returns:
            Program: ``listen_and_serv`` and the blocks that it runs.

        Raises:
            RuntimeError: ``transpile`` was not called.
            ValueError: there is no such server.
        """
        self._check_transpiled("get_pserver_program")
        if endpoint not in self.pserver_endpoints:
            raise InvalidValue("get_pserver_program: the server must be one of %s, got %r"
                               % (", ".join(self.pserver_endpoints), endpoint))
        if endpoint not in self._built:
            built = ServerProgram(self._source, self._placement, self._mode, endpoint).build()
            built._is_distributed, built._ps_endpoint = True, endpoint
            built._endpoints, built._parameters_on_pservers = list(self.pserver_endpoints), RemoteModel(self)
            self._built[endpoint] = built
        return self._built[endpoint]

    def get_pserver_programs(self, endpoint: str) -> tuple[Program, Program]:
        """The program of a server and its startup program.

        Args:
            endpoint (str): address of the server, as passed to ``transpile``.

        Returns:
            tuple: (Program, Program).

        Raises:
            RuntimeError: ``transpile`` was not called.
            ValueError: there is no such server.
        """
        program = self.get_pserver_program(endpoint)
        return program, self.get_startup_program(endpoint, program)

    def get_startup_program(self, endpoint: str, pserver_program: Program | None = None,
                            startup_program: Program | None = None) -> Program:
        """The startup program of a server, which initializes its shards, moments and learning rates.

        Args:
            endpoint (str): address of the server.
            pserver_program (Program, optional): ignored.
            startup_program (Program, optional): ignored.

        Returns:
            Program: run it before the server's program.

        Raises:
            RuntimeError: ``transpile`` was not called.
            ValueError: there is no such server.
        """
        server = self.get_pserver_program(endpoint)
        made = server_startup(self._source_startup, server, self._placement, self._mode, endpoint)
        made._is_start_up_program_, made._ps_endpoint = True, endpoint
        made._endpoints, made._parameters_on_pservers = list(self.pserver_endpoints), RemoteModel(self)
        return made


arguments.explain(globals())
