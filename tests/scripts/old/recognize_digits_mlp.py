from __future__ import print_function

import os

import numpy as np
import paddle
import paddle.fluid as fluid
from paddle.utils.plot import Ploter

BATCH_SIZE = 16
PASS_NUM = 2
os.environ["DISABLE_PLOT"] = "True"


def loss_net(hidden, label):
    prediction = fluid.layers.fc(input=hidden, size=10, act='softmax')
    loss = fluid.layers.cross_entropy(input=prediction, label=label)
    avg_loss = fluid.layers.mean(loss)
    acc = fluid.layers.accuracy(input=prediction, label=label)
    return prediction, avg_loss, acc


def multilayer_perceptron(img, label):
    img = fluid.layers.fc(input=img, size=64, act='tanh')
    hidden = fluid.layers.fc(input=img, size=32, act='relu')
    return loss_net(hidden, label)


def train(use_cuda, save_dirname):
    img = fluid.layers.data(name='img', shape=[1, 28, 28], dtype='float32')
    label = fluid.layers.data(name='label', shape=[1], dtype='int64')
    prediction, avg_loss, acc = multilayer_perceptron(img, label)
    test_program = fluid.default_main_program().clone(for_test=True)
    optimizer = fluid.optimizer.Adam(learning_rate=0.001)
    optimizer.minimize(avg_loss)

    place = fluid.CUDAPlace(0) if use_cuda else fluid.CPUPlace()
    exe = fluid.Executor(place)
    train_reader = paddle.batch(paddle.dataset.mnist.train(), batch_size=BATCH_SIZE)
    test_reader = paddle.batch(paddle.dataset.mnist.test(), batch_size=BATCH_SIZE)
    feeder = fluid.DataFeeder(feed_list=[img, label], place=place)
    exe.run(fluid.default_startup_program())

    plot = Ploter("Train cost", "Test cost")
    lists = []
    step = 0
    for epoch_id in range(PASS_NUM):
        for step_id, data in enumerate(train_reader()):
            metrics = exe.run(fluid.default_main_program(), feed=feeder.feed(data), fetch_list=[avg_loss, acc])
            if step % 2 == 0:
                print("Pass %d, Batch %d, Cost %f" % (epoch_id, step_id, metrics[0]))
                plot.append("Train cost", step, metrics[0])
            step += 1
        acc_set, avg_loss_set = [], []
        for test_data in test_reader():
            acc_np, avg_loss_np = exe.run(program=test_program, feed=feeder.feed(test_data), fetch_list=[acc, avg_loss])
            acc_set.append(float(acc_np))
            avg_loss_set.append(float(avg_loss_np))
        acc_val_mean, avg_loss_val_mean = np.array(acc_set).mean(), np.array(avg_loss_set).mean()
        print("Test with Epoch %d, avg_cost: %s, acc: %s" % (epoch_id, avg_loss_val_mean, acc_val_mean))
        lists.append((epoch_id, avg_loss_val_mean, acc_val_mean))
    fluid.io.save_inference_model(save_dirname, ["img"], [prediction], exe, model_filename=None, params_filename=None)
    best = sorted(lists, key=lambda item: float(item[1]))[0]
    print('Best pass is %s, testing Avgcost is %s' % (best[0], best[1]))
    print('The classification accuracy is %.2f%%' % (float(best[2]) * 100))


def infer(use_cuda, save_dirname):
    place = fluid.CUDAPlace(0) if use_cuda else fluid.CPUPlace()
    exe = fluid.Executor(place)
    with fluid.scope_guard(fluid.core.Scope()):
        [inference_program, feed_target_names, fetch_targets] = fluid.io.load_inference_model(save_dirname, exe)
        image, label = next(paddle.dataset.mnist.test()())
        tensor_img = np.array(image).reshape(1, 1, 28, 28).astype(np.float32)
        results = exe.run(inference_program, feed={feed_target_names[0]: tensor_img}, fetch_list=fetch_targets)
        lab = np.argsort(results)
        print("Inference result is: %d, label %d, p %.6f" % (lab[0][0][-1], label, results[0][0, lab[0][0][-1]]))


if __name__ == '__main__':
    train(use_cuda=False, save_dirname="recognize_digits_mlp.inference.model")
    infer(use_cuda=False, save_dirname="recognize_digits_mlp.inference.model")
