from __future__ import print_function

import numpy as np
import paddle.fluid as fluid
import paddle.fluid.layers as layers

exe = fluid.Executor(fluid.CPUPlace())


def fresh(function):
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        with fluid.scope_guard(fluid.Scope()):
            print("---", function.__name__)
            function()


def while_sums():
    i = layers.fill_constant(shape=[1], dtype='int64', value=0)
    limit = layers.fill_constant(shape=[1], dtype='int64', value=10)
    total = layers.fill_constant(shape=[1], dtype='float32', value=0)
    cond = layers.less_than(x=i, y=limit)
    while_op = layers.While(cond=cond)
    with while_op.block():
        part = layers.cast(i, 'float32') * 0.5
        layers.assign(layers.elementwise_add(total, part), total)
        i = layers.increment(x=i, value=1, in_place=True)
        layers.less_than(x=i, y=limit, cond=cond)
    print(exe.run(fetch_list=[total, i]))


def switch_rates():
    step = layers.data('step', [1], append_batch_size=False)
    lr = layers.create_global_var(shape=[1], value=0.0, dtype='float32', persistable=True, name="learning_rate")
    bounds = [layers.fill_constant([1], 'float32', v) for v in (3.0, 6.0)]
    with layers.Switch() as switch:
        with switch.case(step < bounds[0]):
            layers.assign(layers.fill_constant([1], 'float32', 0.1), lr)
        with switch.case(step < bounds[1]):
            layers.assign(layers.fill_constant([1], 'float32', 0.05), lr)
        with switch.default():
            layers.assign(layers.fill_constant([1], 'float32', 0.01), lr)
    exe.run(fluid.default_startup_program())
    print(["%.3f" % exe.run(feed={'step': np.array([k], 'float32')}, fetch_list=[lr])[0] for k in (0, 3, 5, 9)])


def if_else_rows():
    image = layers.data('image', [4])
    label = layers.data('label', [1], dtype='int64')
    limit = layers.fill_constant_batch_size_like(image, shape=[-1, 1], dtype='int64', value=5)
    ie = layers.IfElse(layers.less_than(x=label, y=limit))
    with ie.true_block():
        ie.output(layers.fc(ie.input(image), 3, act='tanh', param_attr="t"))
    with ie.false_block():
        ie.output(layers.fc(ie.input(image), 3, param_attr="f"))
    prob = ie()[0]
    loss = layers.mean(prob)
    fluid.optimizer.SGD(0.5).minimize(loss)
    exe.run(fluid.default_startup_program())
    rng = np.random.RandomState(0)
    for _ in range(3):
        feed = {'image': rng.rand(6, 4).astype('float32'), 'label': rng.randint(0, 10, (6, 1)).astype('int64')}
        print("%.6f" % exe.run(feed=feed, fetch_list=[loss])[0])


def dynamic_rnn():
    sentence = layers.data(name='sentence', shape=[1], dtype='int64', lod_level=1)
    emb = layers.embedding(sentence, [20, 5])
    drnn = layers.DynamicRNN()
    with drnn.block():
        word = drnn.step_input(emb)
        prev = drnn.memory(shape=[6], value=0.5)
        hidden = layers.fc(input=[word, prev], size=6, act='relu')
        drnn.update_memory(prev, hidden)
        drnn.output(hidden)
    last = layers.sequence_last_step(drnn())
    loss = layers.mean(layers.fc(last, 1))
    fluid.optimizer.Adagrad(0.1).minimize(loss)
    exe.run(fluid.default_startup_program())
    rng = np.random.RandomState(1)
    for lengths in ([3, 1, 4], [2, 2], [5]):
        data = fluid.create_lod_tensor(rng.randint(0, 20, (sum(lengths), 1)).astype('int64'), [lengths], fluid.CPUPlace())
        print("%.6f" % exe.run(feed={'sentence': data}, fetch_list=[loss])[0])


def static_rnn():
    x = layers.data('x', [4, 3, 5], append_batch_size=False, stop_gradient=False)
    rnn = layers.StaticRNN()
    with rnn.step():
        word = rnn.step_input(x)
        prev = rnn.memory(shape=[-1, 5], batch_ref=word, init_value=0.1)
        hidden = layers.fc([word, prev], 5, act='tanh')
        rnn.update_memory(prev, hidden)
        rnn.step_output(hidden)
    out = rnn()
    loss = layers.reduce_mean(out)
    grads = fluid.backward.append_backward(loss)
    exe.run(fluid.default_startup_program())
    feed = {'x': np.random.RandomState(2).rand(4, 3, 5).astype('float32')}
    for value in exe.run(feed=feed, fetch_list=[loss] + [g for _, g in grads]):
        print(value.shape, "%.6f" % np.abs(value).sum())


def conditions():
    x = layers.data('x', [1], append_batch_size=False)
    small = layers.cond(layers.reduce_sum(x) < 1.0, lambda: x * 2, lambda: x - 1)
    kind = layers.case([(x < 0.5, lambda: layers.fill_constant([1], 'int32', 1)),
                        (x < 2.5, lambda: layers.fill_constant([1], 'int32', 2))],
                       default=lambda: layers.fill_constant([1], 'int32', 3))
    index = layers.cast(x, 'int32')
    chosen = layers.switch_case(index, {0: lambda: x * 10, 2: lambda: x * 20}, default=lambda: x * 30)
    n, s = layers.while_loop(lambda n, s: n < 4, lambda n, s: [n + 1, s + x], [
        layers.fill_constant([1], 'int64', 0), layers.fill_constant([1], 'float32', 0)])
    for v in (0.25, 2.0, 3.0):
        got = exe.run(feed={'x': np.array([v], 'float32')}, fetch_list=[small, kind, chosen, n, s])
        print([float(g) for g in got])


def arrays():
    array = None
    for k in range(3):
        value = layers.fill_constant([2, 2], 'float32', k + 1.0)
        array = layers.array_write(value, layers.fill_constant([1], 'int64', k), array)
    length = layers.array_length(array)
    joined, index = layers.tensor_array_to_tensor(array, axis=1)
    last = layers.array_read(array, length - 1)
    for got in exe.run(fetch_list=[length, joined, index, last]):
        print(got.tolist())


for function in (while_sums, switch_rates, if_else_rows, dynamic_rnn, static_rnn, conditions, arrays):
    fresh(function)
