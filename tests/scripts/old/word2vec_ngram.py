from __future__ import print_function

import math
import sys

import numpy
import paddle
import paddle.fluid as fluid

EMBED_SIZE = 8
HIDDEN_SIZE = 16
N = 5
BATCH_SIZE = 10
word_dict = paddle.dataset.imikolov.build_dict(1)
dict_size = len(word_dict)


def inference_program(words, is_sparse):
    embeds = [
        fluid.layers.embedding(input=word, size=[dict_size, EMBED_SIZE], dtype='float32', is_sparse=is_sparse,
                               param_attr='shared_w') for word in words]
    concat_embed = fluid.layers.concat(input=embeds, axis=1)
    hidden1 = fluid.layers.fc(input=concat_embed, size=HIDDEN_SIZE, act='sigmoid')
    return fluid.layers.fc(input=hidden1, size=dict_size, act='softmax')


def train(use_cuda, is_sparse, save_dirname):
    names = ['firstw', 'secondw', 'thirdw', 'fourthw', 'nextw']
    words = [fluid.layers.data(name=name, shape=[1], dtype='int64') for name in names]
    predict_word = inference_program(words[:4], is_sparse)
    cost = fluid.layers.cross_entropy(input=predict_word, label=words[4])
    avg_cost = fluid.layers.mean(cost)
    fluid.optimizer.SGD(learning_rate=0.05).minimize(avg_cost)

    train_reader = paddle.batch(paddle.dataset.imikolov.train(word_dict, N), BATCH_SIZE)
    place = fluid.CUDAPlace(0) if use_cuda else fluid.CPUPlace()
    exe = fluid.Executor(place)
    feeder = fluid.DataFeeder(feed_list=words, place=place)
    exe.run(fluid.default_startup_program())
    for pass_id in range(3):
        for step, data in enumerate(train_reader()):
            avg_cost_np = exe.run(fluid.default_main_program(), feed=feeder.feed(data), fetch_list=[avg_cost])
            if step % 5 == 0:
                print("Step %d: Average Cost %f" % (step, avg_cost_np[0]))
        if math.isnan(float(avg_cost_np[0])):
            sys.exit("got NaN loss, training failed.")
    fluid.io.save_inference_model(save_dirname, names[:4], [predict_word], exe)


def infer(use_cuda, save_dirname):
    place = fluid.CUDAPlace(0) if use_cuda else fluid.CPUPlace()
    exe = fluid.Executor(place)
    with fluid.scope_guard(fluid.core.Scope()):
        program, feed_target_names, fetch_targets = fluid.io.load_inference_model(save_dirname, exe)
        lod = [[1]]
        feed = {}
        for k, name in enumerate(feed_target_names):
            tensor = fluid.LoDTensor()
            tensor.set(numpy.array([[k]], dtype='int64'), place)
            tensor.set_recursive_sequence_lengths(lod)
            feed[name] = tensor
        results = exe.run(program, feed=feed, fetch_list=fetch_targets, return_numpy=False)
        print(results[0].recursive_sequence_lengths())
        np_data = numpy.array(results[0])
        print("Inference Shape: ", np_data.shape)
        most_possible_word_index = numpy.argmax(np_data)
        print(most_possible_word_index, "%.6f" % np_data.max())
        print([key for key, value in word_dict.items() if value == most_possible_word_index])


if __name__ == '__main__':
    for is_sparse in (True, False):
        with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
            train(False, is_sparse, "word2vec.inference.model")
            infer(False, "word2vec.inference.model")
