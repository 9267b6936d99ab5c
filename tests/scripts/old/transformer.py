from __future__ import print_function

import numpy as np
import paddle.fluid as fluid
import paddle.fluid.layers as layers

n_layer, n_head, d_key, d_value, d_model, d_inner, vocab, max_length = 2, 2, 4, 4, 8, 16, 20, 8
pos_enc_param_names = ("src_pos_enc_table", "trg_pos_enc_table")


def position_encoding_init(n_position, d_pos_vec):
    channels = np.arange(d_pos_vec // 2)
    angle = np.arange(n_position)[:, None] / np.power(10000., channels / float(d_pos_vec // 2 - 1))[None, :]
    return np.concatenate([np.sin(angle), np.cos(angle)], axis=1).astype("float32")


def multi_head_attention(queries, keys, values, attn_bias, dropout_rate=0.):
    keys = queries if keys is None else keys
    values = keys if values is None else values
    q = layers.fc(input=queries, size=d_key * n_head, bias_attr=False, num_flatten_dims=2)
    k = layers.fc(input=keys, size=d_key * n_head, bias_attr=False, num_flatten_dims=2)
    v = layers.fc(input=values, size=d_value * n_head, bias_attr=False, num_flatten_dims=2)

    def split_heads(x, size):
        return layers.transpose(layers.reshape(x=x, shape=[0, 0, n_head, size], inplace=True), perm=[0, 2, 1, 3])
    q, k, v = split_heads(q, d_key), split_heads(k, d_key), split_heads(v, d_value)
    product = layers.matmul(x=q, y=k, transpose_y=True, alpha=d_key**-0.5)
    if attn_bias is not None:
        product += attn_bias
    weights = layers.softmax(product)
    if dropout_rate:
        weights = layers.dropout(weights, dropout_prob=dropout_rate, is_test=False)
    out = layers.transpose(layers.matmul(weights, v), perm=[0, 2, 1, 3])
    out = layers.reshape(x=out, shape=[0, 0, out.shape[2] * out.shape[3]], inplace=True)
    return layers.fc(input=out, size=d_model, bias_attr=False, num_flatten_dims=2)


def pre_post_process_layer(prev_out, out, process_cmd):
    for cmd in process_cmd:
        if cmd == "a":
            out = out + prev_out if prev_out is not None else out
        elif cmd == "n":
            out = layers.layer_norm(out, begin_norm_axis=len(out.shape) - 1,
                                    param_attr=fluid.initializer.Constant(1.), bias_attr=fluid.initializer.Constant(0.))
    return out


def feed_forward(x):
    hidden = layers.fc(input=x, size=d_inner, num_flatten_dims=2, act="relu")
    return layers.fc(input=hidden, size=d_model, num_flatten_dims=2)


def sublayer(x, function):
    return pre_post_process_layer(x, function(pre_post_process_layer(None, x, "n")), "a")


def prepare(word, pos, name, pos_name):
    emb = layers.embedding(word, size=[vocab, d_model], padding_idx=0, param_attr=fluid.ParamAttr(
        name=name, initializer=fluid.initializer.Normal(0., d_model**-0.5)))
    emb = layers.scale(x=emb, scale=d_model**0.5)
    pos_enc = layers.embedding(pos, size=[max_length, d_model], param_attr=fluid.ParamAttr(name=pos_name, trainable=False))
    pos_enc.stop_gradient = True
    return layers.reshape(emb + pos_enc, [0, 0, d_model])


def transformer(label_smooth_eps=0.1):
    src, trg, lbl = (fluid.data(n, [None, max_length, 1], "int64") for n in ("src_word", "trg_word", "lbl_word"))
    pos = fluid.data("pos", [None, max_length, 1], "int64")
    src_bias = fluid.data("src_slf_attn_bias", [None, n_head, max_length, max_length], "float32")
    trg_bias = fluid.data("trg_slf_attn_bias", [None, n_head, max_length, max_length], "float32")
    weights = fluid.data("lbl_weight", [None, 1], "float32")
    enc = prepare(src, pos, "src_emb", pos_enc_param_names[0])
    for _ in range(n_layer):
        enc = sublayer(enc, lambda x: multi_head_attention(x, None, None, src_bias))
        enc = sublayer(enc, feed_forward)
    enc = pre_post_process_layer(None, enc, "n")
    dec = prepare(trg, pos, "src_emb", pos_enc_param_names[1])
    for _ in range(n_layer):
        dec = sublayer(dec, lambda x: multi_head_attention(x, None, None, trg_bias))
        dec = sublayer(dec, lambda x: multi_head_attention(x, enc, enc, src_bias))
        dec = sublayer(dec, feed_forward)
    dec = pre_post_process_layer(None, dec, "n")
    dec = layers.reshape(dec, shape=[-1, dec.shape[-1]], inplace=True)
    predict = layers.matmul(x=dec, y=fluid.default_main_program().global_block().var("src_emb"), transpose_y=True)
    label = layers.label_smooth(label=layers.one_hot(input=layers.reshape(lbl, [-1, 1]), depth=vocab),
                                epsilon=label_smooth_eps)
    cost = layers.softmax_with_cross_entropy(logits=predict, label=label, soft_label=True)
    weighted_cost = layers.elementwise_mul(x=cost, y=weights, axis=0)
    sum_cost = layers.reduce_sum(weighted_cost)
    token_num = layers.reduce_sum(weights)
    token_num.stop_gradient = True
    return sum_cost, sum_cost / token_num, token_num


def feed_of(rng, n=4):
    lengths = rng.randint(3, max_length + 1, n)
    src = rng.randint(2, vocab, (n, max_length)) * (np.arange(max_length) < lengths[:, None])
    trg = np.concatenate([np.ones((n, 1)), src[:, :0:-1]], 1)
    pad = np.where(src == 0, -1e9, 0.).reshape(n, 1, 1, max_length)
    future = np.triu(np.full((max_length, max_length), -1e9), 1)[None, None]
    shape = (n, n_head, max_length, max_length)
    return {"src_word": src[:, :, None].astype("int64"), "trg_word": trg[:, :, None].astype("int64"),
            "lbl_word": src[:, ::-1, None].astype("int64"),
            "pos": np.tile(np.arange(max_length), (n, 1))[:, :, None].astype("int64"),
            "src_slf_attn_bias": np.broadcast_to(pad, shape).astype("float32"),
            "trg_slf_attn_bias": np.broadcast_to(future, shape).astype("float32"),
            "lbl_weight": (src[:, ::-1] != 0).reshape(-1, 1).astype("float32")}


def main():
    sum_cost, avg_cost, token_num = transformer()
    lr_scheduler = layers.learning_rate_scheduler.noam_decay(d_model, 4)
    optimizer = fluid.optimizer.Adam(learning_rate=lr_scheduler * 0.5, beta1=0.9, beta2=0.98, epsilon=1e-9)
    optimizer.minimize(avg_cost)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    for name in pos_enc_param_names:
        fluid.global_scope().find_var(name).get_tensor().set(position_encoding_init(max_length, d_model), fluid.CPUPlace())
    rng = np.random.RandomState(13)
    for step in range(10):
        total, avg, tokens, lr = exe.run(feed=feed_of(rng), fetch_list=[sum_cost, avg_cost, token_num, lr_scheduler])
        normalized = avg - (-(0.9 * np.log(0.9) + 0.1 * np.log(0.1 / (vocab - 1) + 1e-20)))
        print("step_idx: %d, avg loss: %.5f, normalized loss: %.5f, ppl: %.4f, tokens %d, lr %.6f" % (
            step, avg, normalized, np.exp([min(float(avg), 100)])[0], tokens, lr))


if __name__ == "__main__":
    main()
