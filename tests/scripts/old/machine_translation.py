from __future__ import print_function

import numpy as np
import paddle
import paddle.fluid as fluid
import paddle.fluid.layers as pd
from paddle.fluid.executor import Executor

dict_size = 20
source_dict_dim = target_dict_dim = dict_size
hidden_dim, word_dim, batch_size, max_length, beam_size = 10, 6, 4, 6, 2
decoder_size = hidden_dim
IS_SPARSE = True


def encoder():
    src_word_id = pd.data(name="src_word_id", shape=[1], dtype='int64', lod_level=1)
    src_embedding = pd.embedding(input=src_word_id, size=[dict_size, word_dim], dtype='float32', is_sparse=IS_SPARSE,
                                 param_attr=fluid.ParamAttr(name='vemb'))
    fc1 = pd.fc(input=src_embedding, size=hidden_dim * 4, act='tanh',
                param_attr=fluid.ParamAttr(name='encoder_w'), bias_attr=fluid.ParamAttr(name='encoder_b'))
    lstm_hidden0, lstm_0 = pd.dynamic_lstm(input=fc1, size=hidden_dim * 4, param_attr=fluid.ParamAttr(name='lstm_w'),
                                           bias_attr=fluid.ParamAttr(name='lstm_b'))
    return pd.sequence_last_step(input=lstm_hidden0)


def state_step(current_word, pre_state):
    return pd.fc(input=[pre_state, current_word], size=decoder_size, act='tanh',
                 param_attr=[fluid.ParamAttr(name='step_u'), fluid.ParamAttr(name='step_w')],
                 bias_attr=fluid.ParamAttr(name='step_b'))


def word_score(state):
    return pd.fc(input=state, size=target_dict_dim, act='softmax', param_attr=fluid.ParamAttr(name='score_w'),
                 bias_attr=fluid.ParamAttr(name='score_b'))


def train_decoder(context):
    trg_language_word = pd.data(name="target_language_word", shape=[1], dtype='int64', lod_level=1)
    trg_embedding = pd.embedding(input=trg_language_word, size=[dict_size, word_dim], dtype='float32',
                                 is_sparse=IS_SPARSE, param_attr=fluid.ParamAttr(name='vemb'))
    rnn = pd.DynamicRNN()
    with rnn.block():
        current_word = rnn.step_input(trg_embedding)
        pre_state = rnn.memory(init=context, need_reorder=True)
        current_state = state_step(current_word, pre_state)
        rnn.update_memory(pre_state, current_state)
        rnn.output(word_score(current_state))
    return rnn()


def decode(context):
    init_state = context
    array_len = pd.fill_constant(shape=[1], dtype='int64', value=max_length)
    counter = pd.zeros(shape=[1], dtype='int64', force_cpu=True)
    state_array = pd.create_array('float32')
    pd.array_write(init_state, array=state_array, i=counter)
    ids_array = pd.create_array('int64')
    scores_array = pd.create_array('float32')
    init_ids = pd.data(name="init_ids", shape=[1], dtype="int64", lod_level=2)
    init_scores = pd.data(name="init_scores", shape=[1], dtype="float32", lod_level=2)
    pd.array_write(init_ids, array=ids_array, i=counter)
    pd.array_write(init_scores, array=scores_array, i=counter)
    cond = pd.less_than(x=counter, y=array_len)
    while_op = pd.While(cond=cond)
    with while_op.block():
        pre_ids = pd.array_read(array=ids_array, i=counter)
        pre_state = pd.array_read(array=state_array, i=counter)
        pre_score = pd.array_read(array=scores_array, i=counter)
        pre_state_expanded = pd.sequence_expand(pre_state, pre_score)
        pre_ids_emb = pd.embedding(input=pre_ids, size=[dict_size, word_dim], dtype='float32', is_sparse=IS_SPARSE,
                                   param_attr=fluid.ParamAttr(name='vemb'))
        current_state = state_step(pre_ids_emb, pre_state_expanded)
        current_state_with_lod = pd.lod_reset(x=current_state, y=pre_score)
        current_score = word_score(current_state_with_lod)
        topk_scores, topk_indices = pd.topk(current_score, k=beam_size)
        accu_scores = pd.elementwise_add(x=pd.log(topk_scores), y=pd.reshape(pre_score, shape=[-1]), axis=0)
        selected_ids, selected_scores = pd.beam_search(pre_ids, pre_score, topk_indices, accu_scores, beam_size,
                                                       end_id=10, level=0)
        pd.increment(x=counter, value=1, in_place=True)
        pd.array_write(current_state, array=state_array, i=counter)
        pd.array_write(selected_ids, array=ids_array, i=counter)
        pd.array_write(selected_scores, array=scores_array, i=counter)
        length_cond = pd.less_than(x=counter, y=array_len)
        finish_cond = pd.logical_not(pd.is_empty(x=selected_ids))
        pd.logical_and(x=length_cond, y=finish_cond, out=cond)
    return pd.beam_search_decode(ids=ids_array, scores=scores_array, beam_size=beam_size, end_id=10)


