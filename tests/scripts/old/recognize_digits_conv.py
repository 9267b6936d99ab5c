from __future__ import print_function

import argparse

import numpy as np
import paddle
import paddle.fluid as fluid

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=10)
parser.add_argument("--parallel", type=int, default=1)
args = parser.parse_args()


def convolutional_neural_network(img):
    conv_pool_1 = fluid.nets.simple_img_conv_pool(
        input=img, filter_size=5, num_filters=6, pool_size=2, pool_stride=2, act="relu")
    conv_pool_1 = fluid.layers.batch_norm(conv_pool_1)
    conv_pool_2 = fluid.nets.simple_img_conv_pool(
        input=conv_pool_1, filter_size=5, num_filters=8, pool_size=2, pool_stride=2, act="relu")
    return fluid.layers.fc(input=conv_pool_2, size=10, act='softmax')


def build(img, label):
    prediction = convolutional_neural_network(img)
    cost = fluid.layers.mean(fluid.layers.cross_entropy(input=prediction, label=label))
    batch_size = fluid.layers.create_tensor(dtype='int64')
    acc = fluid.layers.accuracy(input=prediction, label=label, total=batch_size)
    return cost, acc, batch_size


main_prog, startup_prog = fluid.Program(), fluid.Program()
with fluid.program_guard(main_prog, startup_prog):
    with fluid.unique_name.guard():
        img = fluid.layers.data(name='pixel', shape=[1, 28, 28], dtype='float32')
        label = fluid.layers.data(name='label', shape=[1], dtype='int64')
        avg_cost, batch_acc, batch_size_tensor = build(img, label)
        inference_program = main_prog.clone(for_test=True)
        opt = fluid.optimizer.AdamOptimizer(learning_rate=0.001, beta1=0.9, beta2=0.999)
        opt.minimize(avg_cost)

exe = fluid.Executor(fluid.CPUPlace())
exe.run(startup_prog)
if args.parallel:
    train_exe = fluid.ParallelExecutor(use_cuda=False, loss_name=avg_cost.name, main_program=main_prog)
    test_exe = fluid.ParallelExecutor(use_cuda=False, main_program=inference_program, share_vars_from=train_exe)
feeder = fluid.DataFeeder(feed_list=['pixel', 'label'], place=fluid.CPUPlace(), program=main_prog)
train_reader = paddle.batch(
    paddle.reader.buffered(paddle.dataset.mnist.train(), size=50), batch_size=args.batch_size, drop_last=True)
test_reader = paddle.batch(paddle.dataset.mnist.test(), batch_size=args.batch_size)

accuracy = fluid.average.WeightedAverage()
for pass_id in range(2):
    accuracy.reset()
    for batch_id, data in enumerate(train_reader()):
        loss, acc = train_exe.run([avg_cost.name, batch_acc.name], feed=feeder.feed(data))
        accuracy.add(value=np.array(acc), weight=len(data))
        print("Pass %d, batch %d, loss %s, acc %s" % (pass_id, batch_id, np.array(loss), np.array(acc)))
    print("pass_acc = %s" % accuracy.eval())
    losses, accs = [], []
    for data in test_reader():
        loss, acc = test_exe.run(fetch_list=[avg_cost.name, batch_acc.name], feed=feeder.feed(data))
        losses.append(np.mean(loss))
        accs.append(np.mean(acc))
    print("test loss %.6f acc %.4f" % (np.mean(losses), np.mean(accs)))
moving = [v.name for v in main_prog.list_vars() if v.persistable and "batch_norm" in v.name]
print(sorted(moving))
mean = fluid.global_scope().find_var("batch_norm_0.w_1").get_tensor()
print("moving mean", " ".join("%.5f" % v for v in np.array(mean)))
