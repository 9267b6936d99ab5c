from __future__ import print_function

import numpy as np
import paddle
import paddle.fluid as fluid
import paddle.fluid.layers as layers
import paddle.fluid.nets as nets

IS_SPARSE, USE_GPU, BATCH_SIZE = True, False, 16
CATEGORIES, TITLE_WORDS = 18, 50


def get_usr_combined_features():
    uid = layers.data(name='user_id', shape=[1], dtype='int64')
    usr_emb = layers.embedding(input=uid, dtype='float32', size=[paddle.dataset.movielens.max_user_id() + 1, 16],
                               param_attr='user_table', is_sparse=IS_SPARSE)
    usr_fc = layers.fc(input=usr_emb, size=16)
    usr_gender_id = layers.data(name='gender_id', shape=[1], dtype='int64')
    usr_gender_emb = layers.embedding(input=usr_gender_id, size=[2, 8], param_attr='gender_table', is_sparse=IS_SPARSE)
    usr_gender_fc = layers.fc(input=usr_gender_emb, size=8)
    usr_age_id = layers.data(name='age_id', shape=[1], dtype="int64")
    usr_age_emb = layers.embedding(input=usr_age_id, size=[len(paddle.dataset.movielens.age_table), 8],
                                   is_sparse=IS_SPARSE, param_attr='age_table')
    usr_age_fc = layers.fc(input=usr_age_emb, size=8)
    usr_job_id = layers.data(name='job_id', shape=[1], dtype="int64")
    usr_job_emb = layers.embedding(input=usr_job_id, size=[paddle.dataset.movielens.max_job_id() + 1, 8],
                                   param_attr='job_table', is_sparse=IS_SPARSE)
    usr_job_fc = layers.fc(input=usr_job_emb, size=8)
    concat_embed = layers.concat(input=[usr_fc, usr_gender_fc, usr_age_fc, usr_job_fc], axis=1)
    return layers.fc(input=concat_embed, size=24, act="tanh")


def get_mov_combined_features():
    mov_id = layers.data(name='movie_id', shape=[1], dtype='int64')
    mov_emb = layers.embedding(input=mov_id, dtype='float32', size=[paddle.dataset.movielens.max_movie_id() + 1, 16],
                               param_attr='movie_table', is_sparse=IS_SPARSE)
    mov_fc = layers.fc(input=mov_emb, size=16)
    category_id = layers.data(name='category_id', shape=[1], dtype='int64', lod_level=1)
    mov_categories_emb = layers.embedding(input=category_id, size=[CATEGORIES, 16], is_sparse=IS_SPARSE)
    mov_categories_hidden = layers.sequence_pool(input=mov_categories_emb, pool_type="sum")
    mov_title_id = layers.data(name='movie_title', shape=[1], dtype='int64', lod_level=1)
    mov_title_emb = layers.embedding(input=mov_title_id, size=[TITLE_WORDS, 16], is_sparse=IS_SPARSE)
    mov_title_conv = nets.sequence_conv_pool(input=mov_title_emb, num_filters=16, filter_size=3, act="tanh",
                                             pool_type="sum")
    concat_embed = layers.concat(input=[mov_fc, mov_categories_hidden, mov_title_conv], axis=1)
    return layers.fc(input=concat_embed, size=24, act="tanh")


def same_numbers(reader):
    """categories and words of titles get other numbers in each process; count them instead"""
    def wrapped():
        for uid, gender, age, job, movie, category, title, score in reader():
            yield (uid, gender, age, job, movie, [(movie + k) % CATEGORIES for k in range(len(category))],
                   [(movie * 7 + k) % TITLE_WORDS for k in range(len(title))], score)
    return wrapped


def main():
    usr_combined_features = get_usr_combined_features()
    mov_combined_features = get_mov_combined_features()
    inference = layers.cos_sim(X=usr_combined_features, Y=mov_combined_features)
    scale_infer = layers.scale(x=inference, scale=5.0)
    label = layers.data(name='score', shape=[1], dtype='float32')
    avg_cost = layers.mean(layers.square_error_cost(input=scale_infer, label=label))
    test_program = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.SGD(learning_rate=0.2).minimize(avg_cost)

    place = fluid.CUDAPlace(0) if USE_GPU else fluid.CPUPlace()
    exe = fluid.Executor(place)
    exe.run(fluid.default_startup_program())
    feed_order = ['user_id', 'gender_id', 'age_id', 'job_id', 'movie_id', 'category_id', 'movie_title', 'score']
    feed_list = [fluid.default_main_program().global_block().var(name) for name in feed_order]
    feeder = fluid.DataFeeder(feed_list, place)
    train_reader = paddle.batch(same_numbers(paddle.dataset.movielens.train()), batch_size=BATCH_SIZE)
    test_reader = paddle.batch(same_numbers(paddle.dataset.movielens.test()), batch_size=BATCH_SIZE)
    for epoch in range(4):
        for batch_id, data in enumerate(train_reader()):
            loss = exe.run(program=fluid.default_main_program(), feed=feeder.feed(data), fetch_list=[avg_cost])[0]
            print("epoch %d batch %d cost %.5f" % (epoch, batch_id, loss))
        costs = [exe.run(program=test_program, feed=feeder.feed(d), fetch_list=[avg_cost])[0] for d in test_reader()]
        print("EpochId: {}, test: {:.5f}".format(epoch, float(np.mean(costs))))
    fluid.io.save_inference_model("recommender", feed_order[:-1], [scale_infer], exe)
    with fluid.scope_guard(fluid.core.Scope()):
        program, names, fetches = fluid.io.load_inference_model("recommender", exe)
        feed = {name: fluid.create_lod_tensor([[np.int64(k % 2)]], [[1]], place) for k, name in enumerate(names)}
        results = exe.run(program, feed=feed, fetch_list=fetches, return_numpy=False)
        print("inferred score %.4f" % np.array(results[0])[0][0])


if __name__ == '__main__':
    main()
