"""For tests that mean the threaded executor: a fixture that has it run, and a probe that sees it run."""
import threading

import pytest

import anabranch.fluid as fluid


@pytest.fixture(autouse=True)
def threads_without_asking():
    """Small programs are faster on one thread; here they run on all the threads they were given."""
    fluid.set_flags({"FLAGS_measure_threads": False})
    yield
    fluid.set_flags({"FLAGS_measure_threads": True})


class Meeting:
    """A probe of a run: the first node waits until another thread has come to a node, too; then ``met`` is true."""

    def __init__(self, patience_s=20):
        self.patience_s, self.met = patience_s, False
        self.two = threading.Barrier(2)

    def __call__(self, op, replica, node):
        if self.met or self.two.broken:
            return
        try:
            self.two.wait(self.patience_s)
            self.met = True
        except threading.BrokenBarrierError:
            pass
