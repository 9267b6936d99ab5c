"""Invalid programs are refused when they are read, and again before they are compiled, in one step a block."""
import time

import numpy as np
import pytest
from dataset_cases import dataset, write

import anabranch.fluid as fluid

STEP_SCOPES = fluid.core.VarDesc.VarType.STEP_SCOPES


def nested(depth, uses):
    """Blocks one within the other, each named by `uses` ops of the block around it; none of them would run."""
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        x = fluid.data("x", [None, 2])
        never = fluid.layers.fill_constant([1], "bool", False)
        top = program.global_block()
        top.create_var(name="out", shape=[-1, 2], dtype="float32")
        top.create_var(name="sc", type=STEP_SCOPES)
        fluid.layers.assign(x, top.var("out"))
        blocks = [top] + [program._create_block() for _ in range(depth)]
        for _ in range(depth):
            program._rollback()
        for outer, inner in zip(blocks, blocks[1:]):
            for _ in range(uses):
                outer.append_op(type="conditional_block", inputs={"Cond": [never.name], "Input": ["x"]},
                                outputs={"Out": ["out"], "Scope": ["sc"]},
                                attrs={"sub_block": inner, "is_scalar_condition": True})
    return program


def run(program):
    return fluid.Executor().run(program, feed={"x": np.ones((1, 2), "float32")}, fetch_list=["out"])


@pytest.mark.parametrize("depth, uses, text", [(40, 2, "belongs to another op"), (64, 1, "deeper than 64"),
                                               (3000, 1, "deeper than 64")])
def test_blocks_that_cannot_be_walked(depth, uses, text):
    program = nested(depth, uses)
    began = time.monotonic()
    with pytest.raises(ValueError, match=text):
        run(program)
    data = program.desc.serialize_to_string()
    with pytest.raises(ValueError, match=text):
        fluid.Program.parse_from_string(data)
    assert time.monotonic() - began < 10


def test_deep_blocks_run():
    assert np.array(run(nested(62, 1))[0]).tolist() == [[1, 1]]


def test_forward_block_zero():
    program = nested(1, 1)
    program.block(1)._set_forward_block_idx(0)
    data = program.desc.serialize_to_string()
    with pytest.raises(ValueError):
        fluid.Program.parse_from_string(data)


@pytest.mark.parametrize("thread", [1, 2])
def test_an_update_of_a_parameter_that_is_not_there(tmp_path, thread):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        x = fluid.data("x", [None, 2])
        label = fluid.data("label", [None, 1], "int64")
        words = fluid.data("words", [None, 1], "int64", lod_level=1)
        loss = fluid.layers.mean(fluid.layers.fc(x, 1))
        fluid.optimizer.SGD(0.1).minimize(loss)
        exe = fluid.Executor()
        exe.run(startup)
        update = [op for op in main.global_block().ops if op.type == "sgd"][0]
        update.desc.set_input("Param", ["absent"])
        main.desc.touch()
        made = dataset("QueueDataset", [write(tmp_path / "a", range(40))], use_vars=[x, label, words])
        with pytest.raises(LookupError, match="absent"):
            exe.train_from_dataset(main, made, thread=thread)
        with pytest.raises(ValueError, match="absent"):
            fluid.Program.parse_from_string(main.desc.serialize_to_string())


def test_a_branch_without_a_written_value():
    """The input of assign is optional; what chooses between branches takes what holds nothing."""
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        x = fluid.data("x", [None, 2])
        mask = fluid.layers.fill_constant([1], "int32", 0)
        block = program.global_block()
        for name in ("nothing", "chosen"):
            block.create_var(name=name, shape=[-1, 2], dtype="float32")
        block.append_op(type="assign", inputs={}, outputs={"Out": ["nothing"]})
        block.append_op(type="select_input", inputs={"X": ["nothing", x], "Mask": [mask]}, outputs={"Out": ["chosen"]})
    with pytest.raises(fluid.core.EnforceNotMet, match="holds no value|must hold a tensor") as caught:
        fluid.Executor().run(program, feed={"x": np.ones((1, 2), "float32")}, fetch_list=["chosen"])
    assert caught.value.kind != "Internal"
