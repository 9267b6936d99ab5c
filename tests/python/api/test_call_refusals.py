"""Functions and classes that are not layers refuse the arguments that those of Fluid 1.8.5 refuse.

The record holds the verdicts of 1.8.5 for each argument and class; tests/support/call_refusals.py makes it. Intended
differences are listed in tests/data/call_refusals.tsv, each with one of the REASONS.
"""
import os

import call_refusals
import numpy as np
import pytest
from repository import ROOT

import anabranch.fluid as fluid

RECORD = call_refusals.recorded()
LISTED = call_refusals.listed()
#: Reason -> the first cell of the row of docs/differences.md that tells it to users. None: the value that is probed
#: has another defect.
REASONS = {
    "class": "an argument of a wrong class, such as text for a Variable",
    "attribute": "an attribute of a wrong class",
    "works": "arguments that are only converted with `bool()` or `str()`, or not used at all",
    "probe": None,
}


def test_every_case_is_recorded():
    assert set(RECORD) == set(call_refusals.CASES)
    assert {verdicts[""]["given"] for verdicts in RECORD.values()} == {"ok"}
    assert {row[0] for row in LISTED} <= set(RECORD)


@pytest.mark.long(0.2)
@pytest.mark.parametrize("name", list(RECORD))
def test_refusals(name):
    found = call_refusals.differences(fluid, name, RECORD[name])
    assert set(found) == {row for row in LISTED if row[0] == name}


def test_reasons_are_documented():
    with open(os.path.join(ROOT, "docs", "differences.md"), encoding="utf-8") as file:
        rows = file.read()
    assert set(LISTED.values()) == set(REASONS)
    assert not [row for row in REASONS.values() if row and "\n| %s |" % row not in rows]


@pytest.mark.parametrize("wrong, error, text", [
    (lambda: fluid.ParamAttr(trainable=1), TypeError, "ParamAttr: trainable must be True or False, got 1"),
    (lambda: fluid.ParamAttr(learning_rate="0.1"), TypeError, "ParamAttr: learning_rate must be a number, got '0.1'"),
    (lambda: fluid.io.save_params("folder", "folder"), (TypeError, AttributeError),
     "save_vars: executor must be an Executor, got str"),
    (lambda: fluid.create_lod_tensor(np.ones([3, 1]), [[1, 2]], "cpu"), TypeError,
     "create_lod_tensor: place must be a CPUPlace or CUDAPlace, got str"),
    (lambda: fluid.cpu_places("2"), TypeError, "cpu_places: device_count must be an int from 1 to"),
    (lambda: fluid.unique_name.generate(3), TypeError, "unique_name.generate: key must be a str, got 3"),
    (lambda: fluid.io.set_program_state(fluid.Program(), [1]), TypeError,
     "set_program_state: state_dict must be a dict, got list"),
])
def test_errors_name_the_argument(wrong, error, text):
    with pytest.raises(error) as raised:
        wrong()
    assert raised.value.message.startswith(text) and isinstance(raised.value, fluid.core.EnforceNotMet)


def test_numbers_of_numpy_and_functions_are_attributes():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        attr = fluid.ParamAttr(initializer=lambda var, block: None, learning_rate=np.float32(0.5),
                               trainable=np.bool_(True))
        assert fluid.layers.create_parameter([2, 3], "float32", attr=attr).optimize_attr["learning_rate"] == 0.5
