import os
import sys

use_cuda = "--use_cuda" in sys.argv
if not use_cuda:
    os.environ['CPU_NUM'] = "2"

import numpy  # noqa: E402
import paddle.fluid as fluid  # noqa: E402

place = fluid.CUDAPlace(0) if use_cuda else fluid.CPUPlace()
exe = fluid.Executor(place)
data = fluid.layers.data(name='X', shape=[1], dtype='float32')
hidden = fluid.layers.fc(input=data, size=10)
loss = fluid.layers.mean(hidden)
adam = fluid.optimizer.Adam(learning_rate=0.01)
adam.minimize(loss)

startup = fluid.default_startup_program()
exe.run(startup)
x = numpy.random.RandomState(7).random_sample(size=(10, 1)).astype('float32')

# one card
for step in range(3):
    loss_data, = exe.run(fluid.default_main_program(), feed={"X": x}, fetch_list=[loss.name])
    print("one, step %d: %.6f" % (step, loss_data[0]))

# compiled, one card
compiled = fluid.CompiledProgram(fluid.default_main_program())
loss_data, = exe.run(compiled, feed={"X": x}, fetch_list=[loss.name])
print("compiled: %.6f" % loss_data[0])

# several cards
places = fluid.cuda_places() if use_cuda else fluid.cpu_places()
several = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(loss_name=loss.name)
for step in range(4):
    loss_data, = exe.run(several, feed={"X": x}, fetch_list=[loss.name])
    print("several, step %d: %.6f" % (step, numpy.mean(loss_data)))
rows = [{"X": part} for part in numpy.split(x, len(places))]
loss_data, = exe.run(several, feed=rows, fetch_list=[loss.name])
print("a list: %.6f" % numpy.mean(loss_data))

# several cards, by the old class
train_exe = fluid.ParallelExecutor(use_cuda=use_cuda, loss_name=loss.name)
loss_data, = train_exe.run(fetch_list=[loss.name], feed={"X": x})
print("parallel executor: %.6f" % numpy.mean(loss_data))
