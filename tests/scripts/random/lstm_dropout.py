import numpy as np
import paddle.fluid as fluid

words = fluid.layers.data('words', [1], dtype='int64', lod_level=1)
label = fluid.layers.data('label', [1], dtype='int64')
emb = fluid.layers.embedding(words, [30, 8])
emb = fluid.layers.dropout(emb, 0.2, dropout_implementation='upscale_in_train')
hidden, _ = fluid.layers.dynamic_lstm(fluid.layers.fc(emb, 32), 32, use_peepholes=False)
last = fluid.layers.dropout(fluid.layers.sequence_pool(hidden, 'max'), 0.3)
prob = fluid.layers.fc(last, 2, act='softmax')
loss = fluid.layers.mean(fluid.layers.cross_entropy(prob, label))
test = fluid.default_main_program().clone(for_test=True)
fluid.optimizer.Adagrad(0.1).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
feeder = fluid.DataFeeder([words, label], fluid.CPUPlace())


def batch(n):
    rows = []
    for _ in range(n):
        text = np.random.randint(0, 30, np.random.randint(2, 8))
        rows.append((text.tolist(), int((text < 5).any())))
    return feeder.feed(rows)


for step in range(80):
    exe.run(feed=batch(16), fetch_list=[loss])
print("final loss %.5f" % np.mean([exe.run(test, feed=batch(64), fetch_list=[loss])[0] for _ in range(4)]))
