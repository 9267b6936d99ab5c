from __future__ import absolute_import, division, print_function

import math

import numpy as np
import paddle.fluid as fluid
import paddle.fluid.layers as layers

hidden_size, num_layers, num_steps, batch_size, vocab_size, init_scale = 12, 2, 5, 4, 30, 0.1


def lm_model(x, y, init_hidden, init_cell):
    weights, biases, hidden_array, cell_array = [], [], [], []
    for i in range(num_layers):
        weights.append(layers.create_parameter(
            [hidden_size * 2, hidden_size * 4], dtype="float32", name="fc_weight1_" + str(i),
            default_initializer=fluid.initializer.UniformInitializer(low=-init_scale, high=init_scale)))
        biases.append(layers.create_parameter([hidden_size * 4], dtype="float32", name="fc_bias1_" + str(i),
                                              default_initializer=fluid.initializer.Constant(0.0)))
        for array, init in ((hidden_array, init_hidden), (cell_array, init_cell)):
            state = layers.slice(init, axes=[0], starts=[i], ends=[i + 1])
            array.append(layers.reshape(state, shape=[-1, hidden_size]))
    x_emb = layers.embedding(input=x, size=[vocab_size, hidden_size], dtype='float32', is_sparse=False,
                             param_attr=fluid.ParamAttr(name='embedding_para', initializer=fluid.initializer.Uniform(
                                 low=-init_scale, high=init_scale)))
    x_emb = layers.reshape(x_emb, shape=[-1, num_steps, hidden_size])
    res = []
    sliced = layers.split(x_emb, num_or_sections=num_steps, dim=1)
    for index in range(num_steps):
        value = layers.reshape(sliced[index], shape=[-1, hidden_size])
        for k in range(num_layers):
            nn = layers.concat([value, hidden_array[k]], 1)
            gate_input = layers.elementwise_add(layers.matmul(x=nn, y=weights[k]), biases[k])
            i, j, f, o = layers.split(gate_input, num_or_sections=4, dim=-1)
            c = cell_array[k] * layers.sigmoid(f) + layers.sigmoid(i) * layers.tanh(j)
            m = layers.tanh(c) * layers.sigmoid(o)
            hidden_array[k], cell_array[k], value = m, c, m
        res.append(layers.reshape(value, shape=[1, -1, hidden_size]))
    real_res = layers.transpose(x=layers.concat(res, 0), perm=[1, 0, 2])
    last_hidden = layers.reshape(layers.concat(hidden_array, 1), shape=[-1, num_layers, hidden_size])
    last_cell = layers.reshape(layers.concat(cell_array, 1), shape=[-1, num_layers, hidden_size])
    last_hidden, last_cell = (layers.transpose(x=v, perm=[1, 0, 2]) for v in (last_hidden, last_cell))
    softmax_weight = layers.create_parameter(
        [hidden_size, vocab_size], dtype="float32", name="softmax_weight",
        default_initializer=fluid.initializer.UniformInitializer(low=-init_scale, high=init_scale))
    softmax_bias = layers.create_parameter([vocab_size], dtype="float32", name='softmax_bias', is_bias=True)
    projection = layers.elementwise_add(layers.matmul(real_res, softmax_weight), softmax_bias)
    projection = layers.reshape(projection, shape=[-1, vocab_size])
    loss = layers.softmax_with_cross_entropy(logits=projection, label=y, soft_label=False)
    loss = layers.reshape(loss, shape=[-1, num_steps])
    loss = layers.reduce_sum(layers.reduce_mean(loss, dim=[0]))
    layers.assign(input=last_cell, output=init_cell)
    layers.assign(input=last_hidden, output=init_hidden)
    return loss


def get_data_iter(raw_data):
    raw_data = np.asarray(raw_data, dtype="int64")
    batch_len = len(raw_data) // batch_size
    data = raw_data[0:batch_size * batch_len].reshape((batch_size, batch_len))
    for i in range((batch_len - 1) // num_steps):
        x = np.copy(data[:, i * num_steps:(i + 1) * num_steps])
        y = np.copy(data[:, i * num_steps + 1:(i + 1) * num_steps + 1])
        yield x.reshape((-1, num_steps, 1)), y.reshape((-1, 1))


def main():
    main_program, startup_program = fluid.Program(), fluid.Program()
    with fluid.program_guard(main_program, startup_program), fluid.unique_name.guard():
        x = fluid.data(name="x", shape=[None, num_steps, 1], dtype='int64')
        y = fluid.data(name="y", shape=[None, 1], dtype='int64')
        states = [layers.create_global_var(shape=[num_layers, batch_size, hidden_size], value=0.0, dtype="float32",
                                           persistable=True, name=name) for name in ("init_hidden", "init_cell")]
        loss = lm_model(x, y, *states)
        learning_rate = layers.create_global_var(name="learning_rate", shape=[1], value=1.0, dtype='float32',
                                                 persistable=True)
        fluid.clip.set_gradient_clip(clip=fluid.clip.GradientClipByGlobalNorm(clip_norm=5.0))
        fluid.optimizer.SGD(learning_rate=learning_rate).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup_program)
    rng = np.random.RandomState(2)
    words = np.cumsum(rng.randint(1, 4, 200)) % vocab_size
    for epoch_id in range(4):
        new_lr = np.ones([1], dtype='float32') * (0.5 ** max(epoch_id - 1, 0.0))
        total_loss, iters = 0, 0
        for name in ("init_hidden", "init_cell"):
            fluid.global_scope().find_var(name).get_tensor().set(
                np.zeros((num_layers, batch_size, hidden_size), dtype='float32'), fluid.CPUPlace())
        for batch_id, (x_data, y_data) in enumerate(get_data_iter(words)):
            feed = {"x": x_data, "y": y_data, "learning_rate": new_lr}
            cost, lr = exe.run(main_program, feed=feed, fetch_list=[loss.name, "learning_rate"], use_program_cache=True)
            total_loss += np.array(cost)[0]
            iters += num_steps
            if batch_id % 4 == 0:
                print("-- Epoch:[%d]; Batch:[%d]; ppl: %.4f, lr: %.5f" % (
                    epoch_id, batch_id, np.exp(total_loss / iters), lr[0]))
        print("Train epoch:[%d]; ppl: %.4f" % (epoch_id, math.exp(total_loss / iters)))
    fluid.save(main_program, "ptb_model")
    fluid.load(main_program, "ptb_model", exe)
    print("softmax_bias %.6f" % np.abs(np.array(fluid.global_scope().find_var("softmax_bias").get_tensor())).sum())


if __name__ == '__main__':
    main()
