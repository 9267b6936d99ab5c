import numpy as np
import paddle
import paddle.fluid as fluid


def samples():
    for _ in range(400):
        row = np.random.rand(10).astype('float32')
        yield row, np.array([row[:3].sum() - row[3:5].sum()], 'float32')


x = fluid.layers.data('x', [10])
y = fluid.layers.data('y', [1])
hidden = fluid.layers.fc(x, 20, act='tanh')
hidden = fluid.layers.batch_norm(hidden)
predict = fluid.layers.fc(fluid.layers.dropout(hidden, 0.1), 1)
loss = fluid.layers.mean(fluid.layers.smooth_l1(predict, y))
test = fluid.default_main_program().clone(for_test=True)
fluid.optimizer.Momentum(0.02, 0.9).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
feeder = fluid.DataFeeder([x, y], fluid.CPUPlace())
reader = paddle.batch(paddle.reader.shuffle(samples, 200), 20)
for epoch in range(5):
    for data in reader():
        exe.run(feed=feeder.feed(data), fetch_list=[loss])
held = [exe.run(test, feed=feeder.feed(data), fetch_list=[loss])[0] for data in reader()]
print("final loss %.5f" % np.mean(held))
