import sys

import numpy
import paddle.fluid as fluid

use_cuda = "--use_cuda" in sys.argv
place = fluid.CUDAPlace(0) if use_cuda else fluid.CPUPlace()


def network():
    image = fluid.layers.data(name='image', shape=[20], dtype='float32')
    label = fluid.layers.data(name='label', shape=[1], dtype='int64')
    hidden = fluid.layers.fc(input=image, size=16, act='tanh')
    hidden = fluid.layers.batch_norm(hidden)
    prediction = fluid.layers.fc(input=hidden, size=4, act='softmax')
    return fluid.layers.mean(fluid.layers.cross_entropy(input=prediction, label=label))


train_program, startup, test_program = fluid.Program(), fluid.Program(), fluid.Program()
with fluid.program_guard(train_program, startup):
    with fluid.unique_name.guard():
        loss = network()
        test_program = train_program.clone(for_test=True)
        fluid.optimizer.Adam(learning_rate=0.01).minimize(loss)

exe = fluid.Executor(place)
exe.run(startup)
train_exe = fluid.ParallelExecutor(use_cuda=use_cuda, loss_name=loss.name, main_program=train_program)
test_exe = fluid.ParallelExecutor(use_cuda=use_cuda, main_program=test_program, share_vars_from=train_exe)

draws = numpy.random.RandomState(3)
images, labels = draws.rand(48, 20).astype('float32'), draws.randint(0, 4, (48, 1)).astype('int64')
for epoch in range(3):
    for k in range(0, 32, 8):
        loss_value, = train_exe.run([loss.name], feed={'image': images[k:k + 8], 'label': labels[k:k + 8]})
        print("train %.6f" % numpy.array(loss_value).mean())
    test_value, = test_exe.run([loss.name], feed={'image': images[32:], 'label': labels[32:]})
    print("epoch %d test %.6f" % (epoch, numpy.array(test_value).mean()))
feeds = [{'image': images[:8], 'label': labels[:8]} for _ in range(train_exe.device_count)]
loss_value, = train_exe.run([loss.name], feed=feeds)
print("a list of feeds %.6f" % numpy.array(loss_value).mean())
