from __future__ import print_function

import math

import numpy as np
import paddle.fluid as fluid

num_field, num_feat, embedding_size = 4, 40, 5
layer_sizes_dnn, layer_sizes_cin = [10, 8], [6, 4]
reg, init_value_, is_sparse = 1e-4, 0.1, False
initer = fluid.initializer.TruncatedNormalInitializer(loc=0.0, scale=init_value_)

raw_feat_idx = fluid.data(name='feat_idx', shape=[None, num_field], dtype='int64')
raw_feat_value = fluid.data(name='feat_value', shape=[None, num_field], dtype='float32')
label = fluid.data(name='label', shape=[None, 1], dtype='float32')
feat_idx = fluid.layers.reshape(raw_feat_idx, [-1, 1])
feat_value = fluid.layers.reshape(raw_feat_value, [-1, num_field, 1])
feat_embeddings = fluid.embedding(
    input=feat_idx, is_sparse=is_sparse, dtype='float32', size=[num_feat + 1, embedding_size], padding_idx=0,
    param_attr=fluid.ParamAttr(initializer=initer))
feat_embeddings = fluid.layers.reshape(feat_embeddings, [-1, num_field, embedding_size]) * feat_value

# -------------------- linear
weights_linear = fluid.embedding(
    input=feat_idx, is_sparse=is_sparse, dtype='float32', size=[num_feat + 1, 1], padding_idx=0,
    param_attr=fluid.ParamAttr(initializer=initer, regularizer=fluid.regularizer.L2DecayRegularizer(reg)))
weights_linear = fluid.layers.reshape(weights_linear, [-1, num_field, 1])
b_linear = fluid.layers.create_parameter(shape=[1], dtype='float32',
                                         default_initializer=fluid.initializer.ConstantInitializer(value=0))
y_linear = fluid.layers.reduce_sum(weights_linear * feat_value, 1) + b_linear

# -------------------- CIN
Xs = [feat_embeddings]
last_s = num_field
for s in layer_sizes_cin:
    X_0 = fluid.layers.reshape(fluid.layers.transpose(Xs[0], [0, 2, 1]), [-1, embedding_size, num_field, 1])
    X_k = fluid.layers.reshape(fluid.layers.transpose(Xs[-1], [0, 2, 1]), [-1, embedding_size, 1, last_s])
    Z_k_1 = fluid.layers.matmul(X_0, X_k)
    Z_k_1 = fluid.layers.reshape(Z_k_1, [-1, embedding_size, last_s * num_field])
    Z_k_1 = fluid.layers.transpose(Z_k_1, [0, 2, 1])
    Z_k_1 = fluid.layers.reshape(Z_k_1, [-1, last_s * num_field, 1, embedding_size])
    X_k_1 = fluid.layers.conv2d(
        Z_k_1, num_filters=s, filter_size=(1, 1), act=None, bias_attr=False,
        param_attr=fluid.ParamAttr(initializer=initer))
    Xs.append(fluid.layers.reshape(X_k_1, [-1, s, embedding_size]))
    last_s = s
y_cin = fluid.layers.concat(Xs[1:], 1)
y_cin = fluid.layers.reduce_sum(y_cin, -1)
y_cin = fluid.layers.fc(input=y_cin, size=1, act=None, param_attr=fluid.ParamAttr(initializer=initer), bias_attr=None)
y_cin = fluid.layers.reduce_sum(y_cin, dim=-1, keep_dim=True)

# -------------------- DNN
y_dnn = fluid.layers.reshape(feat_embeddings, [-1, num_field * embedding_size])
for s in layer_sizes_dnn:
    y_dnn = fluid.layers.fc(
        input=y_dnn, size=s, act="relu",
        param_attr=fluid.ParamAttr(initializer=fluid.initializer.TruncatedNormalInitializer(
            loc=0.0, scale=init_value_ / math.sqrt(float(10)))), bias_attr=fluid.ParamAttr(initializer=initer))
y_dnn = fluid.layers.fc(input=y_dnn, size=1, act=None, param_attr=fluid.ParamAttr(initializer=initer), bias_attr=None)
predict = fluid.layers.sigmoid(y_linear + y_cin + y_dnn)
cost = fluid.layers.log_loss(input=predict, label=label, epsilon=0.0000001)
batch_cost = fluid.layers.reduce_mean(cost)
auc_var, _, auc_states = fluid.layers.auc(
    input=fluid.layers.concat([1 - predict, predict], 1), label=fluid.layers.cast(label, 'int64'), slide_steps=0)
optimizer = fluid.optimizer.AdamOptimizer(1e-2, regularization=fluid.regularizer.L2DecayRegularizer(reg))
optimizer.minimize(batch_cost)

exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
rng = np.random.RandomState(17)
for step in range(15):
    idx = rng.randint(0, num_feat, (20, num_field)).astype('int64')
    value = rng.rand(20, num_field).astype('float32')
    target = (idx[:, :1] + idx[:, 1:2] > num_feat).astype('float32')
    loss, auc = exe.run(feed={'feat_idx': idx, 'feat_value': value, 'label': target}, fetch_list=[batch_cost, auc_var])
    print("TRAIN --> batch: %d loss: %.5f auc: %.5f" % (step, loss[0], auc[0]))
