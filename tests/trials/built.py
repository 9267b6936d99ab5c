"""From a OneOp to a program that has run."""

import numpy as np
import odd
from one_op import EMPTY, KINDS
from op_case import Rows, Seq, array_of

import anabranch.fluid as fluid
from anabranch import _core

# An op that nothing reads is an error less where it is removed, so that removal stays on.
OFF = ",".join(p[0] for p in _core.pass_list() if p[0] != "remove_dead")
AROUND = ("relu", "scale", "assign", "tanh", "square")  # ops that may follow, so that passes have something to fuse


def build(one, how, followed, r):
    """(program, scope, feed, names to fetch). `how`: "append" through the Python layer, "raw" around its checks,
    "bytes" through a file besides; `followed`: other ops read the outputs.
    """
    program, scope, feed = fluid.Program(), fluid.Scope(), {}
    with fluid.program_guard(program, fluid.Program()):
        block = program.global_block()
        for name, v in one.vars.items():
            _declare(block, name, v, name in one.inputs())
            _give(block, scope, feed, name, v)
        program.desc.touch()
        if how == "append":
            block.append_op(type=one.op, inputs=one.ins, outputs=one.outs, attrs=one.attrs)
        else:
            program, block = _insert(program, block, one, how)
        never = {s["name"] for s in _core.op_info(one.op)["outputs"] if s["named_only"]}  # no kernel writes them
        written = dict.fromkeys(n for slot, names in one.outs.items() if slot not in never for n in names)
        fetch = [n for n in written if _fetchable(block, n)]
        if followed and how == "append":
            fetch = _follow(block, fetch, r)
    return program, scope, feed, fetch


def _declare(block, name, v, is_input):
    declares = v.declared != "same" or v.kind != int(KINDS.LOD_TENSOR) or v.persistable
    if not is_input and not declares:
        return
    keys = dict(name=name, persistable=v.persistable, type=v.kind)
    if v.kind in (int(KINDS.LOD_TENSOR), int(KINDS.SELECTED_ROWS), int(KINDS.LOD_TENSOR_ARRAY)):
        keys.update(shape=_extents(v), dtype=_dtype(v))
        if v.kind != int(KINDS.SELECTED_ROWS):
            keys["lod_level"] = v.lod_level
    block.create_var(**keys)


def _extents(v):
    if isinstance(v.declared, list):
        return v.declared
    shape = v.shape
    if v.value is not None and v.declared != "old":
        shape = list(array_of(v.value).shape) or [1]
        if isinstance(v.value, Rows):
            shape[0] = max(v.value.height, -1)
    return [-1] * len(shape) if v.declared == "unknown" else shape


def _dtype(v):
    if v.value is None or not v.declares_dtype:
        return v.dtype
    return str(array_of(v.value).dtype)


def _give(block, scope, feed, name, v):
    for value in (v.value, v.preset):
        if value is None:
            continue
        if isinstance(value, Rows):
            rows = scope.var(name).get_selected_rows()
            rows.set_rows(value.ids)
            rows.set_height(value.height)
            rows.get_tensor().set(value.values, fluid.CPUPlace())
            if not v.persistable and block.desc._find_var(name) is not None:
                block.desc._find_var(name).persistable = True
        elif v.persistable:
            tensor = scope.var(name).get_tensor()
            tensor.set(value.array if isinstance(value, Seq) else value, fluid.CPUPlace())
            if isinstance(value, Seq):
                tensor.set_recursive_sequence_lengths(value.lengths)
        else:
            feed[name] = _fed(value, v)


def _fed(value, v):
    if isinstance(value, Seq):
        tensor = fluid.core.LoDTensor()
        tensor.set_recursive_sequence_lengths(value.lengths)
        tensor.set(value.array, fluid.CPUPlace())
        return tensor
    return odd.view(value, v.fed_as)


def _insert(program, block, one, how):
    for name in one.outputs() - {EMPTY}:
        if block.desc._find_var(name) is None:
            block.create_var(name=name)
    block.desc.insert_raw_op(
        block.desc.op_size(), one.op, list(one.ins.items()), list(one.outs.items()), dict(one.attrs)
    )
    if how == "bytes":
        program = fluid.Program.parse_from_string(program.desc.serialize_to_string())
    return program, program.global_block()


def _fetchable(block, name):
    if name == EMPTY or block.desc._find_var(name) is None:
        return False
    return int(block.desc._find_var(name).kind) in (int(KINDS.LOD_TENSOR), int(KINDS.LOD_TENSOR_ARRAY))


def _follow(block, fetch, r):
    followers = []
    for name in fetch:
        followers.append(name)
        if int(block.var(name).type) == int(KINDS.LOD_TENSOR):
            out, kind = block.create_var(name=name + ".after"), r.choice(AROUND)
            try:
                block.append_op(
                    type=kind,
                    inputs={"X": [name]},
                    outputs={"Out": [out]},
                    attrs={"scale": 2.0} if kind == "scale" else {},
                )
                followers[-1] = name + ".after"
            except fluid.core.EnforceNotMet:
                pass
    return followers if r.random() < 0.6 else list(dict.fromkeys(followers + fetch))


def run(built, threads, passes):
    """[(arrays, sequences)] of what is fetched."""
    program, scope, feed, fetch = built
    fluid.set_flags({"FLAGS_disable_passes": passes})
    try:
        if threads > 1:
            program = on_threads(program, threads, fetch)
        got = fluid.Executor().run(program, feed=feed, fetch_list=fetch, scope=scope, return_numpy=False)
        return [_arrays(g) for g in got]
    finally:
        fluid.set_flags({"FLAGS_disable_passes": ""})


def on_threads(program, threads, fetch):
    build, execution = fluid.BuildStrategy(), fluid.ExecutionStrategy()
    build.gradient_scale_strategy = fluid.BuildStrategy.GradientScaleStrategy.Customized
    execution.num_threads = threads
    return fluid.CompiledProgram(program).with_data_parallel(
        loss_name=(fetch or [v.name for v in program.list_vars()] or [None])[0],
        build_strategy=build,
        exec_strategy=execution,
        places=fluid.cpu_places(1),
    )


def _arrays(got):
    if isinstance(got, fluid.core.LoDTensor):
        return [np.array(got)], got.lod()
    return [np.array(got[k]) for k in range(len(got))], []


def same(one, other):
    """Equal shapes, dtypes, sequences and numbers; NaN equals NaN, and -0 equals 0."""
    for (xs, lod), (ys, other_lod) in zip(one, other):
        if lod != other_lod or len(xs) != len(ys):
            return False
        for x, y in zip(xs, ys):
            if x.shape != y.shape or x.dtype != y.dtype:
                return False
            if x.tobytes() != y.tobytes() and not np.array_equal(x, y, equal_nan=x.dtype.kind == "f"):
                return False
    return True
