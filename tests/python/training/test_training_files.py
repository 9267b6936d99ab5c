"""Training programs written by 1.8.5 run here and give its numbers; ours list the slots that it asks for."""
import os

import numpy as np
import pytest
import training_files
from repository import DATA

import anabranch.fluid as fluid

FOLDER = os.path.join(DATA, "training_files")
by_net = pytest.mark.parametrize("net", training_files.NETS, ids=lambda net: net.__name__)


@pytest.fixture(autouse=True)
def exact():
    before = fluid.get_flags("FLAGS_fluid_exact")
    fluid.set_flags({"FLAGS_fluid_exact": "1.8.5"})
    yield
    fluid.set_flags(before)


def recorded(net):
    with np.load(os.path.join(FOLDER, net.__name__ + ".npz")) as data:
        return {name: data[name] for name in data.files}


def check(got, expected):
    assert set(got) == set(expected) - {"program", "loss"}
    for name in got:
        np.testing.assert_allclose(got[name], expected[name], rtol=2e-5, atol=2e-6, err_msg=name)


@by_net
def test_a_file_of_the_original_trains(net):
    expected = recorded(net)
    program = fluid.Program.parse_from_string(expected["program"].tobytes())
    check(training_files.run(fluid, program, str(expected["loss"])), expected)


@by_net
def test_our_file_trains_and_lists_what_the_original_reads(net):
    expected = recorded(net)
    program, loss = training_files.build(fluid, net)
    program = fluid.Program.parse_from_string(program.desc.serialize_to_string())
    check(training_files.run(fluid, program, loss), expected)
    theirs = fluid.Program.parse_from_string(expected["program"].tobytes())
    for ours, their in zip(program.global_block().ops, theirs.global_block().ops):
        assert ours.type == their.type
        given = {slot for slot in ours.input_names if ours.input(slot)}
        assert {slot for slot in their.input_names if their.input(slot)} <= given, ours.type
        if ours.type != "hierarchical_sigmoid" or ours.attr("is_sparse"):
            given = {slot for slot in ours.output_names if ours.output(slot)}
            assert {slot for slot in their.output_names if their.output(slot)} <= given, ours.type
