import sys

import numpy
import paddle.fluid as fluid

use_cuda = "--use_cuda" in sys.argv

x = fluid.layers.data(name='x', shape=[13], dtype='float32')
y = fluid.layers.data(name='y', shape=[1], dtype='float32')
y_predict = fluid.layers.fc(input=x, size=1, act=None)
cost = fluid.layers.square_error_cost(input=y_predict, label=y)
avg_loss = fluid.layers.mean(cost)
sgd_optimizer = fluid.optimizer.SGD(learning_rate=0.001)
sgd_optimizer.minimize(avg_loss)

place = fluid.CUDAPlace(0) if use_cuda else fluid.CPUPlace()
exe = fluid.Executor(place)
exe.run(fluid.default_startup_program())

exec_strategy = fluid.ExecutionStrategy()
exec_strategy.num_threads = 4
exec_strategy.num_iteration_per_drop_scope = 10
exec_strategy.num_iteration_per_run = 1
build_strategy = fluid.BuildStrategy()
build_strategy.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.AllReduce
train_exe = fluid.ParallelExecutor(use_cuda=use_cuda, loss_name=avg_loss.name, exec_strategy=exec_strategy,
                                   build_strategy=build_strategy)
draws = numpy.random.RandomState(0)
for step in range(5):
    feed = {'x': draws.rand(8, 13).astype('float32'), 'y': draws.rand(8, 1).astype('float32')}
    loss, predicted = train_exe.run(fetch_list=[avg_loss.name, y_predict.name], feed=feed)
    print("step %d loss %.6f first %.6f persistable %s" % (step, loss[0], predicted[0, 0], y_predict.persistable))
print(exec_strategy.num_threads, exec_strategy.num_iteration_per_drop_scope, train_exe.device_count)
