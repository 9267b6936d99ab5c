from __future__ import print_function

import os
import sys
import time

import numpy as np
import paddle
import paddle.fluid as fluid

os.environ['FLAGS_fraction_of_gpu_memory_to_use'] = '0.5'


def vgg_bn_drop(input, drop):
    def conv_block(ipt, num_filter, groups, dropouts):
        return fluid.nets.img_conv_group(
            input=ipt, pool_size=2, pool_stride=2, conv_num_filter=[num_filter] * groups, conv_filter_size=3,
            conv_act='relu', conv_with_batchnorm=True, conv_batchnorm_drop_rate=dropouts, pool_type='max')

    conv1 = conv_block(input, 4, 2, [drop, 0])
    conv2 = conv_block(conv1, 6, 2, [drop, 0])
    conv3 = conv_block(conv2, 8, 3, [drop, drop, 0])
    drop_x = fluid.layers.dropout(x=conv3, dropout_prob=drop)
    fc1 = fluid.layers.fc(input=drop_x, size=24, act=None)
    bn = fluid.layers.batch_norm(input=fc1, act='relu')
    drop2 = fluid.layers.dropout(x=bn, dropout_prob=drop)
    fc2 = fluid.layers.fc(input=drop2, size=24, act=None)
    return fluid.layers.fc(input=fc2, size=10, act='softmax')


def main(use_cuda=False, drop=0.0):
    images = fluid.data(name='pixel', shape=[None, 3, 32, 32], dtype='float32')
    label = fluid.data(name='label', shape=[None, 1], dtype='int64')
    predict = vgg_bn_drop(images, drop)
    cost = fluid.layers.cross_entropy(input=predict, label=label)
    avg_cost = fluid.layers.mean(x=cost)
    acc_top1 = fluid.layers.accuracy(input=predict, label=label, k=1)
    acc_top5 = fluid.layers.accuracy(input=predict, label=label, k=5)
    fluid.optimizer.Adam(learning_rate=0.001).minimize(avg_cost)

    place = fluid.CUDAPlace(0) if use_cuda else fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(fluid.default_startup_program())
    build_strategy = fluid.BuildStrategy()
    build_strategy.memory_optimize = False
    compiled = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
        loss_name=avg_cost.name, build_strategy=build_strategy)
    feeder = fluid.DataFeeder(place=place, feed_list=[images, label])
    reader = paddle.batch(paddle.dataset.cifar.train100(), batch_size=3)

    def fives():
        for batch in reader():
            yield [(pixels, int(kind) % 10) for pixels, kind in batch]

    for epoch in range(8):
        t1 = time.time()
        for data in fives():
            cost_v, top1, top5 = exe.run(compiled, feed=feeder.feed(data),
                                         fetch_list=[avg_cost.name, acc_top1.name, acc_top5.name])
        period = time.time() - t1
        print("[Epoch %d]: loss %s acc1 %s acc5 %s time %2.2f sec" % (epoch, cost_v[0], top1[0], top5[0], period))
        sys.stdout.flush()
    total = 0
    for block in fluid.default_main_program().blocks:
        for param in block.all_parameters():
            total += int(np.prod(param.shape))
    print("total parameters:", total)


if __name__ == '__main__':
    main()
