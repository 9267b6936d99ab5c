from __future__ import print_function

import contextlib

import numpy as np
import paddle
import paddle.fluid as fluid

CLASS_DIM, EMB_DIM, HID_DIM, BATCH_SIZE = 2, 8, 6, 4


def convolution_net(data, label, input_dim):
    emb = fluid.layers.embedding(input=data, size=[input_dim, EMB_DIM], is_sparse=True)
    conv_3 = fluid.nets.sequence_conv_pool(input=emb, num_filters=HID_DIM, filter_size=3, act="tanh", pool_type="sqrt")
    conv_4 = fluid.nets.sequence_conv_pool(input=emb, num_filters=HID_DIM, filter_size=4, act="tanh", pool_type="sqrt")
    prediction = fluid.layers.fc(input=[conv_3, conv_4], size=CLASS_DIM, act="softmax")
    cost = fluid.layers.cross_entropy(input=prediction, label=label)
    avg_cost = fluid.layers.mean(cost)
    accuracy = fluid.layers.accuracy(input=prediction, label=label)
    return avg_cost, accuracy, prediction


@contextlib.contextmanager
def new_scope_guard():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        with fluid.scope_guard(fluid.core.Scope()):
            yield


def train(word_dict):
    data = fluid.layers.data(name="words", shape=[1], dtype="int64", lod_level=1)
    label = fluid.layers.data(name="label", shape=[1], dtype="int64")
    cost, acc_out, prediction = convolution_net(data, label, input_dim=len(word_dict))
    test_program = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.Adagrad(learning_rate=0.02).minimize(cost)
    exe = fluid.Executor(fluid.CPUPlace())
    feeder = fluid.DataFeeder(feed_list=[data, label], place=fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    reader = paddle.batch(paddle.dataset.imdb.train(word_dict), batch_size=BATCH_SIZE)
    for pass_id in range(4):
        for batch in reader():
            cost_val, acc_val = exe.run(feed=feeder.feed(batch), fetch_list=[cost, acc_out])
            print("cost=" + str(np.round(cost_val, 5)) + " acc=" + str(acc_val))
    held = []
    for batch in paddle.batch(paddle.dataset.imdb.test(word_dict), batch_size=3)():
        held.append(exe.run(test_program, feed=feeder.feed(batch), fetch_list=[cost])[0])
    print("test cost %.5f" % np.mean(held))
    fluid.io.save_inference_model("sentiment_conv", ["words"], prediction, exe)
    return exe


def infer(word_dict):
    exe = fluid.Executor(fluid.CPUPlace())
    program, feed_names, targets = fluid.io.load_inference_model("sentiment_conv", exe)
    reviews_str = ['the fish good', 'a bird', 'the sky is bad bad x']
    reviews = [c.split() for c in reviews_str]
    UNK = word_dict['<unk>']
    lod = []
    for c in reviews:
        lod.append([np.int64(word_dict.get(words.encode(), UNK)) for words in c])
    base_shape = [[len(c) for c in lod]]
    tensor_words = fluid.create_lod_tensor(lod, base_shape, fluid.CPUPlace())
    assert feed_names[0] == "words"
    results = exe.run(program, feed={feed_names[0]: tensor_words}, fetch_list=targets, return_numpy=False)
    for i, r in enumerate(np.array(results[0])):
        print("Predict probability of ", "%.5f" % r[0], " to be positive and ", "%.5f" % r[1], reviews_str[i])


if __name__ == '__main__':
    word_dict = paddle.dataset.imdb.build_dict(__import__("re").compile("aclImdb/train/.*txt$"), 2)
    with new_scope_guard():
        train(word_dict)
    with new_scope_guard():
        infer(word_dict)
