from __future__ import print_function

import os

import numpy as np
import paddle
import paddle.fluid as fluid

USE_GPU = False


def stacked_lstm_net(data, label, input_dim, class_dim=2, emb_dim=8, hid_dim=6, stacked_num=3):
    assert stacked_num % 2 == 1
    emb = fluid.layers.embedding(input=data, size=[input_dim, emb_dim], is_sparse=True)
    fc1 = fluid.layers.fc(input=emb, size=hid_dim * 4)
    lstm1, cell1 = fluid.layers.dynamic_lstm(input=fc1, size=hid_dim * 4)
    inputs = [fc1, lstm1]
    for i in range(2, stacked_num + 1):
        fc = fluid.layers.fc(input=inputs, size=hid_dim * 4)
        lstm, cell = fluid.layers.dynamic_lstm(input=fc, size=hid_dim * 4, is_reverse=(i % 2) == 0)
        inputs = [fc, lstm]
    fc_last = fluid.layers.sequence_pool(input=inputs[0], pool_type='max')
    lstm_last = fluid.layers.sequence_pool(input=inputs[1], pool_type='max')
    prediction = fluid.layers.fc(input=[fc_last, lstm_last], size=class_dim, act='softmax')
    cost = fluid.layers.cross_entropy(input=prediction, label=label)
    return fluid.layers.mean(cost), fluid.layers.accuracy(input=prediction, label=label), prediction


def reader_creator(vocab, count, seed):
    def reader():
        rng = np.random.RandomState(seed)
        for _ in range(count):
            n = rng.randint(2, 9)
            words = rng.randint(0, vocab, n)
            yield words.tolist(), int(words.mean() > vocab / 2)
    return reader


def main():
    vocab = 40
    words = fluid.data(name="words", shape=[None, 1], dtype="int64", lod_level=1)
    label = fluid.data(name="label", shape=[None, 1], dtype="int64")
    avg_cost, acc, prediction = stacked_lstm_net(words, label, vocab)
    fluid.clip.set_gradient_clip(fluid.clip.GradientClipByGlobalNorm(clip_norm=2.0))
    fluid.optimizer.Adagrad(learning_rate=0.05).minimize(avg_cost)
    place = fluid.CUDAPlace(0) if USE_GPU else fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(fluid.default_startup_program())
    feeder = fluid.DataFeeder([words, label], place)
    reader = fluid.io.batch(reader_creator(vocab, 48, 1), batch_size=8)
    for epoch in range(3):
        total_cost, total_acc, n = 0.0, 0.0, 0
        for batch in reader():
            c, a = exe.run(fluid.default_main_program(), feed=feeder.feed(batch), fetch_list=[avg_cost, acc])
            total_cost, total_acc, n = total_cost + c.item(), total_acc + a.item(), n + 1
        print("epoch {}: cost {:.6f} acc {:.4f}".format(epoch, total_cost / n, total_acc / n))
        dirname = os.path.join("stacked_lstm", "epoch" + str(epoch))
        if not os.path.isdir(dirname):
            os.makedirs(dirname)
        fluid.io.save_params(exe, dirname, main_program=fluid.default_main_program())
    print(sorted(os.listdir("stacked_lstm/epoch2")))


if __name__ == "__main__":
    main()
