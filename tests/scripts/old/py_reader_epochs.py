from __future__ import print_function

import numpy
import paddle
import paddle.fluid as fluid

BATCH = 6


def samples(seed, count):
    def reader():
        rng = numpy.random.RandomState(seed)
        for _ in range(count):
            x = rng.rand(12).astype("float32")
            yield x, int(x.sum() > 6)
    return reader


def network(is_train):
    reader = fluid.layers.py_reader(
        capacity=10, shapes=((-1, 12), (-1, 1)), dtypes=('float32', 'int64'),
        name="train_reader" if is_train else "test_reader", use_double_buffer=True)
    x, y = fluid.layers.read_file(reader)
    hidden = fluid.layers.fc(x, size=16, act='relu', param_attr="w1", bias_attr="b1")
    predict = fluid.layers.fc(hidden, size=2, act='softmax', param_attr="w2", bias_attr="b2")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(input=predict, label=y))
    acc = fluid.layers.accuracy(predict, y)
    return loss, acc, reader


train_prog, train_startup, test_prog, test_startup = (fluid.Program() for _ in range(4))
with fluid.program_guard(train_prog, train_startup):
    with fluid.unique_name.guard():
        train_loss, train_acc, train_reader = network(True)
        adam = fluid.optimizer.Adam(learning_rate=0.01)
        adam.minimize(train_loss)
with fluid.program_guard(test_prog, test_startup):
    with fluid.unique_name.guard():
        test_loss, test_acc, test_reader = network(False)
test_prog = test_prog.clone(for_test=True)

place = fluid.CUDAPlace(0) if fluid.core.is_compiled_with_cuda() else fluid.CPUPlace()
exe = fluid.Executor(place)
exe.run(train_startup)
exe.run(test_startup)
trainer = fluid.ParallelExecutor(use_cuda=False, loss_name=train_loss.name, main_program=train_prog)
tester = fluid.ParallelExecutor(use_cuda=False, share_vars_from=trainer, main_program=test_prog)
train_reader.decorate_paddle_reader(paddle.batch(samples(1, 31), BATCH))
test_reader.decorate_sample_list_generator(paddle.batch(samples(2, 13), BATCH))

for epoch_id in range(4):
    train_reader.start()
    step = 0
    try:
        while True:
            loss_np, acc_np = trainer.run([train_loss.name, train_acc.name])
            if step % 3 == 0:
                print("epoch %d step %d loss %.5f acc %.4f" % (epoch_id, step, numpy.mean(loss_np), numpy.mean(acc_np)))
            step += 1
    except fluid.core.EOFException:
        train_reader.reset()
    print("epoch", epoch_id, "steps", step)
    test_reader.start()
    losses = []
    try:
        while True:
            losses.append(numpy.mean(tester.run(fetch_list=[test_loss.name])[0]))
    except fluid.core.EOFException:
        test_reader.reset()
    print("test %d batches, loss %.5f" % (len(losses), numpy.mean(losses)))
