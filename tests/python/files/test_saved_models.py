"""Models that releases 1.6 to 1.8 of Fluid wrote answer as they answered there, and so do older forms of them.

The models lie in tests/saved_models, with what wrote them. Older forms are made of those of 1.8.5: its program file
with one thing said as an older release said it.
"""
import itertools
import os
import shutil
import struct
import sys
import tarfile

import numpy as np
import pytest
from repository import TESTS

import anabranch
import anabranch.fluid as fluid
from anabranch import _core
from anabranch.summary import main as summary

FOLDER = os.path.join(TESTS, "saved_models")
sys.path.insert(0, FOLDER)

import nets  # noqa: E402
import wire  # noqa: E402

RELEASES = ("1.6.1", "1.7.0", "1.7.1", "1.7.2", "1.8.0", "1.8.1", "1.8.2", "1.8.3", "1.8.4", "1.8.5")
NETS = [net.__name__ for net in nets.NETS]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    with tarfile.open(os.path.join(FOLDER, "models.tar.xz")) as archive:
        archive.extractall(str(folder))
    return folder


def asked(folder):
    """(inputs by name, the answer) of a model."""
    with np.load(str(folder / "asked.npz")) as kept:
        feed = {}
        for key in kept.files:
            if key.startswith("in_"):
                array = kept[key]
                feed[key[3:]] = array if array.dtype == "float32" else fluid.create_lod_tensor(
                    array, [nets.SIZES], fluid.CPUPlace())
        return feed, kept["out"]


def joined(folder):
    return "params" if (folder / "params").exists() else None


