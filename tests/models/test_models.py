"""Nets of public code, at a tenth of their size: three training steps with the results of Fluid 1.8.5."""
import os

import harness
import measures
import pytest
import record_nets

import anabranch.fluid as fluid

NETS = record_nets.load_nets()


@pytest.fixture(autouse=True)
def flags():
    before = fluid.get_flags("FLAGS_fluid_exact")
    yield
    fluid.set_flags(before)


def cases():
    for name, net in sorted(NETS.items()):
        yield pytest.param(name, marks=pytest.mark.xfail(strict=True, reason=net.waits) if net.waits else ())


@pytest.mark.parametrize("name", list(cases()))
def test_three_steps(name):
    if NETS[name].exact:
        fluid.set_flags({"FLAGS_fluid_exact": "1.8.5"})
    bad = measures.complaints(NETS[name], record_nets.read(name), harness.Trained(NETS[name], fluid))
    assert not bad, "\n".join(bad[:20])


def test_every_net_has_a_record_and_every_record_a_net():
    folder = os.path.join(record_nets.HERE, "records")
    assert sorted(f[:-len(".json")] for f in os.listdir(folder)) == sorted(NETS)
