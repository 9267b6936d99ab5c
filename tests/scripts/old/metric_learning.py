from __future__ import print_function

import numpy as np
import paddle.fluid as fluid


class TripletLoss(object):
    def __init__(self, margin=0.1):
        self.margin = margin

    def loss(self, input):
        reshape = fluid.layers.reshape(input, shape=[-1, 3, input.shape[1]])
        output = fluid.layers.split(reshape, num_or_sections=3, dim=1)
        anchor = fluid.layers.squeeze(input=output[0], axes=[1])
        positive = fluid.layers.squeeze(input=output[1], axes=[1])
        negative = fluid.layers.squeeze(input=output[2], axes=[1])
        a_p = fluid.layers.square(anchor - positive)
        a_n = fluid.layers.square(anchor - negative)
        a_p = fluid.layers.reduce_sum(a_p, dim=1)
        a_n = fluid.layers.reduce_sum(a_n, dim=1)
        return fluid.layers.relu(a_p + self.margin - a_n)


class ArcMargin(object):
    def __init__(self, class_dim, margin=0.15, scale=10.0):
        self.class_dim, self.margin, self.scale = class_dim, margin, scale

    def loss(self, input, label):
        input = fluid.layers.l2_normalize(input, axis=1)
        weight = fluid.layers.create_parameter(shape=[self.class_dim, input.shape[1]], dtype='float32',
                                               name='arc_weight', attr=fluid.ParamAttr(
                                                   initializer=fluid.initializer.Xavier()))
        weight_norm = fluid.layers.sqrt(fluid.layers.reduce_sum(fluid.layers.square(weight), dim=1))
        weight = fluid.layers.elementwise_div(weight, weight_norm, axis=0)
        cos = fluid.layers.mul(input, fluid.layers.transpose(weight, perm=[1, 0]))
        one_hot = fluid.layers.one_hot(label, self.class_dim)
        theta = fluid.layers.acos(fluid.layers.clip(cos, -0.9999, 0.9999)) + self.margin * one_hot
        logit = fluid.layers.cos(theta) * self.scale
        return fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(logit, label)), logit


def features(image):
    hidden = fluid.layers.fc(image, size=16, act='relu')
    return fluid.layers.fc(hidden, size=6, name="embedding")


def recall_topk(fea, lab, k=1):
    fea = fea / np.linalg.norm(fea, axis=1, keepdims=True)
    order = np.argsort(-fea.dot(fea.T), axis=1)[:, 1:k + 1]
    return float((lab[order] == lab[:, None]).any(1).mean())


def run(kind):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        image = fluid.layers.data(name='image', shape=[10], dtype='float32')
        label = fluid.layers.data(name='label', shape=[1], dtype='int64')
        out = features(image)
        if kind == "triplet":
            avg_cost = fluid.layers.mean(TripletLoss().loss(out))
        elif kind == "arc":
            avg_cost, _ = ArcMargin(4).loss(out, label)
        elif kind == "center":
            cost = fluid.layers.center_loss(out, label, num_classes=4, alpha=0.1, update_center=True,
                                            param_attr=fluid.initializer.Xavier(uniform=False))
            avg_cost = fluid.layers.mean(cost)
        else:
            half = fluid.layers.split(out, 2, dim=0)
            marks = fluid.layers.split(fluid.layers.cast(label, 'float32'), 2, dim=0)
            avg_cost = fluid.layers.npair_loss(half[0], half[1], fluid.layers.reshape(marks[0], [6]), l2_reg=0.002)
        test = main.clone(for_test=True)
        fluid.optimizer.Momentum(learning_rate=fluid.layers.cosine_decay(0.05, 5, 4), momentum=0.9,
                                 regularization=fluid.regularizer.L2Decay(5e-4)).minimize(avg_cost)
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        rng = np.random.RandomState(1)
        centers = rng.randn(4, 10)
        for step in range(10):
            a, b = rng.randint(0, 4, 4), rng.randint(1, 4, 4)
            lab = np.stack([a, a, (a + b) % 4], 1).reshape(-1, 1)
            pixels = (centers[lab[:, 0]] + 0.5 * rng.randn(12, 10)).astype('float32')
            cost, fea = exe.run(main, feed={'image': pixels, 'label': lab.astype('int64')}, fetch_list=[avg_cost, out])
            print("{} trainbatch {}: loss {:.6f} recall {:.3f}".format(
                kind, step, float(cost), recall_topk(fea, lab[:, 0])))
        cost, = exe.run(test, feed={'image': pixels, 'label': lab.astype('int64')}, fetch_list=[avg_cost])
        print("test %.6f" % cost)


for kind in ("triplet", "arc", "npair", "center"):
    run(kind)