def check(folder):
    feed, expected = asked(folder)
    answer, = anabranch.Predictor(str(folder), params_filename=joined(folder)).run(feed, return_numpy=False)
    np.testing.assert_allclose(np.asarray(answer), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("release", RELEASES)
def test_a_release_and_its_nets(release, net, models):
    check(models / release / net)


def test_all_releases_are_tried(models):
    assert sorted(os.listdir(str(models))) == sorted(RELEASES)
    for release in RELEASES:
        assert sorted(os.listdir(str(models / release))) == sorted(NETS)
        program = fluid.Program.parse_from_string((models / release / "mlp" / "__model__").read_bytes())
        assert not any("op_callstack" in op.attr_names and op.attr("op_callstack") for op in program.global_block().ops)


@pytest.mark.parametrize("net", NETS)
def test_it_goes_on_training(net, models):
    """A model of 1.6 is read as a program, too: the executor runs it, and writes it again for itself."""
    folder, scope = models / "1.6.1" / net, fluid.Scope()
    feed, expected = asked(folder)
    with fluid.scope_guard(scope):
        exe = fluid.Executor()
        program, names, targets = fluid.io.load_inference_model(str(folder), exe, params_filename=joined(folder))
        again = str(folder / "again")
        fluid.io.save_inference_model(again, names, targets, exe, program)
    np.testing.assert_allclose(np.asarray(anabranch.Predictor(again).run(feed, return_numpy=False)[0]), expected,
                               rtol=1e-5, atol=1e-6)


# ---- older forms


def rewritten(models, net, tmp_path, change):
    """The folder of a net of 1.8.5 whose operators became what ``change(type, op's number, its bytes)`` says."""
    folder = tmp_path / net
    shutil.copytree(str(models / "1.8.5" / net), str(folder))
    numbers = itertools.count()
    path = folder / "__model__"
    path.write_bytes(wire.with_ops(path.read_bytes(),
                                   lambda op: change(wire.text_of(op, wire.TYPE), next(numbers), op)))
    return folder


def program_of(folder):
    return fluid.Program.parse_from_string((folder / "__model__").read_bytes())


def defaults(kind):
    return {attr["name"]: attr["default"] for attr in _core.op_info(kind)["attrs"] if not attr["required"]}


@pytest.mark.parametrize("net", NETS)
def test_attributes_that_a_release_did_not_have(net, models, tmp_path):
    """All that have their defaults are left out, as a release without them has it."""
    ops, left_out = program_of(models / "1.8.5" / net).global_block().ops, []

    def change(kind, number, op):
        if kind in ("feed", "fetch"):
            return op
        usual = defaults(kind)

        def attr(data):
            name = wire.text_of(data, wire.NAME)
            if name in usual and ops[number].attr(name) == usual[name]:
                left_out.append(name)
                return None
            return data
        return wire.changed(op, wire.ATTRS, attr)
    folder = rewritten(models, net, tmp_path, change)
    assert len(left_out) > 20
    check(folder)
    said = [line for op in program_of(folder).global_block().ops for line in _core.old_forms(op.desc)]
    assert len([line for line in said if "not given, taken as" in line]) >= len(left_out)


@pytest.mark.parametrize("net", NETS)
def test_slots_that_a_release_did_not_have(net, models, tmp_path):
    """Outputs that are not read, and inputs that are not given."""
    ops = program_of(models / "1.8.5" / net).global_block().ops
    read = {name for op in ops for name in op.input_arg_names}
    left_out = []

    def change(kind, number, op):
        def slot(data):
            arguments = [value.decode() for n, _, value in wire.fields(data) if n == 2]
            keep = any(name in read for name in arguments)
            if not keep:
                left_out.append(kind)
            return data if keep else None
        op = wire.changed(op, wire.INPUTS, lambda data: data if any(n == 2 for n, _, _ in wire.fields(data)) else None)
        return op if kind == "fetch" else wire.changed(op, wire.OUTPUTS, slot)
    folder = rewritten(models, net, tmp_path, change)
    assert net in ("mlp", "conv") or "sequence_pool" in left_out, left_out
    check(folder)


def as_number(attr):
    """A list of one whole number as the number; other attributes as they are."""
    found = wire.fields(attr)
    kind = next(value for n, _, value in found if n == wire.KIND)
    values = [value for n, _, value in found if n in (wire.INTEGERS, wire.LONGS)]
    if kind not in (wire.INTS_TYPE, wire.LONGS_TYPE) or len(values) != 1:
        return attr
    head = [field for field in found if field[0] not in (wire.KIND, wire.INTEGERS, wire.LONGS)]
    return wire.message(head + [[wire.KIND, 0, wire.INT_TYPE], [wire.INTEGER, 0, values[0]]])


def test_lists_that_were_numbers(tmp_path):
    main, scope = fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, fluid.Program()), fluid.scope_guard(scope):
        x = fluid.data("x", [2, 3, 4])
        y = fluid.layers.reduce_sum(x, 1, keep_dim=True)
        y = fluid.layers.unsqueeze(fluid.layers.squeeze(y, [1]), [0])
        y = fluid.layers.slice(y, [2], [1], [3])
        y = fluid.layers.reverse(y, [1]) + fluid.layers.fill_constant([1], "float32", 0.5)
        exe = fluid.Executor()
        fluid.io.save_inference_model(str(tmp_path), ["x"], [y], exe, main)
    rows = np.arange(24, dtype="float32").reshape(2, 3, 4)
    expected, = anabranch.Predictor(str(tmp_path)).run([rows])
    changed = []

    def change(op):
        def attr(data):
            new = as_number(data)
            if new != data:
                changed.append((wire.text_of(op, wire.TYPE), wire.text_of(data, wire.NAME)))
            return new
        return wire.changed(op, wire.ATTRS, attr)
    path = tmp_path / "__model__"
    path.write_bytes(wire.with_ops(path.read_bytes(), change))
    assert set(changed) >= {("reduce_sum", "dim"), ("slice", "axes"), ("unsqueeze2", "axes"),
                            ("fill_constant", "shape")}
    assert np.array_equal(anabranch.Predictor(str(tmp_path)).run([rows])[0], expected)
    said = [line for op in program_of(tmp_path).global_block().ops for line in _core.old_forms(op.desc)]
    assert "attribute dim: INT, taken as INTS" in said


def test_a_number_of_another_type_is_not_a_list(tmp_path):
    """Conversions lose nothing: 0.5 is not a list of axes."""
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        y = fluid.layers.reduce_sum(fluid.data("x", [2, 3]), 1)
        fluid.io.save_inference_model(str(tmp_path), ["x"], [y], fluid.Executor(), fluid.default_main_program())
    path = tmp_path / "__model__"

    def attr(data):
        if wire.text_of(data, wire.NAME) != "dim":
            return data
        head = [field for field in wire.fields(data) if field[0] == wire.NAME]
        return wire.message(head + [[wire.KIND, 0, wire.FLOAT_TYPE], [wire.FLOAT, 5, struct.pack("<f", 0.5)]])
    path.write_bytes(wire.with_ops(path.read_bytes(), lambda op: wire.changed(op, wire.ATTRS, attr)))
    with pytest.raises(ValueError, match="attribute dim must be INTS, got FLOAT 0.5"):
        anabranch.Predictor(str(tmp_path)).run([np.zeros((2, 3), "float32")])


