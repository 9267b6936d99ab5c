"""Models that hold loops, branches and arrays, as files: Paddle 1.8.5 and this package read each other's.

    loop_models.py --fluid paddle.fluid                 records data/loop_models.json.gz
    loop_models.py --fluid paddle.fluid --load FOLDER   runs what this package has saved there, and compares

Runs on Python 3.7 and later.
"""
import argparse
import base64
import gzip
import importlib
import json
import os
import tempfile
import warnings

import decoder_values
import numpy as np
from repository import DATA

RECORD = os.path.join(DATA, "loop_models.json.gz")
RANDOM = np.random.RandomState(4)
X, STEPS = RANDOM.uniform(-1, 1, (3, 4)).astype("float32"), RANDOM.uniform(-1, 1, (5, 3, 4)).astype("float32")
ROWS = (RANDOM.uniform(-1, 1, (6, 4)).astype("float32"), [[3, 1, 2]])
#: name: (function of fluid and layers that returns what is fetched, feeds)
MODELS = {name: decoder_values.VALUES[name][:2] for name in (
    "beam_3_000", "beam_1_100", "tokens_0000", "tokens_1101", "gru_21100", "lstm_20001", "book_search_31",
    "book_search_own", "book_static")}


def model(name, **feeds):
    def register(build):
        MODELS[name] = (build, feeds)
        return build
    return register


def hidden(f, L):
    return L.fc(f.data("x", [None, 4]), 4, act="tanh")


def number(L, value, dtype="float32"):
    return L.fill_constant([1], dtype, value)


@model("while", x=X)
def while_with_array(f, L):
    i, n = number(L, 0, "int64"), number(L, 4, "int64")
    array = L.array_write(hidden(f, L), i)
    going_on = L.less_than(i, n)
    loop = L.While(going_on)
    with loop.block():
        value = L.fc(L.array_read(array, i), 4, act="tanh", param_attr="lw", bias_attr="lb")
        L.increment(i)
        L.array_write(value, i, array)
        L.less_than(i, n, cond=going_on)
    last = L.array_read(array, i)
    return [last, L.tensor_array_to_tensor(array, axis=1)[0], L.array_length(array)]


@model("while_loop", x=X)
def while_loop(f, L):
    n = number(L, 3, "int64")
    i, x = L.while_loop(lambda i, x: L.less_than(i, n), lambda i, x: [i + 1, L.fc(x, 4, param_attr="lw", act="tanh")],
                        [number(L, 0, "int64"), hidden(f, L)])
    return [x, i]


@model("nested", x=X)
def nested(f, L):
    n = number(L, 3, "int64")

    def body(i, x):
        odd = L.equal(L.elementwise_mod(i, number(L, 2, "int64")), number(L, 1, "int64"))
        y = L.cond(odd, lambda: L.fc(x, 4, param_attr="o1", act="tanh"), lambda: L.scale(x, 0.5))
        _, y = L.while_loop(lambda j, y: L.less_than(j, i), lambda j, y: [j + 1, y * 1.5], [number(L, 0, "int64"), y])
        return [i + 1, y]
    return L.while_loop(lambda i, x: L.less_than(i, n), body, [number(L, 0, "int64"), hidden(f, L)])[1:]


def branch(f, L):
    x = hidden(f, L)
    below = L.less_than(L.reduce_mean(x), number(L, 0.0))
    return [L.cond(below, lambda: L.fc(x, 2, param_attr="a"), lambda: L.fc(x, 2, param_attr="b"))]


model("cond", x=X)(branch)
model("cond_other", x=-X)(branch)


def cases(f, L):
    x = hidden(f, L)
    mean = L.reduce_mean(x)
    return [L.case([(L.less_than(mean, number(L, -.1)), lambda: L.scale(x, 2.)),
                    (L.less_than(mean, number(L, .1)), lambda: L.scale(x, 3.))], default=lambda: L.scale(x, 4.)),
            L.switch_case(f.data("ix", [1], "int32"), {1: lambda: L.scale(x, 5.),
                                                       2: lambda: L.fc(x, 4, param_attr="sc")})]


model("case_1", x=X, ix=np.array([1], "int32"))(cases)
model("case_2", x=X * 3, ix=np.array([2], "int32"))(cases)


@model("switch", x=X)
def switch(f, L):
    x = hidden(f, L)
    rate = L.create_global_var([1], 0., "float32", persistable=True, name="rate")
    with L.Switch() as chosen:
        with chosen.case(L.less_than(L.reduce_mean(x), number(L, 0.))):
            L.assign(number(L, 5.), rate)
        with chosen.default():
            L.assign(number(L, 7.), rate)
    return [L.elementwise_mul(x, rate), rate]


@model("own_condition", x=X)
def own_condition(f, L):
    """A block that overwrites the condition on which it runs, as that of the loop around it."""
    x, i, n = hidden(f, L), number(L, 0, "int64"), number(L, 3, "int64")
    total = L.zeros_like(x)
    going_on = L.less_than(i, n)
    loop = L.While(going_on)
    with loop.block():
        L.assign(total + x, total)
        with L.Switch() as chosen, chosen.case(going_on):
            L.increment(i)
            L.less_than(i, n, cond=going_on)
    return [total, i]


@model("if_else", x=X)
def if_else(f, L):
    x = hidden(f, L)
    below = L.less_than(L.reduce_sum(x, dim=1, keep_dim=True),
                        L.fill_constant_batch_size_like(x, [-1, 1], "float32", 0.))
    rows = L.IfElse(below)
    with rows.true_block():
        rows.output(L.fc(rows.input(x), 3, param_attr="t"))
    with rows.false_block():
        rows.output(L.fc(rows.input(x), 3, param_attr="o"))
    return [rows()[0]]


