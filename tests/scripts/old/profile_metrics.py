from __future__ import print_function

import os
import time

import numpy as np
import paddle.fluid as fluid
import paddle.fluid.profiler as profiler
from paddle.fluid import metrics

x = fluid.layers.data('x', [8])
label = fluid.layers.data('label', [1], dtype='int64')
prob = fluid.layers.fc(fluid.layers.fc(x, 8, act='relu'), 2, act='softmax')
loss = fluid.layers.mean(fluid.layers.cross_entropy(prob, label))
acc = fluid.layers.accuracy(prob, label)
fluid.optimizer.Adamax(0.05).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())

accuracy, auc = metrics.Accuracy(), metrics.Auc(name="auc")
precision, recall = metrics.Precision(), metrics.Recall()
both = metrics.CompositeMetric()
both.add_metric(precision)
both.add_metric(recall)
rng = np.random.RandomState(14)
batch_times = []
for step in range(8):
    pixels = rng.randn(16, 8).astype('float32')
    marks = (pixels[:, :1] + pixels[:, 1:2] > 0).astype('int64')
    start = time.time()
    prob_v, loss_v, acc_v = exe.run(feed={'x': pixels, 'label': marks}, fetch_list=[prob, loss, acc])
    batch_times.append(time.time() - start)
    accuracy.update(value=acc_v, weight=len(pixels))
    auc.update(preds=prob_v, labels=marks)
    both.update(preds=prob_v[:, 1:], labels=marks)
    print("iter %d loss %.5f acc %.4f time: %.3f" % (step, loss_v, acc_v, batch_times[-1]))
print("accuracy %.5f auc %.5f precision %.5f recall %.5f" % (accuracy.eval(), auc.eval(), precision.eval(), recall.eval()))
print("composite", [round(float(v), 5) for v in both.eval()], type(both.eval()).__name__)
for metric in (accuracy, precision, recall):
    metric.reset()
print(precision.eval(), recall.eval(), sorted(metrics.Accuracy().get_config()))

distance = metrics.EditDistance("edit")
distance.update(np.array([[0.0], [2.0], [1.0]]), 3)
distance.update(np.array([[0.0]]), 1)
print("edit distance %.4f, with errors %.4f" % distance.eval())
chunk = metrics.ChunkEvaluator()
chunk.update(10, 9, 8)
chunk.update(2, 3, 2)
print("chunk %.5f %.5f %.5f" % chunk.eval())

average = fluid.average.WeightedAverage()
average.add(value=2.0, weight=1)
average.add(value=4.0, weight=2)
print("average %.4f" % average.eval())

with profiler.profiler('CPU', 'total', 'profile_of_steps') as prof:
    for _ in range(3):
        exe.run(feed={'x': pixels, 'label': marks}, fetch_list=[loss])
profiler.start_profiler('CPU')
exe.run(feed={'x': pixels, 'label': marks}, fetch_list=[loss])
profiler.reset_profiler()
profiler.stop_profiler('calls', 'profile_again')
print("profiled", sorted(name for name in os.listdir(".") if name.startswith("profile") and "." not in name))
