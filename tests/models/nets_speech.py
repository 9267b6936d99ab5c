"""Speech: convolutions with a row convolution, GRUs and CTC; a synthesizer with attention and a mel target."""
import numpy as np
from harness import drawn, net

BANDS, CHARS, FRAMES, BATCH = 12, 9, 16, 2


def recordings(step):
    r = drawn("speech", step)
    lengths = [[8, 6], [7, 8], [5, 5]][step]
    mask = (np.arange(FRAMES // 2)[None] < np.array(lengths)[:, None]).astype("float32")
    sizes = [[3, 2], [1, 3], [2, 2]][step]
    text = r.randint(0, CHARS, (sum(sizes), 1)).astype("int32")
    return {"audio_data": r.uniform(-1, 1, (BATCH, 1, BANDS, FRAMES)).astype("float32"),
            "text_data": (text, [sizes]), "seq_len_data": np.array(lengths, "int64")[:, None],
            "masks": np.tile(mask[:, None, None, :], (1, 3, 6, 1))}


@net("deep_speech")
def deep_speech(fluid):
    """Padded spectrograms with a mask, cut to sequences; bidirectional GRUs with batch norm; CTC and edit distance."""
    L = fluid.layers
    audio = fluid.data(name="audio_data", shape=[None, 1, BANDS, FRAMES], dtype="float32")
    text = fluid.data(name="text_data", shape=[None, 1], dtype="int32", lod_level=1)
    seq_len = fluid.data(name="seq_len_data", shape=[None, 1], dtype="int64")
    masks = fluid.data(name="masks", shape=[None, 3, 6, FRAMES // 2], dtype="float32")

    def conv_bn_layer(input, size, channels, stride, padding, act, mask, name):
        conv = L.conv2d(input=input, num_filters=channels, filter_size=size, stride=stride, padding=padding,
                        param_attr=fluid.ParamAttr(name=name + "_conv2d_weight"), act=None, bias_attr=False)
        bn = L.batch_norm(input=conv, param_attr=fluid.ParamAttr(name=name + "_batch_norm_weight"),
                          bias_attr=fluid.ParamAttr(name=name + "_batch_norm_bias"),
                          moving_mean_name=name + "_batch_norm_moving_mean",
                          moving_variance_name=name + "_batch_norm_moving_variance")
        bn = L.brelu(bn, 0.0, 24.0) if act == "brelu" else bn
        return L.elementwise_mul(bn, mask)

    conv = conv_bn_layer(audio, (5, 3), 3, (2, 2), (2, 1), "brelu", masks, "layer_0")
    conv = conv_bn_layer(conv, (3, 3), 3, (1, 1), (1, 1), "brelu", masks, "layer_1")
    conv_out = L.transpose(conv, perm=[0, 3, 1, 2])
    conv_out = L.reshape(conv_out, shape=[0, -1, 18])
    x = L.sequence_unpad(conv_out, L.squeeze(seq_len, [1]))

    def bidirectional_gru(input, size, name):
        """Shared input projection with sequence-wise normalization for both directions."""
        input_proj = L.fc(input=input, size=size * 3, act=None, bias_attr=False, param_attr=name + "_fc_weight")
        bn = L.batch_norm(input=input_proj, act=None, param_attr=name + "_bn_w", bias_attr=name + "_bn_b",
                          moving_mean_name=name + "_bn_m", moving_variance_name=name + "_bn_v")
        both = [L.dynamic_gru(bn, size=size, candidate_activation="relu", is_reverse=reverse,
                              param_attr="%s_gru_%d_w" % (name, reverse), bias_attr="%s_gru_%d_b" % (name, reverse))
                for reverse in (False, True)]
        return L.concat(both, axis=1)

    for i in range(2):
        x = bidirectional_gru(x, 6, "rnn_%d" % i)
    x = L.row_conv(x, future_context_size=2, param_attr="row_w")
    fc = L.fc(input=x, size=CHARS + 1, act=None, param_attr=fluid.ParamAttr(name="layer_fc_weight"))
    log_probs = L.softmax(fc)
    loss = L.warpctc(input=fc, label=text, blank=CHARS, norm_by_times=True)
    cost = L.reduce_sum(loss)
    decoded = L.ctc_greedy_decoder(input=fc, blank=CHARS)
    distance, count = L.edit_distance(decoded, L.cast(text, "int64"), normalized=True)
    fluid.optimizer.Adam(learning_rate=L.exponential_decay(0.01, 2, 0.83, staircase=True),
                         grad_clip=fluid.clip.GradientClipByGlobalNorm(clip_norm=4.0)).minimize(cost)
    return {"feed": recordings, "fetch": [cost, loss, log_probs, distance, count]}


class Synthesizer(object):
    """Characters to mel frames: convolutions, highways, a GRU and location sensitive attention."""

    def __init__(self, fluid, hidden=6, mel=4):
        self.fluid, self.L, self.hidden, self.mel = fluid, fluid.layers, hidden, mel

    def conv1d(self, x, filters, size, act=None, causal=False):
        """[n, c, t] to [n, filters, t], by conv2d over an image of one row."""
        L = self.L
        x = L.unsqueeze(x, axes=[2])
        if causal:
            x = L.pad2d(x, paddings=[0, 0, size - 1, 0])
        x = L.conv2d(x, filters, filter_size=[1, size], padding=[0, 0] if causal else [0, size // 2], act=None)
        x = L.squeeze(x, axes=[2])
        return getattr(L, act)(x) if act else x

    def highway(self, x):
        L = self.L
        gate, value = L.split(self.conv1d(x, 2 * self.hidden, 3), num_or_sections=2, dim=1)
        gate = L.sigmoid(gate)
        return L.elementwise_add(L.elementwise_mul(gate, L.relu(value)), (1.0 - gate) * x)

    def encoder(self, text):
        L = self.L
        emb = L.transpose(self.fluid.embedding(text, size=[CHARS, self.hidden], padding_idx=0), [0, 2, 1])
        bank = L.concat([self.conv1d(emb, 2, k, "relu") for k in (1, 3, 5)], axis=1)
        pooled = L.squeeze(L.pool2d(L.unsqueeze(bank, [2]), pool_size=[1, 3], pool_stride=1, pool_padding=[0, 1],
                                    pool_type="max"), [2])
        x = L.elementwise_add(self.conv1d(pooled, self.hidden, 3), emb)
        return L.transpose(self.highway(self.highway(x)), [0, 2, 1])

    def decoder(self, memory, frames, characters):
        """Frames by time in a StaticRNN; attention that sees where it was."""
        L, h = self.L, self.hidden
        keys = L.fc(memory, h, num_flatten_dims=2, bias_attr=False, param_attr="att_keys")
        rnn = L.StaticRNN()
        with rnn.step():
            frame = rnn.step_input(frames)
            state = rnn.memory(shape=[-1, h], batch_ref=frame, init_value=0.1)
            context = rnn.memory(shape=[-1, h], batch_ref=frame)
            before = rnn.memory(shape=[-1, characters], batch_ref=frame, init_value=1.0 / characters)
            prenet = L.fc(frame, h, act="relu", param_attr="prenet_w", bias_attr="prenet_b")
            gates = L.fc(L.concat([prenet, context], 1), 3 * h, param_attr="gru_in", bias_attr=False)
            new, _, _ = L.gru_unit(gates, state, 3 * h, param_attr="gru_w", bias_attr="gru_b", origin_mode=True)
            query = L.unsqueeze(L.fc(new, h, bias_attr=False, param_attr="att_query"), [1])
            place = L.fc(L.unsqueeze(before, [2]), h, num_flatten_dims=2, bias_attr=False, param_attr="att_place")
            energy = L.squeeze(L.fc(L.tanh(L.elementwise_add(keys + place, query)), 1, num_flatten_dims=2,
                                    bias_attr=False, param_attr="att_v"), [2])
            weights = L.softmax(energy)
            seen = L.squeeze(L.matmul(L.unsqueeze(weights, [1]), memory), [1])
            rnn.update_memory(state, new)
            rnn.update_memory(context, seen)
            rnn.update_memory(before, weights)
            rnn.step_output(L.concat([new, seen], axis=1))
            rnn.step_output(weights)
        out, alignment = rnn()
        return L.transpose(out, [1, 0, 2]), L.transpose(alignment, [1, 2, 0])


@net("speech_synthesis", exact=True)  # the gradient of `group_norm` without a scale
def speech_synthesis(fluid):
    """L1 losses of frames before and after a post net, stop tokens, and guided attention."""
    L, characters, steps, mel = fluid.layers, 5, 4, 4
    text = fluid.data("text", [None, characters], "int64")
    target = fluid.data("mel", [None, steps, mel], "float32")
    stop = fluid.data("stop", [None, steps], "float32")
    model = Synthesizer(fluid)
    memory = model.encoder(text)
    zero = L.fill_constant_batch_size_like(target, [-1, 1, mel], "float32", 0.0)
    shifted = L.concat([zero, L.slice(target, axes=[1], starts=[0], ends=[-1])], axis=1)
    out, alignment = model.decoder(memory, L.transpose(shifted, [1, 0, 2]), characters)
    frames = L.fc(out, mel, num_flatten_dims=2)
    post = L.transpose(frames, [0, 2, 1])
    for i in range(2):
        post = model.conv1d(post, 6, 3, causal=True)
        post = L.tanh(L.group_norm(L.unsqueeze(post, [3]), groups=2, act=None) if i else L.unsqueeze(post, [3]))
        post = L.squeeze(post, [3])
    refined = frames + L.transpose(model.conv1d(post, mel, 3, causal=True), [0, 2, 1])
    stops = L.reshape(L.fc(out, 1, num_flatten_dims=2), [0, steps])
    guide = np.abs(np.arange(characters)[:, None] / characters - np.arange(steps)[None] / steps)
    guide = L.assign((1 - np.exp(-guide ** 2 / 0.08)).astype("float32"))
    guide.stop_gradient = True
    losses = [L.reduce_mean(L.abs(frames - target)), L.mean(L.smooth_l1(L.reshape(refined, [-1, mel]),
                                                                       L.reshape(target, [-1, mel]), sigma=2.0)),
              L.reduce_mean(L.sigmoid_cross_entropy_with_logits(stops, stop)),
              L.reduce_mean(L.elementwise_mul(alignment, guide, axis=1))]
    loss = L.sum(losses)
    fluid.optimizer.Adam(learning_rate=1 / (2 ** 0.5), epsilon=1.0, regularization=fluid.regularizer.L2Decay(1e-6),
                         grad_clip=fluid.clip.GradientClipByGlobalNorm(1.0)).minimize(loss)

    def feed(step):
        r = drawn("tts", step)
        return {"text": r.randint(0, CHARS, (3, characters)).astype("int64"),
                "mel": r.uniform(-1, 1, (3, steps, mel)).astype("float32"),
                "stop": (np.arange(steps)[None] >= np.array([[2], [3], [3]])).astype("float32")}
    return {"feed": feed, "fetch": [loss, refined, alignment] + losses}
