import os
import sys

os.environ['CPU_NUM'] = "2"

import numpy  # noqa: E402
import paddle.fluid as fluid  # noqa: E402

use_cuda = "--use_cuda" in sys.argv
SLOTS, VOCAB = 3, 200


def ctr_dnn():
    slots = [fluid.layers.data(name="slot_%d" % i, shape=[1], dtype="int64", lod_level=1) for i in range(SLOTS)]
    dense = fluid.layers.data(name="dense", shape=[4], dtype="float32")
    label = fluid.layers.data(name="click", shape=[1], dtype="int64")
    embedded = [fluid.layers.sequence_pool(fluid.layers.embedding(
        input=slot, size=[VOCAB, 6], is_sparse=True, param_attr=fluid.ParamAttr(name="embedding")), "sum")
        for slot in slots]
    hidden = fluid.layers.concat(embedded + [dense], axis=1)
    for size in (16, 8):
        hidden = fluid.layers.fc(hidden, size, act="relu")
    predict = fluid.layers.fc(hidden, 2, act="softmax")
    cost = fluid.layers.mean(fluid.layers.cross_entropy(predict, label))
    return slots + [dense, label], cost


inputs, cost = ctr_dnn()
fluid.optimizer.SGD(learning_rate=0.1).minimize(cost)
place = fluid.CUDAPlace(0) if use_cuda else fluid.CPUPlace()
exe = fluid.Executor(place)
exe.run(fluid.default_startup_program())

exec_strategy = fluid.ExecutionStrategy()
exec_strategy.num_threads = int(os.environ['CPU_NUM'])
exec_strategy.num_iteration_per_drop_scope = 1
build_strategy = fluid.BuildStrategy()
build_strategy.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.Reduce
build_strategy.gradient_scale_strategy = fluid.BuildStrategy.GradientScaleStrategy.CoeffNumDevice
program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
    loss_name=cost.name, build_strategy=build_strategy, exec_strategy=exec_strategy)

draws = numpy.random.RandomState(2)
feeder = fluid.DataFeeder(inputs, place)
for step in range(10):
    rows = []
    for _ in range(8):
        ids = [draws.randint(1, VOCAB, draws.randint(1, 4)).tolist() for _ in range(SLOTS)]
        rows.append(ids + [draws.rand(4).astype("float32"), int(ids[0][0] > VOCAB // 2)])
    loss, = exe.run(program, feed=feeder.feed(rows), fetch_list=[cost])
    print("step %d loss %s" % (step, " ".join("%.5f" % v for v in numpy.ravel(loss))))
table = numpy.array(fluid.global_scope().find_var("embedding").get_tensor())
print("table %.5f" % numpy.abs(table).sum())
