"""Trials of whole programs, passes against none: arguments swapped, parameters of other shapes, variables kept."""

import functools
import random

import numpy as np
from built import OFF
from damage import changed_program, elements, parsed, swap_arguments, written
from honest_models import models

import anabranch.fluid as fluid

MODELS = ("mlp", "conv", "sequences", "ctr", "branches")


def result(data, model, feeds, fetch, passes="", scope=None, kept=None):
    """("ran", values of each run and parameters) or the kind and text of the error."""
    scope = scope or model.scope()
    program = fluid.Program.parse_from_string(data)
    program.random_seed = 3
    if kept:
        program.global_block().var(kept).persistable = True
    fluid.set_flags({"FLAGS_disable_passes": passes})
    try:
        executor, values = fluid.Executor(), []
        for feed in feeds:
            got = executor.run(program, feed=feed, fetch_list=fetch, scope=scope, return_numpy=False)
            values.append([np.array(g) if isinstance(g, fluid.core.LoDTensor) else len(g) for g in got])
        return "ran", values, [np.array(scope.find_var(n).get_tensor()) for n in sorted(model.parameters)]
    except fluid.core.EnforceNotMet as e:
        return "INTERNAL" if e.kind == "Internal" else "typed", str(e)[:300], []
    finally:
        fluid.set_flags({"FLAGS_disable_passes": ""})


def alike(one, other):
    return len(one) == len(other) and all(
        alike(x, y)
        if isinstance(x, list)
        else np.array_equal(x, y, equal_nan=getattr(x, "dtype", np.dtype(int)).kind == "f")
        for x, y in zip(one, other)
    )


def judged(off, on, what):
    if "INTERNAL" in (off[0], on[0]):
        return "INTERNAL", "%s | off: %s | on: %s" % (what, off[:2], on[:2])
    if off[0] != on[0]:
        return "PASSES", "%s | off: %s | on: %s" % (
            what,
            off[1] if off[0] != "ran" else "ran",
            on[1] if on[0] != "ran" else "ran",
        )
    if off[0] == "ran" and not (alike(off[1], on[1]) and alike(off[2], on[2])):
        return "PASSES", "%s | values differ" % what
    return off[0], ""


def swapped(r):
    model = models()[r.choice(MODELS)]
    data = r.choice([model.programs["inference"], model.programs["training"]])
    if r.random() < 0.5:
        bad = changed_program(r, data, r.choice(list(models().values())).programs["training"])
    else:
        message = parsed(data)
        for _ in range(r.choice([1, 1, 2, 3])):
            swap_arguments(r, list(elements(message)))
        bad = written(message)
    block = fluid.Program.parse_from_string(bad).global_block()
    names = {n for op in block.ops for n in op.output_arg_names if op.type not in ("feed", "fetch")}
    fetch = sorted(n for n in names if n != "@EMPTY@" and block.desc.find_var(n) is not None)[-2:]
    feeds = [model.feed(block.program)]
    return judged(
        result(bad, model, feeds, fetch, OFF), result(bad, model, feeds, fetch), "%s %s" % (model.name, fetch)
    )


def shapes(a):
    s = list(a.shape)
    yield from (
        [1],
        [0] + s[1:],
        [max(1, s[0] // 2)] + s[1:],
        [s[0] * 3] + s[1:],
        s[::-1],
        s + [1],
        [1] + s,
        [s[0] * 2 + 1],
    )
    if len(s) > 1:
        yield from ([s[0], max(1, s[1] // 2)] + s[2:], [s[0], s[1] * 2] + s[2:], [int(np.prod(s))])


@functools.lru_cache(maxsize=None)
def reshaped():
    """Every parameter of a model, with every other shape, and as a number of another type."""
    found = []
    for name in MODELS[:4]:
        for form in ("inference", "training"):
            data = models()[name].programs[form]
            held = {v.name for v in fluid.Program.parse_from_string(data).list_vars() if v.persistable}
            for p in sorted(held & set(models()[name].parameters)):
                for shape in shapes(models()[name].parameters[p]):
                    types = {models()[name].parameters[p].dtype.name, "float64", "int64"} if shape == [1] else {None}
                    found += [(name, form, p, shape, dtype) for dtype in sorted(types, key=str)]
    return found


def loss_of(block, form):
    if form == "inference":
        return [op.input("X")[0] for op in block.ops if op.type == "fetch"]
    return [op.output("Out")[0] for op in block.ops if op.type == "mean"][:1] or [block.ops[-1].output_arg_names[0]]


def parameter(number):
    name, form, changed, shape, dtype = reshaped()[number]
    model, both = models()[name], []
    data = model.programs[form]
    program = fluid.Program.parse_from_string(data)
    for passes in (OFF, ""):
        scope = model.scope()
        scope.var(changed).get_tensor().set(
            np.full(shape, 0.25, dtype or model.parameters[changed].dtype), fluid.CPUPlace()
        )
        both.append(result(data, model, [model.feed(program)], loss_of(program.global_block(), form), passes, scope))
    return judged(both[0], both[1], "%s %s: %s is %s %s" % (name, form, changed, shape, dtype))


@functools.lru_cache(maxsize=None)
def intermediates():
    found = []
    for name in MODELS:
        for form in ("inference", "training"):
            for v in fluid.Program.parse_from_string(models()[name].programs[form]).global_block().vars.values():
                if (
                    not v.persistable
                    and v.type == fluid.core.VarDesc.VarType.LOD_TENSOR
                    and v.name not in models()[name].arrays
                ):
                    found.append((name, form, v.name))
    return found


def batch(model, program, rows):
    """The feed, with another number of rows."""
    made = {}
    for name, value in model.feed(program).items():
        if isinstance(value, fluid.core.LoDTensor):
            lengths = [2, 3, 1, 4, 2][:rows]
            ids = (np.arange(sum(lengths)).reshape(-1, 1) % 7).astype("int64")
            made[name] = fluid.create_lod_tensor(ids, [lengths], fluid.CPUPlace())
        else:
            made[name] = np.resize(value, (rows,) + value.shape[1:])
    return made


def kept(number):
    name, form, variable = intermediates()[number]
    model = models()[name]
    data = model.programs[form]
    program = fluid.Program.parse_from_string(data)
    feeds, fetch = [batch(model, program, n) for n in (2, 5, 1, 3, 5, 2)], loss_of(program.global_block(), form)
    verdict, text = judged(
        result(data, model, feeds, fetch), result(data, model, feeds, fetch, kept=variable), variable
    )
    return ("WRONG" if verdict == "PASSES" else verdict), text


class Counts(dict):
    def __missing__(self, name):
        return len(reshaped() if name == "parameters" else intermediates())


COUNT = Counts(swapped=12000)


def names():
    return ["swapped", "parameters", "kept"]


def trial(name, number):
    if name == "swapped":
        return swapped(random.Random("passes_off/%d" % number))
    return parameter(number) if name == "parameters" else kept(number)
