"""Writes the nets of nets.py with the release of Fluid that runs this: record.py FOLDER.

FOLDER/<release>/<net> then holds what save_inference_model wrote, without the call stacks of its operators; asked.npz
what was fed and what came out.
"""
import os
import sys

import nets
import numpy as np
import paddle
import paddle.fluid as fluid
import wire


def record(folder, build):
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    draw = np.random.RandomState(1)
    with fluid.program_guard(main, startup), fluid.scope_guard(scope):
        inputs, answer = build(fluid)
        label = fluid.layers.data("label", [1], dtype="int64")
        loss = fluid.layers.mean(fluid.layers.cross_entropy(answer, label))
        fluid.optimizer.SGD(0.1).minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        for parameter in sorted(main.list_vars(), key=lambda v: v.name):
            if fluid.io.is_persistable(parameter) and "learning_rate" not in parameter.name:
                value = nets.value_of(parameter.name, parameter.shape, draw)
                scope.find_var(parameter.name).get_tensor().set(value, fluid.CPUPlace())
        feed, kept = {}, {}
        for v in inputs:
            array, lengths = nets.fed(v.name, draw)
            kept["in_" + v.name] = array
            feed[v.name] = array if lengths is None else fluid.create_lod_tensor(array, [lengths], fluid.CPUPlace())
        joined = "params" if build.__name__ in ("conv", "ctr") else None
        names = [v.name for v in inputs]
        fluid.io.save_inference_model(folder, names, [answer], exe, main, params_filename=joined)
        forget_stacks(os.path.join(folder, "__model__"))
    with fluid.scope_guard(fluid.Scope()):
        program, names, targets = fluid.io.load_inference_model(folder, exe, params_filename=joined)
        kept["out"] = np.array(exe.run(program, feed=feed, fetch_list=targets)[0])
    np.savez(os.path.join(folder, "asked.npz"), **kept)


def forget_stacks(path):
    """Call stacks name files of the machine that recorded."""
    with open(path, "rb") as file:
        program = file.read()
    with open(path, "wb") as file:
        file.write(wire.without_stacks(program))


if __name__ == "__main__":
    for net in nets.NETS:
        record(os.path.join(sys.argv[1], paddle.__version__, net.__name__), net)
