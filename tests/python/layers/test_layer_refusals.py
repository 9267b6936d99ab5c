"""Layers refuse the arguments that layers of Fluid 1.8.5 refuse: dtypes and classes, by TypeError at the call.

The record holds the verdicts of 1.8.5 for each layer, argument and variant; tests/support/layer_refusals.py makes it.
Intended differences are listed in tests/data/layer_refusals.tsv, each with one of the REASONS.
"""
import inspect
import os
import re

import layer_refusals
import numpy as np
import pytest
from argument_variants import DTYPES
from repository import ROOT

import anabranch.fluid as fluid
from anabranch.fluid import accepted

RECORD = layer_refusals.recorded()
LISTED = layer_refusals.listed()
LAYERS = sorted({call[2] for call in RECORD})
#: Reason -> the first cell of the row of docs/differences.md that tells it to users. None: the program or an earlier
#: probe fails for another reason.
REASONS = {
    "dtype": "a dtype without a kernel, such as int32 for an activation",
    "class": "an argument of a wrong class, such as text for a Variable",
    "attribute": "an attribute of a wrong class",
    "tuple": "a tuple for a list of Variables, axes or extents",
    "number": "None for an argument that has a default, an int for a float",
    "out": "`out` of `full`, `logsumexp`",
    "arity": "a function of `py_func` that takes another number of arguments than there are inputs",
    "alone": "`append_backward` with one Variable as `checkpoints`",
    "works": "`expand` of a bool Variable, `data_norm` of float16, the name of a Variable for the Variable",
    "probe": None,
}


def test_every_layer_is_recorded():
    missing = {name for name in fluid.layers.__all__ if not any(layer.partition(".")[0] == name for layer in LAYERS)}
    assert missing == {"DecodeHelper", "Decoder", "RNNCell",    # bases, which are not called
                       "create_py_reader_by_data", "detection_map", "hash"}     # 1.8.5 makes them otherwise
    assert {row[0] for row in LISTED} <= set(LAYERS)


@pytest.mark.parametrize("layer", LAYERS)
def test_refusals(layer):
    found = layer_refusals.differences(fluid, [call for call in RECORD if call[2] == layer])
    assert set(found) == {row for row in LISTED if row[0] == layer}


def test_reasons_are_documented():
    with open(os.path.join(ROOT, "docs", "differences.md"), encoding="utf-8") as file:
        rows = file.read()
    assert set(LISTED.values()) == set(REASONS)
    assert not [row for row in REASONS.values() if row and "\n| %s |" % row not in rows]


def _functions():
    """Label -> function, of all functions and methods that the tables may name."""
    modules = (fluid, fluid.nets, fluid.layers, fluid.contrib.layers)
    public = [value for module in modules for value in vars(module).values()]
    public += [getattr(fluid.layers, name) for name in fluid.layers.__all__]
    public += [method for cls in public if inspect.isclass(cls) for method in vars(cls).values()]
    return {accepted.label(f): f for f in public if inspect.isfunction(f) and "fluid" in f.__module__}


def test_the_tables_name_arguments_of_layers():
    functions = _functions()
    for table in (accepted.DTYPES, accepted.CLASSES, {"": accepted.ONE_IN_A_LIST}):
        rows = [row for rows in table.values() for row in rows.split()]
        assert len(set(rows)) == len(rows)
        for layer, _, argument in (row.rpartition(".") for row in rows):
            assert argument in inspect.signature(functions[layer]).parameters, (layer, argument)


def test_docstrings_name_accepted_dtypes():
    functions = _functions()
    for names, rows in accepted.DTYPES.items():
        for layer, _, argument in (row.rpartition(".") for row in rows.split()):
            text = inspect.getdoc(functions[layer]) or ""
            about = re.search(r"\n\s+%s \(.*?(?=\n\s+\w+ \(|\n\n)" % argument, text, re.S)
            promised = {name for name in DTYPES if about and re.search(r"\b%s\b" % name, about.group())}
            assert promised <= set(names.split()), (layer, argument)


@pytest.mark.parametrize("wrong, text", [
    (lambda: fluid.layers.clip(fluid.data("x", [2], "int32"), 0.0, 1.0),
     "clip: the dtype of x must be one of float16, float32, float64, got int32"),
    (lambda: fluid.layers.sequence_concat(fluid.layers.data("x", [2], lod_level=1)),
     "sequence_concat: input must be list, got Variable"),
    (lambda: fluid.layers.clip(min=0.0, max=1.0, x=fluid.data("x", [2], "int64")),
     "clip: the dtype of x must be one of float16, float32, float64, got int64"),
])
def test_the_error_names_what_is_accepted_and_what_was_given(wrong, text):
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        with pytest.raises(TypeError) as raised:
            wrong()
        assert raised.value.message == text
        assert not fluid.default_main_program().global_block().ops


def test_numpy_numbers_are_numbers():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        assert fluid.layers.clip(fluid.data("x", [2]), np.float32(0), np.float64(1)).shape == (2,)


def test_extents_are_whole_numbers():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        assert fluid.data("x", [32.0, 2]).shape == (32, 2)
        for wrong in (lambda: fluid.data("y", [1.5, 2]), lambda: fluid.layers.create_parameter([1.5, 2], "float32"),
                      lambda: fluid.layers.conv2d(fluid.data("image", [None, 3, 8, 8]), 1.5, 3)):
            with pytest.raises(TypeError, match="must be whole numbers, got the shape"):
                wrong()


@pytest.mark.parametrize("make", [
    lambda x, i, one: fluid.layers.gather(one(x), one(i)), lambda x, i, one: fluid.layers.reduce_max(input=one(x)),
    lambda x, i, one: fluid.layers.scatter(one(x), one(i), one(x)), lambda x, i, one: fluid.one_hot(one(i), 4),
    lambda x, i, one: fluid.layers.slice(one(x), [0], [0], [1]),
])
def test_a_list_of_one_variable_is_the_variable(make):
    built = []
    for one in (lambda x: x, lambda x: [x], lambda x: (x,)):
        with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
            make(fluid.data("x", [3, 2]), fluid.data("i", [3], "int64"), one)
            built.append(str(fluid.default_main_program()))
    assert built[1:] == built[:1] * 2
