"""A user's program: parameters and models in files, gradients, sequences, control flow."""
from __future__ import annotations

import os
import tempfile

import numpy

import anabranch.fluid as fluid
from anabranch.fluid.layers import nn, tensor


def score(words: fluid.Variable) -> fluid.Variable:
    rows = nn.embedding(words, size=[50, 4])
    pooled = fluid.layers.sequence_pool(rows, "sum")
    return nn.fc(pooled, 2, act="softmax", name="score")


def main(folder: str) -> numpy.ndarray:
    program, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(program, startup):
        words = fluid.data("words", [None, 1], "int64", lod_level=1)
        out = score(words)
        total = fluid.layers.reduce_sum(out[:, 0:1])
        big = fluid.layers.cond(total > tensor.fill_constant([1], "float32", 0.5),
                                lambda: fluid.layers.scale(total, 2.0), lambda: total - 1.0)
        slope, = fluid.gradients([total], [out])
        pairs = fluid.backward.append_backward(total)
        print([(parameter.name, gradient.name) for parameter, gradient in pairs])
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    ids = fluid.create_lod_tensor([[1, 2], [3]], [[2, 1]], fluid.CPUPlace())
    results = exe.run(program, feed={"words": ids}, fetch_list=[out, slope, big])
    fluid.save(program, os.path.join(folder, "state"))
    fluid.io.save_inference_model(folder, ["words"], [out], exe, main_program=program)
    model, feeds, fetches = fluid.io.load_inference_model(folder, exe)
    again = exe.run(model, feed={feeds[0]: ids}, fetch_list=fetches)
    assert numpy.array_equal(results[0], again[0])
    return numpy.asarray(again[0])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        print(main(made).shape)
