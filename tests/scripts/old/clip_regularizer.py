from __future__ import print_function

import numpy as np
import paddle.fluid as fluid

rng = np.random.RandomState(4)
FEED = {'x': (rng.rand(6, 5) * 10).astype('float32'), 'ids': rng.randint(0, 9, (6, 1)).astype('int64'),
        'y': (rng.rand(6, 1) * 20).astype('float32')}


def net(regularizers=False):
    x, y = fluid.layers.data('x', [5]), fluid.layers.data('y', [1])
    ids = fluid.layers.data('ids', [1], dtype='int64')
    emb = fluid.layers.embedding(ids, [9, 4], is_sparse=True)
    weight = fluid.ParamAttr(name="w", regularizer=fluid.regularizer.L1Decay(0.01) if regularizers else None,
                             learning_rate=0.5 if regularizers else 1.0)
    hidden = fluid.layers.fc([x, emb], 6, act="relu", param_attr=[weight, fluid.ParamAttr(name="u")], bias_attr="b")
    frozen = fluid.layers.fc(hidden, 4, param_attr=fluid.ParamAttr(name="frozen", trainable=False), bias_attr=False)
    out = fluid.layers.fc([hidden, frozen], 1)
    return fluid.layers.mean(fluid.layers.square_error_cost(out, y)), hidden


def train(title, prepare, clip=None, regularization=None, regularizers=False):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        loss, hidden = net(regularizers)
        prepare(main, loss, hidden)
        kwargs = {} if clip is None else {"grad_clip": clip}
        optimizer = fluid.optimizer.SGD(0.01, regularization=regularization, **kwargs)
        _, pairs = optimizer.minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        shown = []
        for _ in range(6):
            shown.append("%.4f" % exe.run(main, feed=FEED, fetch_list=[loss])[0])
        weight = np.array(fluid.global_scope().find_var("w").get_tensor())
        print(title, " ".join(shown), "|w| %.5f" % np.abs(weight).sum(), len(pairs))


def nothing(main, loss, hidden):
    pass


def old_clip(clip):
    def prepare(main, loss, hidden):
        fluid.clip.set_gradient_clip(clip=clip, program=main)
    return prepare


def error_clip(main, loss, hidden):
    main.block(0).var(hidden.name)._set_error_clip(fluid.clip.ErrorClipByValue(max=0.02, min=-0.01))


train("none", nothing)
train("global norm, old", old_clip(fluid.clip.GradientClipByGlobalNorm(1.0)))
train("norm, old", old_clip(fluid.clip.GradientClipByNorm(1.0)))
train("value, old", old_clip(fluid.clip.GradientClipByValue(0.5, -0.25)))
train("global norm, new", nothing, clip=fluid.clip.GradientClipByGlobalNorm(2.0))
train("value, new", nothing, clip=fluid.clip.GradientClipByValue(0.3))
train("error", error_clip)
train("L2", nothing, regularization=fluid.regularizer.L2DecayRegularizer(0.1))
train("L1 of one, L2 of all", nothing, regularization=fluid.regularizer.L2Decay(0.1), regularizers=True)
for kind in (fluid.optimizer.Momentum, fluid.optimizer.LarsMomentum):
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        with fluid.unique_name.guard():
            loss, _ = net()
            kind(0.01, 0.9).minimize(loss, parameter_list=["w", "b"])
            exe = fluid.Executor(fluid.CPUPlace())
            exe.run(fluid.default_startup_program())
            print(kind.__name__, " ".join("%.4f" % exe.run(feed=FEED, fetch_list=[loss])[0] for _ in range(4)))
