from __future__ import print_function

import time

import numpy as np
import paddle
import paddle.fluid as fluid

word_dict_len, label_dict_len, pred_dict_len = 60, 9, 12
mark_dict_len, word_dim, mark_dim, hidden_dim, depth, mix_hidden_lr = 2, 8, 3, 16, 4, 1e-3
IS_SPARSE, BATCH_SIZE = True, 6
embedding_name = 'emb'


def db_lstm(word, predicate, ctx_n2, ctx_n1, ctx_0, ctx_p1, ctx_p2, mark):
    predicate_embedding = fluid.embedding(
        input=predicate, size=[pred_dict_len, word_dim], dtype='float32', is_sparse=IS_SPARSE, param_attr='vemb')
    mark_embedding = fluid.embedding(input=mark, size=[mark_dict_len, mark_dim], dtype='float32', is_sparse=IS_SPARSE)
    word_input = [word, ctx_n2, ctx_n1, ctx_0, ctx_p1, ctx_p2]
    emb_layers = [
        fluid.embedding(size=[word_dict_len, word_dim], input=x,
                        param_attr=fluid.ParamAttr(name=embedding_name, trainable=False)) for x in word_input
    ]
    emb_layers.append(predicate_embedding)
    emb_layers.append(mark_embedding)
    hidden_0_layers = [fluid.layers.fc(input=emb, size=hidden_dim, act='tanh') for emb in emb_layers]
    hidden_0 = fluid.layers.sums(input=hidden_0_layers)
    lstm_0 = fluid.layers.dynamic_lstm(input=hidden_0, size=hidden_dim, candidate_activation='relu',
                                       gate_activation='sigmoid', cell_activation='sigmoid')
    input_tmp = [hidden_0, lstm_0[0]]
    for i in range(1, depth):
        mix_hidden = fluid.layers.sums(input=[
            fluid.layers.fc(input=input_tmp[0], size=hidden_dim, act='tanh'),
            fluid.layers.fc(input=input_tmp[1], size=hidden_dim, act='tanh')
        ])
        lstm = fluid.layers.dynamic_lstm(input=mix_hidden, size=hidden_dim, candidate_activation='relu',
                                         gate_activation='sigmoid', cell_activation='sigmoid', is_reverse=(i % 2) == 1)
        input_tmp = [mix_hidden, lstm[0]]
    return fluid.layers.sums(input=[
        fluid.layers.fc(input=input_tmp[0], size=label_dict_len, act='tanh'),
        fluid.layers.fc(input=input_tmp[1], size=label_dict_len, act='tanh')
    ])


def corpus():
    rng = np.random.RandomState(7)
    for _ in range(36):
        n = rng.randint(2, 8)
        words = rng.randint(0, word_dict_len, n).tolist()
        verb = int(rng.randint(n))
        contexts = [[words[min(max(verb + k, 0), n - 1)]] * n for k in (-2, -1, 0, 1, 2)]
        mark = [int(abs(i - verb) <= 2) for i in range(n)]
        labels = [(w + verb) % label_dict_len for w in words]
        yield [words] + contexts + [[words[verb] % pred_dict_len] * n, mark, labels]


def main():
    names = ['word_data', 'ctx_n2_data', 'ctx_n1_data', 'ctx_0_data', 'ctx_p1_data', 'ctx_p2_data', 'verb_data',
             'mark_data', 'target']
    data = [fluid.data(name=name, shape=[None, 1], dtype='int64', lod_level=1) for name in names]
    word, ctx_n2, ctx_n1, ctx_0, ctx_p1, ctx_p2, predicate, mark, target = data
    flat = dict(word=word, ctx_n2=ctx_n2, ctx_n1=ctx_n1, ctx_0=ctx_0, ctx_p1=ctx_p1, ctx_p2=ctx_p2, predicate=predicate,
                mark=mark)
    feature_out = db_lstm(**{k: fluid.layers.lod_reset(fluid.layers.reshape(v, [-1]), y=word) for k, v in flat.items()})
    crf_cost = fluid.layers.linear_chain_crf(
        input=feature_out, label=target, param_attr=fluid.ParamAttr(name='crfw', learning_rate=mix_hidden_lr))
    avg_cost = fluid.layers.mean(crf_cost)
    crf_decode = fluid.layers.crf_decoding(input=feature_out, param_attr=fluid.ParamAttr(name='crfw'))
    precision, recall, f1, num_infer, num_label, num_correct = fluid.layers.chunk_eval(
        input=crf_decode, label=target, chunk_scheme="IOB", num_chunk_types=(label_dict_len - 1) // 2)
    fluid.optimizer.SGD(learning_rate=fluid.layers.exponential_decay(
        learning_rate=0.01, decay_steps=100000, decay_rate=0.5, staircase=True)).minimize(avg_cost)

    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(fluid.default_startup_program())
    embedding_param = fluid.global_scope().find_var(embedding_name).get_tensor()
    embedding_param.set(np.random.RandomState(1).rand(word_dict_len, word_dim).astype("float32"), place)
    feeder = fluid.DataFeeder(feed_list=data, place=place)
    chunks = fluid.metrics.ChunkEvaluator()
    start_time = time.time()
    batch_id = 0
    for pass_id in range(3):
        chunks.reset()
        for batch in paddle.batch(corpus, BATCH_SIZE)():
            cost, ni, nl, nc = exe.run(fluid.default_main_program(), feed=feeder.feed(batch),
                                       fetch_list=[avg_cost, num_infer, num_label, num_correct])
            chunks.update(ni, nl, nc)
            if batch_id % 3 == 0:
                print("avg_cost: %.5f" % float(cost), "second per batch: " + str((time.time() - start_time) / (batch_id + 1)))
            batch_id = batch_id + 1
        print("pass", pass_id, chunks.eval())
    decoded, = exe.run(fluid.default_main_program(), feed=feeder.feed(batch), fetch_list=[crf_decode], return_numpy=False)
    print(np.array(decoded).ravel()[:10], decoded.lod())


if __name__ == '__main__':
    main()