@model("static_rnn", x3=STEPS)
def static_rnn(f, L):
    x, rnn = f.data("x3", [5, None, 4]), L.StaticRNN()
    with rnn.step():
        now = rnn.step_input(x)
        before = rnn.memory(shape=[-1, 4], batch_ref=now)
        new = L.fc([now, before], 4, act="tanh", param_attr=["a", "b"])
        rnn.update_memory(before, new)
        rnn.step_output(new)
    return [rnn()]


@model("dynamic_rnn", s=ROWS)
def dynamic_rnn(f, L):
    x, rnn = f.data("s", [None, 4], lod_level=1), L.DynamicRNN()
    with rnn.block():
        now, before = rnn.step_input(x), rnn.memory(shape=[4], value=.1)
        new = L.fc([now, before], 4, act="tanh", param_attr=["a", "b"])
        rnn.update_memory(before, new)
        rnn.output(new)
    return [rnn(), L.sequence_last_step(rnn())]


@model("cells", x3=STEPS)
def cells(f, L):
    outputs, last = L.rnn(L.LSTMCell(6), L.transpose(f.data("x3", [5, None, 4]), [1, 0, 2]))
    back, end = L.rnn(L.GRUCell(6), outputs, is_reverse=True)
    return [outputs, back, end] + list(last)


class Session:
    """A scope with an executor."""

    def __init__(self, fluid):
        self.fluid = fluid
        self.scope = (fluid.core.Scope if hasattr(fluid.core, "Scope") else fluid.Scope)()
        self.executor = fluid.Executor(fluid.CPUPlace())

    def run(self, program, feeds, fetched):
        """[[values, lengths of sequences]] of what is fetched."""
        place = self.fluid.CPUPlace()
        feed = {k: self.fluid.create_lod_tensor(v[0], v[1], place) if isinstance(v, tuple) else v
                for k, v in feeds.items()}
        found = self.executor.run(program, feed=feed, fetch_list=fetched, return_numpy=False)
        return [[np.array(v), [list(level) for level in v.recursive_sequence_lengths()]] for v in found]


def built(fluid, name):
    """(session, program, feeds, what is fetched) with parameters that follow from their names."""
    build, feeds = MODELS[name]
    main, startup, session = fluid.Program(), fluid.Program(), Session(fluid)
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(session.scope), \
            warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fetched = decoder_values.made.leaves(build(fluid, fluid.layers))
        session.executor.run(startup)
        decoder_values.set_parameters(fluid, main, session.scope)
    read = {a for block in main.blocks for op in block.ops for a in op.input_arg_names}
    return session, main, {k: v for k, v in feeds.items() if k in read}, fetched


def save(fluid, name, folder):
    """Writes the model into FOLDER/NAME; what it computes."""
    session, main, feeds, fetched = built(fluid, name)
    with fluid.scope_guard(session.scope):
        found = session.run(main, feeds, fetched)
        fluid.io.save_inference_model(os.path.join(folder, name), sorted(feeds), fetched, session.executor,
                                      main_program=main, params_filename="params")
    return found


def load(fluid, name, folder):
    """The results of the model in FOLDER/NAME."""
    session = Session(fluid)
    with fluid.scope_guard(session.scope):
        program, fed, fetched = fluid.io.load_inference_model(os.path.join(folder, name), session.executor,
                                                              params_filename="params")
        return session.run(program, {k: MODELS[name][1][k] for k in fed}, fetched)


def as_data(found):
    """Values and lengths as JSON holds them."""
    return [[list(v.shape), str(v.dtype), [float("%.7g" % x) for x in v.ravel()], levels] for v, levels in found]


def difference(found, expected):
    """The first difference of values from :func:`as_data`, or None."""
    if len(found) != len(expected):
        return "%d values, expected %d" % (len(found), len(expected))
    for k, ((value, levels), (shape, dtype, numbers, expected_levels)) in enumerate(zip(found, expected)):
        if (list(value.shape), str(value.dtype), levels) != (shape, dtype, expected_levels):
            return "value %d: %s %s %s, expected %s %s %s" % (k, value.shape, value.dtype, levels, shape, dtype,
                                                             expected_levels)
        if not np.allclose(value.ravel().astype("float64"), numbers, rtol=1e-5, atol=1e-5):
            return "value %d: %s, expected %s" % (k, value.ravel().tolist(), numbers)
    return None


def recorded():
    """{case: {"model", "params": bytes of the files in base 64, "values": what they compute}} of 1.8.5."""
    with gzip.open(RECORD, "rt") as f:
        return json.load(f)


def _record(fluid):
    record = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in MODELS:
            record[name] = {"values": as_data(save(fluid, name, folder))}
            for key, file in (("model", "__model__"), ("params", "params")):
                path = os.path.join(folder, name, file)
                if os.path.exists(path):
                    with open(path, "rb") as f:
                        record[name][key] = base64.b64encode(f.read()).decode()
    with open(RECORD, "wb") as raw, gzip.GzipFile("", "wb", mtime=0, fileobj=raw) as f:
        f.write(json.dumps(record, sort_keys=True, separators=(",", ":")).encode())


def _load_all(fluid, folder):
    with open(os.path.join(folder, "values.json")) as f:
        expected = json.load(f)
    for name in expected:
        print(name, difference(load(fluid, name, folder), expected[name]) or "ok")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--fluid", required=True)
    parser.add_argument("--load", metavar="FOLDER")
    options = parser.parse_args()
    if options.load:
        _load_all(importlib.import_module(options.fluid), options.load)
    else:
        _record(importlib.import_module(options.fluid))
