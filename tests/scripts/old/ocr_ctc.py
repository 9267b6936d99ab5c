from __future__ import print_function

import numpy as np
import paddle.fluid as fluid

CLASSES, HEIGHT, WIDTH = 7, 16, 32


def conv_bn_pool(input, group, out_ch, act="relu", is_test=False, pool=True):
    tmp = input
    for i in range(group):
        tmp = fluid.layers.conv2d(input=tmp, num_filters=out_ch[i], filter_size=3, padding=1, act=None, bias_attr=None,
                                  use_cudnn=False, param_attr=fluid.ParamAttr(
                                      initializer=fluid.initializer.Normal(0.0, 0.05)))
        tmp = fluid.layers.batch_norm(input=tmp, act=act, is_test=is_test)
    if pool:
        tmp = fluid.layers.pool2d(input=tmp, pool_size=2, pool_type='max', pool_stride=2, use_cudnn=False, ceil_mode=True)
    return tmp


def encoder_net(images, num_classes, rnn_hidden_size=6, is_test=False):
    conv_features = conv_bn_pool(images, 2, [4, 4], is_test=is_test)
    conv_features = conv_bn_pool(conv_features, 1, [6], is_test=is_test)
    sliced_feature = fluid.layers.im2sequence(input=conv_features, stride=[1, 1], filter_size=[conv_features.shape[2], 1])
    para_attr = fluid.ParamAttr(regularizer=fluid.regularizer.L2Decay(4e-4), initializer=fluid.initializer.Normal(0.0, 0.2))
    bias_attr = fluid.ParamAttr(regularizer=fluid.regularizer.L2Decay(4e-4), initializer=fluid.initializer.Normal(0.0, 0.2),
                                learning_rate=2.0)
    fc_1 = fluid.layers.fc(input=sliced_feature, size=rnn_hidden_size * 3, param_attr=para_attr, bias_attr=False)
    fc_2 = fluid.layers.fc(input=sliced_feature, size=rnn_hidden_size * 3, param_attr=para_attr, bias_attr=False)
    gru_forward = fluid.layers.dynamic_gru(input=fc_1, size=rnn_hidden_size, param_attr=para_attr, bias_attr=bias_attr,
                                           candidate_activation='relu')
    gru_backward = fluid.layers.dynamic_gru(input=fc_2, size=rnn_hidden_size, is_reverse=True, param_attr=para_attr,
                                            bias_attr=bias_attr, candidate_activation='relu')
    return fluid.layers.fc(input=[gru_forward, gru_backward], size=num_classes + 1, param_attr=para_attr,
                           bias_attr=bias_attr)


images = fluid.layers.data(name='pixel', shape=[1, HEIGHT, WIDTH], dtype='float32')
label = fluid.layers.data(name='label', shape=[1], dtype='int32', lod_level=1)
fc_out = encoder_net(images, CLASSES)
cost = fluid.layers.warpctc(input=fc_out, label=label, blank=CLASSES, norm_by_times=True)
sum_cost = fluid.layers.reduce_sum(cost)
decoded_out = fluid.layers.ctc_greedy_decoder(input=fc_out, blank=CLASSES)
casted_label = fluid.layers.cast(x=label, dtype='int64')
error_evaluator = fluid.evaluator.EditDistance(input=decoded_out, label=casted_label)
inference_program = fluid.default_main_program().clone(for_test=True)
optimizer = fluid.optimizer.Momentum(learning_rate=0.02, momentum=0.9)
_, params_grads = optimizer.minimize(sum_cost)
model_average = fluid.optimizer.ModelAverage(0.15, min_average_window=2, max_average_window=4)

place = fluid.CPUPlace()
exe = fluid.Executor(place)
exe.run(fluid.default_startup_program())


def get_feeder_data(data):
    pixel = np.stack([d[0] for d in data]).astype("float32")
    lengths = [len(d[1]) for d in data]
    label_tensor = fluid.create_lod_tensor(np.concatenate([d[1] for d in data]).reshape(-1, 1).astype("int32"),
                                           [lengths], place)
    return {"pixel": pixel, "label": label_tensor}


def samples():
    rng = np.random.RandomState(20)
    for _ in range(12):
        letters = rng.randint(0, CLASSES, rng.randint(1, 4))
        pixel = rng.rand(1, HEIGHT, WIDTH) * 0.1
        for k, letter in enumerate(letters):
            pixel[0, 2 * letter:2 * letter + 3, 10 * k + 1:10 * k + 8] += 1
        yield pixel, letters


data = list(samples())
for epoch in range(3):
    error_evaluator.reset(exe)
    for k in range(0, 12, 4):
        results = exe.run(feed=get_feeder_data(data[k:k + 4]), fetch_list=[sum_cost] + error_evaluator.metrics)
        seq_distance, seq_error = error_evaluator.eval(exe)
        print("pass %d; batch %d; loss %.5f; distance %.4f; error %.4f" % (
            epoch, k // 4, results[0][0], float(np.mean(seq_distance)), float(np.mean(seq_error))))
with model_average.apply(exe):
    loss, decoded = exe.run(inference_program, feed=get_feeder_data(data[:4]), fetch_list=[sum_cost, decoded_out],
                            return_numpy=False)
    print("averaged parameters: loss %.5f" % np.array(loss)[0], decoded.lod())
loss, = exe.run(inference_program, feed=get_feeder_data(data[:4]), fetch_list=[sum_cost])
print("own parameters: loss %.5f" % loss[0])
