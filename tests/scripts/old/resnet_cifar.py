"""resnet on cifar10, in the way of an image_classification directory"""
from __future__ import print_function

import paddle
import paddle.fluid as fluid


def conv_bn_layer(input, ch_out, filter_size, stride, padding, act='relu', bias_attr=False):
    tmp = fluid.layers.conv2d(
        input=input, filter_size=filter_size, num_filters=ch_out, stride=stride, padding=padding, act=None,
        bias_attr=bias_attr)
    return fluid.layers.batch_norm(input=tmp, act=act)


def shortcut(input, ch_in, ch_out, stride):
    if ch_in != ch_out:
        return conv_bn_layer(input, ch_out, 1, stride, 0, None)
    return input


def basicblock(input, ch_in, ch_out, stride):
    tmp = conv_bn_layer(input, ch_out, 3, stride, 1)
    tmp = conv_bn_layer(tmp, ch_out, 3, 1, 1, act=None, bias_attr=True)
    short = shortcut(input, ch_in, ch_out, stride)
    return fluid.layers.elementwise_add(x=tmp, y=short, act='relu')


def layer_warp(block_func, input, ch_in, ch_out, count, stride):
    tmp = block_func(input, ch_in, ch_out, stride)
    for _ in range(1, count):
        tmp = block_func(tmp, ch_out, ch_out, 1)
    return tmp


def resnet_cifar10(ipt, depth=8):
    assert (depth - 2) % 6 == 0
    n = (depth - 2) // 6
    conv1 = conv_bn_layer(ipt, ch_out=4, filter_size=3, stride=1, padding=1)
    res1 = layer_warp(basicblock, conv1, 4, 4, n, 1)
    res2 = layer_warp(basicblock, res1, 4, 8, n, 2)
    res3 = layer_warp(basicblock, res2, 8, 16, n, 2)
    pool = fluid.layers.pool2d(input=res3, pool_size=8, pool_type='avg', pool_stride=1)
    return fluid.layers.fc(input=pool, size=10, act='softmax')


def inference_network():
    images = fluid.layers.data(name='pixel', shape=[3, 32, 32], dtype='float32')
    return resnet_cifar10(images)


def train_network(predict):
    label = fluid.layers.data(name='label', shape=[1], dtype='int64')
    avg_cost = fluid.layers.mean(fluid.layers.cross_entropy(input=predict, label=label))
    accuracy = fluid.layers.accuracy(input=predict, label=label)
    return [avg_cost, accuracy]


def optimizer_program():
    return fluid.optimizer.Momentum(
        learning_rate=fluid.layers.piecewise_decay(boundaries=[4, 8], values=[0.01, 0.005, 0.001]),
        momentum=0.9, regularization=fluid.regularizer.L2Decay(1e-4))


place = fluid.CPUPlace()
train_reader = paddle.batch(paddle.dataset.cifar.train10(), batch_size=3)
test_reader = paddle.batch(paddle.dataset.cifar.test10(), batch_size=2)
predict = inference_network()
avg_cost, acc = train_network(predict)
test_program = fluid.default_main_program().clone(for_test=True)
optimizer = optimizer_program()
optimizer.minimize(avg_cost)
exe = fluid.Executor(place)
exe.run(fluid.default_startup_program())
feed_var_list = [fluid.default_main_program().global_block().var(name) for name in ['pixel', 'label']]
feeder = fluid.DataFeeder(feed_list=feed_var_list, place=place)
for pass_id in range(5):
    for step_id, data_train in enumerate(train_reader()):
        lr = optimizer._global_learning_rate()
        loss, accuracy, rate = exe.run(feed=feeder.feed(data_train), fetch_list=[avg_cost, acc, lr])
        print("Pass %d, Step %d, Cost %f, Acc %f, Lr %f" % (pass_id, step_id, loss[0], accuracy[0], rate[0]))
    totals = 2 * [0]
    for tid, test_data in enumerate(test_reader()):
        outs = exe.run(program=test_program, feed=feeder.feed(test_data), fetch_list=[avg_cost, acc])
        totals = [x[0] + x[1][0] for x in zip(totals, outs)]
    print('Test with Pass {0}, Loss {1:2.4}, Acc {2:2.2}'.format(pass_id, totals[0] / (tid + 1), totals[1] / (tid + 1)))
fluid.io.save_inference_model("resnet.model", ["pixel"], [predict], exe)
print(sorted(set(op.type for op in test_program.global_block().ops)))
