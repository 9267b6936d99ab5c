from __future__ import print_function

import numpy as np
import paddle.fluid as fluid

EPOCH_NUM, BATCH_NUM, BATCH_SIZE, CLASS_NUM = 2, 4, 5, 3
ITERABLE = (True, False)


def random_samples():
    rng = np.random.RandomState(8)
    for _ in range(BATCH_NUM * BATCH_SIZE + 2):
        image = rng.normal(size=[16]).astype("float32")
        yield image, np.array([abs(int(image.sum() * 10)) % CLASS_NUM]).astype("int64")


def sample_list_reader():
    batch = []
    for sample in random_samples():
        batch.append(sample)
        if len(batch) == BATCH_SIZE:
            yield batch
            batch = []


def batch_reader():
    for batch in sample_list_reader():
        yield np.stack([s[0] for s in batch]), np.stack([s[1] for s in batch])


def simple_net(image, label):
    fc_tmp = fluid.layers.fc(image, size=CLASS_NUM, act="sigmoid")
    cross_entropy = fluid.layers.softmax_with_cross_entropy(fc_tmp, label)
    loss = fluid.layers.reduce_mean(cross_entropy)
    sgd = fluid.optimizer.SGD(learning_rate=0.5)
    sgd.minimize(loss)
    return loss


def run_iterable(exe, program, loss, loader):
    for epoch in range(EPOCH_NUM):
        for data in loader():
            value, = exe.run(program=program, feed=data, fetch_list=[loss])
            print("iterable epoch %d loss %.6f" % (epoch, value[0]))


def run_noniterable(exe, program, loss, loader):
    for epoch in range(EPOCH_NUM):
        loader.start()
        try:
            while True:
                value, = exe.run(program=program, fetch_list=[loss])
                print("started epoch %d loss %.6f" % (epoch, value[0]))
        except fluid.core.EOFException:
            loader.reset()


def main(iterable, kind):
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        image = fluid.data(name='image', shape=[None, 16], dtype='float32')
        label = fluid.data(name='label', shape=[None, 1], dtype='int64')
        loader = fluid.io.DataLoader.from_generator(feed_list=[image, label], capacity=4, iterable=iterable,
                                                    use_double_buffer=True)
        loss = simple_net(image, label)
        places = fluid.cpu_places(1)
        if kind == "sample":
            loader.set_sample_generator(random_samples, batch_size=BATCH_SIZE, drop_last=True,
                                        places=places if iterable else None)
        elif kind == "samples":
            loader.set_sample_list_generator(sample_list_reader, places=places if iterable else None)
        else:
            loader.set_batch_generator(batch_reader, places=places if iterable else None)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        (run_iterable if iterable else run_noniterable)(exe, fluid.default_main_program(), loss, loader)


for iterable in ITERABLE:
    for kind in ("sample", "samples", "batch"):
        print("===", iterable, kind)
        main(iterable, kind)
