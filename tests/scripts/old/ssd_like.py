from __future__ import print_function

import numpy as np
import paddle.fluid as fluid
from paddle.fluid.param_attr import ParamAttr
from paddle.fluid.regularizer import L2Decay

CLASSES, SIZE = 4, 64


def conv_bn(input, filter_size, num_filters, stride, padding, num_groups=1, act='relu'):
    conv = fluid.layers.conv2d(
        input=input, num_filters=num_filters, filter_size=filter_size, stride=stride, padding=padding,
        groups=num_groups, act=None, use_cudnn=True, param_attr=ParamAttr(initializer=fluid.initializer.MSRA()),
        bias_attr=False)
    return fluid.layers.batch_norm(input=conv, act=act)


def depthwise_separable(input, num_filters, num_groups, stride):
    depthwise_conv = conv_bn(input, 3, num_groups, stride, 1, num_groups)
    return conv_bn(depthwise_conv, 1, num_filters, 1, 0)


def mobile_net(image):
    tmp = conv_bn(image, 3, 4, 2, 1)
    tmp = depthwise_separable(tmp, 8, 4, 2)
    module11 = depthwise_separable(tmp, 8, 8, 2)
    module13 = depthwise_separable(module11, 12, 8, 2)
    module14 = depthwise_separable(module13, 12, 12, 2)
    return fluid.layers.multi_box_head(
        inputs=[module11, module13, module14], image=image, num_classes=CLASSES, min_ratio=20, max_ratio=90,
        min_sizes=[12.0, 20.0, 40.0], max_sizes=[[], 40.0, 56.0], aspect_ratios=[[2.], [2., 3.], [2.]],
        base_size=SIZE, offset=0.5, flip=True)


image = fluid.data(name='image', shape=[None, 3, SIZE, SIZE], dtype='float32')
gt_box = fluid.data(name='gt_box', shape=[None, 4], dtype='float32', lod_level=1)
gt_label = fluid.data(name='gt_label', shape=[None, 1], dtype='int32', lod_level=1)
difficult = fluid.data(name='gt_difficult', shape=[None, 1], dtype='int32', lod_level=1)
locs, confs, box, box_var = mobile_net(image)
nmsed_out = fluid.layers.detection_output(locs, confs, box, box_var, nms_threshold=0.45)
loss = fluid.layers.ssd_loss(locs, confs, gt_box, gt_label, box, box_var)
loss = fluid.layers.reduce_sum(loss)
test_program = fluid.default_main_program().clone(for_test=True)
with fluid.program_guard(test_program):
    map_eval = fluid.metrics.DetectionMAP(
        nmsed_out, gt_label, gt_box, difficult, CLASSES, overlap_threshold=0.5, evaluate_difficult=False,
        ap_version='11point')
cur_map, accum_map = map_eval.get_map_var()
optimizer = fluid.optimizer.RMSProp(learning_rate=fluid.layers.piecewise_decay([4, 8], [0.002, 0.001, 0.0005]),
                                    regularization=L2Decay(0.00005))
optimizer.minimize(loss)
print(locs.shape[1:], confs.shape[1:], box.shape)

exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())


def samples(seed, count):
    rng = np.random.RandomState(seed)
    for _ in range(count):
        pixels = rng.rand(3, SIZE, SIZE).astype('float32')
        boxes, labels = [], []
        for _ in range(rng.randint(1, 4)):
            x, y = rng.uniform(0, 0.6, 2)
            w, h = rng.uniform(0.15, 0.4, 2)
            boxes.append([x, y, x + w, y + h])
            labels.append([int(rng.randint(1, CLASSES))])
            pixels[labels[-1][0] - 1, int(y * SIZE):int((y + h) * SIZE), int(x * SIZE):int((x + w) * SIZE)] += 1
        yield pixels, boxes, labels, [[0]] * len(boxes)


feeder = fluid.DataFeeder([image, gt_box, gt_label, difficult], fluid.CPUPlace())
data = list(samples(3, 12))
for epoch in range(3):
    for k in range(0, 12, 4):
        loss_v, = exe.run(feed=feeder.feed(data[k:k + 4]), fetch_list=[loss])
        print("Epoch {:d}, batch {:d}, loss {:.5f}".format(epoch, k // 4, np.mean(np.array(loss_v))))
map_eval.reset(exe)
for k in range(0, 12, 4):
    found, map_v = exe.run(test_program, feed=feeder.feed(data[k:k + 4]), fetch_list=[nmsed_out, accum_map],
                           return_numpy=False)
    print("boxes", np.array(found).shape, found.recursive_sequence_lengths(), "map %.5f" % np.array(map_v)[0])
