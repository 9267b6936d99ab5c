import os

import numpy as np
import paddle.fluid as fluid

os.environ.setdefault("CPU_NUM", "1")


def wide_part(data):
    out = fluid.layers.fc(
        input=data, size=1, param_attr=fluid.ParamAttr(
            initializer=fluid.initializer.TruncatedNormal(loc=0.0, scale=1.0 / np.sqrt(data.shape[1])),
            regularizer=fluid.regularizer.L2DecayRegularizer(regularization_coeff=1e-4)),
        act=None, name='wide')
    return out


def fc(data, hidden_units, active, tag):
    return fluid.layers.fc(
        input=data, size=hidden_units,
        param_attr=fluid.ParamAttr(initializer=fluid.initializer.TruncatedNormal(
            loc=0.0, scale=1.0 / np.sqrt(data.shape[1]))), act=active, name=tag)


def deep_part(data, hidden_units):
    out = data
    for k, units in enumerate(hidden_units):
        out = fc(out, units, 'relu', 'l%d' % (k + 1))
    return out


wide_input = fluid.data(name='wide_input', shape=[None, 8], dtype='float32')
deep_input = fluid.data(name='deep_input', shape=[None, 12], dtype='float32')
label = fluid.data(name='label', shape=[None, 1], dtype='float32')
inputs = [wide_input, deep_input, label]
wide_output = wide_part(wide_input)
deep_output = deep_part(deep_input, [16, 12, 8])
wide_model = fluid.layers.fc(input=wide_output, size=1, act=None, name='w_wide')
deep_model = fluid.layers.fc(input=deep_output, size=1, act=None, name='w_deep')
prediction = fluid.layers.elementwise_add(wide_model, deep_model)
pred = fluid.layers.sigmoid(fluid.layers.clip(prediction, min=-15.0, max=15.0), name="prediction")
num_seqs = fluid.layers.create_tensor(dtype='int64')
acc = fluid.layers.accuracy(input=fluid.layers.concat([1 - pred, pred], 1),
                            label=fluid.layers.cast(x=label, dtype='int64'), total=num_seqs)
auc_var, batch_auc, auc_states = fluid.layers.auc(input=fluid.layers.concat([1 - pred, pred], 1),
                                                  label=fluid.layers.cast(label, 'int64'), num_thresholds=2**12)
loss = fluid.layers.sigmoid_cross_entropy_with_logits(x=prediction, label=label)
avg_cost = fluid.layers.mean(loss)
optimizer = fluid.optimizer.Adagrad(learning_rate=0.05)
optimizer.minimize(avg_cost)

exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
exec_strategy = fluid.ExecutionStrategy()
exec_strategy.num_threads = 2
program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
    loss_name=avg_cost.name, exec_strategy=exec_strategy)


def train_generator():
    rng = np.random.RandomState(21)
    for _ in range(60):
        wide, deep = rng.rand(8).astype('float32'), rng.rand(12).astype('float32')
        yield wide, deep, np.array([float(wide[0] + deep[1] > 1)]).astype('float32')


train_data = fluid.io.DataLoader.from_generator(feed_list=inputs, capacity=16, iterable=True)
train_data.set_sample_generator(train_generator, batch_size=12, drop_last=False, places=fluid.cpu_places())
for epoch in range(4):
    for i, data in enumerate(train_data()):
        cost_val, auc_val, acc_val = exe.run(program=program, feed=data,
                                             fetch_list=[avg_cost.name, auc_var.name, acc.name])
        if i % 2 == 0:
            print("epoch: {}, i: {}, loss: {:.5f}, auc: {:.3f}, acc: {:.4f}".format(
                epoch, i, cost_val.mean(), auc_val.mean(), acc_val.mean()))
fluid.io.save_params(exe, "wide_deep_model", filename="params")
print(os.listdir("wide_deep_model"))