def test_operators_before_their_second_version(tmp_path):
    """reshape, transpose, squeeze, unsqueeze and flatten had one output."""
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        y = fluid.layers.transpose(fluid.layers.reshape(fluid.data("x", [2, 6]), [2, 3, 2]), [2, 0, 1])
        y = fluid.layers.flatten(fluid.layers.squeeze(fluid.layers.unsqueeze(y, [1]), [1]), 2)
        fluid.io.save_inference_model(str(tmp_path), ["x"], [y], fluid.Executor(), fluid.default_main_program())
    rows, path, renamed = np.arange(12, dtype="float32").reshape(2, 6), tmp_path / "__model__", []
    expected, = anabranch.Predictor(str(tmp_path)).run([rows])

    def change(op):
        kind = wire.text_of(op, wire.TYPE)
        if not kind.endswith("2"):
            return op
        renamed.append(kind)
        op = wire.changed(op, wire.OUTPUTS, lambda slot: None if wire.text_of(slot, 1) == "XShape" else slot)
        return wire.changed(op, wire.TYPE, lambda data: data[:-1])
    path.write_bytes(wire.with_ops(path.read_bytes(), change))
    assert sorted(renamed) == ["flatten2", "reshape2", "squeeze2", "transpose2", "unsqueeze2"]
    assert np.array_equal(anabranch.Predictor(str(tmp_path)).run([rows])[0], expected)


def trained(program, startup, loss):
    scope = fluid.Scope()
    with fluid.scope_guard(scope):
        exe = fluid.Executor()
        exe.run(startup)
        rows = np.random.RandomState(0).rand(8, 3).astype("float32")
        return [exe.run(program, {"x": rows}, [loss])[0].item() for _ in range(5)]


def test_adam_before_it_moved_its_powers_itself():
    """Until 1.5 ``scale`` operators did that, and adam had three outputs."""
    main, startup = fluid.Program(), fluid.Program()
    startup.random_seed = 1
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss = fluid.layers.mean(fluid.layers.square(fluid.layers.fc(fluid.data("x", [None, 3]), 2)))
        fluid.optimizer.Adam(0.1, beta1=0.8, beta2=0.9).minimize(loss)
    expected = trained(main, startup, loss.name)
    powers = []

    def change(op):
        if wire.text_of(op, wire.TYPE) != "adam":
            return op
        return wire.changed(op, wire.OUTPUTS, lambda slot: None if "Pow" in wire.text_of(slot, 1) else slot)
    old = fluid.Program.parse_from_string(wire.with_ops(main.desc.serialize_to_string(), change))
    block = old.global_block()
    for op in [op for op in block.ops if op.type == "adam"]:
        for slot, factor in (("Beta1Pow", 0.8), ("Beta2Pow", 0.9)):
            name, = op.input(slot)
            block.append_op("scale", {"X": [name]}, {"Out": [name]}, {"scale": factor, "op_role": 2})
            powers.append(name)
    assert len(powers) == 4
    assert trained(old, startup, loss.name) == expected


def test_an_operator_without_any_output_is_damaged(tmp_path):
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        y = fluid.layers.relu(fluid.data("x", [2, 3]))
        fluid.io.save_inference_model(str(tmp_path), ["x"], [y], fluid.Executor(), fluid.default_main_program())
    path = tmp_path / "__model__"
    path.write_bytes(wire.with_ops(path.read_bytes(), lambda op: wire.changed(op, wire.OUTPUTS, lambda slot: None)
                                   if wire.text_of(op, wire.TYPE) == "relu" else op))
    with pytest.raises(ValueError, match="output Out is not given"):
        anabranch.Predictor(str(tmp_path)).run([np.zeros((2, 3), "float32")])


# ---- what was converted


def test_the_summary_lists_what_was_converted(models, capsys):
    assert summary([str(models / "1.6.1" / "mlp")]) == 0
    text = capsys.readouterr().out
    assert "older forms" in text and "dropout: attribute is_test: INT, taken as BOOLEAN" in text
    assert "dropout: input Seed: not given" in text
    for net in NETS:
        assert summary([str(models / "1.8.5" / net)]) == 0
        assert "older forms" not in capsys.readouterr().out
