import sys

import numpy
import paddle.fluid as fluid

use_cuda = "--use_cuda" in sys.argv


def write_files():
    draws = numpy.random.RandomState(5)
    for part in range(2):
        with open("clicks-%d" % part, "w") as file:
            for _ in range(32):
                words = draws.randint(1, 100, draws.randint(1, 5))
                users = draws.randint(1, 30, 1)
                click = int(words.min() < 20)
                file.write("%d %s 1 %d 1 %d\n" % (len(words), " ".join(map(str, words)), users[0], click))


write_files()
words = fluid.data(name="words", shape=[None, 1], dtype="int64", lod_level=1)
user = fluid.data(name="user", shape=[None, 1], dtype="int64")
click = fluid.data(name="click", shape=[None, 1], dtype="int64")
word_embedding = fluid.layers.embedding(words, size=[100, 8], is_sparse=True, param_attr="words_table")
pooled = fluid.layers.sequence_pool(word_embedding, "average")
user_embedding = fluid.layers.embedding(user, size=[30, 4], is_sparse=True, param_attr="users_table")
hidden = fluid.layers.fc(fluid.layers.concat([pooled, user_embedding], axis=1), size=16, act="relu")
predict = fluid.layers.fc(hidden, size=2, act="softmax")
loss = fluid.layers.mean(fluid.layers.cross_entropy(predict, click))
test_program = fluid.default_main_program().clone(for_test=True)
fluid.optimizer.Adagrad(learning_rate=0.05).minimize(loss)

place = fluid.CUDAPlace(0) if use_cuda else fluid.CPUPlace()
exe = fluid.Executor(place)
exe.run(fluid.default_startup_program())
dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
dataset.set_batch_size(8)
dataset.set_thread(1)
dataset.set_filelist(["clicks-0", "clicks-1"])
dataset.set_pipe_command("cat")
dataset.set_use_var([words, user, click])

feed = {"words": fluid.create_lod_tensor(numpy.arange(1, 8).reshape(-1, 1), [[3, 4]], fluid.CPUPlace()),
        "user": numpy.array([[1], [2]]), "click": numpy.array([[1], [0]])}
for epoch in range(3):
    exe.train_from_dataset(program=fluid.default_main_program(), dataset=dataset)
    value, = exe.run(test_program, feed=feed, fetch_list=[loss])
    print("epoch %d loss %.6f" % (epoch, value[0]))
exe.infer_from_dataset(program=test_program, dataset=dataset)
fluid.io.save_inference_model("ctr_model", ["words", "user"], [predict], exe)
program, feeds, fetches = fluid.io.load_inference_model("ctr_model", exe)
value, = exe.run(program, feed={name: feed[name] for name in feeds}, fetch_list=fetches)
print(feeds, " ".join("%.5f" % v for v in value.ravel()))
