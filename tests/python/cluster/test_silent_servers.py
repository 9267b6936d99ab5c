"""A worker whose server does not answer says so, and ends with an error that names it by the deadline."""
import os
import re
import socket
import subprocess
import sys
import time

import pytest

import anabranch.fluid as fluid
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (
    TrainerRuntimeConfig,
)
from anabranch.fluid.transpiler.details.checkport import wait_server_ready

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(fluid.__file__)))
WORKER = """
import sys
import anabranch.fluid as fluid
from anabranch.fluid.incubate.fleet.base import role_maker
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import StrategyFactory, fleet

fleet.init(role_maker.UserDefinedRoleMaker(0, role_maker.Role.WORKER, 1, [sys.argv[1]]))
loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 1))
strategy = StrategyFactory.create_sync_strategy()
strategy.set_program_config({"wait_port": sys.argv[2] == "ports"})
strategy.set_trainer_runtime_config({"rpc_deadline": "2000"})
fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), strategy).minimize(loss)
fleet.init_worker()
fluid.Executor().run(fleet.startup_program)
"""


def run(endpoint, wait):
    begin = time.monotonic()
    done = subprocess.run([sys.executable, "-c", WORKER, endpoint, wait], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True, timeout=60,
                          env=dict(os.environ, PYTHONPATH=PACKAGE))
    return done, time.monotonic() - begin


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return "127.0.0.1:%d" % s.getsockname()[1]


@pytest.fixture
def silent():
    """A process that takes connections and never answers."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen(8)
        yield "127.0.0.1:%d" % s.getsockname()[1]


def check(endpoint, done, seconds, reason):
    said = re.search(r"anabranch: the server at (\S+) has not answered a request \((\w+)\) for ([\d.]+) s(.*); the "
                     r"worker waits for 2\.0 s", done.stderr)
    assert said, done.stderr
    assert said[1] == endpoint and float(said[3]) < 1.5 and bool(said[4]) == reason
    error = done.stderr.rstrip().splitlines()
    assert done.returncode == 1 and seconds < 20
    assert any("Unavailable" in line or endpoint in line for line in error[-6:]), done.stderr


def test_nothing_listens():
    endpoint = free_port()
    check(endpoint, *run(endpoint, "none"), reason=True)


def test_a_process_listens_and_never_answers(silent):
    check(silent, *run(silent, "none"), reason=False)


def test_waiting_for_ports_ends_by_the_deadline_of_requests():
    endpoint = free_port()
    done, seconds = run(endpoint, "ports")
    assert done.returncode == 1 and seconds < 20
    assert "no server listens at %s after 2 s; FLAGS_rpc_deadline" % endpoint in done.stderr


def test_the_environment_decides_how_long_ports_are_waited_for(monkeypatch):
    monkeypatch.setenv("FLAGS_wait_port_s", "0.1")
    with pytest.raises(RuntimeError, match="no server listens at .* after 0.1 s"):
        wait_server_ready([free_port()])


def test_the_deadline_of_a_configuration_is_the_flag():
    before = fluid.get_flags("FLAGS_rpc_deadline")
    try:
        fluid.set_flags({"FLAGS_rpc_deadline": 77})
        TrainerRuntimeConfig().set_deadline()
        assert fluid.get_flags("FLAGS_rpc_deadline")["FLAGS_rpc_deadline"] == 77  # a default changes nothing
        config = TrainerRuntimeConfig()
        config.runtime_configs["rpc_deadline"] = 5000
        config.set_deadline()
        assert fluid.get_flags("FLAGS_rpc_deadline")["FLAGS_rpc_deadline"] == 5000
        for wrong in ("soon", 0, -1):
            config.runtime_configs["rpc_deadline"] = wrong
            with pytest.raises(ValueError, match="rpc_deadline must be a positive number of milliseconds, got"):
                config.set_deadline()
    finally:
        fluid.set_flags(before)
