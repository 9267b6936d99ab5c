"""Cases of operators that need others around them: arrays of tensors and tables of ranks.

Besides the fields of cases.py: ``before``, ``after``: operators around it, [type, inputs, outputs, attributes];
``blocks``: operators of the blocks that attributes name as ["block", number]; variables of a block say which one;
``name`` is the name of a variable where its key is another one; ``read``: more variables that are compared, "read"
among the slots that the gradient starts from.
"""

import numpy as np

from engine import ARRAY, TENSOR

INT32, INT64, FP32 = 2, 3, 5
TABLE, SCOPES, BYTES = "table", "scopes", "bytes"


def real(*shape):
    return np.random.RandomState(sum(shape)).uniform(-1, 1, shape).astype("float32")


def at(i):
    return np.array([i], "int64")


def program(op, ins, outs, attrs=None, values=None, wanted=(), grad=None, kinds=None, locals_=(), **around):
    """``values``: name -> array, or (array, lengths of sequences)."""
    names = {n for slots in (ins, outs) for ns in slots.values() for n in ns} | set(locals_)
    inner = [o for block in around.get("blocks", ()) for o in block]
    for _, reads, writes, _ in around.get("before", []) + around.get("after", []) + inner:
        names |= {n for slots in (reads, writes) for ns in slots.values() for n in ns}
    variables = {n: {"kind": (kinds or {}).get(n, TENSOR), "value": None, "dtype": "float32"} for n in sorted(names)}
    for n, value in sorted((values or {}).items()):
        if n not in variables:
            continue
        array, lod = value if isinstance(value, tuple) else (value, None)
        variables[n].update(value=array, dtype=str(array.dtype), **({"lod": lod} if lod else {}))
    for n in locals_:
        variables[n]["block"] = 1
    grad = list(outs)[:1] if grad is None else grad
    made = {"op": op, "case": "%s.program" % op, "ins": ins, "outs": outs, "vars": variables, "attrs": attrs or {}}
    return dict(made, grad=grad if wanted else [], wanted=list(wanted), changes=[], **around)


def written(array, elements, first=0):
    """Operators that write variables into an array."""
    made = []
    for k, name in enumerate(elements):
        place = "%s_i%d" % (array, k)
        number = {"shape": [1], "dtype": INT64, "value": float(first + k)}
        made.append(["fill_constant", {}, {"Out": [place]}, number])
        made.append(["write_to_array", {"X": [name], "I": [place]}, {"Out": [array]}, {}])
    return made


def ranked(x):
    return [["lod_rank_table", {"X": [x]}, {"Out": ["table"]}, {"level": 0}]]


def of_arrays():
    two = {"x0": real(2, 3), "x1": real(2, 3)}
    array = {"array": ARRAY}
    fetch = [["read_from_array", {"X": ["array"], "I": ["i"]}, {"Out": ["element"]}, {}]]
    write = {"X": ["x0"], "I": ["i"]}
    yield program(
        "write_to_array",
        write,
        {"Out": ["array"]},
        {},
        {"x0": real(2, 3), "i": at(0)},
        ["x0"],
        ["read"],
        array,
        after=fetch,
        read=["element"],
    )
    yield program(
        "write_to_array",
        write,
        {"Out": ["array"]},
        {},
        {"x0": (real(5, 2), [[2, 3]]), "i": at(0)},
        ["x0"],
        ["read"],
        array,
        after=fetch,
        read=["element"],
    )
    yield program(
        "write_to_array",
        {"X": ["x1"], "I": ["i"]},
        {"Out": ["array"]},
        {},
        dict(two, i=at(1)),
        ["x1"],
        ["read"],
        array,
        before=written("array", ["x0"]),
        after=fetch,
        read=["element"],
    )
    for k in (0, 1):
        yield program(
            "read_from_array",
            {"X": ["array"], "I": ["i"]},
            {"Out": ["element"]},
            {},
            dict(two, i=at(k)),
            ["x%d" % k],
            None,
            array,
            before=written("array", ["x0", "x1"]),
        )
    yield program(
        "lod_array_length",
        {"X": ["array"]},
        {"Out": ["length"]},
        {},
        two,
        (),
        None,
        array,
        before=written("array", ["x0", "x1"]),
    )
    for axis, stack in ((0, False), (1, False), (0, True), (1, True)):
        yield program(
            "tensor_array_to_tensor",
            {"X": ["array"]},
            {"Out": ["y"], "OutIndex": ["index"]},
            {"axis": axis, "use_stack": stack},
            two,
            ["x0", "x1"],
            None,
            array,
            before=written("array", ["x0", "x1"]),
        )
    yield from of_beams()


