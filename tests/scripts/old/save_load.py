from __future__ import print_function

import os

import numpy as np
import paddle.fluid as fluid


def net():
    x = fluid.data('x', [None, 6], 'float32')
    y = fluid.data('y', [None, 1], 'float32')
    hidden = fluid.layers.fc(x, 8, act='relu', name='hidden')
    hidden = fluid.layers.batch_norm(hidden, name='bn')
    out = fluid.layers.fc(hidden, 1, name='out')
    loss = fluid.layers.mean(fluid.layers.square_error_cost(out, y))
    test = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.Momentum(0.05, 0.9).minimize(loss)
    return x, out, loss, test


def value(name):
    return np.array(fluid.global_scope().find_var(name).get_tensor())


def clear(program):
    for var in program.list_vars():
        if var.persistable and fluid.global_scope().find_var(var.name) is not None:
            tensor = fluid.global_scope().find_var(var.name).get_tensor()
            if 0 not in tensor.shape() and len(tensor.shape()):
                tensor.set(np.zeros_like(np.array(tensor)), fluid.CPUPlace())


rng = np.random.RandomState(0)
feed = {'x': rng.rand(8, 6).astype('float32'), 'y': rng.rand(8, 1).astype('float32')}
x, out, loss, test = net()
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
main = fluid.default_main_program()
for step in range(5):
    print("step %d loss %.6f" % (step, exe.run(main, feed=feed, fetch_list=[loss])[0]))
before = exe.run(test, feed=feed, fetch_list=[out])[0]

fluid.io.save_params(exe, "params", main)
fluid.io.save_persistables(exe, "persistables", main)
fluid.io.save_persistables(exe, "persistables", main, filename="all")
fluid.io.save_vars(exe, "weights", main, predicate=lambda var: var.persistable and var.name.endswith(".w_0"))
fluid.io.save_vars(exe, "two", main, vars=[main.global_block().var("out.w_0"), main.global_block().var("out.b_0")],
                   filename="pair")
for folder in ("params", "persistables", "weights", "two"):
    print(folder, sorted(os.listdir(folder)))
print("bytes", os.path.getsize("params/hidden.w_0"), os.path.getsize("two/pair"))

clear(main)
print("cleared", np.abs(exe.run(test, feed=feed, fetch_list=[out])[0]).sum())
fluid.io.load_params(exe, "params", main)
print("params", np.allclose(value("hidden.w_0"), 0), np.abs(value("hidden.w_0")).sum().round(4))
fluid.io.load_persistables(exe, "persistables", main)
print("persistables", np.abs(exe.run(test, feed=feed, fetch_list=[out])[0] - before).max())
clear(main)
fluid.io.load_persistables(exe, "persistables", main, filename="all")
print("one file", np.abs(exe.run(test, feed=feed, fetch_list=[out])[0] - before).max())
clear(main)


def if_exist(var):
    return os.path.exists(os.path.join("weights", var.name))


fluid.io.load_vars(exe, "weights", main, predicate=if_exist)
print("weights only %.4f %.4f" % (np.abs(value("out.w_0")).sum(), np.abs(value("out.b_0")).sum()))

fluid.io.load_persistables(exe, "persistables", main)
fluid.save(main, "models/both")
print(sorted(os.listdir("models")))
clear(main)
fluid.load(main, "models/both", exe)
print("fluid.load", np.abs(exe.run(test, feed=feed, fetch_list=[out])[0] - before).max())
state = fluid.io.load_program_state("models/both")
print(sorted(state)[:6], len(state))
state["out.b_0"] = state["out.b_0"] + 1
fluid.io.set_program_state(main, state)
print("moved by", np.round(exe.run(test, feed=feed, fetch_list=[out])[0] - before, 4).ravel()[:3])
state = fluid.io.load_program_state("persistables", var_list=[v for v in main.list_vars() if v.name == "out.b_0"])
print({k: v.shape for k, v in state.items()})

names = fluid.io.save_inference_model("infer", ['x'], [out], exe, main, model_filename="__model__", params_filename="p")
print(names, sorted(os.listdir("infer")))
with fluid.scope_guard(fluid.Scope()):
    program, feeds, fetches = fluid.io.load_inference_model("infer", exe, model_filename="__model__", params_filename="p")
    got = exe.run(program, feed={feeds[0]: feed['x']}, fetch_list=fetches)[0]
    print(feeds, [op.type for op in program.global_block().ops], got.shape)
print(fluid.io.get_program_parameter(main)[0].name, len(fluid.io.get_program_persistable_vars(main)))
again = fluid.Program.parse_from_string(main.desc.serialize_to_string())
print(len(again.blocks), len(again.global_block().ops) == len(main.global_block().ops))
