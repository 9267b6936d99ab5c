"""Retrieves items with two towers: one maps a user's history to a vector, the other maps an item.

    score(user, item) = cosine of the two        loss = - log softmax over the items of the batch

The items nearest to a user are offered. In training, the items of a batch are each other's negatives. The logarithm of
an item's share of the data is subtracted from its score; otherwise popular items, which are negatives more often,
would be penalized (Yi and others, "Sampling-Bias-Corrected Neural Modeling", RecSys 2019).

Data: MovieLens if the Debian package r-cran-dslabs is installed, otherwise a synthetic set. Recall at 50 is the share
of users whose next movie is among the 50 nearest of all movies.

Expected output: a recall above that of the 50 most popular movies.
"""
import os

import behaviour
import clicks
import numpy

import anabranch.fluid as fluid

SCHEMA = "columns tab\nitem = 0\nlog_share = 1\nhistory = 2 split ,\n"
TOP, SHARPNESS = 50, 10.0


def tower(rows, width):
    """A vector of length 1 for each row, [n, width]."""
    return fluid.layers.l2_normalize(fluid.layers.fc(fluid.layers.fc(rows, 2 * width, act="relu"), width), axis=1)


def towers(history, item, items, width=32):
    """(user vectors, item vectors), [n, width] each."""
    def rows(ids, name):
        attr = fluid.ParamAttr(name, initializer=fluid.initializer.Uniform(-0.1, 0.1))
        return fluid.layers.embedding(ids, [items, width], is_sparse=True, param_attr=attr)

    user = tower(fluid.layers.sequence_pool(rows(history, "seen"), "average"), width)
    return user, tower(fluid.layers.reshape(rows(item, "offered"), [-1, width]), width)


def loss_of(user, item, log_share):
    """Cross entropy of the own item among those of the batch."""
    logits = fluid.layers.matmul(user, item, transpose_y=True, alpha=SHARPNESS)
    logits = fluid.layers.elementwise_sub(logits, fluid.layers.transpose(log_share, [1, 0]))
    own = fluid.layers.scale(fluid.layers.reduce_sum(fluid.layers.elementwise_mul(user, item), dim=1, keep_dim=True),
                             SHARPNESS)
    own = fluid.layers.elementwise_sub(own, log_share)
    all_of_them = fluid.layers.log(fluid.layers.reduce_sum(fluid.layers.exp(logits), dim=1, keep_dim=True))
    return fluid.layers.mean(fluid.layers.elementwise_sub(all_of_them, own))


def recall(scores, expected):
    """How often the expected item is among the best."""
    best = numpy.argpartition(-scores, TOP, axis=1)[:, :TOP]
    return float((best == expected[:, None]).any(axis=1).mean())


def vectors(executor, program, user, item, test, items):
    """(of the users of the test, of all items)."""
    lengths = [[len(history) for history, _ in test]]
    seen = numpy.concatenate([history for history, _ in test]).astype("int64")[:, None]
    one = fluid.create_lod_tensor(seen[:1], [[1]], fluid.CPUPlace())
    users, = executor.run(program, feed={"history": fluid.create_lod_tensor(seen, lengths, fluid.CPUPlace()),
                                         "item": numpy.zeros((len(test), 1), "int64")}, fetch_list=[user])
    everything, = executor.run(program, feed={"history": one, "item": numpy.arange(items)[:, None]}, fetch_list=[item])
    return users, everything


def main(arguments):
    data = behaviour.load(arguments.fast)
    print("data:", data.name)
    train, test = behaviour.split(data)
    logs = numpy.log(behaviour.shares(data))
    file = behaviour.write(os.path.join(arguments.out, "two_tower", "train.txt"),
                           ((item, logs[item], history) for history, item in train))
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 1
    item, log_share = fluid.data("item", [None, 1], "int64"), fluid.data("log_share", [None, 1])
    history = fluid.data("history", [None, 1], "int64", lod_level=1)
    user_vector, item_vector = towers(history, item, data.items)
    test_program = fluid.default_main_program().clone(for_test=True)
    score = fluid.layers.reduce_sum(fluid.layers.elementwise_mul(user_vector, item_vector), dim=1, keep_dim=True)
    fluid.optimizer.Adam(0.003, lazy_mode=True).minimize(loss_of(user_vector, item_vector, log_share))

    executor = fluid.Executor(fluid.CPUPlace())
    executor.run(fluid.default_startup_program())
    for _ in range(8 if arguments.fast else 12):
        executor.train_from_dataset(fluid.default_main_program(),
                                    clicks.dataset([file], [item, log_share, history], SCHEMA, 256))
    users, everything = vectors(executor, test_program, user_vector, item_vector, test, data.items)
    expected = numpy.array([item for _, item in test])
    print("recall at %d of the most popular: %.4f" % (TOP, recall(numpy.tile(logs, (len(test), 1)), expected)))
    print("recall at %d: %.4f" % (TOP, recall(users.dot(everything.T), expected)))
    clicks.save(os.path.join(arguments.out, "model"), [item, history], score, executor, fluid.default_main_program(),
                SCHEMA)


if __name__ == "__main__":
    main(clicks.parsed(__doc__))
