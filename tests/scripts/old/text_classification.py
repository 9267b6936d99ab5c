from __future__ import print_function

import random

import numpy as np
import paddle
import paddle.fluid as fluid
from paddle.fluid.contrib.layers import BasicGRUUnit  # noqa: F401  many scripts import what they do not use

random.seed(90)
VOCAB = 50


def texts(seed, count):
    def reader():
        rng = np.random.RandomState(seed)
        for i in range(count):
            length = 1 + rng.randint(6)
            yield [str(w) for w in rng.randint(0, VOCAB, length)], int(i % 3 == 0)
    return reader


def to_ids(sample):
    words, label = sample
    return [int(w) for w in words], label


def bow_net(data, label, dict_dim, emb_dim=8, hid_dim=12, hid_dim2=8, class_dim=2):
    emb = fluid.layers.embedding(input=data, size=[dict_dim, emb_dim])
    bow = fluid.layers.sequence_pool(input=emb, pool_type='sum')
    bow_tanh = fluid.layers.tanh(bow)
    fc_1 = fluid.layers.fc(input=bow_tanh, size=hid_dim, act="tanh")
    fc_2 = fluid.layers.fc(input=fc_1, size=hid_dim2, act="tanh")
    prediction = fluid.layers.fc(input=[fc_2], size=class_dim, act="softmax")
    cost = fluid.layers.cross_entropy(input=prediction, label=label)
    return fluid.layers.mean(x=cost), fluid.layers.accuracy(input=prediction, label=label), prediction


def gru_net(data, label, dict_dim, emb_dim=8, hid_dim=8, class_dim=2):
    emb = fluid.layers.embedding(input=data, size=[dict_dim, emb_dim],
                                 param_attr=fluid.ParamAttr(learning_rate=2.0))
    fc0 = fluid.layers.fc(input=emb, size=hid_dim * 3)
    forward = fluid.layers.dynamic_gru(input=fc0, size=hid_dim, is_reverse=False)
    backward = fluid.layers.dynamic_gru(input=fc0, size=hid_dim, is_reverse=True)
    both = fluid.layers.concat([fluid.layers.sequence_last_step(forward), fluid.layers.sequence_first_step(backward),
                                fluid.layers.sequence_pool(forward, "average")], axis=1)
    prediction = fluid.layers.fc(input=fluid.layers.tanh(both), size=class_dim, act="softmax")
    cost = fluid.layers.cross_entropy(input=prediction, label=label)
    return fluid.layers.mean(x=cost), fluid.layers.accuracy(input=prediction, label=label), prediction


def prepare_data(mode):
    reader = texts(1, 30) if mode == "train" else texts(2, 11)
    reader = paddle.reader.map_readers(to_ids, reader)
    reader = paddle.reader.chain(reader, paddle.reader.map_readers(to_ids, texts(3, 6)))
    if mode == "train":
        reader = paddle.reader.shuffle(reader, buf_size=16)
    reader = paddle.reader.xmap_readers(lambda s: (s[0] + [0], s[1]), reader, 2, 4, order=True)
    return paddle.batch(paddle.reader.cache(reader) if mode != "train" else reader, batch_size=5)


def train(network):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        data = fluid.layers.data(name="words", shape=[1], dtype="int64", lod_level=1)
        label = fluid.layers.data(name="label", shape=[1], dtype="int64")
        cost, acc, _ = network(data, label, VOCAB)
        test_program = main.clone(for_test=True)
        fluid.optimizer.Adagrad(learning_rate=0.1, initial_accumulator_value=0.1).minimize(cost)
        place = fluid.CPUPlace()
        exe = fluid.Executor(place)
        feeder = fluid.DataFeeder(feed_list=[data, label], place=place)
        exe.run(startup)
    train_reader, test_reader = prepare_data("train"), prepare_data("test")
    for pass_id in range(3):
        data_size, data_count, total_acc, total_cost = 0, 0, 0.0, 0.0
        for batch in train_reader():
            avg_cost_np, avg_acc_np = exe.run(main, feed=feeder.feed(batch), fetch_list=[cost, acc])
            data_size = len(batch)
            total_acc += data_size * float(avg_acc_np)
            total_cost += data_size * float(avg_cost_np)
            data_count += data_size
        print("pass_id: %d, avg_acc: %f, avg_cost: %f" % (pass_id, total_acc / data_count, total_cost / data_count))
        held = [exe.run(test_program, feed=feeder.feed(b), fetch_list=[cost, acc]) for b in test_reader()]
        print("[test info] avg_acc: %f, avg_cost: %f" % (np.mean([h[1] for h in held]), np.mean([h[0] for h in held])))


for network in (bow_net, gru_net):
    print(network.__name__)
    train(network)
