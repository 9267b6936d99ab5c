"""The page of what Fluid has and is here: its counts, and that what it says of each operator is so."""
import os
import re
import sys

import pytest
from repository import ROOT

import anabranch.fluid as fluid
from anabranch import _core

sys.path.insert(0, os.path.join(ROOT, "tools"))

import generate_coverage as coverage  # noqa: E402

OPS = coverage.listed()["ops"]


def test_every_operator_of_fluid_works_or_is_refused_for_a_reason():
    assert len(OPS) == 437 and set(coverage.REFUSED_OPS) <= set(OPS)
    states = {op: coverage.op_status(op) for op in OPS}
    assert [op for op, (state, _) in states.items() if state == coverage.ABSENT] == []
    assert all(reason for state, reason in states.values() if state == coverage.REFUSED)
    assert sum(state == coverage.WORKS for state, _ in states.values()) >= 410


@pytest.mark.parametrize("op", sorted(coverage.REFUSED_OPS))
def test_what_is_refused_says_so(op):
    program = fluid.Program()
    block = program.global_block()
    with pytest.raises(NotImplementedError, match=op), fluid.program_guard(program, fluid.Program()):
        if op not in _core.op_types():
            block.append_op(type=op, inputs={}, outputs={}, attrs={})
        info = _core.op_info(op)
        x = fluid.layers.fill_constant([2, 2], "float32", 1.0)
        values = {"STRING": "x", "INT": 1, "LONGS": [1], "STRINGS": ["x"]}
        attrs = {a["name"]: values[a["type"]] for a in info["attrs"] if a["required"]}
        outs = {slot["name"]: [block.create_var(name=slot["name"] + "_out", shape=[2, 2], dtype="float32")]
                for slot in info["outputs"]}
        block.append_op(type=op, inputs={slot["name"]: [x] for slot in info["inputs"]}, outputs=outs, attrs=attrs)
        fluid.Executor().run(program)


def test_the_page_counts_what_it_lists():
    page = coverage.coverage_page()
    works, refused = map(int, re.search(r"operators \(437\) \| (\d+) works, (\d+) Unsupported \|", page).groups())
    assert works + refused == 437 and refused == len(coverage.REFUSED_OPS)
    section = page.split("## Operators that work\n")[1].split("\n## ")[0]
    assert section.count("`") == 2 * works
    for op in coverage.REFUSED_OPS:
        assert "| `%s` | Unsupported | %s |" % (op, coverage.REFUSED_OPS[op]) in page


def test_names_and_methods_are_asked_of_the_package():
    names, methods = coverage.name_status(), coverage.method_status()
    assert names["paddle.fluid.layers"]["fc"] == coverage.WORKS
    assert methods["LoDTensor"]["set_lod"] == coverage.WORKS
    assert sum(state == coverage.WORKS for row in names.values() for state in row.values()) > 1000


def described():
    """An object of each core class that refuses something."""
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.layers.fill_constant([2, 2], "float32", 1.0)
        op = x.block.ops[0]
        return x.block.program, {"OpDesc": op.desc, "VarDesc": x.desc, "Variable": fluid.Scope().var("x")}


@pytest.mark.parametrize("cls, method", [(cls, m) for cls, all_ in coverage.REFUSED_METHODS.items() for m in all_])
def test_methods_that_are_refused_say_so(cls, method):
    program, of = described()
    arguments = ["y"] if method == "set_name" else [[]] if method.startswith("set_") else []
    with pytest.raises(NotImplementedError, match=method):
        getattr(of[cls], method)(*arguments)
    del program


def test_no_method_of_a_core_class_is_absent():
    absent = [(cls, m) for cls, states in coverage.method_status().items()
              for m, state in states.items() if state == coverage.ABSENT]
    assert absent == []
