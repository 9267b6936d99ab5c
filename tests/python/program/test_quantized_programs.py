"""The passes of contrib.slim.quantization rewrite programs, train scales and give answers as 1.8.5 does.

1.8.5 takes operators in the order of their addresses: numbers in the names of states differ from run to run, as does
the order of the operators that measure scales at the end of a program. Names are compared by the place of their first
use.
"""
import gzip
import json
import re

import numpy as np
import pytest
import quantized_cases
import quantized_nets

import anabranch.fluid as fluid

with gzip.open(quantized_nets.RECORD) as file:
    RECORD = json.load(file)

_NUMBERED = re.compile(r"^(quant_dequant\.(state|accum)|state|accum|scales|scale_(state|accum)@|channel_scale)_\d+$")
_SAVED = re.compile(r"^save_infer_model/scale_0\.tmp_\d+$")


def in_one_order(ops):
    """The operators, with those that measure scales at the end in the order of what they measure."""
    measure = [op for op in ops if op[0] == "moving_average_abs_max_scale"]
    rest = [op for op in ops if op[0] != "moving_average_abs_max_scale"]
    return rest + sorted(measure, key=lambda op: op[1]["X"])


def names_of(program):
    """{name: name without its number} by the place where an operator uses it first."""
    found = {}
    for at, op in enumerate(in_one_order(program[0])):
        for side in op[1:3]:
            for slot, names in sorted(side.items()):
                for name in names:
                    if _NUMBERED.match(name):
                        found.setdefault(name, "%s of %d %s" % (_NUMBERED.match(name).group(1), at, slot))
                    elif _SAVED.match(name):
                        found[name] = "saved"
    return found


def renamed(program):
    """[operators, variables] with names that do not depend on the order of the work."""
    names = names_of(program)
    ops = [[op[0], *({slot: [names.get(name, name) for name in given] for slot, given in side.items()}
                     for side in op[1:3]), op[3]] for op in in_one_order(program[0])]
    return ops, {names.get(name, name): made for name, made in program[1].items()}


def without_saving(program):
    """The program without what 1.8.5 adds to it when it is saved: `scale` of the result."""
    ops = program[0]
    return [ops[:-1] if ops[-1][0] == "scale" and ops[-2][0] == "fetch" else ops, program[1]]


def close(a, b):
    return np.allclose(np.asarray(a, float), np.asarray(b, float), rtol=1e-4, atol=1e-5)


def same_attributes(recorded, got):
    assert set(recorded) == set(got)
    for name, value in recorded.items():
        numeric = isinstance(value, float) or isinstance(value, list) and value and isinstance(value[0], float)
        assert close(value, got[name]) if numeric else value == got[name], (name, value, got[name])


def same_program(recorded, got):
    (recorded_ops, recorded_vars), (ops, variables) = renamed(recorded), renamed(got)
    assert [op[0] for op in recorded_ops] == [op[0] for op in ops]
    for one, other in zip(recorded_ops, ops):
        assert one[:3] == other[:3]
        same_attributes(one[3], other[3])
    assert recorded_vars == variables


def same_values(recorded, got, names):
    names, own = names
    recorded = {names.get(name, name): value for name, value in recorded.items()}
    got = {own.get(name, name): value for name, value in got.items()}
    assert set(recorded) == set(got)
    for name, (dtype, numbers) in recorded.items():
        assert dtype == got[name][0]
        assert close(numbers, got[name][1]), name


#: part of a record: the program whose variables it holds
VALUES = {"trained": "transformed", "frozen_values": "frozen", "int8_values": "int8", "values": "program"}


def compare(case, got):
    """Compares what a case makes with the record of it."""
    recorded, got = RECORD[case], json.loads(json.dumps(got))
    assert set(recorded) == set(got)
    for part, value in recorded.items():
        if part in VALUES or part == "trained":
            program = VALUES[part] if VALUES[part] in recorded else "out_scale"
            same_values(value, got[part], [names_of(one[program]) for one in (recorded, got)])
        elif isinstance(value[0], list):
            same_program(without_saving(value), without_saving(got[part]))
        else:
            assert close(value, got[part]), part


@pytest.mark.parametrize("net", quantized_nets.NETS)
@pytest.mark.parametrize("kind", quantized_cases.KINDS)
def test_programs_of_training(net, kind):
    compare("%s %s" % (net, kind), quantized_cases.made_by(fluid, net, kind))


@pytest.mark.parametrize("net", quantized_nets.NETS)
def test_programs_of_activations_and_results(net):
    compare("%s outputs" % net, quantized_cases.outputs_of(fluid, net))


@pytest.mark.parametrize("name", quantized_cases.AFTER)
def test_programs_after_training(name, tmp_path):
    net, arguments = quantized_cases.AFTER[name]
    compare("after " + name, quantized_cases.quantized_after(fluid, net, arguments, str(tmp_path)))


@pytest.mark.parametrize("name", quantized_cases.WEIGHTS)
def test_integers_as_weights(name, tmp_path):
    recorded = RECORD["weights " + name]
    got = quantized_cases.small_weights(fluid, quantized_cases.WEIGHTS[name], str(tmp_path))
    assert recorded["bytes"] == got["bytes"]
    for one, other in zip(recorded["attributes"], got["attributes"]):
        assert one[0] == other[0]
        same_attributes(one[1], other[1])
    same_values(recorded["numbers"], got["numbers"], ({}, {}))


def test_every_case_has_a_record():
    cases = {"%s %s" % (net, kind) for net in quantized_nets.NETS for kind in (*quantized_cases.KINDS, "outputs")}
    cases |= {"after " + name for name in quantized_cases.AFTER}
    cases |= {"saved %s %s" % case for case in quantized_cases.SAVED}
    assert set(RECORD) == cases | {"weights " + name for name in quantized_cases.WEIGHTS}
