from __future__ import print_function

import numpy as np
import paddle.fluid as fluid

dict_size, embedding_size, window = 24, 8, 2


def skip_gram(infer=False, tree=False):
    input_word = fluid.layers.data(name="input_word", shape=[1], dtype='int64')
    predict_word = fluid.layers.data(name='predict_word', shape=[1], dtype='int64')
    emb = fluid.layers.embedding(
        input=input_word, is_sparse=True, size=[dict_size, embedding_size],
        param_attr=fluid.ParamAttr(name='emb_table', initializer=fluid.initializer.Normal(
            scale=1 / np.sqrt(dict_size))))
    kwargs = {}
    if tree:
        path_table = fluid.layers.data(name='path_table', shape=[4], dtype='int64')
        path_code = fluid.layers.data(name='path_code', shape=[4], dtype='int64')
        kwargs = dict(path_table=path_table, path_code=path_code, is_custom=True)
    cost = fluid.layers.hsigmoid(
        input=emb, label=predict_word, num_classes=dict_size - 1 if tree else dict_size,
        param_attr=fluid.ParamAttr(name="hs_weight", initializer=fluid.initializer.Normal(scale=0.1)),
        bias_attr=fluid.ParamAttr(name="hs_bias", initializer=fluid.initializer.Constant(0.0)), is_sparse=False, **kwargs)
    return fluid.layers.reduce_mean(cost)


def pairs():
    rng = np.random.RandomState(12)
    text = np.cumsum(rng.randint(0, 3, 60)) % dict_size
    for i, word in enumerate(text):
        for j in range(max(i - window, 0), min(i + window + 1, len(text))):
            if j != i:
                yield int(word), int(text[j])


def paths(words):
    table = np.stack([(words // 2 ** k) % (dict_size - 1) for k in range(4)], 1)
    table[:, 3] = np.where(words % 3 == 0, -1, table[:, 3])
    code = np.stack([(words // 2 ** k) % 2 for k in range(4)], 1)
    code[:, 3] = np.where(words % 3 == 0, -1, code[:, 3])
    return table.astype('int64'), code.astype('int64')


for tree in (False, True):
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        loss = skip_gram(tree=tree)
        optimizer = fluid.optimizer.SGD(learning_rate=fluid.layers.exponential_decay(
            learning_rate=0.5, decay_steps=4, decay_rate=0.9, staircase=True))
        optimizer.minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        data = np.array(list(pairs()))
        for epoch in range(2):
            for batch_id in range(0, len(data) - 40, 40):
                words, targets = data[batch_id:batch_id + 40, :1], data[batch_id:batch_id + 40, 1:]
                feed = {"input_word": words.astype('int64'), "predict_word": targets.astype('int64')}
                if tree:
                    feed["path_table"], feed["path_code"] = paths(targets[:, 0])
                loss_val = exe.run(feed=feed, fetch_list=[loss.name])[0]
                print("tree %d epoch %d batch %d loss %.5f" % (tree, epoch, batch_id // 40, loss_val.mean()))
        table = fluid.global_scope().find_var("emb_table").get_tensor()
        norm = np.linalg.norm(np.array(table), axis=1)
        print("nearest to 3:", np.argsort(-np.array(table).dot(np.array(table)[3]) / norm / norm[3])[0], "%.5f" % norm.sum())