def of_beams():
    """Two sources, two beams, three steps."""
    tokens = [[1, 2, 3, 4], [5, 6, 0, 7], [8, 0, 0, 9]]
    parents = [[[1, 1], [2, 2]], [[2, 2], [1, 1, 1, 1]], [[2, 2], [1, 1, 1, 1]]]
    values, names, scores = {}, [], []
    for k, (ids, lod) in enumerate(zip(tokens, parents)):
        names.append("ids%d" % k)
        scores.append("scores%d" % k)
        values[names[-1]] = (np.array(ids, "int64").reshape(-1, 1), lod)
        values[scores[-1]] = (real(4, 1) + k, lod)
    for end in (0, 1):
        yield program(
            "beam_search_decode",
            {"Ids": ["ids"], "Scores": ["scores"]},
            {"SentenceIds": ["sentences"], "SentenceScores": ["totals"]},
            {"beam_size": 2, "end_id": end},
            values,
            (),
            None,
            {"ids": ARRAY, "scores": ARRAY},
            before=written("ids", names) + written("scores", scores),
        )


def of_tables():
    kinds = {"table": TABLE, "array": ARRAY}
    steps = [["lod_tensor_to_array", {"X": ["x"], "RankTable": ["table"]}, {"Out": ["array"]}, {}]]
    join = [["array_to_lod_tensor", {"X": ["array"], "RankTable": ["table"]}, {"Out": ["y"]}, {}]]
    length = [["max_sequence_len", {"RankTable": ["table"]}, {"Out": ["length"]}, {}]]
    table = {"RankTable": ["table"]}
    for lod in ([[2, 3, 1]], [[1, 2], [2, 1, 3]], [[2, 2, 2]], [[1, 5]]):
        x = {"x": (real(6, 2), lod)}
        yield program(
            "lod_rank_table",
            {"X": ["x"]},
            {"Out": ["table"]},
            {"level": 0},
            x,
            (),
            None,
            kinds,
            after=length + steps,
            read=["length", "array"],
        )
        yield program("max_sequence_len", table, {"Out": ["length"]}, {}, x, (), None, kinds, before=ranked("x"))
        yield program(
            "lod_tensor_to_array",
            dict(table, X=["x"]),
            {"Out": ["array"]},
            {},
            x,
            ["x"],
            ["read"],
            kinds,
            before=ranked("x"),
            after=join,
            read=["y"],
        )
        yield program(
            "array_to_lod_tensor",
            dict(table, X=["array"]),
            {"Out": ["y"]},
            {},
            x,
            ["x"],
            None,
            kinds,
            before=ranked("x") + steps,
        )
        rows = dict(x, z=real(len(lod[0]), 3), i=at(1))
        yield program(
            "shrink_rnn_memory",
            dict(table, X=["z"], I=["i"]),
            {"Out": ["y"]},
            {},
            rows,
            ["z"],
            None,
            kinds,
            before=ranked("x"),
        )
        yield program(
            "reorder_lod_tensor_by_rank",
            dict(table, X=["x"]),
            {"Out": ["y"]},
            {},
            x,
            ["x"],
            None,
            kinds,
            before=ranked("x"),
        )
        yield program(
            "reorder_lod_tensor_by_rank",
            dict(table, X=["z"]),
            {"Out": ["y"]},
            {},
            rows,
            ["z"],
            None,
            kinds,
            before=ranked("x"),
        )
    yield program("rnn_memory_helper", {"X": ["x"]}, {"Out": ["y"]}, {"dtype": FP32}, {"x": real(2, 3)}, ["x"])


MADE = (of_arrays, of_tables)
