"""Trials of program files and model folders: damaged, then all that a user does with a program that was loaded."""

import os
import random
import shutil
import tempfile

from damage import changed_program, damaged
from honest_models import models, read
from verdicts import of_error

import anabranch.fluid as fluid
from anabranch.fluid.io.inference_model import feed_and_fetch_names

COUNT = {"fields": 12000, "bytes": 5000, "folders": 5000}
names = COUNT.__iter__


def trial(name, number):
    r = random.Random("model_files/%s/%d" % (name, number))
    if name == "folders":
        return folder(r)
    model = r.choice(sorted(models().values(), key=lambda m: m.name))
    data = r.choice(list(model.programs.values()))
    other = r.choice(list(r.choice(list(models().values())).programs.values()))
    return exercised(r, changed_program(r, data, other) if name == "fields" else damaged(r, data), model)


class Exercise:
    """Runs one thing after the other; the worst verdict counts."""

    def __init__(self):
        self.verdict, self.text = "ran", ""

    def __call__(self, what, function):
        try:
            return function()
        except Exception as e:  # every error is a verdict
            verdict, text = of_error(e)
            if not self.verdict.isupper():
                self.verdict, self.text = verdict, "%s: %s" % (what, text)
            return None


def exercised(r, data, model):
    program = fluid.Program.parse_from_string(data)
    scope, executor, do = model.scope(), fluid.Executor(), Exercise()
    do("str", lambda: str(program))
    do("to_string", lambda: program.to_string(False, True))
    do("well_formed", program.desc.check_well_formed)
    test = do("clone", lambda: program.clone(for_test=True))
    do("bytes", lambda: fluid.Program.parse_from_string(program.desc.serialize_to_string()))
    do(
        "variables",
        lambda: [
            (v.name, v.shape, v.dtype, v.lod_level, str(v))
            for v in program.list_vars()
            if v.type == fluid.core.VarDesc.VarType.LOD_TENSOR
        ],
    )
    fetch = (do("feed and fetch", lambda: feed_and_fetch_names(program)) or (None, None))[1] or written(r, program)
    feed = model.feed(program)

    def run(program, **options):
        return executor.run(program, feed=feed, fetch_list=fetch, scope=scope, return_numpy=False, **options)

    for _ in range(2):
        do("run", lambda: run(program))
    if r.random() < 0.3 and test is not None:
        do("run test", lambda: run(test))
    if r.random() < 0.2:
        do("replicas", lambda: run(fluid.CompiledProgram(program).with_data_parallel(places=[fluid.CPUPlace()] * 2)))
    if r.random() < 0.2 and fetch:
        do("prune", lambda: run(program, use_prune=True))
    if r.random() < 0.1 and fetch:
        do("backward", lambda: backward(program, r.choice(fetch), run))
    if r.random() < 0.05:
        do("save", lambda: save(program, fetch, executor))
    return do.verdict, do.text


def written(r, program):
    block = program.global_block()
    names = [n for op in block.ops for n in op.output_arg_names if block.desc.find_var(n) is not None]
    return r.sample(names, min(len(names), 3))


def backward(program, name, run):
    with fluid.program_guard(program):
        fluid.backward.append_backward(fluid.layers.mean(program.global_block().var(name)))
    run(program)


def save(program, fetch, executor):
    with tempfile.TemporaryDirectory() as folder:
        fluid.io.save_inference_model(folder, [], [program.global_block().var(n) for n in fetch], executor, program)


def folder(r):
    model = r.choice([m for m in models().values() if m.name != "growable"])
    with tempfile.TemporaryDirectory() as where, fluid.scope_guard(fluid.Scope()):
        copy = os.path.join(where, "model")
        shutil.copytree(model.folder + "/inference", copy)
        path = os.path.join(copy, r.choice(sorted(os.listdir(copy))))
        data = read(path)
        whole = path.endswith("__model__") and r.random() < 0.7
        with open(path, "wb") as f:
            f.write(changed_program(r, data, data) if whole else damaged(r, data))
        executor = fluid.Executor()
        program, feeds, targets = fluid.io.load_inference_model(copy, executor)
        executor.run(
            program, feed={n: v for n, v in model.feed().items() if n in feeds}, fetch_list=targets, return_numpy=False
        )
    return "ran", ""