def corpus():
    rng = np.random.RandomState(3)
    for _ in range(24):
        source = rng.randint(2, dict_size, rng.randint(2, 6)).tolist()
        yield source, [0] + source[::-1], source[::-1] + [1]


def train(exe, place):
    rnn_out = train_decoder(encoder())
    label = pd.data(name="target_language_next_word", shape=[1], dtype='int64', lod_level=1)
    avg_cost = pd.mean(pd.cross_entropy(input=rnn_out, label=label))
    fluid.optimizer.Adagrad(learning_rate=1e-2, regularization=fluid.regularizer.L2DecayRegularizer(
        regularization_coeff=0.01)).minimize(avg_cost)
    exe.run(fluid.default_startup_program())
    names = ['src_word_id', 'target_language_word', 'target_language_next_word']
    block = fluid.default_main_program().global_block()
    feeder = fluid.DataFeeder([block.var(name) for name in names], place)
    batch_id = 0
    for pass_id in range(3):
        for data in paddle.batch(corpus, batch_size)():
            outs = exe.run(fluid.default_main_program(), feed=feeder.feed(data), fetch_list=[avg_cost])
            print('pass_id=' + str(pass_id) + ' batch=' + str(batch_id) + " avg_cost=%.6f" % np.array(outs[0]).item())
            batch_id += 1


def decode_main(exe, place):
    translation_ids, translation_scores = decode(encoder())
    init_ids_data = np.array([0 for _ in range(batch_size)], dtype='int64').reshape((batch_size, 1))
    init_scores_data = np.array([1. for _ in range(batch_size)], dtype='float32').reshape((batch_size, 1))
    lod = [[1] * batch_size, [1] * batch_size]
    init_ids = fluid.create_lod_tensor(init_ids_data, lod, place)
    init_scores = fluid.create_lod_tensor(init_scores_data, lod, place)
    feeder = fluid.DataFeeder([fluid.default_main_program().global_block().var('src_word_id')], place)
    data = next(paddle.batch(lambda: ((s,) for s, _, _ in corpus()), batch_size)())
    feed_dict = feeder.feed(data)
    feed_dict['init_ids'], feed_dict['init_scores'] = init_ids, init_scores
    ids, scores = exe.run(fluid.default_main_program(), feed=feed_dict,
                          fetch_list=[translation_ids, translation_scores], return_numpy=False)
    print(ids.recursive_sequence_lengths())
    print(np.array(ids).ravel().tolist())
    print(" ".join("%.4f" % s for s in np.array(scores).ravel()))


if __name__ == '__main__':
    place = fluid.CPUPlace()
    exe = Executor(place)
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        train(exe, place)
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        decode_main(exe, place)
