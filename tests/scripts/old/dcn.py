from __future__ import print_function

from collections import OrderedDict

import numpy as np
import paddle.fluid as fluid


class DCN(object):
    def __init__(self, cross_num=2, dnn_hidden_units=(12, 8), l2_reg_cross=1e-3, dnn_use_bn=True, clip_by_norm=5.0,
                 cat_feat_dims_dict=None, is_sparse=False):
        self.cross_num, self.dnn_hidden_units, self.l2_reg_cross = cross_num, dnn_hidden_units, l2_reg_cross
        self.dnn_use_bn, self.clip_by_norm, self.is_sparse = dnn_use_bn, clip_by_norm, is_sparse
        self.cat_feat_dims_dict = cat_feat_dims_dict or OrderedDict([("C1", 12), ("C2", 20), ("C3", 30)])
        self.dense_feat_names = ['I1', 'I2', 'I3', 'I4']

    def build_network(self, is_test=False):
        self.target_input = fluid.data(name='label', shape=[None, 1], dtype='float32')
        data_dict = OrderedDict()
        for feat_name in self.dense_feat_names:
            data_dict[feat_name] = fluid.data(name=feat_name, shape=[None, 1], dtype='float32')
        for feat_name in self.cat_feat_dims_dict:
            data_dict[feat_name] = fluid.data(name=feat_name, shape=[None, 1], dtype='int64')
        self.net_input = self._create_embedding_input(data_dict)
        deep_out = self._deep_net(self.net_input, is_test)
        cross_out, l2_reg_cross_loss = self._cross_net(self.net_input)
        last_out = fluid.layers.concat([deep_out, cross_out], axis=-1)
        logit = fluid.layers.fc(last_out, 1)
        self.prob = fluid.layers.sigmoid(logit)
        self.avg_logloss = fluid.layers.mean(fluid.layers.log_loss(input=self.prob, label=self.target_input, epsilon=1e-6))
        self.loss = self.avg_logloss + self.l2_reg_cross * l2_reg_cross_loss
        prob_2d = fluid.layers.concat([1 - self.prob, self.prob], 1)
        self.auc_var, self.batch_auc_var, self.auc_states = fluid.layers.auc(
            input=prob_2d, label=fluid.layers.cast(self.target_input, 'int64'), slide_steps=0)

    def _deep_net(self, input, is_test=False):
        for units in self.dnn_hidden_units:
            input = fluid.layers.fc(input=input, size=units, bias_attr=False if self.dnn_use_bn else None)
            if self.dnn_use_bn:
                input = fluid.layers.batch_norm(input, is_test=is_test)
            input = fluid.layers.relu(input)
        return input

    def _cross_layer(self, x0, x, prefix):
        input_dim = x0.shape[-1]
        w = fluid.layers.create_parameter([input_dim], dtype='float32', name=prefix + "_w")
        b = fluid.layers.create_parameter([input_dim], dtype='float32', name=prefix + "_b", is_bias=True)
        xw = fluid.layers.reduce_sum(x * w, dim=1, keep_dim=True)
        return x0 * xw + b + x, w

    def _cross_net(self, input):
        x = x0 = input
        l2_reg_cross_list = []
        for i in range(self.cross_num):
            x, w = self._cross_layer(x0, x, "cross_layer_" + str(i))
            l2_reg_cross_list.append(fluid.layers.reduce_sum(fluid.layers.square(w)))
        return x, fluid.layers.reduce_sum(fluid.layers.concat(l2_reg_cross_list, axis=-1))

    def _create_embedding_input(self, data_dict):
        sparse_emb_dict = OrderedDict((name, fluid.embedding(
            input=fluid.layers.cast(data_dict[name], dtype='int64'), size=[dims + 1, 6 * int(pow(dims, 0.25))],
            is_sparse=self.is_sparse)) for name, dims in self.cat_feat_dims_dict.items())
        dense_input_list = [data_dict[i] for i in data_dict if i.startswith('I')]
        sparse_emb_list = [emb for emb in sparse_emb_dict.values()]
        sparse_emb_list = [fluid.layers.reshape(emb, [-1, emb.shape[-1]]) for emb in sparse_emb_list]
        return fluid.layers.concat(dense_input_list + sparse_emb_list, axis=-1)

    def backward(self, lr):
        p_g_clip = fluid.backward.append_backward(loss=self.loss)
        fluid.clip.set_gradient_clip(fluid.clip.GradientClipByGlobalNorm(clip_norm=self.clip_by_norm))
        p_g_clip = fluid.clip.append_gradient_clip_ops(p_g_clip)
        optimizer = fluid.optimizer.Adam(learning_rate=lr)
        optimizer.apply_gradients(p_g_clip)


model = DCN()
model.build_network()
test_program = fluid.default_main_program().clone(for_test=True)
model.backward(0.01)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
rng = np.random.RandomState(9)


def feed_of(n):
    feed = {name: rng.rand(n, 1).astype('float32') for name in model.dense_feat_names}
    for name, dims in model.cat_feat_dims_dict.items():
        feed[name] = rng.randint(0, dims, (n, 1)).astype('int64')
    feed['label'] = (feed['I1'] + feed['C1'] / 12. > 1).astype('float32')
    return feed


for step in range(12):
    loss, logloss, auc = exe.run(feed=feed_of(16), fetch_list=[model.loss, model.avg_logloss, model.auc_var])
    print("step {}: loss {:.5f} logloss {:.5f} auc {:.5f}".format(step, float(loss), float(logloss), float(auc)))
logloss, = exe.run(test_program, feed=feed_of(32), fetch_list=[model.avg_logloss])
print("test {:.5f}".format(float(logloss)))
