import numpy as np
import paddle.fluid as fluid

VOCAB, DIM = 40, 12
word = fluid.layers.data('word', [1], dtype='int64')
near = fluid.layers.data('near', [1], dtype='int64')
emb = fluid.layers.embedding(word, [VOCAB, DIM], is_sparse=True, param_attr=fluid.ParamAttr(
    name='emb', initializer=fluid.initializer.Uniform(-0.5 / DIM, 0.5 / DIM)))
cost = fluid.layers.nce(
    input=emb, label=near, num_total_classes=VOCAB, num_neg_samples=5, sampler="log_uniform",
    param_attr=fluid.ParamAttr(name='nce_w', initializer=fluid.initializer.TruncatedNormal(scale=0.1)), bias_attr='nce_b')
loss = fluid.layers.mean(cost)
fluid.optimizer.Adam(0.02).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
losses = []
for step in range(200):
    words = np.random.randint(0, VOCAB, (32, 1))
    nears = (words + np.random.randint(1, 3, (32, 1))) % VOCAB
    losses.append(float(exe.run(feed={'word': words.astype('int64'), 'near': nears.astype('int64')},
                                fetch_list=[loss])[0]))
print("final loss %.5f" % np.mean(losses[-40:]))
