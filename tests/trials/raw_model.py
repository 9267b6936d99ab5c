"""Models of raw rows, and the scores that a pass over a file, a predictor and a server give."""

import io
import json
import os
from unittest import mock

import numpy as np
import raw_fields
import raw_tables
from serve_process import Server

import anabranch
import anabranch.fluid as fluid
from anabranch.serving import tensors
from anabranch.serving.model import Model

HTTP = 0.004  # share of the trials that start a server
SMALL = 5000  # ids that have rows of an embedding


def part(drawn, name):
    """A part of the output, from one feature; the rows do not depend on each other."""
    value = drawn.inputs[name]
    lod_level, columns = value.lod_level, 1 if value.lod_level else value.shape[1]
    size = drawn.schema[name].size if columns == 1 else None
    if size and size <= SMALL:
        table = fluid.ParamAttr(initializer=fluid.initializer.Uniform(-1, 1, seed=7))
        value, columns = fluid.layers.embedding(value, [size, 3], param_attr=table), 3
    else:
        value = fluid.layers.cast(value, "float32")
    if lod_level:
        value = fluid.layers.sequence_pool(value, "sum")
    return fluid.layers.reshape(value, [-1, columns])


def saved(drawn, folder):
    """[outputs] of a new model, which is saved in the folder."""
    parts = [part(drawn, name) for name in drawn.inputs]
    whole = fluid.layers.concat(parts, 1) if len(parts) > 1 else fluid.layers.scale(parts[0], 1.0)
    outputs = [whole, fluid.layers.reduce_sum(whole, 1, keep_dim=True)]
    executor = fluid.Executor()
    executor.run(fluid.default_startup_program())
    fluid.io.save_inference_model(folder, list(drawn.inputs), outputs, executor, schema=drawn.schema)
    return outputs


def scores_of_pass(r, outputs, data):
    """The outputs for all rows of the data set, in a pass over it. A saved model adds 0 to them: 0 has no sign."""
    seen = []
    nothing = fluid.default_main_program().global_block().create_var(name="nothing", dtype="float32", shape=[1])

    def keep(*values):
        seen.append([np.array(value) for value in values])
        return np.zeros(1, "float32")

    fluid.layers.py_func(keep, outputs, nothing)
    data.set_thread(1)
    executor = fluid.Executor()
    run = executor.infer_from_dataset if r.random() < 0.5 else executor.train_from_dataset
    run(fluid.default_main_program(), data)
    return [np.concatenate(values) + np.float32(0) for values in zip(*seen)]


def body(r, drawn, rows):
    """A request with these rows, lists of fields."""
    made = [[raw_fields.json_value(r, field, column) for column, field in zip(drawn.columns, fields)]
            for fields in rows]
    if not drawn.named:
        whole = "[%s]" % ", ".join("[%s]" % ", ".join(row) for row in made)
    else:
        keys = [json.dumps(str(column.name), ensure_ascii=r.random() < 0.5) for column in drawn.columns]
        if r.random() < 0.3:
            whole = "{%s}" % ", ".join("%s: [%s]" % (key, ", ".join(of)) for key, of in zip(keys, zip(*made)))
        else:
            whole = "[%s]" % ", ".join("{%s}" % ", ".join(map(": ".join, zip(keys, row))) for row in made)
    return ('{"rows": %s}' % whole).encode()


class Served:
    """A server's way from the bytes of a request to the scores, without HTTP."""

    def __init__(self, folder):
        self.model = Model(folder)

    def __call__(self, request):
        return self.model.predictor.run(
            tensors.read(request, tensors.JSON, self.model.inputs, 1 << 30, self.model.rows))


def over_http(folder, request):
    """The scores that a process of the server sends."""
    with mock.patch.dict(os.environ, FLAGS_flush_denormals="0"), Server(folder) as server:
        status, _, answer = server.ask(body=request, accept=tensors.NPZ)
    if status != 200:
        raise ValueError(answer.decode())
    with np.load(io.BytesIO(answer)) as arrays:
        return [arrays[name] for name in arrays.files]


def compare(r, drawn, good, bad, data, folder, check):
    """The scores of a pass, of run_rows and of a server are the same bits; a bad row has none."""
    model = os.path.join(folder, "model")
    scores = scores_of_pass(r, saved(drawn, model), data)
    predictor, served = anabranch.Predictor(model), Served(model)
    rows, request = [row for _, row in good], body(r, drawn, [fields for fields, _ in good])
    few = rows[: r.choice([1, 3])]
    ran = {"run_rows": predictor.run_rows(rows), "run_rows of few": predictor.clone().run_rows(few),
           "the server": served(request)}
    if len(request) < 1 << 20 and r.random() < HTTP:
        ran["HTTP"] = over_http(model, request)
    for way, values in ran.items():
        for one, score in zip(values, scores):
            check(len(one) == len(few if "few" in way else rows), "rows are missing in %s" % way, len(one))
            same = (one + np.float32(0)).tobytes() == score[: len(one)].tobytes()
            check(same, "scores of the reader and of %s differ" % way)
    for fields, row, why in r.sample(bad, min(len(bad), 8)):
        refused("run_rows", predictor.run_rows, [row], why, check)
        refused("the server", served, body(r, drawn, [fields]), why, check)
        table = raw_tables.arrow_table(r, drawn, [fields])
        if table is not None:
            refused("Arrow", drawn.schema.feed, table, why, check)


def refused(way, give, rows, why, check):
    try:
        give(rows)
    except ValueError as error:
        fits = "row 0: column " in str(error) and all(one in str(error) for one in why)
        check(fits, "%s gives another reason than Schema.feed" % way, str(error), why)
    else:
        check(False, "%s accepts a bad row" % way, why, rows)
