from __future__ import print_function

import argparse
import logging
import math
import os
import sys

import numpy as np
import paddle.fluid as fluid

logging.basicConfig(format='%(levelname)s - %(message)s', stream=sys.stdout)
logger = logging.getLogger("fluid")
logger.setLevel(logging.INFO)


def parse_args():
    parser = argparse.ArgumentParser(description="deepfm")
    parser.add_argument('--embedding_size', type=int, default=4)
    parser.add_argument('--num_field', type=int, default=5)
    parser.add_argument('--num_feat', type=int, default=60)
    parser.add_argument('--layer_sizes', nargs='+', type=int, default=[12, 8])
    parser.add_argument('--reg', type=float, default=1e-4)
    parser.add_argument('--num_epoch', type=int, default=3)
    return parser.parse_args()


def ctr_deepfm_model(embedding_size, num_field, num_feat, layer_sizes, act, reg, is_sparse=True):
    init_value_ = 0.1
    initer = fluid.initializer.TruncatedNormalInitializer(loc=0.0, scale=init_value_)
    raw_feat_idx = fluid.data(name='feat_idx', shape=[None, num_field], dtype='int64')
    raw_feat_value = fluid.data(name='feat_value', shape=[None, num_field], dtype='float32')
    label = fluid.data(name='label', shape=[None, 1], dtype='float32')
    feat_idx = fluid.layers.reshape(raw_feat_idx, [-1, 1])
    feat_value = fluid.layers.reshape(raw_feat_value, [-1, num_field, 1])

    first_weights_re = fluid.embedding(input=feat_idx, is_sparse=is_sparse, dtype='float32', size=[num_feat + 1, 1],
                                       padding_idx=0, param_attr=fluid.ParamAttr(
                                           initializer=initer, regularizer=fluid.regularizer.L1DecayRegularizer(reg)))
    first_weights = fluid.layers.reshape(first_weights_re, shape=[-1, num_field, 1])
    y_first_order = fluid.layers.reduce_sum(first_weights * feat_value, 1)

    feat_embeddings_re = fluid.embedding(
        input=feat_idx, is_sparse=is_sparse, dtype='float32', size=[num_feat + 1, embedding_size], padding_idx=0,
        param_attr=fluid.ParamAttr(initializer=fluid.initializer.TruncatedNormalInitializer(
            loc=0.0, scale=init_value_ / math.sqrt(float(embedding_size)))))
    feat_embeddings = fluid.layers.reshape(feat_embeddings_re, shape=[-1, num_field, embedding_size])
    feat_embeddings = feat_embeddings * feat_value
    summed_features_emb = fluid.layers.reduce_sum(feat_embeddings, 1)
    summed_features_emb_square = fluid.layers.square(summed_features_emb)
    squared_features_emb = fluid.layers.square(feat_embeddings)
    squared_sum_features_emb = fluid.layers.reduce_sum(squared_features_emb, 1)
    y_second_order = 0.5 * fluid.layers.reduce_sum(
        summed_features_emb_square - squared_sum_features_emb, 1, keep_dim=True)

    y_dnn = fluid.layers.reshape(feat_embeddings, [-1, num_field * embedding_size])
    for s in layer_sizes:
        y_dnn = fluid.layers.fc(
            input=y_dnn, size=s, act=act,
            param_attr=fluid.ParamAttr(initializer=fluid.initializer.TruncatedNormalInitializer(
                loc=0.0, scale=init_value_ / math.sqrt(float(10)))),
            bias_attr=fluid.ParamAttr(initializer=fluid.initializer.TruncatedNormalInitializer(
                loc=0.0, scale=init_value_)))
    y_dnn = fluid.layers.fc(input=y_dnn, size=1, act=None, param_attr=fluid.ParamAttr(initializer=initer),
                            bias_attr=fluid.ParamAttr(initializer=initer))
    predict = fluid.layers.sigmoid(y_first_order + y_second_order + y_dnn)
    cost = fluid.layers.log_loss(input=predict, label=label)
    batch_cost = fluid.layers.reduce_sum(cost)
    predict_2d = fluid.layers.concat([1 - predict, predict], 1)
    label_int = fluid.layers.cast(label, 'int64')
    auc_var, batch_auc_var, auc_states = fluid.layers.auc(input=predict_2d, label=label_int, slide_steps=0)
    return batch_cost, auc_var, [raw_feat_idx, raw_feat_value, label], auc_states


def batches(args, count, seed):
    rng = np.random.RandomState(seed)
    for _ in range(count):
        idx = rng.randint(0, args.num_feat + 1, (16, args.num_field)).astype('int64')
        value = rng.rand(16, args.num_field).astype('float32')
        label = (idx.mean(1, keepdims=True) > 30).astype('float32')
        yield {'feat_idx': idx, 'feat_value': value, 'label': label}


def train():
    args = parse_args()
    logger.info("fields %d, features %d", args.num_field, args.num_feat)
    loss, auc, data_list, auc_states = ctr_deepfm_model(args.embedding_size, args.num_field, args.num_feat,
                                                        args.layer_sizes, "relu", args.reg)
    test_program = fluid.default_main_program().clone(for_test=True)
    optimizer = fluid.optimizer.SGD(
        learning_rate=5e-2, regularization=fluid.regularizer.L2DecayRegularizer(args.reg))
    optimizer.minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())

    def set_zero(var_name):
        param = fluid.global_scope().var(var_name).get_tensor()
        param_array = np.zeros(param._get_dims()).astype("int64")
        param.set(param_array, fluid.CPUPlace())
    for epoch_id in range(args.num_epoch):
        for feed in batches(args, 6, 1):
            cost, auc_np = exe.run(feed=feed, fetch_list=[loss, auc])
        logger.info("epoch %d loss %.5f auc %.5f", epoch_id, cost.item(), auc_np.item())
        for state in auc_states:
            set_zero(state.name)
        model_dir = os.path.join("deepfm_model", 'epoch_' + str(epoch_id + 1))
        fluid.io.save_persistables(executor=exe, dirname=model_dir, main_program=fluid.default_main_program())
    print(len(os.listdir(model_dir)))
    for feed in batches(args, 3, 2):
        cost, auc_np = exe.run(test_program, feed=feed, fetch_list=[loss, auc])
    print("held out: loss %.5f auc %.5f" % (cost.item(), auc_np.item()))


if __name__ == '__main__':
    train()
