from __future__ import print_function

import numpy as np
import paddle.fluid as fluid


def tower(text, dict_size, name):
    emb = fluid.layers.embedding(text, [dict_size, 8], param_attr=fluid.ParamAttr(
        name="shared_emb", initializer=fluid.initializer.Uniform(-0.1, 0.1), learning_rate=0.5))
    pooled = fluid.layers.sequence_pool(emb, "sum")
    act = fluid.layers.softsign(pooled)
    return fluid.layers.fc(act, 6, param_attr=fluid.ParamAttr(name="shared_w"), bias_attr=fluid.ParamAttr(name="shared_b"),
                           act="tanh", name=name)


def train_net(dict_size, margin=0.2):
    query = fluid.layers.data("query", [1], dtype="int64", lod_level=1)
    pos = fluid.layers.data("pos", [1], dtype="int64", lod_level=1)
    neg = fluid.layers.data("neg", [1], dtype="int64", lod_level=1)
    vectors = [tower(t, dict_size, n) for t, n in ((query, "q"), (pos, "p"), (neg, "n"))]
    cos_pos = fluid.layers.cos_sim(vectors[0], vectors[1])
    cos_neg = fluid.layers.cos_sim(vectors[0], vectors[2])
    part1 = fluid.layers.elementwise_sub(
        fluid.layers.fill_constant_batch_size_like(input=cos_pos, shape=[-1, 1], value=margin, dtype='float32'), cos_pos)
    part2 = fluid.layers.elementwise_add(part1, cos_neg)
    part3 = fluid.layers.elementwise_max(
        fluid.layers.fill_constant_batch_size_like(input=part2, shape=[-1, 1], value=0.0, dtype='float32'), part2)
    avg_cost = fluid.layers.mean(part3)
    less = fluid.layers.cast(fluid.layers.less_than(cos_neg, cos_pos), dtype='float32')
    correct = fluid.layers.reduce_sum(less)
    return [query, pos, neg], avg_cost, correct, cos_pos


def reader():
    rng = np.random.RandomState(10)
    for _ in range(20):
        words = rng.randint(0, 15, rng.randint(1, 5))
        yield words.tolist(), ((words + 1) % 15).tolist(), rng.randint(15, 30, rng.randint(1, 5)).tolist()


startup = fluid.Program()
train_prog, infer_prog = fluid.Program(), fluid.Program()
with fluid.program_guard(train_prog, startup), fluid.unique_name.guard():
    inputs, cost, correct, _ = train_net(30)
    fluid.optimizer.SGD(0.5).minimize(cost)
with fluid.program_guard(infer_prog, startup), fluid.unique_name.guard():
    infer_inputs, infer_cost, infer_correct, cos_pos = train_net(30)
infer_prog = infer_prog.clone(for_test=True)
print([p.name for p in train_prog.global_block().all_parameters()])

exe = fluid.Executor(fluid.CPUPlace())
exe.run(startup)
feeder = fluid.DataFeeder(inputs, fluid.CPUPlace(), program=train_prog)
data = list(reader())
for epoch in range(4):
    for k in range(0, 20, 5):
        cost_v, right = exe.run(train_prog, feed=feeder.feed(data[k:k + 5]), fetch_list=[cost, correct])
        print("Epoch: %d, loss: %.6f, correct: %d" % (epoch, cost_v[0], right[0]))
    pn = [exe.run(infer_prog, feed=feeder.feed(data[k:k + 5]), fetch_list=[infer_correct])[0].item() for k in (0, 5)]
    print("infer", pn)
value, = exe.run(infer_prog, feed=feeder.feed(data[:3]), fetch_list=[cos_pos])
print(" ".join("%.5f" % v for v in value.ravel()))

param = train_prog.global_block().var("shared_w")
print(type(param).__name__, param.trainable, param.optimize_attr, param.shape, param.regularizer)
print(train_prog.global_block().var("shared_emb").optimize_attr)
old = np.array(fluid.global_scope().find_var("shared_w").get_tensor())
other = fluid.Scope()
with fluid.scope_guard(other):
    exe.run(startup)
    fluid.global_scope().find_var("shared_w").get_tensor().set(old, fluid.CPUPlace())
    print("warm start %.5f" % exe.run(infer_prog, feed=feeder.feed(data[:5]), fetch_list=[infer_cost])[0])
