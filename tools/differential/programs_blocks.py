"""Cases of choices, blocks and files, see programs.py."""

import numpy as np
from programs import BYTES, FP32, SCOPES, at, program, real


def of_choices():
    x = real(5, 2)
    for mask, lod in (([1, 0, 1, 1, 0], None), ([1, 0, 1], [[2, 1, 2]]), ([1, 1], [[2, 3]]), ([0, 1, 0, 0, 1], None)):
        mask = np.array(mask, bool).reshape(-1, 1)
        whole = (x, lod) if lod else x
        yield program(
            "split_lod_tensor",
            {"X": ["x"], "Mask": ["mask"]},
            {"OutTrue": ["yes"], "OutFalse": ["no"]},
            {"level": 0},
            {"x": whole, "mask": mask},
            ["x"],
            ["OutTrue", "OutFalse"],
        )
        parts = {"x": whole, "mask": mask}
        split = [
            ["split_lod_tensor", {"X": ["x"], "Mask": ["mask"]}, {"OutTrue": ["yes"], "OutFalse": ["no"]}, {"level": 0}]
        ]
        for op in ("merge_lod_tensor", "merge_lod_tensor_infer"):
            yield program(
                op,
                {"X": ["x"], "Mask": ["mask"], "InTrue": ["yes"], "InFalse": ["no"]},
                {"Out": ["y"]},
                {"level": 0},
                parts,
                ["x"] if op == "merge_lod_tensor" else (),
                None,
                before=split,
            )
    for k in (0, 1):
        both = {"a": real(2, 3), "b": real(2, 3) + 1, "mask": np.array([k], "int32")}
        yield program("select_input", {"X": ["a", "b"], "Mask": ["mask"]}, {"Out": ["y"]}, {}, both, ["a", "b"])
        yield program(
            "select_output",
            {"X": ["a"], "Mask": ["mask"]},
            {"Out": ["y", "z"]},
            {},
            {"a": real(2, 3), "mask": np.array([k], "int32")},
        )


def of_blocks():
    twice = [
        ["scale", {"X": ["x"]}, {"Out": ["t"]}, {"scale": 2.0}],
        ["tanh", {"X": ["t"]}, {"Out": ["u"]}, {}],
        ["assign", {"X": ["u"]}, {"Out": ["y"]}, {}],
    ]
    for chosen in (True, False):
        yield program(
            "conditional_block",
            {"Cond": ["cond"], "Input": ["x"]},
            {"Out": ["y"], "Scope": ["scope"]},
            {"sub_block": ["block", 1], "is_scalar_condition": True},
            {"x": real(2, 3), "cond": np.array([chosen])},
            ["x"],
            None,
            {"scope": SCOPES},
            ["t", "u"],
            blocks=[twice],
            before=[["fill_constant", {}, {"Out": ["y"]}, {"shape": [2, 3], "dtype": FP32, "value": 1.0}]],
        )
    body = [
        ["elementwise_add", {"X": ["h"], "Y": ["x"]}, {"Out": ["t"]}, {"axis": -1}],
        ["assign", {"X": ["t"]}, {"Out": ["h"]}, {}],
        ["increment", {"X": ["i"]}, {"Out": ["i"]}, {"step": 1.0}],
        ["less_than", {"X": ["i"], "Y": ["n"]}, {"Out": ["cond"]}, {}],
    ]
    count = [["less_than", {"X": ["i"], "Y": ["n"]}, {"Out": ["cond"]}, {}]]
    for iterations in (1, 3):
        values = {"h": real(2, 3), "x": real(2, 3), "i": at(0), "n": at(iterations)}
        yield program(
            "while",
            {"X": ["h", "x", "i", "n"], "Condition": ["cond"]},
            {"Out": ["h", "i", "cond"], "StepScopes": ["scope"]},
            {"sub_block": ["block", 1], "is_test": True},
            values,
            (),
            None,
            {"scope": SCOPES},
            ["t"],
            before=count,
            blocks=[body],
        )
    step = [
        ["elementwise_mul", {"X": ["memory"], "Y": ["w"]}, {"Out": ["t"]}, {"axis": -1}],
        ["elementwise_add", {"X": ["t"], "Y": ["step x"]}, {"Out": ["u"]}, {"axis": -1}],
        ["tanh", {"X": ["u"]}, {"Out": ["step y"]}, {}],
    ]
    for back in (False, True):
        made = program(
            "recurrent",
            {"inputs": ["x"], "initial_states": ["h"], "parameters": ["w"]},
            {"outputs": ["y"], "step_scopes": ["scope"]},
            {
                "ex_states": ["memory"],
                "states": ["y"],
                "has_states": True,
                "reverse": back,
                "is_train": False,
                "sub_block": ["block", 1],
            },
            {"x": real(4, 2, 3), "h": real(2, 3), "w": real(2, 3)},
            (),
            None,
            {"scope": SCOPES},
            ["memory", "t", "u", "step x", "step y"],
            blocks=[step],
        )
        for n in ("x", "y"):  # a step of each, by the same name
            made["vars"]["step " + n]["name"] = n
        yield made


def of_files():
    for value in (real(2, 3), (real(5, 2), [[2, 3]]), np.arange(6).reshape(2, 3), real(4).astype("float64")):
        path = {"file_path": "variable"}
        load = [["load", {}, {"Out": ["y"]}, path]]
        yield program("save", {"X": ["x"]}, {}, path, {"x": value}, after=load, read=["y"])
        yield program("load", {}, {"Out": ["y"]}, path, {"x": value}, before=[["save", {"X": ["x"]}, {}, path]])
        both = {"x": value, "z": real(3)}
        load = [["load_combine", {}, {"Out": ["y", "u"]}, path]]
        kinds = {"bytes": BYTES}
        save = [["save_combine", {"X": ["x", "z"]}, {"Y": ["bytes"]}, path]]
        yield program(
            "save_combine",
            {"X": ["x", "z"]},
            {"Y": ["bytes"]},
            path,
            both,
            (),
            None,
            kinds,
            after=load,
            read=["y", "u"],
        )
        yield program("load_combine", {}, {"Out": ["y", "u"]}, path, both, (), None, kinds, before=save)


MADE = (of_choices, of_blocks, of_files)
