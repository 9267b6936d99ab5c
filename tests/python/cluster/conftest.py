"""Fixtures of fleet."""
import os

import pytest

from anabranch.fluid.communicator import Communicator


@pytest.fixture
def no_communicator_left():
    yield
    Communicator._running = None


@pytest.fixture
def bare_environment(monkeypatch):
    """No variables of a launcher or a scheduler."""
    for name in list(os.environ):
        if name.startswith(("PADDLE_", "OMPI_", "PMI_", "SLURM_")) or name in ("TRAINING_ROLE", "POD_IP", "CPU_NUM"):
            monkeypatch.delenv(name)
