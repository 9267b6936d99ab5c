"""The inputs whose sequences each output carries, op by op, as in 1.8.5.

lod_of_1_8_5.json was recorded there: {op: {case: {input: [outputs that carry its sequences]}}}, "X/1" being the second
variable of slot X. Each op of a case, gradients included, ran by itself, with sequences [1, all others] in that input.
Sequences that do not end at the last row of an output are not carried here (docs/differences.md), nor in the record.
"""
import functools
import glob
import importlib
import json
import os

import numpy as np
import pytest
from op_case import CASES, Run, cast, default_grad, out_counts

import anabranch.fluid as fluid

HERE = os.path.dirname(__file__)
for path in sorted(glob.glob(os.path.join(HERE, "cases_*.py"))):
    importlib.import_module(os.path.basename(path)[:-3])
BY_NAME = {c.name: c for c in CASES}
with open(os.path.join(HERE, "lod_of_1_8_5.json")) as file:
    RECORD = json.load(file)


def _value(scope, name):
    held = scope.find_var(name)
    tensor = held.get_tensor() if held is not None else None
    return tensor if tensor is not None and tensor._is_initialized() else None


@functools.lru_cache(maxsize=8)
def ops_of(name):
    """The ops of a case with the tensors that they read: [(type, inputs, outputs, attributes, {variable: tensor})]"""
    c = BY_NAME[name]
    inputs = {slot: cast(v, c.dtypes[0]) for slot, v in c.inputs.items()}
    outs, grad = out_counts(c, inputs), default_grad(c)
    run = Run(c, inputs, outs=outs, grad=grad, grad_outs=c.grad_outs)
    weights = run.weight_feeds(Run(c, inputs, outs=outs)()[0], c.dtypes[0]) if grad else {}
    block = run.program.global_block()
    for var in block.vars.values():
        var.persistable = True
    run(weights=weights)
    for var, array in dict(run.feed, **weights).items():
        run.scope.var(var).get_tensor().set(np.array(array), fluid.CPUPlace())
        if not isinstance(array, np.ndarray):
            run.scope.find_var(var).get_tensor().set_lod(array.lod())
    found = []
    for op in block.ops:
        ins = {slot: op.input(slot) for slot in op.input_names}
        held = {n: _value(run.scope, n) for args in ins.values() for n in args if n != "@EMPTY@"}
        attrs = {a: op.attr(a) for a in op.attr_names if a != "op_callstack"}
        found.append((op.type, ins, {slot: op.output(slot) for slot in op.output_names}, attrs, held))
    return found


def carrying(found, chosen):
    """Outputs of an op with sequences, where the tensor `chosen` has two."""
    op, ins, outs, attrs, held = found
    program, scope = fluid.Program(), fluid.Scope()
    block = program.global_block()
    for name, tensor in held.items():
        array = np.array(tensor)
        lod = [[0, 1, len(array)] if len(array) > 1 else [0, len(array)]] if name == chosen else tensor.lod()
        block.create_var(name=name, shape=array.shape, dtype=str(array.dtype), persistable=True, lod_level=len(lod))
        scope.var(name).get_tensor().set(array, fluid.CPUPlace())
        scope.find_var(name).get_tensor().set_lod(lod)
    for name in {n for args in outs.values() for n in args if n != "@EMPTY@"}:
        block.create_var(name=name, persistable=True)
    block.append_op(type=op, inputs=ins, outputs=outs, attrs=attrs)
    fluid.Executor(fluid.CPUPlace()).run(program, scope=scope)
    places = [("%s/%d" % (slot, k), n) for slot, args in outs.items() for k, n in enumerate(args) if n != "@EMPTY@"]
    return sorted(p for p, n in places if p.split("/")[0] != "XShape" and _value(scope, n).lod())


@pytest.mark.parametrize("op", sorted(RECORD))
def test_outputs_carry_the_sequences_of_the_same_inputs_as_in_fluid_1_8_5(op):
    for name, expected in RECORD[op].items():
        ops = [found for found in ops_of(name) if found[0] == op]
        ours = {}
        for slot in expected:
            at, k = slot.split("/")
            ours[slot] = carrying(ops[0], ops[0][1][at][int(k)])
        assert ours == expected, name


@pytest.mark.parametrize("kind", ["sum", "mean", "prod", "max", "min"])
@pytest.mark.parametrize("rows, axes, carried", [(1, [0], False), (1, [0, 1], False), (1, [1], True), (3, [1], True),
                                                 (3, [-2], False), (3, [-1], True)])
def test_reduced_rows_carry_no_sequences_even_where_there_is_one(kind, rows, axes, carried):
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [None, 2], lod_level=1)
        out = getattr(fluid.layers, "reduce_" + kind)(x, dim=axes, keep_dim=True)
    fed = fluid.create_lod_tensor(np.ones((rows, 2), "float32"), [[rows]], fluid.CPUPlace())
    got, = fluid.Executor(fluid.CPUPlace()).run(main, feed={"x": fed}, fetch_list=[out], return_numpy=False)
    assert got.recursive_sequence_lengths() == ([[rows]] if carried else [])
